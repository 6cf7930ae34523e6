//! A loop over items, and the calls of its iterations.
//!
//! Each thread has a stack of the loops that it is in, innermost last. A call belongs to the
//! innermost loop whose item it follows from; without one, to the innermost.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::thread::{self, ThreadId};

use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;

use super::super::lend::put_off;
use super::super::node::{Call, Input, Node, Output, Pick};
use super::super::pool::Pool;
use super::super::process::epoch;
use super::super::profile;
use super::super::value::{Handle, Value, lock};
use super::item::{Early, Garbage, Item, State};
use super::note::{Drawn, Key, Note, Origin, Shape, draws, is_constant, is_equal};
use super::plan::{Feed, Plan};
use super::reasons::{self, Reason, Why};
use crate::value::{Lineage, loan_time};

type Values = SmallVec<[Arc<Value>; 4]>;

/// A loop. Its contents belong to the thread that iterates.
pub struct Loop {
    /// Number of forks between the first process and the one that it was made in.
    epoch: u32,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    /// The process's number of forks: nothing of a parent is used.
    epoch: u32,
    thread: Option<ThreadId>,
    /// The iterator that the current iteration belongs to.
    iterator: u64,
    /// The current item. Weak, but keeps other values from having its addresses.
    item: SmallVec<[Weak<Value>; 4]>,
    sizes: SmallVec<[usize; 4]>,
    /// Which samples of a data set the outputs of the current item are.
    lineages: SmallVec<[Option<Lineage>; 4]>,
    /// Values of the iteration, by address.
    known: HashMap<usize, Known>,
    occurrences: HashMap<(u32, usize), u32>,
    notes: Vec<Note>,
    before: Vec<Note>,
    before_sizes: SmallVec<[usize; 4]>,
    /// Those of the last item whose size was not the usual one.
    odd: Vec<Note>,
    /// Whether a call of the iteration was not planned.
    is_new: bool,
    plan: Option<Plan>,
    /// What was submitted for the current item.
    current: Option<Item>,
    /// The next items, in order.
    items: VecDeque<Item>,
    /// Bytes that the results for an item have.
    item_bytes: usize,
    /// Number of iterations.
    iteration: u64,
    /// How many iterations in a row have had nothing in common with the one before.
    failures: u32,
    /// For so many iterations nothing is noted.
    rest: u32,
    mistrust: HashMap<Key, Mistrust>,
}

/// Where a value comes from; and if it was made early, the place of the call among those of the
/// item, and its output.
type Known = (Origin, Option<(usize, usize)>);

/// Calls that were often run early in vain: each time that happens, they are left out for longer.
#[derive(Clone, Copy, Default)]
struct Mistrust {
    level: u32,
    /// The iteration until which the call is left out.
    until: u64,
}

/// The longest time, as a power of two of iterations, for which a call is left out.
const MAX_MISTRUST: u32 = 6;

/// A loop without calls that repeat is not watched all the time: after so many iterations in which
/// nothing was learned, it is left alone for longer and longer, up to a power of two of iterations.
const PATIENCE: u32 = 8;
const MAX_REST: u32 = 6;

/// What became of a call.
pub enum Taken {
    /// It was made early.
    Early(SmallVec<[Handle; 1]>),
    /// It must be run, and then be noted.
    Run(Option<Ticket>),
}

/// A call that will be noted once it is submitted.
pub struct Ticket {
    course: Arc<Loop>,
    note: Note,
}

thread_local! {
    static STACK: RefCell<Vec<Weak<Loop>>> = const { RefCell::new(Vec::new()) };
}

/// Whether the calling thread is in a loop.
pub fn is_active() -> bool {
    STACK.with_borrow(|stack| !stack.is_empty())
}

/// Looks for a call among those that were made early.
pub fn take(
    operator: usize,
    call: &Call,
    outputs: &[Output],
    batch: bool,
    pool: &Arc<Pool>,
) -> Taken {
    let Some(course) = STACK.with_borrow_mut(|stack| innermost(stack, call)) else {
        return Taken::Run(None);
    };
    let mut garbage = Garbage::default();
    let Some(mut contents) = course.try_lock() else { return Taken::Run(None) };
    if contents.thread != Some(thread::current().id()) || contents.item.is_empty() {
        return Taken::Run(None);
    }
    let made = contents.take(operator, call, outputs, batch, pool, &mut garbage);
    drop(contents);
    match made {
        Ok(handles) => Taken::Early(handles),
        Err(note) => Taken::Run(Some(Ticket { course, note })),
    }
}

