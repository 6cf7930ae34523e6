//! Random crop windows that cover as much as possible of a region of interest.

use smallvec::SmallVec;

use super::problem::Boxes;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::philox::{Stream, below};
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Cause, DType, Desc, Sample, filled};

type Ints = SmallVec<[i64; 6]>;

pub struct RoiRandomCrop;

args! {
    pub struct RoiRandomCropArgs {
        crop_shape: Ints,
        in_shape: Option<Ints>,
        roi_end: Option<Ints>,
        roi_shape: Option<Ints>,
        roi_start: Ints,
        rng: Stream,
    }
}

/// For each axis, the lowest start of the window and the number of possible starts.
pub struct Places {
    starts: Vec<(i64, u64)>,
    rng: Stream,
}

impl Kernel for RoiRandomCrop {
    type Args = RoiRandomCropArgs;
    type Plan = Places;
    const TRAITS: Traits = Traits { frames: Frames::Whole, strided: true, ..Traits::DEFAULT };

    fn plan(args: RoiRandomCropArgs, inputs: &[&Desc]) -> Result<(Places, Outputs)> {
        let axes = args.crop_shape.len();
        let starts = each_axis("roi_start", &args.roi_start, axes)?;
        let (name, given) = match (&args.roi_end, &args.roi_shape) {
            (Some(end), None) => ("roi_end", each_axis("roi_end", end, axes)?),
            (None, Some(shape)) => ("roi_shape", each_axis("roi_shape", shape, axes)?),
            (Some(_), Some(_)) => {
                return Err(argument("roi_end", Argument::Together { other: "roi_shape" }));
            }
            (None, None) => {
                return Err(argument("roi_start", Argument::NeedsOther { other: "roi_end" }));
            }
        };
        let bounds = match (inputs.first(), &args.in_shape) {
            (Some(_), Some(_)) => {
                return Err(argument("in_shape", Argument::Together { other: "input" }));
            }
            (Some(input), None) if input.ndim() < axes => {
                let problem = Boxes::FewAxes { wanted: axes, given: input.ndim() };
                return Err(unfit(0, problem));
            }
            (Some(input), None) => Some(input.shape.iter().map(|&n| n as i64).collect::<Ints>()),
            (None, Some(shape)) => Some(each_axis("in_shape", shape, axes)?),
            (None, None) => None,
        };
        let mut places = filled((0, 1), axes)?;
        for (axis, place) in places.iter_mut().enumerate() {
            let (crop, start, given) = (args.crop_shape[axis], starts[axis], given[axis]);
            if crop < 0 {
                return Err(argument("crop_shape", Argument::Negative { given: crop as f64 }));
            }
            // i128 so that sums of three i64 can't overflow.
            let (wide_crop, wide_start) = (i128::from(crop), i128::from(start));
            let end = i128::from(given) + if name == "roi_shape" { wide_start } else { 0 };
            if end < wide_start {
                return Err(match name {
                    "roi_shape" => argument(name, Argument::Negative { given: given as f64 }),
                    _ => argument(name, Boxes::RoiEnds { given, start, axis }),
                });
            }
            // Either the window lies inside the region, or it contains the whole region.
            let (one, other) = (wide_start, end - wide_crop);
            let (mut low, mut high) = (one.min(other), one.max(other));
            if let Some(&extent) = bounds.as_ref().and_then(|bounds| bounds.get(axis)) {
                if crop > extent {
                    let problem = Boxes::LargeCrop { given: crop, extent, axis };
                    return Err(argument("crop_shape", problem));
                }
                if start < 0 || end > i128::from(extent) {
                    let end = i64::try_from(end).unwrap_or(i64::MAX);
                    let problem = Boxes::RoiOutside { start, end, extent, axis };
                    return Err(argument("roi_start", problem));
                }
                low = low.max(0);
                high = high.min(i128::from(extent - crop));
            }
            let fits = |place: i128| i64::try_from(place).map_err(|_| too_far());
            let (low, high) = (fits(low)?, fits(high)?);
            *place = (low, high.abs_diff(low).saturating_add(1));
        }
        let places = Places { starts: places, rng: args.rng };
        Ok((places, one(Desc::new(DType::I64, &[axes]))))
    }

    fn run(plan: &Places, _: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let starts = outputs[0].elements::<i64>().iter_mut().zip(&plan.starts);
        for (axis, (start, &(low, count))) in starts.enumerate() {
            let [a, b, ..] = plan.rng.source(axis).next();
            *start = low.wrapping_add(below(a, b, count) as i64);
        }
        Ok(())
    }
}

fn too_far() -> Cause {
    argument("roi_start", Argument::TooLarge)
}

/// One number per axis; a single number applies to all axes.
fn each_axis(name: &'static str, given: &[i64], axes: usize) -> Result<Ints> {
    match *given {
        [one] => Ok(SmallVec::from_elem(one, axes)),
        _ if given.len() == axes => Ok(SmallVec::from_slice(given)),
        _ => Err(argument(name, Boxes::Extents { wanted: axes, given: given.to_vec() })),
    }
}
