//! Thrift's compact protocol, in which Parquet's metadata is written.

use super::ParquetFault;
use crate::value::{Cause, append};

/// How deep structures may be nested.
const MOST_DEPTH: usize = 24;

/// Kinds of values.
pub const STRUCT: u8 = 12;
const TRUE: u8 = 1;
const FALSE: u8 = 2;

pub enum Unparsed {
    /// The bytes end in the middle.
    Ends,
    Damaged,
    Cause(Cause),
}

impl From<Cause> for Unparsed {
    fn from(cause: Cause) -> Unparsed {
        Unparsed::Cause(cause)
    }
}

impl Unparsed {
    pub fn cause(self) -> Cause {
        match self {
            Unparsed::Cause(cause) => cause,
            Unparsed::Ends | Unparsed::Damaged => super::broken(ParquetFault::Thrift),
        }
    }
}

pub type Parsed<T> = Result<T, Unparsed>;

pub struct Thrift<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Thrift<'a> {
    pub fn new(bytes: &'a [u8]) -> Thrift<'a> {
        Thrift { bytes, at: 0 }
    }

    fn byte(&mut self) -> Parsed<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Unparsed::Ends)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Parsed<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Unparsed::Damaged)
    }

    pub fn integer(&mut self) -> Parsed<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub fn small(&mut self) -> Parsed<i8> {
        Ok(self.byte()? as i8)
    }

    /// A count or a size.
    pub fn size(&mut self) -> Parsed<u64> {
        u64::try_from(self.integer()?).map_err(|_| Unparsed::Damaged)
    }

    pub fn bytes(&mut self) -> Parsed<&'a [u8]> {
        let length = usize::try_from(self.varint()?).map_err(|_| Unparsed::Damaged)?;
        let end = self.at.checked_add(length).ok_or(Unparsed::Damaged)?;
        let found = self.bytes.get(self.at..end).ok_or(Unparsed::Ends)?;
        self.at = end;
        Ok(found)
    }

    pub fn text(&mut self) -> Parsed<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// Calls `each` for the fields of a structure, with their number and kind; it returns whether
    /// it has read the value.
    pub fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i16, u8) -> Parsed<bool>,
    ) -> Parsed<()> {
        let mut last = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let (delta, kind) = (i16::from(head >> 4), head & 15);
            let number = match delta {
                0 => i16::try_from(self.integer()?).map_err(|_| Unparsed::Damaged)?,
                _ => last.checked_add(delta).ok_or(Unparsed::Damaged)?,
            };
            last = number;
            if !each(self, number, kind)? {
                self.skip(kind, 0)?;
            }
        }
    }

    /// The value of a field that is a truth; its kind has it.
    pub fn truth(kind: u8) -> bool {
        kind == TRUE
    }

    /// The items of a list of structures, each read by `item`.
    pub fn list<T: Clone>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let (count, _) = self.list_head()?;
        let mut items = Vec::new();
        for _ in 0..count {
            append(&mut items, &[item(self)?])?;
        }
        Ok(items)
    }

    fn list_head(&mut self) -> Parsed<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        // Every item takes a byte at least.
        match count <= (self.bytes.len() - self.at) as u64 {
            true => Ok((count, head & 15)),
            false => Err(Unparsed::Ends),
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        if depth > MOST_DEPTH {
            return Err(Unparsed::Damaged);
        }
        match kind {
            TRUE | FALSE => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => {
                let end = self.at + 8;
                if end > self.bytes.len() {
                    return Err(Unparsed::Ends);
                }
                self.at = end;
            }
            8 => drop(self.bytes()?),
            9 | 10 => {
                let (count, kind) = self.list_head()?;
                for _ in 0..count {
                    self.skip_item(kind, depth)?;
                }
            }
            11 => {
                let count = self.varint()?;
                if count > 0 {
                    let kinds = self.byte()?;
                    for _ in 0..count {
                        self.skip_item(kinds >> 4, depth)?;
                        self.skip_item(kinds & 15, depth)?;
                    }
                }
            }
            STRUCT => loop {
                let head = self.byte()?;
                if head == 0 {
                    break;
                }
                if head >> 4 == 0 {
                    self.varint()?;
                }
                self.skip(head & 15, depth + 1)?;
            },
            _ => return Err(Unparsed::Damaged),
        }
        Ok(())
    }

    /// As an item, a truth takes a byte.
    fn skip_item(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        match kind {
            TRUE | FALSE => self.byte().map(drop),
            _ => self.skip(kind, depth + 1),
        }
    }
}
