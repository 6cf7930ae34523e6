//! JPEG at an eighth of its size. Most of a file is then coefficients that nobody needs, and libjpeg
//! decodes them one by one; here several are passed over at once. This is for the usual kind of
//! file: baseline with 4:4:4, 4:2:0 or gray. Everything else, and everything that is not as it
//! should be, is left to libjpeg, which knows what to say.

// Loops go over several slices at once; an index is what becomes vectors.
#![allow(clippy::needless_range_loop)]

use super::{EIGHTHS, scaled};
use crate::kernels::numeric::isa::Isa;

/// Bits that are looked up at once.
const LOOK: u32 = 10;
/// The same for blocks that are passed over, of which less has to be known.
const SKIP_LOOK: u32 = 13;

/// Where coefficients belong, in the order of the file.
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// What the pixels are to become.
#[derive(Clone, Copy, PartialEq)]
pub enum Colors {
    Gray,
    Rgb,
    Bgr,
}

/// Decodes a whole image at an eighth of its size to `dst`, which has exactly that size. `None` when
/// it is not the usual kind, or damaged; `dst` may then hold anything.
pub fn decode(bytes: &[u8], colors: Colors, dst: &mut [u8]) -> Option<()> {
    Isa::run_on_best(|| decode_inlined(bytes, colors, dst))
}

#[inline(always)]
fn decode_inlined(bytes: &[u8], colors: Colors, dst: &mut [u8]) -> Option<()> {
    let mut frame = Frame::parse(bytes)?;
    let [height, width] = [frame.height, frame.width].map(|extent| scaled(extent, 1));
    let channels = if colors == Colors::Gray { 1 } else { 3 };
    if dst.len() != height * width * channels {
        return None;
    }
    frame.join_codes(colors)?;
    let planes = frame.planes(colors)?;
    match &planes[..] {
        [luma] => {
            for (y, out) in dst.chunks_exact_mut(width * channels).enumerate() {
                let row = &luma.pixels[y * luma.width..][..width];
                match channels {
                    1 => out.copy_from_slice(row),
                    _ => out
                        .as_chunks_mut::<3>()
                        .0
                        .iter_mut()
                        .zip(row)
                        .for_each(|(p, &v)| *p = [v; 3]),
                }
            }
        }
        [luma, blue, red] => {
            for (y, out) in dst.chunks_exact_mut(width * 3).enumerate() {
                let row = |plane: &Plane| y * plane.width..y * plane.width + width;
                let (luma, blue, red) =
                    (&luma.pixels[row(luma)], &blue.pixels[row(blue)], &red.pixels[row(red)]);
                to_rgb(luma, blue, red, out, colors == Colors::Bgr);
            }
        }
        _ => return None,
    }
    Some(())
}

/// A channel at its scale, with whole blocks.
struct Plane {
    width: usize,
    pixels: Vec<u8>,
}

struct Component {
    /// Blocks of it in a unit of the scan, across and down.
    sampling: usize,
    quantizer: usize,
    dc: usize,
    ac: usize,
}

/// What is in front of the image data.
struct Frame<'a> {
    height: usize,
    width: usize,
    components: Vec<Component>,
    quantizers: [Option<[f32; 64]>; 4],
    dc: [Option<Codes>; 4],
    ac: [Option<Codes>; 4],
    /// Units between restart markers; 0 for none.
    restart: usize,
    data: &'a [u8],
}

