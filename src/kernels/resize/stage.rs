//! Resampling of rows of pixels, along columns and rows at once.
//!
//! A band of rows is computed at a time, so that it stays in the cache. First, each row is computed
//! as a weighted sum of input rows; then the band is transposed, so that a vector holds the same
//! column of all its rows, and columns are summed in the same way. The loops run over arrays of
//! vector length and are compiled for each instruction set.

use std::rc::Rc;

use smallvec::SmallVec;

use super::filter::{Span, Taps};
use crate::kernels::Result;
use crate::kernels::numeric::isa::Isa;
use crate::value::{collected, filled};

/// What is resampled: `planes` images of `height` rows with `width` pixels of `channels` elements.
pub struct Stage {
    pub planes: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// Taps of the output rows; without them, rows are copied.
    pub vertical: Option<Rc<Taps>>,
    /// Taps of the output columns; without them, columns are copied.
    pub horizontal: Option<Rc<Taps>>,
}

impl Stage {
    pub fn rows(&self) -> usize {
        self.vertical.as_ref().map_or(self.height, |taps| taps.spans.len())
    }

    pub fn columns(&self) -> usize {
        self.horizontal.as_ref().map_or(self.width, |taps| taps.spans.len())
    }

    /// The first pixel of a row that is used, and the end of the last.
    pub fn reach(&self) -> (usize, usize) {
        self.horizontal.as_ref().map_or((0, self.width), |taps| taps.reach)
    }

    /// Number of elements of the result.
    pub fn elements(&self) -> usize {
        self.planes * self.rows() * self.columns() * self.channels
    }
}

/// Rows of a band: the lanes of a vector.
const LANES: usize = 8;

/// A floating-point type to compute in.
pub trait Real: Copy + Default + Send + Sync + 'static {
    fn weights<'a>(taps: &'a Taps, span: &Span) -> &'a [Self];
    /// `self * weight + sum`, fused if `FUSED`.
    fn accumulate<const FUSED: bool>(self, weight: Self, sum: Self) -> Self;
    /// Transposes a tile; `VECTORS` says that AVX2 is available.
    fn transpose<const VECTORS: bool>(tile: &[[Self; LANES]; LANES]) -> [[Self; LANES]; LANES];
}

#[inline(always)]
fn transposed<T: Copy, const N: usize>(tile: &[[T; N]; N]) -> [[T; N]; N] {
    std::array::from_fn(|x| std::array::from_fn(|y| tile[y][x]))
}

impl Real for f32 {
    fn weights<'a>(taps: &'a Taps, span: &Span) -> &'a [f32] {
        taps.weights(span)
    }

    #[inline(always)]
    fn accumulate<const FUSED: bool>(self, weight: f32, sum: f32) -> f32 {
        if FUSED { self.mul_add(weight, sum) } else { self * weight + sum }
    }

    #[inline(always)]
    fn transpose<const VECTORS: bool>(tile: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
        #[cfg(target_arch = "x86_64")]
        if VECTORS {
            // SAFETY: `VECTORS` is only set where AVX2 was detected.
            return unsafe { transpose_avx2(tile) };
        }
        transposed(tile)
    }
}

impl Real for f64 {
    fn weights<'a>(taps: &'a Taps, span: &Span) -> &'a [f64] {
        taps.exact(span)
    }

    #[inline(always)]
    fn accumulate<const FUSED: bool>(self, weight: f64, sum: f64) -> f64 {
        if FUSED { self.mul_add(weight, sum) } else { self * weight + sum }
    }

    #[inline(always)]
    fn transpose<const VECTORS: bool>(tile: &[[f64; 8]; 8]) -> [[f64; 8]; 8] {
        transposed(tile)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn transpose_avx2(tile: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    use std::arch::x86_64::*;
    let mut rows = [_mm256_setzero_ps(); 8];
    for (row, from) in rows.iter_mut().zip(tile) {
        // SAFETY: each row has eight floats.
        *row = unsafe { _mm256_loadu_ps(from.as_ptr()) };
    }
    let mut pairs = rows;
    for i in 0..4 {
        pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    let mut fours = pairs;
    for half in 0..2 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| pairs[4 * half + i]);
        fours[4 * half] = _mm256_shuffle_ps::<0b01_00_01_00>(a, c);
        fours[4 * half + 1] = _mm256_shuffle_ps::<0b11_10_11_10>(a, c);
        fours[4 * half + 2] = _mm256_shuffle_ps::<0b01_00_01_00>(b, d);
        fours[4 * half + 3] = _mm256_shuffle_ps::<0b11_10_11_10>(b, d);
    }
    let mut out = [[0.0; 8]; 8];
    for i in 0..4 {
        let low = _mm256_permute2f128_ps::<0x20>(fours[i], fours[4 + i]);
        let high = _mm256_permute2f128_ps::<0x31>(fours[i], fours[4 + i]);
        // SAFETY: each row has eight floats.
        unsafe {
            _mm256_storeu_ps(out[i].as_mut_ptr(), low);
            _mm256_storeu_ps(out[4 + i].as_mut_ptr(), high);
        }
    }
    out
}

