//! Users' functions as nodes: the only place where workers run Python.

use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::fault::Raised;
use super::pool::{PyPool, park_forever};
use super::submit::Invocation;
use super::value::PyValue;
use crate::engine::{CalledOff, Meta, Value};
use crate::kernels::{Arg, BatchKernel, Operator, OutputBuffer, Result, Samples, Work, intern};
use crate::value::{Cause, Desc, Device, Layout, Sample};

struct Function {
    function: Py<PyAny>,
    outputs: usize,
    samples: usize,
    batch: bool,
}

impl BatchKernel for Function {
    fn run(
        &self,
        _: &[Arg],
        inputs: &[&[Sample]],
        _: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        Python::try_attach(|py| {
            self.call(py, inputs).map_err(|error| Cause::Python(Box::new(Raised(error))))
        })
        // The interpreter is shutting down.
        .unwrap_or(Err(Cause::Stopped))
    }

    fn is_cheap(&self) -> bool {
        false
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

impl Function {
    fn call(&self, py: Python<'_>, inputs: &[&[Sample]]) -> PyResult<Samples> {
        let _called_off = CalledOff::new(inputs);
        let values = inputs.iter().map(|row| self.value(row));
        let results = call_object(self.function.bind(py), &PyTuple::new(py, values)?)?;
        let results = results.cast::<PyTuple>()?;
        let mut samples = SmallVec::new();
        for result in results.iter() {
            let value = result.cast::<PyValue>()?.get();
            for index in 0..value.handle.len() {
                samples.push(value.sample(py, index)?);
            }
        }
        let expected = self.outputs * self.samples;
        if samples.len() != expected {
            let text = format!("the function returned {} samples, not {expected}", samples.len());
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        }
        Ok(samples)
    }

    fn value(&self, row: &[Sample]) -> PyValue {
        let first = row.first();
        let meta = Meta {
            dtype: first.map(|sample| sample.desc.dtype),
            ndim: first.map(|sample| sample.desc.ndim()),
            layout: first.map(|sample| sample.desc.layout).unwrap_or_default(),
            device: Device::Cpu,
            uniform: false,
        };
        PyValue::new(Value::ready(meta, row.to_vec()), self.batch)
    }
}

/// Calls a function during which the interpreter may shut down.
fn call_object<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    unsafe extern "C-unwind" {
        fn PyObject_CallObject(
            callable: *mut ffi::PyObject,
            args: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject;
    }
    /// Dropped only if the thread is being unwound, which means that the interpreter is terminating
    /// it.
    struct Caught;
    impl Drop for Caught {
        fn drop(&mut self) {
            park_forever();
        }
    }
    let caught = Caught;
    // SAFETY: both are live objects, and the GIL is held.
    let result = unsafe { PyObject_CallObject(function.as_ptr(), args.as_ptr()) };
    std::mem::forget(caught);
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

/// Runs `function` on a worker when its inputs are ready. It is called with values and returns a
/// tuple of values, one for each of `outputs`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn call(
    py: Python<'_>,
    name: &str,
    function: Py<PyAny>,
    inputs: Vec<PyRef<'_, PyValue>>,
    samples: Option<usize>,
    outputs: Vec<(Option<u8>, Option<usize>, Option<String>)>,
    site: u32,
    pool: &PyPool,
    deferred: bool,
) -> PyResult<Vec<PyValue>> {
    let function = Function {
        function,
        outputs: outputs.len(),
        samples: samples.unwrap_or(1),
        batch: samples.is_some(),
    };
    let operator = Operator { name: intern(name), work: Work::Batch(Arc::new(function)) };
    let invocation = Invocation {
        operator,
        args: SmallVec::new(),
        samples,
        layout: Layout::default(),
        device: -1,
        site,
        data_inputs: inputs.len(),
    };
    invocation.submit(py, &inputs, outputs, pool, deferred, None)
}
