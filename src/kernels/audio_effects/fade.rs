//! Fades at the ends of sounds.

use std::f64::consts::{LN_2, LN_10};

use super::fourier::Float;
use super::{Sound, extents};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::portable::{exp, ln, sin_cos_of_turn};
use crate::kernels::{Arg, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Problem, Sample, with_element};

/// How a fade goes from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    Linear,
    Exponential,
    Logarithmic,
    QuarterSine,
    HalfSine,
}

const CURVES: &str = "linear, exponential, logarithmic, quarter_sine, half_sine";

impl FromArg for Curve {
    fn from_constant(arg: &Arg) -> std::result::Result<Curve, Problem> {
        Ok(match String::from_constant(arg)?.as_str() {
            "linear" => Curve::Linear,
            "exponential" => Curve::Exponential,
            "logarithmic" => Curve::Logarithmic,
            "quarter_sine" => Curve::QuarterSine,
            "half_sine" => Curve::HalfSine,
            _ => {
                return Err(Argument::OneOf { choices: CURVES, given: arg.shown() }.into());
            }
        })
    }

    fn from_sample(_: &Sample) -> std::result::Result<Curve, Problem> {
        Err(Argument::SameForAll.into())
    }
}

impl Curve {
    /// The formulas are those of torchaudio.
    fn at(self, t: f64) -> f64 {
        let made = match self {
            Curve::Linear => t,
            Curve::Exponential => exp((t - 1.0) * LN_2) * t,
            Curve::Logarithmic => ln(0.1 + t) / LN_10 + 1.0,
            Curve::QuarterSine => sin_cos_of_turn(t / 4.0).0,
            Curve::HalfSine => 0.5 - 0.5 * sin_cos_of_turn(t / 2.0).1,
        };
        made.clamp(0.0, 1.0)
    }
}

pub struct Fade;

args! {
    pub struct FadeArgs { fade_in_len: i64, fade_out_len: i64, fade_shape: Curve }
}

/// The lengths of both fades, and their shape.
pub struct Fades {
    fade_in: usize,
    fade_out: usize,
    curve: Curve,
}

impl Fades {
    /// What a frame is multiplied with.
    fn weight(&self, frame: usize, frames: usize) -> f64 {
        let part = |at: usize, length: usize| match length {
            // As a linspace of one: its first number.
            1 => 0.0,
            length => at as f64 / (length - 1) as f64,
        };
        let begin = match frame < self.fade_in {
            true => self.curve.at(part(frame, self.fade_in)),
            false => 1.0,
        };
        let first = frames - self.fade_out;
        let end = match frame >= first {
            true => self.curve.at(1.0 - part(frame - first, self.fade_out)),
            false => 1.0,
        };
        begin * end
    }
}

impl Kernel for Fade {
    type Args = FadeArgs;
    type Plan = Fades;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: FadeArgs, inputs: &[&Desc]) -> Result<(Fades, Outputs)> {
        let (frames, _) = extents(inputs[0]);
        let length = |name: &'static str, given: i64| match usize::try_from(given) {
            Ok(length) => Ok(length.min(frames)),
            Err(_) => Err(argument(name, Argument::Negative { given: given as f64 })),
        };
        let fades = Fades {
            fade_in: length("fade_in_len", args.fade_in_len)?,
            fade_out: length("fade_out_len", args.fade_out_len)?,
            curve: args.fade_shape,
        };
        Ok((fades, one(inputs[0].clone())))
    }

    fn run(fades: &Fades, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        out.store(|bytes, stores| stores.copy(bytes, input.elements_as_bytes()));
        with_element!(input.desc.dtype, |T| fade::<T>(fades, out));
        Ok(())
    }
}

fn fade<T: Sound>(fades: &Fades, out: &mut Output<'_>) {
    let (frames, channels) = extents(out.desc);
    let out = out.elements::<T>();
    let tail = (frames - fades.fade_out).max(fades.fade_in);
    for frame in (0..fades.fade_in).chain(tail..frames) {
        let weight = T::Float::of(fades.weight(frame, frames));
        for x in &mut out[frame * channels..][..channels] {
            let whole: T::Float = x.convert();
            *x = (whole * weight).convert();
        }
    }
}
