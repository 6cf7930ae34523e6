//! `slice`: a window given by its bounds, as arguments or as inputs.

use smallvec::{SmallVec, smallvec};

use super::axes::{LONGEST, axes_of, implied_layout, too_large, value_of};
use super::border::{Border, Policy};
use super::problem::Regions;
use super::window::{Cut, Region, is_float};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::Number;
use crate::kernels::numeric::precision::part_of;
use crate::kernels::{
    Allocate, DirectKernel, Placement, Result, Samples, Traits, UniformBatch, args,
};
use crate::value::{DType, Desc, Layout, Sample, extent, zeroed};

type Ints = SmallVec<[i64; 6]>;
type Floats = SmallVec<[f64; 6]>;

pub struct Slice;

args! {
    /// `to` is the element type of the result, if it differs from the input's.
    pub struct SliceArgs {
        axes: Option<Ints>,
        axis_names: Option<Layout>,
        to: Option<DType>,
        end: Option<Ints>,
        fill_values: Floats,
        normalized_anchor: bool,
        normalized_shape: bool,
        out_of_bounds_policy: Policy,
        rel_end: Option<Floats>,
        rel_shape: Option<Floats>,
        rel_start: Option<Floats>,
        shape: Option<Ints>,
        start: Option<Ints>,
    }
}

impl DirectKernel for Slice {
    type Args = SliceArgs;
    const TRAITS: Traits = Traits { stacks: true, ..Traits::DEFAULT };

    fn run(args: &SliceArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let (cut, desc) = args.cut(inputs)?;
        let mut made = allocate(0, desc)?;
        cut.run(&inputs[0], &mut made.output())?;
        Ok(smallvec![made.into_sample()?])
    }

    fn run_stacked(args: &SliceArgs, batch: &UniformBatch<'_>) -> Option<Sample> {
        let inputs = batch.stacked()?;
        // Other inputs say where the window is.
        batch.placements[1..].iter().all(|&place| place == Placement::Shared).then_some(())?;
        let (mut cut, desc) = args.cut(batch.data()).ok()?;
        cut.stack(batch.count);
        let (each, mut stack) = batch.allocate_stack(desc)?;
        cut.run(&inputs[0], &mut stack.output()).ok()?;
        stack.into_sample().ok()?.part(each, 0).ok()
    }

    /// A window that may extend outside can be larger than the input.
    fn result_bytes(args: &SliceArgs, inputs: &[Sample]) -> usize {
        let desc = &inputs[0].desc;
        let window =
            args.out_of_bounds_policy.border().and_then(|_| args.region(desc, inputs).ok());
        window.map_or(0, |(region, _)| Desc::new(desc.dtype, &region.shape).bytes())
    }
}

impl SliceArgs {
    /// The same for an operator that has no `out_of_bounds_policy`.
    pub fn inside(self) -> SliceArgs {
        SliceArgs { out_of_bounds_policy: Policy::Inside, ..self }
    }

    /// What to copy, and the description of the result.
    fn cut(&self, inputs: &[Sample]) -> Result<(Cut, Desc)> {
        let desc = &inputs[0].desc;
        let (region, border) = self.region(desc, inputs)?;
        Cut::new(desc, region, border, &self.fill_values, self.to)
    }

    /// The window, and the border if it may extend outside. `desc` is the array's; of the inputs, only
    /// the anchor and the shape are used.
    pub fn region(&self, desc: &Desc, inputs: &[Sample]) -> Result<(Region, Option<Border>)> {
        let policy = self.out_of_bounds_policy;
        let letters = match (&self.axes, self.axis_names) {
            (None, None) => Layout::new("WH"),
            (_, letters) => letters,
        };
        let axes = axes_of(desc, implied_layout(desc), self.axes.as_deref(), letters)?;
        let bounds = self.bounds(inputs, axes.len())?;
        let mut region = Region { start: smallvec![0; desc.ndim()], shape: desc.shape.clone() };
        for (index, &axis) in axes.iter().enumerate() {
            let n = desc.shape[axis];
            let (start, end) = bounds.of(index, n)?;
            let (start, end) = policy.place(desc, axis, (start, end))?;
            let length = (end - start) as usize;
            if length as f64 > LONGEST {
                return Err(too_large(bounds.extent_name()));
            }
            region.start[axis] = start;
            region.shape[axis] = length;
        }
        if extent(&region.shape).is_none() {
            return Err(too_large(bounds.extent_name()));
        }
        Ok((region, policy.border()))
    }

