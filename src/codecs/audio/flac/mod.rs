//! FLAC (RFC 9639). Decoded here and not by symphonia, which takes about twice as long.

mod bits;
mod bytes;
mod checksum;
mod frame;
mod info;
mod subframe;

use self::bytes::Bytes;
pub use self::frame::Decoder;
use self::frame::{Header, Place};
pub use self::info::Info;
use self::info::Point;
use super::{AudioFault, Limit, Pcm, Result, Span, Stream, broken, truncated};
use crate::value::{Cause, filled};

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The bytes end before it does.
    Ends,
    Invalid,
    Checksum,
    /// Its rate or channels are not those of the file.
    Changes,
}

pub type Outcome<T> = std::result::Result<T, Flaw>;

impl Flaw {
    /// The fault at this time of the audio.
    pub fn at(self, seconds: f64) -> Cause {
        match self {
            Flaw::Ends => truncated(AudioFault::EndsAt { seconds }),
            Flaw::Invalid => broken(AudioFault::FrameInvalid { seconds }),
            Flaw::Checksum => broken(AudioFault::FrameChecksum { seconds }),
            Flaw::Changes => broken(AudioFault::Changes { seconds }),
        }
    }
}

/// A FLAC file.
pub struct Flac<'a> {
    bytes: Bytes<'a>,
    pub info: Info,
    points: Vec<Point>,
    /// Where the first frame is.
    first: u64,
    decoder: Decoder,
    pub limit: Limit,
}

/// The part of the decoded frame that is wanted.
struct Part<'d> {
    decoder: &'d Decoder,
    first: usize,
    last: usize,
}

/// From this distance on, seeking is faster than decoding up to the position.
const FAR: u64 = 1 << 16;

/// Between frames that are this near, in bytes, there is no search for one in between.
const NEAR: u64 = 8 << 10;

/// The size of the largest header of a frame.
const HEADER: usize = 16;

/// More than a usual frame takes.
const USUAL: usize = 16 << 10;

/// More than any frame takes: eight channels of 65,535 samples of 33 bits, in the worst code.
const LARGEST: usize = 8 << 20;

/// Limit on the candidates that are decoded in a search, against files that consist of them.
const MOST_TRIED: usize = 256;

/// The most samples of a channel that a byte of a usual file stands for.
const SAMPLES_PER_BYTE: u64 = 24;

