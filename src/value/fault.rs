//! What went wrong, as data. The Python side puts it into words.

use std::any::Any;

use super::problem::Problem;
use super::sample::Origin;

/// Why a kernel could not do its work.
pub enum Cause {
    /// An argument's value can't be used: its name and what is wrong with it.
    Argument { name: &'static str, problem: Problem },
    /// An input can't be used: its position and what is wrong with it.
    Input { index: usize, problem: Problem },
    /// The numbers of an input are such that there is no result.
    Value { problem: Problem },
    /// Bytes that should be an image, or the like, are not; what is wrong with them.
    Undecodable { kind: Damage, problem: Problem },
    /// An index lies outside of its axis.
    Index { axis: usize, index: i64, extent: usize },
    /// Samples that had to be alike were not.
    Ragged { sample: usize, shape: Vec<usize>, first: Vec<usize> },
    /// A file could not be read; the source says which.
    File { problem: Problem },
    /// A file could not be read, and the machine is at fault: no descriptors, a server that is away.
    System { problem: Problem },
    /// The memory for a result could not be had.
    Memory { bytes: usize },
    /// The process was forked before the work was done; only the parent's engine has it.
    Forked,
    /// The engine was shut down before the work was done.
    Stopped,
    /// There was no thread to do the work, nor could one be started.
    Threads,
    /// A user's Python function raised; the exception itself, opaque to the engine.
    Python(Box<dyn Any + Send + Sync>),
    /// A defect of ours: a panic, or a kernel that broke its promise.
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
    /// They are of no known format.
    Unknown,
    /// They claim more than the limit allows.
    Large,
    /// They end too early.
    Truncated,
    /// They are not what their format allows.
    Broken,
}

/// A cause with the place it happened at. Dependants share the root's fault.
#[derive(Debug)]
pub struct Fault {
    pub cause: Cause,
    pub operator: &'static str,
    /// Which sample of the batch; `None` when the whole batch is concerned.
    pub sample: Option<usize>,
    /// Where the sample came from, usually a file name.
    pub source: Option<Origin>,
    /// The user's line, as a number that the Python side handed out.
    pub site: u32,
}
