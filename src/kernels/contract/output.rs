//! Output buffers of kernels.

use std::sync::Arc;

use crate::kernels::Result;
use crate::value::{Buffer, Desc, Element, LINE, Line, Sample, Stores, fits};

/// Memory for one result. It is neither cloned nor handed out, so nobody else can access its bytes
/// before it becomes a sample. It is written through the [`Output`] that it lends.
pub struct OutputBuffer {
    desc: Desc,
    buffer: Arc<Buffer>,
    offset: usize,
    around: bool,
}

impl OutputBuffer {
    /// A new buffer on the host.
    pub fn new(desc: Desc) -> Result<OutputBuffer> {
        let buffer = Buffer::new(desc.bytes())?;
        Ok(OutputBuffer::of(desc, buffer))
    }

    /// The start of a new buffer. Panics if anybody else holds the buffer.
    pub fn of(desc: Desc, mut buffer: Arc<Buffer>) -> OutputBuffer {
        assert!(Arc::get_mut(&mut buffer).is_some() && !buffer.is_foreign());
        // SAFETY: the buffer is new and ours.
        unsafe { OutputBuffer::at(desc, buffer, 0) }
    }

    /// A part of a buffer that holds other results as well.
    ///
    /// # Safety
    /// The buffer must be ours, and no other output, and no sample that is in use, may overlap
    /// these bytes until this is dropped or becomes a sample.
    pub unsafe fn at(desc: Desc, buffer: Arc<Buffer>, offset: usize) -> OutputBuffer {
        assert!(fits(&desc, &buffer, offset));
        OutputBuffer { desc, buffer, offset, around: false }
    }

    /// Sets whether the result is written with non-temporal stores (see [`Stores`]). Kernels that
    /// compute more than they write can ignore it.
    pub fn around_caches(self, around: bool) -> OutputBuffer {
        OutputBuffer { around, ..self }
    }

    pub fn desc(&self) -> &Desc {
        &self.desc
    }

    /// The result, for writing.
    pub fn output(&mut self) -> Output<'_> {
        let len = self.desc.bytes();
        // SAFETY: `at` checked the bounds; the bytes belong to this buffer only, which stays
        // borrowed, and are initialized (see `memory`).
        let bytes = unsafe {
            let start = self.buffer.as_ptr().add(self.offset);
            std::slice::from_raw_parts_mut(start, len)
        };
        Output { desc: &self.desc, bytes, around: self.around }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        self.output().bytes
    }

    pub fn elements<T: Element>(&mut self) -> &mut [T] {
        self.output().into_elements()
    }

    /// The finished result.
    pub fn into_sample(self) -> Result<Sample> {
        Sample::new(self.desc, self.buffer, self.offset)
    }
}

/// A result that is being written: borrowed bytes and their description.
pub struct Output<'a> {
    pub desc: &'a Desc,
    bytes: &'a mut [u8],
    around: bool,
}

/// Number of elements that [`Output::write`] requests at a time: together with their inputs, they
/// stay in the L1 cache.
pub const PIECE: usize = 1024;

impl<'a> Output<'a> {
    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    pub fn elements<T: Element>(&mut self) -> &mut [T] {
        self.check_elements::<T>();
        // SAFETY: the alignment was checked, and any bit pattern is a valid element.
        unsafe { cast(self.bytes) }
    }

