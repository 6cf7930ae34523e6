//! The windows of a signal that spectra are computed of.

use std::rc::Rc;

use super::problem::Audio;
use super::recent::Recent;
use crate::kernels::Result;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::isa::vectorized;
use crate::value::{Desc, collected};

/// Where windows are.
pub struct Frames {
    pub count: usize,
    pub step: usize,
    /// How far the first window starts before the signal.
    pub lead: usize,
    /// Whether the signal is mirrored at its ends; else there are zeros around it.
    pub reflect: bool,
}

pub enum Window {
    Hann(usize, Hann),
    Given(Vec<f64>),
}

/// Hann windows differ in where they are zero.
#[derive(Clone, Copy, PartialEq)]
pub enum Hann {
    /// Half a sample before the first and after the last one: sin^2(pi (i + 1/2) / n).
    HalfSample,
    /// At the first sample, and at the one after the last.
    Periodic,
    /// At the first and at the last sample.
    Symmetric,
}

impl Hann {
    fn weight(self, i: usize, len: usize) -> f64 {
        let (i, len) = (i as f64, len as f64);
        let turns = match self {
            Hann::HalfSample => (i + 0.5) / len,
            Hann::Periodic => i / len,
            Hann::Symmetric => i / (len - 1.0),
        };
        (std::f64::consts::PI * turns).sin().powi(2)
    }
}

impl Window {
    fn weights(&self) -> Result<Vec<f32>> {
        match *self {
            Window::Hann(1, _) => collected([1.0].into_iter()),
            Window::Hann(len, shape) => collected((0..len).map(|i| shape.weight(i, len) as f32)),
            Window::Given(ref numbers) => collected(numbers.iter().map(|&x| x as f32)),
        }
    }

    /// Windows that aren't given are the same in most calls.
    pub fn cached(&self) -> Result<Rc<Vec<f32>>> {
        thread_local! {
            static WINDOWS: Recent<(usize, Hann), Vec<f32>> = const { Recent::new() };
        }
        match *self {
            Window::Hann(len, shape) => {
                WINDOWS.with(|windows| windows.get((len, shape), len, |_| self.weights()))
            }
            Window::Given(_) => self.weights().map(Rc::new),
        }
    }
}

/// The number of samples of a signal with a single channel.
pub fn mono(desc: &Desc) -> Result<usize> {
    match desc.shape[..] {
        [n] | [n, 1] | [1, n] => Ok(n),
        _ => Err(unfit(0, Audio::Channels { shape: desc.shape.to_vec() })),
    }
}

/// An argument that must be positive.
pub fn positive(name: &'static str, given: i64) -> Result<usize> {
    usize::try_from(given)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| argument(name, Argument::AtLeast { least: 1.0, given: given as f64 }))
}

impl Frames {
    /// Writes a window of the signal, and zeros after it.
    pub fn read(&self, index: usize, signal: &[f32], window: &[f32], dst: &mut [f32]) {
        let (dst, rest) = dst.split_at_mut(window.len());
        rest.fill(0.0);
        let start = index * self.step;
        let inside = start.checked_sub(self.lead).and_then(|start| signal.get(start..));
        if let Some(part) = inside.and_then(|part| part.get(..window.len())) {
            vectorized!({
                for ((d, s), w) in dst.iter_mut().zip(part).zip(window) {
                    *d = s * w;
                }
            });
            return;
        }
        let start = start as isize - self.lead as isize;
        for ((d, w), at) in dst.iter_mut().zip(window).zip(start..) {
            let at = if self.reflect { mirrored(at, signal.len()) } else { at as usize };
            *d = signal.get(at).map_or(0.0, |s| s * w);
        }
    }
}

/// The place inside of `0..n` that a place is mirrored to; the ends are not repeated.
fn mirrored(at: isize, n: usize) -> usize {
    let period = 2 * (n as isize - 1);
    if period <= 0 {
        return 0;
    }
    let at = at.rem_euclid(period);
    at.min(period - at) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_do_not_repeat_the_ends() {
        let found: Vec<usize> = (-7..8).map(|at| mirrored(at, 3)).collect();
        assert_eq!(found, [1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        assert_eq!([-5, 0, 9].map(|at| mirrored(at, 1)), [0, 0, 0]);
    }
}
