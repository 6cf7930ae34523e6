//! Composes regions of several images on a canvas.
//!
//! The visible parts are determined first, strip by strip, so that each output pixel is written
//! once.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use self::problem::MultiPaste;
use super::regions::{LONGEST, too_large};
use super::{
    Arg, BatchKernel, Entry, Family, Frames, FromArg, Kernel, Output, OutputBuffer, Outputs,
    Result, Samples, Traits, Work, args, one,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::Number;
use crate::value::{
    Cause, DType, Desc, Problem, Sample, Shape, extent, with_element, with_room, zeroed,
};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::MultiPaste::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Paste>("multi_paste"),
    Entry {
        name: "pick_samples",
        args: &["in_ids", "count", "batch_size"],
        cpu: || Work::Batch(Arc::new(PickSamples)),
    },
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of `multi_paste`.
        pub enum MultiPaste {
            NotPairs { regions: usize, shape: Vec<usize> },
            OutputSize { given: Vec<i64> },
            NoSize { first: Vec<usize>, other: Vec<usize> },
            Channels { first: usize, other: usize },
            Different { first: &'static str, other: &'static str },
            NotAnImage { shape: Vec<usize> },
            OutsideInput { region: usize, start: Vec<i64>, shape: Vec<i64>, input: Vec<usize> },
            OutsideOutput { region: usize, start: Vec<i64>, shape: Vec<i64>, output: Vec<usize> },
            NoSample { id: i64, samples: usize },
        }
    }
}

struct Paste;

/// One pair of numbers per region.
struct Pairs {
    numbers: Vec<f64>,
    shape: Shape,
}

impl FromArg for Pairs {
    fn from_constant(arg: &Arg) -> std::result::Result<Pairs, Problem> {
        let numbers = Vec::<f64>::from_constant(arg)?;
        Ok(Pairs { numbers, shape: Shape::new() })
    }

    fn from_sample(sample: &Sample) -> std::result::Result<Pairs, Problem> {
        let numbers = Vec::<f64>::from_sample(sample)?;
        Ok(Pairs { numbers, shape: sample.desc.shape.clone() })
    }
}

args! {
    struct PasteArgs {
        dtype: Option<DType>,
        in_anchors: Option<Pairs>,
        in_anchors_rel: Option<Pairs>,
        in_ids: Option<Vec<i64>>,
        out_anchors: Option<Pairs>,
        out_anchors_rel: Option<Pairs>,
        output_size: Option<SmallVec<[i64; 6]>>,
        shapes: Option<Pairs>,
        shapes_rel: Option<Pairs>,
    }
}

/// A region of an input and its position on the canvas, as rows and columns.
#[derive(Clone, Copy, Debug)]
struct Region {
    input: usize,
    from: [usize; 2],
    shape: [usize; 2],
    to: [usize; 2],
}

/// Columns that show a single region, or none.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    columns: Range<usize>,
    region: Option<usize>,
}

/// Rows with the same spans.
#[derive(Debug, PartialEq)]
struct Strip {
    rows: Range<usize>,
    spans: Vec<Span>,
}

struct Mosaic {
    regions: Vec<Region>,
    strips: Vec<Strip>,
}

/// Frames, rows, columns and channels.
fn extents(index: usize, desc: &Desc) -> Result<[usize; 4]> {
    match desc.shape[..] {
        [h, w, c] => Ok([1, h, w, c]),
        [f, h, w, c] => Ok([f, h, w, c]),
        _ => Err(unfit(index, MultiPaste::NotAnImage { shape: desc.shape.to_vec() })),
    }
}

impl Kernel for Paste {
    type Args = PasteArgs;
    type Plan = Mosaic;
    // Only `output_size` can make shapes differ, and it rarely varies between samples. Not cheap: a
    // canvas can be much larger than the images, so it should not run on the calling thread.
    const TRAITS: Traits =
        Traits { cheap: false, shaped_by_args: false, frames: Frames::Inputs, ..Traits::DEFAULT };

