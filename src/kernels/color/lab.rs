//! 8-bit RGB to CIE L*a*b* and back, in whole numbers: bit by bit what OpenCV computes, and so DALI.

use std::sync::OnceLock;

/// sRGB to CIE XYZ, and back.
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
/// The white of daylight (D65).
const WHITE: [f64; 3] = [0.950_456, 1.0, 1.088_754];

/// Bits behind the point of factors, of linear brightness, of roots, and of XYZ.
const FACTOR: u32 = 12;
const LINEAR: u32 = 3;
const ROOT: u32 = 15;
const XYZ: u32 = 14;
/// Bits of what becomes a byte again.
const BACK: u32 = 12;

/// Where the cube root ends and the straight line near black begins.
const DARK: f64 = 0.008_856;
/// The least that f(X) - Y/500 can be, in the units of XYZ.
const LEAST: i32 = -8145;
const BASE: i32 = 1 << XYZ;
const CUBES: usize = (BASE * 9 / 4) as usize;
const ROOTS: usize = (256 * 3 / 2) << LINEAR;

pub struct Tables {
    /// For each channel and byte, what it adds to X, Y and Z.
    parts: Box<[[[i32; 3]; 256]; 3]>,
    roots: Box<[i32; ROOTS]>,
    /// Y and f(Y) of each lightness.
    light: [[i32; 2]; 256],
    /// X or Z of f(X) or f(Z), from `LEAST` on.
    cubes: Box<[i32; CUBES]>,
    from_xyz: [[i32; 3]; 3],
    bytes: Box<[u8; 1 << BACK]>,
}

/// The nearest whole number, of several the even one.
fn whole(x: f64) -> i32 {
    x.round_ties_even() as i32
}

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
            whole(x * f64::from(255 << LINEAR))
        };
        let factor = |i: usize, j: usize| whole(TO_XYZ[i][j] / WHITE[i] * f64::from(1 << FACTOR));
        let part =
            |j: usize| std::array::from_fn(|byte| [0, 1, 2].map(|i| factor(i, j) * linear(byte)));
        let root = |i: usize| {
            let x = i as f64 / f64::from(255 << LINEAR);
            let x = if x < DARK { x * 7.787 + 16.0 / 116.0 } else { x.cbrt() };
            // Within a thousandth of one half, single precision rounds to the other side.
            let other = match i {
                49 => -1,
                628 => 1,
                _ => 0,
            };
            whole(x * f64::from(1 << ROOT)) + other
        };
        let base = f64::from(BASE);
        let light = |i: usize| {
            let l = i as f64 / 255.0 * 100.0;
            // A lightness of 8 is where the line ends.
            if l <= 8.0 {
                let y = l / (29.0_f64 / 3.0).powi(3);
                [whole(base * y), whole(base * (l / 116.0 + 16.0 / 116.0))]
            } else {
                let f = (l + 16.0) / 116.0;
                [whole(base * f * f * f), whole(base * f)]
            }
        };
        let cube = |i: i32| {
            // 6/29, the root of where the line ends.
            if i <= 3390 {
                i * 108 / 841 - BASE * 16 / 116 * 108 / 841
            } else {
                (i64::from(i * i / BASE) * i64::from(i) / i64::from(BASE)) as i32
            }
        };
        let byte = |i: usize| {
            let x = i as f64 / f64::from(1 << BACK);
            let x = if x <= 0.003_130_8 { x * 12.92 } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
            whole(255.0 * x) as u8
        };
        Tables {
            parts: Box::new([0, 1, 2].map(part)),
            roots: Box::new(std::array::from_fn(root)),
            light: std::array::from_fn(light),
            cubes: Box::new(std::array::from_fn(|i| cube(LEAST + i as i32))),
            from_xyz: [0, 1, 2].map(|i| {
                [0, 1, 2].map(|j| whole(FROM_XYZ[i][j] * WHITE[j] * f64::from(1 << FACTOR)))
            }),
            bytes: Box::new(std::array::from_fn(byte)),
        }
    }

    /// Lightness, a* and b* of red, green and blue.
    #[inline(always)]
    pub fn lab(&self, [red, green, blue]: [u8; 3]) -> [u8; 3] {
        let [r, g, b] = [
            &self.parts[0][usize::from(red)],
            &self.parts[1][usize::from(green)],
            &self.parts[2][usize::from(blue)],
        ];
        let root = |i: usize| {
            // Never more than 255 in all, which there is a root of.
            let at = rounded(r[i] + g[i] + b[i], FACTOR) as usize;
            self.roots[at.min(ROOTS - 1)]
        };
        let [x, y, z] = [root(0), root(1), root(2)];
        const SCALE: i32 = (116 * 255 + 50) / 100;
        const SHIFT: i32 = (16 * 255 * (1 << ROOT) + 50) / 100;
        let middle = 128 << ROOT;
        [
            rounded(SCALE * y - SHIFT, ROOT),
            rounded(500 * (x - y) + middle, ROOT),
            rounded(200 * (y - z) + middle, ROOT),
        ]
        .map(|x| x.clamp(0, 255) as u8)
    }

    #[inline(always)]
    pub fn rgb(&self, [l, a, b]: [u8; 3]) -> [u8; 3] {
        let [y, f] = self.light[usize::from(l)];
        // a/500 and b/200, by multiplication.
        let a = ((5 * i32::from(a) * 53_687 + (1 << 7)) >> 13) - 128 * BASE / 500;
        let b = ((i32::from(b) * 41_943 + (1 << 4)) >> 9) - 128 * BASE / 200 + 1;
        let cube = |f: i32| {
            let at = (f - LEAST).clamp(0, CUBES as i32 - 1);
            self.cubes[at as usize]
        };
        let (x, z) = (cube(f + a), cube(f - b));
        self.from_xyz.map(|[i, j, k]| {
            let part = rounded(i * x + j * y + k * z, FACTOR + XYZ - BACK);
            self.bytes[part.clamp(0, (1 << BACK) - 1) as usize]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_those_of_opencv() {
        let tables = Tables::get();
        // Seen with OpenCV 5.
        for (rgb, lab) in [
            ([0, 0, 0], [0, 128, 128]),
            ([255, 255, 255], [255, 128, 128]),
            ([255, 0, 0], [136, 208, 195]),
            ([0, 255, 0], [224, 42, 211]),
            ([0, 0, 255], [82, 207, 20]),
        ] {
            assert_eq!(tables.lab(rgb), lab, "{rgb:?}");
        }
    }

    #[test]
    fn there_and_back_is_nearly_the_same() {
        // The largest difference that OpenCV has is 21.
        let tables = Tables::get();
        for rgb in 0..4096_u32 {
            let rgb = [rgb & 15, rgb >> 4 & 15, rgb >> 8].map(|x| (x * 17) as u8);
            let back = tables.rgb(tables.lab(rgb));
            let apart = rgb.iter().zip(back).map(|(&a, b)| a.abs_diff(b)).max();
            assert!(apart.is_some_and(|apart| apart < 22), "{rgb:?} {back:?}");
        }
    }

    #[test]
    fn any_bytes_are_colors() {
        let tables = Tables::get();
        for l in (0..=255).step_by(5) {
            for a in [0, 1, 127, 254, 255] {
                for b in [0, 1, 127, 254, 255] {
                    tables.rgb([l, a, b]);
                }
            }
        }
    }
}
