//! Random crop windows that keep enough of an image's boxes.
//!
//! Windows are drawn until one meets the conditions (rejection sampling), which gives the same
//! distribution as DALI. Unlike in DALI, the number of attempts is always limited.

use smallvec::{SmallVec, smallvec};

use super::problem::Boxes;
use super::{floats, labels};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::philox::{Stream, below, fraction};
use crate::kernels::{
    Allocate, Arg, DirectKernel, FromArg, OutputBuffer, Result, Samples, Traits, args,
};
use crate::value::{Cause, DType, Desc, Layout, Problem, Sample, with_room};

pub struct RandomBboxCrop;

/// Maximum number of windows to try.
const MOST_ATTEMPTS: usize = 100_000;

/// Tolerance for boxes that exceed the image by rounding errors, such as from x + width.
const ROUNDING: f32 = 1e-5;

/// How the overlap of a window and a box is measured.
#[derive(Clone, Copy, PartialEq)]
enum Metric {
    /// Intersection over union.
    Iou,
    /// Fraction of the box that is inside the window.
    Overlap,
}

impl FromArg for Metric {
    fn from_constant(arg: &Arg) -> std::result::Result<Metric, Problem> {
        match arg {
            Arg::Text(name) if &**name == "iou" => Ok(Metric::Iou),
            Arg::Text(name) if &**name == "overlap" => Ok(Metric::Overlap),
            other => Err(Argument::OneOf { choices: "iou, overlap", given: other.shown() }.into()),
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Metric, Problem> {
        Err(Argument::SameForAll.into())
    }
}

type Ints = SmallVec<[i64; 6]>;
type Floats = SmallVec<[f64; 6]>;

args! {
    /// `sized` tells whether boxes without a layout end with their sizes. The definition has
    /// checked the ranges.
    pub struct RandomBboxCropArgs {
        all_boxes_above_threshold: bool,
        allow_no_crop: bool,
        aspect_ratio: Floats,
        bbox_layout: Option<Layout>,
        bbox_prune_threshold: Option<f64>,
        crop_shape: Option<Ints>,
        input_shape: Option<Ints>,
        num_attempts: i64,
        output_bbox_indices: bool,
        scaling: Floats,
        shape_layout: Option<Layout>,
        sized: bool,
        threshold_type: Metric,
        thresholds: Floats,
        total_num_attempts: i64,
        rng: Stream,
    }
}

impl DirectKernel for RandomBboxCrop {
    type Args = RandomBboxCropArgs;
    const TRAITS: Traits = Traits { cheap: false, ..Traits::DEFAULT };

    fn run(
        args: &RandomBboxCropArgs,
        inputs: &[Sample],
        allocate: &Allocate<'_>,
    ) -> Result<Samples> {
        let boxes = inputs[0].compact()?;
        match boxes.desc.shape[..] {
            [_, 4] => run::<2>(args, &boxes, inputs.get(1), allocate),
            [_, 6] => run::<3>(args, &boxes, inputs.get(1), allocate),
            _ => {
                let shape = boxes.desc.shape.to_vec();
                Err(unfit(0, Boxes::NotRows { wanted: "4 or 6", shape }))
            }
        }
    }
}

/// Axis names for `N` dimensions.
struct Names {
    corners: &'static str,
    sized: &'static str,
    extents: &'static str,
}

const FLAT: Names = Names { corners: "xyXY", sized: "xyWH", extents: "WH" };
const SOLID: Names = Names { corners: "xyzXYZ", sized: "xyzWHD", extents: "WHD" };

/// A box or a window, as its lowest and highest corner.
#[derive(Clone, Copy)]
struct Region<const N: usize> {
    low: [f32; N],
    high: [f32; N],
}

impl<const N: usize> Region<N> {
    fn volume(&self) -> f32 {
        (0..N).map(|axis| self.high[axis] - self.low[axis]).product()
    }

    /// Volume of the intersection.
    fn common(&self, other: &Region<N>) -> f32 {
        let side = |axis: usize| {
            (self.high[axis].min(other.high[axis]) - self.low[axis].max(other.low[axis])).max(0.0)
        };
        (0..N).map(side).product()
    }

    fn contains(&self, place: [f32; N]) -> bool {
        (0..N).all(|axis| self.low[axis] <= place[axis] && place[axis] < self.high[axis])
    }

    fn centre(&self) -> [f32; N] {
        std::array::from_fn(|axis| (self.low[axis] + self.high[axis]) * 0.5)
    }

    /// Fraction of this box inside a window. For a box without volume, it is 0 or 1.
    fn share_in(&self, window: &Region<N>) -> f32 {
        let volume = self.volume();
        if volume > 0.0 {
            return self.common(window) / volume;
        }
        if window.contains(self.low) { 1.0 } else { 0.0 }
    }
}

/// Columns of the coordinates in a row.
struct Columns<const N: usize> {
    low: [usize; N],
    high: [usize; N],
    /// Whether the second ones are sizes instead of corners.
    sized: bool,
}

impl<const N: usize> Columns<N> {
    fn new(layout: Option<Layout>, sized: bool, names: &Names) -> Result<Columns<N>> {
        let Some(layout) = layout else {
            let low: [usize; N] = std::array::from_fn(|axis| axis);
            return Ok(Columns { low, high: low.map(|axis| axis + N), sized });
        };
        let find = |letters: &str| {
            let places = letters.bytes().map(|letter| layout.find(letter));
            places.collect::<Option<SmallVec<[usize; 6]>>>()
        };
        let of = |letters| find(letters).filter(|_| layout.letters().len() == 2 * N);
        let (places, sized) = match (of(names.corners), of(names.sized)) {
            (Some(places), _) => (places, false),
            (_, Some(places)) => (places, true),
            _ => {
                let given = layout.as_str().to_string();
                let problem = Boxes::BoxLayout { wanted: names.corners, given };
                return Err(argument("bbox_layout", problem));
            }
        };
        let low = std::array::from_fn(|axis| places[axis]);
        let high = std::array::from_fn(|axis| places[N + axis]);
        Ok(Columns { low, high, sized })
    }

    fn read(&self, row: &[f32]) -> Region<N> {
        let low = self.low.map(|column| row[column]);
        let mut high = self.high.map(|column| row[column]);
        if self.sized {
            high = std::array::from_fn(|axis| low[axis] + high[axis]);
        }
        Region { low, high }
    }

    fn write(&self, region: &Region<N>, row: &mut [f32]) {
        for axis in 0..N {
            let (low, high) = (region.low[axis], region.high[axis]);
            row[self.low[axis]] = low;
            row[self.high[axis]] = if self.sized { high - low } else { high };
        }
    }
}

/// An accepted window.
struct Window<const N: usize> {
    region: Region<N>,
    /// As returned: relative, or in pixels.
    anchor: [f32; N],
    shape: [f32; N],
}

fn run<const N: usize>(
    args: &RandomBboxCropArgs,
    input: &Sample,
    given_labels: Option<&Sample>,
    allocate: &Allocate<'_>,
) -> Result<Samples> {
    let names = if N == 2 { &FLAT } else { &SOLID };
    let columns = Columns::<N>::new(args.bbox_layout, args.sized, names)?;
    let rows = floats(0, input)?.chunks_exact(2 * N);
    let mut boxes = with_room(rows.len())?;
    for (index, row) in rows.enumerate() {
        boxes.push(checked(index, row, columns.read(row))?);
    }
    let search = Search::<N>::new(args, names, &boxes)?;
    let window = search.find()?;
    let whole = window.is_none();
    let window = window.unwrap_or(Window {
        region: Region { low: [0.0; N], high: [1.0; N] },
        anchor: [0.0; N],
        shape: [1.0; N],
    });
    let mut kept: Vec<usize> = with_room(boxes.len())?;
    kept.extend(
        (0..boxes.len()).filter(|&index| whole || search.keeps(&boxes[index], &window.region)),
    );
    let mut results: Samples = smallvec![];
    let numbers = |output: usize, numbers: [f32; N]| -> Result<Sample> {
        let mut made = allocate(output, Desc::new(DType::F32, &[N]))?;
        made.elements::<f32>().copy_from_slice(&numbers);
        made.into_sample()
    };
    results.push(numbers(0, window.anchor)?);
    results.push(numbers(1, window.shape)?);
    let mut made = allocate(2, Desc::new(DType::F32, &[kept.len(), 2 * N]))?;
    for (&index, row) in kept.iter().zip(made.elements::<f32>().chunks_exact_mut(2 * N)) {
        let region = if whole { boxes[index] } else { moved(&boxes[index], &window.region) };
        columns.write(&region, row);
    }
    results.push(made.into_sample()?);
    if let Some(input) = given_labels {
        let input = input.compact()?;
        let given = labels(1, &input, boxes.len())?;
        let mut shape = input.desc.shape.clone();
        shape[0] = kept.len();
        let made = allocate(results.len(), Desc::new(DType::I32, &shape))?;
        results.push(picked(made, kept.iter().map(|&index| given[index]))?);
    }
    if args.output_bbox_indices {
        let made = allocate(results.len(), Desc::new(DType::I32, &[kept.len()]))?;
        results.push(picked(made, kept.iter().map(|&index| index as i32))?);
    }
    Ok(results)
}

fn picked(mut made: OutputBuffer, numbers: impl Iterator<Item = i32>) -> Result<Sample> {
    for (place, number) in made.elements::<i32>().iter_mut().zip(numbers) {
        *place = number;
    }
    made.into_sample()
}

/// Checks that a box is inside the image, with coordinates from 0 to 1.
fn checked<const N: usize>(index: usize, row: &[f32], mut region: Region<N>) -> Result<Region<N>> {
    // Rounded to the precision of f32 for the message.
    let coordinates = || row.iter().map(|&x| (f64::from(x) * 1e6).round() / 1e6).collect();
    let inside = |place: f32| (-ROUNDING..=1.0 + ROUNDING).contains(&place);
    if !region.low.into_iter().chain(region.high).all(inside) {
        return Err(unfit(0, Boxes::Outside { index, coordinates: coordinates() }));
    }
    if (0..N).any(|axis| region.high[axis] < region.low[axis]) {
        return Err(unfit(0, Boxes::Inverted { index, coordinates: coordinates() }));
    }
    for place in region.low.iter_mut().chain(&mut region.high) {
        *place = place.clamp(0.0, 1.0);
    }
    Ok(region)
}

/// Converts a box to window coordinates.
fn moved<const N: usize>(region: &Region<N>, window: &Region<N>) -> Region<N> {
    let place = |axis: usize, place: f32| {
        let side = window.high[axis] - window.low[axis];
        ((place - window.low[axis]) / side).clamp(0.0, 1.0)
    };
    Region {
        low: std::array::from_fn(|axis| place(axis, region.low[axis])),
        high: std::array::from_fn(|axis| place(axis, region.high[axis])),
    }
}

/// Pairs of axes that aspect ratios apply to: x/y, x/z and y/z.
const PAIRS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

/// How window shapes are chosen.
enum Shapes<const N: usize> {
    /// Random sides within limits, with limits for the ratio of each pair of axes.
    Random { scaling: [f64; 2], ratios: SmallVec<[[f64; 2]; 3]> },
    /// A fixed window size in pixels, for an image of size `input`.
    Fixed { crop: [i64; N], input: [i64; N] },
}

struct Search<'a, const N: usize> {
    args: &'a RandomBboxCropArgs,
    boxes: &'a [Region<N>],
    shapes: Shapes<N>,
    keep: Option<f32>,
    thresholds: SmallVec<[f32; 6]>,
}

impl<'a, const N: usize> Search<'a, N> {
    fn new(
        args: &'a RandomBboxCropArgs,
        names: &Names,
        boxes: &'a [Region<N>],
    ) -> Result<Search<'a, N>> {
        let extents = |name, given: &Option<Ints>| match given {
            Some(given) => args.extents::<N>(name, given, names).map(Some),
            None => Ok(None),
        };
        let input = extents("input_shape", &args.input_shape)?;
        if let Some(&given) = input.iter().flatten().find(|&&side| side == 0) {
            return Err(argument("input_shape", Argument::NotPositive { given: given as f64 }));
        }
        let shapes = match (extents("crop_shape", &args.crop_shape)?, input) {
            (Some(crop), Some(input)) => Shapes::Fixed { crop, input },
            (Some(_), None) => {
                let problem = Argument::NeedsOther { other: "input_shape" };
                return Err(argument("crop_shape", problem));
            }
            (None, input) => args.random_shapes(input)?,
        };
        let keep = args.bbox_prune_threshold.map(|share| share as f32);
        let thresholds = args.thresholds.iter().map(|&threshold| threshold as f32).collect();
        Ok(Search { args, boxes, shapes, keep, thresholds })
    }

