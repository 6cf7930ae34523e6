//! RNGs as Python sees them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::kernels::Position;

/// A place in a sequence of random words, that moves on. Safe to share between threads.
#[pyclass(name = "Philox", module = "penstock._core", frozen)]
pub struct PyPhilox(Mutex<Position>);

impl PyPhilox {
    fn position(&self) -> MutexGuard<'_, Position> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position, and so many words on from it.
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

    /// Seed, sequence, block and word of the block.
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

    /// The place of one call of an operator.
    fn draw(&self) -> PyDraw {
        PyDraw(self.step(Position::WORDS_PER_CALL))
    }
}

/// Where in a sequence a call is: what its randomness is made of.
#[pyclass(name = "Draw", module = "penstock._core", frozen)]
pub struct PyDraw(pub Position);
