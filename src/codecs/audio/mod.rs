//! Audio: headers and samples.

mod adpcm;
mod aiff;
mod au;
mod caf;
mod edits;
mod flac;
mod format;
mod matroska;
mod mpeg;
mod ogg;
mod opus;
mod packets;
mod pcm;
mod raw;
mod sphere;
mod stream;
mod wav;

use std::io::{Error, ErrorKind, SeekFrom};
use std::sync::OnceLock;

use self::flac::Flac;
pub use self::format::Format;
use self::packets::Packets;
pub use self::pcm::Pcm;
use self::raw::Raw;
pub use self::stream::Stream;
use self::stream::{Part, read_at};
use self::wav::Content;
use crate::kernels::numeric::isa::vectorized;
use crate::value::{Cause, Damage, Problem, filled, io_fault, problems};

pub type Result<T> = std::result::Result<T, Cause>;

/// Limit on the number of decoded samples, against wrong headers and decompression bombs: by
/// default 18 hours at 16 kHz, or less if the file is too small even for compressed silence.
/// PENSTOCK_MAX_AUDIO_SAMPLES changes it.
#[derive(Clone, Copy, Debug)]
pub struct Limit(pub usize);

impl Limit {
    /// The limit for a file of this size.
    pub fn new(bytes: u64) -> Limit {
        static GIVEN: OnceLock<Option<usize>> = OnceLock::new();
        let given = *GIVEN.get_or_init(|| {
            let given = std::env::var("PENSTOCK_MAX_AUDIO_SAMPLES").ok();
            given.and_then(|text| text.trim().parse().ok())
        });
        Limit(given.unwrap_or_else(|| Limit::of_file(bytes).min(1 << 30)))
    }

    /// The most samples that a legitimate file of this size decodes to.
    pub fn of_file(bytes: u64) -> usize {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        bytes.saturating_mul(1024).saturating_add(1 << 24)
    }

    /// Checks a number of samples.
    pub fn check(self, samples: usize) -> Result<()> {
        if samples <= self.0 {
            return Ok(());
        }
        let problem = AudioFault::TooLong { samples, limit: self.0 }.into();
        Err(Cause::Undecodable { kind: Damage::Large, problem })
    }
}

problems! {
    /// What is wrong with audio; the sentence completes "this file ...".
    pub enum AudioFault {
        /// Without a format, if it is unknown.
        This { format: Option<&'static str>, problem: Problem },
        TooLong { samples: usize, limit: usize },
        TooShort,
        UnknownFormat { start: String },
        Unsupported { name: String },
        EndsEarly,
        EndsAt { seconds: f64 },
        EndsBefore { seconds: f64, length: f64 },
        Read { text: String },
        NotWave,
        NoFormatChunk,
        NoDataChunk,
        Coding { bits: u16, tag: u16 },
        Encoding { name: String },
        Frames { channels: usize, rate: u32, block: usize },
        Field { name: &'static str },
        NoSound,
        UnknownCoding,
        Claims { channels: usize, rate: u32 },
        Changes { seconds: f64 },
        Chained { seconds: f64 },
        Gap { seconds: f64 },
        Index,
        Damaged { text: String },
        DamagedAt { seconds: f64, text: String },
        FrameInvalid { seconds: f64 },
        FrameChecksum { seconds: f64 },
        Undecodable { text: String },
        Unexpected { seconds: f64 },
    }
}

pub fn broken(fault: AudioFault) -> Cause {
    Cause::Undecodable { kind: Damage::Broken, problem: fault.into() }
}

pub fn truncated(fault: AudioFault) -> Cause {
    Cause::Undecodable { kind: Damage::Truncated, problem: fault.into() }
}

/// The fault for a format, or an encoding inside of one, that is known but can't be decoded.
pub fn unsupported(name: impl Into<String>) -> Cause {
    let problem = AudioFault::Unsupported { name: name.into() }.into();
    Cause::Undecodable { kind: Damage::Unknown, problem }
}

/// The fault for an I/O error.
pub fn unread(error: &Error) -> Cause {
    match error.kind() {
        ErrorKind::UnexpectedEof => truncated(AudioFault::EndsEarly),
        _ if error.raw_os_error().is_some() => io_fault(error),
        _ => broken(AudioFault::Read { text: error.to_string() }),
    }
}

/// A part of the audio, in frames (a frame has one sample per channel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    /// `None` for all up to the end.
    pub frames: Option<u64>,
}

impl Span {
    /// From an offset and a duration in seconds, cut to whole frames. A negative offset means the
    /// start, a negative duration the rest of the audio.
    pub fn seconds(offset: f64, duration: f64, rate: u32) -> Span {
        // Casts saturate, and turn NaN into 0.
        let frames = |seconds: f64| (seconds * f64::from(rate)) as u64;
        Span { start: frames(offset), frames: (duration >= 0.0).then(|| frames(duration)) }
    }

    /// From a start and a duration in seconds, each rounded to the nearest frame.
    pub fn nearest(start: f64, duration: Option<f64>, rate: u32) -> Span {
        let frames = |seconds: f64| (seconds * f64::from(rate)).round() as u64;
        Span { start: frames(start), frames: duration.map(frames) }
    }

    pub fn end(self) -> u64 {
        self.frames.map_or(u64::MAX, |frames| self.start.saturating_add(frames))
    }
}

/// Audio whose header has been read.
pub struct Sound<'a> {
    pub format: Format,
    content: Inside<'a>,
}

