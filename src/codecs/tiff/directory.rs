//! The tags of the first image.

use super::TiffFault;
use crate::codecs::{Problem, broken};
use crate::value::{Cause, with_room};

pub const WIDTH: u16 = 256;
pub const HEIGHT: u16 = 257;
pub const BITS: u16 = 258;
pub const COMPRESSION: u16 = 259;
pub const PHOTOMETRIC: u16 = 262;
pub const FILL_ORDER: u16 = 266;
pub const STRIP_OFFSETS: u16 = 273;
pub const ORIENTATION: u16 = 274;
pub const SAMPLES: u16 = 277;
pub const ROWS_PER_STRIP: u16 = 278;
pub const STRIP_SIZES: u16 = 279;
pub const PLANAR: u16 = 284;
pub const FAX_OPTIONS: u16 = 292;
pub const PREDICTOR: u16 = 317;
pub const COLORS: u16 = 320;
pub const TILE_WIDTH: u16 = 322;
pub const TILE_HEIGHT: u16 = 323;
pub const TILE_OFFSETS: u16 = 324;
pub const TILE_SIZES: u16 = 325;
pub const SAMPLE_FORMAT: u16 = 339;
pub const JPEG_TABLES: u16 = 347;

/// Supports both byte orders, and both sizes of offsets (8 bytes in BigTIFF).
pub struct Directory<'a> {
    bytes: &'a [u8],
    pub big_endian: bool,
    entries: Vec<Entry>,
}

struct Entry {
    tag: u16,
    kind: u16,
    count: usize,
    /// Offset of the values.
    at: usize,
}

impl<'a> Directory<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self, Problem> {
        let (big_endian, wide) = match bytes.get(..4) {
            Some(b"II*\0") => (false, false),
            Some(b"MM\0*") => (true, false),
            Some(b"II+\0") => (false, true),
            Some(b"MM\0+") => (true, true),
            _ => return Err(broken(TiffFault::Magic)),
        };
        let mut directory = Directory { bytes, big_endian, entries: Vec::new() };
        let cut = || broken(TiffFault::Tags);
        let (start, count, offset) = directory.list(wide).ok_or_else(cut)?;
        directory.entries = with_room(count)?;
        for n in 0..count {
            let entry = directory.entry(start + n * (4 + 2 * offset), offset).ok_or_else(cut)?;
            directory.entries.push(entry);
        }
        Ok(directory)
    }

    /// Offset of the list of tags, their number, and the size of offsets.
    fn list(&self, wide: bool) -> Option<(usize, usize, usize)> {
        let size = if wide { 8 } else { 4 }; // of offsets
        let first = self.number(size, size)?;
        let count_size = if wide { 8 } else { 2 };
        let count = self.number(first, count_size)?;
        let entry_size = 4 + 2 * size;
        let start = first.checked_add(count_size)?;
        let list = count.checked_mul(entry_size)?;
        self.bytes.get(start..start.checked_add(list)?)?;
        Some((start, count, size))
    }

    fn entry(&self, at: usize, size: usize) -> Option<Entry> {
        let kind = self.number(at + 2, 2)? as u16;
        let count = self.number(at + 4, size)?;
        let fits = count.checked_mul(width(kind)).is_some_and(|bytes| bytes <= size);
        let place = at + 4 + size;
        let at_values = if fits { place } else { self.number(place, size)? };
        Some(Entry { tag: self.number(at, 2)? as u16, kind, count, at: at_values })
    }

    /// The unsigned integers of a tag; `None` if the tag is missing or has another type.
    pub fn numbers(&self, tag: u16) -> Result<Option<Vec<usize>>, Cause> {
        // Values beyond the end of the file don't cause an allocation.
        let Some((values, size)) = self.values(tag) else { return Ok(None) };
        let mut numbers = with_room(values.len() / size)?;
        numbers.extend(values.chunks_exact(size).map(|value| self.unsigned(value)));
        Ok(Some(numbers))
    }

    /// The bytes of unsigned integers, and the size of each.
    fn values(&self, tag: u16) -> Option<(&'a [u8], usize)> {
        let entry = self.entries.iter().find(|entry| entry.tag == tag)?;
        let size = width(entry.kind);
        if !matches!(entry.kind, 1 | 3 | 4 | 13 | 16) {
            return None;
        }
        let end = entry.at.checked_add(entry.count.checked_mul(size)?)?;
        Some((self.bytes.get(entry.at..end)?, size))
    }

    pub fn one(&self, tag: u16) -> Option<usize> {
        let entry = self.entries.iter().find(|entry| entry.tag == tag)?;
        match (entry.kind, entry.count) {
            (1 | 3 | 4 | 13 | 16, 1..) => self.number(entry.at, width(entry.kind)),
            _ => None,
        }
    }

    /// The bytes of a tag; empty if it is missing or has another type.
    pub fn raw(&self, tag: u16) -> &'a [u8] {
        let entry = self.entries.iter().find(|entry| entry.tag == tag && width(entry.kind) == 1);
        let found =
            entry.and_then(|entry| self.bytes.get(entry.at..entry.at.checked_add(entry.count)?));
        found.unwrap_or(&[])
    }

    /// An unsigned integer of `size` bytes.
    fn number(&self, at: usize, size: usize) -> Option<usize> {
        Some(self.unsigned(self.bytes.get(at..at.checked_add(size)?)?))
    }

    fn unsigned(&self, bytes: &[u8]) -> usize {
        let add = |number, &byte| number << 8 | usize::from(byte);
        if self.big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    }
}

/// The size of a value in bytes.
fn width(kind: u16) -> usize {
    match kind {
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 | 17 | 18 => 8,
        _ => 1,
    }
}