impl<'a> Frame<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let mut frame = Frame {
            height: 0,
            width: 0,
            components: Vec::new(),
            quantizers: [None; 4],
            dc: [const { None }; 4],
            ac: [const { None }; 4],
            restart: 0,
            data: &[],
        };
        let mut ids = Vec::new();
        let mut rest = bytes.strip_prefix(&[0xff, 0xd8])?;
        loop {
            let (&[0xff, marker], after) = rest.split_first_chunk()? else { return None };
            if marker == 0xff {
                rest = &rest[1..];
                continue;
            }
            let (&length, _) = after.split_first_chunk()?;
            let length = usize::from(u16::from_be_bytes(length));
            let segment = after.get(2..length)?;
            rest = &after[length..];
            match marker {
                0xc0 | 0xc1 if ids.is_empty() => ids = frame.size(segment)?,
                0xc4 => frame.codes(segment)?,
                0xdb => frame.quantizers(segment)?,
                0xdd => frame.restart = usize::from(u16::from_be_bytes(segment.try_into().ok()?)),
                0xda => {
                    frame.scan(segment, &ids)?;
                    frame.data = rest;
                    return Some(frame);
                }
                0xe0..=0xef | 0xfe => {}
                _ => return None,
            }
        }
    }

    /// Reads the size and the components, and returns the numbers that they have.
    fn size(&mut self, segment: &[u8]) -> Option<Vec<u8>> {
        let (&[8, h0, h1, w0, w1, count], parts) = segment.split_first_chunk()? else {
            return None;
        };
        self.height = usize::from(u16::from_be_bytes([h0, h1]));
        self.width = usize::from(u16::from_be_bytes([w0, w1]));
        let parts = parts.as_chunks::<3>().0;
        if self.height == 0 || self.width == 0 || parts.len() != usize::from(count) {
            return None;
        }
        let samplings: &[u8] = &parts.iter().map(|part| part[1]).collect::<Vec<u8>>();
        let samplings: &[usize] = match samplings {
            [_] => &[1],
            [0x11, 0x11, 0x11] => &[1, 1, 1],
            [0x22, 0x11, 0x11] => &[2, 1, 1],
            _ => return None,
        };
        for (part, &sampling) in parts.iter().zip(samplings) {
            let quantizer = usize::from(part[2]);
            self.components.push(Component { sampling, quantizer, dc: 0, ac: 0 });
        }
        Some(parts.iter().map(|part| part[0]).collect())
    }

    fn quantizers(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&kind, after)) = segment.split_first() {
            // Of 8 or 16 bits.
            let wide = match kind >> 4 {
                0 => 1,
                1 => 2,
                _ => return None,
            };
            let values = after.get(..64 * wide)?;
            let table = self.quantizers.get_mut(usize::from(kind & 15))?.insert([0.0; 64]);
            for (index, value) in values.chunks_exact(wide).enumerate() {
                let value = value.iter().fold(0, |all, &byte| (all << 8) | u16::from(byte));
                table[usize::from(ZIGZAG[index])] = f32::from(value);
            }
            segment = &after[64 * wide..];
        }
        Some(())
    }

    fn codes(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&kind, after)) = segment.split_first() {
            let (counts, after) = after.split_first_chunk::<16>()?;
            let total = counts.iter().map(|&count| usize::from(count)).sum();
            let symbols = after.get(..total)?;
            let tables = match kind >> 4 {
                0 => &mut self.dc,
                1 => &mut self.ac,
                _ => return None,
            };
            *tables.get_mut(usize::from(kind & 15))? = Some(Codes::new(counts, symbols)?);
            segment = &after[total..];
        }
        Some(())
    }

    /// Reads which codes the components have. All of them must be in this scan.
    fn scan(&mut self, segment: &[u8], ids: &[u8]) -> Option<()> {
        let (&count, parts) = segment.split_first()?;
        let (parts, last) = parts.split_at_checked(2 * usize::from(count))?;
        if last != [0, 63, 0] || usize::from(count) != ids.len() || ids.is_empty() {
            return None;
        }
        for ((part, id), component) in
            parts.as_chunks::<2>().0.iter().zip(ids).zip(&mut self.components)
        {
            if part[0] != *id {
                return None;
            }
            component.dc = usize::from(part[1] >> 4);
            component.ac = usize::from(part[1] & 15);
        }
        Some(())
    }

    /// Prepares the codes of blocks that will be passed over.
    fn join_codes(&mut self, colors: Colors) -> Option<()> {
        let largest = self.components.first()?.sampling;
        for (index, component) in self.components.iter().enumerate() {
            if component.sampling == largest || (index > 0 && colors == Colors::Gray) {
                self.ac.get_mut(component.ac)?.as_mut()?.join();
            }
        }
        Some(())
    }

    /// Decodes the channels that are needed.
    #[inline(always)]
    fn planes(&self, colors: Colors) -> Option<Vec<Plane>> {
        let largest = self.components.first()?.sampling;
        let unit = EIGHTHS * largest;
        let [down, across] = [self.height, self.width].map(|extent| extent.div_ceil(unit));
        let wanted = if colors == Colors::Gray { 1 } else { self.components.len() };
        let mut channels = Vec::new();
        let mut planes = Vec::new();
        for (index, component) in self.components.iter().enumerate() {
            // Chroma that is stored at half the size is decoded at twice the scale.
            let size = largest / component.sampling;
            channels.push(Channel {
                sampling: component.sampling,
                weights: quarter_weights(self.quantizers.get(component.quantizer)?.as_ref()?),
                dc: self.dc.get(component.dc)?.as_ref()?,
                ac: self.ac.get(component.ac)?.as_ref()?,
                wanted: index < wanted,
                size,
                last: 0,
            });
            if index < wanted {
                let width = across * size * component.sampling;
                let mut pixels = Vec::new();
                let count = width * down * size * component.sampling;
                pixels.try_reserve_exact(count).ok()?;
                pixels.resize(count, 0);
                planes.push(Plane { width, pixels });
            }
        }
        let mut segments = Segments { rest: self.data };
        let interval = if self.restart == 0 { down * across } else { self.restart };
        let mut buffer = Vec::new();
        let units = down * across;
        for (number, first) in (0..units).step_by(interval).enumerate() {
            let is_last = first + interval >= units;
            segments.next(&mut buffer, (!is_last).then_some(number % 8))?;
            let mut bits = Bits::new(&buffer);
            channels.iter_mut().for_each(|channel| channel.last = 0);
            for unit in first..(first + interval).min(units) {
                let place = [unit / across, unit % across];
                decode_unit(&mut bits, &mut channels, place, &mut planes)?;
            }
            if bits.overrun() {
                return None;
            }
        }
        Some(planes)
    }
}

