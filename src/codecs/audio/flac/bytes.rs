//! Any part of a stream, as bytes in memory.

use std::io::SeekFrom;

use crate::codecs::audio::{Result, Stream, unread};
use crate::value::filled;

pub struct Bytes<'a> {
    stream: Box<dyn Stream + 'a>,
    length: u64,
    /// A part of the stream, if that is not in memory.
    part: Vec<u8>,
    /// Where it begins.
    start: u64,
}

/// How much is read at a time.
const PIECE: usize = 256 << 10;

impl<'a> Bytes<'a> {
    pub fn new(stream: Box<dyn Stream + 'a>, length: u64) -> Bytes<'a> {
        Bytes { stream, length, part: Vec::new(), start: 0 }
    }

    /// Of the stream.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// At least so many bytes from an offset on, or all up to the end.
    pub fn get(&mut self, at: u64, least: usize) -> Result<&[u8]> {
        if self.stream.in_memory().is_some() {
            let all = self.stream.in_memory().unwrap_or_default();
            return Ok(usize::try_from(at).ok().and_then(|at| all.get(at..)).unwrap_or_default());
        }
        let left = self.length.saturating_sub(at);
        let end = at + left.min(least as u64);
        if at < self.start || end > self.start + self.part.len() as u64 {
            let size = left.min(least.max(PIECE) as u64) as usize;
            self.part.clear();
            if self.part.capacity() < size {
                self.part = filled(0, size)?;
            }
            self.part.resize(size, 0);
            let read = self.stream.seek(SeekFrom::Start(at));
            let read = read.and_then(|_| self.stream.read_exact(&mut self.part));
            if let Err(error) = read {
                self.part.clear();
                return Err(unread(&error));
            }
            self.start = at;
        }
        Ok(self.part.get((at - self.start) as usize..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, Result as IoResult, Seek};

    use super::*;

    /// A stream that is not in memory.
    struct Elsewhere(Cursor<Vec<u8>>);

    impl Read for Elsewhere {
        fn read(&mut self, room: &mut [u8]) -> IoResult<usize> {
            self.0.read(room)
        }
    }

    impl Seek for Elsewhere {
        fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
            self.0.seek(to)
        }
    }

    impl Stream for Elsewhere {}

    #[test]
    fn parts_are_the_same_wherever_they_come_from() {
        let all: Vec<u8> = (0..3 * PIECE as u32).map(|at| (at / 251) as u8).collect();
        let length = all.len() as u64;
        let mut near = Bytes::new(Box::new(Cursor::new(&all[..])), length);
        let mut far = Bytes::new(Box::new(Elsewhere(Cursor::new(all.clone()))), length);
        let last = all.len() - 3;
        for (at, least) in
            [(0, 4), (1, 8), (PIECE - 2, 9), (5, 2 * PIECE), (last, 7), (last + 3, 1)]
        {
            for bytes in [&mut near, &mut far] {
                let part = bytes.get(at as u64, least).ok().unwrap_or_default();
                assert!(part.len() >= least.min(all.len() - at), "{at}");
                assert_eq!(part, &all[at..][..part.len()]);
            }
        }
        assert_eq!(far.get(u64::MAX, 3).ok().map(<[u8]>::len), Some(0));
    }
}
