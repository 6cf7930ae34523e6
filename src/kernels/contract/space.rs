//! Where a kernel's results go.

use std::sync::Arc;

use crate::kernels::Result;
use crate::value::{Buffer, Desc, Element, LINE, Layout, Sample, Stores, fits};

/// A place for a result that only its writer knows. It is not cloned, and does not hand out its
/// buffer, so that nobody else can read or write its bytes before it has become a sample.
pub struct Space {
    pub desc: Desc,
    buffer: Arc<Buffer>,
    offset: usize,
    /// Bytes from there on that are this space's, whatever becomes of `desc`.
    len: usize,
    around: bool,
}

/// Elements that [`Space::write`] asks for at a time: with what they are made of, they stay in the
/// first cache.
pub const PIECE: usize = 1024;

impl Space {
    /// A place at the beginning of new memory, which nobody else knows.
    pub fn new(desc: Desc, mut buffer: Arc<Buffer>) -> Space {
        assert!(Arc::get_mut(&mut buffer).is_some() && !buffer.is_foreign());
        // SAFETY: the buffer is new and ours.
        unsafe { Space::at(desc, buffer, 0) }
    }

    /// A place in host memory of its own.
    pub fn alone(desc: Desc) -> Result<Space> {
        let buffer = Buffer::new(desc.bytes())?;
        Ok(Space::new(desc, buffer))
    }

    /// A place in a buffer that has room for others beside it.
    ///
    /// # Safety
    /// The buffer is ours, and no other space or sample whose bytes are used has one of these
    /// bytes, until this space is dropped or becomes a sample.
    pub unsafe fn at(desc: Desc, buffer: Arc<Buffer>, offset: usize) -> Space {
        assert!(fits(&desc, &buffer, offset));
        let len = desc.bytes();
        Space { desc, buffer, offset, len, around: false }
    }

    /// Says whether the result had better go around the caches (see [`Stores`]). Kernels that
    /// compute more than they write need not care.
    pub fn around_caches(self, around: bool) -> Space {
        Space { around, ..self }
    }

    /// Makes this the place, described alike, at another byte of the same buffer.
    ///
    /// # Safety
    /// As for [`Space::at`].
    pub(super) unsafe fn move_to(&mut self, offset: usize) {
        assert!(self.desc.bytes() == self.len && fits(&self.desc, &self.buffer, offset));
        self.offset = offset;
    }

    /// A place that begins at the same byte, and may end after this one.
    ///
    /// # Safety
    /// As for [`Space::at`]; this space is not used any more.
    pub(super) unsafe fn extended(&self, desc: Desc) -> Space {
        // SAFETY: as the caller says.
        unsafe { Space::at(desc, self.buffer.clone(), self.offset) }
    }

    /// Bytes of the buffer that this place is in.
    pub fn block_bytes(&self) -> usize {
        self.buffer.len()
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `at` checked the bounds; the bytes are this space's alone, and initialised
        // (see `memory`).
        unsafe {
            let start = self.buffer.as_ptr().add(self.offset);
            std::slice::from_raw_parts_mut(start, self.len)
        }
    }

    pub fn elements<T: Element>(&mut self) -> &mut [T] {
        assert!(T::DTYPE == self.desc.dtype.storage());
        self.check_alignment();
        // SAFETY: as for `bytes`; the alignment was checked, and any bits are a valid element.
        unsafe {
            let start = self.buffer.as_ptr().add(self.offset);
            std::slice::from_raw_parts_mut(start.cast(), self.len / size_of::<T>())
        }
    }

    /// The description is everybody's to change.
    fn check_alignment(&self) {
        let start = self.buffer.as_ptr() as usize + self.offset;
        assert!(start.is_multiple_of(self.desc.dtype.size()));
    }

    /// All bytes, and the way to copy into them.
    pub fn store<R>(&mut self, write: impl for<'a> FnOnce(&'a mut [u8], &Stores<'a>) -> R) -> R {
        let around = self.around;
        Stores::with(self.bytes(), around, write)
    }

    /// All elements, to be written in order.
    pub fn write_in_order<T: Element, R>(
        &mut self,
        write: impl for<'a, 's> FnOnce(Writer<'a, 's, T>) -> R,
    ) -> R {
        assert!(T::DTYPE == self.desc.dtype.storage());
        self.check_alignment();
        // SAFETY: any bits are a valid element, and the alignment was checked.
        self.store(|bytes, stores| write(Writer::new(unsafe { cast(bytes) }, stores)))
    }

    /// Has `make` write all elements in order, some at a time: it gets the index of the first.
    pub fn write<T: Element>(
        &mut self,
        mut make: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        self.write_in_order(|mut writer: Writer<'_, '_, T>| {
            // A short piece first, for all others to begin with a line.
            let head = writer.rest.as_ptr().align_offset(LINE);
            let mut count = if writer.is_around() && head > 0 { head } else { PIECE };
            let (mut start, all) = (0, writer.rest.len());
            while start < all {
                count = count.min(all - start);
                writer.next(count, |piece| make(start, piece))?;
                start += count;
                count = PIECE;
            }
            Ok(())
        })
    }

    /// Has `make` write all bytes, in rows of equal length: it gets the index of the row.
    pub fn write_rows(&mut self, row: usize, mut make: impl FnMut(usize, &mut [u8])) {
        let rows = self.len.checked_div(row).unwrap_or(0);
        self.store(|bytes, stores| {
            let mut writer = Writer::new(bytes, stores);
            (0..rows).for_each(|index| writer.next(row, |row| make(index, row)));
        });
    }

