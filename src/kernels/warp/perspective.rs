//! Perspective transforms and user-defined coordinate maps: warp_perspective, remap.

use smallvec::SmallVec;

use super::places::{Border, Picture, Places, Sampled, Sampling, sample, with_number};
use super::problem::Warp;
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::generic::cast::{Convert, Number};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::regions::{LONGEST, too_large};
use crate::kernels::{Arg, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Cause, DType, Desc, Problem, Sample, collected, extent, zeroed};

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of `warp_perspective` and `remap`.
        pub enum Perspective {
            NoPixels,
            MatrixTwice,
            FillValues { channels: usize, given: usize },
            Maps { x: Vec<usize>, y: Vec<usize> },
            NotAMap { shape: Vec<usize> },
        }
    }
}

use problem::Perspective;

type Floats = SmallVec<[f64; 6]>;

pub struct Interpolation(Sampling);

impl FromArg for Interpolation {
    fn from_constant(arg: &Arg) -> std::result::Result<Interpolation, Problem> {
        match arg {
            Arg::Int(0) => Ok(Interpolation(Sampling::Nearest)),
            Arg::Int(1) => Ok(Interpolation(Sampling::Linear)),
            Arg::Int(2) => Ok(Interpolation(Sampling::Cubic)),
            other => {
                let choices = "INTERP_NN, INTERP_LINEAR, INTERP_CUBIC";
                Err(Argument::OneOf { choices, given: other.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Interpolation, Problem> {
        Err(Argument::SameForAll.into())
    }
}

impl FromArg for Border {
    fn from_constant(arg: &Arg) -> std::result::Result<Border, Problem> {
        Ok(match String::from_constant(arg)?.as_str() {
            "constant" => Border::Constant,
            "replicate" => Border::Replicate,
            "reflect" => Border::Reflect,
            "reflect_101" => Border::Reflect101,
            "wrap" => Border::Wrap,
            _ => {
                let choices = "\"constant\", \"replicate\", \"reflect\", \"reflect_101\", \"wrap\"";
                return Err(Argument::OneOf { choices, given: arg.shown() }.into());
            }
        })
    }

    fn from_sample(_: &Sample) -> std::result::Result<Border, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// The point of a pixel that has integer coordinates.
#[derive(Clone, Copy, PartialEq)]
pub enum Origin {
    Corner,
    Center,
}

impl FromArg for Origin {
    fn from_constant(arg: &Arg) -> std::result::Result<Origin, Problem> {
        match String::from_constant(arg)?.as_str() {
            "corner" => Ok(Origin::Corner),
            "center" => Ok(Origin::Center),
            _ => {
                let choices = "\"corner\", \"center\"";
                Err(Argument::OneOf { choices, given: arg.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Origin, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// A sample as a stack of images: a CHW image is C images with one channel.
struct Images {
    height: usize,
    width: usize,
    channels: usize,
    /// Number of planes, if the layout is planar.
    planes: usize,
}

impl Images {
    fn of(desc: &Desc) -> Images {
        let side = |letter| desc.layout.find(letter).map_or(1, |axis| desc.shape[axis]);
        let innermost = desc.layout.letters().last() == Some(&b'C');
        let planes = if innermost { 1 } else { side(b'C') };
        Images {
            height: side(b'H'),
            width: side(b'W'),
            channels: if innermost { side(b'C') } else { 1 },
            planes,
        }
    }

    fn all_channels(&self) -> usize {
        self.channels * self.planes
    }

    fn size(&self) -> usize {
        self.height * self.width * self.channels
    }
}

/// A description like this one with another height and width.
fn resized(like: &Desc, height: usize, width: usize, name: &'static str) -> Result<Desc> {
    let mut desc = like.clone();
    for (letter, side) in [(b'H', height), (b'W', width)] {
        if let Some(axis) = desc.layout.find(letter) {
            desc.shape[axis] = side;
        }
    }
    if extent(&desc.shape).is_none() {
        return Err(too_large(name));
    }
    Ok(desc)
}

fn checked(image: &Desc) -> Result<()> {
    with_number!(
        image.dtype,
        |_T| Ok(()),
        Err(unfit(0, Input::NotNumbers { dtype: image.dtype.name() }))
    )
}

/// Samples all images with the same coordinates.
fn sample_all<T: Sampled>(
    image: &Sample,
    sampling: Sampling,
    border: Border,
    fill: &[T],
    out: &mut Output<'_>,
    places: &dyn Places,
) {
    let (from, to) = (Images::of(&image.desc), Images::of(out.desc));
    if to.size() == 0 {
        return;
    }
    let count = out.desc.elements() / to.size();
    let pixels = image.elements::<T>();
    out.write_in_order(|mut out| {
        for index in 0..count {
            let first = index % from.planes * from.channels;
            let picture = Picture {
                pixels: &pixels[index * from.size()..][..from.size()],
                width: from.width,
                height: from.height,
                channels: from.channels,
                border,
                fill: &fill[first..first + from.channels],
            };
            sample(&picture, sampling, [to.height, to.width], &mut out, places);
        }
    });
}

pub struct WarpPerspective;

args! {
    pub struct WarpPerspectiveArgs {
        border_mode: Border,
        fill_value: Option<Floats>,
        interp_type: Interpolation,
        inverse_map: bool,
        matrix: Option<Floats>,
        pixel_origin: Origin,
        size: Option<Floats>,
    }
}

/// The arguments, and the matrix unless it is the second input.
pub struct Projection {
    args: WarpPerspectiveArgs,
    map: Option<[[f64; 3]; 3]>,
}

/// The size requested by `size`; at least one pixel, as in DALI.
fn asked(size: &[f64]) -> Result<[usize; 2]> {
    let sides = match *size {
        [one] => [one; 2],
        [height, width] => [height, width],
        _ => {
            let given = size.to_vec();
            return Err(argument("size", Argument::Numbers { wanted: 2, given }));
        }
    };
    if !sides.iter().all(|side| side.abs() <= LONGEST) {
        return Err(argument("size", Warp::Size { given: size.to_vec() }));
    }
    Ok(sides.map(|side| side.round().max(1.0) as usize))
}

fn map_of(numbers: &[f64], args: &WarpPerspectiveArgs) -> Result<[[f64; 3]; 3]> {
    let &[a, b, c, d, e, f, g, h, i] = numbers else {
        let (wanted, given) = ("3x3", numbers.len());
        return Err(argument("matrix", Warp::MatrixNumbers { wanted, given }));
    };
    let given = [[a, b, c], [d, e, f], [g, h, i]];
    let map = match args.inverse_map {
        true => given,
        false => inverse(&given).ok_or_else(|| Cause::Value {
            problem: Warp::NoInverse { matrix: numbers.to_vec() }.into(),
        })?,
    };
    Ok(match args.pixel_origin {
        Origin::Center => map,
        Origin::Corner => between_centers(&map),
    })
}

fn inverse(m: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let minor = |r: [usize; 2], c: [usize; 2]| {
        m[r[0]][c[0]] * m[r[1]][c[1]] - m[r[0]][c[1]] * m[r[1]][c[0]]
    };
    const OTHERS: [[usize; 2]; 3] = [[1, 2], [2, 0], [0, 1]];
    let determinant: f64 = (0..3).map(|c| m[0][c] * minor(OTHERS[0], OTHERS[c])).sum();
    if determinant == 0.0 || !determinant.is_finite() {
        return None;
    }
    Some([0, 1, 2].map(|i| [0, 1, 2].map(|j| minor(OTHERS[j], OTHERS[i]) / determinant)))
}

/// Converts a matrix between corner coordinates to one between pixel centers.
fn between_centers(m: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let there = m.map(|[a, b, c]| [a, b, c + (a + b) / 2.0]);
    let back = |i: usize| [0, 1, 2].map(|j| there[i][j] - there[2][j] / 2.0);
    [back(0), back(1), there[2]]
}

impl Kernel for WarpPerspective {
    type Args = WarpPerspectiveArgs;
    type Plan = Projection;
    const TRAITS: Traits =
        Traits { cheap: false, uniform_outputs: true, frames: Frames::Inputs, ..Traits::DEFAULT };

    fn plan(args: WarpPerspectiveArgs, inputs: &[&Desc]) -> Result<(Projection, Outputs)> {
        checked(inputs[0])?;
        let own = Images::of(inputs[0]);
        let [height, width] = match args.size.as_deref() {
            None | Some([]) => [own.height, own.width],
            Some(size) => asked(size)?,
        };
        let desc = resized(inputs[0], height, width, "size")?;
        let given = args.fill_value.as_ref().map_or(0, |fill| fill.len());
        if given > 1 && given != own.all_channels() {
            let channels = own.all_channels();
            return Err(argument("fill_value", Perspective::FillValues { channels, given }));
        }
        let numbers = args.matrix.as_deref().filter(|matrix| !matrix.is_empty());
        let map = match (inputs.get(1), numbers) {
            (Some(_), Some(_)) => return Err(argument("matrix", Perspective::MatrixTwice)),
            (None, None) => return Err(argument("matrix", Warp::NoMatrix)),
            (None, Some(numbers)) => Some(map_of(numbers, &args)?),
            (Some(matrix), None) => {
                if matrix.shape[..] != [3, 3] {
                    let (wanted, shape) = ("3x3", matrix.shape.to_vec());
                    return Err(unfit(1, Warp::MatrixShape { wanted, shape }));
                }
                None
            }
        };
        Ok((Projection { args, map }, one(desc)))
    }

    fn run(plan: &Projection, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (args, image, out) = (&plan.args, &inputs[0], &mut outputs[0]);
        if out.desc.elements() == 0 {
            return Ok(());
        }
        if image.desc.elements() == 0 && args.border_mode != Border::Constant {
            return Err(unfit(0, Perspective::NoPixels));
        }
        let map = match plan.map {
            Some(map) => map,
            None => {
                let numbers =
                    Floats::from_sample(&inputs[1]).map_err(|problem| unfit(1, problem))?;
                map_of(&numbers, args)?
            }
        };
        let channels = Images::of(&image.desc).all_channels();
        let dtype = image.desc.dtype;
        let whole = !matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
        with_number!(
            image.desc.dtype,
            |T| {
                let value = |channel: usize| match args.fill_value.as_deref() {
                    None | Some([]) => 0.0,
                    Some(&[one]) => one,
                    Some(each) => each[channel],
                };
                // Ties to even, as in DALI.
                let made = |value: f64| -> T {
                    if whole { value.round_ties_even() } else { value }.convert()
                };
                let fill: Vec<T> = collected((0..channels).map(|channel| made(value(channel))))?;
                let plane = Plane(map.map(|row| row.map(|x| x as f32)));
                sample_all(image, args.interp_type.0, args.border_mode, &fill, out, &plane);
            },
            ()
        );
        Ok(())
    }
}

/// A homography from output pixels to source coordinates.
struct Plane([[f32; 3]; 3]);

impl Places for Plane {
    fn of(&self, y: usize, first: usize, xs: &mut [f32], ys: &mut [f32]) {
        let y = y as u32 as f32;
        let [across, down, depth] = self.0.map(|[a, b, c]| (a, b * y + c));
        vectorized!(copying first, across, down, depth; {
            for (i, (sx, sy)) in xs.iter_mut().zip(ys).enumerate() {
                let x = (first + i) as u32 as f32;
                let depth = depth.0 * x + depth.1;
                *sx = (across.0 * x + across.1) / depth;
                *sy = (down.0 * x + down.1) / depth;
            }
        });
    }
}

pub struct Remap;

args! {
    pub struct RemapArgs { interp: Interpolation, pixel_origin: Origin }
}

/// Height and width of a map, which may have a channel axis of size one.
fn map_sides(desc: &Desc) -> Option<[usize; 2]> {
    match desc.shape[..] {
        [height, width] | [height, width, 1] => Some([height, width]),
        _ => None,
    }
}

impl Kernel for Remap {
    type Args = RemapArgs;
    type Plan = RemapArgs;
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Inputs, ..Traits::DEFAULT };

    fn plan(args: RemapArgs, inputs: &[&Desc]) -> Result<(RemapArgs, Outputs)> {
        checked(inputs[0])?;
        let sides = |index: usize| {
            let problem = || Perspective::NotAMap { shape: inputs[index].shape.to_vec() };
            map_sides(inputs[index]).ok_or_else(|| unfit(index, problem()))
        };
        let ([height, width], other) = (sides(1)?, sides(2)?);
        if other != [height, width] {
            let (x, y) = (inputs[1].shape.to_vec(), inputs[2].shape.to_vec());
            return Err(unfit(2, Perspective::Maps { x, y }));
        }
        Ok((args, one(resized(inputs[0], height, width, "mapx")?)))
    }

    fn run(args: &RemapArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (image, out) = (&inputs[0], &mut outputs[0]);
        let to = Images::of(out.desc);
        if out.desc.elements() == 0 {
            return Ok(());
        }
        let shift = if args.pixel_origin == Origin::Corner { -0.5 } else { 0.0 };
        with_number!(
            image.desc.dtype,
            |T| {
                let fill: Vec<T> = zeroed(to.all_channels())?;
                let maps = [&inputs[1], &inputs[2]];
                let given = Given { maps, width: to.width, shift };
                sample_all(image, args.interp.0, Border::Constant, &fill, out, &given);
            },
            ()
        );
        Ok(())
    }
}

/// Coordinates from maps.
struct Given<'a> {
    maps: [&'a Sample; 2],
    width: usize,
    shift: f32,
}

impl Places for Given<'_> {
    fn of(&self, y: usize, first: usize, xs: &mut [f32], ys: &mut [f32]) {
        let start = y * self.width + first;
        for (places, map) in [xs, ys].into_iter().zip(self.maps) {
            match map.desc.dtype {
                DType::F32 => {
                    let map = &map.elements::<f32>()[start..start + places.len()];
                    for (place, x) in places.iter_mut().zip(map) {
                        *place = x + self.shift;
                    }
                }
                _ => {
                    f32::convert_row(map, start, places);
                    places.iter_mut().for_each(|place| *place += self.shift);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_times_inverse_is_identity() {
        let map = [[0.9, 0.1, 3.0], [-0.2, 1.1, 4.0], [0.001, -0.002, 1.0]];
        let back = inverse(&map).unwrap();
        for (i, row) in map.iter().enumerate() {
            for j in 0..3 {
                let product: f64 = row.iter().zip(&back).map(|(a, column)| a * column[j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        assert_eq!(inverse(&[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 1.0]]), None);
    }

    #[test]
    fn corners_are_half_a_pixel_from_centers() {
        // At scale 2, the first center, at 0.5, maps to 1, the boundary between the first two
        // pixels.
        let map = between_centers(&[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]);
        assert_eq!(map, [[2.0, 0.0, 0.5], [0.0, 2.0, 0.5], [0.0, 0.0, 1.0]]);
    }

    #[test]
    fn sizes_are_rounded_and_at_least_one() {
        assert_eq!(asked(&[2.5, -3.0]).unwrap(), [3, 1]);
        assert_eq!(asked(&[7.0]).unwrap(), [7, 7]);
        for size in [&[f64::NAN][..], &[1.0, f64::INFINITY], &[1.0, 2.0, 3.0], &[]] {
            assert!(asked(size).is_err(), "{size:?}");
        }
    }
}
