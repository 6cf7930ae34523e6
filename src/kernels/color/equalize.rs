//! Histogram equalisation.

use crate::kernels::{Kernel, Result, Space};
use crate::value::{Cause, DType, Desc, Sample};

pub struct Equalize;

impl Kernel for Equalize {
    type Args = ();
    const SHAPED_BY_ARGS: bool = false;

    fn output((): &(), inputs: &[&Desc]) -> Result<Desc> {
        if inputs[0].dtype != DType::U8 {
            let problem = format!("must be of uint8, got {}", inputs[0].dtype.name());
            return Err(Cause::Input { index: 0, problem });
        }
        Ok(inputs[0].clone())
    }

    fn run((): &(), inputs: &[Sample], out: &mut Space) -> Result<()> {
        let desc = &inputs[0].desc;
        let extent = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        let channels = if desc.layout.letters().last() == Some(&b'C') { extent(b'C') } else { 1 };
        let plane = extent(b'H') * extent(b'W') * channels;
        if plane == 0 {
            return Ok(());
        }
        let (src, dst) = (inputs[0].elements::<u8>(), out.elements::<u8>());
        let mut tables = vec![[0_u8; 256]; channels];
        for (src, dst) in src.chunks_exact(plane).zip(dst.chunks_exact_mut(plane)) {
            for (table, counts) in tables.iter_mut().zip(histograms(src, channels)) {
                *table = equalizing(&counts);
            }
            if let [table] = &tables[..] {
                for (d, &s) in dst.iter_mut().zip(src) {
                    *d = table[usize::from(s)];
                }
            } else {
                for (dst, src) in dst.chunks_exact_mut(channels).zip(src.chunks_exact(channels)) {
                    for ((d, &s), table) in dst.iter_mut().zip(src).zip(&tables) {
                        *d = table[usize::from(s)];
                    }
                }
            }
        }
        Ok(())
    }
}

fn histograms(src: &[u8], channels: usize) -> Vec<[usize; 256]> {
    let mut counts = vec![[0; 256]; channels];
    for pixel in src.chunks_exact(channels) {
        for (counts, &x) in counts.iter_mut().zip(pixel) {
            counts[usize::from(x)] += 1;
        }
    }
    counts
}

/// The share of pixels that are at most as bright, from the darkest there is on; a plane of one
/// brightness stays as it is.
fn equalizing(counts: &[usize; 256]) -> [u8; 256] {
    let total: usize = counts.iter().sum();
    let darkest = counts.iter().position(|&count| count > 0).unwrap_or(0);
    if counts[darkest] == total {
        return std::array::from_fn(|x| x as u8);
    }
    let scale = 255.0 / (total - counts[darkest]) as f32;
    let mut sum = 0;
    let mut table = [0; 256];
    for x in darkest + 1..256 {
        sum += counts[x];
        // Halves to the even number, as the reference does it.
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
