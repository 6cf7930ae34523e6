//! Writing normalized rows in the element type and layout of the result.

use std::cell::RefCell;
use std::ops::Range;

use half::f16;
use smallvec::SmallVec;

use super::rows::Source;
use super::walk::{Channels, Walk};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::{Isa, vectorized};
use crate::kernels::regions::fill_bytes;
use crate::kernels::{Output, Result};
use crate::value::{DType, Element, with_element, zeroed};

/// An element type of results.
trait Stored: Element {
    /// Writes the floats that `make` computes.
    fn write(out: &mut [Self], scratch: &mut Vec<f32>, make: impl FnOnce(&mut [f32]));
    /// The same for three rows at once.
    fn write_three(
        out: [&mut [Self]; 3],
        scratch: &mut Vec<f32>,
        make: impl FnOnce([&mut [f32]; 3]) -> bool,
    ) -> bool;
}

impl Stored for f32 {
    fn write(out: &mut [f32], _: &mut Vec<f32>, make: impl FnOnce(&mut [f32])) {
        make(out);
    }

    fn write_three(
        out: [&mut [f32]; 3],
        _: &mut Vec<f32>,
        make: impl FnOnce([&mut [f32]; 3]) -> bool,
    ) -> bool {
        make(out)
    }
}

macro_rules! converted {
    ($($type:ty: $convert:expr;)*) => {
        $(impl Stored for $type {
            fn write(out: &mut [$type], scratch: &mut Vec<f32>, make: impl FnOnce(&mut [f32])) {
                let wide = room(scratch, out.len());
                make(wide);
                let convert: fn(&mut [$type], &[f32]) = $convert;
                convert(out, wide);
            }

            fn write_three(
                out: [&mut [$type]; 3],
                scratch: &mut Vec<f32>,
                make: impl FnOnce([&mut [f32]; 3]) -> bool,
            ) -> bool {
                let n = out[0].len();
                let wide = room(scratch, 3 * n);
                let (a, rest) = wide.split_at_mut(n);
                let (b, c) = rest.split_at_mut(n);
                if !make([a, b, c]) {
                    return false;
                }
                let convert: fn(&mut [$type], &[f32]) = $convert;
                for (out, wide) in out.into_iter().zip(scratch.chunks_exact(n.max(1))) {
                    convert(out, wide);
                }
                true
            }
        })*
    };
}

fn room(scratch: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if scratch.len() < n {
        scratch.resize(n, 0.0);
    }
    &mut scratch[..n]
}

fn plainly<U>(out: &mut [U], wide: &[f32])
where
    f32: Convert<U>,
{
    vectorized!({
        for (o, &x) in out.iter_mut().zip(wide) {
            *o = x.convert();
        }
    });
}

/// Uses the processor's conversion if it has one.
fn halves(isa: Isa, out: &mut [f16], wide: &[f32]) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 and F16C were detected.
        Isa::Avx2 => unsafe { avx2::halves(out, wide) },
        _ => 0,
    };
    for (o, &x) in out[done..].iter_mut().zip(&wide[done..]) {
        *o = f16::from_f32(x);
    }
}

converted! {
    crate::value::Bool: plainly;
    i8: plainly; i16: plainly; i32: plainly; i64: plainly;
    u8: plainly; u16: plainly; u32: plainly; u64: plainly;
    f16: |out, wide| halves(Isa::best(), out, wide);
    half::bf16: plainly;
    f64: plainly;
}

pub fn write_as(rows: &dyn Source, walk: &Walk, fill: &[f32], out: &mut Output<'_>) -> Result<()> {
    thread_local! {
        static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
    }
    let dtype = out.desc.dtype;
    // Unless the result is float32, rows are computed as floats first: three rows at a time, or one
    // with all channels.
    let row = walk.width.out_extent.saturating_mul(fill.len().max(3));
    let needed = if dtype == DType::F32 { 0 } else { row };
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < needed {
            *scratch = zeroed(needed)?;
        }
        with_element!(dtype, |U| {
            let fill: SmallVec<[U; 4]> = fill.iter().map(|&x| element(x, dtype)).collect();
            write::<U>(rows, walk, &fill, out.elements(), scratch);
        });
        // Rows are usually short; the memory for an unusually long one is released.
        if scratch.len() > 1 << 20 {
            *scratch = Vec::new();
        }
        Ok(())
    })
}

/// A fill value as an element, converted as in `regions`.
fn element<U: Element>(value: f32, dtype: DType) -> U {
    let bytes = fill_bytes(value, dtype);
    assert_eq!(bytes.len(), size_of::<U>());
    // SAFETY: any bit pattern is a valid `Element`, and the sizes are equal.
    unsafe { bytes.as_ptr().cast::<U>().read_unaligned() }
}

fn write<U: Stored>(
    rows: &dyn Source,
    walk: &Walk,
    fill: &[U],
    out: &mut [U],
    scratch: &mut Vec<f32>,
) {
    if out.is_empty() {
        return;
    }
    let [frames, depth, height] = walk.outer;
    for f in 0..frames.out_extent {
        for d in 0..depth.out_extent {
            for h in 0..height.out_extent {
                let to = f * frames.out_step + d * depth.out_step + h * height.out_step;
                let from = match (frames.find(f), depth.find(d), height.find(h)) {
                    (Some(f), Some(d), Some(h)) if !walk.inside.is_empty() => {
                        let w = (walk.width.start + walk.inside.start as i64) as usize;
                        let outer = f * frames.step + d * depth.step + h * height.step;
                        Some(outer + w * walk.width.step)
                    }
                    _ => None,
                };
                write_row(rows, walk, fill, &mut out[to..], from, scratch);
            }
        }
    }
}

