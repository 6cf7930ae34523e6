//! Single-precision functions without branches or calls, so that loops over them vectorise. The
//! polynomials are those of the Cephes library; results are accurate to a few units in the last
//! place.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

/// 1.5 * 2^23: adding it rounds to an integer, which is then in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// 1.5 * 2^52, for doubles.
const WIDE_ROUND: f64 = 6_755_399_441_055_744.0;

/// The polynomial with these coefficients, highest power first. A macro, so that no loop remains in
/// the vector code.
macro_rules! poly {
    ($x:expr, [$first:expr $(, $next:expr)* $(,)?]) => {{
        let sum = $first;
        $(let sum = sum * $x + $next;)*
        sum
    }};
}

/// `2^exponent`, for exponents of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent.wrapping_add(127) as u32) << 23)
}

/// `e^x * 2^shift`.
#[inline(always)]
fn scaled_exp(x: f32, shift: i32) -> f32 {
    // Beyond these, the result is infinity or zero anyway; NaN stays NaN.
    let x = if x > 89.5 { 89.5 } else { x };
    let x = if x < -104.5 { -104.5 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    // ln 2 in two parts, so that the difference is exact.
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let tail = poly!(
        r,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1]
    );
    let y = tail * r * r + r + 1.0;
    // In two steps, since the power of two itself may not be a normal number.
    let exponent = exponent.wrapping_add(shift);
    let half = exponent >> 1;
    y * power_of_two(half) * power_of_two(exponent.wrapping_sub(half))
}

#[inline(always)]
pub fn exp(x: f32) -> f32 {
    scaled_exp(x, 0)
}

#[inline(always)]
pub fn cosh(x: f32) -> f32 {
    let half = scaled_exp(x.abs(), -1);
    half + 0.25 / half
}

#[inline(always)]
pub fn sinh(x: f32) -> f32 {
    let half = scaled_exp(x.abs(), -1);
    let far = (half - 0.25 / half).copysign(x);
    let z = x * x;
    let near = poly!(z, [2.037_219_1e-4, 8.330_284e-3, 1.666_671_6e-1]) * z * x + x;
    if x.abs() > 1.0 { far } else { near }
}

#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let far = (1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0)).copysign(x);
    let z = x * x;
    let near =
        poly!(z, [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328e-1])
            * z
            * x
            + x;
    if x.abs() > 0.625 { far } else { near }
}

/// The exponent of a positive number, and the logarithm of its mantissa.
#[inline(always)]
fn split_log(x: f32) -> (f32, f32) {
    let small = x < f32::MIN_POSITIVE;
    let (x, lost) = if small { (x * 8_388_608.0, 23.0) } else { (x, 0.0) };
    let bits = x.to_bits();
    let exponent = (bits >> 23) as i32 - 126;
    let m = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    let low = m < std::f32::consts::FRAC_1_SQRT_2;
    let m = if low { m + m - 1.0 } else { m - 1.0 };
    let e = exponent as f32 - if low { 1.0 } else { 0.0 } - lost;
    let z = m * m;
    (
        e,
        m + (poly!(
            m,
            [
                7.037_683_6e-2,
                -1.151_461e-1,
                1.167_699_9e-1,
                -1.242_014_1e-1,
                1.424_932_3e-1,
                -1.666_805_8e-1,
                2.000_071_5e-1,
                -2.499_999_4e-1,
                3.333_333e-1
            ]
        ) * m
            * z
            - 0.5 * z),
    )
}

/// Handles the special cases of a logarithm.
#[inline(always)]
fn log_of(x: f32, y: f32) -> f32 {
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (e, y) = split_log(x);
    log_of(x, e * -2.121_944_4e-4 + y + e * 0.693_359_4)
}

#[inline(always)]
pub fn log2(x: f32) -> f32 {
    let (e, y) = split_log(x);
    log_of(x, e + y * std::f32::consts::LOG2_E)
}

