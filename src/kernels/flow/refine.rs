//! Variational refinement: assumes that brightness and its gradient are constant along the flow and
//! that the flow is piecewise smooth (Brox et al., "High Accuracy Optical Flow Estimation Based on
//! a Theory for Warping", 2004), with normalized constraints. Pixel values go up to 255.

// Indexed loops over several slices vectorize better than zipped iterators.
#![allow(clippy::needless_range_loop)]

use super::plane::{Flow, Plane};
use crate::kernels::Result;
use crate::kernels::numeric::isa::vectorized;
use crate::value::zeroed;

/// Weights of the constraints. More smoothness than in the paper on dense inverse search halves the
/// error on photographs.
const BRIGHTNESS: f32 = 5.0;
const GRADIENT: f32 = 10.0;
const SMOOTHNESS: f32 = 20.0;
/// Epsilon of the robust penalty sqrt(x^2 + eps^2): quadratic below it, linear above.
const EDGE: f32 = 1e-3;
/// Added to the normalization, to avoid a division by zero in flat areas.
const FLAT: f32 = 0.01;
/// Over-relaxation factor (SOR).
const RELAXATION: f32 = 1.6;
/// SOR iterations per linearization.
const STEPS: usize = 10;

/// Improves a flow between two images with this number of linearizations.
pub fn refine(first: &Plane, second: &Plane, flow: &mut Flow, linearizations: usize) -> Result<()> {
    let mut system = System::new(first, second, flow)?;
    vectorized!({
        for _ in 0..linearizations {
            system.linearize();
            for _ in 0..STEPS {
                for color in 0..2 {
                    system.relax(color);
                }
            }
        }
        system.take(flow);
    });
    Ok(())
}

/// One value per pixel in each array. Arrays of unknowns are padded with a border of one pixel.
struct System {
    height: usize,
    width: usize,
    stride: usize,
    /// Derivatives of the mean of both images (x, y) and of their difference (z).
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
    xx: Vec<f32>,
    xy: Vec<f32>,
    yy: Vec<f32>,
    xz: Vec<f32>,
    yz: Vec<f32>,
    /// Initial and current flow; with a border.
    start: [Vec<f32>; 2],
    now: [Vec<f32>; 2],
    /// The linear system: off-diagonal terms, inverse diagonal and right-hand sides.
    coupling: Vec<f32>,
    inverse: [Vec<f32>; 2],
    right: [Vec<f32>; 2],
    /// Smoothness weights between a pixel and its right and lower neighbors; with a border of
    /// zeros.
    ties: [Vec<f32>; 2],
    /// Smoothness weight of each pixel; with a border.
    smoothness: Vec<f32>,
    /// Alternating 1 and 0: the checkerboard mask of red-black relaxation.
    colors: Vec<f32>,
    scratch: [Vec<f32>; 2],
}

impl System {
    fn new(first: &Plane, second: &Plane, flow: &Flow) -> Result<System> {
        let (height, width) = (first.height, first.width);
        let stride = width + 2;
        let inner = || zeroed::<f32>(height * width);
        let outer = || zeroed::<f32>(stride * (height + 2));
        let mut colors = zeroed(width + 1)?;
        colors.iter_mut().step_by(2).for_each(|color| *color = 1.0);
        let mut system = System {
            height,
            width,
            stride,
            x: inner()?,
            y: inner()?,
            z: inner()?,
            xx: inner()?,
            xy: inner()?,
            yy: inner()?,
            xz: inner()?,
            yz: inner()?,
            start: [outer()?, outer()?],
            now: [outer()?, outer()?],
            coupling: inner()?,
            inverse: [inner()?, inner()?],
            right: [inner()?, inner()?],
            ties: [outer()?, outer()?],
            smoothness: outer()?,
            colors,
            scratch: [zeroed(width)?, zeroed(width)?],
        };
        for y in 0..height {
            for (to, from) in system.start.iter_mut().zip([&flow.u, &flow.v]) {
                to[(y + 1) * stride + 1..][..width].copy_from_slice(&from[y * width..][..width]);
            }
        }
        system.now = system.start.clone();
        system.derive(first, second, flow)?;
        Ok(system)
    }

