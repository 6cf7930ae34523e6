//! One submitted call, and how its tasks run.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use smallvec::SmallVec;

use super::pool::Pool;
use super::process::epoch;
use super::profile::{self, Kind, Timer};
use super::uniform::Inline;
use super::value::{Handle, Meta, Outcome, Value, lock};
use crate::kernels::{Arg, Operator, OutputBuffer, SavedPlan};
use crate::value::{Buffer, Cause, Desc, Device, Fault, Layout, Lineage, Origin, Sample};

/// Which sample of an input a sample of the node reads.
#[derive(Clone)]
pub enum Pick {
    /// Sample i reads sample i.
    Same,
    /// All samples read this one: the input is broadcast.
    One(usize),
    /// Sample i reads the i-th listed sample.
    Listed(Arc<[usize]>),
}

#[derive(Clone)]
pub struct Input {
    pub value: Arc<Value>,
    pub pick: Pick,
}

impl Input {
    pub(super) fn slot(&self, sample: usize) -> usize {
        match &self.pick {
            Pick::Same => sample,
            Pick::One(index) => *index,
            Pick::Listed(list) => list[sample],
        }
    }
}

/// What a node will produce: the value's description and its number of samples.
#[derive(Clone, PartialEq)]
pub struct Output {
    pub meta: Meta,
    pub samples: usize,
}

/// A call as plain data: operator, inputs, arguments, location in the user's code.
#[derive(Clone)]
pub struct Call {
    pub operator: Operator,
    pub inputs: SmallVec<[Input; 2]>,
    /// Number of leading inputs that are the operator's data; the rest are per-sample arguments.
    pub data_inputs: usize,
    pub args: SmallVec<[Arg; 4]>,
    pub samples: usize,
    /// Layout assumed for the first input if it has none.
    pub layout: Layout,
    pub device: Device,
    pub site: u32,
}

impl Call {
    /// The samples of a data set that the results will be made from, as far as inputs tell.
    fn lineage(&self) -> Option<Lineage> {
        if !self.operator.work.keeps_order() {
            return None;
        }
        let known = || self.inputs.iter().filter_map(|input| Some((input, input.value.lineage()?)));
        let by_sample = known().find_map(|(input, lineage)| match &input.pick {
            Pick::Same => (lineage.len() == self.samples).then(|| lineage.clone()),
            Pick::Listed(list) => Some(lineage.picked(list)),
            Pick::One(_) => None,
        });
        // What all samples of a batch share tells nothing, unless there is but one.
        by_sample.or_else(|| {
            let single = |(input, lineage): (&Input, &Lineage)| match input.pick {
                Pick::One(index) if self.samples == 1 => Some(lineage.picked(&[index])),
                _ => None,
            };
            known().find_map(single)
        })
    }
}

fn set_lineage(lineage: Option<Lineage>, handles: &[Handle]) {
    if let Some(lineage) = lineage {
        handles.iter().for_each(|handle| handle.set_lineage(lineage.clone()));
    }
}

pub struct Node {
    pub(super) call: Call,
    /// Weak: a result that nobody can read any more need not be computed.
    pub(super) outputs: SmallVec<[Target; 1]>,
    /// Keeps the inputs readable until the node has started and its tasks count as readers.
    held: Mutex<SmallVec<[Handle; 2]>>,
    pool: Arc<Pool>,
    /// Per task, the number of missing inputs (plus one while the node is being started).
    missing: Box<[AtomicU32]>,
    unfinished: AtomicUsize,
    /// Bytes of results produced so far.
    bytes: AtomicUsize,
    started: AtomicBool,
    /// Location of the call in the user's code, and whether a fault has told it.
    site: AtomicU64,
    /// How the pool counts the node: one of the constants below. Changed under the pool's lock.
    queued: AtomicU8,
    /// Whether nobody will read what it makes.
    cancelled: AtomicBool,
    /// The plan of the first sample, if it was computed but not run.
    pub(super) plan: Mutex<Option<SavedPlan>>,
}

pub(super) struct Target {
    value: Weak<Value>,
    pub(super) meta: Meta,
    pub(super) samples: usize,
    block: Mutex<Block>,
}

/// Where the samples of an output are stored. The first sample to be produced decides.
enum Block {
    Undecided,
    /// All in one block, for samples with this description.
    Shared(Desc, Arc<Buffer>),
    /// Each in its own memory, which can be freed separately.
    Separate,
}

