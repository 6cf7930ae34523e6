//! Masks as runs of pixels, column by column, and polygons that are painted the same way.

/// Counts of pixels that are outside and inside in turns, outside first, from the text that they
/// were squeezed into: five bits a character, lowest first, and from the third on as differences
/// to the last but one.
pub fn decompress(text: &[u8], counts: &mut Vec<u32>) -> Result<(), String> {
    let first = counts.len();
    let mut rest = text.iter();
    while let Some(mut byte) = rest.next() {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            if !(48..112).contains(byte) {
                return Err(format!("has a character {:?} in `counts`", *byte as char));
            }
            let bits = i64::from(byte - 48);
            if shift > 35 {
                return Err("has `counts` that 32 bits can't hold".into());
            }
            value |= (bits & 0x1f) << shift;
            shift += 5;
            if bits & 0x20 == 0 {
                if bits & 0x10 != 0 {
                    value |= -1_i64 << shift;
                }
                break;
            }
            byte = rest.next().ok_or("has `counts` that end in the middle of a number")?;
        }
        if counts.len() - first > 2 {
            value += i64::from(counts[counts.len() - 2]);
        }
        let count = u32::try_from(value);
        counts.push(count.map_err(|_| format!("has a count of {value} pixels"))?);
    }
    Ok(())
}

/// An image of labels in column-major order, on which masks are painted.
pub struct Canvas {
    pixels: Vec<i32>,
    height: usize,
    width: usize,
    crossings: Vec<usize>,
}

/// Beyond this, coordinates of polygons are no places near an image; a walk along the edges would
/// take for ever.
const FARTHEST: f32 = 1e6;

/// Edges are walked along in steps of a fifth of a pixel.
const STEPS: f64 = 5.0;

impl Canvas {
    /// `height * width` must be what memory can hold.
    pub fn new(height: usize, width: usize) -> Canvas {
        Canvas { pixels: vec![0; height * width], height, width, crossings: Vec::new() }
    }

    /// Paints runs. `Err` when they go beyond the image.
    pub fn runs(&mut self, counts: &[u32], label: i32) -> Result<(), String> {
        let mut at = 0;
        for (index, &count) in counts.iter().enumerate() {
            let end = at + count as usize;
            let Some(run) = self.pixels.get_mut(at..end) else {
                return Err(format!(
                    "has runs of more pixels than the {} x {} of the image",
                    self.height, self.width
                ));
            };
            if index % 2 == 1 {
                run.fill(label);
            }
            at = end;
        }
        Ok(())
    }

    /// Paints a polygon: pixels whose centre it holds, to a fifth of a pixel, as the tools of the
    /// data set do.
    pub fn polygon(&mut self, vertices: &[[f32; 2]], label: i32) -> Result<(), String> {
        let far = |v: &&[f32; 2]| !(v[0].abs() <= FARTHEST && v[1].abs() <= FARTHEST);
        if let Some([x, y]) = vertices.iter().find(far) {
            return Err(format!(
                "has a polygon with a corner far outside of the image, ({x}, {y})"
            ));
        }
        self.crossings.clear();
        let place = |v: &[f32; 2]| v.map(|c| (STEPS * f64::from(c) + 0.5) as i32);
        let Some(last) = vertices.first() else { return Ok(()) };
        let mut before: Option<(i32, i32)> = None;
        let ends = vertices.iter().skip(1).chain([last]);
        for ([xs, ys], [xe, ye]) in vertices.iter().map(place).zip(ends.map(place)) {
            let (dx, dy) = ((xe - xs).abs(), (ye - ys).abs());
            let flat = dx >= dy;
            // An edge is the same row of steps in either direction.
            let back = if flat { xs > xe } else { ys > ye };
            let ([x0, y0], [x1, y1]) =
                if back { ([xe, ye], [xs, ys]) } else { ([xs, ys], [xe, ye]) };
            let length = dx.max(dy);
            let rise = if flat { y1 - y0 } else { x1 - x0 };
            let slope = if length == 0 { 0.0 } else { f64::from(rise) / f64::from(length) };
            for step in 0..=length {
                let t = if back { length - step } else { step };
                let aside = |from: i32| (f64::from(from) + slope * f64::from(t) + 0.5) as i32;
                let now = if flat { (x0 + t, aside(y0)) } else { (aside(x0), y0 + t) };
                if let Some(before) = before
                    && before.0 != now.0
                {
                    self.cross(before, now);
                }
                before = Some(now);
            }
        }
        self.crossings.sort_unstable();
        let all = self.pixels.len();
        for pair in self.crossings.chunks(2) {
            let end = pair.get(1).copied().unwrap_or(all);
            self.pixels[pair[0]..end].fill(label);
        }
        Ok(())
    }

    /// Notes where a step of an outline crosses the middle of a column.
    fn cross(&mut self, before: (i32, i32), now: (i32, i32)) {
        let finest = if now.0 < before.0 { now.0 } else { now.0 - 1 };
        // The middle of a column is at two fifths and a half.
        if finest < 2 || finest % 5 != 2 {
            return;
        }
        let column = (finest / 5) as usize;
        if column >= self.width {
            return;
        }
        let row = (f64::from(now.1.min(before.1)) + 0.5) / STEPS - 0.5;
        let row = row.clamp(0.0, self.height as f64).ceil() as usize;
        self.crossings.push(column * self.height + row);
    }

    /// Writes the image in row-major order.
    pub fn write(&self, out: &mut [i32]) {
        /// Pixels of a tile, whose lines are in the cache both here and there.
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
        let mut canvas = Canvas::new(2, 3);
        canvas.runs(&[1, 2], 7).unwrap();
        assert_eq!(painted(&canvas), [0, 7, 0, 7, 0, 0]);
        assert!(canvas.runs(&[1, 6], 7).is_err());
    }

    #[test]
    fn polygons_cover_the_pixels_whose_centres_they_hold() {
        let mut canvas = Canvas::new(3, 4);
        canvas.polygon(&[[1.0, 0.0], [3.0, 0.0], [3.0, 2.0], [1.0, 2.0]], 5).unwrap();
        assert_eq!(painted(&canvas), [0, 5, 5, 0, 0, 5, 5, 0, 0, 0, 0, 0]);
        for odd in [&[][..], &[[1.0, 1.0]], &[[f32::NAN, 0.0]; 3], &[[1e30, 0.0]; 3]] {
            let _ = canvas.polygon(odd, 9);
        }
        canvas.polygon(&[[-9.0, -9.0], [90.0, -9.0], [90.0, 90.0], [-9.0, 90.0]], 1).unwrap();
        assert_eq!(painted(&canvas), [1; 12]);
    }

    #[test]
    fn counts_come_out_of_their_text() {
        let mut counts = Vec::new();
        // 8 outside, 16 inside, 24 outside: the first three are as they are.
        decompress(b"8`0h0", &mut counts).unwrap();
        assert_eq!(counts, [8, 16, 24]);
        for bad in [&b"\x10"[..], b"P", b"oooooooooooo", b"@"] {
            assert!(decompress(bad, &mut Vec::new()).is_err(), "{bad:?}");
        }
    }
}
