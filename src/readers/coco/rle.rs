//! Run-length encoded masks, column by column, and polygons rasterized the same way.

use crate::value::{Cause, problems, zeroed};

/// Why a mask can't be drawn: it is invalid, or there is no memory.
#[derive(Debug)]
pub enum Problem {
    Object(MaskFault),
    Memory(Cause),
}

impl From<MaskFault> for Problem {
    fn from(fault: MaskFault) -> Problem {
        Problem::Object(fault)
    }
}

problems! {
    /// What is wrong with the mask of an object.
    pub enum MaskFault {
        Character { byte: u8 },
        LargeCount,
        CutOff,
        Memory,
        Count { count: i64 },
        Size { height: u32, width: u32, image_height: i32, image_width: i32 },
        Layers,
        Runs { height: usize, width: usize },
        Far { x: f32, y: f32 },
        Crossings,
    }
}

/// Decodes run lengths, alternating between outside and inside, starting outside. The text has five
/// bits per character, lowest first; from the fourth count on, it has the difference to the count
/// before the previous one.
pub fn decompress(text: &[u8], counts: &mut Vec<u32>) -> Result<(), MaskFault> {
    let first = counts.len();
    let mut rest = text.iter();
    while let Some(mut byte) = rest.next() {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            if !(48..112).contains(byte) {
                return Err(MaskFault::Character { byte: *byte });
            }
            let bits = i64::from(byte - 48);
            if shift > 35 {
                return Err(MaskFault::LargeCount);
            }
            value |= (bits & 0x1f) << shift;
            shift += 5;
            if bits & 0x20 == 0 {
                if bits & 0x10 != 0 {
                    value |= -1_i64 << shift;
                }
                break;
            }
            byte = rest.next().ok_or(MaskFault::CutOff)?;
        }
        if counts.len() - first > 2 {
            value += i64::from(counts[counts.len() - 2]);
        }
        counts.try_reserve(1).map_err(|_| MaskFault::Memory)?;
        let count = u32::try_from(value);
        counts.push(count.map_err(|_| MaskFault::Count { count: value })?);
    }
    Ok(())
}

/// An image of labels in column-major order, on which masks are drawn.
pub struct Canvas {
    pixels: Vec<i32>,
    height: usize,
    width: usize,
    /// Where a polygon's outline crosses the columns.
    crossings: Vec<usize>,
    /// The number of pixels that may still be drawn.
    paint: usize,
}

/// Coordinates beyond this can't belong to an image.
const FARTHEST: f32 = 1e6;

/// Outlines are traced in steps of a fifth of a pixel.
const STEPS: i32 = 5;

/// The step at the center of a column.
const MIDDLE: i32 = 2;

/// How often an image may be drawn over. This, and the number of times an outline may cross it per
/// pixel, exceed real annotations, and limit the work that a short text can cause.
const LAYERS: usize = 1000;
/// Limit on the pixels drawn, some seconds of work: it reduces the layers of large images.
const MOST: usize = 1 << 32;
const CROSSINGS: usize = 16;

/// Minimum of these limits, for small images.
const LEAST: usize = 1 << 22;

/// An edge of an outline, in steps. It starts at the end with the smaller coordinate along its
/// longer side, so that it is the same in both directions.
struct Edge {
    x0: i32,
    y0: i32,
    length: i32,
    slope: f64,
    /// Whether it is at least as wide as it is high.
    flat: bool,
}

impl Edge {
    fn new([xs, ys]: [i32; 2], [xe, ye]: [i32; 2]) -> Edge {
        let (dx, dy) = ((xe - xs).abs(), (ye - ys).abs());
        let flat = dx >= dy;
        let back = if flat { xs > xe } else { ys > ye };
        let ([x0, y0], [x1, y1]) = if back { ([xe, ye], [xs, ys]) } else { ([xs, ys], [xe, ye]) };
        let length = dx.max(dy);
        let rise = if flat { y1 - y0 } else { x1 - x0 };
        let slope = if length == 0 { 0.0 } else { f64::from(rise) / f64::from(length) };
        Edge { x0, y0, length, slope, flat }
    }

