//! What a file says about itself in front of its frames.

use super::bytes::Bytes;
use crate::codecs::audio::{AudioFault, Result, broken, truncated};

/// The audio as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    pub rate: u32,
    pub channels: usize,
    /// Bits of a sample, from 4 to 32.
    pub bits: u32,
    /// Samples of a channel, if known.
    pub samples: Option<u64>,
    /// Samples of a channel in each frame but the last, if it is always the same number.
    pub block: Option<u64>,
}

/// The size of the block with the information.
const SIZE: usize = 34;

impl Info {
    pub fn read(block: &[u8]) -> Result<Info> {
        let damaged = || broken(AudioFault::Field { name: "STREAMINFO" });
        let bytes = block.first_chunk::<SIZE>().ok_or_else(damaged)?;
        let [least, most] = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]].map(u16::from_be_bytes);
        // After the sizes of frames: 20 bits, 3, 5 and 36.
        let packed = bytes[10..18].iter().fold(0, |packed, byte| packed << 8 | u64::from(*byte));
        let (rate, channels) = ((packed >> 44) as u32, (packed >> 41 & 7) as usize + 1);
        let bits = (packed >> 36 & 31) as u32 + 1;
        let samples = Some(packed & ((1 << 36) - 1)).filter(|samples| *samples > 0);
        if rate == 0 {
            return Err(broken(AudioFault::Claims { channels, rate }));
        }
        if bits < 4 {
            return Err(damaged());
        }
        let block = Some(most.into()).filter(|block| least == most && *block > 0);
        Ok(Info { rate, channels, bits, samples, block })
    }
}

/// A frame's first sample, and its offset from the first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub sample: u64,
    pub offset: u64,
}

/// Reads the information, the points to seek to, and where the first frame is.
pub fn read(bytes: &mut Bytes<'_>) -> Result<(Info, Vec<Point>, u64)> {
    let (mut info, mut points) = (None, Vec::new());
    // After the magic number.
    let mut at = 4;
    loop {
        let head = bytes.get(at, 4)?.first_chunk::<4>();
        let [kind, size @ ..] = *head.ok_or_else(|| truncated(AudioFault::EndsEarly))?;
        let size = size.iter().fold(0, |size, byte| size << 8 | usize::from(*byte));
        at += 4;
        let end = at + size as u64;
        if end > bytes.length() {
            return Err(truncated(AudioFault::EndsEarly));
        }
        match kind & 127 {
            0 if info.is_some() => return Err(broken(AudioFault::Field { name: "STREAMINFO" })),
            0 => info = Some(Info::read(first(bytes.get(at, size.min(SIZE))?, size))?),
            3 => points = points_of(first(bytes.get(at, size)?, size)),
            127 => return Err(broken(AudioFault::Field { name: "METADATA_BLOCK_HEADER" })),
            _ => {}
        }
        at = end;
        if kind >> 7 == 1 {
            break;
        }
    }
    let info = info.ok_or_else(|| broken(AudioFault::Field { name: "STREAMINFO" }))?;
    Ok((info, points, at))
}

fn first(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[..bytes.len().min(most)]
}

/// A table of two numbers of 64 bits and one of 16. Points that are not used have all bits set.
fn points_of(table: &[u8]) -> Vec<Point> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let point =
        |bytes: &[u8; 18]| Point { sample: number(&bytes[..8]), offset: number(&bytes[8..16]) };
    let points = table.as_chunks::<18>().0.iter().map(point);
    points.filter(|point| point.sample != u64::MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_lengths_share_their_bytes() {
        let mut block = [0; SIZE];
        block[..4].copy_from_slice(&[0x10, 0, 0x10, 0]);
        block[10..18].copy_from_slice(&[0x0a, 0xc4, 0x42, 0xf3, 0x12, 0x34, 0x56, 0x78]);
        let expected = Info {
            rate: 44_100,
            channels: 2,
            bits: 16,
            samples: Some(0x3_1234_5678),
            block: Some(4096),
        };
        assert_eq!(Info::read(&block).ok(), Some(expected));
        block[0] = 8;
        assert_eq!(Info::read(&block).ok().and_then(|info| info.block), None);
        assert!(Info::read(&block[1..]).is_err());
        block[10..13].copy_from_slice(&[0, 0, 2]);
        assert!(Info::read(&block).is_err());
    }

    #[test]
    fn unused_points_are_left_out() {
        let mut table = vec![0xff; 18 * 2 + 5];
        table[..18].copy_from_slice(&[0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x10, 0]);
        assert_eq!(points_of(&table), [Point { sample: 256, offset: 9 }]);
    }
}
