//! New arrays filled with a value or a repeated array.

use smallvec::SmallVec;

use super::{
    Entry, Family, Frames, Kernel, Output, OutputBuffer, Outputs, Result, Traits, args, one,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::{Convert, Number};
use crate::value::{
    Cause, DType, Desc, Element, Sample, Shape, Strides, contiguous_strides, copy_strided, extent,
    with_element,
};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Fill::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Constant>("constant"),
    Entry::new::<ConstantLike>("constant_like"),
    Entry::new::<Full>("full"),
    Entry::new::<FullLike>("full_like"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Fill {
            Broadcast { given: Vec<usize>, wanted: Vec<usize> },
        }
    }
}

/// A shape from an argument. `rank` is the number of extents that the definition expects of every
/// sample.
fn shape(wanted: Option<&[i64]>, rank: i64) -> Result<Shape> {
    let extents = wanted.unwrap_or_default().iter();
    if i64::try_from(extents.len()) != Ok(rank) {
        let problem = Argument::Entries { given: extents.len(), first: rank };
        return Err(argument("shape", problem));
    }
    let shape: Shape = extents
        .map(|&d| usize::try_from(d))
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| {
            let given = wanted.unwrap_or_default().to_vec();
            argument("shape", Argument::AllNegative { given })
        })?;
    match extent(&shape) {
        Some(_) => Ok(shape),
        None => Err(Cause::Memory { bytes: shape.iter().fold(1, |n, &d| n.saturating_mul(d)) }),
    }
}

/// Fills all elements with a number.
struct Constant;

args! {
    struct ConstantArgs { shape: Option<Vec<i64>>, dtype: DType, fill: i64, rank: i64 }
}

impl Kernel for Constant {
    type Args = ConstantArgs;
    type Plan = i64;

    fn plan(args: ConstantArgs, _: &[&Desc]) -> Result<(i64, Outputs)> {
        let shape = shape(args.shape.as_deref(), args.rank)?;
        Ok((args.fill, one(Desc::new(args.dtype, &shape))))
    }

    fn run(fill: &i64, _: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        set(&mut outputs[0], *fill)
    }
}

/// Fills an array of the input's shape with a number.
struct ConstantLike;

args! {
    struct ConstantLikeArgs { dtype: Option<DType>, fill: i64 }
}

impl Kernel for ConstantLike {
    type Args = ConstantLikeArgs;
    type Plan = i64;
    const TRAITS: Traits = Traits { shaped_by_args: false, stacks: true, ..Traits::DEFAULT };

    fn plan(args: ConstantLikeArgs, inputs: &[&Desc]) -> Result<(i64, Outputs)> {
        let dtype = args.dtype.unwrap_or(inputs[0].dtype);
        Ok((args.fill, one(Desc { dtype, ..inputs[0].clone() })))
    }

    fn run(fill: &i64, _: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        set(&mut outputs[0], *fill)
    }
}

fn set(out: &mut Output<'_>, value: i64) -> Result<()> {
    with_element!(out.desc.dtype, |T| put::<T>(out, value.convert()))
}

/// Sets all elements to `value`.
fn put<T: Element>(out: &mut Output<'_>, value: T) -> Result<()> {
    out.write(|_, piece| {
        piece.fill(value);
        Ok(())
    })
}

/// The input, broadcast to a shape.
struct Full;

args! {
    struct FullArgs { shape: Option<Vec<i64>>, rank: i64 }
}

impl Kernel for Full {
    type Args = FullArgs;
    type Plan = ();
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: FullArgs, inputs: &[&Desc]) -> Result<((), Outputs)> {
        let shape = shape(args.shape.as_deref(), args.rank)?;
        Ok(((), one(Desc::new(inputs[0].dtype, &shape))))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        repeat(&inputs[0], 0, out)
    }
}

/// The second input, broadcast to the shape of the first and converted to its type.
struct FullLike;

impl Kernel for FullLike {
    type Args = ();
    type Plan = ();
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan((): (), inputs: &[&Desc]) -> Result<((), Outputs)> {
        Ok(((), one(inputs[0].clone())))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let fill = &inputs[1];
        let desc = Desc { dtype: out.desc.dtype, ..fill.desc.clone() };
        let mut converted = OutputBuffer::new(desc)?;
        with_element!(out.desc.dtype, |T| T::convert_row(fill, 0, converted.elements()));
        repeat(&converted.into_sample()?, 1, out)
    }
}

/// Broadcasts a contiguous sample to the output; `index` is that of the input it came from.
fn repeat(fill: &Sample, index: usize, out: &mut Output<'_>) -> Result<()> {
    let strides = repeating(&fill.desc, &out.desc.shape).ok_or_else(|| {
        let (given, wanted) = (fill.desc.shape.to_vec(), out.desc.shape.to_vec());
        unfit(index, problem::Fill::Broadcast { given, wanted })
    })?;
    if fill.desc.elements() == 1 {
        return with_element!(out.desc.dtype, |T| put(out, fill.elements::<T>()[0]));
    }
    let (shape, size) = (out.desc.shape.clone(), out.desc.dtype.size());
    // SAFETY: `repeating` gave every axis of the result the stride of an axis of the same extent,
    // or zero.
    out.store(|bytes, stores| unsafe {
        copy_strided(fill.as_ptr(), &strides, &shape, size, bytes, stores);
    });
    Ok(())
}

/// Strides that broadcast a sample to the given shape, aligning the last axes.
fn repeating(fill: &Desc, shape: &[usize]) -> Option<Strides> {
    let own = contiguous_strides(&fill.shape, fill.dtype.size());
    let surplus = fill.ndim().saturating_sub(shape.len());
    if fill.shape[..surplus].iter().any(|&d| d != 1) {
        return None;
    }
    let mut strides: Strides = SmallVec::from_elem(0, shape.len());
    let axes = fill.shape[surplus..].iter().zip(&own[surplus..]).rev();
    for ((slot, &wanted), (&d, &stride)) in strides.iter_mut().zip(shape).rev().zip(axes) {
        match d {
            1 => {}
            _ if d == wanted => *slot = stride,
            _ => return None,
        }
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_value_is_broadcast_from_the_last_axis() {
        let strides = |own: &[usize], shape: &[usize]| {
            repeating(&Desc::new(DType::U8, own), shape).map(|s| s.to_vec())
        };
        assert_eq!(strides(&[3], &[2, 3]), Some(vec![0, 1]));
        assert_eq!(strides(&[2, 1], &[2, 3]), Some(vec![1, 0]));
        assert_eq!(strides(&[1, 1, 3], &[3]), Some(vec![1]));
        assert_eq!(strides(&[2, 3], &[3]), None);
        assert_eq!(strides(&[2], &[3]), None);
        assert_eq!(strides(&[0], &[2]), None);
    }
}
