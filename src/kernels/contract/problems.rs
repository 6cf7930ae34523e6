//! What is wrong with arguments and inputs, where several families say the same.

use crate::value::{Cause, Problem, problems};

problems! {
    /// What is wrong with an argument.
    pub enum Argument {
        /// There is none, and `wanted` is needed.
        Missing { wanted: &'static str },
        /// It is something else than `wanted`.
        Kind { wanted: &'static str, given: String },
        NotScalar { shape: Vec<usize> },
        SameForAll,
        NotRandom,
        NotData,
        /// There is no memory for so many numbers.
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
        /// One number, or one for each of so many things.
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
    /// What is wrong with an input.
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
