//! Logarithmic mel spectrograms, from the signal to the result in one go.

use std::borrow::Cow;

use super::columns::Map;
use super::decibels::{Scale, largest};
use super::fft::{Power, Transform};
use super::floats;
use super::frames::{Frames, Hann, Window, mono, positive};
use super::mel::{Bank, Filters, even_nfft};
use super::problem::Audio;
use super::transpose::transpose;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Layout, Sample, collected, extent, zeroed};

pub struct LogMel;

args! {
    pub struct LogMelArgs {
        freq_high: f64,
        freq_low: f64,
        layout: Layout,
        nfft: i64,
        nfilter: i64,
        preemph_coeff: f64,
        preset: String,
        sample_rate: f64,
        window_length: i64,
        window_step: i64,
    }
}

pub struct Plan {
    preemphasis: f32,
    frames: Frames,
    window: Window,
    nfft: usize,
    bank: Bank,
    scaling: Scaling,
    /// Whether the frames are rows of the result.
    time_first: bool,
}

/// What a preset decides, beside the sizes.
struct Recipe {
    window: Hann,
    /// Whether the signal is mirrored at its ends; else there are zeros around it.
    reflect: bool,
    htk: bool,
    /// Whether all filters have the area 1; else they have the height 1.
    normalize: bool,
    /// Whether there is a frame for the samples after the last whole step.
    last: bool,
    scaling: Scaling,
}

/// What is made of the power in a band.
#[derive(Clone, Copy)]
enum Scaling {
    /// Decibels, relative to the largest power of the sample.
    Peak,
    /// Decibels, at most 80 below the largest ones of the sample.
    Range,
    /// Decibels.
    Absolute,
    /// As `Range`, but from about -1 to 1.
    Whisper,
    /// Natural logarithms, with a mean of 0 and a standard deviation of 1 in each band.
    Standardized,
}

impl Recipe {
    fn of(preset: &str) -> Option<Recipe> {
        let (reflect, htk, normalize, last) = (true, false, true, true);
        let window = Hann::Periodic;
        Some(match preset {
            "dali" => {
                let scaling = Scaling::Peak;
                Recipe { window: Hann::HalfSample, reflect, htk, normalize, last, scaling }
            }
            "librosa" => {
                let scaling = Scaling::Range;
                Recipe { window, reflect: false, htk, normalize, last, scaling }
            }
            "torchaudio" => {
                let scaling = Scaling::Absolute;
                Recipe { window, reflect, htk: true, normalize: false, last, scaling }
            }
            "whisper" => {
                let scaling = Scaling::Whisper;
                Recipe { window, reflect, htk, normalize, last: false, scaling }
            }
            "nemo" => {
                let (window, scaling) = (Hann::Symmetric, Scaling::Standardized);
                Recipe { window, reflect: false, htk, normalize, last: false, scaling }
            }
            _ => return None,
        })
    }
}

