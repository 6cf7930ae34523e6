//! Joins inputs along an existing axis or a new one.

use smallvec::{SmallVec, smallvec};

use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::shape::problem::Shapes;
use crate::kernels::{
    Allocate, DirectKernel, Entry, Placement, Result, Samples, Traits, UniformBatch, args,
};
use crate::value::{Cause, Desc, Sample, Shape, Stores, extent};

pub const TABLE: &[Entry] = &[Entry::direct::<Join>("join")];

struct Join;

args! {
    /// The axis, counted from the front; `new_axis` says whether to insert it.
    struct JoinArgs { axis: i64, new_axis: bool }
}

impl DirectKernel for Join {
    type Args = JoinArgs;
    const TRAITS: Traits = Traits { stacks: true, ..Traits::DEFAULT };

    fn run(args: &JoinArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let axis = usize::try_from(args.axis).unwrap_or(usize::MAX);
        let ndim = inputs[0].desc.ndim();
        if axis >= ndim + usize::from(args.new_axis) {
            return Err(argument("axis", Argument::AxisOutside { axis: args.axis, ndim }));
        }
        Ok(smallvec![join(axis, args.new_axis, inputs, allocate)?])
    }

    fn run_stacked(args: &JoinArgs, batch: &UniformBatch<'_>) -> Option<Sample> {
        // A shared input would have to be repeated.
        let all = batch.placements.iter().all(|&placement| placement == Placement::Stacked);
        let axis = usize::try_from(args.axis).ok()?;
        let valid = axis < batch.data()[0].desc.ndim() + usize::from(args.new_axis);
        (all && valid).then_some(())?;
        batch.run_stacked(|inputs, allocate| {
            Ok(smallvec![join(axis + 1, args.new_axis, inputs, allocate)?])
        })
    }
}

fn join(axis: usize, new_axis: bool, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Sample> {
    let (used, shape) = if new_axis { stacked(inputs, axis)? } else { concatenated(inputs, axis)? };
    if extent(&shape).is_none() {
        return Err(Cause::Memory { bytes: usize::MAX });
    }
    let desc = Desc { shape, ..inputs[0].desc.clone() };
    if let [only] = used[..] {
        return only.reshaped(desc);
    }
    let mut made = allocate(0, desc)?;
    let parts: SmallVec<[Sample; 4]> =
        used.iter().map(|sample| sample.compact()).collect::<Result<_>>()?;
    let rows: usize = first_axes(&made.desc().shape, axis);
    made.output().store(|bytes, stores| interleave(&parts, rows, bytes, stores));
    made.into_sample()
}

fn first_axes(shape: &[usize], axis: usize) -> usize {
    shape[..axis].iter().product()
}

type Parts<'a> = (SmallVec<[&'a Sample; 4]>, Shape);

fn stacked(inputs: &[Sample], axis: usize) -> Result<Parts<'_>> {
    let first = &inputs[0].desc;
    for (index, sample) in inputs.iter().enumerate() {
        check_type(index, &sample.desc, first)?;
        if sample.desc.shape != first.shape {
            return Err(mismatch(index, &sample.desc, first, "shape"));
        }
    }
    let mut shape = first.shape.clone();
    shape.insert(axis, inputs.len());
    Ok((inputs.iter().collect(), shape))
}

