//! Normalizing the pixels of a row.

use super::walk::Walk;
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::{Isa, vectorized};
use crate::value::{DType, Element};

/// `(x - mean) * scale + shift`
#[derive(Clone, Copy)]
pub struct Step {
    pub mean: f32,
    pub scale: f32,
    pub shift: f32,
}

impl Step {
    #[inline(always)]
    fn apply(self, x: f32) -> f32 {
        (x - self.mean) * self.scale + self.shift
    }
}

/// Normalized pixels of an image.
pub trait Source {
    /// A row of one channel, starting with the pixel at element `at`.
    fn channel(&self, at: usize, channel: usize, out: &mut [f32]);
    /// All channels of a row, in pixels of `padded` elements. Padding channels may have any value.
    fn pixels(&self, at: usize, padded: usize, out: &mut [f32]);
    /// Splits an interleaved row into its three channels; false if that would not be faster.
    fn three(&self, at: usize, out: [&mut [f32]; 3]) -> bool;
}

pub struct Rows<'a, T> {
    pub src: &'a [T],
    pub steps: &'a [Step],
    pub walk: &'a Walk,
}

impl<T: Element + Convert<f32>> Source for Rows<'_, T> {
    fn channel(&self, at: usize, channel: usize, out: &mut [f32]) {
        let (step, mirror) = (self.walk.width.step, self.walk.mirror);
        let src = &self.src[at + channel * self.walk.channels.step..];
        let normalize = self.steps[channel];
        vectorized!(copying normalize; {
            if step == 1 {
                let pairs = out.iter_mut().zip(src);
                if mirror {
                    let src = &src[..out.len()];
                    out.iter_mut().zip(src.iter().rev()).for_each(|(o, &x)| {
                        *o = normalize.apply(x.convert());
                    });
                } else {
                    pairs.for_each(|(o, &x)| *o = normalize.apply(x.convert()));
                }
            } else if mirror {
                let pairs = out.iter_mut().rev().zip(src.iter().step_by(step.max(1)));
                pairs.for_each(|(o, &x)| *o = normalize.apply(x.convert()));
            } else {
                let pairs = out.iter_mut().zip(src.iter().step_by(step.max(1)));
                pairs.for_each(|(o, &x)| *o = normalize.apply(x.convert()));
            }
        });
    }

    fn pixels(&self, at: usize, padded: usize, out: &mut [f32]) {
        let (steps, mirror) = (self.steps, self.walk.mirror);
        let src = &self.src[at..at + out.len() / padded * steps.len()];
        vectorized!(match (steps, padded) {
            (&[a], 1) => interleaved([a], src, mirror, out),
            (&[a, b], 2) => interleaved([a, b], src, mirror, out),
            (&[a, b, c], 3) => interleaved([a, b, c], src, mirror, out),
            (&[a, b, c, d], 4) => interleaved([a, b, c, d], src, mirror, out),
            (&[a, b, c], 4) => spread([a, b, c], src, mirror, out),
            _ => {
                let work = |(src, out): (&[T], &mut [f32])| {
                    for ((o, &x), step) in out.iter_mut().zip(src).zip(steps) {
                        *o = step.apply(x.convert());
                    }
                };
                let (src, out) = (src.chunks_exact(steps.len()), out.chunks_exact_mut(padded));
                if mirror {
                    src.rev().zip(out).for_each(work);
                } else {
                    src.zip(out).for_each(work);
                }
            }
        });
    }

    fn three(&self, at: usize, out: [&mut [f32]; 3]) -> bool {
        let &[a, b, c] = self.steps else { return false };
        if T::DTYPE != DType::U8 {
            return false;
        }
        let src = &self.src[at..];
        // SAFETY: `T` is `u8`.
        let src = unsafe { std::slice::from_raw_parts(src.as_ptr().cast::<u8>(), src.len()) };
        deinterleave(Isa::best(), src, [a, b, c], self.walk.mirror, out);
        true
    }
}

