//! `tensor_resize`: any axes of any data.

use smallvec::SmallVec;

use super::extent::{Map, Mode, PerAxis, Rounding, Wanted, maps, region, spread};
use super::problem;
use super::sizes::{Numbers, Resizing, all_axes, described, filters, mode};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

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
