//! Copying a window of an array, which may extend outside of it.

use std::ops::Range;

use smallvec::SmallVec;

use super::border::Border;
use super::fill::{Fill, fill_of, repeat};
use super::problem::Regions;
use crate::kernels::contract::problems::unfit;
use crate::kernels::generic::cast::{Number, cast};
use crate::kernels::{Output, OutputBuffer, Result};
use crate::value::{DType, Desc, Sample, Shape, Stores, copy_strided, extent};

/// A window of an array: its start, which may be outside, and its extent along each axis.
pub struct Region {
    pub start: SmallVec<[i64; 6]>,
    pub shape: Shape,
}

impl Region {
    /// Whether the window is entirely inside an array of this shape.
    pub fn is_inside(&self, of: &[usize]) -> bool {
        (self.start.iter().zip(&self.shape).zip(of))
            .all(|((&start, &d), &n)| start >= 0 && start as u64 + d as u64 <= n as u64)
    }
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
        // SAFETY: the window is inside the sample, all of whose elements can be read.
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

/// One axis of a window that extends outside of the array.
struct Axis {
    start: i64,
    extent: i64,
    /// Bytes from one position to the next, in the array and in the window.
    step: usize,
    out_step: usize,
    /// The positions of the window that are inside the array.
    inside: Range<usize>,
}

struct Cutter<'a> {
    /// The axes up to the last that is cropped or extended; inner axes are copied whole.
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

    /// Writes the window's axes from `level` on. `channel` is the current channel, if the channel axis
    /// comes before `level`.
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
            // Inner axes are whole: positions are contiguous in both.
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

    /// Writes positions of the innermost axis that are outside, from position `first` on.
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

    /// Copies items of `N` bytes from where the border maps them.
    fn pick<const N: usize>(&self, axis: &Axis, src: &[u8], dst: &mut [u8], first: usize) {
        let src = src.as_chunks::<N>().0;
        for (place, dst) in dst.as_chunks_mut::<N>().0.iter_mut().enumerate() {
            *dst = src[self.find(axis, first + place).unwrap_or(0)];
        }
    }

    /// The index in the array that a position of the window shows; `None` for the fill value.
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

    /// Fills `dst`, which starts at an item of `level`.
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

/// A window of an array, to be copied.
pub struct Cut {
    region: Region,
    border: Border,
    fill: Fill,
}

impl Cut {
    /// Also returns the description of the result: `to` is its element type, if it differs from the
    /// array's.
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
fn cut_as(
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

pub fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// Converts a contiguous sample the way `slice` does: truncated and saturated, 16-bit floats too.
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

/// Maps the floats of a sample.
fn adapt(src: &Sample, change: impl Fn(f64) -> f64) -> Result<Sample> {
    let mut out = OutputBuffer::new(Desc { dtype: DType::F64, ..src.desc.clone() })?;
    let values = out.elements::<f64>();
    f64::convert_row(src, 0, values);
    values.iter_mut().for_each(|x| *x = change(*x));
    out.into_sample()
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn row(values: &[u8]) -> Sample {
        let mut buffer = OutputBuffer::new(Desc::new(DType::U8, &[values.len()])).unwrap();
        buffer.bytes().copy_from_slice(values);
        buffer.into_sample().unwrap()
    }

    #[test]
    fn borders_extend_however_far_the_window_is() {
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
    fn each_channel_has_its_fill_value_in_any_layout() {
        let mut buffer = OutputBuffer::new(Desc::new(DType::U8, &[2, 1, 2])).unwrap();
        buffer.bytes().copy_from_slice(&[1, 2, 3, 4]);
        let src = buffer.into_sample().unwrap();
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
}
