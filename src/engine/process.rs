//! The engine and its process: `fork`, and the end.
//!
//! A forked child has one thread, the one that forked. Locks that others held stay locked in it
//! for ever, and work that others did stays undone. So, before a fork, workers are stopped between
//! tasks (patiently, and with nothing locked), and in the moment of the fork the forking thread
//! holds all locks of the pools itself.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::pool;

/// Counts the forks between the first process and this one. Work belongs to the epoch it was
/// submitted in: unfinished work of an earlier one is lost.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// How long a fork waits for tasks that are running. A kernel that takes longer holds no lock of
/// ours, so that going on without it is safe but for the moment in which it ends.
const QUIESCE: Duration = Duration::from_secs(1);

pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Some time before a fork, on the thread that will fork.
pub fn fork_prepare() {
    pool::pause_all(QUIESCE);
}

/// Some time after a fork, in the parent.
pub fn fork_parent() {
    pool::resume_all();
}

/// Sees to the moment of every fork from now on.
pub fn watch_forks() {
    extern "C" fn before() {
        pool::lock_all();
    }
    extern "C" fn in_parent() {
        pool::unlock_all();
    }
    extern "C" fn in_child() {
        EPOCH.fetch_add(1, Ordering::Relaxed);
        pool::reset_all();
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Ends all work: what runs is waited for, what has not begun fails.
pub fn shut_down(at_most: Duration) {
    pool::stop_all(at_most);
}
