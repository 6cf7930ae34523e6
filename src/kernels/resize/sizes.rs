//! Shared by the operators: turning the requested sizes into a map for each axis.

use smallvec::SmallVec;

use super::extent::{Map, Mode, PerAxis, Rounding, Wanted, maps, region, spread};
use super::filter::{Filter, Filters};
use super::problem;
use super::resample::resample;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::{Output, Result};
use crate::value::{DType, Desc, Layout, Sample, Shape, extent as count};

pub type Numbers = SmallVec<[f64; 6]>;

pub fn mode(name: &str) -> Result<Mode> {
    match name {
        "default" => Ok(Mode::Default),
        "stretch" => Ok(Mode::Stretch),
        "not_larger" => Ok(Mode::NotLarger),
        "not_smaller" => Ok(Mode::NotSmaller),
        _ => {
            let choices = "default, stretch, not_larger, not_smaller";
            Err(argument("mode", Argument::OneOf { choices, given: format!("{name:?}") }))
        }
    }
}

pub fn filters(
    interp_type: Option<i64>,
    min_filter: Option<i64>,
    mag_filter: Option<i64>,
    antialias: bool,
) -> Result<Filters> {
    let usual = Filter::from_code("interp_type", interp_type.unwrap_or(1))?;
    let or_usual =
        |name, code: Option<i64>| code.map_or(Ok(usual), |code| Filter::from_code(name, code));
    Ok(Filters {
        shrink: or_usual("min_filter", min_filter)?,
        enlarge: or_usual("mag_filter", mag_filter)?,
        antialias,
    })
}

/// The axes of an image's layers (if it has them), rows and columns: outermost first.
pub fn spatial(layout: &Layout) -> SmallVec<[usize; 3]> {
    b"DHW".iter().filter_map(|&letter| layout.find(letter)).collect()
}

/// Maps for all axes, given those for some.
pub fn all_axes(desc: &Desc, axes: &[usize], some: &[Map]) -> PerAxis<Map> {
    let mut all: PerAxis<Map> = desc.shape.iter().map(|&extent| Map::identity(extent)).collect();
    axes.iter().zip(some).for_each(|(&axis, map)| all[axis] = *map);
    all
}

/// How a sample is resized: a map for each axis, and the filters.
pub struct Resizing {
    pub maps: PerAxis<Map>,
    pub filters: Filters,
}

impl Resizing {
    pub fn run(&self, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        resample(input, out, &self.maps, &self.filters)
    }
}

pub fn described(
    name: &'static str,
    input: &Desc,
    to: Option<DType>,
    maps: &[Map],
) -> Result<Desc> {
    let shape: Shape = maps.iter().map(|map| map.output).collect();
    match count(&shape) {
        Some(_) => Ok(Desc { dtype: to.unwrap_or(input.dtype), shape, layout: input.layout }),
        None => Err(argument(name, problem::Resize::Shape { shape: shape.to_vec() })),
    }
}

/// The arguments of `resize` and `resize_crop_mirror` about sizes.
pub struct Sizes<'a> {
    pub size: Option<&'a [f64]>,
    pub xyz: [Option<f64>; 3],
    pub shorter: Option<f64>,
    pub longer: Option<f64>,
    pub mode: &'a str,
    pub max_size: Option<&'a [f64]>,
    pub roi: [Option<&'a [f64]>; 2],
    pub roi_relative: bool,
    pub subpixel: bool,
}

impl Sizes<'_> {
    /// The maps of the spatial axes, and the name of the argument that gives the sizes.
    pub fn maps(&self, desc: &Desc, axes: &[usize]) -> Result<(&'static str, PerAxis<Map>)> {
        let inputs: PerAxis<usize> = axes.iter().map(|&axis| desc.shape[axis]).collect();
        let mut mode = mode(self.mode)?;
        let separate = self.xyz.iter().any(Option::is_some);
        let ways = [self.size.is_some(), separate, self.shorter.is_some(), self.longer.is_some()];
        if ways.iter().filter(|&&given| given).count() != 1 {
            return Err(argument("size", problem::Resize::Sizes));
        }
        let (name, sizes) = if let Some(size) = self.size {
            ("size", spread("size", size, axes.len())?)
        } else if separate {
            let [x, y, z] = self.xyz.map(Option::unwrap_or_default);
            let names = ["resize_z", "resize_y", "resize_x"];
            let sizes = &[z, y, x][3 - axes.len()..];
            for (&size, name) in sizes.iter().zip(&names[3 - axes.len()..]) {
                spread(name, &[size], 1)?;
            }
            ("resize_x", SmallVec::from_slice(sizes))
        } else {
            let (name, size, of_edge) = match self.shorter {
                Some(size) => ("resize_shorter", size, Mode::NotSmaller),
                None => ("resize_longer", self.longer.unwrap_or_default(), Mode::NotLarger),
            };
            if mode != Mode::Default {
                return Err(argument("mode", Argument::Together { other: name }));
            }
            mode = of_edge;
            (name, spread(name, &[size], axes.len())?)
        };
        let [start, end] = self.roi;
        let wanted = Wanted {
            name,
            mode,
            max_size: self.max_size,
            region: region(start, end, self.roi_relative, &inputs)?,
            rounding: Rounding::Round,
            subpixel: self.subpixel,
            alignment: SmallVec::from_elem(0.5, axes.len()),
        };
        Ok((name, maps(&wanted, &sizes, &inputs)?))
    }
}
