//! Memory that samples share: our own block, or foreign memory that its owner keeps alive.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::fault::Cause;
use super::memory::Block;

/// Bytes that live as long as any sample uses them. Written once, before anybody reads them.
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    origin: Origin,
    /// Number of views that others hold and may write through.
    loans: AtomicUsize,
    /// The time of the last loan, see [`loan_time`].
    last_loan: AtomicU64,
    /// Tasks that still have to read it: the epoch in the upper half, their number in the lower.
    reads: AtomicU64,
}

enum Origin {
    Ours(ManuallyDrop<Block>),
    Foreign {
        /// Dropping it releases the memory.
        _owner: Box<dyn Any + Send + Sync>,
        writable: bool,
        /// Code outside penstock may write to it while we read.
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
        Buffer {
            ptr,
            len,
            origin,
            loans: AtomicUsize::new(0),
            last_loan: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
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

    /// Whether the memory belongs to somebody else.
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

    /// Whether code outside penstock may modify these bytes.
    pub fn mutable_outside(&self) -> bool {
        self.owner_may_write() || self.is_lent()
    }

    /// Whether the memory has a foreign owner, who may write to it.
    pub fn owner_may_write(&self) -> bool {
        matches!(self.origin, Origin::Foreign { mutable: true, .. })
    }

    /// Whether somebody holds a writable view of it.
    pub fn is_lent(&self) -> bool {
        self.loans.load(Ordering::SeqCst) > 0
    }

    /// Whether somebody has held a writable view of it since that [`loan_time`].
    pub fn was_lent_since(&self, time: u64) -> bool {
        self.is_lent() || self.last_loan.load(Ordering::SeqCst) > time
    }

    /// Registers `count` tasks that will read the bytes. Each needs one [`Buffer::end_read`].
    ///
    /// A reader registers before it checks whether the memory is lent, and a lender lends before it
    /// checks whether the memory is read, so at least one of them sees the other.
    pub fn begin_reads(&self, count: u32, epoch: u32) {
        self.count_reads(epoch, |reads| reads.saturating_add(count));
    }

    /// Unregisters a task that is done reading.
    pub fn end_read(&self, epoch: u32) {
        self.count_reads(epoch, |reads| reads.saturating_sub(1));
    }

    /// Whether a task still has to read the bytes. Tasks of an earlier epoch were lost in a fork.
    pub fn is_read(&self, epoch: u32) -> bool {
        reads_of(self.reads.load(Ordering::SeqCst), epoch) > 0
    }

    fn count_reads(&self, epoch: u32, change: impl Fn(u32) -> u32) {
        let counted =
            |reads| Some(u64::from(epoch) << 32 | u64::from(change(reads_of(reads, epoch))));
        let _ = self.reads.fetch_update(Ordering::SeqCst, Ordering::Relaxed, counted);
    }
}

/// How many reads were registered in this epoch.
fn reads_of(reads: u64, epoch: u32) -> u32 {
    if reads >> 32 == u64::from(epoch) { reads as u32 } else { 0 }
}

/// Number of all loans. It is usually zero, so most calls need not look for lent buffers.
static LOANS: AtomicUsize = AtomicUsize::new(0);

/// Whether any memory is lent.
pub fn is_anything_lent() -> bool {
    LOANS.load(Ordering::Relaxed) > 0
}

/// Number of loans that there have been.
static LOAN_TIME: AtomicU64 = AtomicU64::new(0);

/// The current time, in loans.
pub fn loan_time() -> u64 {
    LOAN_TIME.load(Ordering::SeqCst)
}

/// While this exists, code outside penstock may write to the buffer.
pub struct Loan(Arc<Buffer>);

impl Loan {
    pub(super) fn new(buffer: &Arc<Buffer>) -> Loan {
        LOANS.fetch_add(1, Ordering::Relaxed);
        buffer.loans.fetch_add(1, Ordering::SeqCst);
        buffer.last_loan.fetch_max(LOAN_TIME.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
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
