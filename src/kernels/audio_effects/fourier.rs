//! Fourier transforms of real signals: the only module here that knows the library for them.

use std::rc::Rc;
use std::sync::Arc;
use std::thread::LocalKey;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, FftNum, RealFftPlanner, RealToComplex};

use crate::kernels::Result;
use crate::kernels::audio::recent::Recent;
use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::portable::sin_cos_of_turn;
use crate::value::Cause;

/// Transforms that each thread keeps: making one takes as long as using it a few times.
type Transforms<F> = Recent<usize, Transform<F>>;

/// A float that sounds are computed in.
pub trait Float: FftNum + PartialOrd + Number + Convert<f64> {
    /// Below this, a number is as good as zero.
    const TINY: Self;
    fn of(x: f64) -> Self;
    fn transforms() -> &'static LocalKey<Transforms<Self>>;
}

macro_rules! floats {
    ($($float:ty)*) => {
        $(
            impl Float for $float {
                const TINY: $float = <$float>::MIN_POSITIVE;

                #[inline(always)]
                fn of(x: f64) -> $float {
                    x as $float
                }

                fn transforms() -> &'static LocalKey<Transforms<$float>> {
                    thread_local! {
                        static KEPT: Transforms<$float> = const { Recent::new() };
                    }
                    &KEPT
                }
            }
        )*
    };
}
floats!(f32 f64);

/// The transform of windows of one length, and back.
pub struct Transform<F> {
    /// The periodic Hann window.
    pub window: Vec<F>,
    forward: Arc<dyn RealToComplex<F>>,
    inverse: Arc<dyn ComplexToReal<F>>,
}

impl<F: Float> Transform<F> {
    pub fn of_length(length: usize) -> Result<Rc<Transform<F>>> {
        F::transforms().with(|kept| kept.get(length, length, |&length| Ok(Transform::new(length))))
    }

    fn new(length: usize) -> Transform<F> {
        let hann = |i: usize| F::of(0.5 - 0.5 * sin_cos_of_turn(i as f64 / length as f64).1);
        let mut planner = RealFftPlanner::new();
        Transform {
            window: (0..length).map(hann).collect(),
            forward: planner.plan_fft_forward(length),
            inverse: planner.plan_fft_inverse(length),
        }
    }

    /// The number of frequencies.
    pub fn bins(&self) -> usize {
        self.window.len() / 2 + 1
    }

    /// Room that transforms need.
    pub fn scratch(&self) -> Vec<Complex<F>> {
        self.forward.make_scratch_vec().into_iter().chain(self.inverse.make_scratch_vec()).collect()
    }

    /// Overwrites the signal.
    pub fn forward(
        &self,
        signal: &mut [F],
        spectrum: &mut [Complex<F>],
        scratch: &mut [Complex<F>],
    ) -> Result<()> {
        self.forward.process_with_scratch(signal, spectrum, scratch).map_err(internal)
    }

    /// Without the factor of 1 / length. Overwrites the spectrum.
    pub fn inverse(
        &self,
        spectrum: &mut [Complex<F>],
        signal: &mut [F],
        scratch: &mut [Complex<F>],
    ) -> Result<()> {
        // The first is real, and so is the last if the length is even; rounding may say otherwise.
        spectrum[0].im = F::zero();
        if self.window.len().is_multiple_of(2)
            && let Some(last) = spectrum.last_mut()
        {
            last.im = F::zero();
        }
        self.inverse.process_with_scratch(spectrum, signal, scratch).map_err(internal)
    }
}

fn internal(error: impl std::fmt::Display) -> Cause {
    Cause::Internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_and_forth_is_the_signal() {
        for length in [4, 5, 400, 1021, 2048] {
            let transform = Transform::<f64>::of_length(length).unwrap();
            let signal: Vec<f64> = (0..length).map(|i| (i * i % 7) as f64).collect();
            let (mut copy, mut back) = (signal.clone(), vec![0.0; length]);
            let mut spectrum = vec![Complex::default(); transform.bins()];
            let mut scratch = transform.scratch();
            transform.forward(&mut copy, &mut spectrum, &mut scratch).unwrap();
            assert!((spectrum[0].re - signal.iter().sum::<f64>()).abs() < 1e-9);
            transform.inverse(&mut spectrum, &mut back, &mut scratch).unwrap();
            for (a, b) in signal.iter().zip(&back) {
                assert!((a - b / length as f64).abs() < 1e-12);
            }
        }
    }
}
