//! Parts of arrays, and what lies around them: slice, pad.

use std::ops::Range;
use std::sync::Arc;

use half::{bf16, f16};
use smallvec::{SmallVec, smallvec};

use self::problem::Regions;
use super::{
    Allocate, Arg, BatchKernel, DirectKernel, Entry, Frames, FromArg, Kernel, Output, OutputBuffer,
    Outputs, Placement, Result, Samples, Traits, UniformBatch, Work, args, one,
};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::generic::cast::{Convert, Number, cast};
use crate::kernels::numeric::precision::part_of;
use crate::value::Problem;
use crate::value::{
    Cause, DType, Desc, Element, Layout, Sample, Shape, Stores, copy_strided, extent, with_element,
    zeroed,
};

pub const TABLE: &[Entry] = &[
    Entry::direct::<Slice>("slice"),
    Entry::new::<Pad>("pad"),
    Entry { name: "largest", args: &[], cpu: || Work::Batch(Arc::new(Largest)) },
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// What is wrong with a call of this family.
        pub enum Regions {
            NoLayout,
            NoSuchAxis { letter: String, layout: String },
            RepeatedAxis { axis: usize },
            Outside { start: i64, end: i64, axis: usize, shape: Vec<usize> },
            /// The same where `out_of_bounds_policy` could allow it.
            OutsideOfPolicy { start: i64, end: i64, axis: usize, shape: Vec<usize> },
            Types { anchor: &'static str, shape: &'static str },
            Positional { axes: usize, given: usize },
            NamedAndPositional,
            NoWindow,
            FarWindow { start: f64, end: f64 },
            EndsBeforeStart { start: i64, end: i64 },
            /// Another problem, of positional anchor and shape.
            PositionalWindow { problem: crate::value::Problem },
            PaddedScalar,
            /// A border that repeats the sample, which has no elements.
            NothingToRepeat,
        }
    }
}

type Ints = SmallVec<[i64; 6]>;
type Floats = SmallVec<[f64; 6]>;

/// What lies outside of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Border {
    /// The fill value.
    Constant,
    /// The nearest element.
    Edge,
    /// The mirrored array, its edge included: `2 1 0 | 0 1 2`.
    Reflect,
    /// The array mirrored at its edge: `2 1 | 0 1 2`.
    Reflect101,
    /// The array again.
    Wrap,
}

/// A window on an array: where it begins, which may be outside, and its extent along each axis.
pub struct Region {
    pub start: SmallVec<[i64; 6]>,
    pub shape: Shape,
}

impl Region {
    /// Whether the whole window lies in an array of this shape.
    pub fn is_inside(&self, of: &[usize]) -> bool {
        (self.start.iter().zip(&self.shape).zip(of))
            .all(|((&start, &d), &n)| start >= 0 && start as u64 + d as u64 <= n as u64)
    }
}

/// What [`Border::Constant`] puts around an array: one value, or one for each channel.
pub struct Fill {
    /// The values' bytes, one after the other.
    values: SmallVec<[u8; 16]>,
    /// The axis that counts the channels, when there are several values.
    channels: Option<usize>,
}

impl Fill {
    pub fn new(values: &[f32], dtype: DType, channels: Option<usize>) -> Fill {
        let values = values.iter().flat_map(|&value| fill_bytes(value, dtype)).collect();
        Fill { values, channels }
    }

    /// One value, rounded to the nearest that there is.
    pub fn nearest(value: f32, dtype: DType) -> Fill {
        let values = with_element!(dtype, |T| {
            let value: T = value.convert();
            SmallVec::from_slice(bytes_of(&value))
        });
        Fill { values, channels: None }
    }
}

fn bytes_of<T: Element>(value: &T) -> &[u8] {
    // SAFETY: elements are plain numbers without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Copies the window of `src` to `dst`, which has exactly its size, in row-major order.
pub fn cut<'a>(
    src: &Sample,
    region: &Region,
    border: Border,
    fill: &Fill,
    dst: &'a mut [u8],
    stores: &Stores<'a>,
) -> Result<()> {
    let size = src.desc.dtype.size();
    assert_eq!(Some(dst.len() / size), extent(&region.shape));
    assert_eq!(region.start.len(), src.desc.ndim());
    if dst.is_empty() {
        return Ok(());
    }
    if region.is_inside(&src.desc.shape) {
        let strides = src.strides();
        let offset: isize = region.start.iter().zip(&strides).map(|(&i, &s)| i as isize * s).sum();
        // SAFETY: the window lies inside of the sample, whose elements can all be read.
        unsafe {
            let start = src.as_ptr().offset(offset);
            copy_strided(start, &strides, &region.shape, size, dst, stores);
        }
        return Ok(());
    }
    if border != Border::Constant && src.desc.shape.contains(&0) {
        return Err(unfit(0, Regions::NothingToRepeat));
    }
    let src = src.compact()?;
    Cutter::new(&src.desc, region, border, fill).walk(0, src.elements_as_bytes(), dst, 0, stores);
    Ok(())
}

