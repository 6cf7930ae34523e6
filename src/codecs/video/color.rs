//! From luma and chroma to RGB, in integers: results are within 0.52 of exact arithmetic.
//!
//! Rows of luma and chroma are first brought to one scale: sixteen times the stored value, without
//! its offset, with chroma upsampled to a value per pixel. Sixteen, since bilinear upsampling by two
//! in both directions has weights 9, 3, 3 and 1. Coefficients are multiples of 1/8192, so that
//! products fit `pmaddwd`. DALI's results are the same, bit for bit, for 8-bit 4:2:0 of even size.

use crate::kernels::numeric::isa::{Isa, vectorized};

/// The weights of red and blue in luma.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    red: f64,
    blue: f64,
}

impl Matrix {
    pub const BT601: Matrix = Matrix { red: 0.299, blue: 0.114 };
    pub const BT709: Matrix = Matrix { red: 0.2126, blue: 0.0722 };
    pub const BT2020: Matrix = Matrix { red: 0.2627, blue: 0.0593 };
    const FCC: Matrix = Matrix { red: 0.30, blue: 0.11 };
    const SMPTE240: Matrix = Matrix { red: 0.212, blue: 0.087 };

    /// By the number of an `AVColorSpace`; BT.601 if the file doesn't say, as FFmpeg and DALI do.
    pub fn of_tag(space: i32) -> Matrix {
        match space {
            1 => Matrix::BT709,
            4 => Matrix::FCC,
            7 => Matrix::SMPTE240,
            9 | 10 => Matrix::BT2020,
            _ => Matrix::BT601,
        }
    }
}

/// Values of more bits are rounded to this many, which moves results by less than a quarter.
pub const MOST_BITS: u32 = 10;

/// How values of one kind become RGB.
#[derive(Clone, Copy, Debug)]
pub struct Coefficients {
    luma: i16,
    red: i16,
    green: [i16; 2],
    blue: i16,
    /// Bits to drop from the sums.
    shift: u32,
    /// What is stored for black, and for no color.
    pub black: i16,
    pub middle: i16,
}

impl Coefficients {
    /// `depth` is from 8 to [`MOST_BITS`].
    pub fn new(matrix: Matrix, full_range: bool, depth: u32) -> Coefficients {
        assert!((8..=MOST_BITS).contains(&depth));
        let unit = f64::from(1_u32 << (depth - 8));
        let (luma, chroma) = if full_range {
            let scale = 255.0 * unit / (256.0 * unit - 1.0);
            (scale, scale)
        } else {
            (255.0 / 219.0, 255.0 / 224.0)
        };
        let Matrix { red, blue } = matrix;
        let green = 1.0 - red - blue;
        let fixed = |factor: f64| (factor * 8192.0).round() as i16;
        Coefficients {
            luma: fixed(luma),
            red: fixed(chroma * 2.0 * (1.0 - red)),
            green: [
                fixed(-chroma * 2.0 * (1.0 - blue) * blue / green),
                fixed(-chroma * 2.0 * (1.0 - red) * red / green),
            ],
            blue: fixed(chroma * 2.0 * (1.0 - blue)),
            shift: 17 + depth - 8,
            black: if full_range { 0 } else { 16 << (depth - 8) },
            middle: 128 << (depth - 8),
        }
    }

    #[inline(always)]
    fn rounded(&self, sum: i32) -> u8 {
        ((sum + (1 << (self.shift - 1))) >> self.shift).clamp(0, 255) as u8
    }

