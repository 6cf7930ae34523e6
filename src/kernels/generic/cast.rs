//! Conversion between element types: rounds to nearest (halves away from zero) and saturates.

use half::{bf16, f16};

use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Entry, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Bool, DType, Desc, Element, Sample, with_element};

pub const TABLE: &[Entry] = &[Entry::new::<Cast>("cast")];

pub struct Cast;

args! {
    pub struct CastArgs { dtype: DType }
}

impl Kernel for Cast {
    type Args = CastArgs;
    type Plan = ();
    const TRAITS: Traits = Traits { shaped_by_args: false, stacks: true, ..Traits::DEFAULT };

    fn plan(args: CastArgs, inputs: &[&Desc]) -> Result<((), Outputs)> {
        Ok(((), one(Desc { dtype: args.dtype, ..inputs[0].clone() })))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        cast(&inputs[0], out)
    }
}

/// Converts a contiguous sample to the type of `out`.
pub fn cast(sample: &Sample, out: &mut Output<'_>) -> Result<()> {
    with_element!(out.desc.dtype, |T| out.write(|start, piece| {
        T::convert_row(sample, start, piece);
        Ok(())
    }))
}

/// An element type that any other can be converted to.
pub trait Number: Element + Default {
    /// Converts `dst.len()` elements of a contiguous sample, from element `start` on.
    fn convert_row(src: &Sample, start: usize, dst: &mut [Self]);
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(
            impl Number for $type {
                fn convert_row(src: &Sample, start: usize, dst: &mut [$type]) {
                    with_element!(src.desc.dtype, |S| {
                        let src = &src.elements::<S>()[start..start + dst.len()];
                        vectorized!({
                            for (d, &s) in dst.iter_mut().zip(src) {
                                *d = s.convert();
                            }
                        });
                    });
                }
            }
        )*
    };
}
numbers!(Bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);

/// Conversion of one element.
pub trait Convert<To> {
    fn convert(self) -> To;
}

macro_rules! each_int {
    ($do:ident ! ($($head:tt)*)) => {
        $do!($($head)* i8); $do!($($head)* i16); $do!($($head)* i32); $do!($($head)* i64);
        $do!($($head)* u8); $do!($($head)* u16); $do!($($head)* u32); $do!($($head)* u64);
    };
}

/// What DALI converts NaN to: the result of the processor's own conversion.
trait FromNan {
    const FROM_NAN: Self;
}

macro_rules! from_nan {
    ($($int:ty = $value:expr),*) => { $(impl FromNan for $int { const FROM_NAN: $int = $value; })* };
}
from_nan!(i8 = 0, i16 = 0, i32 = i32::MIN, i64 = i64::MIN, u8 = 0, u16 = 0, u32 = 0, u64 = 1 << 63);

macro_rules! float_to_int {
    ($($float:ty, $below_half:expr => $cut:expr; $($int:ty)*;)*) => {
        $($(
            impl Convert<$int> for $float {
                #[inline]
                fn convert(self) -> $int {
                    // Adding the largest number below one half and truncating rounds halves away
                    // from zero; `round` would be a library call on older processors.
                    let rounded = $cut(self + (<$float>::copysign($below_half, self)));
                    if self.is_nan() { <$int>::FROM_NAN } else { rounded }
                }
            }
        )*)*
    };
}
float_to_int! {
    f32, 0.499_999_97 => |x| x as _; i32 i64 u32 u64;
    f64, 0.499_999_999_999_999_94 => |x| x as _; i32 i64 u32 u64;
    f32, 0.499_999_97 => Small::cut; i8 i16 u8 u16;
    f64, 0.499_999_999_999_999_94 => Small::cut; i8 i16 u8 u16;
}

/// An integer type whose values are all exact floats, so that the conversion vectorises; `as` would
/// convert elements one by one.
trait Small<F> {
    /// Truncates and saturates; any result is fine for NaN.
    fn cut(x: F) -> Self;
}

macro_rules! small {
    ($float:ty: $($int:ty)*) => {
        $(
            impl Small<$float> for $int {
                #[inline]
                fn cut(x: $float) -> $int {
                    let (low, high) = (<$int>::MIN as $float, <$int>::MAX as $float);
                    let x = if x > low { x } else { low };
                    let x = if x < high { x } else { high };
                    // SAFETY: it is between `low` and `high`, even if it was NaN.
                    unsafe { x.to_int_unchecked::<i32>() as $int }
                }
            }
        )*
    };
}
small!(f32: i8 i16 u8 u16);
small!(f64: i8 i16 u8 u16);

