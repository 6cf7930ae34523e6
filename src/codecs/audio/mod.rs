//! Audio: headers and samples.

mod packets;
mod wav;

use std::io::{Error, ErrorKind, Read, Seek, SeekFrom};
use std::sync::OnceLock;

use self::packets::Packets;
use self::wav::Wav;
use crate::value::{Cause, Damage, collected, io_fault, problems};

pub type Result<T> = std::result::Result<T, Cause>;

/// A file, or bytes in memory.
pub trait Stream: Read + Seek + Send + Sync {}

impl<S: Read + Seek + Send + Sync> Stream for S {}

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
        TooLong { samples: usize, limit: usize },
        TooShort,
        UnknownFormat,
        EndsEarly,
        Read { text: String },
        NotWave,
        NoFormatChunk,
        NoDataChunk,
        Coding { bits: u16, tag: u16 },
        Frames { channels: usize, rate: u32, block: usize },
        NoSound,
        UnknownCoding,
        Claims { channels: usize, rate: u32 },
        Changes,
        FramesMissing { frames: u64, found: u64 },
        Index,
        Damaged { text: String },
        Undecodable { text: String },
        Unexpected,
    }
}

pub fn broken(fault: AudioFault) -> Cause {
    Cause::Undecodable { kind: Damage::Broken, problem: fault.into() }
}

pub fn truncated() -> Cause {
    Cause::Undecodable { kind: Damage::Truncated, problem: AudioFault::EndsEarly.into() }
}

/// The fault for an I/O error.
pub fn unread(error: &Error) -> Cause {
    match error.kind() {
        ErrorKind::UnexpectedEof => truncated(),
        _ if error.raw_os_error().is_some() => io_fault(error),
        _ => broken(AudioFault::Read { text: error.to_string() }),
    }
}

/// An element type for samples, which are scaled to its range.
pub trait Pcm: Copy + Send + 'static {
    /// From an integer that uses all 32 bits.
    fn from_full(full: i32) -> Self;
    /// From a number in -1..1.
    fn from_unit(unit: f32) -> Self;
}

impl Pcm for f32 {
    fn from_full(full: i32) -> f32 {
        full as f32 * (1.0 / 2_147_483_648.0)
    }

    fn from_unit(unit: f32) -> f32 {
        unit
    }
}

impl Pcm for i16 {
    fn from_full(full: i32) -> i16 {
        (full >> 16) as i16
    }

    fn from_unit(unit: f32) -> i16 {
        // The cast saturates.
        (unit * 32767.0).round() as i16
    }
}

impl Pcm for i32 {
    fn from_full(full: i32) -> i32 {
        full
    }

    fn from_unit(unit: f32) -> i32 {
        (unit * 2_147_483_647.0).round() as i32
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
    /// From an offset and a duration in seconds. A negative offset means the start, a negative
    /// duration the rest of the audio.
    pub fn seconds(offset: f64, duration: f64, rate: u32) -> Span {
        // Casts saturate, and turn NaN into 0.
        let frames = |seconds: f64| (seconds * f64::from(rate)) as u64;
        Span { start: frames(offset), frames: (duration >= 0.0).then(|| frames(duration)) }
    }

    pub fn end(self) -> u64 {
        self.frames.map_or(u64::MAX, |frames| self.start.saturating_add(frames))
    }
}

/// Audio whose header has been read.
pub enum Sound<'a> {
    Wav(Wav<'a>),
    Packets(Packets<'a>),
}

impl<'a> Sound<'a> {
    /// `Err` if the format is unknown or the header is damaged.
    pub fn open(mut stream: Box<dyn Stream + 'a>) -> Result<Sound<'a>> {
        let mut magic = [0; 4];
        let begins = stream.read_exact(&mut magic).and_then(|()| stream.seek(SeekFrom::Start(0)));
        match begins {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(broken(AudioFault::TooShort));
            }
            Err(error) => return Err(unread(&error)),
        }
        match &magic {
            b"RIFF" | b"RF64" => Ok(Sound::Wav(Wav::open(stream)?)),
            b"fLaC" | b"OggS" => Ok(Sound::Packets(Packets::open(stream)?)),
            _ => Err(broken(AudioFault::UnknownFormat)),
        }
    }

    /// The sampling rate, in Hz.
    pub fn rate(&self) -> u32 {
        match self {
            Sound::Wav(wav) => wav.rate,
            Sound::Packets(packets) => packets.rate,
        }
    }

    pub fn channels(&self) -> usize {
        match self {
            Sound::Wav(wav) => wav.channels,
            Sound::Packets(packets) => packets.channels,
        }
    }

    /// The number of frames, if the header has it.
    pub fn frames(&self) -> Option<u64> {
        match self {
            Sound::Wav(wav) => Some(wav.frames),
            Sound::Packets(packets) => packets.frames,
        }
    }

    /// The limit on decoded samples.
    pub fn limit(&self) -> Limit {
        match self {
            Sound::Wav(wav) => wav.limit,
            Sound::Packets(packets) => packets.limit,
        }
    }

    /// The samples of all channels, interleaved. A span beyond the end is clipped.
    pub fn read<T: Pcm>(self, span: Span) -> Result<Vec<T>> {
        match self {
            Sound::Wav(wav) => wav.read(span),
            Sound::Packets(packets) => packets.read(span),
        }
    }
}

/// Mixes to mono: the mean of the channels.
pub fn downmix(samples: &[f32], channels: usize) -> Result<Vec<f32>> {
    let weight = 1.0 / channels as f32;
    let mean = |frame: &[f32]| frame.iter().fold(0.0, |sum, sample| sum + sample * weight);
    collected(samples.chunks_exact(channels.max(1)).map(mean))
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
    fn numbers_are_scaled_to_the_range_of_their_type() {
        assert_eq!(f32::from_full(0x4000_0000), 0.5);
        assert_eq!((i16::from_full(-0x8000_0000), i16::from_full(0x7fff_ffff)), (-32768, 32767));
        assert_eq!(i16::from_unit(2.0), 32767);
        assert_eq!(i16::from_unit(-16400.5 / 32767.0), -16401);
        assert_eq!(i16::from_unit(f32::NAN), 0);
        assert_eq!(i32::from_unit(1.0), i32::MAX);
    }

    #[test]
    fn what_is_no_sound_is_refused() {
        for bytes in [&b""[..], b"RIF", b"junkjunk", b"RIFF\0\0\0\0WAVE", b"fLaC", b"OggS", b"RIFF"]
        {
            assert!(Sound::open(Box::new(std::io::Cursor::new(bytes))).is_err(), "{bytes:?}");
        }
    }
}
