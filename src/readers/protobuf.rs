//! Protocol buffers, as bytes on the wire: fields by number, without any generated code.

/// What a field holds. Texts, bytes, messages and packed rows are all `Bytes`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
}

/// The fields of a message, in order. Ends at the first that is damaged, which `is_whole` tells.
pub struct Fields<'a> {
    rest: &'a [u8],
    whole: bool,
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message, whole: true }
    }

    /// Whether all that was read so far was sound.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    fn read(&mut self) -> Option<(u64, Field<'a>)> {
        let tag = number(&mut self.rest)?;
        let field = match tag & 7 {
            0 => Field::Number(number(&mut self.rest)?),
            1 => Field::Fixed64(*self.take(8)?.first_chunk()?),
            2 => {
                let bytes = usize::try_from(number(&mut self.rest)?).ok()?;
                Field::Bytes(self.take(bytes)?)
            }
            5 => Field::Fixed32(*self.take(4)?.first_chunk()?),
            // Groups have been deprecated since before any of these formats.
            _ => return None,
        };
        (tag >> 3 != 0).then_some((tag >> 3, field))
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Field<'a>);

    fn next(&mut self) -> Option<(u64, Field<'a>)> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_none() {
            self.whole = false;
            self.rest = &[];
        }
        field
    }
}

/// A number of up to 64 bits, seven to a byte.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Adds the numbers of a repeated field, be they packed or one by one. `None` for a damaged one.
pub fn extend_i32(row: &mut Vec<i32>, field: Field<'_>) -> Option<()> {
    match field {
        // Negative numbers come as 64 bits.
        Field::Number(value) => row.push(value as i32),
        Field::Bytes(mut packed) => {
            while !packed.is_empty() {
                row.push(number(&mut packed)? as i32);
            }
        }
        _ => return None,
    }
    Some(())
}

/// Adds the numbers of a repeated field, be they packed or one by one. `None` for a damaged one.
pub fn extend_f32(row: &mut Vec<f32>, field: Field<'_>) -> Option<()> {
    match field {
        Field::Fixed32(bytes) => row.push(f32::from_le_bytes(bytes)),
        Field::Bytes(packed) => {
            let (values, rest) = packed.as_chunks::<4>();
            row.extend(values.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            rest.is_empty().then_some(())?;
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_kinds_are_read() {
        let message = b"\x08\x96\x01\x12\x02hi\x1d\x00\x00\x80\x3f\x21\x01\0\0\0\0\0\0\0";
        let mut fields = Fields::new(message);
        let all: Vec<_> = fields.by_ref().collect();
        assert_eq!(
            all,
            [
                (1, Field::Number(150)),
                (2, Field::Bytes(b"hi")),
                (3, Field::Fixed32([0, 0, 0x80, 0x3f])),
                (4, Field::Fixed64([1, 0, 0, 0, 0, 0, 0, 0])),
            ]
        );
        assert!(fields.is_whole());
    }

    #[test]
    fn damaged_messages_end_early_and_say_so() {
        for message in [
            &b"\x08"[..],
            b"\x12\x05hi",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x0b",
            b"\x00\x01",
            b"\x1d\x00",
        ] {
            let mut fields = Fields::new(message);
            assert_eq!(fields.by_ref().count(), 0, "{message:?}");
            assert!(!fields.is_whole(), "{message:?}");
        }
    }

    #[test]
    fn rows_are_packed_or_not() {
        let mut row = Vec::new();
        let negative = b"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(extend_i32(&mut row, Field::Bytes(negative)), Some(()));
        assert_eq!(extend_i32(&mut row, Field::Number(7)), Some(()));
        assert_eq!(row, [5, -1, 7]);
        let mut row = Vec::new();
        assert_eq!(extend_f32(&mut row, Field::Bytes(&[0, 0, 0x80, 0x3f])), Some(()));
        assert_eq!(extend_f32(&mut row, Field::Fixed32([0; 4])), Some(()));
        assert_eq!(extend_f32(&mut row, Field::Bytes(&[1])), None);
        assert_eq!(row, [1.0, 0.0]);
    }
}
