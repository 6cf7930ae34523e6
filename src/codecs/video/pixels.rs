//! From a decoded frame to the requested pixels: resizing, colors, orientation.

use std::cell::RefCell;
use std::sync::Arc;

use super::color::{self, Coefficients, MOST_BITS, Matrix};
use super::ffmpeg::{Frame, Kind, Picture, PixelFormat};
use super::{Result, VideoFault, broken};
use crate::codecs::convert::{Rows, Stored, write};
use crate::codecs::image::{self, flips};
use crate::codecs::{Color, Output, Window};
use crate::kernels::OutputBuffer;
use crate::kernels::numeric::interleave::interleave_bytes;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::resize::{Filters, Map, resample};
use crate::value::{DType, Desc, Sample, zeroed};

/// The requested form of frames.
#[derive(Clone)]
pub struct Request {
    /// `Any` is the same as `Rgb`. `YCbCr` is what is stored, with chroma for each pixel.
    pub output: Output,
    /// Whether to rotate frames as the file says.
    pub upright: bool,
    pub resized: Option<Resized>,
    /// Instead of the one that the file names.
    pub matrix: Option<Matrix>,
    /// The pixels of frames that don't exist.
    pub fill: [u8; 3],
}

impl Default for Request {
    fn default() -> Request {
        let (output, fill) = (Output::Rgb, [0; 3]);
        Request { output, upright: false, resized: None, matrix: None, fill }
    }
}

/// The maps of rows and columns, given the height and width of frames.
pub type Maps = dyn Fn(usize, usize) -> Result<[Map; 2]> + Send + Sync;

/// How frames are resized, before their colors are converted, which saves most of that.
#[derive(Clone)]
pub struct Resized {
    pub maps: Arc<Maps>,
    pub filters: Filters,
}

impl Request {
    pub fn channels(&self) -> usize {
        if self.output == Output::Gray { 1 } else { 3 }
    }

    /// Height and width of the results for frames of this size.
    pub fn size(&self, (height, width): (usize, usize), orientation: u8) -> Result<[usize; 2]> {
        let turned = self.upright && orientation >= 5;
        let (height, width) = if turned { (width, height) } else { (height, width) };
        match &self.resized {
            None => Ok([height, width]),
            Some(resized) => Ok((resized.maps)(height, width)?.map(|map| map.output)),
        }
    }

    /// Converts a frame to `out`, which has the height and width that `size` returned for the
    /// first frame.
    pub fn convert(
        &self,
        frame: &Frame,
        orientation: u8,
        [height, width]: [usize; 2],
        out: &mut [u8],
    ) -> Result<()> {
        let picture = frame.picture().map_err(|name| broken(VideoFault::PixelFormat { name }))?;
        let format = picture.format;
        let orientation = if self.upright { orientation } else { 1 };
        let planes = match &self.resized {
            None => Planes {
                format,
                height: picture.height,
                width: picture.width,
                source: Source::Frame(picture),
            },
            Some(resized) => resized.planes(&picture, orientation, [height, width])?,
        };
        let full = match frame.color_range() {
            1 => false,
            2 => true,
            _ => format.full_range,
        };
        let matrix = self.matrix.unwrap_or(Matrix::of_tag(frame.color_space()));
        let colors = Coefficients::new(matrix, full, format.depth.clamp(8, MOST_BITS));
        let rgb = matches!(format.kind, Kind::PackedRgb { .. } | Kind::PlanarRgb);
        let output = match self.output {
            Output::Any => Output::Rgb,
            output => output,
        };
        let direct = orientation == 1 && !(rgb && output != Output::Rgb);
        if direct {
            planes.write(&colors, output, out);
            return Ok(());
        }
        // Rotated, or in other colors, by what images are converted with.
        let made = if rgb { Output::Rgb } else { output };
        let channels = if made == Output::Gray { 1 } else { 3 };
        let mut scratch = zeroed(planes.height * planes.width * channels)?;
        planes.write(&colors, made, &mut scratch);
        let color = if channels == 1 { Color::Gray } else { Color::Rgb };
        let rows = Rows::U8(&scratch);
        let stored = Stored { height: planes.height, width: planes.width, color, rows };
        let output = match (rgb, channels) {
            (true, _) => output,
            // Whatever the three channels are, they stay.
            (false, 3) => Output::Rgb,
            (false, _) => Output::Gray,
        };
        let request = image::Request {
            output,
            dtype: DType::U8,
            upright: true,
            fast_dct: false,
            min_size: None,
        };
        let all = Window { y: 0, x: 0, height: planes.height, width: planes.width };
        write(&stored, all, orientation, &request, out)
    }
}

