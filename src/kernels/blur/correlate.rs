//! Correlation with a filter of the user's.

use smallvec::SmallVec;

use super::axes::{Axes, filtered, per_axis, spatial};
use super::rows::mirrored;
use crate::kernels::frames::Frames;
use crate::kernels::isa::Isa;
use crate::kernels::{Arg, FromArg, Kernel, Result, Space, args, floats};
use crate::value::{Cause, DType, Desc, Sample, Shape};

pub struct Filter;

args! {
    pub struct FilterArgs { anchor: Vec<i64>, border: Border, dtype: DType, valid: bool }
}

/// What is beyond the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    Constant,
    Clamp,
    Reflect101,
    Reflect1001,
    Wrap,
}

impl FromArg for Border {
    fn from_constant(arg: &Arg) -> std::result::Result<Border, String> {
        Ok(match String::from_constant(arg)?.as_str() {
            "constant" => Border::Constant,
            "clamp" => Border::Clamp,
            "reflect_101" => Border::Reflect101,
            "reflect_1001" | "reflect" => Border::Reflect1001,
            "wrap" => Border::Wrap,
            other => {
                return Err(format!(
                    "must be reflect_101, reflect_1001, wrap, clamp or constant, got {other:?}"
                ));
            }
        })
    }

    fn from_sample(_: &Sample) -> std::result::Result<Border, String> {
        Err("can't differ from sample to sample".into())
    }
}

impl Border {
    /// The place inside that one beyond stands for; none for a constant.
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

/// The spatial axes; as many as the filter has.
fn axes_for(inputs: &[&Desc]) -> Result<Axes> {
    let axes = spatial(inputs[0])?;
    let filter = inputs[1];
    if filter.ndim() != axes.len() {
        let (has, needs) = (filter.ndim(), axes.len());
        let problem = format!("the filter has {has} axes; the data has {needs} spatial ones");
        return Err(Cause::Input { index: 1, problem });
    }
    if filter.shape.contains(&0) {
        let problem = format!("the filter is empty: {:?}", &filter.shape[..]);
        return Err(Cause::Input { index: 1, problem });
    }
    Ok(axes)
}

impl Kernel for Filter {
    type Args = FilterArgs;
    const CHEAP: bool = false;
    const FRAMES: Frames = Frames::Made;

    fn output(args: &FilterArgs, inputs: &[&Desc]) -> Result<Desc> {
        let mut desc = filtered(inputs[0], args.dtype)?;
        for (axis, &size) in axes_for(inputs)?.into_iter().zip(&inputs[1].shape) {
            if !args.valid {
                continue;
            }
            let extent = desc.shape[axis];
            if size > extent {
                let problem = format!(
                    "the filter is larger than the data: {size} of {extent} on axis {axis}"
                );
                return Err(Cause::Input { index: 1, problem });
            }
            desc.shape[axis] = extent + 1 - size;
        }
        Ok(desc)
    }

