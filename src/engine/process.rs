//! The engine and its process: `fork`, and the end.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::pool;

/// Counts the forks between the first process and this one. Work belongs to the epoch it was
/// submitted in: a child has none of its parent's threads, so unfinished work is lost to it.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// How long `fork` waits for tasks that are running. A kernel that takes longer holds no lock of
/// ours, so that going on without it is safe but for the moment in which it ends.
const QUIESCE: Duration = Duration::from_secs(1);

pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Before `fork`: no worker may be in the middle of anything, or a lock that it holds would stay
/// locked in the child for ever.
pub fn fork_prepare() {
    pool::pause_all(QUIESCE);
}

/// After `fork`, in the parent.
pub fn fork_parent() {
    pool::resume_all();
}

/// After `fork`, in the child: a new epoch, with threads of its own when they are needed.
pub fn fork_child() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    pool::reset_all();
}

/// Ends all work: what runs is waited for, what has not begun fails.
pub fn shut_down(at_most: Duration) {
    pool::stop_all(at_most);
}
