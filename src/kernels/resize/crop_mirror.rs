//! `resize_crop_mirror`: computes only the part that the crop keeps.

use smallvec::SmallVec;

use super::extent::{Map, PerAxis, spread, too_long};
use super::sizes::{Numbers, Resizing, Sizes, all_axes, described, filters, spatial};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::regions::LONGEST;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

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
    /// The crop's extent along each axis; 0 for the whole axis.
    fn crop(&self, axes: usize) -> Result<PerAxis<f64>> {
        let separate = [self.crop_d, self.crop_h, self.crop_w];
        if let Some(crop) = &self.crop {
            if separate.iter().any(Option::is_some) {
                return Err(argument("crop", Argument::Together { other: "crop_h" }));
            }
            let mut all: PerAxis<f64> = SmallVec::from_elem(0.0, axes);
            match axes.checked_sub(crop.len()) {
                // Volumes may be cropped in height and width only.
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
            // The lowest bit is the last axis.
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
