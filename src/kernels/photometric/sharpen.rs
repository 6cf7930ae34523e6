//! Sharpness: blends an image with a slightly blurred version of itself.

use super::tone::Tone;
use super::{Stack, bytes};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample, with_element};

pub struct Sharpness;

args! {
    pub struct SharpnessArgs { sharpness_factor: f64 }
}

impl Kernel for Sharpness {
    type Args = SharpnessArgs;
    type Plan = f64;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: SharpnessArgs, inputs: &[&Desc]) -> Result<(f64, Outputs)> {
        let given = args.sharpness_factor;
        if !given.is_finite() {
            return Err(argument("sharpness_factor", Argument::NotFinite { given }));
        }
        if given < 0.0 {
            return Err(argument("sharpness_factor", Argument::Negative { given }));
        }
        Ok((given, one(inputs[0].clone())))
    }

    fn run(&factor: &f64, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (desc, out) = (&inputs[0].desc, &mut outputs[0]);
        let stack = Stack::of(desc);
        if desc.elements() == 0 {
            return Ok(());
        }
        if desc.dtype == DType::U8 {
            let src = inputs[0].elements::<u8>().chunks_exact(stack.elements());
            let dst = out.elements::<u8>().chunks_exact_mut(stack.elements());
            src.zip(dst).for_each(|(src, dst)| bytes::sharpen(src, dst, &stack, factor as f32));
            return Ok(());
        }
        with_element!(desc.dtype, |T| {
            let src = inputs[0].elements::<T>().chunks_exact(stack.elements());
            let dst = out.elements::<T>().chunks_exact_mut(stack.elements());
            for (src, dst) in src.zip(dst) {
                vectorized!(sharpen(src, dst, &stack, factor));
            }
        });
        Ok(())
    }
}

#[inline(always)]
fn sharpen<T: Tone>(src: &[T], dst: &mut [T], stack: &Stack, factor: f64) {
    let Stack { height, width, channels, .. } = *stack;
    dst.copy_from_slice(src);
    if height <= 2 || width <= 2 {
        return;
    }
    let row = width * channels;
    for y in 1..height - 1 {
        let [above, at, below] = [y - 1, y, y + 1].map(|y| &src[y * row..][..row]);
        let out = &mut dst[y * row..][channels..row - channels];
        for (i, d) in out.iter_mut().enumerate() {
            let three = |row: &[T]| {
                let [a, b, c] = [row[i], row[i + channels], row[i + 2 * channels]];
                a.convert() + b.convert() + c.convert()
            };
            let x: f64 = at[i + channels].convert();
            let blurred = (three(above) + three(at) + three(below) + 4.0 * x) / 13.0;
            let blurred = if T::WHOLE { blurred.round_ties_even() } else { blurred };
            *d = T::of(x + (1.0 - factor) * (blurred - x));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_generic_code() {
        let stack = Stack { height: 7, width: 21, channels: 3 };
        let src: Vec<u8> = (0..stack.elements()).map(|i| (i * i % 251) as u8).collect();
        let (mut expected, mut found) = (src.clone(), src.clone());
        for factor in [0.0, 0.37, 1.0, 1.9, 50.0] {
            sharpen(&src, &mut expected, &stack, factor);
            bytes::sharpen(&src, &mut found, &stack, factor as f32);
            let close = expected.iter().zip(&found).all(|(&a, &b)| a.abs_diff(b) <= 1);
            assert!(close, "{factor}");
        }
    }
}
