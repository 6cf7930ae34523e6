//! WAV: uncompressed (or G.711) samples after a few chunks that describe them.

use std::io::{Read, SeekFrom};

use crate::codecs::audio::{AudioFault, Limit, Pcm, Result, Span, Stream, broken, unread};
use crate::value::with_room;

pub struct Wav<'a> {
    stream: Box<dyn Stream + 'a>,
    pub rate: u32,
    pub channels: usize,
    coding: Coding,
    /// Offset of the samples.
    start: u64,
    /// The number of frames: as claimed, but at most what the file has.
    pub frames: u64,
    pub limit: Limit,
}

/// The encoding of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Unsigned8,
    Signed16,
    Signed24,
    Signed32,
    Float32,
    Float64,
    ALaw,
    MuLaw,
}

impl Coding {
    fn bytes(self) -> usize {
        match self {
            Coding::Unsigned8 | Coding::ALaw | Coding::MuLaw => 1,
            Coding::Signed16 => 2,
            Coding::Signed24 => 3,
            Coding::Signed32 | Coding::Float32 => 4,
            Coding::Float64 => 8,
        }
    }

    fn new(tag: u16, bits: u16) -> Option<Coding> {
        match (tag, bits) {
            (1, 1..=8) => Some(Coding::Unsigned8),
            (1, 9..=16) => Some(Coding::Signed16),
            (1, 17..=24) => Some(Coding::Signed24),
            (1, 25..=32) => Some(Coding::Signed32),
            (3, 32) => Some(Coding::Float32),
            (3, 64) => Some(Coding::Float64),
            (6, 8) => Some(Coding::ALaw),
            (7, 8) => Some(Coding::MuLaw),
            _ => None,
        }
    }
}

/// Limit against files that consist of nothing but chunks; real ones have a handful.
const MOST_CHUNKS: usize = 10_000;

/// Samples read at a time; they are still in the CPU cache when they are converted.
const PIECE: usize = 16 << 10;

const EXTENSIBLE: u16 = 0xfffe;