/// One axis of a window that goes beyond the array.
struct Axis {
    start: i64,
    extent: i64,
    /// Bytes from one place to the next, in the array and in the window.
    step: usize,
    out_step: usize,
    /// The places of the window that lie in the array.
    inside: Range<usize>,
}

struct Cutter<'a> {
    /// The outer axes; those behind them are taken as a whole.
    axes: SmallVec<[Axis; 6]>,
    border: Border,
    fill: &'a Fill,
    /// Bytes of an element.
    size: usize,
    /// Bytes of a channel in the window.
    channel: usize,
}

impl<'a> Cutter<'a> {
    fn new(desc: &Desc, region: &Region, border: Border, fill: &'a Fill) -> Cutter<'a> {
        let size = desc.dtype.size();
        let mut axes = SmallVec::new();
        let (mut step, mut out_step) = (size, size);
        let mut channel = size;
        for axis in (0..desc.ndim()).rev() {
            let (n, d, start) = (desc.shape[axis], region.shape[axis], region.start[axis]);
            if fill.channels == Some(axis) {
                channel = out_step;
            }
            if start != 0 || d != n || !axes.is_empty() {
                let clip = |place: i64| place.clamp(0, d as i64) as usize;
                let first = clip(start.saturating_neg());
                let inside = first..clip((n as i64).saturating_sub(start)).max(first);
                axes.push(Axis { start, extent: n as i64, step, out_step, inside });
            }
            step *= n;
            out_step *= d;
        }
        axes.reverse();
        Cutter { axes, border, fill, size, channel }
    }

    /// Writes what is left of the window from `level` on. `channel` is the one that it lies in,
    /// where an axis before `level` counts them.
    fn walk<'b>(
        &self,
        level: usize,
        src: &[u8],
        dst: &'b mut [u8],
        channel: usize,
        stores: &Stores<'b>,
    ) {
        let Some(axis) = self.axes.get(level) else {
            let count = dst.len();
            return stores.copy(dst, &src[..count]);
        };
        let Axis { start, step, out_step, ref inside, .. } = *axis;
        if level + 1 == self.axes.len() {
            // Inner axes are whole: places lie side by side here and there.
            let item = step;
            let (before, rest) = dst.split_at_mut(inside.start * item);
            let (middle, after) = rest.split_at_mut(inside.len() * item);
            if !middle.is_empty() {
                let from = (start + inside.start as i64) as usize * item;
                let count = middle.len();
                stores.copy(middle, &src[from..from + count]);
            }
            self.outside(level, axis, src, before, 0, channel);
            self.outside(level, axis, src, after, inside.end, channel);
            return;
        }
        for (place, dst) in dst.chunks_exact_mut(out_step).enumerate() {
            let channel = if self.fill.channels == Some(level) { place } else { channel };
            match self.find(axis, place) {
                Some(index) => {
                    self.walk(level + 1, &src[index * step..][..step], dst, channel, stores);
                }
                None => self.fill(level + 1, dst, channel),
            }
        }
    }

    /// Writes places of the innermost axis that lie outside of it, from place `first` on.
    fn outside(
        &self,
        level: usize,
        axis: &Axis,
        src: &[u8],
        dst: &mut [u8],
        first: usize,
        channel: usize,
    ) {
        if dst.is_empty() {
            return;
        }
        match self.border {
            Border::Constant if self.fill.channels == Some(level) => {
                for (place, dst) in dst.chunks_exact_mut(axis.out_step).enumerate() {
                    self.fill(level + 1, dst, first + place);
                }
            }
            Border::Constant => self.fill(level + 1, dst, channel),
            Border::Edge => {
                let edge = if first == 0 && axis.start < 0 { 0 } else { axis.extent as usize - 1 };
                repeat(&src[edge * axis.step..][..axis.step], dst);
            }
            _ => match axis.step {
                1 => self.pick::<1>(axis, src, dst, first),
                3 => self.pick::<3>(axis, src, dst, first),
                4 => self.pick::<4>(axis, src, dst, first),
                12 => self.pick::<12>(axis, src, dst, first),
                _ => {
                    for (place, dst) in dst.chunks_exact_mut(axis.step).enumerate() {
                        let index = self.find(axis, first + place).unwrap_or(0);
                        dst.copy_from_slice(&src[index * axis.step..][..axis.step]);
                    }
                }
            },
        }
    }

    /// Copies items of `N` bytes from where the border finds them.
    fn pick<const N: usize>(&self, axis: &Axis, src: &[u8], dst: &mut [u8], first: usize) {
        let src = src.as_chunks::<N>().0;
        for (place, dst) in dst.as_chunks_mut::<N>().0.iter_mut().enumerate() {
            *dst = src[self.find(axis, first + place).unwrap_or(0)];
        }
    }

