//! Memory of a sample, for others to look at without a copy.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::value::{Loan, Sample};

/// The buffer that a sample lies in, as bytes, and where in there.
#[pyclass(module = "penstock._core", frozen)]
pub struct Memory {
    sample: Sample,
    /// Others may write to it while this exists, if at all: what NumPy makes of it holds this.
    loan: Option<Loan>,
}

impl Memory {
    /// The memory of a sample, to be written to only if it was lent.
    pub fn new(sample: Sample, loan: Option<Loan>) -> Memory {
        Memory { sample, loan }
    }
}

#[pymethods]
impl Memory {
    /// Byte of the first element.
    #[getter]
    fn offset(&self) -> usize {
        self.sample.offset()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.sample.desc.shape.iter())
    }

    /// Bytes between elements; `None` when they lie together.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.sample.is_contiguous() {
            return Ok(None);
        }
        PyTuple::new(py, self.sample.strides().iter()).map(Some)
    }

    #[getter]
    fn address(&self) -> usize {
        self.sample.as_ptr() as usize
    }

    /// # Safety
    /// `view` is what the buffer protocol gives.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let Memory { sample, loan } = slf.get();
        let (buffer, writable) = (sample.buffer(), loan.is_some());
        if !writable && flags & ffi::PyBUF_WRITABLE != 0 {
            return Err(PyBufferError::new_err("the memory is read-only"));
        }
        // SAFETY: the view keeps `slf` and thereby the memory alive.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                buffer.as_ptr().cast::<c_void>(),
                buffer.len() as ffi::Py_ssize_t,
                c_int::from(!writable),
                flags,
            )
        };
        if filled == -1 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }
}
