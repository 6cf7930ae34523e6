//! Kernels for arrays of any kind: copies, subscripts, stacks, properties.

pub(super) mod cast;
pub(super) mod lookup;

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{
    Allocate, Arg, ArgReader, BatchKernel, DirectKernel, Entry, Family, FromArg, FromArgs, Kernel,
    Output, OutputBuffer, Outputs, Result, Samples, Traits, Work, args, one,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::value::{
    Cause, DType, Desc, Device, Origin, Sample, Shape, Strides, copy_strided, with_element,
};

pub const FAMILY: Family =
    Family { kernels: &[TABLE, cast::TABLE, lookup::TABLE], problems: &[problem::Generic::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<CastLike>("cast_like"),
    Entry::new::<Copy>("copy"),
    Entry::direct::<GetProperty>("get_property"),
    Entry::direct::<Same>("same"),
    Entry::direct::<Move>("move"),
    Entry::direct::<Subscript>("subscript"),
    Entry { name: "stack", args: &["pad", "fill_value"], cpu: || Work::Batch(Arc::new(Stack)) },
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Generic {
            ZeroStep,
            EmptyBatch,
        }
    }
}

/// The values of the first input, converted to the type of the second.
struct CastLike;

impl Kernel for CastLike {
    type Args = ();
    type Plan = ();

    fn plan((): (), inputs: &[&Desc]) -> Result<((), Outputs)> {
        Ok(((), one(Desc { dtype: inputs[1].dtype, ..inputs[0].clone() })))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        crate::kernels::generic::cast::cast(&inputs[0], out)
    }
}

/// A property of a sample other than its data, as text bytes.
struct GetProperty;

args! {
    struct GetPropertyArgs { key: String }
}

impl DirectKernel for GetProperty {
    type Args = GetPropertyArgs;
    const TRAITS: Traits = Traits { view: true, ..Traits::DEFAULT };

    fn run(args: &GetPropertyArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let text = match args.key.as_str() {
            "layout" => inputs[0].desc.layout.letters(),
            "source_info" => inputs[0].source.as_ref().map_or("", Origin::name).as_bytes(),
            key => {
                let choices = "layout, source_info";
                let problem = Argument::OneOf { choices, given: format!("{key:?}") };
                return Err(argument("key", problem));
            }
        };
        let mut out = allocate(0, Desc::new(DType::U8, &[text.len()]))?;
        out.bytes().copy_from_slice(text);
        Ok(smallvec![out.into_sample()?])
    }
}

/// A copy of the data.
pub struct Copy;

impl Kernel for Copy {
    type Args = ();
    type Plan = ();
    const TRAITS: Traits = Traits { shaped_by_args: false, stacks: true, ..Traits::DEFAULT };

    fn plan((): (), inputs: &[&Desc]) -> Result<((), Outputs)> {
        Ok(((), one(inputs[0].clone())))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        out.store(|bytes, stores| stores.copy(bytes, inputs[0].elements_as_bytes()));
        Ok(())
    }
}

/// The same data without a copy: selects samples, or changes their layout.
struct Same;

impl DirectKernel for Same {
    type Args = ();
    const TRAITS: Traits = Traits { view: true, ..Traits::DEFAULT };

    fn run((): &(), inputs: &[Sample], _: &Allocate<'_>) -> Result<Samples> {
        Ok(smallvec![inputs[0].clone()])
    }
}

/// The data on another device.
struct Move;

args! {
    struct MoveArgs { force: bool }
}

impl DirectKernel for Move {
    type Args = MoveArgs;

    fn run(args: &MoveArgs, inputs: &[Sample], _: &Allocate<'_>) -> Result<Samples> {
        // All current devices share the host's memory, so the target device does not matter.
        Ok(smallvec![Device::Cpu.accelerator().copy(&inputs[0], args.force)?])
    }
}

/// Python indexing.
struct Subscript;

/// What to do with an axis.
enum Axis {
    Index(i64),
    Range {
        start: Option<i64>,
        stop: Option<i64>,
        step: Option<i64>,
    },
    Whole,
    /// A new axis that the input doesn't have.
    New,
}

struct SubscriptArgs {
    axes: SmallVec<[Axis; 4]>,
}

/// The first argument has a letter for each subscripted axis; the other arguments follow in order:
/// `i` takes an index, `r` a start, a stop and a step, `:` nothing. The letter `n` is a new axis.
impl FromArgs for SubscriptArgs {
    const NAMES: &'static [&'static str] = &["axes"];

    fn from_args(reader: &ArgReader<'_>) -> Result<SubscriptArgs> {
        let letters: String = reader.get(0, "axes")?;
        let mut position = 0;
        let mut next = || {
            position += 1;
            position
        };
        let mut axes = SmallVec::new();
        for letter in letters.bytes() {
            axes.push(match letter {
                b'n' => Axis::New,
                b'i' => Axis::Index(reader.get(next(), "index")?),
                b'r' => Axis::Range {
                    start: reader.get(next(), "start")?,
                    stop: reader.get(next(), "stop")?,
                    step: reader.get(next(), "step")?,
                },
                _ => Axis::Whole,
            });
        }
        Ok(SubscriptArgs { axes })
    }
}

