//! Reductions along axes.

pub(super) mod fold;
pub(super) mod plan;
mod store;

use std::marker::PhantomData;

use smallvec::SmallVec;

use self::fold::{Center, Extreme, Fold, Highest, Lowest, Real, Spread, Squares, Sum, fold};
use self::plan::Plan;
use self::store::{Total, store};
use super::{Entry, Family, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::value::{DType, Desc, Sample, Shape, collected, with_element, zeroed};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Reductions::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Reduced<Max>>("reductions.max"),
    Entry::new::<Reduced<Min>>("reductions.min"),
    Entry::new::<Reduced<SumOf>>("reductions.sum"),
    Entry::new::<Reduced<Mean>>("reductions.mean"),
    Entry::new::<Reduced<MeanSquare>>("reductions.mean_square"),
    Entry::new::<Reduced<Rms>>("reductions.rms"),
    Entry::new::<Variance<false>>("reductions.variance"),
    Entry::new::<Variance<true>>("reductions.std_dev"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Reductions {
            MeanShape { shape: Vec<usize>, expected: Vec<usize> },
        }
    }
}

args! {
    /// `axes` are the axes to reduce, `result` is the result's element type.
    pub struct ReduceArgs { axes: Vec<i64>, keep_dims: bool, result: DType }
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

/// Which axes are reduced, and how to traverse memory for that.
pub struct Reduction {
    reduced: Flags,
    walk: Plan,
}

impl Reduction {
    pub(super) fn new(reduced: Flags, shape: &[usize]) -> Reduction {
        let walk = Plan::new(shape, &reduced);
        Reduction { reduced, walk }
    }

    /// The reduction along `axes`, and the description of its result.
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

    /// Makes this the reduction of each sample of a stack. The stack's axis is kept, so elements are
    /// added in the same order.
    pub(super) fn stack(&mut self, shape: &[usize]) -> bool {
        self.reduced.insert(0, false);
        self.walk = Plan::new(shape, &self.reduced);
        true
    }

    pub(super) fn walk(&self) -> &Plan {
        &self.walk
    }
}

/// What a reduction computes from the elements that it traverses.
pub trait Reduce: Send + Sync + 'static {
    fn reduce(walk: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()>;
}

/// The kernel of a reduction.
pub struct Reduced<R>(PhantomData<R>);

impl<R: Reduce> Kernel for Reduced<R> {
    type Args = ReduceArgs;
    type Plan = Reduction;
    const TRAITS: Traits = Traits { stacks: true, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: ReduceArgs, inputs: &[&Desc]) -> Result<(Reduction, Outputs)> {
        Reduction::plan(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(plan: &Reduction, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        R::reduce(&plan.walk, &inputs[0], &mut outputs[0])
    }

    fn stack(plan: &mut Reduction, inputs: &[&Desc]) -> bool {
        plan.stack(&inputs[0].shape)
    }
}

pub struct Max;

impl Reduce for Max {
    fn reduce(walk: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        with_element!(input.desc.dtype, |T| extreme::<Highest<T>>(walk, input, out))
    }
}

pub struct Min;

impl Reduce for Min {
    fn reduce(walk: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        with_element!(input.desc.dtype, |T| extreme::<Lowest<T>>(walk, input, out))
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

impl Reduce for SumOf {
    fn reduce(walk: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        with_element!(input.desc.dtype, |T| {
            store(out, fold::<Sum<T>>(walk, input.elements(), &[()])?);
        });
        Ok(())
    }
}

pub struct Mean;

impl Reduce for Mean {
    fn reduce(walk: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        store(out, means(walk, input)?);
        Ok(())
    }
}

pub struct MeanSquare;

impl Reduce for MeanSquare {
    fn reduce(walk: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        store(out, mean_squares(walk, input)?);
        Ok(())
    }
}

pub struct Rms;

impl Reduce for Rms {
    fn reduce(walk: &Plan, input: &Sample, out: &mut Output<'_>) -> Result<()> {
        store(out, mean_squares(walk, input)?.into_iter().map(f64::sqrt).collect());
        Ok(())
    }
}

/// The mean of the elements of each result; NaN if there are none.
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

/// Reuses the memory of the sums, which have the same size.
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

/// A reduction of squared distances from a mean, which is the second input.
pub struct Spreading {
    reduction: Reduction,
    ddof: i64,
    /// The variance of single elements is zero, whatever the mean, as in DALI.
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

/// The variance, or with `ROOT` its square root.
pub struct Variance<const ROOT: bool>;

impl<const ROOT: bool> Kernel for Variance<ROOT> {
    type Args = SpreadArgs;
    type Plan = Spreading;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: SpreadArgs, inputs: &[&Desc]) -> Result<(Spreading, Outputs)> {
        Spreading::plan(&args, inputs)
    }

    fn run(plan: &Spreading, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let mut variances = plan.variances(inputs, out.desc.elements())?;
        if ROOT {
            variances.iter_mut().for_each(|variance| *variance = variance.sqrt());
        }
        store(out, variances);
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
