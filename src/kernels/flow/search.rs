//! Dense inverse search (Kroeger et al., "Fast Optical Flow using Dense Inverse Search", 2016):
//! patches of the first image are matched in the second one by gradient descent, initialized from
//! the coarser scale or from a neighboring patch. Gradients are those of the first image, so they
//! are computed once per patch.

// Indexed loops over several slices vectorize better than zipped iterators.
#![allow(clippy::needless_range_loop)]

use super::plane::{Flow, Plane};
use crate::kernels::Result;
use crate::kernels::numeric::isa::vectorized;
use crate::value::zeroed;

pub const PATCH: usize = 8;
const PIXELS: f32 = (PATCH * PATCH) as f32;
/// Descent stops when the squared step is smaller than this, in pixels.
const SMALL_STEP: f32 = 1e-4;
/// Patches with less texture than this are too flat to match.
const LEAST_TEXTURE: f32 = 1e-3;
/// Patches may lie entirely outside the image, but not farther than one patch.
const OUTSIDE: f32 = PATCH as f32;

type Lanes = [f32; PATCH];

/// Layout of the patches, and number of descent steps.
#[derive(Clone, Copy)]
pub struct Search {
    pub stride: usize,
    pub iterations: usize,
}

impl Search {
    /// Replaces the flow by the result of the patch search, initialized from it.
    pub fn run(self, first: &Plane, second: &Plane, flow: &mut Flow) -> Result<()> {
        let columns = places(first.width, self.stride);
        let rows = places(first.height, self.stride);
        let mut found = zeroed::<f32>(2 * columns.len() * rows.len())?;
        let mut sums = Sums::new(first.height, first.width)?;
        vectorized!({
            self.find(first, second, flow, &columns, &rows, &mut found);
            for (index, motion) in found.as_chunks::<2>().0.iter().enumerate() {
                let [x, y] = [columns[index % columns.len()], rows[index / columns.len()]];
                sums.add(first, second, [x, y], *motion);
            }
            sums.mean(flow);
        });
        Ok(())
    }

    #[inline(always)]
    fn find(
        self,
        first: &Plane,
        second: &Plane,
        flow: &Flow,
        columns: &[usize],
        rows: &[usize],
        found: &mut [f32],
    ) {
        let across = columns.len();
        let (found, _) = found.as_chunks_mut::<2>();
        let iterations = self.iterations.div_ceil(2);
        // Propagate from the left and top neighbors, then from the right and bottom ones.
        for backwards in [false, true] {
            for step in 0..found.len() {
                let index = if backwards { found.len() - 1 - step } else { step };
                let (column, row) = (index % across, index / across);
                let (x, y) = (columns[column], rows[row]);
                let template = Template::new(first, x, y);
                let [center_x, center_y] =
                    [(x + PATCH / 2).min(flow.width - 1), (y + PATCH / 2).min(flow.height - 1)];
                let center = center_y * flow.width + center_x;
                let start = [flow.u[center], flow.v[center]];
                let own = if backwards { found[index] } else { start };
                let neighbours = match backwards {
                    false => [(column > 0).then(|| index - 1), (row > 0).then(|| index - across)],
                    true => [
                        (column + 1 < across).then_some(index + 1),
                        (index + across < found.len()).then_some(index + across),
                    ],
                };
                let mut best = Fit::new(&template, second, own);
                for neighbour in neighbours.into_iter().flatten() {
                    let motion = found[neighbour];
                    if motion != best.motion {
                        let other = Fit::new(&template, second, motion);
                        if other.cost < best.cost {
                            best = other;
                        }
                    }
                }
                let origin = best.motion;
                let motion = template.descend(second, best, iterations);
                let far = |from: [f32; 2]| {
                    let [du, dv] = [motion[0] - from[0], motion[1] - from[1]];
                    du * du + dv * dv > PIXELS
                };
                found[index] = if far(origin) { own } else { motion };
            }
        }
    }
}

