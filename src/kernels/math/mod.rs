//! Elementwise operations: arithmetic, comparisons, bits, functions. Operands are broadcast against
//! each other.

mod arithmetic;
mod bits;
mod compare;
mod functions;
mod lane;
mod select;
mod single;

use std::borrow::Cow;

use super::{Entry, Family, Output, Outputs, Result, Traits, args, one};
use crate::kernels::generic::cast::Number;
use crate::kernels::numeric::isa::Isa;
use crate::value::{Cause, DType, Desc, Sample, Shape, extent};

use arithmetic as a;
use functions as f;
use lane::{Holds, Lane};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Math::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<a::Abs>("abs"),
    Entry::new::<a::Add>("add"),
    Entry::new::<a::Atan2>("atan2"),
    Entry::new::<a::Clamp>("clamp"),
    Entry::new::<a::Divide>("divide"),
    Entry::new::<a::FloatPower>("float_power"),
    Entry::new::<a::Max>("max"),
    Entry::new::<a::Min>("min"),
    Entry::new::<a::Multiply>("multiply"),
    Entry::new::<a::Negate>("negate"),
    Entry::new::<a::Power>("power"),
    Entry::new::<a::Quotient>("quotient"),
    Entry::new::<a::Remainder>("remainder"),
    Entry::new::<a::Subtract>("subtract"),
    Entry::new::<bits::And>("bit_and"),
    Entry::new::<bits::Not>("bit_not"),
    Entry::new::<bits::Or>("bit_or"),
    Entry::new::<bits::ShiftLeft>("shift_left"),
    Entry::new::<bits::ShiftRight>("shift_right"),
    Entry::new::<bits::Xor>("bit_xor"),
    Entry::new::<compare::Compare<compare::Equal>>("equal"),
    Entry::new::<compare::Compare<compare::Greater>>("greater"),
    Entry::new::<compare::Compare<compare::GreaterEqual>>("greater_equal"),
    Entry::new::<compare::Compare<compare::Less>>("less"),
    Entry::new::<compare::Compare<compare::LessEqual>>("less_equal"),
    Entry::new::<compare::Compare<compare::NotEqual>>("not_equal"),
    Entry::new::<f::Acos>("acos"),
    Entry::new::<f::Acosh>("acosh"),
    Entry::new::<f::Asin>("asin"),
    Entry::new::<f::Asinh>("asinh"),
    Entry::new::<f::Atan>("atan"),
    Entry::new::<f::Atanh>("atanh"),
    Entry::new::<f::Cbrt>("cbrt"),
    Entry::new::<f::Ceil>("ceil"),
    Entry::new::<f::Cos>("cos"),
    Entry::new::<f::Cosh>("cosh"),
    Entry::new::<f::Exp>("exp"),
    Entry::new::<f::Fabs>("fabs"),
    Entry::new::<f::Floor>("floor"),
    Entry::new::<f::Log>("log"),
    Entry::new::<f::Log10>("log10"),
    Entry::new::<f::Log2>("log2"),
    Entry::new::<f::Rsqrt>("rsqrt"),
    Entry::new::<f::Sin>("sin"),
    Entry::new::<f::Sinh>("sinh"),
    Entry::new::<f::Sqrt>("sqrt"),
    Entry::new::<f::Tan>("tan"),
    Entry::new::<f::Tanh>("tanh"),
    Entry::direct::<select::Where>("where"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Math {
            DividedByZero,
            Shapes { shapes: String },
        }
    }
}

args! {
    /// `compute` is the type that the operands are converted to, `dtype` that of the result.
    pub struct Types { compute: DType, dtype: DType }
}

/// An operation on rows of `N` operands of type `C`.
trait Operation<const N: usize, C> {
    type Out: Copy + Default;

    /// Writes all of `out`. Operands have the length of `out`, or a single element. Returns whether
    /// the operation is defined for all elements.
    fn row(operands: [&[C]; N], out: &mut [Self::Out]) -> bool;
}