    fn into_elements<T: Element>(self) -> &'a mut [T] {
        self.check_elements::<T>();
        // SAFETY: the alignment was checked, and any bit pattern is a valid element.
        unsafe { cast(self.bytes) }
    }

    /// Asserts that the bytes are aligned elements of this type.
    fn check_elements<T: Element>(&self) {
        assert!(T::DTYPE == self.desc.dtype.storage());
        assert!((self.bytes.as_ptr() as usize).is_multiple_of(size_of::<T>()));
    }

    /// Calls `write` with all bytes, and the stores to copy into them with.
    pub fn store<R>(&mut self, write: impl for<'b> FnOnce(&'b mut [u8], &Stores<'b>) -> R) -> R {
        Stores::with(self.bytes, self.around, write)
    }

    /// Calls `write` with a writer for all elements, in order.
    pub fn write_in_order<T: Element, R>(
        &mut self,
        write: impl for<'b, 's> FnOnce(Writer<'b, 's, T>) -> R,
    ) -> R {
        self.check_elements::<T>();
        // SAFETY: any bit pattern is a valid element, and the alignment was checked.
        self.store(|bytes, stores| write(Writer::new(unsafe { cast(bytes) }, stores)))
    }

    /// Calls `make` to write all elements in order, a piece at a time; it gets the index of the
    /// first.
    pub fn write<T: Element>(
        &mut self,
        mut make: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        self.write_in_order(|mut writer: Writer<'_, '_, T>| {
            // A short first piece, so that all others start on a cache line.
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

    /// Calls `make` to write all bytes in order, some pixels at a time; it gets these pixels of
    /// `source`. They have so many bytes each, `from` there and `to` here.
    pub fn write_pixels(
        &mut self,
        source: &[u8],
        [from, to]: [usize; 2],
        mut make: impl FnMut(&[u8], &mut [u8]),
    ) {
        self.write_in_order(|mut writer: Writer<'_, '_, u8>| {
            let all = writer.rest.len() / to;
            // A short first piece, so that all others start on a cache line.
            let address = writer.rest.as_ptr().addr();
            let head = (1..=LINE).find(|pixels| (address + pixels * to).is_multiple_of(LINE));
            let mut count = if writer.is_around() { head.unwrap_or(PIECE) } else { all };
            let mut start = 0;
            while start < all {
                let end = all.min(start + count);
                let pixels = &source[start * from..end * from];
                writer.next((end - start) * to, |piece| make(pixels, piece));
                (start, count) = (end, PIECE);
            }
        });
    }

    /// Calls `make` to write all bytes, in rows of equal length; it gets the index of the row.
    pub fn write_rows(&mut self, row: usize, mut make: impl FnMut(usize, &mut [u8])) {
        let rows = self.bytes.len().checked_div(row).unwrap_or(0);
        self.store(|bytes, stores| {
            let mut writer = Writer::new(bytes, stores);
            (0..rows).for_each(|index| writer.next(row, |row| make(index, row)));
        });
    }

    /// One of the equal parts that this consists of, described by `desc`: a sample of a stack, or a
    /// frame of a sequence.
    pub fn part<'b>(&'b mut self, index: usize, desc: &'b Desc) -> Output<'b> {
        assert!(desc.dtype == self.desc.dtype);
        let len = desc.bytes();
        Output { desc, bytes: &mut self.bytes[index * len..][..len], around: self.around }
    }
}

/// Writes elements in order, some at a time.
pub struct Writer<'a, 's, T> {
    rest: &'a mut [T],
    stores: &'s Stores<'a>,
    /// Scratch space for non-temporal stores, aligned for any element and for vectors.
    made: Vec<Line>,
}

impl<'a, 's, T: Element> Writer<'a, 's, T> {
    fn new(rest: &'a mut [T], stores: &'s Stores<'a>) -> Writer<'a, 's, T> {
        Writer { rest, stores, made: Vec::new() }
    }

    fn is_around(&self) -> bool {
        self.stores.is_around()
    }

    /// Calls `make` to write the next `count` elements.
    #[inline]
    pub fn next<R>(&mut self, count: usize, make: impl FnOnce(&mut [T]) -> R) -> R {
        let (next, rest) = std::mem::take(&mut self.rest).split_at_mut(count);
        self.rest = rest;
        if !self.is_around() {
            return make(next);
        }
        let lines = size_of_val(next).div_ceil(LINE);
        if self.made.len() < lines {
            if self.made.try_reserve_exact(lines - self.made.len()).is_err() {
                return make(next);
            }
            self.made.resize(lines, Line([0; LINE]));
        }
        // SAFETY: there are enough bytes, aligned for any element, and any bit pattern is valid.
        let made =
            unsafe { std::slice::from_raw_parts_mut(self.made.as_mut_ptr().cast::<T>(), count) };
        let outcome = make(made);
        // SAFETY: elements have no padding, so their bytes are initialized.
        let (next, made) = unsafe { (cast(next), cast(made)) };
        self.stores.copy(next, made);
        outcome
    }
}

/// The same memory as elements of another type.
///
/// # Safety
/// Its bits must be valid elements of `B`, and it must be aligned and hold a whole number of them.
unsafe fn cast<A, B>(from: &mut [A]) -> &mut [B] {
    let count = size_of_val(from) / size_of::<B>();
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(from.as_mut_ptr().cast(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::DType;

    #[test]
    fn pieces_and_rows_are_the_same_with_either_kind_of_stores() {
        for (dtype, offset) in [(DType::U16, 0), (DType::U16, 6), (DType::U16, 64)] {
            for count in [0, 1, 29, 1024, 5000] {
                for around in [false, true] {
                    let desc = Desc::new(dtype, &[count]);
                    let buffer = Buffer::new(desc.bytes() + offset).unwrap();
                    // SAFETY: nobody else has the buffer.
                    let made = unsafe { OutputBuffer::at(desc, buffer, offset) };
                    let mut made = made.around_caches(around);
                    let mut output = made.output();
                    let counting = |start: usize, piece: &mut [u16]| {
                        piece.iter_mut().zip(start..).for_each(|(x, i)| *x = i as u16);
                        Ok(())
                    };
                    output.write(counting).unwrap();
                    assert!(output.elements::<u16>().iter().zip(0..).all(|(&x, i)| x == i));
                    if count == 5000 {
                        output.write_rows(1000, |index, row| row.fill(index as u8));
                        let bytes = output.bytes().chunks(1000).zip(0..);
                        assert!(bytes.into_iter().all(|(row, i)| row == [i; 1000]));
                    }
                }
            }
        }
    }

    #[test]
    fn pixels_are_the_same_with_either_kind_of_stores() {
        let source: Vec<u8> = (0..15_000_u32).map(|at| (at % 251) as u8).collect();
        for (from, to) in [(3, 3), (3, 1), (1, 3)] {
            for (pixels, offset) in [(0, 0), (1, 5), (5000, 0), (4999, 1), (3000, 63)] {
                for around in [false, true] {
                    let desc = Desc::new(DType::U8, &[pixels * to]);
                    let buffer = Buffer::new(desc.bytes() + offset).unwrap();
                    // SAFETY: nobody else has the buffer.
                    let made = unsafe { OutputBuffer::at(desc, buffer, offset) };
                    let mut made = made.around_caches(around);
                    let mut output = made.output();
                    output.write_pixels(&source[..pixels * from], [from, to], |pixels, piece| {
                        assert_eq!(pixels.len() * to, piece.len() * from);
                        let pairs = pixels.chunks_exact(from).zip(piece.chunks_exact_mut(to));
                        pairs.for_each(|(pixel, piece)| piece.fill(pixel[from - 1]));
                    });
                    for (at, byte) in output.elements::<u8>().iter().enumerate() {
                        assert_eq!(*byte, source[at / to * from + from - 1], "{from} {to} {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn parts_are_disjoint_and_cover_the_whole() {
        let mut whole = OutputBuffer::new(Desc::new(DType::U16, &[5, 3, 7])).unwrap();
        let (start, len) = (whole.bytes().as_ptr() as usize, whole.bytes().len());
        let (mut output, part) = (whole.output(), Desc::new(DType::U16, &[3, 7]));
        let mut end = start;
        for index in 0..5 {
            let mut part = output.part(index, &part);
            assert_eq!(part.bytes().as_ptr() as usize, end);
            end += part.bytes().len();
        }
        assert_eq!(end, start + len);
    }

    #[test]
    #[should_panic]
    fn a_part_beyond_the_last_panics() {
        let mut whole = OutputBuffer::new(Desc::new(DType::U16, &[5, 3])).unwrap();
        whole.output().part(5, &Desc::new(DType::U16, &[3]));
    }

    #[test]
    #[should_panic]
    fn memory_that_somebody_else_holds_is_rejected() {
        let buffer = Buffer::new(8).unwrap();
        let _other = buffer.clone();
        OutputBuffer::of(Desc::new(DType::U8, &[8]), buffer);
    }

    #[test]
    fn a_fault_stops_the_writing() {
        let made = OutputBuffer::new(Desc::new(DType::U8, &[1 << 16])).unwrap();
        let mut made = made.around_caches(true);
        let mut calls = 0;
        let failed = made.output().write(|_, _: &mut [u8]| {
            calls += 1;
            Err(crate::value::Cause::Stopped)
        });
        assert!(failed.is_err() && calls == 1);
    }
}
