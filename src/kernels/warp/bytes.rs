//! Bilinear interpolation of 8-bit images in integers: 14 bits for each of the four weights.

use super::line::{Line, LongLine, edges, nearest, split};
use super::{Extents, Map, needs_double};
use crate::kernels::Output;
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::Isa;

const ONE: i32 = 1 << 14;

struct Image<'a> {
    pixels: &'a [u8],
    width: usize,
    height: usize,
    channels: usize,
    fill: Option<u8>,
}

pub fn warp(
    fill: Option<f64>,
    map: &Map,
    src: &[u8],
    from: &Extents,
    out: &mut Output<'_>,
    to: &Extents,
) {
    let [width, height, _] = from.sides;
    let [out_width, out_height, _] = to.sides;
    let channels = *out.desc.shape.last().unwrap_or(&1);
    let fill = fill.map(|fill| fill.convert());
    let long = needs_double(from, to);
    let frames = out.bytes().chunks_exact_mut(out_width * out_height * channels);
    for (frame, out) in frames.enumerate() {
        let size = width * height * channels;
        let pixels = &src[frame * size..][..size];
        let image = Image { pixels, width, height, channels, fill };
        for (y, row) in out.chunks_exact_mut(out_width * channels).enumerate() {
            if long {
                image.long_row(&LongLine::new(map, y, -0.5), row);
                continue;
            }
            let line = Line::new(map, y, -0.5);
            match channels {
                1 => image.row::<1>(Isa::best(), &line, row),
                3 => image.row::<3>(Isa::best(), &line, row),
                4 => image.row::<4>(Isa::best(), &line, row),
                _ => image.row::<0>(Isa::best(), &line, row),
            }
        }
    }
}

impl Image<'_> {
    /// `C` is the number of channels, or 0 for any.
    fn row<const C: usize>(&self, isa: Isa, line: &Line, out: &mut [u8]) {
        let c = if C == 0 { self.channels } else { C };
        // The vector code reads two bytes beyond the pixels of three channels.
        let margin = if C == 3 { 2 } else { 1 };
        let limits = [self.width.saturating_sub(margin), self.height.saturating_sub(1)];
        let inside = line.inside(out.len() / c, limits);
        let (before, rest) = out.split_at_mut(inside.start * c);
        let (middle, after) = rest.split_at_mut(inside.len() * c);
        edges(line, [self.width, self.height], self.fill, before, 0, c, |at, out| {
            self.edge(at, out);
        });
        edges(line, [self.width, self.height], self.fill, after, inside.end, c, |at, out| {
            self.edge(at, out);
        });
        let done = match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected; for positions in
            // `inside`, all surrounding pixels are in the image, and one more for three channels.
            Isa::Avx2 if matches!(C, 1 | 3 | 4) && self.pixels.len() < 1 << 30 => unsafe {
                avx2::row::<C>(self.pixels, self.width * C, line, inside.start, middle)
            },
            _ => 0,
        };
        for (x, out) in middle.chunks_exact_mut(c).enumerate().skip(done) {
            let [sx, sy] = line.at(inside.start + x);
            let (ix, iy) = (sx as usize, sy as usize);
            let weights = weights(sx - ix as f32, sy - iy as f32);
            let at = (iy * self.width + ix) * c;
            let top = &self.pixels[at..at + 2 * c];
            let bottom = &self.pixels[at + self.width * c..][..2 * c];
            for channel in 0..c {
                out[channel] = blend(
                    [top[channel], top[c + channel], bottom[channel], bottom[c + channel]],
                    weights,
                );
            }
        }
    }

    fn long_row(&self, line: &LongLine, out: &mut [u8]) {
        for (x, out) in out.chunks_exact_mut(self.channels).enumerate() {
            self.blend(line.split(x, [self.width, self.height]), out);
        }
    }

    /// A pixel of which some of the four source pixels are outside the image.
    fn edge(&self, [sx, sy]: [f32; 2], out: &mut [u8]) {
        self.blend([split(sx, self.width), split(sy, self.height)], out);
    }

    /// Blends four pixels, any of which may be outside the image.
    fn blend(&self, [(ix, fx), (iy, fy)]: [(i64, f32); 2], out: &mut [u8]) {
        let weights = weights(fx, fy);
        let c = out.len();
        let taps = [(ix, iy), (ix + 1, iy), (ix, iy + 1), (ix + 1, iy + 1)].map(|(x, y)| {
            let is_inside =
                (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
            match (self.fill, nearest(x, self.width), nearest(y, self.height)) {
                (None, Some(x), Some(y)) => Ok((y * self.width + x) * c),
                (Some(_), Some(x), Some(y)) if is_inside => Ok((y * self.width + x) * c),
                (fill, ..) => Err(fill.unwrap_or(0)),
            }
        });
        for (channel, out) in out.iter_mut().enumerate() {
            let tap = |tap: Result<usize, u8>| match tap {
                Ok(at) => self.pixels[at + channel],
                Err(fill) => fill,
            };
            *out = blend(taps.map(tap), weights);
        }
    }
}

