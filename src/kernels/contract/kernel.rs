//! What a kernel is.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::kernels::Result;
use crate::kernels::contract::alike::{Alike, Lie};
use crate::kernels::contract::args::{Arg, ArgReader, FromArgs};
use crate::kernels::contract::frames::{self, Frames, Sequence};
use crate::kernels::contract::space::Space;
use crate::value::{Desc, Origin, Sample};

/// One operator on one sample. Pure: no Python, no globals, no threads of its own.
pub trait Kernel: Send + Sync + 'static {
    /// This sample's arguments, already resolved and checked by the definition.
    type Args: FromArgs;
    /// Costs about as much as touching the bytes, so that small work is not worth a thread.
    const CHEAP: bool = true;
    /// The output's shape depends on the arguments, not on the inputs alone.
    const SHAPED_BY_ARGS: bool = true;
    /// Outputs are mostly alike, however the inputs differ.
    const EVENS_OUT: bool = false;
    /// On samples stacked along a new first axis, `run` makes the stack of the results, if it gets
    /// the arguments that [`Kernel::for_stack`] makes of those of the samples.
    const STACKS: bool = false;
    /// What a frame axis of its arguments means.
    const FRAMES: Frames = Frames::Arguments;
    /// What `run` will write. The engine allocates from it, so it must be exact.
    fn output(args: &Self::Args, inputs: &[&Desc]) -> Result<Desc>;
    /// Writes all of `out`. Inputs are contiguous.
    fn run(args: &Self::Args, inputs: &[Sample], out: &mut Space) -> Result<()>;
    /// Makes the arguments of samples of `ndim` axes (the first input) those for a stack of them:
    /// axes have other numbers there. Says whether that can be done; `args` are left alone if not.
    fn for_stack(_args: &mut Self::Args, _ndim: usize) -> bool {
        true
    }
    /// What all frames of a sequence become, if by their own arguments they would become these
    /// (at least one). The inputs are those of the first frame. `run` then gets a space of that.
    fn fit(_args: &[Self::Args], _inputs: &[&Desc], frames: &[Desc]) -> Result<Desc> {
        frames::alike(frames)
    }
}

/// A kernel with several outputs.
pub trait ManyKernel: Send + Sync + 'static {
    type Args: FromArgs;
    const CHEAP: bool = true;
    const SHAPED_BY_ARGS: bool = true;
    const EVENS_OUT: bool = false;
    const FRAMES: Frames = Frames::Arguments;
    fn outputs(args: &Self::Args, inputs: &[&Desc]) -> Result<SmallVec<[Desc; 2]>>;
    fn run(args: &Self::Args, inputs: &[Sample], outs: &mut [Space]) -> Result<()>;
}

/// Gives room for an output, by its position.
pub type Allocate<'a> = dyn Fn(usize, Desc) -> Result<Space> + 'a;

/// A kernel as the engine sees it.
pub trait SampleKernel: Send + Sync {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>>;

    /// Runs on samples whose inputs are described alike, into one block, and returns the first
    /// result, which the others follow. `None` says that they have to be taken one by one; it has
    /// no say about faults, since every sample can then fail on its own.
    fn run_alike(&self, alike: &mut Alike<'_>) -> Option<Sample> {
        if let Some(first) = self.run_stacked(alike) {
            return Some(first);
        }
        let first = self.run(&alike.reader(0), alike.data(), alike.allocate).ok()?;
        let [first] = &first[..] else { return None };
        let bytes = first.desc.bytes();
        let follow = |sample: &Sample, index: usize| {
            sample.is_contiguous()
                && sample.shares_buffer(first)
                && sample.offset() == first.offset() + index * bytes
                && sample.desc == first.desc
        };
        if self.is_view() && alike.lie[0] == Lie::Packed && !alike.args_vary() {
            let input = &alike.data()[0];
            let same = input.shares_buffer(first)
                && input.offset() == first.offset()
                && input.desc.bytes() == bytes;
            return same.then(|| first.clone());
        }
        for index in 1..alike.count {
            alike.load(index)?;
            let made = self.run(&alike.reader(index), alike.data(), alike.allocate).ok()?;
            if !made.first().is_some_and(|sample| follow(sample, index)) {
                return None;
            }
        }
        Some(first.clone())
    }

    /// The same by work on the stack of the samples, where the kernel can do that.
    fn run_stacked(&self, _alike: &Alike<'_>) -> Option<Sample> {
        None
    }

