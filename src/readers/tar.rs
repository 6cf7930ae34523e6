//! Tar archives: the files in them, and their positions.

use super::ranges::{Opened, Result, broken, compressed, shown, whole};
use crate::value::problems;

problems! {
    /// What is wrong with an archive.
    pub enum TarFault {
        TooShort { bytes: u64 },
        Checksum { at: u64 },
        Size { at: u64 },
        LargeHeader { at: u64 },
        Extended { at: u64 },
        Header { at: u64 },
        CutOff { name: String, size: u64, start: u64, end: u64 },
        PartOfFile { name: String },
        Sparse { name: String },
    }
}

pub const BLOCK: u64 = 512;

/// Limit on headers that only add to the next member's, since they are read into memory.
const LARGEST_NOTE: u64 = 1 << 20;

/// What preceding headers add to the next member.
#[derive(Default)]
struct Notes {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: bool,
}

/// Calls `visit` with the name, offset and size of each regular file.
pub fn for_each_file(
    file: &Opened,
    mut visit: impl FnMut(&[u8], u64, u64) -> Result<()>,
) -> Result<()> {
    let mut notes = Notes::default();
    let mut at = 0;
    while file.size - at >= BLOCK {
        let mut header = [0; BLOCK as usize];
        file.read(at, &mut header)?;
        if header.iter().all(|&byte| byte == 0) {
            return Ok(());
        }

        if !is_sound(&header) {
            if let Some(cause) = compressed(&header).filter(|_| at == 0) {
                return Err(cause);
            }
            return Err(broken(TarFault::Checksum { at }));
        }
        let kind = header[156];
        let size = number(&header[124..136]).ok_or_else(|| broken(TarFault::Size { at }))?;
        let size = match kind {
            b'x' | b'g' | b'L' | b'K' => size,
            // Links, devices and folders have no data, whatever their size field says.
            b'1'..=b'6' => 0,
            _ => notes.size.unwrap_or(size),
        };
        let start = at + BLOCK;
        if size > file.size - start {
            let (name, end) = (shown(&name(&header, notes.name.take())), file.size);
            return Err(broken(TarFault::CutOff { name, size, start, end }));
        }
        let note = || {
            if size > LARGEST_NOTE {
                return Err(broken(TarFault::LargeHeader { at }));
            }
            let mut bytes = vec![0; size as usize];
            file.read(start, &mut bytes)?;
            Ok(bytes)
        };
        match kind {
            b'L' => {
                let text = note()?;
                let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
                notes.name = Some(text[..end].to_vec());
            }
            b'x' => {
                take_notes(&note()?, &mut notes).ok_or_else(|| broken(TarFault::Extended { at }))?
            }
            b'g' | b'K' => {}
            _ => {
                let added = std::mem::take(&mut notes);
                let name = name(&header, added.name);
                if added.sparse || kind == b'S' || kind == b'M' {
                    let name = shown(&name);
                    return Err(broken(match kind {
                        b'M' => TarFault::PartOfFile { name },
                        _ => TarFault::Sparse { name },
                    }));
                }
                if matches!(kind, b'0' | 0 | b'7') && !name.ends_with(b"/") {
                    visit(&name, start, size)?;
                }
            }
        }
        // The last block of an archive may be incomplete.
        at = (start + size.next_multiple_of(BLOCK)).min(file.size);
    }
    match at {
        0 => {
            let mut head = vec![0; file.size as usize];
            file.read(0, &mut head)?;
            let other = || broken(TarFault::TooShort { bytes: file.size });
            Err(compressed(&head).unwrap_or_else(other))
        }
        _ if at < file.size => Err(broken(TarFault::Header { at })),
        _ => Ok(()),
    }
}

fn is_sound(header: &[u8; BLOCK as usize]) -> bool {
    let Some(expected) = number(&header[148..156]) else { return false };
    let counted = |index: usize, byte: u8| if (148..156).contains(&index) { b' ' } else { byte };
    let bytes = || header.iter().enumerate().map(|(index, &byte)| counted(index, byte));
    // Some old programs summed signed bytes.
    let (unsigned, signed): (i64, i64) =
        bytes().fold((0, 0), |(u, s), byte| (u + i64::from(byte), s + i64::from(byte as i8)));
    i64::try_from(expected).is_ok_and(|expected| expected == unsigned || expected == signed)
}

/// A number in octal digits, or, if large, in binary.
fn number(field: &[u8]) -> Option<u64> {
    if let [first @ 0x80..=0xFF, rest @ ..] = field {
        let first = u64::from(first & 0x7F);
        return rest.iter().try_fold(first, |number, &byte| {
            number.checked_mul(256).map(|number| number | u64::from(byte))
        });
    }
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    let digits = field[..end].trim_ascii();
    digits.iter().try_fold(0_u64, |number, &byte| match byte {
        b'0'..=b'7' => number.checked_mul(8).map(|number| number | u64::from(byte - b'0')),
        _ => None,
    })
}

fn name(header: &[u8; BLOCK as usize], long: Option<Vec<u8>>) -> Vec<u8> {
    let text = |field: &'_ [u8]| {
        let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
        field[..end].to_vec()
    };
    long.unwrap_or_else(|| {
        let name = text(&header[..100]);
        let prefix = if &header[257..263] == b"ustar\0" { text(&header[345..500]) } else { vec![] };
        if prefix.is_empty() { name } else { [prefix, name].join(&b'/') }
    })
}

/// Reads pax records: each is its length, a space, `key=value` and a line feed.
fn take_notes(mut text: &[u8], notes: &mut Notes) -> Option<()> {
    while !text.is_empty() && text[0] != 0 {
        let space = text.iter().position(|&byte| byte == b' ')?;
        let length = usize::try_from(whole(&text[..space])?).ok()?;
        let line = text.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = line.iter().position(|&byte| byte == b'=')?;
        let (key, value) = (&line[..equals], &line[equals + 1..]);
        match key {
            b"path" => notes.name = Some(value.to_vec()),
            b"size" => notes.size = Some(whole(value)?),
            key if key.starts_with(b"GNU.sparse.") => notes.sparse = true,
            _ => {}
        }
        text = &text[length..];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_bytes() {
        assert_eq!(number(b"00000000017\0"), Some(15));
        assert_eq!(number(b"     17 \0   "), Some(15));
        assert_eq!(number(b"\0\0\0\0"), Some(0));
        assert_eq!(number(b"0000008\0"), None);
        assert_eq!(number(b"\x80\0\0\x01\0"), Some(256));
        assert_eq!(number(&[0xFF; 12]), None);
    }

    #[test]
    fn notes_are_keys_and_values() {
        let parsed = |text: &[u8]| {
            let mut notes = Notes::default();
            take_notes(text, &mut notes).map(|()| (notes.name, notes.size, notes.sparse))
        };
        let text = b"12 path=a b\n10 size=7\n";
        assert_eq!(parsed(text), Some((Some(b"a b".to_vec()), Some(7), false)));
        assert_eq!(parsed(b"22 GNU.sparse.major=1\n"), Some((None, None, true)));
        for wrong in ["x", "5", "3 a\n", "99 path=a\n", "0 path=a\n", "9 size=x\n", "1 \n", "2 \n"]
        {
            assert_eq!(parsed(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