#[inline(always)]
pub fn log10(x: f32) -> f32 {
    let (e, y) = split_log(x);
    let sum = f64::from(e) * std::f64::consts::LOG10_2 + f64::from(y) * std::f64::consts::LOG10_E;
    log_of(x, sum as f32)
}

#[inline(always)]
pub fn asinh(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    // For large numbers, the one under the root is negligible.
    let (sum, more) = if a > 1500.0 { (a, LN_2) } else { (a + (z + 1.0).sqrt(), 0.0) };
    let far = log(sum) + more;
    let near = poly!(z, [2.012_200_3e-2, -4.269_934e-2, 7.484_759e-2, -1.666_628_8e-1]) * z * x + x;
    if a > 0.5 { far.copysign(x) } else { near }
}

#[inline(always)]
pub fn acosh(x: f32) -> f32 {
    let z = x - 1.0;
    let (sum, more) = if x > 1500.0 { (x, LN_2) } else { (x + (z * (x + 1.0)).sqrt(), 0.0) };
    let far = log(sum) + more;
    let near = poly!(
        z,
        [
            1.759_688_1e-3,
            -7.527_288_7e-3,
            2.645_490_5e-2,
            -1.178_474_2e-1,
            std::f32::consts::SQRT_2
        ]
    ) * z.sqrt();
    if z > 0.5 { far } else { near }
}

#[inline(always)]
pub fn atanh(x: f32) -> f32 {
    let z = x * x;
    let far = 0.5 * log((1.0 + x) / (1.0 - x));
    let near =
        poly!(z, [1.817_400_8e-1, 8.243_703e-2, 1.466_914_3e-1, 1.997_821_6e-1, 3.333_373e-1])
            * z
            * x
            + x;
    if x.abs() > 0.5 { far } else { near }
}

/// Up to this angle, reduction to a quarter turn is exact enough.
pub const LARGEST_ANGLE: f32 = 1e8;

/// Sine and cosine of the reduced angle, and the number of quarter turns that were subtracted.
#[inline(always)]
fn quarter(x: f32) -> (f32, f32, u32) {
    let x = f64::from(x);
    let shifted = x * std::f64::consts::FRAC_2_PI + WIDE_ROUND;
    let n = shifted - WIDE_ROUND;
    // Half pi in two parts, so that the product with the first one is exact.
    let r = (x - n * 1.570_796_310_901_641_8 - n * 1.589_325_477_352_819_7e-8) as f32;
    let z = r * r;
    let sin = poly!(z, [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1]) * z * r + r;
    let cos = poly!(z, [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]) * z * z - 0.5 * z + 1.0;
    (sin, cos, shifted.to_bits() as u32)
}

#[inline(always)]
fn negate_if(condition: bool, x: f32) -> f32 {
    f32::from_bits(x.to_bits() ^ (u32::from(condition) << 31))
}

#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (sin, cos, quarters) = quarter(x);
    negate_if(quarters & 2 != 0, if quarters & 1 == 0 { sin } else { cos })
}

#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (sin, cos, quarters) = quarter(x);
    let quarters = quarters.wrapping_add(1);
    negate_if(quarters & 2 != 0, if quarters & 1 == 0 { sin } else { cos })
}

#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (sin, cos, quarters) = quarter(x);
    if quarters & 1 == 0 { sin / cos } else { -cos / sin }
}

/// The arc tangent of a non-negative number.
#[inline(always)]
fn positive_atan(x: f32) -> f32 {
    let (above, far) = (x > 0.414_213_57, x > 2.414_213_7);
    let (numerator, denominator) = if far {
        (-1.0, x)
    } else if above {
        (x - 1.0, x + 1.0)
    } else {
        (x, 1.0)
    };
    let base = if far {
        FRAC_PI_2
    } else if above {
        FRAC_PI_4
    } else {
        0.0
    };
    let t = numerator / denominator;
    let z = t * t;
    base + (poly!(z, [8.053_744_5e-2, -1.387_768_6e-1, 1.997_771_1e-1, -3.333_295e-1]) * z * t + t)
}

#[inline(always)]
pub fn atan(x: f32) -> f32 {
    positive_atan(x.abs()).copysign(x)
}

