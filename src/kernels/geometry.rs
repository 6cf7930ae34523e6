//! Where pixels go: flip.

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
            1 => flip::<1>(src, out.bytes(), &volumes, args),
            2 => flip::<2>(src, out.bytes(), &volumes, args),
            3 => flip::<3>(src, out.bytes(), &volumes, args),
            4 => flip::<4>(src, out.bytes(), &volumes, args),
            6 => flip::<6>(src, out.bytes(), &volumes, args),
            8 => flip::<8>(src, out.bytes(), &volumes, args),
            12 => flip::<12>(src, out.bytes(), &volumes, args),
            16 => flip::<16>(src, out.bytes(), &volumes, args),
            _ => flip::<0>(src, out.bytes(), &volumes, args),
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
fn flip<const PIXEL: usize>(src: &[u8], dst: &mut [u8], volumes: &Volumes, args: &FlipArgs) {
    let Volumes { depth, height, width, pixel } = *volumes;
    let row = width * pixel;
    let volume = depth * height * row;
    if volume == 0 {
        return;
    }
    for (src, dst) in src.chunks_exact(volume).zip(dst.chunks_exact_mut(volume)) {
        for (index, dst) in dst.chunks_exact_mut(row).enumerate() {
            let (z, y) = (index / height, index % height);
            let z = if args.depthwise { depth - 1 - z } else { z };
            let y = if args.vertical { height - 1 - y } else { y };
            let src = &src[(z * height + y) * row..][..row];
            if args.horizontal {
                reverse_pixels::<PIXEL>(src, dst, pixel);
            } else {
                dst.copy_from_slice(src);
            }
        }
    }
}

fn reverse_pixels<const PIXEL: usize>(src: &[u8], dst: &mut [u8], pixel: usize) {
    if PIXEL == 0 {
        for (s, d) in src.rchunks_exact(pixel).zip(dst.chunks_exact_mut(pixel)) {
            d.copy_from_slice(s);
        }
    } else {
        for (s, d) in src.as_chunks::<PIXEL>().0.iter().rev().zip(dst.as_chunks_mut::<PIXEL>().0) {
            *d = *s;
        }
    }
}
