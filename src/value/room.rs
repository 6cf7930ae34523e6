//! Vectors whose length depends on data. Memory that can't be had is a fault of one sample, never
//! the end of the process, so everything that a file or an argument can make large is made here.

use std::alloc::{Layout, alloc_zeroed};

use super::dtype::Element;
use super::fault::Cause;

/// An empty vector with room for `count` elements.
pub fn with_room<T>(count: usize) -> Result<Vec<T>, Cause> {
    let mut made = Vec::new();
    made.try_reserve_exact(count).map_err(|_| missing::<T>(count))?;
    Ok(made)
}

/// `count` times the same element.
pub fn filled<T: Clone>(element: T, count: usize) -> Result<Vec<T>, Cause> {
    let mut made = with_room(count)?;
    made.resize(count, element);
    Ok(made)
}

/// `count` zeros, which the system need not write before they are used.
pub fn zeroed<T: Element>(count: usize) -> Result<Vec<T>, Cause> {
    let layout = Layout::array::<T>(count).map_err(|_| missing::<T>(count))?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout has a size. The memory is the allocator's, for exactly `count` elements,
    // and all-zero bits are a valid element.
    unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        match start.is_null() {
            true => Err(missing::<T>(count)),
            false => Ok(Vec::from_raw_parts(start, count, count)),
        }
    }
}

/// All that an iterator gives, which says how much that is at most.
pub fn collected<T>(all: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Cause> {
    let mut made = with_room(all.len())?;
    made.extend(all);
    Ok(made)
}

/// Appends elements to a vector that may have to grow for them.
pub fn append<T: Clone>(to: &mut Vec<T>, elements: &[T]) -> Result<(), Cause> {
    to.try_reserve(elements.len()).map_err(|_| missing::<T>(to.len() + elements.len()))?;
    to.extend_from_slice(elements);
    Ok(())
}

/// Whether the system would give so much memory now. It is given back at once.
pub fn is_available(bytes: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping touches nothing that exists, and nobody else knows it.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0);
        start != libc::MAP_FAILED && libc::munmap(start, bytes) == 0
    }
}

/// What a new thread takes before any code of ours runs in it: its stack and thread-local data.
const THREAD: usize = 4 << 20;

/// Whether there is memory for another thread. Where only its thread-local data does not fit, the C
/// library ends the process instead of refusing the thread.
pub fn has_room_for_thread() -> bool {
    is_available(THREAD)
}

fn missing<T>(count: usize) -> Cause {
    Cause::Memory { bytes: count.saturating_mul(size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_made() {
        assert_eq!(filled(7_u16, 3).unwrap(), [7; 3]);
        assert_eq!(zeroed::<f32>(1000).unwrap(), [0.0; 1000]);
        assert!(zeroed::<f32>(0).unwrap().is_empty());
        assert_eq!(collected([1, 2].into_iter()).unwrap(), [1, 2]);
        let mut bytes = with_room(1).unwrap();
        append(&mut bytes, &[1_u8, 2, 3]).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
    }

    #[test]
    fn memory_is_available_up_to_a_limit() {
        assert!(has_room_for_thread());
        assert!(!is_available(1 << 60));
    }

    #[test]
    fn what_does_not_fit_is_a_fault() {
        for count in [usize::MAX, usize::MAX / 8, 1 << 60] {
            assert!(matches!(filled(0_u64, count), Err(Cause::Memory { .. })));
            assert!(matches!(zeroed::<u64>(count), Err(Cause::Memory { .. })));
            assert!(matches!(with_room::<u64>(count), Err(Cause::Memory { .. })));
        }
    }
}
