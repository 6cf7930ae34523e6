//! What operators do to samples. One file per family; each has its table of kernels.

mod args;
mod cast;
mod coordinates;
mod elementwise;
mod fill;
mod generic;
mod geometry;
mod isa;
mod join;
mod kernel;
mod lookup;
mod philox;
mod portable;
mod probe;
mod random;
mod reduce;
mod regions;
mod registry;
mod sequence;
mod shape;

pub(crate) use args::args;
pub use args::{Arg, ArgReader, FromArg, FromArgs};
pub use kernel::{Allocate, BatchKernel, Entry, Kernel, ManyKernel, SampleKernel, Space, Work};
pub use philox::{Position, Stream, below};
pub use registry::{Operator, find, intern, names, operator, register};

pub type Result<T> = std::result::Result<T, crate::value::Cause>;
