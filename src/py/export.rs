//! Exports the memory of a sample without copying.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::array_fault::ArrayFault;
use super::fault::error;
use crate::value::{Loan, Sample};

/// The buffer that a sample is in, as bytes, and the sample's offset, shape and strides.
#[pyclass(module = "penstock._core", frozen)]
pub struct Memory {
    sample: Sample,
    /// Allows writing. NumPy arrays made from this object keep it, and with it the loan, alive.
    loan: Option<Loan>,
}

impl Memory {
    /// The memory of a sample; writable if it was lent.
    pub fn new(sample: Sample, loan: Option<Loan>) -> Memory {
        Memory { sample, loan }
    }
}

#[pymethods]
impl Memory {
    /// Offset of the first element, in bytes.
    #[getter]
    fn offset(&self) -> usize {
        self.sample.offset()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.sample.desc.shape.iter())
    }

    /// Strides in bytes; `None` if contiguous.
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
    /// `view` comes from the buffer protocol.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let Memory { sample, loan } = slf.get();
        let (buffer, writable) = (sample.buffer(), loan.is_some());
        if !writable && flags & ffi::PyBUF_WRITABLE != 0 {
            return Err(error::<PyBufferError>(ArrayFault::ReadOnly));
        }
        // SAFETY: the view keeps `slf` alive, and thereby the memory.
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
