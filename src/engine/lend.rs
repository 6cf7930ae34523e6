//! Lending memory for writing: earlier calls must finish reading it first.

use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::node::Node;
use super::pool::{Pool, on_worker};
use super::process::epoch;
use super::value::{Handle, Value, lock};
use crate::value::{Buffer, Cause, Loan, Sample};

/// Deferred nodes: they start when somebody reads one of their results.
static DEFERRED: Mutex<Vec<Weak<Node>>> = Mutex::new(Vec::new());
/// Length of `DEFERRED` at which started nodes are removed from it.
static PURGE_AT: AtomicUsize = AtomicUsize::new(FIRST_PURGE);
const FIRST_PURGE: usize = 64;

/// Defers a node until one of its values is read, or memory that it reads is lent.
pub fn put_off(node: &Arc<Node>, values: &[Handle]) {
    values.iter().for_each(|value| value.defer(node.clone()));
    let mut nodes = lock(&DEFERRED);
    nodes.push(Arc::downgrade(node));
    if nodes.len() >= PURGE_AT.load(Ordering::Relaxed) {
        let found = purge(&mut nodes);
        PURGE_AT.store(FIRST_PURGE.max(2 * nodes.len()), Ordering::Relaxed);
        drop(nodes);
        drop(found);
    }
}

/// Removes nodes that have started or no longer exist. Returns all that still exist: dropping the
/// last reference to a node can run arbitrary code, which must not happen under the lock.
fn purge(nodes: &mut Vec<Weak<Node>>) -> Vec<Arc<Node>> {
    let found: Vec<_> = nodes.iter().filter_map(Weak::upgrade).collect();
    nodes.clear();
    nodes.extend(found.iter().filter(|node| !node.is_started()).map(Arc::downgrade));
    found
}

/// The list of deferred nodes, locked during a fork.
pub(super) fn lock_put_off() -> MutexGuard<'static, Vec<Weak<Node>>> {
    lock(&DEFERRED)
}

/// Lends the memory of a value's sample. Call [`wait_for_readers`] before handing it out: earlier
/// calls may still have to read it.
///
/// A user's function on a worker gets a copy instead, since such a call may depend on it.
pub fn lend(value: &Handle, sample: Sample) -> Result<(Sample, Loan), Cause> {
    let loan = sample.lend();
    start_readers(value, &sample);
    if !sample.buffer().is_read(epoch()) {
        return Ok((sample, loan));
    }
    if on_worker() {
        let copy = sample.duplicate()?;
        let loan = copy.lend();
        return Ok((copy, loan));
    }
    Pool::hasten_readers(sample.buffer());
    Ok((sample, loan))
}

/// Waits until no task still has to read the buffer, or until the timeout; returns whether that is
/// so. Polls, because such waits are rare and short, and a lock on every read would cost more.
pub fn wait_for_readers(buffer: &Buffer, at_most: Duration) -> bool {
    let began = Instant::now();
    let mut looks = 0;
    while buffer.is_read(epoch()) {
        if began.elapsed() >= at_most {
            return false;
        }
        looks += 1;
        match looks {
            ..100 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(100)),
        }
    }
    true
}

/// Starts deferred nodes that will read the buffer.
fn start_readers(value: &Handle, sample: &Sample) {
    let buffer = sample.buffer();
    let mut nodes = lock(&DEFERRED);
    if nodes.is_empty() || is_unshared(value, sample) {
        return;
    }
    let found = purge(&mut nodes);
    drop(nodes);
    let mut known = HashMap::new();
    for node in found.iter().filter(|node| !node.is_started()) {
        if reaches(node, buffer, &mut known) {
            node.clone().start();
        }
    }
}

/// Whether only this value uses the buffer, and no node uses the value.
fn is_unshared(value: &Handle, sample: &Sample) -> bool {
    let own = std::cell::Cell::new(0);
    value.lies_in(|other| {
        own.set(own.get() + usize::from(ptr::eq(other, sample.buffer())));
        false
    });
    // The caller holds two more references: the sample's and the loan's.
    Arc::strong_count(value.value()) == 1 && sample.buffer_owners() <= own.get() + 2
}

/// Whether a node may read the buffer: its inputs are in it, or may become views of it. `known`
/// caches the answers.
fn reaches(node: &Arc<Node>, buffer: &Buffer, known: &mut HashMap<*const Node, bool>) -> bool {
    let is_in_buffer = |value: &Value| value.lies_in(|other| ptr::eq(other, buffer));
    let mut seen = HashSet::from([Arc::as_ptr(node)]);
    let mut stack = vec![node.clone()];
    while let Some(next) = stack.pop() {
        for input in next.inputs() {
            let maker = input.value.maker();
            let cached = maker.as_ref().and_then(|maker| known.get(&Arc::as_ptr(maker)));
            if cached == Some(&true) || is_in_buffer(&input.value) {
                known.insert(Arc::as_ptr(node), true);
                return true;
            }
            let is_new = |maker: &Arc<Node>| cached.is_none() && seen.insert(Arc::as_ptr(maker));
            stack.extend(maker.filter(is_new));
        }
    }
    known.extend(seen.into_iter().map(|node| (node, false)));
    false
}

/// While a user's function runs, its own call does not count as a reader of its inputs: the
/// function itself knows when it is done with them.
pub struct CalledOff<'a>(&'a [&'a [Sample]]);

impl<'a> CalledOff<'a> {
    pub fn new(inputs: &'a [&'a [Sample]]) -> CalledOff<'a> {
        inputs.iter().flat_map(|row| row.iter()).for_each(|s| s.buffer().end_read(epoch()));
        CalledOff(inputs)
    }
}

impl Drop for CalledOff<'_> {
    fn drop(&mut self) {
        let samples = self.0.iter().flat_map(|row| row.iter());
        samples.for_each(|sample| sample.buffer().begin_reads(1, epoch()));
    }
}
