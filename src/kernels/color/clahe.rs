//! Contrast-limited adaptive histogram equalisation.

use super::lab::Tables;
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::numeric::isa::Isa;
use crate::kernels::warp::places::Border;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Cause, DType, Desc, Sample, filled, zeroed};

pub struct Clahe;

args! {
    pub struct ClaheArgs { clip_limit: f64, luma_only: bool, tiles_x: i64, tiles_y: i64 }
}

/// More tiles than this are no use, and their tables take too much memory.
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
        if channels == 1 {
            let mut grid = Grid::new(plan, height, width)?;
            grid.equalize(src, dst);
            return Ok(());
        }
        let mut grid = Grid::new(plan, height, width)?;
        let (src, dst) = (src.as_chunks::<3>().0, dst.as_chunks_mut::<3>().0);
        let (mut plane, mut made) = (zeroed::<u8>(pixels)?, zeroed::<u8>(pixels)?);
        if plan.luma_only {
            let tables = Tables::get();
            // The colors wait where the result will be.
            for ((dst, src), light) in dst.iter_mut().zip(src).zip(&mut plane) {
                *dst = tables.lab(*src);
                *light = dst[0];
            }
            grid.equalize(&plane, &mut made);
            for (dst, &light) in dst.iter_mut().zip(&made) {
                *dst = tables.rgb([light, dst[1], dst[2]]);
            }
            return Ok(());
        }
        for channel in 0..3 {
            for (to, from) in plane.iter_mut().zip(src) {
                *to = from[channel];
            }
            grid.equalize(&plane, &mut made);
            for (to, &from) in dst.iter_mut().zip(&made) {
                to[channel] = from;
            }
        }
        Ok(())
    }
}

/// Tiles of equal size over an image, which goes on mirrored where they do not divide it.
struct Grid {
    height: usize,
    width: usize,
    tiles: [usize; 2],
    /// The width and the height of a tile.
    tile: [usize; 2],
    /// The most of one brightness that a tile has, the rest being spread; 0 for any number.
    limit: u32,
    tables: Vec<[u8; 256]>,
    across: Vec<Between>,
}

/// Two neighbouring tiles, and how far a pixel is from the center of the first to the other's.
#[derive(Clone, Copy)]
struct Between {
    tiles: [usize; 2],
    part: f32,
}

impl Between {
    fn new(at: usize, tile: usize, tiles: usize) -> Between {
        // Single precision in this order, as OpenCV, and so DALI.
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
            // An axis that can be divided gets a whole row of tiles' worth too.
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
        let between = Between { tiles: [0; 2], part: 0.0 };
        let mut columns = filled(between, width)?;
        for (x, column) in columns.iter_mut().enumerate() {
            *column = Between::new(x, tile[0], across);
        }
        Ok(Grid { height, width, tiles: plan.tiles, tile, limit, tables, across: columns })
    }

    fn equalize(&mut self, src: &[u8], dst: &mut [u8]) {
        self.fill_tables(src);
        let mut taps = [[0.0; BLOCK]; 4];
        for (y, (src, dst)) in
            src.chunks_exact(self.width).zip(dst.chunks_exact_mut(self.width)).enumerate()
        {
            let down = Between::new(y, self.tile[1], self.tiles[1]);
            let rows = down.tiles.map(|tile| &self.tables[tile * self.tiles[0]..][..self.tiles[0]]);
            let blocks = src.chunks(BLOCK).zip(dst.chunks_mut(BLOCK));
            for ((src, dst), across) in blocks.zip(self.across.chunks(BLOCK)) {
                let [top, bottom] = rows;
                for (i, (&value, at)) in src.iter().zip(across).enumerate() {
                    let ([left, right], value) = (at.tiles, usize::from(value));
                    taps[0][i] = f32::from(top[left][value]);
                    taps[1][i] = f32::from(top[right][value]);
                    taps[2][i] = f32::from(bottom[left][value]);
                    taps[3][i] = f32::from(bottom[right][value]);
                }
                blend(&taps, across, down.part, dst);
            }
        }
    }

    fn fill_tables(&mut self, src: &[u8]) {
        let [tile_width, tile_height] = self.tile;
        let area = (tile_width * tile_height) as u32;
        let scale = 255.0 / area as f32;
        let mirrored = |at: usize, n: usize| Border::Reflect101.resolve(at as i64, n).unwrap_or(0);
        for (index, table) in self.tables.iter_mut().enumerate() {
            let (left, top) =
                (index % self.tiles[0] * tile_width, index / self.tiles[0] * tile_height);
            // Two sets of counts: neighbours are often alike, and counting the same twice waits.
            let (mut counts, mut odd) = ([0_u32; 256], [0_u32; 256]);
            for y in top..top + tile_height {
                let row = &src[mirrored(y, self.height) * self.width..][..self.width];
                let inside = left.min(self.width)..(left + tile_width).min(self.width);
                let (pairs, last) = row[inside].as_chunks::<2>();
                for &[a, b] in pairs {
                    counts[usize::from(a)] += 1;
                    odd[usize::from(b)] += 1;
                }
                last.iter().for_each(|&x| counts[usize::from(x)] += 1);
                for x in left.max(self.width)..left + tile_width {
                    counts[usize::from(row[mirrored(x, self.width)])] += 1;
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

/// Pixels that are blended at a time.
const BLOCK: usize = 64;

/// Between the tables of four tiles.
fn blend(taps: &[[f32; BLOCK]; 4], across: &[Between], down: f32, dst: &mut [u8]) {
    let n = dst.len().min(across.len()).min(BLOCK);
    Isa::run_on_best(|| {
        let up = 1.0 - down;
        for i in 0..n {
            let right = across[i].part;
            let left = 1.0 - right;
            let above = taps[0][i] * left + taps[1][i] * right;
            let below = taps[2][i] * left + taps[3][i] * right;
            dst[i] = (above * up + below * down).round_ties_even() as u8;
        }
    });
}

/// Takes what is above the limit and spreads it evenly; what is left of that goes to some.
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
    fn what_is_clipped_is_spread() {
        let mut counts = [0; 256];
        (counts[3], counts[200]) = (1000, 24);
        clip(&mut counts, 100);
        assert_eq!(counts.iter().sum::<u32>(), 1024);
        // 900 are three for each, and one more for the first 132.
        assert_eq!((counts[3], counts[200], counts[0], counts[1]), (104, 27, 4, 4));
    }
}
