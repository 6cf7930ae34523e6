//! Correlation with a user-defined filter.

use smallvec::SmallVec;

use super::axes::{Axes, filtered, per_axis, spatial};
use super::rows::mirrored;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::filters::problem::Filters;
use crate::kernels::numeric::floats;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::{Arg, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::Problem;
use crate::value::{DType, Desc, Sample, Shape, filled, zeroed};

pub struct Filter;

args! {
    pub struct FilterArgs { anchor: Vec<i64>, border: Border, dtype: DType, valid: bool }
}

/// How the data is extended beyond its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    Constant,
    Clamp,
    Reflect101,
    Reflect1001,
    Wrap,
}

impl FromArg for Border {
    fn from_constant(arg: &Arg) -> std::result::Result<Border, Problem> {
        Ok(match String::from_constant(arg)?.as_str() {
            "constant" => Border::Constant,
            "clamp" => Border::Clamp,
            "reflect_101" => Border::Reflect101,
            "reflect_1001" | "reflect" => Border::Reflect1001,
            "wrap" => Border::Wrap,
            other => {
                let choices = "reflect_101, reflect_1001, wrap, clamp, constant";
                return Err(Argument::OneOf { choices, given: format!("{other:?}") }.into());
            }
        })
    }

    fn from_sample(_: &Sample) -> std::result::Result<Border, Problem> {
        Err(Argument::SameForAll.into())
    }
}

impl Border {
    /// Maps a position outside the data to one inside; `None` for a constant border.
    fn place(self, place: isize, extent: usize) -> Option<usize> {
        let end = extent as isize;
        if (0..end).contains(&place) {
            return Some(place as usize);
        }
        match self {
            Border::Constant => None,
            Border::Clamp => Some(place.clamp(0, end - 1) as usize),
            Border::Reflect101 => Some(mirrored(place, extent)),
            Border::Reflect1001 => {
                let place = place.rem_euclid(2 * end);
                Some(place.min(2 * end - 1 - place) as usize)
            }
            Border::Wrap => Some(place.rem_euclid(end) as usize),
        }
    }
}

/// The spatial axes; checks that the filter has as many.
fn axes_for(inputs: &[&Desc]) -> Result<Axes> {
    let axes = spatial(inputs[0])?;
    let filter = inputs[1];
    if filter.ndim() != axes.len() {
        let (given, wanted) = (filter.ndim(), axes.len());
        return Err(unfit(1, Filters::Axes { given, wanted }));
    }
    if filter.shape.contains(&0) {
        return Err(unfit(1, Filters::Empty { shape: filter.shape.to_vec() }));
    }
    Ok(axes)
}

/// Axes, anchors and border of the filter.
pub struct Correlation {
    axes: Axes,
    anchors: Vec<isize>,
    border: Border,
}

impl Kernel for Filter {
    type Args = FilterArgs;
    type Plan = Correlation;
    const TRAITS: Traits = Traits { cheap: false, frames: Frames::Made, ..Traits::DEFAULT };

    fn plan(args: FilterArgs, inputs: &[&Desc]) -> Result<(Correlation, Outputs)> {
        let mut desc = filtered(inputs[0], args.dtype)?;
        let axes = axes_for(inputs)?;
        for (&axis, &size) in axes.iter().zip(&inputs[1].shape) {
            if !args.valid {
                continue;
            }
            let extent = desc.shape[axis];
            if size > extent {
                return Err(unfit(1, Filters::Larger { size, extent, axis }));
            }
            desc.shape[axis] = extent + 1 - size;
        }
        let anchors = anchors(&args, inputs[1], axes.len())?;
        Ok((Correlation { axes, anchors, border: args.border }, one(desc)))
    }

