//! Decompression of strips and tiles.

use super::TiffFault;
use crate::codecs::bounds;
use fax::decoder::{DecodeStatus, Group3Decoder, Group4Decoder, pels};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compression {
    None,
    Group3,
    Group4,
    Lzw,
    Deflate,
    PackBits,
    Jpeg,
}

impl Compression {
    pub fn new(tag: usize, fax_options: usize) -> Result<Self, TiffFault> {
        let name = match tag {
            1 => return Ok(Self::None),
            3 if fax_options & 3 == 0 => return Ok(Self::Group3),
            4 => return Ok(Self::Group4),
            5 => return Ok(Self::Lzw),
            7 => return Ok(Self::Jpeg),
            8 | 32946 => return Ok(Self::Deflate),
            32773 => return Ok(Self::PackBits),
            2 => "ccitt_rle",
            3 => "fax_2d",
            6 => "old_jpeg",
            34712 => "JPEG 2000",
            34925 => "LZMA",
            50000 => "Zstandard",
            50001 => "WebP",
            _ => return Err(TiffFault::Method { method: tag }),
        };
        Err(TiffFault::Compression { name })
    }

    /// Generous limit on the bytes of samples per compressed byte.
    pub fn most(self) -> usize {
        match self {
            Self::None => bounds::CUT,
            Self::Deflate => 1032,
            Self::Lzw | Self::PackBits => 1 << 12,
            Self::Jpeg => 1 << 13,
            // A bit can stand for a row equal to the one before, of up to 65535 pixels.
            Self::Group3 | Self::Group4 => 1 << 16,
        }
    }

    /// Decompresses to `out`, and returns the number of bytes, or an error if the data is damaged.
    /// `width` is the width of the strip or tile in pixels. (JPEG needs more: see `jpeg.rs`.)
    pub fn expand(self, bytes: &[u8], out: &mut [u8], width: usize) -> Result<usize, ()> {
        match self {
            Self::None => {
                let count = out.len().min(bytes.len());
                out[..count].copy_from_slice(&bytes[..count]);
                Ok(count)
            }
            Self::PackBits => Ok(unpack_bits(bytes, out)),
            Self::Deflate => inflate(bytes, out),
            Self::Lzw => lzw(bytes, out),
            Self::Jpeg => Err(()),
            Self::Group3 | Self::Group4 => {
                let width = u16::try_from(width).map_err(drop)?;
                fax(self, bytes, out, width)
            }
        }
    }
}

fn unpack_bits(mut bytes: &[u8], out: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < out.len() {
        let Some((&head, rest)) = bytes.split_first() else { break };
        let free = out.len() - filled;
        match head as i8 {
            -128 => bytes = rest,
            head @ 0.. => {
                let count = (head as usize + 1).min(rest.len());
                let kept = count.min(free);
                out[filled..filled + kept].copy_from_slice(&rest[..kept]);
                filled += kept;
                bytes = &rest[count..];
            }
            head => {
                let Some((&value, rest)) = rest.split_first() else { break };
                let count = (1 - isize::from(head)) as usize;
                let kept = count.min(free);
                out[filled..filled + kept].fill(value);
                filled += kept;
                bytes = rest;
            }
        }
    }
    filled
}

fn inflate(mut bytes: &[u8], out: &mut [u8]) -> Result<usize, ()> {
    let mut decoder = fdeflate::Decompressor::new();
    let mut filled = 0;
    while filled < out.len() && !decoder.is_done() {
        let (used, made) = match decoder.read(bytes, out, filled, true) {
            Ok(progress) => progress,
            Err(fdeflate::DecompressionError::InsufficientInput) => break,
            Err(_) => return Err(()),
        };
        bytes = &bytes[used..];
        filled += made;
        if used == 0 && made == 0 {
            break;
        }
    }
    Ok(filled)
}

