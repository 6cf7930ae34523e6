//! Tile-compressed images: a table with a row for each tile.

use super::header::Header;
use super::{FitsFault, Pixels, Result, Scaling, Stored, broken};
use crate::codecs::npy::swap;
use crate::readers::ranges::Opened;
use crate::readers::unpack::{Packing, unpack};
use crate::value::{with_room, zeroed};

/// How tiles are compressed.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Rice {
        block: usize,
        bytes: usize,
    },
    /// Elements one after the other.
    Gzip,
    /// The first bytes of all elements, then the second, and so on.
    ShuffledGzip,
    None,
}

/// How integers stand for floats.
#[derive(Clone, Copy, PartialEq)]
enum Dither {
    None,
    /// With zeros kept apart, in the second kind.
    Subtractive {
        zeros: bool,
    },
}

/// A column of the table.
#[derive(Clone, Copy)]
struct Column {
    offset: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Where data is in the heap, as two numbers of 32 or 64 bits.
    Heap {
        large: bool,
        element: usize,
    },
    Double,
    Single,
    Long,
    Other,
}

/// What a quantized value of zero is, and one that is missing.
const ZERO: i32 = i32::MIN + 2;
const MISSING: i32 = i32::MIN;

/// Reads the image of a compressed table.
pub fn read(file: &Opened, header: &Header) -> Result<Pixels> {
    let damaged = || broken(FitsFault::Tiles);
    let stored = Stored::of(header.integer("ZBITPIX"))?;
    let extents = header.extents("ZNAXIS")?;
    let shape = shape(&extents)?;
    let tile: Vec<usize> = (0..shape.len())
        .map(|axis| match header.integer(&format!("ZTILE{}", axis + 1)) {
            Some(tile) => usize::try_from(tile).ok().filter(|&tile| tile > 0),
            // By default, tiles are rows.
            None => Some(if axis == 0 { shape[0].max(1) } else { 1 }),
        })
        .collect::<Option<_>>()
        .ok_or_else(damaged)?;
    let method = method(header)?;
    let table = Table::read(file, header)?;
    let counts: Vec<usize> = shape.iter().zip(&tile).map(|(n, tile)| n.div_ceil(*tile)).collect();
    let tiles = counts.iter().try_fold(1_usize, |all, &n| all.checked_mul(n));
    if tiles.ok_or_else(damaged)? != table.rows {
        return Err(damaged());
    }
    let count = shape.iter().try_fold(1_usize, |all, &n| all.checked_mul(n));
    let bytes = count.and_then(|count| count.checked_mul(stored.bytes()));
    // No method packs denser than gzip.
    let most = (table.data.len() as u64).saturating_mul(1100);
    let bytes = bytes.filter(|&bytes| bytes as u64 <= most).ok_or_else(damaged)?;
    let mut pixels = zeroed::<u8>(bytes)?;
    let mut scratch = Vec::new();
    for row in 0..table.rows {
        let (mut start, mut extent) = (Vec::new(), Vec::new());
        let mut rest = row;
        for axis in 0..shape.len() {
            let place = rest % counts[axis] * tile[axis];
            rest /= counts[axis];
            start.push(place);
            extent.push(tile[axis].min(shape[axis] - place));
        }
        let count = extent.iter().product();
        decode_tile(&table, header, stored, method, row, count, &mut scratch)?;
        place(&mut pixels, &shape, &start, &extent, &scratch, stored.bytes());
    }
    let scaling = Scaling::of(header, stored);
    let shape = shape.into_iter().rev().collect();
    Ok(Pixels { stored, shape, bytes: pixels, scaling })
}

fn shape(extents: &[u64]) -> Result<Vec<usize>> {
    let shape = extents.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<Vec<_>>>();
    match shape {
        Some(shape) if !shape.is_empty() => Ok(shape),
        _ => Err(broken(FitsFault::Tiles)),
    }
}