/// The loop that a call belongs to.
fn innermost(stack: &mut Vec<Weak<Loop>>, call: &Call) -> Option<Arc<Loop>> {
    if stack.is_empty() {
        return None;
    }
    stack.retain(|course| course.strong_count() > 0);
    let innermost = stack.last()?.upgrade()?;
    if stack.len() == 1 {
        return Some(innermost);
    }
    let knows = |course: &Arc<Loop>| {
        course.try_lock().is_some_and(|contents| {
            call.inputs.iter().any(|input| contents.known.contains_key(&address(&input.value)))
        })
    };
    let found = stack.iter().rev().filter_map(Weak::upgrade).find(knows);
    Some(found.unwrap_or(innermost))
}

fn address(value: &Arc<Value>) -> usize {
    Arc::as_ptr(value).addr()
}

impl Ticket {
    /// The call was submitted; these are its results.
    pub fn made(self, results: &[Handle]) {
        let Ticket { course, mut note } = self;
        note.worthwhile = results.iter().any(|handle| handle.has_maker());
        let mut garbage = Garbage::default();
        if let Some(mut contents) = course.try_lock() {
            contents.note(note, results, None);
        } else {
            garbage.others.push(Box::new(note));
        }
    }
}

impl Default for Loop {
    fn default() -> Loop {
        Loop {
            epoch: epoch(),
            contents: Mutex::new(Contents { epoch: epoch(), ..Contents::default() }),
        }
    }
}

impl Loop {
    /// `None` if it is in use: by code that runs inside of another call, or by another thread.
    fn try_lock(&self) -> Option<MutexGuard<'_, Contents>> {
        match self.contents.try_lock() {
            Ok(contents) => Some(contents),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for the lock; whoever holds it does not wait for anything. In a forked child it may be
    /// held by a thread that does not exist there.
    fn lock(&self) -> Option<MutexGuard<'_, Contents>> {
        if self.epoch == epoch() { Some(lock(&self.contents)) } else { self.try_lock() }
    }

    /// The loop gets its next item. `upcoming` are the items after it, of which at most `depth` are
    /// run early.
    pub fn begin(
        self: &Arc<Loop>,
        iterator: u64,
        values: Values,
        upcoming: Vec<Values>,
        depth: usize,
    ) {
        let mut garbage = Garbage::default();
        let Some(mut contents) = self.lock() else { return };
        contents.leave_parent();
        let here = thread::current().id();
        if contents.thread.is_some_and(|thread| thread != here) && contents.iterator == iterator {
            // Threads that share an iterator have no iterations of their own.
            contents.clear(&mut garbage);
            return;
        }
        contents.thread = Some(here);
        contents.iterator = iterator;
        contents.close(&mut garbage);
        if contents.rest > 0 {
            contents.rest -= 1;
            contents.stand_by(&mut garbage);
            garbage.others.push(Box::new((values, upcoming)));
        } else {
            contents.open(values, &mut garbage);
            contents.look_ahead(upcoming, depth, &mut garbage);
        }
        drop(contents);
        STACK.with_borrow_mut(|stack| {
            let own = Arc::as_ptr(self);
            let place = stack.iter().position(|course| std::ptr::eq(course.as_ptr(), own));
            match place {
                Some(place) => stack.truncate(place + 1),
                None => stack.push(Arc::downgrade(self)),
            }
        });
    }

    /// Submits early what follows for an item that has just become available.
    pub fn offer(&self, values: Values, depth: usize) {
        let mut garbage = Garbage::default();
        let Some(mut contents) = self.lock() else { return };
        contents.leave_parent();
        if contents.thread.is_some() && contents.items.len() < depth {
            let steps = contents.items.len() as u128 + 2;
            contents.submit(values, steps, &mut garbage);
        }
    }

    /// The iterator is at its end, or will not be used any more: what was run early is dropped.
    pub fn end(&self, iterator: u64, is_complete: bool) {
        if let Some(contents) = self.lock() {
            self.finish(contents, iterator, is_complete);
        }
    }

    /// The iterator is gone. May be called by whatever is dropped while the lock is held.
    pub fn abandon(&self, iterator: u64) {
        if let Some(contents) = self.try_lock() {
            self.finish(contents, iterator, false);
        }
    }

