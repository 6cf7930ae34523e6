//! Where a kernel's results go.

use std::sync::Arc;

use super::Result;
use crate::value::{Buffer, Desc, Element, LINE, Layout, Sample, Stores, fits};

/// A place for a result that only its writer knows.
pub struct Space {
    pub desc: Desc,
    buffer: Arc<Buffer>,
    offset: usize,
    around: bool,
}

/// Elements that [`Space::write`] asks for at a time: with what they are made of, they stay in the
/// first cache.
pub const PIECE: usize = 1024;

impl Space {
    /// The caller hands out each byte of `buffer` to one space at most.
    pub fn new(desc: Desc, buffer: Arc<Buffer>, offset: usize) -> Space {
        assert!(fits(&desc, &buffer, offset));
        Space { desc, buffer, offset, around: false }
    }

    /// Says whether the result had better go around the caches (see [`Stores`]). Kernels that
    /// compute more than they write need not care.
    pub fn around_caches(self, around: bool) -> Space {
        Space { around, ..self }
    }

    /// Makes this the place, described alike, at another byte of the same buffer. The caller has
    /// the whole buffer to itself.
    pub(super) fn move_to(&mut self, offset: usize) {
        assert!(fits(&self.desc, &self.buffer, offset));
        self.offset = offset;
    }

    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new` checked the bounds; the bytes are this space's alone, and initialised
        // (see `memory`).
        unsafe {
            let start = self.buffer.as_ptr().add(self.offset);
            std::slice::from_raw_parts_mut(start, self.desc.bytes())
        }
    }

    pub fn elements<T: Element>(&mut self) -> &mut [T] {
        assert!(T::DTYPE == self.desc.dtype.storage());
        // SAFETY: as for `bytes`; `new` checked the alignment, and any bits are a valid element.
        unsafe {
            let start = self.buffer.as_ptr().add(self.offset);
            std::slice::from_raw_parts_mut(start.cast(), self.desc.elements())
        }
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
        // SAFETY: any bits are a valid element, and `new` checked the alignment.
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
        let rows = self.desc.bytes().checked_div(row).unwrap_or(0);
        self.store(|bytes, stores| {
            let mut writer = Writer::new(bytes, stores);
            (0..rows).for_each(|index| writer.next(row, |row| make(index, row)));
        });
    }

    /// One of the equal parts that the first axis counts, which then is not this space's any more.
    pub fn part(&mut self, index: usize, layout: Layout) -> Space {
        let desc = Desc { layout, ..Desc::new(self.desc.dtype, &self.desc.shape[1..]) };
        assert!(index < self.desc.shape[0]);
        let offset = self.offset + index * desc.bytes();
        Space::new(desc, self.buffer.clone(), offset).around_caches(self.around)
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
                    let mut space = Space::new(desc, buffer, offset).around_caches(around);
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
    fn what_fails_ends_the_writing() {
        let buffer = Buffer::new(1 << 16).unwrap();
        let mut space = Space::new(Desc::new(DType::U8, &[1 << 16]), buffer, 0).around_caches(true);
        let mut calls = 0;
        let failed = space.write(|_, _: &mut [u8]| {
            calls += 1;
            Err(crate::value::Cause::Stopped)
        });
        assert!(failed.is_err() && calls == 1);
    }
}
