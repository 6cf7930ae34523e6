//! Automatic augmentation: each sample draws its own operations, and only those are executed.

mod augmix;
mod chain;
mod policies;

use smallvec::SmallVec;

use self::chain::{Chains, Operation, Step};
use self::policies::{
    CHOICES, CIFAR10, Draws, IMAGENET, POLICY_LEVELS, Policy, STANDARD, SVHN, Space, WIDE,
};
use self::problem::AutoAug;
use super::augmentation::{Floats, channels_of, check_fill};
use super::photometric::Stack;
use super::{
    Arg, Entry, Family, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one,
};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::philox::Stream;
use crate::kernels::warp::Interpolation;
use crate::value::{DType, Desc, Problem, Sample, collected, with_room, zeroed};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::AutoAug::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Apply>("auto_aug.apply"),
    Entry::new::<AutoAugment>("auto_aug.auto_augment"),
    Entry::new::<RandAugment>("auto_aug.rand_augment"),
    Entry::new::<TrivialAugmentWide>("auto_aug.trivial_augment_wide"),
    Entry::new::<augmix::AugMix>("auto_aug.augmix"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of the automatic augmentation operators.
        pub enum AutoAug {
            Operation { given: i64, last: usize },
            Magnitudes { given: usize, operations: usize },
            ManyPixels { pixels: usize },
        }
    }
}

/// Checks the input, which must be uint8 with one or three channels, and the fill value.
fn augmented(input: &Desc, fill: &[f64]) -> Result<Outputs> {
    if input.dtype != DType::U8 {
        return Err(unfit(0, Input::Type { wanted: "uint8", dtype: input.dtype.name() }));
    }
    let given = channels_of(input);
    if given != 1 && given != 3 {
        return Err(unfit(0, Input::Channels { wanted: "1 or 3", given }));
    }
    let Stack { height, width, .. } = Stack::of(input);
    // Histograms use 32-bit counters.
    if u32::try_from(height * width).is_err() {
        return Err(unfit(0, AutoAug::ManyPixels { pixels: height * width }));
    }
    check_fill(fill, input)?;
    Ok(one(input.clone()))
}

/// Height and width of the images of a sample.
fn sides(input: &Desc) -> (usize, usize) {
    let stack = Stack::of(input);
    (stack.height, stack.width)
}

/// Calls `work` for each image of a sample, with interleaved channels in any layout.
fn each_image(
    input: &Sample,
    out: &mut Output<'_>,
    interpolation: Interpolation,
    fill: &[f64],
    mut work: impl FnMut(&mut Chains<'_>, &[u8], &mut [u8]) -> Result<()>,
) -> Result<()> {
    if input.desc.elements() == 0 {
        return Ok(());
    }
    let channels = channels_of(&input.desc);
    let fill: SmallVec<[u8; 4]> =
        (0..channels).map(|channel| fill[channel % fill.len()].convert()).collect();
    let planes = Stack::of(&input.desc);
    let planar = planes.channels != channels;
    let stack = Stack { channels, ..planes };
    let mut chains = Chains::new(stack, interpolation, &fill);
    let pairs = input.elements::<u8>().chunks_exact(stack.elements());
    let pairs = pairs.zip(out.elements::<u8>().chunks_exact_mut(stack.elements()));
    if !planar {
        for (src, dst) in pairs {
            work(&mut chains, src, dst)?;
        }
        return Ok(());
    }
    let (mut before, mut after) = (zeroed::<u8>(stack.elements())?, zeroed(stack.elements())?);
    let plane = stack.height * stack.width;
    for (src, dst) in pairs {
        for (channel, src) in src.chunks_exact(plane).enumerate() {
            let side_by_side = before.iter_mut().skip(channel).step_by(channels);
            side_by_side.zip(src).for_each(|(to, &from)| *to = from);
        }
        work(&mut chains, &before, &mut after)?;
        for (channel, dst) in dst.chunks_exact_mut(plane).enumerate() {
            let side_by_side = after.iter().skip(channel).step_by(channels);
            dst.iter_mut().zip(side_by_side).for_each(|(to, &from)| *to = from);
        }
    }
    Ok(())
}

/// The operations of a sample, and how to run them.
pub struct Plan {
    steps: Vec<Step>,
    fill: Floats,
    interpolation: Interpolation,
}

fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
    let Plan { steps, fill, interpolation } = plan;
    each_image(&inputs[0], &mut outputs[0], *interpolation, fill, |chains, src, dst| {
        chains.run(steps, src, dst)
    })
}

const TRAITS: Traits =
    Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

pub struct Apply;

args! {
    pub struct ApplyArgs {
        fill_value: Floats,
        interp_type: Interpolation,
        magnitudes: Vec<f64>,
        operations: Vec<i64>,
    }
}

impl Kernel for Apply {
    type Args = ApplyArgs;
    type Plan = Plan;
    const TRAITS: Traits = TRAITS;

