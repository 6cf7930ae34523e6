//! The threads that run tasks.
//!
//! There are three queues under one lock. *hot* holds tasks whose inputs were just produced, newest
//! first, so that a sample moves on to its next operator while it is in cache. *cold* holds
//! submitted nodes, oldest first, except that nodes somebody waits for come first; workers take one
//! sample at a time from it. *early* holds nodes that nobody has asked for yet (see [`super::ahead`])
//! and is used only when the other two are empty. A worker keeps the first task that its own work
//! made ready and never queues it.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::lend::lock_put_off;
use super::node::{Node, Task};
use super::profile;
use super::value::lock;
use crate::value::{Buffer, CacheLocks, Cause, has_room_for_thread, lock_cache};

/// Limits on unfinished submitted work. A submit that would exceed them waits.
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

/// Worker threads with their own queue. They start with the first task and exit once nobody can
/// submit to the pool any more.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    threads: usize,
    limits: Limits,
    queue: Mutex<Queue>,
    /// Signals that there is work, or that the pool is closed.
    work: Condvar,
    /// Signals that something finished: a submit may proceed, or the pool is drained or paused.
    progress: Condvar,
    /// Result bytes produced by unfinished nodes.
    bytes: AtomicUsize,
    /// How many threads have asked the workers to pause between tasks.
    paused: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    hot: Vec<Task>,
    cold: VecDeque<Run>,
    early: VecDeque<Run>,
    /// Submitted nodes that are not finished, except early ones.
    nodes: usize,
    /// Early nodes that are not finished.
    early_nodes: usize,
    /// Workers waiting for work.
    idle: usize,
    /// Workers running a task.
    running: usize,
    /// Workers blocked in a user's function that waits for other work.
    waiting: usize,
    /// Total number of workers.
    workers: usize,
    closed: bool,
}

/// Consecutive tasks of one node.
struct Run {
    node: Arc<Node>,
    next: usize,
    end: usize,
}

/// Maximum number of extra threads that replace blocked workers.
const MAX_STAND_INS: usize = 512;

/// Maximum nesting depth of tasks run by one thread while it waits, see [`help`].
const MAX_NESTED: usize = 8;

/// How often a thread at that depth waits for others to take a task before it fails the task.
const MAX_WAITS: usize = 20;

static POOLS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Whether there may be tasks that no worker will pick up, see [`help`].
static STRANDED: AtomicBool = AtomicBool::new(false);

/// Whether the system has refused to start a thread.
static REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The pool that this thread is a worker of.
    static WORKER: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
    /// Number of tasks that this thread is running inside waits.
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

impl Pool {
    pub fn new(threads: usize) -> Arc<Pool> {
        Pool::with_limits(threads, Limits::default())
    }

    /// A pool with limits on the nodes and bytes in flight.
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

    /// Number of submitted nodes that are not finished.
    pub fn in_flight(&self) -> usize {
        lock(&self.shared.queue).nodes
    }

    /// Whether a submit should wait first, see [`Pool::wait_for_room`].
    pub fn is_full(&self) -> bool {
        !on_worker() && self.shared.is_full(&lock(&self.shared.queue))
    }

    /// Waits until another node may be submitted, or until the timeout; returns whether it may.
    /// Workers never wait: they are the ones that make progress.
    pub fn wait_for_room(&self, at_most: Duration) -> bool {
        on_worker() || self.shared.wait_until(at_most, |queue| !self.shared.is_full(queue))
    }

    /// Waits until all submitted work is done, or until the timeout; returns whether it is.
    pub fn drain(&self, at_most: Duration) -> bool {
        // A function that drains its own pool must not wait for its own call.
        let here = WORKER
            .with_borrow(|own| own.as_ref().is_some_and(|own| Arc::ptr_eq(own, &self.shared)));
        let done = |queue: &Queue| queue.nodes <= if here { queue.waiting } else { 0 };
        self.shared.wait_until(at_most, done)
    }

    /// Maximum number of result bytes of unfinished nodes.
    pub fn limit_bytes(&self) -> usize {
        self.shared.limits.bytes
    }

    /// Whether as many nodes as the pool may have in flight have been submitted early.
    pub fn is_full_of_early(&self) -> bool {
        lock(&self.shared.queue).early_nodes >= self.shared.limits.nodes
    }

    /// Number of early nodes that are not finished.
    #[cfg(any(test, feature = "probes"))]
    pub fn early_in_flight(&self) -> usize {
        lock(&self.shared.queue).early_nodes
    }

