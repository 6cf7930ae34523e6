//! Windows of images: crop, random_crop_generator.

pub(super) mod crop_mirror_normalize;
pub(super) mod random_window;

use smallvec::{SmallVec, smallvec};

use super::regions::{Cut, LONGEST, Policy, Region, too_large};
use super::{
    Arg, Entry, Family, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one,
};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::crop::random_window::RandomWindow;
use crate::kernels::numeric::philox::Stream;
use crate::kernels::numeric::precision::part_of;
use crate::value::Problem;
use crate::value::{DType, Desc, Sample, extent, with_element};

pub const FAMILY: Family =
    Family { kernels: &[TABLE, crop_mirror_normalize::TABLE], problems: &[problem::Crop::KINDS] };

const TABLE: &[Entry] =
    &[Entry::new::<Crop>("crop"), Entry::new::<RandomCropGenerator>("random_crop_generator")];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Crop {
            Extents { given: Vec<f64> },
            NotAShape { shape: Vec<usize> },
            LargeExtent { extent: i64 },
            OutputLayout { layout: String, given: String },
            Range { given: Vec<f64> },
        }
    }
}

pub type Floats = SmallVec<[f64; 6]>;

/// How the start of a window is rounded.
#[derive(Clone, Copy)]
pub enum Rounding {
    Round,
    Truncate,
}

