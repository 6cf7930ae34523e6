//! Mel filter banks.

use std::rc::Rc;

use super::columns::{Map, map_columns};
use super::frames::positive;
use super::problem::Audio;
use super::recent::Recent;
use super::{Axis, axis_of, floats, resized};
use crate::kernels::contract::problems::argument;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, append, with_room};

pub struct MelFilterBank;

args! {
    pub struct MelArgs {
        axis: i64,
        freq_high: f64,
        freq_low: f64,
        mel_formula: String,
        nfilter: i64,
        normalize: bool,
        sample_rate: f64,
    }
}

pub struct Plan {
    axis: Axis,
    bank: Bank,
}

/// What decides the filters.
#[derive(Clone, Copy, PartialEq)]
pub struct Bank {
    pub bins: usize,
    /// The length of the transforms, which decides the frequencies of bins.
    pub nfft: usize,
    pub filters: usize,
    pub low: f64,
    pub high: f64,
    pub rate: f64,
    pub htk: bool,
    pub normalize: bool,
}

impl Bank {
    pub fn check(&self) -> Result<()> {
        let Bank { low, high, rate, .. } = *self;
        if low >= 0.0 && low < high && high <= rate && rate.is_finite() {
            return Ok(());
        }
        Err(argument("freq_high", Audio::Frequencies { low, high, rate }))
    }
}

impl Kernel for MelFilterBank {
    type Args = MelArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: MelArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let axis = axis_of("axis", args.axis, inputs[0])?;
        let around = Axis::of(&inputs[0].shape, axis);
        let filters = positive("nfilter", args.nfilter)?;
        let (low, high, rate) = (args.freq_low, args.freq_high, args.sample_rate);
        let htk = args.mel_formula == "htk";
        let normalize = args.normalize;
        let (bins, nfft) = (around.len, even_nfft(around.len));
        let bank = Bank { bins, nfft, filters, low, high, rate, htk, normalize };
        bank.check()?;
        let desc = resized(inputs[0], axis, filters, "nfilter")?;
        Ok((Plan { axis: around, bank }, one(desc)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let data = floats(&inputs[0])?;
        let filters = Filters::cached(plan.bank)?;
        map_columns(&*filters, &data, plan.axis, outputs[0].elements())
    }
}

/// The length of transforms with this number of bins, if it is even: the last bin is half of the
/// sample rate.
pub fn even_nfft(bins: usize) -> usize {
    2 * bins.saturating_sub(1).max(1)
}

/// Triangles over the bins of a spectrum.
pub struct Filters {
    spans: Vec<Span>,
    /// The weights of all filters, one after the other.
    weights: Vec<f32>,
}

/// The bins that have a weight in a filter.
struct Span {
    start: usize,
    weights: std::ops::Range<usize>,
}

impl Filters {
    pub fn cached(bank: Bank) -> Result<Rc<Filters>> {
        thread_local! {
            static BANKS: Recent<Bank, Filters> = const { Recent::new() };
        }
        let elements = 2 * bank.bins + bank.filters;
        BANKS.with(|banks| banks.get(bank, elements, Filters::new))
    }

    fn new(bank: &Bank) -> Result<Filters> {
        let scale = if bank.htk { Scale::Htk } else { Scale::Slaney };
        let (low, high) = (scale.to_mel(bank.low), scale.to_mel(bank.high));
        let step = (high - low) / (bank.filters as f64 + 1.0);
        let edge = |index: usize| scale.to_hertz(low + step * index as f64);
        let per_bin = bank.rate / bank.nfft as f64;
        let mut made = Filters { spans: with_room(bank.filters)?, weights: Vec::new() };
        let mut row = with_room(bank.bins)?;
        for index in 0..bank.filters {
            let (left, center, right) = (edge(index), edge(index + 1), edge(index + 2));
            let gain = if bank.normalize { 2.0 / (right - left) } else { 1.0 };
            let start = ((left / per_bin).floor() as usize).min(bank.bins);
            let end = ((right / per_bin).ceil() as usize).saturating_add(1).min(bank.bins);
            row.clear();
            row.extend((start..end).map(|bin| {
                let hertz = bin as f64 * per_bin;
                let rise = (hertz - left) / (center - left);
                let fall = (right - hertz) / (right - center);
                (gain * rise.min(fall).max(0.0)) as f32
            }));
            let zeros = row.iter().take_while(|&&weight| weight == 0.0).count();
            let used = row.iter().rposition(|&weight| weight != 0.0).map_or(zeros, |at| at + 1);
            let first = made.weights.len();
            append(&mut made.weights, &row[zeros..used])?;
            let weights = first..made.weights.len();
            made.spans.push(Span { start: start + zeros, weights });
        }
        Ok(made)
    }
}

impl Map for Filters {
    fn outputs(&self) -> usize {
        self.spans.len()
    }

