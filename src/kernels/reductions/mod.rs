//! Reductions along axes, and the normalisation that is made of them.

pub(super) mod fold;
pub(super) mod plan;
mod store;

use smallvec::SmallVec;

use self::fold::{Center, Extreme, Fold, Highest, Lowest, Real, Spread, Squares, Sum, fold};
use self::plan::Plan;
use self::store::{Total, store};
use super::{Entry, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::value::{DType, Desc, Sample, Shape, collected, with_element, zeroed};

pub const TABLE: &[Entry] = &[
    Entry::new::<Max>("reductions.max"),
    Entry::new::<Min>("reductions.min"),
    Entry::new::<SumOf>("reductions.sum"),
    Entry::new::<Mean>("reductions.mean"),
    Entry::new::<MeanSquare>("reductions.mean_square"),
    Entry::new::<Rms>("reductions.rms"),
    Entry::new::<Variance>("reductions.variance"),
    Entry::new::<StdDev>("reductions.std_dev"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// What is wrong with a call of this family.
        pub enum Reductions {
            MeanShape { shape: Vec<usize>, expected: Vec<usize> },
        }
    }
}

args! {
    /// `axes` are those to reduce.
    pub struct ExtremeArgs { axes: Vec<i64>, keep_dims: bool }
}

args! {
    /// `result` is the type that the result has.
    pub struct SumArgs { axes: Vec<i64>, keep_dims: bool, result: DType }
}

args! {
    pub struct SpreadArgs { axes: Vec<i64>, keep_dims: bool, ddof: i64, result: DType }
}

/// Whether each axis of a sample is reduced.
pub(super) type Flags = SmallVec<[bool; 6]>;

pub(super) fn reduced(axes: &[i64], ndim: usize) -> Result<Flags> {
    let mut reduced = Flags::from_elem(false, ndim);
    for &index in axes {
        match usize::try_from(index).ok().and_then(|axis| reduced.get_mut(axis)) {
            Some(slot) => *slot = true,
            None => {
                return Err(argument("axes", Argument::AxisOutside { axis: index, ndim }));
            }
        }
    }
    Ok(reduced)
}

pub(super) fn numeric(desc: &Desc) -> Result<()> {
    if desc.dtype.storage() == desc.dtype {
        return Ok(());
    }
    Err(unfit(0, Input::NotNumbers { dtype: desc.dtype.name() }))
}

/// Which axes are reduced, and how to walk through memory for it.
pub struct Reduction {
    reduced: Flags,
    walk: Plan,
}

impl Reduction {
    pub(super) fn new(reduced: Flags, shape: &[usize]) -> Reduction {
        let walk = Plan::new(shape, &reduced);
        Reduction { reduced, walk }
    }

    /// The reduction that `axes` ask for, and what it makes.
    fn plan(
        axes: &[i64],
        keep_dims: bool,
        dtype: DType,
        input: &Desc,
    ) -> Result<(Reduction, Outputs)> {
        numeric(input)?;
        let reduced = reduced(axes, input.ndim())?;
        let axes = input.shape.iter().zip(&reduced);
        let shape: Shape = if keep_dims {
            axes.map(|(&d, &reduced)| if reduced { 1 } else { d }).collect()
        } else {
            axes.filter(|&(_, &reduced)| !reduced).map(|(&d, _)| d).collect()
        };
        Ok((Reduction::new(reduced, &input.shape), one(Desc::new(dtype, &shape))))
    }

    /// Makes this the reduction of each sample of a stack. Its axis is one more that is kept, so
    /// that elements are added up in the same order.
    pub(super) fn stack(&mut self, shape: &[usize]) -> bool {
        self.reduced.insert(0, false);
        self.walk = Plan::new(shape, &self.reduced);
        true
    }

    pub(super) fn walk(&self) -> &Plan {
        &self.walk
    }
}

const STACKING: Traits = Traits { stacks: true, frames: Frames::Whole, ..Traits::DEFAULT };

pub struct Max;
pub struct Min;

impl Kernel for Max {
    type Args = ExtremeArgs;
    type Plan = Reduction;
    const TRAITS: Traits = STACKING;

    fn plan(args: ExtremeArgs, inputs: &[&Desc]) -> Result<(Reduction, Outputs)> {
        Reduction::plan(&args.axes, args.keep_dims, inputs[0].dtype, inputs[0])
    }

    fn run(plan: &Reduction, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        with_element!(inputs[0].desc.dtype, |T| extreme::<Highest<T>>(&plan.walk, &inputs[0], out))
    }

    fn stack(plan: &mut Reduction, inputs: &[&Desc]) -> bool {
        plan.stack(&inputs[0].shape)
    }
}

impl Kernel for Min {
    type Args = ExtremeArgs;
    type Plan = Reduction;
    const TRAITS: Traits = STACKING;

    fn plan(args: ExtremeArgs, inputs: &[&Desc]) -> Result<(Reduction, Outputs)> {
        Reduction::plan(&args.axes, args.keep_dims, inputs[0].dtype, inputs[0])
    }

    fn run(plan: &Reduction, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        with_element!(inputs[0].desc.dtype, |T| extreme::<Lowest<T>>(&plan.walk, &inputs[0], out))
    }

    fn stack(plan: &mut Reduction, inputs: &[&Desc]) -> bool {
        plan.stack(&inputs[0].shape)
    }
}

fn extreme<F: Fold<Center = ()>>(plan: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()>
where
    F::Item: Extreme,
    F::Total: Convert<F::Item>,
{
    let found = fold::<F>(plan, input.elements(), &[()])?;
    for (slot, total) in out.elements::<F::Item>().iter_mut().zip(found) {
        *slot = total.convert();
    }
    Ok(())
}

pub struct SumOf;

impl Kernel for SumOf {
    type Args = SumArgs;
    type Plan = Reduction;
    const TRAITS: Traits = STACKING;

    fn plan(args: SumArgs, inputs: &[&Desc]) -> Result<(Reduction, Outputs)> {
        Reduction::plan(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(plan: &Reduction, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        with_element!(inputs[0].desc.dtype, |T| {
            store(&mut outputs[0], fold::<Sum<T>>(&plan.walk, inputs[0].elements(), &[()])?);
        });
        Ok(())
    }

    fn stack(plan: &mut Reduction, inputs: &[&Desc]) -> bool {
        plan.stack(&inputs[0].shape)
    }
}

pub struct Mean;
pub struct MeanSquare;
pub struct Rms;

impl Kernel for Mean {
    type Args = SumArgs;
    type Plan = Reduction;
    const TRAITS: Traits = STACKING;

    fn plan(args: SumArgs, inputs: &[&Desc]) -> Result<(Reduction, Outputs)> {
        Reduction::plan(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(plan: &Reduction, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        store(&mut outputs[0], means(&plan.walk, &inputs[0])?);
        Ok(())
    }

    fn stack(plan: &mut Reduction, inputs: &[&Desc]) -> bool {
        plan.stack(&inputs[0].shape)
    }
}

impl Kernel for MeanSquare {
    type Args = SumArgs;
    type Plan = Reduction;
    const TRAITS: Traits = STACKING;

    fn plan(args: SumArgs, inputs: &[&Desc]) -> Result<(Reduction, Outputs)> {
        Reduction::plan(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(plan: &Reduction, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        store(&mut outputs[0], mean_squares(&plan.walk, &inputs[0])?);
        Ok(())
    }

    fn stack(plan: &mut Reduction, inputs: &[&Desc]) -> bool {
        plan.stack(&inputs[0].shape)
    }
}

impl Kernel for Rms {
    type Args = SumArgs;
    type Plan = Reduction;
    const TRAITS: Traits = STACKING;

    fn plan(args: SumArgs, inputs: &[&Desc]) -> Result<(Reduction, Outputs)> {
        Reduction::plan(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(plan: &Reduction, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let squares = mean_squares(&plan.walk, &inputs[0])?;
        store(&mut outputs[0], squares.into_iter().map(f64::sqrt).collect());
        Ok(())
    }

    fn stack(plan: &mut Reduction, inputs: &[&Desc]) -> bool {
        plan.stack(&inputs[0].shape)
    }
}

/// The mean of what goes into each result; "not a number" of nothing.
pub(super) fn means(plan: &Plan, input: &Sample) -> Result<Vec<f64>> {
    let count = plan.count() as f64;
    // Sums of 64-bit integers may not fit their own type.
    let wide: Option<Vec<f64>> = match input.desc.dtype {
        DType::I64 => Some(collected(input.elements::<i64>().iter().map(|&x| x as f64))?),
        DType::U64 => Some(collected(input.elements::<u64>().iter().map(|&x| x as f64))?),
        _ => None,
    };
    if let Some(wide) = wide {
        let sums = fold::<Sum<f64>>(plan, &wide, &[()])?;
        return Ok(averages(sums, count));
    }
    with_element!(input.desc.dtype, |T| {
        let sums = fold::<Sum<T>>(plan, input.elements(), &[()])?;
        Ok(averages(sums, count))
    })
}

/// In the memory of the sums, which are of the same size.
fn averages(sums: Vec<impl Total>, count: f64) -> Vec<f64> {
    sums.into_iter().map(|sum| sum.real() / count).collect()
}

fn mean_squares(plan: &Plan, input: &Sample) -> Result<Vec<f64>> {
    let count = plan.count() as f64;
    with_element!(input.desc.dtype, |T| {
        let sums = fold::<Squares<T>>(plan, input.elements(), &[()])?;
        Ok(averages(sums, count))
    })
}

pub struct Variance;
pub struct StdDev;

/// A reduction of squared distances from a mean, which is the second input.
pub struct Spreading {
    reduction: Reduction,
    ddof: i64,
    /// Single elements don't vary, whatever the mean; as in DALI.
    single: bool,
}

impl Spreading {
    fn plan(args: &SpreadArgs, inputs: &[&Desc]) -> Result<(Spreading, Outputs)> {
        let (input, mean) = (inputs[0], inputs[1]);
        let (reduction, outputs) = Reduction::plan(&args.axes, args.keep_dims, args.result, input)?;
        let single = args.axes.is_empty() && input.ndim() > 0;
        let given = |s: &Desc| s.shape.iter().copied().filter(|&d| d != 1).collect::<Shape>();
        if !single && mean.elements() != 1 && given(mean) != given(&outputs[0]) {
            let (shape, expected) = (mean.shape.to_vec(), outputs[0].shape.to_vec());
            return Err(unfit(1, problem::Reductions::MeanShape { shape, expected }));
        }
        Ok((Spreading { reduction, ddof: args.ddof, single }, outputs))
    }

    fn variances(&self, inputs: &[Sample], results: usize) -> Result<Vec<f64>> {
        if self.single {
            return zeroed(results);
        }
        let (input, mean, walk) = (&inputs[0], &inputs[1], &self.reduction.walk);
        let centers: Vec<f64> = with_element!(mean.desc.dtype, |T| {
            collected(mean.elements::<T>().iter().map(|&x| x.convert()))?
        });
        let freedom = walk.count() as f64 - self.ddof as f64;
        Ok(averages(spreads(walk, input, &centers)?, freedom))
    }
}

impl Kernel for Variance {
    type Args = SpreadArgs;
    type Plan = Spreading;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: SpreadArgs, inputs: &[&Desc]) -> Result<(Spreading, Outputs)> {
        Spreading::plan(&args, inputs)
    }

    fn run(plan: &Spreading, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        store(out, plan.variances(inputs, out.desc.elements())?);
        Ok(())
    }
}

impl Kernel for StdDev {
    type Args = SpreadArgs;
    type Plan = Spreading;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: SpreadArgs, inputs: &[&Desc]) -> Result<(Spreading, Outputs)> {
        Spreading::plan(&args, inputs)
    }

    fn run(plan: &Spreading, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let variances = plan.variances(inputs, out.desc.elements())?;
        store(out, variances.into_iter().map(f64::sqrt).collect());
        Ok(())
    }
}

/// The sum of squared distances from `centers`: one for all, or one for each result.
pub(super) fn spreads(plan: &Plan, input: &Sample, centers: &[f64]) -> Result<Vec<f64>> {
    with_element!(input.desc.dtype, |T| {
        let centers: Vec<Center<T>> = collected(centers.iter().map(|&c| Real::from_f64(c)))?;
        fold::<Spread<T>>(plan, input.elements(), &centers)
    })
}
