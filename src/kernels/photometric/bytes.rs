//! Point operations on uint8 images with interleaved channels.
//!
//! A point operation is a look-up table of 256 bytes. Tables can be composed, and the histogram of
//! the result follows from the histogram of the input. Results are truncated, not rounded, as in
//! torchvision.

use super::Stack;
use crate::kernels::Result;
use crate::kernels::numeric::isa::vectorized;
use crate::value::filled;

pub type Table = [u8; 256];

/// Number of pixels of each value.
pub type Histogram = [u32; 256];

pub fn table(of: impl Fn(u8) -> u8) -> Table {
    std::array::from_fn(|x| of(x as u8))
}

/// `gain * x + bias`, clamped and truncated.
#[inline(always)]
fn linear(x: u8, gain: f32, bias: f32) -> u8 {
    let y = f32::from(x) * gain + bias;
    // Not `clamp`, which would pass NaN through.
    let y = if y > 0.0 { y } else { 0.0 };
    let y = if y < 255.0 { y } else { 255.0 };
    // SAFETY: `y` is between 0 and 255.
    unsafe { y.to_int_unchecked::<i32>() as u8 }
}

/// Stretches the range from `low` to `high` to the full range.
pub fn stretch(low: u8, high: u8) -> Table {
    if high <= low {
        return table(|x| x);
    }
    let scaled = |x: u8| u32::from(x.saturating_sub(low)) * 255 / u32::from(high - low);
    table(|x| scaled(x).min(255) as u8)
}

/// The lowest and highest value that occur.
pub fn ends(counts: &Histogram) -> Option<(u8, u8)> {
    let low = counts.iter().position(|&count| count > 0)?;
    let high = counts.iter().rposition(|&count| count > 0)?;
    Some((low as u8, high as u8))
}

/// Histogram equalization with Pillow's rule, as in torchvision: integer steps, and the highest
/// value is not counted.
pub fn equalizing(counts: &Histogram) -> Table {
    let Some((_, high)) = ends(counts) else { return table(|x| x) };
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let step = (total - u64::from(counts[usize::from(high)])) / 255;
    if step == 0 {
        return table(|x| x);
    }
    let mut below = step / 2;
    let mut made = [0; 256];
    for (made, &count) in made.iter_mut().zip(counts) {
        *made = (below / step).min(255) as u8;
        below += u64::from(count);
    }
    made
}

/// The histogram of an image after a look-up table.
pub fn looked_up(counts: &Histogram, table: &Table) -> Histogram {
    let mut made = [0; 256];
    for (&count, &to) in counts.iter().zip(table) {
        made[usize::from(to)] += count;
    }
    made
}

/// The histogram of each channel. Images must have fewer than 2^32 pixels.
pub fn histograms(src: &[u8], channels: usize) -> Result<Vec<Histogram>> {
    match channels {
        1 => counted::<1>(src),
        3 => counted::<3>(src),
        _ => {
            let mut counts = filled([0; 256], channels)?;
            for pixel in src.chunks_exact(channels) {
                for (counts, &x) in counts.iter_mut().zip(pixel) {
                    counts[usize::from(x)] += 1;
                }
            }
            Ok(counts)
        }
    }
}

fn counted<const N: usize>(src: &[u8]) -> Result<Vec<Histogram>> {
    // Two sets of counters: adjacent pixels are often equal, and incrementing the same counter
    // twice in a row stalls.
    let (mut even, mut odd) = ([[0_u32; 256]; N], [[0_u32; 256]; N]);
    let (pairs, last) = src.as_chunks::<N>().0.as_chunks::<2>();
    for [a, b] in pairs {
        for channel in 0..N {
            even[channel][usize::from(a[channel])] += 1;
            odd[channel][usize::from(b[channel])] += 1;
        }
    }
    for pixel in last {
        for channel in 0..N {
            even[channel][usize::from(pixel[channel])] += 1;
        }
    }
    for (count, more) in even.as_flattened_mut().iter_mut().zip(odd.as_flattened()) {
        *count += more;
    }
    let mut made = filled([0; 256], N)?;
    made.copy_from_slice(&even);
    Ok(made)
}

