//! Kernels as the engine sees them, and the entries of operators' kernels.
//!
//! The engine runs a [`SampleKernel`] sample by sample and a [`BatchKernel`] on the whole batch.
//! The two adapters here turn a [`Kernel`] and a [`DirectKernel`] into a `SampleKernel`. The
//! readers' `Fetch` implements it directly, because it holds state: the data set that it reads
//! from.

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::kernels::Result;
use crate::kernels::contract::args::{Arg, ArgReader, FromArgs};
use crate::kernels::contract::frames::{Frames, Sequence};
use crate::kernels::contract::kernel::{
    Allocate, DirectKernel, Kernel, Outputs, Samples, Traits, descs,
};
use crate::kernels::contract::output::{Output, OutputBuffer};
use crate::kernels::contract::stacked_runs;
use crate::kernels::contract::uniform::{Placement, UniformBatch};
use crate::value::{Desc, Origin, Sample};

/// A sample's plan, saved by one attempt for the next one.
pub type SavedPlan = Box<dyn Any + Send>;

/// Outcome of running a sample with a limit on the size of its results.
pub enum Attempt {
    Done(Samples),
    /// The results would be too large; nothing was run.
    TooLarge(SavedPlan),
}

/// Outcome of running samples with the same description in one go.
pub enum UniformAttempt {
    /// The first result, which the others follow in memory.
    Done(Sample),
    /// They must be processed one by one. Also returned for failures, since each sample can then
    /// fail on its own.
    OneByOne,
    /// The results would be too large; nothing was run. Holds the plan of the first sample.
    TooLarge(SavedPlan),
}

/// A kernel as the engine sees it.
pub trait SampleKernel: Send + Sync {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples>;

    /// Like `run`, if the results have at most `limit` bytes, where that is known in advance.
    fn run_if_small(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
        _limit: usize,
    ) -> Result<Attempt> {
        self.run(args, inputs, allocate).map(Attempt::Done)
    }

    /// Like `run`, with a plan that an earlier attempt on the same sample has saved.
    fn run_saved(
        &self,
        _plan: SavedPlan,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples> {
        self.run(args, inputs, allocate)
    }

    /// Runs samples whose inputs have the same description, into one block.
    fn run_uniform(&self, batch: &mut UniformBatch<'_>) -> UniformAttempt {
        run_one_by_one(self, batch).map_or(UniformAttempt::OneByOne, UniformAttempt::Done)
    }

    fn traits(&self) -> Traits {
        Traits::DEFAULT
    }

    /// Where a sample of a kernel without inputs comes from, usually a file name.
    fn origin(&self, _sample: usize) -> Option<Origin> {
        None
    }
}

/// Runs samples that may or may not be written to their place in the block. Returns the first
/// result if the others follow it in memory.
fn run_one_by_one<K: SampleKernel + ?Sized>(
    kernel: &K,
    batch: &mut UniformBatch<'_>,
) -> Option<Sample> {
    let first = kernel.run(&batch.reader(0), batch.data(), batch.allocate).ok()?;
    let [first] = &first[..] else { return None };
    let bytes = first.desc.bytes();
    let follows = |sample: &Sample, index: usize| {
        sample.is_contiguous()
            && sample.shares_buffer(first)
            && sample.offset() == first.offset() + index * bytes
            && sample.desc == first.desc
    };
    if kernel.traits().view && batch.placements[0] == Placement::Stacked && !batch.args_vary() {
        let input = &batch.data()[0];
        let same = input.shares_buffer(first)
            && input.offset() == first.offset()
            && input.desc.bytes() == bytes;
        return same.then(|| first.clone());
    }
    for index in 1..batch.count {
        batch.load(index)?;
        let made = kernel.run(&batch.reader(index), batch.data(), batch.allocate).ok()?;
        if !made.first().is_some_and(|sample| follows(sample, index)) {
            return None;
        }
    }
    Some(first.clone())
}

/// A kernel that needs its whole batch at once. It has no plan: the result for one sample depends
/// on the others, and the kernel runs once per call. `inputs` has a row of samples for each input;
/// the results of all outputs are returned one after the other.
pub trait BatchKernel: Send + Sync {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples>;

    fn is_cheap(&self) -> bool {
        true
    }

    /// Whether the result would be a view of these inputs.
    fn is_view_of(&self, _inputs: &[&[Sample]]) -> bool {
        false
    }

    /// Whether it has no side effects, so that it can be skipped.
    fn is_pure(&self) -> bool {
        true
    }

