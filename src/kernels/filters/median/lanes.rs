//! Elementwise minimum and maximum of adjacent pixels, scalar or SIMD.

use crate::kernels::numeric::isa::vectorized;

/// A scalar, or a SIMD vector.
pub trait Lanes: Copy {
    type Number: Sorted;
    const COUNT: usize;

    /// # Safety
    /// There must be `COUNT` numbers at `from`.
    unsafe fn load(from: *const Self::Number) -> Self;

    /// # Safety
    /// There must be room for `COUNT` numbers at `to`.
    unsafe fn store(self, to: *mut Self::Number);

    fn low(self, other: Self) -> Self;
    fn high(self, other: Self) -> Self;
}

/// Work on the pixels of a row. It may run more than once for a pixel.
pub trait Work<N> {
    /// Processes `L::COUNT` pixels from `at` on.
    ///
    /// # Safety
    /// There must be that many pixels.
    unsafe fn run<L: Lanes<Number = N>>(&mut self, at: usize);
}

/// Integer keys that SIMD vectors exist for.
pub trait Sorted: Lanes<Number = Self> + Default + Ord {
    /// Runs the work for all pixels of a row.
    fn for_each(count: usize, work: &mut impl Work<Self>);
}

/// Scalar loop over the pixels from `from` on.
#[inline(always)]
fn singly<N: Sorted>(from: usize, count: usize, work: &mut impl Work<N>) {
    vectorized!({
        for at in from..count {
            // SAFETY: a scalar has one lane, and `at` is less than `count`.
            unsafe { work.run::<N>(at) };
        }
    });
}

macro_rules! numbers {
    ($($type:ty $(as $vector:ident)?;)*) => {
        $(
            impl Lanes for $type {
                type Number = $type;
                const COUNT: usize = 1;
                #[inline(always)]
                unsafe fn load(from: *const $type) -> $type {
                    // SAFETY: guaranteed by the caller.
                    unsafe { *from }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $type) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { *to = self }
                }
                #[inline(always)]
                fn low(self, other: $type) -> $type {
                    self.min(other)
                }
                #[inline(always)]
                fn high(self, other: $type) -> $type {
                    self.max(other)
                }
            }

            impl Sorted for $type {
                fn for_each(count: usize, work: &mut impl Work<$type>) {
                    $(
                        #[cfg(target_arch = "x86_64")]
                        if crate::kernels::numeric::isa::Isa::best()
                            == crate::kernels::numeric::isa::Isa::Avx2
                            && count >= avx2::$vector::COUNT
                        {
                            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
                            return unsafe { avx2::for_each::<avx2::$vector>(count, work) };
                        }
                    )?
                    singly(0, count, work);
                }
            }
        )*
    };
}
numbers! { u8 as Bytes; i16 as Shorts; i32 as Words; i64; }

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Lanes, Work};

    /// # Safety
    /// AVX2 must be available, and `count` must be at least `L::COUNT`.
    #[target_feature(enable = "avx2")]
    pub unsafe fn for_each<L: Lanes>(count: usize, work: &mut impl Work<L::Number>) {
        // The last vector may overlap the previous one.
        let last = count - L::COUNT;
        for at in (0..last).step_by(L::COUNT).chain([last]) {
            // SAFETY: `at + L::COUNT` is at most `count`.
            unsafe { work.run::<L>(at) };
        }
    }

    macro_rules! vectors {
        ($($name:ident: $number:ty, $low:ident, $high:ident;)*) => {
            $(
                #[derive(Clone, Copy)]
                pub struct $name(__m256i);

                impl Lanes for $name {
                    type Number = $number;
                    const COUNT: usize = 32 / size_of::<$number>();
                    #[inline(always)]
                    unsafe fn load(from: *const $number) -> $name {
                        // SAFETY: guaranteed by the caller; AVX2 is available, as only `for_each`
                        // uses this type.
                        $name(unsafe { _mm256_loadu_si256(from.cast()) })
                    }
                    #[inline(always)]
                    unsafe fn store(self, to: *mut $number) {
                        // SAFETY: as for `load`.
                        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
                    }
                    #[inline(always)]
                    fn low(self, other: $name) -> $name {
                        // SAFETY: these vectors only exist where AVX2 was detected.
                        $name(unsafe { $low(self.0, other.0) })
                    }
                    #[inline(always)]
                    fn high(self, other: $name) -> $name {
                        // SAFETY: as for `low`.
                        $name(unsafe { $high(self.0, other.0) })
                    }
                }
            )*
        };
    }
    vectors! {
        Bytes: u8, _mm256_min_epu8, _mm256_max_epu8;
        Shorts: i16, _mm256_min_epi16, _mm256_max_epi16;
        Words: i32, _mm256_min_epi32, _mm256_max_epi32;
    }
}
