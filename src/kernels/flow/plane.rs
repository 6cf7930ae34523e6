//! Padded image planes and flow fields.

use crate::kernels::Result;
use crate::value::zeroed;

/// Width of the replicated border, so that patches can extend past the edges.
pub const BORDER: usize = 16;

/// A gray image, padded with a border.
pub struct Plane {
    pub height: usize,
    pub width: usize,
    pub stride: usize,
    pixels: Vec<f32>,
}

impl Plane {
    pub fn new(height: usize, width: usize) -> Result<Plane> {
        let stride = width + 2 * BORDER;
        let pixels = zeroed(stride.saturating_mul(height + 2 * BORDER))?;
        Ok(Plane { height, width, stride, pixels })
    }

    /// The luma of an image, with one weight per channel.
    pub fn from_image(image: &[u8], [height, width]: [usize; 2], weights: &[f32]) -> Result<Plane> {
        let mut plane = Plane::new(height, width)?;
        let channels = weights.len();
        for (y, row) in image.chunks_exact(width * channels).enumerate() {
            let out = plane.row_mut(y);
            match *weights {
                [r, g, b] => {
                    for (out, pixel) in out.iter_mut().zip(row.as_chunks::<3>().0) {
                        let [x, y, z] = pixel.map(f32::from);
                        *out = r * x + g * y + b * z;
                    }
                }
                _ => out.iter_mut().zip(row).for_each(|(out, &value)| *out = f32::from(value)),
            }
        }
        plane.replicate_edges();
        Ok(plane)
    }

    /// Index of a pixel, which may be in the border.
    #[inline(always)]
    pub fn index(&self, x: isize, y: isize) -> usize {
        let border = BORDER as isize;
        (y + border) as usize * self.stride + (x + border) as usize
    }

    #[inline(always)]
    pub fn pixels(&self) -> &[f32] {
        &self.pixels
    }

    #[inline(always)]
    pub fn row(&self, y: usize) -> &[f32] {
        self.row_at(0, y as isize)
    }

    /// `width` pixels from column `x` of row `y` on; both may be in the border.
    #[inline(always)]
    pub fn row_at(&self, x: isize, y: isize) -> &[f32] {
        &self.pixels[self.index(x, y)..][..self.width]
    }

    #[inline(always)]
    pub fn row_mut(&mut self, y: usize) -> &mut [f32] {
        let start = self.index(0, y as isize);
        &mut self.pixels[start..][..self.width]
    }

    /// Replicates the edges into the border.
    pub fn replicate_edges(&mut self) {
        let (stride, width) = (self.stride, self.width);
        for y in 0..self.height {
            let row = &mut self.pixels[(y + BORDER) * stride..][..stride];
            let (first, last) = (row[BORDER], row[BORDER + width - 1]);
            row[..BORDER].fill(first);
            row[BORDER + width..].fill(last);
        }
        let (first, last) = (BORDER * stride, (BORDER + self.height - 1) * stride);
        for y in 0..BORDER {
            self.pixels.copy_within(first..first + stride, y * stride);
            let below = (BORDER + self.height + y) * stride;
            self.pixels.copy_within(last..last + stride, below);
        }
    }

    /// Downscales by 2 with a 2 x 2 box filter.
    pub fn half(&self) -> Result<Plane> {
        let mut made = Plane::new(self.height / 2, self.width / 2)?;
        for y in 0..made.height {
            let [above, below] = [self.row(2 * y), self.row(2 * y + 1)];
            let pairs = above.as_chunks::<2>().0.iter().zip(below.as_chunks::<2>().0);
            for (out, (a, b)) in made.row_mut(y).iter_mut().zip(pairs) {
                *out = 0.25 * (a[0] + a[1] + b[0] + b[1]);
            }
        }
        made.replicate_edges();
        Ok(made)
    }
}

/// A motion vector per pixel, in pixels of its scale.
pub struct Flow {
    pub height: usize,
    pub width: usize,
    pub u: Vec<f32>,
    pub v: Vec<f32>,
}

impl Flow {
    pub fn new(height: usize, width: usize) -> Result<Flow> {
        let count = height.saturating_mul(width);
        Ok(Flow { height, width, u: zeroed(count)?, v: zeroed(count)? })
    }

    /// Resamples the flow bilinearly to another size. `step` is the size of an output pixel in
    /// input pixels; motions are multiplied by `gain`.
    pub fn resampled(&self, height: usize, width: usize, step: f32, gain: f32) -> Result<Flow> {
        let mut made = Flow::new(height, width)?;
        if self.u.is_empty() {
            return Ok(made);
        }
        let columns: Vec<Between> = (0..width).map(|x| Between::new(x, step, self.width)).collect();
        for y in 0..height {
            let rows = Between::new(y, step, self.height);
            for (from, to) in [(&self.u, &mut made.u), (&self.v, &mut made.v)] {
                let above = &from[rows.first * self.width..][..self.width];
                let below = &from[rows.second * self.width..][..self.width];
                for (out, column) in to[y * width..][..width].iter_mut().zip(&columns) {
                    *out = gain * rows.mix(column.of(above), column.of(below));
                }
            }
        }
        Ok(made)
    }
}

/// Bilinear weights between two pixels of a row.
struct Between {
    first: usize,
    second: usize,
    part: f32,
}

impl Between {
    /// For the center of output pixel `index`, each `step` input pixels wide, in a row of `count`.
    fn new(index: usize, step: f32, count: usize) -> Between {
        let place = ((index as f32 + 0.5) * step - 0.5).clamp(0.0, (count - 1) as f32);
        let first = place as usize;
        Between { first, second: (first + 1).min(count - 1), part: place - first as f32 }
    }

    #[inline(always)]
    fn mix(&self, first: f32, second: f32) -> f32 {
        first + self.part * (second - first)
    }

    #[inline(always)]
    fn of(&self, row: &[f32]) -> f32 {
        self.mix(row[self.first], row[self.second])
    }
}
