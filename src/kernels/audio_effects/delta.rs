//! Deltas: the slope of features over time.

use super::fourier::Float;
use super::problem::AudioEffects;
use super::{Sound, floats};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Arg, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Element, Problem, Sample, with_element, zeroed};

/// What frames near the ends get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// The first and the last frame are repeated.
    Replicate,
    /// The slope of the nearest whole window.
    Interp,
}

impl FromArg for Mode {
    fn from_constant(arg: &Arg) -> std::result::Result<Mode, Problem> {
        match String::from_constant(arg)?.as_str() {
            "replicate" => Ok(Mode::Replicate),
            "interp" => Ok(Mode::Interp),
            _ => Err(Argument::OneOf { choices: "replicate, interp", given: arg.shown() }.into()),
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Mode, Problem> {
        Err(Argument::SameForAll.into())
    }
}

pub struct Delta;

args! {
    pub struct DeltaArgs { mode: Mode, window_length: i64 }
}

/// Windows with the same number of frames on either side, along an axis of the input.
#[derive(Clone, Copy)]
pub struct Plan {
    mode: Mode,
    reach: usize,
    frames: usize,
    /// Elements of a frame that lie side by side.
    inner: usize,
}

/// More than anybody needs; it bounds the time of a call.
const LONGEST_WINDOW: i64 = 1001;

impl Kernel for Delta {
    type Args = DeltaArgs;
    type Plan = Plan;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: DeltaArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let (given, desc) = (args.window_length, inputs[0]);
        if !(3..=LONGEST_WINDOW).contains(&given) || given % 2 == 0 {
            return Err(argument("window_length", AudioEffects::WindowLength { given }));
        }
        let axis = desc.layout.find(b't').unwrap_or(0);
        let (frames, window) = (desc.shape[axis], given as usize);
        if args.mode == Mode::Interp && (1..window).contains(&frames) {
            return Err(unfit(0, AudioEffects::FewFrames { frames, window }));
        }
        let inner = desc.shape[axis + 1..].iter().product();
        let plan = Plan { mode: args.mode, reach: window / 2, frames, inner };
        Ok((plan, one(desc.clone())))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        if input.desc.elements() == 0 {
            return Ok(());
        }
        with_element!(input.desc.dtype, |T| deltas::<T>(plan, input, out))
    }
}

fn deltas<T: Sound>(plan: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()> {
    let src = floats::<T::Float>(input)?;
    if T::DTYPE == T::Float::DTYPE {
        plan.run(&src, out.elements::<T::Float>());
        return Ok(());
    }
    let mut made: Vec<T::Float> = zeroed(src.len())?;
    plan.run(&src, &mut made);
    out.elements::<T>().iter_mut().zip(&made).for_each(|(d, &s)| *d = s.convert());
    Ok(())
}

impl Plan {
    fn run<F: Float>(&self, src: &[F], dst: &mut [F]) {
        let slab = self.frames * self.inner;
        for (src, dst) in src.chunks_exact(slab).zip(dst.chunks_exact_mut(slab)) {
            self.run_slab(src, dst);
        }
    }

    fn run_slab<F: Float>(&self, src: &[F], dst: &mut [F]) {
        let Plan { reach, frames, inner, .. } = *self;
        // The weights of a line's slope, fitted by least squares.
        let squares: usize = (1..=reach).map(|k| 2 * k * k).sum();
        let weight = |k: usize| F::of(k as f64 / squares as f64);
        let last = frames - 1;
        let ends = reach.min(frames);
        let inside = ends..frames.saturating_sub(reach).max(ends);
        let whole = &mut dst[inside.start * inner..inside.end * inner];
        whole.fill(F::zero());
        for k in 1..=reach {
            let weight = weight(k);
            let after = &src[((inside.start + k) * inner).min(src.len())..];
            let before = &src[inside.start.saturating_sub(k) * inner..];
            vectorized!({
                for (d, (&a, &b)) in whole.iter_mut().zip(after.iter().zip(before)) {
                    *d = *d + weight * (a - b);
                }
            });
        }
        for frame in (0..inside.start).chain(inside.end..frames) {
            if self.mode == Mode::Interp {
                let nearest = frame.clamp(reach, last - reach);
                dst.copy_within(nearest * inner..(nearest + 1) * inner, frame * inner);
                continue;
            }
            for at in 0..inner {
                let slope = (1..=reach).fold(F::zero(), |sum, k| {
                    let (after, before) = ((frame + k).min(last), frame.saturating_sub(k));
                    sum + weight(k) * (src[after * inner + at] - src[before * inner + at])
                });
                dst[frame * inner + at] = slope;
            }
        }
    }
}
