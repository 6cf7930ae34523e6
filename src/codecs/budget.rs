//! Large decodes take turns: what all of them need beside their results stays within a budget.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use super::bounds::max_bytes;

/// Up to here nobody is asked.
const FREE: usize = 1 << 24;

/// Atomics rather than a lock: a fork may come while another thread holds it.
struct Budget {
    taken: AtomicUsize,
    /// The process whose threads have taken it; a forked child has none of them.
    process: AtomicU32,
}

static BUDGET: Budget = Budget { taken: AtomicUsize::new(0), process: AtomicU32::new(0) };

/// A part of the budget, given back when it is dropped.
pub struct Share<'a> {
    budget: &'a Budget,
    bytes: usize,
    process: u32,
}

/// Waits until so many bytes are left of the budget, or all of it is: there is always one that may
/// go on. Nobody who has a share may ask for another.
pub fn share(bytes: usize) -> Option<Share<'static>> {
    (bytes > FREE).then(|| BUDGET.share(bytes, max_bytes() / 4))
}

impl Budget {
    fn share(&self, bytes: usize, all: usize) -> Share<'_> {
        let process = std::process::id();
        if self.process.swap(process, Ordering::AcqRel) != process {
            self.taken.store(0, Ordering::Release);
        }
        let take = |taken: usize| {
            let sum = taken.checked_add(bytes)?;
            (taken == 0 || sum <= all).then_some(sum)
        };
        while self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_err() {
            // Large decodes take tens of milliseconds.
            std::thread::sleep(Duration::from_millis(1));
        }
        Share { budget: self, bytes, process }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.budget.taken.fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_within_the_budget_and_all_get_one() {
        let budget = Budget { taken: AtomicUsize::new(0), process: AtomicU32::new(0) };
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for bytes in [10, 60, 70, 10, 60, 70, 150] {
                let (budget, most) = (&budget, &most);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let share = budget.share(bytes, 100);
                        most.fetch_max(budget.taken.load(Ordering::Acquire), Ordering::AcqRel);
                        std::thread::yield_now();
                        drop(share);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 150, "one may exceed it, alone");
        assert_eq!(budget.taken.into_inner(), 0);
    }

    #[test]
    fn what_a_forked_parent_took_does_not_count() {
        let parent = std::process::id().wrapping_add(1);
        let budget = Budget { taken: AtomicUsize::new(1000), process: AtomicU32::new(parent) };
        drop(budget.share(10, 100));
        assert_eq!(budget.taken.into_inner(), 0);
    }
}