    fn plan(args: PasteArgs, inputs: &[&Desc]) -> Result<(Mosaic, Outputs)> {
        let first = inputs[0];
        let own = extents(0, first)?;
        // With `in_ids`, the inputs after the first are the selected samples.
        let used = match &args.in_ids {
            Some(ids) => 1..1 + ids.len(),
            None => 0..inputs.len(),
        };
        if used.end > inputs.len() {
            return Err(Cause::Internal("fewer samples than were picked".into()));
        }
        let mut sources: SmallVec<[[usize; 4]; 8]> = SmallVec::new();
        for index in used.clone() {
            let desc = inputs[index];
            let source = extents(index, desc)?;
            if desc.dtype != first.dtype {
                let (first, other) = (first.dtype.name(), desc.dtype.name());
                return Err(unfit(index, MultiPaste::Different { first, other }));
            }
            if desc.ndim() != first.ndim() || source[0] != own[0] {
                return Err(unfit(index, MultiPaste::NotAnImage { shape: desc.shape.to_vec() }));
            }
            sources.push(source);
        }
        let channels = sources.first().map_or(own[3], |source| source[3]);
        if let Some(at) = sources.iter().position(|source| source[3] != channels) {
            let problem = MultiPaste::Channels { first: channels, other: sources[at][3] };
            return Err(unfit(used.start + at, problem));
        }
        let size = args.size(&own, &sources)?;
        let mut regions = with_room(sources.len())?;
        for (index, &[_, height, width, _]) in sources.iter().enumerate() {
            let input = used.start + index;
            regions.push(args.region(index, sources.len(), input, [height, width], size)?);
        }
        let strips = strips(&regions, size)?;
        let mut shape = first.shape.clone();
        let at = shape.len() - 3;
        shape[at..].copy_from_slice(&[size[0], size[1], channels]);
        if extent(&shape).is_none() {
            return Err(too_large("output_size"));
        }
        let dtype = args.dtype.unwrap_or(first.dtype);
        Ok((Mosaic { regions, strips }, one(Desc { dtype, shape, ..first.clone() })))
    }

    fn run(plan: &Mosaic, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        if out.desc.elements() == 0 {
            return Ok(());
        }
        if out.desc.dtype == inputs[0].desc.dtype {
            plan.copy(inputs, out)
        } else {
            plan.convert(inputs, out)
        }
    }
}

/// The pair of numbers of a region.
fn pair(name: &'static str, pairs: &Pairs, index: usize, regions: usize) -> Result<[f64; 2]> {
    match (&pairs.shape[..], pairs.numbers.as_chunks::<2>().0.get(index)) {
        (&[rows, 2], Some(&pair)) if rows == regions => Ok(pair),
        _ => {
            let shape = pairs.shape.to_vec();
            Err(argument(name, MultiPaste::NotPairs { regions, shape }))
        }
    }
}

impl PasteArgs {
    /// Height and width of the canvas.
    fn size(&self, own: &[usize; 4], sources: &[[usize; 4]]) -> Result<[usize; 2]> {
        let Some(given) = &self.output_size else {
            let size = |extents: &[usize; 4]| [extents[1], extents[2]];
            if let Some(other) = sources.iter().find(|source| size(source) != size(own)) {
                let (first, other) = (size(own).to_vec(), size(other).to_vec());
                return Err(argument("output_size", MultiPaste::NoSize { first, other }));
            }
            return Ok(size(own));
        };
        let &[height, width, ..] = &given[..] else {
            let given = given.to_vec();
            return Err(argument("output_size", MultiPaste::OutputSize { given }));
        };
        for side in [height, width] {
            if side < 0 {
                return Err(argument("output_size", Argument::Negative { given: side as f64 }));
            }
            if side as f64 > LONGEST {
                return Err(too_large("output_size"));
            }
        }
        Ok([height as usize, width as usize])
    }

