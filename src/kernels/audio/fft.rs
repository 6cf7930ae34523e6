//! Power spectra of real signals.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use super::recent::Recent;
use crate::kernels::Result;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::numeric::isa::vectorized;
use crate::value::{Cause, filled, is_available, zeroed};

type Plan = Arc<dyn RealToComplex<f32>>;

/// Making a plan takes longer than a short transform.
fn plan(len: usize) -> Result<Plan> {
    thread_local! {
        static PLANS: Recent<usize, Plan> = const { Recent::new() };
    }
    PLANS.with(|plans| {
        let made = plans.get(len, len, |&len| {
            // The library aborts the process if it runs out of memory. A prime length takes the
            // most: tables for two transforms of at least twice the length, and scratch space.
            let bytes = len.saturating_mul(128);
            if bytes > 1 << 20 && !is_available(bytes) {
                return Err(Cause::Memory { bytes });
            }
            Ok(RealFftPlanner::new().plan_fft_forward(len))
        })?;
        Ok(Arc::clone(&made))
    })
}

/// What is made of the complex numbers of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Power {
    Magnitude,
    Square,
}

impl Power {
    /// From the argument `power`.
    pub fn of(power: i64) -> Result<Power> {
        match power {
            1 => Ok(Power::Magnitude),
            2 => Ok(Power::Square),
            _ => {
                let problem = Argument::OneOf { choices: "1 and 2", given: power.to_string() };
                Err(argument("power", problem))
            }
        }
    }
}

/// A transform of one length, with the memory that it works in.
pub struct Transform {
    plan: Plan,
    signal: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    power: Power,
}

impl Transform {
    /// `len` is not zero.
    pub fn new(len: usize, power: Power) -> Result<Transform> {
        let plan = plan(len)?;
        let zero = Complex::default();
        let scratch = filled(zero, plan.get_scratch_len())?;
        let spectrum = filled(zero, len / 2 + 1)?;
        Ok(Transform { plan, signal: zeroed(len)?, spectrum, scratch, power })
    }

    pub fn bins(&self) -> usize {
        self.spectrum.len()
    }

    /// Calls `write` to write the signal, all of it, and writes its power spectrum to `row`.
    pub fn run(&mut self, write: impl FnOnce(&mut [f32]), row: &mut [f32]) -> Result<()> {
        let Transform { plan, signal, spectrum, scratch, power } = self;
        write(signal);
        plan.process_with_scratch(signal, spectrum, scratch)
            .map_err(|error| Cause::Internal(error.to_string()))?;
        let square = *power == Power::Square;
        let spectrum = &spectrum[..];
        vectorized!({
            for (r, z) in row.iter_mut().zip(spectrum) {
                *r = z.re * z.re + z.im * z.im;
            }
            if !square {
                row.iter_mut().for_each(|r| *r = r.sqrt());
            }
        });
        Ok(())
    }
}
