//! Bounding boxes of random objects in labeled masks.

use std::collections::BTreeSet;

use smallvec::{SmallVec, smallvec};

use super::blobs::{self, Extent, Label, Wanted};
use super::problem::Segmentation;
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::numeric::philox::{Source, Stream, below, fraction};
use crate::kernels::{Arg, Frames, FromArg, Kernel, Output, Outputs, Result, Traits, args};
use crate::value::{Bool, DType, Desc, Problem, Sample, with_room};

pub struct RandomObjectBbox;

#[derive(Clone, Copy, PartialEq)]
enum Format {
    AnchorShape,
    StartEnd,
    Box,
}

impl FromArg for Format {
    fn from_constant(arg: &Arg) -> std::result::Result<Format, Problem> {
        match arg {
            Arg::Text(name) if &**name == "anchor_shape" => Ok(Format::AnchorShape),
            Arg::Text(name) if &**name == "start_end" => Ok(Format::StartEnd),
            Arg::Text(name) if &**name == "box" => Ok(Format::Box),
            other => {
                let choices = "anchor_shape, start_end, box";
                Err(Argument::OneOf { choices, given: other.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Format, Problem> {
        Err(Argument::SameForAll.into())
    }
}

args! {
    pub struct RandomObjectBboxArgs {
        background: Option<i64>,
        class_weights: Option<Vec<f64>>,
        classes: Option<Vec<i64>>,
        foreground_prob: f64,
        format: Format,
        ignore_class: bool,
        k_largest: Option<i64>,
        output_class: bool,
        threshold: Option<SmallVec<[i64; 6]>>,
        rng: Stream,
    }
}

pub struct Choice {
    format: Format,
    foreground_prob: f64,
    /// Label of the background.
    background: i64,
    /// Labels to choose from, with their weights; `None` means all labels of the mask.
    classes: Option<Vec<(i64, f64)>>,
    ignore_class: bool,
    k_largest: usize,
    least: SmallVec<[i64; 6]>,
    rng: Stream,
}

impl Kernel for RandomObjectBbox {
    type Args = RandomObjectBboxArgs;
    type Plan = Choice;
    const TRAITS: Traits = Traits {
        cheap: false,
        shaped_by_args: false,
        uniform_outputs: true,
        frames: Frames::Whole,
        ..Traits::DEFAULT
    };

    fn plan(args: RandomObjectBboxArgs, inputs: &[&Desc]) -> Result<(Choice, Outputs)> {
        let desc = inputs[0];
        let axes = desc.ndim();
        if axes == 0 {
            return Err(unfit(0, Segmentation::NoAxes));
        }
        if desc.shape.iter().any(|&side| side > i32::MAX as usize) {
            return Err(unfit(0, Segmentation::LongAxis { shape: desc.shape.to_vec() }));
        }
        let (format, output_class) = (args.format, args.output_class);
        let mut outputs: Outputs = match format {
            Format::Box => smallvec![Desc::new(DType::I32, &[2 * axes])],
            _ => smallvec![Desc::new(DType::I32, &[axes]), Desc::new(DType::I32, &[axes])],
        };
        if output_class {
            outputs.push(Desc::new(DType::I32, &[]));
        }
        Ok((args.choice(axes)?, outputs))
    }

    fn run(plan: &Choice, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let mask = &inputs[0];
        let shape = &mask.desc.shape[..];
        let mut source = plan.rng.source(0);
        let [a, b, ..] = source.next();
        let mut found = None;
        // False if the probability is NaN.
        if fraction(a, b) < plan.foreground_prob {
            found = match mask.desc.dtype {
                DType::U8 => plan.object(mask.elements::<u8>(), shape, &mut source)?,
                DType::I8 => plan.object(mask.elements::<i8>(), shape, &mut source)?,
                DType::U16 => plan.object(mask.elements::<u16>(), shape, &mut source)?,
                DType::I16 => plan.object(mask.elements::<i16>(), shape, &mut source)?,
                DType::U32 => plan.object(mask.elements::<u32>(), shape, &mut source)?,
                DType::I32 => plan.object(mask.elements::<i32>(), shape, &mut source)?,
                DType::Bool => {
                    let given = mask.elements::<Bool>();
                    let mut labels = with_room(given.len())?;
                    labels.extend(given.iter().map(|pixel| u8::from(pixel.get())));
                    plan.object(&labels[..], shape, &mut source)?
                }
                other => {
                    let (wanted, dtype) = ("integers of at most 32 bits", other.name());
                    return Err(unfit(0, Input::Type { wanted, dtype }));
                }
            };
        }
        let (label, blob) = found.unwrap_or_else(|| (plan.background, Extent::whole(shape)));
        plan.write(&blob, label, outputs);
        Ok(())
    }
}

impl RandomObjectBboxArgs {
    fn choice(self, axes: usize) -> Result<Choice> {
        let k_largest = match self.k_largest {
            None => usize::MAX,
            Some(given) if given < 1 => {
                let problem = Argument::AtLeast { least: 1.0, given: given as f64 };
                return Err(argument("k_largest", problem));
            }
            Some(given) => usize::try_from(given).unwrap_or(usize::MAX),
        };
        let least = match self.threshold {
            None => smallvec![0; axes],
            Some(given) if given.len() == 1 => SmallVec::from_elem(given[0], axes),
            Some(given) if given.len() == axes => given,
            Some(given) => {
                let problem = Segmentation::Threshold { axes, given: given.to_vec() };
                return Err(argument("threshold", problem));
            }
        };
        let named = self.classes.as_deref().unwrap_or_default();
        let background = match self.background {
            Some(label) if named.contains(&label) => {
                return Err(argument("background", Segmentation::IsBackground { label }));
            }
            Some(label) => label,
            // The first of 0, -1, -2, ... that is not a label of an object.
            None => (0..=named.len() as i64).map(|n| -n).find(|n| !named.contains(n)).unwrap_or(0),
        };
        let labels = match (self.classes, &self.class_weights) {
            (Some(classes), _) => Some(classes),
            // Without `classes`, weights apply to labels 0, 1, 2, ... except the background.
            (None, Some(weights)) => {
                let mut labels = with_room(weights.len())?;
                labels.extend((0..).filter(|&label| label != background).take(weights.len()));
                Some(labels)
            }
            (None, None) => None,
        };
        let classes = match (labels, self.class_weights) {
            (None, _) => None,
            (Some(labels), weights) => {
                let count = labels.len();
                let mut classes = with_room(count)?;
                if let Some(weights) = &weights {
                    if weights.len() != count {
                        let problem =
                            Segmentation::Weights { given: weights.len(), classes: count };
                        return Err(argument("class_weights", problem));
                    }
                    if let Some(&given) =
                        weights.iter().find(|&&weight| !(weight >= 0.0 && weight.is_finite()))
                    {
                        return Err(argument("class_weights", Segmentation::Weight { given }));
                    }
                }
                let weight = |index: usize| weights.as_ref().map_or(1.0, |weights| weights[index]);
                classes.extend(labels.into_iter().enumerate().map(|(i, label)| (label, weight(i))));
                Some(classes)
            }
        };
        Ok(Choice {
            format: self.format,
            foreground_prob: self.foreground_prob,
            background,
            classes,
            ignore_class: self.ignore_class,
            k_largest,
            least,
            rng: self.rng,
        })
    }
}

impl Choice {
    /// Chooses a random object; `None` if no object is large enough.
    fn object<T: Label>(
        &self,
        labels: &[T],
        shape: &[usize],
        source: &mut Source<'_>,
    ) -> Result<Option<(i64, Extent)>> {
        if self.ignore_class {
            let all = blobs::find(labels, shape, Wanted::AllBut(T::of(self.background)))?;
            return Ok(self.pick(all, source).map(|blob| (self.background, blob)));
        }
        let mut candidates = self.candidates(labels)?;
        loop {
            let total: f64 = candidates.iter().map(|&(_, weight)| weight).sum();
            if total <= 0.0 {
                return Ok(None);
            }
            let [a, b, ..] = source.next();
            let chosen = at(&candidates, fraction(a, b) * total);
            let (label, _) = candidates.swap_remove(chosen);
            // Remove duplicates of the label too.
            candidates.retain(|&(other, _)| other != label);
            let blobs = match T::of(label) {
                Some(label) => blobs::find(labels, shape, Wanted::Label(label))?,
                None => Vec::new(),
            };
            if let Some(blob) = self.pick(blobs, source) {
                return Ok(Some((label, blob)));
            }
        }
    }

    /// The labels to choose from that occur in the mask, with their weights.
    fn candidates<T: Label>(&self, labels: &[T]) -> Result<Vec<(i64, f64)>> {
        let present = present(labels);
        let mut candidates: Vec<(i64, f64)> = with_room(present.len())?;
        match &self.classes {
            None => {
                let others = present.into_iter().filter(|&label| label != self.background);
                candidates.extend(others.map(|label| (label, 1.0)));
            }
            Some(classes) => {
                for &(label, weight) in classes.iter().filter(|(_, weight)| *weight > 0.0) {
                    if present.contains(&label) {
                        candidates.push((label, weight));
                    }
                }
            }
        }
        Ok(candidates)
    }

    /// Chooses one of the `k_largest` blobs that are large enough.
    fn pick(&self, mut blobs: Vec<Extent>, source: &mut Source<'_>) -> Option<Extent> {
        blobs.retain(|blob| {
            let sides = blob.high.iter().zip(&blob.low).map(|(&high, &low)| i64::from(high - low));
            sides.zip(&self.least).all(|(side, &least)| side >= least)
        });
        if blobs.len() > self.k_largest {
            blobs.sort_by_key(|blob| std::cmp::Reverse(blob.volume()));
            blobs.truncate(self.k_largest);
        }
        if blobs.is_empty() {
            return None;
        }
        let [a, b, ..] = source.next();
        Some(blobs.swap_remove(below(a, b, blobs.len() as u64) as usize))
    }

    fn write(&self, blob: &Extent, label: i64, outputs: &mut [Output<'_>]) {
        let axes = blob.low.len();
        let boxes = if self.format == Format::Box { 1 } else { 2 };
        let (places, class) = outputs.split_at_mut(boxes);
        match places {
            [both] => {
                let both = both.elements::<i32>();
                both[..axes].copy_from_slice(&blob.low);
                both[axes..].copy_from_slice(&blob.high);
            }
            [start, second] => {
                start.elements::<i32>().copy_from_slice(&blob.low);
                let second = second.elements::<i32>();
                second.copy_from_slice(&blob.high);
                if self.format == Format::AnchorShape {
                    for (side, &low) in second.iter_mut().zip(&blob.low) {
                        *side -= low;
                    }
                }
            }
            _ => {}
        }
        if let [class] = class {
            class.elements::<i32>()[0] = label as i32;
        }
    }
}

/// Index of the candidate at position `place` on the cumulative weights.
fn at(candidates: &[(i64, f64)], mut place: f64) -> usize {
    for (index, &(_, weight)) in candidates.iter().enumerate() {
        if place < weight {
            return index;
        }
        place -= weight;
    }
    // Reached through rounding only.
    candidates.len() - 1
}

/// Labels compared at a time.
const CHUNK: usize = 64;

/// The set of labels in a mask.
fn present<T: Label>(labels: &[T]) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    let mut last = None;
    for chunk in labels.chunks(CHUNK) {
        // Most chunks only repeat the last label.
        let Some(current) = last else {
            last = note(chunk, None, &mut found);
            continue;
        };
        if !chunk.iter().fold(true, |all, &label| all & (label == current)) {
            last = note(chunk, last, &mut found);
        }
    }
    found
}

/// Adds each label that differs from its predecessor; returns the last one.
fn note<T: Label>(chunk: &[T], mut last: Option<T>, found: &mut BTreeSet<i64>) -> Option<T> {
    for &label in chunk {
        if last != Some(label) {
            found.insert(label.number());
            last = Some(label);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_at_any_position() {
        for count in [1, 63, 64, 65, 1000] {
            for place in [0, count / 2, count - 1] {
                let mut mask = vec![7_i16; count];
                mask[place] = -3;
                let expected: &[i64] = if count == 1 { &[-3] } else { &[-3, 7] };
                assert!(present(&mask).into_iter().eq(expected.iter().copied()), "{count} {place}");
            }
        }
        assert!(present::<u8>(&[]).is_empty());
    }

    #[test]
    fn at_maps_positions_to_candidates() {
        let candidates = [(1, 1.0), (2, 0.0), (3, 3.0)];
        assert_eq!([0.0, 0.9, 1.0, 3.9, 4.0].map(|place| at(&candidates, place)), [0, 0, 2, 2, 2]);
    }
}
