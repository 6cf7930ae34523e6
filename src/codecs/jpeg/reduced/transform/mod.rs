//! Inverse transforms to blocks of other sizes than 8 x 8, for several blocks at once.
//!
//! They compute what libjpeg-turbo does, bit by bit: its transforms are linear, in integers, and
//! round twice, so that a table of factors describes each of them.

// An index over lanes is what becomes vectors.
#![allow(clippy::needless_range_loop)]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod factors;

use self::factors::{Pass, pass};
use super::huffman::ZIGZAG;
use crate::kernels::numeric::isa::Isa;

/// Blocks that are transformed together.
pub const LANES: usize = 8;

/// The bits of a factor after the point, and those that are kept between the two passes.
const POINT: u32 = 13;
const KEPT: u32 = 2;
/// Limit on coefficients and on what is between the passes, beyond which 32 bits might not be
/// enough, or the 16 of vectors.
const MOST: i32 = 1 << 14;

/// Blocks that wait for their transform.
pub struct Group {
    /// In the order of the file.
    pub coefficients: [[i16; LANES]; 64],
    /// Where in the order of the file the coefficients of the fullest block end.
    pub end: usize,
    /// Where the pixels of the blocks go.
    pub places: [usize; LANES],
    pub filled: usize,
}

impl Group {
    pub fn new() -> Group {
        Group { coefficients: [[0; LANES]; 64], end: 0, places: [0; LANES], filled: 0 }
    }
}

/// Writes the blocks of a group to rows of so many pixels. `None` if a coefficient is so large that
/// the result would not be libjpeg's.
pub type Transform = fn(Isa, &Group, &[i16; 64], &mut [u8], usize) -> Option<()>;

/// The transform to blocks of this size.
pub fn transform(size: usize) -> Option<Transform> {
    Some(match size {
        2 => run::<2>,
        3 => run::<3>,
        4 => run::<4>,
        5 => run::<5>,
        6 => run::<6>,
        7 => run::<7>,
        8 => run::<8>,
        10 => run::<10>,
        12 => run::<12>,
        14 => run::<14>,
        _ => return None,
    })
}

/// Coefficients of a pass, if the higher half of them is 0 in all blocks.
const LOW: usize = 4;

/// The places of the first coefficients in the order of the file, as bits.
const FIRST: [u64; 65] = {
    let mut places = [0; 65];
    let mut count = 0;
    while count < 64 {
        places[count + 1] = places[count] | (1 << ZIGZAG[count]);
        count += 1;
    }
    places
};

/// The numbers of coefficients in the order of the file, by their places in a block.
const NUMBERS: [usize; 64] = {
    let mut numbers = [0; 64];
    let mut number = 0;
    while number < 64 {
        numbers[ZIGZAG[number] as usize] = number;
        number += 1;
    }
    numbers
};

fn run<const SIZE: usize>(
    isa: Isa,
    group: &Group,
    quantizer: &[i16; 64],
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    let seen = *FIRST.get(group.end)?;
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
        Isa::Avx2 => unsafe { avx2::run::<SIZE>(group, seen, quantizer, pixels, pitch) },
        _ => run_scalar::<SIZE>(group, seen, quantizer, pixels, pitch),
    }
}

fn run_scalar<const SIZE: usize>(
    group: &Group,
    seen: u64,
    quantizer: &[i16; 64],
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    let mut between = [[[0; LANES]; 8]; SIZE];
    let beyond = match seen >> (8 * LOW) {
        0 => down::<SIZE, LOW>(group, seen, quantizer, &mut between),
        _ => down::<SIZE, 8>(group, seen, quantizer, &mut between),
    };
    if beyond & !(2 * MOST - 1) != 0 {
        return None;
    }
    match seen & 0xf0f0_f0f0_f0f0_f0f0 {
        0 => across::<SIZE, LOW>(group, &between, pixels, pitch),
        _ => across::<SIZE, 8>(group, &between, pixels, pitch),
    }
}

/// The first pass, over columns. The bits of its result tell if any number was beyond the limit.
#[inline(always)]
fn down<const SIZE: usize, const USED: usize>(
    group: &Group,
    seen: u64,
    quantizer: &[i16; 64],
    between: &mut [[[i32; LANES]; 8]; SIZE],
) -> i32 {
    let pass = const { &pass(SIZE) };
    let mut beyond = [0; LANES];
    let shift = POINT - KEPT + pass.larger;
    for column in 0..8 {
        if pass.factors[0][column] == 0 || is_empty(seen, column) {
            continue;
        }
        for lane in 0..LANES {
            let mut given = [0; USED];
            for row in 0..USED {
                if pass.factors[0][row] != 0 {
                    let at = 8 * row + column;
                    let stored = group.coefficients[NUMBERS[at]][lane];
                    given[row] = i32::from(stored) * i32::from(quantizer[at]);
                    beyond[lane] |= given[row].wrapping_add(MOST);
                }
            }
            let made: [i32; SIZE] = waves(pass, given, shift);
            for row in 0..SIZE {
                between[row][column][lane] = made[row];
                beyond[lane] |= made[row].wrapping_add(MOST);
            }
        }
    }
    beyond.iter().fold(0, |all, lane| all | lane)
}

/// Whether a column has none of these coefficients.
fn is_empty(seen: u64, column: usize) -> bool {
    (seen >> column) & 0x0101_0101_0101_0101 == 0
}

