//! Segmentation masks: random pixels, random objects and selection of polygons.

mod blobs;
mod mask_pixel;
mod object_bbox;
mod select_masks;

use super::{Entry, Family};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Segmentation::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<mask_pixel::RandomMaskPixel>("segmentation.random_mask_pixel"),
    Entry::new::<object_bbox::RandomObjectBbox>("segmentation.random_object_bbox"),
    Entry::direct::<select_masks::SelectMasks>("segmentation.select_masks"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of the segmentation operators.
        pub enum Segmentation {
            NoPixels { shape: Vec<usize> },
            NoAxes,
            LongAxis { shape: Vec<usize> },
            IsBackground { label: i64 },
            Weights { given: usize, classes: usize },
            Weight { given: f64 },
            Threshold { axes: usize, given: Vec<i64> },
            NotAList { shape: Vec<usize> },
            NotPolygons { shape: Vec<usize> },
            NotVertices { shape: Vec<usize> },
            RepeatedMask { id: i32 },
            UnknownMask { id: i32 },
            VertexRange { id: i32, start: i32, end: i32, vertices: usize },
        }
    }
}
