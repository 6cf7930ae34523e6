//! Augmentation of sounds and of their features.
//!
//! A sound has an axis of time, and one of channels after it if there are several.

mod delta;
mod fade;
mod fourier;
mod masks;
mod noise;
mod sinc;
mod stretch;
mod vocoder;
mod white;

use std::borrow::Cow;
use std::f64::consts::LN_10;

use half::{bf16, f16};

use self::fourier::Float;
use super::{Entry, Family, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::argument;
use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::numeric::portable::exp;
use crate::value::{Bool, Desc, Sample, with_element, zeroed};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::AudioEffects::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Gain>("gain"),
    Entry::new::<delta::Delta>("delta"),
    Entry::new::<fade::Fade>("fade"),
    Entry::new::<masks::Mask<b't'>>("time_mask"),
    Entry::new::<masks::Mask<b'f'>>("frequency_mask"),
    Entry::new::<noise::AddNoise>("add_noise"),
    Entry::new::<stretch::TimeStretch>("time_stretch"),
    Entry::new::<stretch::PitchShift>("pitch_shift"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum AudioEffects {
            Loud { most: f64, given: f64 },
            MaskCount { most: usize, given: i64 },
            MaskStarts { starts: usize, widths: usize },
            NoiseChannels { channels: usize, given: usize },
            EmptyNoise,
            Offset { frames: usize, given: i64 },
            WindowStep { most: usize, given: i64 },
            Octaves { most: f64, given: f64 },
            WindowLength { given: i64 },
            FewFrames { frames: usize, window: usize },
        }
    }
}

use problem::AudioEffects;

/// An element type of sounds, and the float that it is computed in: single precision is enough for
/// types that have no more.
trait Sound: Number + Convert<Self::Float> + Convert<f64> {
    type Float: Float + Convert<Self>;
}

macro_rules! sounds {
    ($($float:ty: $($type:ty)*;)*) => {
        $($(impl Sound for $type { type Float = $float; })*)*
    };
}
sounds! {
    f32: Bool i8 i16 u8 u16 f16 bf16 f32;
    f64: i32 i64 u32 u64 f64;
}

/// The number of frames and of channels.
fn extents(desc: &Desc) -> (usize, usize) {
    let extent = |axis: usize| desc.shape.get(axis).copied().unwrap_or(1);
    (extent(0), extent(1))
}

/// The elements of a sample as floats, without a copy if they are.
fn floats<F: Float>(sample: &Sample) -> Result<Cow<'_, [F]>> {
    if sample.desc.dtype == F::DTYPE {
        return Ok(Cow::Borrowed(sample.elements::<F>()));
    }
    let mut made = zeroed(sample.desc.elements())?;
    F::convert_row(sample, 0, &mut made);
    Ok(Cow::Owned(made))
}

/// What amplitudes are multiplied with for a number of decibels.
fn amplitude(decibels: f64) -> f64 {
    exp(decibels * (LN_10 / 20.0))
}

/// Decibels that single precision can express.
const MOST_DECIBELS: f64 = 700.0;

struct Gain;

args! {
    struct GainArgs { gain_db: f64 }
}

impl Kernel for Gain {
    type Args = GainArgs;
    type Plan = f64;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, stacks: true, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: GainArgs, inputs: &[&Desc]) -> Result<(f64, Outputs)> {
        let given = args.gain_db;
        if given.is_nan() || given > MOST_DECIBELS {
            return Err(argument("gain_db", AudioEffects::Loud { most: MOST_DECIBELS, given }));
        }
        Ok((amplitude(given), one(inputs[0].clone())))
    }

    fn run(&ratio: &f64, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        with_element!(inputs[0].desc.dtype, |T| scale::<T>(&inputs[0], &mut outputs[0], ratio))
    }
}

fn scale<T: Sound>(input: &Sample, out: &mut Output<'_>, ratio: f64) -> Result<()> {
    let (src, ratio) = (input.elements::<T>(), T::Float::of(ratio));
    out.write(|start, piece: &mut [T]| {
        let src = &src[start..start + piece.len()];
        vectorized!(copying ratio; {
            for (d, &s) in piece.iter_mut().zip(src) {
                let s: T::Float = s.convert();
                *d = (s * ratio).convert();
            }
        });
        Ok(())
    })
}
