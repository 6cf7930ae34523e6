//! Frames of a sequence.

use super::Entry;

pub const TABLE: &[Entry] = &[];
