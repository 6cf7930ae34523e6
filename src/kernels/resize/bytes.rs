//! Resampling of bytes in fixed point: as `stage`, with twice the lanes.
//!
//! Numbers have 16 bits, eight of them behind the point; weights are parts of 65536. Products are
//! cut off, and what that loses on average is added beforehand. Results are those of floats, but
//! for some that lie near a half, which are one off: 2 to 5 of 1000 of a photograph made smaller,
//! up to 20 of one enlarged.

use smallvec::SmallVec;

use super::filter::Taps;
use super::stage::{Stage, grow};
use crate::kernels::isa::Isa;

/// Rows of a band: the lanes of a vector.
const LANES: usize = 16;
/// A half, to be rounded.
const HALF: u16 = 128;

type Column = [u16; LANES];

#[derive(Default)]
pub struct Scratch {
    band: Vec<u16>,
    columns: Vec<Column>,
    results: Vec<Column>,
    rows: Vec<u8>,
}

/// Whether a stage can be run here.
pub fn takes(stage: &Stage) -> bool {
    let fixed = |taps: &Option<_>| taps.as_deref().is_none_or(Taps::has_fixed);
    stage.channels <= 4 && fixed(&stage.vertical) && fixed(&stage.horizontal)
}

pub fn run(isa: Isa, stage: &Stage, src: &[u8], dst: &mut [u8], scratch: &mut Scratch) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` is only made where AVX2 was detected.
        Isa::Avx2 => unsafe { run_avx2(stage, src, dst, scratch) },
        _ => run_with::<false>(stage, src, dst, scratch),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2(stage: &Stage, src: &[u8], dst: &mut [u8], scratch: &mut Scratch) {
    run_with::<true>(stage, src, dst, scratch);
}

#[inline(always)]
fn run_with<const VECTORS: bool>(stage: &Stage, src: &[u8], dst: &mut [u8], scratch: &mut Scratch) {
    let channels = stage.channels;
    let (left, right) = stage.reach();
    let used = (right - left) * channels;
    let rows = stage.rows();
    let made = stage.columns() * channels;
    if made == 0 {
        return;
    }
    let band = grow(&mut scratch.band, LANES * used);
    let columns = grow(&mut scratch.columns, used);
    let results = grow(&mut scratch.results, made);
    let spare = grow(&mut scratch.rows, LANES * made);
    for plane in 0..stage.planes {
        let place = |row: usize| ((plane * stage.height + row) * stage.width + left) * channels;
        for first in (0..rows).step_by(LANES) {
            let count = LANES.min(rows - first);
            for (row, out) in (first..first + count).zip(band.chunks_exact_mut(used)) {
                match &stage.vertical {
                    None => {
                        for (out, &x) in out.iter_mut().zip(&src[place(row)..][..used]) {
                            *out = u16::from(x) << 8;
                        }
                    }
                    Some(taps) => {
                        let span = &taps.spans[row];
                        let wanted = span.start..span.start + span.len;
                        let parts: SmallVec<[&[u8]; 8]> =
                            wanted.map(|row| &src[place(row)..][..used]).collect();
                        sum_rows::<VECTORS>(&parts, taps.fixed(span), taps.losses[row][0], out);
                    }
                }
            }
            let out = &mut dst[(plane * rows + first) * made..][..count * made];
            let Some(taps) = &stage.horizontal else {
                for (out, &x) in out.iter_mut().zip(band.iter()) {
                    *out = ((x + HALF) >> 8) as u8;
                }
                continue;
            };
            turn_in::<VECTORS>(band, used, columns);
            match channels {
                1 => sum_columns::<1, VECTORS>(taps, left, columns, results),
                2 => sum_columns::<2, VECTORS>(taps, left, columns, results),
                3 => sum_columns::<3, VECTORS>(taps, left, columns, results),
                _ => sum_columns::<4, VECTORS>(taps, left, columns, results),
            }
            if count == LANES {
                turn_out::<VECTORS>(results, out, made);
            } else {
                turn_out::<VECTORS>(results, spare, made);
                out.copy_from_slice(&spare[..count * made]);
            }
        }
    }
}

/// The product of a number and a weight.
#[inline(always)]
fn part(x: u16, weight: u16) -> u16 {
    ((u32::from(x) * u32::from(weight)) >> 16) as u16
}

#[inline(always)]
fn sum_rows<const VECTORS: bool>(rows: &[&[u8]], weights: &[u16], lost: u16, out: &mut [u16]) {
    #[cfg(target_arch = "x86_64")]
    let start = if VECTORS && rows.iter().all(|row| row.len() >= out.len()) {
        // SAFETY: `VECTORS` is only said where AVX2 was detected; the rows are long enough.
        unsafe { vectors::sum_rows(rows, weights, lost, out) }
    } else {
        0
    };
    #[cfg(not(target_arch = "x86_64"))]
    let start = 0;
    for (x, out) in out.iter_mut().enumerate().skip(start) {
        let mut sum = lost;
        for (row, &weight) in rows.iter().zip(weights) {
            sum = sum.wrapping_add(part(u16::from(row[x]) << 8, weight));
        }
        *out = sum;
    }
}

#[inline(always)]
fn sum_columns<const C: usize, const VECTORS: bool>(
    taps: &Taps,
    left: usize,
    columns: &[Column],
    results: &mut [Column],
) {
    let pixels = columns.as_chunks::<C>().0;
    let spans = taps.spans.iter().zip(&taps.losses);
    for ((span, lost), out) in spans.zip(results.as_chunks_mut::<C>().0) {
        let parts = &pixels[span.start - left..][..span.len];
        let (weights, lost) = (taps.fixed(span), lost[1] + HALF);
        #[cfg(target_arch = "x86_64")]
        if VECTORS {
            // SAFETY: `VECTORS` is only said where AVX2 was detected.
            unsafe { vectors::sum_columns(parts, weights, lost, out) };
            continue;
        }
        let mut sums = [[lost; LANES]; C];
        for (pixel, &weight) in parts.iter().zip(weights) {
            for (sums, column) in sums.iter_mut().zip(pixel) {
                for (sum, &x) in sums.iter_mut().zip(column) {
                    *sum = sum.wrapping_add(part(x, weight));
                }
            }
        }
        *out = sums;
    }
}

/// A band of rows of `len` numbers as columns.
#[inline(always)]
fn turn_in<const VECTORS: bool>(band: &[u16], len: usize, columns: &mut [Column]) {
    let (tiles, rest) = columns.as_chunks_mut::<LANES>();
    let start = tiles.len() * LANES;
    for (index, out) in tiles.iter_mut().enumerate() {
        let from = &band[index * LANES..];
        #[cfg(target_arch = "x86_64")]
        if VECTORS && from.len() >= (LANES - 1) * len + LANES {
            // SAFETY: `VECTORS` is only said where AVX2 was detected; 16 numbers were found in
            // the last of 16 rows that are `len` apart, and so there are in all of them.
            unsafe { vectors::turn_in(from.as_ptr(), len, out) };
            continue;
        }
        for (x, column) in out.iter_mut().enumerate() {
            *column = std::array::from_fn(|row| from[row * len + x]);
        }
    }
    for (x, column) in (start..).zip(rest) {
        *column = std::array::from_fn(|row| band[row * len + x]);
    }
}

/// Columns as the bytes of a band of rows of `len`.
#[inline(always)]
fn turn_out<const VECTORS: bool>(columns: &[Column], out: &mut [u8], len: usize) {
    let (tiles, rest) = columns.as_chunks::<LANES>();
    let start = tiles.len() * LANES;
    for (index, tile) in tiles.iter().enumerate() {
        let to = &mut out[index * LANES..];
        #[cfg(target_arch = "x86_64")]
        if VECTORS && to.len() >= (LANES - 1) * len + LANES {
            // SAFETY: as in `turn_in`.
            unsafe { vectors::turn_out(tile, to.as_mut_ptr(), len) };
            continue;
        }
        for (x, column) in tile.iter().enumerate() {
            for (row, &value) in column.iter().enumerate() {
                to[row * len + x] = (value >> 8) as u8;
            }
        }
    }
    for (x, column) in (start..).zip(rest) {
        for (row, &value) in column.iter().enumerate() {
            out[row * len + x] = (value >> 8) as u8;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    use super::{Column, LANES};

    /// Sums up rows of bytes where they fill a vector, and says up to where it did.
    ///
    /// # Safety
    /// The rows are as long as the result.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn sum_rows(rows: &[&[u8]], weights: &[u16], lost: u16, out: &mut [u16]) -> usize {
        const WIDE: usize = 64;
        let zero = _mm256_setzero_si256();
        let lost = _mm256_set1_epi16(lost as i16);
        if out.len() < WIDE {
            return 0;
        }
        // The last vectors overlap those before.
        let last = out.len() - WIDE;
        for x in (0..last).step_by(WIDE).chain([last]) {
            let mut sums = [lost; 4];
            for (row, &weight) in rows.iter().zip(weights) {
                let weight = _mm256_set1_epi16(weight as i16);
                for half in 0..2 {
                    // SAFETY: `x + WIDE` is at most the length of the row.
                    let bytes =
                        unsafe { _mm256_loadu_si256(row.as_ptr().add(x + 32 * half).cast()) };
                    // Bytes become the upper halves of numbers.
                    let low = _mm256_unpacklo_epi8(zero, bytes);
                    let high = _mm256_unpackhi_epi8(zero, bytes);
                    let sum = &mut sums[2 * half..2 * half + 2];
                    sum[0] = _mm256_add_epi16(sum[0], _mm256_mulhi_epu16(low, weight));
                    sum[1] = _mm256_add_epi16(sum[1], _mm256_mulhi_epu16(high, weight));
                }
            }
            for half in 0..2 {
                let (a, b) = (sums[2 * half], sums[2 * half + 1]);
                // SAFETY: `x + WIDE` is at most the length of `out`.
                unsafe {
                    let to: *mut __m256i = out.as_mut_ptr().add(x + 32 * half).cast();
                    _mm256_storeu_si256(to, _mm256_permute2x128_si256::<0x20>(a, b));
                    _mm256_storeu_si256(to.add(1), _mm256_permute2x128_si256::<0x31>(a, b));
                }
            }
        }
        out.len()
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub fn sum_columns<const C: usize>(
        pixels: &[[Column; C]],
        weights: &[u16],
        lost: u16,
        out: &mut [Column; C],
    ) {
        let mut sums = [_mm256_set1_epi16(lost as i16); C];
        for (pixel, &weight) in pixels.iter().zip(weights) {
            let weight = _mm256_set1_epi16(weight as i16);
            for (sum, column) in sums.iter_mut().zip(pixel) {
                // SAFETY: a column has 16 numbers.
                let column = unsafe { _mm256_loadu_si256(column.as_ptr().cast()) };
                *sum = _mm256_add_epi16(*sum, _mm256_mulhi_epu16(column, weight));
            }
        }
        for (sum, out) in sums.iter().zip(out) {
            // SAFETY: a column has 16 numbers.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), *sum) };
        }
    }

    /// Sixteen rows that are `len` apart as columns.
    ///
    /// # Safety
    /// There are 16 numbers from `from + row * len` on, for each of 16 rows.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn turn_in(from: *const u16, len: usize, out: &mut [Column; LANES]) {
        let mut rows = [_mm256_setzero_si256(); 16];
        for (row, vector) in rows.iter_mut().enumerate() {
            // SAFETY: as the caller says.
            *vector = unsafe { _mm256_loadu_si256(from.add(row * len).cast()) };
        }
        let mut a = rows;
        for i in 0..8 {
            a[2 * i] = _mm256_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
            a[2 * i + 1] = _mm256_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
        }
        let mut b = a;
        for i in 0..4 {
            for half in 0..2 {
                let (x, y) = (a[4 * i + half], a[4 * i + 2 + half]);
                b[4 * i + 2 * half] = _mm256_unpacklo_epi32(x, y);
                b[4 * i + 2 * half + 1] = _mm256_unpackhi_epi32(x, y);
            }
        }
        // `b[4 * i + k]` has columns 2k and 2k + 1 (and those plus 8) of rows 4i to 4i + 3.
        let mut c = b;
        for i in 0..2 {
            for k in 0..4 {
                let (x, y) = (b[8 * i + k], b[8 * i + 4 + k]);
                c[8 * i + 2 * k] = _mm256_unpacklo_epi64(x, y);
                c[8 * i + 2 * k + 1] = _mm256_unpackhi_epi64(x, y);
            }
        }
        for column in 0..8 {
            let low = _mm256_permute2x128_si256::<0x20>(c[column], c[8 + column]);
            let high = _mm256_permute2x128_si256::<0x31>(c[column], c[8 + column]);
            // SAFETY: a column has 16 numbers.
            unsafe {
                _mm256_storeu_si256(out[column].as_mut_ptr().cast(), low);
                _mm256_storeu_si256(out[8 + column].as_mut_ptr().cast(), high);
            }
        }
    }

    /// Sixteen columns as bytes of rows that are `len` apart.
    ///
    /// # Safety
    /// There is room for 16 bytes from `to + row * len` on, for each of 16 rows.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn turn_out(tile: &[Column; LANES], to: *mut u8, len: usize) {
        // A vector has the bytes of two columns: of `i` in the lower half, of `8 + i` above.
        let mut columns = [_mm256_setzero_si256(); 8];
        for (i, vector) in columns.iter_mut().enumerate() {
            // SAFETY: a column has 16 numbers.
            let (low, high) = unsafe {
                (
                    _mm256_loadu_si256(tile[i].as_ptr().cast()),
                    _mm256_loadu_si256(tile[8 + i].as_ptr().cast()),
                )
            };
            let (low, high) = (_mm256_srli_epi16::<8>(low), _mm256_srli_epi16::<8>(high));
            *vector = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(low, high));
        }
        // Rows are made of eight columns each in both halves.
        let mut a = columns;
        for i in 0..4 {
            a[2 * i] = _mm256_unpacklo_epi8(columns[2 * i], columns[2 * i + 1]);
            a[2 * i + 1] = _mm256_unpackhi_epi8(columns[2 * i], columns[2 * i + 1]);
        }
        let mut b = a;
        for i in 0..2 {
            for half in 0..2 {
                let (x, y) = (a[4 * i + half], a[4 * i + 2 + half]);
                b[4 * i + 2 * half] = _mm256_unpacklo_epi16(x, y);
                b[4 * i + 2 * half + 1] = _mm256_unpackhi_epi16(x, y);
            }
        }
        for k in 0..4 {
            let rows =
                [_mm256_unpacklo_epi32(b[k], b[4 + k]), _mm256_unpackhi_epi32(b[k], b[4 + k])];
            // Each has two rows: eight bytes of columns 0 to 7 below, of 8 to 15 above.
            for (i, pair) in rows.into_iter().enumerate() {
                let pair = _mm256_permute4x64_epi64::<0b11_01_10_00>(pair);
                let row = 4 * k + 2 * i;
                // SAFETY: as the caller says.
                unsafe {
                    let (first, second) = (to.add(row * len), to.add((row + 1) * len));
                    _mm_storeu_si128(first.cast(), _mm256_castsi256_si128(pair));
                    _mm_storeu_si128(second.cast(), _mm256_extracti128_si256::<1>(pair));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::extent::Map;
    use super::super::filter::{Filter, Filters};
    use super::*;

    fn taps(input: usize, output: usize) -> Option<Rc<Taps>> {
        let step = input as f64 / output as f64;
        let map = Map { input, output, origin: 0.5 * step - 0.5, step };
        let filters = Filters { shrink: Filter::Linear, enlarge: Filter::Linear, antialias: true };
        (input != output).then(|| Rc::new(Taps::new(&map, &filters)))
    }

    #[test]
    fn every_isa_agrees_with_scalar() {
        for (height, width, channels, rows, columns) in [
            (37, 53, 3, 17, 24),
            (5, 7, 1, 33, 70),
            (20, 100, 4, 20, 31),
            (64, 40, 2, 16, 40),
            (1, 1, 3, 1, 2),
        ] {
            let src: Vec<u8> =
                (0..2 * height * width * channels).map(|i| (i * i * 31 / 7 % 256) as u8).collect();
            let stage = Stage {
                planes: 2,
                height,
                width,
                channels,
                vertical: taps(height, rows),
                horizontal: taps(width, columns),
            };
            let made = |isa| {
                let mut dst = vec![0; stage.elements()];
                run(isa, &stage, &src, &mut dst, &mut Scratch::default());
                dst
            };
            for isa in Isa::available() {
                assert!(made(isa) == made(Isa::Scalar), "{isa:?} {height} {width} {channels}");
            }
        }
    }

    #[test]
    fn plain_images_stay_plain() {
        let stage = Stage {
            planes: 1,
            height: 61,
            width: 47,
            channels: 3,
            vertical: taps(61, 20),
            horizontal: taps(47, 90),
        };
        for value in [0, 1, 7, 128, 254, 255] {
            let src = vec![value; 61 * 47 * 3];
            let mut dst = vec![9; stage.elements()];
            run(Isa::best(), &stage, &src, &mut dst, &mut Scratch::default());
            assert!(dst.iter().all(|&x| x == value), "{value}");
        }
    }
}
