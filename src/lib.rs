//! The native core of penstock. `value` is what flows, `engine` runs it, `kernels` is the work,
//! `py` is the border to Python.

pub mod engine;
pub mod kernels;
#[cfg(feature = "python")]
mod py;
pub mod value;
