//! Estimates what the crate allocates to decode a codestream, from its headers. The crate aborts if
//! there is no memory, so a generous estimate is checked in advance.

/// Memory of a code-block: itself, its nodes in two tag trees, and spare capacity of lists.
const BLOCK: usize = 512;
const LAYER: usize = 64;
const PRECINCT: usize = 512;
const TILE: usize = 512;
const TILE_COMPONENT: usize = 1024;
/// A tile has at least the markers of its start and its data.
const SMALLEST_TILE: usize = 14;

const START_OF_TILE: u16 = 0xff90;
const START_OF_DATA: u16 = 0xff93;
const CODING: u16 = 0xff52;
const CODING_OF_COMPONENT: u16 = 0xff53;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Memory for everything but samples and coefficients, in bytes.
    pub bytes: usize,
    /// The least size of the file.
    pub smallest: usize,
}

struct Codestream<'a>(&'a [u8]);

/// Size of a tile, and the numbers of tiles and components.
struct Grid {
    height: usize,
    width: usize,
    tiles: usize,
    components: usize,
}

/// `None` if the headers are invalid, which the crate reports.
pub fn cost(file: &[u8]) -> Option<Cost> {
    let stream = Codestream(codestream(file)?);
    let grid = stream.grid()?;
    let (mut layers, mut largest) = (1, 0);
    stream.each_coding(grid.components, |coding| layers = layers.max(coding.layers));
    stream.each_coding(grid.components, |coding| {
        largest = largest.max(coding.blocks(&grid, layers));
    });
    let headers = grid.components.saturating_mul(TILE_COMPONENT).saturating_add(TILE);
    Some(Cost {
        bytes: largest
            .saturating_mul(grid.components)
            .saturating_add(headers.saturating_mul(grid.tiles)),
        smallest: grid.tiles.saturating_mul(SMALLEST_TILE),
    })
}

/// The codestream of a file: the whole file, or the contents of its box.
fn codestream(file: &[u8]) -> Option<&[u8]> {
    if file.starts_with(&[0xff, 0x4f]) {
        return Some(file);
    }
    let mut rest = file;
    loop {
        let short = u32::from_be_bytes(*rest.first_chunk()?) as usize;
        let (head, length) = match short {
            0 => (8, rest.len()),
            1 => (16, usize::try_from(u64::from_be_bytes(*rest.get(8..)?.first_chunk()?)).ok()?),
            length => (8, length),
        };
        if rest.get(4..8)? == b"jp2c" {
            return rest.get(head..length.min(rest.len()));
        }
        rest = rest.get(length.max(head)..)?;
    }
}