    fn is_cheap(&self) -> bool {
        true
    }

    fn is_shaped_by_args(&self) -> bool {
        true
    }

    /// Bytes of what it would make, where that is known beforehand.
    fn result_bytes(&self, _args: &ArgReader<'_>, _inputs: &[Sample]) -> usize {
        0
    }

    /// Whether it leaves the elements alone, so that it does not matter how many there are.
    fn is_view(&self) -> bool {
        false
    }

    /// Whether results can be expected to be alike where the inputs are not.
    fn evens_out(&self) -> bool {
        false
    }

    /// Where a sample comes from that is made of nothing in the engine, usually a file name.
    fn origin(&self, _sample: usize) -> Option<Origin> {
        None
    }
}

/// A kernel that needs its whole batch at once. `inputs` has a row of samples for each input; the
/// results of all outputs follow one another.
pub trait BatchKernel: Send + Sync {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<Space>,
    ) -> Result<SmallVec<[Sample; 1]>>;

    fn is_cheap(&self) -> bool {
        true
    }

    /// Whether these inputs, of any size, would be handed on as they lie in memory.
    fn is_view_of(&self, _inputs: &[&[Sample]]) -> bool {
        false
    }

    /// Whether nobody notices when it does not run.
    fn is_pure(&self) -> bool {
        true
    }
}

#[derive(Clone)]
pub enum Work {
    Sample(&'static dyn SampleKernel),
    /// As `Sample`, for a kernel that knows more than its arguments: where to read from.
    Source(Arc<dyn SampleKernel>),
    Batch(Arc<dyn BatchKernel>),
}

impl Work {
    /// The kernel of work that is done sample by sample.
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

    pub fn is_cheap(&self) -> bool {
        match self {
            Work::Sample(kernel) => kernel.is_cheap(),
            Work::Source(kernel) => kernel.is_cheap(),
            Work::Batch(kernel) => kernel.is_cheap(),
        }
    }

    /// Whether the shape of the result depends on the arguments, not on the inputs alone.
    pub fn is_shaped_by_args(&self) -> bool {
        self.sample_kernel().is_none_or(|kernel| kernel.is_shaped_by_args())
    }

    /// Whether results can be expected to be alike where the inputs are not.
    pub fn evens_out(&self) -> bool {
        self.sample_kernel().is_some_and(|kernel| kernel.evens_out())
    }

    pub fn is_pure(&self) -> bool {
        match self {
            Work::Sample(_) | Work::Source(_) => true,
            Work::Batch(kernel) => kernel.is_pure(),
        }
    }
}

/// A row of a family's table.
pub struct Entry {
    pub name: &'static str,
    /// Names of the arguments, in the order in which calls pass them.
    pub args: &'static [&'static str],
    pub make: fn() -> Work,
}

struct One<K>(PhantomData<K>);
struct Many<K>(PhantomData<K>);

impl Entry {
    pub const fn one<K: Kernel>(name: &'static str) -> Entry {
        let make = || Work::Sample(&One::<K>(PhantomData));
        Entry { name, args: K::Args::NAMES, make }
    }

    pub const fn many<K: ManyKernel>(name: &'static str) -> Entry {
        let make = || Work::Sample(&Many::<K>(PhantomData));
        Entry { name, args: K::Args::NAMES, make }
    }
}

