//! One submitted call, and how its tasks run.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use smallvec::{SmallVec, smallvec};

use super::pool::Pool;
use super::value::{Handle, Meta, Value};
use crate::kernels::{Arg, ArgReader, Operator, Space, Work};
use crate::value::{Cause, Desc, Device, Fault, Layout, Sample};

/// Which sample of an input belongs to a sample of the node.
#[derive(Clone)]
pub enum Pick {
    /// Sample i for sample i.
    Same,
    /// One sample for all: the input is broadcast.
    One(usize),
    /// The sample that the list names.
    Listed(Arc<[usize]>),
}

#[derive(Clone)]
pub struct Input {
    pub value: Arc<Value>,
    pub pick: Pick,
}

impl Input {
    fn slot(&self, sample: usize) -> usize {
        match &self.pick {
            Pick::Same => sample,
            Pick::One(index) => *index,
            Pick::Listed(list) => list[sample],
        }
    }
}

/// What a node will make: the value's description and its number of samples.
pub struct Output {
    pub meta: Meta,
    pub samples: usize,
}

/// A call as plain data: operator, inputs, arguments, the user's line.
pub struct Call {
    pub operator: Operator,
    pub inputs: SmallVec<[Input; 2]>,
    /// The first this many inputs are the operator's; the others are per-sample arguments.
    pub data_inputs: usize,
    pub args: SmallVec<[Arg; 4]>,
    pub samples: usize,
    /// What the first input's layout is taken to be where it has none.
    pub layout: Layout,
    pub device: Device,
    pub site: u32,
}

pub struct Node {
    call: Call,
    /// Weak: a result that nobody can read any more is not worth making.
    outputs: SmallVec<[Target; 1]>,
    /// Keeps the inputs readable until the node has started and its tasks count as readers.
    held: Mutex<SmallVec<[Handle; 2]>>,
    pool: Arc<Pool>,
    /// Per task, the inputs it still waits for (and one more while the node is being started).
    missing: Box<[AtomicU32]>,
    unfinished: AtomicUsize,
    /// Bytes of results made so far.
    bytes: AtomicUsize,
    started: AtomicBool,
    /// Whether the pool counts it as in flight.
    queued: AtomicBool,
}

struct Target {
    value: Weak<Value>,
    meta: Meta,
    samples: usize,
    block: Mutex<Block>,
}

/// Where the samples of an output go. The first to be made decides.
enum Block {
    Undecided,
    /// All into one block; the space is that of its first sample.
    Shared(Space),
    /// Each into memory of its own, which can be let go on its own.
    Separate,
}

/// The unit of work: one sample of a node, or a whole node that needs its batch at once.
#[derive(Clone)]
pub struct Task {
    pub node: Arc<Node>,
    pub index: usize,
}

type Outcomes = Result<SmallVec<[Sample; 1]>, Arc<Fault>>;

/// Up to this many bytes of input a cheap kernel runs on the calling thread: handing it to
/// another one would take longer than the work.
const INLINE_BYTES: usize = 32 << 10;

