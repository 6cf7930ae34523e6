//! Random number generators, as Python sees them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::value::PyValue;
use crate::kernels::{Draw, Places, Position, SampleDraw};
use crate::value::{Given, Lineage};

/// A position in a sequence of random words. Can be shared between threads.
#[pyclass(name = "Philox", module = "penstock._core", frozen)]
pub struct PyPhilox(Mutex<Position>);

impl PyPhilox {
    fn position(&self) -> MutexGuard<'_, Position> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances by `words`, and returns the position before that.
    fn step(&self, words: u128) -> Position {
        let mut position = self.position();
        let now = *position;
        position.advance(words);
        now
    }
}

#[pymethods]
impl PyPhilox {
    #[new]
    fn new(seed: u64, sequence: u64, offset: u64, phase: u32) -> PyPhilox {
        PyPhilox(Mutex::new(Position { seed, sequence, offset, phase: phase & 3 }))
    }

    /// Seed, sequence, block, and word within the block.
    fn get(&self) -> (u64, u64, u64, u32) {
        let Position { seed, sequence, offset, phase } = *self.position();
        (seed, sequence, offset, phase)
    }

    fn set(&self, seed: u64, sequence: u64, offset: u64, phase: u32) {
        *self.position() = Position { seed, sequence, offset, phase: phase & 3 };
    }

    /// The next word.
    fn word(&self) -> u32 {
        self.step(1).word()
    }

    fn advance(&self, words: u128) {
        self.position().advance(words);
    }

    /// The position for one call of an operator; advances past its words.
    fn draw(&self) -> PyDraw {
        PyDraw(Draw::At(self.step(Position::WORDS_PER_CALL)))
    }
}

/// What a call of an operator draws from.
#[pyclass(name = "Draw", module = "penstock._core", frozen)]
pub struct PyDraw(pub Draw);

/// A stream of random words for each sample of a data set. All that changes is how often there was
/// a draw for samples that still exist, which says what comes next.
#[pyclass(name = "SampleStreams", module = "penstock._core", frozen)]
pub struct PySampleStreams(Mutex<Streams>);

#[derive(Clone, Default)]
struct Streams {
    seed: u64,
    /// How often there was a draw, by the address of what samples were given with.
    counts: HashMap<usize, (Weak<Given>, Places)>,
    /// Length of `counts` at which samples that no longer exist are removed.
    purge_at: usize,
}

impl Streams {
    const FIRST_PURGE: usize = 64;

    /// The number of the next draw for all of these samples.
    fn next(&mut self, lineage: &Lineage) -> Places {
        if self.counts.len() >= self.purge_at.max(Streams::FIRST_PURGE) {
            self.counts.retain(|_, (given, _)| given.strong_count() > 0);
            self.purge_at = 2 * self.counts.len();
        }
        if let Lineage::Whole(given) = lineage {
            let places = self.counts_of(given);
            let now = places.clone();
            match places {
                Places::Same(place) => *place = place.wrapping_add(1),
                Places::Each(places) => {
                    places.iter_mut().for_each(|place| *place = place.wrapping_add(1));
                }
            }
            return now;
        }
        let draw_one = |index| {
            let (given, place) = lineage.part(index);
            let count = given.len();
            let places = self.counts_of(&given);
            if let Places::Same(all) = *places {
                *places = Places::Each(vec![all; count].into());
            }
            let Places::Each(places) = places else { return 0 };
            let now = places[place];
            places[place] = now.wrapping_add(1);
            now
        };
        Places::Each((0..lineage.len()).map(draw_one).collect())
    }

    fn counts_of(&mut self, given: &Arc<Given>) -> &mut Places {
        let new = || (Arc::downgrade(given), Places::Same(0));
        // The weak reference keeps others from having the address.
        &mut self.counts.entry(Arc::as_ptr(given).addr()).or_insert_with(new).1
    }
}

impl PySampleStreams {
    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PySampleStreams {
    #[new]
    fn new(seed: u64) -> PySampleStreams {
        PySampleStreams(Mutex::new(Streams { seed, ..Streams::default() }))
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.streams().seed
    }

    /// Another one from which the same is drawn next.
    fn copy(&self) -> PySampleStreams {
        PySampleStreams(Mutex::new(self.streams().clone()))
    }

    /// The draw for one call of an operator on these values; `None` if none of them says which
    /// samples of a data set they are. In a batch, what is no batch says nothing.
    fn draw(&self, values: Vec<PyRef<'_, PyValue>>, batch: bool) -> Option<PyDraw> {
        let said = values.iter().filter(|value| value.batch || !batch);
        let lineage = { said }.find_map(|value| value.handle.lineage())?.clone();
        let mut streams = self.streams();
        let (seed, places) = (streams.seed, streams.next(&lineage));
        Some(PyDraw(Draw::BySample(Arc::new(SampleDraw { seed, places, lineage }))))
    }
}

/// The epoch of all samples, or that of each.
#[derive(FromPyObject)]
pub enum Epochs {
    Same(u64),
    Each(PyBuffer<i64>),
}

/// Says of values that they are these samples of a data set.
#[pyfunction]
pub fn given_together(
    py: Python<'_>,
    values: Vec<PyRef<'_, PyValue>>,
    numbers: PyBuffer<i64>,
    epochs: Epochs,
) -> PyResult<()> {
    let numbers: Box<[u64]> = numbers.to_vec(py)?.into_iter().map(|n| n as u64).collect();
    let epochs: SmallVec<_> = match epochs {
        Epochs::Same(epoch) => smallvec![epoch],
        Epochs::Each(each) => each.to_vec(py)?.into_iter().map(|n| n as u64).collect(),
    };
    let given = Given::new(numbers, epochs);
    let given = given.ok_or_else(|| PyValueError::new_err("one epoch for each sample, or one"))?;
    let lineage = Lineage::Whole(Arc::new(given));
    values.iter().for_each(|value| value.handle.set_lineage(lineage.clone()));
    Ok(())
}