fn method(header: &Header) -> Result<Method> {
    let name = header.text("ZCMPTYPE").unwrap_or_default();
    Ok(match name {
        "RICE_1" | "RICE_ONE" => {
            let (mut block, mut bytes) = (32, 4);
            for number in 1..=8 {
                let value = header.integer(&format!("ZVAL{number}"));
                let value = value.and_then(|value| usize::try_from(value).ok());
                match (header.text(&format!("ZNAME{number}")), value) {
                    (Some("BLOCKSIZE"), Some(value)) => block = value,
                    (Some("BYTEPIX"), Some(value)) => bytes = value,
                    _ => {}
                }
            }
            if !matches!(bytes, 1 | 2 | 4) || !(1..=1 << 16).contains(&block) {
                return Err(broken(FitsFault::Tiles));
            }
            Method::Rice { block, bytes }
        }
        "GZIP_1" => Method::Gzip,
        "GZIP_2" => Method::ShuffledGzip,
        "NOCOMPRESS" => Method::None,
        _ => {
            let name = name.chars().take(20).collect();
            return Err(broken(FitsFault::Method { name }));
        }
    })
}

struct Table {
    data: Vec<u8>,
    rows: usize,
    row: usize,
    heap: usize,
    columns: [Option<Column>; 6],
}

const NAMES: [&str; 6] =
    ["COMPRESSED_DATA", "GZIP_COMPRESSED_DATA", "UNCOMPRESSED_DATA", "ZSCALE", "ZZERO", "ZBLANK"];
const PACKED: usize = 0;
const GZIPPED: usize = 1;
const PLAIN: usize = 2;
const SCALE: usize = 3;
const OFFSET: usize = 4;
const BLANK: usize = 5;

impl Table {
    fn read(file: &Opened, header: &Header) -> Result<Table> {
        let damaged = || broken(FitsFault::Tiles);
        let length = header.data_bytes()?;
        let end = header.data.checked_add(length).filter(|&end| end <= file.size);
        if end.is_none() {
            return Err(broken(FitsFault::CutOff { bytes: length, size: file.size }));
        }
        let mut data = zeroed::<u8>(length as usize)?;
        file.read(header.data, &mut data)?;
        let extents = header.extents("NAXIS")?;
        let [row, rows] = extents[..] else { return Err(damaged()) };
        let (row, rows) = (row as usize, rows as usize);
        let heap = match header.integer("THEAP") {
            Some(heap) => usize::try_from(heap).ok(),
            None => row.checked_mul(rows),
        };
        let heap = heap.filter(|&heap| heap <= data.len()).ok_or_else(damaged)?;
        let fields = header.count("TFIELDS")?.min(999);
        let mut columns = [None; 6];
        let mut offset = 0_usize;
        for field in 1..=fields {
            let form = header.text(&format!("TFORM{field}")).ok_or_else(damaged)?;
            let (kind, bytes) = parse_form(form).ok_or_else(damaged)?;
            let name = header.text(&format!("TTYPE{field}")).unwrap_or_default();
            if let Some(place) = NAMES.iter().position(|known| *known == name) {
                columns[place] = Some(Column { offset, kind });
            }
            offset = offset.checked_add(bytes).ok_or_else(damaged)?;
        }
        let whole = row.checked_mul(rows).is_some_and(|bytes| bytes <= data.len());
        match offset <= row && whole {
            true => Ok(Table { data, rows, row, heap, columns }),
            false => Err(damaged()),
        }
    }

    fn cell<const N: usize>(&self, row: usize, offset: usize) -> Option<[u8; N]> {
        self.data.get(row * self.row + offset..)?.first_chunk().copied()
    }

