//! Where an Ogg file ends, and where it is damaged: its pages have checksums and numbers, and
//! symphonia drops bad ones.

use std::io::{Read, Seek, SeekFrom};

use super::{Result, Stream, read_at};
use crate::value::filled;

/// The size of a page's header.
const HEAD: usize = 27;

/// More than two pages of the largest size.
const TAIL: u64 = 1 << 18;

/// There are as many streams as there can be soundtracks, not one per page.
const MOST_STREAMS: usize = 64;

/// The position at the end of the last page before the first that is damaged or missing, in the
/// stream's own units.
pub fn intact(stream: &mut (impl Read + Seek)) -> u64 {
    let mut position = 0;
    let mut expected = Vec::new();
    if stream.seek(SeekFrom::Start(0)).is_err() {
        return 0;
    }
    while let Some(page) = Page::read(stream) {
        let next = page.number.wrapping_add(1);
        match expected.iter().position(|(serial, _)| *serial == page.serial) {
            Some(at) if expected[at].1 != page.number => break,
            Some(at) => expected[at].1 = next,
            None if expected.len() < MOST_STREAMS => expected.push((page.serial, next)),
            None => break,
        }
        // All ones are on pages where no packet ends.
        if page.position != u64::MAX {
            position = page.position;
        }
    }
    position
}

struct Page {
    position: u64,
    serial: u32,
    number: u32,
}

impl Page {
    /// `None` if there is none that is complete and has the right checksum.
    fn read(stream: &mut impl Read) -> Option<Page> {
        let mut head = [0; HEAD];
        stream.read_exact(&mut head).ok()?;
        head.starts_with(b"OggS").then_some(())?;
        let mut rest = vec![0; usize::from(head[26])];
        stream.read_exact(&mut rest).ok()?;
        let size: usize = rest.iter().map(|&size| usize::from(size)).sum();
        let sizes = rest.len();
        rest.resize(sizes + size, 0);
        stream.read_exact(&mut rest[sizes..]).ok()?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (serial, sequence, checksum) = (number(14), number(18), number(22));
        let position = head[6..14].first_chunk().map(|position| u64::from_le_bytes(*position))?;
        head[22..26].fill(0);
        let found = rest.iter().fold(head.iter().fold(0, crc), crc);
        (found == checksum).then_some(Page { position, serial, number: sequence })
    }
}

/// Adds a byte to a checksum, bit by bit: it is needed for damaged files only.
fn crc(sum: u32, byte: &u8) -> u32 {
    (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| {
        sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 }
    })
}

/// The last position of each stream that has a page near the end of the file, by serial number.
pub fn ends(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> Result<Vec<(u32, u64)>> {
    let mut tail = filled(0, bytes.min(TAIL) as usize)?;
    read_at(stream, bytes - tail.len() as u64, &mut tail)?;
    let mut found: Vec<(u32, u64)> = Vec::new();
    for head in tail.windows(HEAD).rev().filter(|head| head.starts_with(b"OggS")) {
        let Some(position) = head[6..].first_chunk().map(|n| u64::from_le_bytes(*n)) else { break };
        let Some(serial) = head[14..].first_chunk().map(|n| u32::from_le_bytes(*n)) else { break };
        let known = found.iter().any(|(known, _)| *known == serial);
        if !known && position != u64::MAX && found.len() < MOST_STREAMS {
            found.push((serial, position));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn page(number: u8, position: u64, body: &[u8]) -> Vec<u8> {
        let mut page = b"OggS\0\0".to_vec();
        page.extend(position.to_le_bytes());
        page.extend([9, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 1, body.len() as u8]);
        page.extend(body);
        let sum = page.iter().fold(0, crc);
        page[22..26].copy_from_slice(&sum.to_le_bytes());
        page
    }

    #[test]
    fn the_first_bad_page_is_found() {
        let pages =
            [page(0, 0, b"a"), page(1, 5, b"bb"), page(2, u64::MAX, b"c"), page(3, 9, b"d")];
        let whole = pages.concat();
        assert_eq!(intact(&mut Cursor::new(&whole)), 9);
        let mut damaged = whole.clone();
        damaged[pages[0].len() + 28] ^= 1;
        assert_eq!(intact(&mut Cursor::new(&damaged)), 0);
        let missing = [&pages[0][..], &pages[1], &pages[3]].concat();
        assert_eq!(intact(&mut Cursor::new(&missing)), 5);
        for cut in 0..whole.len() {
            assert!(intact(&mut Cursor::new(&whole[..cut])) <= 5);
        }
    }

    #[test]
    fn the_last_position_is_found() {
        let file = [page(0, 0, b"a"), page(1, 5, b"bb"), page(2, u64::MAX, b"c")].concat();
        let mut stream: Box<dyn Stream> = Box::new(Cursor::new(&file[..]));
        assert_eq!(ends(&mut stream, file.len() as u64).ok(), Some(vec![(9, 5)]));
    }
}
