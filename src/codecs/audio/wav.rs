//! WAV and its variants for large files, RF64 and W64: a few chunks that describe the samples.

use super::adpcm::{Blocks, Kind};
use super::pcm::{Coding, Order};
use super::raw::{Layout, Stored};
use super::{AudioFault, Result, Stream, broken, read_at, unsupported};

/// What a header says about the rest of the file.
pub enum Content {
    Samples(Layout),
    /// Something that is decoded packet by packet.
    Packets,
    /// An MP3 file.
    Mp3 {
        start: u64,
        length: u64,
    },
}

/// Limit against files that consist of nothing but chunks; real ones have a handful.
const MOST_CHUNKS: usize = 10_000;

/// From this size on, a chunk that is longer than the file has no known size: it was written to a
/// pipe, and programs have different numbers for that.
const UNKNOWN_SIZE: u32 = 0x7fff_0000;

pub fn read_wav(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> Result<Content> {
    let mut head = [0; 12];
    read_at(stream, 0, &mut head)?;
    if &head[8..] != b"WAVE" {
        return Err(broken(AudioFault::NotWave));
    }
    // A file whose sizes were never filled in.
    let unfinished = matches!(head[4..8], [0 | 8, 0, 0, 0]);
    let mut at = 12;
    let mut large_size = None;
    let mut format = None;
    for _ in 0..MOST_CHUNKS {
        if at + 8 > bytes {
            break;
        }
        let mut chunk = [0; 8];
        read_at(stream, at, &mut chunk)?;
        let [n, a, m, e, size @ ..] = chunk;
        let size = u32::from_le_bytes(size);
        at += 8;
        match &[n, a, m, e] {
            b"ds64" => {
                let mut sizes = [0; 16];
                read_at(stream, at, &mut sizes)?;
                large_size = sizes[8..].first_chunk().map(|size| u64::from_le_bytes(*size));
            }
            b"fmt " => format = Some(Chunk::read(stream, at, u64::from(size))?),
            b"data" => {
                let Some(format) = format else { return Err(broken(AudioFault::NoFormatChunk)) };
                let claimed = match size {
                    u32::MAX => large_size,
                    0 if unfinished => None,
                    UNKNOWN_SIZE.. if u64::from(size) > bytes - at => None,
                    _ => Some(u64::from(size)),
                };
                return format.content(at, bytes, claimed);
            }
            _ => {}
        }
        // Chunks are aligned to two bytes.
        at += u64::from(size) + u64::from(size % 2);
    }
    Err(broken(AudioFault::NoDataChunk))
}

/// What the GUIDs of all chunks but the first end with.
const GUID: [u8; 12] = *b"\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a";

/// The size of a chunk's header, which counts as part of the chunk.
const W64_HEADER: u64 = 24;

pub fn read_w64(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> Result<Content> {
    let mut head = [0; 40];
    read_at(stream, 0, &mut head)?;
    if &head[24..28] != b"wave" || head[28..] != GUID {
        return Err(broken(AudioFault::NotWave));
    }
    let mut at = head.len() as u64;
    let mut format = None;
    for _ in 0..MOST_CHUNKS {
        if at.saturating_add(W64_HEADER) > bytes {
            break;
        }
        let mut chunk = [0; W64_HEADER as usize];
        read_at(stream, at, &mut chunk)?;
        let size = chunk.last_chunk().map_or(0, |size| u64::from_le_bytes(*size));
        let Some(size) = size.checked_sub(W64_HEADER) else { break };
        at += W64_HEADER;
        match &chunk[..4] {
            b"fmt " => format = Some(Chunk::read(stream, at, size)?),
            b"data" => {
                let Some(format) = format else { return Err(broken(AudioFault::NoFormatChunk)) };
                return format.content(at, bytes, Some(size));
            }
            _ => {}
        }
        // Chunks are aligned to eight bytes.
        at = at.saturating_add(size).div_ceil(8).saturating_mul(8);
    }
    Err(broken(AudioFault::NoDataChunk))
}

/// The `fmt ` chunk.
struct Chunk {
    rate: u32,
    channels: usize,
    /// A frame's size in bytes, or that of a block of compressed ones.
    block: usize,
    bits: u16,
    tag: u16,
}

const EXTENSIBLE: u16 = 0xfffe;
const MS_ADPCM: u16 = 2;
const IMA_ADPCM: u16 = 0x11;
const MP3: u16 = 0x55;

impl Chunk {
    fn read(stream: &mut Box<dyn Stream + '_>, at: u64, size: u64) -> Result<Chunk> {
        let mut bytes = [0; 26];
        let known = bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX));
        read_at(stream, at, &mut bytes[..known])?;
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let rate = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let mut tag = short(0);
        if tag == EXTENSIBLE {
            // The actual tag is in the first two bytes of the GUID.
            tag = short(24);
        }
        let (channels, block) = (usize::from(short(2)), usize::from(short(12)));
        Ok(Chunk { rate, channels, block, bits: short(14), tag })
    }

    /// What begins at `start`.
    fn content(&self, start: u64, bytes: u64, claimed: Option<u64>) -> Result<Content> {
        let Chunk { rate, channels, block, bits, tag } = *self;
        let adpcm = |kind| Blocks::new(kind, channels, block).map(Stored::Blocks);
        let stored = match tag {
            MS_ADPCM => adpcm(Kind::Microsoft),
            IMA_ADPCM => adpcm(Kind::Ima),
            MP3 => {
                let present = bytes - start;
                let length = claimed.map_or(present, |claimed| claimed.min(present));
                return Ok(Content::Mp3 { start, length });
            }
            _ => {
                let Some(coding) = coding(tag, bits) else {
                    return Err(match name(tag) {
                        Some(name) => unsupported(format!("WAV with {name}")),
                        None => broken(AudioFault::Coding { bits, tag }),
                    });
                };
                (block == channels * coding.bytes()).then_some(Stored::Samples(coding))
            }
        };
        let Some(stored) = stored.filter(|_| channels > 0 && rate > 0) else {
            return Err(broken(AudioFault::Frames { channels, rate, block }));
        };
        Ok(Content::Samples(Layout { rate, channels, stored, start, claimed }))
    }
}

