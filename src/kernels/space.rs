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

    /// Has `make` write all elements in order, some at a time: it gets the index of the first.
    pub fn write<T: Element>(
        &mut self,
        mut make: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        if !self.around {
            let mut pieces = self.elements::<T>().chunks_mut(PIECE).enumerate();
            return pieces.try_for_each(|(index, piece)| make(index * PIECE, piece));
        }
        self.elements::<T>();
        self.store(|bytes, stores| {
            let size = size_of::<T>();
            // A short piece first, for all others to begin with a line.
            let head = bytes.as_ptr().align_offset(LINE).min(bytes.len());
            let (head, rest) = bytes.split_at_mut(head);
            let mut start = 0;
            let mut piece = Piece([0; PIECE]);
            for bytes in std::iter::once(head).chain(rest.chunks_mut(PIECE * size)) {
                let count = bytes.len() / size;
                // SAFETY: a piece has room for as many elements as there are in `bytes`, of at
                // most eight bytes each; any bits are a valid element.
                let elements =
                    unsafe { std::slice::from_raw_parts_mut(piece.0.as_mut_ptr().cast(), count) };
                make(start, elements)?;
                // SAFETY: these are the bytes of the same elements, which have no padding.
                let made = unsafe {
                    std::slice::from_raw_parts(piece.0.as_ptr().cast::<u8>(), bytes.len())
                };
                stores.copy(bytes, made);
                start += count;
            }
            Ok(())
        })
    }

    /// Has `make` write all bytes, in rows of equal length: it gets the index of the row.
    pub fn write_rows(&mut self, row: usize, mut make: impl FnMut(usize, &mut [u8])) {
        if row == 0 {
            return;
        }
        if !self.around {
            let rows = self.bytes().chunks_exact_mut(row).enumerate();
            return rows.for_each(|(index, row)| make(index, row));
        }
        let mut made = vec![0; row];
        self.store(|bytes, stores| {
            for (index, bytes) in bytes.chunks_exact_mut(row).enumerate() {
                make(index, &mut made);
                stores.copy(bytes, &made);
            }
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

/// Room for [`PIECE`] elements of any type.
#[repr(align(64))]
struct Piece([u64; PIECE]);

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
