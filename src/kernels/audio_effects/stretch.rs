//! Time stretch and pitch shift.

use super::fourier::Float;
use super::problem::AudioEffects;
use super::vocoder::{Windows, stretch};
use super::{Sound, extents, floats, sinc};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::portable::exp;
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Element, Sample, extent, with_element, zeroed};

const TRAITS: Traits = Traits { cheap: false, frames: Frames::Whole, ..Traits::DEFAULT };

const SHORTEST_WINDOW: i64 = 4;
const LONGEST_WINDOW: i64 = 1 << 16;
const SLOWEST: f64 = 0.01;
const FASTEST: f64 = 100.0;

fn windows(nfft: i64, step: Option<i64>) -> Result<Windows> {
    if !(SHORTEST_WINDOW..=LONGEST_WINDOW).contains(&nfft) {
        let (low, high, given) = (SHORTEST_WINDOW as f64, LONGEST_WINDOW as f64, nfft as f64);
        return Err(argument("nfft", Argument::Between { low, high, given }));
    }
    let length = nfft as usize;
    let step = step.unwrap_or(nfft / 4);
    if !(1..=nfft / 2).contains(&step) {
        let problem = AudioEffects::WindowStep { most: length / 2, given: step };
        return Err(argument("window_step", problem));
    }
    Ok(Windows { length, step: step as usize })
}

/// The length after a stretch by 1 / `rate`.
fn stretched(frames: usize, rate: f64) -> usize {
    (frames as f64 / rate).round_ties_even() as usize
}

/// Runs on each channel, which lie side by side in memory.
fn channels<T: Sound>(
    input: &Sample,
    out: &mut Output<'_>,
    mut work: impl FnMut(&[T::Float], &mut [T::Float]) -> Result<()>,
) -> Result<()> {
    let ((_, count), (frames, _)) = (extents(&input.desc), extents(out.desc));
    if input.desc.elements() == 0 || frames == 0 {
        out.elements::<T>().fill(T::default());
        return Ok(());
    }
    let signal = floats::<T::Float>(input)?;
    if count == 1 && T::DTYPE == T::Float::DTYPE {
        return work(&signal, out.elements::<T::Float>());
    }
    let mut one: Vec<T::Float> = zeroed(signal.len() / count)?;
    let mut made: Vec<T::Float> = zeroed(frames)?;
    for channel in 0..count {
        let src = signal.iter().skip(channel).step_by(count);
        one.iter_mut().zip(src).for_each(|(d, &s)| *d = s);
        work(&one, &mut made)?;
        let dst = out.elements::<T>().iter_mut().skip(channel).step_by(count);
        dst.zip(&made).for_each(|(d, &s)| *d = s.convert());
    }
    Ok(())
}

fn copy(input: &Sample, out: &mut Output<'_>) -> Result<()> {
    out.bytes().copy_from_slice(input.elements_as_bytes());
    Ok(())
}

pub struct TimeStretch;

args! {
    pub struct TimeStretchArgs { nfft: i64, rate: f64, window_step: Option<i64> }
}

impl Kernel for TimeStretch {
    type Args = TimeStretchArgs;
    type Plan = (f64, Windows);
    const TRAITS: Traits = TRAITS;

    fn plan(args: TimeStretchArgs, inputs: &[&Desc]) -> Result<(Self::Plan, Outputs)> {
        let windows = windows(args.nfft, args.window_step)?;
        let rate = args.rate;
        if !(SLOWEST..=FASTEST).contains(&rate) {
            let problem = Argument::Between { low: SLOWEST, high: FASTEST, given: rate };
            return Err(argument("rate", problem));
        }
        let mut desc = inputs[0].clone();
        if rate != 1.0
            && let Some(frames) = desc.shape.first_mut()
        {
            *frames = stretched(*frames, rate);
        }
        if extent(&desc.shape).is_none() {
            return Err(argument("rate", Argument::TooLarge));
        }
        Ok(((rate, windows), one(desc)))
    }

    fn run(
        &(rate, windows): &Self::Plan,
        inputs: &[Sample],
        outputs: &mut [Output<'_>],
    ) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        if rate == 1.0 {
            return copy(input, out);
        }
        with_element!(input.desc.dtype, |T| channels::<T>(input, out, |signal, out| {
            stretch(signal, rate, windows, out)
        }))
    }
}

pub struct PitchShift;

args! {
    pub struct PitchShiftArgs {
        bins_per_octave: i64,
        n_steps: f64,
        nfft: i64,
        window_step: Option<i64>,
    }
}

/// How far pitch is shifted at most. The sound is stretched by as much in between.
const MOST_OCTAVES: f64 = 6.0;

impl Kernel for PitchShift {
    type Args = PitchShiftArgs;
    type Plan = (f64, Windows);
    const TRAITS: Traits = Traits { shaped_by_args: false, ..TRAITS };

    fn plan(args: PitchShiftArgs, inputs: &[&Desc]) -> Result<(Self::Plan, Outputs)> {
        let windows = windows(args.nfft, args.window_step)?;
        if args.bins_per_octave < 1 {
            let given = args.bins_per_octave as f64;
            return Err(argument("bins_per_octave", Argument::NotPositive { given }));
        }
        let octaves = args.n_steps / args.bins_per_octave as f64;
        if octaves.is_nan() || octaves.abs() > MOST_OCTAVES {
            let problem = AudioEffects::Octaves { most: MOST_OCTAVES, given: args.n_steps };
            return Err(argument("n_steps", problem));
        }
        let rate = exp(-octaves * std::f64::consts::LN_2);
        Ok(((rate, windows), one(inputs[0].clone())))
    }

    fn run(
        &(rate, windows): &Self::Plan,
        inputs: &[Sample],
        outputs: &mut [Output<'_>],
    ) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        if rate == 1.0 {
            return copy(input, out);
        }
        with_element!(input.desc.dtype, |T| channels::<T>(input, out, |signal, out| {
            shift(signal, rate, windows, out)
        }))
    }
}

/// Stretches a sound, then plays it that much faster.
fn shift<F: Float>(signal: &[F], rate: f64, windows: Windows, out: &mut [F]) -> Result<()> {
    let mut long = zeroed(stretched(signal.len(), rate))?;
    stretch(signal, rate, windows, &mut long)?;
    let heard = (long.len() as f64 * rate).ceil() as usize;
    let (out, rest) = out.split_at_mut(heard.min(out.len()));
    rest.fill(F::zero());
    sinc::resample(&long, 1.0 / rate, out)
}
