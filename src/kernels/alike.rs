//! Samples that are described alike, taken in one go: what costs as much as a tiny sample's work
//! is done once for all of them.

use smallvec::SmallVec;

use super::args::{Arg, ArgReader};
use super::kernel::Allocate;
use crate::value::Sample;

/// Fetches the inputs of a sample; `None` when they are not like those of the first.
pub type Load<'a> = dyn FnMut(usize, &mut [Sample]) -> Option<()> + 'a;

/// How the samples of an input lie.
#[derive(Clone, Copy, PartialEq)]
pub enum Lie {
    /// One is there for all.
    Shared,
    /// They follow one another in memory.
    Packed,
    Apart,
}

/// The samples of a call. They are loaded one after the other; the first is there.
pub struct Alike<'a> {
    pub count: usize,
    /// For each input.
    pub lie: SmallVec<[Lie; 4]>,
    /// Room for the sample that is loaded. That of the first is followed by that of the others.
    pub allocate: &'a Allocate<'a>,
    args: &'a [Arg],
    inputs: SmallVec<[Sample; 4]>,
    data_inputs: usize,
    fetch: &'a mut Load<'a>,
}

impl<'a> Alike<'a> {
    /// `inputs` are those of the first sample, the first `data_inputs` of them the operator's.
    pub fn new(
        count: usize,
        lie: SmallVec<[Lie; 4]>,
        args: &'a [Arg],
        inputs: SmallVec<[Sample; 4]>,
        data_inputs: usize,
        fetch: &'a mut Load<'a>,
        allocate: &'a Allocate<'a>,
    ) -> Alike<'a> {
        Alike { count, lie, allocate, args, inputs, data_inputs, fetch }
    }

    /// Goes on to another sample.
    pub fn load(&mut self, index: usize) -> Option<()> {
        (self.fetch)(index, &mut self.inputs)
    }

    /// The inputs of all samples, stacked along a new first axis, for results of `ndim` axes to be
    /// made in one stack too. `None` when they don't lie so, or differ in more than the data.
    pub fn stacked(&self, ndim: usize) -> Option<SmallVec<[Sample; 4]>> {
        let stack = |(sample, &lie): (&Sample, &Lie)| match lie {
            // Broadcast along the new axis, as it lacks it.
            Lie::Shared => (sample.desc.ndim() <= ndim).then(|| sample.clone()),
            Lie::Packed => {
                let desc = sample.desc.stack(self.count).filter(|_| sample.desc.ndim() == ndim)?;
                Sample::new(desc, sample.buffer().clone(), sample.offset()).ok()
            }
            Lie::Apart => None,
        };
        let whole = self.lie[..self.data_inputs].contains(&Lie::Packed) && !self.args_vary();
        whole.then(|| self.data().iter().zip(&self.lie).map(stack).collect())?
    }

    /// The inputs of the sample that is loaded.
    pub fn data(&self) -> &[Sample] {
        &self.inputs[..self.data_inputs]
    }

    /// The arguments of the sample that is loaded.
    pub fn reader(&self, index: usize) -> ArgReader<'_> {
        ArgReader::new(self.args, &self.inputs, index)
    }

    /// Whether arguments differ from sample to sample.
    pub fn args_vary(&self) -> bool {
        self.args.iter().any(|arg| matches!(arg, Arg::Input(_) | Arg::Draw(_)))
    }
}