    /// The arguments or inputs that give the window's bounds.
    fn bounds<'a>(&'a self, inputs: &'a [Sample], count: usize) -> Result<Bounds<'a>> {
        if self.start.is_some() && self.rel_start.is_some() {
            return Err(argument("start", Argument::Together { other: "rel_start" }));
        }
        let ends = [
            ("end", self.end.is_some()),
            ("rel_end", self.rel_end.is_some()),
            ("shape", self.shape.is_some()),
            ("rel_shape", self.rel_shape.is_some()),
        ];
        let mut given = ends.into_iter().filter(|&(_, given)| given).map(|(name, _)| name);
        let end = given.next();
        if let (Some(end), Some(other)) = (end, given.next()) {
            return Err(argument(end, Argument::Together { other }));
        }
        let named = self.start.is_some() || self.rel_start.is_some() || end.is_some();
        match inputs {
            [_] if named => Ok(Bounds::Named(self, count)),
            [_, anchor, shape] if !named => {
                let relative = is_float(anchor.desc.dtype);
                if relative != is_float(shape.desc.dtype) {
                    let (anchor, shape) = (anchor.desc.dtype.name(), shape.desc.dtype.name());
                    return Err(unfit(2, Regions::Types { anchor, shape }));
                }
                let read = |index: usize| -> Result<Vec<f64>> {
                    let sample = inputs[index].compact()?;
                    let mut values = zeroed::<f64>(sample.desc.elements())?;
                    f64::convert_row(&sample, 0, &mut values);
                    if values.len() != count {
                        let problem = Regions::Positional { axes: count, given: values.len() };
                        return Err(unfit(index, problem));
                    }
                    Ok(values)
                };
                Ok(Bounds::Positional {
                    anchor: read(1)?,
                    shape: read(2)?,
                    relative: (
                        relative && self.normalized_anchor,
                        relative && self.normalized_shape,
                    ),
                })
            }
            [_, ..] if named => Err(argument(end.unwrap_or("start"), Regions::NamedAndPositional)),
            _ => Err(unfit(0, Regions::NoWindow)),
        }
    }
}

enum Bounds<'a> {
    Positional {
        anchor: Vec<f64>,
        shape: Vec<f64>,
        relative: (bool, bool),
    },
    /// The arguments, and the number of axes that they are for.
    Named(&'a SliceArgs, usize),
}

impl Bounds<'_> {
    /// Start and end of the window on an axis of extent `n`, the `index`-th of the given axes.
    fn of(&self, index: usize, n: usize) -> Result<(i64, i64)> {
        let extent = n as f64;
        let (start, end) = match self {
            Bounds::Positional { anchor, shape, relative } => {
                let start = anchor[index] * if relative.0 { extent } else { 1.0 };
                (start, start + shape[index] * if relative.1 { extent } else { 1.0 })
            }
            Bounds::Named(args, count) => {
                let int = |values: &[i64], name| -> Result<f64> {
                    Ok(value_of(values, index, *count, name)? as f64)
                };
                // DALI multiplies in single precision here, in double for positions.
                let part = |values: &[f64], name| -> Result<f64> {
                    Ok(part_of(value_of(values, index, *count, name)?, extent))
                };
                let length = |given: f64, name| match given < 0.0 {
                    true => Err(argument(name, Argument::Negative { given })),
                    false => Ok(given),
                };
                let start = match (&args.start, &args.rel_start) {
                    (Some(start), _) => int(start, "start")?,
                    (_, Some(start)) => part(start, "rel_start")?,
                    _ => 0.0,
                };
                let end = match (&args.end, &args.rel_end, &args.shape, &args.rel_shape) {
                    (Some(end), ..) => int(end, "end")?,
                    (_, Some(end), ..) => part(end, "rel_end")?,
                    (_, _, Some(shape), _) => start + length(int(shape, "shape")?, "shape")?,
                    (.., Some(shape)) => start + length(part(shape, "rel_shape")?, "rel_shape")?,
                    _ => extent,
                };
                (start, end)
            }
        };
        let refused = |problem: Regions| match self {
            Bounds::Positional { .. } => {
                unfit(1, Regions::PositionalWindow { problem: problem.into() })
            }
            Bounds::Named(..) => argument(self.extent_name(), problem),
        };
        // Far larger than any extent, but safe from overflow.
        const FAR: f64 = (1_i64 << 60) as f64;
        if !(start.abs() <= FAR && end.abs() <= FAR) {
            return Err(refused(Regions::FarWindow { start, end }));
        }
        let (first, last) = (start.round() as i64, end.round() as i64);
        if last < first {
            return Err(refused(Regions::EndsBeforeStart { start: first, end: last }));
        }
        Ok((first, last))
    }

    /// The argument that gives the window's extent, for errors.
    fn extent_name(&self) -> &'static str {
        match self {
            Bounds::Positional { .. } => "shape_input",
            Bounds::Named(args, _) => {
                if args.end.is_some() {
                    "end"
                } else if args.rel_end.is_some() {
                    "rel_end"
                } else if args.shape.is_some() {
                    "shape"
                } else if args.rel_shape.is_some() {
                    "rel_shape"
                } else {
                    "start"
                }
            }
        }
    }
}
