//! Bounding boxes: flip, paste, rotate, anchor matching and random crops.

mod encoder;
mod random_crop;
mod roi_crop;
mod rotate;

use self::problem::Boxes;
use super::{Entry, Family, Frames, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::value::{DType, Desc, Sample};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Boxes::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<BbFlip>("bb_flip"),
    Entry::new::<BboxPaste>("bbox_paste"),
    Entry::direct::<rotate::BboxRotate>("bbox_rotate"),
    Entry::new::<encoder::BoxEncoder>("box_encoder"),
    Entry::direct::<random_crop::RandomBboxCrop>("random_bbox_crop"),
    Entry::new::<roi_crop::RoiRandomCrop>("roi_random_crop"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of the box operators.
        pub enum Boxes {
            NotFours { shape: Vec<usize> },
            NotRows { wanted: &'static str, shape: Vec<usize> },
            LabelShape { boxes: usize, shape: Vec<usize> },
            Outside { index: usize, coordinates: Vec<f64> },
            Inverted { index: usize, coordinates: Vec<f64> },
            Anchors { given: usize },
            NotZero,
            BoxLayout { wanted: &'static str, given: String },
            ShapeLayout { wanted: &'static str, given: String },
            ShapeNumbers { layout: String, given: Vec<i64> },
            Extents { wanted: usize, given: Vec<i64> },
            NoWindow { attempts: usize, best: f64 },
            NoShape { attempts: usize },
            RoiEnds { given: i64, start: i64, axis: usize },
            RoiOutside { start: i64, end: i64, extent: i64, axis: usize },
            LargeCrop { given: i64, extent: i64, axis: usize },
            FewAxes { wanted: usize, given: usize },
        }
    }
}

/// The elements of a float32 input.
fn floats(index: usize, sample: &Sample) -> Result<&[f32]> {
    if sample.desc.dtype != DType::F32 {
        let dtype = sample.desc.dtype.name();
        return Err(unfit(index, Input::Type { wanted: "float32", dtype }));
    }
    Ok(sample.elements())
}

/// The elements of an int32 input that holds one label per box.
fn labels(index: usize, sample: &Sample, boxes: usize) -> Result<&[i32]> {
    if sample.desc.dtype != DType::I32 {
        let dtype = sample.desc.dtype.name();
        return Err(unfit(index, Input::Type { wanted: "int32", dtype }));
    }
    match sample.desc.shape[..] {
        [count] | [count, 1] if count == boxes => Ok(sample.elements()),
        _ => {
            let shape = sample.desc.shape.to_vec();
            Err(unfit(index, Boxes::LabelShape { boxes, shape }))
        }
    }
}

/// Checks that the input is float32 and holds four numbers per box.
fn check_fours(desc: &Desc) -> Result<()> {
    if !desc.elements().is_multiple_of(4) {
        return Err(unfit(0, Boxes::NotFours { shape: desc.shape.to_vec() }));
    }
    if desc.dtype != DType::F32 {
        let dtype = desc.dtype.name();
        return Err(unfit(0, Input::Type { wanted: "float32", dtype }));
    }
    Ok(())
}

const EACH_BOX: Traits =
    Traits { shaped_by_args: false, stacks: true, frames: Frames::Whole, ..Traits::DEFAULT };

/// Writes `map` of each input box to the output.
fn map_boxes(
    input: &Sample,
    out: &mut Output<'_>,
    map: impl Fn([f32; 4]) -> [f32; 4],
) -> Result<()> {
    let src = floats(0, input)?.as_chunks::<4>().0;
    for (dst, &src) in out.elements::<f32>().as_chunks_mut::<4>().0.iter_mut().zip(src) {
        *dst = map(src);
    }
    Ok(())
}

struct BbFlip;

args! {
    struct BbFlipArgs { horizontal: bool, ltrb: bool, vertical: bool }
}

impl Kernel for BbFlip {
    type Args = BbFlipArgs;
    type Plan = BbFlipArgs;
    const TRAITS: Traits = EACH_BOX;

    fn plan(args: BbFlipArgs, inputs: &[&Desc]) -> Result<(BbFlipArgs, Outputs)> {
        check_fours(inputs[0])?;
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &BbFlipArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let &BbFlipArgs { horizontal, ltrb, vertical } = args;
        let mirrored = |[left, top, right, bottom]: [f32; 4]| {
            let (left, right) = if horizontal { (1.0 - right, 1.0 - left) } else { (left, right) };
            let (top, bottom) = if vertical { (1.0 - bottom, 1.0 - top) } else { (top, bottom) };
            [left, top, right, bottom]
        };
        if ltrb {
            return map_boxes(&inputs[0], &mut outputs[0], mirrored);
        }
        // Goes through the corners even for axes that are not flipped, so that rounding matches
        // DALI.
        map_boxes(&inputs[0], &mut outputs[0], |[x, y, w, h]| {
            let [left, top, right, bottom] = mirrored([x, y, x + w, y + h]);
            [left, top, right - left, bottom - top]
        })
    }
}

struct BboxPaste;

args! {
    struct BboxPasteArgs { ltrb: bool, paste_x: f64, paste_y: f64, ratio: f64 }
}

impl Kernel for BboxPaste {
    type Args = BboxPasteArgs;
    type Plan = BboxPasteArgs;
    const TRAITS: Traits = EACH_BOX;

    fn plan(args: BboxPasteArgs, inputs: &[&Desc]) -> Result<(BboxPasteArgs, Outputs)> {
        check_fours(inputs[0])?;
        if args.ratio.is_nan() || args.ratio as f32 <= 0.0 {
            return Err(argument("ratio", Argument::NotPositive { given: args.ratio }));
        }
        for (name, given) in
            [("ratio", args.ratio), ("paste_x", args.paste_x), ("paste_y", args.paste_y)]
        {
            if !(given as f32).is_finite() {
                return Err(argument(name, Argument::NotFinite { given }));
            }
        }
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &BboxPasteArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let ratio = args.ratio as f32;
        let scale = 1.0 / ratio;
        // The image may start before the canvas but must not extend past its end.
        let margin = |place: f64| {
            let margin = place as f32 * ((ratio - 1.0) / ratio);
            if margin + scale > 1.0 { 1.0 - scale } else { margin }
        };
        let (x, y) = (margin(args.paste_x), margin(args.paste_y));
        // The second pair is either a corner, which is shifted, or a size, which is not.
        let (x2, y2) = if args.ltrb { (x, y) } else { (0.0, 0.0) };
        map_boxes(&inputs[0], &mut outputs[0], |[a, b, c, d]| {
            [a * scale + x, b * scale + y, c * scale + x2, d * scale + y2]
        })
    }
}
