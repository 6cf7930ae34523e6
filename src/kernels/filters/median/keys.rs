//! Maps numbers to integer keys with the same order, which SIMD code can sort.

use half::{bf16, f16};

/// A number with an order-preserving integer key. NaN sorts beyond infinity.
pub trait Keyed: Copy {
    type Key: super::lanes::Sorted;
    fn key(self) -> Self::Key;
    fn of_key(key: Self::Key) -> Self;

    /// The same row as keys, if a number is its own key.
    fn as_keys(_row: &mut [Self]) -> Option<&mut [Self::Key]> {
        None
    }
}

macro_rules! keyed {
    ($($type:ty as $key:ty: $to:expr, $from:expr;)*) => {
        $(impl Keyed for $type {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key {
                $to(self)
            }
            #[inline(always)]
            fn of_key(key: $key) -> $type {
                $from(key)
            }
        })*
    };
}

/// Whole numbers that are their own keys.
macro_rules! keys {
    ($($type:ty)*) => {
        $(impl Keyed for $type {
            type Key = $type;
            #[inline(always)]
            fn key(self) -> $type {
                self
            }
            #[inline(always)]
            fn of_key(key: $type) -> $type {
                key
            }
            fn as_keys(row: &mut [$type]) -> Option<&mut [$type]> {
                Some(row)
            }
        })*
    };
}
keys!(u8 i16 i32 i64);

/// Flips all bits but the sign of negative floats, whose bit patterns are in reverse order. Its own
/// inverse.
macro_rules! reversed {
    ($bits:expr, $type:ty) => {{
        let bits = $bits;
        bits ^ ((bits >> (<$type>::BITS - 1)) & <$type>::MAX)
    }};
}

keyed! {
    i8 as u8: |x: i8| x as u8 ^ 128, |x: u8| (x ^ 128) as i8;
    u16 as i16: |x: u16| (x ^ 1 << 15) as i16, |x: i16| x as u16 ^ 1 << 15;
    f16 as i16: |x: f16| reversed!(x.to_bits() as i16, i16),
        |x: i16| f16::from_bits(reversed!(x, i16) as u16);
    bf16 as i16: |x: bf16| reversed!(x.to_bits() as i16, i16),
        |x: i16| bf16::from_bits(reversed!(x, i16) as u16);
    u32 as i32: |x: u32| (x ^ 1 << 31) as i32, |x: i32| x as u32 ^ 1 << 31;
    f32 as i32: |x: f32| reversed!(x.to_bits() as i32, i32),
        |x: i32| f32::from_bits(reversed!(x, i32) as u32);
    u64 as i64: |x: u64| (x ^ 1 << 63) as i64, |x: i64| x as u64 ^ 1 << 63;
    f64 as i64: |x: f64| reversed!(x.to_bits() as i64, i64),
        |x: i64| f64::from_bits(reversed!(x, i64) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_preserve_the_order() {
        let numbers = [f32::NEG_INFINITY, -2.5, -1e-40, 0.0, 1e-40, 1.0, 3e38, f32::INFINITY];
        assert!(numbers.is_sorted_by_key(|x| x.key()));
        assert!(numbers.iter().all(|&x| f32::of_key(x.key()) == x));
        assert!(f32::NAN.key() > f32::INFINITY.key());
        let halves: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
        assert!(halves.is_sorted_by_key(|x| x.key()));
        assert!([-128_i8, -1, 0, 127].is_sorted_by_key(|x| x.key()));
        assert!([0_u16, 1, 40_000, 65_535].is_sorted_by_key(|x| x.key()));
        assert!([0_u64, 1, u64::MAX].iter().all(|&x| u64::of_key(x.key()) == x));
    }
}