    /// One of the equal parts that the first axis counts.
    ///
    /// # Safety
    /// As long as the part is there, the space is not used otherwise, nor the same part made again.
    pub unsafe fn part(&mut self, index: usize, layout: Layout) -> Space {
        let desc = Desc { layout, ..Desc::new(self.desc.dtype, &self.desc.shape[1..]) };
        assert!(index < self.desc.shape[0]);
        let start = index * desc.bytes();
        assert!(start + desc.bytes() <= self.len);
        // SAFETY: the bytes are this space's, and the caller does not use them otherwise.
        let part = unsafe { Space::at(desc, self.buffer.clone(), self.offset + start) };
        part.around_caches(self.around)
    }

    /// The finished result.
    pub fn into_sample(self) -> Result<Sample> {
        Sample::new(self.desc, self.buffer, self.offset)
    }
}

/// Elements that are written in order, some at a time.
pub struct Writer<'a, 's, T> {
    rest: &'a mut [T],
    stores: &'s Stores<'a>,
    /// Where they are made before they go around the caches. Words, as any element may lie there.
    made: Vec<u64>,
}

impl<'a, 's, T: Element> Writer<'a, 's, T> {
    fn new(rest: &'a mut [T], stores: &'s Stores<'a>) -> Writer<'a, 's, T> {
        Writer { rest, stores, made: Vec::new() }
    }

    fn is_around(&self) -> bool {
        self.stores.is_around()
    }

    /// Has `make` write the next `count` elements.
    #[inline]
    pub fn next<R>(&mut self, count: usize, make: impl FnOnce(&mut [T]) -> R) -> R {
        let (next, rest) = std::mem::take(&mut self.rest).split_at_mut(count);
        self.rest = rest;
        if !self.is_around() {
            return make(next);
        }
        let words = size_of_val(next).div_ceil(size_of::<u64>());
        if self.made.len() < words {
            if self.made.try_reserve_exact(words - self.made.len()).is_err() {
                return make(next);
            }
            self.made.resize(words, 0);
        }
        // SAFETY: there are as many bytes, at a place for any element, and any bits are one.
        let made =
            unsafe { std::slice::from_raw_parts_mut(self.made.as_mut_ptr().cast::<T>(), count) };
        let outcome = make(made);
        // SAFETY: elements have no padding, so that they are initialised bytes.
        unsafe { self.stores.copy(cast(next), cast(made)) };
        outcome
    }
}

/// The same memory as elements of another type.
///
/// # Safety
/// Its bits must be valid ones, and all of it must be whole elements at a place for them.
unsafe fn cast<A, B>(from: &mut [A]) -> &mut [B] {
    let count = size_of_val(from) / size_of::<B>();
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts_mut(from.as_mut_ptr().cast(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::DType;

    #[test]
    fn pieces_and_rows_make_the_same_either_way() {
        for (dtype, offset) in [(DType::U16, 0), (DType::U16, 6), (DType::U16, 64)] {
            for count in [0, 1, 29, 1024, 5000] {
                for around in [false, true] {
                    let desc = Desc::new(dtype, &[count]);
                    let buffer = Buffer::new(desc.bytes() + offset).unwrap();
                    // SAFETY: nobody else knows the buffer.
                    let space = unsafe { Space::at(desc, buffer, offset) };
                    let mut space = space.around_caches(around);
                    let counting = |start: usize, piece: &mut [u16]| {
                        piece.iter_mut().zip(start..).for_each(|(x, i)| *x = i as u16);
                        Ok(())
                    };
                    space.write(counting).unwrap();
                    assert!(space.elements::<u16>().iter().zip(0..).all(|(&x, i)| x == i));
                    if count == 5000 {
                        space.write_rows(1000, |index, row| row.fill(index as u8));
                        let bytes = space.bytes().chunks(1000).zip(0..);
                        assert!(bytes.into_iter().all(|(row, i)| row == [i; 1000]));
                    }
                }
            }
        }
    }

    #[test]
    fn parts_are_apart_and_make_the_whole() {
        let mut whole = Space::alone(Desc::new(DType::U16, &[5, 3, 7])).unwrap();
        let (start, len) = (whole.bytes().as_ptr() as usize, whole.bytes().len());
        let mut end = start;
        for index in 0..5 {
            // SAFETY: each part is gone before the next is made.
            let mut part = unsafe { whole.part(index, Layout::default()) };
            assert_eq!(part.bytes().as_ptr() as usize, end);
            end += part.bytes().len();
        }
        assert_eq!(end, start + len);
    }

    #[test]
    #[should_panic]
    fn memory_that_somebody_else_knows_is_no_place() {
        let buffer = Buffer::new(8).unwrap();
        let _other = buffer.clone();
        Space::new(Desc::new(DType::U8, &[8]), buffer);
    }

    #[test]
    fn a_changed_description_does_not_reach_further() {
        let buffer = Buffer::new(64).unwrap();
        // SAFETY: nobody else knows the buffer.
        let mut space = unsafe { Space::at(Desc::new(DType::U8, &[8]), buffer, 8) };
        space.desc.shape[0] = 48;
        assert_eq!((space.bytes().len(), space.elements::<u8>().len()), (8, 8));
    }

    #[test]
    fn what_fails_ends_the_writing() {
        let space = Space::alone(Desc::new(DType::U8, &[1 << 16])).unwrap();
        let mut space = space.around_caches(true);
        let mut calls = 0;
        let failed = space.write(|_, _: &mut [u8]| {
            calls += 1;
            Err(crate::value::Cause::Stopped)
        });
        assert!(failed.is_err() && calls == 1);
    }
}
