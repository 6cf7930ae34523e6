//! The threads that run tasks.
//!
//! Two queues under one lock: *hot* holds tasks whose inputs have just been made, newest first,
//! so that a sample travels on while it is in cache; *cold* holds submitted nodes, oldest first
//! but after those that somebody waits for, from which workers take one sample at a time. A
//! worker keeps the first task that its own work made ready and never queues it at all.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::lend::lock_put_off;
use super::node::{Node, Task};
use super::value::lock;
use crate::value::{Buffer, CacheLocks, Cause, has_room_for_thread, lock_cache};

/// Bounds on submitted work that is not done. A submit that would exceed them waits.
#[derive(Clone, Copy)]
struct Limits {
    nodes: usize,
    bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { nodes: 1024, bytes: 2 << 30 }
    }
}

/// A set of worker threads with its own queue. Threads start with the first task and end when
/// nobody can submit to the pool any more.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    threads: usize,
    limits: Limits,
    queue: Mutex<Queue>,
    /// There is work, or the pool is done.
    work: Condvar,
    /// Something finished: room for a submit, a drained or a paused pool.
    progress: Condvar,
    /// Bytes of results made by nodes that are not finished.
    bytes: AtomicUsize,
    /// How many threads want workers to stop between tasks.
    paused: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    hot: Vec<Task>,
    cold: VecDeque<Run>,
    /// Nodes that have been submitted and are not finished.
    nodes: usize,
    /// Workers that wait for work.
    idle: usize,
    /// Workers that are running a task.
    running: usize,
    /// Workers that run a user's function which waits for other work.
    waiting: usize,
    /// All workers there are.
    workers: usize,
    closed: bool,
}

/// Consecutive tasks of one node.
struct Run {
    node: Arc<Node>,
    next: usize,
    end: usize,
}

/// Threads at most that stand in for workers which wait.
const MOST_STAND_INS: usize = 512;

/// How deep tasks that run inside of a wait may be nested on one thread, each in the wait of another.
const MOST_NESTED: usize = 8;

/// How often a thread that is nested so deep waits for others to take a task before it fails it.
const MOST_CHANCES: usize = 20;

static POOLS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Whether there may be tasks that no worker will come for, see [`help`].
static STRANDED: AtomicBool = AtomicBool::new(false);

/// Whether the system has refused to start a thread.
static REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The pool whose worker this thread is.
    static WORKER: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
    /// How many tasks this thread is running inside of waits.
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

impl Pool {
    pub fn new(threads: usize) -> Arc<Pool> {
        Pool::with_limits(threads, Limits::default())
    }

    /// A pool whose work in flight is bounded to so many nodes and bytes.
    pub fn bounded(threads: usize, nodes: usize, bytes: usize) -> Arc<Pool> {
        Pool::with_limits(threads, Limits { nodes, bytes })
    }

