//! What is noted about a call.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::super::node::{Call, Output, Pick};
use super::super::pool::Pool;
use super::super::value::{Handle, Value};
use super::reasons::Why;
use crate::kernels::{Arg, Draw, Operator, Places, Position};
use crate::value::{Device, Layout, Lineage, Sample};

/// Identifies a call within an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub site: u32,
    pub operator: usize,
    /// Earlier calls of the operator at that site in the iteration.
    pub occurrence: u32,
}

/// Where an input of a call comes from.
#[derive(Clone)]
pub enum Origin {
    /// This output of the loop's item.
    Item(usize),
    /// This output of another call of the iteration.
    Result(Key, usize),
    /// A few bytes: any value with the same ones is as good. A handle, which keeps them.
    Constant(Handle),
    /// This very value. Weak, but keeps others from having its address.
    Other(Weak<Value>),
}

/// All of a call that must be the same in each iteration.
pub struct Shape {
    pub operator: Operator,
    pub data_inputs: usize,
    /// Those that are draws are not compared.
    pub args: SmallVec<[Arg; 4]>,
    pub samples: usize,
    /// Whether the results are batches rather than single samples.
    pub batch: bool,
    pub layout: Layout,
    pub device: Device,
    pub outputs: SmallVec<[Output; 1]>,
    pub inputs: SmallVec<[(Origin, Pick); 2]>,
    pub pool: Weak<Pool>,
}

/// A call of an iteration.
#[derive(Clone)]
pub struct Note {
    pub key: Key,
    pub shape: Arc<Shape>,
    pub draws: SmallVec<[Drawn; 1]>,
    pub results: SmallVec<[Weak<Value>; 1]>,
    /// Whether somebody has read a result.
    pub read: Arc<AtomicBool>,
    /// Whether it was work for a worker, so that running it early gains something.
    pub worthwhile: bool,
}

/// Values of at most this many bytes are compared by their bytes.
const CONSTANT_BYTES: usize = 256;

impl Shape {
    pub fn new(
        call: &Call,
        outputs: &[Output],
        batch: bool,
        pool: &Arc<Pool>,
        origin: impl Fn(&Arc<Value>) -> Origin,
    ) -> Shape {
        let inputs = call.inputs.iter().map(|input| (origin(&input.value), input.pick.clone()));
        Shape {
            operator: call.operator.clone(),
            data_inputs: call.data_inputs,
            args: call.args.clone(),
            samples: call.samples,
            batch,
            layout: call.layout,
            device: call.device,
            outputs: outputs.iter().cloned().collect(),
            inputs: inputs.collect(),
            pool: Arc::downgrade(pool),
        }
    }

    /// The first thing in which a call differs, apart from inputs and draws.
    pub fn differs_from_call(
        &self,
        call: &Call,
        outputs: &[Output],
        batch: bool,
        pool: &Arc<Pool>,
    ) -> Option<Why> {
        let picks = || {
            self.inputs.len() == call.inputs.len()
                && self.inputs.iter().zip(&call.inputs).all(|(a, b)| same_pick(&a.1, &b.pick))
        };
        if let Some(index) = different_arg(&self.args, &call.args) {
            return Some(Why::Argument(index));
        }
        let same = self.data_inputs == call.data_inputs
            && self.samples == call.samples
            && self.batch == batch
            && self.layout == call.layout
            && self.device == call.device
            && self.outputs[..] == *outputs
            && std::ptr::eq(self.pool.as_ptr(), Arc::as_ptr(pool))
            && picks();
        (!same).then_some(Why::Results)
    }

    /// The first thing in which a call of another iteration differs, apart from draws.
    pub fn differs_from(&self, other: &Shape) -> Option<Why> {
        self.differs_but_for_keys(other, |own, others| own == others)
    }

    /// The same, where `is_same` tells which call of the other iteration is which of this one's.
    pub fn differs_but_for_keys(
        &self,
        other: &Shape,
        is_same: impl Fn(&Key, &Key) -> bool,
    ) -> Option<Why> {
        if let Some(index) = different_arg(&self.args, &other.args) {
            return Some(Why::Argument(index));
        }
        let same = self.data_inputs == other.data_inputs
            && self.samples == other.samples
            && self.batch == other.batch
            && self.layout == other.layout
            && self.device == other.device
            && self.outputs == other.outputs
            && self.pool.ptr_eq(&other.pool)
            && self.inputs.len() == other.inputs.len();
        if !same {
            return Some(Why::Results);
        }
        let inputs = self.inputs.iter().zip(&other.inputs);
        let differs = |(a, b): (&(Origin, Pick), &(Origin, Pick))| {
            !same_pick(&a.1, &b.1)
                || !match (&a.0, &b.0) {
                    (Origin::Item(a), Origin::Item(b)) => a == b,
                    (Origin::Result(a, i), Origin::Result(b, j)) => is_same(a, b) && i == j,
                    (Origin::Constant(a), Origin::Constant(b)) => is_equal(a, b),
                    (Origin::Other(a), Origin::Other(b)) => a.ptr_eq(b),
                    _ => false,
                }
        };
        { inputs }.position(differs).map(Why::Input)
    }
}