/// Twice as fast as the crate: entries of the table refer to strings already written to `out`.
fn lzw(bytes: &[u8], out: &mut [u8]) -> Result<usize, ()> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    let mut table = [(0usize, 0usize); 4096]; // start and length in `out`
    let (mut next, mut width) = (END + 1, 9);
    let mut last: Option<(usize, usize)> = None;
    let (mut window, mut held) = (0u64, 0); // bits that were read, and how many are left
    let mut rest = bytes.iter();
    let mut filled = 0;
    while filled < out.len() {
        while held < width {
            let Some(&byte) = rest.next() else { return Ok(filled) };
            window = window << 8 | u64::from(byte);
            held += 8;
        }
        held -= width;
        let code = (window >> held) as usize & ((1 << width) - 1);
        if code == CLEAR {
            (next, width, last) = (END + 1, 9, None);
            continue;
        }
        if code == END {
            break;
        }
        // The previous string and the first byte of this one are adjacent in `out`.
        if let Some((start, length)) = last.filter(|_| next < table.len()) {
            table[next] = (start, length + 1);
            next += 1;
            if next >= (1 << width) - 1 && width < 12 {
                width += 1;
            }
        }
        let start = filled;
        if code < CLEAR {
            out[filled] = code as u8;
            filled += 1;
        } else if code < next {
            let (from, length) = table[code];
            let length = length.min(out.len() - filled);
            // The string may include bytes that are being written now.
            let there = length.min(filled - from);
            out.copy_within(from..from + there, filled);
            for n in there..length {
                out[filled + n] = out[from + n];
            }
            filled += length;
        } else {
            return Err(());
        }
        last = Some((start, filled - start));
    }
    Ok(filled)
}

/// One bit per pixel, rows are padded to a byte, black is 1.
fn fax(kind: Compression, bytes: &[u8], out: &mut [u8], width: u16) -> Result<usize, ()> {
    // The crate expects group 3 data to begin with an end-of-line code (eleven zeros and a one),
    // which TIFF files may omit, and to end with six of them.
    let group3 = kind == Compression::Group3;
    let begun = bytes.first() == Some(&0) && bytes.get(1).is_some_and(|byte| byte >> 5 == 0);
    let start: &[u8] = if group3 && !begun { &[0, 1] } else { &[] };
    let end: &[u8] = if group3 { &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1] } else { &[] };
    let input =
        start.iter().chain(bytes).chain(end).map(|&byte| Ok::<u8, std::convert::Infallible>(byte));
    let row = usize::from(width).div_ceil(8);
    let mut rows = out.chunks_exact_mut(row);
    let mut filled = 0;
    let mut write = |changes: &[u16]| {
        let Some(line) = rows.next() else { return false };
        line.fill(0);
        for (x, color) in pels(changes, width).enumerate() {
            line[x / 8] |= u8::from(color == fax::Color::Black) << (7 - x % 8);
        }
        filled += row;
        true
    };
    if kind == Compression::Group4 {
        let mut decoder = Group4Decoder::new(input, width).map_err(drop)?;
        while decoder.advance().map_err(drop)? == DecodeStatus::Incomplete
            && write(decoder.transition())
        {}
    } else {
        let mut decoder = Group3Decoder::new(input).map_err(drop)?;
        loop {
            let status = decoder.advance().map_err(drop)?;
            // The end is reported along with the last row.
            let more = decoder.transitions().is_empty() || write(decoder.transitions());
            if status == DecodeStatus::End || !more {
                break;
            }
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_are_too_long_stop_at_the_end() {
        let mut out = [0; 4];
        assert_eq!(unpack_bits(&[0xfe, 7, 0x81, 9], &mut out), 4);
        assert_eq!(out, [7, 7, 7, 9]);
    }

    #[test]
    fn what_ends_early_fills_a_part() {
        for kind in [Compression::None, Compression::PackBits, Compression::Deflate] {
            assert_eq!(kind.expand(&[], &mut [0; 4], 4), Ok(0), "{kind:?}");
        }
    }
}
