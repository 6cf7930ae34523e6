//! Memory that samples share: a block of ours, or somebody else's kept alive by its owner.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use super::fault::Cause;
use super::memory::Block;

/// Bytes that live as long as any sample needs them. Written once, before anybody reads.
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    origin: Origin,
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
        Ok(Arc::new(Buffer { ptr, len, origin: Origin::Ours(ManuallyDrop::new(block)) }))
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
        Arc::new(Buffer { ptr, len, origin: Origin::Foreign { _owner: owner, writable, mutable } })
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
        matches!(self.origin, Origin::Foreign { mutable: true, .. })
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