    fn run(args: &FilterArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let (data, filter) = (&inputs[0], &inputs[1]);
        let axes = axes_for(&[&data.desc, &filter.desc])?;
        let anchors = anchors(args, &filter.desc, axes.len())?;
        if out.desc.elements() == 0 {
            return Ok(());
        }
        let isa = Isa::best();
        let fill = match inputs.get(2) {
            Some(fill) => {
                f64::from_sample(fill).map_err(|problem| Cause::Input { index: 2, problem })? as f32
            }
            None => 0.0,
        };
        let weights: Vec<f64> =
            Vec::from_sample(filter).map_err(|problem| Cause::Input { index: 1, problem })?;
        let padded = Padded::new(isa, data, &axes, filter, &anchors, args.border, fill)?;
        let inner = out.desc.shape[axes[axes.len() - 1]] * padded.pixel;
        let mut result = vec![0.0; inner];
        let shape = out.desc.shape.clone();
        let outer: Shape = SmallVec::from_slice(&shape[..axes[axes.len() - 1]]);
        let mut index: Shape = SmallVec::from_elem(0, outer.len());
        let mut start = 0;
        let mut taps = Vec::with_capacity(weights.len());
        while start < out.desc.elements() {
            padded.taps(&index, &outer, &axes, &weights, inner, &mut taps);
            weighted_sum(isa, &taps, &mut result);
            floats::write(isa, &result, start, out);
            start += inner;
            for (i, &extent) in index.iter_mut().zip(&outer).rev() {
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

/// Where in the filter the number is that goes to the place of the result.
fn anchors(args: &FilterArgs, filter: &Desc, axes: usize) -> Result<Vec<isize>> {
    let anchors = per_axis("anchor", &args.anchor, axes)?;
    let anchor = |(anchor, &size): (i64, &usize)| match anchor {
        // A result that has only whole sums starts with the first of them.
        _ if !(-1..size as i64).contains(&anchor) => {
            let problem = format!("must be inside of the filter, or -1, got {anchor} of {size}");
            Err(Cause::Argument { name: "anchor", problem })
        }
        _ if args.valid => Ok(0),
        -1 => Ok((size / 2) as isize),
        anchor => Ok(anchor as isize),
    };
    anchors.into_iter().zip(&filter.shape).map(anchor).collect()
}

/// The data as floats, its rows with what is around them.
struct Padded<'a> {
    rows: Vec<f32>,
    /// A row of nothing but what is beyond the edge.
    beyond: Vec<f32>,
    row: usize,
    pixel: usize,
    shape: &'a [usize],
    filter: &'a [usize],
    anchors: &'a [isize],
    border: Border,
}

impl<'a> Padded<'a> {
    fn new(
        isa: Isa,
        data: &'a Sample,
        axes: &[usize],
        filter: &'a Sample,
        anchors: &'a [isize],
        border: Border,
        fill: f32,
    ) -> Result<Padded<'a>> {
        let last = axes[axes.len() - 1];
        let shape = &data.desc.shape[..];
        let pixel: usize = shape[last + 1..].iter().product();
        let extent = shape[last];
        let size = filter.desc.shape[axes.len() - 1];
        let count: usize = shape[..last].iter().product();
        let row = (extent + size - 1).saturating_mul(pixel);
        // Beyond that there are so many sums that none would ever finish.
        let too_large = || Cause::Input {
            index: 1,
            problem: format!("a filter of {size} on rows of {extent} is too large"),
        };
        let total = row.checked_mul(count).filter(|&n| n <= 1 << 31).ok_or_else(too_large)?;
        let mut rows = vec![fill; total];
        let anchor = anchors[axes.len() - 1];
        for (index, padded) in rows.chunks_exact_mut(row).enumerate() {
            let body = anchor as usize * pixel..(anchor as usize + extent) * pixel;
            floats::read(isa, data, index * extent * pixel, &mut padded[body]);
            for to in (0..anchor as usize).chain(anchor as usize + extent..extent + size - 1) {
                if let Some(from) = border.place(to as isize - anchor, extent) {
                    let from = (anchor as usize + from) * pixel;
                    padded.copy_within(from..from + pixel, to * pixel);
                }
            }
        }
        let beyond = vec![fill; row];
        let filter = &filter.desc.shape[..];
        Ok(Padded { rows, beyond, row, pixel, shape, filter, anchors, border })
    }

    /// The rows that are summed up for a row of the result, and their weights.
    fn taps<'b>(
        &'b self,
        index: &[usize],
        outer: &[usize],
        axes: &[usize],
        weights: &[f64],
        inner: usize,
        taps: &mut Vec<(&'b [f32], f32)>,
    ) {
        taps.clear();
        let size = self.filter[axes.len() - 1];
        // The places of the filter before its last axis.
        for (number, weights) in weights.chunks_exact(size).enumerate() {
            let mut rest = number;
            let mut places: Shape = SmallVec::from_slice(index);
            let mut inside = true;
            for k in (0..axes.len() - 1).rev() {
                let offset = rest % self.filter[k];
                rest /= self.filter[k];
                let axis = axes[k];
                let place = index[axis] as isize + offset as isize - self.anchors[k];
                match self.border.place(place, self.shape[axis]) {
                    Some(place) => places[axis] = place,
                    None => inside = false,
                }
            }
            let row = if inside {
                let flat =
                    (0..outer.len()).fold(0, |sum, axis| sum * self.shape[axis] + places[axis]);
                &self.rows[flat * self.row..][..self.row]
            } else {
                &self.beyond[..]
            };
            for (offset, &weight) in weights.iter().enumerate() {
                if weight != 0.0 {
                    taps.push((&row[offset * self.pixel..][..inner], weight as f32));
                }
            }
        }
    }
}

/// Floats that are summed up in registers.
const BLOCK: usize = 32;

fn weighted_sum(isa: Isa, taps: &[(&[f32], f32)], out: &mut [f32]) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` is only made where AVX2 and FMA were detected.
        Isa::Avx2 => unsafe { avx2::weighted_sum(taps, out) },
        _ => 0,
    };
    let (blocks, rest) = out[done..].as_chunks_mut::<BLOCK>();
    let mut start = done;
    for out in blocks {
        let mut sums = [0.0; BLOCK];
        for (row, weight) in taps {
            let row = &row[start..start + BLOCK];
            for i in 0..BLOCK {
                sums[i] += weight * row[i];
            }
        }
        *out = sums;
        start += BLOCK;
    }
    for (i, out) in rest.iter_mut().enumerate() {
        *out = taps.iter().map(|(row, weight)| weight * row[start + i]).sum();
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Floats that are summed up in registers; many, so that sums need not wait for one another.
    const WIDE: usize = 64;

    /// Whole groups, and what is left of them once more with the last group; how many were done.
    /// Here multiplications are fused: sums of many are twice as fast, and a bit more exact.
    #[target_feature(enable = "avx2,fma")]
    pub fn weighted_sum(taps: &[(&[f32], f32)], out: &mut [f32]) -> usize {
        let n = out.len();
        assert!(taps.iter().all(|(row, _)| row.len() >= n));
        if n < WIDE {
            return 0;
        }
        let mut start = 0;
        loop {
            let mut sums = [_mm256_setzero_ps(); WIDE / 8];
            for (row, weight) in taps {
                let weight = _mm256_set1_ps(*weight);
                for (i, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: `start + WIDE` is at most `n`, which all rows have.
                    let x = unsafe { _mm256_loadu_ps(row.as_ptr().add(start + 8 * i)) };
                    *sum = _mm256_fmadd_ps(x, weight, *sum);
                }
            }
            for (i, sum) in sums.iter().enumerate() {
                // SAFETY: as above, `out` has `n`.
                unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(start + 8 * i), *sum) };
            }
            if start + WIDE == n {
                return n;
            }
            start = (start + WIDE).min(n - WIDE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_sums_up_the_same() {
        let data: Vec<f32> = (0..300).map(|i| (i * 7919 % 251) as f32 - 100.0).collect();
        for n in [0, 1, 31, 32, 63, 64, 65, 127, 128, 200] {
            let taps: Vec<(&[f32], f32)> =
                (0..25).map(|i| (&data[3 * i..][..n], 0.1 * i as f32 - 1.0)).collect();
            let run = |isa| {
                let mut out = vec![f32::NAN; n];
                weighted_sum(isa, &taps, &mut out);
                out
            };
            let expected = run(Isa::Scalar);
            for isa in Isa::available() {
                let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-2;
                assert!(run(isa).iter().zip(&expected).all(close), "{isa:?} {n}");
            }
        }
    }
}
