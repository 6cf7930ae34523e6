//! Process-level events: `fork` and shutdown.
//!
//! A forked child has a single thread, the one that forked. Locks held by other threads stay locked
//! in the child forever, and their work is never finished. So before a fork, workers are paused
//! between tasks (with a timeout, and without holding locks), and during the fork itself the
//! forking thread holds every lock of the pools.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::pool;

/// Number of forks between the first process and this one. Work belongs to the epoch it was
/// submitted in; unfinished work of earlier epochs is lost.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// How long a fork waits for running tasks. A kernel that takes longer holds none of our locks, so
/// forking while it runs is safe, except in the moment when it finishes.
const QUIESCE: Duration = Duration::from_secs(1);

pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Runs before a fork, on the thread that will fork.
pub fn fork_prepare() {
    pool::pause_all(QUIESCE);
}

/// Runs after a fork, in the parent.
pub fn fork_parent() {
    pool::resume_all();
}

/// Registers the handlers that run at every fork from now on.
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
        // SAFETY: the handlers are part of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Shuts the engine down: waits for running tasks, fails those that have not started.
pub fn shut_down(at_most: Duration) {
    pool::stop_all(at_most);
}
