//! Analysis of sounds: resampling, spectra, mel filters, cepstra, decibels, silence.

mod columns;
mod decibels;
mod fft;
mod frames;
mod log_mel;
mod mel;
mod mfcc;
mod nonsilent;
mod power_spectrum;
mod preemphasis;
pub mod recent;
mod resample;
mod resample_kernel;
mod spectrogram;
mod transpose;

use std::borrow::Cow;

pub use self::resample::Resampler;
use super::{Entry, Family, Result};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::generic::cast::Number;
use crate::value::{DType, Desc, Sample, Shape, extent, zeroed};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Audio::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<resample_kernel::AudioResample>("audio_resample"),
    Entry::new::<spectrogram::Spectrogram>("spectrogram"),
    Entry::new::<power_spectrum::PowerSpectrum>("power_spectrum"),
    Entry::new::<mel::MelFilterBank>("mel_filter_bank"),
    Entry::new::<log_mel::LogMel>("log_mel"),
    Entry::new::<mfcc::Mfcc>("mfcc"),
    Entry::new::<decibels::ToDecibels>("to_decibels"),
    Entry::new::<preemphasis::PreemphasisFilter>("preemphasis_filter"),
    Entry::new::<nonsilent::NonsilentRegion>("nonsilent_region"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// What is wrong with a call of this family.
        pub enum Audio {
            Channels { shape: Vec<usize> },
            NoSamples,
            Short { samples: usize, least: usize, window: usize },
            FewSteps { samples: usize, least: usize },
            EmptyAxis { axis: usize },
            WindowNumbers { wanted: usize, given: usize },
            LongWindow { window: usize, nfft: usize },
            NothingToStretch { length: i64 },
            Ratio { given: f64 },
            ShortAxis { least: usize, given: usize },
            Frequencies { low: f64, high: f64, rate: f64 },
        }
    }
}

/// A sample's shape around one of its axes.
#[derive(Clone, Copy, Debug)]
struct Axis {
    outer: usize,
    /// The elements along the axis.
    len: usize,
    inner: usize,
}

impl Axis {
    fn of(shape: &[usize], axis: usize) -> Axis {
        Axis {
            outer: shape[..axis].iter().product(),
            len: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }
}

/// The axis that an argument names, which the definition has checked.
fn axis_of(name: &'static str, axis: i64, desc: &Desc) -> Result<usize> {
    let ndim = desc.ndim();
    match usize::try_from(axis).ok().filter(|&axis| axis < ndim) {
        Some(axis) => Ok(axis),
        None => Err(argument(name, Argument::AxisOutside { axis, ndim })),
    }
}

/// The description of float32 with another extent along one axis; `name` is the argument that asks
/// for it.
fn resized(desc: &Desc, axis: usize, len: usize, name: &'static str) -> Result<Desc> {
    let mut shape: Shape = desc.shape.clone();
    shape[axis] = len;
    match extent(&shape) {
        Some(_) => Ok(Desc { dtype: DType::F32, shape, ..desc.clone() }),
        None => Err(argument(name, Argument::TooLarge)),
    }
}

/// The elements of a contiguous sample as 32-bit floats.
fn floats(sample: &Sample) -> Result<Cow<'_, [f32]>> {
    if sample.desc.dtype == DType::F32 {
        return Ok(Cow::Borrowed(sample.elements()));
    }
    let mut made = zeroed(sample.desc.elements())?;
    f32::convert_row(sample, 0, &mut made);
    Ok(Cow::Owned(made))
}
