//! PNG, with the `png` crate.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, DecodingError, Reader, Transformations};

use super::{Color, Data, Format, Header, ImageFault, Pixels, Problem, bounds, broken, exif};
use crate::value::{DType, collected, problems, zeroed};

problems! {
    pub enum PngFault {
        TooLarge,
        Memory,
        Palette { bytes: usize },
    }
}

/// Deflate expands a byte to at most 1032.
const DEFLATE: usize = 1032;

pub fn header(bytes: &[u8]) -> Result<Header, Problem> {
    let reader = match open(bytes) {
        Err(DecodingError::LimitsExceeded) => {
            // If there are too many pixels, the error should say how many.
            let (height, width) = claimed(bytes).ok_or_else(|| undecoded(LIMITS))?;
            return match bounds::area(height, width) {
                Err(_) => Ok(Header {
                    format: Format::Png,
                    height,
                    width,
                    channels: 3,
                    dtype: DType::U8,
                    orientation: 1,
                    scratch: 0,
                    smallest: 0,
                }),
                Ok(_) => Err(undecoded(LIMITS)),
            };
        }
        opened => opened.map_err(undecoded)?,
    };
    check_palette(&reader)?;
    let info = reader.info();
    let (color, depth) = stored(&reader);
    let packed = info.raw_row_length().saturating_mul(info.height as usize);
    let size = reader.output_buffer_size().unwrap_or(usize::MAX);
    let copies = if depth == BitDepth::Sixteen { 2 } else { 1 };
    Ok(Header {
        format: Format::Png,
        height: info.height as usize,
        width: info.width as usize,
        channels: color.samples(),
        dtype: if depth == BitDepth::Sixteen { DType::U16 } else { DType::U8 },
        orientation: info.exif_metadata.as_deref().map_or(1, exif::orientation),
        scratch: size.saturating_mul(copies).saturating_add(rows_of(&reader)),
        smallest: packed / DEFLATE,
    })
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Problem> {
    let mut reader = open(bytes).map_err(undecoded)?;
    check_palette(&reader)?;
    let info = reader.info();
    let (height, width) = (info.height as usize, info.width as usize);
    bounds::area(height, width)?;
    let size = reader.output_buffer_size().ok_or_else(|| broken(PngFault::TooLarge))?;
    let (read, depth) = reader.output_color_type();
    let (color, _) = stored(&reader);

    let row = size / height;
    let mut data = zeroed(size)?;
    if reader.info().interlaced {
        reader.next_frame(&mut data).map_err(undecoded)?;
    } else {
        for (y, line) in data.chunks_exact_mut(row).enumerate() {
            reader.read_row(line).map_err(|error| match error {
                DecodingError::IoError(_) => broken(ImageFault::EndsAtRow { row: y, height }),
                error => undecoded(error),
            })?;
        }
    }
    reader.finish().map_err(undecoded)?;
    if read != color {
        let sample = if depth == BitDepth::Sixteen { 2 } else { 1 };
        drop_last(&mut data, read.samples() * sample, sample);
    }
    Ok(Pixels {
        height,
        width,
        color: match color {
            ColorType::Grayscale => Color::Gray,
            ColorType::GrayscaleAlpha => Color::GrayAlpha,
            ColorType::Rgba => Color::Rgba,
            ColorType::Rgb | ColorType::Indexed => Color::Rgb,
        },
        data: if depth == BitDepth::Sixteen {
            let pairs = data.as_chunks().0.iter();
            Data::U16(collected(pairs.map(|&pair| u16::from_be_bytes(pair)))?)
        } else {
            Data::U8(data)
        },
    })
}

const LIMITS: DecodingError = DecodingError::LimitsExceeded;

/// Height and width according to the first chunk.
fn claimed(bytes: &[u8]) -> Option<(usize, usize)> {
    let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    Some((number(20)?, number(16)?))
}

/// The crate assumes that the palette's length is a multiple of 3.
fn check_palette(reader: &Reader<Cursor<&[u8]>>) -> Result<(), Problem> {
    match reader.info().palette.as_deref() {
        Some(palette) if !palette.len().is_multiple_of(3) => {
            Err(broken(PngFault::Palette { bytes: palette.len() }))
        }
        _ => Ok(()),
    }
}

/// Memory that the crate needs for rows, in bytes.
fn rows_of(reader: &Reader<Cursor<&[u8]>>) -> usize {
    let info = reader.info();
    let expanded = reader.output_line_size(info.width).unwrap_or(usize::MAX);
    info.raw_row_length().saturating_mul(3).saturating_add(expanded).saturating_add(1 << 18)
}

fn open(bytes: &[u8]) -> Result<Reader<Cursor<&[u8]>>, DecodingError> {
    let mut decoder = Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.read_info()
}

/// Color type and depth without the transparency of a tRNS chunk: DALI ignores it, and keeps only
/// alpha channels.
fn stored(reader: &Reader<Cursor<&[u8]>>) -> (ColorType, BitDepth) {
    let (read, depth) = reader.output_color_type();
    let color = match (reader.info().color_type, read) {
        (ColorType::Grayscale, _) => ColorType::Grayscale,
        (ColorType::Rgb | ColorType::Indexed, _) => ColorType::Rgb,
        (_, read) => read,
    };
    (color, depth)
}

/// Removes the last `sample` bytes of every `pixel` bytes.
fn drop_last(data: &mut Vec<u8>, pixel: usize, sample: usize) {
    let kept = pixel - sample;
    let pixels = data.len() / pixel;
    for n in 1..pixels {
        data.copy_within(n * pixel..n * pixel + kept, n * kept);
    }
    data.truncate(pixels * kept);
}

fn undecoded(error: DecodingError) -> Problem {
    match error {
        DecodingError::IoError(_) => broken(ImageFault::EndsEarly),
        DecodingError::LimitsExceeded => broken(PngFault::Memory),
        error => broken(ImageFault::Damaged { text: error.to_string() }),
    }
}
