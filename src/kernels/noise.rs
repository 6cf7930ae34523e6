//! Noise. Like all random numbers, it depends only on the call, the sample and the element.

use super::random::{normals, of_pairs};
use super::{Entry, Family, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::philox::{Source, Stream, fraction};
use crate::kernels::numeric::portable::{exp, ln};
use crate::value::{DType, Desc, Sample, filled, with_element};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Noise::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Gaussian>("noise.gaussian"),
    Entry::new::<SaltAndPepper>("noise.salt_and_pepper"),
    Entry::new::<Shot>("noise.shot"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Noise {
            NoChannels { layout: String },
        }
    }
}

fn noisy(input: &Desc) -> Result<Desc> {
    if input.dtype == DType::Bool || input.dtype.storage() != input.dtype {
        return Err(unfit(0, Input::NotNumbers { dtype: input.dtype.name() }));
    }
    Ok(input.clone())
}

pub struct Gaussian;

args! {
    pub struct GaussianArgs { mean: f64, stddev: f64, rng: Stream }
}

impl Kernel for Gaussian {
    type Args = GaussianArgs;
    type Plan = GaussianArgs;
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: GaussianArgs, inputs: &[&Desc]) -> Result<(GaussianArgs, Outputs)> {
        let desc = noisy(inputs[0])?;
        Ok((args, one(desc)))
    }

    fn run(args: &GaussianArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        with_element!(inputs[0].desc.dtype, |T| {
            let (src, dst) = (inputs[0].elements::<T>(), out.elements::<T>());
            normals(&args.rng, src.len(), |start, normals| {
                let src = &src[start..start + normals.len()];
                for ((d, &s), z) in dst[start..].iter_mut().zip(src).zip(normals) {
                    let s: f64 = s.convert();
                    *d = (s + args.mean + args.stddev * z).convert();
                }
            });
        });
        Ok(())
    }
}

pub struct SaltAndPepper;

args! {
    pub struct SaltAndPepperArgs {
        pepper_val: Option<f64>,
        per_channel: bool,
        prob: f64,
        salt_val: Option<f64>,
        salt_vs_pepper: f64,
        rng: Stream,
    }
}

/// What happens to a pixel.
#[derive(Clone, Copy)]
enum Grain {
    None,
    Salt,
    Pepper,
}

impl Kernel for SaltAndPepper {
    type Args = SaltAndPepperArgs;
    type Plan = SaltAndPepperArgs;
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: SaltAndPepperArgs, inputs: &[&Desc]) -> Result<(SaltAndPepperArgs, Outputs)> {
        let desc = noisy(inputs[0])?;
        Ok((args, one(desc)))
    }

    fn run(args: &SaltAndPepperArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        for (name, chance) in [("prob", args.prob), ("salt_vs_pepper", args.salt_vs_pepper)] {
            if !(0.0..=1.0).contains(&chance) {
                let problem = Argument::Between { low: 0.0, high: 1.0, given: chance };
                return Err(argument(name, problem));
            }
        }
        let desc = &inputs[0].desc;
        // Noise applies to all channels of a pixel, unless it is per channel.
        let channels = if args.per_channel { None } else { channel_axis(desc)? };
        let (count, inner) = match channels {
            Some(axis) => (desc.shape[axis], desc.shape[axis + 1..].iter().product()),
            None => (1, 1),
        };
        let pixels = desc.elements().checked_div(count).unwrap_or(0);
        let mut grains = filled(Grain::None, pixels)?;
        let salted = args.prob * args.salt_vs_pepper;
        of_pairs(&args.rng, &mut grains, |low, high| match fraction(low, high) {
            part if part >= args.prob => Grain::None,
            part if part < salted => Grain::Salt,
            _ => Grain::Pepper,
        });
        with_element!(desc.dtype, |T| {
            let (darkest, brightest) = ends(desc.dtype);
            // Truncated to integers, as in DALI.
            let value = |given: Option<f64>, end: f64| -> T {
                given.map_or(end, |x| if end.abs() == 1.0 { x } else { x.trunc() }).convert()
            };
            let (salt, pepper) = (value(args.salt_val, brightest), value(args.pepper_val, darkest));
            let (src, dst) = (inputs[0].elements::<T>(), out.elements::<T>());
            let grain = |grain: Grain, x: T| match grain {
                Grain::None => x,
                Grain::Salt => salt,
                Grain::Pepper => pepper,
            };
            if inner == 1 && count > 0 {
                for ((dst, src), &g) in
                    dst.chunks_exact_mut(count).zip(src.chunks_exact(count)).zip(&grains)
                {
                    for (d, &s) in dst.iter_mut().zip(src) {
                        *d = grain(g, s);
                    }
                }
            } else if inner > 0 && count > 0 {
                for (plane, (dst, src)) in
                    dst.chunks_exact_mut(inner).zip(src.chunks_exact(inner)).enumerate()
                {
                    let grains = &grains[plane / count * inner..][..inner];
                    for ((d, &s), &g) in dst.iter_mut().zip(src).zip(grains) {
                        *d = grain(g, s);
                    }
                }
            }
        });
        Ok(())
    }
}

