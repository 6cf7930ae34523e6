//! What went wrong, as data. Python turns it into a message.

use std::any::Any;

use super::problem::Problem;
use super::sample::Origin;

/// Why a kernel failed.
pub enum Cause {
    /// An argument has an invalid value: its name and what is wrong.
    Argument { name: &'static str, problem: Problem },
    /// An input is invalid: its position and what is wrong.
    Input { index: usize, problem: Problem },
    /// The values of an input have no result.
    Value { problem: Problem },
    /// Bytes that should be an image or the like can't be decoded.
    Undecodable { kind: Damage, problem: Problem },
    /// An index is out of bounds for its axis.
    Index { axis: usize, index: i64, extent: usize },
    /// Samples that must have the same shape don't.
    Ragged { sample: usize, shape: Vec<usize>, first: Vec<usize> },
    /// A file could not be read; the fault's source says which.
    File { problem: Problem },
    /// A file could not be read because of the machine: no descriptors left, a server that is down.
    System { problem: Problem },
    /// The memory for a result could not be allocated.
    Memory { bytes: usize },
    /// The process was forked before the work was done; only the parent can finish it.
    Forked,
    /// The engine was shut down before the work was done.
    Stopped,
    /// There was no thread to do the work, and none could be started.
    Threads,
    /// A user's Python function raised; the exception is opaque to the engine.
    Python(Box<dyn Any + Send + Sync>),
    /// A bug in penstock: a panic, or a kernel whose result differs from the definition.
    Internal(String),
}

impl std::fmt::Debug for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Argument { name, problem } => write!(f, "argument {name}: {problem:?}"),
            Cause::Input { index, problem } => write!(f, "input {index}: {problem:?}"),
            Cause::Value { problem } => write!(f, "value: {problem:?}"),
            Cause::Undecodable { problem, .. } => write!(f, "undecodable: {problem:?}"),
            Cause::Index { axis, index, extent } => {
                write!(f, "index {index} on axis {axis} of extent {extent}")
            }
            Cause::Ragged { sample, shape, first } => {
                write!(f, "sample {sample} is {shape:?}, sample 0 is {first:?}")
            }
            Cause::File { problem } => write!(f, "file: {problem:?}"),
            Cause::System { problem } => write!(f, "system: {problem:?}"),
            Cause::Memory { bytes } => write!(f, "no memory for {bytes} bytes"),
            Cause::Forked => write!(f, "forked"),
            Cause::Stopped => write!(f, "stopped"),
            Cause::Threads => write!(f, "no threads"),
            Cause::Python(_) => write!(f, "a Python function raised"),
            Cause::Internal(what) => write!(f, "internal: {what}"),
        }
    }
}

/// What is wrong with bytes that can't be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The format is unknown.
    Unknown,
    /// They claim a size beyond the limit.
    Large,
    /// They end too early.
    Truncated,
    /// They violate their format.
    Broken,
}

/// A cause and where it happened. Dependent values share the fault of the first failure.
#[derive(Debug)]
pub struct Fault {
    pub cause: Cause,
    pub operator: &'static str,
    /// Which sample of the batch; `None` when the whole batch failed.
    pub sample: Option<usize>,
    /// Where the sample came from, usually a file name.
    pub source: Option<Origin>,
    /// The location of the call, as a number that Python assigned.
    pub site: u32,
}