/// Start positions of patches: every `stride` pixels, and one flush with the end.
fn places(extent: usize, stride: usize) -> Vec<usize> {
    let last = extent.saturating_sub(PATCH);
    let mut places: Vec<usize> = (0..last).step_by(stride).collect();
    places.push(last);
    places
}

/// A patch of the first image with its gradients.
struct Template {
    place: [f32; 2],
    values: [Lanes; PATCH],
    across: [Lanes; PATCH],
    down: [Lanes; PATCH],
    /// Sums of the gradients, for mean normalization.
    sums: [f32; 2],
    /// Inverse of the Hessian (structure tensor), which maps gradients to steps; `None` if the
    /// patch has too little texture.
    step: Option<[f32; 3]>,
}

#[inline(always)]
fn lanes(pixels: &[f32], start: usize) -> Lanes {
    let mut lanes = [0.0; PATCH];
    lanes.copy_from_slice(&pixels[start..start + PATCH]);
    lanes
}

impl Template {
    #[inline(always)]
    fn new(plane: &Plane, x: usize, y: usize) -> Template {
        let pixels = plane.pixels();
        let start = plane.index(x as isize, y as isize);
        let stride = plane.stride;
        let zero = [[0.0; PATCH]; PATCH];
        let (mut values, mut across, mut down) = (zero, zero, zero);
        let mut sums = [[0.0; PATCH]; 5];
        for row in 0..PATCH {
            let at = start + row * stride;
            values[row] = lanes(pixels, at);
            let [left, right] = [lanes(pixels, at - 1), lanes(pixels, at + 1)];
            let [above, below] = [lanes(pixels, at - stride), lanes(pixels, at + stride)];
            for i in 0..PATCH {
                let gx = 0.5 * (right[i] - left[i]);
                let gy = 0.5 * (below[i] - above[i]);
                across[row][i] = gx;
                down[row][i] = gy;
                sums[0][i] += gx;
                sums[1][i] += gy;
                sums[2][i] += gx * gx;
                sums[3][i] += gx * gy;
                sums[4][i] += gy * gy;
            }
        }
        let [sx, sy, xx, xy, yy] = sums.map(|lanes| lanes.iter().sum::<f32>());
        // Patches are mean-normalized, so that a change in brightness is not taken for motion.
        let (xx, xy, yy) = (xx - sx * sx / PIXELS, xy - sx * sy / PIXELS, yy - sy * sy / PIXELS);
        let determinant = xx * yy - xy * xy;
        let usable = determinant > LEAST_TEXTURE * (xx + yy) && determinant.is_finite();
        let step = usable.then(|| [yy, -xy, xx].map(|part| part / determinant));
        Template { place: [x as f32, y as f32], values, across, down, sums: [sx, sy], step }
    }

    /// Gradient descent from a starting point; stops when the cost no longer decreases.
    #[inline(always)]
    fn descend(&self, second: &Plane, start: Fit, iterations: usize) -> [f32; 2] {
        let Some([a, b, c]) = self.step else { return start.motion };
        let mut best = start;
        for _ in 0..iterations {
            let [gx, gy] = best.gradient;
            let (du, dv) = (a * gx + b * gy, b * gx + c * gy);
            let next = Fit::new(self, second, [best.motion[0] - du, best.motion[1] - dv]);
            if next.cost >= best.cost || next.cost.is_nan() {
                break;
            }
            best = next;
            if du * du + dv * dv < SMALL_STEP {
                break;
            }
        }
        best.motion
    }
}

/// Cost of a motion of a patch.
struct Fit {
    motion: [f32; 2],
    /// Sum of squared differences, and its gradient.
    cost: f32,
    gradient: [f32; 2],
}