impl<'a> Codestream<'a> {
    fn short(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    fn long(&self, at: usize) -> Option<usize> {
        Some(u32::from_be_bytes(*self.0.get(at..)?.first_chunk()?) as usize)
    }

    /// From the first segment, which always has the sizes.
    fn grid(&self) -> Option<Grid> {
        let [width, height, left, top] = [8, 12, 16, 20].map(|at| self.long(at));
        let [tile_width, tile_height, tiles_left, tiles_top] =
            [24, 28, 32, 36].map(|at| self.long(at));
        let along = |end: usize, first: usize, tile: usize, tiles_first: usize| {
            let tiles = end.checked_sub(tiles_first)?.div_ceil(tile.max(1));
            Some((tile.min(end.checked_sub(first)?), tiles))
        };
        let (width, across) = along(width?, left?, tile_width?, tiles_left?)?;
        let (height, down) = along(height?, top?, tile_height?, tiles_top?)?;
        let components = usize::from(self.short(40)?);
        Some(Grid { height, width, tiles: across.saturating_mul(down), components })
    }

    /// Calls `found` with the coding parameters of the main header and of each tile's header.
    fn each_coding(&self, components: usize, mut found: impl FnMut(Coding<'a>)) -> Option<()> {
        let mut at = 2;
        let mut tile_end: Option<usize> = None;
        loop {
            let marker = self.short(at)?;
            if marker == START_OF_DATA {
                at = tile_end.take()?.max(at + 2);
                continue;
            }
            let segment = self.0.get(at + 4..at + 2 + usize::from(self.short(at + 2)?))?;
            match marker {
                START_OF_TILE => {
                    let length = u32::from_be_bytes(*segment.get(2..)?.first_chunk()?) as usize;
                    // A length of 0 means that it is the last one.
                    let end = if length == 0 { self.0.len() } else { at.checked_add(length)? };
                    tile_end = Some(end);
                }
                CODING => found(Coding::new(segment, 1, 5)?),
                CODING_OF_COMPONENT => {
                    let number = if components < 257 { 1 } else { 2 };
                    found(Coding { layers: 1, ..Coding::new(segment, number + 1, number + 1)? });
                }
                _ => {}
            }
            at += 2 + usize::from(self.short(at + 2)?);
        }
    }
}

struct Coding<'a> {
    layers: usize,
    levels: u32,
    /// Logarithms of the width and height of code-blocks.
    block: [u32; 2],
    /// Logarithms of precinct sizes, from the coarsest level on: four bits each for width and
    /// height.
    precincts: &'a [u8],
}

impl<'a> Coding<'a> {
    /// The parameters are at `at`; the flags are the byte before `flags`.
    fn new(segment: &'a [u8], flags: usize, at: usize) -> Option<Coding<'a>> {
        let &[levels, width, height, _, _] = segment.get(at..)?.first_chunk()?;
        let own = segment.get(flags - 1)? & 1 != 0;
        Some(Coding {
            layers: usize::from(u16::from_be_bytes(*segment.get(2..)?.first_chunk()?)),
            levels: u32::from(levels).min(32),
            block: [width, height].map(|log| u32::from(log).saturating_add(2).min(10)),
            precincts: if own { segment.get(at + 5..)? } else { &[] },
        })
    }

    /// Memory for the blocks and precincts of one component of a tile, in bytes.
    fn blocks(&self, grid: &Grid, layers: usize) -> usize {
        let each = layers.saturating_mul(LAYER).saturating_add(BLOCK);
        (0..=self.levels)
            .map(|level| {
                let precinct = self.precincts.get(level as usize).copied().unwrap_or(0xff);
                let precinct = [precinct & 15, precinct >> 4].map(u32::from);
                let coarser = self.levels - level;
                // Three bands of half the size; the coarsest level has one.
                let (bands, half) = if level == 0 { (1_usize, 0) } else { (3, 1) };
                let (mut blocks, mut precincts) = (bands, bands);
                for (axis, extent) in [grid.width, grid.height].into_iter().enumerate() {
                    let extent = (extent >> coarser.min(63)) + 1;
                    let log = precinct[axis].saturating_sub(half);
                    let parts = (extent >> half >> log) + 2;
                    precincts = precincts.saturating_mul(parts);
                    // Blocks are no larger than their precinct.
                    let block = self.block[axis].min(log);
                    blocks = blocks.saturating_mul((extent >> half >> block) + 2);
                }
                let precincts = precincts.saturating_mul(PRECINCT);
                blocks.saturating_mul(each).saturating_add(precincts)
            })
            .fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of an image of one tile, or with square tiles of `tile` pixels.
    fn headers(side: u32, tile: u32, layers: u16, precinct: Option<u8>) -> Vec<u8> {
        let mut made = vec![0xff, 0x4f, 0xff, 0x51, 0, 41, 0, 0];
        for number in [side, side, 0, 0, tile, tile, 0, 0] {
            made.extend(number.to_be_bytes());
        }
        made.extend([0, 1, 7, 1, 1]);
        let precincts = vec![precinct.unwrap_or(0); if precinct.is_some() { 6 } else { 0 }];
        made.extend([0xff, 0x52, 0, 12 + precincts.len() as u8, u8::from(precinct.is_some()), 0]);
        made.extend(layers.to_be_bytes());
        made.extend([0, 5, 4, 4, 0, 1]);
        made.extend(precincts);
        made
    }

    #[test]
    fn usual_images_cost_little() {
        let cost = cost(&headers(4096, 4096, 1, None)).unwrap();
        assert!((1 << 20..16 << 20).contains(&cost.bytes), "{cost:?}");
    }

    #[test]
    fn what_makes_an_image_costly_is_counted() {
        let bytes = |file: &[u8]| cost(file).unwrap().bytes;
        assert!(bytes(&headers(4096, 4096, 65535, None)) > 10 << 30);
        assert!(bytes(&headers(4096, 4096, 1, Some(0x11))) > 5 << 30);
        let tiles = cost(&headers(4096, 16, 1, None)).unwrap();
        assert_eq!(tiles.smallest, 256 * 256 * 14);
    }

    #[test]
    fn boxes_are_walked_to_the_codestream() {
        let stream = headers(64, 64, 1, None);
        let mut file = vec![0, 0, 0, 12];
        file.extend(b"jP  \r\n\x87\n");
        file.extend((stream.len() as u32 + 8).to_be_bytes());
        file.extend(b"jp2c");
        file.extend(&stream);
        assert_eq!(cost(&file), cost(&stream));
        for end in 0..file.len() {
            cost(&file[..end]);
        }
    }
}
