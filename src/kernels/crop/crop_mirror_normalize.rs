//! The last step of most image pipelines in one pass: crop, mirror, normalise, change element type
//! and layout.

use std::cell::RefCell;
use std::ops::Range;

use half::f16;
use smallvec::{SmallVec, smallvec};

use crate::kernels::contract::problems::{Argument, argument};
use crate::kernels::crop::problem;
use crate::kernels::crop::{Floats, crop_args};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::regions::{Border, Policy, Region, fill_bytes, too_large};
use crate::kernels::{Entry, Kernel, Output, Outputs, Result, Traits, one};
use crate::value::{
    DType, Desc, Element, Layout, Sample, Shape, contiguous_strides, extent, with_element, zeroed,
};

pub const TABLE: &[Entry] = &[Entry::new::<CropMirrorNormalize>("crop_mirror_normalize")];

pub struct CropMirrorNormalize;

crop_args! {
    /// `to` is the layout of the result.
    pub struct NormalizeArgs {
        dtype: DType,
        mean: Floats,
        mirror: bool,
        pad_output: bool,
        scale: f64,
        shift: f64,
        std: Floats,
        to: Layout,
    }
}

impl NormalizeArgs {
    fn region(&self, desc: &Desc) -> Result<Region> {
        if let Policy::Border(border) = self.out_of_bounds_policy
            && border != Border::Constant
        {
            let choices = "error, constant, pad, trim_to_shape";
            let problem = Argument::OneOf { choices, given: format!("{border:?}") };
            return Err(argument("out_of_bounds_policy", problem));
        }
        self.window().region(desc)
    }

    /// Channels of the result, where the input has `channels`.
    fn padded(&self, channels: usize) -> usize {
        match self.pad_output {
            true if channels > 0 => channels.checked_next_power_of_two().unwrap_or(channels),
            _ => channels,
        }
    }

    /// What is done to each channel.
    fn steps(&self, channels: usize) -> Result<SmallVec<[Step; 4]>> {
        let of = |values: &Floats, name, channel: usize| match values[..] {
            [one] => Ok(one),
            _ if values.len() == channels => Ok(values[channel]),
            _ => {
                let given = values.len();
                Err(argument(name, Argument::ChannelCount { channels, given }))
            }
        };
        (0..channels)
            .map(|channel| {
                let (mean, std) =
                    (of(&self.mean, "mean", channel)?, of(&self.std, "std", channel)?);
                Ok(Step {
                    mean: mean as f32,
                    scale: self.scale as f32 / std as f32,
                    shift: self.shift as f32,
                })
            })
            .collect()
    }
}

impl Kernel for CropMirrorNormalize {
    type Args = NormalizeArgs;
    type Plan = Plan;
    const TRAITS: Traits = Traits { uniform_outputs: true, ..Traits::DEFAULT };

    fn plan(args: NormalizeArgs, inputs: &[&Desc]) -> Result<(Plan, Outputs)> {
        let desc = inputs[0];
        let region = args.region(desc)?;
        let mut shape = Shape::new();
        for &letter in args.to.letters() {
            let Some(axis) = desc.layout.find(letter) else {
                let [layout, given] = [desc.layout, args.to].map(|l| l.as_str().to_string());
                let problem = problem::Crop::OutputLayout { layout, given };
                return Err(argument("output_layout", problem));
            };
            let n = region.shape[axis];
            shape.push(if letter == b'C' { args.padded(n) } else { n });
        }
        if extent(&shape).is_none() {
            return Err(too_large("crop"));
        }
        let made = Desc { dtype: args.dtype, shape, layout: args.to };
        let walk = Walk::new(desc, &region, &made, args.mirror);
        let (steps, fill) = (args.steps(walk.channels.count)?, args.fill(&walk)?);
        Ok((Plan { walk, steps, fill }, one(made)))
    }

    fn run(plan: &Plan, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let Plan { walk, steps, fill } = plan;
        with_element!(inputs[0].desc.dtype, |T| {
            let rows = Rows { src: inputs[0].elements::<T>(), steps, walk };
            write_as(&rows, walk, fill, &mut outputs[0])?;
        });
        Ok(())
    }
}

/// How to walk through the image, what is done to each channel, and what is outside.
pub struct Plan {
    walk: Walk,
    steps: SmallVec<[Step; 4]>,
    fill: SmallVec<[f32; 4]>,
}