    /// Data in the heap, and the size of its elements; `None` if there is none for this row.
    fn bytes(&self, row: usize, column: usize) -> Result<Option<&[u8]>> {
        let Some(Column { offset, kind: Kind::Heap { large, element } }) = self.columns[column]
        else {
            return Ok(None);
        };
        let damaged = || broken(FitsFault::Tiles);
        let (count, start) = match large {
            false => {
                let word = |at| self.cell(row, at).map(|b| u64::from(u32::from_be_bytes(b)));
                (word(offset), word(offset + 4))
            }
            true => {
                let word = |at| self.cell(row, at).map(u64::from_be_bytes);
                (word(offset), word(offset + 8))
            }
        };
        let (count, start) = (count.ok_or_else(damaged)?, start.ok_or_else(damaged)?);
        if count == 0 {
            return Ok(None);
        }
        let start = usize::try_from(start).ok().and_then(|start| start.checked_add(self.heap));
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(element));
        let end = start.zip(length).and_then(|(start, length)| start.checked_add(length));
        let found = start.zip(end).and_then(|(start, end)| self.data.get(start..end));
        found.map(Some).ok_or_else(damaged)
    }

    fn number(&self, row: usize, column: usize) -> Option<f64> {
        let Column { offset, kind } = self.columns[column]?;
        match kind {
            Kind::Double => self.cell(row, offset).map(f64::from_be_bytes),
            Kind::Single => self.cell(row, offset).map(|b| f64::from(f32::from_be_bytes(b))),
            Kind::Long => self.cell(row, offset).map(|b| f64::from(i32::from_be_bytes(b))),
            _ => None,
        }
    }
}

/// The kind of a column, and how many bytes it takes in a row.
fn parse_form(form: &str) -> Option<(Kind, usize)> {
    let digits = form.bytes().take_while(u8::is_ascii_digit).count();
    let repeat: usize = if digits == 0 { 1 } else { form[..digits].parse().ok()? };
    let mut letters = form[digits..].chars();
    let element = |letter: char| {
        Some(match letter {
            'L' | 'X' | 'B' | 'A' => 1,
            'I' => 2,
            'J' | 'E' => 4,
            'K' | 'D' | 'C' => 8,
            'M' => 16,
            _ => return None,
        })
    };
    let letter = letters.next()?;
    let (kind, bytes) = match letter {
        'P' | 'Q' => {
            let large = letter == 'Q';
            let element = element(letters.next()?)?;
            (Kind::Heap { large, element }, if large { 16 } else { 8 })
        }
        'D' => (Kind::Double, 8),
        'E' => (Kind::Single, 4),
        'J' => (Kind::Long, 4),
        'X' => return Some((Kind::Other, repeat.div_ceil(8))),
        other => (Kind::Other, element(other)?),
    };
    Some((kind, repeat.checked_mul(bytes)?))
}

/// Decodes a tile to elements in this machine's order of bytes.
fn decode_tile(
    table: &Table,
    header: &Header,
    stored: Stored,
    method: Method,
    row: usize,
    count: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let damaged = || broken(FitsFault::Tiles);
    let size = stored.bytes();
    let whole = count.checked_mul(size).ok_or_else(damaged)?;
    if let Some(packed) = table.bytes(row, PACKED)? {
        let scale = table.number(row, SCALE).or_else(|| header.float("ZSCALE"));
        let offset = table.number(row, OFFSET).or_else(|| header.float("ZZERO"));
        if stored.is_float() && (scale.is_some() || matches!(method, Method::Rice { .. })) {
            let numbers = integers(method, packed, count, 4)?;
            let blank = table.number(row, BLANK).or_else(|| header.float("ZBLANK"));
            let blank = blank.map_or(MISSING, |blank| blank as i32);
            let levels = Levels {
                scale: scale.unwrap_or(1.0),
                offset: offset.unwrap_or(0.0),
                blank,
                dither: match header.text("ZQUANTIZ") {
                    Some("SUBTRACTIVE_DITHER_1") => Dither::Subtractive { zeros: false },
                    Some("SUBTRACTIVE_DITHER_2") => Dither::Subtractive { zeros: true },
                    _ => Dither::None,
                },
                seed: header.integer("ZDITHER0").unwrap_or(0),
            };
            *out = zeroed(whole)?;
            levels.apply(&numbers, row, stored, out);
            return Ok(());
        }
        *out = match method {
            Method::Rice { bytes, .. } => {
                let numbers = integers(method, packed, count, bytes)?;
                let mut made = with_room(whole)?;
                for number in numbers {
                    let number = match bytes {
                        1 => i64::from(number as u8),
                        2 => i64::from(number as i16),
                        _ => i64::from(number),
                    };
                    made.extend_from_slice(&number.to_le_bytes()[..size]);
                }
                made
            }
            _ => elements(method, packed, count, size)?,
        };
        return Ok(());
    }
    *out = match (table.bytes(row, GZIPPED)?, table.bytes(row, PLAIN)?) {
        (Some(packed), _) => elements(Method::Gzip, packed, count, size)?,
        (None, Some(plain)) => elements(Method::None, plain, count, size)?,
        (None, None) => return Err(damaged()),
    };
    Ok(())
}

