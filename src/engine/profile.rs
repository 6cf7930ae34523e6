//! Notes of what ran when, while a profile is being recorded.
//!
//! Each thread has its own log, whose lock is contended only when the recording is read. Without a
//! recording, a task costs one relaxed load. With one, small calls show what a note costs, so it is
//! two readings of the clock, a sum in a row that is usually found at the first try, and 40 bytes.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::pool::on_worker;
use super::value::lock;

/// What a note is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One task of a node, or a small call that ran as a whole on the calling thread.
    Task,
    /// A thread waited for a value of the operator.
    Wait,
    /// A thread waited because too much work was in flight.
    Full,
    /// A call of the program was answered with what had been run ahead.
    Ahead,
}

/// An operator at a place of the program.
#[derive(Clone, Copy)]
pub struct Key {
    pub kind: Kind,
    pub operator: &'static str,
    /// The path through the user's program that led to the call.
    pub site: u32,
}

impl Key {
    /// Names of operators are compared by address: at worst, one operator has two rows.
    fn is(&self, other: &Key) -> bool {
        self.site == other.site
            && self.kind == other.kind
            && std::ptr::eq(self.operator, other.operator)
    }
}

/// Times are in nanoseconds of the monotonic clock.
#[derive(Clone, Copy)]
pub struct Note {
    pub begin: u64,
    pub duration: u64,
    /// Bytes of results.
    pub bytes: u64,
    /// Where the log's totals have its key.
    pub total: u32,
    /// The first sample.
    pub sample: u32,
    pub samples: u32,
}

/// Sums over the notes with one key.
#[derive(Clone)]
pub struct Total {
    pub key: Key,
    pub calls: u64,
    pub samples: u64,
    pub bytes: u64,
    /// Time without that of other notes inside.
    pub wall: u64,
    pub cpu: u64,
    /// The part of `wall` whose CPU time is not known yet.
    pending: u64,
}

/// What one thread did.
pub struct Log {
    pub is_worker: bool,
    /// Programs have few rows, and calls them in turn, so that a search is quicker than a hash.
    pub totals: Vec<Total>,
    pub notes: Vec<Note>,
    /// Notes that are in the totals but were not kept.
    pub dropped: u64,
    /// The total of the latest note.
    latest: usize,
    /// The sum of `pending`, and the thread's CPU time when the first of it began.
    pending: u64,
    cpu_before: u64,
}

/// The number of the current recording; 0 if there is none.
static RECORDING: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);
static LOGS: Mutex<Vec<Arc<Mutex<Log>>>> = Mutex::new(Vec::new());

/// Notes that a thread keeps; more are only summed up.
const MOST_NOTES: usize = 1 << 19;

/// The CPU clock takes longer to read than the wall clock, so it is read once per this much work,
/// and shared out among the tasks by their wall time.
const CPU_CLOCK_EVERY: u64 = 250_000;

thread_local! {
    /// This thread's log.
    static OWN: RefCell<Option<Arc<Mutex<Log>>>> = const { RefCell::new(None) };
    /// The recording that the log is of.
    static OF: Cell<u64> = const { Cell::new(0) };
    /// Time of the notes inside the one that is being timed.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// Begins a recording, whose first log is that of this thread; returns `false` if there is one.
pub fn start() -> bool {
    let logs = lock(&LOGS);
    if RECORDING.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let recording = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    RECORDING.store(recording, Ordering::Relaxed);
    drop(logs);
    open_log(recording);
    true
}

/// Ends the recording, and returns what each thread did.
pub fn stop() -> Vec<Log> {
    let mut logs = lock(&LOGS);
    RECORDING.store(0, Ordering::Relaxed);
    std::mem::take(&mut *logs).iter().map(|log| lock(log).take()).collect()
}

/// The totals of the recording so far, for each thread.
pub fn peek() -> Vec<Log> {
    let copied = |log: &Arc<Mutex<Log>>| {
        let log = lock(log);
        let mut copy = Log { totals: log.totals.clone(), ..Log::new(log.is_worker, 0) };
        copy.share_out(None);
        copy
    };
    lock(&LOGS).iter().map(copied).collect()
}

/// The clock of notes.
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Right before `fork`, so that the child finds the lock free.
pub fn lock_logs() -> MutexGuard<'static, Vec<Arc<Mutex<Log>>>> {
    lock(&LOGS)
}

/// In a forked child: what is being recorded is the parent's.
pub fn forget(logs: &mut Vec<Arc<Mutex<Log>>>) {
    RECORDING.store(0, Ordering::Relaxed);
    // The lock of another thread's log may be held for ever.
    std::mem::forget(std::mem::take(logs));
    OF.set(0);
    OWN.with_borrow_mut(|own| std::mem::forget(std::mem::take(own)));
}

/// Measures from here to [`Timer::note`]; `None` without a recording.
#[inline]
pub fn timer() -> Option<Timer> {
    match RECORDING.load(Ordering::Relaxed) {
        0 => None,
        recording => Some(Timer::begin(recording)),
    }
}

