//! Frames: a header, the channels, a checksum.

use super::bits::Bits;
use super::checksum::{crc8, crc16};
use super::{Flaw, Info, Outcome, subframe};
use crate::codecs::audio::Pcm;
use crate::kernels::numeric::isa::vectorized;

/// How the channels are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channels {
    Single(usize),
    LeftSide,
    SideRight,
    MidSide,
}

impl Channels {
    fn count(self) -> usize {
        match self {
            Channels::Single(count) => count,
            _ => 2,
        }
    }
}

/// Where a frame belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of frames that are all of a size.
    Number(u64),
    /// In samples of a channel.
    Sample(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub place: Place,
    /// The number of samples of a channel.
    pub samples: usize,
    channels: Channels,
    /// Bits of a sample.
    bits: u32,
    /// Its own size in bytes.
    size: usize,
}

impl Header {
    /// The header at the start of some bytes.
    pub fn read(bytes: &[u8], info: &Info) -> Outcome<Header> {
        let (first, rest) = bytes.split_first_chunk::<4>().ok_or(Flaw::Ends)?;
        let [0xff, sync @ (0xf8 | 0xf9), sizes, kinds] = *first else {
            return Err(Flaw::Invalid);
        };
        let (number, length) = long_number(rest)?;
        let place = match sync {
            0xf8 => Place::Number(number),
            _ => Place::Sample(number),
        };
        let mut size = 4 + length;
        let mut after = |bytes_of_number: usize| {
            let number = bytes.get(size..size + bytes_of_number).ok_or(Flaw::Ends)?;
            size += bytes_of_number;
            Ok(number.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
        };
        let samples = match sizes >> 4 {
            0 => return Err(Flaw::Invalid),
            1 => 192,
            code @ 2..=5 => 144 << code,
            6 => after(1)? + 1,
            7 => after(2)? + 1,
            code => 1 << code,
        };
        let rate = match sizes & 15 {
            0 => info.rate,
            12 => after(1)? * 1000,
            13 => after(2)?,
            14 => after(2)? * 10,
            15 => return Err(Flaw::Invalid),
            code => {
                const RATES: [u32; 11] = [
                    88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000,
                    96_000,
                ];
                RATES[usize::from(code) - 1]
            }
        };
        let channels = match kinds >> 4 {
            8 => Channels::LeftSide,
            9 => Channels::SideRight,
            10 => Channels::MidSide,
            code @ 0..8 => Channels::Single(usize::from(code) + 1),
            _ => return Err(Flaw::Invalid),
        };
        let bits = match kinds >> 1 & 7 {
            0 => info.bits,
            3 => return Err(Flaw::Invalid),
            code => [8, 12, 0, 16, 20, 24, 32][usize::from(code) - 1],
        };
        // A block of 65,536 would be one more than what headers of files can say.
        if kinds & 1 != 0 || samples > 65_535 {
            return Err(Flaw::Invalid);
        }
        let checksum = *bytes.get(size).ok_or(Flaw::Ends)?;
        if crc8(&bytes[..size]) != checksum && !cfg!(fuzzing) {
            return Err(Flaw::Checksum);
        }
        if (rate, channels.count()) != (info.rate, info.channels) {
            return Err(Flaw::Changes);
        }
        Ok(Header { place, samples: samples as usize, channels, bits, size: size + 1 })
    }
}

/// A number in the manner of UTF-8, in up to seven bytes, and how many they are.
fn long_number(bytes: &[u8]) -> Outcome<(u64, usize)> {
    let first = *bytes.first().ok_or(Flaw::Ends)?;
    let length = match first.leading_ones() as usize {
        0 => return Ok((first.into(), 1)),
        1 | 8 => return Err(Flaw::Invalid),
        length => length,
    };
    let mut number = u64::from(first) & (0x7f >> length);
    for byte in bytes.get(1..length).ok_or(Flaw::Ends)? {
        if byte >> 6 != 2 {
            return Err(Flaw::Invalid);
        }
        number = number << 6 | u64::from(byte & 63);
    }
    Ok((number, length))
}

/// Decodes frames one by one, and holds the last one.
#[derive(Debug)]
pub struct Decoder {
    info: Info,
    /// Channel by channel.
    samples: Vec<i32>,
    /// The difference of channels of 32 bits has 33.
    side: Vec<i64>,
    length: usize,
    bits: u32,
}

impl Decoder {
    pub fn new(info: Info) -> Decoder {
        Decoder { info, samples: Vec::new(), side: Vec::new(), length: 0, bits: info.bits }
    }

    /// Decodes the frame at the start of some bytes, and returns its header and its size.
    pub fn decode(&mut self, bytes: &[u8]) -> Outcome<(Header, usize)> {
        self.length = 0;
        let header = Header::read(bytes, &self.info)?;
        let mut bits = Bits::new(&bytes[header.size..]);
        self.decode_channels(&header, &mut bits)?;
        let size = header.size + bits.bytes();
        let (frame, rest) = bytes.split_at(size);
        let checksum = rest.first_chunk().ok_or(Flaw::Ends)?;
        if crc16(frame) != u16::from_be_bytes(*checksum) && !cfg!(fuzzing) {
            return Err(Flaw::Checksum);
        }
        (self.length, self.bits) = (header.samples, header.bits);
        Ok((header, size + 2))
    }

