//! Random numbers. Each is a function of the call's position in the sequence of its RNG, the
//! sample's index and the element's: see `philox`.

pub(super) mod beta;

use std::sync::Arc;

use half::{bf16, f16};

use self::problem::Random;
use super::{
    Arg, BatchKernel, Entry, Family, Frames, FromArg, Kernel, Output, OutputBuffer, Outputs,
    Result, Samples, Traits, Work, args, one,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::numeric::philox::{GROUP, LANES, Stream, below, fraction, short_fraction};
use crate::kernels::numeric::portable::{ln_of_normal, sin_cos_of_turn};
use crate::kernels::random::beta::BetaShape;
use crate::value::{
    Bool, Cause, DType, Desc, Layout, Sample, Shape, collected, extent, filled, with_element,
};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Random::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Uniform>("random.uniform"),
    Entry::new::<Normal>("random.normal"),
    Entry::new::<CoinFlip>("random.coin_flip"),
    Entry::new::<Choice>("random.choice"),
    Entry::new::<Beta>("random.beta"),
    Entry {
        name: "batch_permutation",
        args: &["allow_repetitions", "no_fixed_points", "batch_size", "rng"],
        cpu: || Work::Batch(Arc::new(BatchPermutation)),
    },
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Random {
            ShapeAndInput,
            NoChoices,
            Range { start: f64, end: f64 },
            NegativeCount { count: i64 },
            CountType { dtype: &'static str },
            Total { total: f64 },
            NotPositiveFinite { given: f64 },
            BatchSize,
        }
    }
}

/// The requested shape: that of an input, explicit extents, or a scalar.
fn requested_shape(shape: Option<&[i64]>, like: Option<&&Desc>) -> Result<Shape> {
    match (shape, like) {
        (Some(_), Some(_)) => Err(argument("shape", Random::ShapeAndInput)),
        (None, like) => Ok(like.map(|desc| desc.shape.clone()).unwrap_or_default()),
        (Some(extents), None) => extents
            .iter()
            .map(|&d| usize::try_from(d).ok())
            .collect::<Option<Shape>>()
            .ok_or_else(|| argument("shape", Argument::AllNegative { given: extents.to_vec() })),
    }
}

fn described(dtype: DType, shape: Shape) -> Result<Desc> {
    match extent(&shape) {
        Some(_) => Ok(Desc { dtype, shape, layout: Layout::default() }),
        None => Err(argument("shape", Argument::TooLarge)),
    }
}

/// Makes each element from one word.
pub fn of_words<T>(stream: &Stream, out: &mut [T], make: impl Fn(u32) -> T) {
    for (index, out) in out.chunks_mut(GROUP).enumerate() {
        let words = stream.group(index as u64, out.len());
        for (o, &word) in out.iter_mut().zip(&words) {
            *o = make(word);
        }
    }
}

/// Makes each element from two words.
pub fn of_pairs<T>(stream: &Stream, out: &mut [T], make: impl Fn(u32, u32) -> T) {
    for (index, out) in out.chunks_mut(GROUP / 2).enumerate() {
        let words = stream.group(index as u64, out.len());
        let (low, high) = words.split_at(GROUP / 2);
        for ((o, &low), &high) in out.iter_mut().zip(low).zip(high) {
            *o = make(low, high);
        }
    }
}

pub struct Uniform;

args! {
    pub struct UniformArgs {
        dtype: DType,
        range: Vec<f64>,
        shape: Option<Vec<i64>>,
        values: Option<Vec<f64>>,
        rng: Stream,
    }
}