/// What a call drew from.
#[derive(Clone)]
pub enum Drawn {
    At(Position),
    /// Streams of the samples of this output of the item, with this seed, after so many other draws.
    OfItem {
        output: usize,
        seed: u64,
        place: u32,
    },
    /// Streams of other samples.
    Other,
}

impl Drawn {
    /// What a draw is in terms of the iteration whose item has these samples.
    pub fn new(draw: &Draw, item: &[Option<Lineage>]) -> Drawn {
        let draw = match draw {
            Draw::At(position) => return Drawn::At(*position),
            Draw::BySample(draw) => draw,
        };
        let is_same =
            |own: &Option<Lineage>| own.as_ref().is_some_and(|l| l.is_same(&draw.lineage));
        match (&draw.places, item.iter().position(is_same)) {
            (&Places::Same(place), Some(output)) => {
                Drawn::OfItem { output, seed: draw.seed, place }
            }
            _ => Drawn::Other,
        }
    }
}

/// The draws among arguments.
pub fn draws(args: &[Arg]) -> impl Iterator<Item = &Draw> {
    args.iter().filter_map(|arg| match arg {
        Arg::Draw(draw) => Some(draw),
        _ => None,
    })
}

fn different_arg(a: &[Arg], b: &[Arg]) -> Option<usize> {
    if a.len() != b.len() {
        return Some(a.len().min(b.len()));
    }
    // By their bits: zeros have signs, and NaN is not equal to itself.
    let same_floats = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
    };
    let same = |(a, b): (&Arg, &Arg)| match (a, b) {
        (Arg::Absent, Arg::Absent) | (Arg::Draw(_), Arg::Draw(_)) => true,
        (Arg::Int(a), Arg::Int(b)) => a == b,
        (Arg::Float(a), Arg::Float(b)) => a.to_bits() == b.to_bits(),
        (Arg::Text(a), Arg::Text(b)) => a == b,
        (Arg::Ints(a), Arg::Ints(b)) => a == b,
        (Arg::Floats(a), Arg::Floats(b)) => same_floats(a, b),
        (Arg::Input(a), Arg::Input(b)) => a == b,
        _ => false,
    };
    a.iter().zip(b).position(|pair| !same(pair))
}

fn same_pick(a: &Pick, b: &Pick) -> bool {
    match (a, b) {
        (Pick::Same, Pick::Same) => true,
        (Pick::One(a), Pick::One(b)) => a == b,
        (Pick::Listed(a), Pick::Listed(b)) => a == b,
        _ => false,
    }
}

/// Whether a value is compared by its bytes. Not as an input of a call that may return a view of it,
/// and not if results should know which samples of a data set they were made from.
pub fn is_constant(value: &Value) -> bool {
    if value.lineage().is_some()
        || !value.is_finished()
        || value.meta.device != Device::Cpu
        || value.len() > CONSTANT_BYTES
    {
        return false;
    }
    let mut bytes = 0;
    (0..value.len()).all(|index| {
        let Some(Ok(sample)) = value.peek(index) else { return false };
        bytes += sample.desc.bytes();
        bytes <= CONSTANT_BYTES && sample.is_contiguous() && sample.source.is_none()
    })
}

/// Whether constants have the same bytes.
pub fn is_equal(a: &Value, b: &Value) -> bool {
    if std::ptr::eq(a, b) {
        return true;
    }
    let same = |(a, b): (Sample, Sample)| {
        a.desc == b.desc && a.elements_as_bytes() == b.elements_as_bytes()
    };
    let samples = |index| Some((a.peek(index)?.ok()?, b.peek(index)?.ok()?));
    a.meta == b.meta
        && a.len() == b.len()
        && is_constant(a)
        && is_constant(b)
        && (0..a.len()).all(|index| samples(index).is_some_and(same))
}