enum Inside<'a> {
    Raw(Raw<'a>),
    Flac(Box<Flac<'a>>),
    Packets(Box<Packets<'a>>),
}

impl<'a> Sound<'a> {
    /// `Err` if the format is unknown or the header is damaged.
    pub fn open(stream: Box<dyn Stream + 'a>) -> Result<Sound<'a>> {
        Sound::identify(stream)?.open()
    }

    /// Finds out the format, which can be part of messages even if the header is damaged.
    pub fn identify(stream: Box<dyn Stream + 'a>) -> Result<Identified<'a>> {
        let (format, stream) = Format::of(stream)?;
        Ok(Identified { format, stream })
    }

    /// The sampling rate, in Hz.
    pub fn rate(&self) -> u32 {
        match &self.content {
            Inside::Raw(raw) => raw.rate,
            Inside::Flac(flac) => flac.info.rate,
            Inside::Packets(packets) => packets.rate,
        }
    }

    pub fn channels(&self) -> usize {
        match &self.content {
            Inside::Raw(raw) => raw.channels,
            Inside::Flac(flac) => flac.info.channels,
            Inside::Packets(packets) => packets.channels,
        }
    }

    /// The number of frames, if the header has it.
    pub fn frames(&self) -> Option<u64> {
        match &self.content {
            Inside::Raw(raw) => Some(raw.frames),
            Inside::Flac(flac) => flac.info.samples,
            Inside::Packets(packets) => packets.frames(),
        }
    }

    /// The limit on decoded samples.
    pub fn limit(&self) -> Limit {
        match &self.content {
            Inside::Raw(raw) => raw.limit,
            Inside::Flac(flac) => flac.limit,
            Inside::Packets(packets) => packets.limit,
        }
    }

    /// `Err` if the file ends before a part of the audio that its header claims.
    pub fn check_complete(&self, span: Span) -> Result<()> {
        match &self.content {
            Inside::Raw(raw) => raw.check_complete(span),
            // Shows while they are decoded.
            Inside::Flac(_) | Inside::Packets(_) => Ok(()),
        }
    }

    /// The number of samples in a span, if it is known without decoding.
    pub fn samples_in(&self, span: Span) -> Option<usize> {
        match &self.content {
            Inside::Raw(raw) => Some(raw.samples_in(span)),
            Inside::Flac(flac) => flac.samples_in(span),
            Inside::Packets(_) => None,
        }
    }

    /// The samples of all channels, interleaved. A span beyond the end is clipped.
    pub fn read<T: Pcm>(self, span: Span) -> Result<Vec<T>> {
        match self.content {
            Inside::Raw(raw) => {
                let count = raw.samples_in(span);
                raw.limit.check(count)?;
                let mut samples = filled(T::SILENCE, count)?;
                raw.read_into(span, &mut samples)?;
                Ok(samples)
            }
            Inside::Flac(flac) => flac.read(span),
            Inside::Packets(packets) => packets.read(span),
        }
    }

    /// Like `read`, into memory for as many samples as `samples_in` says.
    pub fn read_into<T: Pcm>(self, span: Span, samples: &mut [T]) -> Result<()> {
        match self.content {
            Inside::Raw(raw) => raw.read_into(span, samples),
            Inside::Flac(flac) => flac.read_into(span, samples),
            Inside::Packets(packets) => {
                let read = packets.read(span)?;
                match samples.len() == read.len() {
                    true => samples.copy_from_slice(&read),
                    false => return Err(truncated(AudioFault::EndsEarly)),
                }
                Ok(())
            }
        }
    }
}

/// Audio of a known format whose header has not been read.
pub struct Identified<'a> {
    pub format: Format,
    stream: Box<dyn Stream + 'a>,
}

impl<'a> Identified<'a> {
    pub fn open(self) -> Result<Sound<'a>> {
        let Identified { format, mut stream } = self;
        let bytes = stream.seek(SeekFrom::End(0)).map_err(|error| unread(&error))?;
        let header = match format {
            Format::Wav => wav::read_wav(&mut stream, bytes)?,
            Format::W64 => wav::read_w64(&mut stream, bytes)?,
            Format::Aiff => Content::Samples(aiff::read(&mut stream, bytes)?),
            Format::Au => Content::Samples(au::read(&mut stream)?),
            Format::Sphere => Content::Samples(sphere::read(&mut stream)?),
            Format::Caf => match caf::read(&mut stream, bytes)? {
                caf::Content::Samples(layout) => Content::Samples(layout),
                caf::Content::Alac(alac) => {
                    let content = Inside::Packets(Box::new(Packets::of_caf(stream, bytes, alac)?));
                    return Ok(Sound { format, content });
                }
            },
            Format::Flac => {
                let content = Inside::Flac(Box::new(Flac::open(stream, bytes)?));
                return Ok(Sound { format, content });
            }
            _ => Content::Packets,
        };
        let content = match header {
            Content::Samples(layout) => Inside::Raw(Raw::new(stream, bytes, layout)),
            Content::Packets => Inside::Packets(Box::new(Packets::open(format, stream)?)),
            Content::Mp3 { start, length } => {
                let part = Box::new(Part::new(stream, start, length));
                Inside::Packets(Box::new(Packets::open(Format::Mpeg, part)?))
            }
        };
        Ok(Sound { format, content })
    }
}

/// Mixes to mono: the mean of the channels.
pub fn downmix(samples: &[f32], channels: usize) -> Result<Vec<f32>> {
    let mut mixed = filled(0.0, samples.len() / channels.max(1))?;
    vectorized!(mix(samples, channels.max(1), &mut mixed));
    Ok(mixed)
}

#[inline(always)]
fn mix(samples: &[f32], channels: usize, mixed: &mut [f32]) {
    let weight = 1.0 / channels as f32;
    if channels == 2 {
        for (mean, [left, right]) in mixed.iter_mut().zip(samples.as_chunks::<2>().0) {
            *mean = left * weight + right * weight;
        }
        return;
    }
    for (mean, frame) in mixed.iter_mut().zip(samples.chunks_exact(channels)) {
        *mean = frame.iter().fold(0.0, |sum, sample| sum + sample * weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_cut_to_whole_frames() {
        let span = |offset, duration| Span::seconds(offset, duration, 16000);
        assert_eq!(span(0.0, -1.0), Span { start: 0, frames: None });
        assert_eq!(span(-1.0, 0.0), Span { start: 0, frames: Some(0) });
        assert_eq!(span(0.00109375, 0.00103), Span { start: 17, frames: Some(16) });
        assert_eq!(span(1e300, 1e300).end(), u64::MAX);
        assert_eq!(span(f64::NAN, f64::NAN), Span { start: 0, frames: None });
    }

    #[test]
    fn spans_begin_and_end_at_the_nearest_frame() {
        for frame in 0..100_000_u64 {
            let seconds = frame as f64 / 44100.0;
            let span = Span::nearest(seconds, Some(seconds), 44100);
            assert_eq!(span, Span { start: frame, frames: Some(frame) });
        }
        assert_eq!(Span::nearest(1e300, None, 8000).end(), u64::MAX);
    }

    #[test]
    fn channels_are_averaged() {
        let samples = [1.0, 2.0, 3.0, 5.0, -1.0, 1.0];
        assert_eq!(downmix(&samples, 2).ok(), Some(vec![1.5, 4.0, 0.0]));
        assert_eq!(downmix(&samples, 1).ok(), Some(samples.to_vec()));
        assert_eq!(downmix(&samples, 6).map(|mixed| mixed.len()).ok(), Some(1));
    }

    #[test]
    fn what_is_no_sound_is_refused() {
        for bytes in [
            &b""[..],
            b"RIF",
            b"junkjunk",
            b"RIFF\0\0\0\0WAVE",
            b"fLaC",
            b"OggS",
            b"RIFF",
            b"FORM\0\0\0\0AIFF",
            b".snd",
            b"NIST_1A\n",
            b"caff",
            b"\0\0\0\x08ftyp",
            b"\x1a\x45\xdf\xa3",
            b"\xff\xfb\x90",
            b"ID3\x04\0\0\0\0\0\0",
            b"ID3\x04\0\0\x7f\x7f\x7f\x7f",
        ] {
            assert!(Sound::open(Box::new(std::io::Cursor::new(bytes))).is_err(), "{bytes:?}");
        }
    }
}
