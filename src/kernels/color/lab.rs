//! 8-bit RGB to CIE L*a*b* and back, in fixed point: bit-exact with OpenCV, and therefore DALI.

use std::sync::OnceLock;

use crate::kernels::numeric::isa::vectorized;

/// sRGB to CIE XYZ and back.
const TO_XYZ: [[f64; 3]; 3] = [
    [0.412_453, 0.357_580, 0.180_423],
    [0.212_671, 0.715_160, 0.072_169],
    [0.019_334, 0.119_193, 0.950_227],
];
const FROM_XYZ: [[f64; 3]; 3] = [
    [3.240_479, -1.537_15, -0.498_535],
    [-0.969_256, 1.875_991, 0.041_556],
    [0.055_648, -0.204_043, 1.057_311],
];
/// D65 white point.
const WHITE: [f64; 3] = [0.950_456, 1.0, 1.088_754];

/// Fractional bits of matrix coefficients, of linear RGB, of cube roots, and of XYZ.
const FACTOR: u32 = 12;
const LINEAR: u32 = 3;
const ROOT: u32 = 15;
const XYZ: u32 = 14;
/// Bits of the index into the table that converts linear RGB to bytes.
const BACK: u32 = 12;

/// Below this, f is linear instead of a cube root.
const DARK: f64 = 0.008_856;
/// Minimum of f(X) - Y/500, in units of XYZ.
const LEAST: i32 = -8145;
const BASE: i32 = 1 << XYZ;
const ROOTS: usize = (256 * 3 / 2) << LINEAR;

pub struct Tables {
    /// Linear value of each sRGB byte.
    linear: [u16; 256],
    to_xyz: [[i32; 3]; 3],
    roots: Box<[u16; ROOTS]>,
    /// Y and f(Y) of each L*.
    light: [[i32; 2]; 256],
    from_xyz: [[i32; 3]; 3],
    bytes: Box<[u8; 1 << BACK]>,
}

/// Pixels converted at a time. Table look-ups and arithmetic are separate loops, so that the
/// arithmetic vectorizes.
const BLOCK: usize = 64;

/// Rounds to the nearest integer, ties to even.
fn whole(x: f64) -> i32 {
    x.round_ties_even() as i32
}

#[inline(always)]
fn rounded(x: i32, bits: u32) -> i32 {
    (x + (1 << (bits - 1))) >> bits
}

