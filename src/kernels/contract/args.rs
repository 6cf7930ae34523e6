//! A call's arguments: constants, or per-sample values that are passed like inputs.

use smallvec::SmallVec;

use super::frames;
use super::problems::Argument;
use crate::kernels::Result;
use crate::kernels::numeric::draw::Draw;
use crate::kernels::numeric::philox::Stream;
use crate::value::{Cause, DType, Layout, Problem, Sample, collected, with_element};

/// One argument as it was passed.
#[derive(Clone, Debug)]
pub enum Arg {
    Absent,
    Int(i64),
    Float(f64),
    Text(Box<str>),
    Ints(Box<[i64]>),
    Floats(Box<[f64]>),
    /// A per-sample value: this input of the node.
    Input(usize),
    /// What the call draws from.
    Draw(Draw),
}

impl Arg {
    /// The value as Python would print it, for messages.
    pub fn shown(&self) -> String {
        match self {
            Arg::Absent => "None".into(),
            Arg::Int(value) => value.to_string(),
            Arg::Float(value) => value.to_string(),
            Arg::Text(text) => format!("{text:?}"),
            Arg::Ints(values) => format!("{values:?}"),
            Arg::Floats(values) => format!("{values:?}"),
            Arg::Input(_) => "a tensor".into(),
            Arg::Draw(_) => "an RNG".into(),
        }
    }
}

/// The arguments of one sample, or of one of its frames.
#[derive(Clone)]
pub struct ArgReader<'a> {
    pub(super) args: &'a [Arg],
    /// All inputs of the node for this sample, including those that [`Arg::Input`] refers to.
    pub(super) inputs: &'a [Sample],
    /// The sample's index in its batch.
    sample: usize,
    /// The frame to read per-frame arguments for.
    frame: Option<usize>,
}

impl<'a> ArgReader<'a> {
    pub fn new(args: &'a [Arg], inputs: &'a [Sample], sample: usize) -> ArgReader<'a> {
        ArgReader { args, inputs, sample, frame: None }
    }

    pub fn of_frame(&self, frame: usize) -> ArgReader<'a> {
        ArgReader { frame: Some(frame), ..self.clone() }
    }

    /// The arguments after the first `count`.
    pub fn skip(&self, count: usize) -> ArgReader<'a> {
        ArgReader { args: self.args.get(count..).unwrap_or(&[]), ..*self }
    }

    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// The sample's index in its batch.
    pub fn sample(&self) -> usize {
        self.sample
    }

    pub fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// The argument at this position as a `T`; `name` is for the error.
    pub fn get<T: FromArg>(&self, position: usize, name: &'static str) -> Result<T> {
        let refused = |problem| Cause::Argument { name, problem };
        match self.args.get(position).unwrap_or(&Arg::Absent) {
            Arg::Input(index) => {
                let Some(sample) = self.inputs.get(*index) else {
                    return Err(Cause::Internal(format!("`{name}` has no value")));
                };
                T::from_sample(&self.for_frame(sample)?).map_err(|problem| {
                    if problem == Argument::Memory.into() {
                        let count = sample.desc.elements();
                        return Cause::Memory { bytes: count.saturating_mul(size_of::<f64>()) };
                    }
                    refused(problem)
                })
            }
            Arg::Draw(draw) => T::from_draw(draw.stream(self.sample)).map_err(refused),
            constant => T::from_constant(constant).map_err(refused),
        }
    }

    /// The part of an argument's value that applies to this frame, contiguous.
    fn for_frame(&self, sample: &Sample) -> Result<Sample> {
        match (self.frame, frames::count(&sample.desc)) {
            (Some(_), Some(1)) => sample.row(0)?.compact(),
            (Some(frame), Some(_)) => sample.row(frame)?.compact(),
            _ => sample.compact(),
        }
    }
}

