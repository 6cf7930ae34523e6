//! Motion blur along a straight line.

use super::{finite, problem};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::filters::correlate_with;
use crate::kernels::numeric::portable::sin_cos_of_turn;
use crate::kernels::{Kernel, Output, OutputBuffer, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

pub struct MotionBlur;

args! {
    pub struct MotionBlurArgs { angle: f64, direction: f64, kernel_size: i64 }
}

/// Upper limit of the kernel size, which bounds the run time.
const LARGEST: i64 = 255;

impl Kernel for MotionBlur {
    type Args = MotionBlurArgs;
    type Plan = MotionBlurArgs;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: MotionBlurArgs, inputs: &[&Desc]) -> Result<(MotionBlurArgs, Outputs)> {
        finite("angle", args.angle)?;
        let (low, high, given) = (-1.0, 1.0, args.direction);
        if !(low..=high).contains(&given) {
            return Err(argument("direction", Argument::Between { low, high, given }));
        }
        let given = args.kernel_size;
        if !(1..=LARGEST).contains(&given) || given % 2 == 0 {
            let largest = LARGEST;
            return Err(argument(
                "kernel_size",
                problem::Augmentation::KernelSize { largest, given },
            ));
        }
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &MotionBlurArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        if inputs[0].desc.elements() == 0 {
            return Ok(());
        }
        let size = args.kernel_size as usize;
        let mut weights = OutputBuffer::new(Desc::new(DType::F32, &[size, size]))?;
        draw_line(weights.elements(), size, args.angle, args.direction);
        correlate_with(&inputs[0], &weights.into_sample()?, &mut outputs[0])
    }
}

/// Kernel of a line through the center whose weight goes from `1 - direction` at one end to `1 +
/// direction` at the other. There is one point per pixel of length, spread bilinearly over the four
/// nearest pixels.
fn draw_line(weights: &mut [f32], size: usize, angle: f64, direction: f64) {
    weights.fill(0.0);
    let turn = (angle / 360.0).rem_euclid(1.0).min(1.0 - f64::EPSILON);
    let (sine, cosine) = sin_cos_of_turn(turn);
    let reach = (size / 2) as f64;
    let mut total = 0.0;
    for k in 0..size {
        // Position along the line, from -1 to 1.
        let along = if size > 1 { k as f64 / reach - 1.0 } else { 0.0 };
        let weight = 1.0 + direction * along;
        // Counter-clockwise as displayed, with the y axis pointing down.
        let (x, y) = (reach + along * reach * cosine, reach - along * reach * sine);
        let (left, upper) = (x.floor(), y.floor());
        for (dy, part) in [(0, 1.0 - (y - upper)), (1, y - upper)] {
            for (dx, share) in [(0, 1.0 - (x - left)), (1, x - left)] {
                let (x, y) = (left as usize + dx, upper as usize + dy);
                if x < size && y < size {
                    weights[y * size + x] += (weight * part * share) as f32;
                    total += weight * part * share;
                }
            }
        }
    }
    weights.iter_mut().for_each(|weight| *weight /= total as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one() {
        for size in [1, 3, 7, 31] {
            for angle in [0.0, 30.0, 45.0, 90.0, 359.9, -1e6] {
                for direction in [-1.0, 0.0, 0.5] {
                    let mut weights = vec![0.0; size * size];
                    draw_line(&mut weights, size, angle, direction);
                    let sum: f32 = weights.iter().sum();
                    assert!((sum - 1.0).abs() < 1e-4, "{size} {angle} {direction}: {sum}");
                    assert!(weights.iter().all(|&weight| weight >= 0.0));
                }
            }
        }
    }

    #[test]
    fn a_horizontal_line_fills_one_row() {
        let mut weights = vec![0.0; 25];
        draw_line(&mut weights, 5, 0.0, 0.0);
        assert!(weights[..10].iter().chain(&weights[15..]).all(|&weight| weight < 1e-6));
    }
}
