//! JPEG at a reduced size. libjpeg has fast code for few of the scales, and decodes each coefficient
//! of a file one by one even if nobody needs it. This is for the usual kind of file: baseline with
//! 4:4:4, 4:2:2, 4:2:0 or gray. Everything else, and everything that is not as it should be, is left
//! to libjpeg, which knows what to say. Pixels are those of libjpeg, bit by bit.

mod bits;
mod color;
mod header;
mod huffman;
mod transform;

use std::ops::Range;

use self::bits::{Bits, Segments};
use self::header::Frame;
use self::huffman::Codes;
use self::transform::{Group, LANES, Transform};
use super::{EIGHTHS, scaled};
use crate::codecs::image::Window;
use crate::kernels::numeric::interleave::interleave_bytes;
use crate::kernels::numeric::isa::{Isa, vectorized};
use crate::value::zeroed;

/// From so many blocks that are passed over, preparing for it pays.
const MANY_BLOCKS: usize = 1 << 12;

/// What the pixels are to become.
#[derive(Clone, Copy, PartialEq)]
pub enum Colors {
    Gray,
    Rgb,
    Bgr,
}

/// Decodes a window of an image at so many eighths of its size to `dst`, which has exactly the size
/// of the window. `None` when the image is not the usual kind, or damaged; `dst` may then hold
/// anything.
pub fn decode(
    bytes: &[u8],
    eighths: usize,
    window: Window,
    colors: Colors,
    dst: &mut [u8],
) -> Option<()> {
    let frame = Frame::parse(bytes)?;
    let [height, width] = [frame.height, frame.width].map(|extent| scaled(extent, eighths));
    let pitch = window.width * if colors == Colors::Gray { 1 } else { 3 };
    if !window.is_inside(height, width) || dst.len() != window.height * pitch {
        return None;
    }
    let grid = Grid::new(&frame, eighths, window)?;
    let mut strips = grid.strips(&frame, colors)?;
    let mut doubled = [Vec::new(), Vec::new()];
    if grid.doubles {
        let length = 2 * strips.get(1)?.pitch;
        doubled = [zeroed(length).ok()?, zeroed(length).ok()?];
    }
    let mut channels = [const { Vec::new() }; 3];
    for channel in channels.iter_mut().filter(|_| strips.len() > 1) {
        *channel = zeroed(window.width).ok()?;
    }
    let mut segments = Segments { rest: frame.data };
    let mut buffer = Vec::new();
    let units = grid.down * grid.across;
    let interval = if frame.restart == 0 { units } else { frame.restart };
    for (number, first) in (0..units).step_by(interval).enumerate() {
        let is_last = first + interval >= units;
        segments.next(&mut buffer, (!is_last).then_some(number % 8))?;
        let mut bits = Bits::new(&buffer);
        strips.iter_mut().for_each(|strip| strip.last = 0);
        let [mut row, mut column] = [first / grid.across, first % grid.across];
        for _ in first..(first + interval).min(units) {
            let inside = grid.rows.contains(&row) && grid.columns.contains(&column);
            let place = inside.then(|| column - grid.columns.start);
            for strip in &mut strips {
                strip.read(&mut bits, place)?;
            }
            column += 1;
            if column < grid.across {
                continue;
            }
            if bits.overrun() {
                return None;
            }
            if grid.rows.contains(&row) {
                for strip in &mut strips {
                    strip.finish_group()?;
                }
                vectorized!(grid.write(row, &strips, &mut doubled, &mut channels, colors, dst));
            }
            (row, column) = (row + 1, 0);
        }
        if bits.overrun() {
            return None;
        }
    }
    Some(())
}

/// How an image is made of units, which are decoded together, and which of them a window needs.
struct Grid {
    down: usize,
    across: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    /// Pixels of a unit.
    unit: [usize; 2],
    /// Whether rows of chroma have half as many samples as those of luma.
    doubles: bool,
    /// Whether samples between are interpolated.
    smooth: bool,
    /// Samples of chroma in a row of the whole image.
    chroma: usize,
    eighths: usize,
    window: Window,
}

impl Grid {
    fn new(frame: &Frame<'_>, eighths: usize, window: Window) -> Option<Grid> {
        let largest = frame.components.first()?.sampling;
        let [down, across] = [(frame.height, largest[0]), (frame.width, largest[1])]
            .map(|(extent, blocks)| extent.div_ceil(EIGHTHS * blocks));
        let unit = largest.map(|blocks| blocks * eighths);
        let doubles = largest == [1, 2];
        // What is interpolated needs its neighbors.
        let margin = usize::from(doubles);
        let columns = (window.x / unit[1]).saturating_sub(margin)
            ..((window.x + window.width).div_ceil(unit[1]) + margin).min(across);
        let rows = window.y / unit[0]..(window.y + window.height).div_ceil(unit[0]);
        let chroma = (frame.width * eighths).div_ceil(2 * EIGHTHS);
        let smooth = eighths > 1 && chroma > 2;
        Some(Grid { down, across, rows, columns, unit, doubles, smooth, chroma, eighths, window })
    }

