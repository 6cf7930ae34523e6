//! Building blocks for kernels: vector instructions, random numbers, portable functions, precision.

pub mod floats;
pub mod isa;
pub mod philox;
pub mod portable;
pub mod precision;
