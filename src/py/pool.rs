//! Worker pools, waiting, forks and shutdown.

use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::prelude::*;

use crate::engine::{self, Pool};

/// How often a waiting thread checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);

/// Calls `wait` without the GIL until it returns true, and handles signals in between.
pub fn wait_for(py: Python<'_>, wait: impl Fn(Duration) -> bool + Send + Sync) -> PyResult<()> {
    let _standing_in = engine::stand_in();
    for waited in 0.. {
        let done = py.detach(|| {
            let slice = if engine::help(waited) { Duration::ZERO } else { SLICE };
            let done = wait(slice);
            if ends_elsewhere() {
                park_forever();
            }
            done
        });
        if engine::refused_threads() {
            py.import("penstock._errors.faults")?.call_method0("warn_of_refused_threads")?;
        }
        if done {
            break;
        }
        py.check_signals()?;
    }
    Ok(())
}

/// The thread that shuts down the process, once one does.
static ENDS: OnceLock<ThreadId> = OnceLock::new();

/// Whether another thread is shutting down the process. Then this one is a daemon thread, which
/// must not touch the interpreter again.
pub fn ends_elsewhere() -> bool {
    ENDS.get().is_some_and(|ender| *ender != thread::current().id())
}

/// Before CPython 3.14, a thread that requests the GIL of a finalized interpreter is unwound, which
/// must not reach Rust. Later versions block it forever, as this does.
pub fn park_forever() -> ! {
    loop {
        thread::park();
    }
}

/// How long shutdown waits for users' functions.
const GRACE: Duration = Duration::from_secs(2);

/// A pool of worker threads.
#[pyclass(name = "Pool", module = "penstock._core", frozen)]
pub struct PyPool(pub Arc<Pool>);

#[pymethods]
impl PyPool {
    #[new]
    #[pyo3(signature = (num_threads, max_nodes=None, max_bytes=None))]
    fn new(num_threads: usize, max_nodes: Option<usize>, max_bytes: Option<usize>) -> PyPool {
        PyPool(match (max_nodes, max_bytes) {
            (None, None) => Pool::new(num_threads),
            (nodes, bytes) => {
                Pool::bounded(num_threads, nodes.unwrap_or(usize::MAX), bytes.unwrap_or(usize::MAX))
            }
        })
    }

    #[getter]
    fn num_threads(&self) -> usize {
        self.0.threads()
    }

    #[getter]
    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    /// Number of nodes in flight that nobody has asked for yet.
    #[cfg(feature = "probes")]
    #[getter]
    fn early_in_flight(&self) -> usize {
        self.0.early_in_flight()
    }

    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        wait_for(py, |at_most| self.0.drain(at_most))
    }
}

#[pyfunction]
pub fn fork_prepare(py: Python<'_>) {
    // A user's function on a worker needs the GIL to finish.
    py.detach(engine::fork_prepare);
}

#[pyfunction]
pub fn fork_parent() {
    engine::fork_parent();
}

#[pyfunction]
pub fn shut_down(py: Python<'_>) {
    let _ = ENDS.set(thread::current().id());
    py.detach(|| engine::shut_down(GRACE));
}
