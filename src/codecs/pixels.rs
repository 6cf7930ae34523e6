//! What all image codecs speak of: headers, pixels as they were stored, and what is wrong with a
//! file.

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

/// What a file's header tells of its (first) image, before any orientation is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub format: Format,
    pub height: usize,
    pub width: usize,
    /// Channels of the pixels that decoding gives: a palette counts as what it stands for.
    pub channels: usize,
    /// Type of the numbers that decoding gives: `U8`, `U16`, ...
    pub dtype: DType,
    /// As in EXIF: 1 is upright, 6 wants a quarter turn to the right, ...
    pub orientation: u8,
    /// Bytes that decoding takes at one time, beside the result.
    pub scratch: usize,
    /// Bytes that a file of this image has at least.
    pub smallest: usize,
}

/// What the channels of a pixel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
    /// Something else, with this many channels.
    Other(usize),
}

/// An image as it was stored: interleaved, row by row, in its own colors and type.
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
    /// What is wrong with it; the sentence completes "this PNG ...".
    Broken(value::Problem),
    /// What is not the image's fault, above all that there is no memory.
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

/// An image that its bytes make impossible.
pub fn broken(fault: impl Into<value::Problem>) -> Problem {
    Problem::Broken(fault.into())
}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Problem {
        Problem::Other(cause)
    }
}
