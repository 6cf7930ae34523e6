//! CAF: chunks that describe the samples, which may be packets of Apple Lossless.

use super::pcm::{Coding, Order};
use super::raw::{Layout, Stored};
use super::{AudioFault, Result, Stream, broken, read_at, truncated, unsupported};
use crate::value::{append, filled};

pub enum Content {
    Samples(Layout),
    Alac(Alac),
}

/// Packets of Apple Lossless.
#[derive(Debug)]
pub struct Alac {
    pub rate: u32,
    pub channels: usize,
    /// What the decoder has to know.
    pub config: Vec<u8>,
    pub frames: u64,
    /// Frames in front of the audio.
    pub delay: u64,
    /// Sizes of the packets that have not been read.
    sizes: std::vec::IntoIter<u32>,
    at: u64,
}

impl Alac {
    /// The bytes of the next packet.
    pub fn next(&mut self, stream: &mut Box<dyn Stream + '_>) -> Result<Option<Vec<u8>>> {
        let Some(size) = self.sizes.next() else { return Ok(None) };
        let end = stream.seek(std::io::SeekFrom::End(0)).unwrap_or(0);
        if end.saturating_sub(self.at) < u64::from(size) {
            return Err(truncated(AudioFault::EndsEarly));
        }
        let mut packet = filled(0, size as usize)?;
        read_at(stream, self.at, &mut packet)?;
        self.at += u64::from(size);
        Ok(Some(packet))
    }
}

/// Limit against files that consist of nothing but chunks; real ones have a handful.
const MOST_CHUNKS: usize = 10_000;

/// The most bytes that describe a decoder; it takes 24 or 48.
const LONGEST_CONFIG: u64 = 1 << 10;

pub fn read(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> Result<Content> {
    let mut at = 8;
    let (mut description, mut config, mut packets, mut data) = (None, None, None, None);
    for _ in 0..MOST_CHUNKS {
        if at + 12 > bytes {
            break;
        }
        let mut chunk = [0; 12];
        read_at(stream, at, &mut chunk)?;
        let [n, a, m, e, size @ ..] = chunk;
        at += 12;
        // A size of -1 means up to the end.
        let size = u64::try_from(i64::from_be_bytes(size)).ok();
        match &[n, a, m, e] {
            b"desc" => description = Some(Description::read(stream, at)?),
            b"kuki" => {
                let mut known = filled(0, size.unwrap_or(0).min(LONGEST_CONFIG) as usize)?;
                read_at(stream, at, &mut known)?;
                config = Some(known);
            }
            b"pakt" => packets = Some((at, size.unwrap_or(0).min(bytes - at))),
            // A number of edits comes first.
            b"data" => data = Some((at + 4, size.map(|size| size.saturating_sub(4)))),
            _ => {}
        }
        match size.and_then(|size| at.checked_add(size)) {
            Some(end) => at = end,
            None => break,
        }
    }
    let Some(description) = description else { return Err(broken(AudioFault::NoFormatChunk)) };
    let Some((start, claimed)) = data else { return Err(broken(AudioFault::NoDataChunk)) };
    let Description { rate, channels, .. } = description;
    if rate == 0 || !(1..=1 << 16).contains(&channels) {
        return Err(broken(AudioFault::Claims { channels, rate }));
    }
    if &description.format == b"alac" {
        let (Some(config), Some((at, size))) = (config, packets) else {
            return Err(broken(AudioFault::NoFormatChunk));
        };
        return Alac::read(stream, at, size, &description, config, start).map(Content::Alac);
    }
    let coding = description.coding()?;
    if description.packet != channels * coding.bytes() {
        let block = description.packet;
        return Err(broken(AudioFault::Frames { channels, rate, block }));
    }
    let stored = Stored::Samples(coding);
    Ok(Content::Samples(Layout { rate, channels, stored, start, claimed }))
}

struct Description {
    rate: u32,
    format: [u8; 4],
    flags: u32,
    /// A packet's size in bytes, 0 if it varies.
    packet: usize,
    channels: usize,
    bits: u16,
}

impl Description {
    fn read(stream: &mut Box<dyn Stream + '_>, at: u64) -> Result<Description> {
        let mut bytes = [0; 32];
        read_at(stream, at, &mut bytes)?;
        let (rate, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let number = |at: usize| rest[at..].first_chunk().map_or(0, |n| u32::from_be_bytes(*n));
        Ok(Description {
            rate: f64::from_be_bytes(*rate).round() as u32,
            format: number(0).to_be_bytes(),
            flags: number(4),
            packet: number(8) as usize,
            channels: number(16) as usize,
            bits: u16::try_from(number(20)).unwrap_or(0),
        })
    }

    fn coding(&self) -> Result<Coding> {
        let order = if self.flags & 2 == 0 { Order::Big } else { Order::Little };
        let coding = match &self.format {
            b"lpcm" if self.flags & 1 == 1 => Coding::float(self.bits, order),
            b"lpcm" => Coding::signed(self.bits, order),
            b"ulaw" => Some(Coding::MuLaw),
            b"alaw" => Some(Coding::ALaw),
            name => {
                return Err(unsupported(format!("CAF with {} samples", name.escape_ascii())));
            }
        };
        coding.ok_or_else(|| broken(AudioFault::Coding { bits: self.bits, tag: 0 }))
    }
}

impl Alac {
    /// From the table of packets.
    fn read(
        stream: &mut Box<dyn Stream + '_>,
        at: u64,
        size: u64,
        description: &Description,
        config: Vec<u8>,
        start: u64,
    ) -> Result<Alac> {
        let mut head = [0; 24];
        read_at(stream, at, &mut head)?;
        let long = |at: usize| head[at..].first_chunk().map_or(0, |n| u64::from_be_bytes(*n));
        let (count, frames) = (long(0), long(8));
        let delay = head[16..].first_chunk().map_or(0, |n| i32::from_be_bytes(*n));
        let size = usize::try_from(size).unwrap_or(0).saturating_sub(head.len());
        let mut table = filled(0, size)?;
        read_at(stream, at + head.len() as u64, &mut table)?;
        let mut sizes = Vec::new();
        let mut number = 0_u32;
        // Seven bits per byte; the highest one says that more follow.
        for byte in table {
            if sizes.len() as u64 == count {
                break;
            }
            number = number << 7 | u32::from(byte & 127);
            if byte & 128 == 0 {
                append(&mut sizes, &[number])?;
                number = 0;
            }
        }
        if sizes.len() as u64 != count {
            return Err(truncated(AudioFault::EndsEarly));
        }
        let Description { rate, channels, .. } = *description;
        let delay = u64::try_from(delay).unwrap_or(0);
        Ok(Alac { rate, channels, config, frames, delay, sizes: sizes.into_iter(), at: start })
    }
}
