//! Output sizes and regions of interest: turns the arguments of a call into a coordinate map for
//! each axis.

use smallvec::SmallVec;

use crate::kernels::Result;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::regions::LONGEST;
use crate::kernels::resize::problem::Resize;

/// One number for each resized axis.
pub type PerAxis<T> = SmallVec<[T; 6]>;

/// Minimal size of a region, as in DALI: below it, the coordinate map would degenerate.
const SMALLEST_REGION: f64 = 1e-3;
/// Maximal coordinate of a region, up to which positions are accurate.
const LARGEST_REGION: f64 = (1_u64 << 40) as f64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Default,
    Stretch,
    NotLarger,
    NotSmaller,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Round,
    Truncate,
    Ceil,
}

/// Output element `i` samples the input at `origin + i * step`, in units of input indices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Map {
    pub input: usize,
    pub output: usize,
    pub origin: f64,
    pub step: f64,
}

impl Map {
    /// Maps every element to itself.
    pub fn identity(extent: usize) -> Map {
        Map { input: extent, output: extent, origin: 0.0, step: 1.0 }
    }

    pub fn is_identity(&self) -> bool {
        *self == Map::identity(self.input)
    }

    /// The map for `count` output elements from `first` on, which may be outside.
    pub fn window(self, first: i64, count: usize) -> Map {
        Map { output: count, origin: self.origin + first as f64 * self.step, ..self }
    }

    /// The map for a mirrored output.
    pub fn mirrored(self) -> Map {
        let last = self.output.saturating_sub(1) as f64;
        Map { origin: self.origin + last * self.step, step: -self.step, ..self }
    }
}

/// The arguments of a call, except for the sizes.
pub struct Wanted<'a> {
    /// Name of the argument with the sizes, for errors.
    pub name: &'static str,
    pub mode: Mode,
    pub max_size: Option<&'a [f64]>,
    pub region: Option<(PerAxis<f64>, PerAxis<f64>)>,
    pub rounding: Rounding,
    /// Whether rounding a fractional size changes the region instead of the scale.
    pub subpixel: bool,
    /// Which point of the region stays in place, from 0 to 1.
    pub alignment: PerAxis<f64>,
}

/// The problem of an extent beyond the maximum.
pub fn too_long(extent: f64) -> Argument {
    Argument::TooLong { extent, longest: LONGEST }
}

/// A number for each axis, from a list or from one number for all.
pub fn spread(name: &'static str, given: &[f64], axes: usize) -> Result<PerAxis<f64>> {
    if let Some(bad) = given.iter().find(|x| !x.is_finite()) {
        return Err(argument(name, Argument::NotFinite { given: *bad }));
    }
    match given {
        &[one] => Ok(SmallVec::from_elem(one, axes)),
        many if many.len() == axes => Ok(SmallVec::from_slice(many)),
        _ => Err(argument(name, Argument::Numbers { wanted: axes, given: given.to_vec() })),
    }
}

/// Start and end of a region, in elements.
pub fn region(
    start: Option<&[f64]>,
    end: Option<&[f64]>,
    relative: bool,
    inputs: &[usize],
) -> Result<Option<(PerAxis<f64>, PerAxis<f64>)>> {
    let (start, end) = match (start, end) {
        (None, None) => return Ok(None),
        (Some(start), Some(end)) => (start, end),
        (Some(_), None) => {
            return Err(argument("roi_start", Argument::NeedsOther { other: "roi_end" }));
        }
        (None, Some(_)) => {
            return Err(argument("roi_end", Argument::NeedsOther { other: "roi_start" }));
        }
    };
    let place = |name, given: &[f64]| -> Result<PerAxis<f64>> {
        let mut corner = spread(name, given, inputs.len())?;
        if relative {
            corner.iter_mut().zip(inputs).for_each(|(x, &extent)| *x *= extent as f64);
        }
        match corner.iter().find(|x| x.abs() > LARGEST_REGION) {
            Some(&given) => Err(argument(name, Resize::FarRegion { given })),
            None => Ok(corner),
        }
    };
    Ok(Some((place("roi_start", start)?, place("roi_end", end)?)))
}

