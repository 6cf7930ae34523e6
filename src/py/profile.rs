//! Recording what the engine does, see `engine::profile`.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::engine::profile::{self, Key, Kind, Log, Note, Total};

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
/// A total is (kind, operator, site, calls, samples, bytes, wall time, CPU time). Times are in
/// nanoseconds.
#[pyfunction]
pub fn profile_stop(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    threads(py, py.detach(profile::stop))
}

/// What a thread did, one thing after the other. There may be half a million notes, so they become
/// Python objects only when somebody asks for them.
#[pyclass(frozen, module = "penstock._core")]
pub struct Notes {
    keys: Vec<Key>,
    notes: Vec<Note>,
}

#[pymethods]
impl Notes {
    fn __len__(&self) -> usize {
        self.notes.len()
    }

    /// A note as (kind, operator, site, first sample, samples, begin, end, bytes).
    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyTuple>> {
        let note = self.notes.get(index);
        let note = note.ok_or_else(|| PyIndexError::new_err("there are fewer notes"))?;
        let Key { kind, operator, site } = self.keys[note.total as usize];
        let end = note.begin + note.duration;
        (name(kind), operator, site, note.sample, note.samples, note.begin, end, note.bytes)
            .into_pyobject(py)
    }
}

fn threads(py: Python<'_>, logs: Vec<Log>) -> PyResult<Bound<'_, PyList>> {
    let rows = logs.into_iter().map(|log| {
        let totals = log.totals.iter().map(|total| {
            let Key { kind, operator, site } = total.key;
            let Total { calls, samples, bytes, wall, cpu, .. } = *total;
            (name(kind), operator, site, calls, samples, bytes, wall, cpu)
        });
        let totals = PyList::new(py, totals.collect::<Vec<_>>())?;
        let keys = log.totals.iter().map(|total| total.key).collect();
        (log.is_worker, totals, Notes { keys, notes: log.notes }, log.dropped).into_pyobject(py)
    });
    PyList::new(py, rows.collect::<PyResult<Vec<Bound<'_, PyTuple>>>>()?)
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Task => "task",
        Kind::Wait => "wait",
        Kind::Full => "full",
        Kind::Ahead => "ahead",
    }
}
