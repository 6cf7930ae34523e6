//! Calls that were submitted early for one item.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;

use super::super::node::{Call, Input, Node};
use super::super::value::{Handle, Value};
use super::note::{Drawn, Key, Note, Shape};
use super::plan::{Entry, Feed, Plan};
use super::reasons;
use crate::kernels::{Arg, Draw, Places, SampleDraw};
use crate::value::{is_anything_lent, loan_time};

/// An item, with the calls that were submitted for it.
pub struct Item {
    /// The item's outputs.
    pub values: SmallVec<[Arc<Value>; 4]>,
    pub calls: Vec<Early>,
    index: Arc<HashMap<Key, usize>>,
    /// The time at which they were submitted: memory must not have been lent since.
    pub time: u64,
}

/// A call that was submitted early.
pub struct Early {
    /// Number of the operator.
    pub operator: usize,
    pub shape: Arc<Shape>,
    pub feeds: SmallVec<[Feed; 2]>,
    /// What it draws from, also as it would be noted.
    pub draws: SmallVec<[(Draw, Drawn); 1]>,
    pub state: State,
    pub read: Arc<AtomicBool>,
}

pub enum State {
    /// The results, or nothing if they are internal; and the node, unless it has run.
    Waiting(SmallVec<[Handle; 1]>, Option<Arc<Node>>),
    Used,
    Dropped,
}

/// What is dropped once no lock is held: that may run any code.
#[derive(Default)]
pub struct Garbage {
    pub nodes: Vec<Arc<Node>>,
    pub handles: Vec<Handle>,
    pub others: Vec<Box<dyn std::any::Any + Send>>,
}

impl Drop for Garbage {
    fn drop(&mut self) {
        self.handles.clear();
        if !self.nodes.is_empty() {
            super::super::pool::Pool::cancel(&self.nodes);
        }
    }
}

impl Item {
    /// An item for which nothing was submitted.
    pub fn empty(values: SmallVec<[Arc<Value>; 4]>) -> Item {
        Item { values, calls: Vec::new(), index: Arc::default(), time: 0 }
    }

    /// Submits the calls of a plan, `iterations` after the one that it was last up to date with.
    pub fn submit(
        plan: &Plan,
        values: SmallVec<[Arc<Value>; 4]>,
        iterations: u128,
        garbage: &mut Garbage,
    ) -> Item {
        let sizes = values.iter().map(|value| value.len());
        if !sizes.eq(plan.sizes.iter().copied()) {
            return Item::empty(values);
        }
        let time = loan_time();
        let mut made: Vec<Option<SmallVec<[Handle; 1]>>> = Vec::with_capacity(plan.entries.len());
        let mut calls = Vec::with_capacity(plan.entries.len());
        for entry in &plan.entries {
            let draws = drawn(entry, &values, iterations).unwrap_or_default();
            let submitted = call(entry, &values, &made, &draws).and_then(|call| {
                let pool = entry.shape.pool.upgrade()?;
                Some(Node::submit_early(call, entry.shape.outputs.iter().cloned(), pool))
            });
            let state = match submitted {
                Some((node, handles)) => {
                    let kept = if entry.internal { SmallVec::new() } else { handles.clone() };
                    kept.iter().for_each(|handle| handle.watch(entry.read.clone()));
                    made.push(Some(handles));
                    State::Waiting(kept, node)
                }
                None => {
                    made.push(None);
                    State::Dropped
                }
            };
            let (shape, read) = (entry.shape.clone(), entry.read.clone());
            let (operator, feeds) = (entry.key.operator, entry.feeds.clone());
            calls.push(Early { operator, shape, feeds, draws, state, read });
        }
        let count = made.iter().flatten().count();
        reasons::count(&reasons::PREDICTED, count);
        garbage.handles.extend(made.into_iter().flatten().flatten());
        Item { values, calls, index: plan.index.clone(), time }
    }

