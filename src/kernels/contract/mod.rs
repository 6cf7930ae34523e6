//! The interface between kernels and the engine.

pub mod adapters;
pub mod args;
pub mod frames;
pub mod kernel;
pub mod output;
#[cfg(any(test, feature = "probes"))]
pub mod probe;
pub mod problems;
pub mod registry;
pub mod stacked_runs;
pub mod uniform;
