//! Problems with arguments and inputs that several families share.

use crate::value::{Cause, Problem, problems};

problems! {
    /// Problems of arguments.
    pub enum Argument {
        /// It is missing, and `wanted` is required.
        Missing { wanted: &'static str },
        /// It is not what was `wanted`.
        Kind { wanted: &'static str, given: String },
        NotScalar { shape: Vec<usize> },
        SameForAll,
        NotRandom,
        /// An RNG by sample, where one number for the whole batch is drawn.
        BySample,
        NotData,
        /// Not enough memory for that many numbers.
        Memory,
        LongLayout { most: usize, given: String },
        OneOf { choices: &'static str, given: String },
        Together { other: &'static str },
        NeedsOther { other: &'static str },
        Between { low: f64, high: f64, given: f64 },
        AtLeast { least: f64, given: f64 },
        Negative { given: f64 },
        AllNegative { given: Vec<i64> },
        NotPositive { given: f64 },
        NotFinite { given: f64 },
        /// There must be one number, or one for each of `wanted` things.
        Count { wanted: usize, given: usize },
        Numbers { wanted: usize, given: Vec<f64> },
        ChannelCount { channels: usize, given: usize },
        NoChannels { given: usize, layout: String },
        NotNumbers { dtype: &'static str },
        /// More elements than an array can have.
        TooLarge,
        TooLong { extent: f64, longest: f64 },
        AxisOutside { axis: i64, ndim: usize },
        Entries { given: usize, first: i64 },
    }
}

problems! {
    /// Problems of inputs.
    pub enum Input {
        NotNumbers { dtype: &'static str },
        Type { wanted: &'static str, dtype: &'static str },
        Channels { wanted: &'static str, given: usize },
    }
}

pub fn argument(name: &'static str, problem: impl Into<Problem>) -> Cause {
    Cause::Argument { name, problem: problem.into() }
}

pub fn unfit(index: usize, problem: impl Into<Problem>) -> Cause {
    Cause::Input { index, problem: problem.into() }
}
