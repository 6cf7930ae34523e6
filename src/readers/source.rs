//! What a format implements, and the kernel that reads its samples.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::options::Options;
use super::ranges::Unreadable;
use crate::kernels::{Allocate, ArgReader, OutputBuffer, SampleKernel, Traits};
use crate::value::{Cause, DType, Desc, Element, Layout, Origin, Problem, Sample};

pub type Result<T, E = Cause> = std::result::Result<T, E>;

/// A data set whose samples are read by number, from any thread.
pub trait Source: Send + Sync + 'static {
    /// The number of samples.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a sample for users, usually a file name.
    fn name(&self, number: usize) -> Arc<str>;

    /// The origin of a part of a sample: its name, and its path if that is longer.
    fn origin(&self, number: usize, _part: usize) -> Origin {
        self.name(number).into()
    }

    /// Changes whenever the data set does. Computed once, on demand.
    fn fingerprint(&self) -> u64;

    /// What a sample consists of, in the order of the reader's outputs.
    fn outputs(&self) -> Vec<Part>;

    /// The ends of groups of samples that are best read together, for formats that have them.
    fn groups(&self) -> Option<&[usize]> {
        None
    }

    /// Reads a part of a sample, and returns a result for each of the part's outputs.
    fn fetch(
        &self,
        number: usize,
        part: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>>;

    /// A part that is already in memory, for several samples; they share one block ([`in_a_row`]).
    fn ready(&self, _numbers: &[usize], part: usize) -> Result<Vec<Sample>> {
        Err(Cause::Internal(format!("part {part} has to be fetched")))
    }

    /// Whether fetching is mostly computing, not reading: it is then left to the threads that
    /// compute.
    fn computes(&self) -> bool {
        false
    }

    /// Invalid entries that were skipped when the source was opened.
    fn skipped(&self) -> &[Skipped] {
        &[]
    }

    /// The same data set, with the arguments of one call.
    fn with_arguments(self: Arc<Self>, _arguments: Options) -> Result<Arc<dyn Source>, OpenError> {
        Err(OpenError::Options("this format takes no arguments at a call".into()))
    }

    /// For sources whose samples depend on the rest of their batch: the batch as a source of its
    /// own, numbered by position.
    fn batch(self: Arc<Self>, _numbers: &[usize]) -> Result<Option<Arc<dyn Source>>, OpenError> {
        Ok(None)
    }
}

/// A part of a sample.
#[derive(Clone, Debug)]
pub enum Part {
    /// Outputs that workers read together. If one fails, so do the others.
    Fetched(SmallVec<[Output; 1]>),
    /// An output that is in memory since the source was opened.
    Ready(Output),
}

/// What is known about an output before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// `None` if it depends on the data.
    pub dtype: Option<DType>,
    /// `None` if it depends on the data.
    pub ndim: Option<usize>,
    pub layout: Layout,
    /// Whether all samples are expected to have the same shape.
    pub uniform: bool,
}

impl Output {
    /// An output of any shape.
    pub fn new(dtype: DType, ndim: usize) -> Output {
        let (dtype, ndim) = (Some(dtype), Some(ndim));
        Output { dtype, ndim, layout: Layout::default(), uniform: false }
    }

    /// An output with the same shape for all samples.
    pub fn uniform(dtype: DType, ndim: usize) -> Output {
        Output { uniform: true, ..Output::new(dtype, ndim) }
    }
}

/// An invalid entry of a file.
#[derive(Debug, PartialEq)]
pub struct Skipped {
    /// The position of the file in the list of files.
    pub file: usize,
    /// Counted from 1.
    pub line: usize,
    pub text: String,
    pub problem: Problem,
}

/// Why a source can't be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Python passed options that the format doesn't have.
    Options(String),
    /// A file named by an option can't be read or written.
    Unreadable(Unreadable),
}

impl From<Unreadable> for OpenError {
    fn from(error: Unreadable) -> OpenError {
        OpenError::Unreadable(error)
    }
}

/// A function that opens a source of a format.
pub type Open = fn(&mut Options) -> Result<Arc<dyn Source>, OpenError>;

/// Samples in one block of memory, so that a batch of equal shapes is one array.
pub fn in_a_row<T: Element>(rows: &[&[T]]) -> Result<Vec<Sample>> {
    let count = rows.iter().map(|row| row.len()).sum();
    let mut block = OutputBuffer::new(Desc::new(T::DTYPE, &[count]))?;
    let mut rest = block.elements::<T>();
    for row in rows {
        let (place, after) = rest.split_at_mut(row.len());
        place.copy_from_slice(row);
        rest = after;
    }
    let block = block.into_sample()?;
    let mut offset = 0;
    let samples = rows.iter().map(|row| {
        let start = offset;
        offset += size_of_val(*row);
        block.part(Desc::new(T::DTYPE, &[row.len()]), start)
    });
    samples.collect()
}

/// The kernel that reads a part of the samples of a batch; it has no inputs.
pub struct Fetch {
    source: Arc<dyn Source>,
    part: usize,
    numbers: Box<[usize]>,
}

impl Fetch {
    /// `None` if the source doesn't have one of the samples.
    pub fn new(source: Arc<dyn Source>, part: usize, numbers: Box<[usize]>) -> Option<Fetch> {
        let exist = numbers.iter().all(|&number| number < source.len());
        exist.then_some(Fetch { source, part, numbers })
    }
}

impl SampleKernel for Fetch {
    fn run(
        &self,
        args: &ArgReader<'_>,
        _: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        self.source.fetch(self.numbers[args.sample()], self.part, allocate)
    }

    fn traits(&self) -> Traits {
        Traits { cheap: false, ..Traits::DEFAULT }
    }

    fn origin(&self, sample: usize) -> Option<Origin> {
        self.numbers.get(sample).map(|&number| self.source.origin(number, self.part))
    }
}

/// The parts of a source that reads all outputs together.
pub fn fetched(outputs: impl IntoIterator<Item = Output>) -> Vec<Part> {
    let mut all: SmallVec<[Output; 1]> = smallvec![];
    all.extend(outputs);
    vec![Part::Fetched(all)]
}
