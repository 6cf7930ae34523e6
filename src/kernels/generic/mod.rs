//! Kernels for arrays of any meaning: copies, subscripts, stacks, and what there is to know of them.

pub(super) mod cast;
pub(super) mod lookup;

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{
    Arg, ArgReader, BatchKernel, Entry, FromArg, Kernel, Result, SampleKernel, Space, Work,
};
use crate::kernels::contract::kernel::Allocate;
use crate::value::{Cause, DType, Desc, Device, Origin, Sample, Shape, Strides, copy_strided};

pub const TABLES: &[&[Entry]] = &[TABLE, cast::TABLE, lookup::TABLE];

const TABLE: &[Entry] = &[
    Entry::one::<CastLike>("cast_like"),
    Entry::one::<Copy>("copy"),
    Entry { name: "get_property", args: &["key"], make: || Work::Sample(&GetProperty) },
    Entry { name: "same", args: &[], make: || Work::Sample(&Same) },
    Entry { name: "move", args: &["force"], make: || Work::Sample(&Move) },
    Entry { name: "subscript", args: &["axes"], make: || Work::Sample(&Subscript) },
    Entry { name: "stack", args: &["pad"], make: || Work::Batch(Arc::new(Stack)) },
];

/// The numbers of the first input in the type of the second.
struct CastLike;

impl Kernel for CastLike {
    type Args = ();

    fn output(_: &(), inputs: &[&Desc]) -> Result<Desc> {
        Ok(Desc { dtype: inputs[1].dtype, ..inputs[0].clone() })
    }

    fn run(_: &(), inputs: &[Sample], out: &mut Space) -> Result<()> {
        crate::kernels::generic::cast::cast(&inputs[0], out)
    }
}

/// What is known of a sample beside its data, as bytes of text.
struct GetProperty;

impl SampleKernel for GetProperty {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let key: String = args.get(0, "key")?;
        let text = match key.as_str() {
            "layout" => inputs[0].desc.layout.letters(),
            "source_info" => inputs[0].source.as_ref().map_or("", Origin::name).as_bytes(),
            _ => {
                let problem = format!("names no property: {key:?}");
                return Err(Cause::Argument { name: "key", problem: problem.into() });
            }
        };
        let mut out = allocate(0, Desc::new(DType::U8, &[text.len()]))?;
        out.bytes().copy_from_slice(text);
        Ok(smallvec![out.into_sample()?])
    }

    fn is_view(&self) -> bool {
        true
    }
}

/// The same data in memory of its own.
pub struct Copy;

impl Kernel for Copy {
    type Args = ();
    const SHAPED_BY_ARGS: bool = false;
    const STACKS: bool = true;

    fn output(_: &(), inputs: &[&Desc]) -> Result<Desc> {
        Ok(inputs[0].clone())
    }

    fn run(_: &(), inputs: &[Sample], out: &mut Space) -> Result<()> {
        out.store(|bytes, stores| stores.copy(bytes, inputs[0].elements_as_bytes()));
        Ok(())
    }
}

/// The same data, not copied: picks samples, or gives them another layout.
struct Same;

impl SampleKernel for Same {
    fn run(
        &self,
        _: &ArgReader<'_>,
        inputs: &[Sample],
        _: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        Ok(smallvec![inputs[0].clone()])
    }

    fn is_view(&self) -> bool {
        true
    }
}

/// The data on another device.
struct Move;

impl SampleKernel for Move {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        _: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        // Devices of today share the host's memory, so that it does not matter which one it is.
        Ok(smallvec![Device::Cpu.accelerator().copy(&inputs[0], args.get(0, "force")?)?])
    }
}

/// Indexing as Python does it. The first argument has a letter for each subscripted axis, and the
/// others follow in order: `i` takes an index, `r` a start, a stop and a step, `:` nothing. The
/// letter `n` stands for a new axis.
struct Subscript;