/// The maps of all axes. `sizes` are the requested ones; 0 means that the others decide, and a
/// negative size mirrors.
pub fn maps(wanted: &Wanted<'_>, sizes: &[f64], inputs: &[usize]) -> Result<PerAxis<Map>> {
    let (starts, ends) = match &wanted.region {
        Some((starts, ends)) => (starts.clone(), ends.clone()),
        None => {
            (SmallVec::from_elem(0.0, inputs.len()), inputs.iter().map(|&d| d as f64).collect())
        }
    };
    let spans: PerAxis<f64> = starts.iter().zip(&ends).map(|(a, b)| (b - a).abs()).collect();
    let sizes = adjusted(wanted, sizes, &spans)?;
    let mut maps = PerAxis::new();
    for (axis, (&size, &input)) in sizes.iter().zip(inputs).enumerate() {
        if input == 0 {
            maps.push(Map::identity(0));
            continue;
        }
        let whole = match wanted.rounding {
            Rounding::Round => size.abs().round(),
            Rounding::Truncate => size.abs().trunc(),
            Rounding::Ceil => size.abs().ceil(),
        };
        let whole = whole.max(1.0);
        if whole.is_nan() || whole > LONGEST {
            return Err(argument(wanted.name, too_long(whole)));
        }
        let (mut start, mut end) = (starts[axis], ends[axis]);
        if (end - start).abs() < SMALLEST_REGION {
            let half = if end < start { -SMALLEST_REGION } else { SMALLEST_REGION } / 2.0;
            let centre = (start + end) / 2.0;
            (start, end) = (centre - half, centre + half);
        }
        if size < 0.0 {
            (start, end) = (end, start);
        }
        if wanted.subpixel && size.abs() != whole && size != 0.0 {
            let span = (end - start) * (whole / size.abs());
            let span = span.clamp(-LARGEST_REGION, LARGEST_REGION);
            start += (end - start - span) * wanted.alignment[axis];
            end = start + span;
        }
        let step = (end - start) / whole;
        let origin = start + 0.5 * step - 0.5;
        maps.push(Map { input, output: whole as usize, origin, step });
    }
    Ok(maps)
}

/// The sizes after applying mode and limits.
fn adjusted(wanted: &Wanted<'_>, sizes: &[f64], spans: &[f64]) -> Result<PerAxis<f64>> {
    let axes = spans.len();
    let scales = || {
        let each = sizes.iter().zip(spans).filter(|&(&size, &span)| size != 0.0 && span > 0.0);
        each.map(|(size, span)| size.abs() / span)
    };
    let limits: PerAxis<f64> = match wanted.max_size {
        None => SmallVec::from_elem(f64::INFINITY, axes),
        Some(given) => {
            let limits = spread("max_size", given, axes)?;
            limits.iter().map(|&most| if most > 0.0 { most } else { f64::INFINITY }).collect()
        }
    };
    let signed = |axis: usize, extent: f64| extent.copysign(sizes[axis]);
    let given = scales().count();
    let fitted: PerAxis<f64> = match wanted.mode {
        Mode::Default | Mode::Stretch => {
            let others = match (given, wanted.mode) {
                (0, _) | (_, Mode::Stretch) => 1.0,
                (1, _) => scales().sum(),
                _ => scales().product::<f64>().powf(1.0 / given as f64),
            };
            let extent = |axis: usize| match sizes[axis] {
                0.0 => spans[axis] * others,
                size => size.abs(),
            };
            (0..axes).map(|axis| signed(axis, extent(axis).min(limits[axis]))).collect()
        }
        Mode::NotLarger | Mode::NotSmaller => {
            let scale = match wanted.mode {
                _ if given == 0 => 1.0,
                Mode::NotLarger => scales().fold(f64::INFINITY, f64::min),
                _ => scales().fold(0.0, f64::max),
            };
            let limit = limits.iter().zip(spans).filter(|(_, span)| **span > 0.0);
            let scale = limit.map(|(most, span)| most / span).fold(scale, f64::min);
            (0..axes).map(|axis| signed(axis, spans[axis] * scale)).collect()
        }
    };
    Ok(fitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(mode: Mode) -> Wanted<'static> {
        Wanted {
            name: "size",
            mode,
            max_size: None,
            region: None,
            rounding: Rounding::Round,
            subpixel: true,
            alignment: SmallVec::from_elem(0.5, 3),
        }
    }

    fn outputs(wanted: &Wanted<'_>, sizes: &[f64], inputs: &[usize]) -> Vec<usize> {
        maps(wanted, sizes, inputs).unwrap().iter().map(|map| map.output).collect()
    }

    #[test]
    fn missing_extents_keep_the_aspect_ratio() {
        let default = wanted(Mode::Default);
        assert_eq!(outputs(&default, &[0.0, 320.0], &[480, 640]), [240, 320]);
        assert_eq!(outputs(&default, &[0.0, 0.0], &[480, 640]), [480, 640]);
        assert_eq!(outputs(&default, &[7.0, 0.0, 10.0], &[10, 20, 40]), [7, 8, 10]);
        assert_eq!(outputs(&wanted(Mode::Stretch), &[0.0, 320.0], &[480, 640]), [480, 320]);
    }

    #[test]
    fn one_scale_for_all_axes_is_the_smallest_or_the_largest() {
        assert_eq!(outputs(&wanted(Mode::NotLarger), &[320.0, 320.0], &[480, 640]), [240, 320]);
        let mut smaller = wanted(Mode::NotSmaller);
        assert_eq!(outputs(&smaller, &[320.0, 320.0], &[480, 640]), [320, 427]);
        smaller.max_size = Some(&[350.0]);
        assert_eq!(outputs(&smaller, &[320.0, 320.0], &[480, 640]), [263, 350]);
    }

    #[test]
    fn a_mirrored_map_samples_the_same_elements() {
        let map = maps(&wanted(Mode::Default), &[5.0], &[10]).unwrap()[0];
        let at = |map: &Map, i: usize| map.origin + i as f64 * map.step;
        assert_eq!(at(&map.mirrored(), 4), at(&map, 0));
        assert_eq!(at(&map.window(2, 2), 0), at(&map, 2));
    }
}
