//! Optical flow: the motion of pixels between consecutive frames.

mod plane;
mod refine;
mod search;

use self::plane::{Flow, Plane};
use self::search::Search;
use super::{Entry, Family, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::value::{Cause, DType, Desc, Sample};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Flow::KINDS] };

const TABLE: &[Entry] = &[Entry::new::<OpticalFlow>("optical_flow")];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of `optical_flow`.
        pub enum Flow {
            FewFrames { frames: usize },
            Hints { shape: Vec<usize>, wanted: Vec<usize> },
        }
    }
}

struct OpticalFlow;

args! {
    struct FlowArgs {
        enable_external_hints: bool,
        enable_temporal_hints: bool,
        hint_grid: i64,
        image_type: i64,
        output_grid: i64,
        preset: f64,
    }
}

struct Plan {
    method: Method,
    weights: &'static [f32],
    grid: usize,
    hint_grid: Option<usize>,
    temporal: bool,
}

/// Trade-off between quality and speed. `searched` and `refined` are the finest scales that are
/// searched and refined.
#[derive(Clone, Copy)]
struct Method {
    search: Search,
    searched: usize,
    refined: usize,
    linearizations: usize,
}

impl Method {
    /// From 0, the most accurate, to 1, the fastest.
    fn new(preset: f64) -> Method {
        let search = Search { stride: 4, iterations: 16 };
        match preset {
            ..0.25 => Method { search, searched: 1, refined: 0, linearizations: 5 },
            0.25..0.75 => Method { search, searched: 1, refined: 1, linearizations: 5 },
            _ => {
                let search = Search { stride: 4, iterations: 12 };
                Method { search, searched: 2, refined: 2, linearizations: 2 }
            }
        }
    }
}

/// Luma weights of the channels, by image type.
fn luma(image_type: i64) -> Option<&'static [f32]> {
    match image_type {
        0 => Some(&[0.299, 0.587, 0.114]),
        1 => Some(&[0.114, 0.587, 0.299]),
        2 => Some(&[1.0]),
        _ => None,
    }
}

fn grid(name: &'static str, given: i64) -> Result<usize> {
    match given {
        1 | 2 | 4 | 8 => Ok(given as usize),
        _ => {
            let choices = "1, 2, 4, 8";
            Err(argument(name, Argument::OneOf { choices, given: given.to_string() }))
        }
    }
}

impl Kernel for OpticalFlow {
    type Args = FlowArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { cheap: false, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: FlowArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let frames = inputs[0];
        let [count, height, width, channels] = frames.shape[..] else {
            return Err(Cause::Internal("frames of another rank".into()));
        };
        if frames.dtype != DType::U8 {
            let dtype = frames.dtype.name();
            return Err(unfit(0, Input::Type { wanted: "uint8", dtype }));
        }
        let weights = luma(args.image_type).ok_or_else(|| {
            let choices = "RGB, BGR, GRAY";
            let given = args.image_type.to_string();
            argument("image_type", Argument::OneOf { choices, given })
        })?;
        if channels != weights.len() {
            let wanted = if weights.len() == 1 { "1" } else { "3" };
            return Err(unfit(0, Input::Channels { wanted, given: channels }));
        }
        if count < 2 {
            return Err(unfit(0, problem::Flow::FewFrames { frames: count }));
        }
        let grid = self::grid("output_grid", args.output_grid)?;
        let hint_grid = self::grid("hint_grid", args.hint_grid)?;
        if !(0.0..=1.0).contains(&args.preset) {
            let problem = Argument::Between { low: 0.0, high: 1.0, given: args.preset };
            return Err(argument("preset", problem));
        }
        let cells = |grid: usize| [count - 1, height.div_ceil(grid), width.div_ceil(grid), 2];
        if args.enable_external_hints {
            let wanted = cells(hint_grid);
            let hints = inputs.get(1).filter(|hints| hints.dtype == DType::F32);
            if hints.is_none_or(|hints| hints.shape[..] != wanted) {
                let shape = inputs.get(1).map_or(vec![], |hints| hints.shape.to_vec());
                return Err(unfit(1, problem::Flow::Hints { shape, wanted: wanted.to_vec() }));
            }
        }
        let plan = Plan {
            method: Method::new(args.preset),
            weights,
            grid,
            hint_grid: args.enable_external_hints.then_some(hint_grid),
            temporal: args.enable_temporal_hints,
        };
        Ok((plan, one(Desc::new(DType::F32, &cells(grid)))))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let [_, height, width, channels] = inputs[0].desc.shape[..] else { return Ok(()) };
        let out = outputs[0].elements::<f32>();
        if out.is_empty() {
            return Ok(());
        }
        let images = inputs[0].elements_as_bytes().chunks_exact(height * width * channels);
        let cells = height.div_ceil(plan.grid) * width.div_ceil(plan.grid) * 2;
        let mut hints = match plan.hint_grid {
            Some(grid) => {
                let size = [height.div_ceil(grid), width.div_ceil(grid)];
                let each = inputs[1].elements::<f32>().chunks_exact(2 * size[0] * size[1]);
                Some(each.map(move |hints| (hints, size, grid)))
            }
            None => None,
        };
        let coarsest = coarsest(height, width);
        let mut before: Option<Vec<Plane>> = None;
        let mut last: Option<Flow> = None;
        let mut out = out.chunks_exact_mut(cells);
        for image in images {
            let scales = pyramid(image, [height, width], plan.weights, coarsest)?;
            let Some(first) = before.replace(scales) else { continue };
            let (Some(second), Some(out)) = (&before, out.next()) else { break };
            let start = match (hints.as_mut().and_then(Iterator::next), &last) {
                (Some((hints, size, grid)), _) => Some(external(hints, size, grid)?),
                (None, Some(last)) if plan.temporal => {
                    Some((last.resampled(last.height, last.width, 1.0, 1.0)?, 1))
                }
                _ => None,
            };
            let flow = estimate(&first, second, plan.method, start)?;
            average(&flow, plan.grid, out);
            last = Some(flow);
        }
        Ok(())
    }
}

