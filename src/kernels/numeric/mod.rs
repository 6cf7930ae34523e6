//! Building blocks for kernels: vector instructions, pixels of planes, random numbers, portable functions, precision.

pub mod draw;
pub mod floats;
pub mod interleave;
pub mod isa;
pub mod philox;
pub mod portable;
pub mod precision;
