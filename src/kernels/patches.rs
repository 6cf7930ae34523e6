//! Parts of images that are overwritten or combined: erase, paste, grid_mask.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use self::problem::Patches;
use super::regions::{Border, Fill, LONGEST, Region, axes_of, cut, fill_bytes, repeat, too_large};
use super::{Entry, Family, Kernel, Output, Outputs, Result, Traits, args, one};
use crate::kernels::contract::problems::{Argument, argument, unfit};
use crate::kernels::numeric::isa::Isa;
use crate::kernels::numeric::precision::{is_long, part_of};
use crate::value::{Cause, Desc, Layout, Sample, extent, filled, with_room};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::Patches::KINDS] };

const TABLE: &[Entry] = &[
    Entry::new::<Erase>("erase"),
    Entry::new::<Paste>("paste"),
    Entry::new::<GridMask>("grid_mask"),
];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems that kernels of this family report.
        pub enum Patches {
            AnchorNumbers { given: usize, shape: usize },
            AxisNumbers { axes: usize, given: usize },
            Nan { given: Vec<f64> },
            NoRegion { shape: f64, anchor: f64 },
            ChannelNumber { given: i64, channels: usize },
            NotAnImage { shape: Vec<usize>, layout: String },
        }
    }
}

type Ints = SmallVec<[i64; 6]>;
type Floats = SmallVec<[f64; 6]>;

pub struct Erase;

args! {
    /// `numbers` and `letters` say which axes the regions refer to.
    pub struct EraseArgs {
        anchor: Option<Floats>,
        centered_anchor: bool,
        fill_value: Floats,
        relative_anchor: bool,
        relative_shape: bool,
        shape: Option<Floats>,
        numbers: Option<Ints>,
        letters: Option<Layout>,
    }
}

impl Kernel for Erase {
    type Args = EraseArgs;
    type Plan = EraseArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: EraseArgs, inputs: &[&Desc]) -> Result<(EraseArgs, Outputs)> {
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &EraseArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let desc = out.desc.clone();
        let axes = axes_of(&desc, desc.layout, args.numbers.as_deref(), args.letters)?;
        let patch = Patch::new(&desc, &args.fill_value)?;
        let regions = args.regions(&desc, &axes)?;
        out.store(|bytes, stores| stores.copy(bytes, inputs[0].elements_as_bytes()));
        for region in regions {
            patch.put(out.bytes(), &region, 0, 0);
        }
        Ok(())
    }
}

impl EraseArgs {
    /// The regions to erase, clipped to the data: a range for each axis.
    fn regions(&self, desc: &Desc, axes: &[usize]) -> Result<Vec<SmallVec<[Range<usize>; 6]>>> {
        let anchors = self.anchor.as_deref().unwrap_or_default();
        let shapes = self.shape.as_deref().unwrap_or_default();
        if anchors.len() != shapes.len() {
            let (given, shape) = (anchors.len(), shapes.len());
            return Err(argument("anchor", Patches::AnchorNumbers { given, shape }));
        }
        let count = axes.len();
        if count == 0 || !anchors.len().is_multiple_of(count) {
            let given = anchors.len();
            return Err(argument("anchor", Patches::AxisNumbers { axes: count, given }));
        }
        for (name, values) in [("anchor", anchors), ("shape", shapes)] {
            if values.iter().any(|value| value.is_nan()) {
                return Err(argument(name, Patches::Nan { given: values.to_vec() }));
            }
        }
        let whole: SmallVec<[Range<usize>; 6]> = desc.shape.iter().map(|&n| 0..n).collect();
        let mut regions = with_room(anchors.len() / count)?;
        for (anchor, shape) in anchors.chunks_exact(count).zip(shapes.chunks_exact(count)) {
            let mut region = whole.clone();
            for (&axis, (&anchor, &shape)) in axes.iter().zip(anchor.iter().zip(shape)) {
                let n = desc.shape[axis];
                // In single precision like DALI, unless the axis is too long for that.
                let rounded = |x: f64| if is_long(n) { x } else { f64::from(x as f32) };
                let measure =
                    |x, relative| rounded(rounded(x) * if relative { n as f64 } else { 1.0 });
                let shape = measure(shape, self.relative_shape);
                let mut start = measure(anchor, self.relative_anchor);
                if self.centered_anchor {
                    start = rounded(start - rounded(shape / 2.0));
                }
                let end = rounded(start + shape);
                if end.is_nan() {
                    let problem = Patches::NoRegion { shape, anchor: start };
                    return Err(argument("shape", problem));
                }
                // Truncated towards zero.
                let clip = |x: f64| (x as i64).clamp(0, n as i64) as usize;
                let (first, last) = (clip(start), clip(end));
                region[axis] = first..last.max(first);
            }
            regions.push(region);
        }
        Ok(regions)
    }
}

