//! Inverse transforms to blocks of other sizes than 8 x 8, for several blocks at once.
//!
//! They compute what libjpeg-turbo does, bit by bit: its transforms are linear, in integers, and
//! round twice, so that a table of factors describes each of them.

// An index over lanes is what becomes vectors.
#![allow(clippy::needless_range_loop)]

use super::huffman::ZIGZAG;
use crate::kernels::numeric::isa::vectorized;

/// Blocks that are transformed together.
pub const LANES: usize = 8;

/// The bits of a factor after the point, and those that are kept between the two passes.
const POINT: u32 = 13;
const KEPT: u32 = 2;
/// Limit on coefficients, beyond which 32 bits might not be enough, or libjpeg's 16.
const MOST: i32 = 1 << 14;

/// One pass: what the coefficients (across) add to the pixels of the first half (down). To those of
/// the second, odd ones add the opposite. Factors of coefficients that don't count are 0.
struct Pass<const HALF: usize> {
    factors: [[i32; 8]; HALF],
    /// Factors are larger by so many bits.
    larger: u32,
    /// Whether libjpeg computes with vectors, which saturate; otherwise pixels are kept modulo 1024.
    saturates: bool,
}

const TWO: Pass<1> =
    Pass { factors: [[32768, 29692, 0, -10426, 0, 6967, 0, -5906]], larger: 2, saturates: true };
const THREE: Pass<2> = Pass {
    factors: [[8192, 10033, 5793, 0, 0, 0, 0, 0], [8192, 0, -11586, 0, 0, 0, 0, 0]],
    larger: 0,
    saturates: false,
};
const FOUR: Pass<2> = Pass {
    factors: [
        [16384, 20995, 15137, 7373, 0, -4926, -6270, -4176],
        [16384, 8697, -15137, -17799, 0, 11893, 6270, -1730],
    ],
    larger: 1,
    saturates: true,
};
const FIVE: Pass<3> = Pass {
    factors: [
        [8192, 11019, 9372, 6810, 3580, 0, 0, 0],
        [8192, 6810, -3580, -11018, -9372, 0, 0, 0],
        [8192, 0, -11584, 0, 11584, 0, 0, 0],
    ],
    larger: 0,
    saturates: false,
};
const SIX: Pass<3> = Pass {
    factors: [
        [8192, 11190, 10033, 8192, 5793, 2998, 0, 0],
        [8192, 8192, 0, -8192, -11586, -8192, 0, 0],
        [8192, 2998, -10033, -8192, 5793, 11190, 0, 0],
    ],
    larger: 0,
    saturates: false,
};
const SEVEN: Pass<4> = Pass {
    factors: [
        [8192, 11295, 10438, 9058, 7223, 5027, 2578, 0],
        [8192, 9058, 2578, -5027, -10438, -11295, -7223, 0],
        [8192, 5027, -7223, -11295, -2578, 9058, 10438, 0],
        [8192, 0, -11585, 0, 11585, 0, -11585, 0],
    ],
    larger: 0,
    saturates: false,
};
const EIGHT: Pass<4> = Pass {
    factors: [
        [8192, 11363, 10703, 9633, 8192, 6437, 4433, 2260],
        [8192, 9633, 4433, -2259, -8192, -11362, -10704, -6436],
        [8192, 6437, -4433, -11362, -8192, 2261, 10704, 9633],
        [8192, 2260, -10703, -6436, 8192, 9633, -4433, -11363],
    ],
    larger: 0,
    saturates: true,
};
const TEN: Pass<5> = Pass {
    factors: [
        [8192, 11443, 11019, 10322, 9373, 8192, 6810, 5260],
        [8192, 10323, 6810, 1812, -3580, -8192, -11018, -11442],
        [8192, 8192, 0, -8192, -11586, -8192, 0, 8192],
        [8192, 5260, -6810, -11442, -3580, 8192, 11018, 1812],
        [8192, 1812, -11019, -5260, 9373, 8192, -6810, -10322],
    ],
    larger: 0,
    saturates: false,
};
const TWELVE: Pass<6> = Pass {
    factors: [
        [8192, 11487, 11190, 10703, 10033, 9192, 8192, 7053],
        [8192, 10703, 8192, 4433, 0, -4433, -8192, -10703],
        [8192, 9192, 2998, -4433, -10033, -11485, -8192, -1512],
        [8192, 7053, -2998, -10703, -10033, -1512, 8192, 11486],
        [8192, 4433, -8192, -10704, 0, 10704, 8192, -4433],
        [8192, 1513, -11190, -4433, 10033, 7053, -8192, -9191],
    ],
    larger: 0,
    saturates: false,
};
const FOURTEEN: Pass<7> = Pass {
    factors: [
        [8192, 11513, 11295, 10935, 10438, 9810, 9058, 8192],
        [8192, 10935, 9058, 6164, 2578, -1297, -5026, -8192],
        [8192, 9810, 5027, -1297, -7223, -10934, -11295, -8192],
        [8192, 8192, 0, -8192, -11586, -8192, 0, 8192],
        [8192, 6164, -5027, -11512, -7223, 3826, 11295, 8192],
        [8192, 3826, -9058, -9809, 2578, 11512, 5026, -8192],
        [8192, 1297, -11295, -3826, 10438, 6164, -9058, -8192],
    ],
    larger: 0,
    saturates: false,
};

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
pub type Transform = fn(&Group, &[i32; 64], &mut [u8], usize) -> Option<()>;

