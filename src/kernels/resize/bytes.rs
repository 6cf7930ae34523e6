//! Resampling of bytes in fixed point: as `stage`, with twice the lanes.
//!
//! Numbers have 16 bits, eight of them behind the point; weights are parts of 65536. Products are
//! cut off, and what that loses on average is added beforehand. Results are those of floats, but
//! for less than one in a hundred that lie near a half.

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
                        sum_rows(&parts, taps.fixed(span), taps.losses[row][0], out);
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
                1 => sum_columns::<1>(taps, left, columns, results),
                2 => sum_columns::<2>(taps, left, columns, results),
                3 => sum_columns::<3>(taps, left, columns, results),
                _ => sum_columns::<4>(taps, left, columns, results),
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
fn sum_rows(rows: &[&[u8]], weights: &[u16], lost: u16, out: &mut [u16]) {
    const WIDE: usize = 64;
    let (chunks, rest) = out.as_chunks_mut::<WIDE>();
    let start = chunks.len() * WIDE;
    for (index, out) in chunks.iter_mut().enumerate() {
        let mut sum = [lost; WIDE];
        for (row, &weight) in rows.iter().zip(weights) {
            if let Some(row) = row[index * WIDE..].first_chunk::<WIDE>() {
                for (sum, &x) in sum.iter_mut().zip(row) {
                    *sum = sum.wrapping_add(part(u16::from(x) << 8, weight));
                }
            }
        }
        *out = sum;
    }
    for (x, out) in (start..).zip(rest) {
        let mut sum = lost;
        for (row, &weight) in rows.iter().zip(weights) {
            sum = sum.wrapping_add(part(u16::from(row[x]) << 8, weight));
        }
        *out = sum;
    }
}

#[inline(always)]
fn sum_columns<const C: usize>(
    taps: &Taps,
    left: usize,
    columns: &[Column],
    results: &mut [Column],
) {
    let pixels = columns.as_chunks::<C>().0;
    let spans = taps.spans.iter().zip(&taps.losses);
    for ((span, lost), out) in spans.zip(results.as_chunks_mut::<C>().0) {
        let mut sums = [[lost[1] + HALF; LANES]; C];
        let parts = &pixels[span.start - left..][..span.len];
        for (pixel, &weight) in parts.iter().zip(taps.fixed(span)) {
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

    /// Sixteen rows that are `len` apart as columns.
    ///
    /// # Safety
    /// There are 16 numbers from `from + row * len` on, for each of 16 rows.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn turn_in(from: *const u16, len: usize, out: &mut [Column; LANES]) {
        // SAFETY: as the caller says.
        let rows: [__m256i; 16] =
            std::array::from_fn(|row| unsafe { _mm256_loadu_si256(from.add(row * len).cast()) });
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
        let columns: [__m256i; 8] = std::array::from_fn(|i| {
            // SAFETY: a column has 16 numbers.
            let (low, high) = unsafe {
                (
                    _mm256_loadu_si256(tile[i].as_ptr().cast()),
                    _mm256_loadu_si256(tile[8 + i].as_ptr().cast()),
                )
            };
            let (low, high) = (_mm256_srli_epi16::<8>(low), _mm256_srli_epi16::<8>(high));
            _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(low, high))
        });
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