    /// Finds a window that meets the conditions; `None` means the whole image.
    fn find(&self) -> Result<Option<Window<N>>> {
        let mut draws = Draws { stream: &self.args.rng, used: 0 };
        let fixed = matches!(self.shapes, Shapes::Fixed { .. });
        let no_crop = usize::from(self.args.allow_no_crop && !fixed);
        let limit = usize::try_from(self.args.total_num_attempts).ok();
        let attempts = limit.unwrap_or(MOST_ATTEMPTS).min(MOST_ATTEMPTS);
        let in_a_row = usize::try_from(self.args.num_attempts).unwrap_or(1).max(1);
        let mut best: Option<(f32, Window<N>)> = None;
        let mut attempt = 0;
        while attempt < attempts {
            let choice = draws.below(self.thresholds.len() + no_crop);
            let Some(&threshold) = self.thresholds.get(choice) else { return Ok(None) };
            for _ in 0..in_a_row.min(attempts - attempt) {
                attempt += 1;
                let Some(window) = self.draw(&mut draws) else { continue };
                let metric = self.metric(&window.region);
                if metric >= threshold && self.keeps_any(&window.region) {
                    return Ok(Some(window));
                }
                if best.as_ref().is_none_or(|(most, _)| metric > *most) {
                    best = Some((metric, window));
                }
            }
        }
        match (best, limit) {
            (Some((_, window)), Some(_)) => Ok(Some(window)),
            (Some((metric, _)), None) => {
                let problem = Boxes::NoWindow { attempts, best: f64::from(metric) };
                Err(Cause::Value { problem: problem.into() })
            }
            (None, _) => self.any_window(&mut draws).map(Some),
        }
    }

