//! Cloud storage for penstock: S3, Google Cloud Storage, Azure and HTTP, behind blocking functions.
//!
//! The core loads this module when a program first names such a URL, and calls it through a table
//! of C functions (`abi.rs`) from its own I/O threads. Everything asynchronous stays in here.

#[allow(dead_code, reason = "the other side is in the core")]
#[path = "../../src/readers/remote/abi.rs"]
mod abi;
mod calls;
mod cloud;
mod failure;
mod patience;
mod runtime;
mod store;
mod web;

use std::ffi::c_void;
use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The module that penstock loads; it has no other names for users.
#[pymodule(gil_used = false)]
mod penstock_remote {
    use super::*;

    /// The functions of this module, as a capsule.
    #[pyfunction]
    fn table(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        let table = NonNull::from(&calls::TABLE).cast::<c_void>();
        // SAFETY: a static, which is never freed; the core reads it as the same type.
        unsafe { PyCapsule::new_with_pointer(py, table, abi::CAPSULE) }
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // Several crates may have asked for a provider; it is all the same to us if one was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(())
    }
}
