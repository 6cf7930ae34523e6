//! The transforms on vectors: factors have 16 bits, so that two products are added at once.
//!
//! Vectors are not passed through the functions of iterators and arrays, which are compiled for the
//! baseline: where the compiler doesn't inline them, each call goes through memory.

#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::factors::{HALF, pass};
use super::{Group, KEPT, LANES, LOW, MOST, NUMBERS, POINT, is_empty, write_row};

/// Waves that are multiplied together: two even ones and two odd ones of the lower half, then those
/// of the higher half.
const fn pairs(size: usize) -> [[usize; 2]; 4] {
    // To blocks of two pixels, the first factor is too large and has two halves; the one of the
    // third wave is 0.
    [[0, if size == 2 { 0 } else { 2 }], [1, 3], [4, 6], [5, 7]]
}

/// What the pairs of waves are multiplied with, by pixel: two factors of 16 bits each.
const fn factors(size: usize) -> [[i32; 4]; HALF] {
    let (rows, pairs) = (pass(size).factors, pairs(size));
    let mut all = [[0; 4]; HALF];
    let mut at = 0;
    while at < 4 * HALF {
        let (row, [first, second]) = (rows[at / 4], pairs[at % 4]);
        let parts = if first == second { 2 } else { 1 };
        all[at / 4][at % 4] = ((row[first] / parts) & 0xffff) | ((row[second] / parts) << 16);
        at += 1;
    }
    all
}

/// Two numbers of 16 bits for each lane.
type Pairs = [__m256i; 4];

#[target_feature(enable = "avx2")]
pub fn run<const SIZE: usize>(
    group: &Group,
    seen: u64,
    quantizer: &[i16; 64],
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    let mut between = [[_mm256_setzero_si256(); 4]; SIZE];
    let inside = match seen >> (8 * LOW) {
        0 => down::<SIZE, LOW>(group, seen, quantizer, &mut between),
        _ => down::<SIZE, 8>(group, seen, quantizer, &mut between),
    };
    if !inside {
        return None;
    }
    match seen & 0xf0f0_f0f0_f0f0_f0f0 {
        0 => across::<SIZE, LOW>(group, &between, pixels, pitch),
        _ => across::<SIZE, 8>(group, &between, pixels, pitch),
    }
}

/// The first pass, over columns. Returns whether all numbers were inside the limit.
#[inline]
#[target_feature(enable = "avx2")]
fn down<const SIZE: usize, const USED: usize>(
    group: &Group,
    seen: u64,
    quantizer: &[i16; 64],
    between: &mut [Pairs; SIZE],
) -> bool {
    let pass = const { &pass(SIZE) };
    // Bits beyond those of numbers inside the limit.
    let (mut beyond, mut carried) = (_mm_setzero_si128(), _mm_setzero_si128());
    let mut wide = _mm256_setzero_si256();
    for pair in 0..4 {
        for half in 0..2 {
            let column = const { pairs(SIZE) }[pair][half];
            if pass.factors[0][column] == 0 || is_empty(seen, column) {
                continue;
            }
            let mut given = [_mm_setzero_si128(); USED];
            for row in 0..USED {
                if pass.factors[0][row] != 0 {
                    let at = 8 * row + column;
                    let stored = load(&group.coefficients[NUMBERS[at]]);
                    let step = _mm_set1_epi16(quantizer[at]);
                    let low = _mm_mullo_epi16(stored, step);
                    let high = _mm_mulhi_epi16(stored, step);
                    beyond = _mm_or_si128(beyond, _mm_add_epi16(low, _mm_set1_epi16(MOST as i16)));
                    let carry = _mm_xor_si128(high, _mm_srai_epi16::<15>(low));
                    carried = _mm_or_si128(carried, carry);
                    given[row] = low;
                }
            }
            let mut joined = [_mm256_setzero_si256(); 4];
            for pair in 0..4 {
                let [first, second] = const { pairs(SIZE) }[pair];
                if second < USED {
                    let low = _mm_unpacklo_epi16(given[first], given[second]);
                    let high = _mm_unpackhi_epi16(given[first], given[second]);
                    joined[pair] = _mm256_set_m128i(high, low);
                }
            }
            let shift = POINT - KEPT + pass.larger;
            let made = waves::<SIZE, USED>(&joined, shift);
            for row in 0..SIZE {
                let (made, to) = (made[row], &mut between[row][pair]);
                wide = _mm256_or_si256(wide, _mm256_add_epi32(made, _mm256_set1_epi32(MOST)));
                *to = match half {
                    0 => _mm256_and_si256(made, _mm256_set1_epi32(0xffff)),
                    _ => _mm256_blend_epi16::<0xaa>(*to, _mm256_slli_epi32::<16>(made)),
                };
            }
        }
    }
    let beyond = _mm_or_si128(_mm_srai_epi16::<15>(beyond), carried);
    let wide_beyond = _mm256_and_si256(wide, _mm256_set1_epi32(!(2 * MOST - 1)));
    _mm_testz_si128(beyond, beyond) == 1 && _mm256_testz_si256(wide_beyond, wide_beyond) == 1
}

