//! Resizing: which part of the input a result shows (`extent`), what its elements are made of
//! (`filter`), and making them (`stage` with floats, `bytes` in fixed point, `nearest` by moving).

mod bytes;
mod extent;
mod filter;
mod nearest;
mod stage;

use std::cell::RefCell;

use smallvec::SmallVec;

use self::extent::{Map, Mode, PerAxis, Rounding, Wanted, maps, region, spread, too_long};
use self::filter::{Filter, Filters, taps};
use self::stage::{Real, Scratch, Source, Stage};
use super::regions::LONGEST;
use super::{Entry, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::crop::random_window::RandomWindow;
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::numeric::philox::Stream;
use crate::value::{
    DType, Desc, Element, Layout, Sample, Shape, extent as count, with_element, with_room,
};

pub const TABLE: &[Entry] = &[
    Entry::new::<Resize>("resize"),
    Entry::new::<TensorResize>("tensor_resize"),
    Entry::new::<ResizeCropMirror>("resize_crop_mirror"),
    Entry::new::<RandomResizedCrop>("random_resized_crop"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// What is wrong with a call of this family.
        pub enum Resize {
            FarRegion { given: f64 },
            Interpolation { given: i64 },
            Shape { shape: Vec<usize> },
            Sizes,
            NoAxes,
            SizesOrScales,
            NotAnImage,
        }
    }
}

type Numbers = SmallVec<[f64; 6]>;

fn mode(name: &str) -> Result<Mode> {
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

fn filters(
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

/// The axes of an image's rows, columns and, where it has them, layers: outermost first.
fn spatial(layout: &Layout) -> SmallVec<[usize; 3]> {
    b"DHW".iter().filter_map(|&letter| layout.find(letter)).collect()
}

/// The maps of all axes, of those of some.
fn all_axes(desc: &Desc, axes: &[usize], some: &[Map]) -> PerAxis<Map> {
    let mut all: PerAxis<Map> = desc.shape.iter().map(|&extent| Map::identity(extent)).collect();
    axes.iter().zip(some).for_each(|(&axis, map)| all[axis] = *map);
    all
}

/// What a sample is resized by: a map for each axis, and the filters.
pub struct Resizing {
    maps: PerAxis<Map>,
    filters: Filters,
}

impl Resizing {
    fn run(&self, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        resample(input, out, &self.maps, &self.filters)
    }
}

fn described(name: &'static str, input: &Desc, to: Option<DType>, maps: &[Map]) -> Result<Desc> {
    let shape: Shape = maps.iter().map(|map| map.output).collect();
    match count(&shape) {
        Some(_) => Ok(Desc { dtype: to.unwrap_or(input.dtype), shape, layout: input.layout }),
        None => Err(argument(name, problem::Resize::Shape { shape: shape.to_vec() })),
    }
}

/// What `resize` and `resize_crop_mirror` say about sizes.
struct Sizes<'a> {
    size: Option<&'a [f64]>,
    xyz: [Option<f64>; 3],
    shorter: Option<f64>,
    longer: Option<f64>,
    mode: &'a str,
    max_size: Option<&'a [f64]>,
    roi: [Option<&'a [f64]>; 2],
    roi_relative: bool,
    subpixel: bool,
}

impl Sizes<'_> {
    /// The maps of the spatial axes, and the argument that has the sizes.
    fn maps(&self, desc: &Desc, axes: &[usize]) -> Result<(&'static str, PerAxis<Map>)> {
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

pub struct Resize;

args! {
    pub struct ResizeArgs {
        antialias: bool,
        interp_type: Option<i64>,
        mag_filter: Option<i64>,
        max_size: Option<Numbers>,
        min_filter: Option<i64>,
        mode: String,
        resize_longer: Option<f64>,
        resize_shorter: Option<f64>,
        resize_x: Option<f64>,
        resize_y: Option<f64>,
        resize_z: Option<f64>,
        roi_end: Option<Numbers>,
        roi_relative: bool,
        roi_start: Option<Numbers>,
        save_attrs: bool,
        size: Option<Numbers>,
        subpixel_scale: bool,
        to: Option<DType>,
    }
}

impl ResizeArgs {
    fn maps(&self, desc: &Desc) -> Result<(&'static str, PerAxis<Map>)> {
        let sizes = Sizes {
            size: self.size.as_deref(),
            xyz: [self.resize_x, self.resize_y, self.resize_z],
            shorter: self.resize_shorter,
            longer: self.resize_longer,
            mode: &self.mode,
            max_size: self.max_size.as_deref(),
            roi: [self.roi_start.as_deref(), self.roi_end.as_deref()],
            roi_relative: self.roi_relative,
            subpixel: self.subpixel_scale,
        };
        let axes = spatial(&desc.layout);
        let (name, maps) = sizes.maps(desc, &axes)?;
        Ok((name, all_axes(desc, &axes, &maps)))
    }
}

impl Kernel for Resize {
    type Args = ResizeArgs;
    type Plan = Resizing;
    const TRAITS: Traits = Traits { cheap: false, uniform_outputs: true, ..Traits::DEFAULT };

    fn plan(args: ResizeArgs, inputs: &[&Desc]) -> Result<(Resizing, Outputs)> {
        let (name, maps) = args.maps(inputs[0])?;
        let mut outputs = one(described(name, inputs[0], args.to, &maps)?);
        if args.save_attrs {
            outputs.push(Desc::new(DType::I32, &[spatial(&inputs[0].layout).len()]));
        }
        let filters = filters(args.interp_type, args.min_filter, args.mag_filter, args.antialias)?;
        Ok((Resizing { maps, filters }, outputs))
    }

    fn run(plan: &Resizing, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        plan.run(&inputs[0], &mut outputs[0])?;
        if let [_, extents] = outputs {
            let desc = &inputs[0].desc;
            for (out, axis) in extents.elements::<i32>().iter_mut().zip(spatial(&desc.layout)) {
                *out = i32::try_from(desc.shape[axis]).unwrap_or(i32::MAX);
            }
        }
        Ok(())
    }
}

pub struct ResizeCropMirror;

args! {
    pub struct ResizeCropMirrorArgs {
        antialias: bool,
        crop: Option<Numbers>,
        crop_d: Option<f64>,
        crop_h: Option<f64>,
        crop_pos_x: f64,
        crop_pos_y: f64,
        crop_pos_z: f64,
        crop_w: Option<f64>,
        interp_type: Option<i64>,
        mag_filter: Option<i64>,
        max_size: Option<Numbers>,
        min_filter: Option<i64>,
        mirror: i64,
        mode: String,
        resize_longer: Option<f64>,
        resize_shorter: Option<f64>,
        resize_x: Option<f64>,
        resize_y: Option<f64>,
        resize_z: Option<f64>,
        roi_end: Option<Numbers>,
        roi_relative: bool,
        roi_start: Option<Numbers>,
        rounding: String,
        size: Option<Numbers>,
        subpixel_scale: bool,
        to: Option<DType>,
    }
}

impl ResizeCropMirrorArgs {
    /// Extents of the crop, for each axis; 0 for all of it.
    fn crop(&self, axes: usize) -> Result<PerAxis<f64>> {
        let separate = [self.crop_d, self.crop_h, self.crop_w];
        if let Some(crop) = &self.crop {
            if separate.iter().any(Option::is_some) {
                return Err(argument("crop", Argument::Together { other: "crop_h" }));
            }
            let mut all: PerAxis<f64> = SmallVec::from_elem(0.0, axes);
            match axes.checked_sub(crop.len()) {
                // Of volumes, height and width alone may be cropped.
                Some(first @ 0..=1) if axes - first >= 2 => all[first..].copy_from_slice(crop),
                _ => {
                    let problem = Argument::Numbers { wanted: axes, given: crop.to_vec() };
                    return Err(argument("crop", problem));
                }
            }
            return spread("crop", &all, axes);
        }
        if self.crop_h.is_some() != self.crop_w.is_some() {
            let (name, other) = match self.crop_h {
                Some(_) => ("crop_h", "crop_w"),
                None => ("crop_w", "crop_h"),
            };
            return Err(argument(name, Argument::NeedsOther { other }));
        }
        if self.crop_d.is_some() && self.crop_w.is_none() {
            return Err(argument("crop_d", Argument::NeedsOther { other: "crop_h" }));
        }
        let names = ["crop_d", "crop_h", "crop_w"];
        let given = &separate[3 - axes..];
        let each = given.iter().zip(&names[3 - axes..]);
        each.map(|(size, name)| Ok(spread(name, &[size.unwrap_or(0.0)], 1)?[0])).collect()
    }

    fn maps(&self, desc: &Desc) -> Result<(&'static str, PerAxis<Map>)> {
        let sizes = Sizes {
            size: self.size.as_deref(),
            xyz: [self.resize_x, self.resize_y, self.resize_z],
            shorter: self.resize_shorter,
            longer: self.resize_longer,
            mode: &self.mode,
            max_size: self.max_size.as_deref(),
            roi: [self.roi_start.as_deref(), self.roi_end.as_deref()],
            roi_relative: self.roi_relative,
            subpixel: self.subpixel_scale,
        };
        let truncate = match &self.rounding[..] {
            "round" => false,
            "truncate" => true,
            other => {
                let (choices, given) = ("round, truncate", format!("{other:?}"));
                return Err(argument("rounding", Argument::OneOf { choices, given }));
            }
        };
        let axes = spatial(&desc.layout);
        let (mut name, mut maps) = sizes.maps(desc, &axes)?;
        let crop = self.crop(axes.len())?;
        let places = [self.crop_pos_z, self.crop_pos_y, self.crop_pos_x];
        let names = ["crop_pos_z", "crop_pos_y", "crop_pos_x"];
        for (axis, map) in maps.iter_mut().enumerate() {
            let from_last = 3 - axes.len() + axis;
            let (size, at) = (crop[axis].trunc(), places[from_last]);
            if size > 0.0 && map.input > 0 {
                if !(0.0..=1.0).contains(&at) {
                    let problem = Argument::Between { low: 0.0, high: 1.0, given: at };
                    return Err(argument(names[from_last], problem));
                }
                if size > LONGEST {
                    return Err(argument("crop", too_long(size)));
                }
                let first = (map.output as f64 - size) * at;
                let first = if truncate { first.trunc() } else { first.round() };
                *map = map.window(first as i64, size as usize);
                name = "crop";
            }
            // The lowest bit is for the last axis.
            if self.mirror >> (axes.len() - 1 - axis) & 1 != 0 {
                *map = map.mirrored();
            }
        }
        Ok((name, all_axes(desc, &axes, &maps)))
    }
}

impl Kernel for ResizeCropMirror {
    type Args = ResizeCropMirrorArgs;
    type Plan = Resizing;
    const TRAITS: Traits = Traits { cheap: false, uniform_outputs: true, ..Traits::DEFAULT };

    fn plan(args: ResizeCropMirrorArgs, inputs: &[&Desc]) -> Result<(Resizing, Outputs)> {
        let (name, maps) = args.maps(inputs[0])?;
        let desc = described(name, inputs[0], args.to, &maps)?;
        let filters = filters(args.interp_type, args.min_filter, args.mag_filter, args.antialias)?;
        Ok((Resizing { maps, filters }, one(desc)))
    }

    fn run(plan: &Resizing, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        plan.run(&inputs[0], &mut outputs[0])
    }
}

pub struct TensorResize;

args! {
    pub struct TensorResizeArgs {
        alignment: Numbers,
        antialias: bool,
        interp_type: Option<i64>,
        mag_filter: Option<i64>,
        max_size: Option<Numbers>,
        min_filter: Option<i64>,
        mode: String,
        roi_end: Option<Numbers>,
        roi_relative: bool,
        roi_start: Option<Numbers>,
        scales: Option<Numbers>,
        size_rounding: String,
        sizes: Option<Numbers>,
        subpixel_scale: bool,
        along: SmallVec<[i64; 6]>,
        to: Option<DType>,
    }
}

impl TensorResizeArgs {
    fn maps(&self, desc: &Desc) -> Result<(&'static str, PerAxis<Map>)> {
        let axes: PerAxis<usize> = self
            .along
            .iter()
            .filter_map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < desc.ndim()))
            .collect();
        let inputs: PerAxis<usize> = axes.iter().map(|&axis| desc.shape[axis]).collect();
        let rounding = match &self.size_rounding[..] {
            "round" => Rounding::Round,
            "truncate" => Rounding::Truncate,
            "ceil" => Rounding::Ceil,
            other => {
                let (choices, given) = ("round, truncate, ceil", format!("{other:?}"));
                return Err(argument("size_rounding", Argument::OneOf { choices, given }));
            }
        };
        let mode = mode(&self.mode)?;
        let region =
            region(self.roi_start.as_deref(), self.roi_end.as_deref(), self.roi_relative, &inputs)?;
        let (name, sizes) = match (&self.sizes, &self.scales) {
            (Some(sizes), None) if axes.is_empty() && !sizes.is_empty() => {
                return Err(argument("sizes", problem::Resize::NoAxes));
            }
            (Some(sizes), None) => ("sizes", spread("sizes", sizes, axes.len())?),
            (None, Some(scales)) => {
                if matches!(mode, Mode::NotLarger | Mode::NotSmaller) {
                    return Err(argument("mode", Argument::Together { other: "scales" }));
                }
                let mut sizes = spread("scales", scales, axes.len())?;
                for (axis, size) in sizes.iter_mut().enumerate() {
                    *size *= region.as_ref().map_or(inputs[axis] as f64, |(start, end)| {
                        (end[axis] - start[axis]).abs()
                    });
                }
                ("scales", sizes)
            }
            _ => return Err(argument("sizes", problem::Resize::SizesOrScales)),
        };
        let wanted = Wanted {
            name,
            mode,
            max_size: self.max_size.as_deref(),
            region,
            rounding,
            subpixel: self.subpixel_scale,
            alignment: spread("alignment", &self.alignment, axes.len())?,
        };
        let maps = maps(&wanted, &sizes, &inputs)?;
        Ok((name, all_axes(desc, &axes, &maps)))
    }
}

impl Kernel for TensorResize {
    type Args = TensorResizeArgs;
    type Plan = Resizing;
    const TRAITS: Traits = Traits { cheap: false, uniform_outputs: true, ..Traits::DEFAULT };

    fn plan(args: TensorResizeArgs, inputs: &[&Desc]) -> Result<(Resizing, Outputs)> {
        let (name, maps) = args.maps(inputs[0])?;
        let desc = described(name, inputs[0], args.to, &maps)?;
        let filters = filters(args.interp_type, args.min_filter, args.mag_filter, args.antialias)?;
        Ok((Resizing { maps, filters }, one(desc)))
    }

    fn run(plan: &Resizing, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        plan.run(&inputs[0], &mut outputs[0])
    }
}

pub struct RandomResizedCrop;

args! {
    pub struct RandomResizedCropArgs {
        antialias: bool,
        interp_type: Option<i64>,
        mag_filter: Option<i64>,
        min_filter: Option<i64>,
        num_attempts: i64,
        random_area: Numbers,
        random_aspect_ratio: Numbers,
        size: SmallVec<[i64; 6]>,
        to: Option<DType>,
        rng: Stream,
    }
}

impl RandomResizedCropArgs {
    fn maps(&self, desc: &Desc) -> Result<PerAxis<Map>> {
        let axes = spatial(&desc.layout);
        let &[rows, columns] = &axes[..] else {
            return Err(unfit(0, problem::Resize::NotAnImage));
        };
        let size = match self.size[..] {
            [one] => [one, one],
            [height, width] => [height, width],
            _ => {
                let given = self.size.iter().map(|&n| n as f64).collect();
                return Err(argument("size", Argument::Numbers { wanted: 2, given }));
            }
        };
        let (area, ratio) = (&self.random_area, &self.random_aspect_ratio);
        let window = RandomWindow::new(area, ratio, self.num_attempts)?;
        let window = window.draw(&self.rng, desc.shape[rows], desc.shape[columns]);
        let axis = |axis: usize, size: i64, start: usize, span: usize| {
            let input = desc.shape[axis];
            let output = usize::try_from(size)
                .map_err(|_| argument("size", Argument::Negative { given: size as f64 }))?;
            if output as f64 > LONGEST {
                return Err(argument("size", too_long(size as f64)));
            }
            let step = span as f64 / size as f64;
            let output = if input == 0 { 0 } else { output };
            Ok(Map { input, output, origin: start as f64 + 0.5 * step - 0.5, step })
        };
        let maps = [
            axis(rows, size[0], window.y, window.height)?,
            axis(columns, size[1], window.x, window.width)?,
        ];
        Ok(all_axes(desc, &axes, &maps))
    }
}

impl Kernel for RandomResizedCrop {
    type Args = RandomResizedCropArgs;
    type Plan = Resizing;
    const TRAITS: Traits =
        Traits { cheap: false, uniform_outputs: true, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: RandomResizedCropArgs, inputs: &[&Desc]) -> Result<(Resizing, Outputs)> {
        let maps = args.maps(inputs[0])?;
        let desc = described("size", inputs[0], args.to, &maps)?;
        let filters = filters(args.interp_type, args.min_filter, args.mag_filter, args.antialias)?;
        Ok((Resizing { maps, filters }, one(desc)))
    }

    fn run(plan: &Resizing, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        plan.run(&inputs[0], &mut outputs[0])
    }
}

/// Pixels of more elements are rows of their own, rather than columns of a turned band.
const WIDEST_PIXEL: usize = 16;

/// Whether to make rows first, then their columns, is far more work than input and output are:
/// many rows, of far more columns than the result has.
fn is_detour(vertical: &Map, horizontal: &Map) -> bool {
    const MUCH: f64 = 64.0;
    let [rows, columns] = [vertical, horizontal].map(|map| map.output as f64);
    let [height, width] = [vertical, horizontal].map(|map| map.input as f64);
    rows * width > MUCH * (height * width + rows * columns)
}

/// Resamples along every axis whose map says so.
fn resample(input: &Sample, out: &mut Output<'_>, maps: &[Map], filters: &Filters) -> Result<()> {
    if out.desc.elements() == 0 {
        return Ok(());
    }
    let resized = |map: &Map| match map.is_identity() {
        true => Ok(None),
        false => taps(map, filters).map(Some),
    };
    let mut axes: SmallVec<[_; 6]> = maps.iter().map(resized).collect::<Result<_>>()?;
    let last = axes.iter().rposition(Option::is_some);
    let same_type = input.desc.dtype == out.desc.dtype;
    if same_type && axes.iter().flatten().all(|taps| taps.picks) {
        let kept = last.map_or(0, |last| last + 1);
        let pixel = input.desc.shape[kept..].iter().product::<usize>() * input.desc.dtype.size();
        let axes: SmallVec<[nearest::Axis; 6]> = maps
            .iter()
            .zip(axes)
            .take(kept)
            .map(|(map, taps)| nearest::Axis { input: map.input, taps })
            .collect();
        nearest::pick(&axes, pixel, input.elements_as_bytes(), out.bytes());
        return Ok(());
    }
    // From the outermost axis to the innermost; the last two at once where they lie together.
    let mut shape = input.desc.shape.clone();
    let mut stages: SmallVec<[Stage; 3]> = SmallVec::new();
    let last = last.unwrap_or(0);
    let channels: usize = shape.get(last + 1..).unwrap_or_default().iter().product();
    let as_columns = channels <= WIDEST_PIXEL && !shape.is_empty();
    for axis in 0..axes.len() {
        let pair = as_columns && axis + 1 == last;
        if axis > last || (axes[axis].is_none() && !pair && axis != last) {
            continue;
        }
        let planes: usize = shape[..axis].iter().product();
        let within = shape[axis + 1..].iter().product();
        let height = shape[axis];
        let stage = if pair {
            let (vertical, horizontal) = (axes[axis].take(), axes[last].take());
            let width = shape[last];
            shape[last] = maps[last].output;
            if is_detour(&maps[axis], &maps[last]) {
                let (height, planes) = (planes * height, 1);
                stages.push(Stage { planes, height, width, channels, vertical: None, horizontal });
                let (height, width) = (shape[axis], shape[last] * channels);
                let planes: usize = shape[..axis].iter().product();
                Stage { planes, height, width, channels: 1, vertical, horizontal: None }
            } else {
                Stage { planes, height, width, channels, vertical, horizontal }
            }
        } else if as_columns && axis == last {
            // The rows are what there is before.
            let (height, planes) = (planes, 1);
            let horizontal = axes[axis].take();
            Stage { planes, height, width: shape[axis], channels, vertical: None, horizontal }
        } else {
            let vertical = axes[axis].take();
            Stage { planes, height, width: within, channels: 1, vertical, horizontal: None }
        };
        stages.push(stage);
        shape[axis] = maps[axis].output;
        if pair {
            break;
        }
    }
    let isa = Isa::best();
    if let ([stage], DType::U8, true) = (&stages[..], input.desc.dtype, same_type)
        && bytes::takes(stage)?
    {
        thread_local! {
            static SCRATCH: RefCell<bytes::Scratch> = RefCell::default();
        }
        return SCRATCH.with_borrow_mut(|scratch| {
            bytes::run(isa, stage, input.elements(), out.elements(), scratch)
        });
    }
    thread_local! {
        static SINGLE: RefCell<Scratch<f32>> = RefCell::default();
        static DOUBLE: RefCell<Scratch<f64>> = RefCell::default();
    }
    // Those of 32 bits and more need more of a float than 24.
    let wide = |dtype: DType| dtype.size() > 2 && dtype != DType::F32;
    if wide(input.desc.dtype.storage()) || wide(out.desc.dtype.storage()) {
        DOUBLE.with_borrow_mut(|scratch| run_stages(isa, &stages, input, out, scratch))
    } else {
        SINGLE.with_borrow_mut(|scratch| run_stages(isa, &stages, input, out, scratch))
    }
}

/// An element as a number to compute with, and back.
trait Computed: Real + Element {
    fn load(src: &Sample, at: usize, row: &mut [Self]);
    fn store(row: &[Self], dst: &mut Output<'_>, at: usize);
}

macro_rules! computed {
    ($($real:ty)*) => {
        $(
            impl Computed for $real {
                #[inline(always)]
                fn load(src: &Sample, at: usize, row: &mut [$real]) {
                    with_element!(src.desc.dtype, |T| {
                        let src = &src.elements::<T>()[at..at + row.len()];
                        for (d, &s) in row.iter_mut().zip(src) {
                            *d = Convert::<$real>::convert(s);
                        }
                    });
                }

                #[inline(always)]
                fn store(row: &[$real], dst: &mut Output<'_>, at: usize) {
                    with_element!(dst.desc.dtype, |T| {
                        let dst = &mut dst.elements::<T>()[at..at + row.len()];
                        for (d, &s) in dst.iter_mut().zip(row) {
                            *d = Convert::<T>::convert(s);
                        }
                    });
                }
            }
        )*
    };
}
computed!(f32 f64);

fn run_stages<R: Computed>(
    isa: Isa,
    stages: &[Stage],
    input: &Sample,
    out: &mut Output<'_>,
    scratch: &mut Scratch<R>,
) -> Result<()> {
    let mut between: Option<Vec<R>> = None;
    for (index, stage) in stages.iter().enumerate() {
        let is_same = between.is_none() && input.desc.dtype == <R as Element>::DTYPE;
        let direct = if is_same { Some(input.elements::<R>()) } else { between.as_deref() };
        let load = |at: usize, row: &mut [R]| match direct {
            Some(all) => row.copy_from_slice(&all[at..at + row.len()]),
            None => load(isa, input, at, row),
        };
        let source = Source { load: &load, direct };
        if index + 1 == stages.len() {
            let mut put = |at: usize, row: &[R]| store(isa, row, out, at);
            stage::run(isa, stage, &source, &mut put, scratch)?;
        } else {
            let elements = stage.elements();
            let mut made = with_room(elements)?;
            // Rows come in order.
            let mut put = |_: usize, row: &[R]| made.extend_from_slice(row);
            stage::run(isa, stage, &source, &mut put, scratch)?;
            between = Some(made);
        }
    }
    Ok(())
}

fn load<R: Computed>(isa: Isa, src: &Sample, at: usize, row: &mut [R]) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn vectors<R: Computed>(src: &Sample, at: usize, row: &mut [R]) {
        R::load(src, at, row);
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` is only made where AVX2 was detected.
        Isa::Avx2 => unsafe { vectors(src, at, row) },
        _ => R::load(src, at, row),
    }
}

fn store<R: Computed>(isa: Isa, row: &[R], dst: &mut Output<'_>, at: usize) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn vectors<R: Computed>(row: &[R], dst: &mut Output<'_>, at: usize) {
        R::store(row, dst, at);
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` is only made where AVX2 was detected.
        Isa::Avx2 => unsafe { vectors(row, dst, at) },
        _ => R::store(row, dst, at),
    }
}
