//! How the values of a page are encoded.

use std::sync::Arc;

use super::schema::Physical;
use super::{ParquetFault, Result, broken};
use crate::value::{Cause, with_room, zeroed};

/// Where values start and end.
type Spans = Vec<(u32, u32)>;

/// Decoded values of a page or a dictionary.
pub enum Values {
    /// Each of so many bytes.
    Fixed { bytes: Vec<u8>, width: usize },
    /// Start and end of each.
    Bytes { bytes: Vec<u8>, spans: Spans },
    /// Places in a dictionary.
    Coded { dictionary: Arc<Values>, places: Vec<u32> },
}

impl Values {
    /// `None` if there are fewer.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        match self {
            Values::Fixed { bytes, width } => {
                let start = index.checked_mul(*width)?;
                bytes.get(start..start.checked_add(*width)?)
            }
            Values::Bytes { bytes, spans } => {
                let (start, end) = *spans.get(index)?;
                bytes.get(start as usize..end as usize)
            }
            Values::Coded { dictionary, places } => dictionary.get(*places.get(index)? as usize),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Values::Fixed { bytes, width } => bytes.len() / width.max(&1),
            Values::Bytes { spans, .. } => spans.len(),
            Values::Coded { places, .. } => places.len(),
        }
    }

    /// Memory, without that of a dictionary.
    pub fn bytes(&self) -> usize {
        match self {
            Values::Fixed { bytes, .. } => bytes.capacity(),
            Values::Bytes { bytes, spans } => bytes.capacity() + spans.capacity() * 8,
            Values::Coded { places, .. } => places.capacity() * 4,
        }
    }
}

fn damaged() -> Cause {
    broken(ParquetFault::Values)
}

/// Decodes `count` values that begin at `start` of the data of a page, which may be kept.
pub fn decode(
    encoding: i64,
    physical: Physical,
    data: Vec<u8>,
    start: usize,
    count: usize,
    dictionary: Option<&Arc<Values>>,
) -> Result<Values> {
    let rest = data.get(start..).ok_or_else(damaged)?;
    match (encoding, physical) {
        (0, Physical::Bytes) => {
            let spans = plain_spans(&data, start, count)?;
            Ok(Values::Bytes { bytes: data, spans })
        }
        (0, Physical::Fixed(width)) => {
            let length = count.checked_mul(width).ok_or_else(damaged)?;
            let values = rest.get(..length).ok_or_else(damaged)?;
            let mut bytes = with_room(length)?;
            bytes.extend_from_slice(values);
            Ok(Values::Fixed { bytes, width })
        }
        (0, Physical::Boolean) => {
            let packed = rest.get(..count.div_ceil(8)).ok_or_else(damaged)?;
            let mut bytes = with_room(count)?;
            bytes.extend((0..count).map(|place| packed[place / 8] >> (place % 8) & 1));
            Ok(Values::Fixed { bytes, width: 1 })
        }
        (2 | 8, _) => {
            let dictionary = dictionary.ok_or_else(|| broken(ParquetFault::NoDictionary))?;
            let (&width, packed) = rest.split_first().ok_or_else(damaged)?;
            let places = hybrid(packed, u32::from(width), count)?;
            if places.iter().any(|&place| place as usize >= dictionary.len()) {
                return Err(damaged());
            }
            Ok(Values::Coded { dictionary: dictionary.clone(), places })
        }
        (3, Physical::Boolean) => {
            let (_, packed) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
            let bits = hybrid(packed, 1, count)?;
            let mut bytes = with_room(count)?;
            bytes.extend(bits.iter().map(|&bit| bit as u8));
            Ok(Values::Fixed { bytes, width: 1 })
        }
        (5, Physical::Fixed(width @ (4 | 8))) => {
            let (numbers, _) = deltas(rest, count)?;
            let mut bytes = with_room(count.checked_mul(width).ok_or_else(damaged)?)?;
            for number in numbers {
                bytes.extend_from_slice(&number.to_le_bytes()[..width]);
            }
            Ok(Values::Fixed { bytes, width })
        }
        (6, Physical::Bytes) => {
            let (lengths, taken) = deltas(rest, count)?;
            let spans = spans(&lengths, start + taken, data.len())?;
            Ok(Values::Bytes { bytes: data, spans })
        }
        (7, Physical::Bytes) => {
            let (bytes, spans) = shared_prefixes(rest, count)?;
            Ok(Values::Bytes { bytes, spans })
        }
        (7, Physical::Fixed(width)) => {
            let (bytes, spans) = shared_prefixes(rest, count)?;
            match spans.iter().all(|&(start, end)| (end - start) as usize == width) {
                true => Ok(Values::Fixed { bytes, width }),
                false => Err(damaged()),
            }
        }
        (9, Physical::Fixed(width)) => {
            let length = count.checked_mul(width).ok_or_else(damaged)?;
            let streams = rest.get(..length).ok_or_else(damaged)?;
            let mut bytes = zeroed::<u8>(length)?;
            for (place, value) in bytes.chunks_exact_mut(width).enumerate() {
                for (stream, byte) in value.iter_mut().enumerate() {
                    *byte = streams[stream * count + place];
                }
            }
            Ok(Values::Fixed { bytes, width })
        }
        (encoding, _) => Err(broken(ParquetFault::Encoding { encoding })),
    }
}