/// The channel axis: the last one if there is no layout; a scalar has none.
fn channel_axis(desc: &Desc) -> Result<Option<usize>> {
    if desc.layout.is_empty() {
        return Ok(desc.ndim().checked_sub(1));
    }
    desc.layout.find(b'C').map(Some).ok_or_else(|| {
        let layout = desc.layout.as_str().to_string();
        unfit(0, problem::Noise::NoChannels { layout })
    })
}

/// Pepper and salt: the smallest and largest value of an integer type, -1 and 1 for floats.
fn ends(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::I64 => (i64::MIN as f64, i64::MAX as f64),
        DType::U8 => (0.0, f64::from(u8::MAX)),
        DType::U16 => (0.0, f64::from(u16::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        DType::U64 => (0.0, u64::MAX as f64),
        _ => (-1.0, 1.0),
    }
}

pub struct Shot;

args! {
    pub struct ShotArgs { factor: f64, rng: Stream }
}

impl Kernel for Shot {
    type Args = ShotArgs;
    type Plan = ShotArgs;
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: ShotArgs, inputs: &[&Desc]) -> Result<(ShotArgs, Outputs)> {
        let desc = noisy(inputs[0])?;
        Ok((args, one(desc)))
    }

    fn run(args: &ShotArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let factor = args.factor;
        with_element!(inputs[0].desc.dtype, |T| {
            let (src, dst) = (inputs[0].elements::<T>(), out.elements::<T>());
            for (element, (d, &s)) in dst.iter_mut().zip(src).enumerate() {
                let s: f64 = s.convert();
                *d = (factor * poisson(s / factor, || args.rng.source(element))).convert();
            }
        });
        Ok(())
    }
}

/// Below this mean, inversion is used; above, rejection.
const CUTOFF: f64 = 10.0;

/// A Poisson variate; zero if the mean is invalid.
fn poisson<'a>(mean: f64, source: impl FnOnce() -> Source<'a>) -> f64 {
    if !(mean > 0.0 && mean.is_finite()) {
        return 0.0;
    }
    let mut source = source();
    if mean < CUTOFF { by_inversion(mean, &mut source) } else { by_rejection(mean, &mut source) }
}

/// Inversion: the first count whose cumulative probability exceeds a random number.
fn by_inversion(mean: f64, source: &mut Source<'_>) -> f64 {
    let [low, high, ..] = source.next();
    let mut part = fraction(low, high);
    let (mut count, mut chance) = (0.0, exp(-mean));
    // The probability of more than a hundred is below the resolution of a fraction.
    while part >= chance && count < 100.0 {
        part -= chance;
        count += 1.0;
        chance *= mean / count;
    }
    count
}

/// Hörmann, "The transformed rejection method for generating Poisson random variables", 1993:
/// algorithm PTRS, for means of at least ten.
fn by_rejection(mean: f64, source: &mut Source<'_>) -> f64 {
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let inverse_alpha = 1.123_9 + 1.132_8 / (b - 3.4);
    let v_r = 0.927_7 - 3.622_4 / (b - 2.0);
    let ln_mean = ln(mean);
    // At least four of five attempts succeed.
    for _ in 0..1000 {
        let [low, high, c, d] = source.next();
        let u = fraction(low, high) - 0.5;
        let v = 1.0 - fraction(c, d);
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || us < 0.013 && v > us {
            continue;
        }
        let left = ln(v) + ln(inverse_alpha) - ln(a / (us * us) + b);
        if left <= k * ln_mean - mean - ln_factorial(k) {
            return k;
        }
    }
    mean.floor()
}

/// Stirling's series, accurate to the last digits from k = 10 on.
fn ln_factorial(k: f64) -> f64 {
    const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;
    if k < 10.0 {
        let product: f64 = (1..=k as i32).map(f64::from).product();
        return ln(product);
    }
    let n = k + 1.0;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * n * n)) / (n * n)) / n;
    (n - 0.5) * ln(n) - n + HALF_LN_TAU + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::numeric::philox::Position;

    #[test]
    fn factorials_match_products() {
        let mut product = 1.0_f64;
        for k in 0..100 {
            product *= f64::from(k.max(1));
            assert!((ln_factorial(f64::from(k)) - product.ln()).abs() < 1e-9, "{k}");
        }
    }

    #[test]
    fn counts_have_the_mean_and_variance_of_poisson() {
        let stream = Position { seed: 1, sequence: 0, offset: 0, phase: 0 }.stream(0);
        for mean in [0.05, 1.0, 4.5, 9.99, 10.0, 25.0, 300.0, 1e6] {
            let count = 40_000;
            let draws: Vec<f64> = (0..count).map(|i| poisson(mean, || stream.source(i))).collect();
            let average = draws.iter().sum::<f64>() / count as f64;
            let spread = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count as f64;
            // Five standard errors.
            let error = 5.0 * (mean / count as f64).sqrt();
            assert!((average - mean).abs() < error, "{mean}: {average}");
            let error = 5.0 * (mean * (1.0 + 2.0 * mean) / count as f64).sqrt();
            assert!((spread - mean).abs() < error, "{mean}: {spread}");
        }
    }
}
