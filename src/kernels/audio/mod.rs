//! Sound.

mod resample;

pub use resample::Resampler;