impl NormalizeArgs {
    /// What is outside of the image, and what the added channels have: one value for each.
    fn fill(&self, walk: &Walk) -> Result<SmallVec<[f32; 4]>> {
        let channels = walk.channels.padded;
        match &self.fill_values[..] {
            _ if self.out_of_bounds_policy.border().is_none() => Ok(smallvec![0.0; channels]),
            &[] => Ok(smallvec![0.0; channels]),
            &[one] => Ok(smallvec![one as f32; channels]),
            all if all.len() == channels => Ok(all.iter().map(|&value| value as f32).collect()),
            all => {
                let given = all.len();
                Err(argument("fill_values", Argument::ChannelCount { channels, given }))
            }
        }
    }
}

/// `(x - mean) * scale + shift`
#[derive(Clone, Copy)]
struct Step {
    mean: f32,
    scale: f32,
    shift: f32,
}

impl Step {
    #[inline(always)]
    fn apply(self, x: f32) -> f32 {
        (x - self.mean) * self.scale + self.shift
    }
}

/// An axis other than that of the channels, in elements.
#[derive(Clone, Copy)]
struct Axis {
    /// Where the window begins in the image.
    start: i64,
    extent: usize,
    step: usize,
    out_extent: usize,
    out_step: usize,
}

impl Axis {
    /// Where in the image a place of the window is, if it is.
    fn find(&self, place: usize) -> Option<usize> {
        let at = self.start + place as i64;
        (0..self.extent as i64).contains(&at).then_some(at as usize)
    }
}

struct Channels {
    count: usize,
    padded: usize,
    step: usize,
    out_step: usize,
}

/// Any image layout as rows of pixels. Axes that a layout has not are of extent one.
struct Walk {
    /// Frames, depth, height.
    outer: [Axis; 3],
    width: Axis,
    channels: Channels,
    mirror: bool,
    /// The places of a row that lie in the image.
    inside: Range<usize>,
}

impl Walk {
    fn new(desc: &Desc, region: &Region, out: &Desc, mirror: bool) -> Walk {
        let (steps, out_steps) =
            (contiguous_strides(&desc.shape, 1), contiguous_strides(&out.shape, 1));
        let axis = |letter| match (desc.layout.find(letter), out.layout.find(letter)) {
            (Some(a), Some(b)) => Axis {
                start: region.start[a],
                extent: desc.shape[a],
                step: steps[a] as usize,
                out_extent: out.shape[b],
                out_step: out_steps[b] as usize,
            },
            _ => Axis { start: 0, extent: 1, step: 0, out_extent: 1, out_step: 0 },
        };
        let (width, channels) = (axis(b'W'), axis(b'C'));
        let clip = |place: i64| place.clamp(0, width.out_extent as i64) as usize;
        let first = clip(-width.start);
        Walk {
            outer: [axis(b'F'), axis(b'D'), axis(b'H')],
            width,
            channels: Channels {
                count: channels.extent,
                padded: channels.out_extent,
                step: channels.step,
                out_step: channels.out_step,
            },
            mirror,
            inside: first..clip(width.extent as i64 - width.start).max(first),
        }
    }

    fn is_interleaved(&self) -> bool {
        self.width.step == self.channels.count && self.channels.step == 1
    }
}

/// Normalised pixels of an image.
trait Source {
    /// A row of one channel from the element `at` on, which is that of the first pixel.
    fn channel(&self, at: usize, channel: usize, out: &mut [f32]);
    /// All channels of a row, pixel by pixel, of `padded` elements each. What is beyond the channels
    /// of the image can be anything.
    fn pixels(&self, at: usize, padded: usize, out: &mut [f32]);
    /// The three channels of an interleaved row, each for itself; false when that is no faster.
    fn three(&self, at: usize, out: [&mut [f32]; 3]) -> bool;
}

struct Rows<'a, T> {
    src: &'a [T],
    steps: &'a [Step],
    walk: &'a Walk,
}