/// The second pass, over rows.
#[inline(always)]
fn across<const SIZE: usize, const USED: usize>(
    group: &Group,
    between: &[[[i32; LANES]; 8]; SIZE],
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    let pass = const { &pass(SIZE) };
    let shift = POINT + KEPT + 3 + pass.larger;
    for row in 0..SIZE {
        let mut line = [[0; LANES]; 4];
        for lane in 0..LANES {
            let mut given = [0; USED];
            for column in 0..USED {
                if pass.factors[0][column] != 0 {
                    given[column] = between[row][column][lane];
                }
            }
            let made: [i32; SIZE] = waves(pass, given, shift);
            for column in 0..SIZE {
                let byte = match pass.saturates {
                    true => (made[column] + 128).clamp(0, 255) as u32,
                    false => u32::from(to_byte(made[column])),
                };
                line[column / 4][lane] |= byte << (8 * (column % 4));
            }
        }
        write_row::<SIZE>(group, &line, row, pixels, pitch)?;
    }
    Some(())
}

/// Writes one row of each block, of which four pixels are together.
#[inline(always)]
fn write_row<const SIZE: usize>(
    group: &Group,
    line: &[[u32; LANES]; 4],
    row: usize,
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    for (lane, &place) in group.places.iter().enumerate().take(group.filled) {
        let pixels = pixels.get_mut(place + row * pitch..)?.first_chunk_mut::<SIZE>()?;
        for first in (0..SIZE).step_by(4) {
            let (four, to) = (line[first / 4][lane].to_le_bytes(), &mut pixels[first..]);
            match to.first_chunk_mut() {
                Some(to) => *to = four,
                None => to.iter_mut().zip(four).for_each(|(to, pixel)| *to = pixel),
            }
        }
    }
    Some(())
}

/// One pass over the coefficients in use, rounded by so many bits.
#[inline(always)]
fn waves<const SIZE: usize, const USED: usize>(
    pass: &Pass,
    given: [i32; USED],
    shift: u32,
) -> [i32; SIZE] {
    let mut made = [0; SIZE];
    for index in 0..SIZE.div_ceil(2) {
        let (mut even, mut odd) = (1_i32 << (shift - 1), 0_i32);
        for wave in (0..USED).step_by(2) {
            let [first, second] = [pass.factors[index][wave], pass.factors[index][wave + 1]];
            even = even.wrapping_add(given[wave].wrapping_mul(first));
            odd = odd.wrapping_add(given[wave + 1].wrapping_mul(second));
        }
        made[SIZE - 1 - index] = even.wrapping_sub(odd) >> shift;
        made[index] = even.wrapping_add(odd) >> shift;
    }
    made
}

/// A pixel, which libjpeg keeps modulo 1024 before it saturates.
#[inline(always)]
pub fn to_byte(value: i32) -> u8 {
    (((value << 22) >> 22) + 128).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::factors::SIZES;
    use super::*;

    fn group(largest: i32) -> Group {
        let mut noise = 3_u32;
        let mut group = Group::new();
        for lane in group.coefficients.as_flattened_mut() {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *lane = ((noise >> 8) as i32 % (2 * largest + 1) - largest) as i16;
        }
        group.places = std::array::from_fn(|lane| lane * 16);
        (group.end, group.filled) = (64, LANES);
        group
    }

    #[test]
    fn every_isa_agrees_with_scalar() {
        let pitch = 16 * LANES;
        let (mut inside, mut beyond) = (0, 0);
        for size in SIZES {
            // Blocks that are full, and those whose coefficients are all in the lower half.
            for (largest, step, end) in [
                (1, 3, 64),
                (50, 3, 64),
                (50, 3, 10),
                (900, 3, 64),
                (4000, 1, 2),
                (8000, 2, 64),
                (16_000, 1, 64),
                (32_000, 1, 3),
                (32_000, 32_000, 5),
            ] {
                let mut group = group(largest);
                group.coefficients[end..].fill([0; LANES]);
                group.end = end;
                let run = |isa| {
                    let mut made = vec![0; 16 * pitch];
                    let outcome =
                        transform(size).unwrap()(isa, &group, &[step; 64], &mut made, pitch);
                    (outcome, made)
                };
                let expected = run(Isa::Scalar);
                for isa in Isa::available() {
                    let made = run(isa);
                    let same = made.0 == expected.0 && (made.0.is_none() || made == expected);
                    assert!(same, "{isa:?}, {size} pixels, {largest} times {step} up to {end}");
                }
                match expected.0 {
                    Some(()) => inside += 1,
                    None => beyond += 1,
                }
            }
        }
        assert!(inside > 0 && beyond > 0);
    }

    #[test]
    fn flat_blocks_stay_flat() {
        for size in SIZES {
            let mut group = group(0);
            (group.coefficients[0], group.end) = ([80; LANES], 1);
            let mut made = vec![0; 16 * 16 * LANES];
            transform(size).unwrap()(Isa::best(), &group, &[4; 64], &mut made, 16 * LANES).unwrap();
            for (at, &pixel) in made.iter().enumerate() {
                let inside = at % 16 < size && at / (16 * LANES) < size;
                assert_eq!(pixel, if inside { 128 + 40 } else { 0 }, "{size} pixels, at {at}");
            }
        }
    }

    #[test]
    fn numbers_that_may_not_fit_are_left_to_libjpeg() {
        let mut group = group(0);
        group.coefficients[0][3] = 1 << 10;
        for (quantizer, expected) in [(3, Some(())), (4, None)] {
            let mut made = vec![0; 16 * 16 * LANES];
            let outcome =
                transform(5).unwrap()(Isa::best(), &group, &[quantizer; 64], &mut made, 16 * LANES);
            assert_eq!(outcome, expected);
        }
    }
}
