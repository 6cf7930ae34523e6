//! AugMix: an image is mixed with the results of several short chains of operations.

use super::chain::Step;
use super::policies::{AUGMIX, AUGMIX_CHOICES, AUGMIX_PARTIAL};
use super::{TRAITS, augmented, between, draws, each_image};
use crate::kernels::augmentation::Floats;
use crate::kernels::contract::problems::argument;
use crate::kernels::numeric::isa::{Isa, vectorized};
use crate::kernels::numeric::philox::Stream;
use crate::kernels::random::beta::BetaShape;
use crate::kernels::random::problem::Random;
use crate::kernels::warp::Interpolation;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args};
use crate::value::{Desc, Sample, with_room, zeroed};

pub struct AugMix;

args! {
    pub struct AugMixArgs {
        all_ops: bool,
        alpha: f64,
        chain_depth: i64,
        fill_value: Floats,
        interp_type: Interpolation,
        mixture_width: i64,
        severity: i64,
        rng: Stream,
    }
}

/// A chain and its mixing weight.
struct Branch {
    weight: f32,
    steps: Vec<Step>,
}

pub struct Mixture {
    /// Weight of the original image.
    weight: f32,
    branches: Vec<Branch>,
    fill: Floats,
    interpolation: Interpolation,
}

/// Number of magnitude levels; `severity` is one of them.
const LEVELS: i64 = 10;
const MOST_BRANCHES: i64 = 100;
const DEEPEST: i64 = 100;
/// Maximum depth of chains with random depth.
const RANDOM_DEPTH: usize = 3;

/// Sub-stream of the weights, separate from that of the operations.
const WEIGHTS: u32 = 1;

impl Kernel for AugMix {
    type Args = AugMixArgs;
    type Plan = Mixture;
    const TRAITS: Traits = TRAITS;

    fn plan(args: AugMixArgs, inputs: &[&Desc]) -> Result<(Mixture, Outputs)> {
        let outputs = augmented(inputs[0], &args.fill_value)?;
        let severity = between("severity", args.severity, 1, LEVELS)?;
        let width = between("mixture_width", args.mixture_width, 1, MOST_BRANCHES)?;
        let depth = between("chain_depth", args.chain_depth.max(0), 0, DEEPEST)?;
        // Weights are computed in f32, so the parameters must be representable.
        let most = (args.alpha * width as f64) as f32;
        if !(args.alpha as f32 > 0.0 && most.is_finite()) {
            return Err(argument("alpha", Random::NotPositiveFinite { given: args.alpha }));
        }
        let choices =
            if args.all_ops { &AUGMIX_CHOICES[..] } else { &AUGMIX_CHOICES[..AUGMIX_PARTIAL] };
        let mut draws = draws(&args.rng, &AUGMIX, inputs[0]);
        let rng = args.rng.apart(WEIGHTS);
        let share = |number: usize, first: f64, second: f64| {
            let mut drawn = [0.0];
            BetaShape::new(first, second).fill(Isa::best(), &rng, number as u64, &mut drawn);
            drawn[0]
        };
        let weight = share(0, args.alpha, args.alpha);
        // A Dirichlet distribution, by stick-breaking.
        let mut rest = 1.0 - weight;
        let mut branches = with_room(width)?;
        for number in 0..width {
            let behind = width - 1 - number;
            let part = match behind {
                0 => 1.0,
                _ => share(number + 1, args.alpha, args.alpha * behind as f64),
            };
            let depth = if depth > 0 { depth } else { 1 + draws.below(RANDOM_DEPTH) };
            let mut steps = with_room(depth)?;
            for _ in 0..depth {
                let operation = choices[draws.below(choices.len())];
                let level = draws.below(severity) as f64 / (LEVELS - 1) as f64;
                steps.push(draws.step(operation, level));
            }
            branches.push(Branch { weight: (rest * part) as f32, steps });
            rest *= 1.0 - part;
        }
        let (fill, interpolation) = (args.fill_value, args.interp_type);
        Ok((Mixture { weight: weight as f32, branches, fill, interpolation }, outputs))
    }

    fn run(plan: &Mixture, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let mut sums = Vec::new();
        each_image(
            &inputs[0],
            &mut outputs[0],
            plan.interpolation,
            &plan.fill,
            |chains, src, dst| {
                if sums.is_empty() {
                    sums = zeroed::<f32>(src.len())?;
                }
                add(src, plan.weight, &mut sums, true);
                for branch in &plan.branches {
                    chains.run(&branch.steps, src, dst)?;
                    add(dst, branch.weight, &mut sums, false);
                }
                cut(&sums, dst);
                Ok(())
            },
        )
    }
}

/// Accumulates a weighted image; the first one initializes the sums.
fn add(image: &[u8], weight: f32, sums: &mut [f32], first: bool) {
    vectorized!(copying weight, first; {
        for (sum, &x) in sums.iter_mut().zip(image) {
            let part = f32::from(x) * weight;
            *sum = if first { part } else { *sum + part };
        }
    });
}

/// Truncates the sums to bytes, like torchvision. A small epsilon compensates for weights that sum
/// to slightly less than 1.
fn cut(sums: &[f32], out: &mut [u8]) {
    vectorized!({
        for (out, &sum) in out.iter_mut().zip(sums) {
            let sum = sum + 1e-3;
            // Not `clamp`, which would pass NaN through.
            let sum = if sum > 0.0 { sum } else { 0.0 };
            let sum = if sum < 255.0 { sum } else { 255.0 };
            // SAFETY: `sum` is between 0 and 255.
            *out = unsafe { sum.to_int_unchecked::<i32>() as u8 };
        }
    });
}
