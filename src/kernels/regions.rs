//! Parts of arrays, and what lies around them.

use super::Entry;

pub const TABLE: &[Entry] = &[];
