//! Linear mixes of the channels of 8-bit images.

use crate::kernels::numeric::floats::BELOW_HALF;
use crate::kernels::numeric::isa::Isa;

/// Channel `i` of the result is `matrix[i] * pixel + offset[i]`.
#[derive(Clone, Copy, Debug)]
pub struct Mix<R, const N: usize> {
    pub matrix: [[R; 3]; N],
    pub offset: [R; N],
}

impl<const N: usize> Mix<f64, N> {
    pub fn to_floats(self) -> Mix<f32, N> {
        Mix {
            matrix: self.matrix.map(|row| row.map(|x| x as f32)),
            offset: self.offset.map(|x| x as f32),
        }
    }
}

/// Mixes pixels of three channels into pixels of `N` channels, rounded and saturated.
pub fn bytes<const N: usize>(isa: Isa, src: &[u8], dst: &mut [u8], mix: &Mix<f32, N>) {
    // With this offset, truncation rounds.
    let mix = Mix { matrix: mix.matrix, offset: mix.offset.map(|x| x + BELOW_HALF) };
    let (src, dst) = (src.as_chunks::<3>().0, dst.as_chunks_mut::<N>().0);
    let mut done = 0;
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            done = src.len().min(dst.len()) & !15;
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { avx2::mix(&src[..done], &mut dst[..done], &mix) };
        }
        _ => {}
    }
    for (d, &[x, y, z]) in dst[done..].iter_mut().zip(&src[done..]) {
        let [x, y, z] = [x, y, z].map(f32::from);
        for (d, (row, offset)) in d.iter_mut().zip(mix.matrix.iter().zip(mix.offset)) {
            // The same order of operations as in the vector code, so that results are
            // bit-identical.
            *d = (row[0] * x + row[1] * y + row[2] * z + offset) as u8;
        }
    }
}

/// Swaps the first and the last channel.
pub fn swap(isa: Isa, src: &[u8], dst: &mut [u8]) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { avx2::swap(src, dst) },
        _ => 0,
    };
    let (src, dst) = (src[done..].as_chunks::<3>().0, dst[done..].as_chunks_mut::<3>().0);
    for (d, &[a, b, c]) in dst.iter_mut().zip(src) {
        *d = [c, b, a];
    }
}