    /// RGB, or BGR if `swapped`, from rows of one scale.
    pub fn rgb(&self, isa: Isa, rows: [&[i16]; 3], swapped: bool, out: &mut [u8]) {
        let [luma, u, v] = rows;
        let done = match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            Isa::Avx2 => unsafe { avx2::rgb(self, rows, swapped, out) },
            _ => 0,
        };
        let pixels = out.as_chunks_mut::<3>().0[done..].iter_mut();
        let values = luma[done..].iter().zip(&u[done..]).zip(&v[done..]);
        for (pixel, ((&y, &u), &v)) in pixels.zip(values) {
            let [y, u, v] = [y, u, v].map(i32::from);
            let y = y * i32::from(self.luma);
            let green = u * i32::from(self.green[0]) + v * i32::from(self.green[1]);
            let made = [y + v * i32::from(self.red), y + green, y + u * i32::from(self.blue)];
            *pixel = made.map(|sum| self.rounded(sum));
            if swapped {
                pixel.reverse();
            }
        }
    }

    /// Luma stretched to the full range.
    pub fn gray(&self, luma: &[i16], out: &mut [u8]) {
        vectorized!({
            for (out, &y) in out.iter_mut().zip(luma) {
                *out = self.rounded(i32::from(y) * i32::from(self.luma));
            }
        });
    }

    /// A channel as stored, with eight bits, as every third byte from the first on.
    pub fn stored(&self, row: &[i16], offset: i16, out: &mut [u8]) {
        let shift = self.shift - 13;
        for (out, &value) in out.iter_mut().step_by(3).zip(row) {
            let value = i32::from(value) + 16 * i32::from(offset);
            *out = ((value + (1 << (shift - 1))) >> shift).clamp(0, 255) as u8;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::Coefficients;

    /// Shuffle masks: the source of each of 48 interleaved bytes in three rows of sixteen.
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
    pub fn rgb(to: &Coefficients, rows: [&[i16]; 3], swapped: bool, out: &mut [u8]) -> usize {
        let count = rows.iter().fold(out.len() / 3, |n, row| n.min(row.len()));
        let pair = |a: i16, b: i16| _mm256_set1_epi32((i32::from(b) << 16) | i32::from(a as u16));
        let red = pair(to.luma, to.red);
        let green = [pair(to.luma, to.green[0]), pair(0, to.green[1])];
        let blue = pair(to.luma, to.blue);
        let half = _mm256_set1_epi32(1 << (to.shift - 1));
        let shift = _mm_cvtsi32_si128(to.shift as i32);
        let narrow = |low: __m256i, high: __m256i| {
            let low = _mm256_sra_epi32(_mm256_add_epi32(low, half), shift);
            let high = _mm256_sra_epi32(_mm256_add_epi32(high, half), shift);
            let both = _mm256_packs_epi32(low, high);
            _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256::<1>(both))
        };
        let mut orders = [[_mm_setzero_si128(); 3]; 3];
        for (masks, from) in orders.iter_mut().zip(&ORDERS) {
            for (mask, from) in masks.iter_mut().zip(from) {
                // SAFETY: masks have 16 bytes.
                *mask = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
            }
        }
        let mut at = 0;
        while at + 16 <= count {
            // SAFETY: all rows have 16 values from `at` on.
            let [y, u, v] =
                rows.map(|row| unsafe { _mm256_loadu_si256(row.as_ptr().add(at).cast()) });
            let yu = [_mm256_unpacklo_epi16(y, u), _mm256_unpackhi_epi16(y, u)];
            let yv = [_mm256_unpacklo_epi16(y, v), _mm256_unpackhi_epi16(y, v)];
            let sum = |half: usize| {
                let first = _mm256_madd_epi16(yu[half], green[0]);
                _mm256_add_epi32(first, _mm256_madd_epi16(yv[half], green[1]))
            };
            let r = narrow(_mm256_madd_epi16(yv[0], red), _mm256_madd_epi16(yv[1], red));
            let g = narrow(sum(0), sum(1));
            let b = narrow(_mm256_madd_epi16(yu[0], blue), _mm256_madd_epi16(yu[1], blue));
            let (first, last) = if swapped { (b, r) } else { (r, b) };
            for (part, [of_first, of_g, of_last]) in orders.iter().enumerate() {
                let made = _mm_or_si128(
                    _mm_or_si128(_mm_shuffle_epi8(first, *of_first), _mm_shuffle_epi8(g, *of_g)),
                    _mm_shuffle_epi8(last, *of_last),
                );
                // SAFETY: there is room for 48 bytes from pixel `at` on.
                unsafe {
                    _mm_storeu_si128(out.as_mut_ptr().add(3 * at + 16 * part).cast(), made);
                }
            }
            at += 16;
        }
        at
    }
}

