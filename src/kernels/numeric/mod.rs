//! What kernels compute with: vector instructions, random words, portable functions, precision.

pub mod floats;
pub mod isa;
pub mod philox;
pub mod portable;
pub mod precision;
