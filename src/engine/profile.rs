//! Notes of what ran when, while a profile is being recorded.
//!
//! Each thread has its own log, whose lock is contended only when the recording is read. Without a
//! recording, a task costs one relaxed load.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

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
}

/// Times are in nanoseconds since the first recording of the process.
#[derive(Clone, Copy)]
pub struct Note {
    pub kind: Kind,
    pub operator: &'static str,
    /// The path through the user's program that led to the call.
    pub site: u32,
    /// The first sample.
    pub sample: u32,
    pub samples: u32,
    pub begin: u64,
    pub end: u64,
    /// Bytes of results.
    pub bytes: u64,
    /// Time without that of other notes inside this one.
    own: u64,
}

/// Sums over the notes of one operator at one place of the program.
#[derive(Clone, Copy, Default)]
pub struct Total {
    pub calls: u64,
    pub samples: u64,
    pub bytes: u64,
    pub wall: u64,
    pub cpu: u64,
}

/// What one thread did.
pub struct Log {
    pub is_worker: bool,
    /// For each kind, operator and place in the program. Programs have few of them, and the latest
    /// is usually the right one, so that a search is quicker than a hash.
    pub totals: Vec<((Kind, &'static str, u32), Total)>,
    pub notes: Vec<Note>,
    /// Notes that are in the totals but were not kept.
    pub dropped: u64,
    /// Notes from here on are not in the totals yet: their CPU time is unknown.
    summed: usize,
    /// Time of these notes, and the thread's CPU time when the first of them began.
    unsummed: u64,
    cpu_before: u64,
}

/// The number of the current recording; 0 if there is none.
static RECORDING: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);
static LOGS: Mutex<Vec<Arc<Mutex<Log>>>> = Mutex::new(Vec::new());
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Notes that a thread keeps; more are only summed up.
const MOST_NOTES: usize = 1 << 19;

/// The CPU clock takes longer to read than the wall clock, so it is read once per this much work,
/// and shared out among the tasks by their wall time.
const CPU_CLOCK_EVERY: u64 = 250_000;

thread_local! {
    /// The recording that this thread has a log of, and the log.
    static OWN: RefCell<(u64, Option<Arc<Mutex<Log>>>)> = const { RefCell::new((0, None)) };
    /// Time of the notes inside the one that is being timed.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// Begins a recording, whose first log is that of this thread; returns `false` if there is one.
pub fn start() -> bool {
    let logs = lock(&LOGS);
    if RECORDING.load(Ordering::Relaxed) != 0 {
        return false;
    }
    ORIGIN.get_or_init(Instant::now);
    let recording = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    RECORDING.store(recording, Ordering::Relaxed);
    drop(logs);
    own_log(recording, |_| ());
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
        Log { totals: log.totals.clone(), ..Log::new(log.is_worker, 0) }
    };
    lock(&LOGS).iter().map(copied).collect()
}

/// Nanoseconds since the first recording of the process.
pub fn now() -> u64 {
    ORIGIN.get().map_or(0, |origin| origin.elapsed().as_nanos() as u64)
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

pub struct Timer {
    recording: u64,
    begin: u64,
    outer: u64,
}

impl Timer {
    fn begin(recording: u64) -> Timer {
        own_log(recording, |_| ());
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
        let end = now();
        let wall = end.saturating_sub(begin);
        let own = wall.saturating_sub(INSIDE.replace(outer.saturating_add(wall)));
        std::mem::forget(self);
        if RECORDING.load(Ordering::Relaxed) != recording {
            return;
        }
        let note = Note {
            kind,
            operator,
            site,
            sample: samples.start as u32,
            samples: samples.len() as u32,
            begin,
            end,
            bytes: bytes as u64,
            own,
        };
        own_log(recording, |log| lock(log).add(note));
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
            summed: 0,
            unsummed: 0,
            cpu_before,
        }
    }

    fn add(&mut self, note: Note) {
        self.notes.push(note);
        if note.kind == Kind::Task {
            self.unsummed += note.own;
        }
        // Waits are rare, and who follows the progress wants to see them.
        if self.unsummed >= CPU_CLOCK_EVERY || note.kind != Kind::Task {
            let cpu = cpu_time();
            self.sum_up(Some(cpu.saturating_sub(self.cpu_before)));
            self.cpu_before = cpu;
        }
    }

    fn take(&mut self) -> Log {
        self.sum_up(None);
        std::mem::replace(self, Log::new(self.is_worker, 0))
    }

    /// Adds the latest notes to the totals. Without a measured CPU time, it is taken to be their
    /// wall time.
    fn sum_up(&mut self, cpu: Option<u64>) {
        let share = match cpu {
            Some(cpu) => (cpu as f64 / self.unsummed.max(1) as f64).min(1.0),
            None => 1.0,
        };
        for note in &self.notes[self.summed..] {
            let key = (note.kind, note.operator, note.site);
            let known = self.totals.iter().rposition(|(found, _)| *found == key);
            let place = known.unwrap_or(self.totals.len());
            if known.is_none() {
                self.totals.push((key, Total::default()));
            }
            let total = &mut self.totals[place].1;
            // The task of its first sample stands for the call.
            total.calls += u64::from(note.sample == 0);
            total.samples += u64::from(note.samples);
            total.bytes += note.bytes;
            total.wall += note.own;
            if note.kind == Kind::Task {
                total.cpu += (note.own as f64 * share) as u64;
            }
        }
        if self.notes.len() > MOST_NOTES {
            self.dropped += (self.notes.len() - MOST_NOTES) as u64;
            self.notes.truncate(MOST_NOTES);
        }
        self.summed = self.notes.len();
        self.unsummed = 0;
    }
}

/// Calls `act` with this thread's log of the recording.
fn own_log(recording: u64, act: impl FnOnce(&Mutex<Log>)) {
    OWN.with_borrow_mut(|(of, log)| match log {
        Some(log) if *of == recording => act(log),
        _ => {
            let new = Arc::new(Mutex::new(Log::new(on_worker(), cpu_time())));
            act(&new);
            let mut logs = lock(&LOGS);
            // The recording may just have ended.
            if RECORDING.load(Ordering::Relaxed) == recording {
                logs.push(new.clone());
            }
            (*of, *log) = (recording, Some(new));
        }
    });
}

/// CPU time of this thread, in nanoseconds.
fn cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`, which outlives the call.
    match unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}
