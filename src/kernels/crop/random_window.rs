//! Random windows of images, by area and aspect ratio.

use crate::codecs::Window;
use crate::kernels::Result;
use crate::kernels::contract::problems::argument;
use crate::kernels::crop::problem;
use crate::kernels::numeric::philox::{Stream, below, fraction};
use crate::kernels::numeric::portable::{exp, ln};

/// The windows to draw from.
pub struct RandomWindow {
    area: [f64; 2],
    ratio: [f64; 2],
    attempts: i64,
}

/// More attempts than this are pointless.
const MOST_ATTEMPTS: i64 = 10_000;

impl RandomWindow {
    pub fn new(area: &[f64], ratio: &[f64], attempts: i64) -> Result<RandomWindow> {
        let area = range("random_area", area)?;
        // Any ratio above zero has a logarithm.
        let ratio = range("random_aspect_ratio", ratio)?.map(|r| r.max(f64::MIN_POSITIVE));
        Ok(RandomWindow { area, ratio, attempts: attempts.min(MOST_ATTEMPTS) })
    }

    /// Draws a window whose relative area and aspect ratio are in their ranges; if no attempt fits
    /// into the image, the largest window with a valid ratio. A ratio is as likely as its inverse.
    /// The window of an image without pixels is empty.
    pub fn draw(&self, rng: &Stream, height: usize, width: usize) -> Window {
        if height == 0 || width == 0 {
            return Window { y: 0, x: 0, height: 0, width: 0 };
        }
        let mut source = rng.source(0);
        let placed = |h: usize, w: usize, [a, b, c, d]: [u32; 4]| {
            let y = below(a, b, (height - h) as u64 + 1) as usize;
            let x = below(c, d, (width - w) as u64 + 1) as usize;
            Window { y, x, height: h, width: w }
        };
        let between = |[low, high]: [f64; 2], part: f64| low + (high - low) * part;
        let all = height as f64 * width as f64;
        for _ in 0..self.attempts {
            let ([a, b, c, d], place) = (source.next(), source.next());
            let area = between(self.area, fraction(a, b)) * all;
            let ratio = exp(between(self.ratio.map(ln), fraction(c, d)));
            let (w, h) = ((area * ratio).sqrt().round(), (area / ratio).sqrt().round());
            let fits = (1.0..=height as f64).contains(&h) && (1.0..=width as f64).contains(&w);
            // Rounding changes the ratio of small windows.
            if fits && (self.ratio[0]..=self.ratio[1]).contains(&(w / h)) {
                return placed(h as usize, w as usize, place);
            }
        }
        let (h, w) = (height as f64, width as f64);
        // A limit such as the default may be a little below the 4/3 that is meant.
        const NEARLY: f64 = 1.0 + 1e-6;
        let (h, w) = match w / h {
            ratio if ratio > self.ratio[1] * NEARLY => (h, (h * self.ratio[1] * NEARLY).trunc()),
            ratio if ratio < self.ratio[0] => ((w / self.ratio[0] * NEARLY).trunc(), w),
            _ => (h, w),
        };
        let shrink = (self.area[1] * all / (h * w)).min(1.0).sqrt();
        let fit = |x: f64, extent: usize| ((x * shrink) as usize).clamp(1, extent);
        placed(fit(h, height), fit(w, width), source.next())
    }
}

/// The ends of a range; a single number is both.
fn range(name: &'static str, ends: &[f64]) -> Result<[f64; 2]> {
    match *ends {
        [low, high] if low <= high => Ok([low, high]),
        [one] if !one.is_nan() => Ok([one, one]),
        _ => Err(argument(name, problem::Crop::Range { given: ends.to_vec() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Position;

    #[test]
    fn windows_lie_inside_whatever_the_image() {
        let start = Position { seed: 7, sequence: 0, offset: 0, phase: 0 };
        let usual = RandomWindow::new(&[0.08, 1.0], &[0.75, 1.33], 10).unwrap();
        let odd = [[-1.0, 0.0], [0.0, f64::INFINITY], [f64::INFINITY; 2], [1e-320, 1e308]];
        let odd = odd.map(|ends| RandomWindow::new(&ends, &ends, 2).unwrap());
        for (height, width) in [(1, 1), (1, 1000), (1000, 1), (17, 33), (480, 640)] {
            for sample in 0..200 {
                for choice in odd.iter().chain([&usual]) {
                    let window = choice.draw(&start.stream(sample), height, width);
                    assert!(window.is_inside(height, width), "{window:?}");
                    assert!(window.height > 0 && window.width > 0, "{window:?}");
                }
            }
        }
        for (height, width) in [(0, 5), (5, 0), (0, 0)] {
            let window = usual.draw(&start.stream(0), height, width);
            assert_eq!(window, Window { y: 0, x: 0, height: 0, width: 0 });
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for ends in [&[][..], &[f64::NAN], &[2.0, 1.0], &[0.0, f64::NAN], &[1.0, 2.0, 3.0]] {
            assert!(RandomWindow::new(ends, &[1.0], 1).is_err(), "{ends:?}");
            assert!(RandomWindow::new(&[1.0], ends, 1).is_err(), "{ends:?}");
        }
    }
}