/// Applies one look-up table, or one per channel.
pub fn look_up(src: &[u8], dst: &mut [u8], tables: &[Table]) {
    match tables {
        [table] => {
            for (d, &s) in dst.iter_mut().zip(src) {
                *d = table[usize::from(s)];
            }
        }
        [r, g, b] => {
            for (d, s) in dst.as_chunks_mut::<3>().0.iter_mut().zip(src.as_chunks::<3>().0) {
                let [x, y, z] = s.map(usize::from);
                *d = [r[x], g[y], b[z]];
            }
        }
        _ => {
            let pixels = dst.chunks_exact_mut(tables.len()).zip(src.chunks_exact(tables.len()));
            for (dst, src) in pixels {
                for ((d, &s), table) in dst.iter_mut().zip(src).zip(tables) {
                    *d = table[usize::from(s)];
                }
            }
        }
    }
}

/// A point operation that is faster to compute with SIMD than to look up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Formula {
    Invert,
    /// Bitwise AND.
    Mask(u8),
    /// Inverts values at or above the threshold.
    Solarize(u8),
    Linear {
        gain: f32,
        bias: f32,
    },
}

impl Formula {
    #[inline(always)]
    fn of(self, x: u8) -> u8 {
        match self {
            Formula::Invert => !x,
            Formula::Mask(mask) => x & mask,
            Formula::Solarize(from) => {
                if x >= from {
                    !x
                } else {
                    x
                }
            }
            Formula::Linear { gain, bias } => linear(x, gain, bias),
        }
    }

    pub fn table(self) -> Table {
        table(|x| self.of(x))
    }

    pub fn apply(self, src: &[u8], dst: &mut [u8]) {
        #[inline(always)]
        fn run(src: &[u8], dst: &mut [u8], change: impl Fn(u8) -> u8) {
            for (d, &s) in dst.iter_mut().zip(src) {
                *d = change(s);
            }
        }
        vectorized!(match self {
            Formula::Invert => run(src, dst, |x| Formula::Invert.of(x)),
            Formula::Mask(mask) => run(src, dst, move |x| Formula::Mask(mask).of(x)),
            Formula::Solarize(from) => run(src, dst, move |x| Formula::Solarize(from).of(x)),
            Formula::Linear { gain, bias } => run(src, dst, move |x| linear(x, gain, bias)),
        });
    }
}

/// Gray value of a pixel, truncated.
#[inline(always)]
fn gray([r, g, b]: [u8; 3]) -> i32 {
    let gray = f32::from(r) * 0.2989 + f32::from(g) * 0.587 + f32::from(b) * 0.114;
    // SAFETY: `gray` is between 0 and 255.
    unsafe { gray.to_int_unchecked() }
}

/// Mean gray value of an image with one or three channels, after its look-up tables, if any.
pub fn mean_gray(src: &[u8], channels: usize, tables: Option<&[Table]>) -> f32 {
    if src.is_empty() {
        return 0.0;
    }
    let pixels = src.len() / channels;
    let sum: u64 = match (channels, tables) {
        (3, Some([r, g, b])) => {
            sum_gray(src, |[x, y, z]| [r[usize::from(x)], g[usize::from(y)], b[usize::from(z)]])
        }
        (3, _) => sum_gray(src, |pixel| pixel),
        (_, Some([table, ..])) => src.iter().map(|&x| u64::from(table[usize::from(x)])).sum(),
        _ => src.iter().map(|&x| u64::from(x)).sum(),
    };
    (sum as f64 / pixels as f64) as f32
}

fn sum_gray(src: &[u8], change: impl Fn([u8; 3]) -> [u8; 3]) -> u64 {
    vectorized!({
        // In chunks whose sums fit an i32.
        let parts = src.as_chunks::<3>().0.chunks(1 << 16);
        parts.map(|part| part.iter().map(|&pixel| gray(change(pixel))).sum::<i32>() as u64).sum()
    })
}