    /// Where in the array a place of the window comes from; `None` is for the fill.
    fn find(&self, axis: &Axis, place: usize) -> Option<usize> {
        let n = axis.extent;
        let at = axis.start + place as i64;
        if (0..n).contains(&at) {
            return Some(at as usize);
        }
        let found = match self.border {
            Border::Constant => return None,
            Border::Edge => at.clamp(0, n - 1),
            Border::Wrap => at.rem_euclid(n),
            Border::Reflect => {
                let turn = at.rem_euclid(2 * n);
                if turn < n { turn } else { 2 * n - 1 - turn }
            }
            Border::Reflect101 if n == 1 => 0,
            Border::Reflect101 => {
                let turn = at.rem_euclid(2 * n - 2);
                if turn < n { turn } else { 2 * n - 2 - turn }
            }
        };
        Some(found as usize)
    }

    /// Fills memory that begins at a border of `level`.
    fn fill(&self, level: usize, dst: &mut [u8], channel: usize) {
        let values = &self.fill.values[..];
        match self.fill.channels {
            None => repeat(&values[..self.size], dst),
            Some(axis) if axis < level => repeat(&values[channel * self.size..][..self.size], dst),
            Some(_) if self.channel == self.size => repeat(values, dst),
            Some(_) => {
                let each = values.chunks_exact(self.size).cycle();
                for (dst, value) in dst.chunks_exact_mut(self.channel).zip(each) {
                    repeat(value, dst);
                }
            }
        }
    }
}

/// Fills `dst` with a pattern, again and again.
pub fn repeat(pattern: &[u8], dst: &mut [u8]) {
    if pattern.iter().all(|&byte| byte == pattern[0]) {
        return dst.fill(pattern[0]);
    }
    let mut done = pattern.len().min(dst.len());
    dst[..done].copy_from_slice(&pattern[..done]);
    while done < dst.len() {
        let more = done.min(dst.len() - done);
        dst.copy_within(..more, done);
        done += more;
    }
}

/// A fill value as an element. As in DALI it is cut off and wraps around, the way that
/// the processor converts it.
pub fn fill_bytes(value: f32, dtype: DType) -> SmallVec<[u8; 8]> {
    let int32 = || {
        if (-2_147_483_648.0..2_147_483_648.0).contains(&value) { value as i32 } else { i32::MIN }
    };
    let int64 = |value: f32| {
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
        if fits { value as i64 } else { i64::MIN }
    };
    match dtype.storage() {
        DType::Bool => SmallVec::from_slice(&[u8::from(value != 0.0)]),
        DType::I8 | DType::U8 => SmallVec::from_slice(&(int32() as u8).to_ne_bytes()),
        DType::I16 | DType::U16 => SmallVec::from_slice(&(int32() as u16).to_ne_bytes()),
        DType::U32 => SmallVec::from_slice(&(int64(value) as u32).to_ne_bytes()),
        DType::I64 => SmallVec::from_slice(&int64(value).to_ne_bytes()),
        DType::U64 if value >= 9_223_372_036_854_775_808.0 => {
            let low = int64(value - 9_223_372_036_854_775_808.0) as u64;
            SmallVec::from_slice(&(low ^ (1 << 63)).to_ne_bytes())
        }
        DType::U64 => SmallVec::from_slice(&int64(value).to_ne_bytes()),
        DType::F16 => SmallVec::from_slice(&f16::from_f32(value).to_ne_bytes()),
        DType::BF16 => SmallVec::from_slice(&bf16::from_f32(value).to_ne_bytes()),
        DType::F32 => SmallVec::from_slice(&value.to_ne_bytes()),
        DType::F64 => SmallVec::from_slice(&f64::from(value).to_ne_bytes()),
        _ => SmallVec::from_slice(&int32().to_ne_bytes()),
    }
}

