//! Moving pixels: flip.

use super::{Entry, Family, Kernel, Output, Outputs, Result, Traits, args, one};
#[cfg(target_arch = "x86_64")]
use crate::kernels::numeric::isa::Isa;
use crate::value::{Desc, Sample};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[] };

const TABLE: &[Entry] = &[Entry::new::<Flip>("flip")];

pub struct Flip;

args! {
    pub struct FlipArgs { depthwise: bool, horizontal: bool, vertical: bool }
}

impl Kernel for Flip {
    type Args = FlipArgs;
    type Plan = FlipArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, stacks: true, ..Traits::DEFAULT };

    fn plan(args: FlipArgs, inputs: &[&Desc]) -> Result<(FlipArgs, Outputs)> {
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &FlipArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let volumes = Volumes::of(out.desc);
        let src = inputs[0].elements_as_bytes();
        // Pixels only move, so only their size matters; common sizes get specialised code.
        match volumes.pixel {
            1 => flip::<1>(src, out, &volumes, args),
            2 => flip::<2>(src, out, &volumes, args),
            3 => flip::<3>(src, out, &volumes, args),
            4 => flip::<4>(src, out, &volumes, args),
            6 => flip::<6>(src, out, &volumes, args),
            8 => flip::<8>(src, out, &volumes, args),
            12 => flip::<12>(src, out, &volumes, args),
            16 => flip::<16>(src, out, &volumes, args),
            _ => flip::<0>(src, out, &volumes, args),
        }
        Ok(())
    }
}

/// Any image layout as volumes of pixels: a CHW image is C one-channel volumes of depth 1, and the
/// channels of an HWC image form one wide pixel.
struct Volumes {
    depth: usize,
    height: usize,
    width: usize,
    /// Bytes of a pixel.
    pixel: usize,
}

impl Volumes {
    fn of(desc: &Desc) -> Volumes {
        let extent = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        let innermost = desc.layout.letters().last() == Some(&b'C');
        let channels = if innermost { extent(b'C') } else { 1 };
        Volumes {
            depth: extent(b'D'),
            height: extent(b'H'),
            width: extent(b'W'),
            pixel: channels * desc.dtype.size(),
        }
    }
}

/// `PIXEL` is the size of a pixel in bytes, or 0 for any size.
fn flip<const PIXEL: usize>(src: &[u8], out: &mut Output<'_>, volumes: &Volumes, args: &FlipArgs) {
    let Volumes { depth, height, width, pixel } = *volumes;
    let row = width * pixel;
    out.write_rows(row, |index, dst| {
        let mut from = index;
        if args.vertical || args.depthwise {
            let (volume, z, y) = (index / height / depth, index / height % depth, index % height);
            let z = if args.depthwise { depth - 1 - z } else { z };
            let y = if args.vertical { height - 1 - y } else { y };
            from = (volume * depth + z) * height + y;
        }
        let src = &src[from * row..][..row];
        if args.horizontal {
            reverse_pixels::<PIXEL>(src, dst, pixel);
        } else {
            dst.copy_from_slice(src);
        }
    });
}

fn reverse_pixels<const PIXEL: usize>(src: &[u8], dst: &mut [u8], pixel: usize) {
    if PIXEL == 0 {
        for (s, d) in src.rchunks_exact(pixel).zip(dst.chunks_exact_mut(pixel)) {
            d.copy_from_slice(s);
        }
        return;
    }
    #[allow(unused_mut)] // unused on other processors
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if src.len() >= LONG_ROW && Isa::best() == Isa::Avx2 {
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        done = unsafe {
            match PIXEL.is_multiple_of(4) {
                true => vectors::reverse_words::<PIXEL>(src, dst),
                false => vectors::reverse_bytes::<PIXEL>(src, dst),
            }
        };
    }
    let src = src[..src.len() - done].as_chunks::<PIXEL>().0;
    for (s, d) in src.iter().rev().zip(dst[done..].as_chunks_mut::<PIXEL>().0) {
        *d = *s;
    }
}

