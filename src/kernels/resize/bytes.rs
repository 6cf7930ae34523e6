//! Resampling of bytes in fixed point: like `stage`, with twice as many lanes.
//!
//! Numbers have 16 bits. If no weight is negative, weights are multiples of 1/65536 and numbers
//! have eight fractional bits; products are truncated, and the average loss is added in advance.
//! Results equal those of floats, except for some that are close to a half, which are off by one: 2
//! to 5 in 1000 when a photograph is shrunk, up to 20 when it is enlarged.
//!
//! If weights can be negative, they are multiples of 1/16384, bytes are centered around 0, and
//! products are rounded: first to seven fractional bits, then to six, since sums may be larger.
//! About 10 to 20 in 1000 results are off by one.
//!
//! A band of sixteen output rows is computed from left to right, so that its inputs stay in the L1
//! cache.

use std::rc::Rc;

use super::filter::{Fixed, Taps};
use super::stage::{Stage, grow};
use crate::kernels::Result;
use crate::kernels::numeric::isa::Isa;

/// Rows of a band: the lanes of a vector. Also the number of output pixels computed at once.
const LANES: usize = 16;
/// Elements of a row that are summed before the next row.
const STRIP: usize = 256;
/// If a band covers more rows than this, each is read from start to end: they are more than the
/// hardware prefetcher can track.
const MANY_ROWS: usize = 96;
/// Minimal number of columns kept before those still needed are moved to the front.
const KEPT: usize = 384;

/// Aligned, because vectors that cross cache lines take twice the time.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Column([u16; LANES]);

#[derive(Default)]
pub struct Scratch {
    band: Vec<u16>,
    columns: Vec<Column>,
    results: Vec<Column>,
    rows: Vec<u8>,
    tiles: Vec<Tile>,
}

/// Output pixels that are computed at once, and the range of columns they depend on.
#[derive(Clone, Copy, Default)]
struct Tile {
    first: usize,
    low: usize,
    high: usize,
}

/// The fixed-point weights of an axis.
fn fixed<const SIGNED: bool>(taps: &Taps) -> Result<Option<&Fixed>> {
    if SIGNED { taps.signed() } else { taps.plain() }
}

