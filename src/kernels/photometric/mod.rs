//! Invert, posterize, solarize, autocontrast and sharpness.
//!
//! Integers range from 0 to the maximum of their type, floats from 0 to 1.

pub mod bytes;
mod contrast;
mod sharpen;
mod tone;

use self::tone::Tone;
use super::{Entry, Family, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::numeric::isa::vectorized;
use crate::value::{Desc, Sample, with_element};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[] };

const TABLE: &[Entry] = &[
    Entry::new::<Invert>("invert"),
    Entry::new::<Posterize>("posterize"),
    Entry::new::<Solarize>("solarize"),
    Entry::new::<contrast::Autocontrast>("autocontrast"),
    Entry::new::<sharpen::Sharpness>("sharpness"),
];

/// A sample as images with interleaved channels: a CHW image is a stack of C single-channel images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stack {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Stack {
    pub fn of(desc: &Desc) -> Stack {
        let extent = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        let (height, width) = (extent(b'H'), extent(b'W'));
        let interleaved = desc.layout.letters().last() == Some(&b'C');
        let channels = if interleaved { extent(b'C') } else { 1 };
        Stack { height, width, channels }
    }

    /// Number of elements of an image.
    pub fn elements(&self) -> usize {
        self.height * self.width * self.channels
    }
}

/// Applies a point operation to every element.
fn each<T: Tone>(
    input: &Sample,
    out: &mut Output<'_>,
    change: impl Fn(T) -> T + Copy,
) -> Result<()> {
    let src = input.elements::<T>();
    out.write(|start, piece: &mut [T]| {
        let src = &src[start..start + piece.len()];
        vectorized!(copying change; {
            for (d, &s) in piece.iter_mut().zip(src) {
                *d = change(s);
            }
        });
        Ok(())
    })
}

pub struct Invert;

impl Kernel for Invert {
    type Args = ();
    type Plan = ();
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan((): (), inputs: &[&Desc]) -> Result<((), Outputs)> {
        Ok(((), one(inputs[0].clone())))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        with_element!(input.desc.dtype, |T| each::<T>(input, out, T::inverted))
    }
}

pub struct Posterize;

args! {
    pub struct PosterizeArgs { bits: i64 }
}

/// As in torchvision.
const MOST_BITS: i64 = 8;

impl Kernel for Posterize {
    type Args = PosterizeArgs;
    type Plan = u32;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: PosterizeArgs, inputs: &[&Desc]) -> Result<(u32, Outputs)> {
        if !(0..=MOST_BITS).contains(&args.bits) {
            let (low, high, given) = (0.0, MOST_BITS as f64, args.bits as f64);
            return Err(argument("bits", Argument::Between { low, high, given }));
        }
        Ok((args.bits as u32, one(inputs[0].clone())))
    }

    fn run(&bits: &u32, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        with_element!(input.desc.dtype, |T| {
            let kept = T::levels(bits);
            each::<T>(input, out, move |x| x.posterized(kept))
        })
    }
}

pub struct Solarize;

args! {
    pub struct SolarizeArgs { threshold: Option<f64> }
}

impl Kernel for Solarize {
    type Args = SolarizeArgs;
    type Plan = Option<f64>;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: SolarizeArgs, inputs: &[&Desc]) -> Result<(Option<f64>, Outputs)> {
        if let Some(given) = args.threshold.filter(|threshold| threshold.is_nan()) {
            return Err(argument("threshold", Argument::NotFinite { given }));
        }
        Ok((args.threshold, one(inputs[0].clone())))
    }

    fn run(threshold: &Option<f64>, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        with_element!(input.desc.dtype, |T| match T::at_least(threshold.unwrap_or(T::MIDDLE)) {
            Some(from) =>
                each::<T>(input, out, move |x| if x.is_below(from) { x } else { x.inverted() }),
            None => each::<T>(input, out, |x| x),
        })
    }
}