    /// Computes the derivatives, with the second image warped back by the flow.
    fn derive(&mut self, first: &Plane, second: &Plane, flow: &Flow) -> Result<()> {
        let (height, width) = (self.height, self.width);
        let planes = || Plane::new(height, width);
        let (mut mean, mut change, mut x, mut y) = (planes()?, planes()?, planes()?, planes()?);
        vectorized!({
            for row in 0..height {
                let (u, v) = (&flow.u[row * width..][..width], &flow.v[row * width..][..width]);
                moved_row(second, row, u, v, change.row_mut(row));
                let still = first.row(row);
                let both = mean.row_mut(row).iter_mut().zip(change.row_mut(row)).zip(still);
                for ((mean, moved), still) in both {
                    *mean = 0.5 * (*moved + still);
                    *moved -= still;
                }
            }
            mean.replicate_edges();
            change.replicate_edges();
            for row in 0..height {
                across(&mean, row, x.row_mut(row));
                down(&mean, row, y.row_mut(row));
            }
            x.replicate_edges();
            y.replicate_edges();
            for row in 0..height {
                let range = row * width..(row + 1) * width;
                self.x[range.clone()].copy_from_slice(x.row(row));
                self.y[range.clone()].copy_from_slice(y.row(row));
                self.z[range.clone()].copy_from_slice(change.row(row));
                across(&x, row, &mut self.xx[range.clone()]);
                down(&x, row, &mut self.xy[range.clone()]);
                down(&y, row, &mut self.yy[range.clone()]);
                across(&change, row, &mut self.xz[range.clone()]);
                down(&change, row, &mut self.yz[range]);
                self.ignore_outside(flow, row);
            }
        });
        Ok(())
    }

    /// Drops the data terms of pixels that move out of the image, so that smoothness decides there.
    #[inline(always)]
    fn ignore_outside(&mut self, flow: &Flow, row: usize) {
        let (at, width) = (row * self.width, self.width);
        let [right, bottom] = [(width - 1) as f32, (self.height - 1) as f32];
        for i in 0..width {
            let (x, y) = (i as f32 + flow.u[at + i], row as f32 + flow.v[at + i]);
            if x < 0.0 || x > right || y < 0.0 || y > bottom {
                let Self { x, y, xx, xy, yy, .. } = self;
                [x, y, xx, xy, yy].into_iter().for_each(|derivative| derivative[at + i] = 0.0);
            }
        }
    }

    /// Sets up the linear system for the current flow.
    #[inline(always)]
    fn linearize(&mut self) {
        let (height, width, stride) = (self.height, self.width, self.stride);
        self.smooth();
        for row in 0..height {
            let (at, around) = (row * width, (row + 1) * stride + 1);
            let cut = at..at + width;
            let rim = around..around + width;
            let [x, y, z] = [&self.x[cut.clone()], &self.y[cut.clone()], &self.z[cut.clone()]];
            let [xx, xy, yy] =
                [&self.xx[cut.clone()], &self.xy[cut.clone()], &self.yy[cut.clone()]];
            let [xz, yz] = [&self.xz[cut.clone()], &self.yz[cut.clone()]];
            let [u0, v0] = [&self.start[0][rim.clone()], &self.start[1][rim.clone()]];
            let [u, v] = [&self.now[0][rim.clone()], &self.now[1][rim.clone()]];
            let [right, below] = [&self.ties[0][rim.clone()], &self.ties[1][rim.clone()]];
            let left = &self.ties[0][around - 1..][..width];
            let above = &self.ties[1][around - stride..][..width];
            let coupling = &mut self.coupling[cut.clone()];
            let [inverse_u, inverse_v] = &mut self.inverse;
            let (inverse_u, inverse_v) = (&mut inverse_u[cut.clone()], &mut inverse_v[cut.clone()]);
            let [right_u, right_v] = &mut self.right;
            let (right_u, right_v) = (&mut right_u[cut.clone()], &mut right_v[cut.clone()]);
            for i in 0..width {
                let (du, dv) = (u[i] - u0[i], v[i] - v0[i]);
                let norm = 1.0 / (x[i] * x[i] + y[i] * y[i] + FLAT);
                let rest = z[i] + x[i] * du + y[i] * dv;
                let light = BRIGHTNESS * norm / (rest * rest * norm + EDGE * EDGE).sqrt();
                let norm_x = 1.0 / (xx[i] * xx[i] + xy[i] * xy[i] + FLAT);
                let norm_y = 1.0 / (xy[i] * xy[i] + yy[i] * yy[i] + FLAT);
                let rest_x = xz[i] + xx[i] * du + xy[i] * dv;
                let rest_y = yz[i] + xy[i] * du + yy[i] * dv;
                let rests = rest_x * rest_x * norm_x + rest_y * rest_y * norm_y;
                let shade = GRADIENT / (rests + EDGE * EDGE).sqrt();
                let (shade_x, shade_y) = (shade * norm_x, shade * norm_y);
                let uu = light * x[i] * x[i] + shade_x * xx[i] * xx[i] + shade_y * xy[i] * xy[i];
                let uv = light * x[i] * y[i] + shade_x * xx[i] * xy[i] + shade_y * xy[i] * yy[i];
                let vv = light * y[i] * y[i] + shade_x * xy[i] * xy[i] + shade_y * yy[i] * yy[i];
                let ub = light * x[i] * z[i] + shade_x * xx[i] * xz[i] + shade_y * xy[i] * yz[i];
                let vb = light * y[i] * z[i] + shade_x * xy[i] * xz[i] + shade_y * yy[i] * yz[i];
                let ties = left[i] + right[i] + above[i] + below[i] + 1e-6;
                coupling[i] = uv;
                inverse_u[i] = RELAXATION / (uu + ties);
                inverse_v[i] = RELAXATION / (vv + ties);
                right_u[i] = uu * u0[i] + uv * v0[i] - ub;
                right_v[i] = uv * u0[i] + vv * v0[i] - vb;
            }
        }
    }