    /// Whether sample i of its results is made from sample i of its inputs.
    fn keeps_order(&self) -> bool {
        false
    }
}

#[derive(Clone)]
pub enum Work {
    Sample(&'static dyn SampleKernel),
    /// Like `Sample`, for a kernel with state: where to read from.
    Source(Arc<dyn SampleKernel>),
    Batch(Arc<dyn BatchKernel>),
}

impl Work {
    /// The kernel, if it runs sample by sample.
    pub fn sample_kernel(&self) -> Option<&dyn SampleKernel> {
        match self {
            Work::Sample(kernel) => Some(*kernel),
            Work::Source(kernel) => Some(&**kernel),
            Work::Batch(_) => None,
        }
    }

    pub fn is_whole_batch(&self) -> bool {
        matches!(self, Work::Batch(_))
    }

    /// Whether sample i of its results is made from sample i of its inputs.
    pub fn keeps_order(&self) -> bool {
        match self {
            Work::Sample(_) | Work::Source(_) => true,
            Work::Batch(kernel) => kernel.keeps_order(),
        }
    }

    pub fn traits(&self) -> Traits {
        match self {
            Work::Sample(kernel) => kernel.traits(),
            Work::Source(kernel) => kernel.traits(),
            Work::Batch(kernel) => Traits { cheap: kernel.is_cheap(), ..Traits::DEFAULT },
        }
    }

    /// Whether it may run before it is asked for: it has no side effects, and its results depend on
    /// nothing but inputs and arguments.
    pub fn can_run_early(&self) -> bool {
        self.is_pure() && !self.traits().reads_files
    }

    pub fn is_pure(&self) -> bool {
        match self {
            Work::Sample(_) | Work::Source(_) => true,
            Work::Batch(kernel) => kernel.is_pure(),
        }
    }
}

/// An entry of a family's table: an operator's kernel for each device that has one.
pub struct Entry {
    pub name: &'static str,
    /// Names of the arguments, in the order in which calls pass them.
    pub args: &'static [&'static str],
    /// The kernel for the host. Kernels for other devices would be optional fields here.
    pub cpu: fn() -> Work,
}

impl Entry {
    pub const fn new<K: Kernel>(name: &'static str) -> Entry {
        let cpu = || Work::Sample(&Planned::<K>(PhantomData));
        Entry { name, args: K::Args::NAMES, cpu }
    }

    pub const fn direct<K: DirectKernel>(name: &'static str) -> Entry {
        let cpu = || Work::Sample(&Direct::<K>(PhantomData));
        Entry { name, args: K::Args::NAMES, cpu }
    }
}

struct Planned<K>(PhantomData<K>);

/// The plan for a sample, or the plans for its frames.
enum Plans<P> {
    Sample(P),
    Frames { plans: Vec<P>, divided: usize },
}

struct SamplePlan<P> {
    plans: Plans<P>,
    outputs: Outputs,
}

impl<P> SamplePlan<P> {
    fn new<K: Kernel<Plan = P>>(args: &ArgReader<'_>, inputs: &[Sample]) -> Result<SamplePlan<P>> {
        if let Some(sequence) = Sequence::of(K::TRAITS.frames, K::Args::NAMES, args, inputs)? {
            let (plans, outputs) = sequence.plan::<K>()?;
            let plans = Plans::Frames { plans, divided: sequence.divided };
            return Ok(SamplePlan { plans, outputs });
        }
        let (plan, outputs) = K::plan(K::Args::from_args(args)?, &descs(inputs))?;
        Ok(SamplePlan { plans: Plans::Sample(plan), outputs })
    }

    fn bytes(&self) -> usize {
        self.outputs.iter().map(Desc::bytes).sum()
    }