    fn strips<'a>(&self, frame: &'a Frame<'_>, colors: Colors) -> Option<Vec<Strip<'a>>> {
        let largest = frame.components.first()?.sampling;
        let mut strips = Vec::new();
        for (index, component) in frame.components.iter().enumerate() {
            let sampling = component.sampling;
            // Chroma that is stored at half the size is decoded at twice the scale.
            let size =
                if largest == [2, 2] { 2 / sampling[0] * self.eighths } else { self.eighths };
            let wanted = index == 0 || colors != Colors::Gray;
            let pitch = self.columns.len() * sampling[1] * size;
            let passed = match wanted && size > 1 {
                true => self.down * self.across - self.rows.len() * self.columns.len(),
                false => self.down * self.across,
            };
            strips.push(Strip {
                sampling,
                starts: std::array::from_fn(|block| {
                    (block / sampling[1] * pitch + block % sampling[1]) * size
                }),
                size,
                transform: transform::transform(size),
                quantizer: frame.quantizers.get(component.quantizer)?.as_ref()?,
                dc: frame.dc.get(component.dc)?.as_ref()?,
                ac: frame.ac.get(component.ac)?.as_ref()?,
                wanted,
                many_passed: passed * sampling[0] * sampling[1] >= MANY_BLOCKS,
                last: 0,
                group: Group::new(),
                pitch,
                pixels: zeroed(if wanted { pitch * sampling[0] * size } else { 0 }).ok()?,
            });
        }
        Some(strips)
    }

    /// Writes the pixels of a row of units that are in the window.
    #[inline(always)]
    fn write(
        &self,
        row: usize,
        strips: &[Strip<'_>],
        doubled: &mut [Vec<u8>; 2],
        channels: &mut [Vec<u8>; 3],
        colors: Colors,
        dst: &mut [u8],
    ) {
        let Window { y, x, height, width } = self.window;
        let top = row * self.unit[0];
        let left = x - self.columns.start * self.unit[1];
        let pitch = dst.len() / height;
        for line in y.max(top)..(y + height).min(top + self.unit[0]) {
            let out = &mut dst[(line - y) * pitch..][..pitch];
            let line = line - top;
            let luma = &strips[0].row(line)[left..][..width];
            match strips {
                _ if colors == Colors::Gray => out.copy_from_slice(luma),
                [_, blue, red] => {
                    let (mut blue, mut red) = (blue.row(line), red.row(line));
                    if self.doubles {
                        let end = (self.columns.end * self.eighths).min(self.chroma);
                        let count = end - self.columns.start * self.eighths;
                        let [more_blue, more_red] = doubled;
                        color::double(&blue[..count], self.smooth, more_blue);
                        color::double(&red[..count], self.smooth, more_red);
                        (blue, red) = (more_blue, more_red);
                    }
                    let [r, g, b] = channels.each_mut().map(|channel| &mut channel[..]);
                    let [blue, red] = [blue, red].map(|row| &row[left..][..width]);
                    color::to_rgb(luma, blue, red, [&mut *r, &mut *g, &mut *b]);
                    let order = if colors == Colors::Bgr { [&*b, g, r] } else { [&*r, g, b] };
                    interleave_bytes(Isa::best(), order, out);
                }
                _ => {
                    for (pixel, &value) in out.as_chunks_mut::<3>().0.iter_mut().zip(luma) {
                        *pixel = [value; 3];
                    }
                }
            }
        }
    }
}

/// The pixels of a channel in one row of units, while they are decoded.
struct Strip<'a> {
    sampling: [usize; 2],
    /// Where the blocks of the first unit begin.
    starts: [usize; 4],
    /// Pixels that a block becomes, across and down.
    size: usize,
    /// Blocks of one pixel need none.
    transform: Option<Transform>,
    quantizer: &'a [i16; 64],
    dc: &'a Codes,
    ac: &'a Codes,
    wanted: bool,
    /// Whether so many blocks are passed over that preparing for it pays.
    many_passed: bool,
    /// The last block's mean, which the next one's is relative to.
    last: i32,
    group: Group,
    pitch: usize,
    pixels: Vec<u8>,
}

impl Strip<'_> {
    fn row(&self, line: usize) -> &[u8] {
        &self.pixels[line * self.pitch..][..self.pitch]
    }

    /// Reads the blocks of a unit that goes to this column, or to none.
    #[inline(always)]
    fn read(&mut self, bits: &mut Bits<'_>, column: Option<usize>) -> Option<()> {
        let [down, across] = self.sampling;
        let starts = self.starts;
        for start in &starts[..down * across] {
            self.last = self.last.checked_add(self.dc.difference(bits)?)?;
            let mean = i16::try_from(self.last).ok()?;
            let Some(column) = column.filter(|_| self.wanted) else {
                self.pass(bits)?;
                continue;
            };
            let place = *start + column * across * self.size;
            if self.size == 1 {
                let mean = (i32::from(mean) * i32::from(self.quantizer[0]) + 4) >> 3;
                *self.pixels.get_mut(place)? = transform::to_byte(mean);
                self.pass(bits)?;
                continue;
            }
            let group = &mut self.group;
            let lane = group.filled % LANES;
            group.places[lane] = place;
            group.coefficients[0][lane] = mean;
            let coefficients = &mut group.coefficients;
            let end = self.ac.read_block(bits, |number, value| {
                coefficients[number][lane] = value;
            })?;
            group.end = group.end.max(end);
            group.filled += 1;
            if group.filled == LANES {
                self.finish_group()?;
            }
        }
        Some(())
    }

    /// Passes over the rest of a block.
    #[inline(always)]
    fn pass(&self, bits: &mut Bits<'_>) -> Option<()> {
        match self.many_passed {
            true => self.ac.skip_block(bits),
            false => self.ac.read_block(bits, |_, _| {}).map(|_| ()),
        }
    }

    /// Transforms the blocks that have been read.
    fn finish_group(&mut self) -> Option<()> {
        if self.group.filled > 0 {
            (self.transform?)(
                Isa::best(),
                &self.group,
                self.quantizer,
                &mut self.pixels,
                self.pitch,
            )?;
            self.group.coefficients[..self.group.end].fill([0; LANES]);
            (self.group.end, self.group.filled) = (0, 0);
        }
        Some(())
    }
}
