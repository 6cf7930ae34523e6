//! Cepstral coefficients: cosine transforms along an axis.

use std::f64::consts::PI;

use super::columns::{Map, map_columns};
use super::problem::Audio;
use super::recent::Recent;
use super::{Axis, axis_of, floats, resized};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, with_room};

pub struct Mfcc;

args! {
    pub struct MfccArgs { axis: i64, dct_type: i64, lifter: f64, n_mfcc: i64, normalize: bool }
}

pub struct Plan {
    axis: Axis,
    cosines: Settings,
}

/// What decides the coefficients.
#[derive(Clone, Copy, PartialEq)]
struct Settings {
    inputs: usize,
    outputs: usize,
    kind: i64,
    lifter: f64,
    normalize: bool,
}

impl Kernel for Mfcc {
    type Args = MfccArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: MfccArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let axis = axis_of("axis", args.axis, inputs[0])?;
        let around = Axis::of(&inputs[0].shape, axis);
        let wanted = usize::try_from(args.n_mfcc).ok().filter(|&n| n > 0).ok_or_else(|| {
            argument("n_mfcc", Argument::AtLeast { least: 1.0, given: args.n_mfcc as f64 })
        })?;
        if !(1..=4).contains(&args.dct_type) {
            let (low, high, given) = (1.0, 4.0, args.dct_type as f64);
            return Err(argument("dct_type", Argument::Between { low, high, given }));
        }
        if args.dct_type == 1 && around.len == 1 {
            return Err(unfit(0, Audio::ShortAxis { least: 2, given: 1 }));
        }
        let outputs = wanted.min(around.len);
        let cosines = Settings {
            inputs: around.len,
            outputs,
            kind: args.dct_type,
            lifter: args.lifter,
            normalize: args.normalize,
        };
        let desc = resized(inputs[0], axis, outputs, "n_mfcc")?;
        Ok((Plan { axis: around, cosines }, one(desc)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        thread_local! {
            static MATRICES: Recent<Settings, Cosines> = const { Recent::new() };
        }
        let data = floats(&inputs[0])?;
        let elements = plan.cosines.inputs.saturating_mul(plan.cosines.outputs);
        let cosines = MATRICES.with(|known| known.get(plan.cosines, elements, Cosines::new))?;
        map_columns(&*cosines, &data, plan.axis, outputs[0].elements())
    }
}

/// Rows that are computed at once.
const ROWS: usize = 4;

/// The matrix of a transform. Its rows are in groups of `ROWS`, the last one filled up with zeros;
/// the weights for an input lie side by side.
struct Cosines {
    outputs: usize,
    inputs: usize,
    weights: Vec<[f32; ROWS]>,
}

impl Cosines {
    fn new(settings: &Settings) -> Result<Cosines> {
        let &Settings { inputs, outputs, .. } = settings;
        let groups = outputs.div_ceil(ROWS);
        let mut weights = with_room(groups.saturating_mul(inputs))?;
        for first in (0..outputs).step_by(ROWS) {
            for input in 0..inputs {
                let mut row = [0.0; ROWS];
                for (weight, output) in row.iter_mut().zip(first..outputs) {
                    *weight = settings.weight(output, input) as f32;
                }
                weights.push(row);
            }
        }
        Ok(Cosines { outputs, inputs, weights })
    }
}

impl Settings {
    fn weight(&self, output: usize, input: usize) -> f64 {
        let (n, k, j) = (self.inputs as f64, output as f64, input as f64);
        let ends = input == 0 || input + 1 == self.inputs;
        let whole = (2.0 / n).sqrt();
        let half = (1.0 / n).sqrt();
        let (angle, plain, normal) = match self.kind {
            1 => (j * k / (n - 1.0), if ends { 0.5 } else { 1.0 }, 1.0),
            2 => ((j + 0.5) * k / n, 1.0, if output == 0 { half } else { whole }),
            3 if input == 0 => (0.0, 0.5, half),
            3 => (j * (k + 0.5) / n, 1.0, whole),
            _ => ((j + 0.5) * (k + 0.5) / n, 1.0, whole),
        };
        let lift = match self.lifter {
            0.0 => 1.0,
            lifter => 1.0 + 0.5 * lifter * (PI * (k + 1.0) / lifter).sin(),
        };
        (PI * angle).cos() * if self.normalize { normal } else { plain } * lift
    }
}

impl Map for Cosines {
    fn outputs(&self) -> usize {
        self.outputs
    }

    #[inline(always)]
    fn apply(&self, src: &[f32], dst: &mut [f32], width: usize) {
        let whole = width / WIDE * WIDE;
        for start in (0..whole).step_by(WIDE) {
            self.apply_to::<WIDE>(src, dst, start, width);
        }
        for start in whole..width {
            self.apply_to::<1>(src, dst, start, width);
        }
    }
}

/// Columns that are computed at once.
const WIDE: usize = 16;

impl Cosines {
    /// Maps `N` columns from `start` on.
    #[inline(always)]
    fn apply_to<const N: usize>(&self, src: &[f32], dst: &mut [f32], start: usize, width: usize) {
        for first in (0..self.outputs).step_by(ROWS) {
            let weights = &self.weights[first / ROWS * self.inputs..][..self.inputs];
            let mut sums = [[0.0_f32; N]; ROWS];
            for (weights, row) in weights.iter().zip(src.chunks_exact(width)) {
                let row: &[f32; N] = row[start..].first_chunk().unwrap_or(&[0.0; N]);
                for i in 0..ROWS {
                    for lane in 0..N {
                        sums[i][lane] += weights[i] * row[lane];
                    }
                }
            }
            for (sums, output) in sums.iter().zip(first..self.outputs) {
                dst[output * width + start..][..N].copy_from_slice(sums);
            }
        }
    }
}
