//! What operators do to samples. One file per family; each has its table of kernels.

mod alike;
mod args;
mod audio_resample;
mod beta;
mod blur;
mod cast;
mod color;
mod coordinates;
mod crop;
mod crop_mirror_normalize;
mod decode;
mod elementwise;
mod fill;
mod floats;
mod frames;
mod generic;
mod geometry;
mod isa;
mod join;
mod kernel;
mod lookup;
mod noise;
mod patches;
mod philox;
mod portable;
mod probe;
mod random;
mod random_window;
mod reduce;
pub(crate) mod regions;
mod registry;
mod resize;
mod sequence;
mod shape;
mod warp;

pub use alike::{Alike, Lie};
pub(crate) use args::args;
pub use args::{Arg, ArgReader, FromArg, FromArgs};
pub use audio_resample::Resampler;
pub use frames::Frames;
pub use kernel::{Allocate, BatchKernel, Entry, Kernel, ManyKernel, SampleKernel, Space, Work};
pub use philox::{Position, Stream, below};
pub use registry::{Operator, find, intern, names, operator, register};

pub type Result<T> = std::result::Result<T, crate::value::Cause>;