impl Kernel for Uniform {
    type Args = UniformArgs;
    type Plan = UniformArgs;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: UniformArgs, inputs: &[&Desc]) -> Result<(UniformArgs, Outputs)> {
        let desc = described(args.dtype, requested_shape(args.shape.as_deref(), inputs.first())?)?;
        Ok((args, one(desc)))
    }

    fn run(args: &UniformArgs, _: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let rng = &args.rng;
        if let Some(values) = &args.values {
            if values.is_empty() {
                return Err(argument("values", Random::NoChoices));
            }
            with_element!(args.dtype, |T| {
                let values: Vec<T> = collected(values.iter().map(|&value| value.convert()))?;
                let count = values.len() as u64;
                of_pairs(rng, out.elements::<T>(), |a, b| values[below(a, b, count) as usize]);
            });
            return Ok(());
        }
        let &[start, end] = &args.range[..] else {
            let given = args.range.clone();
            return Err(argument("range", Argument::Numbers { wanted: 2, given }));
        };
        if !(start < end && start.is_finite() && end.is_finite()) {
            return Err(argument("range", Random::Range { start, end }));
        }
        let large = args.dtype.size() == 8;
        with_element!(args.dtype, |T| {
            let (first, last) = T::ends(start, end);
            let place = |part: f64| -> T {
                // In this form, the width of the range can't overflow.
                ((1.0 - part) * start + part * end).max(first).min(last).convert()
            };
            if large {
                of_pairs(rng, out.elements::<T>(), |a, b| place(fraction(a, b)));
            } else {
                of_words(rng, out.elements::<T>(), |word| place(short_fraction(word)));
            }
        });
        Ok(())
    }
}

/// Limits of a range for an element type.
trait End: Sized {
    /// The first and last number of `start..end`. Integers are not limited: rounding may reach the
    /// end itself, as in DALI.
    fn ends(start: f64, end: f64) -> (f64, f64);
}

macro_rules! whole {
    ($($type:ty)*) => {
        $(
            impl End for $type {
                fn ends(_: f64, _: f64) -> (f64, f64) {
                    (f64::NEG_INFINITY, f64::INFINITY)
                }
            }
        )*
    };
}
whole!(Bool i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floating {
    ($($type:ty)*) => {
        $(
            impl End for $type {
                fn ends(start: f64, end: f64) -> (f64, f64) {
                    let (first, past): ($type, $type) = (start.convert(), end.convert());
                    let wide = |x: $type| -> f64 { x.convert() };
                    let first = wide(first).max(wide(<$type>::MIN));
                    // The bits of positive floats are in the order of their values.
                    let smaller = if wide(past) < end {
                        past
                    } else if wide(past) > 0.0 {
                        <$type>::from_bits(past.to_bits() - 1)
                    } else if wide(past) < 0.0 {
                        <$type>::from_bits(past.to_bits() + 1)
                    } else {
                        -<$type>::from_bits(1)
                    };
                    (first, wide(smaller).max(first))
                }
            }
        )*
    };
}
floating!(f16 bf16 f32 f64);

pub struct Normal;

args! {
    pub struct NormalArgs {
        dtype: DType,
        mean: f64,
        shape: Option<Vec<i64>>,
        stddev: f64,
        rng: Stream,
    }
}

impl Kernel for Normal {
    type Args = NormalArgs;
    type Plan = NormalArgs;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: NormalArgs, inputs: &[&Desc]) -> Result<(NormalArgs, Outputs)> {
        let desc = described(args.dtype, requested_shape(args.shape.as_deref(), inputs.first())?)?;
        Ok((args, one(desc)))
    }

    fn run(args: &NormalArgs, _: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        with_element!(args.dtype, |T| {
            let out = out.elements::<T>();
            normals(&args.rng, out.len(), |start, normals| {
                for (o, &z) in out[start..].iter_mut().zip(normals) {
                    *o = (args.mean + args.stddev * z).convert();
                }
            });
        });
        Ok(())
    }
}

/// Numbers made at a time; they are still in the cache when they are converted.
const CHUNK: usize = 512;

/// Generates `count` standard normal numbers, and passes them to `take` in chunks with the position
/// of the first.
#[inline]
pub fn normals(rng: &Stream, count: usize, mut take: impl FnMut(usize, &[f64])) {
    let mut made = [0.0; CHUNK];
    for start in (0..count).step_by(CHUNK) {
        let made = &mut made[..CHUNK.min(count - start)];
        normals_for(Isa::best(), rng, (start / (2 * LANES)) as u64, made);
        take(start, made);
    }
}