macro_rules! int_to_int {
    ($from:ty; $to:ty) => {
        impl Convert<$to> for $from {
            #[inline]
            fn convert(self) -> $to {
                #[allow(clippy::unnecessary_fallible_conversions, unused_comparisons)]
                <$to>::try_from(self).unwrap_or(if self < 0 { <$to>::MIN } else { <$to>::MAX })
            }
        }
    };
}

macro_rules! int_to_others {
    ($int:ty) => {
        each_int!(int_to_int!($int;));
        impl Convert<f32> for $int {
            #[inline]
            fn convert(self) -> f32 {
                self as f32
            }
        }
        impl Convert<f64> for $int {
            #[inline]
            fn convert(self) -> f64 {
                self as f64
            }
        }
        impl Convert<Bool> for $int {
            #[inline]
            fn convert(self) -> Bool {
                Bool::from(self != 0)
            }
        }
        small_float_targets!($int);
        impl Convert<$int> for Bool {
            #[inline]
            fn convert(self) -> $int {
                self.get() as $int
            }
        }
        impl Convert<$int> for f16 {
            #[inline]
            fn convert(self) -> $int {
                self.to_f32().convert()
            }
        }
        impl Convert<$int> for bf16 {
            #[inline]
            fn convert(self) -> $int {
                self.to_f32().convert()
            }
        }
    };
}

/// 16-bit floats are converted by way of 32-bit ones.
macro_rules! small_float_targets {
    ($from:ty) => {
        impl Convert<f16> for $from {
            #[inline]
            fn convert(self) -> f16 {
                f16::from_f32(self.convert())
            }
        }
        impl Convert<bf16> for $from {
            #[inline]
            fn convert(self) -> bf16 {
                bf16::from_f32(self.convert())
            }
        }
    };
}
each_int!(int_to_others!());
small_float_targets!(Bool);

macro_rules! convert {
    ($($from:ty => $to:ty: |$x:ident| $body:expr;)*) => {
        $(
            impl Convert<$to> for $from {
                #[inline]
            fn convert(self) -> $to {
                    let $x = self;
                    $body
                }
            }
        )*
    };
}

convert! {
    Bool => Bool: |x| Bool::from(x.get());
    Bool => f32: |x| f32::from(x.get());
    Bool => f64: |x| f64::from(x.get());
    // Rounds first, so that 0.4 is false; NaN is true.
    f32 => Bool: |x| Bool::from(x.is_nan() || x.abs() >= 0.5);
    f64 => Bool: |x| Bool::from(x.is_nan() || x.abs() >= 0.5);
    f16 => Bool: |x| x.to_f32().convert();
    bf16 => Bool: |x| x.to_f32().convert();
    f32 => f32: |x| x;
    f32 => f64: |x| f64::from(x);
    f64 => f32: |x| x as f32;
    f64 => f64: |x| x;
    f32 => f16: |x| f16::from_f32(x);
    f32 => bf16: |x| bf16::from_f32(x);
    f64 => f16: |x| f16::from_f64(x);
    f64 => bf16: |x| bf16::from_f64(x);
    f16 => f16: |x| x;
    f16 => bf16: |x| bf16::from_f32(x.to_f32());
    f16 => f32: |x| x.to_f32();
    f16 => f64: |x| x.to_f64();
    bf16 => f16: |x| f16::from_f32(x.to_f32());
    bf16 => bf16: |x| x;
    bf16 => f32: |x| x.to_f32();
    bf16 => f64: |x| x.to_f64();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to<T>(x: f32) -> T
    where
        f32: Convert<T>,
    {
        x.convert()
    }

    #[test]
    fn halves_round_away_from_zero_and_values_saturate() {
        let u8s = [0.5, 1.5, 2.5, -0.6, 254.5, 300.0, -5.0, f32::NAN, f32::INFINITY].map(to::<u8>);
        assert_eq!(u8s, [1, 2, 3, 0, 255, 255, 0, 0, 255]);
        let i32s = [-0.5, -1.5, 3e9, f32::NAN, 0.499_999_97, 8_388_609.0].map(to::<i32>);
        assert_eq!(i32s, [-1, -2, i32::MAX, i32::MIN, 0, 8_388_609]);
    }

    #[test]
    fn the_rounding_trick_agrees_with_round() {
        for bits in (0..u32::MAX).step_by(9_973) {
            let x = f32::from_bits(bits);
            if !x.is_nan() {
                assert_eq!(to::<i64>(x), x.round() as i64, "{x:e}");
            }
        }
    }

    #[test]
    fn integers_saturate() {
        assert_eq!(Convert::<u8>::convert(-1_i32), 0);
        assert_eq!(Convert::<u8>::convert(256_i32), 255);
        assert_eq!(Convert::<i32>::convert(1_u64 << 63), i32::MAX);
        assert_eq!(Convert::<i8>::convert(i64::MIN), -128);
    }
}
