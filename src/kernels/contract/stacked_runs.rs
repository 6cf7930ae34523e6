//! Counts runs on stacked samples, for the tests. A stack that can't be run is no error: the engine
//! takes its samples one by one instead, which would hide a kernel that claims to work on stacks and
//! doesn't.

#[cfg(feature = "probes")]
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(feature = "probes")]
static BEGUN: AtomicUsize = AtomicUsize::new(0);
#[cfg(feature = "probes")]
static FINISHED: AtomicUsize = AtomicUsize::new(0);

/// How many runs were begun, and how many of them made a result.
#[cfg(feature = "probes")]
pub fn counts() -> (usize, usize) {
    (BEGUN.load(Relaxed), FINISHED.load(Relaxed))
}

/// To be called before a run.
#[inline(always)]
pub fn begin() {
    #[cfg(feature = "probes")]
    BEGUN.fetch_add(1, Relaxed);
}

/// To be called once the result is there.
#[inline(always)]
pub fn finish() {
    #[cfg(feature = "probes")]
    FINISHED.fetch_add(1, Relaxed);
}