impl DirectKernel for Subscript {
    type Args = SubscriptArgs;

    fn run(args: &SubscriptArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let sample = &inputs[0];
        let strides = sample.strides();
        let mut offset = 0_isize;
        let mut shape = Shape::new();
        let mut kept = Strides::new();
        let ndim = sample.desc.ndim();
        let mut axis = 0;
        for kind in args.axes.iter().chain(std::iter::repeat(&Axis::Whole)) {
            if let Axis::New = kind {
                shape.push(1);
                kept.push(0);
                continue;
            }
            if axis == ndim {
                break;
            }
            let (extent, stride) = (sample.desc.shape[axis], strides[axis]);
            axis += 1;
            match *kind {
                Axis::Index(index) => {
                    let from_start = if index < 0 { index + extent as i64 } else { index };
                    if from_start < 0 || from_start >= extent as i64 {
                        return Err(Cause::Index { axis: axis - 1, index, extent });
                    }
                    offset += from_start as isize * stride;
                }
                Axis::Range { start, stop, step } => {
                    let (first, count, step) = range(start, stop, step, extent)?;
                    offset += first as isize * stride;
                    shape.push(count);
                    kept.push(step as isize * stride);
                }
                Axis::Whole | Axis::New => {
                    shape.push(extent);
                    kept.push(stride);
                }
            }
        }
        let mut made = allocate(0, Desc { shape, ..sample.desc.clone() })?;
        let mut out = made.output();
        let (shape, size) = (&out.desc.shape, out.desc.dtype.size());
        if !shape.contains(&0) {
            // SAFETY: `range` and the index check keep every element inside the sample.
            out.store(|bytes, stores| unsafe {
                let src = sample.as_ptr().offset(offset);
                copy_strided(src, &kept, shape, size, bytes, stores);
            });
        }
        Ok(smallvec![made.into_sample()?])
    }
}

/// The elements selected by `start:stop:step`: the first, how many, and the step.
fn range(
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
    extent: usize,
) -> Result<(i64, usize, i64)> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(argument("step", problem::Generic::ZeroStep));
    }
    let extent = extent as i64;
    let (lowest, highest) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let clip = |bound: Option<i64>, default| match bound {
        None => default,
        Some(bound) if bound < 0 => bound.saturating_add(extent).max(lowest),
        Some(bound) => bound.min(highest),
    };
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let (start, stop) = (clip(start, first), clip(stop, last));
    let span = if step > 0 { stop - start } else { start - stop };
    let count = if span <= 0 { 0 } else { (span as u64 - 1) / step.unsigned_abs() + 1 };
    Ok((start, count as usize, step))
}

