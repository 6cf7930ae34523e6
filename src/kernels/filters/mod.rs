//! Neighbourhoods: every number becomes a weighted sum of those around it.

mod axes;
mod correlate;
mod gaussian;
mod laplacian;
mod rows;

use super::Entry;

pub const TABLE: &[Entry] = &[
    Entry::new::<correlate::Filter>("filter"),
    Entry::new::<gaussian::GaussianBlur>("gaussian_blur"),
    Entry::new::<laplacian::Laplacian>("laplacian"),
];
