//! The last step of most image pipelines in one pass: crop, mirror, normalize, change element type
//! and layout.

mod rows;
mod walk;
mod write;

use smallvec::{SmallVec, smallvec};

use self::rows::{Rows, Step};
use self::walk::Walk;
use self::write::write_as;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::crop::problem;
use crate::kernels::crop::{Floats, crop_args};
use crate::kernels::regions::{Border, Policy, Region, too_large};
use crate::kernels::{Entry, Kernel, Output, Outputs, Result, Traits, one};
use crate::value::{DType, Desc, Layout, Sample, Shape, extent, with_element};

pub const TABLE: &[Entry] = &[Entry::new::<CropMirrorNormalize>("crop_mirror_normalize")];

pub struct CropMirrorNormalize;

crop_args! {
    /// `to` is the layout of the result.
    pub struct NormalizeArgs {
        dtype: DType,
        mean: Floats,
        mirror: bool,
        pad_output: bool,
        scale: f64,
        shift: f64,
        std: Floats,
        to: Layout,
    }
}

impl NormalizeArgs {
    fn region(&self, desc: &Desc) -> Result<Region> {
        if let Policy::Border(border) = self.out_of_bounds_policy
            && border != Border::Constant
        {
            let choices = "error, constant, pad, trim_to_shape";
            let problem = Argument::OneOf { choices, given: format!("{border:?}") };
            return Err(argument("out_of_bounds_policy", problem));
        }
        self.window().region(desc)
    }

    /// The number of channels of the result.
    fn padded(&self, channels: usize) -> usize {
        match self.pad_output {
            true if channels > 0 => channels.checked_next_power_of_two().unwrap_or(channels),
            _ => channels,
        }
    }

    /// What is done to each channel.
    fn steps(&self, channels: usize) -> Result<SmallVec<[Step; 4]>> {
        let of = |values: &Floats, name, channel: usize| match values[..] {
            [one] => Ok(one),
            _ if values.len() == channels => Ok(values[channel]),
            _ => {
                let given = values.len();
                Err(argument(name, Argument::ChannelCount { channels, given }))
            }
        };
        (0..channels)
            .map(|channel| {
                let (mean, std) =
                    (of(&self.mean, "mean", channel)?, of(&self.std, "std", channel)?);
                Ok(Step {
                    mean: mean as f32,
                    scale: self.scale as f32 / std as f32,
                    shift: self.shift as f32,
                })
            })
            .collect()
    }
}

impl Kernel for CropMirrorNormalize {
    type Args = NormalizeArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { uniform_outputs: true, ..Traits::DEFAULT };

    fn plan(args: NormalizeArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let desc = inputs[0];
        let region = args.region(desc)?;
        let mut shape = Shape::new();
        for &letter in args.to.letters() {
            let Some(axis) = desc.layout.find(letter) else {
                let [layout, given] = [desc.layout, args.to].map(|l| l.as_str().to_string());
                let problem = problem::Crop::OutputLayout { layout, given };
                return Err(argument("output_layout", problem));
            };
            let n = region.shape[axis];
            shape.push(if letter == b'C' { args.padded(n) } else { n });
        }
        if extent(&shape).is_none() {
            return Err(too_large("crop"));
        }
        let made = Desc { dtype: args.dtype, shape, layout: args.to };
        let walk = Walk::new(desc, &region, &made, args.mirror);
        let (steps, fill) = (args.steps(walk.channels.count)?, args.fill(&walk)?);
        Ok((Plan { walk, steps, fill }, one(made)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let Plan { walk, steps, fill } = plan;
        with_element!(inputs[0].desc.dtype, |T| {
            let rows = Rows { src: inputs[0].elements::<T>(), steps, walk };
            write_as(&rows, walk, fill, &mut outputs[0])?;
        });
        Ok(())
    }
}

/// How to traverse the image, what to do to each channel, and the fill values.
pub struct Plan {
    walk: Walk,
    steps: SmallVec<[Step; 4]>,
    fill: SmallVec<[f32; 4]>,
}

impl NormalizeArgs {
    /// Fill values for outside of the image and for added channels: one per channel.
    fn fill(&self, walk: &Walk) -> Result<SmallVec<[f32; 4]>> {
        let channels = walk.channels.padded;
        match &self.fill_values[..] {
            _ if self.out_of_bounds_policy.border().is_none() => Ok(smallvec![0.0; channels]),
            &[] => Ok(smallvec![0.0; channels]),
            &[one] => Ok(smallvec![one as f32; channels]),
            all if all.len() == channels => Ok(all.iter().map(|&value| value as f32).collect()),
            all => {
                let given = all.len();
                Err(argument("fill_values", Argument::ChannelCount { channels, given }))
            }
        }
    }
}
