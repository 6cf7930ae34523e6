//! Samples with the same description, processed in one go: overhead that would outweigh the work on
//! a tiny sample is paid once for all of them.

use smallvec::SmallVec;

use crate::kernels::Result;
use crate::kernels::contract::args::{Arg, ArgReader};
use crate::kernels::contract::kernel::{Allocate, Samples};
use crate::kernels::contract::output::OutputBuffer;
use crate::value::{Cause, Desc, Sample};

/// Loads the inputs of a sample; `None` if their descriptions differ from the first sample's.
pub type Load<'a> = dyn FnMut(usize, &mut [Sample]) -> Option<()> + 'a;

/// Where the samples of an input are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// One sample is shared by all.
    Shared,
    /// They are consecutive in memory.
    Stacked,
    Separate,
}

/// The samples of a call. They are loaded one after the other, starting with the first.
pub struct UniformBatch<'a> {
    pub count: usize,
    /// Maximum size of each sample's result in bytes.
    pub limit: usize,
    /// One per input.
    pub placements: SmallVec<[Placement; 4]>,
    /// Allocates an output of the current sample.
    pub allocate: &'a Allocate<'a>,
    /// Allocates the stack of all samples' outputs, each of which has this description.
    stack: &'a dyn Fn(Desc) -> Result<(Desc, OutputBuffer)>,
    args: &'a [Arg],
    inputs: SmallVec<[Sample; 4]>,
    data_inputs: usize,
    load: &'a mut Load<'a>,
}

impl<'a> UniformBatch<'a> {
    /// `inputs` are those of the first sample; the first `data_inputs` of them are the operator's
    /// data.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        count: usize,
        limit: usize,
        placements: SmallVec<[Placement; 4]>,
        args: &'a [Arg],
        inputs: SmallVec<[Sample; 4]>,
        data_inputs: usize,
        load: &'a mut Load<'a>,
        allocate: &'a Allocate<'a>,
        stack: &'a dyn Fn(Desc) -> Result<(Desc, OutputBuffer)>,
    ) -> UniformBatch<'a> {
        UniformBatch { count, limit, placements, allocate, stack, args, inputs, data_inputs, load }
    }

    /// Loads another sample.
    pub fn load(&mut self, index: usize) -> Option<()> {
        (self.load)(index, &mut self.inputs)
    }

    /// The inputs of all samples, stacked along a new first axis; shared inputs stay as they are.
    /// `None` if the inputs are not stacked in memory, or if the samples differ in more than their
    /// data.
    pub fn stacked(&self) -> Option<SmallVec<[Sample; 4]>> {
        let each = || self.data().iter().zip(&self.placements);
        let (first, _) = each().find(|&(_, &placement)| placement == Placement::Stacked)?;
        let ndim = first.desc.ndim();
        let stack = |(sample, &placement): (&Sample, &Placement)| match placement {
            // Lacks the new axis, so it is broadcast along it.
            Placement::Shared => (sample.desc.ndim() <= ndim).then(|| sample.clone()),
            Placement::Stacked => {
                let desc = sample.desc.stack(self.count).filter(|_| sample.desc.ndim() == ndim)?;
                // SAFETY: the samples of a stack have all been written.
                unsafe { sample.extended(desc) }.ok()
            }
            Placement::Separate => None,
        };
        if self.args_vary() { None } else { each().map(stack).collect() }
    }

    /// Allocates the stack of all results. Also returns the description of each of them: `desc`
    /// with the layout that the definition promised.
    pub fn allocate_stack(&self, desc: Desc) -> Option<(Desc, OutputBuffer)> {
        (self.stack)(desc).ok()
    }

    /// Runs a kernel once, on the stacked inputs.
    pub fn run_stacked(
        &self,
        run: impl FnOnce(&[Sample], &Allocate<'_>) -> Result<Samples>,
    ) -> Option<Sample> {
        let inputs = self.stacked()?;
        let of_each = |stack: &Desc| Desc::new(stack.dtype, &stack.shape[1..]);
        let allocate = |_, stack: Desc| -> Result<OutputBuffer> {
            let made = self.allocate_stack(of_each(&stack));
            made.map(|(_, stack)| stack).ok_or_else(|| Cause::Internal("not one block".into()))
        };
        let made = run(&inputs, &allocate).ok()?;
        let stack = made.first().filter(|made| made.is_contiguous())?;
        stack.part(of_each(&stack.desc), 0).ok()
    }

    /// The inputs of the current sample.
    pub fn data(&self) -> &[Sample] {
        &self.inputs[..self.data_inputs]
    }

    /// The arguments of the current sample.
    pub fn reader(&self, index: usize) -> ArgReader<'_> {
        ArgReader::new(self.args, &self.inputs, index)
    }

    /// Whether arguments differ from sample to sample.
    pub fn args_vary(&self) -> bool {
        self.args.iter().any(|arg| match *arg {
            Arg::Input(index) => self.placements[index] != Placement::Shared,
            Arg::Draw(_) => true,
            _ => false,
        })
    }
}