    pub fn is_of(&self, values: &[Arc<Value>]) -> bool {
        self.values.len() == values.len()
            && self.values.iter().zip(values).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    pub fn find(&self, key: &Key) -> Option<usize> {
        self.index.get(key).copied()
    }

    /// Drops a call and those that depend on it.
    pub fn drop_call(&mut self, first: usize, garbage: &mut Garbage) {
        let mut gone = vec![false; self.calls.len()];
        gone[first] = true;
        for place in first..self.calls.len() {
            let call = &mut self.calls[place];
            let depends = |feed: &Feed| matches!(feed, Feed::Result(entry, _) if gone[*entry]);
            if place == first || call.feeds.iter().any(depends) {
                gone[place] = true;
                call.end(garbage);
            }
        }
    }

    /// Calls that were not made, except those that depend on others.
    pub fn unused(&self) -> Vec<Key> {
        let is_unused = |place: usize| {
            let call = &self.calls[place];
            let is_root = |feed: &Feed| match feed {
                Feed::Result(entry, _) => matches!(self.calls[*entry].state, State::Used),
                _ => true,
            };
            matches!(call.state, State::Waiting(..)) && call.feeds.iter().all(is_root)
        };
        let keys = self.index.iter().filter(|(_, place)| is_unused(**place));
        keys.map(|(key, _)| *key).collect()
    }

    /// Drops all calls that have not been used.
    pub fn drop_rest(&mut self, garbage: &mut Garbage) {
        self.calls.iter_mut().for_each(|call| call.end(garbage));
    }

    /// Bytes of the results that are kept, as far as they are known.
    pub fn bytes(&self) -> usize {
        let bytes = |handle: &Handle| {
            let count = handle.len();
            let ready: SmallVec<[usize; 8]> =
                (0..count).map(|index| handle.bytes(index)).filter(|&bytes| bytes > 0).collect();
            ready.iter().sum::<usize>() / ready.len().max(1) * count
        };
        let kept = self.calls.iter().map(|call| match &call.state {
            State::Waiting(handles, _) => handles.iter().map(bytes).sum(),
            _ => 0,
        });
        kept.sum()
    }
}

impl Early {
    /// What is noted about the user's call.
    pub fn note(&self, key: Key, shape: Arc<Shape>) -> Note {
        Note {
            key,
            shape,
            draws: self.draws.iter().map(|(_, drawn)| drawn.clone()).collect(),
            results: SmallVec::new(),
            read: self.read.clone(),
            worthwhile: true,
        }
    }

    /// Makes it a call at another place of the program; returns whether its errors will say so.
    pub fn move_to(&self, site: u32) -> bool {
        match &self.state {
            State::Waiting(_, Some(node)) => node.move_to(site),
            State::Waiting(handles, None) => handles.iter().all(|handle| handle.fault().is_none()),
            State::Used | State::Dropped => false,
        }
    }

    fn end(&mut self, garbage: &mut Garbage) {
        if matches!(self.state, State::Waiting(..))
            && let State::Waiting(handles, node) =
                std::mem::replace(&mut self.state, State::Dropped)
        {
            reasons::count(&reasons::DROPPED, 1);
            garbage.handles.extend(handles);
            garbage.nodes.extend(node);
        }
    }
}

/// The draws of an entry on an item, some iterations later; `None` if they are not known.
fn drawn(
    entry: &Entry,
    values: &[Arc<Value>],
    iterations: u128,
) -> Option<SmallVec<[(Draw, Drawn); 1]>> {
    let later = |(drawn, words): &(Drawn, u128)| match drawn.clone() {
        Drawn::At(mut position) => {
            position.advance(words.wrapping_mul(iterations));
            Some((Draw::At(position), Drawn::At(position)))
        }
        Drawn::OfItem { output, seed, place } => {
            let lineage = values.get(output)?.lineage()?.clone();
            let draw = SampleDraw { seed, places: Places::Same(place), lineage };
            Some((Draw::BySample(Arc::new(draw)), drawn.clone()))
        }
        Drawn::Other => None,
    };
    entry.draws.iter().map(later).collect()
}

/// The call of an entry on an item; `None` if an input is missing, or may be written to.
fn call(
    entry: &Entry,
    values: &[Arc<Value>],
    made: &[Option<SmallVec<[Handle; 1]>>],
    draws: &[(Draw, Drawn)],
) -> Option<Call> {
    let Shape { operator, data_inputs, args, samples, layout, device, inputs, .. } = &*entry.shape;
    let mut row = SmallVec::new();
    for (feed, (_, pick)) in entry.feeds.iter().zip(inputs) {
        let value = match feed {
            Feed::Item(output) => values.get(*output)?,
            Feed::Result(entry, output) => made[*entry].as_ref()?.get(*output)?.value(),
            Feed::Value(value) => value,
        };
        if is_anything_lent() && value.is_lent() {
            return None;
        }
        row.push(Input { value: value.clone(), pick: pick.clone() });
    }
    let mut draws = draws.iter();
    let mut arg = |arg: &Arg| match arg {
        Arg::Draw(_) => draws.next().map(|(draw, _)| Arg::Draw(draw.clone())),
        constant => Some(constant.clone()),
    };
    let args = args.iter().map(&mut arg).collect::<Option<_>>()?;
    Some(Call {
        operator: operator.clone(),
        inputs: row,
        data_inputs: *data_inputs,
        args,
        samples: *samples,
        layout: *layout,
        device: *device,
        site: entry.key.site,
    })
}