impl Resized {
    /// The planes of a picture in another size, with chroma as large as luma. The size is that of
    /// the upright picture.
    fn planes(
        &self,
        picture: &Picture<'_>,
        orientation: u8,
        target: [usize; 2],
    ) -> Result<Planes<'static>> {
        let (height, width) = (picture.height, picture.width);
        let turned = orientation >= 5;
        let maps = match turned {
            true => (self.maps)(width, height)?,
            false => (self.maps)(height, width)?,
        };
        // A frame of another size than the first one is stretched to the size of the others.
        let fit = |map: Map, output: usize| match map.output == output {
            true => map,
            false => {
                let step = map.input as f64 / output as f64;
                Map { output, origin: 0.5 * step - 0.5, step, ..map }
            }
        };
        let maps = [fit(maps[0], target[0]), fit(maps[1], target[1])];
        let [rows, columns] = if turned { [maps[1], maps[0]] } else { maps };
        let (flip_rows, flip_columns) = flips(orientation);
        let flipped = |map: Map, flip: bool| match flip {
            true => {
                let (input, output) = (map.input as f64, map.output as f64);
                let origin = input - 1.0 - map.origin - (output - 1.0) * map.step;
                Map { origin, ..map }
            }
            false => map,
        };
        let maps = [flipped(rows, flip_rows), flipped(columns, flip_columns)];
        let format = picture.format;
        let [height, width] = maps.map(|map| map.output);
        let made = PixelFormat { shifts: [0, 0], ..format };
        let mut samples = [None, None, None];
        for (plane, sample) in samples.iter_mut().enumerate().take(format.planes()) {
            let [x, y] = if plane == 0 { [0, 0] } else { format.shifts };
            let (rows, bytes) = format.plane(plane, picture.height, picture.width);
            let channels = match format.kind {
                Kind::PackedRgb { step, .. } => step,
                Kind::SemiPlanar { .. } if plane == 1 => 2,
                _ => 1,
            };
            let dtype = if format.depth > 8 { DType::U16 } else { DType::U8 };
            let columns = bytes / dtype.size() / channels;
            let desc = |rows: usize, columns: usize| Desc::new(dtype, &[rows, columns, channels]);
            let mut stored = OutputBuffer::new(desc(rows, columns))?;
            for (row, to) in stored.bytes().chunks_exact_mut(bytes.max(1)).enumerate() {
                to.copy_from_slice(picture.row(plane, row));
            }
            // Chroma is centered between the pixels that it is for.
            let subsampled = |map: Map, shift: u32, input: usize| {
                let factor = f64::from(1_u32 << shift);
                let origin = (map.origin + 0.5) / factor - 0.5;
                Map { input, origin, step: map.step / factor, ..map }
            };
            let maps = [
                subsampled(maps[0], y, rows),
                subsampled(maps[1], x, columns),
                Map::identity(channels),
            ];
            let mut out = OutputBuffer::new(desc(height, width))?;
            resample(&stored.into_sample()?, &mut out.output(), &maps, &self.filters)?;
            *sample = Some(out.into_sample()?);
        }
        Ok(Planes { format: made, height, width, source: Source::Resized(Box::new(samples)) })
    }
}

/// Rows of planes, from the frame or resized.
struct Planes<'a> {
    format: PixelFormat,
    height: usize,
    width: usize,
    source: Source<'a>,
}

enum Source<'a> {
    Frame(Picture<'a>),
    Resized(Box<[Option<Sample>; 3]>),
}

/// Rows at the scale of the conversion.
#[derive(Default)]
struct Scratch {
    luma: Vec<i16>,
    /// For both channels: the two rows of chroma that were read last, with their numbers.
    chroma: [[(Option<usize>, Vec<i16>); 2]; 2],
    mixed: Vec<i16>,
    upsampled: [Vec<i16>; 2],
    bytes: [Vec<u8>; 3],
}

