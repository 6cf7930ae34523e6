//! Beta variates by rejection from the log-logistic distribution (Cheng, "Generating beta variates
//! with nonintegral shape parameters", 1978): algorithm BB if both parameters are above one,
//! otherwise BC.
//!
//! Several elements are tried at a time, and rejected ones are tried again together with others.
//! The result of an element depends only on its own attempts, not on which others it is tried with.

use crate::kernels::numeric::isa::Isa;
use crate::kernels::numeric::philox::{LANES, Stream, fraction};
use crate::kernels::numeric::portable::{exp, ln, ln_of_normal};

pub struct BetaShape {
    least: f64,
    most: f64,
    /// Whether `least` is the first parameter.
    ordered: bool,
    /// Whether both parameters are above one.
    above: bool,
    /// Cheng's constants: lambda and gamma if both are above one, otherwise k1 and k2.
    constants: [f64; 2],
}

/// An attempt: whether it is accepted, and the shares of the smaller and the larger parameter.
struct Attempt {
    accepted: bool,
    least: f64,
    most: f64,
}

/// Each attempt succeeds with a probability of at least a quarter.
const ATTEMPTS: u64 = 1000;
const LN_4: f64 = 2.0 * std::f64::consts::LN_2;

impl BetaShape {
    /// Both parameters must be positive, and finite in single precision.
    pub fn new(alpha: f64, beta: f64) -> BetaShape {
        let (least, most) = (alpha.min(beta), alpha.max(beta));
        let above = least > 1.0;
        let constants = if above {
            let sum = least + most;
            let lambda = ((sum - 2.0) / (2.0 * least * most - sum)).sqrt();
            [lambda, least + 1.0 / lambda]
        } else {
            let delta = 1.0 + most - least;
            [
                delta * (1.0 / 72.0 + least / 24.0) / (most / least - 7.0 / 9.0),
                0.25 + (0.5 + 0.25 / delta) * least,
            ]
        };
        BetaShape { least, most, ordered: alpha <= beta, above, constants }
    }

    /// Draws the elements from `first` on.
    pub fn fill(&self, isa: Isa, rng: &Stream, first: u64, out: &mut [f64]) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                #[target_feature(enable = "avx2")]
                unsafe fn run(shape: &BetaShape, rng: &Stream, first: u64, out: &mut [f64]) {
                    shape.fill_by_kind(rng, first, out);
                }
                // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
                unsafe { run(self, rng, first, out) }
            }
            _ => self.fill_by_kind(rng, first, out),
        }
    }

    #[inline(always)]
    fn fill_by_kind(&self, rng: &Stream, first: u64, out: &mut [f64]) {
        if self.above {
            self.fill_with::<true>(rng, first, out);
        } else {
            self.fill_with::<false>(rng, first, out);
        }
    }

    #[inline(always)]
    fn fill_with<const ABOVE: bool>(&self, rng: &Stream, first: u64, out: &mut [f64]) {
        const ROOM: usize = 64;
        let mut open: Vec<u64> = (first..first + out.len() as u64).collect();
        for number in 0..ATTEMPTS {
            let mut still_open = 0;
            for start in (0..open.len()).step_by(ROOM) {
                let count = ROOM.min(open.len() - start);
                let mut elements = [open[start]; ROOM];
                elements[..count].copy_from_slice(&open[start..start + count]);
                let padded = count.next_multiple_of(LANES);
                let (mut us, mut others) = ([0.5; ROOM], [0.5; ROOM]);
                let lanes = elements[..padded].as_chunks::<LANES>().0.iter();
                let rows = us.as_chunks_mut::<LANES>().0.iter_mut();
                let rows = rows.zip(others.as_chunks_mut::<LANES>().0);
                for (elements, (us, others)) in lanes.zip(rows) {
                    let [a, b, c, d] = rng.attempt(number, elements);
                    for lane in 0..LANES {
                        us[lane] = inner_fraction(a[lane], b[lane]);
                        others[lane] = inner_fraction(c[lane], d[lane]);
                    }
                }
                let (mut made, mut accepted) = ([0.0; ROOM], [0_u64; ROOM]);
                let drawn = us[..padded].iter().zip(&others);
                for ((&u, &other), (made, accepted)) in
                    drawn.zip(made.iter_mut().zip(&mut accepted))
                {
                    // Not a closure, which would be compiled for the baseline instruction set.
                    let tried = if ABOVE { self.above(u, other) } else { self.below(u, other) };
                    let ours = if self.ordered { tried.least } else { tried.most };
                    *made = ours / (tried.least + tried.most);
                    *accepted = u64::from(tried.accepted);
                }
                for lane in 0..count {
                    // If all attempts fail, the last one is used.
                    out[(elements[lane] - first) as usize] = made[lane];
                    // Never overtakes the entries that are still to be read.
                    open[still_open] = elements[lane];
                    still_open += usize::from(accepted[lane] == 0);
                }
            }
            open.truncate(still_open);
            if open.is_empty() {
                break;
            }
        }
    }

    #[inline(always)]
    fn above(&self, u: f64, other: f64) -> Attempt {
        let [lambda, gamma] = self.constants;
        let v = lambda * ln_of_normal(u / (1.0 - u));
        let w = at_most(self.least * exp(v), f64::MAX);
        let z = u * u * other;
        let r = gamma * v - LN_4;
        let sum = self.least + self.most;
        let accepted = r + sum * ln(sum / (self.most + w)) >= ln_of_normal(z);
        Attempt { accepted, least: w, most: self.most }
    }

    #[inline(always)]
    fn below(&self, u: f64, other: f64) -> Attempt {
        let [k1, k2] = self.constants;
        let y = u * other;
        let z = u * y;
        let upper = u >= 0.5;
        let hopeless = (!upper & (0.25 * other + z - y >= k1)) | (upper & (z >= k2));
        let v = ln_of_normal(u / (1.0 - u)) / self.least;
        let w = self.most * at_most(exp(v), f64::MAX / self.most.max(1.0));
        let sum = self.least + self.most;
        let good = (upper & (z <= 0.25))
            | (sum * (ln(sum / (self.least + w)) + v) - LN_4 >= ln_of_normal(z));
        Attempt { accepted: !hopeless & good, least: self.least, most: w }
    }
}

