//! Rows of the result as lines across the source image.

use std::ops::Range;

use super::Map;

/// Source positions of the pixels of a row: pixel `x` comes from `start + x * step`, along x and y.
/// Computed in single precision with a fixed order of operations, so that all code paths agree.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub start: [f32; 2],
    pub step: [f32; 2],
}

impl Line {
    /// The line of row `y`, its positions shifted by `offset`.
    pub fn new(map: &Map, y: usize, offset: f64) -> Line {
        let [sx, sy, _] = map.apply([0.5, y as f64 + 0.5, 0.5]);
        Line {
            start: [(sx + offset) as f32, (sy + offset) as f32],
            step: [map.0[0][0] as f32, map.0[1][0] as f32],
        }
    }

    #[inline(always)]
    pub fn at(&self, x: usize) -> [f32; 2] {
        let x = x as u32 as f32;
        [x * self.step[0] + self.start[0], x * self.step[1] + self.start[1]]
    }

    /// The pixels, out of `n`, whose positions are at least zero and below `limits`.
    pub fn inside(&self, n: usize, limits: [usize; 2]) -> Range<usize> {
        self.within(n, 0.0, limits)
    }

    /// The pixels, out of `n`, whose positions are at least `low` and below `limits`.
    pub fn within(&self, n: usize, low: f32, limits: [usize; 2]) -> Range<usize> {
        let limits = limits.map(|limit| limit as f32);
        let is_inside = |x: usize| {
            let [sx, sy] = self.at(x);
            sx >= low && sx < limits[0] && sy >= low && sy < limits[1]
        };
        let (mut first, mut last) = (0.0, n as f64);
        for (axis, limit) in limits.into_iter().enumerate() {
            let (start, step) = (f64::from(self.start[axis]), f64::from(self.step[axis]));
            if step != 0.0 {
                let (a, b) = ((f64::from(low) - start) / step, (f64::from(limit) - start) / step);
                // One more on each side, because positions are rounded.
                first = f64::max(first, a.min(b).floor() - 1.0);
                last = f64::min(last, a.max(b).ceil() + 1.0);
            }
        }
        if last.is_nan() || first.is_nan() || last <= first {
            return 0..0;
        }
        // Positions are monotonic along the row, even when rounded, so everything between two
        // pixels that are inside is inside.
        let (mut first, mut last) = (first as usize, last as usize);
        while first < last && !is_inside(first) {
            first += 1;
        }
        while first < last && !is_inside(last - 1) {
            last -= 1;
        }
        first..last
    }
}

/// Computes pixels of `c` elements one by one; the first is pixel `first` of the row. With a
/// `fill`, pixels that are too far from the image to blend with it are set to `fill` directly.
pub fn edges<T: Copy>(
    line: &Line,
    sides: [usize; 2],
    fill: Option<T>,
    out: &mut [T],
    first: usize,
    c: usize,
    edge: impl Fn([f32; 2], &mut [T]),
) {
    let n = out.len() / c;
    let near = match fill {
        Some(fill) => {
            let near = line.within(first + n, -1.0, sides);
            let near = near.start.clamp(first, first + n)..near.end.clamp(first, first + n);
            out[..(near.start - first) * c].fill(fill);
            out[(near.end.max(near.start) - first) * c..].fill(fill);
            near
        }
        None => first..first + n,
    };
    for x in near {
        edge(line.at(x), &mut out[(x - first) * c..][..c]);
    }
}

/// The pixel at or before a position, and the fractional distance to the next one. Positions far
/// outside an axis of `n` pixels are clamped, which makes no difference to the result.
#[inline]
pub fn split(place: f32, n: usize) -> (i64, f32) {
    let place = place.clamp(-2.0, n as f32 + 2.0);
    // Not `floor`, which is a library call on older processors.
    let cut = place as i64 as f32;
    let floor = if cut > place { cut - 1.0 } else { cut };
    let part = place - floor;
    // NaN has no fraction either.
    (floor as i64, if part > 0.0 { part } else { 0.0 })
}

/// Like [`split`], for axes and rows of any length.
#[inline]
pub fn split_long(place: f64, n: usize) -> (i64, f32) {
    let place = place.clamp(-2.0, n as f64 + 2.0);
    let floor = place.floor();
    let part = (place - floor) as f32;
    (floor as i64, if part > 0.0 { part } else { 0.0 })
}

/// A row whose positions need double precision, because the image or the row is long.
pub struct LongLine {
    start: [f64; 2],
    step: [f64; 2],
}

impl LongLine {
    /// The line of row `y`, its positions shifted by `offset`.
    pub fn new(map: &Map, y: usize, offset: f64) -> LongLine {
        let [sx, sy, _] = map.apply([0.5, y as f64 + 0.5, 0.5]);
        LongLine { start: [sx + offset, sy + offset], step: [map.0[0][0], map.0[1][0]] }
    }

    /// The source position of pixel `x`, in an image of these sides: see [`split`].
    #[inline]
    pub fn split(&self, x: usize, sides: [usize; 2]) -> [(i64, f32); 2] {
        std::array::from_fn(|axis| {
            split_long(self.start[axis] + x as f64 * self.step[axis], sides[axis])
        })
    }
}

/// The nearest pixel on an axis of `n` pixels; `None` if it is empty.
#[inline]
pub fn nearest(at: i64, n: usize) -> Option<usize> {
    n.checked_sub(1).map(|last| at.clamp(0, last as i64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_is_exact() {
        let steps = [0.0, 1.0, -1.0, 0.37, -2.9, 1e-3, 1e20, f32::INFINITY];
        for (dx, dy) in steps.into_iter().flat_map(|dx| steps.map(|dy| (dx, dy))) {
            for (x0, y0) in [(0.0, 0.0), (-3.5, 2.25), (17.0, 9.999), (1e20, 0.0)] {
                let line = Line { start: [x0, y0], step: [dx, dy] };
                for limits in [[0, 5], [1, 1], [20, 12]] {
                    for low in [0.0, -1.0] {
                        let range = line.within(40, low, limits);
                        for x in 0..40 {
                            let [sx, sy] = line.at(x);
                            let inside = (low..limits[0] as f32).contains(&sx)
                                && (low..limits[1] as f32).contains(&sy);
                            assert_eq!(range.contains(&x), inside, "{line:?} {limits:?} {x}");
                        }
                    }
                }
            }
        }
    }
}