/// Marks a site that a fault has told.
const TOLD: u64 = 1 << 32;

/// Not in flight: not started, run on the calling thread, or finished.
const NOT_QUEUED: u8 = 0;
const QUEUED: u8 = 1;
/// In flight before the user has made the call.
const EARLY: u8 = 2;

/// The unit of work: one sample of a node, or a node that needs its whole batch at once.
#[derive(Clone)]
pub struct Task {
    pub node: Arc<Node>,
    pub index: usize,
}

pub(super) type Outcomes = Result<SmallVec<[Sample; 1]>, Arc<Fault>>;

/// A cheap kernel with at most this many bytes of input, and of results, runs on the calling
/// thread: handing it to a worker would take longer than the work.
const INLINE_BYTES: usize = 32 << 10;

/// Results of a call that are at least this large, together with its inputs, hardly fit the CPU
/// caches by the time they are read, so they are written with non-temporal stores, except samples
/// that the next task reads immediately. On a server, writing 8 MB that way takes half the time of
/// normal stores already, and reading them afterwards a tenth more.
const AROUND_CACHES_BYTES: usize = 16 << 20;

impl Node {
    /// A node and the values it will produce. Nothing runs before [`Node::start`].
    pub fn new(
        call: Call,
        outputs: impl IntoIterator<Item = Output>,
        pool: Arc<Pool>,
    ) -> (Arc<Node>, SmallVec<[Handle; 1]>) {
        let lineage = call.lineage();
        let (node, handles) = Node::detached(call, outputs, pool).with_values();
        set_lineage(lineage, &handles);
        (node, handles)
    }

    /// Submits a call and returns its values. If it is small and its inputs are ready, it runs
    /// immediately, without values that others could wait for.
    pub fn submit(
        call: Call,
        outputs: impl IntoIterator<Item = Output>,
        pool: Arc<Pool>,
    ) -> SmallVec<[Handle; 1]> {
        let lineage = call.lineage();
        let node = Node::detached(call, outputs, pool);
        let node = match node.inline_limit() {
            Some(limit) => match node.run_inline_timed(limit) {
                Ok(handles) => {
                    set_lineage(lineage, &handles);
                    return handles;
                }
                Err(node) => node,
            },
            None => node,
        };
        let (node, handles) = node.with_values();
        set_lineage(lineage, &handles);
        node.start();
        handles
    }

    /// Submits a call that the user has not made yet, behind all other work. Also returns the node,
    /// unless it has run immediately.
    pub fn submit_early(
        call: Call,
        outputs: impl IntoIterator<Item = Output>,
        pool: Arc<Pool>,
    ) -> (Option<Arc<Node>>, SmallVec<[Handle; 1]>) {
        let lineage = call.lineage();
        let node = Node::detached(call, outputs, pool);
        let node = match node.inline_limit() {
            Some(limit) => match node.run_inline_timed(limit) {
                Ok(handles) => {
                    set_lineage(lineage, &handles);
                    return (None, handles);
                }
                Err(node) => node,
            },
            None => node,
        };
        let (node, handles) = node.with_values();
        set_lineage(lineage, &handles);
        node.call.inputs.iter().filter_map(|input| input.value.demand()).for_each(Node::start);
        node.clone().start_one(EARLY);
        (Some(node), handles)
    }

    /// A node without values, so nothing can wait for it yet.
    fn detached(call: Call, outputs: impl IntoIterator<Item = Output>, pool: Arc<Pool>) -> Node {
        let target = |Output { meta, samples }| Target {
            value: Weak::new(),
            meta,
            samples,
            block: Mutex::new(Block::Undecided),
        };
        Node {
            site: AtomicU64::new(call.site.into()),
            call,
            outputs: outputs.into_iter().map(target).collect(),
            held: Mutex::default(),
            pool,
            missing: Box::default(),
            unfinished: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            started: AtomicBool::new(false),
            queued: AtomicU8::new(NOT_QUEUED),
            cancelled: AtomicBool::new(false),
            plan: Mutex::default(),
        }
    }

