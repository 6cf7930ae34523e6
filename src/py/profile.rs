//! Recording what the engine does, see `engine::profile`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::engine::profile::{self, Kind, Log};

/// Begins a recording, whose first thread is the calling one; returns false if there is one.
#[pyfunction]
pub fn profile_start() -> bool {
    profile::start()
}

/// The clock of recordings, in nanoseconds.
#[pyfunction]
pub fn profile_clock() -> u64 {
    profile::now()
}

/// The totals so far, as `profile_stop` returns them, and no notes.
#[pyfunction]
pub fn profile_peek(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    threads(py, profile::peek())
}

/// Ends the recording. Returns a tuple for each thread: whether it is a worker, the totals, the
/// notes, and the number of notes that were not kept.
///
/// A total is (kind, operator, site, calls, samples, bytes, wall time, CPU time), a note is (kind,
/// operator, site, first sample, samples, begin, end, bytes). Times are in nanoseconds.
#[pyfunction]
pub fn profile_stop(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    threads(py, py.detach(profile::stop))
}

fn threads(py: Python<'_>, logs: Vec<Log>) -> PyResult<Bound<'_, PyList>> {
    let rows = logs.into_iter().map(|log| {
        let totals = log.totals.iter().map(|((kind, operator, site), total)| {
            let counts = (total.calls, total.samples, total.bytes, total.wall, total.cpu);
            (name(*kind), *operator, *site, counts.0, counts.1, counts.2, counts.3, counts.4)
        });
        let totals = PyList::new(py, totals.collect::<Vec<_>>())?;
        let notes = log.notes.iter().map(|n| {
            (name(n.kind), n.operator, n.site, n.sample, n.samples, n.begin, n.end, n.bytes)
        });
        let notes = PyList::new(py, notes.collect::<Vec<_>>())?;
        (log.is_worker, totals, notes, log.dropped).into_pyobject(py)
    });
    PyList::new(py, rows.collect::<PyResult<Vec<Bound<'_, PyTuple>>>>()?)
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Task => "task",
        Kind::Wait => "wait",
        Kind::Full => "full",
    }
}