    fn finish(&self, mut contents: MutexGuard<'_, Contents>, iterator: u64, is_complete: bool) {
        let mut garbage = Garbage::default();
        contents.leave_parent();
        if contents.iterator != iterator {
            return;
        }
        if is_complete {
            contents.close(&mut garbage);
        }
        contents.clear(&mut garbage);
        drop(contents);
        let own = std::ptr::from_ref(self);
        let _ = STACK.try_with(|stack| {
            if let Ok(mut stack) = stack.try_borrow_mut() {
                stack.retain(|course| !std::ptr::eq(course.as_ptr(), own));
            }
        });
    }

    /// The upcoming items have changed: drops what was run early.
    pub fn clear(&self) {
        let mut garbage = Garbage::default();
        let Some(mut contents) = self.lock() else { return };
        contents.leave_parent();
        contents.drop_items(&mut garbage);
    }
}

impl Contents {
    /// In a forked child, nothing of the parent's can be used, or dropped.
    fn leave_parent(&mut self) {
        if self.epoch != epoch() {
            let contents = Contents { epoch: epoch(), ..Contents::default() };
            std::mem::forget(std::mem::replace(self, contents));
        }
    }

    fn drop_items(&mut self, garbage: &mut Garbage) {
        for mut item in self.items.drain(..) {
            item.drop_rest(garbage);
            garbage.others.push(Box::new(item));
        }
    }

    /// Ends the iteration, without another one.
    fn clear(&mut self, garbage: &mut Garbage) {
        self.drop_items(garbage);
        if let Some(mut item) = self.current.take() {
            item.drop_rest(garbage);
            garbage.others.push(Box::new(item));
        }
        self.thread = None;
        self.stand_by(garbage);
    }

    /// Leaves the current iteration alone.
    fn stand_by(&mut self, garbage: &mut Garbage) {
        self.item.clear();
        self.lineages.clear();
        self.known.clear();
        self.occurrences.clear();
        garbage.others.push(Box::new(std::mem::take(&mut self.notes)));
    }

    /// Ends the iteration, and learns from it.
    fn close(&mut self, garbage: &mut Garbage) {
        if self.item.is_empty() {
            return;
        }
        self.iteration += 1;
        let was_early = self.current.is_some();
        if let Some(mut item) = self.current.take() {
            for key in item.unused() {
                self.is_new = true;
                self.mistrust(key);
            }
            item.drop_rest(garbage);
            garbage.others.push(Box::new(item));
        }
        let notes = std::mem::take(&mut self.notes);
        let sizes = std::mem::replace(&mut self.before_sizes, self.sizes.clone());
        if let Some(plan) = &mut self.plan {
            // After a single item of another size, such as an epoch's last batch, and after the
            // first item of an epoch, for which nothing can be early, the plan is as good as before.
            let is_odd = plan.sizes != self.sizes;
            if is_odd && sizes != self.sizes {
                plan.advance(&notes);
                garbage.others.push(Box::new(std::mem::replace(&mut self.odd, notes)));
                return;
            }
            let is_as_planned = !self.is_new && notes.len() == plan.entries.len();
            if !is_odd && (is_as_planned || !was_early && plan.is_confirmed_by(&notes)) {
                plan.advance(&notes);
                garbage.others.push(Box::new(std::mem::replace(&mut self.before, notes)));
                return;
            }
            if is_odd {
                std::mem::swap(&mut self.before, &mut self.odd);
            }
        }
        let is_trusted =
            |key: &Key| self.mistrust.get(key).is_none_or(|known| known.until <= self.iteration);
        let plan = Plan::learn(&self.before, &notes, &self.sizes, is_trusted);
        match &plan {
            Some(_) => self.failures = 0,
            None if self.before.is_empty() || notes.is_empty() => {}
            None => self.failures += 1,
        }
        let failed = self.failures >= PATIENCE && !self.before.is_empty();
        garbage.others.push(Box::new(std::mem::replace(&mut self.plan, plan)));
        garbage.others.push(Box::new(std::mem::replace(&mut self.before, notes)));
        if failed {
            self.rest = 1 << MAX_REST.min(self.failures - PATIENCE + 1);
            // What is compared must be of neighboring iterations.
            garbage.others.push(Box::new(std::mem::take(&mut self.before)));
        }
    }

    fn mistrust(&mut self, key: Key) {
        let known = self.mistrust.entry(key).or_default();
        known.level = MAX_MISTRUST.min(known.level + 1);
        known.until = self.iteration + (1 << known.level);
    }