/// The smaller of the two; the bound if `x` is NaN.
#[inline(always)]
fn at_most(x: f64, bound: f64) -> f64 {
    if x < bound { x } else { bound }
}

/// A number in the open interval (0, 1), so that all logarithms are finite.
#[inline(always)]
fn inner_fraction(low: u32, high: u32) -> f64 {
    const HALF_UNIT: f64 = 0.5 / (1_u64 << 52) as f64;
    (fraction(low, high) * (1.0 - f64::EPSILON)) + HALF_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::numeric::philox::Position;

    fn stream() -> Stream {
        Position { seed: 7, sequence: 0, offset: 0, phase: 0 }.stream(0)
    }

    fn draw(isa: Isa, shape: &BetaShape, first: u64, count: usize) -> Vec<f64> {
        let mut made = vec![0.0; count];
        shape.fill(isa, &stream(), first, &mut made);
        made
    }

    #[test]
    fn inner_fractions_exclude_both_ends() {
        assert!(inner_fraction(0, 0) > 0.0);
        assert!(inner_fraction(u32::MAX, u32::MAX) < 1.0);
    }

    #[test]
    fn elements_do_not_depend_on_others_or_on_the_isa() {
        for (alpha, beta) in [(2.0, 5.0), (1.0, 1.0), (0.3, 0.2), (50.0, 1.5), (1e-3, 1e3)] {
            let shape = BetaShape::new(alpha, beta);
            let whole = draw(Isa::Scalar, &shape, 0, 100);
            for isa in Isa::available() {
                let same = |x: &f64, y: &f64| x.to_bits() == y.to_bits();
                assert!(draw(isa, &shape, 0, 100).iter().zip(&whole).all(|(x, y)| same(x, y)));
                let part = draw(isa, &shape, 13, 29);
                assert!(part.iter().zip(&whole[13..]).all(|(x, y)| same(x, y)), "{isa:?}");
            }
        }
    }

    #[test]
    fn extreme_parameters_stay_in_range() {
        for (alpha, beta) in [(1e-40, 1e-40), (1e38, 1e38), (1e-40, 1e38), (1e38, 2.0)] {
            let made = draw(Isa::Scalar, &BetaShape::new(alpha, beta), 0, 200);
            assert!(made.iter().all(|x| (0.0..=1.0).contains(x)), "{alpha}, {beta}: {made:?}");
        }
    }
}