    /// Computes the smoothness weights, which are small across edges of the flow.
    #[inline(always)]
    fn smooth(&mut self) {
        let (height, width, stride) = (self.height, self.width, self.stride);
        for now in &mut self.now {
            replicate(now, height, width);
        }
        for row in 0..height {
            let at = (row + 1) * stride + 1;
            let out = &mut self.smoothness[at..at + width];
            let [u, v] = &self.now;
            let (ul, ur) = (&u[at - 1..][..width], &u[at + 1..][..width]);
            let (ua, ub) = (&u[at - stride..][..width], &u[at + stride..][..width]);
            let (vl, vr) = (&v[at - 1..][..width], &v[at + 1..][..width]);
            let (va, vb) = (&v[at - stride..][..width], &v[at + stride..][..width]);
            for i in 0..width {
                let (ux, uy) = (0.5 * (ur[i] - ul[i]), 0.5 * (ub[i] - ua[i]));
                let (vx, vy) = (0.5 * (vr[i] - vl[i]), 0.5 * (vb[i] - va[i]));
                let bend = ux * ux + uy * uy + vx * vx + vy * vy;
                out[i] = SMOOTHNESS / (bend + EDGE * EDGE).sqrt();
            }
        }
        for row in 0..height {
            let at = (row + 1) * stride + 1;
            let here = &self.smoothness[at..][..width];
            let next = &self.smoothness[at + 1..][..width];
            let under = &self.smoothness[at + stride..][..width];
            let [across, down] = &mut self.ties;
            let (across, down) = (&mut across[at..][..width], &mut down[at..][..width]);
            for i in 0..width {
                across[i] = 0.5 * (here[i] + next[i]);
            }
            // No neighbors outside the image.
            across[width - 1] = 0.0;
            if row + 1 < height {
                for i in 0..width {
                    down[i] = 0.5 * (here[i] + under[i]);
                }
            }
        }
    }

