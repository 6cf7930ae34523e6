//! Arithmetic as in DALI: integers wrap around, and their division truncates towards zero.

use super::{Operation, kernel, map, map2, single};
use crate::value::Bool;

/// An operation on two numbers, for integers and for floats.
macro_rules! binary {
    ($op:ident, ints: |$a:ident, $b:ident| $int:expr, floats: |$x:ident, $y:ident| $float:expr) => {
        binary!(@ $op, |$a, $b| $int, i8 i16 i32 i64 u8 u16 u32 u64);
        binary!($op, floats: |$x, $y| $float);
    };
    ($op:ident, floats: |$x:ident, $y:ident| $float:expr) => {
        binary!(@ $op, |$x, $y| $float, f32 f64);
    };
    (@ $op:ident, |$a:ident, $b:ident| $body:expr, $($type:ty)*) => {
        $(
            impl Operation<2, $type> for $op {
                type Out = $type;
                #[inline(always)]
                fn row(operands: [&[$type]; 2], out: &mut [$type]) -> bool {
                    map2(operands, out, |$a: $type, $b: $type| $body)
                }
            }
        )*
    };
}

pub struct Add;
pub struct Subtract;
pub struct Multiply;
pub struct Divide;
pub struct Min;
pub struct Max;
pub struct Atan2;

binary!(Add, ints: |a, b| a.wrapping_add(b), floats: |a, b| a + b);
binary!(Subtract, ints: |a, b| a.wrapping_sub(b), floats: |a, b| a - b);
binary!(Multiply, ints: |a, b| a.wrapping_mul(b), floats: |a, b| a * b);
binary!(Divide, floats: |a, b| a / b);
// As in DALI, the second operand is returned if they can't be compared.
binary!(Min, ints: |a, b| a.min(b), floats: |a, b| if a < b { a } else { b });
binary!(Max, ints: |a, b| a.max(b), floats: |a, b| if a > b { a } else { b });
binary!(@ Atan2, |y, x| y.atan2(x), f64);

impl Operation<2, f32> for Atan2 {
    type Out = f32;
    #[inline(always)]
    fn row(operands: [&[f32]; 2], out: &mut [f32]) -> bool {
        map2(operands, out, single::atan2)
    }
}

kernel!(2 operands, numbers: Add Subtract Min Max);
kernel!(2 operands, floats: Divide Atan2);
kernel!(2 operands, [Bool Bool, I8 I8, I16 I16, I32 I32, I64 I64, U8 U8, U16 U16, U32 U32,
    U64 U64, F32 F32, F64 F64, F32 F16, F32 BF16]: Multiply);

impl Operation<2, Bool> for Multiply {
    type Out = Bool;
    #[inline(always)]
    fn row(operands: [&[Bool]; 2], out: &mut [Bool]) -> bool {
        map2(operands, out, |a, b| Bool::from(a.get() & b.get()))
    }
}

/// `//`: integer division truncates; floats are divided without rounding, as in DALI.
pub struct Quotient;
/// `%`: has the sign of the dividend.
pub struct Remainder;

kernel!(2 operands, numbers: Quotient);
// Like DALI, computes the remainders of all floats in double precision.
kernel!(2 operands, [I8 I8, I16 I16, I32 I32, I64 I64, U8 U8, U16 U16, U32 U32, U64 U64, F64 F32,
    F64 F64, F64 F16, F64 BF16]: Remainder);
binary!(Quotient, floats: |a, b| a / b);

macro_rules! divide_integers {
    // The quotient of small integers is exact in `$float`, whose division vectorises.
    ($($type:ty as $float:ty),*) => {
        $(
            divide_integers!(@ $type, |a, b| (a as $float / b as $float) as i32 as $type);
        )*
    };
    ($($type:ty)*) => {
        $(
            divide_integers!(@ $type, |a, b| a.wrapping_div(b));
        )*
    };
    (@ $type:ty, |$a:ident, $b:ident| $quotient:expr) => {
        impl Operation<2, $type> for Quotient {
            type Out = $type;
            #[inline(always)]
            fn row([a, b]: [&[$type]; 2], out: &mut [$type]) -> bool {
                !b.contains(&0) && map2([a, b], out, |$a: $type, $b: $type| $quotient)
            }
        }

        impl Operation<2, $type> for Remainder {
            type Out = $type;
            #[inline(always)]
            fn row([a, b]: [&[$type]; 2], out: &mut [$type]) -> bool {
                !b.contains(&0)
                    && map2([a, b], out, |$a: $type, $b: $type| {
                        let quotient: $type = $quotient;
                        $a.wrapping_sub(quotient.wrapping_mul($b))
                    })
            }
        }
    };
}
divide_integers!(i8 as f32, i16 as f32, u8 as f32, u16 as f32);
divide_integers!(u32 i64 u64);
divide_integers!(@ i32, |a, b| divide_i32(a, b));

/// Division in 64-bit floats, which vectorises: quotients of 32-bit integers are exact, except for
/// the one that overflows.
#[inline(always)]
fn divide_i32(a: i32, b: i32) -> i32 {
    let quotient = (f64::from(a) / f64::from(b)) as i32;
    if b == -1 { a.wrapping_neg() } else { quotient }
}

impl Operation<2, f64> for Remainder {
    type Out = f64;
    #[inline(always)]
    fn row([a, b]: [&[f64]; 2], out: &mut [f64]) -> bool {
        #[inline(always)]
        fn quick(a: f64, b: f64) -> f64 {
            let quotient = (a / b).trunc();
            // Exact, unless the quotient was rounded up or has lost digits.
            let rest = (-quotient).mul_add(b, a);
            let exact = quotient.abs() < (1_u64 << 52) as f64 && rest * a >= 0.0;
            if exact { rest.copysign(a) } else { f64::NAN }
        }
        map2([a, b], out, quick);
        redo_nan([a, b], out, |a, b| a % b)
    }
}

