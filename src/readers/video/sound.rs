//! The sound beside the frames of a clip.

use super::super::options::Options;
use super::super::source::{OpenError, Output, Result};
use crate::codecs::audio::downmix;
use crate::codecs::video::Video;
use crate::kernels::{OutputBuffer, Resampler};
use crate::value::{DType, Desc, Sample};

/// Samples on each side of a clip that resampling looks at, and more.
const MARGIN: i64 = 256;
/// How well rates are converted, as by default in `decoders.audio`.
const QUALITY: f32 = 50.0;

/// The requested form of sound.
pub struct Wanted {
    downmix: bool,
    /// The rate to convert to.
    resample: Option<(u32, Resampler)>,
}

impl Wanted {
    /// `None` if no sound is asked for.
    pub fn take(options: &mut Options) -> Result<Option<Wanted>, OpenError> {
        let is_wanted: bool = options.take("audio")?;
        let downmix = options.take("audio_downmix")?;
        let rate: Option<usize> = options.take("audio_sample_rate")?;
        let rate = rate.and_then(|rate| u32::try_from(rate).ok()).filter(|rate| *rate > 0);
        let resample = rate.filter(|_| is_wanted).map(|rate| (rate, Resampler::new(QUALITY)));
        Ok(is_wanted.then_some(Wanted { downmix, resample }))
    }

    pub fn output(&self) -> Output {
        Output::new(DType::F32, if self.downmix { 1 } else { 2 })
    }

    /// The samples of a span of the file's time, in seconds.
    pub fn read(
        &self,
        video: &Video,
        start: f64,
        duration: f64,
        allocate: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Sample> {
        // Without sound there is silence, if it is known of how many samples.
        let sound = video.sound()?;
        let (from, channels) = match &sound {
            Some(sound) => (sound.index.rate, sound.index.channels),
            None => (self.resample.as_ref().map_or(0, |(rate, _)| *rate), 1),
        };
        let to = self.resample.as_ref().map_or(from, |(rate, _)| *rate);
        let kept = if self.downmix { 1 } else { channels };
        let first = (start * f64::from(to)).round() as i64;
        let count = (duration * f64::from(to)).round().max(0.0) as usize;
        let samples = match sound {
            None => None,
            Some(mut sound) => {
                let mix = |samples: Vec<f32>| match self.downmix && channels > 1 {
                    true => downmix(&samples, channels),
                    false => Ok(samples),
                };
                match self.resample.as_ref().filter(|_| from != to) {
                    None => Some(mix(sound.read(first, count)?)?),
                    Some((_, resampler)) => {
                        let grid = Grid::new(from, to, first, count);
                        let samples = mix(sound.read(grid.start, grid.count)?)?;
                        let rates = (f64::from(from), f64::from(to));
                        let mut made = resampler.run(&samples, kept, rates.0, rates.1)?;
                        made.drain(..(grid.skipped * kept).min(made.len()));
                        Some(made)
                    }
                }
            }
        };
        let shape = [count, kept];
        let shape = if self.downmix { &shape[..1] } else { &shape[..] };
        let mut out = allocate(Desc::new(DType::F32, shape))?;
        let target = out.elements::<f32>();
        let samples = samples.unwrap_or_default();
        let length = samples.len().min(target.len());
        target[..length].copy_from_slice(&samples[..length]);
        target[length..].fill(0.0);
        out.into_sample()
    }
}

/// Which samples to resample so that the result is that of the whole sound: from one on that is at
/// the same time as a sample of the result.
struct Grid {
    start: i64,
    count: usize,
    /// Samples of the result in front of the ones that are wanted.
    skipped: usize,
}

impl Grid {
    fn new(from: u32, to: u32, first: i64, count: usize) -> Grid {
        let common = gcd(from, to);
        let (input, output) = (i64::from(from / common), i64::from(to / common));
        let ratio = f64::from(from) / f64::from(to);
        let margin = (MARGIN as f64 / ratio).ceil() as i64;
        let period = first.saturating_sub(margin).div_euclid(output);
        let start = period.saturating_mul(input);
        let skipped = first.saturating_sub(period.saturating_mul(output)).max(0) as usize;
        let needed = (skipped.saturating_add(count) as f64 * ratio).ceil() as usize;
        Grid { start, count: needed.saturating_add(MARGIN as usize), skipped }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_resampled_as_the_whole() {
        let sound: Vec<f32> = (0..30_000).map(|n| (n as f32 * 0.05).sin()).collect();
        let resampler = Resampler::new(QUALITY);
        for (from, to) in [(44100_u32, 16000_u32), (16000, 44100), (48000, 16000), (22050, 44100)] {
            let (low, high) = (f64::from(from), f64::from(to));
            let whole = resampler.run(&sound, 1, low, high).unwrap();
            for first in [0, 1, 777, whole.len() as i64 - 300] {
                let grid = Grid::new(from, to, first, 300);
                let part: Vec<f32> = (grid.start..grid.start + grid.count as i64)
                    .map(|at| {
                        *usize::try_from(at).ok().and_then(|at| sound.get(at)).unwrap_or(&0.0)
                    })
                    .collect();
                let made = resampler.run(&part, 1, low, high).unwrap();
                let made = &made[grid.skipped..][..300];
                let expected = &whole[first as usize..][..300];
                let error = made.iter().zip(expected).map(|(a, b)| (a - b).abs());
                let error = error.fold(0.0, f32::max);
                // The resampler adds up places in float32, as DALI does: after some thousands they are
                // off by up to 0.02 of a sample, and the sound changes by up to 0.05 within one.
                assert!(error < 1e-3, "{from} to {to} at {first}: {error}");
            }
        }
    }
}