    /// Computes a region and checks that it fits its image and the canvas.
    fn region(
        &self,
        index: usize,
        count: usize,
        input: usize,
        image: [usize; 2],
        canvas: [usize; 2],
    ) -> Result<Region> {
        let given = |pixels: (&'static str, &Option<Pairs>),
                     relative: (&'static str, &Option<Pairs>),
                     whole: [usize; 2],
                     round: fn(f32) -> f32|
         -> Result<Option<[i64; 2]>> {
            match (pixels.1, relative.1) {
                (Some(_), Some(_)) => {
                    Err(argument(pixels.0, Argument::Together { other: relative.0 }))
                }
                (Some(pairs), None) => {
                    let pair = pair(pixels.0, pairs, index, count)?;
                    Ok(Some(pair.map(|number| number as i64)))
                }
                (None, Some(pairs)) => {
                    let pair = pair(relative.0, pairs, index, count)?;
                    if let Some(&given) = pair.iter().find(|part| !(0.0..=1.0).contains(*part)) {
                        let problem = Argument::Between { low: 0.0, high: 1.0, given };
                        return Err(argument(relative.0, problem));
                    }
                    let part = |axis: usize| round(pair[axis] as f32 * whole[axis] as f32) as i64;
                    Ok(Some([part(0), part(1)]))
                }
                (None, None) => Ok(None),
            }
        };
        let from = given(
            ("in_anchors", &self.in_anchors),
            ("in_anchors_rel", &self.in_anchors_rel),
            image,
            f32::floor,
        )?;
        let to = given(
            ("out_anchors", &self.out_anchors),
            ("out_anchors_rel", &self.out_anchors_rel),
            canvas,
            f32::floor,
        )?;
        let shape =
            given(("shapes", &self.shapes), ("shapes_rel", &self.shapes_rel), image, f32::ceil)?;
        let (from, to) = (from.unwrap_or([0; 2]), to.unwrap_or([0; 2]));
        let rest = |axis: usize| (image[axis] as i64).saturating_sub(from[axis]);
        let shape = shape.unwrap_or([rest(0), rest(1)]);
        let fits = |start: [i64; 2], whole: [usize; 2]| {
            (0..2).all(|axis| {
                let end = start[axis].checked_add(shape[axis]);
                let inside = end.is_some_and(|end| end <= whole[axis] as i64);
                start[axis] >= 0 && shape[axis] >= 0 && inside
            })
        };
        // Blame the argument that determines the shape or the anchor.
        let blamed = |names: [(&'static str, bool); 2], other: &'static str| {
            names.into_iter().find(|(_, given)| *given).map_or(other, |(name, _)| name)
        };
        let (start, extents) = (from.to_vec(), shape.to_vec());
        if !fits(from, image) {
            let of_shape =
                [("shapes", self.shapes.is_some()), ("shapes_rel", self.shapes_rel.is_some())];
            let name = blamed(of_shape, "in_anchors");
            let input = image.to_vec();
            let problem = MultiPaste::OutsideInput { region: index, start, shape: extents, input };
            return Err(argument(name, problem));
        }
        if !fits(to, canvas) {
            let of_anchor = [
                ("out_anchors", self.out_anchors.is_some()),
                ("out_anchors_rel", self.out_anchors_rel.is_some()),
            ];
            let name = blamed(of_anchor, "output_size");
            let (start, output) = (to.to_vec(), canvas.to_vec());
            let problem =
                MultiPaste::OutsideOutput { region: index, start, shape: extents, output };
            return Err(argument(name, problem));
        }
        let whole = |pair: [i64; 2]| pair.map(|number| number as usize);
        Ok(Region { input, from: whole(from), shape: whole(shape), to: whole(to) })
    }
}

/// The visible parts of the regions; later regions cover earlier ones.
fn strips(regions: &[Region], [height, width]: [usize; 2]) -> Result<Vec<Strip>> {
    let mut edges = with_room(2 * regions.len() + 2)?;
    edges.extend([0, height]);
    for region in regions {
        edges.extend([region.to[0], region.to[0] + region.shape[0]]);
    }
    edges.sort_unstable();
    edges.dedup();
    let mut strips: Vec<Strip> = with_room(edges.len())?;
    for rows in edges.windows(2) {
        let rows = rows[0]..rows[1];
        let in_rows = |region: &Region| {
            region.to[0] <= rows.start && rows.end <= region.to[0] + region.shape[0]
        };
        let mut spans = vec![Span { columns: 0..width, region: None }];
        for (index, region) in regions.iter().enumerate().filter(|(_, region)| in_rows(region)) {
            cover(&mut spans, region.to[1]..region.to[1] + region.shape[1], index);
        }
        strips.push(Strip { rows, spans });
    }
    Ok(strips)
}

/// Paints a region over the spans, which are sorted and without gaps.
fn cover(spans: &mut Vec<Span>, columns: Range<usize>, region: usize) {
    if columns.is_empty() {
        return;
    }
    let first = spans.partition_point(|span| span.columns.end <= columns.start);
    let last = spans.partition_point(|span| span.columns.start < columns.end);
    let mut instead: SmallVec<[Span; 3]> = SmallVec::new();
    if let Some(span) = spans[first..last].first() {
        let left = span.columns.start..columns.start;
        instead.push(Span { columns: left, region: span.region });
    }
    instead.push(Span { columns: columns.clone(), region: Some(region) });
    if let Some(span) = spans[first..last].last() {
        let right = columns.end..span.columns.end;
        instead.push(Span { columns: right, region: span.region });
    }
    instead.retain(|span| !span.columns.is_empty());
    spans.splice(first..last, instead);
}

/// Bytes of rows assembled in a buffer before they are written with non-temporal stores.
const STAGED: usize = 16 << 10;
/// Elements converted at a time; source and destination fit the L1 cache.
const PIECE: usize = 2048;

/// Index of a pixel in an input; `None` where no region covers the canvas.
type Origin<'a> = Option<(&'a Sample, usize)>;

impl Mosaic {
    /// The origin of a whole strip, if it is contiguous in one input, or uncovered.
    fn solid<'a>(&self, strip: &Strip, inputs: &'a [Sample], frame: usize) -> Option<Origin<'a>> {
        let [span] = &strip.spans[..] else { return None };
        let Some(region) = span.region else { return Some(None) };
        let shape = &inputs[self.regions[region].input].desc.shape;
        let whole = shape[shape.len() - 2] == span.columns.len();
        whole.then(|| Some(self.pixel(region, inputs, frame, strip.rows.start, 0)))
    }

    /// The input pixel that is visible at a position of the canvas.
    fn pixel<'a>(
        &self,
        region: usize,
        inputs: &'a [Sample],
        frame: usize,
        row: usize,
        column: usize,
    ) -> (&'a Sample, usize) {
        let region = &self.regions[region];
        let input = &inputs[region.input];
        let shape = &input.desc.shape;
        let (height, width) = (shape[shape.len() - 3], shape[shape.len() - 2]);
        let y = region.from[0] + row - region.to[0];
        let x = region.from[1] + column - region.to[1];
        (input, (frame * height + y) * width + x)
    }

