//! Elementary functions made of basic arithmetic only, so that results are bit-identical on every
//! machine; system libraries differ in the last bit. Accurate to about 1e-15.

use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E, SQRT_2};

// Loops over these vectorize: they have no branches and no conversions that vector instructions
// lack, and they are inlined, so they are compiled for the instruction set of the caller.

/// Adding this to a number that is not too large rounds it; the lowest bits hold the integer.
const ROUNDING: f64 = (3_u64 << 51) as f64;

/// The same as `f64::from`.
#[inline(always)]
pub fn of_word(word: u32) -> f64 {
    /// The bits of 2^52, at which the last bit of the mantissa counts ones.
    const ONES: u64 = 0x4330_0000_0000_0000;
    f64::from_bits(ONES | u64::from(word)) - f64::from_bits(ONES)
}

/// The natural logarithm of a positive number; -inf for zero and below.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    // 2^54 scales subnormal numbers into the normal range.
    const LIFT: f64 = (1_u64 << 54) as f64;
    let small = x < f64::MIN_POSITIVE;
    let made = ln_of_normal(if small { x * LIFT } else { x });
    let made = made - if small { 54.0 * LN_2 } else { 0.0 };
    if x > 0.0 { made } else { f64::NEG_INFINITY }
}

/// The natural logarithm of a positive normal number.
#[inline(always)]
pub fn ln_of_normal(x: f64) -> f64 {
    let bits = x.to_bits();
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    // Reduces the mantissa to between sqrt(1/2) and sqrt(2), where the series is short.
    let large = mantissa > SQRT_2;
    let mantissa = if large { 0.5 * mantissa } else { mantissa };
    let exponent = of_word((bits >> 52) as u32) - if large { 1022.0 } else { 1023.0 };
    // ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...), as two sums of every other term that the
    // processor can compute in parallel.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let fourth = square * square;
    let (mut even, mut odd) = (1.0 / 21.0, 1.0 / 23.0);
    for n in [17.0, 13.0, 9.0, 5.0, 1.0] {
        even = even * fourth + 1.0 / n;
        odd = odd * fourth + 1.0 / (n + 2.0);
    }
    exponent * LN_2 + 2.0 * s * (even + square * odd)
}

const INVERSE_FACTORIALS: [f64; 14] = {
    let (mut all, mut factorial, mut n) = ([1.0; 14], 1.0, 1);
    while n < all.len() {
        factorial *= n as f64;
        all[n] = 1.0 / factorial;
        n += 1;
    }
    all
};

/// e to the power of `x`; zero below -708, infinite above 709.7.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    /// ln 2 in two parts; the first ends in zero bits, so its multiples are exact.
    const LN_2_HIGH: f64 = f64::from_bits(LN_2.to_bits() & !0xffff_ffff);
    const LN_2_LOW: f64 = 4.749_325_039_031_672_6e-7;
    let inside = if x > -708.0 { x } else { -708.0 };
    let inside = if inside < 709.7 { inside } else { 709.7 };
    let shifted = inside * LOG2_E + ROUNDING;
    let power = shifted - ROUNDING;
    let rest = (inside - power * LN_2_HIGH) - power * LN_2_LOW;
    let square = rest * rest;
    let (mut even, mut odd) = (INVERSE_FACTORIALS[12], INVERSE_FACTORIALS[13]);
    for n in [10, 8, 6, 4, 2, 0] {
        even = even * square + INVERSE_FACTORIALS[n];
        odd = odd * square + INVERSE_FACTORIALS[n + 1];
    }
    let sum = even + rest * odd;
    let made = sum * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let made = if x > 709.7 { f64::INFINITY } else { made };
    if x < -708.0 { 0.0 } else { made }
}

/// Sine and cosine of a fraction of a full turn, `0 <= turn < 1`.
#[inline(always)]
pub fn sin_cos_of_turn(turn: f64) -> (f64, f64) {
    // The nearest quarter, and the remaining angle: at most an eighth of a turn.
    let shifted = 4.0 * turn + ROUNDING;
    let quarters = shifted.to_bits();
    let angle = (4.0 * turn - (shifted - ROUNDING)) * FRAC_PI_2;
    let square = angle * angle;
    let mut sine = 1.0;
    for n in [14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0] {
        sine = 1.0 - sine * square * (1.0 / (n * (n + 1.0)));
    }
    let sine = sine * angle;
    let mut cosine = 1.0;
    for n in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        cosine = 1.0 - cosine * square * (1.0 / (n * (n + 1.0)));
    }
    let swapped = quarters & 1 == 1;
    let (a, b) = if swapped { (cosine, sine) } else { (sine, cosine) };
    // Bit 1 of the quarter is the sign of the sine; bit 1 of the next quarter, that of the cosine.
    let sign = |quarters: u64| (quarters & 2) << 62;
    let flipped = |x: f64, sign: u64| f64::from_bits(x.to_bits() ^ sign);
    (flipped(a, sign(quarters)), flipped(b, sign(quarters.wrapping_add(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, exact: f64) -> bool {
        ours == exact || (ours - exact).abs() <= 2e-15 * exact.abs().max(1e-3)
    }

    #[test]
    fn logarithms_agree_with_the_standard_library() {
        for power in -1074..1024 {
            for part in [1.0, 1.1, SQRT_2 - 1e-9, SQRT_2, SQRT_2 + 1e-9, 1.999_999_9] {
                let x = part * 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2);
                assert!(close(ln(x), x.ln()), "{x:e}: {:e}, {:e}", ln(x), x.ln());
                assert!(x < f64::MIN_POSITIVE || ln_of_normal(x) == ln(x));
            }
        }
        assert_eq!(ln(1.0), 0.0);
        assert_eq!((ln(0.0), ln(-1.0)), (f64::NEG_INFINITY, f64::NEG_INFINITY));
        // Near one the logarithm is small, and its relative error must be small as well.
        let x = 1.0 + 3.0 * f64::EPSILON;
        assert!((ln_of_normal(x) / (x - 1.0) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn words_are_converted_exactly() {
        for word in [0, 1, 2, 1 << 31, u32::MAX - 1, u32::MAX] {
            assert_eq!(of_word(word), f64::from(word));
        }
    }

    #[test]
    fn powers_agree_with_the_standard_library() {
        for step in -70_000..70_000 {
            let x = f64::from(step) * 0.010_1;
            let (ours, exact) = (exp(x), x.exp());
            assert!((ours - exact).abs() <= 2e-15 * exact, "{x}: {ours:e}, {exact:e}");
        }
        assert_eq!((exp(0.0), exp(-1e30), exp(1e30)), (1.0, 0.0, f64::INFINITY));
    }

    #[test]
    fn turns_agree_with_the_standard_library() {
        for step in 0..100_000 {
            let turn = f64::from(step) / 100_000.0;
            let (sine, cosine) = sin_cos_of_turn(turn);
            let exact = (turn * std::f64::consts::TAU).sin_cos();
            assert!((sine - exact.0).abs() < 2e-15 && (cosine - exact.1).abs() < 2e-15, "{turn}");
        }
        assert_eq!(sin_cos_of_turn(0.25), (1.0, 0.0));
    }
}
