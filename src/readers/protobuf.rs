//! Protocol buffers, parsed from the wire format by field number, without generated code.

use smallvec::{Array, SmallVec};

use crate::value::{Cause, Problem, append, problems};

/// The value of a field. Strings, bytes, messages and packed lists are all `Bytes`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
}

problems! {
    /// What is wrong with a message.
    #[derive(Copy, PartialEq)]
    pub enum ProtobufFault {
        FieldType,
        FieldZero,
        TooLong,
        Number,
        NotIntegers,
        NotFloats,
        FloatCutOff,
    }
}

/// Why a message can't be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unparsed {
    Damaged(ProtobufFault),
    Memory { bytes: usize },
}

impl Unparsed {
    /// The fault of a record, made from the problem of its message.
    pub fn cause<P: Into<Problem>>(self, of_record: impl FnOnce(Problem) -> P) -> Cause {
        match self {
            Unparsed::Damaged(fault) => Cause::File { problem: of_record(fault.into()).into() },
            Unparsed::Memory { bytes } => Cause::Memory { bytes },
        }
    }
}

/// Adds to a short list.
pub fn add<A: Array>(row: &mut SmallVec<A>, value: A::Item) -> Result<(), Unparsed> {
    let bytes = size_of_val(&row[..]);
    row.try_reserve(1).map_err(|_| Unparsed::Memory { bytes })?;
    row.push(value);
    Ok(())
}

/// Adds to a list, growing it if necessary.
fn extend<T: Clone>(row: &mut Vec<T>, values: &[T]) -> Result<(), Unparsed> {
    append(row, values).map_err(|_| Unparsed::Memory { bytes: size_of_val(&row[..]) })
}

/// The fields of a message with their numbers, in order, up to the first damaged one.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields(message)
    }

    fn read(&mut self) -> Result<(u64, Field<'a>), Unparsed> {
        let tag = number(&mut self.0)?;
        let field = match tag & 7 {
            0 => Field::Number(number(&mut self.0)?),
            1 => Field::Fixed64(self.fixed()?),
            2 => {
                let bytes = number(&mut self.0)?;
                Field::Bytes(self.take(usize::try_from(bytes).unwrap_or(usize::MAX))?)
            }
            5 => Field::Fixed32(self.fixed()?),
            // Groups; deprecated since before any of these formats.
            _ => return Err(Unparsed::Damaged(ProtobufFault::FieldType)),
        };
        match tag >> 3 {
            0 => Err(Unparsed::Damaged(ProtobufFault::FieldZero)),
            number => Ok((number, field)),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Unparsed> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(TOO_LONG)?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Unparsed> {
        self.take(N)?.first_chunk().copied().ok_or(TOO_LONG)
    }
}

const TOO_LONG: Unparsed = Unparsed::Damaged(ProtobufFault::TooLong);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), Unparsed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// A varint: a number of up to 64 bits, seven per byte.
fn number(bytes: &mut &[u8]) -> Result<u64, Unparsed> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Ok(value);
        }
    }
    Err(Unparsed::Damaged(ProtobufFault::Number))
}

/// Adds the numbers of a repeated field, packed or not. Negative numbers are encoded with 64 bits
/// even in 32-bit fields; `narrow` converts them.
pub fn extend_integers<T: Clone>(
    row: &mut Vec<T>,
    field: Field<'_>,
    narrow: fn(u64) -> T,
) -> Result<(), Unparsed> {
    match field {
        Field::Number(value) => extend(row, &[narrow(value)])?,
        Field::Bytes(mut packed) => {
            // The last byte of every number is below 0x80.
            let count = packed.iter().filter(|&&byte| byte < 0x80).count();
            let bytes = count.saturating_mul(size_of::<T>());
            row.try_reserve(count).map_err(|_| Unparsed::Memory { bytes })?;
            while !packed.is_empty() {
                row.push(narrow(number(&mut packed)?));
            }
        }
        _ => return Err(Unparsed::Damaged(ProtobufFault::NotIntegers)),
    }
    Ok(())
}

/// Adds the numbers of a repeated field, packed or not.
pub fn extend_floats(row: &mut Vec<f32>, field: Field<'_>) -> Result<(), Unparsed> {
    match field {
        Field::Fixed32(bytes) => extend(row, &[f32::from_le_bytes(bytes)])?,
        Field::Bytes(packed) => {
            let (values, []) = packed.as_chunks::<4>() else {
                return Err(Unparsed::Damaged(ProtobufFault::FloatCutOff));
            };
            let bytes = size_of_val(packed);
            row.try_reserve(values.len()).map_err(|_| Unparsed::Memory { bytes })?;
            row.extend(values.iter().map(|&bytes| f32::from_le_bytes(bytes)));
        }
        _ => return Err(Unparsed::Damaged(ProtobufFault::NotFloats)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_kinds_are_read() {
        let message = b"\x08\x96\x01\x12\x02hi\x1d\x00\x00\x80\x3f\x21\x01\0\0\0\0\0\0\0";
        let all: Result<Vec<_>, _> = Fields::new(message).collect();
        assert_eq!(
            all,
            Ok(vec![
                (1, Field::Number(150)),
                (2, Field::Bytes(b"hi")),
                (3, Field::Fixed32([0, 0, 0x80, 0x3f])),
                (4, Field::Fixed64([1, 0, 0, 0, 0, 0, 0, 0])),
            ])
        );
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
            let read: Vec<_> = Fields::new(message).collect();
            assert!(matches!(read[..], [Err(_)]), "{message:?}");
        }
    }

    #[test]
    fn rows_are_packed_or_not() {
        let mut row = Vec::new();
        let negative = b"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(extend_integers(&mut row, Field::Bytes(negative), |n| n as i32), Ok(()));
        assert_eq!(extend_integers(&mut row, Field::Number(7), |n| n as i32), Ok(()));
        assert_eq!(row, [5, -1, 7]);
        let mut row = Vec::new();
        assert_eq!(extend_floats(&mut row, Field::Bytes(&[0, 0, 0x80, 0x3f])), Ok(()));
        assert_eq!(extend_floats(&mut row, Field::Fixed32([0; 4])), Ok(()));
        assert!(extend_floats(&mut row, Field::Bytes(&[1])).is_err());
        assert_eq!(row, [1.0, 0.0]);
    }
}