    fn run(plan: &Correlation, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let (data, filter) = (&inputs[0], &inputs[1]);
        let Correlation { axes, anchors, border } = plan;
        if out.desc.elements() == 0 {
            return Ok(());
        }
        let isa = Isa::best();
        let fill = match inputs.get(2) {
            Some(fill) => f64::from_sample(fill).map_err(|problem| unfit(2, problem))? as f32,
            None => 0.0,
        };
        let weights: Vec<f64> = Vec::from_sample(filter).map_err(|problem| unfit(1, problem))?;
        let (last, down) = (axes[axes.len() - 1], axes.len().checked_sub(2).map(|k| axes[k]));
        let mut seen = Seen::new(isa, data, axes, &filter.desc, anchors, *border, fill)?;
        let shape = out.desc.shape.clone();
        let inner = shape[last] * seen.pixel;
        let direct = out.desc.dtype == DType::F32;
        let mut results = zeroed::<f32>(if direct { 0 } else { 2 * inner })?;
        let mut taps = Taps::default();
        // Rows are processed from top to bottom, if there is such an axis, inside loops over the
        // other axes.
        let mut turns: Shape = SmallVec::from_slice(&shape[..last]);
        let below = down.map_or(1, |axis| std::mem::replace(&mut turns[axis], 1));
        let step = down.map_or(1, |axis| shape[axis + 1..last].iter().product()) * inner;
        let mut index: Shape = SmallVec::from_elem(0, last);
        for _ in 0..turns.iter().product() {
            for y in (0..below).step_by(2) {
                if let Some(axis) = down {
                    index[axis] = y;
                }
                let count = (below - y).min(2);
                seen.move_to(&index, count);
                seen.taps(&index, count, &weights, &mut taps);
                let start = line(&shape, &index) * inner;
                let (upper, lower) = if direct {
                    let out = &mut out.elements::<f32>()[start..];
                    out.split_at_mut(step.min(out.len()))
                } else {
                    results.split_at_mut(inner)
                };
                let (upper, lower) = (&mut upper[..inner], lower.get_mut(..inner));
                match lower.filter(|_| count == 2) {
                    Some(lower) => {
                        let ahead = seen.ahead(&index);
                        weighted_sums(isa, &seen.rows, &taps, ahead, upper, lower);
                    }
                    None => weighted_sum(isa, &seen.rows, &taps.upper, upper),
                }
                if !direct {
                    for (row, result) in results.chunks_exact(inner).take(count).enumerate() {
                        floats::write(isa, result, start + row * step, out);
                    }
                }
            }
            for (i, &extent) in index.iter_mut().zip(&turns).rev() {
                *i += 1;
                if *i < extent {
                    break;
                }
                *i = 0;
            }
        }
        Ok(())
    }
}

/// Correlates data with weights, anchored at their center; edges are reflected.
pub fn correlate_with(data: &Sample, weights: &Sample, out: &mut Output<'_>) -> Result<()> {
    let axes = axes_for(&[&data.desc, &weights.desc])?;
    let anchors = weights.desc.shape.iter().map(|&size| (size / 2) as isize).collect();
    let plan = Correlation { axes, anchors, border: Border::Reflect101 };
    Filter::run(&plan, &[data.clone(), weights.clone()], std::slice::from_mut(out))
}

/// The position in the filter that is aligned with the output element.
fn anchors(args: &FilterArgs, filter: &Desc, axes: usize) -> Result<Vec<isize>> {
    let anchors = per_axis("anchor", &args.anchor, axes)?;
    let anchor = |(anchor, &size): (i64, &usize)| match anchor {
        // Without padding, the output starts with the first complete sum.
        _ if !(-1..size as i64).contains(&anchor) => {
            Err(argument("anchor", Filters::Anchor { given: anchor, size }))
        }
        _ if args.valid => Ok(0),
        -1 => Ok((size / 2) as isize),
        anchor => Ok(anchor as isize),
    };
    anchors.into_iter().zip(&filter.shape).map(anchor).collect()
}

/// Number of the row at this index of the axes before the last one.
fn line(shape: &[usize], index: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |line, (&i, &extent)| line * extent + i)
}

/// The rows that the filter covers, as padded floats, while it moves downwards.
struct Seen<'a> {
    isa: Isa,
    data: &'a Sample,
    axes: &'a [usize],
    filter: &'a [usize],
    anchors: &'a [isize],
    border: Border,
    /// Number of rows kept for each position of the filter's axes before the last two: those
    /// covered for two output rows.
    kept: usize,
    /// All of these rows, followed by a row of only border values.
    rows: Vec<f32>,
    /// Elements per row.
    row: usize,
    /// Elements per pixel.
    pixel: usize,
}

