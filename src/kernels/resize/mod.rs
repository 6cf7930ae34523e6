//! Resizing: a file for each operator (`image`, `tensor`, `crop_mirror`, `random_crop`), what they
//! share (`sizes`), and the work: which part of the input a result shows (`extent`), the weights of
//! its elements (`filter`), and computing them (`resample`: `stage` in floats, `bytes` in fixed
//! point, `nearest` by copying).

mod bytes;
mod crop_mirror;
mod extent;
mod filter;
mod image;
mod nearest;
mod random_crop;
mod resample;
mod sizes;
mod stage;
mod tensor;

use self::crop_mirror::ResizeCropMirror;
pub(crate) use self::extent::Map;
pub(crate) use self::filter::Filters;
use self::image::Resize;
use self::random_crop::RandomResizedCrop;
pub(crate) use self::resample::resample;
pub(crate) use self::sizes::{Sizes, filters};
use self::tensor::TensorResize;
use super::{Entry, Family};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Resize::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Resize>("resize"),
    Entry::new::<TensorResize>("tensor_resize"),
    Entry::new::<ResizeCropMirror>("resize_crop_mirror"),
    Entry::new::<RandomResizedCrop>("random_resized_crop"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Resize {
            FarRegion { given: f64 },
            Interpolation { given: i64 },
            Shape { shape: Vec<usize> },
            Sizes,
            NoAxes,
            SizesOrScales,
            NotAnImage,
        }
    }
}