/// The fill of regions: one value, or one per channel.
struct Patch {
    /// Size of an element in bytes.
    size: usize,
    values: SmallVec<[u8; 16]>,
    /// The channel axis, if there are several values.
    channels: Option<usize>,
    /// Strides in bytes.
    steps: SmallVec<[usize; 6]>,
    shape: SmallVec<[usize; 6]>,
}

impl Patch {
    fn new(desc: &Desc, fill: &[f64]) -> Result<Patch> {
        let channels = match (fill.len(), desc.layout.find(b'C')) {
            (0 | 1, _) => None,
            (count, None) => {
                let layout = desc.layout.as_str().to_string();
                let problem = Argument::NoChannels { given: count, layout };
                return Err(argument("fill_value", problem));
            }
            (count, Some(axis)) if desc.shape[axis] != count => {
                let channels = desc.shape[axis];
                let problem = Argument::ChannelCount { channels, given: count };
                return Err(argument("fill_value", problem));
            }
            (_, axis) => axis,
        };
        let fill = if fill.is_empty() { &[0.0] } else { fill };
        let size = desc.dtype.size();
        let mut steps = SmallVec::from_elem(size, desc.ndim());
        for axis in (1..desc.ndim()).rev() {
            steps[axis - 1] = steps[axis] * desc.shape[axis];
        }
        Ok(Patch {
            size,
            values: fill.iter().flat_map(|&x| fill_bytes(x as f32, desc.dtype)).collect(),
            channels,
            steps,
            shape: desc.shape.clone(),
        })
    }

    /// Fills a region from `axis` on. `channel` is the current channel, if an earlier axis is the
    /// channel axis.
    fn put(&self, dst: &mut [u8], region: &[Range<usize>], axis: usize, channel: usize) {
        let value = |channel: usize| &self.values[channel * self.size..][..self.size];
        let Some(places) = region.get(axis) else {
            return repeat(value(channel), dst);
        };
        let step = self.steps[axis];
        let inner_whole = (axis + 1..region.len()).all(|i| region[i] == (0..self.shape[i]));
        let innermost = self.channels == Some(region.len() - 1);
        let pattern = match self.channels {
            None => Some(value(0)),
            Some(counting) if counting < axis => Some(value(channel)),
            Some(counting) if innermost && axis < counting => Some(&self.values[..]),
            Some(_) => None,
        };
        match pattern {
            Some(pattern) if inner_whole => {
                repeat(pattern, &mut dst[places.start * step..places.end * step]);
            }
            _ => {
                for place in places.clone() {
                    let channel = if self.channels == Some(axis) { place } else { channel };
                    self.put(&mut dst[place * step..][..step], region, axis + 1, channel);
                }
            }
        }
    }
}

pub struct Paste;

args! {
    pub struct PasteArgs {
        fill_value: Floats,
        min_canvas_size: f64,
        n_channels: Option<i64>,
        paste_x: f64,
        paste_y: f64,
        ratio: f64,
    }
}

impl Kernel for Paste {
    type Args = PasteArgs;
    type Plan = PasteArgs;

