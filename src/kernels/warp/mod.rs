//! Geometric transforms of images: warp_affine and rotate, also of volumes; warp_perspective, remap.
//!
//! Coordinates are continuous: the first pixel covers 0 to 1, and its center is at one half.

mod bytes;
mod line;
mod numbers;
pub(super) mod perspective;
pub(crate) mod places;

use smallvec::SmallVec;

use self::problem::Warp;
use super::regions::{LONGEST, too_large};
use super::{
    Arg, Entry, Family, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one,
};
use crate::kernels::contract::frames;
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::portable::sin_cos_of_turn;
use crate::kernels::numeric::precision::is_long;
use crate::value::Problem;
use crate::value::{Cause, DType, Desc, Sample, extent, with_room};

pub const FAMILY: Family = Family {
    kernels: &[TABLE],
    problems: &[problem::Warp::KINDS, perspective::problem::Perspective::KINDS],
};

const TABLE: &[Entry] = &[
    Entry::new::<WarpAffine>("warp_affine"),
    Entry::new::<Rotate>("rotate"),
    Entry::new::<perspective::Remap>("experimental.remap"),
    Entry::new::<perspective::WarpPerspective>("experimental.warp_perspective"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Warp {
            NoPixels,
            Size { given: Vec<f64> },
            MatrixNumbers { wanted: &'static str, given: usize },
            NotFinite { given: Vec<f64> },
            NoInverse { matrix: Vec<f64> },
            MatrixShape { wanted: &'static str, shape: Vec<usize> },
            NoMatrix,
            NoAxis,
            Axis { given: Vec<f64> },
            NoDirection { given: Vec<f64> },
        }
    }
}

type Floats = SmallVec<[f64; 6]>;

/// How values between pixels are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interpolation {
    Nearest,
    Linear,
}

impl FromArg for Interpolation {
    fn from_constant(arg: &Arg) -> std::result::Result<Interpolation, Problem> {
        match arg {
            Arg::Int(0) => Ok(Interpolation::Nearest),
            Arg::Int(1) => Ok(Interpolation::Linear),
            other => {
                let choices = "INTERP_NN, INTERP_LINEAR";
                Err(Argument::OneOf { choices, given: other.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Interpolation, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// The width, height and depth of images; without a depth axis, the depth is one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extents {
    volumetric: bool,
    /// Along x, y and z.
    sides: [usize; 3],
}

impl Extents {
    fn of(desc: &Desc) -> Extents {
        let side = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        Extents {
            volumetric: desc.layout.find(b'D').is_some(),
            sides: [side(b'W'), side(b'H'), side(b'D')],
        }
    }

    fn dimensions(&self) -> usize {
        if self.volumetric { 3 } else { 2 }
    }

    /// The extents requested by `size`, which is in the order of the layout.
    fn requested(&self, size: &[f64]) -> Result<Extents> {
        let count = self.dimensions();
        if size.len() != count {
            let given = size.to_vec();
            return Err(argument("size", Argument::Numbers { wanted: count, given }));
        }
        let mut made = *self;
        for (side, &wanted) in made.sides.iter_mut().zip(size.iter().rev()) {
            if !(wanted > -1.0 && wanted <= LONGEST) {
                return Err(argument("size", Warp::Size { given: size.to_vec() }));
            }
            *side = wanted as usize;
        }
        Ok(made)
    }

    /// The description of images like `like`, with these sides.
    fn describe(&self, like: &Desc, dtype: Option<DType>) -> Result<Desc> {
        let mut desc = Desc { dtype: dtype.unwrap_or(like.dtype), ..like.clone() };
        for (letter, side) in [b'W', b'H', b'D'].into_iter().zip(self.sides) {
            if let Some(axis) = desc.layout.find(letter) {
                desc.shape[axis] = side;
            }
        }
        if extent(&desc.shape).is_none() {
            return Err(too_large("size"));
        }
        Ok(desc)
    }
}

/// An affine map from output positions to source positions: rows for x, y and z, with factors of x,
/// y and z and an offset.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Map([[f64; 4]; 3]);

impl Map {
    /// From the numbers of a matrix with two rows, or three for volumes.
    fn new(numbers: &[f64], volumetric: bool) -> Option<Map> {
        match (volumetric, numbers) {
            (false, &[a, b, c, d, e, f]) => {
                Some(Map([[a, b, 0.0, c], [d, e, 0.0, f], [0.0, 0.0, 1.0, 0.0]]))
            }
            (true, &[a, b, c, d, e, f, g, h, i, j, k, l]) => {
                Some(Map([[a, b, c, d], [e, f, g, h], [i, j, k, l]]))
            }
            _ => None,
        }
    }

    fn is_finite(&self) -> bool {
        self.0.as_flattened().iter().all(|x| x.is_finite())
    }

    fn inverse(&self) -> Option<Map> {
        let m = &self.0;
        let minor = |r: [usize; 2], c: [usize; 2]| {
            m[r[0]][c[0]] * m[r[1]][c[1]] - m[r[0]][c[1]] * m[r[1]][c[0]]
        };
        const OTHERS: [[usize; 2]; 3] = [[1, 2], [2, 0], [0, 1]];
        let determinant: f64 = (0..3).map(|c| m[0][c] * minor(OTHERS[0], OTHERS[c])).sum();
        if determinant == 0.0 || !determinant.is_finite() {
            return None;
        }
        let mut inverse = [[0.0; 4]; 3];
        for (i, row) in inverse.iter_mut().enumerate() {
            for j in 0..3 {
                row[j] = minor(OTHERS[j], OTHERS[i]) / determinant;
            }
            row[3] = -(0..3).map(|j| row[j] * m[j][3]).sum::<f64>();
        }
        let inverse = Map(inverse);
        inverse.is_finite().then_some(inverse)
    }

    /// A rotation that maps the output's center to the image's center.
    fn about_centres(turn: [[f64; 3]; 3], from: &Extents, to: &Extents) -> Map {
        let centre = |extents: &Extents| extents.sides.map(|n| n as f64 / 2.0);
        let (from, to) = (centre(from), centre(to));
        let mut map = [[0.0; 4]; 3];
        for (i, row) in map.iter_mut().enumerate() {
            row[..3].copy_from_slice(&turn[i]);
            row[3] = from[i] - (0..3).map(|j| turn[i][j] * to[j]).sum::<f64>();
        }
        Map(map)
    }

    /// The source position of an output position.
    fn apply(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        self.0.map(|[a, b, c, d]| a * x + b * y + c * z + d)
    }
}

/// Whether positions need double precision for images of this size. Otherwise they are computed in
/// single precision, as in DALI.
fn needs_double(from: &Extents, to: &Extents) -> bool {
    from.sides.into_iter().chain(to.sides).any(is_long)
}

/// How to sample the image.
struct Sampling {
    interpolation: Interpolation,
    /// The value outside the image; `None` replicates the edge pixels.
    fill: Option<f64>,
}

fn warp(sampling: &Sampling, map: &Map, image: &Sample, out: &mut Output<'_>) -> Result<()> {
    if out.desc.elements() == 0 {
        return Ok(());
    }
    if image.desc.elements() == 0 && sampling.fill.is_none() {
        return Err(unfit(0, Warp::NoPixels));
    }
    let plain = image.desc.dtype == DType::U8 && out.desc.dtype == DType::U8;
    if plain && sampling.interpolation == Interpolation::Linear {
        let (from, to) = (Extents::of(&image.desc), Extents::of(out.desc));
        if !from.volumetric {
            bytes::warp(sampling.fill, map, image.elements(), &from, out, &to);
            return Ok(());
        }
    }
    numbers::warp(sampling, map, image, out)
}

pub struct WarpAffine;

args! {
    pub struct WarpAffineArgs {
        dtype: Option<DType>,
        fill_value: Option<f64>,
        interp_type: Interpolation,
        inverse_map: bool,
        matrix: Option<Floats>,
        size: Option<Floats>,
    }
}

/// How to sample, and the map from output positions to source positions.
pub struct Warping {
    sampling: Sampling,
    /// `None` if it is the second input.
    map: Option<Map>,
    inverse_map: bool,
}

/// The map of a matrix, in the direction from output to source.
fn map_of(numbers: &Floats, volumetric: bool, inverse_map: bool) -> Result<Map> {
    let Some(map) = Map::new(numbers, volumetric) else {
        let (given, wanted) = (numbers.len(), matrix_size(volumetric));
        return Err(argument("matrix", Warp::MatrixNumbers { wanted, given }));
    };
    if !map.is_finite() {
        return Err(argument("matrix", Warp::NotFinite { given: numbers.to_vec() }));
    }
    match inverse_map {
        true => Ok(map),
        false => map.inverse().ok_or_else(|| Cause::Value {
            problem: Warp::NoInverse { matrix: numbers.to_vec() }.into(),
        }),
    }
}

fn matrix_size(volumetric: bool) -> &'static str {
    if volumetric { "3x4" } else { "2x3" }
}

impl Kernel for WarpAffine {
    type Args = WarpAffineArgs;
    type Plan = Warping;
    const TRAITS: Traits =
        Traits { cheap: false, uniform_outputs: true, frames: Frames::Made, ..Traits::DEFAULT };

    fn plan(args: WarpAffineArgs, inputs: &[&Desc]) -> Result<(Warping, Outputs)> {
        let own = Extents::of(inputs[0]);
        let extents = match args.size.as_deref() {
            None | Some([]) => own,
            Some(size) => own.requested(size)?,
        };
        let desc = extents.describe(inputs[0], args.dtype)?;
        let map = match inputs.get(1) {
            Some(matrix) => {
                let expected = if own.volumetric { [3, 4] } else { [2, 3] };
                if matrix.shape[..] != expected {
                    let (wanted, shape) = (matrix_size(own.volumetric), matrix.shape.to_vec());
                    return Err(unfit(1, Warp::MatrixShape { wanted, shape }));
                }
                None
            }
            None => match args.matrix.filter(|matrix| !matrix.is_empty()) {
                Some(numbers) => Some(map_of(&numbers, own.volumetric, args.inverse_map)?),
                None => {
                    return Err(argument("matrix", Warp::NoMatrix));
                }
            },
        };
        let sampling = Sampling { interpolation: args.interp_type, fill: args.fill_value };
        Ok((Warping { sampling, map, inverse_map: args.inverse_map }, one(desc)))
    }

    fn run(plan: &Warping, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        if let Some(map) = &plan.map {
            return warp(&plan.sampling, map, &inputs[0], out);
        }
        let numbers = Floats::from_sample(&inputs[1]).map_err(|problem| unfit(1, problem))?;
        let map = map_of(&numbers, Extents::of(out.desc).volumetric, plan.inverse_map)?;
        warp(&plan.sampling, &map, &inputs[0], out)
    }
}

pub struct Rotate;

args! {
    pub struct RotateArgs {
        angle: f64,
        axis: Option<Floats>,
        dtype: Option<DType>,
        fill_value: Option<f64>,
        interp_type: Interpolation,
        keep_size: bool,
        size: Option<Floats>,
    }
}

impl RotateArgs {
    /// The rotation of source positions, relative to the center, to output positions.
    fn turn(&self, volumetric: bool) -> Result<[[f64; 3]; 3]> {
        if !self.angle.is_finite() {
            return Err(argument("angle", Argument::NotFinite { given: self.angle }));
        }
        let (s, c) = sin_cos_of_degrees(self.angle);
        if !volumetric {
            // Counter-clockwise as seen by the viewer, since y points down.
            return Ok([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]);
        }
        let Some(axis) = self.axis.as_deref().filter(|axis| !axis.is_empty()) else {
            return Err(argument("axis", Warp::NoAxis));
        };
        let &[x, y, z] = axis else {
            return Err(argument("axis", Warp::Axis { given: axis.to_vec() }));
        };
        let length = (x * x + y * y + z * z).sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return Err(argument("axis", Warp::NoDirection { given: axis.to_vec() }));
        }
        let [x, y, z] = [x / length, y / length, z / length];
        let d = 1.0 - c;
        Ok([
            [c + x * x * d, x * y * d - z * s, x * z * d + y * s],
            [y * x * d + z * s, c + y * y * d, y * z * d - x * s],
            [z * x * d - y * s, z * y * d + x * s, c + z * z * d],
        ])
    }

    /// The requested sides, if any.
    fn requested(&self, own: &Extents) -> Result<Option<Extents>> {
        match self.size.as_deref() {
            Some(size) if !size.is_empty() => own.requested(size).map(Some),
            _ => Ok(self.keep_size.then_some(*own)),
        }
    }
}

fn sin_cos_of_degrees(angle: f64) -> (f64, f64) {
    sin_cos_of_turn((angle / 360.0).rem_euclid(1.0).min(1.0 - f64::EPSILON))
}

/// The size of an output that holds the whole rotated image.
struct Canvas {
    /// The minimal sides.
    sides: [usize; 3],
    /// Whether the sides should be odd. As in DALI, a side has the parity of the image side that
    /// contributes most to it, so that pixel centers don't move by half a pixel.
    odd: [bool; 3],
}

impl Canvas {
    fn new(turn: &[[f64; 3]; 3], own: &Extents, angle: f64) -> Result<Canvas> {
        let mut made = Canvas { sides: own.sides, odd: own.sides.map(|side| side % 2 == 1) };
        // Which of two sides with the same weight counts depends on the last bit, here as in DALI
        // that of an angle in single precision.
        let flat = {
            let radians = f64::from((angle as f32) * (std::f32::consts::PI / 180.0));
            (radians.sin().abs(), radians.cos().abs())
        };
        for (axis, row) in turn.iter().enumerate().take(own.dimensions()) {
            let weights = row.map(f64::abs);
            let length: f64 = weights.iter().zip(own.sides).map(|(&w, n)| w * n as f64).sum();
            let heavier = |main: usize, other: usize| {
                if weights[other] > weights[main] + 1e-6 { other } else { main }
            };
            let main = match own.volumetric {
                true => (0..3).fold(axis, heavier),
                false if flat.0 >= flat.1 => 1 - axis,
                false => axis,
            };
            // Doesn't add a pixel for a hundredth of a pixel.
            let side = (length - 0.01).ceil().max(0.0);
            if side > LONGEST {
                return Err(too_large("angle"));
            }
            made.sides[axis] = side as usize;
            made.odd[axis] = own.sides[main] % 2 == 1;
        }
        Ok(made)
    }

    /// The sides that hold all canvases; odd if most of them should be.
    fn of_all(canvases: &[&Canvas]) -> [usize; 3] {
        [0, 1, 2].map(|axis| {
            let side = canvases.iter().map(|canvas| canvas.sides[axis]).max().unwrap_or(0);
            let odd = canvases.iter().filter(|canvas| canvas.odd[axis]).count();
            let odd = 2 * odd > canvases.len();
            side + usize::from((side % 2 == 1) != odd)
        })
    }
}

/// Height and width of the canvas that holds the whole of an image rotated by this many degrees.
pub fn rotated_size(height: usize, width: usize, angle: f64) -> Result<[usize; 2]> {
    let own = Extents { volumetric: false, sides: [width, height, 1] };
    let (s, c) = sin_cos_of_degrees(angle);
    let turn = [[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]];
    let [width, height, _] = Canvas::of_all(&[&Canvas::new(&turn, &own, angle)?]);
    Ok([height, width])
}

/// A rotation, and how to sample.
pub struct Rotation {
    /// From source positions, relative to the center, to output positions.
    turn: [[f64; 3]; 3],
    /// The size that holds the whole rotated image; `None` if the size is given.
    canvas: Option<Canvas>,
    dtype: Option<DType>,
    sampling: Sampling,
}

impl Kernel for Rotate {
    type Args = RotateArgs;
    type Plan = Rotation;
    const TRAITS: Traits = Traits { cheap: false, ..Traits::DEFAULT };

    fn plan(args: RotateArgs, inputs: &[&Desc]) -> Result<(Rotation, Outputs)> {
        let own = Extents::of(inputs[0]);
        let requested = args.requested(&own)?;
        let turn = args.turn(own.volumetric)?;
        let (made, canvas) = match requested {
            Some(requested) => (requested, None),
            None => {
                let canvas = Canvas::new(&turn, &own, args.angle)?;
                (Extents { sides: Canvas::of_all(&[&canvas]), ..own }, Some(canvas))
            }
        };
        let desc = made.describe(inputs[0], args.dtype)?;
        let sampling = Sampling { interpolation: args.interp_type, fill: args.fill_value };
        Ok((Rotation { turn, canvas, dtype: args.dtype, sampling }, one(desc)))
    }

    fn run(plan: &Rotation, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let (from, to) = (Extents::of(&inputs[0].desc), Extents::of(out.desc));
        let turn = &plan.turn;
        // The inverse of a rotation is its transpose.
        let back = [0, 1, 2].map(|i| [turn[0][i], turn[1][i], turn[2][i]]);
        let map = Map::about_centres(back, &from, &to);
        warp(&plan.sampling, &map, &inputs[0], out)
    }

    /// Frames with different angles share a canvas that is large enough for all.
    fn fit(plans: &[Rotation], inputs: &[&Desc], frames: &[Desc]) -> Result<Desc> {
        let mut canvases = with_room(plans.len())?;
        canvases.extend(plans.iter().filter_map(|plan| plan.canvas.as_ref()));
        if canvases.len() < plans.len() {
            return Ok(frames::largest(frames));
        }
        let made = Extents { sides: Canvas::of_all(&canvases), ..Extents::of(inputs[0]) };
        made.describe(inputs[0], plans[0].dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_and_its_inverse_cancel() {
        let numbers = [1.5, 0.25, -1.0, 3.0, 0.5, -2.0, 0.125, 7.0, 0.0, 0.75, 1.0, -4.0];
        let map = Map::new(&numbers, true).unwrap();
        let back = map.inverse().unwrap();
        let place = [3.0, -5.0, 11.0];
        for (a, b) in back.apply(map.apply(place)).into_iter().zip(place) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
        assert_eq!(Map::new(&[1.0, 2.0, 0.0, 2.0, 4.0, 0.0], false).unwrap().inverse(), None);
    }

    #[test]
    fn canvases_keep_the_parity_of_the_side_they_come_from() {
        let canvas = |h, w, angle| {
            let own = Extents { volumetric: false, sides: [w, h, 1] };
            let args = RotateArgs {
                angle,
                axis: None,
                dtype: None,
                fill_value: None,
                interp_type: Interpolation::Linear,
                keep_size: false,
                size: None,
            };
            Canvas::new(&args.turn(false).unwrap(), &own, angle).unwrap()
        };
        let sides = |h, w, angles: &[f64]| {
            let canvases: Vec<Canvas> = angles.iter().map(|&angle| canvas(h, w, angle)).collect();
            let made = Canvas::of_all(&canvases.iter().collect::<Vec<_>>());
            (made[1], made[0])
        };
        // Observed with DALI.
        assert_eq!(sides(10, 20, &[1.0]), (12, 22));
        assert_eq!(sides(10, 20, &[30.0]), (20, 24));
        assert_eq!(sides(10, 20, &[45.0]), (22, 22));
        assert_eq!(sides(10, 20, &[90.0]), (20, 10));
        assert_eq!(sides(11, 21, &[10.0]), (15, 23));
        assert_eq!(sides(11, 20, &[45.0]), (22, 23));
        // For several frames, the majority decides.
        assert_eq!(sides(5, 8, &[10.0, 80.0, 30.0]), (9, 10));
    }
}