/// The axes that a call names by number or by letter; all of them when it names none.
pub fn axes_of(
    desc: &Desc,
    layout: Layout,
    numbers: Option<&[i64]>,
    letters: Option<Layout>,
) -> Result<SmallVec<[usize; 6]>> {
    let ndim = desc.ndim();
    let mut found: SmallVec<[usize; 6]> = SmallVec::new();
    match (numbers, letters) {
        (Some(_), Some(_)) => {
            return Err(argument("axes", Argument::Together { other: "axis_names" }));
        }
        (Some(numbers), None) => {
            for &axis in numbers {
                let from_start = if axis < 0 { axis + ndim as i64 } else { axis };
                if !(0..ndim as i64).contains(&from_start) {
                    return Err(argument("axes", Argument::AxisOutside { axis, ndim }));
                }
                found.push(from_start as usize);
            }
        }
        (None, Some(letters)) => {
            for &letter in letters.letters() {
                let Some(axis) = layout.find(letter) else {
                    if layout.is_empty() {
                        return Err(argument("axis_names", Regions::NoLayout));
                    }
                    let letter = (letter as char).to_string();
                    let layout = layout.as_str().to_string();
                    return Err(argument("axis_names", Regions::NoSuchAxis { letter, layout }));
                };
                found.push(axis);
            }
        }
        (None, None) => {}
    }
    let name = if numbers.is_some() { "axes" } else { "axis_names" };
    if let Some(again) = (1..found.len()).find(|&i| found[..i].contains(&found[i])) {
        return Err(argument(name, Regions::RepeatedAxis { axis: found[again] }));
    }
    if found.is_empty() {
        found.extend(0..ndim);
    }
    Ok(found)
}

/// Element `index` of a list that has one value for each of `count` axes, or one for all.
fn value_of<T: Copy>(values: &[T], index: usize, count: usize, name: &'static str) -> Result<T> {
    match values {
        [one] => Ok(*one),
        all if all.len() == count => Ok(all[index]),
        all => Err(argument(name, Argument::Count { wanted: count, given: all.len() })),
    }
}

/// Extents are up to the sizes of 32 bits, as in DALI.
pub const LONGEST: f64 = i32::MAX as f64;

struct Slice;

args! {
    /// `to` is the element type of the result, where it is not that of the data.
    pub struct SliceArgs {
        axes: Option<Ints>,
        axis_names: Option<Layout>,
        to: Option<DType>,
        end: Option<Ints>,
        fill_values: Floats,
        normalized_anchor: bool,
        normalized_shape: bool,
        out_of_bounds_policy: Policy,
        rel_end: Option<Floats>,
        rel_shape: Option<Floats>,
        rel_start: Option<Floats>,
        shape: Option<Ints>,
        start: Option<Ints>,
    }
}

/// What to do with a window that goes beyond its array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Refuse,
    /// To refuse it is all that can be done.
    Inside,
    Trim,
    Border(Border),
}

impl Policy {
    /// Where the window begins and ends on an axis, once the policy has been applied.
    pub fn place(self, desc: &Desc, axis: usize, (start, end): (i64, i64)) -> Result<(i64, i64)> {
        let n = desc.shape[axis] as i64;
        match self {
            Policy::Trim => Ok((start.clamp(0, n), end.clamp(0, n))),
            Policy::Refuse | Policy::Inside if start < 0 || end > n => {
                let shape = desc.shape.to_vec();
                Err(match self {
                    Policy::Inside => unfit(0, Regions::Outside { start, end, axis, shape }),
                    _ => unfit(0, Regions::OutsideOfPolicy { start, end, axis, shape }),
                })
            }
            Policy::Refuse | Policy::Inside | Policy::Border(_) => Ok((start, end)),
        }
    }

    /// What to take for what is outside, where windows may go there.
    pub fn border(self) -> Option<Border> {
        if let Policy::Border(border) = self { Some(border) } else { None }
    }
}

impl FromArg for Policy {
    fn from_constant(arg: &Arg) -> std::result::Result<Policy, Problem> {
        const NAMES: &[(&str, Policy)] = &[
            ("error", Policy::Refuse),
            ("trim_to_shape", Policy::Trim),
            ("pad", Policy::Border(Border::Constant)),
            ("constant", Policy::Border(Border::Constant)),
            ("edge", Policy::Border(Border::Edge)),
            ("clamp", Policy::Border(Border::Edge)),
            ("reflect", Policy::Border(Border::Reflect)),
            ("reflect_1001", Policy::Border(Border::Reflect)),
            ("reflect_101", Policy::Border(Border::Reflect101)),
            ("wrap", Policy::Border(Border::Wrap)),
        ];
        let given = if let Arg::Text(name) = arg { &**name } else { "" };
        match NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(given)) {
            Some(&(_, policy)) => Ok(policy),
            None => {
                let choices = "error, trim_to_shape, pad, constant, edge, clamp, reflect, \
                               reflect_1001, reflect_101, wrap";
                Err(Argument::OneOf { choices, given: arg.shown() }.into())
            }
        }
    }

    fn from_sample(_: &Sample) -> std::result::Result<Policy, Problem> {
        Err(Argument::SameForAll.into())
    }
}

/// The layout that images without one are taken to have.
fn implied_layout(desc: &Desc) -> Layout {
    if !desc.layout.is_empty() {
        return desc.layout;
    }
    let letters = match desc.ndim() {
        2 => "HW",
        3 => "HWC",
        4 => "DHWC",
        5 => "FDHWC",
        _ => "",
    };
    Layout::new(letters).unwrap_or_default()
}

