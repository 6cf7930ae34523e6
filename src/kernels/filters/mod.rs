//! Neighbourhoods: every number becomes a weighted sum of those around it.

mod axes;
mod correlate;
mod gaussian;
mod laplacian;
mod rows;

use super::Entry;

pub const TABLE: &[Entry] = &[
    Entry::one::<correlate::Filter>("filter"),
    Entry::one::<gaussian::GaussianBlur>("gaussian_blur"),
    Entry::one::<laplacian::Laplacian>("laplacian"),
];
