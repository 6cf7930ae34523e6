//! Images under projective maps.
//!
//! As in the reference, what is beyond an image is one of several borders, and the matrix is for
//! places whose origin is the corner or the centre of the first pixel.

use super::{Floats, argument};
use crate::kernels::cast::Convert;
use crate::kernels::frames::Frames;
use crate::kernels::isa::Isa;
use crate::kernels::regions::{Border, LONGEST, too_large};
use crate::kernels::{Arg, FromArg, Kernel, Result, Space, args};
use crate::value::{Cause, DType, Desc, Element, Sample, extent, with_element};

pub struct WarpPerspective;

args! {
    /// `centered` puts the origin into the centre of the first pixel.
    pub struct WarpPerspectiveArgs {
        border_mode: Beyond,
        centered: bool,
        fill_value: Floats,
        interp_type: Interpolation,
        inverse_map: bool,
        matrix: Option<Floats>,
        size: Option<Floats>,
    }
}

/// What is beyond an image.
#[derive(Clone, Copy)]
struct Beyond(Border);

impl FromArg for Beyond {
    fn from_constant(arg: &Arg) -> std::result::Result<Beyond, String> {
        Ok(Beyond(match String::from_constant(arg)?.as_str() {
            "constant" => Border::Constant,
            "replicate" => Border::Edge,
            "reflect" => Border::Reflect,
            "reflect_101" => Border::Reflect101,
            "wrap" => Border::Wrap,
            other => {
                return Err(format!(
                    "must be constant, replicate, reflect, reflect_101 or wrap, got {other:?}"
                ));
            }
        }))
    }