    /// Visits the spans of some rows in order: the number of pixels and their origin.
    fn visit<'a>(
        &self,
        strip: &Strip,
        rows: Range<usize>,
        inputs: &'a [Sample],
        frame: usize,
        mut visit: impl FnMut(usize, Origin<'a>),
    ) {
        for row in rows {
            for span in &strip.spans {
                let from = span
                    .region
                    .map(|region| self.pixel(region, inputs, frame, row, span.columns.start));
                visit(span.columns.len(), from);
            }
        }
    }

    fn copy(&self, inputs: &[Sample], out: &mut Output<'_>) -> Result<()> {
        let [frames, _, width, channels] = extents(0, out.desc)?;
        let pixel = channels * out.desc.dtype.size();
        let row = width * pixel;
        let source = |from: Origin<'_>, dst: &mut [u8]| match from {
            None => dst.fill(0),
            Some((input, first)) => {
                let len = dst.len();
                dst.copy_from_slice(&input.elements_as_bytes()[first * pixel..][..len]);
            }
        };
        out.store(|mut dst, stores| {
            // Short non-temporal stores are slow, so rows with several spans are assembled first.
            let at_once = (STAGED / row).max(1);
            let mut staged = zeroed::<u8>(if stores.is_around() { at_once * row } else { 0 })?;
            for (frame, strip) in (0..frames).flat_map(|f| self.strips.iter().map(move |s| (f, s)))
            {
                let (mut piece, rest) =
                    std::mem::take(&mut dst).split_at_mut(strip.rows.len() * row);
                dst = rest;
                match self.solid(strip, inputs, frame) {
                    Some(Some((input, first))) => {
                        let len = piece.len();
                        stores.copy(piece, &input.elements_as_bytes()[first * pixel..][..len]);
                        continue;
                    }
                    Some(None) => {
                        piece.fill(0);
                        continue;
                    }
                    None => {}
                }
                for first in strip.rows.clone().step_by(at_once) {
                    let rows = first..(first + at_once).min(strip.rows.end);
                    let (block, rest) = std::mem::take(&mut piece).split_at_mut(rows.len() * row);
                    piece = rest;
                    let len = block.len();
                    let mut made =
                        if stores.is_around() { &mut staged[..len] } else { &mut *block };
                    self.visit(strip, rows, inputs, frame, |count, from| {
                        let (next, rest) = std::mem::take(&mut made).split_at_mut(count * pixel);
                        made = rest;
                        source(from, next);
                    });
                    if stores.is_around() {
                        stores.copy(block, &staged[..len]);
                    }
                }
            }
            Ok(())
        })
    }

    fn convert(&self, inputs: &[Sample], out: &mut Output<'_>) -> Result<()> {
        let [frames, _, width, channels] = extents(0, out.desc)?;
        with_element!(out.desc.dtype, |T| {
            out.write_in_order::<T, _>(|mut writer| {
                let mut write = |count: usize, from: Origin<'_>| {
                    let mut done = 0;
                    while done < count * channels {
                        let len = PIECE.min(count * channels - done);
                        writer.next(len, |piece| match from {
                            None => piece.fill(T::default()),
                            Some((input, first)) => {
                                T::convert_row(input, first * channels + done, piece);
                            }
                        });
                        done += len;
                    }
                };
                for frame in 0..frames {
                    for strip in &self.strips {
                        match self.solid(strip, inputs, frame) {
                            Some(from) => write(strip.rows.len() * width, from),
                            None => {
                                let rows = strip.rows.clone();
                                self.visit(strip, rows, inputs, frame, &mut write);
                            }
                        }
                    }
                }
            });
        });
        Ok(())
    }
}

