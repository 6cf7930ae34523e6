//! Element types as pixel values between black and white.

use half::{bf16, f16};

use crate::kernels::generic::cast::Convert;
use crate::value::{Bool, Element};

pub trait Tone: Element + Default + Convert<f64> {
    /// White.
    const WHITE: f64;
    /// Default threshold of solarize, halfway between black and white.
    const MIDDLE: f64;
    /// Whether the type is an integer.
    const WHOLE: bool;

    fn inverted(self) -> Self;

    /// The argument of [`Tone::posterized`] for keeping `bits` bits.
    fn levels(bits: u32) -> Self;

    fn posterized(self, levels: Self) -> Self;

    /// The smallest element that is at least `x`; `None` if there is none.
    fn at_least(x: f64) -> Option<Self>;

    fn is_below(self, other: Self) -> bool;

    /// Converts a number, clamped to black and white; integers are truncated.
    fn of(x: f64) -> Self;
}

macro_rules! integers {
    ($($int:ty)*) => {
        $(
            impl Tone for $int {
                const WHITE: f64 = <$int>::MAX as f64;
                const MIDDLE: f64 = (<$int>::MAX / 2 + 1) as f64;
                const WHOLE: bool = true;

                // Signed integers keep their sign.
                #[inline(always)]
                fn inverted(self) -> $int {
                    self ^ <$int>::MAX
                }

                fn levels(bits: u32) -> $int {
                    let all = <$int>::MAX.count_ones();
                    if bits >= all { !0 } else { <$int>::MAX & !(<$int>::MAX >> bits) }
                }

                #[inline(always)]
                fn posterized(self, levels: $int) -> $int {
                    self & levels
                }

                fn at_least(x: f64) -> Option<$int> {
                    let x = x.ceil();
                    (x as i128 <= <$int>::MAX as i128).then_some(x as $int)
                }

                #[inline(always)]
                fn is_below(self, other: Self) -> bool {
                    self < other
                }

                #[inline(always)]
                fn of(x: f64) -> $int {
                    x.max(0.0) as $int
                }
            }
        )*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Floats, with their conversions from and to f32 or f64.
macro_rules! floats {
    ($($float:ty as $wide:ty, $from:expr;)*) => {
        $(
            impl Tone for $float {
                const WHITE: f64 = 1.0;
                const MIDDLE: f64 = 0.5;
                const WHOLE: bool = false;

                #[inline(always)]
                fn inverted(self) -> $float {
                    $from(1.0 - <$wide>::from(self))
                }

                fn levels(bits: u32) -> $float {
                    $from((1_u32 << bits) as $wide)
                }

                #[inline(always)]
                fn posterized(self, levels: $float) -> $float {
                    let levels = <$wide>::from(levels);
                    let level = (<$wide>::from(self) * levels).floor();
                    $from(level.clamp(0.0, levels - 1.0) / levels)
                }

                fn at_least(x: f64) -> Option<$float> {
                    Some(Convert::<$float>::convert(x))
                }

                #[inline(always)]
                fn is_below(self, other: Self) -> bool {
                    self < other
                }

                #[inline(always)]
                fn of(x: f64) -> $float {
                    Convert::<$float>::convert(x.clamp(0.0, 1.0))
                }
            }
        )*
    };
}
floats! {
    f16 as f32, f16::from_f32;
    bf16 as f32, bf16::from_f32;
    f32 as f32, f32::from;
    f64 as f64, f64::from;
}

/// Only needed to compile: the definitions accept numbers only.
impl Tone for Bool {
    const WHITE: f64 = 1.0;
    const MIDDLE: f64 = 1.0;
    const WHOLE: bool = true;

    fn inverted(self) -> Bool {
        Bool::from(!self.get())
    }

    fn levels(bits: u32) -> Bool {
        Bool::from(bits > 0)
    }

    fn posterized(self, levels: Bool) -> Bool {
        Bool::from(self.get() && levels.get())
    }

    fn at_least(x: f64) -> Option<Bool> {
        (x <= 1.0).then(|| Bool::from(x > 0.0))
    }

    fn is_below(self, other: Bool) -> bool {
        !self.get() && other.get()
    }

    fn of(x: f64) -> Bool {
        Bool::from(x >= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_exact() {
        assert_eq!(u8::at_least(127.2), Some(128));
        assert_eq!(u8::at_least(255.0), Some(255));
        assert_eq!(u8::at_least(255.1), None);
        assert_eq!(u8::at_least(-3.0), Some(0));
        assert_eq!(i8::at_least(-3.5), Some(-3));
        assert_eq!(i64::at_least(9.3e18), None);
        assert_eq!(i64::at_least(f64::INFINITY), None);
        assert_eq!(u64::at_least(f64::NEG_INFINITY), Some(0));
    }

    #[test]
    fn the_highest_bits_are_kept() {
        assert_eq!([0, 1, 4, 8].map(u8::levels), [0, 0x80, 0xF0, 0xFF]);
        // An i8 has seven bits besides its sign.
        assert_eq!([0, 1, 6, 7].map(i8::levels), [0, 0x40, 0x7E, -1]);
        assert_eq!(u16::levels(8), 0xFF00);
        assert_eq!(0.4_f32.posterized(f32::levels(2)), 0.25);
        assert_eq!(7.0_f32.posterized(f32::levels(2)), 0.75);
    }
}
