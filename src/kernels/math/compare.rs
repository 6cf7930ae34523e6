//! Comparisons of numbers of any types.

use std::marker::PhantomData;

use super::{Operation, Types, apply, map2, unknown};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits};
use crate::value::{Bool, DType, Desc, Sample};

/// A relation between two numbers.
pub trait Relation: Send + Sync + 'static {
    fn holds<T: PartialOrd>(a: T, b: T) -> bool;
}

macro_rules! relations {
    ($($name:ident: $operator:tt;)*) => {
        $(
            pub struct $name;
            impl Relation for $name {
                #[inline(always)]
                fn holds<T: PartialOrd>(a: T, b: T) -> bool {
                    a $operator b
                }
            }
        )*
    };
}
relations! { Equal: ==; NotEqual: !=; Less: <; LessEqual: <=; Greater: >; GreaterEqual: >=; }

pub struct Compare<R>(PhantomData<R>);

impl<R: Relation> Kernel for Compare<R> {
    type Args = Types;
    type Plan = Types;
    const TRAITS: Traits = super::TRAITS;

    fn plan(types: Types, inputs: &[&Desc]) -> Result<(Types, Outputs)> {
        super::plan(types, inputs)
    }

    fn run(types: &Types, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        macro_rules! run {
            ($type:ty) => {
                apply::<2, $type, Bool, Compare<R>>(inputs, out)
            };
        }
        let unsigned = |side: usize| inputs[side].desc.dtype == DType::U64;
        match types.compute {
            // No numeric type holds both uint64 and negative numbers.
            DType::I64 if unsigned(0) => apply::<2, i64, Bool, UnsignedLeft<R>>(inputs, out),
            DType::I64 if unsigned(1) => apply::<2, i64, Bool, UnsignedRight<R>>(inputs, out),
            DType::I8 => run!(i8),
            DType::I16 => run!(i16),
            DType::I32 => run!(i32),
            DType::I64 => run!(i64),
            DType::U8 => run!(u8),
            DType::U16 => run!(u16),
            DType::U32 => run!(u32),
            DType::U64 => run!(u64),
            DType::F32 => run!(f32),
            DType::F64 => run!(f64),
            _ => Err(unknown(types)),
        }
    }
}

impl<R: Relation, C: PartialOrd + Copy> Operation<2, C> for Compare<R> {
    type Out = Bool;
    #[inline(always)]
    fn row(operands: [&[C]; 2], out: &mut [Bool]) -> bool {
        map2(operands, out, |a, b| Bool::from(R::holds(a, b)))
    }
}

/// The bits of the left operand are those of an unsigned number.
struct UnsignedLeft<R>(PhantomData<R>);
/// The bits of the right operand are those of an unsigned number.
struct UnsignedRight<R>(PhantomData<R>);

impl<R: Relation> Operation<2, i64> for UnsignedLeft<R> {
    type Out = Bool;
    #[inline(always)]
    fn row(operands: [&[i64]; 2], out: &mut [Bool]) -> bool {
        let wide = |a, b| R::holds(i128::from(a as u64), i128::from(b));
        map2(operands, out, |a: i64, b: i64| Bool::from(wide(a, b)))
    }
}

impl<R: Relation> Operation<2, i64> for UnsignedRight<R> {
    type Out = Bool;
    #[inline(always)]
    fn row(operands: [&[i64]; 2], out: &mut [Bool]) -> bool {
        let wide = |a, b| R::holds(i128::from(a), i128::from(b as u64));
        map2(operands, out, |a: i64, b: i64| Bool::from(wide(a, b)))
    }
}
