//! Where audio is read from.

use std::fs::File;
use std::io::{Cursor, Read, Result as IoResult, Seek, SeekFrom};

use super::{Result, unread};

/// A file, or bytes in memory.
pub trait Stream: Read + Seek + Send + Sync {
    /// All of it, if it is in memory.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }
}

impl Stream for File {}

impl Stream for Cursor<&[u8]> {
    fn in_memory(&self) -> Option<&[u8]> {
        Some(self.get_ref())
    }
}

/// A part of a stream, such as a file without the tags around it.
pub struct Part<'a> {
    stream: Box<dyn Stream + 'a>,
    start: u64,
    length: u64,
    at: u64,
}

impl<'a> Part<'a> {
    pub fn new(stream: Box<dyn Stream + 'a>, start: u64, length: u64) -> Part<'a> {
        Part { stream, start, length, at: 0 }
    }
}

impl Read for Part<'_> {
    fn read(&mut self, room: &mut [u8]) -> IoResult<usize> {
        let left = self.length.saturating_sub(self.at);
        let count = room.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.stream.seek(SeekFrom::Start(self.start.saturating_add(self.at)))?;
        let read = self.stream.read(&mut room[..count])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Part<'_> {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Stream for Part<'_> {
    fn in_memory(&self) -> Option<&[u8]> {
        let rest = self.stream.in_memory()?.get(usize::try_from(self.start).ok()?..)?;
        Some(&rest[..rest.len().min(usize::try_from(self.length).unwrap_or(usize::MAX))])
    }
}

pub fn read_at(stream: &mut Box<dyn Stream + '_>, at: u64, bytes: &mut [u8]) -> Result<()> {
    let read = stream.seek(SeekFrom::Start(at)).and_then(|_| stream.read_exact(bytes));
    read.map_err(|error| unread(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_stream_of_its_own() {
        let mut part = Part::new(Box::new(Cursor::new(&b"0123456789"[..])), 3, 4);
        let mut read = String::new();
        assert_eq!(part.read_to_string(&mut read).ok(), Some(4));
        assert_eq!(read, "3456");
        assert_eq!(part.in_memory(), Some(&b"3456"[..]));
        assert_eq!(part.seek(SeekFrom::End(-1)).ok(), Some(3));
        assert_eq!(part.read(&mut [0; 9]).ok(), Some(1));
        assert!(part.seek(SeekFrom::Current(-5)).is_err());
        assert_eq!(part.seek(SeekFrom::Start(99)).ok(), Some(99));
        assert_eq!(part.read(&mut [0; 9]).ok(), Some(0));
        let beyond = Part::new(Box::new(Cursor::new(&b"0123"[..])), 9, 4);
        assert_eq!(beyond.in_memory(), None);
    }
}