impl Node {
    /// A node and the values it will make. Nothing runs before [`Node::start`].
    pub fn new(
        call: Call,
        outputs: impl IntoIterator<Item = Output>,
        pool: Arc<Pool>,
    ) -> (Arc<Node>, SmallVec<[Handle; 1]>) {
        let mut handles = SmallVec::new();
        let mut targets = SmallVec::new();
        for Output { meta, samples } in outputs {
            let handle = Value::pending(meta.clone(), samples);
            let value = Arc::downgrade(handle.value());
            targets.push(Target { value, meta, samples, block: Mutex::new(Block::Undecided) });
            handles.push(handle);
        }
        let tasks = if call.operator.work.is_whole_batch() { 1 } else { call.samples };
        let held = call.inputs.iter().map(|input| Handle::new(input.value.clone())).collect();
        let node = Node {
            call,
            outputs: targets,
            held: Mutex::new(held),
            pool,
            missing: (0..tasks).map(|_| AtomicU32::new(1)).collect(),
            unfinished: AtomicUsize::new(tasks),
            bytes: AtomicUsize::new(0),
            started: AtomicBool::new(false),
            queued: AtomicBool::new(false),
        };
        (Arc::new(node), handles)
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn was_queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed)
    }

    fn tasks(&self) -> usize {
        self.missing.len()
    }

    /// Starts a node, and first what it needs of nodes that were put off.
    pub fn start(self: Arc<Node>) {
        // Not by recursion: a program may put off a chain of any length.
        let mut stack = vec![(self, false)];
        while let Some((node, inputs_started)) = stack.pop() {
            if inputs_started {
                node.start_one();
                continue;
            }
            let needed: Vec<_> =
                node.call.inputs.iter().filter_map(|input| input.value.demand()).collect();
            stack.push((node, true));
            stack.extend(needed.into_iter().map(|node| (node, false)));
        }
    }

    fn start_one(self: Arc<Node>) {
        // Several outputs may have been put off with the same node.
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        // Each task's guard in `missing` keeps it from running before this is through.
        if self.call.operator.work.is_whole_batch() {
            self.call.inputs.iter().for_each(|input| input.value.read_as_a_whole());
        }
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
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let all_ready = self.missing.iter().all(|count| count.load(Ordering::Acquire) == 1);
        let work = &self.call.operator.work;
        let inline =
            all_ready && work.is_cheap() && (work.is_view() || self.input_bytes() <= INLINE_BYTES);
        if inline || self.tasks() == 0 {
            // What was put off together may have subscribed to the results already.
            for index in 0..self.tasks() {
                Pool::push_ready(Task { node: self.clone(), index }.run());
            }
            return;
        }
        self.queued.store(true, Ordering::Relaxed);
        self.pool.admit();
        let ready: Vec<usize> = (0..self.tasks()).filter(|&task| self.arrived(task)).collect();
        self.pool.clone().push_node(&self, &ready);
    }

    /// One thing that `task` waited for is there; says whether that was the last.
    fn arrived(&self, task: usize) -> bool {
        self.missing[task].fetch_sub(1, Ordering::AcqRel) == 1
    }

    fn for_each_slot(&self, task: usize, mut visit: impl FnMut(&Input, usize)) {
        for input in &self.call.inputs {
            if self.call.operator.work.is_whole_batch() {
                (0..self.picked(input)).for_each(|sample| visit(input, input.slot(sample)));
            } else {
                visit(input, input.slot(task));
            }
        }
    }

    /// How many samples of an input a whole-batch node reads.
    fn picked(&self, input: &Input) -> usize {
        match &input.pick {
            Pick::Same => input.value.len(),
            Pick::One(_) => 1,
            Pick::Listed(list) => list.len(),
        }
    }

    fn input_bytes(&self) -> usize {
        let mut bytes = 0;
        for task in 0..self.tasks() {
            self.for_each_slot(task, |input, slot| {
                bytes += input.value.bytes(slot);
            });
        }
        bytes
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Drops a chain of nodes that were put off, however long, without recursion.
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

    fn fault(&self, cause: Cause, sample: Option<usize>, source: Option<Arc<str>>) -> Arc<Fault> {
        let (operator, site) = (self.call.operator.name, self.call.site);
        Arc::new(Fault { cause, operator, sample, source, site })
    }

    /// Room for one sample of an output: its place in the block of a uniform output, or its own.
    fn allocate(&self, output: usize, sample: usize, mut desc: Desc) -> Result<Space, Cause> {
        let target = &self.outputs[output];
        desc.layout = target.meta.layout;
        if !target.promised(&desc) {
            return Err(Cause::Internal(format!("made {desc:?}, promised {:?}", target.meta)));
        }
        let device = self.call.device.accelerator();
        let bytes = desc.bytes();
        let mut block = target.block.lock().unwrap_or_else(PoisonError::into_inner);
        if let Block::Undecided = *block {
            let whole = bytes.checked_mul(target.samples).filter(|_| target.wants_block());
            *block = match whole {
                Some(whole) => {
                    self.count_bytes(whole);
                    Block::Shared(Space::new(desc.clone(), device.allocate(whole)?, 0))
                }
                None => Block::Separate,
            };
        }
        if let Block::Shared(first) = &*block {
            if first.desc == desc {
                return Ok(Space::new(desc, first.buffer().clone(), sample * bytes));
            }
        }
        drop(block);
        self.count_bytes(bytes);
        Ok(Space::new(desc, device.allocate(bytes)?, 0))
    }

    fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.pool.count_bytes(bytes);
    }

    /// Fails what will not be made, so that nobody waits for it for ever. Returns the tasks that
    /// waited for it, to be abandoned too.
    pub fn abandon(&self, task: usize) -> SmallVec<[Task; 2]> {
        self.complete(task, Err(self.fault(Cause::Stopped, None, None)))
    }

    /// Hands the results of a task over, and returns the tasks that became ready.
    fn complete(&self, task: usize, outcomes: Outcomes) -> SmallVec<[Task; 2]> {
        let mut ready = SmallVec::new();
        let mut fill = |output: &Target, slot: usize, outcome| {
            if let Some(value) = output.value.upgrade() {
                ready.extend(
                    value.finish(slot, outcome).into_iter().filter(|t| t.node.arrived(t.index)),
                );
            }
        };
        if self.call.operator.work.is_whole_batch() {
            let mut samples = outcomes.map(SmallVec::into_iter);
            for output in &self.outputs {
                for slot in 0..output.samples {
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
                    for (output, sample) in self.outputs.iter().zip(samples) {
                        fill(output, task, Ok(sample));
                    }
                }
                Err(fault) => {
                    self.outputs.iter().for_each(|o| fill(o, task, Err(fault.clone())));
                }
            }
        }
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.node_done(self);
        }
        ready
    }
}