impl Fit {
    #[inline(always)]
    fn new(template: &Template, second: &Plane, motion: [f32; 2]) -> Fit {
        let mut sums = [[0.0; PATCH]; 4];
        at(second, template.place, motion, |row, values| {
            let (gx, gy) = (&template.across[row], &template.down[row]);
            let expected = &template.values[row];
            for i in 0..PATCH {
                let difference = values[i] - expected[i];
                sums[0][i] += difference;
                sums[1][i] += difference * difference;
                sums[2][i] += difference * gx[i];
                sums[3][i] += difference * gy[i];
            }
        });
        let [sum, squares, x, y] = sums.map(|lanes| lanes.iter().sum::<f32>());
        let [sx, sy] = template.sums;
        let gradient = [x - sx * sum / PIXELS, y - sy * sum / PIXELS];
        Fit { motion, cost: squares - sum * sum / PIXELS, gradient }
    }
}

/// Samples a patch of the second image bilinearly, row by row.
#[inline(always)]
fn at(second: &Plane, [x, y]: [f32; 2], [u, v]: [f32; 2], mut each: impl FnMut(usize, &Lanes)) {
    let x = (x + u).clamp(-OUTSIDE, second.width as f32);
    let y = (y + v).clamp(-OUTSIDE, second.height as f32);
    let (left, top) = (x.floor(), y.floor());
    let (fx, fy) = (x - left, y - top);
    let pixels = second.pixels();
    let start = second.index(left as isize, top as isize);
    let mixed = |row: usize| {
        let from = start + row * second.stride;
        let [a, b] = [lanes(pixels, from), lanes(pixels, from + 1)];
        let mut out = [0.0; PATCH];
        for i in 0..PATCH {
            out[i] = a[i] + fx * (b[i] - a[i]);
        }
        out
    };
    let mut above = mixed(0);
    for row in 0..PATCH {
        let below = mixed(row + 1);
        let mut values = [0.0; PATCH];
        for i in 0..PATCH {
            values[i] = above[i] + fy * (below[i] - above[i]);
        }
        each(row, &values);
        above = below;
    }
}

/// Weighted sums of the patches' motions at each pixel, and the sums of weights.
struct Sums {
    stride: usize,
    u: Vec<f32>,
    v: Vec<f32>,
    weights: Vec<f32>,
}

impl Sums {
    fn new(height: usize, width: usize) -> Result<Sums> {
        // Padded because patches can be larger than small images.
        let stride = width + PATCH;
        let count = stride.saturating_mul(height + PATCH);
        Ok(Sums { stride, u: zeroed(count)?, v: zeroed(count)?, weights: zeroed(count)? })
    }

    /// Adds a patch; pixels are weighted by how well they match.
    #[inline(always)]
    fn add(&mut self, first: &Plane, second: &Plane, [x, y]: [usize; 2], motion: [f32; 2]) {
        let pixels = first.pixels();
        let from = first.index(x as isize, y as isize);
        at(second, [x as f32, y as f32], motion, |row, values| {
            let expected = lanes(pixels, from + row * first.stride);
            let to = (y + row) * self.stride + x;
            let [us, vs, weights] =
                [&mut self.u, &mut self.v, &mut self.weights].map(|sums| &mut sums[to..to + PATCH]);
            for i in 0..PATCH {
                let weight = 1.0 / (values[i] - expected[i]).abs().max(1.0);
                us[i] += weight * motion[0];
                vs[i] += weight * motion[1];
                weights[i] += weight;
            }
        });
    }

    #[inline(always)]
    fn mean(&self, flow: &mut Flow) {
        for y in 0..flow.height {
            let from = y * self.stride;
            let to = y * flow.width;
            let weights = &self.weights[from..][..flow.width];
            for (sums, out) in [(&self.u, &mut flow.u), (&self.v, &mut flow.v)] {
                let sums = &sums[from..][..flow.width];
                for ((out, sum), weight) in
                    out[to..][..flow.width].iter_mut().zip(sums).zip(weights)
                {
                    *out = sum / weight;
                }
            }
        }
    }
}
