//! Leaving a `with` block. If `__exit__` were written in Python, Ctrl-C could arrive between the
//! call and its first instruction, and the block's setting would stay in effect.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The `__exit__` of a class whose blocks select something for the current thread. The attribute
/// `chosen` of `state` is the thread's selection: a linked list, where each entry has the block
/// that made it as the attribute named `by`, and the enclosing entry as `outer`.
#[pyclass(module = "penstock._core", frozen)]
pub struct BlockExit {
    state: Py<PyAny>,
    by: String,
    /// Attributes of `state` that are derived from the selection and reset to None.
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

/// `__exit__`, bound to an object.
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
                let messages = py.import("penstock._errors.messages")?;
                return Err(PyErr::from_value(messages.call_method1("not_entered", (block,))?));
            }
            // Entries of other blocks belong to inner blocks that were never exited.
            let by = chosen.getattr(exit.by.as_str())?;
            chosen = outer;
            if self.block.as_ref().is_some_and(|block| by.is(block)) {
                return state.setattr("chosen", chosen);
            }
        }
    }
}
