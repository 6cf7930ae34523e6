//! Arithmetic on two operands, broadcast against each other.

use half::{bf16, f16};
use smallvec::SmallVec;

use super::cast::Number;
use super::{Entry, Kernel, Result, Space, args};
use crate::value::{Bool, Cause, DType, Desc, Sample, Shape, extent, with_element};

pub const TABLE: &[Entry] = &[Entry::one::<Add>("add")];

pub struct Add;

args! {
    /// `dtype` is the promoted type, in which both operands are added.
    pub struct AddArgs { dtype: DType }
}

impl Kernel for Add {
    type Args = AddArgs;
    const SHAPED_BY_ARGS: bool = false;

    fn output(args: &AddArgs, inputs: &[&Desc]) -> Result<Desc> {
        let shape = broadcast(&inputs[0].shape, &inputs[1].shape).ok_or_else(|| {
            let (left, right) = (&inputs[0].shape[..], &inputs[1].shape[..]);
            let problem = format!("the shapes {left:?} and {right:?} can't be broadcast together");
            Cause::Input { index: 1, problem }
        })?;
        Ok(Desc { dtype: args.dtype, shape, layout: inputs[0].layout })
    }

    fn run(_: &AddArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let (left, right) = (wrapped(&inputs[0], out), wrapped(&inputs[1], out));
        with_element!(out.desc.dtype, |T| apply(&left, &right, out, <T as Sum>::sum));
        Ok(())
    }
}

/// Addition as the reference does it: integers wrap.
trait Sum: Number {
    fn sum(self, other: Self) -> Self;
}

macro_rules! sum {
    ($($type:ty: |$a:ident, $b:ident| $body:expr;)*) => {
        $(
            impl Sum for $type {
                fn sum(self, other: Self) -> Self {
                    let ($a, $b) = (self, other);
                    $body
                }
            }
        )*
    };
}

sum! {
    // Definitions refuse to add two truth values.
    Bool: |a, b| Bool::from(a.get() | b.get());
    i8: |a, b| a.wrapping_add(b);
    i16: |a, b| a.wrapping_add(b);
    i32: |a, b| a.wrapping_add(b);
    i64: |a, b| a.wrapping_add(b);
    u8: |a, b| a.wrapping_add(b);
    u16: |a, b| a.wrapping_add(b);
    u32: |a, b| a.wrapping_add(b);
    u64: |a, b| a.wrapping_add(b);
    f16: |a, b| f16::from_f32(a.to_f32() + b.to_f32());
    bf16: |a, b| bf16::from_f32(a.to_f32() + b.to_f32());
    f32: |a, b| a + b;
    f64: |a, b| a + b;
}

/// An operand that its promoted type can't hold (64 bits unsigned, as signed) wraps around, where
/// the conversion of numbers would saturate.
fn wrapped(operand: &Sample, out: &Space) -> Sample {
    match (operand.desc.dtype, out.desc.dtype) {
        (DType::U64, DType::I64) => operand.reinterpret(DType::I64),
        _ => operand.clone(),
    }
}