    fn plan(args: PasteArgs, inputs: &[&Desc]) -> Result<(PasteArgs, Outputs)> {
        let desc = inputs[0];
        if args.ratio.is_nan() || args.ratio < 1.0 {
            let problem = Argument::AtLeast { least: 1.0, given: args.ratio };
            return Err(argument("ratio", problem));
        }
        for (name, position) in [("paste_x", args.paste_x), ("paste_y", args.paste_y)] {
            if !(0.0..=1.0).contains(&position) {
                let problem = Argument::Between { low: 0.0, high: 1.0, given: position };
                return Err(argument(name, problem));
            }
        }
        let [h, w, c] = desc.shape[..] else {
            return Err(Cause::Internal(format!("{desc:?} is no image")));
        };
        if let Some(n) = args.n_channels
            && usize::try_from(n).ok() != Some(c)
        {
            let problem = Patches::ChannelNumber { given: n, channels: c };
            return Err(argument("n_channels", problem));
        }
        let canvas = |n: usize| {
            let side = part_of(args.ratio, n as f64).trunc();
            side.max(f64::from(args.min_canvas_size as f32).trunc())
        };
        let (height, width) = (canvas(h), canvas(w));
        if !(height <= LONGEST && width <= LONGEST) {
            return Err(too_large("ratio"));
        }
        let shape = smallvec![height as usize, width as usize, c];
        let desc = match extent(&shape) {
            Some(_) => Ok(Desc { shape, ..desc.clone() }),
            None => Err(too_large("ratio")),
        }?;
        Ok((args, one(desc)))
    }

    fn run(args: &PasteArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        let (image, canvas) = (&inputs[0].desc.shape, &out.desc.shape);
        let start = |position: f64, axis: usize| {
            -(part_of(position, (canvas[axis] - image[axis]) as f64) as i64)
        };
        let region = Region {
            start: smallvec![start(args.paste_y, 0), start(args.paste_x, 1), 0],
            shape: canvas.clone(),
        };
        let channels = canvas[2];
        let values: SmallVec<[f32; 4]> = args.fill_value.iter().map(|&x| x as f32).collect();
        let fill = match values.len() {
            1 => Fill::new(&values, out.desc.dtype, None),
            count if count == channels && count > 0 => Fill::new(&values, out.desc.dtype, Some(2)),
            count => {
                let problem = Argument::ChannelCount { channels, given: count };
                return Err(argument("fill_value", problem));
            }
        };
        out.store(|dst, stores| cut(&inputs[0], &region, Border::Constant, &fill, dst, stores))
    }
}

pub struct GridMask;

args! {
    pub struct GridMaskArgs { angle: f64, ratio: f64, shift_x: f64, shift_y: f64, tile: i64 }
}

impl Kernel for GridMask {
    type Args = GridMaskArgs;
    type Plan = GridMaskArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: GridMaskArgs, inputs: &[&Desc]) -> Result<(GridMaskArgs, Outputs)> {
        Ok((args, one(inputs[0].clone())))
    }

    fn run(args: &GridMaskArgs, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let out = &mut outputs[0];
        if args.tile <= 0 {
            let problem = Argument::NotPositive { given: args.tile as f64 };
            return Err(argument("tile", problem));
        }
        for (name, value) in [
            ("angle", args.angle),
            ("ratio", args.ratio),
            ("shift_x", args.shift_x),
            ("shift_y", args.shift_y),
        ] {
            if !value.is_finite() {
                return Err(argument(name, Argument::NotFinite { given: value }));
            }
        }
        let desc = out.desc.clone();
        // Without a layout, the first two axes are height and width.
        let (h, w) = match (desc.layout.find(b'H'), desc.layout.find(b'W')) {
            (Some(h), Some(w)) => (h, w),
            _ => (0, 1),
        };
        if desc.ndim() < 2 || h.abs_diff(w) != 1 {
            let (shape, layout) = (desc.shape.to_vec(), desc.layout.as_str().to_string());
            return Err(unfit(0, Patches::NotAnImage { shape, layout }));
        }
        if desc.shape.contains(&0) {
            return Ok(());
        }
        let inner = h.max(w);
        let pixel: usize = desc.shape[inner + 1..].iter().product::<usize>() * desc.dtype.size();
        let rows = desc.shape[inner - 1];
        let mut mask = filled(false, desc.shape[inner])?;
        let grid = Grid::new(args);
        let row = mask.len() * pixel;
        let src = inputs[0].elements_as_bytes();
        out.write_rows(row, |index, out| {
            out.copy_from_slice(&src[index * row..][..row]);
            grid.row(Isa::best(), index % rows, h > w, &mut mask);
            blank(out, &mask, pixel);
        });
        Ok(())
    }
}

