//! The native core of penstock. `value` is what flows, `engine` runs it, `kernels`, `codecs` and
//! `readers` are the work, `py` is the border to Python.

pub mod codecs;
pub mod engine;
pub mod kernels;
#[cfg(feature = "python")]
mod py;
pub mod readers;
pub mod value;
