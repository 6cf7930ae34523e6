//! Short-time power spectra.

use std::rc::Rc;

use super::fft::{Power, Transform};
use super::floats;
use super::problem::Audio;
use super::recent::Recent;
use super::transpose::transpose;
use crate::kernels::contract::output::Writer;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Layout, Sample, collected, extent, zeroed};

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

/// Where windows are.
struct Frames {
    count: usize,
    step: usize,
    /// How far the first window starts before the signal.
    lead: usize,
    /// Whether the signal is mirrored at its ends; else there are zeros around it.
    reflect: bool,
}

enum Window {
    /// Half-sample symmetric: sin^2(pi (i + 1/2) / n).
    Hann(usize),
    Given(Vec<f64>),
}

impl Window {
    fn weights(&self) -> Result<Vec<f32>> {
        match self {
            Window::Hann(len) => collected((0..*len).map(|i| {
                let phase = std::f64::consts::PI * (i as f64 + 0.5) / *len as f64;
                phase.sin().powi(2) as f32
            })),
            Window::Given(numbers) => collected(numbers.iter().map(|&x| x as f32)),
        }
    }

    /// The default window is the same in most calls.
    fn cached(&self) -> Result<Rc<Vec<f32>>> {
        thread_local! {
            static WINDOWS: Recent<usize, Vec<f32>> = const { Recent::new() };
        }
        match self {
            Window::Hann(len) => {
                WINDOWS.with(|windows| windows.get(*len, *len, |_| self.weights()))
            }
            Window::Given(_) => self.weights().map(Rc::new),
        }
    }
}

/// The number of samples of a signal with a single channel.
pub fn mono(desc: &Desc) -> Result<usize> {
    match desc.shape[..] {
        [n] | [n, 1] | [1, n] => Ok(n),
        _ => Err(unfit(0, Audio::Channels { shape: desc.shape.to_vec() })),
    }
}

fn positive(name: &'static str, given: i64) -> Result<usize> {
    usize::try_from(given)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| argument(name, Argument::AtLeast { least: 1.0, given: given as f64 }))
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
            None => Window::Hann(window),
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

impl Frames {
    /// Writes a window of the signal, and zeros after it.
    fn read(&self, index: usize, signal: &[f32], window: &[f32], dst: &mut [f32]) {
        let (dst, rest) = dst.split_at_mut(window.len());
        rest.fill(0.0);
        let start = index * self.step;
        let inside = start.checked_sub(self.lead).and_then(|start| signal.get(start..));
        if let Some(part) = inside.and_then(|part| part.get(..window.len())) {
            vectorized!({
                for ((d, s), w) in dst.iter_mut().zip(part).zip(window) {
                    *d = s * w;
                }
            });
            return;
        }
        let start = start as isize - self.lead as isize;
        for ((d, w), at) in dst.iter_mut().zip(window).zip(start..) {
            let at = if self.reflect { mirrored(at, signal.len()) } else { at as usize };
            *d = signal.get(at).map_or(0.0, |s| s * w);
        }
    }
}

/// The place inside of `0..n` that a place is mirrored to; the ends are not repeated.
fn mirrored(at: isize, n: usize) -> usize {
    let period = 2 * (n as isize - 1);
    if period <= 0 {
        return 0;
    }
    let at = at.rem_euclid(period);
    at.min(period - at) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_do_not_repeat_the_ends() {
        let found: Vec<usize> = (-7..8).map(|at| mirrored(at, 3)).collect();
        assert_eq!(found, [1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        assert_eq!([-5, 0, 9].map(|at| mirrored(at, 1)), [0, 0, 0]);
    }
}
