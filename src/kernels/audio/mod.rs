//! Audio.

mod resample;

pub use resample::Resampler;
