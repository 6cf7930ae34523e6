//! Random windows of an image: a share of its area, with a ratio of width to height.

use super::extent::argument;
use crate::kernels::Result;
use crate::kernels::philox::{Stream, below, fraction};

pub struct Choice {
    pub area: (f64, f64),
    pub ratio: (f64, f64),
    pub attempts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub y: usize,
    pub x: usize,
    pub height: usize,
    pub width: usize,
}

/// No more are worth it: the answer is the same.
const MOST_ATTEMPTS: i64 = 10_000;

impl Choice {
    pub fn new(area: &[f64], ratio: &[f64], attempts: i64) -> Result<Choice> {
        let range = |name, given: &[f64]| match *given {
            [low, high] if low > 0.0 && low <= high && high.is_finite() => Ok((low, high)),
            _ => Err(argument(
                name,
                format!("needs a range of positive numbers, such as (0.5, 1), got {given:?}"),
            )),
        };
        if attempts < 1 {
            return Err(argument("num_attempts", format!("must be positive, got {attempts}")));
        }
        Ok(Choice {
            area: range("random_area", area)?,
            ratio: range("random_aspect_ratio", ratio)?,
            attempts: attempts.min(MOST_ATTEMPTS) as usize,
        })
    }

    /// Tries until a window fits in; else takes one of the largest that have a fitting ratio.
    pub fn draw(&self, rng: &Stream, height: usize, width: usize) -> Window {
        if height == 0 || width == 0 {
            return Window { y: 0, x: 0, height, width };
        }
        let placed = |high: f64, wide: f64, [a, b, c, d]: [u32; 4]| {
            let (high, wide) = (high as usize, wide as usize);
            let y = below(a, b, (height - high) as u64 + 1) as usize;
            let x = below(c, d, (width - wide) as u64 + 1) as usize;
            Window { y, x, height: high, width: wide }
        };
        let mut source = rng.source(0);
        let (h, w) = (height as f64, width as f64);
        for _ in 0..self.attempts {
            let ([a, b, c, d], [e, f, g, i]) = (source.next(), source.next());
            let (low, high) = self.area;
            let area = h * w * (low + (high - low) * fraction(a, b));
            // Twice as wide comes as often as half as wide.
            let (low, high) = (self.ratio.0.ln(), self.ratio.1.ln());
            let ratio = (low + (high - low) * fraction(c, d)).exp();
            let wide = (area * ratio).sqrt().round();
            let high = (area / ratio).sqrt().round();
            if wide >= 1.0 && wide <= w && high >= 1.0 && high <= h {
                return placed(high, wide, [e, f, g, i]);
            }
        }
        let whole = w / h;
        let (low, high) = self.ratio;
        let (high, wide) = if whole < low {
            ((w / low).round().clamp(1.0, h), w)
        } else if whole > high {
            (h, (h * high).round().clamp(1.0, w))
        } else {
            (h, w)
        };
        placed(high, wide, source.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Position;

    #[test]
    fn windows_lie_inside() {
        let start = Position { seed: 7, sequence: 0, offset: 0, phase: 0 };
        let choice = Choice::new(&[0.08, 1.0], &[0.75, 4.0 / 3.0], 10).unwrap();
        for sample in 0..2000 {
            let (height, width) = (1 + sample % 37, 1 + sample % 11);
            let window = choice.draw(&start.stream(sample), height, width);
            assert!(window.height > 0 && window.y + window.height <= height, "{window:?}");
            assert!(window.width > 0 && window.x + window.width <= width, "{window:?}");
        }
    }
}