impl Planes<'_> {
    fn row(&self, plane: usize, row: usize) -> &[u8] {
        match &self.source {
            Source::Frame(picture) => picture.row(plane, row),
            Source::Resized(samples) => {
                let (_, bytes) = self.format.plane(plane, self.height, self.width);
                let all = samples[plane].as_ref().map_or(&[][..], Sample::elements_as_bytes);
                &all[row * bytes..][..bytes]
            }
        }
    }

    /// Writes all pixels. RGB formats become RGB, whatever is asked for.
    fn write(&self, colors: &Coefficients, output: Output, out: &mut [u8]) {
        thread_local! {
            static SCRATCH: RefCell<Scratch> = RefCell::default();
        }
        let channels = if output == Output::Gray { 1 } else { 3 };
        let rows = out.chunks_exact_mut((self.width * channels).max(1)).enumerate();
        SCRATCH.with_borrow_mut(|scratch| {
            let isa = Isa::best();
            match self.format.kind {
                Kind::PackedRgb { step, places } => rows.for_each(|(y, out)| {
                    let pixels = self.row(0, y).chunks_exact(step);
                    for (out, pixel) in out.as_chunks_mut::<3>().0.iter_mut().zip(pixels) {
                        *out = places.map(|place| pixel[place]);
                    }
                }),
                Kind::PlanarRgb => rows.for_each(|(y, out)| {
                    for (plane, bytes) in scratch.bytes.iter_mut().enumerate() {
                        bytes.resize(self.width, 0);
                        to_bytes(self.row(plane, y), self.format.depth, &mut bytes[..self.width]);
                    }
                    let [g, b, r] = scratch.bytes.each_ref().map(|bytes| &bytes[..self.width]);
                    interleave_bytes(isa, [r, g, b], out);
                }),
                _ => {
                    scratch.chroma.iter_mut().flatten().for_each(|(row, _)| *row = None);
                    rows.for_each(|(y, out)| self.write_row(isa, colors, output, y, scratch, out));
                }
            }
        });
    }

    fn write_row(
        &self,
        isa: Isa,
        colors: &Coefficients,
        output: Output,
        y: usize,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) {
        let (width, depth) = (self.width, self.format.depth);
        scratch.luma.resize(width, 0);
        color::load(self.row(0, y), depth, 1, &mut scratch.luma);
        color::scale_luma(&mut scratch.luma, colors.black);
        if output == Output::Gray {
            return colors.gray(&scratch.luma, out);
        }
        for channel in 0..2 {
            scratch.upsampled[channel].resize(width, 0);
            match self.format.kind {
                Kind::Gray => scratch.upsampled[channel].fill(0),
                _ => self.chroma(colors, y, channel, scratch),
            }
        }
        let [u, v] = &scratch.upsampled;
        match output {
            Output::YCbCr => {
                colors.stored(&scratch.luma, colors.black, out);
                colors.stored(u, colors.middle, &mut out[1..]);
                colors.stored(v, colors.middle, &mut out[2..]);
            }
            _ => colors.rgb(isa, [&scratch.luma, u, v], output == Output::Bgr, out),
        }
    }

    /// A row of chroma with a value for each pixel.
    fn chroma(&self, colors: &Coefficients, y: usize, channel: usize, scratch: &mut Scratch) {
        let PixelFormat { kind, depth, shifts: [x_shift, y_shift], .. } = self.format;
        let count = self.width.div_ceil(1 << x_shift);
        let rows = self.height.div_ceil(1 << y_shift);
        let (plane, first, step) = match kind {
            Kind::SemiPlanar { swapped } => (1, usize::from((channel == 1) != swapped), 2),
            _ => (1 + channel, 0, 1),
        };
        let ([near, far], weights) = color::neighbors(y, y_shift, rows);
        let kept = &mut scratch.chroma[channel];
        // The near row stays while the far one changes, and the other way round.
        if kept[0].0 != Some(near) && kept[1].0 == Some(near)
            || kept[1].0 != Some(far) && kept[0].0 == Some(far)
        {
            kept.swap(0, 1);
        }
        for (place, wanted) in [near, far].into_iter().enumerate() {
            let (row, values) = &mut kept[place];
            if *row != Some(wanted) {
                values.resize(count, 0);
                let bytes = &self.row(plane, wanted)[first * self.format.bytes_per_value()..];
                color::load(bytes, depth, step, values);
                *row = Some(wanted);
            }
        }
        let mixed = &mut scratch.mixed;
        mixed.resize(count + 2, 0);
        color::mix([&kept[0].1, &kept[1].1], weights, &mut mixed[1..=count]);
        (mixed[0], mixed[count + 1]) = (mixed[1], mixed[count]);
        let out = &mut scratch.upsampled[channel];
        color::upsample(mixed, x_shift, colors.middle, out);
    }
}

/// Values of any depth as bytes.
fn to_bytes(row: &[u8], depth: u32, out: &mut [u8]) {
    if depth <= 8 {
        return out.copy_from_slice(&row[..out.len()]);
    }
    let most = (1_u32 << depth) - 1;
    for (out, &bytes) in out.iter_mut().zip(row.as_chunks::<2>().0) {
        let value = u32::from(u16::from_le_bytes(bytes)).min(most);
        *out = ((value * 255 + most / 2) / most) as u8;
    }
}
