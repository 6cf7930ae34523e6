//! Reductions along axes, and the normalisation that is made of them.

use super::Entry;

pub const TABLE: &[Entry] = &[];
