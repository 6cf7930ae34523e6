//! Contrast-limited adaptive histogram equalization (CLAHE).

use std::ops::Range;

use super::lab::Tables;
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::warp::places::Border;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Cause, DType, Desc, Sample, filled, with_room, zeroed};

pub struct Clahe;

args! {
    pub struct ClaheArgs { clip_limit: f64, luma_only: bool, tiles_x: i64, tiles_y: i64 }
}

/// More tiles would be pointless, and their look-up tables would take too much memory.
const MOST_TILES: i64 = 1024;

pub struct Tiling {
    clip_limit: f64,
    luma_only: bool,
    tiles: [usize; 2],
}

impl Kernel for Clahe {
    type Args = ClaheArgs;
    type Plan = Tiling;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: ClaheArgs, inputs: &[&Desc]) -> Result<(Tiling, Outputs)> {
        let input = inputs[0];
        if input.dtype != DType::U8 {
            let dtype = input.dtype.name();
            return Err(unfit(0, Input::Type { wanted: "uint8", dtype }));
        }
        let given = input.shape.last().copied().unwrap_or(0);
        if given != 1 && given != 3 {
            return Err(unfit(0, Input::Channels { wanted: "1 or 3", given }));
        }
        let tiles = |name: &'static str, given: i64| match given {
            1..=MOST_TILES => Ok(given as usize),
            _ => {
                let (high, given) = (MOST_TILES as f64, given as f64);
                Err(argument(name, Argument::Between { low: 1.0, high, given }))
            }
        };
        if args.clip_limit.is_nan() {
            let given = args.clip_limit;
            return Err(argument("clip_limit", Argument::NotFinite { given }));
        }
        let tiles = [tiles("tiles_x", args.tiles_x)?, tiles("tiles_y", args.tiles_y)?];
        let plan = Tiling { clip_limit: args.clip_limit, luma_only: args.luma_only, tiles };
        Ok((plan, one(input.clone())))
    }

    fn run(plan: &Tiling, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (src, desc) = (inputs[0].elements::<u8>(), &inputs[0].desc);
        let dst = outputs[0].elements::<u8>();
        let &[height, width, channels] = &desc.shape[..] else {
            return Err(Cause::Internal("an image has three axes".into()));
        };
        let pixels = height * width;
        if pixels == 0 {
            return Ok(());
        }
        let mut grid = Grid::new(plan, height, width)?;
        if channels == 1 {
            grid.equalize(src.as_chunks::<1>().0, 0, dst.as_chunks_mut::<1>().0);
            return Ok(());
        }
        let (src, dst) = (src.as_chunks::<3>().0, dst.as_chunks_mut::<3>().0);
        if !plan.luma_only {
            (0..3).for_each(|channel| grid.equalize(src, channel, dst));
            return Ok(());
        }
        let tables = Tables::get();
        let mut planes = zeroed::<u8>(4 * pixels)?;
        let (light, rest) = planes.split_at_mut(pixels);
        let (a, rest) = rest.split_at_mut(pixels);
        let (b, made) = rest.split_at_mut(pixels);
        tables.split(src, [light, a, b]);
        grid.equalize(light.as_chunks::<1>().0, 0, made.as_chunks_mut::<1>().0);
        tables.join([made, a, b], dst);
        Ok(())
    }
}

/// A grid of equal tiles. If they don't divide the image evenly, it is padded by reflection.
struct Grid {
    height: usize,
    width: usize,
    tiles: [usize; 2],
    /// Width and height of a tile.
    tile: [usize; 2],
    /// Clip limit of the histograms, in pixels; 0 for none.
    limit: u32,
    tables: Vec<[u8; 256]>,
    /// Horizontal interpolation weight of each column, between the tiles on its left and right.
    parts: Vec<f32>,
    /// Runs of columns between the same two tiles.
    spans: Vec<Span>,
    /// For each span and pixel value, the look-up results of the four surrounding tiles, packed as
    /// bytes: upper tiles first.
    quads: Vec<[u32; 256]>,
}