    /// One step of red-black SOR for pixels of one color.
    #[inline(always)]
    fn relax(&mut self, color: usize) {
        let (height, width, stride) = (self.height, self.width, self.stride);
        for row in 0..height {
            let (at, around) = (row * width, (row + 1) * stride + 1);
            let turn = &self.colors[(row + color) % 2..][..width];
            let coupling = &self.coupling[at..][..width];
            let [inverse_u, inverse_v] =
                [&self.inverse[0][at..][..width], &self.inverse[1][at..][..width]];
            let [right_u, right_v] = [&self.right[0][at..][..width], &self.right[1][at..][..width]];
            let [to_right, to_below] =
                [&self.ties[0][around..][..width], &self.ties[1][around..][..width]];
            let to_left = &self.ties[0][around - 1..][..width];
            let to_above = &self.ties[1][around - stride..][..width];
            let [u, v] = &self.now;
            let (uc, vc) = (&u[around..][..width], &v[around..][..width]);
            let (ul, ur) = (&u[around - 1..][..width], &u[around + 1..][..width]);
            let (ua, ub) = (&u[around - stride..][..width], &u[around + stride..][..width]);
            let (vl, vr) = (&v[around - 1..][..width], &v[around + 1..][..width]);
            let (va, vb) = (&v[around - stride..][..width], &v[around + stride..][..width]);
            let [out_u, out_v] = &mut self.scratch;
            let (out_u, out_v) = (&mut out_u[..width], &mut out_v[..width]);
            for i in 0..width {
                let pull = to_left[i] * ul[i]
                    + to_right[i] * ur[i]
                    + to_above[i] * ua[i]
                    + to_below[i] * ub[i];
                let new = (1.0 - RELAXATION) * uc[i]
                    + inverse_u[i] * (right_u[i] - coupling[i] * vc[i] + pull);
                let u = uc[i] + turn[i] * (new - uc[i]);
                let pull = to_left[i] * vl[i]
                    + to_right[i] * vr[i]
                    + to_above[i] * va[i]
                    + to_below[i] * vb[i];
                let new = (1.0 - RELAXATION) * vc[i]
                    + inverse_v[i] * (right_v[i] - coupling[i] * u + pull);
                out_u[i] = u;
                out_v[i] = vc[i] + turn[i] * (new - vc[i]);
            }
            let [u, v] = &mut self.now;
            u[around..][..width].copy_from_slice(out_u);
            v[around..][..width].copy_from_slice(out_v);
        }
    }

    #[inline(always)]
    fn take(&self, flow: &mut Flow) {
        let width = self.width;
        for (now, out) in self.now.iter().zip([&mut flow.u, &mut flow.v]) {
            for (row, out) in out.chunks_exact_mut(width).enumerate() {
                out.copy_from_slice(&now[(row + 1) * self.stride + 1..][..width]);
            }
        }
    }
}

/// Replicates edge values into the one-pixel border.
#[inline(always)]
fn replicate(array: &mut [f32], height: usize, width: usize) {
    let stride = width + 2;
    for row in 1..=height {
        array[row * stride] = array[row * stride + 1];
        array[row * stride + width + 1] = array[row * stride + width];
    }
    array.copy_within(stride..2 * stride, 0);
    array.copy_within(height * stride..(height + 1) * stride, (height + 1) * stride);
}

/// A row of the second image, warped back by the flow.
#[inline(always)]
fn moved_row(second: &Plane, row: usize, u: &[f32], v: &[f32], out: &mut [f32]) {
    let pixels = second.pixels();
    let [right, bottom] = [(second.width - 1) as f32, (second.height - 1) as f32];
    for (i, out) in out.iter_mut().enumerate() {
        let x = (i as f32 + u[i]).max(0.0).min(right);
        let y = (row as f32 + v[i]).max(0.0).min(bottom);
        let (left, top) = (x as i32, y as i32);
        let (fx, fy) = (x - left as f32, y - top as f32);
        let at = second.index(left as isize, top as isize);
        let line = |at: usize| cubic(&pixels[at - 1..at + 3], fx);
        let stride = second.stride;
        let lines = [line(at - stride), line(at), line(at + stride), line(at + 2 * stride)];
        *out = cubic(&lines, fy);
    }
}

/// Cubic interpolation between the second and the third of four values.
#[inline(always)]
fn cubic(values: &[f32], part: f32) -> f32 {
    let [a, b, c, d] = [values[0], values[1], values[2], values[3]];
    let slope = 0.5 * (c - a);
    let square = a - 2.5 * b + 2.0 * c - 0.5 * d;
    let cube = 0.5 * (d - a) + 1.5 * (b - c);
    b + part * (slope + part * (square + part * cube))
}

/// Horizontal derivative, with a five-tap filter.
#[inline(always)]
fn across(plane: &Plane, row: usize, out: &mut [f32]) {
    let at = |x: isize| plane.row_at(x, row as isize);
    derivative([at(-2), at(-1), at(1), at(2)], out);
}

/// Vertical derivative.
#[inline(always)]
fn down(plane: &Plane, row: usize, out: &mut [f32]) {
    let at = |y: isize| plane.row_at(0, row as isize + y);
    derivative([at(-2), at(-1), at(1), at(2)], out);
}

#[inline(always)]
fn derivative([a, b, d, e]: [&[f32]; 4], out: &mut [f32]) {
    let width = out.len();
    let (a, b, d, e) = (&a[..width], &b[..width], &d[..width], &e[..width]);
    for i in 0..width {
        out[i] = (8.0 * (d[i] - b[i]) - (e[i] - a[i])) / 12.0;
    }
}
