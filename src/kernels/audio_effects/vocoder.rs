//! The phase vocoder: makes a sound longer or shorter without changing its pitch.
//!
//! As in librosa: windows are centred, and there are zeros outside of the sound. A frequency's phase
//! advances from one window to the next by as much as it does in the input. Unit vectors are
//! multiplied instead of adding angles, which needs no trigonometry and is as exact for long sounds.

use realfft::num_complex::Complex;

use super::fourier::{Float, Transform};
use crate::kernels::Result;
use crate::kernels::numeric::isa::vectorized;
use crate::value::{filled, zeroed};

/// The length of windows, and by how much each begins after the one before.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    pub length: usize,
    pub step: usize,
}

/// The spectrum of one window: magnitudes, and directions as unit vectors.
struct Column {
    magnitude: Vec<f64>,
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Column {
    fn new(bins: usize) -> Result<Column> {
        Ok(Column { magnitude: zeroed(bins)?, re: filled(1.0, bins)?, im: zeroed(bins)? })
    }

    fn silent(&mut self) {
        self.magnitude.fill(0.0);
        self.re.fill(1.0);
        self.im.fill(0.0);
    }

    fn set<F: Float>(&mut self, spectrum: &[Complex<F>]) {
        let rows = self.magnitude.iter_mut().zip(self.re.iter_mut().zip(&mut self.im));
        vectorized!({
            for ((magnitude, (re, im)), bin) in rows.zip(spectrum) {
                let (x, y): (f64, f64) = (bin.re.convert(), bin.im.convert());
                let length = (x * x + y * y).sqrt();
                // What has no direction, silence and NaN, does not turn the phase: it would spoil
                // all that follows.
                let known = length > 0.0 && length < f64::INFINITY;
                *magnitude = length;
                *re = if known { x / length } else { 1.0 };
                *im = if known { y / length } else { 0.0 };
            }
        });
    }
}

/// Multiplies the unit vectors of `phase` with those of `to` divided by those of `from`.
fn turn(phase: &mut [Vec<f64>; 2], from: &Column, to: &Column) {
    let [re, im] = phase;
    let columns = from.re.iter().zip(&from.im).zip(to.re.iter().zip(&to.im));
    vectorized!({
        for ((re, im), ((&a, &b), (&c, &d))) in re.iter_mut().zip(im).zip(columns) {
            let (x, y) = (a * c + b * d, a * d - b * c);
            (*re, *im) = (*re * x - *im * y, *re * y + *im * x);
        }
    });
}

/// Reads windows of a sound.
struct Analysis<'a, F: Float> {
    signal: &'a [F],
    windows: Windows,
    transform: &'a Transform<F>,
    frame: Vec<F>,
    spectrum: Vec<Complex<F>>,
    scratch: Vec<Complex<F>>,
}

impl<F: Float> Analysis<'_, F> {
    fn count(&self) -> usize {
        1 + self.signal.len() / self.windows.step
    }

    fn read(&mut self, index: usize, column: &mut Column) -> Result<()> {
        if index >= self.count() {
            column.silent();
            return Ok(());
        }
        let Windows { length, step } = self.windows;
        let centre = index * step;
        // The window begins this many before the sound.
        let before = (length / 2).saturating_sub(centre).min(length);
        let start = (centre + before).saturating_sub(length / 2).min(self.signal.len());
        let inside = (length - before).min(self.signal.len() - start);
        let (frame, window) = (&mut self.frame, &self.transform.window);
        frame[..before].fill(F::zero());
        frame[before + inside..].fill(F::zero());
        let parts = self.signal[start..][..inside].iter().zip(&window[before..][..inside]);
        for (d, (&s, &w)) in frame[before..][..inside].iter_mut().zip(parts) {
            *d = s * w;
        }
        self.transform.forward(frame, &mut self.spectrum, &mut self.scratch)?;
        column.set(&self.spectrum);
        Ok(())
    }
}