impl DirectKernel for Slice {
    type Args = SliceArgs;
    const TRAITS: Traits = Traits { stacks: true, ..Traits::DEFAULT };

    fn run(args: &SliceArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let (cut, desc) = args.cut(inputs)?;
        let mut made = allocate(0, desc)?;
        cut.run(&inputs[0], &mut made.output())?;
        Ok(smallvec![made.into_sample()?])
    }

    fn run_stacked(args: &SliceArgs, batch: &UniformBatch<'_>) -> Option<Sample> {
        let inputs = batch.stacked()?;
        // Other inputs say where the window is.
        batch.placements[1..].iter().all(|&place| place == Placement::Shared).then_some(())?;
        let (mut cut, desc) = args.cut(batch.data()).ok()?;
        cut.stack(batch.count);
        let (each, mut stack) = batch.allocate_stack(desc)?;
        cut.run(&inputs[0], &mut stack.output()).ok()?;
        stack.into_sample().ok()?.part(each, 0).ok()
    }

    /// A window that may go outside can be larger than the input.
    fn result_bytes(args: &SliceArgs, inputs: &[Sample]) -> usize {
        let desc = &inputs[0].desc;
        let window =
            args.out_of_bounds_policy.border().and_then(|_| args.region(desc, inputs).ok());
        window.map_or(0, |(region, _)| Desc::new(desc.dtype, &region.shape).bytes())
    }
}

impl SliceArgs {
    /// The same for an operator that has no `out_of_bounds_policy`.
    pub fn inside(self) -> SliceArgs {
        SliceArgs { out_of_bounds_policy: Policy::Inside, ..self }
    }

    /// What to cut out, and what it becomes.
    fn cut(&self, inputs: &[Sample]) -> Result<(Cut, Desc)> {
        let desc = &inputs[0].desc;
        let (region, border) = self.region(desc, inputs)?;
        Cut::new(desc, region, border, &self.fill_values, self.to)
    }

    /// The window, and what to take for what is outside where it may go there.
    /// `desc` is the array's; of the inputs, only the anchor and the shape are looked at.
    pub fn region(&self, desc: &Desc, inputs: &[Sample]) -> Result<(Region, Option<Border>)> {
        let policy = self.out_of_bounds_policy;
        let letters = match (&self.axes, self.axis_names) {
            (None, None) => Layout::new("WH"),
            (_, letters) => letters,
        };
        let axes = axes_of(desc, implied_layout(desc), self.axes.as_deref(), letters)?;
        let bounds = self.bounds(inputs, axes.len())?;
        let mut region = Region { start: smallvec![0; desc.ndim()], shape: desc.shape.clone() };
        for (index, &axis) in axes.iter().enumerate() {
            let n = desc.shape[axis];
            let (start, end) = bounds.of(index, n)?;
            let (start, end) = policy.place(desc, axis, (start, end))?;
            let length = (end - start) as usize;
            if length as f64 > LONGEST {
                return Err(too_large(bounds.extent_name()));
            }
            region.start[axis] = start;
            region.shape[axis] = length;
        }
        if extent(&region.shape).is_none() {
            return Err(too_large(bounds.extent_name()));
        }
        Ok((region, policy.border()))
    }

    /// What says where the window begins and ends.
    fn bounds<'a>(&'a self, inputs: &'a [Sample], count: usize) -> Result<Bounds<'a>> {
        if self.start.is_some() && self.rel_start.is_some() {
            return Err(argument("start", Argument::Together { other: "rel_start" }));
        }
        let ends = [
            ("end", self.end.is_some()),
            ("rel_end", self.rel_end.is_some()),
            ("shape", self.shape.is_some()),
            ("rel_shape", self.rel_shape.is_some()),
        ];
        let mut given = ends.into_iter().filter(|&(_, given)| given).map(|(name, _)| name);
        let end = given.next();
        if let (Some(end), Some(other)) = (end, given.next()) {
            return Err(argument(end, Argument::Together { other }));
        }
        let named = self.start.is_some() || self.rel_start.is_some() || end.is_some();
        match inputs {
            [_] if named => Ok(Bounds::Named(self, count)),
            [_, anchor, shape] if !named => {
                let relative = is_float(anchor.desc.dtype);
                if relative != is_float(shape.desc.dtype) {
                    let (anchor, shape) = (anchor.desc.dtype.name(), shape.desc.dtype.name());
                    return Err(unfit(2, Regions::Types { anchor, shape }));
                }
                let read = |index: usize| -> Result<Vec<f64>> {
                    let sample = inputs[index].compact()?;
                    let mut values = zeroed::<f64>(sample.desc.elements())?;
                    f64::convert_row(&sample, 0, &mut values);
                    if values.len() != count {
                        let problem = Regions::Positional { axes: count, given: values.len() };
                        return Err(unfit(index, problem));
                    }
                    Ok(values)
                };
                Ok(Bounds::Positional {
                    anchor: read(1)?,
                    shape: read(2)?,
                    relative: (
                        relative && self.normalized_anchor,
                        relative && self.normalized_shape,
                    ),
                })
            }
            [_, ..] if named => Err(argument(end.unwrap_or("start"), Regions::NamedAndPositional)),
            _ => Err(unfit(0, Regions::NoWindow)),
        }
    }
}