    /// Draws a window with a valid aspect ratio, if none of the attempts gave one.
    fn any_window(&self, draws: &mut Draws<'_>) -> Result<Window<N>> {
        (0..MOST_ATTEMPTS).find_map(|_| self.draw(draws)).ok_or_else(|| {
            let problem = Boxes::NoShape { attempts: MOST_ATTEMPTS };
            argument("aspect_ratio", problem)
        })
    }

    /// Draws a random window; `None` if its aspect ratios are out of range.
    fn draw(&self, draws: &mut Draws<'_>) -> Option<Window<N>> {
        match &self.shapes {
            Shapes::Random { scaling: [least, most], ratios } => {
                let mut shape: [f64; N] = draws.fractions();
                shape = shape.map(|part| least + (most - least) * part);
                fit_ratios(&mut shape, ratios).then_some(())?;
                let parts: [f64; N] = draws.fractions();
                let anchor: [f32; N] =
                    std::array::from_fn(|axis| (parts[axis] * (1.0 - shape[axis])) as f32);
                let high: [f32; N] = std::array::from_fn(|axis| anchor[axis] + shape[axis] as f32);
                // Recomputed after rounding to f32, so that window and boxes agree.
                let shape = std::array::from_fn(|axis| high[axis] - anchor[axis]);
                Some(Window { region: Region { low: anchor, high }, anchor, shape })
            }
            Shapes::Fixed { crop, input } => {
                let anchor: [i64; N] = std::array::from_fn(|axis| {
                    let room = input[axis] - crop[axis];
                    room.min(0) + draws.below(room.unsigned_abs() as usize + 1) as i64
                });
                let relative = |pixels: i64, axis: usize| pixels as f32 / input[axis] as f32;
                let low = std::array::from_fn(|axis| relative(anchor[axis], axis));
                let high = std::array::from_fn(|axis| relative(anchor[axis] + crop[axis], axis));
                Some(Window {
                    region: Region { low, high },
                    anchor: anchor.map(|pixels| pixels as f32),
                    shape: crop.map(|pixels| pixels as f32),
                })
            }
        }
    }