    fn from_sample(_: &Sample) -> std::result::Result<Beyond, String> {
        Err("can't differ from sample to sample".into())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpolation {
    Nearest,
    Linear,
    Cubic,
}

impl FromArg for Interpolation {
    fn from_constant(arg: &Arg) -> std::result::Result<Interpolation, String> {
        match arg {
            Arg::Int(0) => Ok(Interpolation::Nearest),
            Arg::Int(1) => Ok(Interpolation::Linear),
            Arg::Int(2) => Ok(Interpolation::Cubic),
            _ => Err("must be INTERP_NN, INTERP_LINEAR or INTERP_CUBIC".into()),
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Interpolation, String> {
        Err("can't differ from sample to sample".into())
    }
}

/// Where height and width are among the axes: the first of both, which follow one another.
fn plane(desc: &Desc) -> Result<usize> {
    match desc.layout.find(b'H') {
        Some(axis) if axis + 1 < desc.ndim() => Ok(axis),
        _ => Err(Cause::Input { index: 0, problem: "an image has height and width".into() }),
    }
}

impl Kernel for WarpPerspective {
    type Args = WarpPerspectiveArgs;
    const CHEAP: bool = false;
    const EVENS_OUT: bool = true;
    const FRAMES: Frames = Frames::Made;

    fn output(args: &WarpPerspectiveArgs, inputs: &[&Desc]) -> Result<Desc> {
        let mut desc = inputs[0].clone();
        let axis = plane(&desc)?;
        match args.size.as_deref() {
            None | Some([]) => {}
            Some(&[height, width]) => {
                for (side, wanted) in desc.shape[axis..].iter_mut().zip([height, width]) {
                    if wanted.is_nan() || wanted > LONGEST {
                        let problem = format!("must not be huge, got {wanted}");
                        return argument("size", problem);
                    }
                    // The least there is, also where nothing is asked for.
                    *side = wanted.round().max(1.0) as usize;
                }
            }
            Some(size) => return argument("size", format!("needs 2 extents, got {size:?}")),
        }
        match extent(&desc.shape) {
            Some(_) => Ok(desc),
            None => Err(too_large("size")),
        }
    }

    fn run(args: &WarpPerspectiveArgs, inputs: &[Sample], out: &mut Space) -> Result<()> {
        let map = args.map(inputs.get(1))?;
        let image = &inputs[0];
        let axis = plane(&image.desc)?;
        let shape = &image.desc.shape;
        let channels: usize = shape[axis + 2..].iter().product();
        let fill = &args.fill_value[..];
        if fill.len() > 1 && fill.len() != channels {
            let count = fill.len();
            let problem =
                format!("needs one number, or one for each of {channels} channels, got {count}");
            return argument("fill_value", problem);
        }
        if out.desc.elements() == 0 {
            return Ok(());
        }
        if image.desc.elements() == 0 {
            let problem = "an image without pixels can't be warped".into();
            return Err(Cause::Input { index: 0, problem });
        }
        let (height, width) = (shape[axis], shape[axis + 1]);
        let to = [out.desc.shape[axis + 1], out.desc.shape[axis]];
        let Beyond(border) = args.border_mode;
        let dtype = image.desc.dtype;
        // What 32 bits hold exactly is computed in them.
        let is_small = dtype.size() <= 2 || dtype == DType::F32;
        with_element!(dtype, |T| {
            let fill: Vec<T> = (0..channels)
                .map(|c| fill.get(c).or(fill.first()).copied().unwrap_or(0.0).convert())
                .collect();
            let size = height * width * channels;
            let planes = image.elements::<T>().chunks_exact(size);
            let outs = out.elements::<T>().chunks_exact_mut(to[0] * to[1] * channels);
            for (pixels, out) in planes.zip(outs) {
                let picture = Picture { pixels, width, height, channels, border, fill: &fill };
                if is_small {
                    warp::<T, f32>(&picture, args.interp_type, &map, to[0], out);
                } else {
                    warp::<T, f64>(&picture, args.interp_type, &map, to[0], out);
                }
            }
        });
        Ok(())
    }
}

/// From pixels of the result to places of the image, both by the centres of pixels.
type Map = [[f64; 3]; 3];

impl WarpPerspectiveArgs {
    fn map(&self, input: Option<&Sample>) -> Result<Map> {
        let keyword = self.matrix.as_ref().filter(|matrix| !matrix.is_empty());
        let numbers = match (input, keyword) {
            (Some(_), Some(_)) => {
                return argument("matrix", "can't be given beside a matrix as input".into());
            }
            (Some(input), None) => {
                if input.desc.shape[..] != [3, 3] {
                    let shape = &input.desc.shape[..];
                    let problem = format!("the matrix must be 3x3, got the shape {shape:?}");
                    return Err(Cause::Input { index: 1, problem });
                }
                Floats::from_sample(input).map_err(|problem| Cause::Input { index: 1, problem })?
            }
            (None, Some(numbers)) => numbers.clone(),
            (None, None) => {
                return argument("matrix", "must be given, as an argument or an input".into());
            }
        };
        let &[a, b, c, d, e, f, g, h, i] = &numbers[..] else {
            return argument("matrix", format!("must be 3x3, got {} numbers", numbers.len()));
        };
        if !numbers.iter().all(|x| x.is_finite()) {
            return argument("matrix", format!("must have finite numbers, got {numbers:?}"));
        }
        let mut map = [[a, b, c], [d, e, f], [g, h, i]];
        if !self.inverse_map {
            map = inverse(&map).ok_or_else(|| Cause::Value {
                problem: format!("the matrix {:?} has no inverse", &numbers[..]),
            })?;
        }
        if !self.centered {
            let moved = |by: f64| [[1.0, 0.0, by], [0.0, 1.0, by], [0.0, 0.0, 1.0]];
            map = product(&moved(-0.5), &product(&map, &moved(0.5)));
        }
        Ok(map)
    }
}

fn product(a: &Map, b: &Map) -> Map {
    a.map(|row| std::array::from_fn(|j| (0..3).map(|k| row[k] * b[k][j]).sum()))
}

fn inverse(m: &Map) -> Option<Map> {
    const OTHERS: [[usize; 2]; 3] = [[1, 2], [2, 0], [0, 1]];
    let minor = |r: [usize; 2], c: [usize; 2]| {
        m[r[0]][c[0]] * m[r[1]][c[1]] - m[r[0]][c[1]] * m[r[1]][c[0]]
    };
    let determinant: f64 = (0..3).map(|c| m[0][c] * minor(OTHERS[0], OTHERS[c])).sum();
    let inverse: Map =
        std::array::from_fn(|i| std::array::from_fn(|j| minor(OTHERS[j], OTHERS[i]) / determinant));
    inverse.as_flattened().iter().all(|x| x.is_finite()).then_some(inverse)
}

/// An image and what is around it.
struct Picture<'a, T> {
    pixels: &'a [T],
    width: usize,
    height: usize,
    channels: usize,
    border: Border,
    /// For each channel.
    fill: &'a [T],
}

impl<T: Element> Picture<'_, T> {
    /// The first element of a pixel; `None` where the fill is.
    #[inline]
    fn find(&self, x: i64, y: i64) -> Option<usize> {
        let (width, height) = (self.width, self.height);
        let is_inside = (0..width as i64).contains(&x) && (0..height as i64).contains(&y);
        let (x, y) = match is_inside {
            true => (x as usize, y as usize),
            false => (place(self.border, x, width)?, place(self.border, y, height)?),
        };
        Some((y * width + x) * self.channels)
    }

    #[inline]
    fn tap<A>(&self, at: Option<usize>, channel: usize) -> A
    where
        T: Convert<A>,
    {
        at.map_or(self.fill[channel], |at| self.pixels[at + channel]).convert()
    }
}

/// The index that one beyond an axis of `n` stands for.
fn place(border: Border, at: i64, n: usize) -> Option<usize> {
    let n = n as i64;
    if (0..n).contains(&at) {
        return Some(at as usize);
    }
    let found = match border {
        Border::Constant => return None,
        Border::Edge => at.clamp(0, n - 1),
        Border::Wrap => at.rem_euclid(n),
        Border::Reflect => {
            let at = at.rem_euclid(2 * n);
            at.min(2 * n - 1 - at)
        }
        Border::Reflect101 if n == 1 => 0,
        Border::Reflect101 => {
            let at = at.rem_euclid(2 * n - 2);
            at.min(2 * n - 2 - at)
        }
    };
    Some(found as usize)
}

/// A type to compute in.
trait Real: Element + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> {
    const ZERO: Self;
    fn new(x: f64) -> Self;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    fn new(x: f64) -> f32 {
        x as f32
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    fn new(x: f64) -> f64 {
        x
    }
}

/// Pixels whose places are found at a time.
const TILE: usize = 64;

/// Where the pixels of a tile come from.
struct Places {
    x: [f64; TILE],
    y: [f64; TILE],
}

impl Places {
    /// Of the pixels from `x` on in row `y`. In doubles: a matrix can be close to one without
    /// inverse.
    fn find(&mut self, map: &Map, x: usize, y: usize) {
        let y = y as f64;
        let start = map.map(|[_, b, c]| b * y + c);
        let step = map.map(|[a, ..]| a);
        for i in 0..TILE {
            let x = (x + i) as u32 as f64;
            let w = step[2] * x + start[2];
            // What is infinitely far away is the origin, as in the reference.
            let scale = if w == 0.0 { 0.0 } else { 1.0 / w };
            self.x[i] = (step[0] * x + start[0]) * scale;
            self.y[i] = (step[1] * x + start[1]) * scale;
        }
    }

    fn find_on(&mut self, isa: Isa, map: &Map, x: usize, y: usize) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                #[target_feature(enable = "avx2")]
                unsafe fn avx2(places: &mut Places, map: &Map, x: usize, y: usize) {
                    places.find(map, x, y);
                }
                // SAFETY: an `Isa::Avx2` is only made where it was detected.
                unsafe { avx2(self, map, x, y) }
            }
            _ => self.find(map, x, y),
        }
    }
}

