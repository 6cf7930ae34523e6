//! Faults, passed to Python as data.

use std::sync::Arc;

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::array_fault::ArrayFault;
use crate::value::{Cause, Damage, Fault, Figure, MemoryFault, Origin, Problem, SystemFault};
use crate::{codecs, kernels, readers};

/// Kinds of problems and the names of their figures; Python has a sentence for each.
#[pyfunction]
pub fn problem_kinds() -> Vec<(&'static str, Vec<&'static str>)> {
    let border: &[&[_]] = &[ArrayFault::KINDS, MemoryFault::KINDS, SystemFault::KINDS];
    let kinds = [border, codecs::KINDS, readers::KINDS];
    let kinds = kinds.into_iter().flatten().copied().flatten().chain(kernels::problems());
    kinds.map(|(kind, figures)| (*kind, figures.to_vec())).collect()
}

#[pyclass(name = "Fault", module = "penstock._core", frozen)]
pub struct PyFault(pub Arc<Fault>);

/// An exception raised by a user's function, on its way through the engine.
pub struct Raised(pub PyErr);

#[pymethods]
impl PyFault {
    /// The kind of fault, followed by its details.
    #[getter]
    fn cause<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match &self.0.cause {
            Cause::Argument { name, problem } => {
                ("argument", name, worded(py, problem)?).into_pyobject(py)
            }
            Cause::Input { index, problem } => {
                ("input", index, worded(py, problem)?).into_pyobject(py)
            }
            Cause::Value { problem } => ("value", worded(py, problem)?).into_pyobject(py),
            Cause::Undecodable { kind, problem } => {
                let kind = match kind {
                    Damage::Unknown => "unknown",
                    Damage::Large => "large",
                    Damage::Truncated => "truncated",
                    Damage::Broken => "broken",
                };
                ("undecodable", kind, worded(py, problem)?).into_pyobject(py)
            }
            Cause::Index { axis, index, extent } => {
                ("index", axis, index, extent).into_pyobject(py)
            }
            Cause::Ragged { sample, shape, first } => {
                let tuple = |shape: &[usize]| PyTuple::new(py, shape);
                ("ragged", sample, tuple(shape)?, tuple(first)?).into_pyobject(py)
            }
            Cause::File { problem } => ("file", worded(py, problem)?).into_pyobject(py),
            Cause::System { problem } => ("system", worded(py, problem)?).into_pyobject(py),
            Cause::Memory { bytes } => ("memory", bytes).into_pyobject(py),
            Cause::Forked => ("forked",).into_pyobject(py),
            Cause::Stopped => ("stopped",).into_pyobject(py),
            Cause::Threads => ("threads",).into_pyobject(py),
            Cause::Python(raised) => match raised.downcast_ref::<Raised>() {
                // With the function's own traceback, without frames of code that read the value.
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

    /// The path of the sample's file, as it was opened.
    #[getter]
    fn source(&self) -> Option<&str> {
        self.0.source.as_ref().map(Origin::path)
    }

    #[getter]
    fn site(&self) -> u32 {
        self.0.site
    }
}

/// A problem as its kind and its figures by name, as `sentence` in Python takes it.
pub fn worded<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyTuple>> {
    let figures = PyDict::new(py);
    for (name, figure) in &problem.figures {
        match figure {
            Figure::Int(number) => figures.set_item(name, number)?,
            Figure::Float(number) => figures.set_item(name, number)?,
            Figure::Text(text) => figures.set_item(name, text)?,
            Figure::Ints(numbers) => figures.set_item(name, PyList::new(py, numbers)?)?,
            Figure::Floats(numbers) => figures.set_item(name, PyList::new(py, numbers)?)?,
            Figure::Problem(inner) => figures.set_item(name, worded(py, inner)?)?,
            Figure::Absent => figures.set_item(name, py.None())?,
        }
    }
    (problem.kind, figures).into_pyobject(py)
}

/// An exception of class `E`, with Python's sentence for a problem.
pub fn error<E: PyTypeInfo>(problem: impl Into<Problem>) -> PyErr {
    let problem = problem.into();
    Python::attach(|py| match sentence(py, &problem) {
        Ok(text) => PyErr::new::<E, _>(text),
        Err(error) => error,
    })
}

fn sentence(py: Python<'_>, problem: &Problem) -> PyResult<String> {
    let sentences = py.import("penstock._errors.sentences")?;
    sentences.call_method1("sentence", (worded(py, problem)?,))?.extract()
}
