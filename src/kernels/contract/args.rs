//! A call's arguments: constants, or per-sample values that arrive like inputs.

use smallvec::SmallVec;

use super::frames;
use crate::kernels::Result;
use crate::kernels::numeric::philox::{Position, Stream};
use crate::value::{Cause, DType, Layout, Sample, collected, with_element};

/// One argument as the call gave it.
#[derive(Clone, Debug)]
pub enum Arg {
    Absent,
    Int(i64),
    Float(f64),
    Text(Box<str>),
    Ints(Box<[i64]>),
    Floats(Box<[f64]>),
    /// The value of this input of the node, one per sample.
    Input(usize),
    /// The call's place in the sequence of an RNG.
    Draw(Position),
}

/// The arguments of one sample, or of one of its frames.
#[derive(Clone)]
pub struct ArgReader<'a> {
    pub(super) args: &'a [Arg],
    /// All inputs of the node for this sample, those behind [`Arg::Input`] among them.
    pub(super) inputs: &'a [Sample],
    /// The sample's number.
    sample: usize,
    /// Arguments that have a value for each frame are read for this one.
    frame: Option<usize>,
}

impl<'a> ArgReader<'a> {
    pub fn new(args: &'a [Arg], inputs: &'a [Sample], sample: usize) -> ArgReader<'a> {
        ArgReader { args, inputs, sample, frame: None }
    }

    pub fn of_frame(&self, frame: usize) -> ArgReader<'a> {
        ArgReader { frame: Some(frame), ..self.clone() }
    }

    /// The arguments behind the first `count`.
    pub fn skip(&self, count: usize) -> ArgReader<'a> {
        ArgReader { args: self.args.get(count..).unwrap_or(&[]), ..*self }
    }

    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// The number of the sample in its batch.
    pub fn sample(&self) -> usize {
        self.sample
    }

    pub fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// The argument at this position as a `T`; `name` is for the error.
    pub fn get<T: FromArg>(&self, position: usize, name: &'static str) -> Result<T> {
        let arg = self.args.get(position).unwrap_or(&Arg::Absent);
        let made = match arg {
            Arg::Input(index) => self
                .inputs
                .get(*index)
                .ok_or_else(|| "has no value".to_string())
                .and_then(|sample| self.own(sample).map_err(|cause| format!("{cause:?}")))
                .and_then(|sample| T::from_sample(&sample)),
            Arg::Draw(position) => T::from_draw(position.stream(self.sample)),
            constant => T::from_constant(constant),
        };
        made.map_err(|problem| match arg {
            Arg::Input(index) if problem == NO_MEMORY => {
                let count = self.inputs.get(*index).map_or(0, |sample| sample.desc.elements());
                Cause::Memory { bytes: count.saturating_mul(size_of::<f64>()) }
            }
            _ => Cause::Argument { name, problem: problem.into() },
        })
    }

    /// What of an argument's value is meant, in row-major order.
    fn own(&self, sample: &Sample) -> Result<Sample> {
        match (self.frame, frames::count(&sample.desc)) {
            (Some(_), Some(1)) => sample.row(0)?.compact(),
            (Some(frame), Some(_)) => sample.row(frame)?.compact(),
            _ => sample.compact(),
        }
    }
}