    fn with_values(mut self) -> (Arc<Node>, SmallVec<[Handle; 1]>) {
        let mut handles: SmallVec<[Handle; 1]> = SmallVec::new();
        for target in &mut self.outputs {
            let handle = Value::pending(target.meta.clone(), target.samples);
            target.value = Arc::downgrade(handle.value());
            handles.push(handle);
        }
        let hold = |input: &Input| Handle::new(input.value.clone());
        self.held = Mutex::new(self.call.inputs.iter().map(hold).collect());
        self.missing = (0..self.tasks()).map(|_| AtomicU32::new(1)).collect();
        self.unfinished = AtomicUsize::new(self.tasks());
        let node = Arc::new(self);
        handles.iter().for_each(|handle| handle.set_maker(&node));
        (node, handles)
    }

    /// [`Node::run_inline`], with a note for a profile.
    #[expect(clippy::result_large_err, reason = "the node is moved on to the queue")]
    fn run_inline_timed(self, limit: usize) -> Result<SmallVec<[Handle; 1]>, Node> {
        let Some(timer) = profile::timer() else { return self.run_inline(limit) };
        let (operator, site, samples) =
            (self.call.operator.name, self.call.site, self.call.samples);
        let handles = self.run_inline(limit)?;
        let bytes = handles.iter().map(|handle| handle.all_bytes()).sum();
        timer.note(Kind::Task, operator, site, 0..samples, bytes);
        Ok(handles)
    }