/// What `fill_values` say, a number or one for each channel, where `border` takes them.
pub fn fill_of(
    values: &[f64],
    desc: &Desc,
    region: &Region,
    border: Option<Border>,
    dtype: DType,
) -> Result<Fill> {
    let refuse = |problem: Argument| Err(argument("fill_values", problem));
    let values: SmallVec<[f32; 4]> = values.iter().map(|&value| value as f32).collect();
    if values.len() <= 1 || border != Some(Border::Constant) {
        return Ok(Fill::new(&[values.first().copied().unwrap_or(0.0)], dtype, None));
    }
    match implied_layout(desc).find(b'C') {
        None => {
            let layout = desc.layout.as_str().to_string();
            refuse(Argument::NoChannels { given: values.len(), layout })
        }
        Some(axis) if region.shape[axis] != values.len() => {
            let channels = region.shape[axis];
            refuse(Argument::ChannelCount { channels, given: values.len() })
        }
        Some(axis) => Ok(Fill::new(&values, dtype, Some(axis))),
    }
}

/// A window of an array, to be copied.
pub struct Cut {
    region: Region,
    border: Border,
    fill: Fill,
}

impl Cut {
    /// Also says what is made: `to` is its element type, where it is not that of the array.
    pub fn new(
        desc: &Desc,
        region: Region,
        border: Option<Border>,
        fill_values: &[f64],
        to: Option<DType>,
    ) -> Result<(Cut, Desc)> {
        let dtype = to.unwrap_or(desc.dtype);
        let fill = fill_of(fill_values, desc, &region, border, dtype)?;
        let made = Desc { dtype, shape: region.shape.clone(), layout: desc.layout };
        Ok((Cut { region, border: border.unwrap_or(Border::Constant), fill }, made))
    }

    /// Makes this the same window of each of `count` stacked arrays.
    pub fn stack(&mut self, count: usize) {
        self.region.start.insert(0, 0);
        self.region.shape.insert(0, count);
        self.fill.channels = self.fill.channels.map(|axis| axis + 1);
    }

    pub fn run(&self, sample: &Sample, out: &mut Output<'_>) -> Result<()> {
        cut_as(sample, &self.region, self.border, &self.fill, out)
    }
}

/// Copies the window of `sample` to `out`, which may have another element type.
pub fn cut_as(
    sample: &Sample,
    region: &Region,
    border: Border,
    fill: &Fill,
    out: &mut Output<'_>,
) -> Result<()> {
    let dtype = out.desc.dtype;
    if dtype == sample.desc.dtype {
        out.store(|dst, stores| cut(sample, region, border, fill, dst, stores))
    } else if region.is_inside(&sample.desc.shape) {
        let shape = region.shape.clone();
        let mut part = OutputBuffer::new(Desc { shape, ..sample.desc.clone() })?;
        cut(sample, region, border, fill, part.bytes(), &Stores::plain())?;
        convert(&part.into_sample()?, out)
    } else {
        let mut whole = OutputBuffer::new(Desc { dtype, ..sample.desc.clone() })?;
        convert(&sample.compact()?, &mut whole.output())?;
        let whole = whole.into_sample()?;
        out.store(|dst, stores| cut(&whole, region, border, fill, dst, stores))
    }
}

pub fn too_large(name: &'static str) -> Cause {
    argument(name, Argument::TooLarge)
}

enum Bounds<'a> {
    Positional {
        anchor: Vec<f64>,
        shape: Vec<f64>,
        relative: (bool, bool),
    },
    /// The arguments, and how many axes they are for.
    Named(&'a SliceArgs, usize),
}

