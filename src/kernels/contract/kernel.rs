//! The traits that kernels implement.

use smallvec::{SmallVec, smallvec};

use crate::kernels::Result;
use crate::kernels::contract::args::FromArgs;
use crate::kernels::contract::frames::{self, Frames};
use crate::kernels::contract::output::{Output, OutputBuffer};
use crate::kernels::contract::uniform::UniformBatch;
use crate::value::{Desc, Sample};

/// Descriptions of a sample's results.
pub type Outputs = SmallVec<[Desc; 1]>;

/// A sample's results.
pub type Samples = SmallVec<[Sample; 1]>;

/// One operator on one sample. Pure: no Python, no globals, no threads of its own.
pub trait Kernel: Send + Sync + 'static {
    /// This sample's arguments, already resolved and checked by the definition.
    type Args: FromArgs;
    /// What `plan` computes for `run`, possibly on another thread.
    type Plan: Send + 'static;
    const TRAITS: Traits = Traits::DEFAULT;

    /// Computes what `run` needs, and the outputs' descriptions. They must be exact: the engine
    /// allocates from them.
    fn plan(args: Self::Args, inputs: &[&Desc]) -> Result<(Self::Plan, Outputs)>;

    /// Writes all of `outputs`. Inputs are contiguous, unless the traits say `strided`.
    fn run(plan: &Self::Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()>;

    /// Turns the plan for one sample into one for a stack of such samples along a new first axis;
    /// `inputs` describe the stack. Returns whether that is possible; if not, the plan is
    /// unchanged. Called only if the traits say `stacks`.
    fn stack(_plan: &mut Self::Plan, _inputs: &[&Desc]) -> bool {
        true
    }

    /// The description of one frame in the output of a sequence, given the descriptions that the
    /// frames' own plans ask for (at least one). `inputs` are those of the first frame. `run` then
    /// gets outputs of the returned description.
    fn fit(_plans: &[Self::Plan], _inputs: &[&Desc], frames: &[Desc]) -> Result<Desc> {
        frames::uniform(frames)
    }
}

/// One operator on one sample, for kernels that can't plan from descriptions alone: the results
/// depend on the data (an encoded image, a window that is an input), on strides or origin, or they
/// are views of the input. So planning and running are one step.
pub trait DirectKernel: Send + Sync + 'static {
    type Args: FromArgs;
    const TRAITS: Traits = Traits::DEFAULT;

    /// Inputs may be strided.
    fn run(args: &Self::Args, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples>;

    /// Runs once on the stack of all samples, and returns the first result, which the others follow
    /// in memory. `None` if the samples must be processed one by one. Called only if the traits say
    /// `stacks`.
    fn run_stacked(_args: &Self::Args, _batch: &UniformBatch<'_>) -> Option<Sample> {
        None
    }

    /// Size of the results in bytes, if they can be much larger than the inputs.
    fn result_bytes(_args: &Self::Args, _inputs: &[Sample]) -> usize {
        0
    }
}

/// Allocates the output at a position.
pub type Allocate<'a> = dyn Fn(usize, Desc) -> Result<OutputBuffer> + 'a;

/// Properties of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Costs about as much as touching the bytes, so small work is not worth waking a thread.
    pub cheap: bool,
    /// The outputs' shapes depend on the arguments, not on the inputs alone.
    pub shaped_by_args: bool,
    /// Outputs usually have the same shape, even if the inputs' shapes differ.
    pub uniform_outputs: bool,
    /// Given samples stacked along a new first axis, returns the stack of their results.
    pub stacks: bool,
    /// Accepts strided inputs. For other kernels, they are copied first.
    pub strided: bool,
    /// The result is a view of the input, so its size does not matter.
    pub view: bool,
    /// Reads files, so that the result depends on when it runs.
    pub reads_files: bool,
    /// How a frame axis of arguments and inputs is treated.
    pub frames: Frames,
}

impl Traits {
    pub const DEFAULT: Traits = Traits {
        cheap: true,
        shaped_by_args: true,
        uniform_outputs: false,
        stacks: false,
        strided: false,
        view: false,
        reads_files: false,
        frames: Frames::Arguments,
    };
}

/// The description of a single output.
pub fn one(desc: Desc) -> Outputs {
    smallvec![desc]
}

pub fn descs(inputs: &[Sample]) -> SmallVec<[&Desc; 2]> {
    inputs.iter().map(|sample| &sample.desc).collect()
}