#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (a, b) = (y.abs(), x.abs());
    // The angle is defined even where the quotient is not.
    let quotient = if a == b { 1.0 } else { a / b };
    let quotient = if a == 0.0 { 0.0 } else { quotient };
    let acute = positive_atan(quotient);
    let angle = if x.is_sign_negative() { PI - acute } else { acute };
    let angle = if x.is_nan() { x } else { angle };
    angle.copysign(y)
}

/// The arc sine of `a` for `a` from 0 to 1/2; for larger ones, half of the arc cosine.
#[inline(always)]
fn half_asin(a: f32) -> f32 {
    let z = 0.5 * (1.0 - a);
    let (z, s) = if a > 0.5 { (z, z.sqrt()) } else { (a * a, a) };
    poly!(z, [4.216_32e-2, 2.418_131e-2, 4.547_002_6e-2, 7.495_300_3e-2, 1.666_675_2e-1]) * z * s
        + s
}

#[inline(always)]
pub fn asin(x: f32) -> f32 {
    let a = x.abs();
    let half = half_asin(a);
    (if a > 0.5 { FRAC_PI_2 - 2.0 * half } else { half }).copysign(x)
}

#[inline(always)]
pub fn acos(x: f32) -> f32 {
    let half = half_asin(x.abs());
    if x > 0.5 {
        2.0 * half
    } else if x < -0.5 {
        PI - 2.0 * half
    } else {
        FRAC_PI_2 - half.copysign(x)
    }
}

#[inline(always)]
pub fn cbrt(x: f32) -> f32 {
    let a = x.abs();
    let small = a < f32::MIN_POSITIVE;
    let (scaled, factor) = if small { (a * 16_777_216.0, 1.0 / 256.0) } else { (a, 1.0) };
    // Divides the exponent by three; the constant minimises the average error of the guess.
    let guess = f32::from_bits(scaled.to_bits() / 3 + 709_958_130);
    let (wide, mut t) = (f64::from(scaled), f64::from(guess));
    for _ in 0..2 {
        let cube = t * t * t;
        t *= (wide + wide + cube) / (wide + cube + cube);
    }
    let root = t as f32 * factor;
    let root = if a == 0.0 || !a.is_finite() { a } else { root };
    root.copysign(x)
}