/// The inputs to join, and the resulting shape. As in DALI, inputs without elements need not match
/// the others; they are skipped.
fn concatenated(inputs: &[Sample], axis: usize) -> Result<Parts<'_>> {
    let first = &inputs[0].desc;
    for (index, sample) in inputs.iter().enumerate() {
        check_type(index, &sample.desc, first)?;
    }
    let fits = |a: &Desc, b: &Desc| {
        a.ndim() == b.ndim() && (0..a.ndim()).all(|i| i == axis || a.shape[i] == b.shape[i])
    };
    let mut used: SmallVec<[&Sample; 4]> = inputs.iter().collect();
    if used.iter().any(|sample| !fits(&sample.desc, first)) {
        used.retain(|sample| sample.desc.elements() > 0);
    }
    let Some(model) = used.first().map(|sample| &sample.desc) else {
        return Ok((smallvec![&inputs[0]], first.shape.clone()));
    };
    let odd = |sample: &Sample| !fits(&sample.desc, model);
    if let Some(index) = inputs.iter().position(|s| s.desc.elements() > 0 && odd(s)) {
        return Err(mismatch(index, &inputs[index].desc, model, "axis"));
    }
    let mut shape = model.shape.clone();
    shape[axis] = used.iter().fold(0, |n: usize, s| n.saturating_add(s.desc.shape[axis]));
    Ok((used, shape))
}

fn check_type(index: usize, desc: &Desc, first: &Desc) -> Result<()> {
    if desc.dtype == first.dtype && desc.ndim() == first.ndim() {
        return Ok(());
    }
    Err(mismatch(index, desc, first, "type"))
}

/// `rule` says what must match: "shape", "type", or, except for the joined one, every "axis".
fn mismatch(index: usize, desc: &Desc, first: &Desc, rule: &'static str) -> Cause {
    let shown = |desc: &Desc| format!("{} {:?}", desc.dtype.name(), &desc.shape[..]);
    unfit(index, Shapes::Different { rule, first: shown(first), other: shown(desc) })
}

/// Bytes of the result to write at a time: what one input has written is still in the L1 cache when
/// the next input fills its gaps.
const BLOCK: usize = 16 << 10;
/// Rows with at least this many bytes are copied one after the other.
const LONG_ROW: usize = 256;

/// Takes a row of each part in turn. All parts have `rows` rows, each part with its own row length.
fn interleave<'a>(parts: &[Sample], rows: usize, out: &'a mut [u8], stores: &Stores<'a>) {
    if rows == 0 || out.is_empty() {
        return;
    }
    let whole = out.len() / rows;
    if parts.iter().all(|part| part.desc.bytes() / rows >= LONG_ROW) {
        for (index, mut out) in out.chunks_exact_mut(whole).enumerate() {
            for part in parts {
                let row = part.desc.bytes() / rows;
                let (dst, rest) = out.split_at_mut(row);
                stores.copy(dst, &part.elements_as_bytes()[index * row..][..row]);
                out = rest;
            }
        }
        return;
    }
    let at_once = (BLOCK / whole).max(1);
    for (block, out) in out.chunks_mut(at_once * whole).enumerate() {
        let mut start = 0;
        for part in parts {
            let row = part.desc.bytes() / rows;
            let first = block * at_once * row;
            let src = &part.elements_as_bytes()[first..][..out.len() / whole * row];
            scatter(src, row, &mut out[start..], whole);
            start += row;
        }
    }
}

/// Copies each row of `src` to the start of every `step` bytes of `dst`.
fn scatter(src: &[u8], row: usize, dst: &mut [u8], step: usize) {
    fn short<const N: usize>(src: &[u8], dst: &mut [u8], step: usize) {
        for (src, dst) in src.as_chunks::<N>().0.iter().zip(dst.chunks_mut(step)) {
            if let Some(dst) = dst.first_chunk_mut::<N>() {
                *dst = *src;
            }
        }
    }
    match row {
        0 => {}
        1 => short::<1>(src, dst, step),
        2 => short::<2>(src, dst, step),
        3 => short::<3>(src, dst, step),
        4 => short::<4>(src, dst, step),
        6 => short::<6>(src, dst, step),
        8 => short::<8>(src, dst, step),
        12 => short::<12>(src, dst, step),
        16 => short::<16>(src, dst, step),
        _ => {
            for (src, dst) in src.chunks_exact(row).zip(dst.chunks_mut(step)) {
                dst[..row].copy_from_slice(src);
            }
        }
    }
}