    /// Begins an iteration.
    fn open(&mut self, values: Values, garbage: &mut Garbage) {
        while let Some(mut item) = self.items.pop_front() {
            if item.is_of(&values) {
                let bytes = item.bytes();
                if bytes > 0 {
                    self.item_bytes = bytes;
                }
                self.current = Some(item);
                break;
            }
            item.drop_rest(garbage);
            garbage.others.push(Box::new(item));
        }
        self.is_new = false;
        self.occurrences.clear();
        self.known.clear();
        let known = values.iter().enumerate();
        let known = known.map(|(output, value)| (address(value), (Origin::Item(output), None)));
        self.known.extend(known);
        self.item = values.iter().map(Arc::downgrade).collect();
        self.sizes = values.iter().map(|value| value.len()).collect();
        self.lineages = values.iter().map(|value| value.lineage().cloned()).collect();
        garbage.others.push(Box::new(values));
    }

    /// Runs upcoming items early.
    fn look_ahead(&mut self, upcoming: Vec<Values>, depth: usize, garbage: &mut Garbage) {
        for (place, values) in upcoming.into_iter().take(depth).enumerate() {
            match self.items.get(place) {
                Some(item) if item.is_of(&values) => garbage.others.push(Box::new(values)),
                Some(_) => {
                    // The order has changed.
                    for mut item in self.items.drain(place..) {
                        item.drop_rest(garbage);
                        garbage.others.push(Box::new(item));
                    }
                    self.submit(values, place as u128 + 2, garbage);
                }
                None => self.submit(values, place as u128 + 2, garbage),
            }
        }
        while self.items.len() > depth {
            if let Some(mut item) = self.items.pop_back() {
                item.drop_rest(garbage);
                garbage.others.push(Box::new(item));
            }
        }
    }

    fn submit(&mut self, values: Values, iterations: u128, garbage: &mut Garbage) {
        let Some(plan) = &self.plan else { return garbage.others.push(Box::new(values)) };
        let pool = plan.entries.iter().find_map(|entry| entry.shape.pool.upgrade());
        let has_room = pool.is_some_and(|pool| {
            let bytes = self.item_bytes.saturating_mul(self.items.len() + 1);
            !pool.is_full_of_early() && bytes <= pool.limit_bytes()
        });
        // How much memory an item takes is known once one has been run.
        let is_first = self.item_bytes == 0 && !self.items.is_empty();
        if has_room && !is_first {
            self.items.push_back(Item::submit(plan, values, iterations, garbage));
        } else {
            garbage.others.push(Box::new(values));
        }
    }

    fn take(
        &mut self,
        operator: usize,
        call: &Call,
        outputs: &[Output],
        batch: bool,
        pool: &Arc<Pool>,
        garbage: &mut Garbage,
    ) -> Result<SmallVec<[Handle; 1]>, Note> {
        let count = self.occurrences.entry((call.site, operator)).or_default();
        let key = Key { site: call.site, operator, occurrence: *count };
        *count += 1;
        let found = self.current.as_ref().and_then(|item| item.find(&key));
        if let Some(place) = found
            && let Some(item) = &mut self.current
            && matches!(item.calls[place].state, State::Waiting(..))
        {
            let early = &item.calls[place];
            let why = differs(early, item.time, &self.known, call, outputs, batch, pool);
            let Some(why) = why else {
                let note = early.note(key, early.shape.clone());
                if let Some(known) = self.mistrust.get_mut(&key) {
                    known.level = known.level.saturating_sub(1);
                }
                return Ok(self.hand_over(place, note, call, outputs, pool, garbage));
            };
            item.drop_call(place, garbage);
            self.mistrust(key);
            if let Why::Argument(_) | Why::Draw(_) = why {
                // It will hardly be as expected for the next items.
                for item in &mut self.items {
                    if let Some(place) = item.find(&key) {
                        item.drop_call(place, garbage);
                    }
                }
            }
            if !matches!(why, Why::Input(_)) {
                reasons::note(Reason { operator, site: call.site, why });
            }
        }
        self.is_new = true;
        let work = &call.operator.work;
        let may_be_view = work.is_whole_batch() || work.traits().view;
        let origin = |value: &Arc<Value>| match self.known.get(&address(value)) {
            Some((origin, _)) => origin.clone(),
            None if !may_be_view && is_constant(value) => {
                Origin::Constant(Handle::new(value.clone()))
            }
            None => Origin::Other(Arc::downgrade(value)),
        };
        let shape = Arc::new(Shape::new(call, outputs, batch, pool, origin));
        if found.is_none()
            && let Some(place) = self.find_elsewhere(operator, call, outputs, batch, pool)
            && let Some(item) = &self.current
        {
            let note = item.calls[place].note(key, shape);
            return Ok(self.hand_over(place, note, call, outputs, pool, garbage));
        }
        Err(Note {
            key,
            shape,
            draws: draws(&call.args).map(|draw| Drawn::new(draw, &self.lineages)).collect(),
            results: SmallVec::new(),
            read: Arc::new(AtomicBool::new(false)),
            worthwhile: false,
        })
    }

