//! Kernels that change how elements are arranged or described, not what they are.

use super::Entry;

pub const TABLE: &[Entry] = &[];
