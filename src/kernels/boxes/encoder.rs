//! Anchor matching for single-shot detectors (SSD).

use smallvec::{SmallVec, smallvec};

use super::problem::Boxes;
use super::{floats, labels};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::{Frames, Kernel, Output, Outputs, Result, Traits, args};
use crate::value::{DType, Desc, Sample, filled, with_room};

pub struct BoxEncoder;

args! {
    pub struct BoxEncoderArgs {
        anchors: Vec<f64>,
        criteria: f64,
        means: SmallVec<[f64; 6]>,
        offset: bool,
        scale: f64,
        stds: SmallVec<[f64; 6]>,
    }
}

pub struct Encoder {
    anchors: Anchors,
    criteria: f32,
    offset: bool,
    scale: f32,
    means: [f32; 4],
    stds: [f32; 4],
}

impl Kernel for BoxEncoder {
    type Args = BoxEncoderArgs;
    type Plan = Encoder;
    const TRAITS: Traits = Traits {
        cheap: false,
        uniform_outputs: true,
        shaped_by_args: false,
        frames: Frames::Whole,
        ..Traits::DEFAULT
    };

    fn plan(args: BoxEncoderArgs, _: &[&Desc]) -> Result<(Encoder, Outputs)> {
        if !(0.0..=1.0).contains(&args.criteria) {
            let problem = Argument::Between { low: 0.0, high: 1.0, given: args.criteria };
            return Err(argument("criteria", problem));
        }
        if args.anchors.is_empty() || !args.anchors.len().is_multiple_of(4) {
            return Err(argument("anchors", Boxes::Anchors { given: args.anchors.len() }));
        }
        let four = |name, numbers: &[f64]| match *numbers {
            [x, y, w, h] => Ok([x, y, w, h].map(|number| number as f32)),
            _ => {
                let problem = Argument::Numbers { wanted: 4, given: numbers.to_vec() };
                Err(argument(name, problem))
            }
        };
        let (means, stds) = (four("means", &args.means)?, four("stds", &args.stds)?);
        if stds.contains(&0.0) {
            return Err(argument("stds", Boxes::NotZero));
        }
        let anchors = Anchors::new(&args.anchors)?;
        let count = anchors.areas.len();
        let (offset, criteria) = (args.offset, args.criteria as f32);
        let encoder = Encoder { anchors, criteria, offset, scale: args.scale as f32, means, stds };
        let outputs =
            smallvec![Desc::new(DType::F32, &[count, 4]), Desc::new(DType::I32, &[count])];
        Ok((encoder, outputs))
    }

    fn run(plan: &Encoder, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let shape = &inputs[0].desc.shape;
        let [count, 4] = shape[..] else {
            return Err(unfit(0, Boxes::NotRows { wanted: "4", shape: shape.to_vec() }));
        };
        let boxes = floats(0, &inputs[0])?.as_chunks::<4>().0;
        let labels = labels(1, &inputs[1], count)?;
        let matches = plan.anchors.matches(boxes, plan.criteria)?;
        let [encoded, classes] = outputs else {
            return Err(crate::value::Cause::Internal("two outputs".into()));
        };
        let rows = encoded.elements::<f32>().as_chunks_mut::<4>().0.iter_mut();
        let rows = rows.zip(classes.elements::<i32>());
        for (index, ((row, class), &matched)) in rows.zip(&matches).enumerate() {
            let anchor = centred(plan.anchors.corners(index));
            let Some(&found) = usize::try_from(matched).ok().and_then(|index| boxes.get(index))
            else {
                *row = if plan.offset { [0.0; 4] } else { anchor };
                *class = 0;
                continue;
            };
            let found = centred(found);
            *row = if plan.offset { plan.offsets(found, anchor) } else { found };
            *class = labels[matched as usize];
        }
        Ok(())
    }
}

impl Encoder {
    /// Box relative to its anchor: center offsets in units of the anchor size, log ratios of sizes.
    fn offsets(&self, found: [f32; 4], anchor: [f32; 4]) -> [f32; 4] {
        let scaled = |row: [f32; 4]| row.map(|number| number * self.scale);
        let ([x, y, w, h], [ax, ay, aw, ah]) = (scaled(found), scaled(anchor));
        let mut made = [(x - ax) / aw, (y - ay) / ah, (w / aw).ln(), (h / ah).ln()];
        for (number, (mean, std)) in made.iter_mut().zip(self.means.iter().zip(&self.stds)) {
            *number = (*number - mean) / std;
        }
        made
    }
}

/// Converts corners to center and size.
fn centred([left, top, right, bottom]: [f32; 4]) -> [f32; 4] {
    [(left + right) * 0.5, (top + bottom) * 0.5, right - left, bottom - top]
}

/// Anchors as one array per coordinate, so that loops over them vectorize.
struct Anchors {
    left: Vec<f32>,
    top: Vec<f32>,
    right: Vec<f32>,
    bottom: Vec<f32>,
    areas: Vec<f32>,
}

/// Marks an anchor without a box.
const NONE: i32 = -1;

