//! The interface to Python: create a value, submit a node, wait for a value, export a buffer.

mod array_fault;
mod block_exit;
mod bridge;
mod call_paths;
mod dlpack;
mod export;
mod fault;
mod import;
mod numbers;
mod pool;
mod profile;
mod readers;
mod remote;
mod rng;
mod run_ahead;
mod submit;
mod value;
mod video;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    use pyo3::panic::PanicException;
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::block_exit::BlockExit;
    #[pymodule_export]
    use super::bridge::call;
    #[pymodule_export]
    use super::call_paths::{forget_paths, known_path, remember_path};
    #[pymodule_export]
    use super::dlpack::from_dlpack;
    #[pymodule_export]
    use super::export::Memory;
    #[pymodule_export]
    use super::fault::{PyFault, problem_kinds};
    #[pymodule_export]
    use super::import::{empty, from_buffer, gather, scalar, unpack};
    #[pymodule_export]
    use super::numbers::{integers, reals};
    #[pymodule_export]
    use super::pool::{PyPool, fork_parent, fork_prepare, shut_down};
    #[pymodule_export]
    use super::profile::{Notes, profile_clock, profile_peek, profile_start, profile_stop};
    #[pymodule_export]
    use super::readers::{PySource, open_rows, open_source, permute, shuffle};
    #[pymodule_export]
    use super::rng::{PyDraw, PyPhilox, PySampleStreams, given_together};
    #[pymodule_export]
    use super::run_ahead::{PyIteration, PyLoop, run_ahead_stats};
    #[cfg(feature = "probes")]
    #[pymodule_export]
    use super::submit::stacked_runs;
    #[pymodule_export]
    use super::submit::{kernel_arguments, kernel_traits, kernels, register, submit};
    #[pymodule_export]
    use super::value::PyValue;
    #[pymodule_export]
    use super::video::{load_ffmpeg, video_info};

    /// The class of panics, which Python turns into its own exception: PyO3 raises a
    /// `BaseException`, which `except Exception` doesn't catch.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::remote::set_default();
        module.add("PanicException", module.py().get_type::<PanicException>())
    }
}
