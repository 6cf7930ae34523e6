//! Points and the transforms that move them.

use super::Entry;

pub const TABLE: &[Entry] = &[];
