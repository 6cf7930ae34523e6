//! What a kernel is.

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
    /// What `plan` has worked out for `run`. It may be handed to another thread.
    type Plan: Send + 'static;
    const TRAITS: Traits = Traits::DEFAULT;

    /// Works out what `run` will do and what it will write. The engine allocates from the
    /// descriptions, so they must be exact.
    fn plan(args: Self::Args, inputs: &[&Desc]) -> Result<(Self::Plan, Outputs)>;

    /// Writes all of `outputs`. Inputs are contiguous, except for a kernel whose traits say
    /// `strided`.
    fn run(plan: &Self::Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()>;

    /// Makes the plan for a sample the one for a stack of such samples along a new first axis;
    /// `inputs` are those of the stack. Says whether that can be done; the plan is left alone if
    /// not. Called only where the traits say `stacks`.
    fn stack(_plan: &mut Self::Plan, _inputs: &[&Desc]) -> bool {
        true
    }

    /// What an output of all frames of a sequence is, if by their own plans the frames would
    /// become these (at least one). The inputs are those of the first frame. `run` then gets
    /// outputs of that description.
    fn fit(_plans: &[Self::Plan], _inputs: &[&Desc], frames: &[Desc]) -> Result<Desc> {
        frames::uniform(frames)
    }
}

/// One operator on one sample, where descriptions alone don't say what it makes: that takes the
/// data (an encoded image, a window that is an input), its strides or its origin, or the result is
/// the input's own memory. So planning and running are one step.
pub trait DirectKernel: Send + Sync + 'static {
    type Args: FromArgs;
    const TRAITS: Traits = Traits::DEFAULT;

    /// Inputs may be strided.
    fn run(args: &Self::Args, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples>;

    /// Runs once on the stack of all samples, and returns the result of the first, which the
    /// others follow. `None` when these samples have to be taken one by one. Called only where the
    /// traits say `stacks`.
    fn run_stacked(_args: &Self::Args, _batch: &UniformBatch<'_>) -> Option<Sample> {
        None
    }

    /// Bytes of the results, where they can be much larger than the inputs.
    fn result_bytes(_args: &Self::Args, _inputs: &[Sample]) -> usize {
        0
    }
}

/// Allocates an output, by its position.
pub type Allocate<'a> = dyn Fn(usize, Desc) -> Result<OutputBuffer> + 'a;

/// What a kernel says about itself.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Costs about as much as touching the bytes, so that small work is not worth a thread.
    pub cheap: bool,
    /// The outputs' shapes depend on the arguments, not on the inputs alone.
    pub shaped_by_args: bool,
    /// Outputs mostly have one shape, even where the inputs' shapes differ.
    pub uniform_outputs: bool,
    /// On samples stacked along a new first axis, it makes the stack of their results.
    pub stacks: bool,
    /// Takes inputs as they lie in memory. For other kernels, strided ones are copied first.
    pub strided: bool,
    /// The result is the input's memory, so that it does not matter how large it is.
    pub view: bool,
    /// What a frame axis of arguments and inputs means.
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