    /// A call that was made early and is this one, although the program has come to it by another
    /// way: the loop may be in a function that is called from several places.
    fn find_elsewhere(
        &self,
        operator: usize,
        call: &Call,
        outputs: &[Output],
        batch: bool,
        pool: &Arc<Pool>,
    ) -> Option<usize> {
        let item = self.current.as_ref()?;
        let is_it = |early: &Early| {
            early.operator == operator
                && matches!(early.state, State::Waiting(..))
                && differs(early, item.time, &self.known, call, outputs, batch, pool).is_none()
        };
        let place = item.calls.iter().position(is_it)?;
        item.calls[place].move_to(call.site).then_some(place)
    }

    /// The results of a call that was made early.
    fn hand_over(
        &mut self,
        place: usize,
        note: Note,
        call: &Call,
        outputs: &[Output],
        pool: &Arc<Pool>,
        garbage: &mut Garbage,
    ) -> SmallVec<[Handle; 1]> {
        let Some(item) = &mut self.current else { return SmallVec::new() };
        let early = &mut item.calls[place];
        let State::Waiting(handles, node) = std::mem::replace(&mut early.state, State::Used) else {
            return SmallVec::new();
        };
        if let Some(node) = node {
            node.pool().adopt(&node);
            garbage.others.push(Box::new(node));
        }
        reasons::count(&reasons::USED, 1);
        profile::note_ahead(call.operator.name, call.site);
        let handles = match handles.is_empty() {
            false => handles,
            true => computed_on_demand(early, call, outputs, pool),
        };
        self.note(note, &handles, Some(place));
        handles
    }

    /// Notes a call; `early` is its place among those of the item that were made early.
    fn note(&mut self, mut note: Note, results: &[Handle], early: Option<usize>) {
        for (output, handle) in results.iter().enumerate() {
            let origin = Origin::Result(note.key, output);
            let early = early.map(|place| (place, output));
            self.known.insert(address(handle.value()), (origin, early));
            note.results.push(Arc::downgrade(handle.value()));
            if early.is_none() {
                handle.watch(note.read.clone());
            }
        }
        self.notes.push(note);
    }
}

/// Values for a call whose results were not kept: they are computed again if they are read.
fn computed_on_demand(
    early: &Early,
    call: &Call,
    outputs: &[Output],
    pool: &Arc<Pool>,
) -> SmallVec<[Handle; 1]> {
    let (node, handles) = Node::new(call.clone(), outputs.iter().cloned(), pool.clone());
    handles.iter().for_each(|handle| handle.watch(early.read.clone()));
    put_off(&node, &handles);
    handles
}

/// In what a call differs from one that was made early.
fn differs(
    early: &Early,
    time: u64,
    known: &HashMap<usize, Known>,
    call: &Call,
    outputs: &[Output],
    batch: bool,
    pool: &Arc<Pool>,
) -> Option<Why> {
    if let Some(why) = early.shape.differs_from_call(call, outputs, batch, pool) {
        return Some(why);
    }
    if let Some(place) = draws(&call.args).zip(&early.draws).position(|(a, b)| *a != b.0) {
        return Some(Why::Draw(place));
    }
    let lent = loan_time() != time;
    let is_written = |value: &Value| lent && value.lies_in(|buffer| buffer.was_lent_since(time));
    let inputs = call.inputs.iter().zip(&early.shape.inputs).zip(&early.feeds);
    let is_other = |((input, (origin, _)), feed): ((&Input, &(Origin, Pick)), &Feed)| {
        let value = &input.value;
        let same = match (origin, feed) {
            (Origin::Constant(_), Feed::Value(fed)) => !is_written(fed) && is_equal(fed, value),
            (Origin::Other(_), Feed::Value(fed)) => Arc::ptr_eq(fed, value),
            (Origin::Item(output), _) => {
                matches!(known.get(&address(value)), Some((Origin::Item(o), _)) if o == output)
            }
            (Origin::Result(..), Feed::Result(entry, output)) => {
                known.get(&address(value)).is_some_and(|known| known.1 == Some((*entry, *output)))
            }
            _ => false,
        };
        !same || is_written(value)
    };
    { inputs }.position(is_other).map(Why::Input)
}