impl<'a> Seen<'a> {
    fn new(
        isa: Isa,
        data: &'a Sample,
        axes: &'a [usize],
        filter: &'a Desc,
        anchors: &'a [isize],
        border: Border,
        fill: f32,
    ) -> Result<Seen<'a>> {
        let filter = &filter.shape[..];
        let (&last, before) = axes.split_last().unwrap_or((&0, &[]));
        let (&size, places) = filter.split_last().unwrap_or((&1, &[]));
        let shape = &data.desc.shape[..];
        let pixel: usize = shape[last + 1..].iter().product();
        let extent = shape[last];
        let row = (extent + size - 1).saturating_mul(pixel);
        let (height, planes) = places.split_last().unwrap_or((&1, &[]));
        let kept = before.last().map_or(1, |&axis| shape[axis].min(height.saturating_add(1)));
        // Anything larger would take too long to ever finish.
        let too_large = || unfit(1, Filters::TooLarge { size, extent });
        let planes: usize = planes.iter().product();
        let count = kept.checked_mul(planes).and_then(|n| n.checked_add(1));
        let total = count.and_then(|n| n.checked_mul(row));
        let rows = filled(fill, total.filter(|&n| n <= 1 << 31).ok_or_else(too_large)?)?;
        Ok(Seen { isa, data, axes, filter, anchors, border, kept, rows, row, pixel })
    }

    /// The filter's extent along the vertical axis.
    fn height(&self) -> usize {
        self.filter.len().checked_sub(2).map_or(1, |k| self.filter[k])
    }

    /// Where a row that a plane of the filter covers is: its number in the data, and its slot among
    /// the kept rows. Row 0 is the filter's top row at the first position, which may be in the
    /// border. `None` for a row of a constant border.
    fn place(&self, index: &[usize], plane: usize, row: usize) -> Option<(usize, usize)> {
        let shape = &self.data.desc.shape[..];
        let mut places: Shape = SmallVec::from_slice(index);
        let mut slot = 0;
        let mut rest = plane;
        for k in (0..self.axes.len() - 1).rev() {
            let axis = self.axes[k];
            let place = if k + 2 == self.axes.len() {
                row
            } else {
                let offset = rest % self.filter[k];
                rest /= self.filter[k];
                index[axis] + offset
            };
            places[axis] = self.border.place(place as isize - self.anchors[k], shape[axis])?;
            if k + 2 == self.axes.len() {
                // A filter as tall as the data keeps all rows, in their order.
                slot = if self.height() < self.kept { row % self.kept } else { places[axis] };
            }
        }
        Some((line(shape, &places), plane * self.kept + slot))
    }

    fn planes(&self) -> usize {
        self.filter[..self.filter.len().saturating_sub(2)].iter().product()
    }

    /// The output row at the index.
    fn row_of(&self, index: &[usize]) -> usize {
        self.axes.len().checked_sub(2).map_or(0, |k| index[self.axes[k]])
    }

    /// Reads the rows that the next `count` output rows additionally cover.
    fn move_to(&mut self, index: &[usize], count: usize) {
        let y = self.row_of(index);
        let seen = y + self.height() - 1;
        for plane in 0..self.planes() {
            for row in if y == 0 { 0 } else { seen }..seen + count {
                if let Some((line, slot)) = self.place(index, plane, row) {
                    self.read(line, slot);
                }
            }
        }
    }

    /// The bytes that will probably be read after two output rows, for prefetching.
    fn ahead(&self, index: &[usize]) -> &[u8] {
        let next = self.row_of(index) + self.height() + 1;
        let Some((line, _)) = self.place(index, 0, next) else { return &[] };
        let row = self.data.desc.shape[self.axes[self.axes.len() - 1]]
            * self.pixel
            * self.data.desc.dtype.size();
        let bytes = self.data.elements_as_bytes().get(line * row..).unwrap_or_default();
        &bytes[..bytes.len().min(2 * row)]
    }

    fn read(&mut self, line: usize, slot: usize) {
        let (pixel, row) = (self.pixel, self.row);
        let k = self.axes.len() - 1;
        let (extent, anchor) = (self.data.desc.shape[self.axes[k]], self.anchors[k] as usize);
        let padded = &mut self.rows[slot * row..][..row];
        let body = anchor * pixel..(anchor + extent) * pixel;
        floats::read(self.isa, self.data, line * extent * pixel, &mut padded[body]);
        for to in (0..anchor).chain(anchor + extent..extent + self.filter[k] - 1) {
            if let Some(from) = self.border.place(to as isize - anchor as isize, extent) {
                let from = (anchor + from) * pixel;
                padded.copy_within(from..from + pixel, to * pixel);
            }
        }
    }

    /// Collects the terms of the sums for one output row, or for two.
    fn taps(&self, index: &[usize], count: usize, weights: &[f64], taps: &mut Taps) {
        taps.upper.clear();
        taps.both.clear();
        taps.lower.clear();
        let (y, height) = (self.row_of(index), self.height());
        let size = self.filter[self.filter.len() - 1];
        for (plane, weights) in weights.chunks_exact(height * size).enumerate() {
            for row in 0..height + count - 1 {
                let slot = match self.place(index, plane, y + row) {
                    Some((_, slot)) => slot,
                    None => self.rows.len() / self.row - 1,
                };
                // For the lower output row, the filter is shifted down by one row.
                let upper = weights.get(row * size..).unwrap_or_default();
                let lower = if count == 2 && row > 0 { &weights[(row - 1) * size..] } else { &[] };
                for offset in 0..size {
                    let weight = |weights: &[f64]| weights.get(offset).map_or(0.0, |&w| w as f32);
                    let from = slot * self.row + offset * self.pixel;
                    match (weight(upper), weight(lower)) {
                        (0.0, 0.0) => {}
                        (upper, 0.0) => taps.upper.push((from, upper)),
                        (0.0, lower) => taps.lower.push((from, lower)),
                        (upper, lower) => taps.both.push((from, [upper, lower])),
                    }
                }
            }
        }
    }
}

