//! Conversion of totals to output elements.

use half::{bf16, f16};

use super::super::Output;
use crate::kernels::generic::cast::Convert;
use crate::value::{Bool, Element, with_element};

/// A type that totals are kept in.
pub trait Total: Copy {
    fn real(self) -> f64;
    fn store<T: Stored>(self) -> T;
}

/// An element type that results are stored as.
pub trait Stored: Element {
    /// Integers truncate and saturate.
    fn from_real(x: f64) -> Self;
    /// Narrower integers wrap around, as in DALI.
    fn from_signed(x: i64) -> Self;
    fn from_unsigned(x: u64) -> Self;
}

macro_rules! totals {
    ($($type:ty: $from:ident),*) => {
        $(
            impl Total for $type {
                fn real(self) -> f64 {
                    self as f64
                }

                fn store<T: Stored>(self) -> T {
                    T::$from(self)
                }
            }
        )*
    };
}
totals!(f64: from_real, i64: from_signed, u64: from_unsigned);

macro_rules! integers {
    ($($type:ty)*) => {
        $(
            impl Stored for $type {
                fn from_real(x: f64) -> $type {
                    x.trunc().convert()
                }

                fn from_signed(x: i64) -> $type {
                    x as $type
                }

                fn from_unsigned(x: u64) -> $type {
                    x as $type
                }
            }
        )*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! others {
    ($($type:ty)*) => {
        $(
            impl Stored for $type {
                fn from_real(x: f64) -> $type {
                    x.convert()
                }

                fn from_signed(x: i64) -> $type {
                    x.convert()
                }

                fn from_unsigned(x: u64) -> $type {
                    x.convert()
                }
            }
        )*
    };
}
others!(Bool f16 bf16 f32 f64);

pub fn store<T: Total>(out: &mut Output<'_>, totals: Vec<T>) {
    with_element!(out.desc.dtype, |O| {
        for (slot, total) in out.elements::<O>().iter_mut().zip(totals) {
            *slot = total.store();
        }
    });
}