impl<'a> Wav<'a> {
    pub fn open(mut stream: Box<dyn Stream + 'a>) -> Result<Wav<'a>> {
        let bytes = stream.seek(SeekFrom::End(0)).map_err(|error| unread(&error))?;
        let mut head = [0; 12];
        read_at(&mut stream, 0, &mut head)?;
        if &head[8..] != b"WAVE" {
            return Err(broken(AudioFault::NotWave));
        }
        let mut at = 12;
        let mut large = None;
        let mut format = None;
        for _ in 0..MOST_CHUNKS {
            let mut chunk = [0; 8];
            if at + 8 > bytes {
                break;
            }
            read_at(&mut stream, at, &mut chunk)?;
            let [name, size] = [chunk[..4].try_into(), chunk[4..].try_into()]
                .map(std::result::Result::unwrap_or_default);
            let (name, size): ([u8; 4], u32) = (name, u32::from_le_bytes(size));
            at += 8;
            match &name {
                b"ds64" => {
                    let mut sizes = [0; 16];
                    read_at(&mut stream, at, &mut sizes)?;
                    large = sizes[8..].first_chunk().map(|size| u64::from_le_bytes(*size));
                }
                b"fmt " => format = Some(Format::read(&mut stream, at, size)?),
                b"data" => {
                    let Some(Format { rate, channels, coding }) = format else {
                        return Err(broken(AudioFault::NoFormatChunk));
                    };
                    let claimed = match size {
                        u32::MAX => large.unwrap_or(u64::MAX),
                        size => u64::from(size),
                    };
                    let there = claimed.min(bytes - at);
                    let frames = there / (channels * coding.bytes()) as u64;
                    let limit = Limit::new(bytes);
                    return Ok(Wav { stream, rate, channels, coding, start: at, frames, limit });
                }
                _ => {}
            }
            // Chunks are aligned to two bytes.
            at += u64::from(size) + u64::from(size % 2);
        }
        Err(broken(AudioFault::NoDataChunk))
    }

    pub fn read<T: Pcm>(mut self, span: Span) -> Result<Vec<T>> {
        let start = span.start.min(self.frames);
        let frames = span.end().min(self.frames) - start;
        let frame = self.channels * self.coding.bytes();
        let count = usize::try_from(frames).unwrap_or(usize::MAX).saturating_mul(self.channels);
        self.limit.check(count)?;
        let mut samples = with_room(count)?;
        let from = SeekFrom::Start(self.start + start * frame as u64);
        self.stream.seek(from).map_err(|error| unread(&error))?;
        let mut piece = vec![0; PIECE * self.coding.bytes()];
        while samples.len() < count {
            let wanted = PIECE.min(count - samples.len()) * self.coding.bytes();
            let bytes = &mut piece[..wanted];
            self.stream.read_exact(bytes).map_err(|error| unread(&error))?;
            convert(bytes, self.coding, &mut samples);
        }
        Ok(samples)
    }
}

struct Format {
    rate: u32,
    channels: usize,
    coding: Coding,
}

impl Format {
    fn read(stream: &mut Box<dyn Stream + '_>, at: u64, size: u32) -> Result<Format> {
        let mut bytes = [0; 26];
        let known = bytes.len().min(size as usize);
        read_at(stream, at, &mut bytes[..known])?;
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let rate = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let (mut tag, channels, bits) = (short(0), usize::from(short(2)), short(14));
        if tag == EXTENSIBLE {
            // The actual tag is in the first two bytes of the GUID.
            tag = short(24);
        }
        let Some(coding) = Coding::new(tag, bits) else {
            return Err(broken(AudioFault::Coding { bits, tag }));
        };
        let block = usize::from(short(12));
        if channels == 0 || rate == 0 || block != channels * coding.bytes() {
            return Err(broken(AudioFault::Frames { channels, rate, block }));
        }
        Ok(Format { rate, channels, coding })
    }
}

fn read_at(stream: &mut Box<dyn Stream + '_>, at: u64, bytes: &mut [u8]) -> Result<()> {
    let read = stream.seek(SeekFrom::Start(at)).and_then(|_| stream.read_exact(bytes));
    read.map_err(|error| unread(&error))
}

/// Appends bytes, converted to samples; capacity has been reserved.
fn convert<T: Pcm>(bytes: &[u8], coding: Coding, samples: &mut Vec<T>) {
    fn each<const N: usize, T>(row: &mut Vec<T>, bytes: &[u8], sample: impl Fn([u8; N]) -> T) {
        row.extend(bytes.as_chunks::<N>().0.iter().map(|&bytes| sample(bytes)));
    }
    let row = samples;
    match coding {
        Coding::Unsigned8 => each(row, bytes, |[b]| T::from_full((i32::from(b) - 128) << 24)),
        Coding::Signed16 => {
            each(row, bytes, |b| T::from_full(i32::from(i16::from_le_bytes(b)) << 16))
        }
        Coding::Signed24 => {
            each(row, bytes, |[a, b, c]| T::from_full(i32::from_le_bytes([0, a, b, c])))
        }
        Coding::Signed32 => each(row, bytes, |b| T::from_full(i32::from_le_bytes(b))),
        Coding::Float32 => each(row, bytes, |b| T::from_unit(f32::from_le_bytes(b))),
        Coding::Float64 => each(row, bytes, |b| T::from_unit(f64::from_le_bytes(b) as f32)),
        Coding::ALaw => each(row, bytes, |[b]| T::from_full(i32::from(from_a_law(b)) << 16)),
        Coding::MuLaw => each(row, bytes, |[b]| T::from_full(i32::from(from_mu_law(b)) << 16)),
    }
}

/// G.711: a sign, an exponent and four bits.
fn from_a_law(byte: u8) -> i16 {
    let byte = byte ^ 0x55;
    let (exponent, low) = (i32::from(byte >> 4 & 7), i32::from(byte & 15) << 4);
    let size = match exponent {
        0 => low + 8,
        _ => (low + 0x108) << (exponent - 1),
    };
    (if byte & 0x80 != 0 { size } else { -size }) as i16
}

fn from_mu_law(byte: u8) -> i16 {
    let byte = !byte;
    let (exponent, low) = (i32::from(byte >> 4 & 7), i32::from(byte & 15) << 3);
    let size = ((low + 0x84) << exponent) - 0x84;
    (if byte & 0x80 != 0 { -size } else { size }) as i16
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::Sound;
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
        for tag in [0, 2, 17] {
            assert!(read::<f32>(&wav(tag, 1, 16, 4, &[0; 4]), ALL).is_err());
        }
        assert!(read::<f32>(&wav(1, 0, 16, 4, &[0; 4]), ALL).is_err());
    }
}