/// A component while its blocks are decoded.
struct Channel<'a> {
    sampling: usize,
    /// What coefficients count for, quantized as they are.
    weights: [f32; 64],
    dc: &'a Codes,
    ac: &'a Codes,
    wanted: bool,
    /// Pixels that a block becomes, across and down.
    size: usize,
    /// The last block's mean, which the next one's is relative to.
    last: i32,
}

#[inline(always)]
fn decode_unit(
    bits: &mut Bits<'_>,
    channels: &mut [Channel<'_>],
    [row, column]: [usize; 2],
    planes: &mut [Plane],
) -> Option<()> {
    for (index, channel) in channels.iter_mut().enumerate() {
        let sampling = channel.sampling;
        for block in 0..sampling * sampling {
            bits.refill();
            let length = channel.dc.symbol(bits)?;
            if length > 15 {
                return None;
            }
            channel.last = channel.last.wrapping_add(bits.value(u32::from(length)));
            if !channel.wanted {
                channel.ac.skip_block(bits)?;
                continue;
            }
            let plane = &mut planes[index];
            let top = (row * sampling + block / sampling) * channel.size;
            let left = (column * sampling + block % sampling) * channel.size;
            let at = top * plane.width + left;
            let mean = channel.last as f32 * channel.weights[0];
            if channel.size == 1 {
                channel.ac.skip_block(bits)?;
                plane.pixels[at] = to_byte(mean);
            } else {
                let [down, across, both] = channel.ac.quarters(bits, &channel.weights)?;
                let below = at + plane.width;
                plane.pixels[at] = to_byte(mean + down + across + both);
                plane.pixels[at + 1] = to_byte(mean + down - across - both);
                plane.pixels[below] = to_byte(mean - down + across - both);
                plane.pixels[below + 1] = to_byte(mean - down - across + both);
            }
        }
    }
    Some(())
}

/// What coefficients add to the means of a block's upper left quarter. To those of the others they
/// add the same or the opposite; waves whose number is even add nothing, but for the mean.
fn quarter_weights(quantizer: &[f32; 64]) -> [f32; 64] {
    let along = |wave: usize| match wave {
        0 => 0.125_f64.sqrt(),
        _ if wave.is_multiple_of(2) => 0.0,
        _ => {
            let angle =
                |pixel: usize| ((2 * pixel + 1) * wave) as f64 * std::f64::consts::PI / 16.0;
            0.5 * (0..4).map(|pixel| angle(pixel).cos()).sum::<f64>() / 4.0
        }
    };
    let weight = |at: usize| (along(at / EIGHTHS) * along(at % EIGHTHS)) as f32 * quantizer[at];
    std::array::from_fn(weight)
}

/// A number with the middle gray added, rounded and saturated.
#[inline(always)]
fn to_byte(value: f32) -> u8 {
    (value + 128.5) as u8
}

/// Image data without what keeps it apart from markers, up to the next one.
struct Segments<'a> {
    rest: &'a [u8],
}

