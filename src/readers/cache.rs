//! Decoded parts of files, kept for the samples that come from the same part.

use std::collections::{BTreeMap, HashMap};
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::ranges::broken;
use super::source::Result;
use crate::value::{Cause, Problem};

/// What a cache keeps, in bytes, beside the part that is used last.
const LIMIT: usize = 256 << 20;

/// Parts by number, the least recently used of which are dropped. Threads that need the same part
/// wait for the one that decodes it.
pub struct Cache<T> {
    state: Mutex<State<T>>,
    done: Condvar,
    limit: usize,
}

struct State<T> {
    entries: HashMap<u64, Entry<T>>,
    /// Entries by the time of their last use.
    uses: BTreeMap<u64, u64>,
    time: u64,
    bytes: usize,
}

enum Entry<T> {
    /// A thread of this process is at it. (In a fork's child, no thread is.)
    Busy {
        process: u32,
    },
    Ready {
        part: Arc<T>,
        bytes: usize,
        used: u64,
    },
    /// A damaged part stays damaged.
    Damaged {
        problem: Problem,
        used: u64,
    },
}

/// What a failed part counts for.
const DAMAGED_BYTES: usize = 1 << 10;

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache::new(LIMIT)
    }
}

impl<T> Cache<T> {
    pub fn new(limit: usize) -> Cache<T> {
        let state = State { entries: HashMap::new(), uses: BTreeMap::new(), time: 0, bytes: 0 };
        Cache { state: Mutex::new(state), done: Condvar::new(), limit }
    }

    /// The part with this number. `make` decodes it, and tells how many bytes it takes.
    pub fn get(&self, number: u64, make: impl FnOnce() -> Result<(T, usize)>) -> Result<Arc<T>> {
        let mut state = self.lock();
        loop {
            match state.find(number) {
                Some(Entry::Ready { part, .. }) => return Ok(part.clone()),
                Some(Entry::Damaged { problem, .. }) => return Err(broken(problem.clone())),
                Some(Entry::Busy { process }) if *process == process::id() => {
                    state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                Some(Entry::Busy { .. }) | None => break,
            }
        }
        state.entries.insert(number, Entry::Busy { process: process::id() });
        drop(state);
        // Others must not wait for ever if decoding panics.
        let unfinished = Unfinished { cache: self, number };
        let made = make();
        let mut state = self.lock();
        let result = match made {
            Ok((part, bytes)) => {
                let part = Arc::new(part);
                let used = state.tick(number);
                let kept = Entry::Ready { part: part.clone(), bytes, used };
                state.entries.insert(number, kept);
                state.bytes = state.bytes.saturating_add(bytes);
                Ok(part)
            }
            Err(Cause::File { problem }) => {
                let used = state.tick(number);
                let kept = Entry::Damaged { problem: problem.clone(), used };
                state.entries.insert(number, kept);
                state.bytes = state.bytes.saturating_add(DAMAGED_BYTES);
                Err(Cause::File { problem })
            }
            Err(other) => {
                state.entries.remove(&number);
                Err(other)
            }
        };
        state.shrink(self.limit);
        drop(state);
        std::mem::forget(unfinished);
        self.done.notify_all();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn tick(&mut self, number: u64) -> u64 {
        self.time += 1;
        self.uses.insert(self.time, number);
        self.time
    }

    /// An entry, which counts as used now.
    fn find(&mut self, number: u64) -> Option<&Entry<T>> {
        let now = self.time + 1;
        let entry = self.entries.get_mut(&number)?;
        if let Entry::Ready { used, .. } | Entry::Damaged { used, .. } = entry {
            self.uses.remove(used);
            self.uses.insert(now, number);
            *used = now;
            self.time = now;
        }
        Some(entry)
    }

    /// Drops what was not used for the longest time, but never what was used last.
    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit && self.uses.len() > 1 {
            let Some((_, number)) = self.uses.pop_first() else { return };
            let bytes = match self.entries.remove(&number) {
                Some(Entry::Ready { bytes, .. }) => bytes,
                _ => DAMAGED_BYTES,
            };
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}

struct Unfinished<'a, T> {
    cache: &'a Cache<T>,
    number: u64,
}

impl<T> Drop for Unfinished<'_, T> {
    fn drop(&mut self) {
        self.cache.lock().entries.remove(&self.number);
        self.cache.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::readers::read::ReadFault;

    #[test]
    fn the_least_recently_used_part_is_dropped() {
        let cache = Cache::new(100);
        let made = AtomicUsize::new(0);
        let get = |number: u64| {
            let make = || {
                made.fetch_add(1, Ordering::Relaxed);
                Ok((number, 40))
            };
            assert_eq!(*cache.get(number, make).unwrap(), number);
            made.load(Ordering::Relaxed)
        };
        assert_eq!([get(1), get(2), get(1), get(3), get(1), get(2)], [1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn a_part_that_is_too_large_is_kept_until_the_next_one() {
        let cache = Cache::new(10);
        assert_eq!(*cache.get(1, || Ok((1, 1000))).unwrap(), 1);
        assert_eq!(*cache.get(1, || panic!("it is there")).unwrap(), 1);
        assert_eq!(*cache.get(2, || Ok((2, 1))).unwrap(), 2);
        assert_eq!(*cache.get(1, || Ok((3, 1))).unwrap(), 3);
    }

    #[test]
    fn damage_is_remembered_and_lack_of_memory_is_not() {
        let cache = Cache::<u8>::new(100);
        assert!(cache.get(1, || Err(broken(ReadFault::Folder))).is_err());
        assert!(cache.get(1, || panic!("known to be damaged")).is_err());
        assert!(cache.get(2, || Err(Cause::Memory { bytes: 1 })).is_err());
        assert_eq!(*cache.get(2, || Ok((5, 1))).unwrap(), 5);
    }

    #[test]
    fn threads_share_one_decoding_and_survive_a_panic() {
        let cache = Cache::default();
        let made = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let make = || {
                        thread::sleep(std::time::Duration::from_millis(20));
                        made.fetch_add(1, Ordering::Relaxed);
                        Ok((7, 1))
                    };
                    assert_eq!(*cache.get(1, make).unwrap(), 7);
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        let fails = || cache.get(2, || -> Result<(i32, usize)> { panic!("on purpose") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(fails)).is_err());
        assert_eq!(*cache.get(2, || Ok((8, 1))).unwrap(), 8);
    }
}
