//! From planes of three channels to pixels.

use super::isa::Isa;

/// The pixels whose channels are in three planes, as long as each of them is.
pub fn interleave<T: Copy>(planes: [&[T]; 3], out: &mut [T]) {
    let [first, second, third] = planes;
    let pixels = out.as_chunks_mut::<3>().0.iter_mut();
    for (((out, &a), &b), &c) in pixels.zip(first).zip(second).zip(third) {
        *out = [a, b, c];
    }
}

/// [`interleave`] for bytes.
pub fn interleave_bytes(isa: Isa, planes: [&[u8]; 3], out: &mut [u8]) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { avx2::interleave(planes, out) },
        _ => 0,
    };
    interleave(planes.map(|plane| &plane[done..]), &mut out[3 * done..]);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Shuffle masks: the source of each of 48 interleaved bytes in the planes.
    const ORDERS: [[[i8; 16]; 3]; 3] = {
        let mut orders = [[[-1; 16]; 3]; 3];
        let mut at = 0;
        while at < 48 {
            orders[at / 16][at % 3][at % 16] = (at / 3) as i8;
            at += 1;
        }
        orders
    };

    /// Returns the number of pixels that it has written.
    #[target_feature(enable = "avx2")]
    pub fn interleave(planes: [&[u8]; 3], out: &mut [u8]) -> usize {
        let n = planes.iter().fold(out.len() / 3, |n, plane| n.min(plane.len()));
        let [first, second, third] = planes;
        let mut i = 0;
        while i + 16 <= n {
            // SAFETY: there are at least 16 bytes of each color from `i` on, and room for 48; masks
            // have 16 bytes.
            unsafe {
                let load = |from: *const u8| _mm_loadu_si128(from.cast());
                let a = load(first.as_ptr().add(i));
                let b = load(second.as_ptr().add(i));
                let c = load(third.as_ptr().add(i));
                for (part, [of_a, of_b, of_c]) in ORDERS.iter().enumerate() {
                    let made = _mm_or_si128(
                        _mm_or_si128(
                            _mm_shuffle_epi8(a, load(of_a.as_ptr().cast())),
                            _mm_shuffle_epi8(b, load(of_b.as_ptr().cast())),
                        ),
                        _mm_shuffle_epi8(c, load(of_c.as_ptr().cast())),
                    );
                    _mm_storeu_si128(out.as_mut_ptr().add(3 * i + 16 * part).cast(), made);
                }
            }
            i += 16;
        }
        i
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_agrees_with_scalar() {
        for length in [0, 1, 15, 16, 17, 48, 101] {
            let planes: [Vec<u8>; 3] =
                [1, 7, 11].map(|step| (0..length).map(|i| (i * step + 3 * step) as u8).collect());
            let planes = planes.each_ref().map(Vec::as_slice);
            let mut expected = vec![0; 3 * length];
            interleave(planes, &mut expected);
            for isa in Isa::available() {
                let mut made = vec![0; 3 * length];
                interleave_bytes(isa, planes, &mut made);
                assert_eq!(made, expected, "{isa:?}, {length} pixels");
            }
        }
    }
}