    /// The metric of the worst box or of the best one, depending on `all_boxes_above_threshold`.
    fn metric(&self, window: &Region<N>) -> f32 {
        let volume = window.volume();
        let each = self.boxes.iter().map(|region| match self.args.threshold_type {
            Metric::Overlap => region.share_in(window),
            Metric::Iou => {
                let common = region.common(window);
                let union = region.volume() + volume - common;
                if union > 0.0 { common / union } else { 0.0 }
            }
        });
        if self.boxes.is_empty() {
            // Without boxes, any window will do.
            return 1.0;
        }
        match self.args.all_boxes_above_threshold {
            true => each.fold(f32::INFINITY, f32::min),
            false => each.fold(0.0, f32::max),
        }
    }

    fn keeps(&self, region: &Region<N>, window: &Region<N>) -> bool {
        match self.keep {
            None => window.contains(region.centre()),
            Some(least) => {
                let share = region.share_in(window);
                share > 0.0 && share >= least
            }
        }
    }

    fn keeps_any(&self, window: &Region<N>) -> bool {
        self.boxes.is_empty() || self.boxes.iter().any(|region| self.keeps(region, window))
    }
}

/// Enforces ratios that have only one valid value, by keeping the longer side of each pair. Returns
/// whether all ratios are valid.
fn fit_ratios<const N: usize>(shape: &mut [f64; N], ratios: &[[f64; 2]]) -> bool {
    let pairs = || PAIRS.into_iter().zip(ratios);
    for ((a, b), &[low, high]) in pairs() {
        if low == high {
            let longer = shape[a].max(shape[b]);
            (shape[a], shape[b]) =
                if low > 1.0 { (longer, longer / low) } else { (longer * low, longer) };
        }
    }
    pairs().all(|((a, b), &[low, high])| {
        let ratio = shape[a] / shape[b];
        // Tolerance for the rounding of sides that were adjusted above.
        const NEARLY: f64 = 1e-9;
        ratio >= low * (1.0 - NEARLY) && ratio <= high * (1.0 + NEARLY)
    })
}