impl<'a> Flac<'a> {
    pub fn open(stream: Box<dyn Stream + 'a>, length: u64) -> Result<Flac<'a>> {
        let mut bytes = Bytes::new(stream, length);
        let (info, points, first) = info::read(&mut bytes)?;
        let (decoder, limit) = (Decoder::new(info), Limit::new(length));
        Ok(Flac { bytes, info, points, first, decoder, limit })
    }

    /// The number of samples in a span, if the header has it and it is plausible.
    pub fn samples_in(&self, span: Span) -> Option<usize> {
        let all = self.info.samples?;
        let frames = span.end().min(all) - span.start.min(all);
        let plausible = frames <= self.bytes.length().saturating_mul(SAMPLES_PER_BYTE);
        let count = usize::try_from(frames).ok()?.checked_mul(self.info.channels)?;
        plausible.then_some(count)
    }

    /// The samples of all channels, interleaved. A span beyond the end is clipped.
    pub fn read<T: Pcm>(mut self, span: Span) -> Result<Vec<T>> {
        if let Some(count) = self.samples_in(span) {
            self.limit.check(count)?;
            let mut samples = filled(T::SILENCE, count)?;
            self.read_into(span, &mut samples)?;
            return Ok(samples);
        }
        let (limit, channels) = (self.limit, self.info.channels);
        let mut samples: Vec<T> = Vec::new();
        self.decode(span, |part| {
            let old = samples.len();
            let new = old + (part.last - part.first) * channels;
            limit.check(new)?;
            let bytes = new.saturating_mul(size_of::<T>());
            samples.try_reserve(new - old).map_err(|_| Cause::Memory { bytes })?;
            samples.resize(new, T::SILENCE);
            part.decoder.copy_to(part.first, part.last, &mut samples[old..]);
            Ok(())
        })?;
        Ok(samples)
    }

    /// Like `read`, into memory for as many samples as `samples_in` says.
    pub fn read_into<T: Pcm>(mut self, span: Span, samples: &mut [T]) -> Result<()> {
        let (channels, mut rest) = (self.info.channels, samples);
        self.decode(span, |part| {
            let count = ((part.last - part.first) * channels).min(rest.len());
            let (to, after) = std::mem::take(&mut rest).split_at_mut(count);
            part.decoder.copy_to(part.first, part.last, to);
            rest = after;
            Ok(())
        })
    }

    /// Decodes a span, frame by frame.
    fn decode(&mut self, span: Span, mut each: impl FnMut(Part<'_>) -> Result<()>) -> Result<()> {
        let end = self.info.samples;
        let wanted = span.end().min(end.unwrap_or(u64::MAX));
        let start = span.start.min(wanted);
        // Decoding up to the span takes no memory, only time, so it has a limit of its own.
        let way = Limit(self.limit.0.max(Limit::of_file(self.bytes.length())));
        let mut decoded = 0_usize;
        let (mut at, mut position) = (self.first, 0);
        if start > FAR && end.is_some() {
            (at, position) = self.seek(start)?;
        }
        while position < wanted {
            let time = position as f64 / f64::from(self.info.rate);
            let (header, size) = match self.frame(at)? {
                Ok(frame) => frame,
                Err(flaw) => match end {
                    Some(end) if flaw == Flaw::Ends => {
                        let length = end as f64 / f64::from(self.info.rate);
                        return Err(truncated(AudioFault::EndsBefore { seconds: time, length }));
                    }
                    // Tags may follow the last frame.
                    None if position > 0 && flaw != Flaw::Changes && self.is_last(at)? => break,
                    _ => return Err(flaw.at(time)),
                },
            };
            if self.position(&header) != position {
                return Err(broken(AudioFault::Gap { seconds: time }));
            }
            decoded = decoded.saturating_add(header.samples * self.info.channels);
            way.check(decoded)?;
            let within =
                |sample: u64| sample.saturating_sub(position).min(header.samples as u64) as usize;
            let (first, last) = (within(start), within(wanted));
            if first < last {
                each(Part { decoder: &self.decoder, first, last })?;
            }
            position += header.samples as u64;
            at += size as u64;
        }
        Ok(())
    }

    /// The first sample of a frame.
    fn position(&mut self, header: &Header) -> u64 {
        match header.place {
            Place::Sample(sample) => sample,
            Place::Number(number) => {
                let block = *self.info.block.get_or_insert(header.samples as u64);
                number.saturating_mul(block)
            }
        }
    }

    /// Decodes the frame at an offset.
    fn frame(&mut self, at: u64) -> Result<Outcome<(Header, usize)>> {
        let mut least = USUAL;
        loop {
            let bytes = self.bytes.get(at, least)?;
            let (known, is_all) = (bytes.len(), bytes.len() < least);
            match self.decoder.decode(bytes) {
                Err(Flaw::Ends) if !is_all && known < LARGEST => least = known * 2,
                frame => return Ok(frame),
            }
        }
    }

    /// Whether no frame follows from an offset on.
    fn is_last(&mut self, at: u64) -> Result<bool> {
        Ok(self.next_header(at, self.bytes.length())?.is_none())
    }

    /// The offset of the first header in a part of the file, unless its bytes only look like one.
    fn next_header(&mut self, mut from: u64, until: u64) -> Result<Option<u64>> {
        while from < until {
            let bytes = self.bytes.get(from, USUAL)?;
            let is_all = bytes.len() < USUAL;
            // A header at the end may need bytes that are not there yet.
            let room = if is_all { bytes.len() } else { bytes.len() - HEADER };
            let room = room.min(usize::try_from(until - from).unwrap_or(usize::MAX));
            let is_header = |at: &usize| {
                let bytes = &bytes[*at..];
                bytes[0] == 0xff && Header::read(bytes, &self.info).is_ok()
            };
            if let Some(found) = (0..room).find(is_header) {
                return Ok(Some(from + found as u64));
            }
            from += room.max(1) as u64;
        }
        Ok(None)
    }

    /// The offset and the first sample of a frame at or before a sample.
    fn seek(&mut self, target: u64) -> Result<(u64, u64)> {
        if let Ok(header) = Header::read(self.bytes.get(self.first, USUAL)?, &self.info) {
            // It may be the one that tells the size of all.
            let _ = self.position(&header);
        }
        let (mut low, mut position, mut high) = (self.first, 0, self.bytes.length());
        // Points are claims: a frame must be there, and come before the target.
        let before = self.points.iter().filter(|point| point.sample <= target);
        if let Some(offset) = before.map(|point| point.offset).max()
            && let Some(at) = self.first.checked_add(offset).filter(|at| *at < high)
            && let Ok((header, _)) = self.frame(at)?
        {
            let found = self.position(&header);
            if found <= target {
                (low, position) = (at, found);
            }
        }
        let after = self.points.iter().filter(|point| point.sample > target);
        if let Some(offset) = after.map(|point| point.offset).min() {
            // If it is wrong, there is more to decode.
            high = self.first.saturating_add(offset).clamp(low, high);
        }
        let mut tried = 0;
        while high - low > NEAR && tried < MOST_TRIED {
            let middle = low + (high - low) / 2;
            let mut from = middle;
            let mut found = None;
            while let Some(at) = self.next_header(from, high)?
                && tried < MOST_TRIED
            {
                tried += 1;
                if let Ok((header, _)) = self.frame(at)? {
                    found = Some((at, self.position(&header)));
                    break;
                }
                from = at + 1;
            }
            match found {
                Some((at, first)) if first <= target => (low, position) = (at, first),
                _ => high = middle,
            }
        }
        Ok((low, position))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::checksum::{crc8, crc16};
    use super::*;

    /// A file of frames of 16 samples of one channel, of which each counts the frames; the largest
    /// number of a file is 2,047.
    fn file(frames: u64, claimed: u64, gap: usize) -> Vec<u8> {
        let mut file = b"fLaC\x80\0\0\x22\0\x10\0\x10\0\0\0\0\0\0".to_vec();
        file.extend((8000 << 44 | 15 << 36 | claimed).to_be_bytes());
        file.extend([0; 16]);
        for number in 0..frames as u16 {
            let mut frame = vec![0xff, 0xf8, 0x60, 0x08];
            match number {
                0..128 => frame.push(number as u8),
                _ => frame.extend([0xc0 | (number >> 6) as u8, 0x80 | (number & 63) as u8]),
            }
            frame.push(15);
            frame.push(crc8(&frame));
            // Always the same sample.
            frame.push(0);
            frame.extend(number.to_be_bytes());
            frame.extend(crc16(&frame).to_be_bytes());
            file.extend(frame);
            file.extend(vec![0; gap]);
        }
        file
    }

    fn open(file: &[u8]) -> Result<Flac<'_>> {
        Flac::open(Box::new(Cursor::new(file)), file.len() as u64)
    }

    const ALL: Span = Span { start: 0, frames: None };

    #[test]
    fn frames_are_decoded_in_turn() {
        let expected: Vec<i16> = (0..300).flat_map(|number| [number; 16]).collect();
        for claimed in [0, 300 * 16] {
            let file = file(300, claimed, 0);
            let flac = open(&file);
            assert_eq!(flac.and_then(|flac| flac.read::<i16>(ALL)).ok(), Some(expected.clone()));
        }
    }

    #[test]
    fn tags_after_the_last_frame_are_skipped() {
        let mut file = file(10, 0, 0);
        file.extend(b"TAG\xff\xf8\xff");
        file.extend([0; 122]);
        let samples = open(&file).and_then(|flac| flac.read::<i16>(ALL));
        assert_eq!(samples.ok().map(|samples| samples.len()), Some(160));
    }

    #[test]
    fn damage_is_found() {
        let problem = |file: &[u8]| match open(file).and_then(|flac| flac.read::<f32>(ALL)) {
            Err(Cause::Undecodable { problem, .. }) => format!("{problem:?}"),
            other => panic!("{other:?}"),
        };
        for claimed in [0, 160] {
            let intact = file(10, claimed, 0);
            let at = |frame: usize| 42 + 12 * frame;
            let mut damaged = intact.clone();
            damaged[at(4) + 9] ^= 1;
            assert!(problem(&damaged).contains("FrameChecksum"), "{}", problem(&damaged));
            let mut missing = intact.clone();
            missing.drain(at(4)..at(5));
            assert!(problem(&missing).contains("Gap"), "{}", problem(&missing));
            let cut = &intact[..at(9) + 10];
            assert!(problem(cut).contains("Ends"), "{}", problem(cut));
            let apart = file(10, claimed, 1);
            assert!(problem(&apart).contains("FrameInvalid"), "{}", problem(&apart));
        }
    }

    #[test]
    fn a_far_part_is_found_whatever_the_points_say() {
        let mut file = file(2000, 2000 * 16, 0);
        // Damaged frames are passed over.
        for at in [9, 12_000, 12_013, 18_000] {
            file[42 + at] ^= 1;
        }
        // Of 12 bytes, or 13 where the number takes two.
        let offset_of = |frame: u64| 42 + 12 * frame + frame.saturating_sub(128);
        let target = 1800 * 16 + 5;
        let sought = |point: Option<Point>| {
            let mut flac = open(&file).ok()?;
            flac.points.extend(point);
            let (at, position) = flac.seek(target).ok()?;
            assert!(position <= target, "{point:?}");
            assert_eq!(at, offset_of(position / 16), "{point:?}");
            Some(offset_of(1800) - at)
        };
        assert!(sought(None).is_some_and(|distance| distance <= NEAR));
        let right = Point { sample: 1799 * 16, offset: offset_of(1799) - 42 };
        assert!(sought(Some(right)).is_some_and(|distance| distance <= NEAR));
        for sample in [5, 1800 * 16, u64::MAX - 1] {
            for offset in [0, 7, 1900 * 12, 1 << 40, u64::MAX] {
                assert!(sought(Some(Point { sample, offset })).is_some());
            }
        }
    }
}
