//! The order of frames in a sample, and of samples in a batch.

use std::sync::Arc;

use smallvec::smallvec;

use super::{
    Allocate, Arg, BatchKernel, DirectKernel, Entry, Family, FromArg, OutputBuffer, Result,
    Samples, Traits, Work, args,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::value::Problem;
use crate::value::{Cause, Desc, Sample, with_room};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Sequence::KINDS] };

const TABLE: &[Entry] = &[
    Entry::direct::<ElementExtract>("element_extract"),
    Entry::direct::<SequenceRearrange>("sequence_rearrange"),
    Entry {
        name: "permute_batch",
        args: &["indices", "batch_size"],
        cpu: || Work::Batch(Arc::new(PermuteBatch)),
    },
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Sequence {
            Position { index: i64, count: usize, of: &'static str },
            NoFrames,
            EmptyOrder,
            Entries { given: usize, samples: usize },
        }
    }
}

/// Checks that an index is below `count`.
fn position(name: &'static str, index: i64, count: usize, of: &'static str) -> Result<usize> {
    match usize::try_from(index) {
        Ok(index) if index < count => Ok(index),
        _ => Err(argument(name, problem::Sequence::Position { index, count, of })),
    }
}

fn frames(desc: &Desc) -> Result<usize> {
    desc.shape.first().copied().ok_or_else(|| unfit(0, problem::Sequence::NoFrames))
}

/// Selected frames, each as a separate output.
struct ElementExtract;

args! {
    struct ElementExtractArgs { element_map: Vec<i64> }
}

impl DirectKernel for ElementExtract {
    type Args = ElementExtractArgs;
    const TRAITS: Traits = Traits { view: true, ..Traits::DEFAULT };

    fn run(args: &ElementExtractArgs, inputs: &[Sample], _: &Allocate<'_>) -> Result<Samples> {
        let count = frames(&inputs[0].desc)?;
        let frame = |&index: &i64| inputs[0].row(position("element_map", index, count, "frames")?);
        args.element_map.iter().map(frame).collect()
    }
}

/// Frames in the given order, which may omit some and repeat others.
struct SequenceRearrange;

args! {
    struct SequenceRearrangeArgs { new_order: Vec<i64> }
}

impl DirectKernel for SequenceRearrange {
    type Args = SequenceRearrangeArgs;

    fn run(
        args: &SequenceRearrangeArgs,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples> {
        let sample = inputs[0].compact()?;
        let count = frames(&sample.desc)?;
        let mut order: Vec<usize> = with_room(args.new_order.len())?;
        for &index in &args.new_order {
            order.push(position("new_order", index, count, "frames")?);
        }
        let Some(&first) = order.first() else {
            return Err(argument("new_order", problem::Sequence::EmptyOrder));
        };
        let mut desc = sample.desc.clone();
        desc.shape[0] = order.len();
        let bytes = sample.desc.bytes() / count;
        if order.iter().enumerate().all(|(i, &frame)| frame == first + i) {
            // They are already consecutive.
            return Ok(smallvec![sample.part(desc, first * bytes)?]);
        }
        if crate::value::extent(&desc.shape).is_none() {
            return Err(Cause::Memory { bytes: bytes.saturating_mul(order.len()) });
        }
        let mut out = allocate(0, desc)?;
        if bytes > 0 {
            let src = sample.elements_as_bytes();
            out.output().store(|all, stores| {
                for (&frame, dst) in order.iter().zip(all.chunks_exact_mut(bytes)) {
                    stores.copy(dst, &src[frame * bytes..][..bytes]);
                }
            });
        }
        Ok(smallvec![out.into_sample()?])
    }

    /// Frames may be repeated, so the result can be larger than the input.
    fn result_bytes(args: &SequenceRearrangeArgs, inputs: &[Sample]) -> usize {
        let frame = inputs[0].desc.bytes() / frames(&inputs[0].desc).unwrap_or(1).max(1);
        frame.saturating_mul(args.new_order.len())
    }
}

/// Samples in another order, without a copy.
struct PermuteBatch;

impl BatchKernel for PermuteBatch {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        _: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let samples = inputs[0];
        let count = match args.get(1) {
            Some(Arg::Int(count)) => usize::try_from(*count).unwrap_or(0),
            _ => 1,
        };
        let order = order(args.first().unwrap_or(&Arg::Absent), inputs, count)?;
        let pick = |&index: &i64| {
            let index = position("indices", index, count, "samples")?;
            // A single tensor is broadcast to the batch.
            let place = if samples.len() == 1 { 0 } else { index };
            samples.get(place).cloned().ok_or(Cause::Internal("a batch is too small".into()))
        };
        order.iter().map(pick).collect()
    }
}

/// The index for each sample of the result.
fn order(arg: &Arg, inputs: &[&[Sample]], count: usize) -> Result<Vec<i64>> {
    let wrong = |problem: Problem| Cause::Argument { name: "indices", problem };
    let given = match arg {
        Arg::Input(input) => {
            let mut all = Vec::new();
            for sample in inputs.get(*input).copied().unwrap_or_default() {
                let own = Vec::<i64>::from_sample(&sample.compact()?).map_err(wrong)?;
                if own.len() != 1 && inputs[*input].len() != 1 {
                    let shape = sample.desc.shape.to_vec();
                    return Err(wrong(Argument::NotScalar { shape }.into()));
                }
                all.extend(own);
            }
            all
        }
        constant => Vec::<i64>::from_constant(constant).map_err(wrong)?,
    };
    match given.len() {
        len if len == count => Ok(given),
        1 => Ok(given.repeat(count)),
        given => Err(wrong(problem::Sequence::Entries { given, samples: count }.into())),
    }
}