/// The transform to blocks of this size.
pub fn transform(size: usize) -> Option<Transform> {
    Some(match size {
        2 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<2, 1>(&TWO, group, quantizer, pixels, pitch))
        },
        3 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<3, 2>(&THREE, group, quantizer, pixels, pitch))
        },
        4 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<4, 2>(&FOUR, group, quantizer, pixels, pitch))
        },
        5 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<5, 3>(&FIVE, group, quantizer, pixels, pitch))
        },
        6 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<6, 3>(&SIX, group, quantizer, pixels, pitch))
        },
        7 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<7, 4>(&SEVEN, group, quantizer, pixels, pitch))
        },
        8 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<8, 4>(&EIGHT, group, quantizer, pixels, pitch))
        },
        10 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<10, 5>(&TEN, group, quantizer, pixels, pitch))
        },
        12 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<12, 6>(&TWELVE, group, quantizer, pixels, pitch))
        },
        14 => |group, quantizer, pixels, pitch| {
            vectorized!(run::<14, 7>(&FOURTEEN, group, quantizer, pixels, pitch))
        },
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

#[inline(always)]
fn run<const SIZE: usize, const HALF: usize>(
    pass: &Pass<HALF>,
    group: &Group,
    quantizer: &[i32; 64],
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    let mut between = [[[0; LANES]; 8]; SIZE];
    let seen = *FIRST.get(group.end)?;
    let beyond = match seen >> (8 * LOW) {
        0 => down::<SIZE, HALF, LOW>(pass, group, seen, quantizer, &mut between),
        _ => down::<SIZE, HALF, 8>(pass, group, seen, quantizer, &mut between),
    };
    if beyond & !(2 * MOST - 1) != 0 {
        return None;
    }
    match seen & 0xf0f0_f0f0_f0f0_f0f0 {
        0 => across::<SIZE, HALF, LOW>(pass, group, &between, pixels, pitch),
        _ => across::<SIZE, HALF, 8>(pass, group, &between, pixels, pitch),
    }
}

/// The first pass, over columns. The bits of its result tell if any number was beyond the limit.
#[inline(always)]
fn down<const SIZE: usize, const HALF: usize, const USED: usize>(
    pass: &Pass<HALF>,
    group: &Group,
    seen: u64,
    quantizer: &[i32; 64],
    between: &mut [[[i32; LANES]; 8]; SIZE],
) -> i32 {
    let mut beyond = [0; LANES];
    let shift = POINT - KEPT + pass.larger;
    for column in 0..8 {
        let is_empty = (seen >> column) & 0x0101_0101_0101_0101 == 0;
        if pass.factors[0][column] == 0 || is_empty {
            continue;
        }
        for lane in 0..LANES {
            let mut given = [0; USED];
            for row in 0..USED {
                if pass.factors[0][row] != 0 {
                    let at = 8 * row + column;
                    let stored = group.coefficients[NUMBERS[at]][lane];
                    given[row] = i32::from(stored) * quantizer[at];
                    beyond[lane] |= given[row].wrapping_add(MOST);
                }
            }
            let made: [i32; SIZE] = waves(pass, given, shift);
            for row in 0..SIZE {
                between[row][column][lane] = made[row];
                if pass.saturates {
                    beyond[lane] |= made[row].wrapping_add(MOST);
                }
            }
        }
    }
    beyond.iter().fold(0, |all, lane| all | lane)
}