/// A type that an argument can be read as. `Err` says what is wrong with the argument.
pub trait FromArg: Sized {
    fn from_constant(arg: &Arg) -> std::result::Result<Self, Problem>;
    fn from_sample(sample: &Sample) -> std::result::Result<Self, Problem>;
    fn from_draw(_: Stream) -> std::result::Result<Self, Problem> {
        Err(Argument::NotRandom.into())
    }
}

/// The arguments of a kernel, read by position.
pub trait FromArgs: Sized + Send + Sync {
    const NAMES: &'static [&'static str];
    fn from_args(reader: &ArgReader<'_>) -> Result<Self>;
}

impl FromArgs for () {
    const NAMES: &'static [&'static str] = &[];
    fn from_args(_: &ArgReader<'_>) -> Result<()> {
        Ok(())
    }
}

/// Declares a kernel's arguments, in the order of the definition.
macro_rules! args {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        $vis struct $name { $($field: $type),* }
        impl $crate::kernels::FromArgs for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
            fn from_args(
                reader: &$crate::kernels::ArgReader<'_>,
            ) -> $crate::kernels::Result<Self> {
                let mut position = 0..;
                Ok($name {
                    $($field: reader.get(position.next().unwrap_or(0), stringify!($field))?),*
                })
            }
        }
    };
}
pub(crate) use args;

/// `wanted` is a key for which Python has a phrase.
fn unfit<T>(wanted: &'static str, arg: &Arg) -> std::result::Result<T, Problem> {
    Err(match arg {
        Arg::Absent => Argument::Missing { wanted },
        given => Argument::Kind { wanted, given: given.shown() },
    }
    .into())
}

fn scalar(sample: &Sample) -> std::result::Result<(), Problem> {
    match sample.desc.elements() {
        1 => Ok(()),
        _ => Err(Argument::NotScalar { shape: sample.desc.shape.to_vec() }.into()),
    }
}

/// Collects numbers, of which there may be as many as an array has.
fn all<T>(numbers: impl ExactSizeIterator<Item = T>) -> std::result::Result<Vec<T>, Problem> {
    collected(numbers).map_err(|_| Argument::Memory.into())
}

/// Like `all`, but without an allocation if they are few.
fn few<T: Copy, A: smallvec::Array<Item = T>>(
    numbers: impl ExactSizeIterator<Item = T>,
) -> std::result::Result<SmallVec<A>, Problem> {
    if numbers.len() <= A::size() {
        return Ok(numbers.collect());
    }
    all(numbers).map(SmallVec::from_vec)
}

fn floats(sample: &Sample) -> std::result::Result<Vec<f64>, Problem> {
    with_element!(sample.desc.dtype, |T| {
        all(sample
            .elements::<T>()
            .iter()
            .map(|&x| crate::kernels::generic::cast::Convert::<f64>::convert(x)))
    })
}

fn ints(sample: &Sample) -> std::result::Result<Vec<i64>, Problem> {
    with_element!(sample.desc.dtype, |T| {
        all(sample
            .elements::<T>()
            .iter()
            .map(|&x| crate::kernels::generic::cast::Convert::<i64>::convert(x)))
    })
}