impl Segments<'_> {
    /// Fills `buffer` up to the restart marker with this number, or to the end of the image.
    fn next(&mut self, buffer: &mut Vec<u8>, restart: Option<usize>) -> Option<()> {
        buffer.clear();
        buffer.try_reserve(self.rest.len().min(1 << 16)).ok()?;
        loop {
            let plain = find_marker(self.rest)?;
            buffer.try_reserve(plain + 1).ok()?;
            buffer.extend_from_slice(&self.rest[..plain]);
            let (&[_, next], after) = self.rest[plain..].split_first_chunk()?;
            match (next, restart) {
                (0, _) => {
                    buffer.push(0xff);
                    self.rest = after;
                }
                (0xd0..=0xd7, Some(number)) if usize::from(next - 0xd0) == number => {
                    self.rest = after;
                    return Some(());
                }
                (0xd9, None) => return Some(()),
                _ => return None,
            }
        }
    }
}

/// The next byte of 0xff.
fn find_marker(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, _) = bytes.as_chunks::<8>();
    let has = |word: &[u8; 8]| {
        // A byte of 0xff is a zero of the complement.
        let flipped = !u64::from_le_bytes(*word);
        flipped.wrapping_sub(ONES) & !flipped & (ONES << 7) != 0
    };
    let skipped = 8 * words.iter().position(has).unwrap_or(words.len());
    Some(skipped + bytes[skipped..].iter().position(|&byte| byte == 0xff)?)
}

/// Bits from the highest to the lowest. After the end there are zeros.
struct Bits<'a> {
    rest: &'a [u8],
    word: u64,
    count: u32,
    /// Bytes that were made up.
    beyond: usize,
}