struct Span {
    pixels: Range<usize>,
    tiles: [usize; 2],
}

/// Two adjacent tiles and the interpolation weight between their centers.
struct Between {
    tiles: [usize; 2],
    part: f32,
}

impl Between {
    fn new(at: usize, tile: usize, tiles: usize) -> Between {
        // Single precision in this order of operations, as in OpenCV and therefore DALI.
        let place = at as f32 * (1.0 / tile as f32) - 0.5;
        let first = place.floor();
        let last = tiles - 1;
        let second = (first + 1.0) as usize;
        Between {
            tiles: [(first.max(0.0) as usize).min(last), second.min(last)],
            part: place - first,
        }
    }
}

impl Grid {
    fn new(plan: &Tiling, height: usize, width: usize) -> Result<Grid> {
        let [across, down] = plan.tiles;
        let (mut whole_width, mut whole_height) = (width, height);
        if !(width.is_multiple_of(across) && height.is_multiple_of(down)) {
            // As in OpenCV, if either axis needs padding, an axis that divides evenly is also
            // padded, by one pixel per tile.
            whole_width += across - width % across;
            whole_height += down - height % down;
        }
        let tile = [whole_width / across, whole_height / down];
        let area = tile[0].saturating_mul(tile[1]);
        if u32::try_from(area).is_err() {
            return Err(unfit(0, super::problem::Color::TooManyPixels { pixels: area }));
        }
        let limit = match plan.clip_limit {
            given if given > 0.0 => (given * area as f64 / 256.0).clamp(1.0, 1e9) as u32,
            _ => 0,
        };
        let tables = filled([0; 256], across * down)?;
        let mut parts = zeroed::<f32>(width)?;
        let mut spans: Vec<Span> = with_room(across + 1)?;
        for (x, part) in parts.iter_mut().enumerate() {
            let between = Between::new(x, tile[0], across);
            *part = between.part;
            match spans.last_mut() {
                Some(span) if span.tiles == between.tiles => span.pixels.end = x + 1,
                _ => spans.push(Span { pixels: x..x + 1, tiles: between.tiles }),
            }
        }
        let quads = filled([0; 256], spans.len())?;
        Ok(Grid { height, width, tiles: plan.tiles, tile, limit, tables, parts, spans, quads })
    }

    /// Equalizes one of the `C` channels of an image.
    fn equalize<const C: usize>(&mut self, src: &[[u8; C]], channel: usize, dst: &mut [[u8; C]]) {
        self.fill_tables(src, channel);
        let mut quads_of = None;
        for (y, (src, dst)) in
            src.chunks_exact(self.width).zip(dst.chunks_exact_mut(self.width)).enumerate()
        {
            let down = Between::new(y, self.tile[1], self.tiles[1]);
            if quads_of != Some(down.tiles) {
                self.fill_quads(down.tiles);
                quads_of = Some(down.tiles);
            }
            for (span, quads) in self.spans.iter().zip(&self.quads) {
                let pixels = span.pixels.clone();
                let (src, dst) = (&src[pixels.clone()], &mut dst[pixels.clone()]);
                let blocks = src.chunks(BLOCK).zip(dst.chunks_mut(BLOCK));
                for ((src, dst), parts) in blocks.zip(self.parts[pixels].chunks(BLOCK)) {
                    let (mut taps, mut made) = ([0; BLOCK], [0; BLOCK]);
                    for (taps, pixel) in taps.iter_mut().zip(src) {
                        *taps = quads[usize::from(pixel[channel])];
                    }
                    blend(&taps, parts, down.part, &mut made);
                    for (pixel, made) in dst.iter_mut().zip(made) {
                        pixel[channel] = made;
                    }
                }
            }
        }
    }