impl Kernel for LogMel {
    type Args = LogMelArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: LogMelArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let Some(recipe) = Recipe::of(&args.preset) else {
            let choices = "\"dali\", \"librosa\", \"torchaudio\", \"whisper\" and \"nemo\"";
            return Err(argument("preset", Argument::OneOf { choices, given: args.preset }));
        };
        let window = positive("window_length", args.window_length)?;
        let step = positive("window_step", args.window_step)?;
        let nfft = positive("nfft", args.nfft)?;
        if window > nfft {
            return Err(argument("window_length", Audio::LongWindow { window, nfft }));
        }
        let filters = positive("nfilter", args.nfilter)?;
        let samples = mono(inputs[0])?;
        if samples == 0 {
            return Err(unfit(0, Audio::NoSamples));
        }
        // Transforms are centered, and the window lies in their middle. A transform of odd length
        // needs another sample on its right.
        let (steps, lead) = match recipe.scaling {
            Scaling::Peak => (samples / step, window / 2),
            _ => ((samples - nfft % 2) / step, nfft / 2 - (nfft - window) / 2),
        };
        let count = steps + usize::from(recipe.last);
        if count == 0 {
            let least = step + nfft % 2;
            return Err(unfit(0, Audio::FewSteps { samples, least }));
        }
        let (low, high, rate) = (args.freq_low, args.freq_high, args.sample_rate);
        let (bins, htk, normalize) = (nfft / 2 + 1, recipe.htk, recipe.normalize);
        // librosa is exact where the length of transforms is odd.
        let nominal = match recipe.scaling {
            Scaling::Peak | Scaling::Absolute => even_nfft(bins),
            _ => nfft,
        };
        let bank = Bank { bins, nfft: nominal, filters, low, high, rate, htk, normalize };
        bank.check()?;
        let time_first = args.layout.as_str() == "tf";
        let sides = if time_first { [count, filters] } else { [filters, count] };
        if extent(&sides).is_none() {
            return Err(argument("nfilter", Argument::TooLarge));
        }
        let desc = Desc { layout: args.layout, ..Desc::new(DType::F32, &sides) };
        let plan = Plan {
            preemphasis: args.preemph_coeff as f32,
            frames: Frames { count, step, lead, reflect: recipe.reflect },
            window: Window::Hann(window, recipe.window),
            nfft,
            bank,
            scaling: recipe.scaling,
            time_first,
        };
        Ok((plan, one(desc)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let signal = emphasized(floats(&inputs[0])?, plan.preemphasis)?;
        let out = outputs[0].elements::<f32>();
        if !plan.time_first {
            plan.write_bands(&signal, out)?;
            plan.scaling.apply(out, plan.frames.count);
            return Ok(());
        }
        let mut bands = zeroed(out.len())?;
        plan.write_bands(&signal, &mut bands)?;
        plan.scaling.apply(&mut bands, plan.frames.count);
        let sides = [plan.bank.filters, plan.frames.count];
        transpose(&bands, plan.frames.count, sides, out, plan.bank.filters);
        Ok(())
    }
}

/// The signal after a pre-emphasis filter that sees a zero before it.
fn emphasized(signal: Cow<'_, [f32]>, coefficient: f32) -> Result<Cow<'_, [f32]>> {
    if coefficient == 0.0 {
        return Ok(signal);
    }
    let mut made = collected(signal.iter().copied())?;
    vectorized!(copying coefficient; {
        for ((d, &x), &before) in made[1..].iter_mut().zip(&signal[1..]).zip(&signal[..]) {
            *d = x - coefficient * before;
        }
    });
    Ok(Cow::Owned(made))
}

/// Frames that are filtered at once, side by side.
const WIDTH: usize = 32;

impl Plan {
    /// Writes the power of each band over time.
    fn write_bands(&self, signal: &[f32], out: &mut [f32]) -> Result<()> {
        let (frames, window) = (&self.frames, self.window.cached()?);
        let filters = Filters::cached(self.bank)?;
        let mut transform = Transform::new(self.nfft, Power::Square)?;
        let bins = self.bank.bins;
        let mut spectra: Vec<f32> = zeroed(WIDTH * bins)?;
        let mut columns: Vec<f32> = zeroed(WIDTH * bins)?;
        let mut bands: Vec<f32> = zeroed(WIDTH * self.bank.filters)?;
        for start in (0..frames.count).step_by(WIDTH) {
            let width = WIDTH.min(frames.count - start);
            for (index, row) in (start..start + width).zip(spectra.chunks_exact_mut(bins)) {
                transform.run(|dst| frames.read(index, signal, &window, dst), row)?;
            }
            transpose(&spectra, bins, [width, bins], &mut columns, WIDTH);
            vectorized!(filters.apply(&columns, &mut bands, WIDTH));
            for (row, band) in out.chunks_exact_mut(frames.count).zip(bands.chunks_exact(WIDTH)) {
                row[start..start + width].copy_from_slice(&band[..width]);
            }
        }
        Ok(())
    }
}

impl Scaling {
    /// Applies it to bands of `frames` powers each.
    fn apply(self, bands: &mut [f32], frames: usize) {
        match self {
            Scaling::Peak => {
                let (peak, scale) = (largest(bands), Scale::new(10.0, -200.0));
                each(bands, move |x| scale.of(x / peak));
            }
            Scaling::Absolute => {
                let scale = Scale::new(10.0, -100.0);
                each(bands, move |x| scale.of(x));
            }
            Scaling::Range => {
                let scale = Scale::new(10.0, -100.0);
                let floor = scale.of(largest(bands)) - 80.0;
                each(bands, move |x| at_least(floor, scale.of(x)));
            }
            Scaling::Whisper => {
                let scale = Scale::new(1.0, -10.0);
                let floor = scale.of(largest(bands)) - 8.0;
                each(bands, move |x| (at_least(floor, scale.of(x)) + 4.0) / 4.0);
            }
            Scaling::Standardized => {
                // Silence is not minus infinity.
                const GUARD: f32 = 1.0 / (1 << 24) as f32;
                let scale = Scale::new(std::f64::consts::LN_10, f64::from(GUARD).ln());
                each(bands, move |x| scale.of(x + GUARD));
                bands.chunks_exact_mut(frames).for_each(standardize);
            }
        }
    }
}

#[inline(always)]
fn each(numbers: &mut [f32], change: impl Fn(f32) -> f32 + Copy) {
    vectorized!(copying change; numbers.iter_mut().for_each(|x| *x = change(*x)));
}

#[inline(always)]
fn at_least(floor: f32, x: f32) -> f32 {
    if x > floor { x } else { floor }
}

/// Subtracts the mean, and divides by the standard deviation.
fn standardize(row: &mut [f32]) {
    vectorized!({
        let count = row.len() as f64;
        let mean = sum(row, |x| x) / count;
        let squares = sum(row, |x| (x - mean) * (x - mean));
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        // A band that is the same throughout becomes zero.
        let (mean, deviation) = (mean as f32, (deviation + 1e-5) as f32);
        row.iter_mut().for_each(|x| *x = (*x - mean) / deviation);
    });
}

/// The sum of what is made of each number, in several lanes at once.
#[inline(always)]
fn sum(row: &[f32], of: impl Fn(f64) -> f64) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += of(f64::from(chunk[lane]));
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&x| of(f64::from(x))).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standardized_rows_have_no_mean_and_a_deviation_of_one() {
        for count in [2, 15, 16, 100] {
            let mut row: Vec<f32> = (0..count).map(|i| 1000.0 + (i * i % 37) as f32).collect();
            standardize(&mut row);
            assert!(sum(&row, |x| x).abs() < 1e-3);
            assert!((sum(&row, |x| x * x) / (count - 1) as f64 - 1.0).abs() < 1e-4);
        }
        for count in [1, 5] {
            let mut row = vec![7.0; count];
            standardize(&mut row);
            assert_eq!(row, vec![0.0; count]);
        }
    }
}