fn warp<T: Element + Convert<A>, A: Real + Convert<T>>(
    picture: &Picture<'_, T>,
    interpolation: Interpolation,
    map: &Map,
    width: usize,
    out: &mut [T],
) {
    let isa = Isa::best();
    let c = picture.channels;
    let mut places = Places { x: [0.0; TILE], y: [0.0; TILE] };
    for (y, row) in out.chunks_exact_mut(width * c).enumerate() {
        for (tile, out) in row.chunks_mut(TILE * c).enumerate() {
            places.find_on(isa, map, tile * TILE, y);
            let pixels = out.chunks_exact_mut(c).zip(places.x.iter().zip(&places.y));
            match (interpolation, c) {
                (Interpolation::Nearest, _) => {
                    pixels.for_each(|(out, (&x, &y))| nearest(picture, x, y, out));
                }
                (Interpolation::Linear, 3) => {
                    pixels.for_each(|(out, (&x, &y))| linear::<T, A, 3>(picture, x, y, out));
                }
                (Interpolation::Linear, 1) => {
                    pixels.for_each(|(out, (&x, &y))| linear::<T, A, 1>(picture, x, y, out));
                }
                (Interpolation::Linear, _) => {
                    pixels.for_each(|(out, (&x, &y))| linear::<T, A, 0>(picture, x, y, out));
                }
                (Interpolation::Cubic, _) => {
                    pixels.for_each(|(out, (&x, &y))| cubic::<T, A>(picture, x, y, out));
                }
            }
        }
    }
}

/// Farther than any image is long; farther away, borders repeat in ways that nobody tells apart.
const FAR: f64 = 1e12;

fn nearest<T: Element>(picture: &Picture<'_, T>, x: f64, y: f64, out: &mut [T]) {
    let whole = |x: f64| x.clamp(-FAR, FAR).round_ties_even() as i64;
    match picture.find(whole(x), whole(y)) {
        Some(at) => out.copy_from_slice(&picture.pixels[at..at + out.len()]),
        None => out.copy_from_slice(picture.fill),
    }
}

