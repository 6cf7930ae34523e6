//! `resize`: the rows, columns and layers of images.

use super::extent::{Map, PerAxis};
use super::sizes::{Numbers, Resizing, Sizes, all_axes, described, filters, spatial};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

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