/// Values of a row as they are stored, of at most [`MOST_BITS`] bits: every `step`-th one, from the
/// first on.
pub fn load(row: &[u8], depth: u32, step: usize, out: &mut [i16]) {
    if depth <= 8 {
        match step {
            1 => vectorized!(out.iter_mut().zip(row).for_each(|(out, &x)| *out = i16::from(x))),
            _ => {
                let values = row.iter().step_by(step);
                out.iter_mut().zip(values).for_each(|(out, &x)| *out = i16::from(x));
            }
        }
        return;
    }
    let (drop, half) = match depth.checked_sub(MOST_BITS) {
        None | Some(0) => (0, 0),
        Some(more) => (more, 1_u32 << (more - 1)),
    };
    let most = (1_u32 << depth.min(MOST_BITS)) - 1;
    let values = row.as_chunks::<2>().0;
    vectorized!({
        let values = values.iter().step_by(step);
        for (out, &bytes) in out.iter_mut().zip(values) {
            let value = (u32::from(u16::from_le_bytes(bytes)) + half) >> drop;
            *out = value.min(most) as i16;
        }
    });
}

/// Luma at the scale of the conversion, in place.
pub fn scale_luma(row: &mut [i16], black: i16) {
    vectorized!(row.iter_mut().for_each(|x| *x = (*x - black) * 16));
}

/// Where a row of the picture is between rows of chroma, of which there is one for `1 << shift` of
/// luma, centered between them: the rows to mix, and their weights, which sum to 4 or 8.
pub fn neighbors(at: usize, shift: u32, count: usize) -> ([usize; 2], [i16; 2]) {
    if shift == 0 {
        return ([at, at], [4, 0]);
    }
    let (near, phase) = (at >> shift, at & ((1 << shift) - 1));
    let middle = 1 << (shift - 1);
    // Twice the distance to the center of the near one, in rows of luma.
    let (other, distance) = match phase < middle {
        true => (near.saturating_sub(1), 2 * (middle - phase) - 1),
        false => (near + 1, 2 * (phase - middle) + 1),
    };
    let all = 1_i16 << (shift + 1);
    let weight = distance as i16;
    ([near.min(count - 1), other.min(count - 1)], [all - weight, weight])
}

/// Mixes two rows of chroma to one, at four times their scale.
pub fn mix(rows: [&[i16]; 2], [near, far]: [i16; 2], out: &mut [i16]) {
    let [a, b] = rows;
    // Weights for 4:1:0 sum to eight.
    let drop = if near + far > 4 { 1 } else { 0 };
    vectorized!({
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = (near * a + far * b + drop) >> drop;
        }
    });
}

