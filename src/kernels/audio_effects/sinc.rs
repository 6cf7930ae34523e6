//! Resampling by any ratio with a windowed sinc, as in torchaudio: six zero crossings on each side
//! under a Hann window, cut off a little below the lower of the two Nyquist frequencies.

use std::f64::consts::PI;

use super::fourier::Float;
use crate::kernels::Result;
use crate::kernels::numeric::isa::vectorized;
use crate::value::with_room;

const CROSSINGS: f64 = 6.0;
const ROLLOFF: f64 = 0.99;

/// Below this, a sine is as good as its angle.
const SMALL: f64 = 1e-6;

/// Reads `signal` at multiples of `step`. There are zeros outside of it.
pub fn resample<F: Float>(signal: &[F], step: f64, out: &mut [F]) -> Result<()> {
    let cutoff = ROLLOFF * (1.0 / step).min(1.0);
    let reach = CROSSINGS / cutoff;
    // Sines of sums of angles: of where the filter begins, and of how far a tap is from there.
    let taps = 2 * reach.ceil() as usize + 2;
    let mut angles: Vec<[f64; 5]> = with_room(taps)?;
    angles.extend((0..taps).map(|tap| {
        let t = tap as f64 * cutoff;
        let ((sine, cosine), (slow_sine, slow_cosine)) =
            ((PI * t).sin_cos(), (PI * t / CROSSINGS).sin_cos());
        [t, sine, cosine, slow_sine, slow_cosine]
    }));
    for (index, out) in out.iter_mut().enumerate() {
        let place = index as f64 * step;
        let first = (place - reach).ceil().max(0.0);
        let end = ((place + reach).floor() + 1.0).max(0.0).min(signal.len() as f64) as usize;
        let start = (first as usize).min(end);
        let t0 = (first - place) * cutoff;
        let (sine, cosine) = (PI * t0).sin_cos();
        let (slow_sine, slow_cosine) = (PI * t0 / CROSSINGS).sin_cos();
        let mut sum = 0.0;
        vectorized!({
            for (&s, &[t, a, b, c, d]) in signal[start..end].iter().zip(&angles) {
                let t = t0 + t;
                let sinc = (sine * b + cosine * a) / (PI * t);
                let sinc = if t.abs() < SMALL { 1.0 } else { sinc };
                let window = 0.5 + 0.5 * (slow_cosine * d - slow_sine * c);
                let s: f64 = s.convert();
                sum += s * sinc * window;
            }
        });
        *out = F::of(sum * cutoff);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_wave_keeps_its_shape() {
        let wave = |x: f64| (x * 0.1).sin();
        let signal: Vec<f64> = (0..500).map(|i| wave(i as f64)).collect();
        for step in [0.5, 0.77, 1.0, 1.3, 2.0] {
            let mut out = vec![0.0; 200];
            resample(&signal, step, &mut out).unwrap();
            for (i, &x) in out.iter().enumerate().skip(30) {
                assert!((x - wave(i as f64 * step)).abs() < 0.01, "{step} {i}: {x}");
            }
        }
    }

    #[test]
    fn places_outside_are_silent_and_nothing_is_read_there() {
        for (signal, step) in [(&[][..], 1.0), (&[1.0][..], 0.1), (&[1.0, 2.0][..], 200.0)] {
            let mut out = vec![9.0_f64; 300];
            resample(signal, step, &mut out).unwrap();
            assert_eq!(out[299], 0.0);
        }
    }
}
