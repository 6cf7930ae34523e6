//! Codecs of images, audio, video and arrays.

pub mod audio;
pub mod bmp;
pub mod bounds;
mod budget;
pub mod convert;
pub mod exif;
pub mod gif;
pub mod image;
pub mod jpeg;
pub mod jpeg2000;
pub mod npy;
pub mod pixels;
pub mod png;
pub mod pnm;
#[cfg(test)]
mod samples;
pub mod tiff;
pub mod video;
pub mod webp;

pub use image::{Image, Output, Request, Window};
pub use pixels::{Color, Data, Format, Header, ImageFault, Pixels, Problem, broken};

use crate::value::Kind;

/// The kinds of problems that codecs report.
pub const KINDS: &[&[Kind]] = &[
    audio::AudioFault::KINDS,
    bmp::BmpFault::KINDS,
    gif::GifFault::KINDS,
    jpeg::JpegFault::KINDS,
    jpeg2000::Jpeg2000Fault::KINDS,
    npy::NpyFault::KINDS,
    pixels::ImageFault::KINDS,
    png::PngFault::KINDS,
    pnm::PnmFault::KINDS,
    tiff::TiffFault::KINDS,
    video::VideoFault::KINDS,
    webp::WebPFault::KINDS,
];

/// The format of a file, by its first bytes.
pub fn sniff(bytes: &[u8]) -> Option<Format> {
    let at = |offset: usize, what: &[u8]| bytes.get(offset..).is_some_and(|b| b.starts_with(what));
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Some(Format::Jpeg),
        [0x89, b'P', b'N', b'G', ..] => Some(Format::Png),
        [b'G', b'I', b'F', b'8', ..] => Some(Format::Gif),
        [b'B', b'M', ..] => Some(Format::Bmp),
        [b'P', b'1'..=b'7', b' ' | b'\t' | b'\n' | b'\r' | b'#', ..] => Some(Format::Pnm),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Format::Tiff),
        [b'R', b'I', b'F', b'F', ..] if at(8, b"WEBP") => Some(Format::WebP),
        [0xff, 0x4f, 0xff, 0x51, ..] => Some(Format::Jpeg2000),
        [0, 0, 0, 12, ..] if at(4, b"jP  \r\n\x87\n") => Some(Format::Jpeg2000),
        _ => None,
    }
}

impl Format {
    pub const ALL: [Format; 8] = [
        Format::Jpeg,
        Format::Png,
        Format::WebP,
        Format::Tiff,
        Format::Bmp,
        Format::Pnm,
        Format::Gif,
        Format::Jpeg2000,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Format::Bmp => "BMP",
            Format::Gif => "GIF",
            Format::Jpeg => "JPEG",
            Format::Jpeg2000 => "JPEG 2000",
            Format::Png => "PNG",
            Format::Pnm => "PNM",
            Format::Tiff => "TIFF",
            Format::WebP => "WebP",
        }
    }
}

impl Color {
    pub fn channels(self) -> usize {
        match self {
            Color::Gray => 1,
            Color::GrayAlpha => 2,
            Color::Rgb => 3,
            Color::Rgba => 4,
            Color::Other(channels) => channels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        assert_eq!(sniff(b"\xff\xd8\xff\xe0"), Some(Format::Jpeg));
        assert_eq!(sniff(b"P6\n2 2\n255\n"), Some(Format::Pnm));
        assert_eq!(sniff(b"P6x"), None);
        assert_eq!(sniff(b"RIFF....WEBPVP8 "), Some(Format::WebP));
        assert_eq!(sniff(b"RIFF....WAVE"), None);
        assert_eq!(sniff(b"RIFF"), None);
        assert_eq!(sniff(b"\xff\xd8"), None);
        assert_eq!(sniff(b""), None);
    }
}