/// Elements of `size` bytes, in this machine's order.
fn elements(method: Method, packed: &[u8], count: usize, size: usize) -> Result<Vec<u8>> {
    let length = count.checked_mul(size).ok_or_else(|| broken(FitsFault::Tiles))?;
    let mut bytes = match method {
        Method::None if packed.len() == length => packed.to_vec(),
        Method::None => return Err(broken(FitsFault::Tiles)),
        _ => unpack(Packing::Gzip, packed, length as u64)?,
    };
    if method == Method::ShuffledGzip {
        let mut ordered = zeroed::<u8>(length)?;
        for (place, element) in ordered.chunks_exact_mut(size).enumerate() {
            for (plane, byte) in element.iter_mut().enumerate() {
                *byte = bytes[plane * count + place];
            }
        }
        bytes = ordered;
    }
    if size > 1 {
        swap(&mut bytes, size);
    }
    Ok(bytes)
}

/// Integers of 32 bits.
fn integers(method: Method, packed: &[u8], count: usize, size: usize) -> Result<Vec<i32>> {
    match method {
        Method::Rice { block, bytes } => rice(packed, count, block, bytes),
        _ => {
            let bytes = elements(method, packed, count, size)?;
            let mut numbers = with_room(count)?;
            numbers.extend(bytes.as_chunks().0.iter().map(|&word| i32::from_le_bytes(word)));
            Ok(numbers)
        }
    }
}

/// Rice coding: differences between neighbors, of which each block has its own number of low bits
/// that are stored as they are, behind the rest as so many zeros and a one.
fn rice(packed: &[u8], count: usize, block: usize, bytes: usize) -> Result<Vec<i32>> {
    let damaged = || broken(FitsFault::Tiles);
    let (head_bits, most, raw_bits) = match bytes {
        1 => (3, 6, 8),
        2 => (4, 14, 16),
        _ => (5, 25, 32),
    };
    // A block takes a few bits at least.
    if count.div_ceil(block) > packed.len().saturating_mul(8) {
        return Err(damaged());
    }
    let mut bits = Bits { bytes: packed, at: 0 };
    let mut last = bits.take(raw_bits).ok_or_else(damaged)?;
    let mut numbers = with_room(count)?;
    while numbers.len() < count {
        let here = block.min(count - numbers.len());
        let low = bits.take(head_bits).ok_or_else(damaged)?;
        for _ in 0..here {
            let code = match low {
                0 => 0,
                low if low - 1 == most => bits.take(raw_bits).ok_or_else(damaged)?,
                low => {
                    let high = bits.zeros().ok_or_else(damaged)?;
                    let rest = bits.take(low - 1).ok_or_else(damaged)?;
                    high.checked_shl(low - 1).unwrap_or(0) | rest
                }
            };
            let difference = if code & 1 == 0 { code >> 1 } else { !(code >> 1) };
            last = last.wrapping_add(difference);
            numbers.push(last as i32);
        }
    }
    Ok(numbers)
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u32> {
        if count == 0 {
            return Some(0);
        }
        let end = self.at + count as usize;
        if end > self.bytes.len() * 8 {
            return None;
        }
        let rest = &self.bytes[self.at / 8..];
        let mut word = [0; 8];
        let length = rest.len().min(8);
        word[..length].copy_from_slice(&rest[..length]);
        let value = u64::from_be_bytes(word) << (self.at % 8) >> (64 - count);
        self.at = end;
        Some(value as u32)
    }

    /// How many zeros come before the next one, which is taken, too.
    fn zeros(&mut self) -> Option<u32> {
        let mut count = 0;
        loop {
            let rest = self.bytes.get(self.at / 8..)?;
            let first = *rest.first()? << (self.at % 8);
            if first != 0 {
                let more = first.leading_zeros();
                self.at += more as usize + 1;
                return Some(count + more);
            }
            count += 8 - (self.at % 8) as u32;
            self.at = (self.at / 8 + 1) * 8;
        }
    }
}