    /// The coordinate along the shorter side after `step` steps.
    fn aside(&self, from: i32, step: i32) -> i32 {
        (f64::from(from) + self.slope * f64::from(step) + 0.5) as i32
    }

    fn x(&self, step: i32) -> i32 {
        if self.flat { self.x0 + step } else { self.aside(self.x0, step) }
    }

    /// The columns whose center the edge crosses, in an image of this width.
    fn columns(&self, width: usize) -> std::ops::Range<i32> {
        let (a, b) = (self.x(0), self.x(self.length));
        let (left, right) = (a.min(b), a.max(b));
        // A column is crossed by the step from its center to the next position on the right.
        let first = (left - MIDDLE + STEPS - 1).div_euclid(STEPS).max(0);
        let end = (right - 1 - MIDDLE).div_euclid(STEPS) + 1;
        first..end.min(i32::try_from(width).unwrap_or(i32::MAX))
    }

    /// The upper end of the step that crosses the center of a column.
    fn crossing(&self, column: i32) -> i32 {
        let middle = STEPS * column + MIDDLE;
        if self.flat {
            let step = middle - self.x0;
            return self.aside(self.y0, step).min(self.aside(self.y0, step + 1));
        }
        let before = |step| (self.x(step) <= middle) == (self.slope > 0.0);
        // Because of rounding, the step may be off by one or two.
        let guess = (f64::from(middle) + 0.5 - f64::from(self.x0)) / self.slope;
        let mut step = (guess as i32).clamp(0, self.length - 1);
        while step > 0 && !before(step) {
            step -= 1;
        }
        while step + 1 < self.length && before(step + 1) {
            step += 1;
        }
        self.y0 + step
    }
}

impl Canvas {
    pub fn new(height: usize, width: usize) -> Result<Canvas, Cause> {
        let pixels = zeroed(height * width)?;
        let paint = (height * width).saturating_mul(LAYERS).min(MOST).saturating_add(LEAST);
        Ok(Canvas { pixels, height, width, crossings: Vec::new(), paint })
    }

    fn fill(&mut self, part: std::ops::Range<usize>, label: i32) -> Result<(), MaskFault> {
        let (height, width) = (self.height, self.width);
        let left = self.paint.checked_sub(part.len());
        self.paint = left.ok_or(MaskFault::Layers)?;
        let Some(part) = self.pixels.get_mut(part) else {
            return Err(MaskFault::Runs { height, width });
        };
        part.fill(label);
        Ok(())
    }

    /// Draws a run-length encoded mask. `Err` if it goes beyond the image.
    pub fn runs(&mut self, counts: &[u32], label: i32) -> Result<(), MaskFault> {
        let mut at = 0;
        for (index, &count) in counts.iter().enumerate() {
            let end = at + count as usize;
            // Runs outside the mask must be inside the image, too.
            let inside = if index % 2 == 1 { at..end } else { end..end };
            self.fill(inside, label)?;
            at = end;
        }
        Ok(())
    }

    /// Draws a polygon: the pixels whose center is inside, to a fifth of a pixel, like the COCO
    /// tools.
    pub fn polygon(&mut self, vertices: &[[f32; 2]], label: i32) -> Result<(), Problem> {
        let far = |v: &&[f32; 2]| !(v[0].abs() <= FARTHEST && v[1].abs() <= FARTHEST);
        if let Some([x, y]) = vertices.iter().find(far) {
            return Err(MaskFault::Far { x: *x, y: *y }.into());
        }
        self.cross(vertices)?;
        let all = self.pixels.len();
        let crossings = std::mem::take(&mut self.crossings);
        for pair in crossings.chunks(2) {
            self.fill(pair[0]..pair.get(1).copied().unwrap_or(all), label)?;
        }
        self.crossings = crossings;
        Ok(())
    }