impl FromArg for Rounding {
    fn from_constant(arg: &Arg) -> std::result::Result<Rounding, Problem> {
        match arg {
            Arg::Text(name) if &**name == "round" => Ok(Rounding::Round),
            Arg::Text(name) if &**name == "truncate" => Ok(Rounding::Truncate),
            other => {
                Err(Argument::OneOf { choices: "round, truncate", given: other.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Rounding, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// Declares the arguments of a kernel that crops: the shared ones, and its own.
macro_rules! crop_args {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $crate::kernels::args! {
            $(#[$doc])*
            $vis struct $name {
                crop: Option<$crate::kernels::crop::Floats>,
                crop_d: Option<f64>,
                crop_h: Option<f64>,
                crop_w: Option<f64>,
                crop_pos_x: f64,
                crop_pos_y: f64,
                crop_pos_z: f64,
                fill_values: $crate::kernels::crop::Floats,
                out_of_bounds_policy: $crate::kernels::regions::Policy,
                rounding: $crate::kernels::crop::Rounding,
                $($field: $type),*
            }
        }

        impl $name {
            /// The window that the arguments ask for.
            fn window(&self) -> $crate::kernels::crop::Window<'_> {
                $crate::kernels::crop::Window {
                    crop: self.crop.as_deref(),
                    extents: [self.crop_d, self.crop_h, self.crop_w],
                    position: [self.crop_pos_z, self.crop_pos_y, self.crop_pos_x],
                    policy: self.out_of_bounds_policy,
                    rounding: self.rounding,
                }
            }
        }
    };
}
pub(super) use crop_args;

/// A window of the depth, height and width of an image, in this order.
pub struct Window<'a> {
    pub crop: Option<&'a [f64]>,
    pub extents: [Option<f64>; 3],
    pub position: [f64; 3],
    pub policy: Policy,
    pub rounding: Rounding,
}

const AXES: [(u8, &str); 3] = [(b'D', "crop_pos_z"), (b'H', "crop_pos_y"), (b'W', "crop_pos_x")];

impl Window<'_> {
    /// The window of an image with this description, once the policy has been applied.
    pub fn region(&self, desc: &Desc) -> Result<Region> {
        let wanted = self.wanted()?;
        let mut region = Region { start: smallvec![0; desc.ndim()], shape: desc.shape.clone() };
        for ((letter, position_name), (wanted, position)) in
            AXES.into_iter().zip(wanted.into_iter().zip(self.position))
        {
            // In a sequence, the depth is the number of frames, as in DALI.
            let frames = || if letter == b'D' { desc.layout.find(b'F') } else { None };
            let Some(axis) = desc.layout.find(letter).or_else(frames) else { continue };
            let Some(wanted) = wanted else { continue };
            if !(0.0..=1.0).contains(&position) {
                let problem = Argument::Between { low: 0.0, high: 1.0, given: position };
                return Err(argument(position_name, problem));
            }
            let n = desc.shape[axis];
            // Sizes below one, and NaN, mean the whole axis.
            let length = if wanted >= 1.0 { wanted.trunc().min(1e15) } else { n as f64 };
            let start = part_of(position, n as f64 - length);
            let start = match self.rounding {
                Rounding::Round => start.round(),
                Rounding::Truncate => start.trunc(),
            } as i64;
            let (start, end) = self.policy.place(desc, axis, (start, start + length as i64))?;
            if (end - start) as f64 > LONGEST {
                return Err(too_large(self.extent_name()));
            }
            region.start[axis] = start;
            region.shape[axis] = (end - start) as usize;
        }
        match extent(&region.shape) {
            Some(_) => Ok(region),
            None => Err(too_large(self.extent_name())),
        }
    }

    /// The argument that gives the window's size, for errors.
    fn extent_name(&self) -> &'static str {
        if self.crop.is_some() { "crop" } else { "crop_h" }
    }

    fn wanted(&self) -> Result<[Option<f64>; 3]> {
        let [depth, height, width] = self.extents;
        match (height, width, depth) {
            (Some(_), None, _) => {
                return Err(argument("crop_h", Argument::NeedsOther { other: "crop_w" }));
            }
            (None, Some(_), _) => {
                return Err(argument("crop_w", Argument::NeedsOther { other: "crop_h" }));
            }
            (None, None, Some(_)) => {
                return Err(argument("crop_d", Argument::NeedsOther { other: "crop_h" }));
            }
            _ => {}
        }
        match (self.crop, height) {
            (Some(_), Some(_)) => Err(argument("crop", Argument::Together { other: "crop_h" })),
            (None, _) => Ok(self.extents),
            (Some(&[h, w]), None) => Ok([None, Some(h), Some(w)]),
            (Some(&[d, h, w]), None) => Ok([Some(d), Some(h), Some(w)]),
            (Some(other), None) => {
                Err(argument("crop", problem::Crop::Extents { given: other.to_vec() }))
            }
        }
    }
}

struct Crop;

crop_args! {
    struct CropArgs { dtype: Option<DType> }
}

impl Kernel for Crop {
    type Args = CropArgs;
    type Plan = Cut;
    const TRAITS: Traits = Traits {
        uniform_outputs: true,
        stacks: true,
        strided: true,
        frames: Frames::Whole,
        ..Traits::DEFAULT
    };

    fn plan(args: CropArgs, inputs: &[&Desc]) -> Result<(Cut, Outputs)> {
        let region = args.window().region(inputs[0])?;
        let border = args.out_of_bounds_policy.border();
        let (cut, desc) = Cut::new(inputs[0], region, border, &args.fill_values, args.dtype)?;
        Ok((cut, one(desc)))
    }

    fn run(cut: &Cut, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        cut.run(&inputs[0], &mut outputs[0])
    }

    fn stack(cut: &mut Cut, inputs: &[&Desc]) -> bool {
        cut.stack(inputs[0].shape[0]);
        true
    }
}

pub struct RandomCropGenerator;

args! {
    pub struct RandomCropArgs {
        num_attempts: i64,
        random_area: Floats,
        random_aspect_ratio: Floats,
        rng: Stream,
    }
}

impl Kernel for RandomCropGenerator {
    type Args = RandomCropArgs;
    type Plan = RandomCropArgs;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: RandomCropArgs, _: &[&Desc]) -> Result<(RandomCropArgs, Outputs)> {
        Ok((args, smallvec![Desc::new(DType::I32, &[2]), Desc::new(DType::I32, &[2])]))
    }

    fn run(args: &RandomCropArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let desc = &inputs[0].desc;
        if !matches!(desc.shape[..], [2 | 3]) {
            let shape = desc.shape.to_vec();
            return Err(unfit(0, problem::Crop::NotAShape { shape }));
        }
        if matches!(desc.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
            let dtype = desc.dtype.name();
            return Err(unfit(0, Input::Type { wanted: "integers", dtype }));
        }
        let mut extents = [0_i64; 2];
        with_element!(desc.dtype, |T| {
            use crate::kernels::generic::cast::Convert;
            for (extent, &n) in extents.iter_mut().zip(inputs[0].elements::<T>()) {
                *extent = n.convert();
            }
        });
        if let Some(&large) = extents.iter().find(|&&n| n > i64::from(i32::MAX)) {
            return Err(unfit(0, problem::Crop::LargeExtent { extent: large }));
        }
        let [height, width] = extents.map(|n| n.max(0) as usize);
        let (area, ratio) = (&args.random_area, &args.random_aspect_ratio);
        let window = RandomWindow::new(area, ratio, args.num_attempts)?;
        let window = window.draw(&args.rng, height, width);
        let pairs = [[window.y, window.x], [window.height, window.width]];
        for (out, pair) in outputs.iter_mut().zip(pairs) {
            out.elements::<i32>().copy_from_slice(&pair.map(|n| n as i32));
        }
        Ok(())
    }
}