    fn with_limits(threads: usize, limits: Limits) -> Arc<Pool> {
        let shared = Arc::new(Shared {
            threads: threads.max(1),
            limits,
            queue: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            bytes: AtomicUsize::new(0),
            paused: AtomicUsize::new(0),
        });
        super::process::watch_forks();
        let mut pools = lock(&POOLS);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&shared));
        Arc::new(Pool { shared })
    }

    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// Nodes that have been submitted and are not finished.
    pub fn in_flight(&self) -> usize {
        lock(&self.shared.queue).nodes
    }

    /// Whether a submit should wait first, see [`Pool::wait_for_room`].
    pub fn is_full(&self) -> bool {
        !on_worker() && self.shared.is_full(&lock(&self.shared.queue))
    }

    /// Waits until there is room for another node, at most this long; says whether there is.
    /// Workers never wait: their own progress is what makes room.
    pub fn wait_for_room(&self, at_most: Duration) -> bool {
        on_worker() || self.shared.wait_until(at_most, |queue| !self.shared.is_full(queue))
    }

    /// Waits until all submitted work is done, at most this long; says whether it is.
    pub fn drain(&self, at_most: Duration) -> bool {
        // A function that drains its own pool must not wait for itself.
        let here = WORKER
            .with_borrow(|own| own.as_ref().is_some_and(|own| Arc::ptr_eq(own, &self.shared)));
        let done = |queue: &Queue| queue.nodes <= if here { queue.waiting } else { 0 };
        self.shared.wait_until(at_most, done)
    }

    /// Counts a node as in flight, before any of its tasks can run.
    pub fn admit(&self) {
        lock(&self.shared.queue).nodes += 1;
    }

    /// Queues an admitted node's tasks that can run now, in order.
    pub fn push_node(&self, node: &Arc<Node>, ready: &[usize]) {
        let mut queue = lock(&self.shared.queue);
        if queue.closed {
            drop(queue);
            let tasks = ready.iter().map(|&i| Task { node: node.clone(), index: i });
            return abandon(tasks.collect(), || Cause::Stopped);
        }
        for run in ready.chunk_by(|a, b| a + 1 == *b) {
            let (next, end) = (run[0], run[run.len() - 1] + 1);
            queue.cold.push_back(Run { node: node.clone(), next, end });
        }
        self.shared.wake(queue);
    }

    /// Queues tasks whose inputs have just been made, each in its node's pool.
    pub fn push_ready(tasks: impl IntoIterator<Item = Task>) {
        Pool::push(tasks, |queue, task| queue.hot.push(task));
    }

    /// Queues tasks whose inputs came from another pool, such as what has been read. They are
    /// not in this one's cache, and what was asked for first comes first.
    fn push_arrived(tasks: impl IntoIterator<Item = Task>) {
        Pool::push(tasks, |queue, Task { node, index }| match queue.cold.back_mut() {
            Some(last) if last.end == index && Arc::ptr_eq(&last.node, &node) => last.end += 1,
            _ => queue.cold.push_back(Run { node, next: index, end: index + 1 }),
        });
    }

    fn push(tasks: impl IntoIterator<Item = Task>, put: fn(&mut Queue, Task)) {
        for task in tasks {
            let shared = task.node.pool().shared.clone();
            let mut queue = lock(&shared.queue);
            if queue.closed {
                drop(queue);
                abandon(vec![task], || Cause::Stopped);
            } else {
                put(&mut queue, task);
                shared.wake(queue);
            }
        }
    }

    /// Puts these nodes' tasks before the others of the queue, in the order they have.
    pub fn hasten(&self, nodes: &HashSet<*const Node>) {
        self.shared.hasten(nodes);
    }

    /// Puts what is queued and reads the buffer before other work.
    pub fn hasten_readers(buffer: &Buffer) {
        for shared in all() {
            let queue = lock(&shared.queue);
            let reads = |run: &&Run| run.node.reads(run.next, buffer);
            let nodes = queue.cold.iter().filter(reads).map(|run| Arc::as_ptr(&run.node)).collect();
            drop(queue);
            shared.hasten(&nodes);
        }
    }

    pub fn count_bytes(&self, bytes: usize) {
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn node_done(&self, node: &Node) {
        self.shared.bytes.fetch_sub(node.bytes(), Ordering::Relaxed);
        if node.was_queued() {
            // In a forked child the counts begin anew, under tasks that forked.
            let mut queue = lock(&self.shared.queue);
            queue.nodes = queue.nodes.saturating_sub(1);
            drop(queue);
            self.shared.progress.notify_all();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A node keeps its pool, so nothing is queued here any more.
        lock(&self.shared.queue).closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn is_full(&self, queue: &Queue) -> bool {
        queue.nodes >= self.limits.nodes
            || (queue.nodes > 0 && self.bytes.load(Ordering::Relaxed) >= self.limits.bytes)
    }

    fn hasten(&self, nodes: &HashSet<*const Node>) {
        let mut queue = lock(&self.queue);
        let is_meant = |run: &Run| nodes.contains(&Arc::as_ptr(&run.node));
        let first = queue.cold.iter().take_while(|run| is_meant(run)).count();
        if !queue.cold.range(first..).any(is_meant) {
            return;
        }
        let (meant, others): (Vec<_>, Vec<_>) = queue.cold.drain(..).partition(is_meant);
        queue.cold.extend(meant.into_iter().chain(others));
    }

    fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed) > 0
    }

    fn wait_until(&self, at_most: Duration, holds: impl Fn(&Queue) -> bool) -> bool {
        let deadline = Instant::now() + at_most;
        let mut queue = lock(&self.queue);
        while !holds(&queue) {
            let now = Instant::now();
            if now >= deadline {
                return false;
            }
            let waited = self.progress.wait_timeout(queue, deadline - now);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Sees to it that a worker looks at the queue. One at most: each worker that finds more to do
    /// than it takes does the same, so that a submitting thread pays for a single system call.
    fn wake(self: &Arc<Shared>, mut queue: MutexGuard<'_, Queue>) {
        if !queue.has_tasks() {
            return;
        }
        if queue.idle > 0 {
            drop(queue);
            return self.work.notify_one();
        }
        if !self.start_worker(&mut queue) && queue.is_stranded() {
            STRANDED.store(true, Ordering::Relaxed);
        }
    }

    /// Starts another worker, if there may be one and the system lets us; says whether it did.
    fn start_worker(self: &Arc<Shared>, queue: &mut Queue) -> bool {
        if queue.workers >= self.threads + queue.waiting.min(MOST_STAND_INS) {
            return false;
        }
        let shared = self.clone();
        let named = thread::Builder::new().name("penstock".into());
        let started = has_room_for_thread() && named.spawn(move || shared.work()).is_ok();
        if started {
            queue.workers += 1;
        } else {
            REFUSED.store(true, Ordering::Relaxed);
        }
        started
    }

    /// A task that no worker will come for, counted as running.
    fn take_stranded(self: &Arc<Shared>) -> Option<Task> {
        let mut queue = lock(&self.queue);
        // Threads may be to be had again.
        if queue.closed || !queue.is_stranded() || self.start_worker(&mut queue) {
            return None;
        }
        STRANDED.store(true, Ordering::Relaxed);
        self.take(&mut queue)
    }

    fn work(self: Arc<Shared>) {
        WORKER.set(Some(self.clone()));
        while let Some(task) = self.next_task() {
            self.run_chain(task);
            self.rest();
        }
    }

    /// The end of what [`Shared::take`] began.
    fn rest(&self) {
        let mut queue = lock(&self.queue);
        queue.running = queue.running.saturating_sub(1);
        let awaited = queue.closed || self.is_paused();
        drop(queue);
        if awaited {
            self.progress.notify_all();
        }
    }

    /// Runs a task and then, depth first, what it made ready.
    fn run_chain(&self, task: Task) {
        let mut next = Some(task);
        while let Some(task) = next {
            let is_own = |task: &Task| std::ptr::eq(&*task.node.pool().shared, self);
            let (own, foreign): (SmallVec<[_; 2]>, SmallVec<[_; 2]>) =
                task.run().into_iter().partition(is_own);
            let mut own = own.into_iter();
            next = own.next();
            Pool::push_ready(own);
            Pool::push_arrived(foreign);
            if self.is_paused() {
                return Pool::push_ready(next);
            }
        }
    }

    /// Waits for a task; `None` when there will be no more.
    fn next_task(self: &Arc<Shared>) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if let Some(task) = self.take(&mut queue) {
                self.wake(queue);
                return Some(task);
            }
            if queue.workers > self.threads + queue.waiting {
                queue.workers -= 1;
                return None;
            }
            queue.idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// The next task, counted as running.
    fn take(&self, queue: &mut Queue) -> Option<Task> {
        if self.is_paused() {
            return None;
        }
        let task = queue.hot.pop().or_else(|| {
            let run = queue.cold.front_mut()?;
            let task = Task { node: run.node.clone(), index: run.next };
            run.next += 1;
            if run.next == run.end {
                queue.cold.pop_front();
            }
            Some(task)
        })?;
        queue.running += 1;
        Some(task)
    }
}

impl Queue {
    fn has_tasks(&self) -> bool {
        !self.hot.is_empty() || !self.cold.is_empty()
    }

    /// Whether there are tasks, and no worker that will ever look at them: there is none, or all
    /// wait themselves.
    fn is_stranded(&self) -> bool {
        self.has_tasks() && self.workers <= self.waiting
    }

    fn take_all(&mut self) -> Vec<Task> {
        let mut tasks = std::mem::take(&mut self.hot);
        for run in std::mem::take(&mut self.cold) {
            tasks.extend((run.next..run.end).map(|i| Task { node: run.node.clone(), index: i }));
        }
        tasks
    }
}

pub(super) fn on_worker() -> bool {
    WORKER.with_borrow(Option::is_some)
}

/// A worker that waits, in a user's function, lets the pool have another thread meanwhile: what it
/// waits for may be in the queue. Elsewhere this does nothing.
pub fn stand_in() -> Option<StandIn> {
    let shared = WORKER.with_borrow(Clone::clone)?;
    lock(&shared.queue).waiting += 1;
    shared.rest();
    shared.wake(lock(&shared.queue));
    Some(StandIn(shared))
}

/// Ends when the worker goes on.
pub struct StandIn(Arc<Shared>);

impl Drop for StandIn {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.waiting = queue.waiting.saturating_sub(1);
        queue.running += 1;
        drop(queue);
        // A thread that is one too many now ends when it wakes up.
        self.0.work.notify_one();
    }
}

/// Runs a task that no worker will come for, on a thread that would otherwise wait for it for
/// ever: the system refuses to start threads, or there are as many as there may be, and all of
/// them wait in users' functions. Says whether there was one.
///
/// A thread that does so in a wait inside of such a task, and so on, leaves it to others. In the
/// end, after it has waited this many times in vain, the task fails.
pub fn help(waited: usize) -> bool {
    if !STRANDED.load(Ordering::Relaxed) || !STRANDED.swap(false, Ordering::Relaxed) {
        return false;
    }
    let nested = NESTED.get();
    if nested >= MOST_NESTED && waited < MOST_CHANCES {
        STRANDED.store(true, Ordering::Relaxed);
        return false;
    }
    for pool in all() {
        let Some(task) = pool.take_stranded() else { continue };
        if nested >= MOST_NESTED {
            abandon(vec![task], || Cause::Threads);
        } else {
            NESTED.set(nested + 1);
            pool.run_chain(task);
            NESTED.set(nested);
        }
        pool.rest();
        return true;
    }
    false
}

/// Whether the system has refused to start a thread since this was last asked.
pub fn refused_threads() -> bool {
    REFUSED.load(Ordering::Relaxed) && REFUSED.swap(false, Ordering::Relaxed)
}

/// Fails tasks that will not run, and all that waits for them.
fn abandon(mut tasks: Vec<Task>, why: fn() -> Cause) {
    while let Some(task) = tasks.pop() {
        let woken: SmallVec<[Task; 2]> = task.node.abandon(task.index, why());
        tasks.extend(woken);
    }
}

thread_local! {
    /// The pools that this thread has paused, to fork.
    static PAUSED: RefCell<Vec<Arc<Shared>>> = const { RefCell::new(Vec::new()) };
    /// All locks, while this thread is inside of `fork`.
    static STANDSTILL: RefCell<Option<Standstill>> = const { RefCell::new(None) };
}

/// Stops all workers between tasks, until [`resume_all`] on the same thread or a fork's child.
pub fn pause_all(at_most: Duration) {
    let pools = all();
    for pool in &pools {
        pool.paused.fetch_add(1, Ordering::Relaxed);
    }
    // A worker that forks (in a user's function) is itself running, and stands still in `fork`.
    let here = WORKER.with_borrow(Clone::clone);
    let deadline = Instant::now() + at_most;
    for pool in &pools {
        let own = usize::from(here.as_ref().is_some_and(|own| Arc::ptr_eq(own, pool)));
        let left = deadline.saturating_duration_since(Instant::now());
        pool.wait_until(left, |queue| queue.running <= own);
    }
    PAUSED.set(pools);
}

pub fn resume_all() {
    for pool in PAUSED.take() {
        pool.paused.fetch_sub(1, Ordering::Relaxed);
        drop(lock(&pool.queue));
        pool.work.notify_all();
    }
}

/// Every lock of every pool, in the hands of the thread that forks.
struct Standstill {
    // Declared before the pools that the guards point into, to be dropped first.
    queues: Vec<MutexGuard<'static, Queue>>,
    pools: Vec<Arc<Shared>>,
    _registry: MutexGuard<'static, Vec<Weak<Shared>>>,
    put_off: MutexGuard<'static, Vec<Weak<Node>>>,
    _memory: CacheLocks,
}

/// Right before `fork`: takes all locks, which are only ever held for moments.
pub fn lock_all() {
    let registry = lock(&POOLS);
    let pools: Vec<_> = registry.iter().filter_map(Weak::upgrade).collect();
    let hold = |pool: &Arc<Shared>| {
        let guard = lock(&pool.queue);
        // SAFETY: the guard is dropped before `pools`, which keeps what it points into alive.
        unsafe { std::mem::transmute::<MutexGuard<'_, Queue>, MutexGuard<'static, Queue>>(guard) }
    };
    let queues = pools.iter().map(hold).collect();
    let (put_off, _memory) = (lock_put_off(), lock_cache());
    STANDSTILL.set(Some(Standstill { queues, pools, _registry: registry, put_off, _memory }));
}

pub fn unlock_all() {
    drop(STANDSTILL.take());
}

/// In a forked child, with all locks held: none of the threads is there any more, and none of
/// the work.
pub fn reset_all() {
    WORKER.set(None);
    // These were let go of by counting anew.
    std::mem::forget(PAUSED.take());
    if let Some(Standstill { queues, pools, mut put_off, .. }) = STANDSTILL.take() {
        std::mem::forget(std::mem::take(&mut *put_off));
        for (pool, mut queue) in pools.iter().zip(queues) {
            // Dropping tasks would run destructors of values that the parent still works on.
            std::mem::forget(std::mem::take(&mut *queue));
            pool.bytes.store(0, Ordering::Relaxed);
            pool.paused.store(0, Ordering::Relaxed);
        }
        // Dropping a pool here might be its end, which takes locks.
        std::mem::forget(pools);
    }
}

fn all() -> Vec<Arc<Shared>> {
    lock(&POOLS).iter().filter_map(Weak::upgrade).collect()
}

pub fn stop_all(at_most: Duration) {
    let pools = all();
    for pool in &pools {
        let mut queue = lock(&pool.queue);
        queue.closed = true;
        let tasks = queue.take_all();
        drop(queue);
        pool.work.notify_all();
        abandon(tasks, || Cause::Stopped);
    }
    let deadline = Instant::now() + at_most;
    for pool in pools {
        let left = deadline.saturating_duration_since(Instant::now());
        pool.wait_until(left, |queue| queue.running == 0);
    }
}