    fn fill_quads(&mut self, down: [usize; 2]) {
        let [above, below] = down.map(|tile| &self.tables[tile * self.tiles[0]..][..self.tiles[0]]);
        for (quads, span) in self.quads.iter_mut().zip(&self.spans) {
            let [left, right] = span.tiles;
            let tables = [&above[left], &above[right], &below[left], &below[right]];
            for (brightness, quad) in quads.iter_mut().enumerate() {
                *quad = u32::from_le_bytes(tables.map(|table| table[brightness]));
            }
        }
    }

    fn fill_tables<const C: usize>(&mut self, src: &[[u8; C]], channel: usize) {
        let [tile_width, tile_height] = self.tile;
        let area = (tile_width * tile_height) as u32;
        let scale = 255.0 / area as f32;
        let mirrored = |at: usize, n: usize| Border::Reflect101.resolve(at as i64, n).unwrap_or(0);
        for (index, table) in self.tables.iter_mut().enumerate() {
            let (left, top) =
                (index % self.tiles[0] * tile_width, index / self.tiles[0] * tile_height);
            // Two sets of counters: adjacent pixels are often equal, and incrementing the same
            // counter twice in a row stalls.
            let (mut counts, mut odd) = ([0_u32; 256], [0_u32; 256]);
            for y in top..top + tile_height {
                let row = &src[mirrored(y, self.height) * self.width..][..self.width];
                let inside = left.min(self.width)..(left + tile_width).min(self.width);
                let (pairs, last) = row[inside].as_chunks::<2>();
                for [a, b] in pairs {
                    counts[usize::from(a[channel])] += 1;
                    odd[usize::from(b[channel])] += 1;
                }
                last.iter().for_each(|pixel| counts[usize::from(pixel[channel])] += 1);
                for x in left.max(self.width)..left + tile_width {
                    counts[usize::from(row[mirrored(x, self.width)][channel])] += 1;
                }
            }
            counts.iter_mut().zip(odd).for_each(|(count, more)| *count += more);
            if self.limit > 0 {
                clip(&mut counts, self.limit);
            }
            let mut sum = 0;
            for (to, count) in table.iter_mut().zip(counts) {
                sum += count;
                *to = (sum as f32 * scale).round_ties_even() as u8;
            }
        }
    }
}

/// Pixels blended at a time.
const BLOCK: usize = 64;

/// Bilinear interpolation between the four tiles.
fn blend(taps: &[u32; BLOCK], parts: &[f32], down: f32, made: &mut [u8; BLOCK]) {
    let mut across = [0.0; BLOCK];
    across[..parts.len()].copy_from_slice(parts);
    vectorized!({
        let up = 1.0 - down;
        for i in 0..BLOCK {
            let (right, left) = (across[i], 1.0 - across[i]);
            let tap = |k: u32| (taps[i] >> (8 * k) & 255) as i32 as f32;
            let above = tap(0) * left + tap(1) * right;
            let below = tap(2) * left + tap(3) * right;
            let blended = (above * up + below * down).round_ties_even();
            // SAFETY: an interpolation of bytes is between 0 and 255.
            made[i] = unsafe { blended.to_int_unchecked::<i32>() } as u8;
        }
    });
}

/// Clips the histogram and redistributes the excess evenly; the remainder goes to every n-th bin.
fn clip(counts: &mut [u32; 256], limit: u32) {
    let mut excess = 0;
    for count in counts.iter_mut() {
        excess += count.saturating_sub(limit);
        *count = (*count).min(limit);
    }
    let (each, rest) = (excess / 256, excess % 256);
    counts.iter_mut().for_each(|count| *count += each);
    if rest > 0 {
        let step = (256 / rest as usize).max(1);
        counts.iter_mut().step_by(step).take(rest as usize).for_each(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipped_counts_are_redistributed() {
        let mut counts = [0; 256];
        (counts[3], counts[200]) = (1000, 24);
        clip(&mut counts, 100);
        assert_eq!(counts.iter().sum::<u32>(), 1024);
        // 900 is three for each bin, and one more for the first 132.
        assert_eq!((counts[3], counts[200], counts[0], counts[1]), (104, 27, 4, 4));
    }
}
