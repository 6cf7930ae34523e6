//! Rows of samples of any type as 32-bit floats, the type that pixels are computed in.

use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::isa::Isa;
use crate::value::{DType, Sample, with_element};

use crate::kernels::Output;

/// The largest number below one half: adding it before truncation rounds halves up, without
/// rounding up any smaller fraction.
pub const BELOW_HALF: f32 = 0.499_999_97;

/// Reads `row.len()` elements of a contiguous sample, from `start` on.
pub fn read(isa: Isa, sample: &Sample, start: usize, row: &mut [f32]) {
    match sample.desc.dtype {
        DType::U8 => widen(isa, &sample.elements::<u8>()[start..start + row.len()], row),
        _ => f32::convert_row(sample, start, row),
    }
}

/// Writes elements from `start` on, converted like `cast` does.
pub fn write(isa: Isa, row: &[f32], start: usize, out: &mut Output<'_>) {
    match out.desc.dtype {
        DType::U8 => narrow(isa, row, &mut out.elements::<u8>()[start..start + row.len()]),
        DType::F32 => out.elements::<f32>()[start..start + row.len()].copy_from_slice(row),
        other => with_element!(other, |T| {
            let out = &mut out.elements::<T>()[start..start + row.len()];
            for (o, &x) in out.iter_mut().zip(row) {
                *o = x.convert();
            }
        }),
    }
}

/// `dst = src`.
pub fn widen(isa: Isa, src: &[u8], dst: &mut [f32]) {
    #[inline(always)]
    fn run(src: &[u8], dst: &mut [f32]) {
        for (d, &s) in dst.iter_mut().zip(src) {
            *d = f32::from(s);
        }
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2")]
            unsafe fn avx2(src: &[u8], dst: &mut [f32]) {
                run(src, dst);
            }
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { avx2(src, dst) }
        }
        _ => run(src, dst),
    }
}

/// `dst = src`, rounded (halves up) and saturated; NaN becomes zero.
pub fn narrow(isa: Isa, src: &[f32], dst: &mut [u8]) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { avx2::narrow(src, dst) },
        _ => 0,
    };
    for (d, &s) in dst[done..].iter_mut().zip(&src[done..]) {
        *d = (s + BELOW_HALF) as u8;
    }
}

/// `dst = gain * src + bias`, rounded and saturated like in `narrow`.
pub fn scale_bytes(isa: Isa, src: &[u8], dst: &mut [u8], gain: f32, bias: f32) {
    let bias = bias + BELOW_HALF;
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { avx2::scale(src, dst, gain, bias) },
        _ => 0,
    };
    for (d, &s) in dst[done..].iter_mut().zip(&src[done..]) {
        *d = (f32::from(s) * gain + bias) as u8;
    }
}

/// These process whole groups of 32 elements and return how many elements that was.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::BELOW_HALF;

    // Loops over arrays are unrolled by hand: the closure of an `array::map` would not be inlined,
    // since `map` itself is compiled without AVX2.

    /// Truncates and saturates.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pack(a: __m256, b: __m256, c: __m256, d: __m256) -> __m256i {
        let top = _mm256_set1_ps(255.0);
        // With this order of operands, NaN passes through; it converts to the lowest integer, which
        // saturates to zero.
        let (a, b) = (_mm256_min_ps(top, a), _mm256_min_ps(top, b));
        let (c, d) = (_mm256_min_ps(top, c), _mm256_min_ps(top, d));
        let low = _mm256_packs_epi32(_mm256_cvttps_epi32(a), _mm256_cvttps_epi32(b));
        let high = _mm256_packs_epi32(_mm256_cvttps_epi32(c), _mm256_cvttps_epi32(d));
        // Packing works on each half of a register separately: puts the groups of four in order.
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order)
    }

    #[target_feature(enable = "avx2")]
    pub fn narrow(src: &[f32], dst: &mut [u8]) -> usize {
        let half = _mm256_set1_ps(BELOW_HALF);
        let (src, dst) = (src.as_chunks::<32>().0, dst.as_chunks_mut::<32>().0);
        let count = src.len().min(dst.len());
        for i in 0..count {
            let (src, dst) = (src[i].as_ptr(), dst[i].as_mut_ptr());
            // SAFETY: there are 32 floats, which are read as four groups of eight, and room for 32
            // bytes.
            unsafe {
                let a = _mm256_add_ps(_mm256_loadu_ps(src), half);
                let b = _mm256_add_ps(_mm256_loadu_ps(src.add(8)), half);
                let c = _mm256_add_ps(_mm256_loadu_ps(src.add(16)), half);
                let d = _mm256_add_ps(_mm256_loadu_ps(src.add(24)), half);
                _mm256_storeu_si256(dst.cast(), pack(a, b, c, d));
            }
        }
        32 * count
    }

    #[target_feature(enable = "avx2")]
    pub fn scale(src: &[u8], dst: &mut [u8], gain: f32, bias: f32) -> usize {
        let (gain, bias) = (_mm256_set1_ps(gain), _mm256_set1_ps(bias));
        let (src, dst) = (src.as_chunks::<32>().0, dst.as_chunks_mut::<32>().0);
        let count = src.len().min(dst.len());
        let scaled = |bytes: __m128i| {
            let floats = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
            _mm256_add_ps(_mm256_mul_ps(floats, gain), bias)
        };
        for i in 0..count {
            let (src, dst) = (src[i].as_ptr(), dst[i].as_mut_ptr());
            // SAFETY: there are 32 bytes, which are read as four groups of eight, and room for 32
            // bytes.
            unsafe {
                let a = scaled(_mm_loadl_epi64(src.cast()));
                let b = scaled(_mm_loadl_epi64(src.add(8).cast()));
                let c = scaled(_mm_loadl_epi64(src.add(16).cast()));
                let d = scaled(_mm_loadl_epi64(src.add(24).cast()));
                _mm256_storeu_si256(dst.cast(), pack(a, b, c, d));
            }
        }
        32 * count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_narrows_like_cast() {
        let mut src: Vec<f32> = (0..3003).map(|i| i as f32 * 0.125 - 50.0).collect();
        src.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 0.499_999_97]);
        src.extend([254.499_98, 254.5, 255.5, -0.5, -0.0, 3e9, 3e9, 0.5, 1.5, 2.5]);
        let expected: Vec<u8> = src.iter().map(|&x| x.convert()).collect();
        for isa in Isa::available() {
            let mut dst = vec![7; src.len()];
            narrow(isa, &src, &mut dst);
            assert_eq!(dst, expected, "{isa:?}");
            let mut back = vec![0.0; dst.len()];
            widen(isa, &dst, &mut back);
            assert!(back.iter().zip(&dst).all(|(&x, &byte)| x == f32::from(byte)), "{isa:?}");
        }
    }

    #[test]
    fn every_isa_scales_every_byte_the_same() {
        let src: Vec<u8> = (0..=255).cycle().take(1003).collect();
        for (gain, bias) in
            [(1.37, -20.5), (0.5, 0.0), (-1.0, 255.0), (300.0, 0.0), (1e30, 0.0), (f32::NAN, 0.0)]
        {
            let expected: Vec<u8> =
                src.iter().map(|&x| (f32::from(x) * gain + (bias + BELOW_HALF)) as u8).collect();
            for isa in Isa::available() {
                let mut dst = vec![7; src.len()];
                scale_bytes(isa, &src, &mut dst, gain, bias);
                assert!(dst == expected, "{isa:?}, gain {gain}, bias {bias}");
            }
        }
    }
}
