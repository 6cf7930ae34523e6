//! Weighted sums of rows.

use smallvec::SmallVec;

use crate::kernels::Result;
use crate::kernels::numeric::isa::Isa;
use crate::value::zeroed;

/// Weights of a symmetric window: the center's, then outward.
pub type Window = Vec<f32>;

/// Number of floats that are summed in registers.
const BLOCK: usize = 32;

/// A stack of `outer` images with `rows` rows of `columns` pixels.
pub struct Stack {
    pub outer: usize,
    pub rows: usize,
    pub columns: usize,
    /// Elements per pixel.
    pub pixel: usize,
}

impl Stack {
    fn row(&self) -> usize {
        self.columns * self.pixel
    }
}

/// Reflects a position outside `0..extent` into it; the edge is not repeated, so -1 becomes 1.
pub fn mirrored(place: isize, extent: usize) -> usize {
    if (0..extent as isize).contains(&place) {
        return place as usize;
    }
    if extent < 2 {
        return 0;
    }
    let period = 2 * (extent - 1);
    let place = place.rem_euclid(period as isize) as usize;
    place.min(period - place)
}

/// Filters along rows and columns. `read` gets a row of the input, by the index of its first
/// element; `write` takes a row of the result.
pub fn convolve(
    isa: Isa,
    stack: &Stack,
    vertical: &[f32],
    horizontal: &[f32],
    read: impl Fn(usize, &mut [f32]),
    mut write: impl FnMut(usize, &[f32]),
) -> Result<()> {
    let row = stack.row();
    if row == 0 || stack.rows == 0 {
        return Ok(());
    }
    let (reach, reach_along) = (vertical.len() - 1, horizontal.len() - 1);
    // A ring of horizontally filtered rows, as many as the window covers; row `y` is at `y % kept`.
    let kept = stack.rows.min(2 * reach + 1);
    let mut ring = zeroed::<f32>(kept * row)?;
    let border = reach_along * stack.pixel;
    let mut padded = zeroed::<f32>(if is_identity(horizontal) { 0 } else { row + 2 * border })?;
    let mut result = zeroed::<f32>(if is_identity(vertical) { 0 } else { row })?;
    for image in 0..stack.outer {
        let start = |y: usize| (image * stack.rows + y) * row;
        let mut ready = 0;
        for y in 0..stack.rows {
            while ready < stack.rows.min(y + reach + 1) {
                let slot = &mut ring[ready % kept * row..][..row];
                if is_identity(horizontal) {
                    read(start(ready), slot);
                } else {
                    read(start(ready), &mut padded[border..border + row]);
                    pad(&mut padded, stack, reach_along);
                    let at = |steps: usize| &padded[steps * stack.pixel..][..row];
                    let pairs: Pairs<'_> = (1..=reach_along)
                        .map(|k| (at(reach_along - k), at(reach_along + k)))
                        .collect();
                    combine(isa, at(reach_along), &pairs, horizontal, slot);
                }
                ready += 1;
            }
            let at = |place: isize| &ring[mirrored(place, stack.rows) % kept * row..][..row];
            let place = y as isize;
            if is_identity(vertical) {
                write(start(y), at(place));
                continue;
            }
            let pairs: Pairs<'_> =
                (1..=reach as isize).map(|k| (at(place - k), at(place + k))).collect();
            combine(isa, at(place), &pairs, vertical, &mut result);
            write(start(y), &result);
        }
    }
    Ok(())
}

/// Whether a window has no effect.
fn is_identity(window: &[f32]) -> bool {
    window == [1.0]
}

/// Reflects the pixels at both ends of a row into the borders around it.
fn pad(padded: &mut [f32], stack: &Stack, reach: usize) {
    let Stack { columns, pixel, .. } = *stack;
    for k in 1..=reach {
        for (to, from) in [
            (reach - k, mirrored(-(k as isize), columns)),
            (reach + columns - 1 + k, mirrored((columns - 1 + k) as isize, columns)),
        ] {
            let from = (reach + from) * pixel;
            padded.copy_within(from..from + pixel, to * pixel);
        }
    }
}

type Pairs<'a> = SmallVec<[(&'a [f32], &'a [f32]); 16]>;