/// A regular grid of squares, rotated about the first pixel and then shifted. Units are tiles.
struct Grid {
    cosine: f32,
    sine: f32,
    shift: [f32; 2],
    ratio: f32,
}

impl Grid {
    fn new(args: &GridMaskArgs) -> Grid {
        let (sine, cosine) = f64::from(args.angle as f32).sin_cos();
        let tile = args.tile as f32;
        Grid {
            cosine: cosine as f32 / tile,
            sine: sine as f32 / tile,
            shift: [args.shift_x as f32 / tile, args.shift_y as f32 / tile],
            ratio: args.ratio as f32,
        }
    }

    /// Which pixels of a row are in squares (of a column, if `is_column`).
    fn row(&self, isa: Isa, place: usize, is_column: bool, mask: &mut [bool]) {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                #[target_feature(enable = "avx2")]
                unsafe fn run(grid: &Grid, place: usize, is_column: bool, mask: &mut [bool]) {
                    grid.row_inline(place, is_column, mask);
                }
                // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected.
                unsafe { run(self, place, is_column, mask) }
            }
            _ => self.row_inline(place, is_column, mask),
        }
    }

    #[inline(always)]
    fn row_inline(&self, place: usize, is_column: bool, mask: &mut [bool]) {
        let place = place as f32;
        for (index, masked) in mask.iter_mut().enumerate() {
            let index = index as u32 as f32;
            let (x, y) = if is_column { (place, index) } else { (index, place) };
            let u = x * self.cosine - y * self.sine - self.shift[0];
            let v = x * self.sine + y * self.cosine - self.shift[1];
            *masked = (u - u.floor() < self.ratio) & (v - v.floor() < self.ratio);
        }
    }
}

/// Zeroes the masked pixels of a row.
fn blank(row: &mut [u8], mask: &[bool], pixel: usize) {
    let mut at = 0;
    for run in mask.chunk_by(|a, b| a == b) {
        let bytes = run.len() * pixel;
        if run[0] {
            row[at..at + bytes].fill(0);
        }
        at += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_masks_the_same() {
        let args = GridMaskArgs { angle: 0.7, ratio: 0.4, shift_x: 3.5, shift_y: -2.0, tile: 9 };
        let grid = Grid::new(&args);
        for (place, is_column) in (0..50).flat_map(|place| [(place, false), (place, true)]) {
            let run = |isa| {
                let mut mask = vec![false; 61];
                grid.row(isa, place, is_column, &mut mask);
                mask
            };
            for isa in Isa::available() {
                assert_eq!(run(isa), run(Isa::Scalar), "{isa:?}, {place}");
            }
        }
    }

    #[test]
    fn fill_values_follow_the_channel_axis() {
        let desc = |layout| Desc {
            layout: Layout::new(layout).unwrap(),
            ..Desc::new(crate::value::DType::U8, &[2, 2, 2])
        };
        let mut bytes = [0; 8];
        Patch::new(&desc("HWC"), &[7.0, 8.0]).unwrap().put(&mut bytes, &[0..2, 1..2, 0..2], 0, 0);
        assert_eq!(bytes, [0, 0, 7, 8, 0, 0, 7, 8]);
        let mut bytes = [0; 8];
        Patch::new(&desc("CHW"), &[7.0, 8.0]).unwrap().put(&mut bytes, &[0..2, 1..2, 0..2], 0, 0);
        assert_eq!(bytes, [0, 0, 7, 7, 0, 0, 8, 8]);
        assert!(Patch::new(&desc("HWC"), &[7.0, 8.0, 9.0]).is_err());
    }
}
