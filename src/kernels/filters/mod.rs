//! Neighbourhoods: every number becomes a weighted sum of those around it.

mod axes;
mod correlate;
mod gaussian;
mod laplacian;
pub(super) mod rows;

pub use correlate::correlate_with;

use super::Entry;

pub const TABLE: &[Entry] = &[
    Entry::new::<correlate::Filter>("filter"),
    Entry::new::<gaussian::GaussianBlur>("gaussian_blur"),
    Entry::new::<laplacian::Laplacian>("laplacian"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// What is wrong with a call of this family.
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