/// `out = weights[0] * center + sum of weights[k] * (pairs[k - 1].0 + pairs[k - 1].1)`. All rows
/// have the length of `out`.
fn combine(isa: Isa, center: &[f32], pairs: &Pairs<'_>, weights: &[f32], out: &mut [f32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            #[target_feature(enable = "avx2")]
            unsafe fn avx2(center: &[f32], pairs: &Pairs<'_>, weights: &[f32], out: &mut [f32]) {
                combine_blocks(center, pairs, weights, out);
            }
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
            unsafe { avx2(center, pairs, weights, out) }
        }
        _ => combine_blocks(center, pairs, weights, out),
    }
}

#[inline(always)]
fn combine_blocks(center: &[f32], pairs: &Pairs<'_>, weights: &[f32], out: &mut [f32]) {
    let Some((&first, weights)) = weights.split_first() else { return };
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    let mut start = 0;
    for out in blocks {
        let mut sums = [0.0; BLOCK];
        for (sum, x) in sums.iter_mut().zip(&center[start..start + BLOCK]) {
            *sum = first * x;
        }
        for ((a, b), weight) in pairs.iter().zip(weights) {
            let (a, b) = (&a[start..start + BLOCK], &b[start..start + BLOCK]);
            for i in 0..BLOCK {
                sums[i] += weight * (a[i] + b[i]);
            }
        }
        *out = sums;
        start += BLOCK;
    }
    for (i, out) in rest.iter_mut().enumerate() {
        let i = start + i;
        let mut sum = first * center[i];
        for ((a, b), weight) in pairs.iter().zip(weights) {
            sum += weight * (a[i] + b[i]);
        }
        *out = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_beyond_the_ends_are_reflected() {
        let places: Vec<usize> = (-5..9).map(|place| mirrored(place, 4)).collect();
        assert_eq!(places, [1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2]);
        assert_eq!((mirrored(-7, 1), mirrored(5, 1), mirrored(-3, 2)), (0, 0, 1));
    }

    /// The direct sum for each element.
    fn direct_sums(stack: &Stack, vertical: &[f32], horizontal: &[f32], x: &[f32]) -> Vec<f32> {
        let mut out = Vec::new();
        let weight = |window: &[f32], k: isize| f64::from(window[k.unsigned_abs()]);
        for image in 0..stack.outer {
            for y in 0..stack.rows as isize {
                for column in 0..stack.columns as isize {
                    for c in 0..stack.pixel {
                        let mut sum = 0.0;
                        let (tall, wide) = (vertical.len() as isize, horizontal.len() as isize);
                        for dy in 1 - tall..tall {
                            for dx in 1 - wide..wide {
                                let y = image * stack.rows + mirrored(y + dy, stack.rows);
                                let at = y * stack.columns + mirrored(column + dx, stack.columns);
                                sum += weight(vertical, dy)
                                    * weight(horizontal, dx)
                                    * f64::from(x[at * stack.pixel + c]);
                            }
                        }
                        out.push(sum as f32);
                    }
                }
            }
        }
        out
    }

    #[test]
    fn every_isa_matches_the_direct_sum() {
        let windows: [&[f32]; 4] = [&[1.0], &[0.5, 0.25], &[0.4, 0.2, 0.1], &[0.2; 9]];
        for (rows, columns, pixel) in [(1, 1, 1), (2, 3, 3), (5, 40, 1), (12, 17, 3), (4, 5, 70)] {
            let stack = Stack { outer: 2, rows, columns, pixel };
            let count = 2 * rows * stack.row();
            let x: Vec<f32> = (0..count).map(|i| (i * i % 97) as f32).collect();
            for vertical in windows {
                for horizontal in windows {
                    let expected = direct_sums(&stack, vertical, horizontal, &x);
                    for isa in Isa::available() {
                        let mut out = vec![f32::NAN; count];
                        convolve(
                            isa,
                            &stack,
                            vertical,
                            horizontal,
                            |start, row| row.copy_from_slice(&x[start..start + row.len()]),
                            |start, row| out[start..start + row.len()].copy_from_slice(row),
                        )
                        .unwrap();
                        for (a, b) in out.iter().zip(&expected) {
                            assert!((a - b).abs() < 1e-3, "{isa:?} {rows}x{columns}x{pixel}");
                        }
                    }
                }
            }
        }
    }
}
