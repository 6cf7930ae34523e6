//! Filters: weighted sums over neighbourhoods.

mod axes;
mod correlate;
mod gaussian;
mod laplacian;
mod rows;

use super::{Entry, Family};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: problem::Filters::KINDS };

const TABLE: &[Entry] = &[
    Entry::new::<correlate::Filter>("filter"),
    Entry::new::<gaussian::GaussianBlur>("gaussian_blur"),
    Entry::new::<laplacian::Laplacian>("laplacian"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Filters {
            NoSpatialAxis,
            NotOdd { least: i64, largest: i64, given: i64 },
            WindowSize { given: i64 },
            NoWindow,
            LargeWindow { largest: usize },
            Axes { given: usize, wanted: usize },
            Empty { shape: Vec<usize> },
            Larger { size: usize, extent: usize, axis: usize },
            Anchor { given: i64, size: usize },
            TooLarge { size: usize, extent: usize },
        }
    }
}