/// Selects samples of the batch: the first id of each sample, then the second id of each sample,
/// and so on. Samples are not copied. A sample with fewer ids is padded with itself.
struct PickSamples;

impl BatchKernel for PickSamples {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        _: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let [ids, Arg::Int(count), Arg::Int(samples)] = args else {
            return Err(Cause::Internal("pick_samples has three arguments".into()));
        };
        let wrong = |problem: Problem| Cause::Argument { name: "in_ids", problem };
        let samples = usize::try_from(*samples).unwrap_or(0);
        let rows: Vec<Vec<i64>> = match ids {
            Arg::Input(input) => {
                let row =
                    |sample: &Sample| Vec::<i64>::from_sample(&sample.compact()?).map_err(wrong);
                inputs
                    .get(*input)
                    .copied()
                    .unwrap_or_default()
                    .iter()
                    .map(row)
                    .collect::<Result<_>>()?
            }
            constant => vec![Vec::<i64>::from_constant(constant).map_err(wrong)?],
        };
        // A single row applies to all samples, like a tensor that is broadcast to a batch.
        let of = |length: usize, sample: usize| if length == 1 { 0 } else { sample };
        let lost = || Cause::Internal("a batch is too small".into());
        let batch = inputs[0];
        let mut picked = Samples::new();
        for place in 0..usize::try_from(*count).unwrap_or(0) {
            for sample in 0..samples {
                let row = rows.get(of(rows.len(), sample)).ok_or_else(lost)?;
                let id = match row.get(place) {
                    Some(&id) => usize::try_from(id)
                        .ok()
                        .filter(|&id| id < samples)
                        .ok_or_else(|| wrong(MultiPaste::NoSample { id, samples }.into()))?,
                    None => sample,
                };
                picked.push(batch.get(of(batch.len(), id)).ok_or_else(lost)?.clone());
            }
        }
        Ok(picked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(to: [usize; 2], shape: [usize; 2]) -> Region {
        Region { input: 0, from: [0; 2], shape, to }
    }

    /// The visible region at each pixel.
    fn painted(strips: &[Strip], [height, width]: [usize; 2]) -> Vec<Option<usize>> {
        let mut seen = vec![None; height * width];
        let mut written = vec![0; height * width];
        for strip in strips {
            for row in strip.rows.clone() {
                for span in &strip.spans {
                    for column in span.columns.clone() {
                        seen[row * width + column] = span.region;
                        written[row * width + column] += 1;
                    }
                }
            }
        }
        assert!(written.iter().all(|&times| times == 1));
        seen
    }

    #[test]
    fn each_pixel_is_written_once_by_the_last_region() {
        let mut state = 7_u32;
        let mut random = move |bound: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % bound
        };
        for _ in 0..300 {
            let size = [random(9), random(9)];
            let regions: Vec<Region> = (0..random(7))
                .map(|_| {
                    let to = size.map(|side| random(side + 1));
                    let shape = [0, 1].map(|axis| random(size[axis] - to[axis] + 1));
                    region(to, shape)
                })
                .collect();
            let mut expected = vec![None; size[0] * size[1]];
            for (index, region) in regions.iter().enumerate() {
                for row in 0..region.shape[0] {
                    for column in 0..region.shape[1] {
                        let place = (region.to[0] + row) * size[1] + region.to[1] + column;
                        expected[place] = Some(index);
                    }
                }
            }
            let found = painted(&strips(&regions, size).unwrap(), size);
            assert_eq!(found, expected, "{regions:?} on {size:?}");
        }
    }
}
