//! Normalisation: shifts and scales data to a given mean and standard deviation.
//!
//! Statistics of a whole batch are computed in two steps, so that samples are read in parallel:
//! `moments` of each sample, then `shared_moments` of all of them.

use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

use smallvec::smallvec;

use super::contract::output::Writer;
use super::generic::cast::Convert;
use super::numeric::isa::vectorized;
use super::reductions::fold::{Center, Real};
use super::reductions::plan::Plan;
use super::reductions::{Flags, Reduction, means, numeric, reduced, spreads};
use super::{
    Arg, BatchKernel, Entry, Family, Frames, FromArg, Kernel, Output, OutputBuffer, Outputs,
    Result, Samples, Traits, Work, args, one,
};
use crate::kernels::contract::problems::{argument, unfit};
use crate::value::Problem;
use crate::value::{
    Cause, DType, Desc, Element, Sample, Shape, collected, filled, with_element, zeroed,
};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Normalize::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Normalize>("normalize"),
    Entry::new::<Moments>("moments"),
    Entry { name: "shared_moments", args: &["ddof"], cpu: || Work::Batch(Arc::new(SharedMoments)) },
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Normalize {
            Shape { given: Vec<usize>, shape: Vec<usize>, expected: Vec<usize> },
            NoAxis { other: &'static str },
            EmptyBatch,
            Ragged { sample: usize, shape: Vec<usize>, first: Vec<usize> },
        }
    }
}

pub struct Normalize;

args! {
    /// `shared` has the moments of the whole batch, if they are to be used.
    pub struct NormalizeArgs {
        axes: Option<Vec<i64>>,
        mean: Option<Given>,
        stddev: Option<Given>,
        shared: Option<Vec<f64>>,
        ddof: i64,
        epsilon: f64,
        scale: f64,
        shift: f64,
        dtype: DType,
    }
}

/// A mean or standard deviation given by the caller.
struct Given {
    /// `None` for a single number.
    shape: Option<Shape>,
    values: Vec<f64>,
}

impl FromArg for Given {
    fn from_constant(arg: &Arg) -> std::result::Result<Given, Problem> {
        Ok(Given { shape: None, values: vec![f64::from_constant(arg)?] })
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Given, Problem> {
        let shape = (sample.desc.ndim() > 0).then(|| sample.desc.shape.clone());
        Ok(Given { shape, values: Vec::from_sample(sample)? })
    }
}

/// The arguments, and the reduction that computes statistics along their axes.
pub struct Normalizing {
    args: NormalizeArgs,
    reduction: Reduction,
}

impl Kernel for Normalize {
    type Args = NormalizeArgs;
    type Plan = Normalizing;
    const TRAITS: Traits =
        Traits { shaped_by_args: false, stacks: true, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: NormalizeArgs, inputs: &[&Desc]) -> Result<(Normalizing, Outputs)> {
        numeric(inputs[0])?;
        let reduction = reduction(&args, &inputs[0].shape)?;
        let desc = Desc { dtype: args.dtype, ..inputs[0].clone() };
        Ok((Normalizing { args, reduction }, one(desc)))
    }

    fn run(plan: &Normalizing, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        let Normalizing { args, reduction } = plan;
        let walk = reduction.walk();
        if walk.is_empty() {
            // Avoids computing statistics, which can be many even if there is no data.
            return Ok(());
        }
        let statistics = Statistics::new(args, walk, input)?;
        with_element!(input.desc.dtype, |T| {
            apply::<T, Center<T>>(walk, input.elements(), &statistics, args.shift, out)
        })
    }