/// Shorter rows (in bytes) are not worth vectors.
#[cfg(target_arch = "x86_64")]
const LONG_ROW: usize = 64;

/// Several pixels at a time, from the end of a row. The functions return how many bytes they have
/// written; less than two vectors are left over.
///
/// A vector may be longer than its whole pixels. What it reads beyond them has already been moved
/// (the last pixel is moved separately, first); what it writes beyond them is overwritten by the
/// next vector.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    /// Pixels of at most 16 bytes.
    #[target_feature(enable = "avx2")]
    pub fn reverse_bytes<const PIXEL: usize>(src: &[u8], dst: &mut [u8]) -> usize {
        let order: [u8; 16] = std::array::from_fn(|to| reversed::<16>(PIXEL, to) as u8);
        // SAFETY: `for_each` passes pointers to 16 bytes.
        unsafe {
            let order = _mm_loadu_si128(order.as_ptr().cast());
            for_each::<16>(PIXEL, src, dst, |from, to| {
                let pixels = _mm_loadu_si128(from.cast());
                _mm_storeu_si128(to.cast(), _mm_shuffle_epi8(pixels, order));
            })
        }
    }

    /// Pixels of at most eight 32-bit words.
    #[target_feature(enable = "avx2")]
    pub fn reverse_words<const PIXEL: usize>(src: &[u8], dst: &mut [u8]) -> usize {
        let order: [i32; 8] = std::array::from_fn(|to| reversed::<8>(PIXEL / 4, to) as i32);
        // SAFETY: `for_each` passes pointers to 32 bytes.
        unsafe {
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            for_each::<32>(PIXEL, src, dst, |from, to| {
                let pixels = _mm256_loadu_si256(from.cast());
                _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(pixels, order));
            })
        }
    }

    /// Source index of element `to` of a vector of `N` elements, with `pixel` elements per pixel.
    fn reversed<const N: usize>(pixel: usize, to: usize) -> usize {
        let whole = N / pixel * pixel;
        if to < whole { whole - pixel - to / pixel * pixel + to % pixel } else { 0 }
    }

    /// Calls `reverse` with pointers into `src`, from its end on, and into `dst`, both to `VECTOR`
    /// bytes.
    #[inline(always)]
    fn for_each<const VECTOR: usize>(
        pixel: usize,
        src: &[u8],
        dst: &mut [u8],
        reverse: impl Fn(*const u8, *mut u8),
    ) -> usize {
        let whole = VECTOR / pixel * pixel;
        let len = src.len().min(dst.len());
        let mut done = 0;
        if whole < VECTOR && len >= pixel {
            dst[..pixel].copy_from_slice(&src[len - pixel..len]);
            done = pixel;
        }
        while done + VECTOR <= len {
            let at = len - done - whole;
            // In bounds: `dst` has a vector left, and so has `src`, counting the pixel that was
            // moved first if the vector is longer than its pixels.
            let (from, to) = (&src[at..at + VECTOR], &mut dst[done..done + VECTOR]);
            reverse(from.as_ptr(), to.as_mut_ptr());
            // Prefetches the next row, which follows this one: the processor does not predict rows
            // that are read backwards.
            let ahead = from.as_ptr().wrapping_add(len);
            // SAFETY: a prefetch has no visible effect, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
            done += whole;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const PIXEL: usize>() {
        for count in 0..40 {
            let src: Vec<u8> = (0..count * PIXEL).map(|i| i as u8).collect();
            let mut dst = vec![0; src.len()];
            reverse_pixels::<PIXEL>(&src, &mut dst, PIXEL);
            let expected: Vec<u8> = src.rchunks_exact(PIXEL).flatten().copied().collect();
            assert_eq!(dst, expected, "{count} of {PIXEL}");
        }
    }

    #[test]
    fn rows_of_any_length_are_reversed_pixel_by_pixel() {
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
        check::<6>();
        check::<8>();
        check::<12>();
        check::<16>();
    }
}