impl Bounds<'_> {
    /// Where the window begins and ends on an axis of extent `n`, the `index`-th that was named.
    fn of(&self, index: usize, n: usize) -> Result<(i64, i64)> {
        let extent = n as f64;
        let (start, end) = match self {
            Bounds::Positional { anchor, shape, relative } => {
                let start = anchor[index] * if relative.0 { extent } else { 1.0 };
                (start, start + shape[index] * if relative.1 { extent } else { 1.0 })
            }
            Bounds::Named(args, count) => {
                let int = |values: &[i64], name| -> Result<f64> {
                    Ok(value_of(values, index, *count, name)? as f64)
                };
                // DALI multiplies in single precision here, in double for positions.
                let part = |values: &[f64], name| -> Result<f64> {
                    Ok(part_of(value_of(values, index, *count, name)?, extent))
                };
                let length = |given: f64, name| match given < 0.0 {
                    true => Err(argument(name, Argument::Negative { given })),
                    false => Ok(given),
                };
                let start = match (&args.start, &args.rel_start) {
                    (Some(start), _) => int(start, "start")?,
                    (_, Some(start)) => part(start, "rel_start")?,
                    _ => 0.0,
                };
                let end = match (&args.end, &args.rel_end, &args.shape, &args.rel_shape) {
                    (Some(end), ..) => int(end, "end")?,
                    (_, Some(end), ..) => part(end, "rel_end")?,
                    (_, _, Some(shape), _) => start + length(int(shape, "shape")?, "shape")?,
                    (.., Some(shape)) => start + length(part(shape, "rel_shape")?, "rel_shape")?,
                    _ => extent,
                };
                (start, end)
            }
        };
        let refused = |problem: Regions| match self {
            Bounds::Positional { .. } => {
                unfit(1, Regions::PositionalWindow { problem: problem.into() })
            }
            Bounds::Named(..) => argument(self.extent_name(), problem),
        };
        // Far beyond any extent, yet safe to compute with.
        const FAR: f64 = (1_i64 << 60) as f64;
        if !(start.abs() <= FAR && end.abs() <= FAR) {
            return Err(refused(Regions::FarWindow { start, end }));
        }
        let (first, last) = (start.round() as i64, end.round() as i64);
        if last < first {
            return Err(refused(Regions::EndsBeforeStart { start: first, end: last }));
        }
        Ok((first, last))
    }

    /// The argument that says how long the window is, for errors.
    fn extent_name(&self) -> &'static str {
        match self {
            Bounds::Positional { .. } => "shape_input",
            Bounds::Named(args, _) => {
                if args.end.is_some() {
                    "end"
                } else if args.rel_end.is_some() {
                    "rel_end"
                } else if args.shape.is_some() {
                    "shape"
                } else if args.rel_shape.is_some() {
                    "rel_shape"
                } else {
                    "start"
                }
            }
        }
    }
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// Converts a contiguous sample as `slice` does: fractions are cut off and what does not fit
/// becomes the nearest value that does, for 16-bit floats too.
fn convert(src: &Sample, out: &mut Output<'_>) -> Result<()> {
    let to = out.desc.dtype;
    let adapted = match (is_float(src.desc.dtype), to) {
        (true, DType::F16) => adapt(src, |x| x.clamp(-65504.0, 65504.0))?,
        (false, DType::F16) => {
            let mut wide = OutputBuffer::new(Desc { dtype: DType::F32, ..src.desc.clone() })?;
            f32::convert_row(src, 0, wide.elements());
            adapt(&wide.into_sample()?, |x| x.clamp(-65504.0, 65504.0))?
        }
        (true, to) if !is_float(to) => adapt(src, f64::trunc)?,
        _ => src.clone(),
    };
    cast(&adapted, out)
}

/// The floats of a sample, each changed.
fn adapt(src: &Sample, change: impl Fn(f64) -> f64) -> Result<Sample> {
    let mut out = OutputBuffer::new(Desc { dtype: DType::F64, ..src.desc.clone() })?;
    let values = out.elements::<f64>();
    f64::convert_row(src, 0, values);
    values.iter_mut().for_each(|x| *x = change(*x));
    out.into_sample()
}

pub struct Pad;

args! {
    /// `most` has the largest extents of the batch; samples of one shape need none.
    pub struct PadArgs {
        align: Option<Ints>,
        axes: Option<Ints>,
        axis_names: Option<Layout>,
        fill_value: f64,
        shape: Option<Ints>,
        most: Option<Ints>,
    }
}

impl Kernel for Pad {
    type Args = PadArgs;
    type Plan = PadArgs;
    const TRAITS: Traits =
        Traits { uniform_outputs: true, stacks: true, frames: Frames::Whole, ..Traits::DEFAULT };

