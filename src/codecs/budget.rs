//! Large decodes take turns: together, their scratch memory stays within a budget.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::bounds::max_bytes;

/// Decodes that need less than this are not counted.
const FREE: usize = 1 << 24;

/// The process id in the upper half, and the amount taken by its threads, in KiB, in the lower
/// half. An atomic instead of a mutex, since the process may fork while another thread holds it;
/// what was taken in the parent doesn't count in the child.
struct Budget(AtomicU64);

static BUDGET: Budget = Budget(AtomicU64::new(0));

/// A share of the budget, returned when dropped.
pub struct Share<'a> {
    budget: &'a Budget,
    size: u64,
    process: u32,
}

/// Waits until this many bytes of the budget are left, or all of it is, so that one decode can
/// always proceed. A thread that has a share must not request another.
pub fn share(bytes: usize) -> Option<Share<'static>> {
    let size = |bytes: usize| (bytes >> 10).min(1 << 30) as u64;
    (bytes > FREE).then(|| BUDGET.share(size(bytes), size(max_bytes() / 4)))
}

fn pack(process: u32, taken: u64) -> u64 {
    u64::from(process) << 32 | taken
}

/// The amount taken by threads of this process.
fn taken(state: u64, process: u32) -> u64 {
    if state >> 32 == u64::from(process) { state & u64::from(u32::MAX) } else { 0 }
}

impl Budget {
    fn share(&self, size: u64, all: u64) -> Share<'_> {
        let process = std::process::id();
        let take = |state: u64| {
            let taken = taken(state, process);
            (taken == 0 || taken + size <= all).then(|| pack(process, taken + size))
        };
        while self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_err() {
            // Large decodes take tens of milliseconds.
            std::thread::sleep(Duration::from_millis(1));
        }
        Share { budget: self, size, process }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        // In a forked child, the share belongs to the parent.
        if self.process == std::process::id() {
            self.budget.0.fetch_sub(self.size, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(budget: &Budget) -> u64 {
        taken(budget.0.load(Ordering::Acquire), std::process::id())
    }

    #[test]
    fn shares_stay_within_the_budget_and_all_get_one() {
        let budget = Budget(AtomicU64::new(0));
        let most = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for size in [10, 60, 70, 10, 60, 70, 150] {
                let (budget, most) = (&budget, &most);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let share = budget.share(size, 100);
                        most.fetch_max(now(budget), Ordering::AcqRel);
                        std::thread::yield_now();
                        drop(share);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 150, "one may exceed it, alone");
        assert_eq!(now(&budget), 0);
    }

    #[test]
    fn what_a_forked_parent_took_does_not_count() {
        let parent = std::process::id().wrapping_add(1);
        let budget = Budget(AtomicU64::new(pack(parent, 1000)));
        let share = budget.share(10, 100);
        assert_eq!(now(&budget), 10);
        drop(share);
        assert_eq!(now(&budget), 0);
    }
}
