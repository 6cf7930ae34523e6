//! What a kernel is, and how the engine runs one.

pub mod alike;
pub mod args;
pub mod frames;
pub mod kernel;
pub mod probe;
pub mod registry;
pub mod space;
