//! Reductions along axes, and the normalisation that is made of them.

pub(super) mod fold;
pub(super) mod plan;
mod store;

use smallvec::SmallVec;

use self::fold::{Center, Extreme, Fold, Highest, Lowest, Real, Spread, Squares, Sum, fold};
use self::plan::Plan;
use self::store::{Total, store};
use super::{Entry, Kernel, Result, Space, args};
use crate::kernels::contract::alike::axes_of_stack;
use crate::kernels::generic::cast::Convert;
use crate::value::{Cause, DType, Desc, Sample, Shape, collected, with_element, zeroed};

pub const TABLE: &[Entry] = &[
    Entry::one::<Max>("reductions.max"),
    Entry::one::<Min>("reductions.min"),
    Entry::one::<SumOf>("reductions.sum"),
    Entry::one::<Mean>("reductions.mean"),
    Entry::one::<MeanSquare>("reductions.mean_square"),
    Entry::one::<Rms>("reductions.rms"),
    Entry::one::<Variance>("reductions.variance"),
    Entry::one::<StdDev>("reductions.std_dev"),
];

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
                let problem = format!("names the axis {index} of data with {ndim} dimensions");
                return Err(Cause::Argument { name: "axes", problem: problem.into() });
            }
        }
    }
    Ok(reduced)
}

/// Makes axes of samples those of a stack of them, if they are axes. The stack's own is one more
/// that is kept, so that elements are added up in the same order.
pub(super) fn move_axes(axes: &mut Vec<i64>) -> bool {
    let Some(moved) = axes_of_stack(axes).map(Iterator::collect) else { return false };
    *axes = moved;
    true
}

pub(super) fn numeric(desc: &Desc) -> Result<()> {
    if desc.dtype.storage() == desc.dtype {
        return Ok(());
    }
    let problem = format!("values of type {} are names, not numbers", desc.dtype.name());
    Err(Cause::Input { index: 0, problem: problem.into() })
}

fn output(axes: &[i64], keep_dims: bool, dtype: DType, input: &Desc) -> Result<Desc> {
    numeric(input)?;
    let reduced = reduced(axes, input.ndim())?;
    let axes = input.shape.iter().zip(&reduced);
    let shape: Shape = if keep_dims {
        axes.map(|(&d, &reduced)| if reduced { 1 } else { d }).collect()
    } else {
        axes.filter(|&(_, &reduced)| !reduced).map(|(&d, _)| d).collect()
    };
    Ok(Desc::new(dtype, &shape))
}

fn plan(axes: &[i64], input: &Sample) -> Result<Plan> {
    Ok(Plan::new(&input.desc.shape, &reduced(axes, input.desc.ndim())?))
}

pub struct Max;
pub struct Min;

impl Kernel for Max {
    type Args = ExtremeArgs;
    const STACKS: bool = true;

    fn output(args: &ExtremeArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, inputs[0].dtype, inputs[0])
    }

    fn run(args: &ExtremeArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let plan = plan(&args.axes, &inputs[0])?;
        with_element!(inputs[0].desc.dtype, |T| extreme::<Highest<T>>(&plan, &inputs[0], out))
    }

    fn for_stack(args: &mut ExtremeArgs, _: usize) -> bool {
        move_axes(&mut args.axes)
    }
}

impl Kernel for Min {
    type Args = ExtremeArgs;
    const STACKS: bool = true;

    fn output(args: &ExtremeArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, inputs[0].dtype, inputs[0])
    }

    fn run(args: &ExtremeArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let plan = plan(&args.axes, &inputs[0])?;
        with_element!(inputs[0].desc.dtype, |T| extreme::<Lowest<T>>(&plan, &inputs[0], out))
    }

    fn for_stack(args: &mut ExtremeArgs, _: usize) -> bool {
        move_axes(&mut args.axes)
    }
}