    #[inline(always)]
    fn apply(&self, src: &[f32], dst: &mut [f32], width: usize) {
        match width < 32 {
            true => self.apply_to::<16>(src, dst, width),
            false => self.apply_to::<32>(src, dst, width),
        }
    }
}

impl Filters {
    /// Maps all columns; `N` at a time are summed up in registers.
    #[inline(always)]
    fn apply_to<const N: usize>(&self, src: &[f32], dst: &mut [f32], width: usize) {
        for (span, out) in self.spans.iter().zip(dst.chunks_exact_mut(width)) {
            let weights = &self.weights[span.weights.clone()];
            let rows = &src[span.start * width..];
            let (blocks, rest) = out.as_chunks_mut::<N>();
            let done = width - rest.len();
            for (index, block) in blocks.iter_mut().enumerate() {
                let mut sums = [0.0; N];
                for (row, &weight) in rows.chunks_exact(width).zip(weights) {
                    let row = &row[index * N..][..N];
                    for i in 0..N {
                        sums[i] += weight * row[i];
                    }
                }
                *block = sums;
            }
            rest.fill(0.0);
            for (row, &weight) in rows.chunks_exact(width).zip(weights) {
                for (o, x) in rest.iter_mut().zip(&row[done..]) {
                    *o += weight * x;
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Scale {
    Slaney,
    Htk,
}

/// Up to this frequency, Slaney's scale is linear.
const BREAK_HERTZ: f64 = 1000.0;
const MEL_PER_HERTZ: f64 = 3.0 / 200.0;
const BREAK_MEL: f64 = BREAK_HERTZ * MEL_PER_HERTZ;

impl Scale {
    fn to_mel(self, hertz: f64) -> f64 {
        match self {
            Scale::Slaney if hertz < BREAK_HERTZ => hertz * MEL_PER_HERTZ,
            Scale::Slaney => BREAK_MEL + (hertz / BREAK_HERTZ).ln() / log_step(),
            Scale::Htk => 1127.0 * (hertz / 700.0).ln_1p(),
        }
    }

    fn to_hertz(self, mel: f64) -> f64 {
        match self {
            Scale::Slaney if mel < BREAK_MEL => mel / MEL_PER_HERTZ,
            Scale::Slaney => BREAK_HERTZ * ((mel - BREAK_MEL) * log_step()).exp(),
            Scale::Htk => 700.0 * (mel / 1127.0).exp_m1(),
        }
    }
}

/// Above 1 kHz, 27 mel are a factor of 6.4.
fn log_step() -> f64 {
    6.4_f64.ln() / 27.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_inverted() {
        for scale in [Scale::Slaney, Scale::Htk] {
            for hertz in [0.0, 10.0, 999.0, 1000.0, 1001.0, 8000.0, 22050.0] {
                assert!((scale.to_hertz(scale.to_mel(hertz)) - hertz).abs() < 1e-9 * (1.0 + hertz));
            }
        }
    }

    #[test]
    fn triangles_add_up_to_one_between_the_outer_centers() {
        let (bins, rate) = (257, 16000.0);
        let bank = Bank {
            bins,
            nfft: 512,
            filters: 20,
            low: 0.0,
            high: 8000.0,
            rate,
            htk: true,
            normalize: false,
        };
        let filters = Filters::new(&bank).unwrap();
        let mut sums = vec![0.0; bins];
        for span in &filters.spans {
            for (weight, bin) in filters.weights[span.weights.clone()].iter().zip(span.start..) {
                sums[bin] += weight;
            }
        }
        assert!(sums[10..200].iter().all(|sum| (sum - 1.0).abs() < 1e-5));
        assert_eq!(sums[0], 0.0);
    }
}