impl Tables {
    pub fn get() -> &'static Tables {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES.get_or_init(Tables::new)
    }

    fn new() -> Tables {
        let linear = |byte: usize| {
            let x = byte as f64 / 255.0;
            let x = if x <= 0.040_45 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) };
            whole(x * f64::from(255 << LINEAR)) as u16
        };
        let factor = |i: usize, j: usize| whole(TO_XYZ[i][j] / WHITE[i] * f64::from(1 << FACTOR));
        let root = |i: usize| {
            let x = i as f64 / f64::from(255 << LINEAR);
            let x = if x < DARK { x * 7.787 + 16.0 / 116.0 } else { x.cbrt() };
            // OpenCV rounds these two the other way: in single precision they are too close to a
            // tie.
            let other = match i {
                49 => -1,
                628 => 1,
                _ => 0,
            };
            (whole(x * f64::from(1 << ROOT)) + other) as u16
        };
        let base = f64::from(BASE);
        let light = |i: usize| {
            let l = i as f64 / 255.0 * 100.0;
            // L* = 8 is the end of the linear segment.
            if l <= 8.0 {
                let y = l / (29.0_f64 / 3.0).powi(3);
                [whole(base * y), whole(base * (l / 116.0 + 16.0 / 116.0))]
            } else {
                let f = (l + 16.0) / 116.0;
                [whole(base * f * f * f), whole(base * f)]
            }
        };
        let byte = |i: usize| {
            let x = i as f64 / f64::from(1 << BACK);
            let x = if x <= 0.003_130_8 { x * 12.92 } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
            whole(255.0 * x) as u8
        };
        Tables {
            linear: std::array::from_fn(linear),
            to_xyz: [0, 1, 2].map(|i| [0, 1, 2].map(|j| factor(i, j))),
            roots: Box::new(std::array::from_fn(root)),
            light: std::array::from_fn(light),
            from_xyz: [0, 1, 2].map(|i| {
                [0, 1, 2].map(|j| whole(FROM_XYZ[i][j] * WHITE[j] * f64::from(1 << FACTOR)))
            }),
            bytes: Box::new(std::array::from_fn(byte)),
        }
    }

    /// Converts RGB to planes of L*, a* and b*.
    pub fn split(&self, src: &[[u8; 3]], [light, a, b]: [&mut [u8]; 3]) {
        let mut linear = [[0_u16; BLOCK]; 3];
        let mut at = [[0_u16; BLOCK]; 3];
        let mut roots = [[0_u16; BLOCK]; 3];
        let planes = light.chunks_mut(BLOCK).zip(a.chunks_mut(BLOCK)).zip(b.chunks_mut(BLOCK));
        for (src, ((light, a), b)) in src.chunks(BLOCK).zip(planes) {
            for (i, pixel) in src.iter().enumerate().take(BLOCK) {
                for (linear, &byte) in linear.iter_mut().zip(pixel) {
                    linear[i] = self.linear[usize::from(byte)];
                }
            }
            vectorized!({
                let [red, green, blue] = &linear;
                for (at, factors) in at.iter_mut().zip(&self.to_xyz) {
                    for i in 0..BLOCK {
                        let [r, g, b] = [red[i], green[i], blue[i]].map(i32::from);
                        let sum = factors[0] * r + factors[1] * g + factors[2] * b;
                        at[i] = rounded(sum, FACTOR) as u16;
                    }
                }
            });
            for (roots, at) in roots.iter_mut().zip(&at) {
                for (root, &at) in roots.iter_mut().zip(at) {
                    // The index is at most 255 << LINEAR, which is inside the table.
                    *root = self.roots[usize::from(at).min(ROOTS - 1)];
                }
            }
            vectorized!(lab_of(&roots, light, a, b));
        }
    }

    /// Converts planes of L*, a* and b* to RGB.
    pub fn join(&self, [light, a, b]: [&[u8]; 3], dst: &mut [[u8; 3]]) {
        let (mut y, mut f) = ([0_i32; BLOCK], [0_i32; BLOCK]);
        let mut at = [[0_u16; BLOCK]; 3];
        let planes = light.chunks(BLOCK).zip(a.chunks(BLOCK)).zip(b.chunks(BLOCK));
        for (dst, ((light, a), b)) in dst.chunks_mut(BLOCK).zip(planes) {
            for ((y, f), &light) in y.iter_mut().zip(&mut f).zip(light) {
                [*y, *f] = self.light[usize::from(light)];
            }
            vectorized!(places_of(&self.from_xyz, [&y, &f], a, b, &mut at));
            for (i, pixel) in dst.iter_mut().enumerate().take(BLOCK) {
                for (byte, at) in pixel.iter_mut().zip(&at) {
                    *byte = self.bytes[usize::from(at[i]) % (1 << BACK)];
                }
            }
        }
    }
}

/// L*, a* and b* from the cube roots of X, Y and Z.
#[inline(always)]
fn lab_of([x, y, z]: &[[u16; BLOCK]; 3], light: &mut [u8], a: &mut [u8], b: &mut [u8]) {
    const SCALE: i32 = (116 * 255 + 50) / 100;
    const SHIFT: i32 = (16 * 255 * (1 << ROOT) + 50) / 100;
    const MIDDLE: i32 = 128 << ROOT;
    let n = light.len().min(a.len()).min(b.len()).min(BLOCK);
    let (light, a, b) = (&mut light[..n], &mut a[..n], &mut b[..n]);
    for i in 0..n {
        let [x, y, z] = [x[i], y[i], z[i]].map(i32::from);
        light[i] = rounded(SCALE * y - SHIFT, ROOT).clamp(0, 255) as u8;
        a[i] = rounded(500 * (x - y) + MIDDLE, ROOT).clamp(0, 255) as u8;
        b[i] = rounded(200 * (y - z) + MIDDLE, ROOT).clamp(0, 255) as u8;
    }
}

