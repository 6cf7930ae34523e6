//! BMP of Windows and OS/2: palettes, run-length encoding, and colors of 16, 24 or 32 bits.

use super::{Color, Data, Format, Header, ImageFault, Pixels, Problem, bounds, broken};
use crate::value::{DType, problems, with_room, zeroed};

problems! {
    pub enum BmpFault {
        Magic,
        HeaderSize { size: usize },
        Width { width: i32 },
        Coding { bits: usize, compression: u32 },
        EndsFromBottom { row: usize, height: usize },
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Coding {
    Indices,
    RunLengths,
    /// Bit masks of red, green, blue and alpha in a pixel of 16, 24 or 32 bits.
    Masks([u32; 4]),
}

struct Head {
    height: usize,
    width: usize,
    bits: usize,
    top_down: bool,
    coding: Coding,
    /// Red, green, blue; missing entries are black.
    palette: [[u8; 3]; 256],
    /// Offset of the pixels.
    start: usize,
}

impl Head {
    /// An image with a palette of grays is gray, as in DALI.
    fn color(&self) -> Color {
        match self.coding {
            Coding::Masks([.., 0]) => Color::Rgb,
            Coding::Masks(_) => Color::Rgba,
            _ if self.palette.iter().all(|[r, g, b]| r == g && g == b) => Color::Gray,
            _ => Color::Rgb,
        }
    }
}

pub fn header(bytes: &[u8]) -> Result<Header, Problem> {
    let head = head(bytes)?;
    let pixels = head.height.saturating_mul(head.width);
    let (copies, packed) = match head.coding {
        // Codes can skip pixels, but an image that is nearly all skipped is refused.
        Coding::RunLengths => (1 + head.color().channels(), pixels >> 12),
        _ => (head.color().channels(), pixels.saturating_mul(head.bits) / 8 / bounds::CUT),
    };
    Ok(Header {
        format: Format::Bmp,
        height: head.height,
        width: head.width,
        channels: head.color().channels(),
        dtype: DType::U8,
        orientation: 1,
        scratch: pixels.saturating_mul(copies),
        smallest: packed,
    })
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Problem> {
    let head = head(bytes)?;
    let &Head { height, width, bits, .. } = &head;
    let area = bounds::area(height, width)?;
    let body = bytes.get(head.start..).unwrap_or(&[]);
    let color = head.color();

    if head.coding == Coding::RunLengths {
        let indices = run_lengths(body, height, width, bits)?;
        let mut data = with_room(area * color.channels())?;
        match color {
            Color::Gray => data.extend(indices.iter().map(|&n| head.palette[usize::from(n)][0])),
            _ => data.extend(indices.iter().flat_map(|&n| head.palette[usize::from(n)])),
        }
        return Ok(Pixels { height, width, color, data: Data::U8(data) });
    }

    let used = (width * bits).div_ceil(8);
    let stride = used.next_multiple_of(4);
    // The padding of the last row may be missing.
    if body.len() < stride * (height - 1) + used {
        return Err(broken(ImageFault::EndsAtRow { row: body.len() / stride, height }));
    }
    let mut data = with_room(area * color.channels())?;
    for y in 0..height {
        let line = if head.top_down { y } else { height - 1 - y };
        let row = &body[line * stride..line * stride + used];
        match head.coding {
            Coding::Masks(masks) => colors(row, bits, masks, &mut data),
            _ if color == Color::Gray => {
                data.extend(indices(row, bits, width).map(|n| head.palette[n][0]));
            }
            _ => data.extend(indices(row, bits, width).flat_map(|n| head.palette[n])),
        }
    }
    Ok(Pixels { height, width, color, data: Data::U8(data) })
}

fn indices(row: &[u8], bits: usize, width: usize) -> impl Iterator<Item = usize> {
    let each = 8 / bits;
    let mask = (1 << bits) - 1;
    (0..width).map(move |x| usize::from(row[x / each]) >> (8 - bits * (x % each + 1)) & mask)
}

/// Appends the colors of a row.
fn colors(row: &[u8], bits: usize, masks: [u32; 4], out: &mut Vec<u8>) {
    const BYTES: [u32; 3] = [0xff_0000, 0xff00, 0xff];
    if bits == 24 {
        return out.extend(row.as_chunks::<3>().0.iter().flat_map(|&[b, g, r]| [r, g, b]));
    }
    if bits == 32 && masks[..3] == BYTES && masks[3] == 0 {
        return out.extend(row.as_chunks::<4>().0.iter().flat_map(|&[b, g, r, _]| [r, g, b]));
    }
    let channels = if masks[3] == 0 { 3 } else { 4 };
    let shifts = masks.map(|mask| (mask.trailing_zeros(), mask.count_ones()));
    let mut add = |number: u32| {
        for (mask, (low, count)) in masks.into_iter().zip(shifts).take(channels) {
            let value = (number & mask).checked_shr(low).unwrap_or(0);
            // Missing low bits are 0, as in DALI: white may be 248.
            out.push(if count > 8 { value >> (count - 8) } else { value << (8 - count) } as u8);
        }
    };
    if bits == 16 {
        row.as_chunks().0.iter().for_each(|&pair| add(u16::from_le_bytes(pair).into()));
    } else {
        row.as_chunks().0.iter().for_each(|&four| add(u32::from_le_bytes(four)));
    }
}

/// Palette indices, from the top row down; pixels without a code are 0.
fn run_lengths(body: &[u8], height: usize, width: usize, bits: usize) -> Result<Vec<u8>, Problem> {
    let mut out = zeroed(height * width)?;
    let (mut x, mut y) = (0usize, 0usize); // y from the bottom
    let mut at = 0;
    let cut = |y: usize| broken(BmpFault::EndsFromBottom { row: y, height });
    // Pixels beyond the end of a row are dropped.
    let mut put = |x: &mut usize, y: usize, index: u8| {
        if *x < width {
            out[(height - 1 - y) * width + *x] = index;
        }
        *x = x.saturating_add(1);
    };
    while y < height {
        let &[count, value] = body.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(|| cut(y))?;
        at += 2;
        match (count, value) {
            (0, 0) => (x, y) = (0, y + 1),
            (0, 1) => break,
            (0, 2) => {
                let &[right, up] =
                    body.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(|| cut(y))?;
                at += 2;
                x = x.saturating_add(right.into());
                y += usize::from(up);
            }
            (0, count) => {
                let count = usize::from(count);
                let used = (count * bits).div_ceil(8);
                let row = body.get(at..at + used).ok_or_else(|| cut(y))?;
                indices(row, bits, count).for_each(|index| put(&mut x, y, index as u8));
                at += used.next_multiple_of(2);
            }
            (count, value) => {
                let pair = if bits == 8 { [value, value] } else { [value >> 4, value & 15] };
                (0..usize::from(count)).for_each(|n| put(&mut x, y, pair[n % 2]));
            }
        }
    }
    Ok(out)
}

fn head(bytes: &[u8]) -> Result<Head, Problem> {
    if !bytes.starts_with(b"BM") {
        return Err(broken(BmpFault::Magic));
    }
    parse(bytes).unwrap_or_else(|| Err(broken(ImageFault::NoHeader)))
}

/// `None` if there are too few bytes.
fn parse(bytes: &[u8]) -> Option<Result<Head, Problem>> {
    let short = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let start = long(10)? as usize;
    let size = long(14)? as usize;
    let old = size == 12;
    if !old && !(40..=1024).contains(&size) {
        return Some(Err(broken(BmpFault::HeaderSize { size })));
    }
    let (width, height, bits) = if old {
        (i32::from(short(18)?), i32::from(short(20)?), short(24)?)
    } else {
        (long(18)? as i32, long(22)? as i32, short(28)?)
    };
    let Ok(width) = usize::try_from(width) else {
        return Some(Err(broken(BmpFault::Width { width })));
    };
    let bits = usize::from(bits);
    let compression = if old { 0 } else { long(30)? };
    let masked = |count: usize| -> Option<[u32; 4]> {
        let mut masks = [0; 4];
        for (n, mask) in masks.iter_mut().enumerate().take(count) {
            *mask = long(54 + 4 * n)?;
        }
        Some(masks)
    };
    let coding = match (compression, bits) {
        (0, 1 | 2 | 4 | 8) => Coding::Indices,
        (1, 8) | (2, 4) => Coding::RunLengths,
        (0, 16) => Coding::Masks([0x7c00, 0x3e0, 0x1f, 0]),
        (0, 24 | 32) => Coding::Masks([0xff_0000, 0xff00, 0xff, 0]),
        (3, 16 | 32) => Coding::Masks(masked(if size >= 56 { 4 } else { 3 })?),
        (6, 16 | 32) => Coding::Masks(masked(4)?),
        _ => {
            return Some(Err(broken(BmpFault::Coding { bits, compression })));
        }
    };
    let mut palette = [[0; 3]; 256];
    if bits <= 8 {
        let entry = if old { 3 } else { 4 };
        let used = if old { 0 } else { long(46)? as usize };
        let most = 1 << bits;
        let count = if used == 0 { most } else { used.min(most) };
        let first = 14 + size;
        let end = (first + count * entry).min(start);
        let table = bytes.get(first..end.max(first))?;
        for (color, entry) in palette.iter_mut().zip(table.chunks_exact(entry)) {
            *color = [entry[2], entry[1], entry[0]];
        }
    }
    let top_down = height < 0;
    let height = height.unsigned_abs() as usize;
    Some(Ok(Head { height, width, bits, top_down, coding, palette, start }))
}