/// Writes the row at the start of `out`. `from` is its first pixel in the image, if it has any.
fn write_row<U: Stored>(
    rows: &dyn Source,
    walk: &Walk,
    fill: &[U],
    out: &mut [U],
    from: Option<usize>,
    scratch: &mut Vec<f32>,
) {
    let Channels { count, padded, out_step, .. } = walk.channels;
    let width = walk.width.out_extent;
    let inside = match from {
        None => 0..0,
        Some(_) if walk.mirror => width - walk.inside.end..width - walk.inside.start,
        Some(_) => walk.inside.clone(),
    };
    if walk.width.out_step == 1 {
        for (channel, &fill) in fill.iter().enumerate() {
            let row = &mut out[channel * out_step..][..width];
            let inside = if channel < count { inside.clone() } else { 0..0 };
            row[..inside.start].fill(fill);
            row[inside.end..].fill(fill);
        }
        let Some(from) = from else { return };
        if count == 3
            && walk.is_interleaved()
            && let Some(three) = three_rows(out, out_step, &inside)
            && U::write_three(three, scratch, |out| rows.three(from, out))
        {
            return;
        }
        for channel in 0..count {
            let row = &mut out[channel * out_step..][inside.clone()];
            U::write(row, scratch, |out| rows.channel(from, channel, out));
        }
        return;
    }
    let step = walk.width.out_step;
    if out_step == 1 && step == padded {
        let row = &mut out[..width * padded];
        let (before, rest) = row.split_at_mut(inside.start * padded);
        let (middle, after) = rest.split_at_mut(inside.len() * padded);
        for pixel in before.chunks_exact_mut(padded).chain(after.chunks_exact_mut(padded)) {
            pixel.copy_from_slice(fill);
        }
        if let Some(from) = from
            && walk.is_interleaved()
        {
            U::write(middle, scratch, |out| rows.pixels(from, padded, out));
            if padded > count {
                for pixel in middle.chunks_exact_mut(padded) {
                    pixel[count..].copy_from_slice(&fill[count..]);
                }
            }
            return;
        }
    } else {
        for place in (0..inside.start).chain(inside.end..width) {
            for (channel, &fill) in fill.iter().enumerate() {
                out[place * step + channel * out_step] = fill;
            }
        }
    }
    let Some(from) = from else { return };
    // A channel at a time, in pieces that fit on the stack.
    let mut piece = [fill[0]; 256];
    for (channel, &fill) in fill.iter().enumerate() {
        if channel >= count {
            inside.clone().for_each(|place| out[place * step + channel * out_step] = fill);
            continue;
        }
        for start in (0..inside.len()).step_by(piece.len()) {
            let piece = &mut piece[..(inside.len() - start).min(256)];
            // A mirrored piece comes from the other end of the row.
            let before = if walk.mirror { inside.len() - start - piece.len() } else { start };
            let from = from + before * walk.width.step;
            U::write(piece, scratch, |out| rows.channel(from, channel, out));
            for (place, &x) in (inside.start + start..).zip(&*piece) {
                out[place * step + channel * out_step] = x;
            }
        }
    }
}

/// The same part of three rows; `None` if they overlap.
fn three_rows<'a, U>(
    out: &'a mut [U],
    step: usize,
    part: &Range<usize>,
) -> Option<[&'a mut [U]; 3]> {
    let (first, rest) = out.split_at_mut_checked(step)?;
    let (second, third) = rest.split_at_mut_checked(step)?;
    Some([
        first.get_mut(part.clone())?,
        second.get_mut(part.clone())?,
        third.get_mut(part.clone())?,
    ])
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use half::f16;

    /// Converts groups of eight; returns the number of elements done.
    #[target_feature(enable = "avx2,f16c")]
    pub fn halves(out: &mut [f16], wide: &[f32]) -> usize {
        let (out, wide) = (out.as_chunks_mut::<8>().0, wide.as_chunks::<8>().0);
        for (out, wide) in out.iter_mut().zip(wide) {
            // SAFETY: there are eight floats, and room for eight halves.
            unsafe {
                let halves =
                    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(wide.as_ptr()));
                _mm_storeu_si128(out.as_mut_ptr().cast(), halves);
            }
        }
        8 * out.len().min(wide.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_rounds_to_the_same_halves() {
        let wide: Vec<f32> = (0..1003)
            .map(|i| (i as f32 - 500.0) * 0.123_456_7)
            .chain([f32::INFINITY, 7e4])
            .collect();
        let expected: Vec<f16> = wide.iter().map(|&x| f16::from_f32(x)).collect();
        for isa in Isa::available() {
            let mut made = vec![f16::ZERO; wide.len()];
            halves(isa, &mut made, &wide);
            assert_eq!(made, expected, "{isa:?}");
        }
    }
}
