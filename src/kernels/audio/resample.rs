//! Audio resampling with a windowed sinc filter of a few lobes, scaled to the input's sample rate
//! (so that downsampling does not band-limit).

use crate::value::{Cause, with_room};

/// Filter entries per input sample.
const PHASES: usize = 32;
/// Number of outputs whose positions are accumulated in single precision.
const BLOCK: usize = 256;

/// A filter, as a row of weights for each position between two samples.
pub struct Resampler {
    taps: usize,
    /// `PHASES + 1` rows of `taps` weights.
    rows: Vec<f32>,
}

impl Resampler {
    /// `quality` from 0 to 100: from three lobes on each side to sixty-four.
    pub fn new(quality: f32) -> Resampler {
        let quality = f64::from(quality).clamp(0.0, 100.0);
        let lobes = (0.007 * quality * quality - 0.09 * quality + 3.0).round() as usize;
        let size = (2 * lobes * PHASES + 1) as f64;
        let weight = |phase: usize, tap: usize| {
            let entry = (tap * PHASES + phase) as f64 - (lobes * PHASES) as f64;
            let x = entry / PHASES as f64 * std::f64::consts::PI;
            let sine = if x == 0.0 { 1.0 } else { x.sin() / x };
            (sine * 0.5 * (1.0 + (std::f64::consts::PI * entry * 2.0 / size).cos())) as f32
        };
        let taps = 2 * lobes;
        let rows =
            (0..=PHASES).flat_map(|phase| (0..taps).map(move |tap| weight(phase, tap))).collect();
        Resampler { taps, rows }
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
        let (frames, step) = (samples.len() / channels, from / to);
        let count = Resampler::frames(frames, from, to);
        let mut made: Vec<f32> = with_room(count.saturating_mul(channels))?;
        let mut weights = vec![0.0_f32; self.taps];
        for block in (0..count).step_by(BLOCK) {
            let start = block as f64 * step;
            let base = start.floor();
            let mut place = (start - base) as f32;
            for _ in block..count.min(block + BLOCK) {
                let above = place.ceil();
                let first = base as isize + above as isize - (self.taps / 2) as isize;
                self.weigh(above - place, &mut weights);
                let skip = first.min(0).unsigned_abs().min(self.taps);
                let begin = (first + skip as isize) as usize;
                let end = (begin + self.taps - skip).min(frames);
                let taken = samples.get(begin * channels..end * channels).unwrap_or_default();
                if channels == 1 {
                    made.push(dot(&weights[skip..], taken));
                } else {
                    for channel in 0..channels {
                        let row = taken.iter().skip(channel).step_by(channels);
                        made.push(weights[skip..].iter().zip(row).map(|(w, s)| w * s).sum());
                    }
                }
                place += step as f32;
            }
        }
        Ok(made)
    }

    /// The weights for a position that is `fraction` before a sample.
    fn weigh(&self, fraction: f32, weights: &mut [f32]) {
        let entry = fraction * PHASES as f32;
        let phase = (entry as usize).min(PHASES - 1);
        let between = entry - phase as f32;
        let rows = &self.rows[phase * self.taps..][..2 * self.taps];
        let (low, high) = rows.split_at(self.taps);
        for ((weight, low), high) in weights.iter_mut().zip(low).zip(high) {
            *weight = low + between * (high - low);
        }
    }
}

/// Uses several sums, which are computed in parallel.
fn dot(weights: &[f32], samples: &[f32]) -> f32 {
    let count = weights.len().min(samples.len());
    let (left, left_rest) = weights[..count].as_chunks::<8>();
    let (right, right_rest) = samples[..count].as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..8 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(w, s)| w * s).sum();
    sums.iter().sum::<f32>() + rest
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
    fn empty_input_and_extreme_rates_are_handled() {
        assert!(run(&[], 1, 1.0, 2.0).is_empty());
        assert_eq!(run(&[1.0], 1, 1e9, 1.0).len(), 1);
        assert!(Resampler::new(50.0).run(&[1.0; 8], 1, 1.0, 1e18).is_err());
    }
}