/// Blends each RGB pixel with its gray value.
pub fn saturate(src: &[u8], dst: &mut [u8], factor: f32) {
    vectorized!(copying factor; {
        for (d, &s) in dst.as_chunks_mut::<3>().0.iter_mut().zip(src.as_chunks::<3>().0) {
            let bias = gray(s) as f32 * (1.0 - factor);
            *d = s.map(|x| linear(x, factor, bias));
        }
    });
}

/// Blends an image with its blurred version; edge pixels are copied.
pub fn sharpen(src: &[u8], dst: &mut [u8], stack: &Stack, factor: f32) {
    let Stack { height, width, channels, .. } = *stack;
    if height <= 2 || width <= 2 {
        dst.copy_from_slice(src);
        return;
    }
    let row = width * channels;
    dst[..row].copy_from_slice(&src[..row]);
    dst[(height - 1) * row..].copy_from_slice(&src[(height - 1) * row..]);
    let inner = row - 2 * channels;
    vectorized!({
        for y in 1..height - 1 {
            let [above, at, below] = [y - 1, y, y + 1].map(|y| &src[y * row..][..row]);
            let out = &mut dst[y * row..][..row];
            out[..channels].copy_from_slice(&at[..channels]);
            out[row - channels..].copy_from_slice(&at[row - channels..]);
            let out = &mut out[channels..][..inner];
            let [a, b, c] = shifted(above, channels, inner);
            let [d, e, f] = shifted(at, channels, inner);
            let [g, h, i] = shifted(below, channels, inner);
            for x in 0..inner {
                let upper = u16::from(a[x]) + u16::from(b[x]) + u16::from(c[x]);
                let lower = u16::from(g[x]) + u16::from(h[x]) + u16::from(i[x]);
                let around = upper + lower + u16::from(d[x]) + u16::from(f[x]);
                let centre = f32::from(e[x]);
                let blurred = (f32::from(around) + 5.0 * centre) * (1.0 / 13.0) + 0.5;
                // SAFETY: `blurred` is between 0 and 256.
                let blurred = unsafe { blurred.to_int_unchecked::<i32>() } as f32;
                out[x] = linear(e[x], 1.0, (1.0 - factor) * (blurred - centre));
            }
        }
    });
}

/// The left, center and right neighbors of a row's inner pixels.
#[inline(always)]
fn shifted(row: &[u8], channels: usize, inner: usize) -> [&[u8]; 3] {
    [0, channels, 2 * channels].map(|by| &row[by..][..inner])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_match_their_tables() {
        let src: Vec<u8> = (0..=255).cycle().take(1003).collect();
        for formula in [
            Formula::Invert,
            Formula::Mask(0xF0),
            Formula::Solarize(100),
            Formula::Linear { gain: 1.37, bias: -20.5 },
            Formula::Linear { gain: f32::NAN, bias: 0.0 },
            Formula::Linear { gain: 1e30, bias: f32::NEG_INFINITY },
        ] {
            let (mut direct, mut looked_up) = (vec![0; 1003], vec![0; 1003]);
            formula.apply(&src, &mut direct);
            look_up(&src, &mut looked_up, &[formula.table()]);
            assert!(direct == looked_up, "{formula:?}");
        }
    }

    #[test]
    fn histogram_after_a_table_is_exact() {
        let src: Vec<u8> = (0..3 * 501).map(|i| (i * 7 % 255) as u8).collect();
        let table = Formula::Mask(0xC0).table();
        let mut changed = vec![0; src.len()];
        look_up(&src, &mut changed, &[table]);
        let before = histograms(&src, 3).unwrap();
        let after = histograms(&changed, 3).unwrap();
        for (before, after) in before.iter().zip(&after) {
            assert!(looked_up(before, &table) == *after);
        }
    }

    #[test]
    fn equalization_uses_integer_steps() {
        let mut counts = [0; 256];
        counts[..4].copy_from_slice(&[255, 255, 0, 255]);
        // Two pixels per step, and half a step for the lowest value.
        assert_eq!(equalizing(&counts)[..4], [0, 128, 255, 255]);
        counts[3] = 0;
        counts[1] = 0;
        assert!(equalizing(&counts) == table(|x| x));
    }
}
