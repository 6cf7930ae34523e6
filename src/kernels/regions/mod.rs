//! Windows of arrays: `slice` and `pad`, and what other families use to cut windows out.

mod axes;
mod border;
mod fill;
mod pad;
mod slice;
mod window;

use std::sync::Arc;

pub use self::axes::{LONGEST, axes_of, too_large};
pub use self::border::{Border, Policy};
pub use self::fill::{Fill, fill_bytes, repeat};
use self::pad::{Largest, Pad};
use self::slice::Slice;
pub use self::slice::SliceArgs;
pub use self::window::{Cut, Region, cut};
use super::{Entry, Family, Work};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Regions::KINDS] };

const TABLE: &[Entry] = &[
    Entry::direct::<Slice>("slice"),
    Entry::new::<Pad>("pad"),
    Entry { name: "largest", args: &[], cpu: || Work::Batch(Arc::new(Largest)) },
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Regions {
            NoLayout,
            NoSuchAxis { letter: String, layout: String },
            RepeatedAxis { axis: usize },
            Outside { start: i64, end: i64, axis: usize, shape: Vec<usize> },
            /// The same, for operators whose `out_of_bounds_policy` could allow it.
            OutsideOfPolicy { start: i64, end: i64, axis: usize, shape: Vec<usize> },
            Types { anchor: &'static str, shape: &'static str },
            Positional { axes: usize, given: usize },
            NamedAndPositional,
            NoWindow,
            FarWindow { start: f64, end: f64 },
            EndsBeforeStart { start: i64, end: i64 },
            /// A problem of the positional anchor and shape.
            PositionalWindow { problem: crate::value::Problem },
            PaddedScalar,
            /// The border repeats the sample, which is empty.
            NothingToRepeat,
        }
    }
}