/// `x^y` for positive normal `x` and finite `y`, or zero for positive powers of zero; otherwise
/// NaN. In double precision, because the exponent multiplies the error of the logarithm.
#[inline(always)]
pub fn positive_power(x: f32, y: f32) -> f32 {
    let bits = x.to_bits();
    // Splits off a power of two, leaving a factor from 1/sqrt(2) to sqrt(2).
    let above = (bits & 0x007f_ffff) > 0x0035_04f3;
    let exponent = (bits >> 23) as i32 - 127 + i32::from(above);
    let m = f64::from(f32::from_bits(
        (bits & 0x007f_ffff) | if above { 0x3f00_0000 } else { 0x3f80_0000 },
    ));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let log = 2.0
        * s
        * poly!(z, [1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0]);
    let power = f64::from(y) * (f64::from(exponent) + log * std::f64::consts::LOG2_E);
    // Beyond these, the result is infinity or zero anyway.
    let power = if power > 200.0 { 200.0 } else { power };
    let power = if power < -200.0 { -200.0 } else { power };
    let shifted = power + WIDE_ROUND;
    let r = (power - (shifted - WIDE_ROUND)) * std::f64::consts::LN_2;
    let part = poly!(
        r,
        [
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0
        ]
    );
    let scale = (shifted.to_bits().wrapping_sub(WIDE_ROUND.to_bits())).wrapping_add(1023) << 52;
    let result = (part * f64::from_bits(scale)) as f32;
    let known = (f32::MIN_POSITIVE..f32::INFINITY).contains(&x) && y.abs() < f32::INFINITY;
    let result = if known { result } else { f32::NAN };
    if bits == 0 && y > 0.0 { 0.0 } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all magnitudes and both signs, including special ones.
    fn numbers() -> impl Iterator<Item = f32> {
        let special = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45];
        (0..u32::MAX).step_by(65_521).map(f32::from_bits).chain(special)
    }

    /// Compares with the standard library in double precision, with a relative error of `ulps`.
    fn check(name: &str, ours: fn(f32) -> f32, exact: fn(f64) -> f64, ulps: f64) {
        for x in numbers() {
            let (y, want) = (f64::from(ours(x)), exact(x.into()) as f32);
            let apart = (y - f64::from(want)).abs();
            let unit = f64::from(want.abs().max(f32::MIN_POSITIVE)) * f64::from(f32::EPSILON);
            let same = y == f64::from(want) || (y.is_nan() && want.is_nan());
            assert!(same || apart <= ulps * unit, "{name}({x:e}) = {y:e}, expected {want:e}");
        }
    }

    #[test]
    fn functions_are_accurate_to_a_few_ulps() {
        check("exp", exp, f64::exp, 2.0);
        check("cosh", cosh, f64::cosh, 3.0);
        check("sinh", sinh, f64::sinh, 3.0);
        check("tanh", tanh, f64::tanh, 3.0);
        check("log", log, f64::ln, 2.0);
        check("log2", log2, f64::log2, 3.0);
        check("log10", log10, f64::log10, 3.0);
        check("asinh", asinh, f64::asinh, 4.0);
        check("acosh", acosh, super::super::functions::acosh, 4.0);
        check("atanh", atanh, f64::atanh, 4.0);
        check("atan", atan, f64::atan, 3.0);
        check("asin", asin, f64::asin, 3.0);
        check("acos", acos, f64::acos, 3.0);
        check("cbrt", cbrt, f64::cbrt, 1.0);
    }

    #[test]
    fn trigonometric_functions_are_accurate_to_a_few_ulps() {
        let angles: Vec<f32> =
            numbers().filter(|x| x.abs() <= LARGEST_ANGLE || !x.is_finite()).collect();
        for x in angles {
            for (name, y, want) in [
                ("sin", sin(x), f64::from(x).sin()),
                ("cos", cos(x), f64::from(x).cos()),
                ("tan", tan(x), f64::from(x).tan()),
            ] {
                // Near zeros, relative to the reduced angle.
                let apart = (f64::from(y) - want).abs();
                let near = apart <= 4.0 * f64::from(f32::EPSILON) * want.abs().max(1e-7);
                assert!(near || (y.is_nan() && want.is_nan()), "{name}({x:e}) = {y:e}, {want:e}");
            }
        }
    }

    #[test]
    fn powers_are_accurate_to_one_ulp() {
        for x in numbers().filter(|x| *x >= f32::MIN_POSITIVE && x.is_finite()).step_by(7) {
            for y in [2.2, 1.0 / 2.2, -1.5, 0.0, 1.0, 30.25, 1e-9, -1e9, 1e30] {
                let (ours, want) = (positive_power(x, y), f64::from(x).powf(y.into()) as f32);
                let unit = want.max(f32::MIN_POSITIVE) * f32::EPSILON;
                let near = ours == want || (ours - want).abs() <= unit;
                assert!(near, "{x:e}^{y}: {ours:e} {want:e}");
            }
        }
    }

    #[test]
    fn atan2_handles_every_quadrant() {
        let few = [0.0, -0.0, 1.0, -1.0, 0.3, -7.0, 1e-30, 1e30, f32::INFINITY, f32::NEG_INFINITY];
        for y in few.into_iter().chain([f32::NAN]) {
            for x in few.into_iter().chain([f32::NAN]) {
                let (ours, want) = (atan2(y, x), f64::from(y).atan2(f64::from(x)) as f32);
                let near = (ours - want).abs() <= 3.0 * f32::EPSILON * want.abs();
                let same = near && ours.is_sign_negative() == want.is_sign_negative();
                assert!(same || (ours.is_nan() && want.is_nan()), "{y:e} {x:e}: {ours:e} {want:e}");
            }
        }
    }
}