/// The second pass, over rows.
#[inline]
#[target_feature(enable = "avx2")]
fn across<const SIZE: usize, const USED: usize>(
    group: &Group,
    between: &[Pairs; SIZE],
    pixels: &mut [u8],
    pitch: usize,
) -> Option<()> {
    let pass = const { &pass(SIZE) };
    // The bytes of four lanes from four columns.
    let transpose = _mm256_setr_epi8(
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10,
        14, 3, 7, 11, 15,
    );
    for row in 0..SIZE {
        let made = waves::<SIZE, USED>(&between[row], POINT + KEPT + 3 + pass.larger);
        let mut line = [[0; LANES]; 4];
        for four in 0..SIZE.div_ceil(4) {
            let mut halves = [_mm256_setzero_si256(); 2];
            for half in 0..2 {
                let first = 4 * four + 2 * half;
                if first < SIZE {
                    // A column that is missing isn't written.
                    let both = _mm256_packs_epi32(made[first], made[(first + 1).min(SIZE - 1)]);
                    let both = match pass.saturates {
                        true => both,
                        false => _mm256_srai_epi16::<6>(_mm256_slli_epi16::<6>(both)),
                    };
                    halves[half] = _mm256_add_epi16(both, _mm256_set1_epi16(128));
                }
            }
            let bytes = _mm256_packus_epi16(halves[0], halves[1]);
            store(_mm256_shuffle_epi8(bytes, transpose), &mut line[four]);
        }
        write_row::<SIZE>(group, &line, row, pixels, pitch)?;
    }
    Some(())
}

/// One pass over the coefficients in use, rounded by so many bits.
#[inline]
#[target_feature(enable = "avx2")]
fn waves<const SIZE: usize, const USED: usize>(given: &Pairs, shift: u32) -> [__m256i; SIZE] {
    let count = _mm_cvtsi32_si128(shift as i32);
    let mut made = [_mm256_setzero_si256(); SIZE];
    for index in 0..SIZE.div_ceil(2) {
        let factors = const { &factors(SIZE) }[index];
        let product =
            |pair: usize| _mm256_madd_epi16(given[pair], _mm256_set1_epi32(factors[pair]));
        let mut even = _mm256_add_epi32(product(0), _mm256_set1_epi32(1 << (shift - 1)));
        let mut odd = product(1);
        if USED > LOW {
            even = _mm256_add_epi32(even, product(2));
            odd = _mm256_add_epi32(odd, product(3));
        }
        made[SIZE - 1 - index] = _mm256_sra_epi32(_mm256_sub_epi32(even, odd), count);
        made[index] = _mm256_sra_epi32(_mm256_add_epi32(even, odd), count);
    }
    made
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[i16; LANES]) -> __m128i {
    // SAFETY: it has 16 bytes.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(from: __m256i, to: &mut [u32; LANES]) {
    // SAFETY: it has 32 bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), from) }
}