    fn stack(plan: &mut Normalizing, inputs: &[&Desc]) -> bool {
        // Statistics that are arrays would have to be repeated.
        let single = |given: &Option<Given>| given.as_ref().is_none_or(|g| g.shape.is_none());
        let args = &plan.args;
        let stacks = single(&args.mean) && single(&args.stddev) && args.shared.is_none();
        stacks && plan.reduction.stack(&inputs[0].shape)
    }
}

/// The axes of the statistics; without `axes`, those along which the given statistics are
/// broadcast.
fn reduction(args: &NormalizeArgs, shape: &[usize]) -> Result<Reduction> {
    let given = [("mean", &args.mean), ("stddev", &args.stddev)];
    let arrays =
        given.into_iter().filter_map(|(name, given)| Some((name, given.as_ref()?.shape.as_ref()?)));
    let reduced = match (&args.axes, arrays.clone().next()) {
        (Some(axes), _) => reduced(axes, shape.len())?,
        (None, Some((_, given))) => {
            (0..shape.len()).map(|axis| given.get(axis) == Some(&1)).collect()
        }
        (None, None) => Flags::from_elem(true, shape.len()),
    };
    let expected: Shape =
        shape.iter().zip(&reduced).map(|(&d, &r)| if r { 1 } else { d }).collect();
    for (name, given) in arrays {
        if *given != expected {
            let (shape, given) = (shape.to_vec(), given.to_vec());
            let expected = expected.to_vec();
            return Err(argument(name, problem::Normalize::Shape { given, shape, expected }));
        }
    }
    if args.axes.is_none() && !reduced.is_empty() && !reduced.contains(&true) {
        for (name, given, other) in
            [("mean", &args.mean, "stddev"), ("stddev", &args.stddev, "mean")]
        {
            if given.is_none() {
                return Err(argument(name, problem::Normalize::NoAxis { other }));
            }
        }
    }
    Ok(Reduction::new(reduced, shape))
}

/// What to subtract and to multiply by, for each group of elements that share a mean.
struct Statistics {
    means: Vec<f64>,
    factors: Vec<f64>,
}

impl Statistics {
    fn new(args: &NormalizeArgs, plan: &Plan, input: &Sample) -> Result<Statistics> {
        let kept = plan.kept();
        let each = |given: &Given| match given.shape {
            None => filled(given.values[0], kept),
            Some(_) => collected(given.values.iter().copied()),
        };
        let shared = args.shared.as_deref().map(|shared| shared.split_at(shared.len() / 2));
        if shared.is_some_and(|(means, _)| means.len() != kept) {
            return Err(Cause::Internal("shared moments of another shape".into()));
        }
        let means = match (&args.mean, shared) {
            (Some(given), _) => each(given)?,
            (None, Some((means, _))) => collected(means.iter().copied())?,
            (None, None) => means(plan, input)?,
        };
        let factor = |variance: f64| match variance + args.epsilon {
            // Constant data becomes zero.
            0.0 => 0.0,
            spread => args.scale / spread.sqrt(),
        };
        let factors = match (&args.stddev, shared) {
            (Some(given), _) if args.epsilon == 0.0 => {
                let single = given.shape.is_none();
                let factor = |s: f64| if s == 0.0 && !single { 0.0 } else { args.scale / s };
                each(given)?.into_iter().map(factor).collect()
            }
            (Some(given), _) => each(given)?.into_iter().map(|s| factor(s * s)).collect(),
            (None, Some((_, variances))) => collected(variances.iter().copied().map(factor))?,
            (None, None) => {
                let freedom = plan.count() as f64 - args.ddof as f64;
                let variance = |spread| if freedom > 0.0 { spread / freedom } else { 0.0 };
                let spreads = exact_spreads(plan, input, &means, args.mean.is_some())?;
                spreads.into_iter().map(|spread| factor(variance(spread))).collect()
            }
        };
        Ok(Statistics { means, factors })
    }
}

/// Sums of squared distances from the means. Means are rounded to the type that distances are
/// computed in; the error that this adds is subtracted, unless the means were given.
fn exact_spreads(plan: &Plan, input: &Sample, means: &[f64], given: bool) -> Result<Vec<f64>> {
    let mut spreads = spreads(plan, input, means)?;
    if !given {
        with_element!(input.desc.dtype, |T| {
            for (spread, &mean) in spreads.iter_mut().zip(means) {
                let rounded: f64 = Center::<T>::from_f64(mean).convert();
                let excess = plan.count() as f64 * (mean - rounded) * (mean - rounded);
                // NaN stays NaN.
                *spread = if *spread < excess { 0.0 } else { *spread - excess };
            }
        });
    }
    Ok(spreads)
}

/// Elements processed at a time, so that intermediate results stay in the L1 cache.
const TILE: usize = 1024;
/// Rows of fewer elements are combined into tiles.
const SHORT: usize = 64;

/// Receives results of type `R`, in order.
enum Sink<'a, 's, R> {
    Direct(Writer<'a, 's, R>),
    /// Results are converted first; `start` is the index of the next one.
    Converted {
        out: Output<'a>,
        start: usize,
        buffer: [R; TILE],
    },
}

impl<R: Computed> Sink<'_, '_, R> {
    /// Writes the next results, at most a tile of them.
    #[inline]
    fn write(&mut self, count: usize, compute: impl FnOnce(&mut [R])) {
        match self {
            Sink::Direct(writer) => {
                writer.next(count, |results| vectorized!(compute(results)));
            }
            Sink::Converted { out, start, buffer } => {
                vectorized!(compute(&mut buffer[..count]));
                R::convert_into(&buffer[..count], *start, out);
                *start += count;
            }
        }
    }
}

/// A type that results are computed in.
trait Computed: Real + Sub<Output = Self> + Mul<Output = Self> + Add<Output = Self> {
    /// Converts results to the output's type, like `cast`.
    fn convert_into(results: &[Self], start: usize, out: &mut Output<'_>);
}

macro_rules! computed {
    ($($real:ty),*) => {
        $(
            impl Computed for $real {
                fn convert_into(results: &[$real], start: usize, out: &mut Output<'_>) {
                    with_element!(out.desc.dtype, |O| {
                        let out = &mut out.elements::<O>()[start..start + results.len()];
                        for (slot, &x) in out.iter_mut().zip(results) {
                            *slot = x.convert();
                        }
                    });
                }
            }
        )*
    };
}
computed!(f32, f64);

fn apply<T, R>(
    plan: &Plan,
    x: &[T],
    statistics: &Statistics,
    shift: f64,
    out: &mut Output<'_>,
) -> Result<()>
where
    T: Element + Convert<R>,
    R: Computed,
{
    if out.desc.dtype == R::DTYPE {
        out.write_in_order(|writer| apply_to(plan, x, statistics, shift, &mut Sink::Direct(writer)))
    } else {
        let buffer = [R::default(); TILE];
        let out = out.part(0, out.desc);
        let mut sink = Sink::Converted { out, start: 0, buffer };
        apply_to(plan, x, statistics, shift, &mut sink)
    }
}

/// Normalises all of `x` in memory order, which is the plan's order.
fn apply_to<T, R>(
    plan: &Plan,
    x: &[T],
    statistics: &Statistics,
    shift: f64,
    sink: &mut Sink<'_, '_, R>,
) -> Result<()>
where
    T: Element + Convert<R>,
    R: Computed,
{
    let narrowed = |all: &[f64]| collected(all.iter().map(|&x| R::from_f64(x)));
    let (means, factors) = (narrowed(&statistics.means)?, narrowed(&statistics.factors)?);
    let shift = R::from_f64(shift);
    let (rows, columns) = (plan.rows, plan.columns);
    let normalized = move |x: T, mean: R, factor: R| (x.convert() - mean) * factor + shift;
    let single = |sink: &mut Sink<'_, '_, R>, start: usize, count: usize, mean: R, factor: R| {
        sink.write(count, |results| {
            for (result, &x) in results.iter_mut().zip(&x[start..start + count]) {
                *result = normalized(x, mean, factor);
            }
        });
    };
    let each = |sink: &mut Sink<'_, '_, R>, start: usize, means: &[R], factors: &[R]| {
        let count = means.len();
        sink.write(count, |results| {
            let x = &x[start..start + count];
            for (((result, &x), &mean), &factor) in
                results.iter_mut().zip(x).zip(means).zip(factors)
            {
                *result = normalized(x, mean, factor);
            }
        });
    };
    if columns == 1 && rows < SHORT && plan.is_flat() {
        let mut tile = Repeated::new();
        let blocks = TILE / rows;
        for (index, (means, factors)) in
            means.chunks(blocks).zip(factors.chunks(blocks)).enumerate()
        {
            tile.stretch(means, factors, rows);
            each(sink, index * blocks * rows, &tile.means, &tile.factors);
        }
    } else if columns == 1 {
        plan.for_each(|start, at| {
            for from in (0..rows).step_by(TILE) {
                let count = TILE.min(rows - from);
                single(sink, start + from, count, means[at], factors[at]);
            }
        });
    } else {
        let mut tile = Repeated::new();
        let copies = (TILE / columns).clamp(1, rows);
        plan.for_each(|start, at| {
            let (means, factors) = (&means[at..at + columns], &factors[at..at + columns]);
            if copies > 1 {
                tile.repeat(means, factors, copies);
            }
            let (means, factors) =
                if copies > 1 { (&tile.means[..], &tile.factors[..]) } else { (means, factors) };
            for from in (0..rows).step_by(copies) {
                let wide = columns * copies.min(rows - from);
                for column in (0..wide).step_by(TILE) {
                    let end = wide.min(column + TILE);
                    let (means, factors) = (&means[column..end], &factors[column..end]);
                    each(sink, start + from * columns + column, means, factors);
                }
            }
        });
    }
    Ok(())
}

/// Means and factors, arranged like the elements they apply to.
struct Repeated<R> {
    means: Vec<R>,
    factors: Vec<R>,
}

impl<R: Copy + Default> Repeated<R> {
    fn new() -> Repeated<R> {
        Repeated { means: Vec::new(), factors: Vec::new() }
    }

