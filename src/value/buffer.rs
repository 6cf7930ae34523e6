//! Memory that samples share: a block of ours, or somebody else's kept alive by its owner.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::fault::Cause;
use super::memory::Block;

/// Bytes that live as long as any sample needs them. Written once, before anybody reads.
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    origin: Origin,
    /// Views of it that others hold and may write through.
    loans: AtomicUsize,
    /// Tasks that have yet to read it: the process's epoch above, their number below.
    reads: AtomicU64,
}

enum Origin {
    Ours(ManuallyDrop<Block>),
    Foreign {
        /// Dropping it releases the memory.
        _owner: Box<dyn Any + Send + Sync>,
        writable: bool,
        /// Somebody outside may write to it while we read.
        mutable: bool,
    },
}

// SAFETY: the bytes are only written through `ptr` before the buffer is shared (see `Sample`).
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub fn new(len: usize) -> Result<Arc<Buffer>, Cause> {
        let block = Block::new(len).ok_or(Cause::Memory { bytes: len })?;
        let ptr = NonNull::new(block.as_ptr()).ok_or(Cause::Memory { bytes: len })?;
        Ok(Arc::new(Buffer::of(ptr, len, Origin::Ours(ManuallyDrop::new(block)))))
    }

    /// Wraps memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `ptr` must be readable for `len` bytes for as long as `owner` lives.
    pub unsafe fn foreign(
        ptr: NonNull<u8>,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
        writable: bool,
        mutable: bool,
    ) -> Arc<Buffer> {
        Arc::new(Buffer::of(ptr, len, Origin::Foreign { _owner: owner, writable, mutable }))
    }

    fn of(ptr: NonNull<u8>, len: usize, origin: Origin) -> Buffer {
        Buffer { ptr, len, origin, loans: AtomicUsize::new(0), reads: AtomicU64::new(0) }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the memory is somebody else's.
    pub fn is_foreign(&self) -> bool {
        matches!(self.origin, Origin::Foreign { .. })
    }

    /// Whether an export may hand out a writable view.
    pub fn writable(&self) -> bool {
        match &self.origin {
            Origin::Ours(_) => true,
            Origin::Foreign { writable, .. } => *writable,
        }
    }

    /// Whether a caller may change these bytes behind our back.
    pub fn mutable_outside(&self) -> bool {
        self.owner_may_write() || self.is_lent()
    }

    /// Whether the memory is that of an owner who may write to it.
    pub fn owner_may_write(&self) -> bool {
        matches!(self.origin, Origin::Foreign { mutable: true, .. })
    }

    /// Whether somebody holds a view of it to write through.
    pub fn is_lent(&self) -> bool {
        self.loans.load(Ordering::SeqCst) > 0
    }

    /// Announces so many tasks that will read the bytes. Each needs one [`Buffer::end_read`].
    ///
    /// A reader announces itself before it asks whether the memory is lent, and a lender lends
    /// before it asks whether the memory is read, so that one of them sees the other.
    pub fn begin_reads(&self, count: u32, epoch: u32) {
        self.count_reads(epoch, |reads| reads.saturating_add(count));
    }

    /// A task has read what it wanted.
    pub fn end_read(&self, epoch: u32) {
        self.count_reads(epoch, |reads| reads.saturating_sub(1));
    }

    /// Whether a task has yet to read the bytes. Tasks of an earlier epoch were lost in a fork.
    pub fn is_read(&self, epoch: u32) -> bool {
        reads_of(self.reads.load(Ordering::SeqCst), epoch) > 0
    }

    fn count_reads(&self, epoch: u32, change: impl Fn(u32) -> u32) {
        let counted =
            |reads| Some(u64::from(epoch) << 32 | u64::from(change(reads_of(reads, epoch))));
        let _ = self.reads.fetch_update(Ordering::SeqCst, Ordering::Relaxed, counted);
    }
}

/// How many reads were announced in this epoch.
fn reads_of(reads: u64, epoch: u32) -> u32 {
    if reads >> 32 == u64::from(epoch) { reads as u32 } else { 0 }
}

/// All loans there are. Most programs have none most of the time, and need not look for them.
static LOANS: AtomicUsize = AtomicUsize::new(0);

/// Whether any memory is lent.
pub fn is_anything_lent() -> bool {
    LOANS.load(Ordering::Relaxed) > 0
}

/// As long as this lives, somebody outside may write to the buffer.
pub struct Loan(Arc<Buffer>);

impl Loan {
    pub(super) fn new(buffer: &Arc<Buffer>) -> Loan {
        LOANS.fetch_add(1, Ordering::Relaxed);
        buffer.loans.fetch_add(1, Ordering::SeqCst);
        Loan(buffer.clone())
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.loans.fetch_sub(1, Ordering::SeqCst);
        LOANS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Origin::Ours(block) = &mut self.origin {
            // SAFETY: `drop` runs once, and nothing uses the block after it.
            unsafe { ManuallyDrop::take(block) }.recycle();
        }
    }
}
