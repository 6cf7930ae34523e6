//! How bytes get to memory.
//!
//! A usual store fetches the line that it writes to, and throws out another. For a result larger
//! than the caches, both are for nothing: going around the caches takes less than half the time.
//! Where somebody reads the result soon, and it fits, the caches are the better place.

use std::marker::PhantomData;

/// Bytes that the processor moves at a time.
pub const LINE: usize = 64;
/// Rows of fewer bytes are written as usual: too much of them is parts of lines.
const SHORTEST: usize = 4 * LINE;

/// How far ahead of a copy its source is fetched: these stores wait for it otherwise.
const AHEAD: usize = 32 * LINE;

/// Writes into bytes that nobody can touch for `'a`, in one of the two ways.
pub struct Stores<'a> {
    around: bool,
    /// Something that takes bytes, so that `'a` can't become shorter: nobody may read bytes again
    /// before the stores end.
    bytes: PhantomData<fn(&'a mut [u8])>,
}

impl Stores<'_> {
    /// Has `write` fill `bytes`, around the caches if so asked.
    pub fn with<R>(
        bytes: &mut [u8],
        around: bool,
        write: impl for<'a> FnOnce(&'a mut [u8], &Stores<'a>) -> R,
    ) -> R {
        // Dropped also when `write` panics. The bytes can't be read before: a slice of them that
        // was written lives as long as the stores, and those end here.
        let _fence = around.then_some(Fence);
        write(bytes, &Stores { around, bytes: PhantomData })
    }
}

impl<'a> Stores<'a> {
    /// As usual.
    pub const fn plain() -> Stores<'a> {
        Stores { around: false, bytes: PhantomData }
    }

    pub fn is_around(&self) -> bool {
        self.around
    }

    /// Copies `src` into `dst`, which is as long.
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
        // SAFETY: every such processor has this instruction.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// # Safety
/// Between this and the next access to `dst` there must be a [`Fence`] in the same thread.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_around(dst: &mut [u8], src: &[u8]) {
    use std::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_stream_si128,
    };

    #[repr(align(64))]
    struct Line([u8; LINE]);

    assert_eq!(dst.len(), src.len());
    // SAFETY: a line is bytes, at an address that it can be at.
    let (head, lines, tail) = unsafe { dst.align_to_mut::<Line>() };
    let (first, src) = src.split_at(head.len());
    let (whole, last) = src.split_at(lines.len() * LINE);
    head.copy_from_slice(first);
    for (line, src) in lines.iter_mut().zip(whole.as_chunks::<LINE>().0) {
        // SAFETY: this reads nothing that the program could notice, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(src.as_ptr().wrapping_add(AHEAD).cast()) };
        let (to, from) = (line.0.as_mut_ptr().cast::<__m128i>(), src.as_ptr().cast::<__m128i>());
        for part in 0..LINE / size_of::<__m128i>() {
            // SAFETY: both have the bytes of a line, which starts at a multiple of 64.
            unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
        }
    }
    tail.copy_from_slice(last);
}

/// # Safety
/// None is needed here: there is no such store, and the usual one takes its place.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_around(dst: &mut [u8], src: &[u8]) {
    dst.copy_from_slice(src);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_copy_the_same_at_any_place_and_length() {
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
