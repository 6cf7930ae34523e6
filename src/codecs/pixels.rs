//! Types shared by all image codecs: headers, stored pixels, problems.

use crate::value::{self, Cause, DType, problems};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Bmp,
    Gif,
    Jpeg,
    Jpeg2000,
    Png,
    Pnm,
    Tiff,
    WebP,
}

/// The header of a file's (first) image, before its orientation is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub format: Format,
    pub height: usize,
    pub width: usize,
    /// Channels of the decoded pixels: palettes are resolved.
    pub channels: usize,
    /// Type of the decoded values: `U8`, `U16`, ...
    pub dtype: DType,
    /// As in EXIF: 1 is upright, 6 has to be rotated by 90 degrees clockwise, ...
    pub orientation: u8,
    /// Peak scratch memory of decoding in bytes, without the result.
    pub scratch: usize,
    /// The least size that a file of this image can have.
    pub smallest: usize,
}

/// The meaning of the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
    /// Anything else, with this many channels.
    Other(usize),
}

/// An image as stored: interleaved, row by row, in its own color space and type.
pub struct Pixels {
    pub height: usize,
    pub width: usize,
    pub color: Color,
    pub data: Data,
}

pub enum Data {
    U8(Vec<u8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    F32(Vec<f32>),
}

/// Why an image can't be decoded.
#[derive(Debug)]
pub enum Problem {
    /// The file is invalid; the sentence completes "this PNG ...".
    Broken(value::Problem),
    /// Something other than the file, usually a lack of memory.
    Other(Cause),
}

problems! {
    /// What may be wrong with an image of any format.
    pub enum ImageFault {
        This { format: &'static str, problem: value::Problem },
        Empty,
        UnknownFormat { formats: String, start: String },
        NotBuilt,
        NoPixels { height: usize, width: usize },
        TooManyPixels { height: usize, width: usize, limit: usize },
        TooManyBytes { height: usize, width: usize, bytes: usize, limit: usize },
        TooShort { length: usize },
        NoHeader,
        Mismatch,
        EndsEarly,
        EndsAtRow { row: usize, height: usize },
        Damaged { text: String },
    }
}

/// The problem of an invalid file.
pub fn broken(fault: impl Into<value::Problem>) -> Problem {
    Problem::Broken(fault.into())
}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Problem {
        Problem::Other(cause)
    }
}