/// Interleaved pixels to interleaved pixels, in order or mirrored.
#[inline(always)]
fn interleaved<const C: usize, T: Copy + Convert<f32>>(
    steps: [Step; C],
    src: &[T],
    mirror: bool,
    out: &mut [f32],
) {
    if !mirror {
        return in_order(steps, src, out);
    }
    // Reversed in a small buffer first, so that the arithmetic is vectorized.
    const TILE: usize = 64;
    let Some(&[first, ..]) = src.as_chunks::<C>().0.first().map(|pixel| &pixel[..]) else { return };
    let mut tile = [[first; C]; TILE];
    for (src, out) in src.as_chunks::<C>().0.rchunks(TILE).zip(out.chunks_mut(TILE * C)) {
        let tile = &mut tile[..src.len()];
        for (to, from) in tile.iter_mut().zip(src.iter().rev()) {
            *to = *from;
        }
        in_order(steps, tile.as_flattened(), out);
    }
}

/// The steps of several pixels are repeated in a pattern that fills whole vectors.
#[inline(always)]
fn in_order<const C: usize, T: Copy + Convert<f32>>(steps: [Step; C], src: &[T], out: &mut [f32]) {
    const WIDE: usize = 24;
    let steps: [Step; WIDE] = std::array::from_fn(|i| steps[i % C]);
    let (head, tail) = src.as_chunks::<WIDE>();
    let (out_head, out_tail) = out.as_chunks_mut::<WIDE>();
    for (out, src) in out_head.iter_mut().zip(head) {
        for i in 0..WIDE {
            out[i] = steps[i].apply(src[i].convert());
        }
    }
    for ((o, &x), step) in out_tail.iter_mut().zip(tail).zip(steps) {
        *o = step.apply(x.convert());
    }
}

/// Pixels of three channels to pixels of four; the last is zero.
#[inline(always)]
fn spread<T: Copy + Convert<f32>>(steps: [Step; 3], src: &[T], mirror: bool, out: &mut [f32]) {
    let none = Step { mean: 0.0, scale: 0.0, shift: 0.0 };
    let steps = [steps[0], steps[1], steps[2], none];
    let (src, out) = (src.as_chunks::<3>().0, out.as_chunks_mut::<4>().0);
    let work = |(&[a, b, c], out): (&[T; 3], &mut [f32; 4])| {
        let pixel = [a.convert(), b.convert(), c.convert(), 0.0];
        *out = std::array::from_fn(|i| steps[i].apply(pixel[i]));
    };
    if mirror {
        src.iter().rev().zip(out).for_each(work);
    } else {
        src.iter().zip(out).for_each(work);
    }
}

