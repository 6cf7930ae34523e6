//! Pooled memory blocks: in steady state a loop allocates nothing.
//!
//! A block is zeroed when it is first allocated and never again, so its bytes are always
//! initialised, but reuse does not pay for filling it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of a block's start, enough for vector loads and stores of any width.
const ALIGN: usize = 64;
/// Smaller blocks are left to the system's allocator, which is as fast and wastes less.
const SMALLEST_CACHED: usize = 4096;
/// Blocks of at least this size use huge pages, which take one page fault instead of 512 and hardly
/// ever miss the TLB.
const SMALLEST_MAPPED: usize = 2 * LARGE_PAGE;
const LARGE_PAGE: usize = 2 << 20;
/// Maximum number of bytes kept for reuse.
const CACHE_LIMIT: usize = 1 << 30;
const CLASSES: usize = 4 * (usize::BITS as usize - 12);

/// Owned memory of at least the requested length.
pub struct Block {
    /// The address that was allocated.
    base: NonNull<u8>,
    /// The first aligned byte after it.
    ptr: NonNull<u8>,
    capacity: usize,
}

// SAFETY: a block is owned memory; its holder controls how it is shared.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

struct Cache {
    free: [Mutex<Vec<Block>>; CLASSES],
    bytes: AtomicUsize,
    /// The size class to evict from next.
    next_evicted: AtomicUsize,
}

static CACHE: Cache = Cache {
    free: [const { Mutex::new(Vec::new()) }; CLASSES],
    bytes: AtomicUsize::new(0),
    next_evicted: AtomicUsize::new(0),
};

/// All locks of the cache, held during a fork.
pub type CacheLocks = Vec<MutexGuard<'static, Vec<Block>>>;

pub fn lock_cache() -> CacheLocks {
    CACHE.free.iter().map(|free| free.lock().unwrap_or_else(PoisonError::into_inner)).collect()
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
    /// `None` when out of memory.
    pub fn new(len: usize) -> Option<Block> {
        if len < SMALLEST_CACHED {
            return Block::fresh(len.max(1).next_multiple_of(ALIGN));
        }
        let (class, capacity) = class_of(len)?;
        let reused = CACHE.free.get(class)?.lock().ok()?.pop();
        if let Some(block) = reused {
            CACHE.bytes.fetch_sub(block.capacity, Ordering::Relaxed);
            return Some(block);
        }
        Block::fresh(capacity)
    }

    /// Zeroed memory from the system.
    fn fresh(capacity: usize) -> Option<Block> {
        let layout = Block::layout(capacity)?;
        let base = NonNull::new(match Block::is_mapped(capacity) {
            true => map(layout.size()),
            // SAFETY: every caller asks for a capacity above zero.
            false => unsafe { alloc_zeroed(layout) },
        })?;
        let align = if Block::is_mapped(capacity) { LARGE_PAGE } else { ALIGN };
        // SAFETY: the layout has `align` bytes to spare, enough to align the start.
        let ptr = unsafe { base.add(base.as_ptr().align_offset(align)) };
        if Block::is_mapped(capacity) {
            use_large_pages(ptr, capacity);
        }
        Some(Block { base, ptr, capacity })
    }

    fn is_mapped(capacity: usize) -> bool {
        capacity >= SMALLEST_MAPPED
    }

    /// Without a larger alignment: the allocator gets zeroed memory from the system for free only
    /// with the default one, and would otherwise write the zeros itself.
    fn layout(capacity: usize) -> Option<Layout> {
        let spare = if Block::is_mapped(capacity) { LARGE_PAGE } else { ALIGN };
        Layout::from_size_align(capacity.checked_add(spare)?, 16).ok()
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Returns the block to the cache, or frees it if it is not worth keeping.
    pub fn recycle(self) {
        if !(SMALLEST_CACHED..=CACHE_LIMIT).contains(&self.capacity) {
            return;
        }
        let Some((class, _)) = class_of(self.capacity) else { return };
        let kept = CACHE.bytes.fetch_add(self.capacity, Ordering::Relaxed) + self.capacity;
        if (kept <= CACHE_LIMIT || CACHE.evict(kept - CACHE_LIMIT, class))
            && let Ok(mut free) = CACHE.free[class].lock()
        {
            free.push(self);
            return;
        }
        CACHE.bytes.fetch_sub(self.capacity, Ordering::Relaxed);
    }
}

impl Cache {
    /// Frees blocks of other sizes: a program that has moved on to new sizes rarely needs the old
    /// ones again. Returns whether that freed enough.
    fn evict(&self, mut bytes: usize, keep: usize) -> bool {
        for _ in 0..CLASSES {
            let class = self.next_evicted.fetch_add(1, Ordering::Relaxed) % CLASSES;
            while class != keep && bytes > 0 {
                let Some(block) = self.free[class].lock().ok().and_then(|mut free| free.pop())
                else {
                    break;
                };
                self.bytes.fetch_sub(block.capacity, Ordering::Relaxed);
                bytes = bytes.saturating_sub(block.capacity);
            }
        }
        bytes == 0
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(layout) = Block::layout(self.capacity) else { return };
        // SAFETY: `fresh` got this block in the same way, with the same layout.
        unsafe {
            match Block::is_mapped(self.capacity) {
                true => drop(libc::munmap(self.base.as_ptr().cast(), layout.size())),
                false => dealloc(self.base.as_ptr(), layout),
            }
        }
    }
}

/// A new anonymous mapping, zeroed on first use; null when out of memory.
fn map(bytes: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping touches nothing that exists.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if start == libc::MAP_FAILED { std::ptr::null_mut() } else { start.cast() }
}

/// Requests huge pages. A system without them uses small ones.
fn use_large_pages(start: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: this changes how the block is mapped, not its contents.
    unsafe {
        libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
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
    fn a_recycled_block_is_reused() {
        // An unusual size, so that other tests don't take it first.
        let block = Block::new(7_340_033).unwrap();
        let at = block.as_ptr();
        block.recycle();
        assert_eq!(Block::new(7_340_033).unwrap().as_ptr(), at);

        // A cache that is full of another size evicts it.
        let others: Vec<Block> = (0..9).map(|_| Block::new(60 << 20).unwrap()).collect();
        others.into_iter().for_each(Block::recycle);
        let block = Block::new(7_340_033).unwrap();
        let at = block.as_ptr();
        block.recycle();
        assert_eq!(Block::new(7_340_033).unwrap().as_ptr(), at);
        assert!(CACHE.bytes.load(Ordering::Relaxed) <= CACHE_LIMIT);
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Block::new(usize::MAX - 5).is_none());
        assert!(Block::new(isize::MAX as usize).is_none());
    }
}
