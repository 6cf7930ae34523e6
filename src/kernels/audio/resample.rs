//! Audio resampling with a windowed sinc filter of a few lobes, scaled to the input's sample rate
//! (so that downsampling does not band-limit).

use crate::kernels::numeric::isa::vectorized;
use crate::value::{Cause, filled, zeroed};

/// Filter entries per input sample.
const PHASES: usize = 32;
/// Number of outputs whose positions are accumulated in single precision.
pub const BLOCK: usize = 256;
/// Taps that are weighed at once.
const LANES: usize = 8;

/// A filter, as weights for some positions between two samples.
pub struct Resampler {
    lobes: usize,
    /// Rows of `phases`: the taps, a multiple of `LANES`.
    width: usize,
    /// For each of `PHASES` positions the weights of the taps, then by how much they change up to
    /// the next position.
    phases: Vec<[f32; LANES]>,
}

impl Resampler {
    /// `quality` from 0 to 100: from three lobes on each side to sixty-four.
    pub fn new(quality: f32) -> Resampler {
        let quality = f64::from(quality).clamp(0.0, 100.0);
        let lobes = (0.007 * quality * quality - 0.09 * quality + 3.0).round() as usize;
        let size = (2 * lobes * PHASES + 1) as f64;
        let weight = |phase: usize, tap: usize| {
            if tap >= 2 * lobes {
                return 0.0;
            }
            let entry = (tap * PHASES + phase) as f64 - (lobes * PHASES) as f64;
            let x = entry / PHASES as f64 * std::f64::consts::PI;
            let sine = if x == 0.0 { 1.0 } else { x.sin() / x };
            (sine * 0.5 * (1.0 + (std::f64::consts::PI * entry * 2.0 / size).cos())) as f32
        };
        let width = (2 * lobes).div_ceil(LANES);
        let mut phases = Vec::with_capacity(PHASES * 2 * width);
        for phase in 0..PHASES {
            let row = |make: &dyn Fn(usize) -> f32| -> Vec<[f32; LANES]> {
                (0..width).map(|i| std::array::from_fn(|lane| make(i * LANES + lane))).collect()
            };
            phases.extend(row(&|tap| weight(phase, tap)));
            phases.extend(row(&|tap| weight(phase + 1, tap) - weight(phase, tap)));
        }
        Resampler { lobes, width, phases }
    }

    /// Number of frames after resampling.
    pub fn frames(frames: usize, from: f64, to: f64) -> usize {
        (frames as f64 * to / from).ceil() as usize
    }

