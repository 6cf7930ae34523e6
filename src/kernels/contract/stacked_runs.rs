//! Counts runs on stacked samples, for tests. If a stacked run fails, the engine falls back to
//! running the samples one by one, which would hide a kernel that wrongly claims to support stacks.

#[cfg(feature = "probes")]
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(feature = "probes")]
static BEGUN: AtomicUsize = AtomicUsize::new(0);
#[cfg(feature = "probes")]
static FINISHED: AtomicUsize = AtomicUsize::new(0);

/// Number of runs started, and number of runs that produced a result.
#[cfg(feature = "probes")]
pub fn counts() -> (usize, usize) {
    (BEGUN.load(Relaxed), FINISHED.load(Relaxed))
}

/// Called before a run.
#[inline(always)]
pub fn begin() {
    #[cfg(feature = "probes")]
    BEGUN.fetch_add(1, Relaxed);
}

/// Called when the result is available.
#[inline(always)]
pub fn finish() {
    #[cfg(feature = "probes")]
    FINISHED.fetch_add(1, Relaxed);
}