/// Standard normal numbers, made from the groups of words from `group` on.
fn normals_for(isa: Isa, rng: &Stream, group: u64, out: &mut [f64]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2")]
            unsafe fn run(rng: &Stream, group: u64, out: &mut [f64]) {
                normals_of(rng, group, out);
            }
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { run(rng, group, out) }
        }
        _ => normals_of(rng, group, out),
    }
}

#[inline(always)]
fn normals_of(rng: &Stream, group: u64, out: &mut [f64]) {
    for (index, out) in out.chunks_mut(2 * LANES).enumerate() {
        let words = rng.group(group + index as u64, out.len());
        let (mut first, mut second) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let word = |i| words[LANES * i + lane];
            (first[lane], second[lane]) = two_normals([word(0), word(1), word(2), word(3)]);
        }
        let (head, tail) = out.split_at_mut(LANES.min(out.len()));
        head.copy_from_slice(&first[..head.len()]);
        tail.copy_from_slice(&second[..tail.len()]);
    }
}

/// Two independent standard normal numbers (Box-Muller transform).
#[inline(always)]
fn two_normals([a, b, c, d]: [u32; 4]) -> (f64, f64) {
    // Drawn from (0, 1], so that the logarithm is finite.
    let radius = (-2.0 * ln_of_normal(1.0 - fraction(a, b))).sqrt();
    let (sine, cosine) = sin_cos_of_turn(fraction(c, d));
    (radius * cosine, radius * sine)
}

pub struct CoinFlip;

args! {
    pub struct CoinFlipArgs {
        dtype: DType,
        probability: f64,
        shape: Option<Vec<i64>>,
        rng: Stream,
    }
}

impl Kernel for CoinFlip {
    type Args = CoinFlipArgs;
    type Plan = CoinFlipArgs;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: CoinFlipArgs, inputs: &[&Desc]) -> Result<(CoinFlipArgs, Outputs)> {
        let desc = described(args.dtype, requested_shape(args.shape.as_deref(), inputs.first())?)?;
        Ok((args, one(desc)))
    }

    fn run(args: &CoinFlipArgs, _: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        // The number of words that are heads. The conversion saturates; NaN becomes zero.
        let heads = ((args.probability * 4_294_967_296.0) as u64).min(1 << 32);
        with_element!(args.dtype, |T| {
            let [tail, head]: [T; 2] = [0_u8.convert(), 1_u8.convert()];
            of_words(&args.rng, out.elements::<T>(), |word| {
                if u64::from(word) < heads { head } else { tail }
            });
        });
        Ok(())
    }
}

/// Draws from `0..a`, or from the elements along the first axis of `a`.
pub struct Choice;

args! {
    pub struct ChoiceArgs { p: Option<Vec<f64>>, shape: Option<Vec<i64>>, rng: Stream }
}

impl Kernel for Choice {
    type Args = ChoiceArgs;
    type Plan = ChoiceArgs;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: ChoiceArgs, inputs: &[&Desc]) -> Result<(ChoiceArgs, Outputs)> {
        let mut shape = requested_shape(args.shape.as_deref(), inputs.get(1))?;
        shape.extend_from_slice(inputs[0].shape.get(1..).unwrap_or_default());
        let desc = described(inputs[0].dtype, shape)?;
        Ok((args, one(desc)))
    }

    fn run(args: &ChoiceArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let from = &inputs[0];
        let count = choices(from)?;
        let chances = args.p.as_deref().map(|p| Chances::new(p, count)).transpose()?.flatten();
        let index = |a, b| match &chances {
            None => below(a, b, count),
            Some(chances) => chances.pick(fraction(a, b)),
        };
        if from.desc.ndim() == 0 {
            with_element!(from.desc.dtype, |T| {
                of_pairs(&args.rng, out.elements::<T>(), |a, b| -> T { index(a, b).convert() });
            });
        } else if from.desc.ndim() == 1 {
            with_element!(from.desc.dtype, |T| {
                let from = from.elements::<T>();
                of_pairs(&args.rng, out.elements::<T>(), |a, b| from[index(a, b) as usize]);
            });
        } else {
            let bytes = from.elements_as_bytes();
            let row = bytes.len() / count as usize;
            if let Some(rows) = out.bytes().len().checked_div(row) {
                let mut picked = filled(0, rows)?;
                of_pairs(&args.rng, &mut picked, |a, b| index(a, b) as usize);
                for (dst, picked) in out.bytes().chunks_exact_mut(row).zip(picked) {
                    dst.copy_from_slice(&bytes[picked * row..][..row]);
                }
            }
        }
        Ok(())
    }
}

