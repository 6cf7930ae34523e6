//! Samples that are described alike, taken in one go: what costs as much as a tiny sample's work
//! is done once for all of them.

use smallvec::SmallVec;

use crate::kernels::Result;
use crate::kernels::contract::args::{Arg, ArgReader};
use crate::kernels::contract::kernel::{Allocate, SampleKernel};
use crate::kernels::contract::space::Space;
use crate::value::{Cause, Desc, Sample};

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

    /// The inputs of all samples, stacked along a new first axis, for the results to be made in one
    /// stack too. One that is there for all is as it is. `None` when they don't lie so, or when the
    /// samples differ in more than the data.
    pub fn stacked(&self) -> Option<SmallVec<[Sample; 4]>> {
        let each = || self.data().iter().zip(&self.lie);
        let (packed, _) = each().find(|&(_, &lie)| lie == Lie::Packed)?;
        let ndim = packed.desc.ndim();
        let stack = |(sample, &lie): (&Sample, &Lie)| match lie {
            // Broadcast along the new axis, as it lacks it.
            Lie::Shared => (sample.desc.ndim() <= ndim).then(|| sample.clone()),
            Lie::Packed => {
                let desc = sample.desc.stack(self.count).filter(|_| sample.desc.ndim() == ndim)?;
                // SAFETY: samples that lie packed are all there.
                unsafe { sample.extended(desc) }.ok()
            }
            Lie::Apart => None,
        };
        if self.args_vary() { None } else { each().map(stack).collect() }
    }

    /// Room for all results, of which each is a `desc`: the first of them, and their stack, to be
    /// written. `None` when they don't get one block.
    pub fn room(&self, desc: Desc) -> Option<(Sample, Space)> {
        let first = (self.allocate)(0, desc).ok()?;
        let desc = first.desc.stack(self.count)?;
        (first.offset() == 0 && desc.bytes() <= first.block_bytes()).then_some(())?;
        // SAFETY: the block is for the samples of this call, which are made nowhere else. The
        // first is read when the stack has been written.
        let stack = unsafe { first.extended(desc) };
        Some((first.into_sample().ok()?, stack))
    }

    /// Runs a kernel once, on the stacks of the inputs. `args` are those with which it makes the
    /// stack of the results.
    pub fn run_stacked(&self, kernel: &dyn SampleKernel, args: &[Arg]) -> Option<Sample> {
        let inputs = self.stacked()?;
        let of_each = |stack: &Desc| Desc::new(stack.dtype, &stack.shape[1..]);
        let allocate = |_, stack: Desc| -> Result<Space> {
            let room = self.room(of_each(&stack));
            room.map(|(_, out)| out).ok_or_else(|| Cause::Internal("not one block".into()))
        };
        let made = kernel.run(&ArgReader::new(args, &inputs, 0), &inputs, &allocate).ok()?;
        let stack = made.first().filter(|made| made.is_contiguous())?;
        stack.part(of_each(&stack.desc), 0).ok()
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
        self.args.iter().any(|arg| match *arg {
            Arg::Input(index) => self.lie[index] != Lie::Shared,
            Arg::Draw(_) => true,
            _ => false,
        })
    }
}

/// Axes of a sample as axes of a stack of them. `None` for what is no axis.
pub fn axes_of_stack(axes: &[i64]) -> Option<impl Iterator<Item = i64>> {
    let valid = axes.iter().all(|axis| (0..i64::MAX).contains(axis));
    valid.then(|| axes.iter().map(|axis| axis + 1))
}