impl RandomBboxCropArgs {
    /// Image extents along x, y and z.
    fn extents<const N: usize>(
        &self,
        name: &'static str,
        given: &[i64],
        names: &Names,
    ) -> Result<[i64; N]> {
        let letters = self.shape_layout.as_ref().map_or(names.extents, |layout| layout.as_str());
        let mut found = [0; N];
        for (letter, side) in names.extents.chars().zip(&mut found) {
            let place = letters.find(letter).filter(|_| letters.len() == N);
            let Some(place) = place else {
                let problem = Boxes::ShapeLayout { wanted: names.extents, given: letters.into() };
                return Err(argument("shape_layout", problem));
            };
            match given.get(place).filter(|_| given.len() == N) {
                Some(&number) if number < 0 => {
                    return Err(argument(name, Argument::Negative { given: number as f64 }));
                }
                Some(&number) if number > i64::from(i32::MAX) => {
                    let longest = f64::from(i32::MAX);
                    let problem = Argument::TooLong { extent: number as f64, longest };
                    return Err(argument(name, problem));
                }
                Some(&number) => *side = number,
                None => {
                    let given = given.to_vec();
                    return Err(argument(name, Boxes::Extents { wanted: N, given }));
                }
            }
        }
        Ok(found)
    }

    fn random_shapes<const N: usize>(&self, input: Option<[i64; N]>) -> Result<Shapes<N>> {
        let [least, most] = self.scaling[..] else {
            let problem = Argument::Numbers { wanted: 2, given: self.scaling.to_vec() };
            return Err(argument("scaling", problem));
        };
        let (given, rest) = self.aspect_ratio.as_chunks::<2>();
        if !rest.is_empty() || !matches!(given.len(), 1 | 3) {
            let problem = Argument::Numbers { wanted: 2, given: self.aspect_ratio.to_vec() };
            return Err(argument("aspect_ratio", problem));
        }
        let pairs = if N == 2 { 1 } else { 3 };
        let ratio = |index: usize| {
            let [low, high] = given.get(index).copied().unwrap_or(given[0]);
            // Sides are relative to the image, but aspect ratios are in pixels.
            let (a, b) = PAIRS[index];
            let square = input.map_or(1.0, |input| input[b] as f64 / input[a] as f64);
            [low * square, high * square]
        };
        let ratios = (0..pairs).map(ratio).collect();
        Ok(Shapes::Random { scaling: [least, most], ratios })
    }
}