    /// Counts a node as in flight, before any of its tasks can run.
    pub fn admit(&self, node: &Node) {
        let mut queue = lock(&self.shared.queue);
        *queue.count_of(node) += 1;
    }

    /// The user has made the call of an early node, so it counts like any other.
    pub fn adopt(&self, node: &Node) {
        let mut queue = lock(&self.shared.queue);
        if node.adopt() {
            queue.early_nodes = queue.early_nodes.saturating_sub(1);
            queue.nodes += 1;
        }
    }

    /// Cancels early nodes. Tasks that are queued are removed at once, which releases their inputs;
    /// others end when they become ready.
    pub fn cancel(nodes: &[Arc<Node>]) {
        let known: HashSet<_> = nodes.iter().map(Arc::as_ptr).collect();
        nodes.iter().for_each(|node| node.cancel());
        let mut pools: Vec<&Arc<Shared>> = Vec::new();
        for node in nodes {
            let shared = &node.pool().shared;
            if !pools.iter().any(|other| Arc::ptr_eq(other, shared)) {
                pools.push(shared);
            }
        }
        for shared in pools {
            let mut queue = lock(&shared.queue);
            let is_known = |run: &Run| known.contains(&Arc::as_ptr(&run.node));
            let (gone, rest): (Vec<_>, Vec<_>) = queue.early.drain(..).partition(is_known);
            queue.early = rest.into();
            drop(queue);
            let mut tasks: Vec<Task> = gone.into_iter().flat_map(Run::tasks).collect();
            while let Some(task) = tasks.pop() {
                let (cancelled, others): (Vec<_>, Vec<_>) =
                    task.run().into_iter().partition(|task| task.node.is_cancelled());
                tasks.extend(cancelled);
                Pool::push_ready(others);
            }
        }
    }

    /// Queues those tasks of an admitted node that can run now, in order.
    pub fn push_node(&self, node: &Arc<Node>, ready: &[usize]) {
        let mut queue = lock(&self.shared.queue);
        if queue.closed {
            drop(queue);
            let tasks = ready.iter().map(|&i| Task { node: node.clone(), index: i });
            return abandon(tasks.collect(), || Cause::Stopped);
        }
        for run in ready.chunk_by(|a, b| a + 1 == *b) {
            let (next, end) = (run[0], run[run.len() - 1] + 1);
            queue.runs_of(node).push_back(Run { node: node.clone(), next, end });
        }
        self.shared.wake(queue);
    }

    /// Queues tasks whose inputs were just produced, each in its node's pool.
    pub fn push_ready(tasks: impl IntoIterator<Item = Task>) {
        Pool::push(tasks, |queue, Task { node, index }| match node.is_early() {
            true => queue.early.push_front(Run { node, next: index, end: index + 1 }),
            false => queue.hot.push(Task { node, index }),
        });
    }