impl<'a> Bits<'a> {
    fn new(rest: &'a [u8]) -> Bits<'a> {
        Bits { rest, word: 0, count: 0, beyond: 0 }
    }

    /// Makes at least 56 bits available.
    #[inline(always)]
    fn refill(&mut self) {
        if let Some(next) = self.rest.first_chunk::<8>() {
            self.word |= u64::from_be_bytes(*next) >> self.count;
            let bytes = (63 - self.count) / 8;
            self.rest = &self.rest[bytes as usize..];
            self.count += 8 * bytes;
        } else {
            self.refill_at_end();
        }
    }

    #[cold]
    fn refill_at_end(&mut self) {
        while self.count <= 56 {
            let byte = match self.rest.split_first() {
                Some((&byte, rest)) => {
                    self.rest = rest;
                    byte
                }
                None => {
                    self.beyond += 1;
                    0
                }
            };
            self.word |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    #[inline(always)]
    fn peek(&self, count: u32) -> usize {
        (self.word >> (64 - count)) as usize
    }

    #[inline(always)]
    fn skip(&mut self, count: u32) {
        self.word <<= count;
        self.count -= count;
    }

    /// A number of so many bits, of which the first says whether it is positive.
    #[inline(always)]
    fn value(&mut self, length: u32) -> i32 {
        if length == 0 {
            return 0;
        }
        let bits = self.peek(length) as i32;
        self.skip(length);
        extended(bits, length)
    }

    /// Whether bits were taken that are not there.
    fn overrun(&self) -> bool {
        8 * self.beyond > self.count as usize
    }
}

#[inline(always)]
fn extended(bits: i32, length: u32) -> i32 {
    if bits < 1 << (length - 1) { bits - (1 << length) + 1 } else { bits }
}

/// What some bits at the start of a code mean.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// The coefficient, if all of its bits were looked at.
    value: i16,
    /// Bits of the code, and of it and the coefficient together. 0 for longer codes.
    code: u8,
    all: u8,
    /// Zeros before the coefficient, and its bits.
    run: u8,
    length: u8,
}

/// What some bits mean of which only the end of the block is wanted: the bits and coefficients of
/// all codes that are here as a whole, and whether the block ends after them.
#[derive(Clone, Copy, Default)]
struct Skip(u16);

impl Skip {
    fn new(bits: u32, steps: u8, last: bool) -> Skip {
        Skip((u16::from(last) << 15) | (u16::from(steps) << 4) | bits as u16)
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        u32::from(self.0 & 15)
    }

    #[inline(always)]
    fn steps(self) -> usize {
        usize::from((self.0 >> 4) & 127)
    }

    #[inline(always)]
    fn is_last(self) -> bool {
        self.0 >> 15 == 1
    }
}

/// A Huffman code.
struct Codes {
    table: Vec<Entry>,
    /// By length: the first number that is no code of it, and what to add for the symbol's place.
    limits: [u32; 17],
    offsets: [i32; 17],
    symbols: Vec<u8>,
    /// Made only where blocks are passed over.
    skips: Vec<Skip>,
}

impl Codes {
    fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Codes> {
        let (mut limits, mut offsets) = ([0; 17], [0; 17]);
        let mut table = vec![Entry::default(); 1 << LOOK];
        let (mut code, mut place) = (0_u32, 0_usize);
        for length in 1..=16_u32 {
            let count = u32::from(counts[length as usize - 1]);
            offsets[length as usize] = place as i32 - code as i32;
            for _ in 0..count {
                let symbol = *symbols.get(place)?;
                // Reserved: no coefficient after some zeros.
                if symbol & 15 == 0 && !matches!(symbol, 0 | 0xf0) {
                    return None;
                }
                if length <= LOOK {
                    let first = (code as usize) << (LOOK - length);
                    let entries = table.get_mut(first..first + (1 << (LOOK - length)))?;
                    for (low, entry) in entries.iter_mut().enumerate() {
                        *entry = Entry::new(symbol, length, low);
                    }
                }
                code += 1;
                place += 1;
            }
            limits[length as usize] = code;
            if code > 1 << length {
                return None;
            }
            code <<= 1;
        }
        Some(Codes { table, limits, offsets, symbols: symbols.to_vec(), skips: Vec::new() })
    }

    /// Prepares for blocks that are passed over.
    fn join(&mut self) {
        let found = (0..1_usize << SKIP_LOOK).map(|start| {
            let (mut taken, mut steps, mut last) = (0, 0_u8, false);
            while !last && taken < SKIP_LOOK {
                let ahead = (start << taken) & ((1 << SKIP_LOOK) - 1);
                let entry = self.table[ahead >> (SKIP_LOOK - LOOK)];
                let all = u32::from(entry.all);
                if entry.code == 0 || taken + all > SKIP_LOOK || steps > 32 {
                    break;
                }
                taken += all;
                last = entry.ends();
                steps += if last { 0 } else { entry.run + 1 };
            }
            Skip::new(taken, steps, last)
        });
        self.skips = found.collect();
    }

    /// The next symbol of up to 16 bits, which must be there.
    #[inline(always)]
    fn symbol(&self, bits: &mut Bits<'_>) -> Option<u8> {
        let entry = self.table[bits.peek(LOOK)];
        if entry.code > 0 {
            bits.skip(u32::from(entry.code));
            return Some((entry.run << 4) | entry.length);
        }
        self.long_symbol(bits)
    }

    #[cold]
    fn long_symbol(&self, bits: &mut Bits<'_>) -> Option<u8> {
        for length in LOOK + 1..=16 {
            let code = bits.peek(length) as u32;
            if code < self.limits[length as usize] {
                bits.skip(length);
                let place = code as i32 + self.offsets[length as usize];
                return self.symbols.get(usize::try_from(place).ok()?).copied();
            }
        }
        None
    }

    /// Passes over the coefficients of a block but the first.
    #[inline(always)]
    fn skip_block(&self, bits: &mut Bits<'_>) -> Option<()> {
        let skips: &[Skip; 1 << SKIP_LOOK] = self.skips.first_chunk()?;
        let mut at = 1_usize;
        while at < 64 {
            bits.refill();
            // As often as the bits last.
            for _ in 0..4 {
                let skip = skips[bits.peek(SKIP_LOOK)];
                let next = at + skip.steps();
                // A block that is full ends without a code for it.
                if skip.bits() == 0 || next > 63 {
                    break;
                }
                bits.skip(skip.bits());
                at = next;
                if skip.is_last() {
                    return Some(());
                }
            }
            bits.refill();
            let symbol = self.symbol(bits)?;
            let length = u32::from(symbol & 15);
            bits.skip(length);
            if symbol == 0 {
                return Some(());
            }
            at += 1 + usize::from(symbol >> 4);
        }
        (at == 64).then_some(())
    }

    /// Reads the coefficients of a block but the first, and returns by how much the means of its
    /// quarters differ: the upper ones, the left ones, and those on the diagonal.
    #[inline(always)]
    fn quarters(&self, bits: &mut Bits<'_>, weights: &[f32; 64]) -> Option<[f32; 3]> {
        let mut at = 1_usize;
        // By whether a wave runs down, and across. The last is for those that run along neither
        // with an odd number, which have no weight.
        let mut sums = [0.0; 4];
        while at < 64 {
            if bits.count < 32 {
                bits.refill();
            }
            let entry = self.table[bits.peek(LOOK)];
            let value = if entry.code > 0 && u32::from(entry.all) <= LOOK {
                bits.skip(u32::from(entry.all));
                if entry.ends() {
                    break;
                }
                at += usize::from(entry.run);
                i32::from(entry.value)
            } else {
                let symbol = self.symbol(bits)?;
                if symbol == 0 {
                    break;
                }
                at += usize::from(symbol >> 4);
                bits.value(u32::from(symbol & 15))
            };
            let place = usize::from(*ZIGZAG.get(at)?);
            sums[((place >> 2) & 2) | (place & 1)] += value as f32 * weights[place];
            at += 1;
        }
        Some([sums[2], sums[1], sums[3]])
    }
}

impl Entry {
    /// For a symbol with a code of this length, followed by these bits.
    fn new(symbol: u8, code: u32, low: usize) -> Entry {
        let (run, length) = (symbol >> 4, symbol & 15);
        let all = code + u32::from(length);
        let value = match length {
            1.. if all <= LOOK => {
                let bits = low >> (LOOK - all);
                extended((bits & ((1 << length) - 1)) as i32, u32::from(length)) as i16
            }
            _ => 0,
        };
        Entry { value, code: code as u8, all: all as u8, run, length }
    }

    /// Whether no more coefficients follow.
    #[inline(always)]
    fn ends(self) -> bool {
        self.length == 0 && self.run == 0
    }
}

/// Pixels whose colors are converted together.
const GROUP: usize = 16;

#[inline(always)]
fn to_rgb(luma: &[u8], blue: &[u8], red: &[u8], out: &mut [u8], bgr: bool) {
    let mut at = 0;
    while at < luma.len() {
        let count = GROUP.min(luma.len() - at);
        let mut channels = [[0_u8; GROUP]; 3];
        let mut given = [[0_u8; GROUP]; 3];
        for (given, plane) in given.iter_mut().zip([luma, blue, red]) {
            given[..count].copy_from_slice(&plane[at..at + count]);
        }
        for i in 0..GROUP {
            let [y, cb, cr] = [given[0][i], given[1][i], given[2][i]].map(i32::from);
            let (cb, cr) = (cb - 128, cr - 128);
            // Sixteen bits after the point; halves are rounded up.
            let y = (y << 16) + (1 << 15);
            let r = (y + 91_881 * cr) >> 16;
            let g = (y - 22_554 * cb - 46_802 * cr) >> 16;
            let b = (y + 116_130 * cb) >> 16;
            channels[0][i] = r.clamp(0, 255) as u8;
            channels[1][i] = g.clamp(0, 255) as u8;
            channels[2][i] = b.clamp(0, 255) as u8;
        }
        if bgr {
            channels.swap(0, 2);
        }
        let pixels = out[3 * at..][..3 * count].as_chunks_mut::<3>().0;
        for (i, pixel) in pixels.iter_mut().enumerate() {
            *pixel = [channels[0][i], channels[1][i], channels[2][i]];
        }
        at += count;
    }
}