impl Anchors {
    fn new(numbers: &[f64]) -> Result<Anchors> {
        let count = numbers.len() / 4;
        let column = |which: usize| -> Result<Vec<f32>> {
            let mut made = with_room(count)?;
            made.extend(numbers.as_chunks::<4>().0.iter().map(|row| row[which] as f32));
            Ok(made)
        };
        let (left, top, right, bottom) = (column(0)?, column(1)?, column(2)?, column(3)?);
        let mut areas = filled(0.0, count)?;
        for (index, area) in areas.iter_mut().enumerate() {
            *area = (right[index] - left[index]) * (bottom[index] - top[index]);
        }
        Ok(Anchors { left, top, right, bottom, areas })
    }

    fn corners(&self, index: usize) -> [f32; 4] {
        [self.left[index], self.top[index], self.right[index], self.bottom[index]]
    }

    /// For each anchor, the index of its box, or [`NONE`]. Each box is assigned the anchor with the
    /// highest IoU. Each other anchor is assigned the box with the highest IoU, if that exceeds
    /// `criteria`. The last one wins ties, as in DALI.
    fn matches(&self, boxes: &[[f32; 4]], criteria: f32) -> Result<Vec<i32>> {
        let count = self.areas.len();
        let mut overlaps = filled(0.0_f32, count)?;
        let mut best = filled(0.0_f32, count)?;
        let mut found = filled(NONE, count)?;
        let mut claimed: Vec<(usize, i32)> = with_room(boxes.len())?;
        for (number, row) in boxes.iter().enumerate() {
            let number = number as i32;
            let largest = vectorized!({
                self.overlap(row, &mut overlaps);
                for ((best, found), &overlap) in best.iter_mut().zip(&mut found).zip(&overlaps) {
                    let better = overlap >= *best;
                    *best = if better { overlap } else { *best };
                    *found = if better { number } else { *found };
                }
                largest(&overlaps)
            });
            let claims = overlaps.iter().rposition(|&overlap| overlap == largest);
            claimed.push((claims.unwrap_or(count - 1), number));
        }
        for (found, &best) in found.iter_mut().zip(&best) {
            if best <= criteria {
                *found = NONE;
            }
        }
        for (anchor, number) in claimed {
            found[anchor] = number;
        }
        Ok(found)
    }

    /// IoU of a box with each anchor.
    #[inline(always)]
    fn overlap(&self, &[left, top, right, bottom]: &[f32; 4], overlaps: &mut [f32]) {
        let area = (right - left) * (bottom - top);
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let smaller = |a: f32, b: f32| if a < b { a } else { b };
        let starts = self.left.iter().zip(&self.top);
        let ends = self.right.iter().zip(&self.bottom);
        let anchors = starts.zip(ends).zip(&self.areas);
        for (overlap, (((l, t), (r, b)), own)) in overlaps.iter_mut().zip(anchors) {
            let width = smaller(right, *r) - larger(left, *l);
            let height = smaller(bottom, *b) - larger(top, *t);
            let common = width * height;
            let share = common / (area + own - common);
            *overlap = if width > 0.0 && height > 0.0 { share } else { 0.0 };
        }
    }
}

/// Maximum of non-negative numbers.
#[inline(always)]
fn largest(numbers: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    let (chunks, rest) = numbers.as_chunks::<8>();
    for chunk in chunks {
        for (lane, &number) in lanes.iter_mut().zip(chunk) {
            *lane = if number > *lane { number } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(0.0, |most, &number| if number > most { number } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANCHORS: [f64; 16] =
        [0.0, 0.0, 0.5, 0.5, 0.25, 0.25, 0.75, 0.75, 0.5, 0.5, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];

    #[test]
    fn every_box_gets_an_anchor_at_any_criteria() {
        let anchors = Anchors::new(&ANCHORS).unwrap();
        let boxes = [[0.1, 0.1, 0.45, 0.5], [0.5, 0.55, 0.9, 1.0]];
        assert_eq!(anchors.matches(&boxes, 1.0).unwrap(), [0, NONE, 1, NONE]);
        assert_eq!(anchors.matches(&boxes, 0.1).unwrap(), [0, 0, 1, 1]);
        assert_eq!(anchors.matches(&[], 0.5).unwrap(), [NONE; 4]);
    }

    #[test]
    fn the_last_one_wins_ties() {
        let anchors = Anchors::new(&ANCHORS).unwrap();
        assert_eq!(
            anchors.matches(&[[0.0, 0.0, 0.5, 0.5]; 2], 0.5).unwrap(),
            [1, NONE, NONE, NONE]
        );
        // Also for boxes without any overlap, with NaN, or with zero area.
        for corners in [[2.0, 2.0, 3.0, 3.0], [f32::NAN, 0.0, 1.0, 1.0], [0.2, 0.2, 0.2, 0.2]] {
            assert_eq!(anchors.matches(&[corners], 0.5).unwrap(), [NONE, NONE, NONE, 0]);
        }
    }
}
