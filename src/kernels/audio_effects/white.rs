//! White noise in single precision: normal numbers that are good enough to hear, and several times
//! faster than those of `random`.

use std::f32::consts::{FRAC_PI_2, LN_2, SQRT_2};

use crate::kernels::numeric::isa::vectorized;
use crate::kernels::numeric::philox::{GROUP, LANES, Stream};

/// Numbers that come from one group of random words.
pub const AT_ONCE: usize = GROUP;

/// Standard normal numbers, from the group with this index on.
pub fn fill(rng: &Stream, group: usize, out: &mut [f32]) {
    vectorized!({
        for (index, out) in out.chunks_mut(AT_ONCE).enumerate() {
            let words = rng.group((group + index) as u64, LANES);
            let mut made = [0.0; AT_ONCE];
            for half in 0..2 {
                for lane in 0..LANES {
                    let at = 2 * half * LANES + lane;
                    let (first, second) = two_normals(words[at], words[at + LANES]);
                    (made[at], made[at + LANES]) = (first, second);
                }
            }
            out.copy_from_slice(&made[..out.len()]);
        }
    });
}

/// A fraction of 24 bits, all of which a float holds.
#[inline(always)]
fn fraction(word: u32) -> f32 {
    (word >> 8) as i32 as f32 * (1.0 / (1 << 24) as f32)
}

/// The Box-Muller transform.
#[inline(always)]
fn two_normals(a: u32, b: u32) -> (f32, f32) {
    // Drawn from (0, 1], so that the logarithm is finite.
    let radius = (-2.0 * ln(1.0 - fraction(a))).max(0.0).sqrt();
    let (sine, cosine) = sin_cos_of_turn(fraction(b));
    (radius * cosine, radius * sine)
}

/// The natural logarithm of a positive normal number.
#[inline(always)]
fn ln(x: f32) -> f32 {
    let bits = x.to_bits();
    let mantissa = f32::from_bits(bits & 0x007f_ffff | 0x3f80_0000);
    let large = mantissa > SQRT_2;
    let mantissa = if large { 0.5 * mantissa } else { mantissa };
    let exponent = (bits >> 23) as i32 as f32 - if large { 126.0 } else { 127.0 };
    // ln m = 2 artanh s.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = 1.0 + square * (1.0 / 3.0 + square * (1.0 / 5.0 + square * (1.0 / 7.0)));
    exponent * LN_2 + 2.0 * s * series
}

/// Sine and cosine of a fraction of a full turn, `0 <= turn < 1`.
#[inline(always)]
fn sin_cos_of_turn(turn: f32) -> (f32, f32) {
    /// Adding this rounds; the lowest bits hold the integer.
    const ROUNDING: f32 = (3 << 22) as f32;
    let shifted = 4.0 * turn + ROUNDING;
    let quarters = shifted.to_bits();
    let angle = (4.0 * turn - (shifted - ROUNDING)) * FRAC_PI_2;
    let square = angle * angle;
    let mut sine = 1.0;
    for n in [8.0, 6.0, 4.0, 2.0] {
        sine = 1.0 - sine * square * (1.0 / (n * (n + 1.0)));
    }
    let sine = sine * angle;
    let mut cosine = 1.0;
    for n in [9.0, 7.0, 5.0, 3.0, 1.0] {
        cosine = 1.0 - cosine * square * (1.0 / (n * (n + 1.0)));
    }
    let swapped = quarters & 1 == 1;
    let (a, b) = if swapped { (cosine, sine) } else { (sine, cosine) };
    let flipped = |x: f32, quarters: u32| f32::from_bits(x.to_bits() ^ (quarters & 2) << 30);
    (flipped(a, quarters), flipped(b, quarters.wrapping_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::numeric::philox::Position;

    #[test]
    fn functions_agree_with_the_standard_library() {
        for step in 0..1 << 16 {
            let x = fraction(step << 16);
            let exact = (f64::from(x) * std::f64::consts::TAU).sin_cos();
            let (sine, cosine) = sin_cos_of_turn(x);
            assert!((f64::from(sine) - exact.0).abs() < 5e-7, "{x}");
            assert!((f64::from(cosine) - exact.1).abs() < 5e-7, "{x}");
            let x = 1.0 - x;
            assert!((ln(x) - x.ln()).abs() <= 5e-7 * x.ln().abs().max(1.0), "{x}");
        }
    }

    #[test]
    fn moments_are_those_of_normal_numbers() {
        let stream = Position { seed: 3, sequence: 0, offset: 0, phase: 0 }.stream(0);
        let mut made = vec![0.0; 200_000];
        fill(&stream, 0, &mut made);
        let mean = |power: i32| {
            made.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / made.len() as f64
        };
        // Five standard errors.
        for (power, expected, variance) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
        {
            let error = 5.0 * f64::sqrt(variance / made.len() as f64);
            assert!((mean(power) - expected).abs() < error, "{power}: {}", mean(power));
        }
        let neighbours: f64 = made.windows(2).map(|pair| f64::from(pair[0] * pair[1])).sum();
        assert!(neighbours.abs() / made.len() as f64 * (made.len() as f64).sqrt() < 5.0);
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let stream = Position { seed: 1, sequence: 0, offset: 0, phase: 0 }.stream(7);
        let (mut whole, mut part) = ([0.0; 100], [0.0; 30]);
        fill(&stream, 0, &mut whole);
        fill(&stream, 2, &mut part);
        assert_eq!(part, whole[2 * AT_ONCE..][..30]);
    }
}
