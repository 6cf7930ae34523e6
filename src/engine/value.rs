//! Values, whose samples may still be pending.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::node::{Node, Task};
use super::process::epoch;
use crate::value::{Buffer, Cause, DType, Device, Fault, Layout, Lineage, Sample};

/// What is known about a value before its samples are.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// `None` if only the data tells.
    pub dtype: Option<DType>,
    /// `None` if only the data tells.
    pub ndim: Option<usize>,
    pub layout: Layout,
    pub device: Device,
    /// All samples are expected to have the same shape, so they share a contiguous block.
    pub uniform: bool,
}

pub(super) type Outcome = Result<Sample, Arc<Fault>>;

/// A row of samples, each filled once by the node that makes it.
pub struct Value {
    pub meta: Meta,
    samples: Samples,
    unfinished: AtomicUsize,
    /// Whether a sample has failed, so that values without faults need not be searched.
    failed: AtomicBool,
    /// Number of handles outside the engine: while there is one, any sample may be read.
    handles: AtomicUsize,
    /// Whether a node reads the whole batch at once.
    gathered: AtomicBool,
    /// The node that fills the slots, unless they were filled from the start.
    maker: OnceLock<Weak<Node>>,
    /// A deferred node: it must run before this can be read, and nobody has asked for it yet.
    deferred: Mutex<Option<Arc<Node>>>,
    finished: (Mutex<()>, Condvar),
    /// Set when somebody outside the engine asks for a sample.
    read: OnceLock<Arc<AtomicBool>>,
    /// Which samples of a data set these are, or were made from.
    lineage: OnceLock<Lineage>,
    epoch: u32,
}

enum Samples {
    Slots(Box<[Mutex<Slot>]>),
    /// All samples are ready, have the same description and are consecutive in memory. For tiny
    /// samples, a slot each would cost more than the work.
    Stacked(Stack),
}

/// Samples that are consecutive in memory.
pub struct Stack {
    first: Sample,
    count: usize,
}

impl Stack {
    /// `count` contiguous samples without a source, all in the buffer of `first`.
    ///
    /// # Safety
    /// Nobody may still write to the samples after the first.
    pub unsafe fn new(first: Sample, count: usize) -> Stack {
        assert!(first.is_contiguous() && first.source.is_none());
        let stack = Stack { first, count };
        if count > 0 {
            stack.get(count - 1);
        }
        stack
    }

    /// A stack, if the samples happen to be consecutive in memory.
    fn of(samples: &[Sample]) -> Option<Stack> {
        let [first, _, ..] = samples else { return None };
        let bytes = first.desc.bytes();
        let follow = |(index, sample): (usize, &Sample)| {
            sample.is_contiguous()
                && sample.source.is_none()
                && sample.shares_buffer(first)
                && sample.offset() == first.offset() + index * bytes
                && sample.desc == first.desc
        };
        let all = samples.iter().enumerate().all(follow);
        // SAFETY: all of them exist, so nobody writes to them.
        all.then(|| unsafe { Stack::new(first.clone(), samples.len()) })
    }

    pub fn get(&self, index: usize) -> Sample {
        let mut sample = self.first.clone();
        self.load(index, &mut sample);
        sample
    }

    /// Changes `sample`, which is one of the stack, to the one at `index`.
    pub fn load(&self, index: usize, sample: &mut Sample) {
        assert!(index < self.count && sample.shares_buffer(&self.first));
        // SAFETY: all samples are written, as the caller of `new` guarantees.
        unsafe { sample.move_to(self.first.offset() + index * self.first.desc.bytes()) };
    }
}

struct Slot {
    state: State,
    /// Tasks that still have to read this sample.
    readers: u32,
}

enum State {
    /// Not produced yet; these tasks wait for it.
    Pending(SmallVec<[Task; 1]>),
    Ready(Sample),
    Failed(Arc<Fault>),
    /// Freed, because nobody could read it any more.
    Freed,
}