type Row<const N: usize, C, R> = fn([&[C]; N], &mut [R]) -> bool;

/// The row function of `Op`, compiled for the instruction set.
fn row_for<const N: usize, C, Op: Operation<N, C>>(isa: Isa) -> Row<N, C, Op::Out> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2,fma")]
            unsafe fn row<const N: usize, C, Op: Operation<N, C>>(
                operands: [&[C]; N],
                out: &mut [Op::Out],
            ) -> bool {
                Op::row(operands, out)
            }
            // SAFETY: an `Isa::Avx2` only exists where AVX2 and FMA were detected.
            |operands, out| unsafe { row::<N, C, Op>(operands, out) }
        }
        _ => Op::row,
    }
}

/// Applies `Op` piece by piece: operands are broadcast and converted to `C`, results are stored as
/// `O`.
fn apply<const N: usize, C, O, Op>(inputs: &[Sample], out: &mut Output<'_>) -> Result<()>
where
    C: Number,
    Op: Operation<N, C>,
    O: Holds<Op::Out>,
{
    let row = row_for::<N, C, Op>(Isa::best());
    let inputs: [Cow<'_, Sample>; N] = std::array::from_fn(|i| wrapped(&inputs[i], C::DTYPE));
    let shape = out.desc.shape.clone();
    let mut failed = None;
    let mut lanes = inputs.each_ref().map(|input| {
        Lane::<C>::new(input, &shape).unwrap_or_else(|cause| {
            failed = Some(cause);
            Lane::empty()
        })
    });
    if let Some(cause) = failed {
        return Err(cause);
    }
    out.write(|start, piece| {
        let operands = lanes.each_mut().map(|lane| lane.chunk(start, piece.len()));
        if O::fill(piece, |out| row(operands, out)) {
            return Ok(());
        }
        Err(Cause::Value { problem: problem::Math::DividedByZero.into() })
    })
}

/// An operand that its promoted type can't hold (uint64 as int64) wraps around; the usual
/// conversion would saturate.
fn wrapped(operand: &Sample, compute: DType) -> Cow<'_, Sample> {
    match (operand.desc.dtype, compute) {
        (DType::U64, DType::I64) => Cow::Owned(operand.reinterpret(DType::I64)),
        _ => Cow::Borrowed(operand),
    }
}

// These use loops instead of `for_each`, and large operations are functions that are always
// inlined: code that is not inlined is not compiled for the caller's instruction set.

#[inline(always)]
fn map<C: Copy, R>([a]: [&[C]; 1], out: &mut [R], op: impl Fn(C) -> R) -> bool {
    for (o, &a) in out.iter_mut().zip(a) {
        *o = op(a);
    }
    true
}

#[inline(always)]
fn map2<C: Copy, R>([a, b]: [&[C]; 2], out: &mut [R], op: impl Fn(C, C) -> R) -> bool {
    match (a, b) {
        // The third operand of `Clamp` may be longer.
        (&[a], &[b]) => {
            for o in out {
                *o = op(a, b);
            }
        }
        (a, &[b]) => {
            for (o, &a) in out.iter_mut().zip(a) {
                *o = op(a, b);
            }
        }
        (&[a], b) => {
            for (o, &b) in out.iter_mut().zip(b) {
                *o = op(a, b);
            }
        }
        (a, b) => {
            for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *o = op(a, b);
            }
        }
    }
    true
}

/// The Rust type of each [`DType`] that is computed with or stored.
macro_rules! rust {
    (Bool) => {
        $crate::value::Bool
    };
    (I8) => {
        i8
    };
    (I16) => {
        i16
    };
    (I32) => {
        i32
    };
    (I64) => {
        i64
    };
    (U8) => {
        u8
    };
    (U16) => {
        u16
    };
    (U32) => {
        u32
    };
    (U64) => {
        u64
    };
    (F16) => {
        half::f16
    };
    (BF16) => {
        half::bf16
    };
    (F32) => {
        f32
    };
    (F64) => {
        f64
    };
}