impl FromArg for i64 {
    fn from_constant(arg: &Arg) -> std::result::Result<i64, Problem> {
        match arg {
            Arg::Int(value) => Ok(*value),
            other => unfit("integer", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<i64, Problem> {
        scalar(sample)?;
        Ok(ints(sample)?[0])
    }
}

impl FromArg for bool {
    fn from_constant(arg: &Arg) -> std::result::Result<bool, Problem> {
        i64::from_constant(arg).map(|value| value != 0)
    }

    fn from_sample(sample: &Sample) -> std::result::Result<bool, Problem> {
        i64::from_sample(sample).map(|value| value != 0)
    }
}

impl FromArg for f64 {
    fn from_constant(arg: &Arg) -> std::result::Result<f64, Problem> {
        match arg {
            Arg::Float(value) => Ok(*value),
            Arg::Int(value) => Ok(*value as f64),
            other => unfit("number", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<f64, Problem> {
        scalar(sample)?;
        Ok(floats(sample)?[0])
    }
}

impl FromArg for DType {
    fn from_constant(arg: &Arg) -> std::result::Result<DType, Problem> {
        let code = i64::from_constant(arg)?;
        u8::try_from(code).ok().and_then(DType::from_code).map_or_else(|| unfit("dtype", arg), Ok)
    }

    fn from_sample(_: &Sample) -> std::result::Result<DType, Problem> {
        Err(Argument::SameForAll.into())
    }
}

impl FromArg for String {
    fn from_constant(arg: &Arg) -> std::result::Result<String, Problem> {
        match arg {
            Arg::Text(text) => Ok(text.to_string()),
            other => unfit("string", other),
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<String, Problem> {
        Err(Argument::SameForAll.into())
    }
}

impl FromArg for Vec<i64> {
    fn from_constant(arg: &Arg) -> std::result::Result<Vec<i64>, Problem> {
        match arg {
            Arg::Ints(values) => all(values.iter().copied()),
            Arg::Int(value) => Ok(vec![*value]),
            other => unfit("integers", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Vec<i64>, Problem> {
        ints(sample)
    }
}

impl FromArg for Vec<f64> {
    fn from_constant(arg: &Arg) -> std::result::Result<Vec<f64>, Problem> {
        match arg {
            Arg::Floats(values) => all(values.iter().copied()),
            Arg::Float(value) => Ok(vec![*value]),
            ints => Vec::<i64>::from_constant(ints)
                .map(|values| values.into_iter().map(|value| value as f64).collect())
                .or_else(|_| unfit("numbers", ints)),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Vec<f64>, Problem> {
        floats(sample)
    }
}

/// A few numbers, without an allocation.
impl FromArg for SmallVec<[i64; 6]> {
    fn from_constant(arg: &Arg) -> std::result::Result<Self, Problem> {
        match arg {
            Arg::Ints(values) => few(values.iter().copied()),
            Arg::Int(value) => Ok(SmallVec::from_slice(&[*value])),
            other => unfit("integers", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Self, Problem> {
        ints(sample).map(SmallVec::from_vec)
    }
}

impl FromArg for SmallVec<[f64; 6]> {
    fn from_constant(arg: &Arg) -> std::result::Result<Self, Problem> {
        match arg {
            Arg::Floats(values) => few(values.iter().copied()),
            Arg::Ints(values) => few(values.iter().map(|&value| value as f64)),
            Arg::Float(value) => Ok(SmallVec::from_slice(&[*value])),
            Arg::Int(value) => Ok(SmallVec::from_slice(&[*value as f64])),
            other => unfit("numbers", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Self, Problem> {
        floats(sample).map(SmallVec::from_vec)
    }
}

/// The letters of the axes.
impl FromArg for Layout {
    fn from_constant(arg: &Arg) -> std::result::Result<Layout, Problem> {
        match arg {
            Arg::Text(letters) => Layout::new(letters).ok_or_else(|| {
                let (most, given) = (Layout::MAX, letters.to_string());
                Argument::LongLayout { most, given }.into()
            }),
            other => unfit("layout", other),
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Layout, Problem> {
        Err(Argument::SameForAll.into())
    }
}

impl<T: FromArg> FromArg for Option<T> {
    fn from_constant(arg: &Arg) -> std::result::Result<Option<T>, Problem> {
        match arg {
            Arg::Absent => Ok(None),
            other => T::from_constant(other).map(Some),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Option<T>, Problem> {
        T::from_sample(sample).map(Some)
    }
}

impl FromArg for Stream {
    fn from_constant(arg: &Arg) -> std::result::Result<Stream, Problem> {
        unfit("rng", arg)
    }

    fn from_sample(_: &Sample) -> std::result::Result<Stream, Problem> {
        Err(Argument::NotData.into())
    }

    fn from_draw(stream: Stream) -> std::result::Result<Stream, Problem> {
        Ok(stream)
    }
}
