//! The operator around [`Resampler`].

use super::problem::Audio;
use super::recent::Recent;
use super::resample::{BLOCK, Resampler};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample, Shape, extent, with_element, zeroed};

pub struct AudioResample;

args! {
    pub struct ResampleArgs {
        dtype: DType,
        in_rate: Option<f64>,
        out_length: Option<i64>,
        out_rate: Option<f64>,
        quality: f64,
        scale: Option<f64>,
    }
}

pub struct Plan {
    quality: f32,
    frames: usize,
    channels: usize,
    count: usize,
    /// The distance between results, in samples.
    step: f64,
}

impl Kernel for AudioResample {
    type Args = ResampleArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, ..Traits::DEFAULT };

    fn plan(args: ResampleArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let input = inputs[0];
        if !(0.0..=100.0).contains(&args.quality) {
            let (low, high, given) = (0.0, 100.0, args.quality);
            return Err(argument("quality", Argument::Between { low, high, given }));
        }
        let frames = input.shape[0];
        let (name, count, step) = args.extent(frames)?;
        let mut shape: Shape = input.shape.clone();
        shape[0] = count;
        if extent(&shape).is_none() {
            return Err(argument(name, Argument::TooLarge));
        }
        let channels = input.shape[1..].iter().product();
        let desc = Desc { dtype: args.dtype, shape, ..input.clone() };
        let quality = args.quality as f32;
        Ok((Plan { quality, frames, channels, count, step }, one(desc)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        thread_local! {
            static FILTERS: Recent<u32, Resampler> = const { Recent::new() };
        }
        let filter = FILTERS.with(|filters| {
            filters.get(plan.quality.to_bits(), BLOCK, |&quality| {
                Ok(Resampler::new(f32::from_bits(quality)))
            })
        })?;
        let out = &mut outputs[0];
        with_element!(out.desc.dtype, |T| plan.write::<T>(&filter, &inputs[0], out.elements()))
    }
}

impl ResampleArgs {
    /// The argument that decides the number of results, that number, and their distance.
    fn extent(&self, frames: usize) -> Result<(&'static str, usize, f64)> {
        if let Some(length) = self.out_length {
            let Ok(count) = usize::try_from(length) else {
                return Err(argument("out_length", Argument::Negative { given: length as f64 }));
            };
            if frames == 0 && count > 0 {
                return Err(argument("out_length", Audio::NothingToStretch { length }));
            }
            return Ok(("out_length", count, frames as f64 / count.max(1) as f64));
        }
        // DALI's arguments are of single precision, which decides about lengths.
        let single = |given: Option<f64>| given.map(|x| f64::from(x as f32));
        let (name, from, to) = match (single(self.scale), single(self.in_rate), self.out_rate) {
            (Some(scale), ..) => ("scale", 1.0, scale),
            (None, Some(from), to) => ("out_rate", from, single(to).unwrap_or(f64::NAN)),
            (None, None, _) => ("in_rate", f64::NAN, 1.0),
        };
        if !(from > 0.0 && from.is_finite()) {
            return Err(argument("in_rate", Argument::NotPositive { given: from }));
        }
        if !(to >= 0.0 && to.is_finite()) {
            return Err(argument(name, Audio::Ratio { given: to }));
        }
        let count = Resampler::frames(frames, from, to);
        Ok((name, count, if to > 0.0 { from / to } else { 1.0 }))
    }
}

impl Plan {
    fn write<T: FromUnit>(&self, filter: &Resampler, input: &Sample, out: &mut [T]) -> Result<()> {
        let channels = self.channels;
        let mut padded = filter.padded(self.frames)?;
        let units = match channels {
            0 => return Ok(()),
            1 => {
                read_units(input, padded.samples());
                Vec::new()
            }
            _ => {
                let mut units = zeroed(self.frames * channels)?;
                read_units(input, &mut units);
                units
            }
        };
        let mut block = [0.0; BLOCK];
        for channel in 0..channels {
            if channels > 1 {
                let source = units.iter().skip(channel).step_by(channels);
                padded.samples().iter_mut().zip(source).for_each(|(to, from)| *to = *from);
            }
            for first in (0..self.count).step_by(BLOCK) {
                let block = &mut block[..BLOCK.min(self.count - first)];
                filter.resample(&padded, first, self.step, block);
                let row = &mut out[first * channels + channel..];
                if channels == 1 {
                    vectorized!({
                        row.iter_mut().zip(block).for_each(|(to, from)| *to = T::from_unit(*from));
                    });
                } else {
                    let row = row.iter_mut().step_by(channels);
                    row.zip(block).for_each(|(to, from)| *to = T::from_unit(*from));
                }
            }
        }
        Ok(())
    }
}

/// Reads all elements of a sample; those of integers are mapped to [-1, 1].
fn read_units(sample: &Sample, units: &mut [f32]) {
    f32::convert_row(sample, 0, units);
    let (scale, shift) = match sample.desc.dtype.storage() {
        DType::I8 => (i8::MAX as f32, 0.0),
        DType::I16 => (i16::MAX as f32, 0.0),
        DType::I32 => (i32::MAX as f32, 0.0),
        DType::I64 => (i64::MAX as f32, 0.0),
        DType::U8 => (u8::MAX as f32 / 2.0, 1.0),
        DType::U16 => (u16::MAX as f32 / 2.0, 1.0),
        DType::U32 => (u32::MAX as f32 / 2.0, 1.0),
        DType::U64 => (u64::MAX as f32 / 2.0, 1.0),
        _ => return,
    };
    vectorized!(copying scale, shift; units.iter_mut().for_each(|x| *x = *x / scale - shift));
}

/// Makes elements of numbers between -1 and 1: the whole range of integers.
trait FromUnit: Number {
    fn from_unit(x: f32) -> Self;
}

macro_rules! from_unit {
    ($($type:ty: |$x:ident| $body:expr;)*) => {
        $(
            impl FromUnit for $type {
                #[inline(always)]
                fn from_unit($x: f32) -> $type {
                    $body
                }
            }
        )*
    };
}
from_unit! {
    crate::value::Bool: |x| x.convert();
    i8: |x| (x * i8::MAX as f32).convert();
    i16: |x| (x * i16::MAX as f32).convert();
    i32: |x| (x * i32::MAX as f32).convert();
    i64: |x| (x * i64::MAX as f32).convert();
    u8: |x| ((x + 1.0) * (u8::MAX as f32 / 2.0)).convert();
    u16: |x| ((x + 1.0) * (u16::MAX as f32 / 2.0)).convert();
    u32: |x| ((x + 1.0) * (u32::MAX as f32 / 2.0)).convert();
    u64: |x| ((x + 1.0) * (u64::MAX as f32 / 2.0)).convert();
    half::f16: |x| x.convert();
    half::bf16: |x| x.convert();
    f32: |x| x;
    f64: |x| x.convert();
}