impl Target {
    /// Whether this is what the definition said.
    fn promised(&self, desc: &Desc) -> bool {
        self.meta.dtype.is_none_or(|dtype| dtype == desc.dtype)
            && self.meta.ndim.is_none_or(|ndim| ndim == desc.ndim())
    }

    /// Whether the samples should lie side by side: they are alike, and somebody could tell. An
    /// intermediate that nobody holds does better with memory that goes back sample by sample.
    fn wants_block(&self) -> bool {
        let seen = || self.value.upgrade().is_some_and(|value| value.is_read_as_a_whole());
        self.meta.uniform && self.samples > 1 && seen()
    }
}

impl Task {
    /// Runs the task, and returns the tasks that became ready by it.
    pub fn run(self) -> SmallVec<[Task; 2]> {
        let node = &self.node;
        let wanted = !node.call.operator.work.is_pure()
            || node.outputs.iter().any(|output| output.value.strong_count() > 0);
        let outcomes = if wanted {
            self.compute()
        } else {
            Err(node.fault(Cause::Internal("nobody can read this".into()), None, None))
        };
        // Inputs go first: memory that becomes free is hot in cache for what runs next.
        node.for_each_slot(self.index, |input, slot| {
            if !input.value.is_lost() {
                input.value.release(slot);
            }
        });
        node.complete(self.index, outcomes)
    }

    fn compute(&self) -> Outcomes {
        let node = &self.node;
        let mut inputs: SmallVec<[Sample; 4]> = SmallVec::new();
        let mut failed: Option<Arc<Fault>> = None;
        node.for_each_slot(self.index, |input, slot| {
            let lost = || Err(node.fault(Cause::Forked, None, None));
            match input.value.peek(slot).unwrap_or_else(lost) {
                Ok(sample) => inputs.push(sample),
                Err(fault) => {
                    failed.get_or_insert(fault);
                }
            }
        });
        if let Some(fault) = failed {
            return Err(fault);
        }
        if let Some(first) = inputs.first_mut().filter(|first| first.desc.layout.is_empty()) {
            first.desc.layout = node.call.layout;
        }
        let source = inputs.iter().find_map(|sample| sample.source.clone());
        let whole_batch = node.call.operator.work.is_whole_batch();
        let sample = (!whole_batch).then_some(self.index);
        let mut made = SmallVec::new();
        let mut launch = || {
            made = self.call_kernel(&inputs)?;
            Ok(())
        };
        let run = || node.call.device.accelerator().launch(&mut launch);
        let outcome = quiet_panics(|| catch_unwind(AssertUnwindSafe(run)));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => return Err(node.fault(cause, sample, source)),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| text.to_string())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "panic".into());
                return Err(node.fault(Cause::Internal(text), sample, source));
            }
        }
        if !whole_batch {
            for (made, output) in made.iter_mut().zip(&node.outputs) {
                if !output.promised(&made.desc) {
                    let broken = format!("made {:?}, promised {:?}", made.desc, output.meta);
                    return Err(node.fault(Cause::Internal(broken), sample, source));
                }
                made.desc.layout = output.meta.layout;
                made.source = source.clone();
            }
        }
        self.own(&mut made).map_err(|cause| node.fault(cause, sample, source))?;
        Ok(made)
    }

    /// A kernel may hand its input's memory on; if that is somebody's on the host, a device must
    /// not take it for its own.
    fn own(&self, made: &mut [Sample]) -> Result<(), Cause> {
        let device = self.node.call.device;
        if device != Device::Cpu {
            for sample in made.iter_mut().filter(|sample| sample.buffer().mutable_outside()) {
                *sample = device.accelerator().copy(sample, false)?;
            }
        }
        Ok(())
    }

    fn call_kernel(&self, inputs: &[Sample]) -> Result<SmallVec<[Sample; 1]>, Cause> {
        let node = &self.node;
        let call = &node.call;
        match &call.operator.work {
            Work::Sample(kernel) => {
                let args = ArgReader::new(&call.args, inputs);
                let data = &inputs[..call.data_inputs];
                kernel.run(&args, data, &|output, desc| node.allocate(output, self.index, desc))
            }
            Work::Batch(kernel) => {
                let mut rows: SmallVec<[&[Sample]; 2]> = smallvec![];
                let mut rest = inputs;
                for input in &call.inputs {
                    let (row, after) = rest.split_at(node.picked(input));
                    rows.push(row);
                    rest = after;
                }
                kernel.run(&call.args, &rows, &|desc| {
                    let bytes = desc.bytes();
                    node.count_bytes(bytes);
                    Ok(Space::new(desc, call.device.accelerator().allocate(bytes)?, 0))
                })
            }
        }
    }
}

/// A panic in a kernel becomes a fault that the user reads; the default hook would print it too.
fn quiet_panics<R>(run: impl FnOnce() -> R) -> R {
    use std::cell::Cell;
    use std::sync::Once;
    thread_local! {
        static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IN_KERNEL.get() {
                print(info);
            }
        }));
    });
    let outer = IN_KERNEL.replace(true);
    let result = run();
    IN_KERNEL.set(outer);
    result
}
