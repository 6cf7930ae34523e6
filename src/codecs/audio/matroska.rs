//! What Matroska and WebM files say about the end of their audio: how much of the last packet is
//! not meant to be heard.

use super::{Stream, read_at};

/// Limit on the elements that are looked at, for files that consist of nothing else.
const MOST_ELEMENTS: usize = 1 << 20;

const SEGMENT: u32 = 0x1853_8067;
const CLUSTER: u32 = 0x1f43_b675;
const BLOCK_GROUP: u32 = 0xa0;
const DISCARD_PADDING: u32 = 0x75a2;

/// The padding of the last packet that has any, in nanoseconds; 0 if there is none.
pub fn padding(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> u64 {
    let mut found = 0;
    let mut at = 0;
    for _ in 0..MOST_ELEMENTS {
        let Some(element) = Element::read(stream, at, bytes) else { break };
        at = match element.name {
            // Their content is looked at; a size is often unknown.
            SEGMENT | CLUSTER | BLOCK_GROUP => element.start,
            DISCARD_PADDING => {
                found = element.number(stream).unwrap_or(0);
                element.end
            }
            _ => element.end,
        };
    }
    found
}

struct Element {
    name: u32,
    start: u64,
    end: u64,
}

impl Element {
    /// `None` at the end of the file, or if there is none that fits.
    fn read(stream: &mut Box<dyn Stream + '_>, at: u64, bytes: u64) -> Option<Element> {
        let mut head = [0; 12];
        let known = usize::try_from(bytes.checked_sub(at)?).unwrap_or(head.len()).min(head.len());
        read_at(stream, at, &mut head[..known]).ok()?;
        // The number of leading zeros tells the length of a name, and of a size.
        let name_length = head[0].leading_zeros() as usize + 1;
        (name_length <= 4).then_some(())?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let name = u32::try_from(number(&head[..name_length])).ok()?;
        let size_length = head[name_length].leading_zeros() as usize + 1;
        let size = head.get(name_length..name_length + size_length).filter(|_| size_length <= 8)?;
        let ones = (1 << (7 * size_length)) - 1;
        let start = at + (name_length + size_length) as u64;
        let end = match number(size) & ones {
            // Unknown, only of elements that are entered.
            size if size == ones => start,
            size => start.checked_add(size)?,
        };
        (start <= bytes).then_some(Element { name, start, end })
    }

    /// A number that is not negative.
    fn number(&self, stream: &mut Box<dyn Stream + '_>) -> Option<u64> {
        let mut bytes = [0; 8];
        let size =
            usize::try_from(self.end - self.start).ok().filter(|size| (1..=8).contains(size))?;
        read_at(stream, self.start, &mut bytes[8 - size..]).ok()?;
        (bytes[8 - size] < 128).then(|| u64::from_be_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn found(bytes: &[u8]) -> u64 {
        let mut stream: Box<dyn Stream> = Box::new(Cursor::new(bytes));
        padding(&mut stream, bytes.len() as u64)
    }

    #[test]
    fn the_last_padding_counts() {
        let header = b"\x1a\x45\xdf\xa3\x80";
        let segment = b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff";
        let cluster = b"\x1f\x43\xb6\x75\x8f\xa3\x82xx";
        let groups = b"\xa0\x84\x75\xa2\x81\x05\xa0\x85\x75\xa2\x82\x01\x02";
        let file = [&header[..], segment, cluster, groups].concat();
        assert_eq!(found(&file), 258);
        for cut in 0..file.len() {
            found(&file[..cut]);
        }
        assert_eq!(found(&[0; 99]), 0);
        assert_eq!(found(&[0xff; 99]), 0);
    }
}