    /// Repeats the whole sequence.
    fn repeat(&mut self, means: &[R], factors: &[R], times: usize) {
        for (all, one) in [(&mut self.means, means), (&mut self.factors, factors)] {
            all.resize(one.len() * times, R::default());
            match one.len() {
                2 => repeat::<R, 2>(all, one),
                3 => repeat::<R, 3>(all, one),
                4 => repeat::<R, 4>(all, one),
                n => all.chunks_exact_mut(n).for_each(|part| part.copy_from_slice(one)),
            }
        }
    }

    /// Repeats each element.
    fn stretch(&mut self, means: &[R], factors: &[R], times: usize) {
        for (all, one) in [(&mut self.means, means), (&mut self.factors, factors)] {
            all.resize(one.len() * times, R::default());
            match times {
                2 => stretch::<R, 2>(all, one),
                3 => stretch::<R, 3>(all, one),
                4 => stretch::<R, 4>(all, one),
                _ => all.chunks_exact_mut(times).zip(one).for_each(|(part, &x)| part.fill(x)),
            }
        }
    }
}

fn repeat<R: Copy, const N: usize>(all: &mut [R], one: &[R]) {
    if let Some(one) = one.first_chunk::<N>() {
        all.as_chunks_mut::<N>().0.fill(*one);
    }
}

fn stretch<R: Copy, const N: usize>(all: &mut [R], one: &[R]) {
    for (part, &x) in all.as_chunks_mut::<N>().0.iter_mut().zip(one) {
        *part = [x; N];
    }
}

/// Number of elements, mean, and sum of squared distances from the mean of one sample, along a new
/// first axis; the other axes are those of the sample, with extent 1 along `axes`. If `mean` is
/// given, it is used instead.
pub struct Moments;

args! {
    pub struct MomentsArgs { axes: Option<Vec<i64>>, mean: Option<f64> }
}

impl MomentsArgs {
    fn reduced(&self, ndim: usize) -> Result<Flags> {
        self.axes
            .as_ref()
            .map_or_else(|| Ok(Flags::from_elem(true, ndim)), |axes| reduced(axes, ndim))
    }
}

/// The mean, if given, and the reduction.
pub struct Measuring {
    mean: Option<f64>,
    reduction: Reduction,
}

impl Kernel for Moments {
    type Args = MomentsArgs;
    type Plan = Measuring;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: MomentsArgs, inputs: &[&Desc]) -> Result<(Measuring, Outputs)> {
        let input = inputs[0];
        numeric(input)?;
        let reduced = args.reduced(input.ndim())?;
        let kept = input.shape.iter().zip(&reduced).map(|(&d, &r)| if r { 1 } else { d });
        let shape: Shape = std::iter::once(3).chain(kept).collect();
        let reduction = Reduction::new(reduced, &input.shape);
        Ok((Measuring { mean: args.mean, reduction }, one(Desc::new(DType::F64, &shape))))
    }