/// Rounds to the nearest integer, ties to even; for numbers from 0 to 2^22.
#[inline(always)]
fn nearest_even(x: f32) -> i32 {
    const SHIFT: f32 = 8_388_608.0;
    ((x + SHIFT) - SHIFT) as i32
}

/// Weights of a pixel, of the one to its right, and of the two below.
#[inline(always)]
fn weights(fx: f32, fy: f32) -> [i32; 4] {
    let one = ONE as f32;
    let (right, below, both) =
        (nearest_even(fx * one), nearest_even(fy * one), nearest_even(fx * fy * one));
    [ONE - right - below + both, right - both, below - both, both]
}

#[inline(always)]
fn blend(taps: [u8; 4], weights: [i32; 4]) -> u8 {
    let sum: i32 = taps.into_iter().zip(weights).map(|(tap, weight)| i32::from(tap) * weight).sum();
    ((sum + ONE / 2) >> 14) as u8
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Line, ONE};

    /// Processes eight pixels at a time, and returns how many were done. The first is pixel `first`
    /// of the row.
    ///
    /// # Safety
    /// For the positions of all pixels of `out`, the surrounding pixels must be in `src`, whose
    /// rows are `pitch` bytes apart; with three channels, two more bytes. `src` must be shorter
    /// than 2^31.
    #[target_feature(enable = "avx2")]
    pub unsafe fn row<const C: usize>(
        src: &[u8],
        pitch: usize,
        line: &Line,
        first: usize,
        out: &mut [u8],
    ) -> usize {
        let n = out.len() / C;
        let lanes = _mm256_setr_ps(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0);
        let one = _mm256_set1_ps(ONE as f32);
        let half = _mm256_set1_epi32(ONE / 2);
        let low = _mm256_set1_epi32(0xffff);
        let place = |xs, axis: usize| {
            let (start, step) = (line.start[axis], line.step[axis]);
            _mm256_add_ps(_mm256_mul_ps(xs, _mm256_set1_ps(step)), _mm256_set1_ps(start))
        };
        let mut x = 0;
        while x + 8 <= n {
            let xs = _mm256_add_ps(_mm256_set1_ps((first + x) as u32 as f32), lanes);
            let (sx, sy) = (place(xs, 0), place(xs, 1));
            let (ix, iy) = (_mm256_cvttps_epi32(sx), _mm256_cvttps_epi32(sy));
            let fx = _mm256_sub_ps(sx, _mm256_cvtepi32_ps(ix));
            let fy = _mm256_sub_ps(sy, _mm256_cvtepi32_ps(iy));
            let right = _mm256_cvtps_epi32(_mm256_mul_ps(fx, one));
            let below = _mm256_cvtps_epi32(_mm256_mul_ps(fy, one));
            let both = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_mul_ps(fx, fy), one));
            let w10 = _mm256_sub_epi32(below, both);
            let w01 = _mm256_sub_epi32(right, both);
            let w00 = _mm256_sub_epi32(_mm256_sub_epi32(_mm256_set1_epi32(ONE), right), w10);
            // The weights of two neighbours side by side, 16 bits each.
            let pair = |a, b| _mm256_or_si256(_mm256_and_si256(a, low), _mm256_slli_epi32(b, 16));
            let (top, bottom) = (pair(w00, w01), pair(w10, both));
            let offsets = _mm256_add_epi32(
                _mm256_mullo_epi32(iy, _mm256_set1_epi32(pitch as i32)),
                _mm256_mullo_epi32(ix, _mm256_set1_epi32(C as i32)),
            );
            let mut at = [0_i32; 8];
            // SAFETY: `at` holds eight 32-bit numbers; reads are inside `src`, as the caller
            // guarantees, and writes inside the remaining pixels of `out`.
            unsafe {
                _mm256_storeu_si256(at.as_mut_ptr().cast(), offsets);
                let upper = src.as_ptr();
                let lower = upper.add(pitch);
                if C == 1 {
                    one_channel(upper, lower, &at, [top, bottom], half, out.as_mut_ptr().add(x));
                } else {
                    let made = channels::<C>(upper, lower, &at, [top, bottom], half);
                    let to = out.as_mut_ptr().add(C * x);
                    if C == 4 {
                        _mm256_storeu_si256(to.cast(), made);
                    } else {
                        let z = -1;
                        let packed = _mm256_shuffle_epi8(
                            made,
                            _mm256_setr_epi8(
                                0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, z, z, z, z, //
                                0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, z, z, z, z,
                            ),
                        );
                        let mut pixels = [0_u8; 28];
                        // The stores write four bytes beyond the eight pixels.
                        let spacious = x + 10 <= n;
                        let dst = if spacious { to } else { pixels.as_mut_ptr() };
                        _mm_storeu_si128(dst.cast(), _mm256_castsi256_si128(packed));
                        _mm_storeu_si128(dst.add(12).cast(), _mm256_extracti128_si256(packed, 1));
                        if !spacious {
                            std::ptr::copy_nonoverlapping(pixels.as_ptr(), to, 24);
                        }
                    }
                }
            }
            x += 8;
        }
        x
    }

    /// # Safety
    /// Eight bytes must be readable at each position of both rows.
    #[target_feature(enable = "avx2")]
    unsafe fn channels<const C: usize>(
        upper: *const u8,
        lower: *const u8,
        at: &[i32; 8],
        [top, bottom]: [__m256i; 2],
        half: __m256i,
    ) -> __m256i {
        // Two pixels in each half; for each, the channels of two neighbours are interleaved.
        let spread = |first: i8| {
            let (f, z, c) = (first, -1, C as i8);
            // With three channels, the fourth is zero.
            let (p, q) = if C == 4 { (f + 3, f + 7) } else { (z, z) };
            _mm256_setr_epi8(
                f,
                z,
                f + c,
                z,
                f + 1,
                z,
                f + c + 1,
                z,
                f + 2,
                z,
                f + c + 2,
                z,
                p,
                z,
                q,
                z, //
                f,
                z,
                f + c,
                z,
                f + 1,
                z,
                f + c + 1,
                z,
                f + 2,
                z,
                f + c + 2,
                z,
                p,
                z,
                q,
                z,
            )
        };
        let (even, odd) = (spread(0), spread(8));
        let gather = |row: *const u8, i: usize| {
            // SAFETY: guaranteed by the caller.
            let two = |i: usize| unsafe {
                _mm_unpacklo_epi64(
                    _mm_loadl_epi64(row.offset(at[i] as isize).cast()),
                    _mm_loadl_epi64(row.offset(at[i + 1] as isize).cast()),
                )
            };
            _mm256_set_m128i(two(i + 4), two(i))
        };
        macro_rules! blend {
            ($above:expr, $below:expr, $spread:expr, $pixel:literal) => {{
                let above = _mm256_shuffle_epi8($above, $spread);
                let below = _mm256_shuffle_epi8($below, $spread);
                let sum = _mm256_add_epi32(
                    _mm256_madd_epi16(above, _mm256_shuffle_epi32(top, $pixel)),
                    _mm256_madd_epi16(below, _mm256_shuffle_epi32(bottom, $pixel)),
                );
                _mm256_srai_epi32(_mm256_add_epi32(sum, half), 14)
            }};
        }
        let (above, below) = (gather(upper, 0), gather(lower, 0));
        let front =
            _mm256_packs_epi32(blend!(above, below, even, 0x00), blend!(above, below, odd, 0x55));
        let (above, below) = (gather(upper, 2), gather(lower, 2));
        let back =
            _mm256_packs_epi32(blend!(above, below, even, 0xaa), blend!(above, below, odd, 0xff));
        _mm256_packus_epi16(front, back)
    }

    /// # Safety
    /// Two bytes must be readable at each position of both rows, and eight writable at `to`.
    #[target_feature(enable = "avx2")]
    unsafe fn one_channel(
        upper: *const u8,
        lower: *const u8,
        at: &[i32; 8],
        [top, bottom]: [__m256i; 2],
        half: __m256i,
        to: *mut u8,
    ) {
        let four = |i: usize| {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let at = at[i] as isize;
                let above = upper.offset(at).cast::<u16>().read_unaligned();
                let below = lower.offset(at).cast::<u16>().read_unaligned();
                (u32::from(above) | u32::from(below) << 16) as i32
            }
        };
        let pixels = _mm256_setr_epi32(
            four(0),
            four(1),
            four(2),
            four(3),
            four(4),
            four(5),
            four(6),
            four(7),
        );
        let z = -1;
        let above = _mm256_setr_epi8(
            0, z, 1, z, 4, z, 5, z, 8, z, 9, z, 12, z, 13, z, //
            0, z, 1, z, 4, z, 5, z, 8, z, 9, z, 12, z, 13, z,
        );
        let below = _mm256_setr_epi8(
            2, z, 3, z, 6, z, 7, z, 10, z, 11, z, 14, z, 15, z, //
            2, z, 3, z, 6, z, 7, z, 10, z, 11, z, 14, z, 15, z,
        );
        let sum = _mm256_add_epi32(
            _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, above), top),
            _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, below), bottom),
        );
        let made = _mm256_srai_epi32(_mm256_add_epi32(sum, half), 14);
        let words = _mm256_packs_epi32(made, made);
        let bytes = _mm256_packus_epi16(words, words);
        let halves =
            _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
        // SAFETY: guaranteed by the caller.
        unsafe { _mm_storel_epi64(to.cast(), halves) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_agrees_with_scalar() {
        let pixels: Vec<u8> = (0..40 * 30 * 4).map(|i| (i * 7919 % 251) as u8).collect();
        fn run<const C: usize>(isa: Isa, pixels: &[u8], line: &Line) -> Vec<u8> {
            let image = Image {
                pixels: &pixels[..40 * 30 * C],
                width: 40,
                height: 30,
                channels: C,
                fill: Some(9),
            };
            let mut out = vec![0; 61 * C];
            image.row::<C>(isa, line, &mut out);
            out
        }
        for (dx, dy) in [(1.0, 0.0), (0.61, 0.4), (-0.7, 0.33), (0.0, 0.5), (2.3, -1.1)] {
            for (x0, y0) in [(-3.7, 2.0), (38.9, 1.5), (5.0, 28.99), (0.0, 0.0)] {
                let line = Line { start: [x0, y0], step: [dx, dy] };
                for isa in Isa::available() {
                    let at = format!("{isa:?} {line:?}");
                    assert_eq!(
                        run::<1>(isa, &pixels, &line),
                        run::<1>(Isa::Scalar, &pixels, &line),
                        "{at}"
                    );
                    assert_eq!(
                        run::<3>(isa, &pixels, &line),
                        run::<3>(Isa::Scalar, &pixels, &line),
                        "{at}"
                    );
                    assert_eq!(
                        run::<4>(isa, &pixels, &line),
                        run::<4>(Isa::Scalar, &pixels, &line),
                        "{at}"
                    );
                }
            }
        }
    }

    #[test]
    fn weights_sum_to_one() {
        for (fx, fy) in [(0.0, 0.0), (0.5, 0.5), (0.999_999_9, 0.999_999_9), (0.1, 0.9)] {
            assert_eq!(weights(fx, fy).iter().sum::<i32>(), ONE);
        }
        assert_eq!(blend([255; 4], weights(0.3, 0.7)), 255);
        assert_eq!(blend([0, 1, 0, 1], weights(0.5, 0.0)), 1);
    }
}