/// The number of pyramid levels above the finest, chosen such that a few patches still fit.
fn coarsest(height: usize, width: usize) -> usize {
    let fits = |scale: &usize| {
        height.min(width) >> scale >= search::PATCH + search::PATCH / 2
            && height.max(width) >> scale >= 3 * search::PATCH
    };
    (1..usize::BITS as usize - 1).take_while(fits).count()
}

fn pyramid(image: &[u8], size: [usize; 2], weights: &[f32], coarsest: usize) -> Result<Vec<Plane>> {
    let mut scales = vec![Plane::from_image(image, size, weights)?];
    for scale in 0..coarsest {
        scales.push(scales[scale].half()?);
    }
    Ok(scales)
}

/// Converts hints to a flow field, and returns it with its grid size.
fn external(hints: &[f32], [height, width]: [usize; 2], grid: usize) -> Result<(Flow, usize)> {
    let mut flow = Flow::new(height, width)?;
    for (index, [u, v]) in hints.as_chunks::<2>().0.iter().enumerate() {
        // Ignore NaN and infinities.
        flow.u[index] = if u.is_finite() { *u } else { 0.0 };
        flow.v[index] = if v.is_finite() { *v } else { 0.0 };
    }
    Ok((flow, grid))
}

/// Estimates the motion of each pixel of the first image, coarse to fine.
fn estimate(
    first: &[Plane],
    second: &[Plane],
    method: Method,
    start: Option<(Flow, usize)>,
) -> Result<Flow> {
    let coarsest = first.len() - 1;
    let size = |scale: usize| (first[scale].height, first[scale].width);
    let (height, width) = size(coarsest);
    let mut flow = match start {
        Some((hints, grid)) => {
            let pixels = (1_usize << coarsest) as f32;
            hints.resampled(height, width, pixels / grid as f32, 1.0 / pixels)?
        }
        None => Flow::new(height, width)?,
    };
    for scale in (0..=coarsest).rev() {
        let (height, width) = size(scale);
        if (flow.height, flow.width) != (height, width) {
            flow = flow.resampled(height, width, 0.5, 2.0)?;
        }
        let (first, second) = (&first[scale], &second[scale]);
        if scale >= method.searched || scale == coarsest {
            method.search.run(first, second, &mut flow)?;
        }
        if scale >= method.refined || scale == coarsest {
            refine::refine(first, second, &mut flow, method.linearizations)?;
        }
    }
    Ok(flow)
}

/// Writes the mean motion of each `grid` x `grid` cell.
fn average(flow: &Flow, grid: usize, out: &mut [f32]) {
    let across = flow.width.div_ceil(grid);
    for (index, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let (top, left) = (index / across * grid, index % across * grid);
        let (bottom, right) = ((top + grid).min(flow.height), (left + grid).min(flow.width));
        let count = ((bottom - top) * (right - left)) as f32;
        for (out, motions) in out.iter_mut().zip([&flow.u, &flow.v]) {
            let rows = (top..bottom).map(|y| &motions[y * flow.width..][left..right]);
            *out = rows.flatten().sum::<f32>() / count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A smooth pattern with an offset.
    fn frame(height: usize, width: usize, [dx, dy]: [f32; 2]) -> Vec<u8> {
        let waves = |x: f32, y: f32| {
            (x * 0.31).sin() * (y * 0.23).cos() + (x * 0.11 + y * 0.17).sin() + (y * 0.41).sin()
        };
        let pixel = |index: usize| {
            let (x, y) = ((index % width) as f32 - dx, (index / width) as f32 - dy);
            (128.0 + 40.0 * waves(x, y)) as u8
        };
        (0..height * width).map(pixel).collect()
    }

    fn flow_of(first: &[u8], second: &[u8], size: [usize; 2], preset: f64) -> Flow {
        let coarsest = coarsest(size[0], size[1]);
        let scales = [first, second].map(|image| pyramid(image, size, &[1.0], coarsest).unwrap());
        estimate(&scales[0], &scales[1], Method::new(preset), None).unwrap()
    }

    #[test]
    fn a_shift_is_found_at_every_preset() {
        let size = [96, 120];
        for shift in [[0.0, 0.0], [3.0, -2.0], [-7.25, 4.5]] {
            let [first, second] = [[0.0; 2], shift].map(|shift| frame(size[0], size[1], shift));
            for (preset, most) in [(0.0, 0.1), (0.5, 0.1), (1.0, 0.4)] {
                let flow = flow_of(&first, &second, size, preset);
                let mut error = 0.0;
                let mut count = 0.0;
                for y in 16..size[0] - 16 {
                    for x in 16..size[1] - 16 {
                        let at = y * size[1] + x;
                        error += (flow.u[at] - shift[0]).hypot(flow.v[at] - shift[1]);
                        count += 1.0;
                    }
                }
                assert!(error / count < most, "{shift:?}, preset {preset}: {}", error / count);
            }
        }
    }

    #[test]
    fn identical_images_of_any_size_have_no_motion() {
        for height in [1, 2, 5, 8, 13, 31] {
            for width in [1, 3, 7, 9, 40] {
                let image = frame(height, width, [0.0; 2]);
                let flow = flow_of(&image, &image, [height, width], 0.0);
                assert_eq!((flow.height, flow.width), (height, width));
                assert!(flow.u.iter().chain(&flow.v).all(|motion| motion.abs() < 0.5));
            }
        }
    }
}