/// Normalizes interleaved pixels into a row for each channel, the last pixel first if mirrored.
fn deinterleave(isa: Isa, src: &[u8], steps: [Step; 3], mirror: bool, out: [&mut [f32]; 3]) {
    let n = out[0].len();
    assert!(src.len() >= 3 * n && out[1].len() == n && out[2].len() == n);
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe {
            let out = [out[0].as_mut_ptr(), out[1].as_mut_ptr(), out[2].as_mut_ptr()];
            match (mirror, steps.iter().all(|step| step.shift == 0.0)) {
                (true, true) => avx2::deinterleave::<true, false>(src, n, steps, out),
                (true, false) => avx2::deinterleave::<true, true>(src, n, steps, out),
                (false, true) => avx2::deinterleave::<false, false>(src, n, steps, out),
                (false, false) => avx2::deinterleave::<false, true>(src, n, steps, out),
            }
        },
        _ => 0,
    };
    let rest = src[3 * done..3 * n].as_chunks::<3>().0;
    for (out, (step, channel)) in out.into_iter().zip(steps.into_iter().zip(0..)) {
        if mirror {
            for (o, x) in out[..n - done].iter_mut().rev().zip(rest) {
                *o = step.apply(f32::from(x[channel]));
            }
        } else {
            for (o, x) in out[done..].iter_mut().zip(rest) {
                *o = step.apply(f32::from(x[channel]));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::Step;

    /// Processes groups of eight pixels; returns the number of pixels done.
    ///
    /// # Safety
    /// Each of `out` has room for `n`, and `src` has three times as many.
    #[target_feature(enable = "avx2")]
    pub unsafe fn deinterleave<const MIRROR: bool, const SHIFTED: bool>(
        src: &[u8],
        n: usize,
        steps: [Step; 3],
        out: [*mut f32; 3],
    ) -> usize {
        // Picks the bytes of one channel out of twelve, widened to 32 bits.
        let pick = |c: i8| {
            let z = -1;
            let (p0, p1, p2, p3) = (c, c + 3, c + 6, c + 9);
            _mm256_setr_epi8(
                p0, z, z, z, p1, z, z, z, p2, z, z, z, p3, z, z, z, //
                p0, z, z, z, p1, z, z, z, p2, z, z, z, p3, z, z, z,
            )
        };
        let backwards = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
        let all = |x| _mm256_set1_ps(x);
        let [a, b, c] = steps;
        let normalize = |pixels, pick, mean, scale, shift| {
            let bytes = _mm256_shuffle_epi8(pixels, pick);
            let numbers = _mm256_sub_ps(_mm256_cvtepi32_ps(bytes), mean);
            // No fused multiplication: results are the same on every machine.
            let made = _mm256_mul_ps(numbers, scale);
            let made = if SHIFTED { _mm256_add_ps(made, shift) } else { made };
            if MIRROR { _mm256_permutevar8x32_ps(made, backwards) } else { made }
        };
        let picks = (pick(0), pick(1), pick(2));
        let means = (all(a.mean), all(b.mean), all(c.mean));
        let scales = (all(a.scale), all(b.scale), all(c.scale));
        let shifts = (all(a.shift), all(b.shift), all(c.shift));
        // The second load reads four bytes past the eight pixels.
        let blocks = (n / 8).min(src.len().saturating_sub(4) / 24);
        for block in 0..blocks {
            let to = if MIRROR { n - 8 - 8 * block } else { 8 * block };
            // SAFETY: `src` has 28 bytes from here on, and each row has room for eight elements.
            unsafe {
                let from = src.as_ptr().add(24 * block);
                let pixels = _mm256_set_m128i(
                    _mm_loadu_si128(from.add(12).cast()),
                    _mm_loadu_si128(from.cast()),
                );
                let made = normalize(pixels, picks.0, means.0, scales.0, shifts.0);
                _mm256_storeu_ps(out[0].add(to), made);
                let made = normalize(pixels, picks.1, means.1, scales.1, shifts.1);
                _mm256_storeu_ps(out[1].add(to), made);
                let made = normalize(pixels, picks.2, means.2, scales.2, shifts.2);
                _mm256_storeu_ps(out[2].add(to), made);
            }
        }
        8 * blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_agrees_with_scalar() {
        let src: Vec<u8> = (0..3 * 43).map(|i| (i * 37 % 256) as u8).collect();
        let cases = (0..=43).flat_map(|n| [(n, false), (n, true)]);
        for ((n, mirror), shift) in cases.flat_map(|case| [(case, 0.25), (case, 0.0)]) {
            let step = |mean, scale| Step { mean, scale, shift };
            let steps = [step(123.675, 1.0 / 58.395), step(0.1, 3.0), step(-4.0, f32::INFINITY)];
            let run = |isa| {
                let mut rows = vec![vec![0.0; n]; 3];
                if let [a, b, c] = &mut rows[..] {
                    deinterleave(isa, &src, steps, mirror, [a, b, c]);
                }
                rows
            };
            let scalar = run(Isa::Scalar);
            if let Some(first) = scalar[0].first() {
                let pixel = if mirror { n - 1 } else { 0 };
                assert_eq!(*first, steps[0].apply(f32::from(src[3 * pixel])));
            }
            for isa in Isa::available() {
                assert_eq!(run(isa), scalar, "{isa:?}, {n} pixels, mirror {mirror}");
            }
        }
    }

    #[test]
    fn pixels_are_mirrored_as_a_whole() {
        let none = Step { mean: 0.0, scale: 1.0, shift: 0.0 };
        for n in [0, 1, 2, 63, 64, 65, 200] {
            let src: Vec<f32> = (0..3 * n).map(|i| i as f32).collect();
            let expected: Vec<f32> =
                src.as_chunks::<3>().0.iter().rev().flatten().copied().collect();
            let mut made = vec![0.0; 3 * n];
            interleaved([none; 3], &src, true, &mut made);
            assert_eq!(made, expected);
            let mut padded = vec![1.0; 4 * n];
            spread([none; 3], &src, true, &mut padded);
            for (pixel, expected) in padded.chunks(4).zip(expected.chunks(3)) {
                assert_eq!(pixel[..3], *expected);
            }
        }
    }
}
