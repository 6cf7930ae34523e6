//! The Laplacian: the sum of the second derivatives along all axes, each smoothed along the others.

use super::axes::{Axes, convolve_axes, filtered, per_axis, spatial};
use super::rows::Window;
use crate::kernels::contract::problems::argument;
use crate::kernels::filters::problem::Filters;
use crate::kernels::numeric::floats;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample, zeroed};

pub struct Laplacian;

args! {
    pub struct LaplacianArgs {
        dtype: DType,
        normalized_kernel: bool,
        scale: Vec<f64>,
        smoothing_size: Option<Vec<i64>>,
        window_size: Vec<i64>,
    }
}

/// The axes, and for the second derivative along each of them, the windows along all axes.
pub struct Derivatives {
    axes: Axes,
    windows: Vec<Vec<Window>>,
}

impl Kernel for Laplacian {
    type Args = LaplacianArgs;
    type Plan = Derivatives;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: LaplacianArgs, inputs: &[&Desc]) -> Result<(Derivatives, Outputs)> {
        let desc = filtered(inputs[0], args.dtype)?;
        let axes = spatial(inputs[0])?;
        let windows = args.windows(axes.len())?;
        Ok((Derivatives { axes, windows }, one(desc)))
    }

    fn run(plan: &Derivatives, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, isa) = (&inputs[0], Isa::best());
        let mut sums = zeroed::<f32>(input.desc.elements())?;
        for windows in &plan.windows {
            convolve_axes(isa, input, &plan.axes, windows, |start, row| {
                for (sum, x) in sums[start..].iter_mut().zip(row) {
                    *sum += x;
                }
            })?;
        }
        floats::write(isa, &sums, 0, &mut outputs[0]);
        Ok(())
    }
}

impl LaplacianArgs {
    /// For the second derivative along each axis, the windows along all axes.
    fn windows(&self, count: usize) -> Result<Vec<Vec<Window>>> {
        let scales = per_axis("scale", &self.scale, count)?;
        let sizes = per_axis("window_size", &self.window_size, count)?;
        let sizes = odd("window_size", sizes, 3)?;
        let smoothing = match &self.smoothing_size {
            Some(given) => {
                Some(odd("smoothing_size", per_axis("smoothing_size", given, count)?, 1)?)
            }
            None => None,
        };
        let derivative = |derived: usize| {
            let mut windows = Vec::with_capacity(count);
            let mut scale = scales[derived];
            for axis in 0..count {
                // By default, smoothing windows have the size of the derivative's window.
                let size = match &smoothing {
                    _ if axis == derived => sizes[axis] - 2,
                    Some(smoothing) => smoothing[axis],
                    None => sizes[derived],
                };
                if self.normalized_kernel {
                    scale /= 2_f64.powi(size as i32 - 1);
                }
                let binomial = binomial(size);
                windows.push(if axis == derived { second_derivative(&binomial) } else { binomial });
            }
            for weight in &mut windows[derived] {
                *weight = (f64::from(*weight) * scale) as f32;
            }
            windows
        };
        Ok((0..count).map(derivative).collect())
    }
}

fn odd(name: &'static str, sizes: Vec<i64>, least: i64) -> Result<Vec<usize>> {
    let largest = 31;
    let size = |size: i64| match usize::try_from(size) {
        Ok(fit) if (least..=largest).contains(&size) && size % 2 == 1 => Ok(fit),
        _ => Err(argument(name, Filters::NotOdd { least, largest, given: size })),
    };
    sizes.into_iter().map(size).collect()
}

/// A row of Pascal's triangle with `size` (odd) numbers, from its middle to its right end.
fn binomial(size: usize) -> Window {
    let n = size as f64 - 1.0;
    let mut row = vec![1.0_f64];
    for k in 0..size - 1 {
        let k = k as f64;
        row.push((row[row.len() - 1] * (n - k) / (k + 1.0)).round());
    }
    row[size / 2..].iter().map(|&x| x as f32).collect()
}

/// The window convolved with [1, -2, 1].
fn second_derivative(window: &[f32]) -> Window {
    let at = |k: isize| window.get(k.unsigned_abs()).copied().unwrap_or(0.0);
    (0..=window.len() as isize).map(|k| at(k - 1) - 2.0 * at(k) + at(k + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_the_expected_right_halves() {
        assert_eq!(binomial(1), [1.0]);
        assert_eq!(binomial(5), [6.0, 4.0, 1.0]);
        assert_eq!(binomial(31)[0], 155_117_520.0);
        assert_eq!(second_derivative(&binomial(1)), [-2.0, 1.0]);
        assert_eq!(second_derivative(&binomial(3)), [-2.0, 0.0, 1.0]);
    }
}
