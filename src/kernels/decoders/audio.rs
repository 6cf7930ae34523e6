//! Decoding audio, and what becomes of the samples: mixing, resampling, conversion.

use std::io::Cursor;

use smallvec::smallvec;

use crate::codecs::audio::{AudioFault, Format, Pcm, Sound, Span, downmix};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::decoders::{problem, protected};
use crate::kernels::{Allocate, DirectKernel, Resampler, Result, Samples, Traits, args};
use crate::value::{Cause, DType, Desc, Element, Sample};

/// The requested form of audio.
pub struct Wanted<'a> {
    pub downmix: bool,
    /// `F32`, `I16` or `I32`.
    pub dtype: DType,
    /// The sampling rate to resample to, and how.
    pub resample: Option<(f64, &'a Resampler)>,
}

impl Wanted<'_> {
    /// A part of the audio, as output 0.
    pub fn read(&self, sound: Sound<'_>, span: Span, allocate: &Allocate<'_>) -> Result<Sample> {
        match self.dtype {
            DType::I16 => self.read_as::<i16>(sound, span, allocate),
            DType::I32 => self.read_as::<i32>(sound, span, allocate),
            _ => self.read_as::<f32>(sound, span, allocate),
        }
    }

    fn read_as<T: Pcm + Element>(
        &self,
        sound: Sound<'_>,
        span: Span,
        allocate: &Allocate<'_>,
    ) -> Result<Sample> {
        let (rate, channels, limit) = (f64::from(sound.rate()), sound.channels(), sound.limit());
        let resample = self.resample.filter(|(to, _)| *to != rate);
        let mixed = self.downmix && channels > 1;
        let kept = if self.downmix { 1 } else { channels };
        let output = |samples: usize| {
            let shape = [samples / kept, kept];
            let shape = if self.downmix { &shape[..1] } else { &shape[..] };
            allocate(0, Desc::new(self.dtype, shape))
        };
        if resample.is_some() || mixed {
            let mut samples = sound.read::<f32>(span)?;
            if mixed {
                samples = downmix(&samples, channels)?;
            }
            if let Some((to, resampler)) = resample {
                let frames = Resampler::frames(samples.len() / kept, rate, to);
                limit.check(frames.saturating_mul(kept))?;
                samples = resampler.run(&samples, kept, rate, to)?;
            }
            let mut buffer = output(samples.len())?;
            let converted = buffer.elements::<T>().iter_mut().zip(samples);
            converted.for_each(|(to, sample)| *to = T::from_unit(sample));
            return buffer.into_sample();
        }
        if let Some(count) = sound.samples_in(span) {
            limit.check(count)?;
            let mut buffer = output(count)?;
            sound.read_into(span, buffer.elements::<T>())?;
            return buffer.into_sample();
        }
        let samples = sound.read::<T>(span)?;
        let mut buffer = output(samples.len())?;
        buffer.elements::<T>().copy_from_slice(&samples);
        buffer.into_sample()
    }
}

pub struct Decode;

args! {
    pub struct DecodeArgs {
        downmix: bool,
        dtype: DType,
        duration: Option<f64>,
        quality: f64,
        sample_rate: f64,
        start: f64,
    }
}

impl DirectKernel for Decode {
    type Args = DecodeArgs;
    const TRAITS: Traits = Traits { cheap: false, ..Traits::DEFAULT };

    fn run(args: &DecodeArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let DecodeArgs { downmix, dtype, duration, sample_rate, start, .. } = *args;
        for (name, seconds) in [("start", Some(start)), ("duration", duration)] {
            if let Some(given) = seconds.filter(|seconds| seconds.is_nan() || *seconds < 0.0) {
                return Err(argument(name, Argument::AtLeast { least: 0.0, given }));
            }
        }
        if !sample_rate.is_finite() {
            return Err(argument("sample_rate", Argument::NotFinite { given: sample_rate }));
        }
        let desc = &inputs[0].desc;
        if desc.ndim() != 1 || desc.dtype.size() != 1 {
            let (shape, dtype) = (desc.shape.to_vec(), desc.dtype.name());
            return Err(unfit(0, problem::Sounds::NotBytes { shape, dtype }));
        }
        let bytes = protected(&inputs[0])?;
        let stream = Box::new(Cursor::new(bytes.elements_as_bytes()));
        let found = Sound::identify(stream).map_err(of_format(None))?;
        let format = found.format;
        let read = || {
            let sound = found.open()?;
            let rate = sound.rate();
            let span = Span::nearest(start, duration, rate);
            sound.check_complete(span)?;
            // Not made for nothing: it has a table to work out.
            let to = Some(sample_rate).filter(|&to| to > 0.0 && to != f64::from(rate));
            let resampler = to.map(|to| (to, Resampler::new(args.quality as f32)));
            let resample = resampler.as_ref().map(|(to, resampler)| (*to, resampler));
            let wanted = Wanted { downmix, dtype, resample };
            Ok((wanted.read(sound, span, allocate)?, to.unwrap_or(f64::from(rate))))
        };
        let (samples, rate) = read().map_err(of_format(Some(format)))?;
        let mut buffer = allocate(1, Desc::new(DType::F32, &[]))?;
        buffer.elements::<f32>()[0] = rate as f32;
        Ok(smallvec![samples, buffer.into_sample()?])
    }
}

/// Adds the format to what is wrong with a file.
fn of_format(format: Option<Format>) -> impl FnOnce(Cause) -> Cause {
    move |cause| match cause {
        Cause::Undecodable { kind, problem } => {
            let format = format.map(Format::name);
            Cause::Undecodable { kind, problem: AudioFault::This { format, problem }.into() }
        }
        other => other,
    }
}