/// Start of a term in the rows, and its weight.
type Tap<W = f32> = (usize, W);

/// The terms for two adjacent output rows: those needed by both are loaded once.
#[derive(Default)]
struct Taps {
    upper: Vec<Tap>,
    both: Vec<Tap<[f32; 2]>>,
    lower: Vec<Tap>,
}

/// Number of floats that are summed in registers.
const BLOCK: usize = 32;

fn weighted_sum(isa: Isa, rows: &[f32], taps: &[Tap], out: &mut [f32]) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 and FMA were detected.
        Isa::Avx2 => unsafe { avx2::weighted_sum(rows, taps, out) },
        _ => 0,
    };
    weighted_sum_from(done, rows, taps.iter().copied(), out);
}

/// Two rows at once. Prefetches `ahead` meanwhile.
fn weighted_sums(
    isa: Isa,
    rows: &[f32],
    taps: &Taps,
    ahead: &[u8],
    upper: &mut [f32],
    lower: &mut [f32],
) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for one row.
        Isa::Avx2 => unsafe { avx2::weighted_sums(rows, taps, ahead, upper, lower) },
        _ => 0,
    };
    let both = |row: usize| taps.both.iter().map(move |&(from, weights)| (from, weights[row]));
    weighted_sum_from(done, rows, taps.upper.iter().copied().chain(both(0)), upper);
    weighted_sum_from(done, rows, taps.lower.iter().copied().chain(both(1)), lower);
}

