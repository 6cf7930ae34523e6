//! Mel filter banks.

use std::rc::Rc;

use super::columns::{Map, map_columns};
use super::frames::positive;
use super::problem::Audio;
use super::recent::Recent;
use super::transpose::transpose;
use super::{Axis, axis_of, floats, resized};
use crate::kernels::contract::problems::argument;
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample, with_room, zeroed};

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
        let out = outputs[0].elements();
        if plan.axis.inner == 1 {
            return filters.map_rows(&data, out);
        }
        map_columns(&*filters, &data, plan.axis, out)
    }
}

/// The length of transforms with this number of bins, if it is even: the last bin is half of the
/// sample rate.
pub fn even_nfft(bins: usize) -> usize {
    2 * bins.saturating_sub(1).max(1)
}

/// Triangles over the bins of a spectrum, each beginning at the center of the one before: between
/// two centers, bins belong to a filter that falls and to the next one, which rises.
pub struct Filters {
    /// The bins between neighboring edges: where the first filter rises, where it falls and the
    /// second rises, and so on.
    stretches: Vec<std::ops::Range<usize>>,
    /// The weights of each bin, in the falling filter and in the rising one.
    weights: Vec<[f32; 2]>,
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
        let gain = |filter: usize| match bank.normalize {
            true => 2.0 / (edge(filter + 2) - edge(filter)),
            false => 1.0,
        };
        let mut stretches = with_room(bank.filters + 1)?;
        let mut weights: Vec<[f32; 2]> = with_room(bank.bins)?;
        weights.resize(bank.bins, [0.0; 2]);
        // A bin on an edge is one where the filter that begins there has no weight yet.
        let first_above = |hertz: f64| ((hertz / per_bin).floor() as usize + 1).min(bank.bins);
        for index in 0..=bank.filters {
            let (left, right) = (edge(index), edge(index + 1));
            let bins = first_above(left)..first_above(right);
            for bin in bins.clone() {
                let hertz = bin as f64 * per_bin;
                // Never negative: edges are rounded.
                let part = ((hertz - left) / (right - left)).clamp(0.0, 1.0);
                if index > 0 {
                    weights[bin][0] = (gain(index - 1) * (1.0 - part)) as f32;
                }
                if index < bank.filters {
                    weights[bin][1] = (gain(index) * part) as f32;
                }
            }
            stretches.push(bins);
        }
        Ok(Filters { stretches, weights })
    }

    /// Maps spectra that lie one after the other. They are transposed a few bins at a time and
    /// summed up right away, so the copy never leaves the registers for long.
    fn map_rows(&self, src: &[f32], dst: &mut [f32]) -> Result<()> {
        let (bins, filters) = (self.weights.len(), self.outputs());
        if bins == 0 {
            dst.fill(0.0);
            return Ok(());
        }
        let mut bands: Vec<f32> = zeroed(filters * LANES)?;
        for (src, dst) in src.chunks(LANES * bins).zip(dst.chunks_mut(LANES * filters)) {
            let rows = src.len() / bins;
            let mut tile = [0.0; TILE * LANES];
            let mut tiled = usize::MAX;
            let spectra = |bin: usize| {
                if tiled != bin / TILE {
                    tiled = bin / TILE;
                    let first = tiled * TILE;
                    let size = [rows, TILE.min(bins - first)];
                    transpose(&src[first..], bins, size, &mut tile, LANES);
                }
                tile.as_chunks::<LANES>().0[bin % TILE]
            };
            let all = bands.as_chunks_mut::<LANES>().0;
            vectorized!(self.sum(spectra, |filter, sums| all[filter] = sums));
            transpose(&bands, LANES, [filters, rows], dst, filters);
        }
        Ok(())
    }

    /// Calls `write` with each filter and its sums over some spectra, of which `spectra` tells the
    /// values of a bin; bins are asked for in order.
    #[inline(always)]
    fn sum<const N: usize>(
        &self,
        mut spectra: impl FnMut(usize) -> [f32; N],
        mut write: impl FnMut(usize, [f32; N]),
    ) {
        let (mut falling, mut rising) = ([0.0; N], [0.0; N]);
        for (index, bins) in self.stretches.iter().enumerate() {
            for bin in bins.clone() {
                let (values, [falls, rises]) = (spectra(bin), self.weights[bin]);
                for i in 0..N {
                    falling[i] += falls * values[i];
                    rising[i] += rises * values[i];
                }
            }
            if index > 0 {
                write(index - 1, falling);
            }
            (falling, rising) = (rising, [0.0; N]);
        }
    }

    /// Maps the columns of a matrix, `N` at a time from `first` on, and returns where it stopped.
    #[inline(always)]
    fn map_columns<const N: usize>(
        &self,
        src: &[f32],
        dst: &mut [f32],
        width: usize,
        mut first: usize,
    ) -> usize {
        while first + N <= width {
            let spectra = |bin: usize| {
                let row = &src[bin * width + first..][..N];
                std::array::from_fn(|i| row[i])
            };
            let write = |filter: usize, sums: [f32; N]| {
                dst[filter * width + first..][..N].copy_from_slice(&sums);
            };
            self.sum(spectra, write);
            first += N;
        }
        first
    }
}

impl Map for Filters {
    fn outputs(&self) -> usize {
        self.stretches.len() - 1
    }

    #[inline(always)]
    fn apply(&self, src: &[f32], dst: &mut [f32], width: usize) {
        let done = self.map_columns::<LANES>(src, dst, width, 0);
        let done = self.map_columns::<4>(src, dst, width, done);
        self.map_columns::<1>(src, dst, width, done);
    }
}

/// Spectra that are summed up at a time, in registers.
const LANES: usize = 16;
/// Bins that are transposed at a time.
const TILE: usize = 8;

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
        for (sum, weights) in sums.iter_mut().zip(&filters.weights) {
            *sum = weights.iter().sum::<f32>();
        }
        assert!(sums[10..200].iter().all(|sum| (sum - 1.0).abs() < 1e-5));
        assert_eq!(sums[0], 0.0);
    }
}