    /// Collects, in order, where an outline crosses the centers of columns.
    fn cross(&mut self, vertices: &[[f32; 2]]) -> Result<(), Problem> {
        self.crossings.clear();
        let place = |v: &[f32; 2]| v.map(|c| (f64::from(STEPS) * f64::from(c) + 0.5) as i32);
        let Some(last) = vertices.first() else { return Ok(()) };
        // There are at most as many distinct crossings as pixels, so a longer list can be shortened
        // by cancelling.
        let many = 2 * (self.pixels.len() + 1) + LEAST;
        let mut left = self.pixels.len().saturating_mul(CROSSINGS).saturating_add(LEAST);
        let ends = vertices.iter().skip(1).chain([last]);
        for (from, to) in vertices.iter().map(place).zip(ends.map(place)) {
            let edge = Edge::new(from, to);
            let columns = edge.columns(self.width);
            if columns.is_empty() {
                continue;
            }
            left = left.checked_sub(columns.len()).ok_or(MaskFault::Crossings)?;
            let bytes = size_of::<usize>() * columns.len();
            let room = self.crossings.try_reserve(columns.len());
            room.map_err(|_| Problem::Memory(Cause::Memory { bytes }))?;
            for column in columns {
                let row = (f64::from(edge.crossing(column)) + 0.5) / f64::from(STEPS) - 0.5;
                let row = row.clamp(0.0, self.height as f64).ceil() as usize;
                self.crossings.push(column as usize * self.height + row);
            }
            if self.crossings.len() > many {
                self.cancel();
            }
        }
        self.crossings.sort_unstable();
        Ok(())
    }

    /// Removes pairs of crossings at the same position: there is nothing between them.
    fn cancel(&mut self) {
        self.crossings.sort_unstable();
        let mut kept = 0;
        for index in 0..self.crossings.len() {
            let place = self.crossings[index];
            if kept > 0 && self.crossings[kept - 1] == place {
                kept -= 1;
            } else {
                self.crossings[kept] = place;
                kept += 1;
            }
        }
        self.crossings.truncate(kept);
    }