/// A sequence of random numbers from a stream.
struct Draws<'a> {
    stream: &'a Stream,
    used: u64,
}

impl Draws<'_> {
    fn next(&mut self) -> [u32; 4] {
        self.used += 1;
        self.stream.block(self.used - 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        let [a, b, ..] = self.next();
        below(a, b, bound as u64) as usize
    }

    fn fractions<const N: usize>(&mut self) -> [f64; N] {
        let mut made = [0.0; N];
        for pair in made.chunks_mut(2) {
            let [a, b, c, d] = self.next();
            for (number, part) in pair.iter_mut().zip([fraction(a, b), fraction(c, d)]) {
                *number = part;
            }
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_ratios_are_enforced() {
        let mut shape = [0.5, 0.8];
        assert!(fit_ratios(&mut shape, &[[2.0, 2.0]]));
        assert_eq!(shape, [0.8, 0.4]);
        let mut shape = [0.5, 0.8];
        assert!(fit_ratios(&mut shape, &[[0.5, 0.5]]));
        assert_eq!(shape, [0.4, 0.8]);
        let mut shape = [0.3, 0.4, 0.5];
        assert!(fit_ratios(&mut shape, &[[1.0, 1.0]; 3]));
        assert_eq!(shape, [0.5; 3]);
        assert!(!fit_ratios(&mut [0.2, 0.8], &[[0.5, 2.0]]));
        assert!(fit_ratios(&mut [0.5, 0.8], &[[0.5, 2.0]]));
        assert!(!fit_ratios(&mut [0.0, 0.0], &[[0.5, 2.0]]));
    }

    #[test]
    fn columns_can_be_in_any_order() {
        let columns = Columns::<2>::new(Layout::new("HyxW"), false, &FLAT).unwrap();
        let region = columns.read(&[0.25, 0.5, 0.125, 0.5]);
        assert_eq!((region.low, region.high), ([0.125, 0.5], [0.625, 0.75]));
        let mut row = [0.0; 4];
        columns.write(&region, &mut row);
        assert_eq!(row, [0.25, 0.5, 0.125, 0.5]);
        for wrong in ["xyxy", "xyX", "xyzXYZ", "xyXH", ""] {
            assert!(Columns::<2>::new(Layout::new(wrong), false, &FLAT).is_err(), "{wrong}");
        }
    }
}
