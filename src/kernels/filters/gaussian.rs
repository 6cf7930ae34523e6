//! Gaussian blur.

use super::axes::{Axes, convolve_axes, filtered, per_axis, spatial};
use super::rows::Window;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::filters::problem::Filters;
use crate::kernels::numeric::floats;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

pub struct GaussianBlur;

args! {
    pub struct GaussianBlurArgs { dtype: DType, sigma: Vec<f64>, window_size: Vec<i64> }
}

/// The axes to blur along, with a window for each.
pub struct Blur {
    axes: Axes,
    windows: Vec<Window>,
}

impl Kernel for GaussianBlur {
    type Args = GaussianBlurArgs;
    type Plan = Blur;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: GaussianBlurArgs, inputs: &[&Desc]) -> Result<(Blur, Outputs)> {
        let desc = filtered(inputs[0], args.dtype)?;
        let axes = spatial(inputs[0])?;
        let sigmas = per_axis("sigma", &args.sigma, axes.len())?;
        let sizes = per_axis("window_size", &args.window_size, axes.len())?;
        let windows = sigmas.into_iter().zip(sizes).map(|(sigma, size)| window(sigma as f32, size));
        let windows = windows.collect::<Result<_>>()?;
        Ok((Blur { axes, windows }, one(desc)))
    }

    fn run(plan: &Blur, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let isa = Isa::best();
        convolve_axes(isa, &inputs[0], &plan.axes, &plan.windows, |start, row| {
            floats::write(isa, row, start, &mut outputs[0]);
        })
    }
}

/// Larger than any useful blur, and small enough to allocate.
const LARGEST_REACH: usize = 4096;

/// A zero `sigma` or `size` is derived from the other one.
fn window(sigma: f32, size: i64) -> Result<Window> {
    if !(sigma >= 0.0 && sigma.is_finite()) {
        return Err(argument("sigma", Argument::Negative { given: f64::from(sigma) }));
    }
    if size < 0 || size > 0 && size % 2 == 0 {
        return Err(argument("window_size", Filters::WindowSize { given: size }));
    }
    if sigma == 0.0 && size == 0 {
        return Err(argument("sigma", Filters::NoWindow));
    }
    // Three standard deviations, as in DALI.
    let reach = if size > 0 { (size / 2) as usize } else { (3.0 * sigma).ceil() as usize };
    if reach > LARGEST_REACH {
        let name = if size > 0 { "window_size" } else { "sigma" };
        return Err(argument(name, Filters::LargeWindow { largest: 2 * LARGEST_REACH + 1 }));
    }
    let sigma = if sigma > 0.0 {
        f64::from(sigma)
    } else {
        // The usual rule for a window of a given size.
        (reach as f64 - 1.0) * 0.3 + 0.8
    };
    let weight = |k: usize| (-((k * k) as f64) / (2.0 * sigma * sigma)).exp();
    let weights: Vec<f64> = (0..=reach).map(weight).collect();
    let total = 2.0 * weights.iter().sum::<f64>() - weights[0];
    Ok(weights.into_iter().map(|weight| (weight / total) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_match_dali() {
        let close = |window: Window, seen: &[f32]| {
            assert_eq!(window.len(), seen.len());
            assert!(window.iter().zip(seen).all(|(a, b)| (a - b).abs() < 1e-5), "{window:?}");
        };
        let made = |sigma, size| window(sigma, size).unwrap();
        close(made(1.0, 0), &[0.39905, 0.24204, 0.05401, 0.00443]);
        close(made(0.0, 3), &[0.52201, 0.23899]);
        close(made(0.0, 1), &[1.0]);
        close(made(1e-8, 0), &[1.0, 0.0]);
        let reaches = [0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0].map(|sigma| made(sigma, 0).len() - 1);
        assert_eq!(reaches, [1, 2, 3, 5, 6, 9, 15]);
    }

    #[test]
    fn invalid_windows_are_rejected() {
        for (sigma, size) in
            [(0.0, 0), (-1.0, 0), (f32::NAN, 3), (f32::INFINITY, 0), (1e9, 0), (0.0, 4), (1.0, -3)]
        {
            assert!(window(sigma, size).is_err(), "{sigma} {size}");
        }
        assert!(window(1.0, i64::MAX).is_err());
    }
}