/// How quantized values become floats.
struct Levels {
    scale: f64,
    offset: f64,
    blank: i32,
    dither: Dither,
    seed: i64,
}

impl Levels {
    fn apply(&self, numbers: &[i32], row: usize, stored: Stored, out: &mut [u8]) {
        let randoms = randoms();
        let count = randoms.len();
        // Each tile begins at a place of its own in the row of random numbers.
        let mut seed = (row as i64).wrapping_add(self.seed - 1).rem_euclid(count as i64) as usize;
        let mut next = (randoms[seed] * 500.0) as usize;
        for (place, &number) in numbers.iter().enumerate() {
            let value = match self.dither {
                _ if number == self.blank => f64::NAN,
                Dither::None => f64::from(number) * self.scale + self.offset,
                Dither::Subtractive { zeros: true } if number == ZERO => 0.0,
                Dither::Subtractive { .. } => {
                    let shift = f64::from(randoms[next]) - 0.5;
                    (f64::from(number) - shift) * self.scale + self.offset
                }
            };
            next += 1;
            if next == count {
                seed = (seed + 1) % count;
                next = (randoms[seed] * 500.0) as usize;
            }
            match stored {
                Stored::F64 => out[place * 8..][..8].copy_from_slice(&value.to_le_bytes()),
                _ => out[place * 4..][..4].copy_from_slice(&(value as f32).to_le_bytes()),
            }
        }
    }
}

/// The random numbers of the standard, by Park and Miller's generator.
fn randoms() -> &'static [f32] {
    static RANDOMS: std::sync::OnceLock<Vec<f32>> = std::sync::OnceLock::new();
    RANDOMS.get_or_init(|| {
        let mut seed = 1_u64;
        let next = |_| {
            seed = seed * 16807 % 2_147_483_647;
            (seed as f64 / 2_147_483_647.0) as f32
        };
        (0..10_000).map(next).collect()
    })
}

/// Puts a tile into the image. Extents are given from the one that varies fastest on.
fn place(
    image: &mut [u8],
    shape: &[usize],
    start: &[usize],
    extent: &[usize],
    tile: &[u8],
    size: usize,
) {
    let row = extent[0] * size;
    if row == 0 {
        return;
    }
    for (number, values) in tile.chunks_exact(row).enumerate() {
        let (mut rest, mut at, mut stride) = (number, start[0], shape[0]);
        for axis in 1..shape.len() {
            at += (start[axis] + rest % extent[axis]) * stride;
            rest /= extent[axis];
            stride *= shape[axis];
        }
        image[at * size..][..row].copy_from_slice(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_random_numbers_are_those_of_the_standard() {
        // The standard gives the seed after 10,000 steps as a check.
        let seed = (0..10_000).fold(1_u64, |seed, _| seed * 16807 % 2_147_483_647);
        assert_eq!(seed, 1_043_618_065);
        assert_eq!(randoms().len(), 10_000);
    }

    #[test]
    fn damaged_codes_are_refused() {
        assert_eq!(rice(&[0, 0, 0, 7, 0], 32, 32, 4).unwrap(), [7; 32]);
        assert!(rice(&[0, 0, 0, 7], 32, 32, 4).is_err());
        assert!(rice(&[], 1, 32, 4).is_err() && rice(&[0xFF; 4], 5000, 1, 1).is_err());
        let mut bits = Bits { bytes: &[0, 0b0010_0000], at: 3 };
        assert_eq!((bits.zeros(), bits.take(5), bits.zeros()), (Some(7), Some(0), None));
    }
}