impl<T: Element + Convert<f32>> Source for Rows<'_, T> {
    fn channel(&self, at: usize, channel: usize, out: &mut [f32]) {
        let (step, mirror) = (self.walk.width.step, self.walk.mirror);
        let src = &self.src[at + channel * self.walk.channels.step..];
        let normalise = self.steps[channel];
        Isa::run_on_best(
            #[inline(always)]
            || {
                if step == 1 {
                    let pairs = out.iter_mut().zip(src);
                    if mirror {
                        let src = &src[..out.len()];
                        out.iter_mut().zip(src.iter().rev()).for_each(|(o, &x)| {
                            *o = normalise.apply(x.convert());
                        });
                    } else {
                        pairs.for_each(|(o, &x)| *o = normalise.apply(x.convert()));
                    }
                } else if mirror {
                    let pairs = out.iter_mut().rev().zip(src.iter().step_by(step.max(1)));
                    pairs.for_each(|(o, &x)| *o = normalise.apply(x.convert()));
                } else {
                    let pairs = out.iter_mut().zip(src.iter().step_by(step.max(1)));
                    pairs.for_each(|(o, &x)| *o = normalise.apply(x.convert()));
                }
            },
        );
    }

    fn pixels(&self, at: usize, padded: usize, out: &mut [f32]) {
        let (steps, mirror) = (self.steps, self.walk.mirror);
        let src = &self.src[at..at + out.len() / padded * steps.len()];
        Isa::run_on_best(
            #[inline(always)]
            || match (steps, padded) {
                (&[a], 1) => interleaved([a], src, mirror, out),
                (&[a, b], 2) => interleaved([a, b], src, mirror, out),
                (&[a, b, c], 3) => interleaved([a, b, c], src, mirror, out),
                (&[a, b, c, d], 4) => interleaved([a, b, c, d], src, mirror, out),
                (&[a, b, c], 4) => spread([a, b, c], src, mirror, out),
                _ => {
                    let work = |(src, out): (&[T], &mut [f32])| {
                        for ((o, &x), step) in out.iter_mut().zip(src).zip(steps) {
                            *o = step.apply(x.convert());
                        }
                    };
                    let (src, out) = (src.chunks_exact(steps.len()), out.chunks_exact_mut(padded));
                    if mirror {
                        src.rev().zip(out).for_each(work);
                    } else {
                        src.zip(out).for_each(work);
                    }
                }
            },
        );
    }

    fn three(&self, at: usize, out: [&mut [f32]; 3]) -> bool {
        let &[a, b, c] = self.steps else { return false };
        if T::DTYPE != DType::U8 {
            return false;
        }
        let src = &self.src[at..];
        // SAFETY: `T` is `u8`.
        let src = unsafe { std::slice::from_raw_parts(src.as_ptr().cast::<u8>(), src.len()) };
        deinterleave(Isa::best(), src, [a, b, c], self.walk.mirror, out);
        true
    }
}

/// Pixels that lie as they will be, or the other way round.
#[inline(always)]
fn interleaved<const C: usize, T: Copy + Convert<f32>>(
    steps: [Step; C],
    src: &[T],
    mirror: bool,
    out: &mut [f32],
) {
    if !mirror {
        return in_order(steps, src, out);
    }
    // Turned around in a small place first: then whole vectors can be worked on.
    const TILE: usize = 64;
    let Some(&[first, ..]) = src.as_chunks::<C>().0.first().map(|pixel| &pixel[..]) else { return };
    let mut tile = [[first; C]; TILE];
    for (src, out) in src.as_chunks::<C>().0.rchunks(TILE).zip(out.chunks_mut(TILE * C)) {
        let tile = &mut tile[..src.len()];
        for (to, from) in tile.iter_mut().zip(src.iter().rev()) {
            *to = *from;
        }
        in_order(steps, tile.as_flattened(), out);
    }
}

/// The steps of several pixels side by side are a pattern that fills whole vectors.
#[inline(always)]
fn in_order<const C: usize, T: Copy + Convert<f32>>(steps: [Step; C], src: &[T], out: &mut [f32]) {
    const WIDE: usize = 24;
    let steps: [Step; WIDE] = std::array::from_fn(|i| steps[i % C]);
    let (head, tail) = src.as_chunks::<WIDE>();
    let (out_head, out_tail) = out.as_chunks_mut::<WIDE>();
    for (out, src) in out_head.iter_mut().zip(head) {
        for i in 0..WIDE {
            out[i] = steps[i].apply(src[i].convert());
        }
    }
    for ((o, &x), step) in out_tail.iter_mut().zip(tail).zip(steps) {
        *o = step.apply(x.convert());
    }
}