/// A call of the program gets what was run ahead.
#[inline]
pub fn note_ahead(operator: &'static str, site: u32) {
    let recording = RECORDING.load(Ordering::Relaxed);
    if recording != 0 {
        open_log(recording);
        with_log(|log| {
            let place = log.place(Key { kind: Kind::Ahead, operator, site });
            log.totals[place].calls += 1;
        });
    }
}

pub struct Timer {
    recording: u64,
    begin: u64,
    outer: u64,
}

impl Timer {
    fn begin(recording: u64) -> Timer {
        open_log(recording);
        Timer { recording, begin: now(), outer: INSIDE.replace(0) }
    }

    pub fn note(
        self,
        kind: Kind,
        operator: &'static str,
        site: u32,
        samples: std::ops::Range<usize>,
        bytes: usize,
    ) {
        let (recording, begin, outer) = (self.recording, self.begin, self.outer);
        let duration = now().saturating_sub(begin);
        let own = duration.saturating_sub(INSIDE.replace(outer.saturating_add(duration)));
        std::mem::forget(self);
        if RECORDING.load(Ordering::Relaxed) != recording {
            return;
        }
        with_log(|log| {
            let note = Note {
                begin,
                duration,
                bytes: bytes as u64,
                total: log.place(Key { kind, operator, site }) as u32,
                sample: samples.start as u32,
                samples: samples.len() as u32,
            };
            log.add(note, own);
        });
    }
}

impl Drop for Timer {
    /// What was not noted counts as time of the note around it.
    fn drop(&mut self) {
        INSIDE.set(self.outer);
    }
}

impl Log {
    fn new(is_worker: bool, cpu_before: u64) -> Log {
        Log {
            is_worker,
            totals: Vec::new(),
            notes: Vec::new(),
            dropped: 0,
            latest: 0,
            pending: 0,
            cpu_before,
        }
    }

    /// Where the total of a key is. It is the one after the latest if a loop makes its calls in
    /// turn, or the latest if there is a task for each sample.
    fn place(&mut self, key: Key) -> usize {
        let is_at = |place: usize| self.totals.get(place).is_some_and(|total| total.key.is(&key));
        let place = [self.latest, self.latest + 1, 0].into_iter().find(|&place| is_at(place));
        let place = place.or_else(|| self.totals.iter().position(|total| total.key.is(&key)));
        self.latest = place.unwrap_or_else(|| {
            let (calls, samples, bytes, wall, cpu, pending) = (0, 0, 0, 0, 0, 0);
            self.totals.push(Total { key, calls, samples, bytes, wall, cpu, pending });
            self.totals.len() - 1
        });
        self.latest
    }

    /// Adds a note that took `own` nanoseconds without the notes inside it.
    fn add(&mut self, note: Note, own: u64) {
        let total = &mut self.totals[note.total as usize];
        // The task of its first sample stands for the call.
        total.calls += u64::from(note.sample == 0);
        total.samples += u64::from(note.samples);
        total.bytes += note.bytes;
        total.wall += own;
        if total.key.kind == Kind::Task {
            total.pending += own;
            self.pending += own;
        }
        if self.pending >= CPU_CLOCK_EVERY || total.key.kind != Kind::Task {
            let cpu = clock(libc::CLOCK_THREAD_CPUTIME_ID);
            self.share_out(Some(cpu.saturating_sub(self.cpu_before)));
            self.cpu_before = cpu;
        }
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note);
        } else {
            self.dropped += 1;
        }
    }

    fn take(&mut self) -> Log {
        self.share_out(None);
        std::mem::replace(self, Log::new(self.is_worker, 0))
    }

    /// Shares out CPU time among the work since the last time. If it was not measured, it is taken
    /// to be the wall time.
    fn share_out(&mut self, cpu: Option<u64>) {
        let share = match cpu {
            Some(cpu) => (cpu as f64 / self.pending.max(1) as f64).min(1.0),
            None => 1.0,
        };
        for total in self.totals.iter_mut().filter(|total| total.pending > 0) {
            total.cpu += (std::mem::take(&mut total.pending) as f64 * share) as u64;
        }
        self.pending = 0;
    }
}

/// Makes sure that this thread has a log of the recording.
#[inline]
fn open_log(recording: u64) {
    if OF.get() != recording {
        open_new_log(recording);
    }
}

#[cold]
fn open_new_log(recording: u64) {
    let cpu = clock(libc::CLOCK_THREAD_CPUTIME_ID);
    let new = Arc::new(Mutex::new(Log::new(on_worker(), cpu)));
    let mut logs = lock(&LOGS);
    // The recording may just have ended.
    if RECORDING.load(Ordering::Relaxed) == recording {
        logs.push(new.clone());
    }
    drop(logs);
    OF.set(recording);
    OWN.set(Some(new));
}

fn with_log(act: impl FnOnce(&mut Log)) {
    OWN.with_borrow(|own| {
        if let Some(log) = own {
            act(&mut lock(log));
        }
    });
}

/// A clock, in nanoseconds.
fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`, which outlives the call.
    match unsafe { libc::clock_gettime(which, &mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}