/// Implements a kernel for an operation, for pairs of the types that it computes in and stores.
macro_rules! kernel {
    ($n:literal operands, [$($compute:ident $dtype:ident),*]: $op:ident) => {
        impl $crate::kernels::Kernel for $op {
            type Args = super::Types;
            type Plan = super::Types;
            const TRAITS: $crate::kernels::Traits = super::TRAITS;

            fn plan(
                types: super::Types,
                inputs: &[&$crate::value::Desc],
            ) -> $crate::kernels::Result<(super::Types, $crate::kernels::Outputs)> {
                super::plan(types, inputs)
            }

            fn run(
                types: &super::Types,
                inputs: &[$crate::value::Sample],
                outputs: &mut [$crate::kernels::Output<'_>],
            ) -> $crate::kernels::Result<()> {
                use $crate::value::DType as D;
                use super::rust;
                let out = &mut outputs[0];
                match (types.compute, types.dtype) {
                    $((D::$compute, D::$dtype) => {
                        super::apply::<$n, rust!($compute), rust!($dtype), $op>(inputs, out)
                    })*
                    _ => Err(super::unknown(types)),
                }
            }
        }
    };
    ($n:literal operands, numbers: $($op:ident)*) => {
        $(super::kernel!($n operands, [I8 I8, I16 I16, I32 I32, I64 I64, U8 U8, U16 U16, U32 U32,
            U64 U64, F32 F32, F64 F64, F32 F16, F32 BF16]: $op);)*
    };
    ($n:literal operands, integers: $($op:ident)*) => {
        $(super::kernel!($n operands, [Bool Bool, I8 I8, I16 I16, I32 I32, I64 I64, U8 U8, U16 U16,
            U32 U32, U64 U64]: $op);)*
    };
    ($n:literal operands, floats: $($op:ident)*) => {
        $(super::kernel!($n operands, [F32 F32, F64 F64, F32 F16, F32 BF16]: $op);)*
    };
}
use {kernel, rust};

fn unknown(types: &Types) -> Cause {
    let (compute, dtype) = (types.compute.name(), types.dtype.name());
    Cause::Internal(format!("no code that computes {dtype} in {compute}"))
}

const TRAITS: Traits = Traits { shaped_by_args: false, stacks: true, ..Traits::DEFAULT };

fn plan(types: Types, inputs: &[&Desc]) -> Result<(Types, Outputs)> {
    let shape = broadcast_all(inputs)?;
    let desc = Desc { dtype: types.dtype, shape, layout: inputs[0].layout };
    Ok((types, one(desc)))
}

/// The common shape of all inputs.
fn broadcast_all(inputs: &[&Desc]) -> Result<Shape> {
    let mut shape = inputs[0].shape.clone();
    for (index, input) in inputs.iter().enumerate().skip(1) {
        shape = broadcast(&shape, &input.shape).ok_or_else(|| {
            let shapes: Vec<_> =
                inputs.iter().map(|input| format!("{:?}", &input.shape[..])).collect();
            let problem = problem::Math::Shapes { shapes: shapes.join(" and ") };
            Cause::Input { index, problem: problem.into() }
        })?;
    }
    Ok(shape)
}

/// The common shape, aligning the last axes; `None` if there is none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_broadcast_from_the_last_axis() {
        let shape = |a: &[usize], b: &[usize]| broadcast(a, b).map(|s| s.to_vec());
        assert_eq!(shape(&[2, 1], &[3]), Some(vec![2, 3]));
        assert_eq!(shape(&[], &[4]), Some(vec![4]));
        assert_eq!(shape(&[0], &[1]), Some(vec![0]));
        assert_eq!(shape(&[2], &[3]), None);
        assert_eq!(shape(&[1 << 40, 1], &[1, 1 << 40]), None);
    }
}
