//! Bitwise operations on integers and booleans.

use super::{Operation, kernel, map, map2};
use crate::value::Bool;

pub struct And;
pub struct Or;
pub struct Xor;
pub struct Not;
/// Only the lowest five bits of the shift count are used, six for 64-bit types: DALI leaves this to
/// the processor. Smaller types are shifted as 32-bit ones.
pub struct ShiftLeft;
/// Like [`ShiftLeft`]; signed integers keep their sign.
pub struct ShiftRight;

kernel!(2 operands, integers: And Or Xor ShiftLeft ShiftRight);
kernel!(1 operands, integers: Not);

macro_rules! operation {
    ($op:ident of $n:literal on $type:ty: $map:ident $body:expr) => {
        impl Operation<$n, $type> for $op {
            type Out = $type;
            #[inline(always)]
            fn row(operands: [&[$type]; $n], out: &mut [$type]) -> bool {
                $map(operands, out, $body)
            }
        }
    };
}

macro_rules! integers {
    ($($type:ty as $wide:ty),*) => {
        $(
            operation!(And of 2 on $type: map2 |a, b| a & b);
            operation!(Or of 2 on $type: map2 |a, b| a | b);
            operation!(Xor of 2 on $type: map2 |a, b| a ^ b);
            operation!(Not of 1 on $type: map |a: $type| !a);
            operation!(ShiftLeft of 2 on $type: map2 |a, by| {
                (a as $wide).wrapping_shl(by as u32) as $type
            });
            operation!(ShiftRight of 2 on $type: map2 |a, by| {
                (a as $wide).wrapping_shr(by as u32) as $type
            });
        )*
    };
}
integers!(
    i8 as i32, i16 as i32, i32 as i32, i64 as i64, u8 as u32, u16 as u32, u32 as u32, u64 as u64
);

operation!(And of 2 on Bool: map2 |a, b| Bool::from(a.get() & b.get()));
operation!(Or of 2 on Bool: map2 |a, b| Bool::from(a.get() | b.get()));
operation!(Xor of 2 on Bool: map2 |a, b| Bool::from(a.get() ^ b.get()));
operation!(Not of 1 on Bool: map |a: Bool| Bool::from(!a.get()));
// Shifted as numbers: non-zero is true.
operation!(ShiftLeft of 2 on Bool: map2 |a, _| Bool::from(a.get()));
operation!(ShiftRight of 2 on Bool: map2 |a, by| Bool::from(a.get() & !by.get()));
