//! Vectors whose length depends on data. Running out of memory must fail one sample instead of
//! aborting the process, so anything that a file or an argument can make large is allocated here.

use std::alloc::{Layout, alloc_zeroed};

use super::dtype::Element;
use super::fault::Cause;

/// An empty vector with room for `count` elements.
pub fn with_room<T>(count: usize) -> Result<Vec<T>, Cause> {
    let mut made = Vec::new();
    made.try_reserve_exact(count).map_err(|_| out_of_memory::<T>(count))?;
    Ok(made)
}

/// `count` copies of the same element.
pub fn filled<T: Clone>(element: T, count: usize) -> Result<Vec<T>, Cause> {
    let mut made = with_room(count)?;
    made.resize(count, element);
    Ok(made)
}

/// `count` zeros, from zeroed memory where the allocator has it.
pub fn zeroed<T: Element>(count: usize) -> Result<Vec<T>, Cause> {
    let layout = Layout::array::<T>(count).map_err(|_| out_of_memory::<T>(count))?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout's size is not zero. The allocator returns memory for exactly `count`
    // elements, and all-zero bits are a valid element.
    unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        match start.is_null() {
            true => Err(out_of_memory::<T>(count)),
            false => Ok(Vec::from_raw_parts(start, count, count)),
        }
    }
}

/// Collects an iterator into a vector of exactly its length.
pub fn collected<T>(all: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Cause> {
    let mut made = with_room(all.len())?;
    made.extend(all);
    Ok(made)
}

/// Appends elements to a vector, which may have to grow.
pub fn append<T: Clone>(to: &mut Vec<T>, elements: &[T]) -> Result<(), Cause> {
    to.try_reserve(elements.len()).map_err(|_| out_of_memory::<T>(to.len() + elements.len()))?;
    to.extend_from_slice(elements);
    Ok(())
}

/// Whether the system would currently provide this much memory. Frees it immediately.
pub fn is_available(bytes: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping affects no existing memory, and nobody else knows it.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0);
        start != libc::MAP_FAILED && libc::munmap(start, bytes) == 0
    }
}

/// What a new thread needs before it runs our code: its stack and thread-local data.
const THREAD_BYTES: usize = 4 << 20;

/// Whether there is memory for another thread. If there is none for its thread-local data, the C
/// library aborts the process instead of returning an error.
pub fn has_room_for_thread() -> bool {
    is_available(THREAD_BYTES)
}

fn out_of_memory<T>(count: usize) -> Cause {
    Cause::Memory { bytes: count.saturating_mul(size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_fit_are_allocated() {
        assert_eq!(filled(7_u16, 3).unwrap(), [7; 3]);
        assert_eq!(zeroed::<f32>(1000).unwrap(), [0.0; 1000]);
        assert!(zeroed::<f32>(0).unwrap().is_empty());
        assert_eq!(collected([1, 2].into_iter()).unwrap(), [1, 2]);
        let mut bytes = with_room(1).unwrap();
        append(&mut bytes, &[1_u8, 2, 3]).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
    }

    #[test]
    fn availability_has_a_limit() {
        assert!(has_room_for_thread());
        assert!(!is_available(1 << 60));
    }

    #[test]
    fn lengths_that_do_not_fit_are_faults() {
        for count in [usize::MAX, usize::MAX / 8, 1 << 60] {
            assert!(matches!(filled(0_u64, count), Err(Cause::Memory { .. })));
            assert!(matches!(zeroed::<u64>(count), Err(Cause::Memory { .. })));
            assert!(matches!(with_room::<u64>(count), Err(Cause::Memory { .. })));
        }
    }
}