/// Indices of red, green and blue in the table of bytes, from Y, f(Y), a* and b*.
#[inline(always)]
fn places_of(
    from_xyz: &[[i32; 3]; 3],
    [y, f]: [&[i32; BLOCK]; 2],
    a: &[u8],
    b: &[u8],
    at: &mut [[u16; BLOCK]; 3],
) {
    let n = a.len().min(b.len()).min(BLOCK);
    let (a, b) = (&a[..n], &b[..n]);
    let [red, green, blue] = at;
    for i in 0..n {
        // a/500 and b/200 as fixed-point multiplications.
        let across = ((5 * i32::from(a[i]) * 53_687 + (1 << 7)) >> 13) - 128 * BASE / 500;
        let down = ((i32::from(b[i]) * 41_943 + (1 << 4)) >> 9) - 128 * BASE / 200 + 1;
        let (x, y, z) = (cube(f[i] + across), y[i], cube(f[i] - down));
        let part = |[i, j, k]: [i32; 3]| {
            let part = rounded(i * x + j * y + k * z, FACTOR + XYZ - BACK);
            part.clamp(0, (1 << BACK) - 1) as u16
        };
        red[i] = part(from_xyz[0]);
        green[i] = part(from_xyz[1]);
        blue[i] = part(from_xyz[2]);
    }
}

/// X or Z from f(X) or f(Z), which is clamped to the range that bytes can produce.
#[inline(always)]
fn cube(f: i32) -> i32 {
    const MOST: i32 = LEAST + BASE * 9 / 4 - 1;
    let f = f.clamp(LEAST, MOST);
    // Exact: quotients that are not integers are farther from one than the rounding error.
    let quotient = (f * 108) as f32 / 841.0;
    // SAFETY: `f` is clamped, so the quotient is small.
    let line = unsafe { quotient.to_int_unchecked::<i32>() } - BASE * 16 / 116 * 108 / 841;
    // The clamp keeps the products within 32 bits; `f` is positive wherever this is used.
    let root = (((f * f) >> XYZ) * f) >> XYZ;
    // 6/29, where the linear segment ends.
    if f <= 3390 { line } else { root }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(pixels: &[[u8; 3]]) -> Vec<[u8; 3]> {
        let n = pixels.len();
        let (mut light, mut a, mut b) = (vec![0; n], vec![0; n], vec![0; n]);
        Tables::get().split(pixels, [&mut light, &mut a, &mut b]);
        (0..n).map(|i| [light[i], a[i], b[i]]).collect()
    }

    fn rgb(pixels: &[[u8; 3]]) -> Vec<[u8; 3]> {
        let plane = |k: usize| -> Vec<u8> { pixels.iter().map(|pixel| pixel[k]).collect() };
        let mut made = vec![[0; 3]; pixels.len()];
        Tables::get().join([&plane(0), &plane(1), &plane(2)], &mut made);
        made
    }

    #[test]
    fn colors_match_opencv() {
        let colors = [[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]];
        // Reference values from OpenCV 5.
        let seen = [[0, 128, 128], [255, 128, 128], [136, 208, 195], [224, 42, 211], [82, 207, 20]];
        assert_eq!(lab(&colors), seen);
    }

    #[test]
    fn round_trip_error_is_small() {
        // OpenCV's maximum round-trip error is 21.
        let colors: Vec<[u8; 3]> = (0..4096_u32)
            .map(|rgb| [rgb & 15, rgb >> 4 & 15, rgb >> 8].map(|x| (x * 17) as u8))
            .collect();
        for (color, back) in colors.iter().zip(rgb(&lab(&colors))) {
            let apart = color.iter().zip(back).map(|(&a, b)| a.abs_diff(b)).max();
            assert!(apart.is_some_and(|apart| apart < 22), "{color:?} {back:?}");
        }
    }

    #[test]
    fn cube_matches_integer_arithmetic() {
        for f in LEAST - 9..LEAST + BASE * 9 / 4 + 9 {
            let i = i64::from(f.clamp(LEAST, LEAST + BASE * 9 / 4 - 1));
            let base = i64::from(BASE);
            let exact = match i <= 3390 {
                true => i * 108 / 841 - base * 16 / 116 * 108 / 841,
                false => i * i / base * i / base,
            };
            assert_eq!(i64::from(cube(f)), exact, "{f}");
        }
    }

    #[test]
    fn all_lab_values_can_be_converted() {
        let steps = || (0..=255).step_by(5);
        let all = steps().flat_map(|l| steps().flat_map(move |a| steps().map(move |b| [l, a, b])));
        rgb(&all.collect::<Vec<[u8; 3]>>());
    }
}
