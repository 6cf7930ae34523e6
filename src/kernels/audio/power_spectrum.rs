//! The power spectrum along an axis.

use super::fft::{Power, Transform};
use super::problem::Audio;
use super::{Axis, axis_of, floats, resized};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, zeroed};

pub struct PowerSpectrum;

args! {
    pub struct PowerSpectrumArgs { axis: i64, nfft: Option<i64>, power: i64 }
}

pub struct Plan {
    axis: Axis,
    nfft: usize,
    power: Power,
}

impl Kernel for PowerSpectrum {
    type Args = PowerSpectrumArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: PowerSpectrumArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let axis = axis_of("axis", args.axis, inputs[0])?;
        let around = Axis::of(&inputs[0].shape, axis);
        let nfft = match args.nfft {
            None if around.len == 0 => return Err(unfit(0, Audio::EmptyAxis { axis })),
            None => around.len,
            Some(given) => usize::try_from(given).ok().filter(|&n| n > 0).ok_or_else(|| {
                argument("nfft", Argument::AtLeast { least: 1.0, given: given as f64 })
            })?,
        };
        let desc = resized(inputs[0], axis, nfft / 2 + 1, "nfft")?;
        Ok((Plan { axis: around, nfft, power: Power::of(args.power)? }, one(desc)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let data = floats(&inputs[0])?;
        let out = outputs[0].elements::<f32>();
        if out.is_empty() {
            return Ok(());
        }
        let Axis { len, inner, .. } = plan.axis;
        let mut transform = Transform::new(plan.nfft, plan.power)?;
        let bins = transform.bins();
        let taken = len.min(plan.nfft);
        if inner == 1 {
            for (index, row) in out.chunks_exact_mut(bins).enumerate() {
                let part = &data[index * len..][..taken];
                let write = |signal: &mut [f32]| {
                    signal[..taken].copy_from_slice(part);
                    signal[taken..].fill(0.0);
                };
                transform.run(write, row)?;
            }
            return Ok(());
        }
        let mut row: Vec<f32> = zeroed(bins)?;
        for (index, out) in out.chunks_exact_mut(bins * inner).enumerate() {
            let part = &data[index * len * inner..][..taken * inner];
            for column in 0..inner {
                let write = |signal: &mut [f32]| {
                    let (signal, rest) = signal.split_at_mut(taken);
                    for (s, x) in signal.iter_mut().zip(part.iter().skip(column).step_by(inner)) {
                        *s = *x;
                    }
                    rest.fill(0.0);
                };
                transform.run(write, &mut row)?;
                for (o, r) in out.iter_mut().skip(column).step_by(inner).zip(&row) {
                    *o = *r;
                }
            }
        }
        Ok(())
    }
}
