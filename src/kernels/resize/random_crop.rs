//! `random_resized_crop`: a random window, resized.

use smallvec::SmallVec;

use super::extent::{Map, PerAxis, too_long};
use super::problem;
use super::sizes::{Numbers, Resizing, all_axes, described, filters, spatial};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::crop::random_window::RandomWindow;
use crate::kernels::numeric::philox::Stream;
use crate::kernels::regions::LONGEST;
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

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
