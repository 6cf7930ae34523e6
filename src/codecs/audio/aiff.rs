//! AIFF, and AIFF-C where its samples are not compressed.

use super::pcm::{Coding, Order};
use super::raw::{Layout, Stored};
use super::{AudioFault, Result, Stream, broken, read_at, unsupported};

/// Limit against files that consist of nothing but chunks; real ones have a handful.
const MOST_CHUNKS: usize = 10_000;

pub fn read(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> Result<Layout> {
    let mut head = [0; 12];
    read_at(stream, 0, &mut head)?;
    let compressed = &head[8..] == b"AIFC";
    let mut at = 12;
    let (mut common, mut samples) = (None, None);
    for _ in 0..MOST_CHUNKS {
        if at + 8 > bytes || (common.is_some() && samples.is_some()) {
            break;
        }
        let mut chunk = [0; 8];
        read_at(stream, at, &mut chunk)?;
        let [n, a, m, e, size @ ..] = chunk;
        let size = u32::from_be_bytes(size);
        at += 8;
        match &[n, a, m, e] {
            b"COMM" => common = Some(Common::read(stream, at, compressed)?),
            b"SSND" => {
                // An offset and a block size come first.
                let mut offset = [0; 4];
                read_at(stream, at, &mut offset)?;
                let skipped = 8 + u64::from(u32::from_be_bytes(offset));
                samples = Some((at + skipped, u64::from(size).saturating_sub(skipped)));
            }
            _ => {}
        }
        // Chunks are aligned to two bytes.
        at += u64::from(size) + u64::from(size % 2);
    }
    let Some(Common { rate, channels, coding, frames }) = common else {
        return Err(broken(AudioFault::NoFormatChunk));
    };
    let Some((start, size)) = samples else { return Err(broken(AudioFault::NoDataChunk)) };
    let all = frames.saturating_mul((channels * coding.bytes()) as u64);
    Ok(Layout {
        rate,
        channels,
        stored: Stored::Samples(coding),
        start,
        claimed: Some(all.min(size)),
    })
}

struct Common {
    rate: u32,
    channels: usize,
    coding: Coding,
    frames: u64,
}

impl Common {
    fn read(stream: &mut Box<dyn Stream + '_>, at: u64, compressed: bool) -> Result<Common> {
        let mut bytes = [0; 22];
        let known = if compressed { 22 } else { 18 };
        read_at(stream, at, &mut bytes[..known])?;
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (channels, bits) = (usize::from(short(0)), short(6));
        let frames = u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
        let rate = extended(short(8), bytes[10..18].first_chunk().copied().unwrap_or_default());
        let kind = &bytes[18..];
        let coding = match kind {
            _ if !compressed => Coding::signed(bits, Order::Big),
            b"NONE" | b"twos" | b"in24" | b"in32" => Coding::signed(bits, Order::Big),
            b"sowt" => Coding::signed(bits, Order::Little),
            b"raw " if bits == 8 => Some(Coding::Unsigned8),
            b"fl32" | b"FL32" => Some(Coding::Float32(Order::Big)),
            b"fl64" | b"FL64" => Some(Coding::Float64(Order::Big)),
            b"alaw" | b"ALAW" => Some(Coding::ALaw),
            b"ulaw" | b"ULAW" => Some(Coding::MuLaw),
            _ => None,
        };
        let Some(coding) = coding else {
            return Err(match kind.is_ascii() && compressed {
                true => unsupported(format!("AIFF with {} samples", kind.escape_ascii())),
                false => broken(AudioFault::Coding { bits, tag: 0 }),
            });
        };
        if channels == 0 || rate == 0 {
            return Err(broken(AudioFault::Claims { channels, rate }));
        }
        Ok(Common { rate, channels, coding, frames: u64::from(frames) })
    }
}

/// A number of 80 bits: sign and exponent, then a mantissa with a leading one. 0 if it is no rate.
fn extended(exponent: u16, mantissa: [u8; 8]) -> u32 {
    let mantissa = u64::from_be_bytes(mantissa) as f64;
    let rate = mantissa * f64::from(i32::from(exponent) - 16383 - 63).exp2();
    if exponent & 0x8000 == 0 { rate.round() as u32 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_ten_bytes() {
        assert_eq!(extended(0x400e, 0xac44_0000_0000_0000_u64.to_be_bytes()), 44100);
        assert_eq!(extended(0x400b, 0xfa00_0000_0000_0000_u64.to_be_bytes()), 8000);
        assert_eq!(extended(0, [0; 8]), 0);
        assert_eq!(extended(0xffff, [255; 8]), 0);
        assert_eq!(extended(0x7fff, [255; 8]), u32::MAX);
    }
}