/// Values with their lengths in front of them.
fn plain_spans(data: &[u8], start: usize, count: usize) -> Result<Spans> {
    // Each takes four bytes at least.
    if count > data.len() / 4 {
        return Err(damaged());
    }
    let mut spans = with_room(count)?;
    let mut at = start;
    for _ in 0..count {
        let head = data.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or_else(damaged)?;
        let (first, length) = (at + 4, u32::from_le_bytes(*head) as usize);
        at = first.checked_add(length).filter(|&end| end <= data.len()).ok_or_else(damaged)?;
        spans.push((first as u32, at as u32));
    }
    Ok(spans)
}

/// Values one after the other, of which the lengths are known.
fn spans(lengths: &[i64], start: usize, end: usize) -> Result<Spans> {
    let mut spans = with_room(lengths.len())?;
    let mut at = start;
    for &length in lengths {
        let length = usize::try_from(length).map_err(|_| damaged())?;
        let next = at.checked_add(length).filter(|&next| next <= end).ok_or_else(damaged)?;
        spans.push((at as u32, next as u32));
        at = next;
    }
    Ok(spans)
}

/// Values as the length of what they share with the one before, and the rest.
fn shared_prefixes(data: &[u8], count: usize) -> Result<(Vec<u8>, Spans)> {
    let (shared, taken) = deltas(data, count)?;
    let rest = &data[taken..];
    let (lengths, taken) = deltas(rest, count)?;
    let suffixes = spans(&lengths, taken, rest.len())?;
    let mut bytes: Vec<u8> = Vec::new();
    let mut found = with_room(count)?;
    let mut before = (0, 0);
    for (&shared, &(start, end)) in shared.iter().zip(&suffixes) {
        let first = bytes.len();
        let shared = usize::try_from(shared).map_err(|_| damaged())?;
        if shared > before.1 - before.0 {
            return Err(damaged());
        }
        let more = shared + (end - start) as usize;
        // Sharing can blow up the data.
        if first + more > LARGEST {
            return Err(broken(ParquetFault::TooLarge { bytes: (first + more) as u64 }));
        }
        bytes.try_reserve(more).map_err(|_| Cause::Memory { bytes: more })?;
        bytes.extend_from_within(before.0..before.0 + shared);
        bytes.extend_from_slice(&rest[start as usize..end as usize]);
        before = (first, bytes.len());
        found.push((first as u32, bytes.len() as u32));
    }
    Ok((bytes, found))
}

/// The most that a page with shared prefixes may have.
const LARGEST: usize = 1 << 30;

/// A number of varying length, and how many bytes it takes.
fn varint(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or_else(damaged)?;
        *at += 1;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(damaged())
}

/// `width` bits at a bit position; bits beyond the end are 0.
fn bits(bytes: &[u8], at: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (first, shift) = (at / 8, at % 8);
    let mut word = [0; 16];
    let rest = bytes.get(first..).unwrap_or_default();
    let count = rest.len().min(9);
    word[..count].copy_from_slice(&rest[..count]);
    let value = u128::from_le_bytes(word) >> shift;
    value as u64 & (u64::MAX >> (64 - width))
}