    /// Runs the call on this thread, or returns the node if its results would be too large.
    #[expect(clippy::result_large_err, reason = "the node is moved on to the queue")]
    fn run_inline(mut self, limit: usize) -> Result<SmallVec<[Handle; 1]>, Node> {
        match self.run_uniform(limit) {
            Inline::Done(handles) => return Ok(handles),
            Inline::OneByOne => {}
            Inline::TooLarge(plan) => {
                self.plan = Mutex::new(Some(plan));
                return Err(self);
            }
        }
        let mut rows: SmallVec<[Vec<_>; 1]> =
            self.outputs.iter().map(|output| Vec::with_capacity(output.samples)).collect();
        for task in 0..self.tasks() {
            // The first sample tells how large the results are.
            let limit = if task == 0 { limit } else { usize::MAX };
            let Some(outcomes) = self.compute_if_small(task, limit) else { return Err(self) };
            self.hand_out(task, outcomes, |output, _, outcome| rows[output].push(outcome));
        }
        self.pool.node_done(&self);
        let values = self.outputs.into_iter().zip(rows);
        Ok(values.map(|(output, row)| Value::settled(output.meta, row)).collect())
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn was_queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed) != NOT_QUEUED
    }

    /// Whether it is in flight before the user has made the call.
    pub fn is_early(&self) -> bool {
        self.queued.load(Ordering::Relaxed) == EARLY
    }

    /// Turns an early node into one like any other; returns whether it was one.
    pub(super) fn adopt(&self) -> bool {
        let (order, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        self.queued.compare_exchange(EARLY, QUEUED, order, failed).is_ok()
    }

    /// No longer in flight.
    pub(super) fn finish(&self) {
        self.queued.store(NOT_QUEUED, Ordering::Relaxed);
    }

    /// Its tasks that have not run end without a result.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub fn inputs(&self) -> &[Input] {
        &self.call.inputs
    }

    /// Whether a task of the node still has to read the buffer.
    pub fn reads(&self, task: usize, buffer: &Buffer) -> bool {
        let mut reads = false;
        self.for_each_slot(task, |input, slot| {
            reads |= input.value.sample_lies_in(slot, buffer);
        });
        reads
    }

    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Whether the node has not been started and will return views of its inputs.
    pub fn is_unstarted_view(&self) -> bool {
        !self.is_started() && self.call.operator.work.traits().view
    }

    pub(super) fn tasks(&self) -> usize {
        if self.call.operator.work.is_whole_batch() { 1 } else { self.call.samples }
    }

    /// Starts a node, after the deferred nodes that it depends on.
    pub fn start(self: Arc<Node>) {
        // Iterative, since a chain of deferred nodes can be arbitrarily long.
        let mut stack = vec![(self, false)];
        while let Some((node, inputs_started)) = stack.pop() {
            if inputs_started {
                node.start_one(QUEUED);
                continue;
            }
            let needed: Vec<_> =
                node.call.inputs.iter().filter_map(|input| input.value.demand()).collect();
            stack.push((node, true));
            stack.extend(needed.into_iter().map(|node| (node, false)));
        }
    }

    fn start_one(self: Arc<Node>, queued: u8) {
        // Several outputs may have been deferred with the same node.
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        if queued == QUEUED
            && let Some(limit) = self.inline_limit()
        {
            let timer = profile::timer();
            if self.start_inline(limit) {
                self.note(timer, 0..self.call.samples, self.bytes());
                return self.release_inputs();
            }
        }
        if self.call.operator.work.is_whole_batch() {
            self.call.inputs.iter().for_each(|input| input.value.read_as_a_whole());
        }
        // The extra count in `missing` keeps tasks from running before this loop is done.
        for task in 0..self.tasks() {
            self.for_each_slot(task, |input, slot| {
                if !input.value.is_lost() {
                    input.value.subscribe(slot, || {
                        self.missing[task].fetch_add(1, Ordering::Relaxed);
                        Task { node: self.clone(), index: task }
                    });
                }
            });
        }
        self.release_inputs();
        self.queued.store(queued, Ordering::Relaxed);
        self.pool.admit(&self);
        let ready: Vec<usize> = (0..self.tasks()).filter(|&task| self.arrived(task)).collect();
        self.pool.clone().push_node(&self, &ready);
    }

    /// Runs the node on this thread, unless its results would be too large.
    fn start_inline(&self, limit: usize) -> bool {
        for index in 0..self.tasks() {
            let limit = if index == 0 { limit } else { usize::MAX };
            let Some(outcomes) = self.compute_if_small(index, limit) else { return false };
            // Nodes that were deferred together may already have subscribed to the results.
            Pool::push_ready(self.complete(index, outcomes));
        }
        true
    }

    /// Notes for a profile that these samples were computed.
    fn note(&self, timer: Option<Timer>, samples: std::ops::Range<usize>, bytes: usize) {
        if let Some(timer) = timer {
            let site = self.site.load(Ordering::Relaxed) as u32;
            timer.note(Kind::Task, self.call.operator.name, site, samples, bytes);
        }
    }

    /// The user has made the call at another place than expected; returns whether faults will say
    /// so.
    pub(super) fn move_to(&self, site: u32) -> bool {
        let (order, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let change = |now: u64| (now & TOLD == 0).then_some(u64::from(site));
        self.site.fetch_update(order, failed, change).is_ok()
    }

    pub fn operator(&self) -> &'static str {
        self.call.operator.name
    }

    /// Moves the queued tasks of this node, and of everything it waits for, to the front.
    pub fn hasten(self: Arc<Node>) {
        let pool = self.pool.clone();
        let mut needed = HashSet::from([Arc::as_ptr(&self)]);
        let mut stack = vec![self];
        while let Some(node) = stack.pop() {
            let makers = node.call.inputs.iter().filter_map(|input| input.value.maker());
            stack.extend(makers.filter(|maker| needed.insert(Arc::as_ptr(maker))));
        }
        pool.hasten(&needed);
    }

    /// Maximum size of each sample's results for the calling thread to run the node itself; `None`
    /// if it should not: inputs are missing, or the work outweighs the cost of using a worker.
    fn inline_limit(&self) -> Option<usize> {
        let work = &self.call.operator.work;
        let traits = work.traits();
        if self.tasks() == 0 {
            return Some(usize::MAX);
        }
        if !traits.cheap || !self.call.inputs.iter().all(|input| input.value.is_finished()) {
            return None;
        }
        if self.is_view() {
            return Some(usize::MAX);
        }
        if self.input_bytes() > INLINE_BYTES {
            return None;
        }
        // Unless uncertain, the results are about as large as the inputs.
        let uncertain = traits.shaped_by_args || self.call.data_inputs > 1;
        Some(if uncertain { INLINE_BYTES / self.tasks() } else { usize::MAX })
    }

    /// Releases the inputs as a potential reader; from now on its tasks count.
    fn release_inputs(&self) {
        let held = std::mem::take(&mut *lock(&self.held));
        drop(held);
    }

    /// Records that an input of `task` is ready; returns whether it was the last one missing.
    fn arrived(&self, task: usize) -> bool {
        self.missing[task].fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn for_each_slot(&self, task: usize, mut visit: impl FnMut(&Input, usize)) {
        for input in &self.call.inputs {
            if self.call.operator.work.is_whole_batch() {
                (0..self.picked(input)).for_each(|sample| visit(input, input.slot(sample)));
            } else {
                visit(input, input.slot(task));
            }
        }
    }

    /// How many samples of an input a whole-batch node reads.
    pub(super) fn picked(&self, input: &Input) -> usize {
        match &input.pick {
            Pick::Same => input.value.len(),
            Pick::One(_) => 1,
            Pick::Listed(list) => list.len(),
        }
    }

    /// Bytes of all inputs, which are ready. Uniform samples are measured once.
    fn input_bytes(&self) -> usize {
        let bytes = |input: &Input| {
            let all = input.value.len();
            let asked = if input.value.meta.uniform { all.min(1) } else { all };
            let listed: usize = (0..asked).map(|slot| input.value.bytes(slot)).sum();
            listed.saturating_mul(all / asked.max(1))
        };
        self.call.inputs.iter().map(bytes).sum()
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Drops a chain of deferred nodes of any length without recursion.
    pub fn drop_chain(node: Arc<Node>) {
        thread_local! {
            static CHAIN: RefCell<Option<Vec<Arc<Node>>>> = const { RefCell::new(None) };
        }
        let outermost = CHAIN.with_borrow_mut(|chain| match chain {
            Some(nodes) => {
                nodes.push(node);
                false
            }
            None => {
                *chain = Some(vec![node]);
                true
            }
        });
        if outermost {
            while let Some(node) = CHAIN.with_borrow_mut(|chain| chain.as_mut()?.pop()) {
                drop(node);
            }
            CHAIN.set(None);
        }
    }

    pub(super) fn fault(
        &self,
        cause: Cause,
        sample: Option<usize>,
        source: Option<Origin>,
    ) -> Arc<Fault> {
        let operator = self.call.operator.name;
        let site = self.site.fetch_or(TOLD, Ordering::Relaxed) as u32;
        Arc::new(Fault { cause, operator, sample, source, site })
    }

    /// Memory for one sample of an output: its part of the shared block, or a separate buffer.
    pub(super) fn allocate(
        &self,
        output: usize,
        sample: usize,
        mut desc: Desc,
    ) -> Result<OutputBuffer, Cause> {
        let target = &self.outputs[output];
        desc.layout = target.meta.layout;
        if !target.promised(&desc) {
            return Err(Cause::Internal(format!("made {desc:?}, promised {:?}", target.meta)));
        }
        let device = self.call.device.accelerator();
        let bytes = desc.bytes();
        let mut block = lock(&target.block);
        if let Block::Undecided = *block {
            let whole = bytes.checked_mul(target.samples).filter(|_| target.wants_block());
            *block = match whole {
                Some(whole) => {
                    self.count_bytes(whole);
                    Block::Shared(desc.clone(), device.allocate(whole)?)
                }
                None => Block::Separate,
            };
        }
        let shared = match &*block {
            Block::Shared(uniform, buffer) if *uniform == desc => Some(buffer.clone()),
            _ => None,
        };
        drop(block);
        let output = match shared {
            // SAFETY: a sample is written by one task, to its own bytes. What a failed attempt to
            // write all samples at once left there is gone before they are processed one by one.
            Some(buffer) => unsafe { OutputBuffer::at(desc, buffer, sample * bytes) },
            None => {
                self.count_bytes(bytes);
                OutputBuffer::of(desc, device.allocate(bytes)?)
            }
        };
        let large = bytes.saturating_mul(target.samples) >= AROUND_CACHES_BYTES;
        Ok(output.around_caches(large && !target.is_awaited(sample)))
    }

    pub(super) fn count_bytes(&self, bytes: usize) {
        // Early work must not make the user's submits wait; it has a limit of its own.
        if self.is_early() {
            return;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.pool.count_bytes(bytes);
    }

    /// Fails the outputs of a task that will not run, so that nobody waits for them forever.
    /// Returns the tasks that waited for them, which must be abandoned too.
    pub fn abandon(&self, task: usize, why: Cause) -> SmallVec<[Task; 2]> {
        self.complete(task, Err(self.fault(why, None, None)))
    }

    /// Stores the results of a task, and returns the tasks that became ready.
    fn complete(&self, task: usize, outcomes: Outcomes) -> SmallVec<[Task; 2]> {
        let mut ready = SmallVec::new();
        self.hand_out(task, outcomes, |output, slot, outcome| {
            if let Some(value) = self.outputs[output].value.upgrade() {
                let waited = value.finish(slot, outcome).into_iter();
                ready.extend(waited.filter(|task| task.node.arrived(task.index)));
            }
        });
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.node_done(self);
        }
        ready
    }

    /// Calls `fill` with output, slot and outcome for everything that a task produced.
    fn hand_out(
        &self,
        task: usize,
        outcomes: Outcomes,
        mut fill: impl FnMut(usize, usize, Outcome),
    ) {
        if self.call.operator.work.is_whole_batch() {
            let mut samples = outcomes.map(SmallVec::into_iter);
            for (output, target) in self.outputs.iter().enumerate() {
                for slot in 0..target.samples {
                    let outcome = match &mut samples {
                        Ok(samples) => samples.next().ok_or_else(|| {
                            let few = Cause::Internal("made fewer samples than promised".into());
                            self.fault(few, Some(slot), None)
                        }),
                        Err(fault) => Err(fault.clone()),
                    };
                    fill(output, slot, outcome);
                }
            }
        } else {
            match outcomes {
                Ok(samples) => {
                    for (output, sample) in samples.into_iter().enumerate() {
                        fill(output, task, Ok(sample));
                    }
                }
                Err(fault) => {
                    (0..self.outputs.len()).for_each(|o| fill(o, task, Err(fault.clone())));
                }
            }
        }
    }
}

impl Target {
    /// Whether this matches what the definition said.
    pub(super) fn promised(&self, desc: &Desc) -> bool {
        self.meta.dtype.is_none_or(|dtype| dtype == desc.dtype)
            && self.meta.ndim.is_none_or(|ndim| ndim == desc.ndim())
    }

    /// Whether the samples should share a block: they are uniform, and somebody may read them as
    /// one array. An intermediate that nobody holds is better off with memory that is freed sample
    /// by sample.
    pub(super) fn wants_block(&self) -> bool {
        // If there is no value yet, it is about to be returned to the caller.
        let seen = || match self.value.ptr_eq(&Weak::new()) {
            true => true,
            false => self.value.upgrade().is_some_and(|value| value.is_read_as_a_whole()),
        };
        self.meta.uniform && self.samples > 1 && seen()
    }

    /// Whether a task waits for the sample.
    fn is_awaited(&self, sample: usize) -> bool {
        self.value.upgrade().is_some_and(|value| value.is_awaited(sample))
    }
}

impl Task {
    /// Runs the task, and returns the tasks that became ready.
    pub fn run(self) -> SmallVec<[Task; 2]> {
        let node = &self.node;
        let wanted = !node.call.operator.work.is_pure()
            || node.outputs.iter().any(|output| output.value.strong_count() > 0)
                && !node.is_cancelled();
        let outcomes = if wanted {
            let timer = profile::timer();
            let outcomes = node.compute(self.index);
            if timer.is_some() {
                let made = outcomes.as_ref().map_or(&[][..], |made| made);
                let bytes = made.iter().map(|sample| sample.desc.bytes()).sum();
                let batch = node.call.operator.work.is_whole_batch();
                let end = if batch { node.call.samples } else { self.index + 1 };
                node.note(timer, self.index..end, bytes);
            }
            outcomes
        } else {
            Err(node.fault(Cause::Internal("nobody can read this".into()), None, None))
        };
        let views = outcomes.as_ref().map(hold_views).unwrap_or_default();
        // Inputs are released first: freed memory is hot in cache for the next task.
        node.for_each_slot(self.index, |input, slot| {
            if !input.value.is_lost() {
                input.value.release(slot);
            }
        });
        let ready = node.complete(self.index, outcomes);
        drop(views);
        ready
    }
}

/// Results that are views of an input count as readers of its memory, from before the input is
/// released until the readers of the result have been counted.
fn hold_views(made: &SmallVec<[Sample; 1]>) -> SmallVec<[Reading; 1]> {
    let is_read = |sample: &&Sample| sample.buffer().is_read(epoch());
    made.iter().filter(is_read).map(Reading::new).collect()
}

struct Reading(Sample);

impl Reading {
    fn new(sample: &Sample) -> Reading {
        sample.buffer().begin_reads(1, epoch());
        Reading(sample.clone())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.buffer().end_read(epoch());
    }
}
