//! Blocks of memory, reused. In steady state a loop allocates nothing.
//!
//! A block is zeroed when the system first gives it and never again, so its bytes are always
//! initialised, yet reuse costs no fill.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Vector loads and stores of any width may use a block's start.
const ALIGN: usize = 64;
/// Below this the system's allocator is as fast and wastes less.
const SMALLEST_CACHED: usize = 4096;
/// Blocks kept for reuse, at most.
const CACHE_LIMIT: usize = 512 << 20;
const CLASSES: usize = 4 * (usize::BITS as usize - 12);

/// Memory of at least the asked length, owned.
pub struct Block {
    ptr: NonNull<u8>,
    capacity: usize,
}

// SAFETY: a block is owned memory; sharing it is governed by whoever holds it.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// Free blocks by class, of `limit` bytes at most.
struct Cache {
    free: [Mutex<Vec<Block>>; CLASSES],
    bytes: AtomicUsize,
    limit: usize,
}

static CACHE: Cache = Cache::new(CACHE_LIMIT);

impl Cache {
    const fn new(limit: usize) -> Cache {
        Cache {
            free: [const { Mutex::new(Vec::new()) }; CLASSES],
            bytes: AtomicUsize::new(0),
            limit,
        }
    }

    fn take(&self, class: usize) -> Option<Block> {
        let block = self.free.get(class)?.lock().ok()?.pop()?;
        self.bytes.fetch_sub(block.capacity, Ordering::Relaxed);
        Some(block)
    }

    /// Keeps a block. Where there is no room, blocks of other classes go: this one was used last.
    fn put(&self, block: Block) {
        let Some((class, _)) = class_of(block.capacity) else { return };
        if block.capacity > self.limit {
            return;
        }
        self.bytes.fetch_add(block.capacity, Ordering::Relaxed);
        while self.bytes.load(Ordering::Relaxed) > self.limit {
            // The largest first, so that there are few to let go.
            if !(0..CLASSES).rev().any(|other| other != class && self.take(other).is_some()) {
                self.bytes.fetch_sub(block.capacity, Ordering::Relaxed);
                return;
            }
        }
        if let Ok(mut free) = self.free[class].lock() {
            free.push(block);
        }
    }
}

/// Four size classes per power of two: at most a quarter of a block is unused.
fn class_of(len: usize) -> Option<(usize, usize)> {
    let power = usize::BITS - 1 - len.max(SMALLEST_CACHED).leading_zeros();
    let step = 1_usize << (power - 2);
    let capacity = len.max(SMALLEST_CACHED).checked_add(step - 1)? / step * step;
    let power = usize::BITS - 1 - capacity.leading_zeros();
    let quarter = (capacity >> (power - 2)) & 3;
    Some((4 * (power as usize - 12) + quarter, capacity))
}

impl Block {
    /// `None` when the system has no such memory.
    pub fn new(len: usize) -> Option<Block> {
        if len < SMALLEST_CACHED {
            return Block::fresh(len.max(1).next_multiple_of(ALIGN));
        }
        let (class, capacity) = class_of(len)?;
        CACHE.take(class).or_else(|| Block::fresh(capacity))
    }

    fn fresh(capacity: usize) -> Option<Block> {
        let layout = Layout::from_size_align(capacity, ALIGN).ok()?;
        // SAFETY: every caller asks for a capacity above zero.
        let ptr = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Block { ptr, capacity })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Gives the block back, for reuse where it is worth keeping.
    pub fn recycle(self) {
        if self.capacity >= SMALLEST_CACHED {
            CACHE.put(self);
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `fresh` allocated this block with exactly this size and alignment.
        unsafe {
            let layout = Layout::from_size_align_unchecked(self.capacity, ALIGN);
            dealloc(self.ptr.as_ptr(), layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_at_least_the_length_and_at_most_a_quarter_more() {
        for len in (4096..70_000).chain([1 << 20, (1 << 20) + 1, (5 << 30) + 7]) {
            let (class, capacity) = class_of(len).unwrap();
            assert!(capacity >= len && capacity - len <= len / 4, "{len} -> {capacity}");
            assert_eq!(class_of(capacity), Some((class, capacity)), "{len}");
            assert!(class < CLASSES);
        }
    }

    #[test]
    fn a_recycled_block_is_used_again() {
        // An odd size, so that other tests don't take it first.
        let block = Block::new(7_340_033).unwrap();
        let at = block.as_ptr();
        block.recycle();
        assert_eq!(Block::new(7_340_033).unwrap().as_ptr(), at);
    }

    #[test]
    fn a_full_cache_lets_go_of_other_sizes() {
        let cache = Cache::new(3 << 20);
        let class = |len| class_of(len).unwrap().0;
        (0..3).for_each(|_| cache.put(Block::fresh(1 << 20).unwrap()));
        cache.put(Block::fresh(2 << 20).unwrap());
        cache.put(Block::fresh(4 << 20).unwrap());
        assert!(cache.take(class(4 << 20)).is_none());
        assert!(cache.take(class(2 << 20)).is_some());
        assert!(cache.take(class(1 << 20)).is_some());
        assert!(cache.take(class(1 << 20)).is_none());
        assert_eq!(cache.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Block::new(usize::MAX - 5).is_none());
        assert!(Block::new(isize::MAX as usize).is_none());
    }
}