/// Stacks all samples of a batch along a new first axis. Samples that are already consecutive in
/// memory are not copied.
struct Stack;

impl BatchKernel for Stack {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let samples = inputs[0];
        let first = samples.first().ok_or_else(|| unfit(0, problem::Generic::EmptyBatch))?;
        let ragged = samples.iter().position(|s| s.desc.shape != first.desc.shape);
        let pad = bool::from_constant(args.first().unwrap_or(&Arg::Int(0))).unwrap_or(false);
        let fill = f64::from_constant(args.get(1).unwrap_or(&Arg::Int(0))).unwrap_or(0.0);
        if let (Some(sample), false) = (ragged, pad) {
            let shape = samples[sample].desc.shape.to_vec();
            return Err(Cause::Ragged { sample, shape, first: first.desc.shape.to_vec() });
        }
        let mut inner = first.desc.shape.clone();
        for sample in samples {
            for (most, &d) in inner.iter_mut().zip(&sample.desc.shape) {
                *most = d.max(*most);
            }
        }
        let mut shape: Shape = smallvec![samples.len()];
        shape.extend_from_slice(&inner);
        let desc = Desc { shape, ..first.desc.clone() };
        if are_in_one_block(samples) {
            // SAFETY: those after the first are samples as well, so nobody writes to them any more.
            return Ok(smallvec![unsafe { first.extended(desc) }?]);
        }
        let mut out = allocate(desc)?;
        let size = first.desc.dtype.size();
        let each = inner.iter().product::<usize>() * size;
        let is_zero = fill == 0.0;
        if ragged.is_some() && !is_zero {
            with_element!(first.desc.dtype, |T| out.elements::<T>().fill(fill.convert()));
        }
        if each > 0 {
            for (sample, dst) in samples.iter().zip(out.bytes().chunks_exact_mut(each)) {
                let sample = sample.compact()?;
                if ragged.is_some() && is_zero {
                    dst.fill(0);
                }
                place(sample.elements_as_bytes(), &sample.desc.shape, dst, &inner);
            }
        }
        Ok(smallvec![out.into_sample()?])
    }

    fn is_view_of(&self, inputs: &[&[Sample]]) -> bool {
        are_in_one_block(inputs[0])
    }
}

/// Whether samples of the same shape are consecutive in memory.
fn are_in_one_block(samples: &[Sample]) -> bool {
    let Some(first) = samples.first() else { return true };
    let bytes = first.desc.bytes();
    samples.iter().enumerate().all(|(index, sample)| {
        sample.is_contiguous()
            && sample.desc.shape == first.desc.shape
            && sample.shares_buffer(first)
            && sample.offset() == first.offset() + index * bytes
    })
}

/// Copies an array to the start of each axis of a larger one.
fn place(src: &[u8], from: &[usize], dst: &mut [u8], to: &[usize]) {
    if from == to {
        return dst.copy_from_slice(src);
    }
    let (n, m) = (from[0], to[0]);
    if n == 0 || src.is_empty() {
        return;
    }
    for (src, dst) in src.chunks_exact(src.len() / n).zip(dst.chunks_exact_mut(dst.len() / m)) {
        place(src, &from[1..], dst, &to[1..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_match_python() {
        assert_eq!(range(Some(1), Some(-1), None, 5).unwrap(), (1, 3, 1));
        assert_eq!(range(None, None, Some(-2), 5).unwrap(), (4, 3, -2));
        assert_eq!(range(Some(5), Some(9), None, 3).unwrap().1, 0);
        assert_eq!(
            range(Some(i64::MIN), Some(i64::MAX), Some(i64::MAX), 3).unwrap(),
            (0, 1, i64::MAX)
        );
        assert_eq!(
            range(Some(i64::MAX), Some(i64::MIN), Some(i64::MIN), 3).unwrap(),
            (2, 1, i64::MIN)
        );
        assert!(range(None, None, Some(0), 3).is_err());
    }
}