/// Stretches a sound by 1 / `rate`, to fill `out`, which is cleared first.
pub fn stretch<F: Float>(signal: &[F], rate: f64, windows: Windows, out: &mut [F]) -> Result<()> {
    out.fill(F::zero());
    let Windows { length, step } = windows;
    let transform = Transform::<F>::of_length(length)?;
    let bins = transform.bins();
    let mut analysis = Analysis {
        signal,
        windows,
        transform: &transform,
        frame: zeroed(length)?,
        spectrum: filled(Complex::new(F::zero(), F::zero()), bins)?,
        scratch: transform.scratch(),
    };
    let (mut now, mut next) = (Column::new(bins)?, Column::new(bins)?);
    analysis.read(0, &mut now)?;
    analysis.read(1, &mut next)?;
    let mut phase = [now.re.clone(), now.im.clone()];
    let mut made = analysis.spectrum.clone();
    let mut frame: Vec<F> = zeroed(length)?;
    let mut weights: Vec<F> = zeroed(out.len())?;
    let (mut held, count) = (0, analysis.count());
    for number in 0.. {
        let place = number as f64 * rate;
        let centre = number * step;
        if place >= count as f64 || centre >= out.len() + length / 2 {
            break;
        }
        let index = place as usize;
        if index == held + 1 {
            std::mem::swap(&mut now, &mut next);
            analysis.read(index + 1, &mut next)?;
        } else if index != held {
            analysis.read(index, &mut now)?;
            analysis.read(index + 1, &mut next)?;
        }
        held = index;
        blend(&now, &next, place - index as f64, length, &phase, &mut made);
        turn(&mut phase, &now, &next);
        transform.inverse(&mut made, &mut frame, &mut analysis.scratch)?;
        let before = (length / 2).saturating_sub(centre);
        let start = (centre + before).saturating_sub(length / 2).min(out.len());
        let frame = frame.iter().zip(&transform.window).skip(before);
        vectorized!({
            let places = out[start..].iter_mut().zip(&mut weights[start..]);
            for ((d, weight), (&s, &w)) in places.zip(frame) {
                *d = *d + s * w;
                *weight = *weight + w * w;
            }
        });
    }
    for (d, &weight) in out.iter_mut().zip(&weights) {
        if weight > F::TINY {
            *d = *d / weight;
        }
    }
    Ok(())
}

/// The spectrum between two windows, with these directions. Divided by the length of windows, which
/// the inverse transform leaves out.
fn blend<F: Float>(
    now: &Column,
    next: &Column,
    part: f64,
    length: usize,
    [re, im]: &[Vec<f64>; 2],
    made: &mut [Complex<F>],
) {
    let share = 1.0 / length as f64;
    let magnitudes = now.magnitude.iter().zip(&next.magnitude);
    vectorized!({
        for ((bin, (&a, &b)), (&re, &im)) in made.iter_mut().zip(magnitudes).zip(re.iter().zip(im))
        {
            let magnitude = ((1.0 - part) * a + part * b) * share;
            *bin = Complex::new(F::of(magnitude * re), F::of(magnitude * im));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { length: 64, step: 16 };

    #[test]
    fn a_rate_of_one_gives_the_sound_back() {
        let signal: Vec<f64> = (0..500).map(|i| (i as f64 * 0.3).sin()).collect();
        let mut out = vec![7.0; 500];
        stretch(&signal, 1.0, WINDOWS, &mut out).unwrap();
        for (i, (a, b)) in signal.iter().zip(&out).enumerate() {
            assert!((a - b).abs() < 1e-12, "{i}: {a} {b}");
        }
    }

    #[test]
    fn any_length_and_rate_is_safe() {
        for samples in [0, 1, 2, 15, 16, 17, 63, 64, 65, 200] {
            for rate in [0.01, 0.5, 0.99, 1.7, 3.0, 100.0] {
                for (length, step) in [(64, 16), (4, 1), (5, 2), (7, 1)] {
                    let signal = vec![1.0_f32; samples];
                    let mut out = vec![0.0; (samples as f64 / rate) as usize + 1];
                    stretch(&signal, rate, Windows { length, step }, &mut out).unwrap();
                    assert!(out.iter().all(|x| x.is_finite()));
                }
            }
        }
    }
}