/// Pixels of three channels to pixels of four, of which the last is zero.
#[inline(always)]
fn spread<T: Copy + Convert<f32>>(steps: [Step; 3], src: &[T], mirror: bool, out: &mut [f32]) {
    let none = Step { mean: 0.0, scale: 0.0, shift: 0.0 };
    let steps = [steps[0], steps[1], steps[2], none];
    let (src, out) = (src.as_chunks::<3>().0, out.as_chunks_mut::<4>().0);
    let work = |(&[a, b, c], out): (&[T; 3], &mut [f32; 4])| {
        let pixel = [a.convert(), b.convert(), c.convert(), 0.0];
        *out = std::array::from_fn(|i| steps[i].apply(pixel[i]));
    };
    if mirror {
        src.iter().rev().zip(out).for_each(work);
    } else {
        src.iter().zip(out).for_each(work);
    }
}

/// An element that normalised numbers are stored as.
trait Stored: Element {
    /// Writes what `make` makes.
    fn write(out: &mut [Self], scratch: &mut Vec<f32>, make: impl FnOnce(&mut [f32]));
    /// The same for three rows at once.
    fn write_three(
        out: [&mut [Self]; 3],
        scratch: &mut Vec<f32>,
        make: impl FnOnce([&mut [f32]; 3]) -> bool,
    ) -> bool;
}

impl Stored for f32 {
    fn write(out: &mut [f32], _: &mut Vec<f32>, make: impl FnOnce(&mut [f32])) {
        make(out);
    }

    fn write_three(
        out: [&mut [f32]; 3],
        _: &mut Vec<f32>,
        make: impl FnOnce([&mut [f32]; 3]) -> bool,
    ) -> bool {
        make(out)
    }
}

macro_rules! converted {
    ($($type:ty: $convert:expr;)*) => {
        $(impl Stored for $type {
            fn write(out: &mut [$type], scratch: &mut Vec<f32>, make: impl FnOnce(&mut [f32])) {
                let wide = room(scratch, out.len());
                make(wide);
                let convert: fn(&mut [$type], &[f32]) = $convert;
                convert(out, wide);
            }

            fn write_three(
                out: [&mut [$type]; 3],
                scratch: &mut Vec<f32>,
                make: impl FnOnce([&mut [f32]; 3]) -> bool,
            ) -> bool {
                let n = out[0].len();
                let wide = room(scratch, 3 * n);
                let (a, rest) = wide.split_at_mut(n);
                let (b, c) = rest.split_at_mut(n);
                if !make([a, b, c]) {
                    return false;
                }
                let convert: fn(&mut [$type], &[f32]) = $convert;
                for (out, wide) in out.into_iter().zip(scratch.chunks_exact(n.max(1))) {
                    convert(out, wide);
                }
                true
            }
        })*
    };
}

fn room(scratch: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if scratch.len() < n {
        scratch.resize(n, 0.0);
    }
    &mut scratch[..n]
}

fn plainly<U>(out: &mut [U], wide: &[f32])
where
    f32: Convert<U>,
{
    Isa::run_on_best(
        #[inline(always)]
        || {
            for (o, &x) in out.iter_mut().zip(wide) {
                *o = x.convert();
            }
        },
    );
}

