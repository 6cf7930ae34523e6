//! FlatBuffers, in which Arrow's metadata is written: tables with fields at offsets.

/// Reads tables. Nothing in there is believed: what is out of bounds is `None`.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A vector of tables or structures.
#[derive(Clone, Copy)]
pub struct Vector<'a> {
    bytes: &'a [u8],
    at: usize,
    pub len: usize,
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl<'a> Table<'a> {
    /// The table that a buffer holds.
    pub fn root(bytes: &'a [u8]) -> Option<Table<'a>> {
        Table { bytes, at: 0 }.follow(0)
    }

    fn follow(self, at: usize) -> Option<Table<'a>> {
        let offset = u32::from_le_bytes(chunk(self.bytes, at)?) as usize;
        let at = at.checked_add(offset).filter(|&at| at < self.bytes.len())?;
        Some(Table { bytes: self.bytes, at })
    }

    /// Where a field is, if the table has it.
    fn field(self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(chunk(self.bytes, self.at)?);
        let table = usize::try_from(self.at as i64 - i64::from(back)).ok()?;
        let length = usize::from(u16::from_le_bytes(chunk(self.bytes, table)?));
        let entry = 4 + 2 * number;
        if entry + 2 > length {
            return None;
        }
        match u16::from_le_bytes(chunk(self.bytes, table.checked_add(entry)?)?) {
            0 => None,
            offset => self.at.checked_add(usize::from(offset)),
        }
    }

    pub fn byte(self, number: usize) -> Option<u8> {
        self.bytes.get(self.field(number)?).copied()
    }

    pub fn short(self, number: usize) -> Option<i16> {
        Some(i16::from_le_bytes(chunk(self.bytes, self.field(number)?)?))
    }

    pub fn int(self, number: usize) -> Option<i32> {
        Some(i32::from_le_bytes(chunk(self.bytes, self.field(number)?)?))
    }

    pub fn long(self, number: usize) -> Option<i64> {
        Some(i64::from_le_bytes(chunk(self.bytes, self.field(number)?)?))
    }

    pub fn table(self, number: usize) -> Option<Table<'a>> {
        self.follow(self.field(number)?)
    }

    pub fn text(self, number: usize) -> Option<&'a [u8]> {
        let at = self.table(number)?.at;
        let length = u32::from_le_bytes(chunk(self.bytes, at)?) as usize;
        self.bytes.get(at + 4..)?.get(..length)
    }

    /// A vector whose items take `size` bytes each.
    pub fn vector(self, number: usize, size: usize) -> Option<Vector<'a>> {
        let at = self.table(number)?.at;
        let len = u32::from_le_bytes(chunk(self.bytes, at)?) as usize;
        let room = self.bytes.len().checked_sub(at + 4)?;
        (len.checked_mul(size)? <= room).then_some(Vector { bytes: self.bytes, at: at + 4, len })
    }
}

impl<'a> Vector<'a> {
    pub fn table(self, index: usize) -> Option<Table<'a>> {
        if index >= self.len {
            return None;
        }
        Table { bytes: self.bytes, at: 0 }.follow(self.at + 4 * index)
    }

    /// An item that is two 64-bit numbers.
    pub fn pair(self, index: usize) -> Option<(i64, i64)> {
        if index >= self.len {
            return None;
        }
        let at = self.at + 16 * index;
        let number = |at| Some(i64::from_le_bytes(chunk(self.bytes, at)?));
        Some((number(at)?, number(at + 8)?))
    }

    pub fn long(self, index: usize) -> Option<i64> {
        if index >= self.len {
            return None;
        }
        Some(i64::from_le_bytes(chunk(self.bytes, self.at + 8 * index)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_nothing_is_believed() {
        // A table of one 32-bit field, 7: its offset, the table of offsets, the table itself.
        let mut bytes = vec![10, 0, 0, 0, 6, 0, 8, 0, 4, 0, 6, 0, 0, 0, 7, 0, 0, 0];
        let root = Table::root(&bytes).unwrap();
        assert_eq!((root.int(0), root.int(1)), (Some(7), None));
        for place in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let before = std::mem::replace(&mut bytes[place], value);
                if let Some(root) = Table::root(&bytes) {
                    let _ = (root.long(0), root.text(0), root.vector(0, 16), root.table(0));
                    let vector = root.vector(0, 4);
                    let _ = vector.map(|v| (v.table(0), v.pair(0), v.long(9)));
                }
                bytes[place] = before;
            }
        }
    }
}
