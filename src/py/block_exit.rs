//! Leaving a `with` block. In Python, Ctrl-C could come between the call of `__exit__` and its first
//! instruction, and what the block had chosen would stay chosen.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The `__exit__` of a class whose blocks choose something for their thread. What a thread has chosen
/// is the attribute `chosen` of `state`: a chain of choices, each with the block that made it under
/// the name `by`, and the choice around it as `outer`.
#[pyclass(module = "penstock._core", frozen)]
pub struct BlockExit {
    state: Py<PyAny>,
    by: String,
    /// Attributes of `state` that follow from the choice, to be set to None.
    derived: Vec<String>,
}

#[pymethods]
impl BlockExit {
    #[new]
    #[pyo3(signature = (state, by, *derived))]
    fn new(state: Py<PyAny>, by: String, derived: Vec<String>) -> BlockExit {
        BlockExit { state, by, derived }
    }

    fn __get__(
        exit: Py<BlockExit>,
        block: Option<Py<PyAny>>,
        _class: Option<&Bound<'_, PyAny>>,
    ) -> BoundExit {
        BoundExit { exit, block }
    }
}

/// The `__exit__` of one object.
#[pyclass(module = "penstock._core", frozen)]
pub struct BoundExit {
    exit: Py<BlockExit>,
    block: Option<Py<PyAny>>,
}

#[pymethods]
impl BoundExit {
    #[pyo3(signature = (*_exc_info))]
    fn __call__(&self, py: Python<'_>, _exc_info: &Bound<'_, PyTuple>) -> PyResult<()> {
        let exit = self.exit.get();
        let state = exit.state.bind(py);
        for name in &exit.derived {
            state.setattr(name, py.None())?;
        }
        let mut chosen = state.getattr("chosen")?;
        loop {
            let outer = chosen.getattr("outer")?;
            if outer.is_none() {
                let block = self.block.as_ref().map_or_else(|| py.None(), |b| b.clone_ref(py));
                let text =
                    format!("{} is left, but was not entered in this thread.", block.bind(py));
                return Err(PyRuntimeError::new_err(text));
            }
            // What is not ours was left by blocks inside of this one that did not get to their end.
            let by = chosen.getattr(exit.by.as_str())?;
            chosen = outer;
            if self.block.as_ref().is_some_and(|block| by.is(block)) {
                return state.setattr("chosen", chosen);
            }
        }
    }
}