/// The rest of a row.
fn weighted_sum_from(
    done: usize,
    rows: &[f32],
    taps: impl Iterator<Item = Tap> + Clone,
    out: &mut [f32],
) {
    let (blocks, rest) = out[done..].as_chunks_mut::<BLOCK>();
    let mut start = done;
    for out in blocks {
        let mut sums = [0.0; BLOCK];
        for (from, weight) in taps.clone() {
            let row = &rows[from + start..][..BLOCK];
            for i in 0..BLOCK {
                sums[i] += weight * row[i];
            }
        }
        *out = sums;
        start += BLOCK;
    }
    for (i, out) in rest.iter_mut().enumerate() {
        *out = taps.clone().map(|(from, weight)| weight * rows[from + start + i]).sum();
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;
    use std::array::from_mut;

    use super::{Tap, Taps};

    /// Vectors that are summed in registers: enough to hide the latency of the additions.
    const SUMS: usize = 8;

    /// Size of a cache line.
    const LINE: usize = 64;

    /// Processes whole groups; the last group overlaps the one before, so that none is left over.
    /// Returns the number of elements done. Multiply-adds are fused: twice as fast, and slightly
    /// more accurate.
    #[target_feature(enable = "avx2,fma")]
    pub fn weighted_sum(rows: &[f32], taps: &[Tap], out: &mut [f32]) -> usize {
        const WIDE: usize = 8 * SUMS;
        let n = out.len();
        assert!(all_inside(rows, taps, n));
        if n < WIDE {
            return 0;
        }
        let mut start = 0;
        loop {
            let mut sums = [[_mm256_setzero_ps(); SUMS]];
            // SAFETY: `start + WIDE` is at most `n`; `out` and every tap have `n` elements.
            unsafe {
                let rows = rows.as_ptr().add(start);
                for &(from, weight) in taps {
                    add(&mut sums, rows.add(from), [weight]);
                }
                store(&sums[0], out.as_mut_ptr().add(start));
            }
            if start + WIDE == n {
                return n;
            }
            start = (start + WIDE).min(n - WIDE);
        }
    }

    /// Like `weighted_sum`, for two rows.
    #[target_feature(enable = "avx2,fma")]
    pub fn weighted_sums(
        rows: &[f32],
        taps: &Taps,
        ahead: &[u8],
        upper: &mut [f32],
        lower: &mut [f32],
    ) -> usize {
        const WIDE: usize = 8 * (SUMS / 2);
        let n = upper.len();
        assert!(lower.len() == n && all_inside(rows, &taps.both, n));
        assert!(all_inside(rows, &taps.upper, n) && all_inside(rows, &taps.lower, n));
        if n < WIDE {
            return 0;
        }
        let mut start = 0;
        let mut ahead = ahead.chunks(2 * WIDE * size_of::<f32>());
        loop {
            for line in ahead.next().unwrap_or_default().chunks(LINE) {
                _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
            }
            let mut sums = [[_mm256_setzero_ps(); SUMS / 2]; 2];
            // SAFETY: `start + WIDE` is at most `n`; both outputs and every tap have `n` elements.
            unsafe {
                let rows = rows.as_ptr().add(start);
                for &(from, weight) in &taps.upper {
                    add(from_mut(&mut sums[0]), rows.add(from), [weight]);
                }
                for &(from, weights) in &taps.both {
                    add(&mut sums, rows.add(from), weights);
                }
                for &(from, weight) in &taps.lower {
                    add(from_mut(&mut sums[1]), rows.add(from), [weight]);
                }
                store(&sums[0], upper.as_mut_ptr().add(start));
                store(&sums[1], lower.as_mut_ptr().add(start));
            }
            if start + WIDE == n {
                return n;
            }
            start = (start + WIDE).min(n - WIDE);
        }
    }

    /// Whether there are `n` elements for each tap.
    fn all_inside<W>(rows: &[f32], taps: &[Tap<W>], n: usize) -> bool {
        let room = rows.len().checked_sub(n);
        taps.iter().all(|(from, _)| Some(*from) <= room)
    }

    /// # Safety
    /// There must be `N` vectors of numbers.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn add<const R: usize, const N: usize>(
        sums: &mut [[__m256; N]; R],
        numbers: *const f32,
        weights: [f32; R],
    ) {
        let mut x = [_mm256_setzero_ps(); N];
        for (i, x) in x.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *x = unsafe { _mm256_loadu_ps(numbers.add(8 * i)) };
        }
        for (sums, weight) in sums.iter_mut().zip(weights) {
            let weight = _mm256_set1_ps(weight);
            for (sum, &x) in sums.iter_mut().zip(&x) {
                *sum = _mm256_fmadd_ps(x, weight, *sum);
            }
        }
    }

    /// # Safety
    /// There must be room for `N` vectors.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store<const N: usize>(sums: &[__m256; N], out: *mut f32) {
        for (i, sum) in sums.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { _mm256_storeu_ps(out.add(8 * i), *sum) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_computes_the_same_sums() {
        let data: Vec<f32> = (0..300).map(|i| (i * 7919 % 251) as f32 - 100.0).collect();
        let weight = |i: usize| 0.1 * i as f32 - 1.0;
        for n in [0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 200] {
            let one: Vec<Tap> = (0..25).map(|i| (3 * i, weight(i))).collect();
            let two = Taps {
                upper: one[..5].to_vec(),
                both: (5..20).map(|i| (3 * i, [weight(i), weight(i + 7)])).collect(),
                lower: one[20..].to_vec(),
            };
            let run = |isa| {
                let mut out = [(); 3].map(|()| vec![f32::NAN; n]);
                let [single, upper, lower] = &mut out;
                weighted_sum(isa, &data, &one, single);
                weighted_sums(isa, &data, &two, &[0; 1000], upper, lower);
                out.concat()
            };
            let expected = run(Isa::Scalar);
            for isa in Isa::available() {
                let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-2;
                assert!(run(isa).iter().zip(&expected).all(close), "{isa:?} {n}");
            }
        }
    }
}