/// Number of choices; at least one.
fn choices(from: &Sample) -> Result<u64> {
    let count = match (from.desc.shape.first(), from.desc.dtype) {
        (Some(&extent), _) => extent as u64,
        (None, DType::U64) => from.elements::<u64>()[0],
        (None, DType::I8 | DType::I16 | DType::I32 | DType::I64)
        | (None, DType::U8 | DType::U16 | DType::U32) => {
            let count = Vec::<i64>::from_sample(from).map_err(|problem| unfit(0, problem))?[0];
            u64::try_from(count).map_err(|_| unfit(0, Random::NegativeCount { count }))?
        }
        (None, other) => {
            return Err(unfit(0, Random::CountType { dtype: other.name() }));
        }
    };
    if count == 0 { Err(unfit(0, Random::NoChoices)) } else { Ok(count) }
}

/// Cumulative probabilities of the choices.
struct Chances(Vec<f64>);

impl Chances {
    /// `None` when all choices are equally likely.
    fn new(p: &[f64], count: u64) -> Result<Option<Chances>> {
        if p.len() as u64 != count && p.len() != 1 {
            let (wanted, given) = (count as usize, p.len());
            return Err(argument("p", Argument::Count { wanted, given }));
        }
        if let Some(&given) = p.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return Err(argument("p", Argument::Between { low: 0.0, high: 1.0, given }));
        }
        let mut total = 0.0;
        let sums = p.iter().map(|p| {
            total += p;
            total
        });
        let sums: Vec<f64> = collected(sums)?;
        let equal = p.len() == 1;
        let total = if equal { total * count as f64 } else { total };
        // DALI's tolerance.
        if (total - 1.0).abs() >= 1e-4 {
            return Err(argument("p", Random::Total { total }));
        }
        Ok((!equal).then_some(Chances(sums)))
    }

    fn pick(&self, part: f64) -> u64 {
        let sums = &self.0;
        let total = sums.last().copied().unwrap_or_default();
        // The first whose sum exceeds it; a choice with probability zero is never the first.
        let index = sums.partition_point(|&sum| sum <= part * total);
        // Rounding may give the total itself, which belongs to the first choice that reaches it.
        index.min(sums.partition_point(|&sum| sum < total)) as u64
    }
}

pub struct Beta;

args! {
    pub struct BetaArgs {
        alpha: f64,
        beta: f64,
        dtype: DType,
        shape: Option<Vec<i64>>,
        rng: Stream,
    }
}

impl Kernel for Beta {
    type Args = BetaArgs;
    type Plan = BetaArgs;
    const TRAITS: Traits = Traits { frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: BetaArgs, inputs: &[&Desc]) -> Result<(BetaArgs, Outputs)> {
        let desc = described(args.dtype, requested_shape(args.shape.as_deref(), inputs.first())?)?;
        Ok((args, one(desc)))
    }

    fn run(args: &BetaArgs, _: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        for (name, value) in [("alpha", args.alpha), ("beta", args.beta)] {
            // Beyond the range of `f32`, the computation below would exceed that of `f64`.
            let short = value as f32;
            if !(short > 0.0 && short.is_finite()) {
                return Err(argument(name, Random::NotPositiveFinite { given: value }));
            }
        }
        let shape = BetaShape::new(args.alpha, args.beta);
        with_element!(args.dtype, |T| {
            for (index, out) in out.elements::<T>().chunks_mut(CHUNK).enumerate() {
                let made = &mut [0.0; CHUNK][..out.len()];
                shape.fill(Isa::best(), &args.rng, (index * CHUNK) as u64, made);
                for (o, &x) in out.iter_mut().zip(&*made) {
                    *o = x.convert();
                }
            }
        });
        Ok(())
    }
}

