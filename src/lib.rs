//! The native core of penstock: `value` defines the data, `engine` schedules the work, `kernels`,
//! `codecs` and `readers` do it, and `py` is the interface to Python.

pub mod codecs;
pub mod engine;
pub mod kernels;
#[cfg(feature = "python")]
mod py;
pub mod readers;
pub mod value;
