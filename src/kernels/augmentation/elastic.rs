//! Elastic deformation: each pixel is displaced by smoothed random noise.

use super::sampler::Places;
use super::{Floats, check_fill, move_pixels, problem};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::filters::rows::{Stack, convolve};
use crate::kernels::numeric::isa::{Isa, vectorized};
use crate::kernels::numeric::philox::{Stream, short_fraction};
use crate::kernels::numeric::portable::exp;
use crate::kernels::random::of_words;
use crate::kernels::warp::Interpolation;
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, collected, zeroed};

pub struct ElasticTransform;

args! {
    pub struct ElasticTransformArgs {
        alpha: Floats,
        fill_value: Floats,
        interp_type: Interpolation,
        sigma: Floats,
        rng: Stream,
    }
}

/// Parameters for x and y.
pub struct Rubber {
    alpha: [f64; 2],
    sigma: [f64; 2],
    fill: Floats,
    interpolation: Interpolation,
    rng: Stream,
}

/// A larger sigma blurs across any practical image.
const LARGEST_SIGMA: f64 = 200.0;

/// Limit on the image size: the displacement fields take four floats per pixel.
const MOST_PIXELS: usize = 1 << 28;

impl Kernel for ElasticTransform {
    type Args = ElasticTransformArgs;
    type Plan = Rubber;
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: ElasticTransformArgs, inputs: &[&Desc]) -> Result<(Rubber, Outputs)> {
        check_fill(&args.fill_value, inputs[0])?;
        let alpha = pair("alpha", &args.alpha)?;
        let sigma = pair("sigma", &args.sigma)?;
        for given in alpha {
            super::finite("alpha", given)?;
        }
        if let Some(&given) = sigma.iter().find(|sigma| !(0.0..=LARGEST_SIGMA).contains(*sigma)) {
            let problem = Argument::Between { low: 0.0, high: LARGEST_SIGMA, given };
            return Err(argument("sigma", problem));
        }
        let [height, width] = sides(inputs[0]);
        if height.saturating_mul(width) > MOST_PIXELS {
            let largest = MOST_PIXELS;
            return Err(unfit(0, problem::Augmentation::LargeImage { largest, height, width }));
        }
        let fill = args.fill_value;
        let plan = Rubber { alpha, sigma, fill, interpolation: args.interp_type, rng: args.rng };
        Ok((plan, one(inputs[0].clone())))
    }

    fn run(plan: &Rubber, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let [height, width] = sides(&inputs[0].desc);
        let field = |axis: usize| plan.field(axis, height, width);
        let places = Displaced { width, fields: [field(0)?, field(1)?] };
        move_pixels(&inputs[0], &mut outputs[0], &places, plan.interpolation, &plan.fill)
    }
}

fn sides(desc: &Desc) -> [usize; 2] {
    [b'H', b'W'].map(|letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]))
}

/// One number for both axes, or one for x and one for y.
fn pair(name: &'static str, given: &[f64]) -> Result<[f64; 2]> {
    match *given {
        [both] => Ok([both, both]),
        [x, y] => Ok([x, y]),
        _ => Err(argument(name, Argument::Count { wanted: 2, given: given.len() })),
    }
}

impl Rubber {
    /// Displacements in pixels along an axis: blurred uniform noise in [-1, 1], times `alpha / 2`.
    /// The factor 1/2 is because torchvision's displacements are in normalized coordinates, -1 to
    /// 1.
    fn field(&self, axis: usize, height: usize, width: usize) -> Result<Vec<f32>> {
        let scale = (self.alpha[axis] / 2.0) as f32;
        let mut noise = zeroed::<f32>(height * width)?;
        let rng = self.rng.apart(axis as u32);
        of_words(&rng, &mut noise, |word| (2.0 * short_fraction(word) - 1.0) as f32 * scale);
        // As in torchvision, `sigma` of this axis determines the kernel size, and each direction is
        // blurred with its own sigma.
        if self.sigma[axis] == 0.0 || noise.is_empty() {
            return Ok(noise);
        }
        let reach = (4.0 * self.sigma[axis] + 0.5) as usize;
        let windows = self.sigma.map(|sigma| window(sigma, reach));
        let [along, down] = windows;
        let stack = Stack { outer: 1, rows: height, columns: width, pixel: 1 };
        let mut made = zeroed::<f32>(noise.len())?;
        convolve(
            Isa::best(),
            &stack,
            &down?,
            &along?,
            |start, row| row.copy_from_slice(&noise[start..start + row.len()]),
            |start, row| made[start..start + row.len()].copy_from_slice(row),
        )?;
        Ok(made)
    }
}

/// One half of a normalized Gaussian kernel, starting at its center.
fn window(sigma: f64, reach: usize) -> Result<Vec<f32>> {
    if sigma == 0.0 {
        return Ok(vec![1.0]);
    }
    let weight = |k: usize| exp(-0.5 * (k as f64 / sigma) * (k as f64 / sigma));
    let sum: f64 = 1.0 + 2.0 * (1..=reach).map(weight).sum::<f64>();
    collected((0..reach + 1).map(|k| (weight(k) / sum) as f32))
}

struct Displaced {
    width: usize,
    /// Displacements along x and y.
    fields: [Vec<f32>; 2],
}

impl Places for Displaced {
    fn row(&self, y: usize, xs: &mut [f64], ys: &mut [f64]) {
        let [along, down] =
            self.fields.each_ref().map(|field| &field[y * self.width..][..self.width]);
        vectorized!({
            for (number, (x, &by)) in xs.iter_mut().zip(along).enumerate() {
                *x = number as u32 as f64 + 0.5 + f64::from(by);
            }
            for (to, &by) in ys.iter_mut().zip(down) {
                *to = y as f64 + 0.5 + f64::from(by);
            }
        });
    }
}
