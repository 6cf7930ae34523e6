//! Padding: to a shape, to a multiple, or to the largest extents of a batch.

use smallvec::{SmallVec, smallvec};

use super::axes::{LONGEST, axes_of, too_large, value_of};
use super::border::Border;
use super::fill::Fill;
use super::problem::Regions;
use super::window::{Region, cut};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::{
    Arg, BatchKernel, Frames, Kernel, Output, OutputBuffer, Outputs, Result, Samples, Traits, args,
    one,
};
use crate::value::{DType, Desc, Layout, Sample, extent};

type Ints = SmallVec<[i64; 6]>;

pub struct Pad;

args! {
    /// `most` has the largest extents of the batch; not given if all samples have one shape.
    pub struct PadArgs {
        align: Option<Ints>,
        axes: Option<Ints>,
        axis_names: Option<Layout>,
        fill_value: f64,
        shape: Option<Ints>,
        most: Option<Ints>,
    }
}

impl Kernel for Pad {
    type Args = PadArgs;
    type Plan = PadArgs;
    const TRAITS: Traits =
        Traits { uniform_outputs: true, stacks: true, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: PadArgs, inputs: &[&Desc]) -> Result<(PadArgs, Outputs)> {
        let desc = inputs[0];
        if desc.ndim() == 0 {
            return Err(unfit(0, Regions::PaddedScalar));
        }
        let axes = axes_of(desc, desc.layout, args.axes.as_deref(), args.axis_names)?;
        let mut shape = desc.shape.clone();
        // An empty list counts as not given.
        let given = |values: &'_ Option<Ints>| values.as_ref().filter(|v| !v.is_empty()).cloned();
        let (wanted, aligned) = (given(&args.shape), given(&args.align));
        for (index, &axis) in axes.iter().enumerate() {
            let own = desc.shape[axis];
            let value = |values: &Option<Ints>, name| match values {
                Some(values) => value_of(values, index, axes.len(), name).map(Some),
                None => Ok(None),
            };
            let most =
                args.most.as_ref().and_then(|most| most.get(axis)).map_or(own, |&n| n as usize);
            let mut length = match value(&wanted, "shape")? {
                Some(length) if length > 0 => {
                    own.max(usize::try_from(length).unwrap_or(usize::MAX))
                }
                _ => most.max(own),
            };
            if let Some(align) = value(&aligned, "align")? {
                if align <= 0 {
                    let problem = Argument::NotPositive { given: align as f64 };
                    return Err(argument("align", problem));
                }
                length = length.checked_next_multiple_of(align as usize).unwrap_or(usize::MAX);
            }
            if length as f64 > LONGEST && length > own {
                return Err(too_large(if wanted.is_some() { "shape" } else { "align" }));
            }
            shape[axis] = length;
        }
        if extent(&shape).is_none() {
            return Err(too_large("shape"));
        }
        Ok((args, one(Desc { shape, ..desc.clone() })))
    }

    fn run(args: &PadArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let region = Region { start: smallvec![0; out.desc.ndim()], shape: out.desc.shape.clone() };
        let fill = Fill::new(&[args.fill_value as f32], out.desc.dtype, None);
        out.store(|dst, stores| cut(&inputs[0], &region, Border::Constant, &fill, dst, stores))
    }
}

/// The largest extent of each axis over a batch.
pub struct Largest;

impl BatchKernel for Largest {
    fn run(
        &self,
        _: &[Arg],
        inputs: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let samples = inputs[0];
        let ndim = samples.first().map_or(0, |sample| sample.desc.ndim());
        let mut out = allocate(Desc::new(DType::I64, &[ndim]))?;
        for (axis, most) in out.elements::<i64>().iter_mut().enumerate() {
            *most = samples.iter().map(|s| s.desc.shape[axis] as i64).max().unwrap_or(0);
        }
        Ok(smallvec![out.into_sample()?])
    }
}
