//! Random number generators, as Python sees them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::kernels::Position;

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
        PyDraw(self.step(Position::WORDS_PER_CALL))
    }
}

/// The position that a call of an operator draws from.
#[pyclass(name = "Draw", module = "penstock._core", frozen)]
pub struct PyDraw(pub Position);
