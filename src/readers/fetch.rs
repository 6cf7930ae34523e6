//! A batch of a data set, as work for the engine.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::kernels::{Allocate, ArgReader, Result, SampleKernel, Traits};
use crate::value::{Origin, Sample};

/// A data set whose samples are read by number, from any thread.
pub trait Source: Send + Sync + 'static {
    /// How many samples there are.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a sample: one result for each output.
    fn read(&self, number: usize, allocate: &Allocate<'_>) -> Result<SmallVec<[Sample; 1]>>;

    /// What users know the sample by, usually a file name.
    fn name(&self, number: usize) -> Arc<str>;

    /// The name, and the path where that is a longer one.
    fn origin(&self, number: usize) -> Origin {
        self.name(number).into()
    }
}

/// The kernel that reads the named samples; it has no inputs.
pub struct Fetch<S: ?Sized> {
    source: Arc<S>,
    numbers: Box<[usize]>,
}

impl<S: Source + ?Sized> Fetch<S> {
    /// `None` when a number is not one of the source's.
    pub fn new(source: Arc<S>, numbers: Box<[usize]>) -> Option<Fetch<S>> {
        let known = numbers.iter().all(|&number| number < source.len());
        known.then_some(Fetch { source, numbers })
    }
}

impl<S: Source + ?Sized> SampleKernel for Fetch<S> {
    fn run(
        &self,
        args: &ArgReader<'_>,
        _: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        self.source.read(self.numbers[args.sample()], allocate)
    }

    fn traits(&self) -> Traits {
        Traits { cheap: false, ..Traits::DEFAULT }
    }

    fn origin(&self, sample: usize) -> Option<Origin> {
        self.numbers.get(sample).map(|&number| self.source.origin(number))
    }
}