/// Upsamples a row of mixed chroma to a value per pixel, at sixteen times the stored scale, and
/// removes the offset. The row has a copy of its first value in front, and of its last behind.
pub fn upsample(padded: &[i16], shift: u32, middle: i16, out: &mut [i16]) {
    let offset = 16 * middle;
    match shift {
        0 => vectorized!({
            let row = &padded[1..];
            out.iter_mut().zip(row).for_each(|(out, &x)| *out = 4 * x - offset);
        }),
        1 => {
            let (pairs, rest) = out.as_chunks_mut::<2>();
            let count = pairs.len();
            let [before, here, after] = [0, 1, 2].map(|at| &padded[at..][..count]);
            vectorized!({
                for (((out, &a), &b), &c) in pairs.iter_mut().zip(before).zip(here).zip(after) {
                    let b = 3 * b - offset;
                    *out = [a + b, b + c];
                }
            });
            if let [last] = rest {
                *last = padded[count] + 3 * padded[count + 1] - offset;
            }
        }
        _ => {
            let count = padded.len() - 2;
            for (at, out) in out.iter_mut().enumerate() {
                let ([near, far], [a, b]) = neighbors(at, shift, count);
                let sum = i32::from(a) * i32::from(padded[1 + near])
                    + i32::from(b) * i32::from(padded[1 + far]);
                *out = (((sum + 1) >> 1) - i32::from(offset)) as i16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_agrees_with_scalar() {
        for depth in [8, 9, 10] {
            for full in [false, true] {
                let to = Coefficients::new(Matrix::BT2020, full, depth);
                let most = 16 * ((1_i32 << depth) - 1);
                let row = |step: i32, offset: i32| -> Vec<i16> {
                    (0..1003).map(|i| ((i * step) % (most + 1) - 16 * offset) as i16).collect()
                };
                let luma = row(97, i32::from(to.black));
                let (u, v) = (row(1009, i32::from(to.middle)), row(3001, i32::from(to.middle)));
                for swapped in [false, true] {
                    let run = |isa| {
                        let mut out = vec![0; 3 * 1003];
                        to.rgb(isa, [&luma, &u, &v], swapped, &mut out);
                        out
                    };
                    for isa in Isa::available() {
                        assert!(run(isa) == run(Isa::Scalar), "{isa:?}, {depth} bits");
                    }
                }
            }
        }
    }

    #[test]
    fn results_are_within_rounding_of_exact_arithmetic() {
        for matrix in [Matrix::BT601, Matrix::BT709, Matrix::BT2020] {
            for (full, depth) in [(false, 8), (true, 8), (false, 10), (true, 10)] {
                let to = Coefficients::new(matrix, full, depth);
                let unit = f64::from(1 << (depth - 8));
                let (span, chroma_span) = match full {
                    true => (256.0 * unit - 1.0, 256.0 * unit - 1.0),
                    false => (219.0 * unit, 224.0 * unit),
                };
                let step = (7.0 * unit) as usize;
                let values = (0..256 << (depth - 8)).step_by(step).map(|x| x as i16);
                let all: Vec<i16> = values.collect();
                for &y in &all {
                    for &u in &all {
                        for &v in &all {
                            let [py, pu, pv] =
                                [16 * (y - to.black), 16 * (u - to.middle), 16 * (v - to.middle)];
                            let mut made = [0; 3];
                            to.rgb(Isa::Scalar, [&[py], &[pu], &[pv]], false, &mut made);
                            let y = f64::from(y - to.black) * 255.0 / span;
                            let [u, v] =
                                [u, v].map(|x| f64::from(x - to.middle) * 255.0 / chroma_span);
                            let Matrix { red, blue } = matrix;
                            let r = y + 2.0 * (1.0 - red) * v;
                            let b = y + 2.0 * (1.0 - blue) * u;
                            let g = (y - red * r - blue * b) / (1.0 - red - blue);
                            for (made, exact) in made.into_iter().zip([r, g, b]) {
                                let exact = exact.clamp(0.0, 255.0);
                                assert!((f64::from(made) - exact).abs() < 0.53, "{exact} {made}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn chroma_is_centered_and_its_edges_are_repeated() {
        assert_eq!(neighbors(0, 1, 3), ([0, 0], [3, 1]));
        assert_eq!(neighbors(1, 1, 3), ([0, 1], [3, 1]));
        assert_eq!(neighbors(4, 1, 3), ([2, 1], [3, 1]));
        assert_eq!(neighbors(5, 1, 3), ([2, 2], [3, 1]));
        assert_eq!(neighbors(0, 2, 3), ([0, 0], [5, 3]));
        assert_eq!(neighbors(2, 2, 3), ([0, 1], [7, 1]));
        let mut out = [0; 5];
        // 4 times 10, 20 and 30, padded.
        upsample(&[40, 40, 80, 120, 120], 1, 0, &mut out);
        assert_eq!(out, [160, 200, 280, 360, 440]);
        let mut out = [0; 6];
        upsample(&[40, 40, 80, 80], 2, 0, &mut out);
        assert_eq!(out, [160, 160, 180, 220, 260, 300]);
    }
}