/// Memory of a thread, reused from one stage to the next.
#[derive(Default)]
pub struct Scratch<R> {
    /// A ring buffer of converted input rows, indexed by row modulo its length.
    ring: Vec<R>,
    /// Which row each slot of the ring holds.
    held: Vec<usize>,
    band: Vec<R>,
    columns: Vec<[R; LANES]>,
    results: Vec<[R; LANES]>,
}

/// The first `len` elements of `memory`, with any contents; grows it if necessary.
pub fn grow<T: Copy + Default>(memory: &mut Vec<T>, len: usize) -> Result<&mut [T]> {
    if memory.len() < len {
        // The old contents need not be kept.
        *memory = Vec::new();
        *memory = filled(T::default(), len)?;
    }
    Ok(&mut memory[..len])
}

/// Parts of a row, without an allocation if they are few.
#[inline(always)]
fn few<T: Copy>(parts: impl ExactSizeIterator<Item = T>) -> Result<SmallVec<[T; 8]>> {
    if parts.len() <= 8 {
        return Ok(parts.collect());
    }
    Ok(SmallVec::from_vec(collected(parts)?))
}

/// Input rows: a function that loads elements from a position on into a slice, or a slice that
/// already has the type of the computation.
pub struct Source<'a, R> {
    pub load: &'a dyn Fn(usize, &mut [R]),
    pub direct: Option<&'a [R]>,
}

/// Runs a stage; `store` gets each output row and the index of its first element.
pub fn run<R: Real>(
    isa: Isa,
    stage: &Stage,
    source: &Source<'_, R>,
    store: &mut dyn FnMut(usize, &[R]),
    scratch: &mut Scratch<R>,
) -> Result<()> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 and FMA were detected.
        Isa::Avx2 => unsafe { run_avx2(stage, source, store, scratch) },
        _ => run_with::<R, false>(stage, source, store, scratch),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<R: Real>(
    stage: &Stage,
    source: &Source<'_, R>,
    store: &mut dyn FnMut(usize, &[R]),
    scratch: &mut Scratch<R>,
) -> Result<()> {
    run_with::<R, true>(stage, source, store, scratch)
}

#[inline(always)]
fn run_with<R: Real, const FUSED: bool>(
    stage: &Stage,
    source: &Source<'_, R>,
    store: &mut dyn FnMut(usize, &[R]),
    scratch: &mut Scratch<R>,
) -> Result<()> {
    let channels = stage.channels;
    let (left, right) = stage.reach();
    let used = (right - left) * channels;
    let rows = stage.rows();
    let made = stage.columns() * channels;
    let longest = stage.vertical.as_ref().map_or(0, |taps| taps.longest);
    let ring = grow(&mut scratch.ring, if source.direct.is_none() { longest * used } else { 0 })?;
    let held = grow(&mut scratch.held, longest)?;
    let band = grow(&mut scratch.band, LANES * used.max(made))?;
    let columns = grow(&mut scratch.columns, used)?;
    let results = grow(&mut scratch.results, made)?;
    for plane in 0..stage.planes {
        let place = |row: usize| ((plane * stage.height + row) * stage.width + left) * channels;
        held.fill(usize::MAX);
        for first in (0..rows).step_by(LANES) {
            let count = LANES.min(rows - first);
            for (row, out) in (first..first + count).zip(band.chunks_exact_mut(used.max(1))) {
                let Some(taps) = &stage.vertical else {
                    (source.load)(place(row), out);
                    continue;
                };
                let span = &taps.spans[row];
                let wanted = span.start..span.start + span.len;
                let parts: SmallVec<[&[R]; 8]> = if let Some(all) = source.direct {
                    few(wanted.map(|row| &all[place(row)..][..used]))?
                } else {
                    for row in wanted.clone() {
                        let slot = row % longest;
                        if held[slot] != row {
                            held[slot] = row;
                            (source.load)(place(row), &mut ring[slot * used..][..used]);
                        }
                    }
                    few(wanted.map(|row| &ring[row % longest * used..][..used]))?
                };
                sum_rows::<R, FUSED>(&parts, R::weights(taps, span), out);
            }
            let at = |row: usize| (plane * rows + first + row) * made;
            let Some(taps) = &stage.horizontal else {
                for (row, out) in band.chunks_exact(used.max(1)).take(count).enumerate() {
                    store(at(row), out);
                }
                continue;
            };
            to_columns::<R, FUSED>(band, used, columns);
            match channels {
                1 => sum_columns::<R, 1, FUSED>(taps, left, columns, results),
                2 => sum_columns::<R, 2, FUSED>(taps, left, columns, results),
                3 => sum_columns::<R, 3, FUSED>(taps, left, columns, results),
                4 => sum_columns::<R, 4, FUSED>(taps, left, columns, results),
                _ => sum_any_columns::<R, FUSED>(taps, left, channels, columns, results),
            }
            to_rows::<R, FUSED>(results, band, made);
            for (row, out) in band.chunks_exact(made.max(1)).take(count).enumerate() {
                store(at(row), out);
            }
        }
    }
    Ok(())
}