    /// Queues tasks whose inputs came from another pool, such as samples that were read. They are
    /// not in cache, so they run in submission order.
    fn push_arrived(tasks: impl IntoIterator<Item = Task>) {
        Pool::push(tasks, |queue, Task { node, index }| {
            let runs = queue.runs_of(&node);
            match runs.back_mut() {
                Some(last) if last.end == index && Arc::ptr_eq(&last.node, &node) => last.end += 1,
                _ => runs.push_back(Run { node, next: index, end: index + 1 }),
            }
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

    /// Moves the tasks of these nodes to the front of the queue, keeping their order.
    pub fn hasten(&self, nodes: &HashSet<*const Node>) {
        self.shared.hasten(nodes);
    }

    /// Moves queued work that reads the buffer to the front.
    pub fn hasten_readers(buffer: &Buffer) {
        for shared in all() {
            let queue = lock(&shared.queue);
            let reads = |run: &&Run| run.node.reads(run.next, buffer);
            let queued = queue.cold.iter().chain(&queue.early);
            let nodes = queued.filter(reads).map(|run| Arc::as_ptr(&run.node)).collect();
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
            let mut queue = lock(&self.shared.queue);
            let count = queue.count_of(node);
            // In a forked child the counts restart at zero, even for tasks that were running.
            *count = count.saturating_sub(1);
            node.finish();
            drop(queue);
            self.shared.progress.notify_all();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Nodes hold a reference to their pool, so nothing is queued any more.
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
        let is_urgent = |run: &Run| nodes.contains(&Arc::as_ptr(&run.node));
        let first = queue.cold.iter().take_while(|run| is_urgent(run)).count();
        let is_early = queue.early.iter().any(is_urgent);
        if !is_early && !queue.cold.range(first..).any(is_urgent) {
            return;
        }
        let (mut urgent, others): (Vec<_>, Vec<_>) = queue.cold.drain(..).partition(is_urgent);
        if is_early {
            let (early, rest): (Vec<_>, Vec<_>) = queue.early.drain(..).partition(is_urgent);
            urgent.extend(early);
            queue.early = rest.into();
        }
        queue.cold.extend(urgent.into_iter().chain(others));
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

    /// Makes sure that a worker looks at the queue. Wakes at most one, so that a submit costs a
    /// single system call; a worker that leaves tasks behind wakes the next.
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

    /// Starts another worker, if the limit and the system allow it; returns whether it did.
    fn start_worker(self: &Arc<Shared>, queue: &mut Queue) -> bool {
        if queue.workers >= self.threads + queue.waiting.min(MAX_STAND_INS) {
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

    /// Takes a task that no worker will pick up; counts it as running.
    fn take_stranded(self: &Arc<Shared>) -> Option<Task> {
        let mut queue = lock(&self.queue);
        // The system may allow new threads again.
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
            self.task_done();
        }
    }

    /// Ends what [`Shared::take`] began: the task no longer counts as running.
    fn task_done(&self) {
        let mut queue = lock(&self.queue);
        queue.running = queue.running.saturating_sub(1);
        let awaited = queue.closed || self.is_paused();
        drop(queue);
        if awaited {
            self.progress.notify_all();
        }
    }

    /// Runs a task and then, depth first, the tasks that it made ready.
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

    /// Waits for a task. Returns `None` if the worker should exit.
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

    /// Takes the next task; counts it as running.
    fn take(&self, queue: &mut Queue) -> Option<Task> {
        if self.is_paused() {
            return None;
        }
        let task = queue
            .hot
            .pop()
            .or_else(|| first_task(&mut queue.cold))
            .or_else(|| first_task(&mut queue.early))?;
        queue.running += 1;
        Some(task)
    }
}

fn first_task(runs: &mut VecDeque<Run>) -> Option<Task> {
    let run = runs.front_mut()?;
    let task = Task { node: run.node.clone(), index: run.next };
    run.next += 1;
    if run.next == run.end {
        runs.pop_front();
    }
    Some(task)
}

impl Run {
    fn tasks(self) -> impl Iterator<Item = Task> {
        (self.next..self.end).map(move |index| Task { node: self.node.clone(), index })
    }
}

impl Queue {
    fn has_tasks(&self) -> bool {
        !self.hot.is_empty() || !self.cold.is_empty() || !self.early.is_empty()
    }

    /// Where tasks of the node are queued.
    fn runs_of(&mut self, node: &Node) -> &mut VecDeque<Run> {
        if node.is_early() { &mut self.early } else { &mut self.cold }
    }

    /// The count that the node is part of.
    fn count_of(&mut self, node: &Node) -> &mut usize {
        if node.is_early() { &mut self.early_nodes } else { &mut self.nodes }
    }

    /// Whether there are tasks that no worker will ever look at: there are no workers, or all of
    /// them are blocked.
    fn is_stranded(&self) -> bool {
        self.has_tasks() && self.workers <= self.waiting
    }

    fn take_all(&mut self) -> Vec<Task> {
        let mut tasks = std::mem::take(&mut self.hot);
        tasks.extend(std::mem::take(&mut self.cold).into_iter().flat_map(Run::tasks));
        tasks.extend(std::mem::take(&mut self.early).into_iter().flat_map(Run::tasks));
        tasks
    }
}

pub(super) fn on_worker() -> bool {
    WORKER.with_borrow(Option::is_some)
}

/// Call this on a worker before blocking in a user's function: the pool may start another thread
/// meanwhile, since what the function waits for may be queued. Does nothing on other threads.
pub fn stand_in() -> Option<StandIn> {
    let shared = WORKER.with_borrow(Clone::clone)?;
    lock(&shared.queue).waiting += 1;
    shared.task_done();
    shared.wake(lock(&shared.queue));
    Some(StandIn(shared))
}

/// Dropped when the worker continues.
pub struct StandIn(Arc<Shared>);

impl Drop for StandIn {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.waiting = queue.waiting.saturating_sub(1);
        queue.running += 1;
        drop(queue);
        // A surplus thread exits when it wakes up.
        self.0.work.notify_one();
    }
}

/// Runs a task that no worker will pick up, on a thread that would otherwise wait for it forever:
/// the system refuses to start threads, or the limit is reached and all of them are blocked in
/// users' functions. Returns whether there was such a task.
///
/// Such a task may itself wait and call this, and so on. Beyond `MAX_NESTED` levels the thread
/// leaves tasks to others; once `waited` reaches `MAX_WAITS`, the task fails.
pub fn help(waited: usize) -> bool {
    if !STRANDED.load(Ordering::Relaxed) || !STRANDED.swap(false, Ordering::Relaxed) {
        return false;
    }
    let nested = NESTED.get();
    if nested >= MAX_NESTED && waited < MAX_WAITS {
        STRANDED.store(true, Ordering::Relaxed);
        return false;
    }
    for pool in all() {
        let Some(task) = pool.take_stranded() else { continue };
        if nested >= MAX_NESTED {
            abandon(vec![task], || Cause::Threads);
        } else {
            NESTED.set(nested + 1);
            pool.run_chain(task);
            NESTED.set(nested);
        }
        pool.task_done();
        return true;
    }
    false
}

/// Whether the system has refused to start a thread since the last call.
pub fn refused_threads() -> bool {
    REFUSED.load(Ordering::Relaxed) && REFUSED.swap(false, Ordering::Relaxed)
}

/// Fails tasks that will not run, and everything that waits for them.
fn abandon(mut tasks: Vec<Task>, why: fn() -> Cause) {
    while let Some(task) = tasks.pop() {
        let woken: SmallVec<[Task; 2]> = task.node.abandon(task.index, why());
        tasks.extend(woken);
    }
}

thread_local! {
    /// The pools that this thread paused in order to fork.
    static PAUSED: RefCell<Vec<Arc<Shared>>> = const { RefCell::new(Vec::new()) };
    /// All locks, while this thread is inside `fork`.
    static FORK_LOCKS: RefCell<Option<ForkLocks>> = const { RefCell::new(None) };
}

/// Pauses all workers between tasks, until [`resume_all`] on the same thread. A forked child starts
/// unpaused.
pub fn pause_all(at_most: Duration) {
    let pools = all();
    for pool in &pools {
        pool.paused.fetch_add(1, Ordering::Relaxed);
    }
    // A worker that forks (in a user's function) counts as running itself.
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

/// Every lock of every pool, held by the forking thread.
struct ForkLocks {
    // Declared before `pools`, so that the guards are dropped before what they point into.
    queues: Vec<MutexGuard<'static, Queue>>,
    pools: Vec<Arc<Shared>>,
    _registry: MutexGuard<'static, Vec<Weak<Shared>>>,
    put_off: MutexGuard<'static, Vec<Weak<Node>>>,
    profile: MutexGuard<'static, Vec<Arc<Mutex<profile::Log>>>>,
    _memory: CacheLocks,
}

/// Right before `fork`: takes all locks, which are only ever held briefly.
pub fn lock_all() {
    let registry = lock(&POOLS);
    let pools: Vec<_> = registry.iter().filter_map(Weak::upgrade).collect();
    let hold = |pool: &Arc<Shared>| {
        let guard = lock(&pool.queue);
        // SAFETY: the guard is dropped before `pools`, which keeps what it points into alive.
        unsafe { std::mem::transmute::<MutexGuard<'_, Queue>, MutexGuard<'static, Queue>>(guard) }
    };
    let queues = pools.iter().map(hold).collect();
    let (put_off, profile, _memory) = (lock_put_off(), profile::lock_logs(), lock_cache());
    let locks = ForkLocks { queues, pools, _registry: registry, put_off, profile, _memory };
    FORK_LOCKS.set(Some(locks));
}

pub fn unlock_all() {
    drop(FORK_LOCKS.take());
}

/// In a forked child, with all locks held: the threads are gone, and so is their work.
pub fn reset_all() {
    WORKER.set(None);
    // `paused` is reset below instead.
    std::mem::forget(PAUSED.take());
    if let Some(ForkLocks { queues, pools, mut put_off, mut profile, .. }) = FORK_LOCKS.take() {
        std::mem::forget(std::mem::take(&mut *put_off));
        profile::forget(&mut profile);
        for (pool, mut queue) in pools.iter().zip(queues) {
            // Dropping tasks would run destructors of values that the parent still uses.
            std::mem::forget(std::mem::take(&mut *queue));
            pool.bytes.store(0, Ordering::Relaxed);
            pool.paused.store(0, Ordering::Relaxed);
        }
        // Dropping the last reference to a pool here would take locks.
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