fn extreme<F: Fold<Center = ()>>(plan: &Plan, input: &Sample, out: &mut Space) -> Result<()>
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
    const STACKS: bool = true;

    fn output(args: &SumArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(args: &SumArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let plan = plan(&args.axes, &inputs[0])?;
        with_element!(inputs[0].desc.dtype, |T| {
            store(out, fold::<Sum<T>>(&plan, inputs[0].elements(), &[()])?);
        });
        Ok(())
    }

    fn for_stack(args: &mut SumArgs, _: usize) -> bool {
        move_axes(&mut args.axes)
    }
}

pub struct Mean;
pub struct MeanSquare;
pub struct Rms;

impl Kernel for Mean {
    type Args = SumArgs;
    const STACKS: bool = true;

    fn output(args: &SumArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(args: &SumArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let plan = plan(&args.axes, &inputs[0])?;
        store(out, means(&plan, &inputs[0])?);
        Ok(())
    }

    fn for_stack(args: &mut SumArgs, _: usize) -> bool {
        move_axes(&mut args.axes)
    }
}

impl Kernel for MeanSquare {
    type Args = SumArgs;
    const STACKS: bool = true;

    fn output(args: &SumArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(args: &SumArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let plan = plan(&args.axes, &inputs[0])?;
        store(out, mean_squares(&plan, &inputs[0])?);
        Ok(())
    }

    fn for_stack(args: &mut SumArgs, _: usize) -> bool {
        move_axes(&mut args.axes)
    }
}

impl Kernel for Rms {
    type Args = SumArgs;
    const STACKS: bool = true;

    fn output(args: &SumArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(args: &SumArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let plan = plan(&args.axes, &inputs[0])?;
        let squares = mean_squares(&plan, &inputs[0])?;
        store(out, squares.into_iter().map(f64::sqrt).collect());
        Ok(())
    }

    fn for_stack(args: &mut SumArgs, _: usize) -> bool {
        move_axes(&mut args.axes)
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

impl Kernel for Variance {
    type Args = SpreadArgs;

    fn output(args: &SpreadArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(args: &SpreadArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        store(out, variances(args, inputs, out)?);
        Ok(())
    }
}

impl Kernel for StdDev {
    type Args = SpreadArgs;

    fn output(args: &SpreadArgs, inputs: &[&Desc]) -> Result<Desc> {
        output(&args.axes, args.keep_dims, args.result, inputs[0])
    }

    fn run(args: &SpreadArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let variances = variances(args, inputs, out)?;
        store(out, variances.into_iter().map(f64::sqrt).collect());
        Ok(())
    }
}

fn variances(args: &SpreadArgs, inputs: &[Sample], out: &Space) -> Result<Vec<f64>> {
    let (input, mean) = (&inputs[0], &inputs[1]);
    if args.axes.is_empty() && input.desc.ndim() > 0 {
        // Single elements don't vary, whatever the mean; as in the reference.
        return zeroed(out.desc.elements());
    }
    let plan = plan(&args.axes, input)?;
    let given = |s: &Desc| s.shape.iter().copied().filter(|&d| d != 1).collect::<Shape>();
    if mean.desc.elements() != 1 && given(&mean.desc) != given(&out.desc) {
        let problem = format!(
            "the mean has the shape {:?}; it needs one number, or one for each result, in the \
             shape {:?}",
            &mean.desc.shape[..],
            &out.desc.shape[..]
        );
        return Err(Cause::Input { index: 1, problem: problem.into() });
    }
    let centers: Vec<f64> = with_element!(mean.desc.dtype, |T| {
        collected(mean.elements::<T>().iter().map(|&x| x.convert()))?
    });
    let freedom = plan.count() as f64 - args.ddof as f64;
    Ok(averages(spreads(&plan, input, &centers)?, freedom))
}

/// The sum of squared distances from `centers`: one for all, or one for each result.
pub(super) fn spreads(plan: &Plan, input: &Sample, centers: &[f64]) -> Result<Vec<f64>> {
    with_element!(input.desc.dtype, |T| {
        let centers: Vec<Center<T>> = collected(centers.iter().map(|&c| Real::from_f64(c)))?;
        fold::<Spread<T>>(plan, input.elements(), &centers)
    })
}
