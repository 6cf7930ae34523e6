//! Normal and non-temporal stores.
//!
//! A normal store first reads the cache line that it overwrites, and evicts another one. Both are
//! wasted on a result larger than the caches: bypassing them takes less than half the time. A
//! result that fits and is read soon is better off in the caches.

use std::marker::PhantomData;

/// Size of a cache line.
pub const LINE: usize = 64;
/// Shorter rows use normal stores: too much of them would be partial lines.
const SHORTEST: usize = 4 * LINE;

/// A cache line of bytes.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Line(pub [u8; LINE]);

/// Prefetch distance of a copy: non-temporal stores would otherwise wait for the source.
const AHEAD: usize = 32 * LINE;

/// Writes bytes that nobody else can access for `'a`, with normal or non-temporal stores.
pub struct Stores<'a> {
    around: bool,
    /// Makes `'a` contravariant, so that it can't be shortened: the bytes must not be read before
    /// the final fence.
    bytes: PhantomData<fn(&'a mut [u8])>,
}

impl Stores<'_> {
    /// Calls `write` to fill `bytes`, with non-temporal stores if `around` is set.
    pub fn with<R>(
        bytes: &mut [u8],
        around: bool,
        write: impl for<'a> FnOnce(&'a mut [u8], &Stores<'a>) -> R,
    ) -> R {
        // Dropped even if `write` panics. The bytes can't be read earlier: slices of them that were
        // written stay borrowed for as long as the stores exist, which end here.
        let _fence = around.then_some(Fence);
        write(bytes, &Stores { around, bytes: PhantomData })
    }
}

impl<'a> Stores<'a> {
    /// Normal stores.
    pub const fn plain() -> Stores<'a> {
        Stores { around: false, bytes: PhantomData }
    }

    pub fn is_around(&self) -> bool {
        self.around
    }

    /// Copies `src` into `dst`, which has the same length.
    pub fn copy(&self, dst: &'a mut [u8], src: &[u8]) {
        if self.around && dst.len() >= SHORTEST {
            // SAFETY: see `with`.
            unsafe { copy_around(dst, src) }
        } else {
            dst.copy_from_slice(src);
        }
    }
}

struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has this instruction.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// # Safety
/// Between this and the next access to `dst` there must be a [`Fence`] in the same thread.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_around(dst: &mut [u8], src: &[u8]) {
    assert_eq!(dst.len(), src.len());
    // SAFETY: a `Line` is plain bytes, valid at any aligned address.
    let (head, lines, tail) = unsafe { dst.align_to_mut::<Line>() };
    let (first, src) = src.split_at(head.len());
    let (whole, last) = src.split_at(lines.len() * LINE);
    let whole = whole.as_chunks::<LINE>().0;
    head.copy_from_slice(first);
    if is_x86_feature_detected!("avx") {
        // SAFETY: the processor has the instructions.
        unsafe { x86::copy_lines_avx(lines, whole) };
    } else {
        x86::copy_lines(lines, whole);
    }
    tail.copy_from_slice(last);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{AHEAD, LINE, Line};

    pub fn copy_lines(lines: &mut [Line], src: &[[u8; LINE]]) {
        for (line, src) in lines.iter_mut().zip(src) {
            // SAFETY: a prefetch has no visible effect, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(src.as_ptr().wrapping_add(AHEAD).cast()) };
            let to = line.0.as_mut_ptr().cast::<__m128i>();
            let from = src.as_ptr().cast::<__m128i>();
            for part in 0..LINE / size_of::<__m128i>() {
                // SAFETY: both have a whole line of bytes, and `to` is 64-byte aligned.
                unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
            }
        }
    }

    /// With stores of 32 bytes, which takes a tenth less time.
    #[target_feature(enable = "avx")]
    pub fn copy_lines_avx(lines: &mut [Line], src: &[[u8; LINE]]) {
        for (line, src) in lines.iter_mut().zip(src) {
            _mm_prefetch::<_MM_HINT_T0>(src.as_ptr().wrapping_add(AHEAD).cast());
            let to = line.0.as_mut_ptr().cast::<__m256i>();
            let from = src.as_ptr().cast::<__m256i>();
            for part in 0..LINE / size_of::<__m256i>() {
                // SAFETY: both have a whole line of bytes, and `to` is 64-byte aligned.
                unsafe { _mm256_stream_si256(to.add(part), _mm256_loadu_si256(from.add(part))) };
            }
        }
    }
}

/// # Safety
/// None required: without non-temporal stores, this is a normal copy.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_around(dst: &mut [u8], src: &[u8]) {
    dst.copy_from_slice(src);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_stores_copy_the_same_at_any_offset_and_length() {
        let src: Vec<u8> = (0..2000_u32).map(|i| (i % 251) as u8).collect();
        for start in [0, 1, 17, 63, 64, 100] {
            for len in [0, 1, 255, 256, 257, 320, 383, 1500] {
                for around in [false, true] {
                    let mut dst = vec![255; 2000];
                    Stores::with(&mut dst[start..start + len], around, |bytes, stores| {
                        stores.copy(bytes, &src[3..3 + len]);
                    });
                    assert_eq!(dst[start..start + len], src[3..3 + len]);
                    assert!(dst[..start].iter().chain(&dst[start + len..]).all(|&b| b == 255));
                }
            }
        }
    }
}