#[inline(always)]
fn sum_rows<R: Real, const FUSED: bool>(rows: &[&[R]], weights: &[R], out: &mut [R]) {
    const WIDE: usize = 32;
    if out.len() < WIDE {
        for (x, out) in out.iter_mut().enumerate() {
            *out = rows
                .iter()
                .zip(weights)
                .fold(R::default(), |sum, (row, &weight)| row[x].accumulate::<FUSED>(weight, sum));
        }
        return;
    }
    // The last vectors overlap the ones before.
    let last = out.len() - WIDE;
    for x in (0..last).step_by(WIDE).chain([last]) {
        let mut sum = [R::default(); WIDE];
        for (row, &weight) in rows.iter().zip(weights) {
            if let Some(row) = row[x..].first_chunk::<WIDE>() {
                for (sum, x) in sum.iter_mut().zip(row) {
                    *sum = x.accumulate::<FUSED>(weight, *sum);
                }
            }
        }
        out[x..x + WIDE].copy_from_slice(&sum);
    }
}

/// Transposes a band of rows of `len` elements into columns.
#[inline(always)]
fn to_columns<R: Real, const VECTORS: bool>(band: &[R], len: usize, columns: &mut [[R; LANES]]) {
    let (tiles, rest) = columns.as_chunks_mut::<LANES>();
    let start = tiles.len() * LANES;
    for (index, out) in tiles.iter_mut().enumerate() {
        let mut tile = [[R::default(); LANES]; LANES];
        for (row, tile) in tile.iter_mut().enumerate() {
            if let Some(part) = band[row * len + index * LANES..].first_chunk() {
                *tile = *part;
            }
        }
        *out = R::transpose::<VECTORS>(&tile);
    }
    for (x, column) in (start..).zip(rest) {
        *column = std::array::from_fn(|row| band[row * len + x]);
    }
}

/// Transposes columns into a band of rows of `len` elements.
#[inline(always)]
fn to_rows<R: Real, const VECTORS: bool>(columns: &[[R; LANES]], band: &mut [R], len: usize) {
    let (tiles, rest) = columns.as_chunks::<LANES>();
    let start = tiles.len() * LANES;
    for (index, tile) in tiles.iter().enumerate() {
        for (row, tile) in R::transpose::<VECTORS>(tile).iter().enumerate() {
            band[row * len + index * LANES..][..LANES].copy_from_slice(tile);
        }
    }
    for (x, column) in (start..).zip(rest) {
        for (row, &value) in column.iter().enumerate() {
            band[row * len + x] = value;
        }
    }
}

#[inline(always)]
fn sum_columns<R: Real, const C: usize, const FUSED: bool>(
    taps: &Taps,
    left: usize,
    columns: &[[R; LANES]],
    results: &mut [[R; LANES]],
) {
    let pixels = columns.as_chunks::<C>().0;
    for (span, out) in taps.spans.iter().zip(results.as_chunks_mut::<C>().0) {
        let mut sums = [[R::default(); LANES]; C];
        let parts = &pixels[span.start - left..][..span.len];
        for (pixel, &weight) in parts.iter().zip(R::weights(taps, span)) {
            for (sums, column) in sums.iter_mut().zip(pixel) {
                for (sum, x) in sums.iter_mut().zip(column) {
                    *sum = x.accumulate::<FUSED>(weight, *sum);
                }
            }
        }
        *out = sums;
    }
}

#[inline(always)]
fn sum_any_columns<R: Real, const FUSED: bool>(
    taps: &Taps,
    left: usize,
    channels: usize,
    columns: &[[R; LANES]],
    results: &mut [[R; LANES]],
) {
    for (span, out) in taps.spans.iter().zip(results.chunks_exact_mut(channels)) {
        for (channel, out) in out.iter_mut().enumerate() {
            let mut sums = [R::default(); LANES];
            for (k, &weight) in R::weights(taps, span).iter().enumerate() {
                let column = &columns[(span.start - left + k) * channels + channel];
                for (sum, x) in sums.iter_mut().zip(column) {
                    *sum = x.accumulate::<FUSED>(weight, *sum);
                }
            }
            *out = sums;
        }
    }
}