/// The second pass, over rows.
#[inline(always)]
fn across<const SIZE: usize, const HALF: usize, const USED: usize>(
    pass: &Pass<HALF>,
    group: &Group,
    between: &[[[i32; LANES]; 8]; SIZE],
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    let shift = POINT + KEPT + 3 + pass.larger;
    for row in 0..SIZE {
        // Four pixels of a block together.
        let mut line = [[0_u32; LANES]; 4];
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
        for (lane, &place) in group.places.iter().enumerate().take(group.filled) {
            let pixels = pixels.get_mut(place + row * pitch..)?.first_chunk_mut::<SIZE>()?;
            for first in (0..SIZE).step_by(4) {
                let count = (SIZE - first).min(4);
                let four = line[first / 4][lane].to_le_bytes();
                pixels[first..first + count].copy_from_slice(&four[..count]);
            }
        }
    }
    Some(())
}

/// One pass over the coefficients in use, rounded by so many bits.
#[inline(always)]
fn waves<const SIZE: usize, const HALF: usize, const USED: usize>(
    pass: &Pass<HALF>,
    given: [i32; USED],
    shift: u32,
) -> [i32; SIZE] {
    let mut made = [0; SIZE];
    for index in 0..HALF {
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

    /// On the baseline, and on the best instruction set.
    fn on_both<const SIZE: usize, const HALF: usize>(pass: &Pass<HALF>) {
        let pitch = 16 * LANES;
        for largest in [1, 50, 900] {
            let group = group(largest);
            let mut made = [vec![0; 16 * pitch], vec![0; 16 * pitch]];
            let scalar = run::<SIZE, HALF>(pass, &group, &[3; 64], &mut made[0], pitch);
            let best = transform(SIZE).unwrap()(&group, &[3; 64], &mut made[1], pitch);
            assert_eq!(scalar, best, "{SIZE} pixels, up to {largest}");
            assert!(made[0] == made[1], "{SIZE} pixels, up to {largest}");
        }
    }

    #[test]
    fn every_isa_agrees_with_scalar() {
        on_both::<2, 1>(&TWO);
        on_both::<3, 2>(&THREE);
        on_both::<4, 2>(&FOUR);
        on_both::<5, 3>(&FIVE);
        on_both::<6, 3>(&SIX);
        on_both::<7, 4>(&SEVEN);
        on_both::<8, 4>(&EIGHT);
        on_both::<10, 5>(&TEN);
        on_both::<12, 6>(&TWELVE);
        on_both::<14, 7>(&FOURTEEN);
    }

    #[test]
    fn flat_blocks_stay_flat() {
        for size in [2, 3, 4, 5, 6, 7, 8, 10, 12, 14] {
            let mut group = group(0);
            (group.coefficients[0], group.end) = ([80; LANES], 1);
            let mut made = vec![0; 16 * 16 * LANES];
            transform(size).unwrap()(&group, &[4; 64], &mut made, 16 * LANES).unwrap();
            for (at, &pixel) in made.iter().enumerate() {
                let inside = at % 16 < size && at / (16 * LANES) < size;
                assert_eq!(pixel, if inside { 128 + 40 } else { 0 }, "{size} pixels, at {at}");
            }
        }
    }

    #[test]
    fn numbers_that_may_not_fit_are_left_to_libjpeg() {
        let mut group = group(0);
        group.coefficients[0][3] = 1 << 12;
        for (quantizer, expected) in [(3, Some(())), (4, None)] {
            let mut made = vec![0; 16 * 16 * LANES];
            let outcome = transform(5).unwrap()(&group, &[quantizer; 64], &mut made, 16 * LANES);
            assert_eq!(outcome, expected);
        }
    }
}
