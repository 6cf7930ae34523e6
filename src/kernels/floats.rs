//! Samples of any type by rows of 32-bit floats, which pixels are computed in.

use super::cast::{Convert, Number};
use super::isa::Isa;
use crate::value::{DType, Sample, with_element};

use super::Space;

/// The largest number below one half: adding it and cutting off rounds halves up, and nothing else.
pub const BELOW_HALF: f32 = 0.499_999_97;

/// Reads `row.len()` elements of a contiguous sample, from `start` on.
pub fn read(isa: Isa, sample: &Sample, start: usize, row: &mut [f32]) {
    match sample.desc.dtype {
        DType::U8 => widen(isa, &sample.elements::<u8>()[start..start + row.len()], row),
        _ => f32::convert_row(sample, start, row),
    }
}

/// Writes elements from `start` on, converted as `cast` does it.
pub fn write(isa: Isa, row: &[f32], start: usize, out: &mut Space) {
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
            // SAFETY: an `Isa::Avx2` is only made where it was detected.
            unsafe { avx2(src, dst) }
        }
        _ => run(src, dst),
    }
}

/// `dst = src`, rounded (halves up) and saturated; "not a number" becomes zero.
pub fn narrow(isa: Isa, src: &[f32], dst: &mut [u8]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            let whole = src.len().min(dst.len()) & !31;
            // SAFETY: an `Isa::Avx2` is only made where it was detected.
            unsafe { narrow_avx2(&src[..whole], &mut dst[..whole]) };
            narrow_scalar(&src[whole..], &mut dst[whole..]);
        }
        _ => narrow_scalar(src, dst),
    }
}

fn narrow_scalar(src: &[f32], dst: &mut [u8]) {
    for (d, &s) in dst.iter_mut().zip(src) {
        *d = (s + BELOW_HALF) as u8;
    }
}

/// Whole groups of 32; what is beyond the last one is left alone.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn narrow_avx2(src: &[f32], dst: &mut [u8]) {
    use std::arch::x86_64::*;
    let half = _mm256_set1_ps(BELOW_HALF);
    let top = _mm256_set1_ps(255.0);
    // Packing works on each half of a register for itself; this puts the groups of four in order.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (src, dst) in src.as_chunks::<32>().0.iter().zip(dst.as_chunks_mut::<32>().0) {
        let ints = |group: usize| {
            // SAFETY: there are 32 floats, and `group` is below 4.
            let x = unsafe { _mm256_loadu_ps(src.as_ptr().add(8 * group)) };
            // The order of operands lets "not a number" through, which becomes the least integer.
            _mm256_cvttps_epi32(_mm256_min_ps(top, _mm256_add_ps(x, half)))
        };
        let low = _mm256_packs_epi32(ints(0), ints(1));
        let high = _mm256_packs_epi32(ints(2), ints(3));
        let bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
        // SAFETY: there is room for 32 bytes.
        unsafe { _mm256_storeu_si256(dst.as_mut_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_narrows_as_cast_does() {
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
}
