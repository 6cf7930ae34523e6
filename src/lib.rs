//! The native core of penstock. `value` is what flows, `engine` runs it, `kernels` and `codecs` are
//! the work, `py` is the border to Python.

pub mod codecs;
pub mod engine;
pub mod kernels;
#[cfg(feature = "python")]
mod py;
pub mod value;