    fn run(plan: &Measuring, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, walk) = (&inputs[0], plan.reduction.walk());
        let means = match plan.mean {
            Some(mean) => filled(mean, walk.kept())?,
            // The mean of nothing has weight zero, but must be a number.
            None if walk.count() == 0 => zeroed(walk.kept())?,
            None => means(walk, input)?,
        };
        let spreads = exact_spreads(walk, input, &means, plan.mean.is_some())?;
        let out = outputs[0].elements::<f64>();
        let (counts, rest) = out.split_at_mut(walk.kept());
        counts.fill(walk.count() as f64);
        rest[..walk.kept()].copy_from_slice(&means);
        rest[walk.kept()..].copy_from_slice(&spreads);
        Ok(())
    }
}

/// Mean and variance of all samples together, computed from the moments of each.
pub struct SharedMoments;

impl BatchKernel for SharedMoments {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let samples = inputs[0];
        let first = samples.first().ok_or_else(|| unfit(0, problem::Normalize::EmptyBatch))?;
        if let Some(other) = samples.iter().position(|s| s.desc.shape != first.desc.shape) {
            let shape = |sample: usize| samples[sample].desc.shape[1..].to_vec();
            let problem =
                problem::Normalize::Ragged { sample: other, shape: shape(other), first: shape(0) };
            return Err(unfit(0, problem));
        }
        let ddof = i64::from_constant(args.first().unwrap_or(&Arg::Int(0)))
            .map_err(|problem| argument("ddof", problem))?;
        let mut shape = first.desc.shape.clone();
        shape[0] = 2;
        let kept = first.desc.elements() / 3;
        let mut out = allocate(Desc::new(DType::F64, &shape))?;
        let (means, variances) = out.elements::<f64>().split_at_mut(kept);
        for (index, (mean, variance)) in means.iter_mut().zip(variances).enumerate() {
            let moments = samples.iter().map(|sample| {
                let all = sample.elements::<f64>();
                (all[index], all[kept + index], all[2 * kept + index])
            });
            let count: f64 = moments.clone().map(|(n, _, _)| n).sum();
            let total: f64 = moments.clone().map(|(n, mean, _)| n * mean).sum();
            *mean = total / count;
            let spread: f64 =
                moments.map(|(n, m, spread)| spread + n * (m - *mean) * (m - *mean)).sum();
            let freedom = count - ddof as f64;
            *variance = if freedom > 0.0 { spread / freedom } else { 0.0 };
        }
        Ok(smallvec![out.into_sample()?])
    }
}
