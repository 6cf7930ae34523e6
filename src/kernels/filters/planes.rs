//! Samples as stacks of images, for filters that process rows.

use crate::kernels::Result;
use crate::kernels::contract::problems::{Argument, argument};
use crate::value::Desc;

/// Image dimensions, with interleaved channels. A CHW image is C images with one channel.
pub struct Planes {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Planes {
    pub fn of(desc: &Desc) -> Planes {
        let side = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        let innermost = desc.layout.letters().last() == Some(&b'C');
        Planes {
            height: side(b'H'),
            width: side(b'W'),
            channels: if innermost { side(b'C') } else { 1 },
        }
    }

    /// Elements per row.
    pub fn row(&self) -> usize {
        self.width * self.channels
    }

    /// Elements per image.
    pub fn size(&self) -> usize {
        self.height * self.row()
    }
}

/// Width and height from an argument, which may be one number for both.
pub fn width_and_height(name: &'static str, given: &[i64]) -> Result<[i64; 2]> {
    match *given {
        [one] => Ok([one; 2]),
        [width, height] => Ok([width, height]),
        _ => Err(argument(name, Argument::Count { wanted: 2, given: given.len() })),
    }
}

/// Numbers with a minimum and a maximum.
pub trait Ordered: Copy + PartialOrd {
    const LEAST: Self;
    const MOST: Self;

    #[inline(always)]
    fn low(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    #[inline(always)]
    fn high(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

macro_rules! ordered {
    ($($type:ty: $least:expr, $most:expr;)*) => {
        $(impl Ordered for $type {
            const LEAST: $type = $least;
            const MOST: $type = $most;
        })*
    };
}
ordered! {
    i8: i8::MIN, i8::MAX;
    i16: i16::MIN, i16::MAX;
    i32: i32::MIN, i32::MAX;
    i64: i64::MIN, i64::MAX;
    u8: u8::MIN, u8::MAX;
    u16: u16::MIN, u16::MAX;
    u32: u32::MIN, u32::MAX;
    u64: u64::MIN, u64::MAX;
    half::f16: half::f16::NEG_INFINITY, half::f16::INFINITY;
    half::bf16: half::bf16::NEG_INFINITY, half::bf16::INFINITY;
    f32: f32::NEG_INFINITY, f32::INFINITY;
    f64: f64::NEG_INFINITY, f64::INFINITY;
}
