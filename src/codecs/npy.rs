//! NumPy's format of arrays: a header, and the elements. Objects, which are stored as pickles, are
//! refused.

use std::ops::Range;

use smallvec::SmallVec;

use crate::value::{DType, Desc, Strides, contiguous_strides, extent, problems};

problems! {
    /// What is wrong with a file.
    #[derive(PartialEq)]
    pub enum NpyFault {
        Empty,
        Magic,
        Version { version: u8 },
        HeaderCutOff,
        HeaderLength { length: usize },
        CutOff { shape: Vec<usize>, bytes: u64, left: u64 },
        Surplus { shape: Vec<usize>, bytes: u64, left: u64 },
        NotText,
        Records,
        Entry { key: String },
        Missing { key: &'static str },
        Type { descr: String },
        Dimensions { ndim: usize },
        TooLarge { shape: Vec<usize> },
        Unexpected { found: String, wanted: String },
        Unterminated,
        Different {
            ndim: usize,
            dtype: &'static str,
            first: String,
            first_ndim: usize,
            first_dtype: &'static str,
        },
    }
}

/// What a file says of its array.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub desc: Desc,
    /// Which axis comes first in memory: the last one, unless it is Fortran's order.
    pub fortran: bool,
    /// The bytes of an element are the other way round.
    pub swapped: bool,
    /// Where the elements begin.
    pub data: u64,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers are a line or two.
const LONGEST: usize = 1 << 20;

/// As many as arrays of NumPy have.
const MOST_AXES: usize = 64;

impl Header {
    /// Where the dictionary lies in a file that begins with these bytes, at least twelve unless
    /// the file has less.
    pub fn dictionary(head: &[u8]) -> Result<Range<usize>, NpyFault> {
        let (start, length) = match head {
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => {
                (10, usize::from(u16::from_le_bytes([*a, *b])))
            }
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, ..] => {
                (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize)
            }
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', version, ..] if head.len() >= 12 => {
                return Err(NpyFault::Version { version: *version });
            }
            [] => return Err(NpyFault::Empty),
            _ if head.starts_with(MAGIC) => return Err(NpyFault::HeaderCutOff),
            _ => return Err(NpyFault::Magic),
        };
        match length <= LONGEST {
            true => Ok(start..start + length),
            false => Err(NpyFault::HeaderLength { length }),
        }
    }

    /// The header of a whole file.
    pub fn of(bytes: &[u8]) -> Result<Header, NpyFault> {
        let dictionary = Header::dictionary(bytes)?;
        let text = bytes.get(dictionary.clone()).ok_or(NpyFault::HeaderCutOff)?;
        Header::parse(text, dictionary.end as u64)
    }

    /// Refuses a file whose array is not all there; `left` bytes follow the header.
    pub fn check_length(&self, left: u64) -> Result<(), NpyFault> {
        let bytes = self.desc.bytes() as u64;
        if bytes > left {
            let shape = self.desc.shape.to_vec();
            return Err(NpyFault::CutOff { shape, bytes, left });
        }
        Ok(())
    }

    /// Parses the dictionary that a header is, as Python writes it.
    pub fn parse(text: &[u8], data: u64) -> Result<Header, NpyFault> {
        let text = std::str::from_utf8(text).map_err(|_| NpyFault::NotText)?;
        let mut rest = Literal(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.take('{')?;
        while !rest.accept('}') {
            let key = rest.text()?;
            rest.take(':')?;
            match key {
                "descr" if rest.peek() == Some('[') => {
                    return Err(NpyFault::Records);
                }
                "descr" => descr = Some(rest.text()?),
                "fortran_order" => fortran = Some(rest.truth()?),
                "shape" => shape = Some(rest.shape()?),
                other => return Err(NpyFault::Entry { key: other.into() }),
            }
            if !rest.accept(',') && rest.peek() != Some('}') {
                return Err(rest.unexpected(",}"));
            }
        }
        let missing = |key| NpyFault::Missing { key };
        let descr = descr.ok_or_else(|| missing("descr"))?;
        let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
        let shape: SmallVec<[usize; 6]> = shape.ok_or_else(|| missing("shape"))?;
        let (order, code) = match descr.chars().next() {
            Some(order @ ('<' | '>' | '|' | '=')) => (order, &descr[1..]),
            _ => ('=', descr),
        };
        let dtype = match code {
            "b1" | "?" => DType::Bool,
            "i1" => DType::I8,
            "i2" => DType::I16,
            "i4" => DType::I32,
            "i8" => DType::I64,
            "u1" => DType::U8,
            "u2" => DType::U16,
            "u4" => DType::U32,
            "u8" => DType::U64,
            "f2" => DType::F16,
            "f4" => DType::F32,
            "f8" => DType::F64,
            _ => {
                return Err(NpyFault::Type { descr: descr.into() });
            }
        };
        if shape.len() > MOST_AXES {
            return Err(NpyFault::Dimensions { ndim: shape.len() });
        }
        // Also where there are no elements: the other axes must be ones that memory could hold.
        let axes: SmallVec<[usize; 6]> = shape.iter().map(|&n| n.max(1)).collect();
        let bytes = extent(&axes).and_then(|n| n.checked_mul(dtype.size()));
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(NpyFault::TooLarge { shape: shape.to_vec() });
        }
        let big = order == '>' || (order == '=' && cfg!(target_endian = "big"));
        let swapped = dtype.size() > 1 && big != cfg!(target_endian = "big");
        Ok(Header { desc: Desc::new(dtype, &shape), fortran, swapped, data })
    }

    pub fn strides(&self) -> Strides {
        let size = self.desc.dtype.size();
        if !self.fortran {
            return contiguous_strides(&self.desc.shape, size);
        }
        let mut step = size as isize;
        let next = |&n: &usize| {
            let here = step;
            step *= n as isize;
            here
        };
        self.desc.shape.iter().map(next).collect()
    }
}