/// A type that an argument can be read as. `Err` says what is wrong with the argument.
pub trait FromArg: Sized {
    fn from_constant(arg: &Arg) -> std::result::Result<Self, String>;
    fn from_sample(sample: &Sample) -> std::result::Result<Self, String>;
    fn from_draw(_: Stream) -> std::result::Result<Self, String> {
        Err("can't be an RNG".into())
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

/// Declares a kernel's arguments. The order is that of the definition.
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

fn unfit<T>(wanted: &str, arg: &Arg) -> std::result::Result<T, String> {
    Err(match arg {
        Arg::Absent => format!("is missing: it needs {wanted}"),
        given => format!("needs {wanted}, got {given:?}"),
    })
}

fn scalar(sample: &Sample) -> std::result::Result<(), String> {
    match sample.desc.elements() {
        1 => Ok(()),
        _ => Err(format!(
            "needs one number per sample, got the shape {:?}; a number for each sample is a batch, \
             as random operators make with `batch_size`",
            &sample.desc.shape[..]
        )),
    }
}

/// What is wrong with an argument of so many numbers that there is no memory for them.
const NO_MEMORY: &str = "has too many numbers for the memory that is left";

/// All of an iterator's numbers, which may be as many as an array has.
fn all<T>(numbers: impl ExactSizeIterator<Item = T>) -> std::result::Result<Vec<T>, String> {
    collected(numbers).map_err(|_| NO_MEMORY.into())
}

/// The same without memory of their own, where they are few.
fn few<T: Copy, A: smallvec::Array<Item = T>>(
    numbers: impl ExactSizeIterator<Item = T>,
) -> std::result::Result<SmallVec<A>, String> {
    if numbers.len() <= A::size() {
        return Ok(numbers.collect());
    }
    all(numbers).map(SmallVec::from_vec)
}

fn floats(sample: &Sample) -> std::result::Result<Vec<f64>, String> {
    with_element!(sample.desc.dtype, |T| {
        all(sample
            .elements::<T>()
            .iter()
            .map(|&x| crate::kernels::generic::cast::Convert::<f64>::convert(x)))
    })
}

fn ints(sample: &Sample) -> std::result::Result<Vec<i64>, String> {
    with_element!(sample.desc.dtype, |T| {
        all(sample
            .elements::<T>()
            .iter()
            .map(|&x| crate::kernels::generic::cast::Convert::<i64>::convert(x)))
    })
}

impl FromArg for i64 {
    fn from_constant(arg: &Arg) -> std::result::Result<i64, String> {
        match arg {
            Arg::Int(value) => Ok(*value),
            other => unfit("an integer", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<i64, String> {
        scalar(sample)?;
        Ok(ints(sample)?[0])
    }
}

impl FromArg for bool {
    fn from_constant(arg: &Arg) -> std::result::Result<bool, String> {
        i64::from_constant(arg).map(|value| value != 0)
    }

    fn from_sample(sample: &Sample) -> std::result::Result<bool, String> {
        i64::from_sample(sample).map(|value| value != 0)
    }
}

impl FromArg for f64 {
    fn from_constant(arg: &Arg) -> std::result::Result<f64, String> {
        match arg {
            Arg::Float(value) => Ok(*value),
            Arg::Int(value) => Ok(*value as f64),
            other => unfit("a number", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<f64, String> {
        scalar(sample)?;
        Ok(floats(sample)?[0])
    }
}

impl FromArg for DType {
    fn from_constant(arg: &Arg) -> std::result::Result<DType, String> {
        let code = i64::from_constant(arg)?;
        u8::try_from(code)
            .ok()
            .and_then(DType::from_code)
            .map_or_else(|| unfit("an element type", arg), Ok)
    }

    fn from_sample(_: &Sample) -> std::result::Result<DType, String> {
        Err("can't differ from sample to sample".into())
    }
}

impl FromArg for String {
    fn from_constant(arg: &Arg) -> std::result::Result<String, String> {
        match arg {
            Arg::Text(text) => Ok(text.to_string()),
            other => unfit("a string", other),
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<String, String> {
        Err("can't differ from sample to sample".into())
    }
}

impl FromArg for Vec<i64> {
    fn from_constant(arg: &Arg) -> std::result::Result<Vec<i64>, String> {
        match arg {
            Arg::Ints(values) => all(values.iter().copied()),
            Arg::Int(value) => Ok(vec![*value]),
            other => unfit("integers", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Vec<i64>, String> {
        ints(sample)
    }
}

impl FromArg for Vec<f64> {
    fn from_constant(arg: &Arg) -> std::result::Result<Vec<f64>, String> {
        match arg {
            Arg::Floats(values) => all(values.iter().copied()),
            Arg::Float(value) => Ok(vec![*value]),
            ints => Vec::<i64>::from_constant(ints)
                .map(|values| values.into_iter().map(|value| value as f64).collect())
                .or_else(|_| unfit("numbers", ints)),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Vec<f64>, String> {
        floats(sample)
    }
}

/// A few numbers, without memory of their own.
impl FromArg for SmallVec<[i64; 6]> {
    fn from_constant(arg: &Arg) -> std::result::Result<Self, String> {
        match arg {
            Arg::Ints(values) => few(values.iter().copied()),
            Arg::Int(value) => Ok(SmallVec::from_slice(&[*value])),
            other => unfit("integers", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Self, String> {
        ints(sample).map(SmallVec::from_vec)
    }
}

impl FromArg for SmallVec<[f64; 6]> {
    fn from_constant(arg: &Arg) -> std::result::Result<Self, String> {
        match arg {
            Arg::Floats(values) => few(values.iter().copied()),
            Arg::Ints(values) => few(values.iter().map(|&value| value as f64)),
            Arg::Float(value) => Ok(SmallVec::from_slice(&[*value])),
            Arg::Int(value) => Ok(SmallVec::from_slice(&[*value as f64])),
            other => unfit("numbers", other),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Self, String> {
        floats(sample).map(SmallVec::from_vec)
    }
}

/// Letters of axes.
impl FromArg for Layout {
    fn from_constant(arg: &Arg) -> std::result::Result<Layout, String> {
        match arg {
            Arg::Text(letters) => Layout::new(letters).ok_or_else(|| {
                format!("has at most {} ASCII letters, got {letters:?}", Layout::MAX)
            }),
            other => unfit("letters of axes", other),
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Layout, String> {
        Err("can't differ from sample to sample".into())
    }
}

impl<T: FromArg> FromArg for Option<T> {
    fn from_constant(arg: &Arg) -> std::result::Result<Option<T>, String> {
        match arg {
            Arg::Absent => Ok(None),
            other => T::from_constant(other).map(Some),
        }
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Option<T>, String> {
        T::from_sample(sample).map(Some)
    }
}

impl FromArg for Stream {
    fn from_constant(arg: &Arg) -> std::result::Result<Stream, String> {
        unfit("an RNG", arg)
    }

    fn from_sample(_: &Sample) -> std::result::Result<Stream, String> {
        Err("can't be data".into())
    }

    fn from_draw(stream: Stream) -> std::result::Result<Stream, String> {
        Ok(stream)
    }
}