    /// Writes the image in row-major order.
    pub fn write(&self, out: &mut [i32]) {
        /// Side of a tile in pixels, small enough that its lines stay in the cache on both sides.
        const TILE: usize = 16;
        let (height, width) = (self.height, self.width);
        assert_eq!(out.len(), height * width);
        for top in (0..height).step_by(TILE) {
            for left in (0..width).step_by(TILE) {
                for y in top..height.min(top + TILE) {
                    let right = width.min(left + TILE);
                    for (x, out) in (left..right).zip(&mut out[y * width + left..]) {
                        *out = self.pixels[x * height + y];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(canvas: &Canvas) -> Vec<i32> {
        let mut out = vec![0; canvas.pixels.len()];
        canvas.write(&mut out);
        out
    }

    #[test]
    fn runs_go_down_the_columns() {
        let mut canvas = Canvas::new(2, 3).unwrap();
        canvas.runs(&[1, 2], 7).unwrap();
        assert_eq!(painted(&canvas), [0, 7, 0, 7, 0, 0]);
        assert!(canvas.runs(&[1, 6], 7).is_err());
    }

    #[test]
    fn polygons_cover_the_pixels_whose_centres_they_hold() {
        let mut canvas = Canvas::new(3, 4).unwrap();
        canvas.polygon(&[[1.0, 0.0], [3.0, 0.0], [3.0, 2.0], [1.0, 2.0]], 5).unwrap();
        assert_eq!(painted(&canvas), [0, 5, 5, 0, 0, 5, 5, 0, 0, 0, 0, 0]);
        for odd in [&[][..], &[[1.0, 1.0]], &[[f32::NAN, 0.0]; 3], &[[1e30, 0.0]; 3]] {
            let _ = canvas.polygon(odd, 9);
        }
        canvas.polygon(&[[-9.0, -9.0], [90.0, -9.0], [90.0, 90.0], [-9.0, 90.0]], 1).unwrap();
        assert_eq!(painted(&canvas), [1; 12]);
    }

    /// The crossings of an edge, found by walking all its steps.
    fn walked(edge: &Edge, width: usize) -> Vec<(i32, i32)> {
        let place = |t| match edge.flat {
            true => (edge.x0 + t, edge.aside(edge.y0, t)),
            false => (edge.aside(edge.x0, t), edge.y0 + t),
        };
        let crossing = |t| {
            let (before, now): ((i32, i32), (i32, i32)) = (place(t), place(t + 1));
            let finest = before.0.min(now.0);
            let column = finest / STEPS;
            let crosses = before.0 != now.0 && finest >= MIDDLE && finest % STEPS == MIDDLE;
            (crosses && (column as usize) < width).then_some((column, before.1.min(now.1)))
        };
        let mut all: Vec<_> = (0..edge.length).filter_map(crossing).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn crossings_are_those_of_a_walk_along_the_edge() {
        let mut state = 1_u64;
        let mut draw = |range: i32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            ((state >> 33) as i32).rem_euclid(2 * range + 1) - range
        };
        for round in 0..4000 {
            let range = [6, 40, 300, 5000][round % 4];
            let [from, to] = [[draw(range), draw(range)], [draw(range), draw(range)]];
            let edge = Edge::new(from, to);
            let found = edge.columns(37).map(|column| (column, edge.crossing(column)));
            assert_eq!(found.collect::<Vec<_>>(), walked(&edge, 37), "{from:?} {to:?}");
        }
        // Almost vertical, and as long as possible.
        for (from, to) in [
            ([3, -5_000_000], [4, 5_000_000]),
            ([180, -4_999_999], [0, 5_000_000]),
            ([-5_000_000, -4_999_999], [5_000_000, 5_000_000]),
        ] {
            let edge = Edge::new(from, to);
            let found = edge.columns(37).map(|column| (column, edge.crossing(column)));
            assert_eq!(found.collect::<Vec<_>>(), walked(&edge, 37), "{from:?} {to:?}");
        }
    }

    #[test]
    fn crossings_at_one_place_cancel_each_other() {
        let mut canvas = Canvas::new(1, 1).unwrap();
        canvas.crossings = vec![5, 1, 5, 2, 5, 1, 9, 9];
        canvas.cancel();
        assert_eq!(canvas.crossings, [2, 5]);
    }

    #[test]
    fn work_is_bounded() {
        let mut canvas = Canvas::new(1000, 1000).unwrap();
        let zigzag = |corners: usize| -> Vec<[f32; 2]> {
            let corner = |i| if i % 2 == 0 { [-1e6, 5.0] } else { [1e6, 900.0] };
            (0..corners).map(corner).collect()
        };
        assert!(canvas.polygon(&zigzag(2000), 1).is_ok());
        assert!(canvas.polygon(&zigzag(100_000), 1).is_err());
        let all = [0, 1_000_000];
        assert!((0..2000).any(|_| canvas.runs(&all, 1).is_err()));
    }

    #[test]
    fn large_images_are_painted_over_less_often() {
        let (height, width) = (1 << 14, 1 << 14);
        let canvas = Canvas::new(height, width).unwrap();
        assert!(canvas.paint >= 16 * height * width);
        assert!(canvas.paint < 17 * height * width);
        assert!(Canvas::new(480, 640).unwrap().paint >= 1000 * 480 * 640);
    }

    #[test]
    fn counts_come_out_of_their_text() {
        let mut counts = Vec::new();
        // 8 outside, 16 inside, 24 outside: the first three are not differences.
        decompress(b"8`0h0", &mut counts).unwrap();
        assert_eq!(counts, [8, 16, 24]);
        for bad in [&b"\x10"[..], b"P", b"oooooooooooo", b"@"] {
            assert!(decompress(bad, &mut Vec::new()).is_err(), "{bad:?}");
        }
    }
}