/// Repeats one channel three times.
pub fn repeat(isa: Isa, src: &[u8], dst: &mut [u8]) {
    let dst = dst.as_chunks_mut::<3>().0;
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { avx2::repeat(src, dst) },
        _ => 0,
    };
    for (d, &s) in dst[done..].iter_mut().zip(&src[done..]) {
        *d = [s; 3];
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::Mix;

    const NONE: i8 = -128;

    /// Shuffle masks that gather a channel: for each channel and each 16 of 48 bytes.
    const SPLIT: [[[i8; 16]; 3]; 3] = {
        let mut masks = [[[NONE; 16]; 3]; 3];
        let mut byte = 0;
        while byte < 48 {
            masks[byte % 3][byte / 16][byte / 3] = (byte % 16) as i8;
            byte += 1;
        }
        masks
    };

    /// Where packing puts the result of a pixel: in groups of four, the second and third swapped.
    const fn packed(pixel: usize) -> i8 {
        [0, 8, 4, 12][pixel / 4] + (pixel % 4) as i8
    }

    /// Shuffle masks that interleave packed results: for each 16 of 48 bytes and each channel.
    const JOIN: [[[i8; 16]; 3]; 3] = {
        let mut masks = [[[NONE; 16]; 3]; 3];
        let mut byte = 0;
        while byte < 48 {
            masks[byte / 16][byte % 3][byte % 16] = packed(byte / 3);
            byte += 1;
        }
        masks
    };

    const ORDER: [i8; 16] = {
        let mut mask = [0; 16];
        let mut pixel = 0;
        while pixel < 16 {
            mask[pixel] = packed(pixel);
            pixel += 1;
        }
        mask
    };

    #[target_feature(enable = "avx2")]
    fn mask(bytes: &[i8; 16]) -> __m128i {
        // SAFETY: there are 16 bytes.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn any(parts: [__m128i; 3]) -> __m128i {
        _mm_or_si128(_mm_or_si128(parts[0], parts[1]), parts[2])
    }

    /// Most of the pixels; returns the number of bytes processed.
    #[target_feature(enable = "avx2")]
    pub fn swap(src: &[u8], dst: &mut [u8]) -> usize {
        // Five pixels, and one byte of the next pixel, which the next step overwrites.
        let order = mask(&[2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, 15]);
        let count = src.len().min(dst.len());
        let mut at = 0;
        while at + 16 <= count {
            // SAFETY: there are 16 bytes from `at` on in both.
            unsafe {
                let pixels = _mm_loadu_si128(src.as_ptr().add(at).cast());
                _mm_storeu_si128(dst.as_mut_ptr().add(at).cast(), _mm_shuffle_epi8(pixels, order));
            }
            at += 15;
        }
        at
    }

    /// Whole groups of 16 pixels; returns the number of pixels processed.
    #[target_feature(enable = "avx2")]
    pub fn repeat(src: &[u8], dst: &mut [[u8; 3]]) -> usize {
        let first = mask(&[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5]);
        let second = mask(&[5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10]);
        let third = mask(&[10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15]);
        let (src, dst) = (src.as_chunks::<16>().0, dst.as_chunks_mut::<16>().0);
        for (src, dst) in src.iter().zip(dst.iter_mut()) {
            let to = dst.as_mut_ptr().cast::<__m128i>();
            // SAFETY: there are 16 bytes, and room for three times as many.
            unsafe {
                let gray = _mm_loadu_si128(src.as_ptr().cast());
                _mm_storeu_si128(to, _mm_shuffle_epi8(gray, first));
                _mm_storeu_si128(to.add(1), _mm_shuffle_epi8(gray, second));
                _mm_storeu_si128(to.add(2), _mm_shuffle_epi8(gray, third));
            }
        }
        16 * src.len().min(dst.len())
    }

    /// Whole groups of 16 pixels.
    #[target_feature(enable = "avx2")]
    pub fn mix<const N: usize>(src: &[[u8; 3]], dst: &mut [[u8; N]], mix: &Mix<f32, N>) {
        let split = SPLIT.map(|masks| masks.map(|bytes| mask(&bytes)));
        let join = JOIN.map(|masks| masks.map(|bytes| mask(&bytes)));
        let order = mask(&ORDER);
        let matrix = mix.matrix.map(|row| row.map(|x| _mm256_set1_ps(x)));
        let offset = mix.offset.map(|x| _mm256_set1_ps(x));
        let top = _mm256_set1_ps(255.0);
        for (src, dst) in src.as_chunks::<16>().0.iter().zip(dst.as_chunks_mut::<16>().0) {
            let src = src.as_ptr().cast::<__m128i>();
            // SAFETY: 16 pixels of three bytes are three times 16 bytes.
            let parts = unsafe {
                [_mm_loadu_si128(src), _mm_loadu_si128(src.add(1)), _mm_loadu_si128(src.add(2))]
            };
            let mut low = [_mm256_setzero_ps(); 3];
            let mut high = low;
            for channel in 0..3 {
                let [a, b, c] = split[channel];
                let bytes = any([
                    _mm_shuffle_epi8(parts[0], a),
                    _mm_shuffle_epi8(parts[1], b),
                    _mm_shuffle_epi8(parts[2], c),
                ]);
                low[channel] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
                high[channel] =
                    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128::<8>(bytes)));
            }
            let mut results = [_mm_setzero_si128(); N];
            for channel in 0..N {
                let [a, b, c] = matrix[channel];
                let dot = |x: [__m256; 3]| {
                    let sum = _mm256_add_ps(_mm256_mul_ps(a, x[0]), _mm256_mul_ps(b, x[1]));
                    let sum = _mm256_add_ps(sum, _mm256_mul_ps(c, x[2]));
                    let sum = _mm256_add_ps(sum, offset[channel]);
                    // Lets NaN through; it converts to the lowest integer, which saturates to zero.
                    _mm256_cvttps_epi32(_mm256_min_ps(top, sum))
                };
                let words = _mm256_packs_epi32(dot(low), dot(high));
                results[channel] = _mm_packus_epi16(
                    _mm256_castsi256_si128(words),
                    _mm256_extracti128_si256::<1>(words),
                );
            }
            let dst = dst.as_mut_ptr().cast::<__m128i>();
            if N == 1 {
                // SAFETY: 16 pixels of one byte.
                unsafe { _mm_storeu_si128(dst, _mm_shuffle_epi8(results[0], order)) };
                continue;
            }
            for (part, masks) in join.iter().enumerate().take(N) {
                let mut all = _mm_setzero_si128();
                for (&result, &mask) in results.iter().zip(masks) {
                    all = _mm_or_si128(all, _mm_shuffle_epi8(result, mask));
                }
                // SAFETY: 16 pixels of `N` bytes have `N` times 16 bytes.
                unsafe { _mm_storeu_si128(dst.add(part), all) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(count: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..3 * count).map(|_| next()).collect()
    }

    fn check<const N: usize>(mix: &Mix<f32, N>) {
        let src = pixels(100_003);
        let run = |isa| {
            let mut dst = vec![7; src.len() / 3 * N];
            bytes(isa, &src, &mut dst, mix);
            dst
        };
        for isa in Isa::available() {
            assert!(run(isa) == run(Isa::Scalar), "{isa:?}, {mix:?}");
        }
    }

    #[test]
    fn every_isa_agrees_with_scalar() {
        let colors = [[0.9, 0.3, -0.2], [-0.1, 1.4, 0.05], [0.6, -0.7, 1.9]];
        for (gain, offset) in
            [(1.0, 0.0), (0.01, 127.5), (300.0, -20.0), (1e30, 0.0), (-1e30, 3.0), (f32::NAN, 0.0)]
        {
            let matrix = colors.map(|row| row.map(|x: f32| x * gain));
            check(&Mix { matrix, offset: [offset, -offset, 1.0] });
            check(&Mix { matrix: [matrix[2]], offset: [offset] });
        }
    }

    #[test]
    fn every_isa_swaps_all_pixels() {
        for count in [0, 1, 5, 6, 11, 100, 101] {
            let src = pixels(count);
            for isa in Isa::available() {
                let mut dst = vec![7; src.len()];
                swap(isa, &src, &mut dst);
                for (a, b) in src.chunks(3).zip(dst.chunks(3)) {
                    assert_eq!([a[0], a[1], a[2]], [b[2], b[1], b[0]], "{isa:?}, {count}");
                }
            }
        }
    }

    #[test]
    fn every_isa_repeats_all_pixels() {
        for count in [0, 1, 15, 16, 17, 100] {
            let src = &pixels(count)[..count];
            for isa in Isa::available() {
                let mut dst = vec![7; 3 * count];
                repeat(isa, src, &mut dst);
                let expected: Vec<u8> = src.iter().flat_map(|&x| [x; 3]).collect();
                assert_eq!(dst, expected, "{isa:?}, {count}");
            }
        }
    }

    #[test]
    fn the_identity_keeps_every_byte() {
        let matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let src = pixels(100);
        for isa in Isa::available() {
            let mut dst = vec![0; src.len()];
            bytes(isa, &src, &mut dst, &Mix { matrix, offset: [0.0; 3] });
            assert!(dst == src);
        }
    }
}