/// The common shape, axes aligned at the end; `None` when there is none.
fn broadcast(left: &[usize], right: &[usize]) -> Option<Shape> {
    let ndim = left.len().max(right.len());
    let axis =
        |shape: &[usize], i: usize| (i + shape.len()).checked_sub(ndim).map_or(1, |own| shape[own]);
    let shape: Shape = (0..ndim)
        .map(|i| match (axis(left, i), axis(right, i)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect::<Option<_>>()?;
    extent(&shape).map(|_| shape)
}

/// Elements converted at a time: both operands and the result stay in the first cache.
const CHUNK: usize = 1024;

fn apply<T: Number>(left: &Sample, right: &Sample, out: &mut Space, op: impl Fn(T, T) -> T + Copy) {
    let count = out.desc.elements();
    let repeats = |s: &Sample| s.desc.elements() != count && s.desc.elements() != 1;
    if repeats(left) || repeats(right) {
        return apply_broadcast(left, right, out, op);
    }
    let (mut left, mut right) = (Lane::new(left, count), Lane::new(right, count));
    for (index, out) in out.elements::<T>().chunks_mut(CHUNK).enumerate() {
        let (a, b) = (left.chunk(index, out.len()), right.chunk(index, out.len()));
        match (a, b) {
            (a, [b]) if out.len() > 1 => out.iter_mut().zip(a).for_each(|(o, &a)| *o = op(a, *b)),
            ([a], b) if out.len() > 1 => out.iter_mut().zip(b).for_each(|(o, &b)| *o = op(*a, b)),
            (a, b) => out.iter_mut().zip(a).zip(b).for_each(|((o, &a), &b)| *o = op(a, b)),
        }
    }
}

/// An operand, read in chunks of the result's type: as many elements as the result has, or one.
struct Lane<'a, T> {
    sample: &'a Sample,
    single: bool,
    converted: Vec<T>,
}

impl<'a, T: Number> Lane<'a, T> {
    fn new(sample: &'a Sample, count: usize) -> Lane<'a, T> {
        let single = sample.desc.elements() == 1 && count != 1;
        let own = if single { 1 } else { CHUNK.min(count) };
        let same = sample.desc.dtype.storage() == T::DTYPE;
        let mut converted = vec![T::default(); if same { 0 } else { own }];
        if single && !same {
            T::convert_row(sample, 0, &mut converted);
        }
        Lane { sample, single, converted }
    }

    fn chunk(&mut self, index: usize, len: usize) -> &[T] {
        let (start, len) = if self.single { (0, 1) } else { (index * CHUNK, len) };
        if self.converted.is_empty() {
            return &self.sample.elements::<T>()[start..start + len];
        }
        if !self.single {
            T::convert_row(self.sample, start, &mut self.converted[..len]);
        }
        &self.converted[..len]
    }
}

fn apply_broadcast<T: Number>(
    left: &Sample,
    right: &Sample,
    out: &mut Space,
    op: impl Fn(T, T) -> T + Copy,
) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (sample, all) in [(left, &mut a), (right, &mut b)] {
        all.resize(sample.desc.elements(), T::default());
        T::convert_row(sample, 0, all);
    }
    let shape = out.desc.shape.clone();
    let left = steps(&left.desc.shape, &shape);
    let right = steps(&right.desc.shape, &shape);
    walk(&shape, (&a, &left), (&b, &right), &mut out.elements::<T>().iter_mut(), op);
}

/// Elements to go forward per step along each axis of the result; zero where it repeats.
fn steps(own: &[usize], shape: &[usize]) -> SmallVec<[usize; 6]> {
    let mut steps: SmallVec<[usize; 6]> = SmallVec::from_elem(0, shape.len());
    let mut step = 1;
    for (slot, &d) in steps.iter_mut().rev().zip(own.iter().rev()) {
        *slot = if d == 1 { 0 } else { step };
        step *= d;
    }
    steps
}

fn walk<T: Number>(
    shape: &[usize],
    (a, a_steps): (&[T], &[usize]),
    (b, b_steps): (&[T], &[usize]),
    out: &mut std::slice::IterMut<'_, T>,
    op: impl Fn(T, T) -> T + Copy,
) {
    match shape {
        [] => out.take(1).for_each(|o| *o = op(a[0], b[0])),
        &[n] => {
            for (i, o) in (0..n).zip(out) {
                *o = op(a[i * a_steps[0]], b[i * b_steps[0]]);
            }
        }
        &[n, ref inner @ ..] => {
            for i in 0..n {
                let a = (&a[i * a_steps[0]..], &a_steps[1..]);
                let b = (&b[i * b_steps[0]..], &b_steps[1..]);
                walk(inner, a, b, out, op);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_end() {
        let shape = |a: &[usize], b: &[usize]| broadcast(a, b).map(|s| s.to_vec());
        assert_eq!(shape(&[2, 1], &[3]), Some(vec![2, 3]));
        assert_eq!(shape(&[], &[4]), Some(vec![4]));
        assert_eq!(shape(&[0], &[1]), Some(vec![0]));
        assert_eq!(shape(&[2], &[3]), None);
        assert_eq!(shape(&[1 << 40, 1], &[1, 1 << 40]), None);
    }
}