/// The rest of a literal of Python.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn peek(&mut self) -> Option<char> {
        self.0 = self.0.trim_start();
        self.0.chars().next()
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.0 = &self.0[wanted.len_utf8()..];
        }
        found
    }

    fn take(&mut self, wanted: char) -> Result<(), NpyFault> {
        if self.accept(wanted) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    fn unexpected(&mut self, wanted: impl Into<String>) -> NpyFault {
        let found: String = self.0.trim().chars().take(20).collect();
        NpyFault::Unexpected { found, wanted: wanted.into() }
    }

    fn text(&mut self) -> Result<&'a str, NpyFault> {
        let quote = self.peek().filter(|quote| matches!(quote, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.unexpected("text"))?;
        let inner = &self.0[1..];
        let end = inner.find(quote).ok_or(NpyFault::Unterminated)?;
        self.0 = &inner[end + 1..];
        Ok(&inner[..end])
    }

    fn truth(&mut self) -> Result<bool, NpyFault> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("truth"))
    }

    fn shape(&mut self) -> Result<SmallVec<[usize; 6]>, NpyFault> {
        let mut shape = SmallVec::new();
        self.take('(')?;
        while !self.accept(')') {
            self.peek();
            let digits =
                self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let extent = self.0[..digits].parse();
            shape.push(extent.map_err(|_| self.unexpected("extent"))?);
            self.0 = &self.0[digits..];
            // Python 2 wrote long numbers so.
            self.accept('L');
            if !self.accept(',') && self.peek() != Some(')') {
                return Err(self.unexpected(",)"));
            }
        }
        Ok(shape)
    }
}

/// Reverses the bytes of each element.
pub fn swap(bytes: &mut [u8], size: usize) {
    match size {
        2 => swap_each::<2>(bytes),
        4 => swap_each::<4>(bytes),
        _ => swap_each::<8>(bytes),
    }
}

/// Of one size, so that it is done for many elements at once.
fn swap_each<const SIZE: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<SIZE>().0.iter_mut().for_each(|element| element.reverse());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, NpyFault> {
        Header::parse(text.as_bytes(), 0)
    }

    #[test]
    fn headers_are_read_as_python_writes_them() {
        let header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n");
        let expected = Desc::new(DType::F32, &[3, 4]);
        assert_eq!(header, Ok(Header { desc: expected, fortran: false, swapped: false, data: 0 }));
        let header = parse("{\"shape\": (5L,), 'fortran_order':True,'descr':'>i2'}").unwrap();
        assert_eq!(
            (header.fortran, header.swapped, &header.desc.shape[..]),
            (true, true, &[5][..])
        );
        assert_eq!(
            parse("{'descr': '|b1', 'fortran_order': False, 'shape': ()}").unwrap().desc.ndim(),
            0
        );
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for text in [
            "",
            "{",
            "{'descr'",
            "{'descr': '<f4'",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808, 0)}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 9223372036854775807)}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 4294967296, 4294967296)}",
            "{'more': 1, 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
