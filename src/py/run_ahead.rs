//! Loops whose next iterations are run ahead of the user's program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use super::value::PyValue;
use crate::engine::Value;
use crate::engine::ahead::{self, Loop, Reason, Why};

type Item<'py> = Vec<PyRef<'py, PyValue>>;

/// A loop over the items of a reader, or another source; all of its iterations, one after another.
#[pyclass(name = "Loop", module = "penstock._core", frozen)]
pub struct PyLoop(Arc<Loop>);

/// One pass of a loop: an iterator. What was run ahead is dropped with it.
#[pyclass(name = "Iteration", module = "penstock._core", frozen)]
pub struct PyIteration {
    course: Arc<Loop>,
    number: u64,
}

static ITERATIONS: AtomicU64 = AtomicU64::new(1);

#[pymethods]
impl PyLoop {
    #[new]
    fn new() -> PyLoop {
        PyLoop(Arc::default())
    }

    fn iteration(&self) -> PyIteration {
        let number = ITERATIONS.fetch_add(1, Ordering::Relaxed);
        PyIteration { course: self.0.clone(), number }
    }

    /// Drops what was run ahead, because other items come next.
    fn clear(&self) {
        self.0.clear();
    }

    /// An item has become available that comes after the current one, and after others that were
    /// offered.
    fn offer(&self, item: Item<'_>, depth: usize) {
        if let Some(values) = values(&item) {
            self.0.offer(values, depth);
        }
    }
}

#[pymethods]
impl PyIteration {
    /// The user gets an item; these are the ones after it, of which `depth` are run ahead.
    fn begin(&self, item: Item<'_>, upcoming: Vec<Item<'_>>, depth: usize) {
        match values(&item) {
            Some(item) => {
                let upcoming = upcoming.iter().map_while(values).collect();
                self.course.begin(self.number, item, upcoming, depth);
            }
            None => self.course.end(self.number, false),
        }
    }

    /// There are no more items, or nothing is to be run ahead.
    #[pyo3(signature = (complete=true))]
    fn end(&self, complete: bool) {
        self.course.end(self.number, complete);
    }
}

impl Drop for PyIteration {
    fn drop(&mut self) {
        self.course.abandon(self.number);
    }
}

/// The values of an item, unless others may modify them.
fn values(item: &Item<'_>) -> Option<smallvec::SmallVec<[Arc<Value>; 4]>> {
    let value =
        |value: &PyRef<'_, PyValue>| (!value.is_external()).then(|| value.handle.value().clone());
    item.iter().map(value).collect()
}

/// Why a call was not predicted: its operator's number, its site, what was the reason, the argument
/// or input, and how often that was so.
type Stopped = (usize, u32, &'static str, usize, u64);

/// Calls predicted, used and dropped, and why others were not predicted.
#[pyfunction]
pub fn run_ahead_stats() -> ([u64; 3], Vec<Stopped>) {
    let (counts, reasons) = ahead::stats();
    let stopped = |(Reason { operator, site, why }, times)| {
        let (what, place) = match why {
            Why::Argument(place) => ("argument", place),
            Why::Input(place) => ("input", place),
            Why::Draw(place) => ("draw", place),
            Why::Results => ("results", 0),
        };
        (operator, site, what, place, times)
    };
    (counts, reasons.into_iter().map(stopped).collect())
}
