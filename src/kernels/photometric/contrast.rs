//! Autocontrast: stretches each channel to the full range.

use super::tone::Tone;
use super::{Stack, bytes};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, one};
use crate::value::{DType, Desc, Sample, collected, filled, with_element};

pub struct Autocontrast;

impl Kernel for Autocontrast {
    type Args = ();
    type Plan = ();
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan((): (), inputs: &[&Desc]) -> Result<((), Outputs)> {
        Ok(((), one(inputs[0].clone())))
    }

    fn run((): &(), inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (desc, out) = (&inputs[0].desc, &mut outputs[0]);
        let stack = Stack::of(desc);
        if desc.dtype == DType::U8 {
            let (src, dst) = (inputs[0].elements::<u8>(), out.elements::<u8>());
            return images(src, dst, &stack, |src, dst, channels| {
                let ends = ends(src, channels)?;
                let tables = collected(ends.iter().map(|&[low, high]| bytes::stretch(low, high)))?;
                bytes::look_up(src, dst, &tables);
                Ok(())
            });
        }
        with_element!(desc.dtype, |T| {
            let (src, dst) = (inputs[0].elements::<T>(), out.elements::<T>());
            images(src, dst, &stack, stretch)
        })
    }
}

/// Calls `work` for each image of a stack.
fn images<T>(
    src: &[T],
    dst: &mut [T],
    stack: &Stack,
    work: impl Fn(&[T], &mut [T], usize) -> Result<()>,
) -> Result<()> {
    if src.is_empty() {
        return Ok(());
    }
    let mut pairs = src.chunks_exact(stack.elements()).zip(dst.chunks_exact_mut(stack.elements()));
    pairs.try_for_each(|(src, dst)| work(src, dst, stack.channels))
}

/// Elements per step, enough for the loop to vectorize.
const LANES: usize = 32;

/// Minimum and maximum of each channel of a non-empty image.
pub fn ends<T: Tone>(src: &[T], channels: usize) -> Result<Vec<[T; 2]>> {
    let lanes = channels * LANES;
    let first = src.iter().copied().take(channels);
    let (mut low, mut high): (Vec<T>, Vec<T>) = (filled(T::default(), lanes)?, Vec::new());
    for pixel in low.chunks_exact_mut(channels) {
        pixel.iter_mut().zip(first.clone()).for_each(|(x, first)| *x = first);
    }
    crate::value::append(&mut high, &low)?;
    vectorized!({
        for part in src.chunks(lanes) {
            for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(part) {
                *low = if x.is_below(*low) { x } else { *low };
                *high = if high.is_below(x) { x } else { *high };
            }
        }
    });
    collected((0..channels).map(|channel| {
        let own = (channel..lanes).step_by(channels);
        let lower = |a: T, at: usize| if low[at].is_below(a) { low[at] } else { a };
        let higher = |a: T, at: usize| if a.is_below(high[at]) { high[at] } else { a };
        [own.clone().fold(low[channel], lower), own.fold(high[channel], higher)]
    }))
}

fn stretch<T: Tone>(src: &[T], dst: &mut [T], channels: usize) -> Result<()> {
    let ends = ends(src, channels)?;
    let scales: Vec<[f64; 2]> = collected(ends.iter().map(|&[low, high]| {
        let (low, high) = (low.convert(), high.convert());
        if high > low { [low, (high - low) / T::WHITE] } else { [0.0, 1.0] }
    }))?;
    vectorized!({
        for (dst, src) in dst.chunks_exact_mut(channels).zip(src.chunks_exact(channels)) {
            for ((d, &s), [low, scale]) in dst.iter_mut().zip(src).zip(&scales) {
                *d = T::of((s.convert() - low) / scale);
            }
        }
    });
    Ok(())
}
