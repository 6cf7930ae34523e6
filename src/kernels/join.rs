//! Several arrays into one, and constants into arrays.

use super::Entry;

pub const TABLE: &[Entry] = &[];