impl SampleKernel for Subscript {
    fn run(
        &self,
        args: &ArgReader<'_>,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let sample = &inputs[0];
        let axes: String = args.get(0, "axes")?;
        let strides = sample.strides();
        let mut offset = 0_isize;
        let mut shape = Shape::new();
        let mut kept = Strides::new();
        let mut position = 1;
        let mut next = || {
            position += 1;
            position - 1
        };
        let ndim = sample.desc.ndim();
        let mut axis = 0;
        for kind in axes.bytes().chain(std::iter::repeat(b':')) {
            if kind == b'n' {
                shape.push(1);
                kept.push(0);
                continue;
            }
            if axis == ndim {
                break;
            }
            let (extent, stride) = (sample.desc.shape[axis], strides[axis]);
            axis += 1;
            match kind {
                b'i' => {
                    let index: i64 = args.get(next(), "index")?;
                    let from_start = if index < 0 { index + extent as i64 } else { index };
                    if from_start < 0 || from_start >= extent as i64 {
                        return Err(Cause::Index { axis: axis - 1, index, extent });
                    }
                    offset += from_start as isize * stride;
                }
                b'r' => {
                    let (start, stop, step) = (
                        args.get(next(), "start")?,
                        args.get(next(), "stop")?,
                        args.get(next(), "step")?,
                    );
                    let (first, count, step) = range(start, stop, step, extent)?;
                    offset += first as isize * stride;
                    shape.push(count);
                    kept.push(step as isize * stride);
                }
                _ => {
                    shape.push(extent);
                    kept.push(stride);
                }
            }
        }
        let mut out = allocate(0, Desc { shape, ..sample.desc.clone() })?;
        let (shape, size) = (out.desc.shape.clone(), out.desc.dtype.size());
        if !shape.contains(&0) {
            // SAFETY: `range` and the check of indices keep every element inside of the sample.
            out.store(|bytes, stores| unsafe {
                let src = sample.as_ptr().offset(offset);
                copy_strided(src, &kept, &shape, size, bytes, stores);
            });
        }
        Ok(smallvec![out.into_sample()?])
    }
}

/// The elements that `start:stop:step` names: the first, how many, and the step.
fn range(
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
    extent: usize,
) -> Result<(i64, usize, i64)> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Cause::Argument { name: "step", problem: "must not be zero".into() });
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

/// All samples of a batch as one, along a new first axis. Samples that lie in one block already
/// are not copied.
struct Stack;

impl BatchKernel for Stack {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<Space>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let samples = inputs[0];
        let first = samples.first().ok_or_else(|| Cause::Input {
            index: 0,
            problem: "an empty batch has no samples to stack".into(),
        })?;
        let ragged = samples.iter().position(|s| s.desc.shape != first.desc.shape);
        let pad = bool::from_constant(args.first().unwrap_or(&Arg::Int(0))).unwrap_or(false);
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
        if lie_together(samples) {
            // SAFETY: those after the first are samples as well, which nobody writes to any more.
            return Ok(smallvec![unsafe { first.extended(desc) }?]);
        }
        let mut out = allocate(desc)?;
        let size = first.desc.dtype.size();
        let each = inner.iter().product::<usize>() * size;
        if each > 0 {
            for (sample, dst) in samples.iter().zip(out.bytes().chunks_exact_mut(each)) {
                let sample = sample.compact()?;
                if ragged.is_some() {
                    dst.fill(0);
                }
                place(sample.elements_as_bytes(), &sample.desc.shape, dst, &inner);
            }
        }
        Ok(smallvec![out.into_sample()?])
    }

    fn is_view_of(&self, inputs: &[&[Sample]]) -> bool {
        lie_together(inputs[0])
    }
}

/// Whether samples of one shape follow one another in memory.
fn lie_together(samples: &[Sample]) -> bool {
    let Some(first) = samples.first() else { return true };
    let bytes = first.desc.bytes();
    samples.iter().enumerate().all(|(index, sample)| {
        sample.is_contiguous()
            && sample.desc.shape == first.desc.shape
            && sample.shares_buffer(first)
            && sample.offset() == first.offset() + index * bytes
    })
}

/// Writes an array into the beginning of each axis of a larger one.
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
    fn ranges_are_pythons() {
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
