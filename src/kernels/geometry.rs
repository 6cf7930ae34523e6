//! Where pixels go: flip.

use super::isa::Isa;
use super::{Entry, Kernel, Result, Space, args};
use crate::value::{Desc, Sample};

pub const TABLE: &[Entry] = &[Entry::one::<Flip>("flip")];

pub struct Flip;

args! {
    pub struct FlipArgs { depthwise: bool, horizontal: bool, vertical: bool }
}

impl Kernel for Flip {
    type Args = FlipArgs;
    const SHAPED_BY_ARGS: bool = false;
    const STACKS: bool = true;

    fn output(_: &FlipArgs, inputs: &[&Desc]) -> Result<Desc> {
        Ok(inputs[0].clone())
    }

    fn run(args: &FlipArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let volumes = Volumes::of(&out.desc);
        let src = inputs[0].elements_as_bytes();
        // A pixel only moves, so its bytes are all that matters; the usual sizes get their own code.
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

/// Any image layout as volumes of pixels: to `Volumes`, a CHW image is C one-channel volumes of
/// depth 1, and the channels of an HWC image are one wide pixel.
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

/// `PIXEL` is the number of bytes of a pixel, or 0 for any.
fn flip<const PIXEL: usize>(src: &[u8], out: &mut Space, volumes: &Volumes, args: &FlipArgs) {
    let Volumes { depth, height, width, pixel } = *volumes;
    let row = width * pixel;
    out.write_rows(row, |index, dst| {
        let (volume, z, y) = (index / height / depth, index / height % depth, index % height);
        let z = if args.depthwise { depth - 1 - z } else { z };
        let y = if args.vertical { height - 1 - y } else { y };
        let src = &src[((volume * depth + z) * height + y) * row..][..row];
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
    let done = match Isa::best() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` is only made where it was detected.
        Isa::Avx2 if PIXEL <= VECTOR => unsafe { reverse_vectors::<PIXEL>(src, dst) },
        _ => 0,
    };
    let src = src[..src.len() - done].as_chunks::<PIXEL>().0;
    for (s, d) in src.iter().rev().zip(dst[done..].as_chunks_mut::<PIXEL>().0) {
        *d = *s;
    }
}

/// Bytes that are moved at a time.
#[cfg(target_arch = "x86_64")]
const VECTOR: usize = 16;

/// Reverses as many pixels as it can by the vector, and returns how many bytes it has written.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn reverse_vectors<const PIXEL: usize>(src: &[u8], dst: &mut [u8]) -> usize {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

    let whole = VECTOR / PIXEL * PIXEL;
    let order: [u8; VECTOR] = std::array::from_fn(|to| match to < whole {
        true => (whole - PIXEL - to / PIXEL * PIXEL + to % PIXEL) as u8,
        false => 0,
    });
    let len = src.len().min(dst.len());
    // A vector may be longer than its whole pixels. What it reads beyond them has been moved, so
    // the last pixel goes first; what it writes beyond them is overwritten by the next.
    let mut done = if whole < VECTOR && len >= PIXEL {
        dst[..PIXEL].copy_from_slice(&src[len - PIXEL..len]);
        PIXEL
    } else {
        0
    };
    // SAFETY: all loads and stores are of `VECTOR` bytes, of which there are as many left in
    // `dst`; in `src`, those beyond the whole pixels were written at first.
    unsafe {
        let order = _mm_loadu_si128(order.as_ptr().cast());
        while done + VECTOR <= len {
            let pixels = _mm_loadu_si128(src.as_ptr().add(len - done - whole).cast());
            let reversed = _mm_shuffle_epi8(pixels, order);
            _mm_storeu_si128(dst.as_mut_ptr().add(done).cast(), reversed);
            done += whole;
        }
    }
    done
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
