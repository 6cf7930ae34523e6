//! Faults, handed to Python as data.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::value::{Cause, Damage, Fault, Origin};

#[pyclass(name = "Fault", module = "penstock._core", frozen)]
pub struct PyFault(pub Arc<Fault>);

/// An exception that a user's function raised, on its way through the engine.
pub struct Raised(pub PyErr);

#[pymethods]
impl PyFault {
    /// The kind of fault, and what there is to say about it.
    #[getter]
    fn cause<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match &self.0.cause {
            Cause::Argument { name, problem } => ("argument", name, problem).into_pyobject(py),
            Cause::Input { index, problem } => ("input", index, problem).into_pyobject(py),
            Cause::Value { problem } => ("value", problem).into_pyobject(py),
            Cause::Undecodable { kind, problem } => {
                let kind = match kind {
                    Damage::Unknown => "unknown",
                    Damage::Large => "large",
                    Damage::Truncated => "truncated",
                    Damage::Broken => "broken",
                };
                ("undecodable", kind, problem).into_pyobject(py)
            }
            Cause::Index { axis, index, extent } => {
                ("index", axis, index, extent).into_pyobject(py)
            }
            Cause::Ragged { sample, shape, first } => {
                let tuple = |shape: &[usize]| PyTuple::new(py, shape);
                ("ragged", sample, tuple(shape)?, tuple(first)?).into_pyobject(py)
            }
            Cause::File { problem } => ("file", problem).into_pyobject(py),
            Cause::System { problem } => ("system", problem).into_pyobject(py),
            Cause::Memory { bytes } => ("memory", bytes).into_pyobject(py),
            Cause::Forked => ("forked",).into_pyobject(py),
            Cause::Stopped => ("stopped",).into_pyobject(py),
            Cause::Threads => ("threads",).into_pyobject(py),
            Cause::Python(raised) => match raised.downcast_ref::<Raised>() {
                // Made anew each time, with the traceback of the function and of no reader.
                Some(Raised(error)) => {
                    ("python", error.clone_ref(py).into_value(py)).into_pyobject(py)
                }
                None => ("internal", "a foreign exception").into_pyobject(py),
            },
            Cause::Internal(text) => ("internal", text).into_pyobject(py),
        }
    }

    #[getter]
    fn operator(&self) -> &str {
        self.0.operator
    }

    #[getter]
    fn sample(&self) -> Option<usize> {
        self.0.sample
    }

    /// The path of the sample, as it was opened.
    #[getter]
    fn source(&self) -> Option<&str> {
        self.0.source.as_ref().map(Origin::path)
    }

    #[getter]
    fn site(&self) -> u32 {
        self.0.site
    }
}