/// `**`: integers to a negative power are zero, as in DALI.
pub struct Power;
/// The power in floats, whatever the type of the operands.
pub struct FloatPower;

kernel!(2 operands, numbers: Power);
kernel!(2 operands, floats: FloatPower);

macro_rules! integer_power {
    ($($type:ty)*) => {
        $(
            impl Operation<2, $type> for Power {
                type Out = $type;
                #[inline(always)]
                fn row(operands: [&[$type]; 2], out: &mut [$type]) -> bool {
                    match operands {
                        [a, [2]] => return map([a], out, |a| a.wrapping_mul(a)),
                        [a, [3]] => {
                            return map([a], out, |a| a.wrapping_mul(a).wrapping_mul(a));
                        }
                        _ => {}
                    }
                    map2(operands, out, |mut base: $type, mut exponent: $type| {
                        #[allow(unused_comparisons)]
                        let mut power: $type = if exponent < 0 { 0 } else { 1 };
                        while exponent > 0 {
                            if exponent & 1 == 1 {
                                power = power.wrapping_mul(base);
                            }
                            base = base.wrapping_mul(base);
                            exponent >>= 1;
                        }
                        power
                    })
                }
            }
        )*
    };
}
integer_power!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float_power {
    ($($type:ty: $any:ident;)*) => {
        $(
            impl Operation<2, $type> for Power {
                type Out = $type;
                #[inline(always)]
                fn row(operands: [&[$type]; 2], out: &mut [$type]) -> bool {
                    match operands {
                        [a, &[2.0]] => map([a], out, |a| a * a),
                        [a, &[3.0]] => map([a], out, |a| a * a * a),
                        [a, &[0.5]] => map([a], out, |a| {
                            // Unlike `sqrt`, the powers of -0.0 and -inf are positive.
                            let root = (a + 0.0).sqrt();
                            if a == <$type>::NEG_INFINITY { <$type>::INFINITY } else { root }
                        }),
                        _ => $any(operands, out),
                    }
                }
            }

            impl Operation<2, $type> for FloatPower {
                type Out = $type;
                #[inline(always)]
                fn row(operands: [&[$type]; 2], out: &mut [$type]) -> bool {
                    Power::row(operands, out)
                }
            }
        )*
    };
}
float_power! { f32: single_power; f64: double_power; }

#[inline(always)]
fn single_power(operands: [&[f32]; 2], out: &mut [f32]) -> bool {
    map2(operands, out, single::positive_power);
    redo_nan(operands, out, f32::powf)
}

#[inline(always)]
fn double_power(operands: [&[f64]; 2], out: &mut [f64]) -> bool {
    map2(operands, out, f64::powf)
}

/// Calls `op` for elements whose fast computation returned NaN.
#[inline(always)]
fn redo_nan<C: Copy + PartialEq>([a, b]: [&[C]; 2], out: &mut [C], op: fn(C, C) -> C) -> bool {
    #[allow(clippy::eq_op)] // only NaN differs from itself
    for (i, result) in out.iter_mut().enumerate().filter(|(_, result)| **result != **result) {
        let at = |row: &[C]| *row.get(i).unwrap_or(&row[0]);
        *result = op(at(a), at(b));
    }
    true
}

pub struct Negate;
pub struct Abs;
/// The first operand, raised to at least the second, then lowered to at most the third.
pub struct Clamp;

kernel!(1 operands, numbers: Negate Abs);
kernel!(3 operands, numbers: Clamp);

macro_rules! unary_and_clamp {
    ($($type:ty: |$x:ident| $negated:expr, $absolute:expr;)*) => {
        $(
            impl Operation<1, $type> for Negate {
                type Out = $type;
                #[inline(always)]
                fn row(operands: [&[$type]; 1], out: &mut [$type]) -> bool {
                    map(operands, out, |$x| $negated)
                }
            }

            impl Operation<1, $type> for Abs {
                type Out = $type;
                #[inline(always)]
                fn row(operands: [&[$type]; 1], out: &mut [$type]) -> bool {
                    map(operands, out, |$x| $absolute)
                }
            }

            impl Operation<3, $type> for Clamp {
                type Out = $type;
                #[inline(always)]
                fn row([x, low, high]: [&[$type]; 3], out: &mut [$type]) -> bool {
                    map2([x, low], out, |x, low| if x < low { low } else { x });
                    let above = |o: &mut $type, high: $type| *o = if *o > high { high } else { *o };
                    match high {
                        &[high] => out.iter_mut().for_each(|o| above(o, high)),
                        high => out.iter_mut().zip(high).for_each(|(o, &high)| above(o, high)),
                    }
                    true
                }
            }
        )*
    };
}
unary_and_clamp! {
    i8: |x| x.wrapping_neg(), x.wrapping_abs();
    i16: |x| x.wrapping_neg(), x.wrapping_abs();
    i32: |x| x.wrapping_neg(), x.wrapping_abs();
    i64: |x| x.wrapping_neg(), x.wrapping_abs();
    u8: |x| x.wrapping_neg(), x;
    u16: |x| x.wrapping_neg(), x;
    u32: |x| x.wrapping_neg(), x;
    u64: |x| x.wrapping_neg(), x;
    f32: |x| -x, x.abs();
    f64: |x| -x, x.abs();
}