/// Runs of equal numbers, and packed numbers, in turns.
pub fn hybrid(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>> {
    if width > 32 {
        return Err(damaged());
    }
    let mut found = with_room(count)?;
    let mut at = 0;
    while found.len() < count {
        let missing = count - found.len();
        let head = varint(bytes, &mut at)?;
        if head & 1 == 1 {
            let groups = usize::try_from(head >> 1).map_err(|_| damaged())?;
            let length = groups.checked_mul(width as usize).ok_or_else(damaged)?;
            let values = groups.saturating_mul(8).min(missing);
            // The last group may be cut off where its values are not needed.
            let needed = (values * width as usize).div_ceil(8);
            let packed = bytes.get(at..).unwrap_or_default();
            if needed > packed.len() || values == 0 {
                return Err(damaged());
            }
            let packed = &packed[..needed];
            found.extend((0..values).map(|i| bits(packed, i * width as usize, width) as u32));
            at = at.saturating_add(length);
        } else {
            let length = usize::try_from(head >> 1).unwrap_or(usize::MAX).min(missing);
            let size = width.div_ceil(8) as usize;
            let value = at.checked_add(size).and_then(|end| bytes.get(at..end));
            let mut word = [0; 4];
            word[..size].copy_from_slice(value.ok_or_else(damaged)?);
            at += size;
            if length == 0 {
                return Err(damaged());
            }
            found.resize(found.len() + length, u32::from_le_bytes(word));
        }
    }
    Ok(found)
}

/// Differences in packed blocks; also returns how many bytes they take.
fn deltas(bytes: &[u8], count: usize) -> Result<(Vec<i64>, usize)> {
    let mut at = 0;
    let signed = |value: u64| (value >> 1) as i64 ^ -((value & 1) as i64);
    let block = varint(bytes, &mut at)? as usize;
    let minis = varint(bytes, &mut at)? as usize;
    let total = varint(bytes, &mut at)?;
    let mut value = signed(varint(bytes, &mut at)?);
    let regular = (1..=1 << 16).contains(&block) && (1..=512).contains(&minis);
    if !regular
        || !block.is_multiple_of(minis)
        || !(block / minis).is_multiple_of(8)
        || total != count as u64
    {
        return Err(damaged());
    }
    let each = block / minis;
    let mut found = with_room(count)?;
    if count > 0 {
        found.push(value);
    }
    while found.len() < count {
        let least = signed(varint(bytes, &mut at)?);
        let widths = at.checked_add(minis).and_then(|end| bytes.get(at..end));
        let widths = widths.ok_or_else(damaged)?;
        at += minis;
        for &width in widths {
            if found.len() == count {
                break;
            }
            if width > 64 {
                return Err(damaged());
            }
            let length = each / 8 * usize::from(width);
            let packed = bytes.get(at..).unwrap_or_default();
            let packed = packed.get(..length).ok_or_else(damaged)?;
            at += length;
            for place in 0..each.min(count - found.len()) {
                let delta = bits(packed, place * usize::from(width), u32::from(width));
                value = value.wrapping_add(least).wrapping_add(delta as i64);
                found.push(value);
            }
        }
    }
    Ok((found, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_numbers_alternate() {
        // Ten times 4, then 0 to 7 packed with 3 bits.
        let bytes = [20, 4, 0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let expected: Vec<u32> = [4; 10].into_iter().chain(0..8).collect();
        assert_eq!(hybrid(&bytes, 3, 18).unwrap(), expected);
        assert_eq!(hybrid(&bytes, 3, 12).unwrap(), &expected[..12]);
        assert!(hybrid(&bytes, 3, 19).is_err() && hybrid(&bytes, 33, 1).is_err());
        assert_eq!(hybrid(&[u8::MAX - 1, 1], 0, 7).unwrap(), [0; 7]);
    }

    #[test]
    fn differences_are_added_up() {
        // 1, 2, 3, 4, 5: blocks of 128 in four parts, all differences 1.
        let bytes = [128, 1, 4, 5, 2, 2, 0, 0, 0, 0];
        assert_eq!(deltas(&bytes, 5).unwrap(), (vec![1, 2, 3, 4, 5], 10));
        assert!(deltas(&bytes, 6).is_err() && deltas(&bytes[..7], 5).is_err());
    }
}
