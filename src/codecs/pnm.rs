//! PBM, PGM, PPM (P1 to P6) and PAM (P7).
//!
//! Values are returned as stored: like DALI, this doesn't scale them by the header's maximum.

use super::{Color, Data, Format, Header, ImageFault, Pixels, Problem, bounds, broken};
use crate::value::{DType, collected, problems, with_room};

problems! {
    pub enum PnmFault {
        Magic,
        Largest { value: usize },
        NotANumber { byte: u8, row: usize, height: usize },
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Samples {
    /// Decimal numbers.
    Words,
    /// Digits 0 and 1, with or without whitespace; 1 is black.
    PlainBits,
    /// Eight pixels per byte, rows are padded to a byte; 1 is black.
    Bits,
    Bytes,
    /// Two bytes each, big-endian.
    Pairs,
}

struct Head {
    height: usize,
    width: usize,
    channels: usize,
    samples: Samples,
    wide: bool,
    /// Offset of the samples.
    start: usize,
}

impl Head {
    /// The least size of a row in bytes; a decimal number has at least one digit.
    fn row(&self) -> usize {
        match self.samples {
            Samples::Words | Samples::PlainBits | Samples::Bytes => {
                self.width.saturating_mul(self.channels)
            }
            Samples::Bits => self.width.div_ceil(8),
            Samples::Pairs => self.width.saturating_mul(2 * self.channels),
        }
    }
}

pub fn header(bytes: &[u8]) -> Result<Header, Problem> {
    let head = head(bytes)?;
    let size = if head.wide { 2 } else { 1 };
    // Decimal numbers are first read as 16-bit ones.
    let copies = if head.samples == Samples::Words { size + 2 } else { size };
    let samples = head.height.saturating_mul(head.width).saturating_mul(head.channels);
    Ok(Header {
        format: Format::Pnm,
        height: head.height,
        width: head.width,
        channels: head.channels,
        dtype: if head.wide { DType::U16 } else { DType::U8 },
        orientation: 1,
        scratch: samples.saturating_mul(copies),
        smallest: head.row().saturating_mul(head.height) / bounds::CUT,
    })
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Problem> {
    let head = head(bytes)?;
    let Head { height, width, channels, .. } = head;
    let count = bounds::area(height, width)? * channels;
    let body = bytes.get(head.start..).unwrap_or(&[]);
    let row = head.row();
    if body.len() < row * height {
        return Err(broken(ImageFault::EndsAtRow { row: body.len() / row, height }));
    }
    let rows = body[..row * height].chunks_exact(row);
    let data = match head.samples {
        Samples::Bytes => Data::U8(collected(body[..count].iter().copied())?),
        Samples::Pairs => {
            let pairs = body[..2 * count].as_chunks().0;
            Data::U16(collected(pairs.iter().map(|&pair| u16::from_be_bytes(pair)))?)
        }
        Samples::Bits => {
            let black = |row: &'_ [u8], x: usize| row[x / 8] >> (7 - x % 8) & 1;
            let mut white = with_room(count)?;
            for row in rows {
                white.extend((0..width).map(|x| black(row, x).wrapping_sub(1)));
            }
            Data::U8(white)
        }
        Samples::PlainBits => {
            let mut data = with_room(count)?;
            let mut at = 0;
            while data.len() < count {
                at = skip_space(body, at);
                match body.get(at) {
                    Some(b'0') => data.push(255),
                    Some(b'1') => data.push(0),
                    other => return Err(no_number(other.copied(), data.len() / width, height)),
                }
                at += 1;
            }
            Data::U8(data)
        }
        Samples::Words => {
            let mut data = with_room(count)?;
            let mut at = 0;
            while data.len() < count {
                at = skip_space(body, at);
                let (value, after) = number(body, at).ok_or_else(|| {
                    no_number(body.get(at).copied(), data.len() / (width * channels), height)
                })?;
                data.push(u16::try_from(value).unwrap_or(u16::MAX));
                at = after;
            }
            if head.wide {
                Data::U16(data)
            } else {
                Data::U8(collected(data.into_iter().map(|value: u16| value.min(255) as u8))?)
            }
        }
    };
    let color = match channels {
        1 => Color::Gray,
        2 => Color::GrayAlpha,
        3 => Color::Rgb,
        4 => Color::Rgba,
        other => Color::Other(other),
    };
    Ok(Pixels { height, width, color, data })
}

fn no_number(found: Option<u8>, row: usize, height: usize) -> Problem {
    match found {
        None => broken(ImageFault::EndsAtRow { row, height }),
        Some(byte) => broken(PnmFault::NotANumber { byte, row, height }),
    }
}

fn head(bytes: &[u8]) -> Result<Head, Problem> {
    let cut = || broken(ImageFault::NoHeader);
    let kind = match bytes {
        [b'P', kind @ b'1'..=b'7', ..] => kind - b'0',
        _ => return Err(broken(PnmFault::Magic)),
    };
    if kind == 7 {
        return pam_head(bytes);
    }
    let mut at = 2;
    let mut next = || -> Result<usize, Problem> {
        at = skip_space(bytes, at);
        let (value, after) = number(bytes, at).ok_or_else(cut)?;
        at = after;
        Ok(value)
    };
    let (width, height) = (next()?, next()?);
    let most = if matches!(kind, 1 | 4) { 1 } else { next()? };
    let wide = wide(most)?;
    Ok(Head {
        height,
        width,
        channels: if matches!(kind, 3 | 6) { 3 } else { 1 },
        samples: match kind {
            1 => Samples::PlainBits,
            2 | 3 => Samples::Words,
            4 => Samples::Bits,
            _ if wide => Samples::Pairs,
            _ => Samples::Bytes,
        },
        wide,
        start: at + 1, // one space ends the header
    })
}

fn pam_head(bytes: &[u8]) -> Result<Head, Problem> {
    let (mut height, mut width, mut channels, mut most) = (None, None, None, None);
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(end) = rest.iter().take(1 << 16).position(|&byte| byte == b'\n') else {
            return Err(broken(ImageFault::NoHeader));
        };
        at += end + 1;
        let line = rest[..end].trim_ascii();
        if line == b"ENDHDR" {
            break;
        }
        let (name, value) = line.split_at(line.iter().position(|&b| b == b' ').unwrap_or(0));
        let slot = match name {
            b"HEIGHT" => &mut height,
            b"WIDTH" => &mut width,
            b"DEPTH" => &mut channels,
            b"MAXVAL" => &mut most,
            _ => continue,
        };
        *slot = number(value.trim_ascii(), 0).map(|(value, _)| value);
    }
    let (Some(height), Some(width), Some(channels @ 1..=64), Some(most)) =
        (height, width, channels, most)
    else {
        return Err(broken(ImageFault::NoHeader));
    };
    let wide = wide(most)?;
    let samples = if wide { Samples::Pairs } else { Samples::Bytes };
    Ok(Head { height, width, channels, samples, wide, start: at })
}

/// Whether samples up to `most` need two bytes.
fn wide(most: usize) -> Result<bool, Problem> {
    match most {
        1..=255 => Ok(false),
        256..=65535 => Ok(true),
        _ => Err(broken(PnmFault::Largest { value: most })),
    }
}

/// The offset of the next byte that is neither whitespace nor in a comment.
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        if byte == b'#' {
            let comment = bytes[at..].iter().position(|&byte| byte == b'\n' || byte == b'\r');
            at += comment.unwrap_or(bytes.len() - at);
        } else if byte.is_ascii_whitespace() || byte == 0x0b {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// A decimal number and the offset of its end.
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let digits = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let value = bytes[at..at + digits].iter().fold(0usize, |value, digit| {
        value.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    });
    Some((value, at + digits))
}
