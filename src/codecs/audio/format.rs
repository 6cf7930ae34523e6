//! Formats of audio files, by their first bytes.

use std::io::SeekFrom;

use super::stream::Part;
use super::{AudioFault, Result, Stream, broken, read_at, unread, unsupported};
use crate::value::{Cause, Damage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Wav,
    W64,
    Aiff,
    Au,
    Sphere,
    Caf,
    Flac,
    Ogg,
    /// MP3 and MP2.
    Mpeg,
    Adts,
    Mp4,
    Matroska,
}

/// Enough of a file to tell its format.
const START: usize = 64;

/// Tags that may come one after the other in front of the audio.
const MOST_TAGS: usize = 16;

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Wav => "WAV",
            Format::W64 => "W64",
            Format::Aiff => "AIFF",
            Format::Au => "AU",
            Format::Sphere => "NIST SPHERE",
            Format::Caf => "CAF",
            Format::Flac => "FLAC",
            Format::Ogg => "Ogg",
            Format::Mpeg => "MP3",
            Format::Adts => "AAC",
            Format::Mp4 => "MP4",
            Format::Matroska => "Matroska or WebM",
        }
    }

    /// The format of a file, and the file without ID3 tags in front of the audio.
    pub fn of<'a>(mut stream: Box<dyn Stream + 'a>) -> Result<(Format, Box<dyn Stream + 'a>)> {
        let bytes = stream.seek(SeekFrom::End(0)).map_err(|error| unread(&error))?;
        let mut at = 0;
        for _ in 0..MOST_TAGS {
            let mut start = [0; START];
            let known = usize::try_from(bytes.saturating_sub(at)).unwrap_or(START).min(START);
            let start = &mut start[..known];
            read_at(&mut stream, at, start)?;
            match *start {
                [b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] => {
                    // A size of four times seven bits, without header and footer.
                    let size =
                        [a, b, c, d].iter().fold(0, |size, byte| size << 7 | u64::from(byte & 127));
                    at += 10 + size + if flags & 0x10 == 0 { 0 } else { 10 };
                }
                _ if start.len() < 4 => return Err(broken(AudioFault::TooShort)),
                _ => {
                    let format = Format::sniff(start).ok_or_else(|| unknown(start))?;
                    return Ok(match at {
                        0 => (format, stream),
                        _ => (format, Box::new(Part::new(stream, at, bytes - at))),
                    });
                }
            }
        }
        Err(broken(AudioFault::NoSound))
    }

    fn sniff(start: &[u8]) -> Option<Format> {
        let at = |offset: usize, text: &[u8]| {
            start.get(offset..).is_some_and(|start| start.starts_with(text))
        };
        Some(match *start {
            [b'R', b'I', b'F', b'F', ..] if !at(8, b"AVI ") => Format::Wav,
            [b'R', b'F', b'6', b'4', ..] => Format::Wav,
            [b'r', b'i', b'f', b'f', 0x2e, 0x91, 0xcf, 0x11, ..] => Format::W64,
            [b'F', b'O', b'R', b'M', ..] if at(8, b"AIFF") || at(8, b"AIFC") => Format::Aiff,
            [b'.', b's', b'n', b'd', ..] | [b'd', b'n', b's', b'.', ..] => Format::Au,
            [b'N', b'I', b'S', b'T', b'_', b'1', b'A', b'\n', ..] => Format::Sphere,
            [b'c', b'a', b'f', b'f', ..] => Format::Caf,
            [b'f', b'L', b'a', b'C', ..] => Format::Flac,
            [b'O', b'g', b'g', b'S', ..] => Format::Ogg,
            [0x1a, 0x45, 0xdf, 0xa3, ..] => Format::Matroska,
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Format::Mp4,
            // A synchronization word and a layer, which is 0 in ADTS.
            [0xff, second, ..] if second & 0xf6 == 0xf0 => Format::Adts,
            [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 6 != 0 => Format::Mpeg,
            _ => return None,
        })
    }
}

fn unknown(start: &[u8]) -> Cause {
    let at = |offset: usize, text: &[u8]| {
        start.get(offset..).is_some_and(|start| start.starts_with(text))
    };
    let known: &[(usize, &[u8], &str)] = &[
        (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA (or another ASF file)"),
        (0, b"#!AMR", "AMR"),
        (0, b"wvpk", "WavPack"),
        (0, b"MAC ", "Monkey's Audio"),
        (0, b"TTA1", "True Audio"),
        (0, b"MPCK", "Musepack"),
        (0, b"MP+", "Musepack"),
        (0, b"DSD ", "DSD"),
        (0, b"FRM8", "DSD"),
        (0, b"Creative Voice File", "VOC"),
        (0, b"MThd", "MIDI"),
        (0, b"\x0b\x77", "AC-3"),
        (0, b"\x7f\xfe\x80\x01", "DTS"),
        (0, b"FLV\x01", "Flash video"),
        (8, b"AVI ", "AVI"),
    ];
    if let Some((.., name)) = known.iter().find(|(offset, text, _)| at(*offset, text)) {
        return unsupported(*name);
    }
    let start =
        start.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    let problem = AudioFault::UnknownFormat { start }.into();
    Cause::Undecodable { kind: Damage::Unknown, problem }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn format(bytes: &[u8]) -> Option<Format> {
        Format::of(Box::new(Cursor::new(bytes))).ok().map(|(format, _)| format)
    }

    #[test]
    fn formats_are_told_by_their_start() {
        assert_eq!(format(b"\xff\xfb\x90\x64"), Some(Format::Mpeg));
        assert_eq!(format(b"\xff\xf1\x50\x80"), Some(Format::Adts));
        assert_eq!(format(b"\xff\xff\xff\xff"), Some(Format::Mpeg));
        assert_eq!(format(b"\0\0\0\x20ftypM4A "), Some(Format::Mp4));
        assert_eq!(format(b"RIFF\0\0\0\0AVI "), None);
        assert_eq!(format(b"hello"), None);
    }

    #[test]
    fn tags_in_front_are_skipped() {
        assert_eq!(format(b"ID3\x04\0\0\0\0\0\x02xxfLaC"), Some(Format::Flac));
        assert_eq!(format(b"ID3\x04\0\x10\0\0\0\x00123456789\0fLaC"), Some(Format::Flac));
        assert_eq!(format(b"ID3\x04\0\0\x7f\x7f\x7f\x7f"), None);
        assert_eq!(format(&b"ID3\x04\0\0\0\0\0\0".repeat(99)), None);
    }
}
