//! Histogram equalisation.

use crate::kernels::color::problem::Color;
use crate::kernels::contract::problems::{Input, unfit};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, one};
use crate::value::{DType, Desc, Sample, collected, filled};

pub struct Equalize;

impl Kernel for Equalize {
    type Args = ();
    type Plan = ();
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan((): (), inputs: &[&Desc]) -> Result<((), Outputs)> {
        if inputs[0].dtype != DType::U8 {
            let dtype = inputs[0].dtype.name();
            return Err(unfit(0, Input::Type { wanted: "uint8", dtype }));
        }
        Ok(((), one(inputs[0].clone())))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let desc = &inputs[0].desc;
        let extent = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        let channels = if desc.layout.letters().last() == Some(&b'C') { extent(b'C') } else { 1 };
        let pixels = extent(b'H') * extent(b'W');
        let plane = pixels * channels;
        if plane == 0 {
            return Ok(());
        }
        if u32::try_from(pixels).is_err() {
            return Err(unfit(0, Color::TooManyPixels { pixels }));
        }
        let (src, dst) = (inputs[0].elements::<u8>(), out.elements::<u8>());
        for (src, dst) in src.chunks_exact(plane).zip(dst.chunks_exact_mut(plane)) {
            match channels {
                1 => equalize::<1>(src, dst),
                3 => equalize::<3>(src, dst),
                _ => equalize_any(src, dst, channels)?,
            }
        }
        Ok(())
    }
}

/// Number of pixels for each brightness.
type Histogram = [u32; 256];

/// Equalises pixels of `N` channels.
fn equalize<const N: usize>(src: &[u8], dst: &mut [u8]) {
    let (src, dst) = (src.as_chunks::<N>().0, dst.as_chunks_mut::<N>().0);
    // Two sets of counts: neighbours are often equal, and incrementing the same count twice stalls.
    let (mut even, mut odd) = ([[0_u32; 256]; N], [[0_u32; 256]; N]);
    let (pairs, last) = src.as_chunks::<2>();
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
    let mut tables = [[0; 256]; N];
    for channel in 0..N {
        for (count, more) in even[channel].iter_mut().zip(&odd[channel]) {
            *count += more;
        }
        tables[channel] = equalizing(&even[channel]);
    }
    for (d, s) in dst.iter_mut().zip(src) {
        for channel in 0..N {
            d[channel] = tables[channel][usize::from(s[channel])];
        }
    }
}

fn equalize_any(src: &[u8], dst: &mut [u8], channels: usize) -> Result<()> {
    let mut counts = filled([0; 256], channels)?;
    for pixel in src.chunks_exact(channels) {
        for (counts, &x) in counts.iter_mut().zip(pixel) {
            counts[usize::from(x)] += 1;
        }
    }
    let tables: Vec<[u8; 256]> = collected(counts.iter().map(equalizing))?;
    for (dst, src) in dst.chunks_exact_mut(channels).zip(src.chunks_exact(channels)) {
        for ((d, &s), table) in dst.iter_mut().zip(src).zip(&tables) {
            *d = table[usize::from(s)];
        }
    }
    Ok(())
}

/// Maps each brightness to the share of pixels that are at most as bright, not counting the darkest
/// level. A plane of uniform brightness stays unchanged.
fn equalizing(counts: &Histogram) -> [u8; 256] {
    let total: u32 = counts.iter().sum();
    let darkest = counts.iter().position(|&count| count > 0).unwrap_or(0);
    if counts[darkest] == total {
        return std::array::from_fn(|x| x as u8);
    }
    let scale = 255.0 / (total - counts[darkest]) as f32;
    let mut sum = 0;
    let mut table = [0; 256];
    for x in darkest + 1..256 {
        sum += counts[x];
        // Rounds halves to even, as in DALI.
        table[x] = (sum as f32 * scale).round_ties_even() as u8;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_get_equal_steps() {
        let mut counts = [0; 256];
        counts[0] = 2;
        for x in [10, 20, 255] {
            counts[x] = 1;
        }
        let table = equalizing(&counts);
        assert_eq!([table[0], table[10], table[20], table[255]], [0, 85, 170, 255]);
    }
}
