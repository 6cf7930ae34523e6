//! Short-time power spectra.

use super::fft::{Power, Transform};
use super::floats;
use super::frames::{Frames, Hann, Window, mono, positive};
use super::problem::Audio;
use super::transpose::transpose;
use crate::kernels::contract::output::Writer;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Layout, Sample, extent, zeroed};

pub struct Spectrogram;

args! {
    pub struct SpectrogramArgs {
        center_windows: bool,
        layout: Layout,
        nfft: Option<i64>,
        power: i64,
        reflect_padding: bool,
        window_fn: Option<Vec<f64>>,
        window_length: i64,
        window_step: i64,
    }
}

pub struct Plan {
    frames: Frames,
    shape: Window,
    nfft: usize,
    power: Power,
    /// Whether the frames are rows of the result.
    time_first: bool,
}

impl Kernel for Spectrogram {
    type Args = SpectrogramArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: SpectrogramArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let window = positive("window_length", args.window_length)?;
        let step = positive("window_step", args.window_step)?;
        let nfft = args.nfft.map_or(Ok(window), |nfft| positive("nfft", nfft))?;
        if window > nfft {
            return Err(argument("window_length", Audio::LongWindow { window, nfft }));
        }
        let shape = match args.window_fn {
            Some(numbers) if numbers.len() != window => {
                let given = numbers.len();
                return Err(argument("window_fn", Audio::WindowNumbers { wanted: window, given }));
            }
            Some(numbers) => Window::Given(numbers),
            None => Window::Hann(window, Hann::HalfSample),
        };
        let samples = mono(inputs[0])?;
        let (count, lead) = if args.center_windows {
            if samples == 0 {
                return Err(unfit(0, Audio::NoSamples));
            }
            (samples / step + 1, window / 2)
        } else {
            // A signal that is less than a step too short is padded with zeros.
            let least = window.saturating_sub(step - 1).max(1);
            if samples < least {
                return Err(unfit(0, Audio::Short { samples, least, window }));
            }
            (samples.saturating_sub(window) / step + 1, 0)
        };
        let bins = nfft / 2 + 1;
        let time_first = args.layout.as_str() == "tf";
        let sides = if time_first { [count, bins] } else { [bins, count] };
        if extent(&sides).is_none() {
            return Err(argument("nfft", Argument::TooLarge));
        }
        let desc = Desc { layout: args.layout, ..Desc::new(DType::F32, &sides) };
        let frames =
            Frames { count, step, lead, reflect: args.center_windows && args.reflect_padding };
        Ok((Plan { frames, shape, nfft, power: Power::of(args.power)?, time_first }, one(desc)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let signal = floats(&inputs[0])?;
        let (frames, window) = (&plan.frames, plan.shape.cached()?);
        let mut transform = Transform::new(plan.nfft, plan.power)?;
        let mut row = |index: usize, row: &mut [f32]| {
            transform.run(|dst| frames.read(index, &signal, &window, dst), row)
        };
        let bins = plan.nfft / 2 + 1;
        if plan.time_first {
            return outputs[0].write_in_order(|mut writer: Writer<'_, '_, f32>| {
                (0..frames.count).try_for_each(|index| writer.next(bins, |out| row(index, out)))
            });
        }
        // Several frames are transposed at once: single ones would touch a cache line per number.
        let mut tile: Vec<f32> = zeroed(TILE * bins)?;
        let out = outputs[0].elements::<f32>();
        for start in (0..frames.count).step_by(TILE) {
            let count = TILE.min(frames.count - start);
            for (index, out) in (start..start + count).zip(tile.chunks_exact_mut(bins)) {
                row(index, out)?;
            }
            transpose(&tile, bins, [count, bins], &mut out[start..], frames.count);
        }
        Ok(())
    }
}

/// Frames that are transposed at once: a cache line of results.
const TILE: usize = 16;