impl<K: Kernel> SampleKernel for One<K> {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let inputs = compact(inputs)?;
        if let Some(sequence) = Sequence::of(K::FRAMES, K::Args::NAMES, args, &inputs)? {
            let outputs = sequence.outputs(single::<K>, K::fit)?;
            return sequence.run(outputs, allocate, |args, inputs, outs: &mut [Space]| {
                K::run(args, inputs, &mut outs[0])
            });
        }
        let args = K::Args::from_args(args)?;
        let mut out = allocate(0, K::output(&args, &descs(&inputs))?)?;
        K::run(&args, &inputs, &mut out)?;
        Ok(smallvec![out.into_sample()?])
    }

    fn run_alike(&self, alike: &mut Alike<'_>) -> Option<Sample> {
        let reader = alike.reader(0);
        let framed = Sequence::of(K::FRAMES, K::Args::NAMES, &reader, alike.data()).ok()?;
        framed.is_none().then_some(())?;
        let mut args = K::Args::from_args(&reader).ok()?;
        let desc = K::output(&args, &descs(alike.data())).ok()?;
        if K::STACKS
            && let Some(inputs) = alike.stacked()
            && K::for_stack(&mut args, alike.data()[0].desc.ndim())
        {
            let (first, mut out) = alike.room(desc)?;
            K::run(&args, &inputs, &mut out).ok()?;
            return Some(first);
        }
        let mut out = (alike.allocate)(0, desc.clone()).ok()?;
        let bytes = desc.bytes();
        if out.offset() != 0 || out.block_bytes() < bytes * alike.count {
            return None;
        }
        for index in 0..alike.count {
            if index > 0 {
                alike.load(index)?;
                // SAFETY: the block is for the samples of this call, which are made nowhere else.
                unsafe { out.move_to(index * bytes) };
                if alike.args_vary() {
                    args = K::Args::from_args(&alike.reader(index)).ok()?;
                    let again = K::output(&args, &descs(alike.data())).ok()?;
                    (again == desc).then_some(())?;
                }
            }
            K::run(&args, alike.data(), &mut out).ok()?;
        }
        // SAFETY: as above.
        unsafe { out.move_to(0) };
        out.into_sample().ok()
    }

    fn is_cheap(&self) -> bool {
        K::CHEAP
    }

    fn is_shaped_by_args(&self) -> bool {
        K::SHAPED_BY_ARGS
    }

    fn result_bytes(&self, args: &ArgReader<'_>, inputs: &[Sample]) -> usize {
        if let Ok(Some(sequence)) = Sequence::of(K::FRAMES, K::Args::NAMES, args, inputs) {
            return bytes(&sequence.outputs(single::<K>, K::fit));
        }
        let output = K::Args::from_args(args).and_then(|args| K::output(&args, &descs(inputs)));
        output.map_or(0, |desc| desc.bytes())
    }

    fn evens_out(&self) -> bool {
        K::EVENS_OUT
    }
}

impl<K: ManyKernel> SampleKernel for Many<K> {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let inputs = compact(inputs)?;
        if let Some(sequence) = Sequence::of(K::FRAMES, K::Args::NAMES, args, &inputs)? {
            let outputs = sequence.outputs(K::outputs, |_, _, frames| frames::alike(frames))?;
            return sequence.run(outputs, allocate, K::run);
        }
        let args = K::Args::from_args(args)?;
        let outputs = K::outputs(&args, &descs(&inputs))?;
        let spaces = outputs.into_iter().enumerate().map(|(index, desc)| allocate(index, desc));
        let mut outs: SmallVec<[Space; 2]> = spaces.collect::<Result<_>>()?;
        K::run(&args, &inputs, &mut outs)?;
        outs.into_iter().map(Space::into_sample).collect()
    }

    fn is_cheap(&self) -> bool {
        K::CHEAP
    }

    fn is_shaped_by_args(&self) -> bool {
        K::SHAPED_BY_ARGS
    }

    fn result_bytes(&self, args: &ArgReader<'_>, inputs: &[Sample]) -> usize {
        if let Ok(Some(sequence)) = Sequence::of(K::FRAMES, K::Args::NAMES, args, inputs) {
            return bytes(&sequence.outputs(K::outputs, |_, _, frames| frames::alike(frames)));
        }
        let args = K::Args::from_args(args);
        bytes(&args.and_then(|args| K::outputs(&args, &descs(inputs))))
    }

    fn evens_out(&self) -> bool {
        K::EVENS_OUT
    }
}

fn single<K: Kernel>(args: &K::Args, inputs: &[&Desc]) -> Result<SmallVec<[Desc; 2]>> {
    Ok(smallvec![K::output(args, inputs)?])
}

fn bytes(outputs: &Result<SmallVec<[Desc; 2]>>) -> usize {
    outputs.as_ref().map_or(0, |descs| descs.iter().map(Desc::bytes).sum())
}

/// Inputs that others own may be strided; kernels need not know.
fn compact(inputs: &[Sample]) -> Result<Cow<'_, [Sample]>> {
    if inputs.iter().all(Sample::is_contiguous) {
        return Ok(Cow::Borrowed(inputs));
    }
    inputs.iter().map(Sample::compact).collect()
}

pub fn descs(inputs: &[Sample]) -> SmallVec<[&Desc; 2]> {
    inputs.iter().map(|sample| &sample.desc).collect()
}