fn coding(tag: u16, bits: u16) -> Option<Coding> {
    match (tag, bits) {
        (1, 1..=8) => Some(Coding::Unsigned8),
        (1, _) => Coding::signed(bits, Order::Little),
        (3, _) => Coding::float(bits, Order::Little),
        (6, 8) => Some(Coding::ALaw),
        (7, 8) => Some(Coding::MuLaw),
        _ => None,
    }
}

/// Names of encodings that can't be decoded.
fn name(tag: u16) -> Option<&'static str> {
    Some(match tag {
        0x31 => "GSM 6.10 samples",
        0x38 => "NMS ADPCM samples",
        0x40 | 0x45 | 0x64 => "G.721 or G.726 samples",
        0x50 => "MP2 samples",
        0xff | 0x1600 | 0x1610 => "AAC samples",
        0x160..=0x163 => "WMA samples",
        0x2000 => "AC-3 samples",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::{Pcm, Sound, Span};
    use super::*;

    fn wav(tag: u16, channels: u16, bits: u16, claimed: u32, data: &[u8]) -> Vec<u8> {
        let block = channels * bits / 8;
        let mut file = b"RIFF\0\0\0\0WAVEjunk\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
        file.extend(tag.to_le_bytes());
        file.extend(channels.to_le_bytes());
        file.extend(8000_u32.to_le_bytes());
        file.extend((8000 * u32::from(block)).to_le_bytes());
        file.extend(block.to_le_bytes());
        file.extend(bits.to_le_bytes());
        file.extend(b"data");
        file.extend(claimed.to_le_bytes());
        file.extend(data);
        file
    }

    fn read<T: Pcm>(file: &[u8], span: Span) -> Result<Vec<T>> {
        Sound::open(Box::new(Cursor::new(file)))?.read(span)
    }

    const ALL: Span = Span { start: 0, frames: None };

    #[test]
    fn samples_of_all_sizes_are_read() {
        assert_eq!(read::<i16>(&wav(1, 1, 8, 2, &[0, 255]), ALL).ok(), Some(vec![-32768, 32512]));
        assert_eq!(read::<i16>(&wav(1, 1, 16, 4, &[1, 0, 255, 255]), ALL).ok(), Some(vec![1, -1]));
        assert_eq!(read::<f32>(&wav(1, 1, 24, 3, &[0, 0, 0x40]), ALL).ok(), Some(vec![0.5]));
        assert_eq!(read::<i32>(&wav(1, 1, 32, 4, &[7, 0, 0, 0]), ALL).ok(), Some(vec![7]));
        let half = 0.5_f32.to_le_bytes();
        assert_eq!(read::<f32>(&wav(3, 1, 32, 4, &half), ALL).ok(), Some(vec![0.5]));
    }

    #[test]
    fn parts_are_read_and_what_is_claimed_beyond_the_end_is_not_there() {
        let file = wav(1, 2, 8, u32::MAX, &[128, 129, 130, 131, 132, 133, 134]);
        let part = |start, frames| read::<i16>(&file, Span { start, frames: Some(frames) }).ok();
        assert_eq!(part(1, 1), Some(vec![512, 768]));
        assert_eq!(part(2, 9), Some(vec![1024, 1280]));
        assert_eq!(part(9, 9), Some(vec![]));
        assert_eq!(part(u64::MAX, u64::MAX), Some(vec![]));
    }

    #[test]
    fn files_cut_anywhere_are_refused_or_read_short() {
        let file = wav(1, 1, 16, 4, &[1, 0, 2, 0]);
        for cut in 0..file.len() {
            let _ = read::<f32>(&file[..cut], ALL);
        }
        for tag in [0, 2, 17, 0x31, 0x55] {
            assert!(read::<f32>(&wav(tag, 1, 16, 4, &[0; 4]), ALL).is_err());
        }
        assert!(read::<f32>(&wav(1, 0, 16, 4, &[0; 4]), ALL).is_err());
    }
    #[test]
    fn only_what_is_missing_of_a_cut_file_is_an_error() {
        let file = wav(1, 1, 16, 8, &[1, 0, 2, 0]);
        let check = |span| {
            let sound = Sound::open(Box::new(Cursor::new(&file[..])))?;
            sound.check_complete(span)
        };
        assert!(check(ALL).is_err());
        assert!(check(Span { start: 0, frames: Some(3) }).is_err());
        assert!(check(Span { start: 0, frames: Some(2) }).is_ok());
        let piped = wav(1, 1, 16, 0x7fff_ff00, &[1, 0, 2, 0]);
        let sound = Sound::open(Box::new(Cursor::new(&piped[..])));
        assert!(sound.and_then(|sound| sound.check_complete(ALL)).is_ok());
    }

    #[test]
    fn chunks_of_w64_are_found() {
        let chunk = |name: &[u8; 4], body: &[u8]| {
            let mut chunk = [&name[..], &GUID].concat();
            chunk.extend((W64_HEADER + body.len() as u64).to_le_bytes());
            chunk.extend(body);
            chunk.resize(chunk.len().div_ceil(8) * 8, 0);
            chunk
        };
        let mut file = b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0".to_vec();
        file.extend([0; 8]);
        file.extend([&b"wave"[..], &GUID].concat());
        file.extend(chunk(b"junk", &[1, 2, 3]));
        file.extend(chunk(b"fmt ", &[1, 0, 1, 0, 64, 31, 0, 0, 128, 62, 0, 0, 2, 0, 16, 0]));
        file.extend(chunk(b"data", &[1, 0, 255, 255]));
        assert_eq!(read::<i16>(&file, ALL).ok(), Some(vec![1, -1]));
        for cut in 0..file.len() {
            let _ = read::<i16>(&file[..cut], ALL);
        }
    }
}