    fn plan(args: ApplyArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let outputs = augmented(inputs[0], &args.fill_value)?;
        let (given, operations) = (args.magnitudes.len(), args.operations.len());
        if given != operations && given != 1 {
            return Err(argument("magnitudes", AutoAug::Magnitudes { given, operations }));
        }
        let mut steps = with_room(operations)?;
        for (number, &given) in args.operations.iter().enumerate() {
            let found = usize::try_from(given).ok().and_then(|code| Operation::ALL.get(code));
            let Some(&operation) = found else {
                let last = Operation::ALL.len() - 1;
                return Err(argument("operations", AutoAug::Operation { given, last }));
            };
            let magnitude = args.magnitudes[number % args.magnitudes.len()];
            steps.push(Step { operation, magnitude }.checked()?);
        }
        let plan = Plan { steps, fill: args.fill_value, interpolation: args.interp_type };
        Ok((plan, outputs))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        run(plan, inputs, outputs)
    }
}

/// Random decisions for a sample.
fn draws<'a>(rng: &'a Stream, space: &'static Space, input: &Desc) -> Draws<'a> {
    let (height, width) = sides(input);
    Draws { source: rng.source(0), space, height, width }
}

impl FromArg for &'static Policy {
    fn from_constant(arg: &Arg) -> std::result::Result<&'static Policy, Problem> {
        match String::from_constant(arg)?.as_str() {
            "imagenet" => Ok(&IMAGENET),
            "cifar10" => Ok(&CIFAR10),
            "svhn" => Ok(&SVHN),
            other => {
                let choices = "\"imagenet\", \"cifar10\", \"svhn\"";
                Err(Argument::OneOf { choices, given: format!("{other:?}") }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<&'static Policy, Problem> {
        Err(Argument::SameForAll.into())
    }
}

pub struct AutoAugment;

args! {
    pub struct AutoAugmentArgs {
        fill_value: Floats,
        interp_type: Interpolation,
        policy: &'static Policy,
        rng: Stream,
    }
}

impl Kernel for AutoAugment {
    type Args = AutoAugmentArgs;
    type Plan = Plan;
    const TRAITS: Traits = TRAITS;

    fn plan(args: AutoAugmentArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let outputs = augmented(inputs[0], &args.fill_value)?;
        let mut draws = draws(&args.rng, &STANDARD, inputs[0]);
        let mut steps = with_room(2)?;
        for (operation, chance, level) in args.policy[draws.below(args.policy.len())] {
            if draws.happens(chance) {
                steps.push(draws.step(operation, level as f64 / (POLICY_LEVELS - 1) as f64));
            }
        }
        let plan = Plan { steps, fill: args.fill_value, interpolation: args.interp_type };
        Ok((plan, outputs))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        run(plan, inputs, outputs)
    }
}

/// Maximum number of operations per sample.
const MOST_OPERATIONS: i64 = 100;

/// Maximum number of magnitude levels.
const MOST_BINS: i64 = 1 << 30;

fn between(name: &'static str, given: i64, low: i64, high: i64) -> Result<usize> {
    if (low..=high).contains(&given) {
        return Ok(given as usize);
    }
    let (low, high, given) = (low as f64, high as f64, given as f64);
    Err(argument(name, Argument::Between { low, high, given }))
}

pub struct RandAugment;

args! {
    pub struct RandAugmentArgs {
        fill_value: Floats,
        interp_type: Interpolation,
        magnitude: i64,
        num_magnitude_bins: i64,
        num_ops: i64,
        rng: Stream,
    }
}

impl Kernel for RandAugment {
    type Args = RandAugmentArgs;
    type Plan = Plan;
    const TRAITS: Traits = TRAITS;

    fn plan(args: RandAugmentArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let outputs = augmented(inputs[0], &args.fill_value)?;
        let bins = between("num_magnitude_bins", args.num_magnitude_bins, 2, MOST_BINS)?;
        let magnitude = between("magnitude", args.magnitude, 0, bins as i64 - 1)?;
        let count = between("num_ops", args.num_ops, 0, MOST_OPERATIONS)?;
        let level = magnitude as f64 / (bins - 1) as f64;
        let mut draws = draws(&args.rng, &STANDARD, inputs[0]);
        let steps = collected((0..count).map(|_| {
            let operation = CHOICES[draws.below(CHOICES.len())];
            draws.step(operation, level)
        }))?;
        let plan = Plan { steps, fill: args.fill_value, interpolation: args.interp_type };
        Ok((plan, outputs))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        run(plan, inputs, outputs)
    }
}

pub struct TrivialAugmentWide;

args! {
    pub struct TrivialAugmentWideArgs {
        fill_value: Floats,
        interp_type: Interpolation,
        num_magnitude_bins: i64,
        rng: Stream,
    }
}

impl Kernel for TrivialAugmentWide {
    type Args = TrivialAugmentWideArgs;
    type Plan = Plan;
    const TRAITS: Traits = TRAITS;

    fn plan(args: TrivialAugmentWideArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let outputs = augmented(inputs[0], &args.fill_value)?;
        let bins = between("num_magnitude_bins", args.num_magnitude_bins, 2, MOST_BINS)?;
        let mut draws = draws(&args.rng, &WIDE, inputs[0]);
        let operation = CHOICES[draws.below(CHOICES.len())];
        let level = draws.below(bins) as f64 / (bins - 1) as f64;
        let steps = vec![draws.step(operation, level)];
        let plan = Plan { steps, fill: args.fill_value, interpolation: args.interp_type };
        Ok((plan, outputs))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        run(plan, inputs, outputs)
    }
}
