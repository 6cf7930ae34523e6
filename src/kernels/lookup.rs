//! Tables: one-hot vectors and value look-up.

use super::Entry;

pub const TABLE: &[Entry] = &[];