fn all_fixed<const SIGNED: bool>(stage: &Stage) -> Result<bool> {
    for taps in [&stage.vertical, &stage.horizontal].into_iter().flatten() {
        if fixed::<SIGNED>(taps)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a stage can be run in fixed point.
pub fn takes(stage: &Stage) -> Result<bool> {
    Ok(stage.channels <= 4 && (all_fixed::<false>(stage)? || all_fixed::<true>(stage)?))
}

pub fn run(
    isa: Isa,
    stage: &Stage,
    src: &[u8],
    dst: &mut [u8],
    scratch: &mut Scratch,
) -> Result<()> {
    let signed = !all_fixed::<false>(stage)?;
    match (isa, signed) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        (Isa::Avx2, false) => unsafe { run_avx2::<false>(stage, src, dst, scratch) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Isa::Avx2, true) => unsafe { run_avx2::<true>(stage, src, dst, scratch) },
        (_, false) => run_with::<false, false>(stage, src, dst, scratch),
        (_, true) => run_with::<true, false>(stage, src, dst, scratch),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<const SIGNED: bool>(
    stage: &Stage,
    src: &[u8],
    dst: &mut [u8],
    scratch: &mut Scratch,
) -> Result<()> {
    run_with::<SIGNED, true>(stage, src, dst, scratch)
}

/// Starts of pieces of `LANES` elements; the last one overlaps the one before.
fn pieces(len: usize) -> impl DoubleEndedIterator<Item = usize> {
    let last = len.saturating_sub(LANES);
    (0..len.div_ceil(LANES)).map(move |index| last.min(index * LANES))
}

/// The rows of an image as weighted sums of input rows.
struct Rows<'a> {
    src: &'a [u8],
    /// Index of the first element that is used, and the distance between rows.
    start: usize,
    stride: usize,
    vertical: Option<(&'a Taps, &'a Fixed)>,
}

impl Rows<'_> {
    /// Computes elements of a row, from `at` on.
    #[inline(always)]
    fn sum<const SIGNED: bool, const VECTORS: bool>(&self, row: usize, at: usize, out: &mut [u16]) {
        let place = |row: usize| self.start + row * self.stride + at;
        let Some((taps, fixed)) = self.vertical else {
            for (out, &x) in out.iter_mut().zip(&self.src[place(row)..]) {
                *out = alone::<SIGNED>(x);
            }
            return;
        };
        let span = &taps.spans[row];
        let (start, weights) = fixed.of(row);
        let weights = &weights[span.start - start..][..span.len];
        let lost = if SIGNED { 0 } else { fixed.losses[row][0] };
        let src = &self.src[place(span.start)..];
        sum_rows::<SIGNED, VECTORS>(src, self.stride, weights, lost, out);
    }
}

#[inline(always)]
fn run_with<const SIGNED: bool, const VECTORS: bool>(
    stage: &Stage,
    src: &[u8],
    dst: &mut [u8],
    scratch: &mut Scratch,
) -> Result<()> {
    let channels = stage.channels;
    let (left, right) = stage.reach();
    let used = (right - left) * channels;
    let (rows, wide) = (stage.rows(), stage.columns());
    let made = wide * channels;
    if made == 0 || rows == 0 {
        return Ok(());
    }
    fn weights<const SIGNED: bool>(axis: &Option<Rc<Taps>>) -> Result<Option<(&Taps, &Fixed)>> {
        let Some(taps) = axis.as_deref() else { return Ok(None) };
        Ok(fixed::<SIGNED>(taps)?.map(|fixed| (taps, fixed)))
    }
    let vertical = weights::<SIGNED>(&stage.vertical)?;
    let horizontal = weights::<SIGNED>(&stage.horizontal)?;
    let reach = vertical.map_or(1, |(taps, _)| taps.longest + taps.reach.1 * LANES / rows);
    let strip = if reach < MANY_ROWS { STRIP.min(used) } else { used };
    let plane = |plane: usize| Rows {
        src,
        start: (plane * stage.height * stage.width + left) * channels,
        stride: stage.width * channels,
        vertical,
    };

    let Some((taps, fixed)) = horizontal else {
        let sums = grow(&mut scratch.band, used)?;
        for (row, out) in dst.chunks_exact_mut(made).enumerate() {
            plane(row / rows).sum::<SIGNED, VECTORS>(row % rows, 0, sums);
            for (out, &x) in out.iter_mut().zip(sums.iter()) {
                *out = byte_of_sum::<SIGNED>(x);
            }
        }
        return Ok(());
    };

    let tiles = grow(&mut scratch.tiles, wide.div_ceil(LANES))?;
    for (tile, first) in tiles.iter_mut().zip(pieces(wide)) {
        let starts = (first..wide.min(first + LANES)).map(|index| fixed.of(index).0);
        let (low, high) = starts.fold((right, left), |(a, b), x| (a.min(x), b.max(x)));
        let column = |pixel: usize| (pixel - left) * channels;
        *tile = Tile { first, low: column(low), high: column(high + fixed.count) };
    }
    if taps.spans[0].start > taps.spans[wide - 1].start {
        tiles.reverse();
    }
    let widest = tiles.iter().map(|tile| tile.high - tile.low).max().unwrap_or(0);

    let pitch = strip.next_multiple_of(LANES) + LANES;
    let band = grow(&mut scratch.band, LANES * pitch + LANES)?;
    let aligned = band.as_ptr().align_offset(align_of::<Column>()).min(LANES);
    let band = &mut band[aligned..][..LANES * pitch];
    let columns = grow(&mut scratch.columns, KEPT.max(widest) + widest + 2 * pitch)?;
    let results = grow(&mut scratch.results, LANES * channels)?;
    let spare = grow(&mut scratch.rows, LANES * LANES * channels)?;
    for index in 0..stage.planes {
        let source = plane(index);
        let dst = &mut dst[index * rows * made..][..rows * made];
        for first in pieces(rows) {
            // The columns from `start` to `end` are available; `start` is the first of `columns`.
            let (mut start, mut end) = (0, 0);
            for tile in tiles.iter() {
                if tile.low < start || tile.low > end {
                    (start, end) = (tile.low, tile.low);
                } else if tile.high - start + pitch > columns.len() {
                    columns.copy_within(tile.low - start..end - start, 0);
                    start = tile.low;
                }
                while end < tile.high {
                    let from = end.min(used - strip);
                    for (lane, out) in band.chunks_exact_mut(pitch).enumerate() {
                        let row = (first + lane).min(rows - 1);
                        source.sum::<SIGNED, VECTORS>(row, from, &mut out[..strip]);
                    }
                    let (skipped, count) = (end - from, from + strip - end);
                    let to = &mut columns[end - start..][..count.next_multiple_of(LANES)];
                    to_columns::<VECTORS>(&band[skipped..], pitch, to);
                    end = from + strip;
                }
                let columns = &columns[..end - start];
                let made_of = (fixed, left + start / channels);
                match channels {
                    1 => sum_columns::<1, SIGNED, VECTORS>(made_of, tile.first, columns, results),
                    2 => sum_columns::<2, SIGNED, VECTORS>(made_of, tile.first, columns, results),
                    3 => sum_columns::<3, SIGNED, VECTORS>(made_of, tile.first, columns, results),
                    _ => sum_columns::<4, SIGNED, VECTORS>(made_of, tile.first, columns, results),
                }
                let at = first * made + tile.first * channels;
                if rows >= LANES && wide >= LANES {
                    to_rows::<SIGNED, VECTORS>(results, &mut dst[at..], made);
                } else {
                    let (height, width) = (rows.min(LANES), made.min(LANES * channels));
                    to_rows::<SIGNED, VECTORS>(results, spare, LANES * channels);
                    for (row, from) in spare.chunks_exact(LANES * channels).take(height).enumerate()
                    {
                        dst[at + row * made..][..width].copy_from_slice(&from[..width]);
                    }
                }
            }
        }
    }
    Ok(())
}

/// A byte as a fixed-point number.
#[inline(always)]
fn number<const SIGNED: bool>(x: u8) -> u16 {
    u16::from(if SIGNED { x ^ 0x80 } else { x }) << 8
}

/// The product of a number and a weight.
#[inline(always)]
fn part<const SIGNED: bool>(x: u16, weight: u16) -> u16 {
    if SIGNED {
        ((i32::from(x as i16) * i32::from(weight as i16) + (1 << 14)) >> 15) as u16
    } else {
        ((u32::from(x) * u32::from(weight)) >> 16) as u16
    }
}

/// A single row in the format of a sum of rows.
#[inline(always)]
fn alone<const SIGNED: bool>(x: u8) -> u16 {
    let x = number::<SIGNED>(x);
    if SIGNED { (x as i16 >> 1) as u16 } else { x }
}

/// Rounds a sum of rows to a byte.
#[inline(always)]
fn byte_of_sum<const SIGNED: bool>(x: u16) -> u8 {
    if SIGNED {
        ((x as i16).saturating_add((128 << 7) + (1 << 6)) >> 7).max(0) as u8
    } else {
        ((x + 128) >> 8) as u8
    }
}

/// Initial value of sums of columns, chosen so that they only need truncation.
#[inline(always)]
fn start_of_columns<const SIGNED: bool>(lost: [u16; 2]) -> u16 {
    if SIGNED { (128 << 6) + (1 << 5) } else { lost[1] + 128 }
}

#[inline(always)]
fn byte_of_columns<const SIGNED: bool>(x: u16) -> u8 {
    if SIGNED { (x as i16 >> 6).clamp(0, 255) as u8 } else { (x >> 8) as u8 }
}

/// A weighted sum of rows that are `stride` apart.
#[inline(always)]
fn sum_rows<const SIGNED: bool, const VECTORS: bool>(
    src: &[u8],
    stride: usize,
    weights: &[[u16; 2]],
    lost: u16,
    out: &mut [u16],
) {
    #[cfg(target_arch = "x86_64")]
    if VECTORS
        && out.len() >= vectors::WIDE
        && src.len() >= (weights.len() - 1) * stride + out.len()
    {
        // SAFETY: `VECTORS` is only set where AVX2 was detected; the rows are long enough.
        unsafe { vectors::sum_rows::<SIGNED>(src, stride, weights, lost, out) };
        return;
    }
    out.fill(lost);
    for (row, weight) in weights.iter().enumerate() {
        for (out, &x) in out.iter_mut().zip(&src[row * stride..]) {
            *out = out.wrapping_add(part::<SIGNED>(number::<SIGNED>(x), weight[0]));
        }
    }
}

/// Weighted sums of columns, for up to `LANES` output pixels.
#[inline(always)]
fn sum_columns<const C: usize, const SIGNED: bool, const VECTORS: bool>(
    (fixed, left): (&Fixed, usize),
    first: usize,
    columns: &[Column],
    results: &mut [Column],
) {
    let pixels = columns.as_chunks::<C>().0;
    let results = results.as_chunks_mut::<C>().0;
    // Known short lengths are unrolled.
    match fixed.count {
        2 => sum_known::<C, 2, SIGNED, VECTORS>(fixed, left, first, pixels, results),
        3 => sum_known::<C, 3, SIGNED, VECTORS>(fixed, left, first, pixels, results),
        4 => sum_known::<C, 4, SIGNED, VECTORS>(fixed, left, first, pixels, results),
        5 => sum_known::<C, 5, SIGNED, VECTORS>(fixed, left, first, pixels, results),
        6 => sum_known::<C, 6, SIGNED, VECTORS>(fixed, left, first, pixels, results),
        count => {
            let each = fixed.starts[first..].iter().zip(&fixed.losses[first..]);
            let each = each.zip(fixed.weights[first * count..].chunks_exact(count));
            for (((&start, &lost), weights), out) in each.zip(results) {
                let parts = &pixels[start - left..][..count];
                sum_pixels::<C, SIGNED, VECTORS>(parts, weights, lost, out);
            }
        }
    }
}

#[inline(always)]
fn sum_known<const C: usize, const N: usize, const SIGNED: bool, const VECTORS: bool>(
    fixed: &Fixed,
    left: usize,
    first: usize,
    pixels: &[[Column; C]],
    results: &mut [[Column; C]],
) {
    let each = fixed.starts[first..].iter().zip(&fixed.losses[first..]);
    let each = each.zip(fixed.weights[first * N..].as_chunks::<N>().0);
    for (((&start, &lost), weights), out) in each.zip(results) {
        if let Some(parts) = pixels[start - left..].first_chunk::<N>() {
            sum_pixels::<C, SIGNED, VECTORS>(parts, weights, lost, out);
        }
    }
}

#[inline(always)]
fn sum_pixels<const C: usize, const SIGNED: bool, const VECTORS: bool>(
    pixels: &[[Column; C]],
    weights: &[[u16; 2]],
    lost: [u16; 2],
    out: &mut [Column; C],
) {
    let start = start_of_columns::<SIGNED>(lost);
    #[cfg(target_arch = "x86_64")]
    if VECTORS {
        // SAFETY: `VECTORS` is only set where AVX2 was detected.
        unsafe { vectors::sum_columns::<C, SIGNED>(pixels, weights, start, out) };
        return;
    }
    let mut sums = [[start; LANES]; C];
    for (pixel, &weight) in pixels.iter().zip(weights) {
        for (sums, column) in sums.iter_mut().zip(pixel) {
            for (sum, &x) in sums.iter_mut().zip(&column.0) {
                *sum = sum.wrapping_add(part::<SIGNED>(x, weight[0]));
            }
        }
    }
    *out = sums.map(Column);
}

/// Transposes a band of rows that are `pitch` apart into columns.
#[inline(always)]
fn to_columns<const VECTORS: bool>(band: &[u16], pitch: usize, columns: &mut [Column]) {
    for (index, out) in columns.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let from = &band[index * LANES..];
        #[cfg(target_arch = "x86_64")]
        if VECTORS && from.len() >= (LANES - 1) * pitch + LANES {
            // SAFETY: `VECTORS` is only set where AVX2 was detected; the last of 16 rows that are
            // `pitch` apart has 16 numbers, and so do all others.
            unsafe { vectors::to_columns(from.as_ptr(), pitch, out) };
            continue;
        }
        for (x, column) in out.iter_mut().enumerate() {
            column.0 = std::array::from_fn(|row| from[row * pitch + x]);
        }
    }
}

