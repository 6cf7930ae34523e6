//! Bounding boxes of rotated images.

use smallvec::{SmallVec, smallvec};

use super::problem::Boxes;
use super::{floats, labels};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::regions::LONGEST;
use crate::kernels::warp::problem::Warp;
use crate::kernels::warp::rotated_size;
use crate::kernels::{Allocate, Arg, DirectKernel, FromArg, Result, Samples, Traits, args};
use crate::value::{DType, Desc, Layout, Problem, Sample, with_room};

pub struct BboxRotate;

/// Size of the axis-aligned box that replaces a rotated box.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Encloses the whole rotated box.
    Expand,
    /// Keeps the original size.
    Fixed,
    Halfway,
}

impl FromArg for Mode {
    fn from_constant(arg: &Arg) -> std::result::Result<Mode, Problem> {
        match arg {
            Arg::Text(name) if &**name == "expand" => Ok(Mode::Expand),
            Arg::Text(name) if &**name == "fixed" => Ok(Mode::Fixed),
            Arg::Text(name) if &**name == "halfway" => Ok(Mode::Halfway),
            other => {
                let choices = "expand, fixed, halfway";
                Err(Argument::OneOf { choices, given: other.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Mode, Problem> {
        Err(Argument::SameForAll.into())
    }
}

args! {
    pub struct BboxRotateArgs {
        angle: f64,
        bbox_layout: Layout,
        bbox_normalized: bool,
        input_shape: SmallVec<[i64; 6]>,
        keep_size: bool,
        mode: Mode,
        remove_threshold: f64,
        shape_layout: Layout,
        size: Option<SmallVec<[f64; 6]>>,
    }
}

impl DirectKernel for BboxRotate {
    type Args = BboxRotateArgs;
    const TRAITS: Traits = Traits::DEFAULT;

    fn run(args: &BboxRotateArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let boxes = inputs[0].compact()?;
        let [count, 4] = boxes.desc.shape[..] else {
            let shape = boxes.desc.shape.to_vec();
            return Err(unfit(0, Boxes::NotRows { wanted: "4", shape }));
        };
        let rows = floats(0, &boxes)?.as_chunks::<4>().0;
        let rotation = Rotation::new(args)?;
        let mut kept: Vec<(usize, [f32; 4])> = with_room(count)?;
        kept.extend(
            rows.iter().enumerate().filter_map(|(index, &row)| Some((index, rotation.of(row)?))),
        );
        let mut made = allocate(0, Desc::new(DType::F32, &[kept.len(), 4]))?;
        for (dst, (_, row)) in made.elements::<f32>().as_chunks_mut::<4>().0.iter_mut().zip(&kept) {
            *dst = *row;
        }
        let mut results: Samples = smallvec![made.into_sample()?];
        if let Some(input) = inputs.get(1) {
            let input = input.compact()?;
            let given = labels(1, &input, count)?;
            let mut shape = input.desc.shape.clone();
            shape[0] = kept.len();
            let mut made = allocate(1, Desc::new(DType::I32, &shape))?;
            for (dst, &(index, _)) in made.elements::<i32>().iter_mut().zip(&kept) {
                *dst = given[index];
            }
            results.push(made.into_sample()?);
        }
        Ok(results)
    }
}

/// Rotation of boxes about the image center. Single precision and the same order of operations as
/// DALI, so the results are bit-exact.
struct Rotation {
    cos: f32,
    sin: f32,
    /// Width and height of the input and of the output image.
    from: [f32; 2],
    to: [f32; 2],
    normalized: bool,
    /// Whether a row ends with width and height instead of the second corner.
    sized: bool,
    mode: Mode,
    least: f32,
}

impl Rotation {
    fn new(args: &BboxRotateArgs) -> Result<Rotation> {
        if !args.angle.is_finite() {
            return Err(argument("angle", Argument::NotFinite { given: args.angle }));
        }
        let sized = match args.bbox_layout.letters() {
            b"xyXY" => false,
            b"xyWH" => true,
            _ => {
                let given = args.bbox_layout.as_str().to_string();
                return Err(argument("bbox_layout", Boxes::BoxLayout { wanted: "xyXY", given }));
            }
        };
        let [width, height] = args.extents()?;
        let [to_width, to_height] = match args.size.as_deref() {
            Some(&[height, width]) => {
                for side in [height, width] {
                    if !(0.0..=LONGEST).contains(&side) {
                        return Err(argument("size", Warp::Size { given: vec![height, width] }));
                    }
                }
                [width.trunc(), height.trunc()]
            }
            Some(size) if !size.is_empty() => {
                let problem = Argument::Numbers { wanted: 2, given: size.to_vec() };
                return Err(argument("size", problem));
            }
            _ if args.keep_size => [width as f64, height as f64],
            _ => {
                let [height, width] = rotated_size(height, width, args.angle)?;
                [width as f64, height as f64]
            }
        };
        let radians = args.angle as f32 * (std::f64::consts::PI / 180.0) as f32;
        Ok(Rotation {
            cos: radians.cos(),
            sin: radians.sin(),
            from: [width as f32, height as f32],
            to: [to_width as f32, to_height as f32],
            normalized: args.bbox_normalized,
            sized,
            mode: args.mode,
            least: args.remove_threshold as f32,
        })
    }

    /// Rotates and clips a box; `None` if too little of it remains.
    fn of(&self, [x, y, x2, y2]: [f32; 4]) -> Option<[f32; 4]> {
        let [width, height] = self.from;
        let (x2, y2) = if self.sized { (x + x2, y + y2) } else { (x2, y2) };
        let centred = |place: f32, side: f32| match self.normalized {
            true => (place - 0.5) * side,
            false => place - side * 0.5,
        };
        let (left, right) = (centred(x, width), centred(x2, width));
        let (top, bottom) = (centred(y, height), centred(y2, height));
        let corners = [(left, top), (right, top), (left, bottom), (right, bottom)];
        let along_x = corners.map(|(x, y)| x * self.cos + y * self.sin);
        let along_y = corners.map(|(x, y)| -x * self.sin + y * self.cos);
        let range = |places: [f32; 4], side: f32| {
            let low = places.into_iter().fold(f32::INFINITY, f32::min) + side * 0.5;
            let high = places.into_iter().fold(f32::NEG_INFINITY, f32::max) + side * 0.5;
            (low, high)
        };
        if !along_x.into_iter().chain(along_y).all(f32::is_finite) {
            return None;
        }
        let [to_width, to_height] = self.to;
        let (mut x, mut y) = (range(along_x, to_width), range(along_y, to_height));
        if self.mode != Mode::Expand {
            let (mut w, mut h) = (right - left, bottom - top);
            // Past 45 degrees the longer side changes direction: swap width and height.
            if (w < h) != (x.1 - x.0 < y.1 - y.0) {
                (w, h) = (h, w);
            }
            let part = if self.mode == Mode::Fixed { 0.5 } else { 0.25 };
            let shrunk = |(low, high): (f32, f32), side: f32| {
                let less = ((high - low) - side) * part;
                (low + less, high - less)
            };
            (x, y) = (shrunk(x, w), shrunk(y, h));
        }
        let area = (x.1 - x.0) * (y.1 - y.0);
        let clip =
            |(low, high): (f32, f32), side: f32| (low.clamp(0.0, side), high.clamp(0.0, side));
        let (x, y) = (clip(x, to_width), clip(y, to_height));
        let left_over = (x.1 - x.0) * (y.1 - y.0);
        // NaN compares false, so boxes with zero area are removed too.
        let enough = left_over / area >= self.least;
        enough.then_some(())?;
        let (x2, y2) = if self.sized { (x.1 - x.0, y.1 - y.0) } else { (x.1, y.1) };
        if !self.normalized {
            return Some([x.0, y.0, x2, y2]);
        }
        let (by_x, by_y) = (1.0 / to_width, 1.0 / to_height);
        Some([x.0 * by_x, y.0 * by_y, x2 * by_x, y2 * by_y])
    }
}

impl BboxRotateArgs {
    /// Width and height of the image.
    fn extents(&self) -> Result<[usize; 2]> {
        let find = |letter| self.shape_layout.find(letter);
        let (Some(x), Some(y)) = (find(b'W'), find(b'H')) else {
            let given = self.shape_layout.as_str().to_string();
            return Err(argument("shape_layout", Boxes::ShapeLayout { wanted: "H and W", given }));
        };
        let extent = |axis: usize| match self.input_shape.get(axis) {
            None => {
                let layout = self.shape_layout.as_str().to_string();
                let given = self.input_shape.to_vec();
                Err(argument("input_shape", Boxes::ShapeNumbers { layout, given }))
            }
            Some(&given) if given < 0 => {
                Err(argument("input_shape", Argument::Negative { given: given as f64 }))
            }
            Some(&given) if given as f64 > LONGEST => {
                let problem = Argument::TooLong { extent: given as f64, longest: LONGEST };
                Err(argument("input_shape", problem))
            }
            Some(&given) => Ok(given as usize),
        };
        Ok([extent(x)?, extent(y)?])
    }
}
