//! Decibels.

use super::floats;
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Sample};

pub struct ToDecibels;

args! {
    pub struct DecibelsArgs { cutoff_db: f64, multiplier: f64, reference: Option<f64> }
}

impl Kernel for ToDecibels {
    type Args = DecibelsArgs;
    type Plan = DecibelsArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: DecibelsArgs, inputs: &[&Desc]) -> Result<(DecibelsArgs, Outputs)> {
        for (name, given) in [("cutoff_db", args.cutoff_db), ("multiplier", args.multiplier)] {
            if given.is_nan() {
                return Err(argument(name, Argument::NotFinite { given }));
            }
        }
        Ok((args, one(Desc { dtype: DType::F32, ..inputs[0].clone() })))
    }

    fn run(args: &DecibelsArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let data = floats(&inputs[0])?;
        let reference = args.reference.map_or_else(|| largest(&data), |given| given as f32);
        let scale = Scale::new(args.multiplier, args.cutoff_db);
        outputs[0].write(|start, piece: &mut [f32]| {
            let part = &data[start..start + piece.len()];
            vectorized!(copying scale, reference; {
                for (d, &x) in piece.iter_mut().zip(part) {
                    *d = scale.of(x / reference);
                }
            });
            Ok(())
        })
    }
}

/// The largest number, without regard to NaN; at least zero.
pub fn largest(data: &[f32]) -> f32 {
    const LANES: usize = 32;
    vectorized!({
        let mut most = [0.0; LANES];
        let (chunks, rest) = data.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                most[lane] = if chunk[lane] > most[lane] { chunk[lane] } else { most[lane] };
            }
        }
        most.iter().chain(rest).fold(0.0, |a: f32, &b| a.max(b))
    })
}

/// `multiplier * log10(x)`, but at least `cutoff`.
#[derive(Clone, Copy)]
pub struct Scale {
    /// The smallest number that isn't cut off.
    least: f32,
    cutoff: f32,
    /// What an octave is, as a sum: products of `octave` and small integers are exact.
    octave: f32,
    octave_rest: f32,
    slope: f32,
}

impl Scale {
    pub fn new(multiplier: f64, cutoff: f64) -> Scale {
        let octave = multiplier * std::f64::consts::LOG10_2;
        // Twelve bits of the mantissa: an exponent has eight.
        let coarse = f32::from_bits((octave as f32).to_bits() & !0xfff);
        Scale {
            least: (10_f64.powf(cutoff / multiplier) as f32).max(f32::MIN_POSITIVE),
            cutoff: if multiplier == 0.0 { 0.0 } else { cutoff as f32 },
            octave: coarse,
            octave_rest: (octave - f64::from(coarse)) as f32,
            slope: octave as f32,
        }
    }

    /// Loops over this vectorise.
    #[inline(always)]
    pub fn of(self, x: f32) -> f32 {
        // The exponent is chosen such that the mantissa is between sqrt(1/2) and sqrt(2).
        const HALF_OCTAVE: u32 = 0x3f35_04f3;
        let bits = x.to_bits();
        let exponent = (bits.wrapping_sub(HALF_OCTAVE) as i32) >> 23;
        let mantissa = f32::from_bits(bits.wrapping_sub((exponent << 23) as u32));
        let exponent = exponent as f32;
        let octaves = self.slope * log2_near_one(mantissa - 1.0) + exponent * self.octave_rest;
        let made = exponent * self.octave + octaves;
        let made = if x > f32::MAX { self.slope * x } else { made };
        // NaN is cut off, too.
        if x > self.least { made } else { self.cutoff }
    }
}

/// log2(1 + t) for t from sqrt(1/2) - 1 to sqrt(2) - 1, accurate to 1e-7 of its value.
#[inline(always)]
fn log2_near_one(t: f32) -> f32 {
    // A polynomial through Chebyshev nodes; its own error is 1.4e-8.
    const TERMS: [f32; 8] = [
        -0.207_421_04,
        0.215_669_86,
        -0.238_920_34,
        0.287_918_32,
        -0.360_704_83,
        0.480_910_6,
        -0.721_347_33,
        std::f32::consts::LOG2_E,
    ];
    let mut sum = 0.126_148_47;
    for term in TERMS {
        sum = sum * t + term;
    }
    sum * t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_are_accurate() {
        for (multiplier, cutoff) in [(10.0, -200.0), (20.0, -80.0), (4.3, -1000.0)] {
            let scale = Scale::new(multiplier, cutoff);
            for bits in (1..0x7f80_0000_u32).step_by(9973) {
                let x = f32::from_bits(bits);
                let exact = (multiplier * f64::from(x).log10()).max(cutoff);
                let found = f64::from(scale.of(x));
                if x > f32::MIN_POSITIVE {
                    // Two ulps, of the largest number near one.
                    let allowed = 2.4e-7 * exact.abs().max(0.1 * multiplier);
                    assert!((found - exact).abs() <= allowed, "{x:e}: {found}, {exact}");
                } else {
                    assert_eq!(found, cutoff);
                }
            }
            assert_eq!(scale.of(f32::INFINITY), f32::INFINITY);
            for x in [0.0, -0.0, -1.0, f32::NAN, f32::NEG_INFINITY] {
                assert_eq!(scale.of(x), cutoff as f32);
            }
        }
    }

    #[test]
    fn the_largest_is_found_anywhere() {
        let mut data = vec![-3.0; 1003];
        data[7] = f32::NAN;
        assert_eq!(largest(&data), 0.0);
        for at in [1, 500, 1002] {
            data[at] = at as f32;
            assert_eq!(largest(&data), at as f32);
        }
        assert_eq!(largest(&[]), 0.0);
    }
}