/// Transposes columns into the bytes of a band of rows that are `pitch` apart.
#[inline(always)]
fn to_rows<const SIGNED: bool, const VECTORS: bool>(
    columns: &[Column],
    out: &mut [u8],
    pitch: usize,
) {
    for (index, tile) in columns.as_chunks::<LANES>().0.iter().enumerate() {
        let to = &mut out[index * LANES..];
        #[cfg(target_arch = "x86_64")]
        if VECTORS && to.len() >= (LANES - 1) * pitch + LANES {
            // SAFETY: as in `to_columns`.
            unsafe { vectors::to_rows::<SIGNED>(tile, to.as_mut_ptr(), pitch) };
            continue;
        }
        for (x, column) in tile.iter().enumerate() {
            for (row, &value) in column.0.iter().enumerate() {
                to[row * pitch + x] = byte_of_columns::<SIGNED>(value);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::{Column, LANES};

    #[target_feature(enable = "avx2")]
    #[inline]
    fn part<const SIGNED: bool>(x: __m256i, weight: __m256i) -> __m256i {
        if SIGNED {
            return _mm256_mulhrs_epi16(x, weight);
        }
        // The compiler treats `_mm256_mulhi_epu16` as 32-bit products, and splits them if it sees
        // where the factors come from, which is twice as slow.
        let product;
        // SAFETY: it has no side effects, and AVX2 is enabled here.
        unsafe {
            asm!(
                "vpmulhuw {product}, {x}, {weight}",
                product = lateout(ymm_reg) product,
                x = in(ymm_reg) x,
                weight = in(ymm_reg) weight,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        product
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn filled([a, b]: [u16; 2]) -> __m256i {
        _mm256_set1_epi32((u32::from(b) << 16 | u32::from(a)) as i32)
    }

    /// Elements of a row that are summed at once.
    pub const WIDE: usize = 64;

    /// Sums rows of bytes.
    ///
    /// # Safety
    /// Starting at each multiple of `stride` for which there is a weight, `src` must have as many
    /// bytes as `out` has numbers, which must be at least `WIDE`.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn sum_rows<const SIGNED: bool>(
        src: &[u8],
        stride: usize,
        weights: &[[u16; 2]],
        lost: u16,
        out: &mut [u16],
    ) {
        /// With a constant number of weights, they stay in registers.
        #[target_feature(enable = "avx2")]
        #[inline]
        unsafe fn known<const N: usize, const SIGNED: bool>(
            src: &[u8],
            stride: usize,
            weights: &[[u16; 2]],
            lost: u16,
            out: &mut [u16],
        ) {
            if let Some(weights) = weights.first_chunk::<N>() {
                // SAFETY: guaranteed by the caller.
                unsafe { sum_some_rows::<SIGNED>(src, stride, weights, lost, out) };
            }
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            match weights.len() {
                2 => known::<2, SIGNED>(src, stride, weights, lost, out),
                3 => known::<3, SIGNED>(src, stride, weights, lost, out),
                4 => known::<4, SIGNED>(src, stride, weights, lost, out),
                5 => known::<5, SIGNED>(src, stride, weights, lost, out),
                _ => sum_some_rows::<SIGNED>(src, stride, weights, lost, out),
            }
        }
    }

    /// # Safety
    /// As for `sum_rows`.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn sum_some_rows<const SIGNED: bool>(
        src: &[u8],
        stride: usize,
        weights: &[[u16; 2]],
        lost: u16,
        out: &mut [u16],
    ) {
        let zero = _mm256_setzero_si256();
        let flip = _mm256_set1_epi8(-128);
        let lost = _mm256_set1_epi16(lost as i16);
        // The last vectors overlap the ones before.
        let last = out.len() - WIDE;
        for x in (0..last).step_by(WIDE).chain([last]) {
            let mut sums = [lost; 4];
            for (row, &weight) in weights.iter().enumerate() {
                let weight = filled(weight);
                for half in 0..2 {
                    // SAFETY: `x + WIDE` is at most the length of the row.
                    let bytes = unsafe {
                        _mm256_loadu_si256(src.as_ptr().add(row * stride + x + 32 * half).cast())
                    };
                    // Bytes become the upper halves of 16-bit numbers.
                    let bytes = if SIGNED { _mm256_xor_si256(bytes, flip) } else { bytes };
                    let low = _mm256_unpacklo_epi8(zero, bytes);
                    let high = _mm256_unpackhi_epi8(zero, bytes);
                    let sum = &mut sums[2 * half..2 * half + 2];
                    sum[0] = _mm256_add_epi16(sum[0], part::<SIGNED>(low, weight));
                    sum[1] = _mm256_add_epi16(sum[1], part::<SIGNED>(high, weight));
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
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub fn sum_columns<const C: usize, const SIGNED: bool>(
        pixels: &[[Column; C]],
        weights: &[[u16; 2]],
        start: u16,
        out: &mut [Column; C],
    ) {
        let mut sums = [_mm256_set1_epi16(start as i16); C];
        for (pixel, &weight) in pixels.iter().zip(weights) {
            let weight = filled(weight);
            for (sum, column) in sums.iter_mut().zip(pixel) {
                // SAFETY: a column has 16 numbers.
                let column = unsafe { _mm256_loadu_si256(column.0.as_ptr().cast()) };
                *sum = _mm256_add_epi16(*sum, part::<SIGNED>(column, weight));
            }
        }
        for (sum, out) in sums.iter().zip(out) {
            // SAFETY: a column has 16 numbers.
            unsafe { _mm256_storeu_si256(out.0.as_mut_ptr().cast(), *sum) };
        }
    }

    /// Transposes sixteen rows that are `pitch` apart into columns.
    ///
    /// # Safety
    /// There must be 16 numbers at `from + row * pitch`, for each of 16 rows.
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    pub unsafe fn to_columns(from: *const u16, pitch: usize, out: &mut [Column; LANES]) {
        for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            // Halves of vectors are transposed separately: rows `i` in the lower, `8 + i` in the
            // upper.
            let mut rows = [_mm256_setzero_si256(); 8];
            for (i, vector) in rows.iter_mut().enumerate() {
                // SAFETY: guaranteed by the caller.
                *vector = unsafe {
                    let below: *const __m128i = from.add(i * pitch + 8 * half).cast();
                    let above: *const __m128i = from.add((8 + i) * pitch + 8 * half).cast();
                    let below = _mm256_castsi128_si256(_mm_loadu_si128(below));
                    _mm256_inserti128_si256::<1>(below, _mm_loadu_si128(above))
                };
            }
            let mut pairs = rows;
            for i in 0..4 {
                pairs[2 * i] = _mm256_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
                pairs[2 * i + 1] = _mm256_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
            }
            let mut fours = pairs;
            for i in 0..2 {
                for k in 0..2 {
                    let (x, y) = (pairs[4 * i + k], pairs[4 * i + 2 + k]);
                    fours[4 * i + 2 * k] = _mm256_unpacklo_epi32(x, y);
                    fours[4 * i + 2 * k + 1] = _mm256_unpackhi_epi32(x, y);
                }
            }
            // `fours[4 * i + k]` has columns 2k and 2k + 1 of rows 4i to 4i + 3.
            for (k, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let (x, y) = (fours[k], fours[4 + k]);
                // SAFETY: a column has 16 numbers.
                unsafe {
                    _mm256_storeu_si256(out[0].0.as_mut_ptr().cast(), _mm256_unpacklo_epi64(x, y));
                    _mm256_storeu_si256(out[1].0.as_mut_ptr().cast(), _mm256_unpackhi_epi64(x, y));
                }
            }
        }
    }

    /// Transposes sixteen columns into bytes of rows that are `pitch` apart.
    ///
    /// # Safety
    /// There must be room for 16 bytes at `to + row * pitch`, for each of 16 rows.
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    pub unsafe fn to_rows<const SIGNED: bool>(tile: &[Column; LANES], to: *mut u8, pitch: usize) {
        let whole = |column: &Column| {
            // SAFETY: a column has 16 numbers.
            let sums = unsafe { _mm256_loadu_si256(column.0.as_ptr().cast()) };
            if SIGNED { _mm256_srai_epi16::<6>(sums) } else { _mm256_srli_epi16::<8>(sums) }
        };
        // Halves of vectors are transposed separately: rows 0 to 7 in the lower, 8 to 15 in the
        // upper. Each vector has the bytes of columns `i` and `8 + i`.
        let mut columns = [_mm256_setzero_si256(); 8];
        for (i, vector) in columns.iter_mut().enumerate() {
            *vector = _mm256_packus_epi16(whole(&tile[i]), whole(&tile[8 + i]));
        }
        let mut pairs = columns;
        for i in 0..4 {
            pairs[2 * i] = _mm256_unpacklo_epi8(columns[2 * i], columns[2 * i + 1]);
            pairs[2 * i + 1] = _mm256_unpackhi_epi8(columns[2 * i], columns[2 * i + 1]);
        }
        // `pairs[2 * i + k]` has columns 2i and 2i + 1, plus 8k, of all rows.
        let mut fours = pairs;
        for i in 0..2 {
            for k in 0..2 {
                let (x, y) = (pairs[4 * i + k], pairs[4 * i + 2 + k]);
                fours[4 * i + 2 * k] = _mm256_unpacklo_epi16(x, y);
                fours[4 * i + 2 * k + 1] = _mm256_unpackhi_epi16(x, y);
            }
        }
        // `fours[4 * i + 2 * k + j]` has columns 4i to 4i + 3, plus 8k, of rows 4j to 4j + 3.
        for j in 0..2 {
            let [a, b, c, d] = [fours[j], fours[4 + j], fours[2 + j], fours[6 + j]];
            let lower = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let upper = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            for (k, (x, y)) in [lower, upper].into_iter().enumerate() {
                let rows = [_mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y)];
                for (i, pair) in rows.into_iter().enumerate() {
                    let row = 4 * j + 2 * k + i;
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let (first, second) = (to.add(row * pitch), to.add((row + 8) * pitch));
                        _mm_storeu_si128(first.cast(), _mm256_castsi256_si128(pair));
                        _mm_storeu_si128(second.cast(), _mm256_extracti128_si256::<1>(pair));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::extent::Map;
    use super::super::filter::{Filter, Filters};
    use super::*;

    const FILTERS: [Filter; 3] = [Filter::Linear, Filter::Cubic, Filter::Lanczos3];
    /// Height, width, channels; rows and columns of the result.
    const SIZES: [[usize; 5]; 9] = [
        [37, 53, 3, 17, 24],
        [5, 7, 1, 33, 70],
        [20, 100, 4, 20, 31],
        [64, 40, 2, 16, 40],
        [1, 1, 3, 1, 2],
        [90, 500, 3, 41, 224],
        [200, 40, 3, 19, 90],
        [30, 3, 1, 15, 15],
        [19, 333, 3, 40, 340],
    ];

    fn taps(input: usize, output: usize, filter: Filter, mirrored: bool) -> Option<Rc<Taps>> {
        let step = input as f64 / output as f64;
        let mut map = Map { input, output, origin: 0.5 * step - 0.5, step };
        if mirrored {
            map = map.mirrored();
        }
        let filters = Filters { shrink: filter, enlarge: filter, antialias: true };
        (input != output).then(|| Rc::new(Taps::new(&map, &filters).unwrap()))
    }

    fn cases() -> impl Iterator<Item = (String, Stage, Vec<u8>)> {
        let kinds = FILTERS.into_iter().flat_map(|filter| [(filter, false), (filter, true)]);
        kinds.flat_map(|(filter, mirrored)| {
            SIZES.map(|size| {
                let [height, width, channels, rows, columns] = size;
                let elements = 2 * height * width * channels;
                let src = (0..elements).map(|i| (i * i * 31 / 7 % 256) as u8).collect();
                let vertical = taps(height, rows, filter, mirrored);
                let horizontal = taps(width, columns, filter, mirrored);
                let stage = Stage { planes: 2, height, width, channels, vertical, horizontal };
                assert!(takes(&stage).unwrap());
                (format!("{filter:?} {mirrored} {size:?}"), stage, src)
            })
        })
    }

    fn made(isa: Isa, stage: &Stage, src: &[u8]) -> Vec<u8> {
        let mut dst = vec![0; stage.elements()];
        run(isa, stage, src, &mut dst, &mut Scratch::default()).unwrap();
        dst
    }

    #[test]
    fn every_isa_agrees_with_scalar() {
        for (name, stage, src) in cases() {
            for isa in Isa::available() {
                let same = made(isa, &stage, &src) == made(Isa::Scalar, &stage, &src);
                assert!(same, "{isa:?} {name}");
            }
        }
    }

    #[test]
    fn results_match_floats_except_near_a_half() {
        let of = |taps: &Option<Rc<Taps>>, index: usize| match taps {
            Some(taps) => (taps.spans[index].start, taps.exact(&taps.spans[index]).to_vec()),
            None => (index, vec![1.0]),
        };
        for (name, stage, src) in cases() {
            let channels = stage.channels;
            let exact = |at: usize| {
                let (channel, at) = (at % channels, at / channels);
                let (column, at) = (at % stage.columns(), at / stage.columns());
                let (row, plane) = (at % stage.rows(), at / stage.rows());
                let ((top, high), (left, wide)) =
                    (of(&stage.vertical, row), of(&stage.horizontal, column));
                let mut sum = 0.0;
                for (y, a) in high.iter().enumerate() {
                    for (x, b) in wide.iter().enumerate() {
                        let row = plane * stage.height + top + y;
                        let pixel = row * stage.width + left + x;
                        sum += a * b * f64::from(src[pixel * channels + channel]);
                    }
                }
                sum.clamp(0.0, 255.0)
            };
            for (at, &value) in made(Isa::best(), &stage, &src).iter().enumerate() {
                let off = (f64::from(value) - exact(at)).abs();
                assert!(off < 0.6, "{name}: {value} for {} at {at}", exact(at));
            }
        }
    }

    #[test]
    fn uniform_images_stay_uniform() {
        for filter in FILTERS {
            let stage = Stage {
                planes: 1,
                height: 61,
                width: 47,
                channels: 3,
                vertical: taps(61, 20, filter, false),
                horizontal: taps(47, 90, filter, false),
            };
            for value in [0, 1, 7, 128, 254, 255] {
                let dst = made(Isa::best(), &stage, &vec![value; 61 * 47 * 3]);
                assert!(dst.iter().all(|&x| x == value), "{filter:?} {value}");
            }
        }
    }
}
