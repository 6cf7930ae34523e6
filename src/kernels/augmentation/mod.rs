//! Augmentation: shear, translate, erasing, motion blur, elastic and perspective warps.

mod elastic;
mod erasing;
mod motion;
mod perspective;
pub mod sampler;

use smallvec::SmallVec;

use self::sampler::{Affine, Image, Pixel, Places, sample, shift_columns, shift_rows};
use super::photometric::Stack;
use super::{Entry, Family, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::warp::Interpolation;
use crate::value::{Desc, Sample, with_element};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Augmentation::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Sheared<false>>("shear_x"),
    Entry::new::<Sheared<true>>("shear_y"),
    Entry::new::<Translated<false>>("translate_x"),
    Entry::new::<Translated<true>>("translate_y"),
    Entry::new::<elastic::ElasticTransform>("elastic_transform"),
    Entry::new::<erasing::RandomErasing>("random_erasing"),
    Entry::new::<motion::MotionBlur>("motion_blur"),
    Entry::new::<perspective::RandomPerspective>("random_perspective"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of the augmentation operators.
        pub enum Augmentation {
            Range { low: f64, high: f64, given: Vec<f64> },
            KernelSize { largest: i64, given: i64 },
            LargeImage { largest: usize, height: usize, width: usize },
        }
    }
}

pub type Floats = SmallVec<[f64; 6]>;

/// Number of channels, in any layout.
pub fn channels_of(desc: &Desc) -> usize {
    desc.layout.find(b'C').map_or(1, |axis| desc.shape[axis])
}

/// Checks that there is one fill value, or one per channel.
pub fn check_fill(fill: &[f64], desc: &Desc) -> Result<()> {
    let (channels, given) = (channels_of(desc), fill.len());
    match given == 1 || given == channels {
        true => Ok(()),
        false => Err(argument("fill_value", Argument::ChannelCount { channels, given })),
    }
}

fn finite(name: &'static str, given: f64) -> Result<f64> {
    match given.is_finite() {
        true => Ok(given),
        false => Err(argument(name, Argument::NotFinite { given })),
    }
}

fn chance(name: &'static str, given: f64) -> Result<f64> {
    match (0.0..=1.0).contains(&given) {
        true => Ok(given),
        false => Err(argument(name, Argument::Between { low: 0.0, high: 1.0, given })),
    }
}

/// Calls `work` for each image of a sample, with the fill values of its channels. Planar samples
/// are passed one plane at a time.
fn images<T: Pixel>(
    input: &Sample,
    out: &mut Output<'_>,
    fill: &[f64],
    mut work: impl FnMut(Image<'_, T>, &[T], &mut [T]) -> Result<()>,
) -> Result<()> {
    let stack = Stack::of(&input.desc);
    let Stack { height, width, channels, .. } = stack;
    if input.desc.elements() == 0 {
        return Ok(());
    }
    let planes = channels_of(&input.desc);
    let fill: SmallVec<[T; 4]> =
        (0..planes).map(|channel| T::nearest_to(fill[channel % fill.len()])).collect();
    let src = input.elements::<T>().chunks_exact(stack.elements());
    let dst = out.elements::<T>().chunks_exact_mut(stack.elements());
    for (number, (pixels, dst)) in src.zip(dst).enumerate() {
        let first = number * channels % planes;
        work(Image { pixels, height, width, channels }, &fill[first..][..channels], dst)?;
    }
    Ok(())
}

/// Resamples all images of a sample with a coordinate map.
fn move_pixels(
    input: &Sample,
    out: &mut Output<'_>,
    places: &dyn Places,
    interpolation: Interpolation,
    fill: &[f64],
) -> Result<()> {
    with_element!(input.desc.dtype, |T| images::<T>(input, out, fill, |image, fill, dst| {
        sample(image, places, interpolation, fill, dst)
    }))
}

/// Shear along x, or along y if `DOWN`.
pub struct Sheared<const DOWN: bool>;

args! {
    pub struct ShearArgs { fill_value: Floats, interp_type: Interpolation, shear: f64 }
}

impl<const DOWN: bool> Kernel for Sheared<DOWN> {
    type Args = ShearArgs;
    type Plan = ShearArgs;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: ShearArgs, inputs: &[&Desc]) -> Result<(ShearArgs, Outputs)> {
        finite("shear", args.shear)?;
        check_fill(&args.fill_value, inputs[0])?;
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &ShearArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out, fill) = (&inputs[0], &mut outputs[0], &args.fill_value);
        let shear = args.shear;
        if args.interp_type == Interpolation::Linear {
            let places = match DOWN {
                false => Affine([[1.0, shear, 0.0], [0.0, 1.0, 0.0]]),
                true => Affine([[1.0, 0.0, 0.0], [shear, 1.0, 0.0]]),
            };
            return move_pixels(input, out, &places, args.interp_type, fill);
        }
        let shift = |at: usize| sheared_by(shear, at);
        with_element!(input.desc.dtype, |T| images::<T>(input, out, fill, |image, fill, dst| {
            match DOWN {
                false => shift_rows(image, shift, fill, dst),
                true => shift_columns(image, shift, fill, dst)?,
            }
            Ok(())
        }))
    }
}

/// The shift of a row or column, rounded to whole pixels.
pub fn sheared_by(shear: f64, at: usize) -> f64 {
    (0.5 + shear * (at as f64 + 0.5)).floor()
}

/// Translation along x, or along y if `DOWN`.
pub struct Translated<const DOWN: bool>;

args! {
    pub struct TranslateArgs { fill_value: Floats, interp_type: Interpolation, offset: f64 }
}

impl<const DOWN: bool> Kernel for Translated<DOWN> {
    type Args = TranslateArgs;
    type Plan = TranslateArgs;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: TranslateArgs, inputs: &[&Desc]) -> Result<(TranslateArgs, Outputs)> {
        finite("offset", args.offset)?;
        check_fill(&args.fill_value, inputs[0])?;
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &TranslateArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out, fill) = (&inputs[0], &mut outputs[0], &args.fill_value);
        let offset = args.offset;
        if args.interp_type == Interpolation::Linear && offset.fract() != 0.0 {
            let [x, y] = if DOWN { [0.0, -offset] } else { [-offset, 0.0] };
            let places = Affine([[1.0, 0.0, x], [0.0, 1.0, y]]);
            return move_pixels(input, out, &places, args.interp_type, fill);
        }
        let by = (0.5 - offset).floor();
        with_element!(input.desc.dtype, |T| images::<T>(input, out, fill, |image, fill, dst| {
            match DOWN {
                false => shift_rows(image, |_| by, fill, dst),
                true => shift_columns(image, |_| by, fill, dst)?,
            }
            Ok(())
        }))
    }
}
