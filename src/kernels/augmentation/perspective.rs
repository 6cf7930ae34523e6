//! Random perspective: each corner moves inwards by a random amount.

use super::sampler::Places;
use super::{Floats, chance, check_fill, move_pixels};
use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::numeric::philox::{Stream, below, fraction};
use crate::kernels::warp::Interpolation;
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Sample};

pub struct RandomPerspective;

args! {
    pub struct RandomPerspectiveArgs {
        distortion_scale: f64,
        fill_value: Floats,
        interp_type: Interpolation,
        p: f64,
        rng: Stream,
    }
}

impl Kernel for RandomPerspective {
    type Args = RandomPerspectiveArgs;
    type Plan = (RandomPerspectiveArgs, Option<Projection>);
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: RandomPerspectiveArgs, inputs: &[&Desc]) -> Result<(Self::Plan, Outputs)> {
        chance("p", args.p)?;
        check_fill(&args.fill_value, inputs[0])?;
        let given = args.distortion_scale;
        if !(0.0..=1.0).contains(&given) {
            let problem = Argument::Between { low: 0.0, high: 1.0, given };
            return Err(argument("distortion_scale", problem));
        }
        let extent = |letter| inputs[0].layout.find(letter).map_or(1, |axis| inputs[0].shape[axis]);
        let map = draw(&args, extent(b'H'), extent(b'W'));
        Ok(((args, map), one(inputs[0].clone())))
    }

    fn run((args, map): &Self::Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (input, out) = (&inputs[0], &mut outputs[0]);
        let Some(map) = map else {
            out.bytes().copy_from_slice(input.elements_as_bytes());
            return Ok(());
        };
        move_pixels(input, out, map, args.interp_type, &args.fill_value)
    }
}

/// Homography from output to source coordinates: `(a x + b y + c) / (g x + h y + 1)` for x, and the
/// same for y with `d`, `e` and `f`.
pub struct Projection([f64; 8]);

impl Places for Projection {
    fn row(&self, y: usize, xs: &mut [f64], ys: &mut [f64]) {
        let [a, b, c, d, e, f, g, h] = self.0;
        let y = y as f64 + 0.5;
        let (c, f, i) = (b * y + c, e * y + f, h * y + 1.0);
        vectorized!(copying a, c, d, f, g, i; {
            for (number, (to_x, to_y)) in xs.iter_mut().zip(ys).enumerate() {
                let x = number as u32 as f64 + 0.5;
                let depth = g * x + i;
                // Points behind the camera are treated as outside.
                let depth = if depth > 0.0 { depth } else { f64::NAN };
                *to_x = (a * x + c) / depth;
                *to_y = (d * x + f) / depth;
            }
        });
    }
}

/// Draws a homography; `None` to leave the image unchanged. As in torchvision, corners move by
/// whole pixels, at most `distortion_scale` times half the side.
fn draw(args: &RandomPerspectiveArgs, height: usize, width: usize) -> Option<Projection> {
    let mut source = args.rng.source(0);
    let [a, b, ..] = source.next();
    if fraction(a, b) >= args.p || height == 0 || width == 0 {
        return None;
    }
    let most = |side: usize| (args.distortion_scale * (side / 2) as f64) as u64 + 1;
    let mut moved = |right: bool, lower: bool| {
        let [a, b, c, d] = source.next();
        let (x, y) = (below(a, b, most(width)) as f64, below(c, d, most(height)) as f64);
        let inwards = |far: bool, side: usize, by: f64| {
            if far { (side - 1) as f64 - by } else { by }
        };
        [inwards(right, width, x), inwards(lower, height, y)]
    };
    let to = [moved(false, false), moved(true, false), moved(true, true), moved(false, true)];
    let (right, lower) = ((width - 1) as f64, (height - 1) as f64);
    let from = [[0.0, 0.0], [right, 0.0], [right, lower], [0.0, lower]];
    projection(to, from)
}

/// The homography that maps four points to four others; `None` if they are degenerate.
fn projection(from: [[f64; 2]; 4], to: [[f64; 2]; 4]) -> Option<Projection> {
    let mut rows = [[0.0; 9]; 8];
    for (k, ([x, y], [u, v])) in from.into_iter().zip(to).enumerate() {
        rows[2 * k] = [x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, u];
        rows[2 * k + 1] = [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, v];
    }
    // Gauss-Jordan elimination with partial pivoting.
    for column in 0..8 {
        let largest =
            |&a: &usize, &b: &usize| f64::total_cmp(&rows[a][column].abs(), &rows[b][column].abs());
        let pivot = (column..8).max_by(largest)?;
        rows.swap(column, pivot);
        let scale = rows[column][column];
        if scale.abs() < 1e-12 {
            return None;
        }
        rows[column] = rows[column].map(|x| x / scale);
        let own = rows[column];
        for (k, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if k != column {
                row.iter_mut().zip(own).for_each(|(x, own)| *x -= factor * own);
            }
        }
    }
    let found = rows.map(|row| row[8]);
    found.iter().all(|x| x.is_finite()).then_some(Projection(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projection_maps_the_given_points() {
        let from = [[1.0, 2.0], [90.0, 0.0], [99.0, 70.0], [3.0, 60.0]];
        let to = [[0.0, 0.0], [99.0, 0.0], [99.0, 79.0], [0.0, 79.0]];
        let Projection([a, b, c, d, e, f, g, h]) = projection(from, to).unwrap();
        for ([x, y], [u, v]) in from.into_iter().zip(to) {
            let depth = g * x + h * y + 1.0;
            assert!(((a * x + b * y + c) / depth - u).abs() < 1e-9);
            assert!(((d * x + e * y + f) / depth - v).abs() < 1e-9);
        }
    }

    #[test]
    fn degenerate_points_have_no_projection() {
        assert!(projection([[0.0; 2]; 4], [[0.0; 2]; 4]).is_none());
    }
}