    fn plan(args: PadArgs, inputs: &[&Desc]) -> Result<(PadArgs, Outputs)> {
        let desc = inputs[0];
        if desc.ndim() == 0 {
            return Err(unfit(0, Regions::PaddedScalar));
        }
        let axes = axes_of(desc, desc.layout, args.axes.as_deref(), args.axis_names)?;
        let mut shape = desc.shape.clone();
        // An empty list is none.
        let given = |values: &'_ Option<Ints>| values.as_ref().filter(|v| !v.is_empty()).cloned();
        let (wanted, aligned) = (given(&args.shape), given(&args.align));
        for (index, &axis) in axes.iter().enumerate() {
            let own = desc.shape[axis];
            let value = |values: &Option<Ints>, name| match values {
                Some(values) => value_of(values, index, axes.len(), name).map(Some),
                None => Ok(None),
            };
            let most =
                args.most.as_ref().and_then(|most| most.get(axis)).map_or(own, |&n| n as usize);
            let mut length = match value(&wanted, "shape")? {
                Some(length) if length > 0 => {
                    own.max(usize::try_from(length).unwrap_or(usize::MAX))
                }
                _ => most.max(own),
            };
            if let Some(align) = value(&aligned, "align")? {
                if align <= 0 {
                    let problem = Argument::NotPositive { given: align as f64 };
                    return Err(argument("align", problem));
                }
                length = length.checked_next_multiple_of(align as usize).unwrap_or(usize::MAX);
            }
            if length as f64 > LONGEST && length > own {
                return Err(too_large(if wanted.is_some() { "shape" } else { "align" }));
            }
            shape[axis] = length;
        }
        if extent(&shape).is_none() {
            return Err(too_large("shape"));
        }
        Ok((args, one(Desc { shape, ..desc.clone() })))
    }

    fn run(args: &PadArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let region = Region { start: smallvec![0; out.desc.ndim()], shape: out.desc.shape.clone() };
        let fill = Fill::new(&[args.fill_value as f32], out.desc.dtype, None);
        out.store(|dst, stores| cut(&inputs[0], &region, Border::Constant, &fill, dst, stores))
    }
}

/// The largest extent of each axis over a batch.
struct Largest;

impl BatchKernel for Largest {
    fn run(
        &self,
        _: &[Arg],
        inputs: &[&[Sample]],
        allocate: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let samples = inputs[0];
        let ndim = samples.first().map_or(0, |sample| sample.desc.ndim());
        let mut out = allocate(Desc::new(DType::I64, &[ndim]))?;
        for (axis, most) in out.elements::<i64>().iter_mut().enumerate() {
            *most = samples.iter().map(|s| s.desc.shape[axis] as i64).max().unwrap_or(0);
        }
        Ok(smallvec![out.into_sample()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[u8]) -> Sample {
        let mut space = OutputBuffer::new(Desc::new(DType::U8, &[values.len()])).unwrap();
        space.bytes().copy_from_slice(values);
        space.into_sample().unwrap()
    }

    #[test]
    fn borders_go_on_however_far_the_window_is() {
        for (border, expected) in [
            (Border::Constant, [9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 9, 9, 9]),
            (Border::Edge, [0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2]),
            (Border::Reflect, [1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]),
            (Border::Reflect101, [1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]),
            (Border::Wrap, [1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]),
        ] {
            let fill = Fill::new(&[9.0], DType::U8, None);
            for start in -5..8 {
                let count = (8 - start) as usize;
                let region = Region { start: smallvec![start], shape: smallvec![count] };
                let mut out = vec![0; count];
                cut(&row(&[0, 1, 2]), &region, border, &fill, &mut out, &Stores::plain()).unwrap();
                assert_eq!(out, expected[(start + 5) as usize..], "{border:?} from {start}");
            }
        }
    }

    #[test]
    fn channels_have_fills_of_their_own_wherever_their_axis_is() {
        let mut space = OutputBuffer::new(Desc::new(DType::U8, &[2, 1, 2])).unwrap();
        space.bytes().copy_from_slice(&[1, 2, 3, 4]);
        let src = space.into_sample().unwrap();
        let region = Region { start: smallvec![0, 0, 0], shape: smallvec![2, 2, 2] };
        let mut out = [0; 8];
        let fill = |axis| Fill::new(&[8.0, 9.0], DType::U8, Some(axis));
        cut(&src, &region, Border::Constant, &fill(0), &mut out, &Stores::plain()).unwrap();
        assert_eq!(out, [1, 2, 8, 8, 3, 4, 9, 9]);
        cut(&src, &region, Border::Constant, &fill(2), &mut out, &Stores::plain()).unwrap();
        assert_eq!(out, [1, 2, 8, 9, 3, 4, 8, 9]);
        let region = Region { start: smallvec![-1, 0, 0], shape: smallvec![2, 1, 2] };
        let mut out = [0; 4];
        cut(&src, &region, Border::Constant, &fill(0), &mut out, &Stores::plain()).unwrap();
        assert_eq!(out, [8, 8, 1, 2]);
    }

    #[test]
    fn fill_values_wrap_as_the_processor_converts_them() {
        assert_eq!(fill_bytes(300.7, DType::U8)[..], [44]);
        assert_eq!(fill_bytes(-1.0, DType::U64)[..], [255; 8]);
        assert_eq!(fill_bytes(f32::NAN, DType::U8)[..], [0]);
        assert_eq!(fill_bytes(3e9, DType::I32)[..], i32::MIN.to_ne_bytes());
        assert_eq!(fill_bytes(0.4, DType::Bool)[..], [1]);
    }
}