/// Which sample goes where: one index for each sample of a batch.
struct BatchPermutation;

impl BatchKernel for BatchPermutation {
    fn run(
        &self,
        args: &[Arg],
        _: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let [repeats, no_fixed_points, count, Arg::Draw(draw)] = args else {
            return Err(Cause::Internal("batch_permutation has four arguments".into()));
        };
        let flag = |name, arg| bool::from_constant(arg).map_err(|problem| argument(name, problem));
        let repeats = flag("allow_repetitions", repeats)?;
        let no_fixed_points = flag("no_fixed_points", no_fixed_points)?;
        let count = i64::from_constant(count)
            .ok()
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| argument("batch_size", Random::BatchSize))?;
        let stream = draw.of_batch().ok_or_else(|| argument("rng", Argument::BySample))?;
        let draw = |index: usize, bound: usize| {
            let [low, high, ..] = stream.source(index).next();
            below(low, high, bound as u64) as usize
        };
        let mut out = allocate(Desc::new(DType::I32, &[count]))?;
        let places = out.elements::<i32>();
        for (index, place) in places.iter_mut().enumerate() {
            *place = index as i32;
        }
        // A single sample can't be moved.
        let fixed = usize::from(no_fixed_points && count > 1);
        if repeats {
            for (index, place) in places.iter_mut().enumerate() {
                let drawn = draw(index, count - fixed);
                *place = (drawn + usize::from(fixed == 1 && drawn >= index)) as i32;
            }
        } else {
            // Fisher-Yates; or Sattolo's variant, which excludes the sample itself and makes a
            // single cycle.
            for index in (1..count).rev() {
                places.swap(index, draw(index, index + 1 - fixed));
            }
        }
        let all = out.into_sample()?;
        (0..count).map(|i| all.part(Desc::new(DType::I32, &[]), 4 * i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::numeric::philox::Position;

    #[test]
    fn ranges_exclude_their_end() {
        assert_eq!(f32::ends(0.0, 1.0), (0.0, f64::from(1.0_f32 - f32::EPSILON / 2.0)));
        assert_eq!(f32::ends(-1.0, 0.0).1, -f64::from(f32::from_bits(1)));
        assert_eq!(f32::ends(-1.0, -0.5).1, f64::from(-0.5_f32 - f32::EPSILON / 2.0));
        assert_eq!(f32::ends(-1e39, 1e39), (f64::from(f32::MIN), f64::from(f32::MAX)));
        assert_eq!(bf16::ends(1.0, 1.0001), (1.0, 1.0));
        assert_eq!(f16::ends(0.0, 0.1).1, 0.099_975_585_937_5);
    }

    #[test]
    fn choices_with_probability_zero_are_never_picked() {
        let chances = Chances::new(&[0.0, 0.5, 0.0, 0.5, 0.0], 5).unwrap().unwrap();
        let picks =
            [0.0, 0.499, 0.5, 0.999, 1.0 - f64::EPSILON / 2.0, 1.0].map(|p| chances.pick(p));
        assert_eq!(picks, [1, 1, 3, 3, 3, 3]);
        assert!(Chances::new(&[0.5], 2).unwrap().is_none());
        assert!(Chances::new(&[0.5, 0.6], 2).is_err());
        assert!(Chances::new(&[f64::NAN, 1.0], 2).is_err());
    }

    #[test]
    fn every_isa_draws_the_same() {
        let stream = Position { seed: 3, sequence: 1, offset: 4, phase: 1 }.stream(2);
        for len in [1, 7, 8, 9, 16, 17, 511, 512] {
            let draw = |isa| {
                let mut made = vec![0.0; len];
                normals_for(isa, &stream, 5, &mut made);
                made.iter().map(|x: &f64| x.to_bits()).collect::<Vec<_>>()
            };
            for isa in Isa::available() {
                assert!(draw(isa) == draw(Isa::Scalar), "{isa:?}, {len} numbers");
            }
        }
    }
}