    fn decode_channels(&mut self, header: &Header, bits: &mut Bits<'_>) -> Outcome<()> {
        let Header { samples, channels, bits: size, .. } = *header;
        let needed = samples * channels.count();
        if self.samples.len() < needed {
            // At most 65,535 of eight channels.
            self.samples.resize(needed, 0);
        }
        let mut planes = self.samples.chunks_exact_mut(samples);
        if let Channels::Single(count) = channels {
            for plane in planes.by_ref().take(count) {
                subframe::read(bits, size, plane)?;
            }
            return Ok(());
        }
        let (Some(first), Some(second)) = (planes.next(), planes.next()) else {
            return Err(Flaw::Invalid);
        };
        if size < 32 {
            let more = |is_side: bool| size + u32::from(is_side);
            subframe::read(bits, more(channels == Channels::SideRight), first)?;
            subframe::read(bits, more(channels != Channels::SideRight), second)?;
            match channels {
                Channels::LeftSide => {
                    join(first, second, |left, side| [left, left.wrapping_sub(side)])
                }
                Channels::SideRight => {
                    join(first, second, |side, right| [side.wrapping_add(right), right]);
                }
                _ => join(first, second, |mid, side| of_middle(mid, side >> 1, side & 1)),
            }
            return Ok(());
        }
        self.side.resize(samples, 0);
        if channels == Channels::SideRight {
            subframe::read(bits, size + 1, &mut self.side)?;
            subframe::read(bits, size, second)?;
            for ((left, &right), &side) in first.iter_mut().zip(&*second).zip(&self.side) {
                *left = right.wrapping_add(side as i32);
            }
            return Ok(());
        }
        subframe::read(bits, size, first)?;
        subframe::read(bits, size + 1, &mut self.side)?;
        for ((first, second), &side) in first.iter_mut().zip(second).zip(&self.side) {
            [*first, *second] = match channels {
                Channels::LeftSide => [*first, first.wrapping_sub(side as i32)],
                _ => of_middle(*first, (side >> 1) as i32, (side & 1) as i32),
            };
        }
        Ok(())
    }

    /// The number of samples of a channel.
    pub fn frames(&self) -> usize {
        self.length
    }

    pub fn channels(&self) -> usize {
        self.info.channels
    }

    /// Copies some of the samples, interleaved. There is room for all of them.
    pub fn copy_to<T: Pcm>(&self, first: usize, last: usize, to: &mut [T]) {
        // To all 32 bits. Frames have at least 4.
        let shift = 32 - self.bits;
        let sample = |sample: i32| T::from_full(sample << shift);
        let plane = |channel: usize| {
            let plane = self.samples.get(channel * self.length..(channel + 1) * self.length);
            plane.and_then(|plane| plane.get(first..last)).unwrap_or_default()
        };
        match self.info.channels {
            1 => vectorized!({
                for (to, from) in to.iter_mut().zip(plane(0)) {
                    *to = sample(*from);
                }
            }),
            2 => vectorized!({
                for ((to, left), right) in
                    to.as_chunks_mut().0.iter_mut().zip(plane(0)).zip(plane(1))
                {
                    *to = [sample(*left), sample(*right)];
                }
            }),
            channels => {
                for channel in 0..channels {
                    let places = to.iter_mut().skip(channel).step_by(channels);
                    for (to, from) in places.zip(plane(channel)) {
                        *to = sample(*from);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn join(first: &mut [i32], second: &mut [i32], with: impl Fn(i32, i32) -> [i32; 2]) {
    for (first, second) in first.iter_mut().zip(second) {
        [*first, *second] = with(*first, *second);
    }
}

/// Left and right of their mean, rounded down, and their difference.
#[inline(always)]
fn of_middle(mid: i32, half_side: i32, odd: i32) -> [i32; 2] {
    [mid.wrapping_add(half_side).wrapping_add(odd), mid.wrapping_sub(half_side)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_like_utf8() {
        for text in ["\0", "a", "\u{7f}", "\u{80}", "é", "€", "\u{ffff}", "😀"] {
            let number = text.chars().next().map(u64::from).unwrap_or_default();
            assert_eq!(long_number(text.as_bytes()).ok(), Some((number, text.len())));
        }
        let most = [0xfe, 0xbf, 0xbf, 0xbf, 0xbf, 0xbf, 0xbf];
        assert_eq!(long_number(&most).ok(), Some(((1 << 36) - 1, 7)));
        for bytes in [&[0x80][..], &[0xff], &[0xc3, 0x29]] {
            assert!(matches!(long_number(bytes), Err(Flaw::Invalid)));
        }
        assert!(matches!(long_number(&[0xe2, 0x82]), Err(Flaw::Ends)));
    }

    #[test]
    fn the_middle_and_the_side_are_left_and_right() {
        for (left, right) in [(5, 2), (2, 5), (-7, 4), (i32::MAX, i32::MIN), (i32::MIN, i32::MAX)] {
            let side = i64::from(left) - i64::from(right);
            let mid = ((i64::from(left) + i64::from(right)) >> 1) as i32;
            assert_eq!(of_middle(mid, (side >> 1) as i32, (side & 1) as i32), [left, right]);
        }
    }
}