/// Ignores poisoning, which only means that a thread panicked: the data behind the engine's locks
/// is consistent between statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Value {
    fn new(meta: Meta, states: impl Iterator<Item = State>, unfinished: usize) -> Arc<Value> {
        let slots = states.map(|state| Mutex::new(Slot { state, readers: 0 })).collect();
        Value::of(meta, Samples::Slots(slots), unfinished)
    }

    fn of(meta: Meta, samples: Samples, unfinished: usize) -> Arc<Value> {
        Arc::new(Value {
            meta,
            samples,
            unfinished: AtomicUsize::new(unfinished),
            failed: AtomicBool::new(false),
            handles: AtomicUsize::new(0),
            gathered: AtomicBool::new(false),
            maker: OnceLock::new(),
            deferred: Mutex::new(None),
            finished: (Mutex::new(()), Condvar::new()),
            read: OnceLock::new(),
            lineage: OnceLock::new(),
            epoch: epoch(),
        })
    }

    /// A value whose samples are ready.
    pub fn ready(meta: Meta, samples: impl Into<Vec<Sample>>) -> Handle {
        let samples = samples.into();
        match Stack::of(&samples) {
            Some(stack) => Value::stacked(meta, stack),
            None => Handle::new(Value::new(meta, samples.into_iter().map(State::Ready), 0)),
        }
    }

    /// A value whose samples are ready, as one block.
    pub fn stacked(meta: Meta, stack: Stack) -> Handle {
        Handle::new(Value::of(meta, Samples::Stacked(stack), 0))
    }

    /// A value whose samples are ready or have failed.
    pub fn settled(meta: Meta, outcomes: Vec<Outcome>) -> Handle {
        let state = |outcome| match outcome {
            Ok(sample) => State::Ready(sample),
            Err(fault) => State::Failed(fault),
        };
        let failed = outcomes.iter().any(Result::is_err);
        let value = Value::new(meta, outcomes.into_iter().map(state), 0);
        value.failed.store(failed, Ordering::Release);
        Handle::new(value)
    }

    /// A value of `count` samples that a node will fill.
    pub fn pending(meta: Meta, count: usize) -> Handle {
        let states = (0..count).map(|_| State::Pending(SmallVec::new()));
        Handle::new(Value::new(meta, states, count))
    }

    pub fn len(&self) -> usize {
        match &self.samples {
            Samples::Slots(slots) => slots.len(),
            Samples::Stacked(stack) => stack.count,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn as_stack(&self) -> Option<&Stack> {
        match &self.samples {
            Samples::Slots(_) => None,
            Samples::Stacked(stack) => Some(stack),
        }
    }

    /// The slots. A stack has none: its samples are ready and are never freed separately.
    fn slots(&self) -> &[Mutex<Slot>] {
        match &self.samples {
            Samples::Slots(slots) => slots,
            Samples::Stacked(_) => &[],
        }
    }

    pub fn set_maker(&self, node: &Arc<Node>) {
        let _ = self.maker.set(Arc::downgrade(node));
    }

    /// Whether a node fills, or has filled, the slots.
    pub fn has_maker(&self) -> bool {
        self.maker.get().is_some()
    }

    /// The node that still has to finish this.
    pub fn maker(&self) -> Option<Arc<Node>> {
        if self.is_finished() { None } else { self.maker.get()?.upgrade() }
    }

    /// Says which samples of a data set these are, unless that is known.
    pub fn set_lineage(&self, lineage: Lineage) {
        if lineage.len() == self.len() {
            let _ = self.lineage.set(lineage);
        }
    }

    /// Which samples of a data set these are, or were made from.
    pub fn lineage(&self) -> Option<&Lineage> {
        self.lineage.get()
    }

    /// Defers the computation of this value until [`Value::demand`].
    pub fn defer(&self, node: Arc<Node>) {
        *lock(&self.deferred) = Some(node);
    }

    /// The deferred node, if any; the caller must start it. Nodes deferred before a fork are never
    /// run in the child, like all unfinished work.
    pub fn demand(&self) -> Option<Arc<Node>> {
        if self.is_lost() { None } else { lock(&self.deferred).take() }
    }

    /// The flag is set when somebody outside the engine asks for a sample.
    pub fn watch(&self, flag: Arc<AtomicBool>) {
        let _ = self.read.set(flag);
    }

    /// Somebody outside the engine asks for a sample, or may do so unnoticed later.
    pub fn note_read(&self) {
        if let Some(flag) = self.read.get() {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there are handles outside the engine.
    pub fn is_held(&self) -> bool {
        self.handles.load(Ordering::Relaxed) > 0
    }

    pub fn is_finished(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 0
    }

    /// Whether it can never be finished, because the process was forked in the meantime.
    pub fn is_lost(&self) -> bool {
        self.epoch != epoch() && !self.is_finished()
    }

    /// Whether a sample that is ready is in a buffer for which `accepts` holds.
    pub fn lies_in(&self, accepts: impl Fn(&Buffer) -> bool) -> bool {
        match &self.samples {
            Samples::Slots(slots) => slots.iter().any(|slot| match &lock(slot).state {
                State::Ready(sample) => accepts(sample.buffer()),
                _ => false,
            }),
            Samples::Stacked(stack) => stack.count > 0 && accepts(stack.first.buffer()),
        }
    }

    /// Whether the sample is ready and in the buffer.
    pub fn sample_lies_in(&self, index: usize, buffer: &Buffer) -> bool {
        let slots = match &self.samples {
            Samples::Slots(slots) => slots,
            Samples::Stacked(stack) => return std::ptr::eq(stack.first.buffer(), buffer),
        };
        slots.get(index).is_some_and(|slot| match &lock(slot).state {
            State::Ready(sample) => std::ptr::eq(sample.buffer(), buffer),
            _ => false,
        })
    }

    /// Whether others may write to a sample, or to memory that a sample will be a view of.
    pub fn is_lent(&self) -> bool {
        if self.lies_in(|buffer| buffer.is_lent()) {
            return true;
        }
        // Views can be deferred for long. All other readers of the memory ran before it was lent.
        let mut stack: Vec<_> = self.unstarted_view().into_iter().collect();
        while let Some(view) = stack.pop() {
            for input in view.inputs() {
                if input.value.lies_in(|buffer| buffer.is_lent()) {
                    return true;
                }
                stack.extend(input.value.unstarted_view());
            }
        }
        false
    }

    fn unstarted_view(&self) -> Option<Arc<Node>> {
        self.maker().filter(|maker| maker.is_unstarted_view())
    }

    /// Announces a node that reads the whole batch at once.
    pub fn read_as_a_whole(&self) {
        self.gathered.store(true, Ordering::Relaxed);
    }

    /// Whether somebody, inside the engine or outside, may read all samples as one array.
    pub fn is_read_as_a_whole(&self) -> bool {
        self.gathered.load(Ordering::Relaxed) || self.handles.load(Ordering::Relaxed) > 0
    }

    /// The sample or its fault; `None` while it is pending.
    pub fn peek(&self, index: usize) -> Option<Outcome> {
        let slots = match &self.samples {
            Samples::Slots(slots) => slots,
            Samples::Stacked(stack) => {
                return (index < stack.count).then(|| Ok(stack.get(index)));
            }
        };
        match &lock(slots.get(index)?).state {
            State::Pending(_) => None,
            State::Ready(sample) => Some(Ok(sample.clone())),
            State::Failed(fault) => Some(Err(fault.clone())),
            State::Freed => Some(Err(Arc::new(Fault {
                cause: Cause::Internal("a sample was read after it had been freed".into()),
                operator: "engine",
                sample: Some(index),
                source: None,
                site: 0,
            }))),
        }
    }

    /// Bytes of a sample that is ready.
    pub fn bytes(&self, index: usize) -> usize {
        match &self.samples {
            Samples::Stacked(stack) => stack.first.desc.bytes(),
            Samples::Slots(slots) => match &lock(&slots[index]).state {
                State::Ready(sample) => sample.desc.bytes(),
                _ => 0,
            },
        }
    }

    /// Bytes of all samples that are ready.
    pub fn all_bytes(&self) -> usize {
        match &self.samples {
            Samples::Stacked(stack) => stack.first.desc.bytes() * stack.count,
            Samples::Slots(slots) => (0..slots.len()).map(|index| self.bytes(index)).sum(),
        }
    }

    /// Registers a reader of the sample; if the sample is pending, its task is queued when the
    /// sample is ready. Each call needs one [`Value::release`].
    pub fn subscribe(&self, index: usize, task: impl FnOnce() -> Task) {
        let slots = match &self.samples {
            Samples::Slots(slots) => slots,
            Samples::Stacked(stack) => return stack.first.buffer().begin_reads(1, epoch()),
        };
        let Some(slot) = slots.get(index) else { return };
        let mut slot = lock(slot);
        slot.readers += 1;
        match &mut slot.state {
            State::Pending(waiting) => waiting.push(task()),
            State::Ready(sample) => sample.buffer().begin_reads(1, epoch()),
            State::Failed(_) | State::Freed => {}
        }
    }

    /// Whether a task waits for the sample.
    pub fn is_awaited(&self, index: usize) -> bool {
        self.slots().get(index).is_some_and(|slot| match &lock(slot).state {
            State::Pending(waiting) => !waiting.is_empty(),
            _ => false,
        })
    }

    /// Unregisters a reader of the sample. Memory that nobody else can read is freed immediately.
    pub fn release(&self, index: usize) {
        let slots = match &self.samples {
            Samples::Slots(slots) => slots,
            Samples::Stacked(stack) => return stack.first.buffer().end_read(epoch()),
        };
        let Some(slot) = slots.get(index) else { return };
        let mut slot = lock(slot);
        slot.readers -= 1;
        if let State::Ready(sample) = &slot.state {
            sample.buffer().end_read(epoch());
        }
        let freed = self.take_if_unread(&mut slot);
        drop(slot);
        drop(freed);
    }

    /// Takes the sample out if nobody can read it any more.
    fn take_if_unread(&self, slot: &mut Slot) -> Option<State> {
        let unread = slot.readers == 0 && self.handles.load(Ordering::Acquire) == 0;
        (unread && matches!(slot.state, State::Ready(_)))
            .then(|| std::mem::replace(&mut slot.state, State::Freed))
    }

    /// Fills a slot, and returns the tasks that waited for it.
    pub fn finish(&self, index: usize, outcome: Outcome) -> SmallVec<[Task; 1]> {
        let Some(slot) = self.slots().get(index) else { return SmallVec::new() };
        let mut slot = lock(slot);
        let State::Pending(waiting) = &mut slot.state else {
            return SmallVec::new();
        };
        let waiting = std::mem::take(waiting);
        slot.state = match outcome {
            Ok(sample) => {
                if slot.readers > 0 {
                    sample.buffer().begin_reads(slot.readers, epoch());
                }
                State::Ready(sample)
            }
            Err(fault) => {
                self.failed.store(true, Ordering::Release);
                State::Failed(fault)
            }
        };
        let freed = self.take_if_unread(&mut slot);
        drop(slot);
        drop(freed);
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Taking the lock orders this after a waiter's check.
            drop(lock(&self.finished.0));
            self.finished.1.notify_all();
        }
        waiting
    }

    /// Moves the work that this value still needs to the front, because somebody waits for it.
    pub fn hasten(&self) {
        if let Some(node) = self.maker() {
            node.hasten();
        }
    }

    /// Waits until all samples are ready or have failed, or until the timeout; returns whether they
    /// are.
    pub fn wait(&self, at_most: Duration) -> bool {
        if self.is_finished() || self.is_lost() {
            return true;
        }
        let deadline = Instant::now() + at_most;
        let mut guard = lock(&self.finished.0);
        while !self.is_finished() {
            let now = Instant::now();
            if now >= deadline {
                return false;
            }
            let waited = self.finished.1.wait_timeout(guard, deadline - now);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The first fault in sample order.
    pub fn fault(&self) -> Option<Arc<Fault>> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.slots().iter().find_map(|slot| match &lock(slot).state {
            State::Failed(fault) => Some(fault.clone()),
            _ => None,
        })
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // A long chain of deferred nodes must not be dropped recursively.
        let deferred = self.deferred.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = deferred.take() {
            Node::drop_chain(node);
        }
    }
}

/// A reference to a value from outside the engine.
pub struct Handle(Arc<Value>);

impl Handle {
    pub fn new(value: Arc<Value>) -> Handle {
        value.handles.fetch_add(1, Ordering::AcqRel);
        Handle(value)
    }

    pub fn value(&self) -> &Arc<Value> {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        Handle::new(self.0.clone())
    }
}

impl Deref for Handle {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let last = self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1;
        // The engine still holds the value: free the samples that nobody will read.
        if last && Arc::strong_count(&self.0) > 1 && self.0.epoch == epoch() {
            for slot in self.0.slots() {
                let mut slot = lock(slot);
                let freed = self.0.take_if_unread(&mut slot);
                drop(slot);
                drop(freed);
            }
        }
    }
}