    /// Resamples frames of `channels` samples each from one rate to another. Both rates are
    /// positive.
    pub fn run(
        &self,
        samples: &[f32],
        channels: usize,
        from: f64,
        to: f64,
    ) -> Result<Vec<f32>, Cause> {
        let channels = channels.max(1);
        let frames = samples.len() / channels;
        let count = Resampler::frames(frames, from, to);
        let mut made: Vec<f32> = filled(0.0, count.saturating_mul(channels))?;
        let mut padded = self.padded(frames)?;
        let mut block = [0.0; BLOCK];
        for channel in 0..channels {
            let source = samples.iter().skip(channel).step_by(channels);
            padded.samples().iter_mut().zip(source).for_each(|(to, from)| *to = *from);
            for first in (0..count).step_by(BLOCK) {
                let block = &mut block[..BLOCK.min(count - first)];
                self.resample(&padded, first, from / to, block);
                let row = made[first * channels..].iter_mut().skip(channel).step_by(channels);
                row.zip(block).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(made)
    }

    /// Room for the samples of one channel.
    pub fn padded(&self, frames: usize) -> Result<Padded, Cause> {
        let after = 2 * self.width * LANES;
        let samples = zeroed(frames.saturating_add(self.lobes + after))?;
        Ok(Padded { samples, lobes: self.lobes, frames })
    }

    /// Writes a block of outputs: at most `BLOCK`, from output `first` on, a multiple of it. `step`
    /// is the distance between outputs, in samples.
    pub fn resample(&self, padded: &Padded, first: usize, step: f64, out: &mut [f32]) {
        let start = first as f64 * step;
        let base = start.floor();
        let mut place = (start - base) as f32;
        let base = base as usize;
        let (samples, last) = (&padded.samples[..], padded.frames + self.lobes);
        vectorized!({
            for out in out {
                // Not `ceil`, which is a library call on older processors.
                let below = place as u32;
                let above = if below as f32 == place { below } else { below.saturating_add(1) };
                let entry = (above as f32 - place) * PHASES as f32;
                let phase = (entry as u32).min(PHASES as u32 - 1);
                let between = entry - phase as f32;
                // The place of the first tap, in the padded samples. Beyond the last there are only
                // zeros.
                let begin = base.saturating_add(above as usize).min(last);
                let samples = samples[begin..].as_chunks::<LANES>().0;
                let row = &self.phases[2 * phase as usize * self.width..][..2 * self.width];
                *out = weighted(row, between, &samples[..self.width]);
                place += step as f32;
            }
        });
    }
}

/// The samples of a channel, with zeros around them.
pub struct Padded {
    samples: Vec<f32>,
    lobes: usize,
    frames: usize,
}

impl Padded {
    pub fn samples(&mut self) -> &mut [f32] {
        &mut self.samples[self.lobes..self.lobes + self.frames]
    }
}

/// The sum of weighted samples. `row` has weights, then by how much they change.
#[inline(always)]
fn weighted(row: &[[f32; LANES]], between: f32, samples: &[[f32; LANES]]) -> f32 {
    let (weights, changes) = row.split_at(samples.len());
    let (mut sums, mut more) = ([0.0_f32; LANES], [0.0_f32; LANES]);
    for ((weights, changes), samples) in weights.iter().zip(changes).zip(samples) {
        for lane in 0..LANES {
            sums[lane] += weights[lane] * samples[lane];
            more[lane] += changes[lane] * samples[lane];
        }
    }
    for lane in 0..LANES {
        sums[lane] += between * more[lane];
    }
    // In pairs, so that the additions don't wait for each other.
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(samples: &[f32], channels: usize, from: f64, to: f64) -> Vec<f32> {
        Resampler::new(50.0).run(samples, channels, from, to).unwrap_or_default()
    }

    #[test]
    fn half_the_rate_is_every_other_sample() {
        let samples: Vec<f32> = (0..100).map(|i| (i as f32 * 0.3).sin()).collect();
        let half = run(&samples, 1, 2.0, 1.0);
        assert_eq!(half.len(), 50);
        for (i, sample) in half.iter().enumerate() {
            assert!((sample - samples[2 * i]).abs() < 1e-6, "{i}");
        }
    }

    #[test]
    fn a_slow_wave_keeps_its_shape() {
        let wave = |rate: f64, i: usize| (i as f64 / rate).sin() as f32;
        let samples: Vec<f32> = (0..2000).map(|i| wave(20.0, i)).collect();
        let made = run(&samples, 1, 20.0, 33.3);
        assert_eq!(made.len(), 3330);
        for (i, sample) in made.iter().enumerate().skip(40).take(3250) {
            assert!((sample - wave(33.3, i)).abs() < 2e-3, "{i}");
        }
    }

    #[test]
    fn channels_are_kept_apart() {
        let left: Vec<f32> = (0..300).map(|i| (i as f32 * 0.1).sin()).collect();
        let both: Vec<f32> = left.iter().flat_map(|&s| [s, -2.0 * s]).collect();
        let (one, two) = (run(&left, 1, 16.0, 22.05), run(&both, 2, 16.0, 22.05));
        assert_eq!(two.len(), 2 * one.len());
        for (frame, sample) in two.chunks(2).zip(&one) {
            assert!((frame[0] - sample).abs() < 1e-5 && (frame[1] + 2.0 * sample).abs() < 1e-5);
        }
    }

    #[test]
    fn filters_of_every_quality_pass_constants() {
        for quality in 0..=100 {
            let made = Resampler::new(quality as f32).run(&[1.0; 400], 1, 1.0, 1.7).unwrap();
            let middle = &made[200..480];
            let most = if quality < 20 { 0.02 } else { 5e-3 };
            assert!(middle.iter().all(|x| (x - 1.0).abs() < most), "{quality}");
        }
    }

    #[test]
    fn empty_input_and_extreme_rates_are_handled() {
        assert!(run(&[], 1, 1.0, 2.0).is_empty());
        assert_eq!(run(&[1.0], 1, 1e9, 1.0).len(), 1);
        assert!(Resampler::new(50.0).run(&[1.0; 8], 1, 1.0, 1e18).is_err());
    }
}