/// With the processor's own conversion, where it has one.
fn halves(isa: Isa, out: &mut [f16], wide: &[f32]) {
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` is only made where AVX2 and F16C were detected.
        Isa::Avx2 => unsafe { avx2::halves(out, wide) },
        _ => 0,
    };
    for (o, &x) in out[done..].iter_mut().zip(&wide[done..]) {
        *o = f16::from_f32(x);
    }
}

converted! {
    crate::value::Bool: plainly;
    i8: plainly; i16: plainly; i32: plainly; i64: plainly;
    u8: plainly; u16: plainly; u32: plainly; u64: plainly;
    f16: |out, wide| halves(Isa::best(), out, wide);
    half::bf16: plainly;
    f64: plainly;
}

fn write_as(rows: &dyn Source, walk: &Walk, fill: &[f32], out: &mut Output<'_>) -> Result<()> {
    thread_local! {
        static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
    }
    let dtype = out.desc.dtype;
    // Rows are made as floats first, where they are stored as something else: three at a time, or
    // all channels of one.
    let row = walk.width.out_extent.saturating_mul(fill.len().max(3));
    let needed = if dtype == DType::F32 { 0 } else { row };
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < needed {
            *scratch = zeroed(needed)?;
        }
        with_element!(dtype, |U| {
            let fill: SmallVec<[U; 4]> = fill.iter().map(|&x| element(x, dtype)).collect();
            write::<U>(rows, walk, &fill, out.elements(), scratch);
        });
        // Rows are short; what an odd one needed is not kept for ever.
        if scratch.len() > 1 << 20 {
            *scratch = Vec::new();
        }
        Ok(())
    })
}

/// A fill value as an element, as `regions` has it.
fn element<U: Element>(value: f32, dtype: DType) -> U {
    let bytes = fill_bytes(value, dtype);
    assert_eq!(bytes.len(), size_of::<U>());
    // SAFETY: any bits are a valid `Element`, and there are as many as it has.
    unsafe { bytes.as_ptr().cast::<U>().read_unaligned() }
}

fn write<U: Stored>(
    rows: &dyn Source,
    walk: &Walk,
    fill: &[U],
    out: &mut [U],
    scratch: &mut Vec<f32>,
) {
    if out.is_empty() {
        return;
    }
    let [frames, depth, height] = walk.outer;
    for f in 0..frames.out_extent {
        for d in 0..depth.out_extent {
            for h in 0..height.out_extent {
                let to = f * frames.out_step + d * depth.out_step + h * height.out_step;
                let from = match (frames.find(f), depth.find(d), height.find(h)) {
                    (Some(f), Some(d), Some(h)) if !walk.inside.is_empty() => {
                        let w = (walk.width.start + walk.inside.start as i64) as usize;
                        let outer = f * frames.step + d * depth.step + h * height.step;
                        Some(outer + w * walk.width.step)
                    }
                    _ => None,
                };
                write_row(rows, walk, fill, &mut out[to..], from, scratch);
            }
        }
    }
}

/// Writes the row at the beginning of `out`. `from` is its first pixel in the image, if it has any.
fn write_row<U: Stored>(
    rows: &dyn Source,
    walk: &Walk,
    fill: &[U],
    out: &mut [U],
    from: Option<usize>,
    scratch: &mut Vec<f32>,
) {
    let Channels { count, padded, out_step, .. } = walk.channels;
    let width = walk.width.out_extent;
    let inside = match from {
        None => 0..0,
        Some(_) if walk.mirror => width - walk.inside.end..width - walk.inside.start,
        Some(_) => walk.inside.clone(),
    };
    if walk.width.out_step == 1 {
        for (channel, &fill) in fill.iter().enumerate() {
            let row = &mut out[channel * out_step..][..width];
            let inside = if channel < count { inside.clone() } else { 0..0 };
            row[..inside.start].fill(fill);
            row[inside.end..].fill(fill);
        }
        let Some(from) = from else { return };
        if count == 3
            && walk.is_interleaved()
            && let Some(three) = three_rows(out, out_step, &inside)
            && U::write_three(three, scratch, |out| rows.three(from, out))
        {
            return;
        }
        for channel in 0..count {
            let row = &mut out[channel * out_step..][inside.clone()];
            U::write(row, scratch, |out| rows.channel(from, channel, out));
        }
        return;
    }
    let step = walk.width.out_step;
    if out_step == 1 && step == padded {
        let row = &mut out[..width * padded];
        let (before, rest) = row.split_at_mut(inside.start * padded);
        let (middle, after) = rest.split_at_mut(inside.len() * padded);
        for pixel in before.chunks_exact_mut(padded).chain(after.chunks_exact_mut(padded)) {
            pixel.copy_from_slice(fill);
        }
        if let Some(from) = from
            && walk.is_interleaved()
        {
            U::write(middle, scratch, |out| rows.pixels(from, padded, out));
            if padded > count {
                for pixel in middle.chunks_exact_mut(padded) {
                    pixel[count..].copy_from_slice(&fill[count..]);
                }
            }
            return;
        }
    } else {
        for place in (0..inside.start).chain(inside.end..width) {
            for (channel, &fill) in fill.iter().enumerate() {
                out[place * step + channel * out_step] = fill;
            }
        }
    }
    let Some(from) = from else { return };
    // A channel at a time, in pieces that need no room of their own.
    let mut piece = [fill[0]; 256];
    for (channel, &fill) in fill.iter().enumerate() {
        if channel >= count {
            inside.clone().for_each(|place| out[place * step + channel * out_step] = fill);
            continue;
        }
        for start in (0..inside.len()).step_by(piece.len()) {
            let piece = &mut piece[..(inside.len() - start).min(256)];
            // A mirrored piece comes from the other end of the row.
            let before = if walk.mirror { inside.len() - start - piece.len() } else { start };
            let from = from + before * walk.width.step;
            U::write(piece, scratch, |out| rows.channel(from, channel, out));
            for (place, &x) in (inside.start + start..).zip(&*piece) {
                out[place * step + channel * out_step] = x;
            }
        }
    }
}

/// The same part of three rows; `None` when they overlap.
fn three_rows<'a, U>(
    out: &'a mut [U],
    step: usize,
    part: &Range<usize>,
) -> Option<[&'a mut [U]; 3]> {
    let (first, rest) = out.split_at_mut_checked(step)?;
    let (second, third) = rest.split_at_mut_checked(step)?;
    Some([
        first.get_mut(part.clone())?,
        second.get_mut(part.clone())?,
        third.get_mut(part.clone())?,
    ])
}

/// Normalises interleaved pixels into a row for each channel, the last pixel first if mirrored.
fn deinterleave(isa: Isa, src: &[u8], steps: [Step; 3], mirror: bool, out: [&mut [f32]; 3]) {
    let n = out[0].len();
    assert!(src.len() >= 3 * n && out[1].len() == n && out[2].len() == n);
    let done = match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa::Avx2` is only made where AVX2 was detected.
        Isa::Avx2 => unsafe {
            let out = [out[0].as_mut_ptr(), out[1].as_mut_ptr(), out[2].as_mut_ptr()];
            match (mirror, steps.iter().all(|step| step.shift == 0.0)) {
                (true, true) => avx2::deinterleave::<true, false>(src, n, steps, out),
                (true, false) => avx2::deinterleave::<true, true>(src, n, steps, out),
                (false, true) => avx2::deinterleave::<false, false>(src, n, steps, out),
                (false, false) => avx2::deinterleave::<false, true>(src, n, steps, out),
            }
        },
        _ => 0,
    };
    let rest = src[3 * done..3 * n].as_chunks::<3>().0;
    for (out, (step, channel)) in out.into_iter().zip(steps.into_iter().zip(0..)) {
        if mirror {
            for (o, x) in out[..n - done].iter_mut().rev().zip(rest) {
                *o = step.apply(f32::from(x[channel]));
            }
        } else {
            for (o, x) in out[done..].iter_mut().zip(rest) {
                *o = step.apply(f32::from(x[channel]));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use half::f16;

    use super::Step;

    /// Eight at a time; how many were done.
    #[target_feature(enable = "avx2,f16c")]
    pub fn halves(out: &mut [f16], wide: &[f32]) -> usize {
        let (out, wide) = (out.as_chunks_mut::<8>().0, wide.as_chunks::<8>().0);
        for (out, wide) in out.iter_mut().zip(wide) {
            // SAFETY: there are eight floats, and there is room for eight halves.
            unsafe {
                let halves =
                    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(wide.as_ptr()));
                _mm_storeu_si128(out.as_mut_ptr().cast(), halves);
            }
        }
        8 * out.len().min(wide.len())
    }

    /// Eight pixels at a time; how many pixels were done.
    ///
    /// # Safety
    /// Each of `out` has room for `n`, and `src` has three times as many.
    #[target_feature(enable = "avx2")]
    pub unsafe fn deinterleave<const MIRROR: bool, const SHIFTED: bool>(
        src: &[u8],
        n: usize,
        steps: [Step; 3],
        out: [*mut f32; 3],
    ) -> usize {
        // The bytes of a channel in twelve, each as 32 bits.
        let pick = |c: i8| {
            let z = -1;
            let (p0, p1, p2, p3) = (c, c + 3, c + 6, c + 9);
            _mm256_setr_epi8(
                p0, z, z, z, p1, z, z, z, p2, z, z, z, p3, z, z, z, //
                p0, z, z, z, p1, z, z, z, p2, z, z, z, p3, z, z, z,
            )
        };
        let backwards = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
        let all = |x| _mm256_set1_ps(x);
        let [a, b, c] = steps;
        let normalise = |pixels, pick, mean, scale, shift| {
            let bytes = _mm256_shuffle_epi8(pixels, pick);
            let numbers = _mm256_sub_ps(_mm256_cvtepi32_ps(bytes), mean);
            // No fused multiplication: results are the same on every machine.
            let made = _mm256_mul_ps(numbers, scale);
            let made = if SHIFTED { _mm256_add_ps(made, shift) } else { made };
            if MIRROR { _mm256_permutevar8x32_ps(made, backwards) } else { made }
        };
        let picks = (pick(0), pick(1), pick(2));
        let means = (all(a.mean), all(b.mean), all(c.mean));
        let scales = (all(a.scale), all(b.scale), all(c.scale));
        let shifts = (all(a.shift), all(b.shift), all(c.shift));
        // The second load reads four bytes beyond the eight pixels.
        let blocks = (n / 8).min(src.len().saturating_sub(4) / 24);
        for block in 0..blocks {
            let to = if MIRROR { n - 8 - 8 * block } else { 8 * block };
            // SAFETY: 28 bytes from here on are in `src`, and eight places of each row are left.
            unsafe {
                let from = src.as_ptr().add(24 * block);
                let pixels = _mm256_set_m128i(
                    _mm_loadu_si128(from.add(12).cast()),
                    _mm_loadu_si128(from.cast()),
                );
                let made = normalise(pixels, picks.0, means.0, scales.0, shifts.0);
                _mm256_storeu_ps(out[0].add(to), made);
                let made = normalise(pixels, picks.1, means.1, scales.1, shifts.1);
                _mm256_storeu_ps(out[1].add(to), made);
                let made = normalise(pixels, picks.2, means.2, scales.2, shifts.2);
                _mm256_storeu_ps(out[2].add(to), made);
            }
        }
        8 * blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_agrees_with_scalar() {
        let src: Vec<u8> = (0..3 * 43).map(|i| (i * 37 % 256) as u8).collect();
        let cases = (0..=43).flat_map(|n| [(n, false), (n, true)]);
        for ((n, mirror), shift) in cases.flat_map(|case| [(case, 0.25), (case, 0.0)]) {
            let step = |mean, scale| Step { mean, scale, shift };
            let steps = [step(123.675, 1.0 / 58.395), step(0.1, 3.0), step(-4.0, f32::INFINITY)];
            let run = |isa| {
                let mut rows = vec![vec![0.0; n]; 3];
                if let [a, b, c] = &mut rows[..] {
                    deinterleave(isa, &src, steps, mirror, [a, b, c]);
                }
                rows
            };
            let scalar = run(Isa::Scalar);
            if let Some(first) = scalar[0].first() {
                let pixel = if mirror { n - 1 } else { 0 };
                assert_eq!(*first, steps[0].apply(f32::from(src[3 * pixel])));
            }
            for isa in Isa::available() {
                assert_eq!(run(isa), scalar, "{isa:?}, {n} pixels, mirror {mirror}");
            }
        }
    }

    #[test]
    fn every_isa_rounds_to_the_same_halves() {
        let wide: Vec<f32> = (0..1003)
            .map(|i| (i as f32 - 500.0) * 0.123_456_7)
            .chain([f32::INFINITY, 7e4])
            .collect();
        let expected: Vec<f16> = wide.iter().map(|&x| f16::from_f32(x)).collect();
        for isa in Isa::available() {
            let mut made = vec![f16::ZERO; wide.len()];
            halves(isa, &mut made, &wide);
            assert_eq!(made, expected, "{isa:?}");
        }
    }

    #[test]
    fn pixels_turn_around_as_a_whole() {
        let none = Step { mean: 0.0, scale: 1.0, shift: 0.0 };
        for n in [0, 1, 2, 63, 64, 65, 200] {
            let src: Vec<f32> = (0..3 * n).map(|i| i as f32).collect();
            let expected: Vec<f32> =
                src.as_chunks::<3>().0.iter().rev().flatten().copied().collect();
            let mut made = vec![0.0; 3 * n];
            interleaved([none; 3], &src, true, &mut made);
            assert_eq!(made, expected);
            let mut padded = vec![1.0; 4 * n];
            spread([none; 3], &src, true, &mut padded);
            for (pixel, expected) in padded.chunks(4).zip(expected.chunks(3)) {
                assert_eq!(pixel[..3], *expected);
            }
        }
    }
}