/// The pixel at or before a place, and how far on it is.
#[inline(always)]
fn split(place: f64) -> (i64, f64) {
    let place = place.clamp(-FAR, FAR);
    let cut = place as i64;
    let floor = if cut as f64 > place { cut - 1 } else { cut };
    (floor, place - floor as f64)
}

/// `C` is the number of channels, or 0 for any.
#[inline(always)]
fn linear<T: Element + Convert<A>, A: Real + Convert<T>, const C: usize>(
    picture: &Picture<'_, T>,
    x: f64,
    y: f64,
    out: &mut [T],
) {
    let c = if C == 0 { picture.channels } else { C };
    let ((x, fx), (y, fy)) = (split(x), split(y));
    let weights = [(1.0 - fx) * (1.0 - fy), fx * (1.0 - fy), (1.0 - fx) * fy, fx * fy].map(A::new);
    let blend = |taps: [A; 4]| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| taps[i] * weights[i]);
        (a + b + (c + d)).convert()
    };
    let is_inside =
        x >= 0 && y >= 0 && x < picture.width as i64 - 1 && y < picture.height as i64 - 1;
    if is_inside {
        let at = (y as usize * picture.width + x as usize) * c;
        let top = &picture.pixels[at..at + 2 * c];
        let bottom = &picture.pixels[at + picture.width * c..][..2 * c];
        for (channel, out) in out[..c].iter_mut().enumerate() {
            let taps = [top[channel], top[c + channel], bottom[channel], bottom[c + channel]];
            *out = blend(taps.map(|tap| tap.convert()));
        }
        return;
    }
    let at = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)].map(|(x, y)| picture.find(x, y));
    for (channel, out) in out.iter_mut().enumerate() {
        *out = blend(at.map(|at| picture.tap(at, channel)));
    }
}

/// Weights of four neighbours, of which the second is at or before the place.
fn cubic_weights(part: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |t: f64| ((A + 2.0) * t - (A + 3.0)) * t * t + 1.0;
    let far = |t: f64| ((A * t - 5.0 * A) * t + 8.0 * A) * t - 4.0 * A;
    let (a, b, c) = (far(part + 1.0), near(part), near(1.0 - part));
    [a, b, c, 1.0 - a - b - c]
}

fn cubic<T: Element + Convert<A>, A: Real + Convert<T>>(
    picture: &Picture<'_, T>,
    x: f64,
    y: f64,
    out: &mut [T],
) {
    let ((x, fx), (y, fy)) = (split(x), split(y));
    let (across, down) = (cubic_weights(fx), cubic_weights(fy));
    let taps: [[(Option<usize>, A); 4]; 4] = std::array::from_fn(|j| {
        std::array::from_fn(|i| {
            let at = picture.find(x - 1 + i as i64, y - 1 + j as i64);
            (at, A::new(across[i] * down[j]))
        })
    });
    for (channel, out) in out.iter_mut().enumerate() {
        let sum = taps
            .as_flattened()
            .iter()
            .fold(A::ZERO, |sum, &(at, weight)| sum + picture.tap::<A>(at, channel) * weight);
        *out = sum.convert();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_and_its_inverse_cancel() {
        let map = [[1.5, 0.25, -1.0], [3.0, 0.5, -2.0], [0.125, 0.75, 1.0]];
        let back = inverse(&map).unwrap();
        let one = product(&back, &map);
        for (i, row) in one.iter().enumerate() {
            for (j, x) in row.iter().enumerate() {
                assert!((x - f64::from(i == j)).abs() < 1e-12, "{one:?}");
            }
        }
        assert_eq!(inverse(&[[0.0; 3]; 3]), None);
    }

    #[test]
    fn borders_repeat_what_is_inside() {
        let around = |border| (-4..7).map(|at| place(border, at, 3)).collect::<Option<Vec<_>>>();
        assert_eq!(around(Border::Edge).unwrap(), [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]);
        assert_eq!(around(Border::Wrap).unwrap(), [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(around(Border::Reflect).unwrap(), [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0]);
        assert_eq!(around(Border::Reflect101).unwrap(), [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2]);
        assert_eq!(around(Border::Constant), None);
        assert_eq!(place(Border::Reflect101, -5, 1), Some(0));
    }

    #[test]
    fn cubic_weights_are_shares_of_one() {
        assert_eq!(cubic_weights(0.0), [0.0, 1.0, 0.0, 0.0]);
        let [a, b, c, d] = cubic_weights(0.5);
        assert_eq!([a, b], [d, c]);
        assert!((a + b + c + d - 1.0).abs() < 1e-15);
    }
}
