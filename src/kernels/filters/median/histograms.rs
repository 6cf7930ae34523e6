//! Median filter for 8-bit images, with a cost almost independent of the window size.

use super::{Window, clamped};
use crate::kernels::Result;
use crate::kernels::filters::planes::Planes;
use crate::kernels::numeric::isa::vectorized;
use crate::value::filled;

/// Columns processed at a time, so that their histograms stay in the cache.
const STRIPE: usize = 256;

/// A histogram with sixteen bins.
type Counts = [u16; 16];

/// Perreault and Hebert, "Median filtering in constant time", 2007: each column has a histogram
/// that moves down with the rows; the window's histogram is the sum of its columns' histograms and
/// moves right. There are two levels: 16 coarse bins for the high four bits, and 16 fine bins
/// within each of them.
pub fn histograms(window: &Window, planes: &Planes, src: &[u8], dst: &mut [u8]) -> Result<()> {
    let Planes { height, width, channels } = *planes;
    let reach = [window.width / 2, window.height / 2];
    let columns = STRIPE.min(width) + window.width - 1;
    let mut coarse: Vec<Counts> = filled([0; 16], columns)?;
    // Indexed by the high bits first, so that the bins of adjacent columns are contiguous.
    let mut fine: Vec<Counts> = filled([0; 16], 16 * columns)?;
    let half = (window.width * window.height / 2) as u16;
    let mut places: Vec<usize> = filled(0, columns)?;
    for channel in 0..channels {
        for start in (0..width).step_by(STRIPE) {
            let count = STRIPE.min(width - start);
            let used = count + window.width - 1;
            for (column, place) in places.iter_mut().enumerate() {
                *place = clamped(start + column, reach[0], width) * channels + channel;
            }
            let places = &places[..used];
            let row =
                |k: usize| &src[clamped(k, reach[1], height) * planes.row()..][..planes.row()];
            coarse.fill([0; 16]);
            fine.fill([0; 16]);
            for k in 0..window.height {
                let row = row(k);
                for (column, &place) in places.iter().enumerate() {
                    let number = usize::from(row[place]);
                    coarse[column][number >> 4] += 1;
                    fine[(number >> 4) * columns + column][number & 15] += 1;
                }
            }
            for y in 0..height {
                let out = &mut dst[y * planes.row() + start * channels..][..count * channels];
                vectorized!({
                    slide(window, &coarse, &fine, columns, half, |x, number| {
                        out[x * channels + channel] = number;
                        x + 1 < count
                    });
                });
                let (old, new) = (row(y), row(y + window.height));
                for (column, &place) in places.iter().enumerate() {
                    let (old, new) = (usize::from(old[place]), usize::from(new[place]));
                    coarse[column][old >> 4] -= 1;
                    fine[(old >> 4) * columns + column][old & 15] -= 1;
                    coarse[column][new >> 4] += 1;
                    fine[(new >> 4) * columns + column][new & 15] += 1;
                }
            }
        }
    }
    Ok(())
}

#[inline(always)]
fn add(to: &mut Counts, from: &Counts) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(*from);
    }
}

#[inline(always)]
fn subtract(to: &mut Counts, from: &Counts) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_sub(*from);
    }
}

/// The bin in which the cumulative count exceeds `half`, and the count before it.
#[inline(always)]
fn passing(counts: &Counts, half: u16) -> (usize, u16) {
    let mut before = 0;
    for (kind, &count) in counts.iter().enumerate() {
        if before + count > half {
            return (kind, before);
        }
        before += count;
    }
    (15, before)
}

/// Slides the window along a row. `write` receives the medians, and returns whether to continue.
#[inline(always)]
fn slide(
    window: &Window,
    coarse: &[Counts],
    fine: &[Counts],
    columns: usize,
    half: u16,
    mut write: impl FnMut(usize, u8) -> bool,
) {
    let mut sum: Counts = [0; 16];
    coarse[..window.width].iter().for_each(|column| add(&mut sum, column));
    let mut parts = [[0; 16]; 16];
    // The window position for which each fine histogram is up to date; none at first.
    let mut right: [usize; 16] = [usize::MAX; 16];
    let mut x = 0;
    loop {
        let (high, before) = passing(&sum, half);
        let part = &mut parts[high];
        let fine = &fine[high * columns..][..columns];
        if right[high] > x || x - right[high] > window.width / 2 {
            *part = [0; 16];
            fine[x..x + window.width].iter().for_each(|column| add(part, column));
        } else {
            for gone in right[high]..x {
                subtract(part, &fine[gone]);
                add(part, &fine[gone + window.width]);
            }
        }
        right[high] = x;
        let (low, _) = passing(part, half - before);
        if !write(x, (high * 16 + low) as u8) {
            return;
        }
        subtract(&mut sum, &coarse[x]);
        add(&mut sum, &coarse[x + window.width]);
        x += 1;
    }
}