    fn run<K: Kernel<Plan = P>>(
        self,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples> {
        let buffers = self.outputs.into_iter().enumerate();
        let mut buffers: SmallVec<[OutputBuffer; 2]> =
            buffers.map(|(index, desc)| allocate(index, desc)).collect::<Result<_>>()?;
        let mut outputs: SmallVec<[Output<'_>; 2]> =
            buffers.iter_mut().map(OutputBuffer::output).collect();
        match self.plans {
            Plans::Sample(plan) => K::run(&plan, inputs, &mut outputs)?,
            Plans::Frames { plans, divided } => {
                Sequence::run::<K>(&plans, inputs, divided, &mut outputs)?;
            }
        }
        drop(outputs);
        buffers.into_iter().map(OutputBuffer::into_sample).collect()
    }
}

impl<K: Kernel> SampleKernel for Planned<K> {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples> {
        let inputs = contiguous::<K>(inputs)?;
        SamplePlan::new::<K>(args, &inputs)?.run::<K>(&inputs, allocate)
    }

    fn run_if_small(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
        limit: usize,
    ) -> Result<Attempt> {
        let plan = SamplePlan::new::<K>(args, inputs)?;
        if plan.bytes() > limit {
            return Ok(Attempt::TooLarge(Box::new(plan)));
        }
        plan.run::<K>(&contiguous::<K>(inputs)?, allocate).map(Attempt::Done)
    }

    fn run_saved(
        &self,
        plan: SavedPlan,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples> {
        match plan.downcast::<SamplePlan<K::Plan>>() {
            Ok(plan) => plan.run::<K>(&contiguous::<K>(inputs)?, allocate),
            Err(_) => self.run(args, inputs, allocate),
        }
    }

    fn run_uniform(&self, batch: &mut UniformBatch<'_>) -> UniformAttempt {
        run_uniform::<K>(batch).unwrap_or(UniformAttempt::OneByOne)
    }

    fn traits(&self) -> Traits {
        K::TRAITS
    }
}

/// `None` if the samples must be processed one by one.
fn run_uniform<K: Kernel>(batch: &mut UniformBatch<'_>) -> Option<UniformAttempt> {
    let reader = batch.reader(0);
    let framed = Sequence::of(K::TRAITS.frames, K::Args::NAMES, &reader, batch.data()).ok()?;
    framed.is_none().then_some(())?;
    let args = K::Args::from_args(&reader).ok()?;
    let (mut plan, outputs) = K::plan(args, &descs(batch.data())).ok()?;
    let [desc] = &outputs[..] else { return None };
    if desc.bytes() > batch.limit {
        let plans = Plans::Sample(plan);
        return Some(UniformAttempt::TooLarge(Box::new(SamplePlan { plans, outputs })));
    }
    let (each, mut stack) = batch.allocate_stack(desc.clone())?;
    if K::TRAITS.stacks
        && let Some(inputs) = batch.stacked()
        && K::stack(&mut plan, &descs(&inputs))
    {
        stacked_runs::begin();
        K::run(&plan, &inputs, &mut [stack.output()]).ok()?;
        stacked_runs::finish();
        return Some(UniformAttempt::Done(stack.into_sample().ok()?.part(each, 0).ok()?));
    }
    let args_vary = batch.args_vary();
    for index in 0..batch.count {
        if index > 0 {
            batch.load(index)?;
            if args_vary {
                let args = K::Args::from_args(&batch.reader(index)).ok()?;
                let (own, again) = K::plan(args, &descs(batch.data())).ok()?;
                (again == outputs).then_some(())?;
                plan = own;
            }
        }
        K::run(&plan, batch.data(), &mut [stack.output().part(index, &each)]).ok()?;
    }
    Some(UniformAttempt::Done(stack.into_sample().ok()?.part(each, 0).ok()?))
}

/// Copies strided inputs for kernels that need contiguous ones.
fn contiguous<K: Kernel>(inputs: &[Sample]) -> Result<Cow<'_, [Sample]>> {
    if K::TRAITS.strided || inputs.iter().all(Sample::is_contiguous) {
        return Ok(Cow::Borrowed(inputs));
    }
    inputs.iter().map(Sample::compact).collect()
}

struct Direct<K>(PhantomData<K>);

impl<K: DirectKernel> SampleKernel for Direct<K> {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples> {
        K::run(&K::Args::from_args(args)?, inputs, allocate)
    }

    fn run_if_small(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
        limit: usize,
    ) -> Result<Attempt> {
        let args = K::Args::from_args(args)?;
        if K::result_bytes(&args, inputs) > limit {
            return Ok(Attempt::TooLarge(Box::new(())));
        }
        K::run(&args, inputs, allocate).map(Attempt::Done)
    }

    fn run_uniform(&self, batch: &mut UniformBatch<'_>) -> UniformAttempt {
        let Ok(args) = K::Args::from_args(&batch.reader(0)) else {
            return UniformAttempt::OneByOne;
        };
        if K::result_bytes(&args, batch.data()) > batch.limit {
            return UniformAttempt::TooLarge(Box::new(()));
        }
        if K::TRAITS.stacks
            && let Some(first) = K::run_stacked(&args, batch)
        {
            // Counted only on success: returning `None` may mean that the kernel does not support
            // this stack.
            stacked_runs::begin();
            stacked_runs::finish();
            return UniformAttempt::Done(first);
        }
        run_one_by_one(self, batch).map_or(UniformAttempt::OneByOne, UniformAttempt::Done)
    }

    /// A direct kernel gets its inputs unchanged, including sequences and strided ones.
    fn traits(&self) -> Traits {
        Traits { strided: true, frames: Frames::Whole, ..K::TRAITS }
    }
}
