//! Converts stored pixels to the requested color space, element type and orientation.

use half::{bf16, f16};

use super::image::{Output, Request, Window, flips};
use super::{Color, Data};
use crate::value::{Cause, DType, Element, with_room};

/// Stored values, row by row.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    I16(&'a [i16]),
    F32(&'a [f32]),
}

impl<'a> Rows<'a> {
    pub fn of(data: &'a Data) -> Rows<'a> {
        match data {
            Data::U8(rows) => Rows::U8(rows),
            Data::U16(rows) => Rows::U16(rows),
            Data::I16(rows) => Rows::I16(rows),
            Data::F32(rows) => Rows::F32(rows),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Rows::U8(rows) => rows.len(),
            Rows::U16(rows) => rows.len(),
            Rows::I16(rows) => rows.len(),
            Rows::F32(rows) => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

pub struct Stored<'a> {
    pub height: usize,
    pub width: usize,
    pub color: Color,
    pub rows: Rows<'a>,
}

/// The type of stored values.
trait Number: Element {
    /// The factor that scales values to 0..1. DALI multiplies too: a division would round
    /// differently.
    const UNIT: f32;
    fn raw(self) -> f32;
    fn part(self) -> f32 {
        self.raw() * Self::UNIT
    }
    fn gray(r: Self, g: Self, b: Self) -> Self;
}

/// DALI's weights of red, green and blue, times 2^15; the sum is truncated.
const GRAY: [u32; 3] = [9797, 19234, 3737];

impl Number for u8 {
    const UNIT: f32 = 1.0 / 255.0;
    fn raw(self) -> f32 {
        f32::from(self)
    }
    fn gray(r: u8, g: u8, b: u8) -> u8 {
        let [r, g, b] = [r, g, b].map(u32::from);
        ((r * GRAY[0] + g * GRAY[1] + b * GRAY[2]) >> 15) as u8
    }
}

impl Number for u16 {
    const UNIT: f32 = 1.0 / 65535.0;
    fn raw(self) -> f32 {
        f32::from(self)
    }
    fn gray(r: u16, g: u16, b: u16) -> u16 {
        let [r, g, b] = [r, g, b].map(u32::from);
        ((r * GRAY[0] + g * GRAY[1] + b * GRAY[2]) >> 15) as u16
    }
}

impl Number for i16 {
    const UNIT: f32 = 1.0 / 32767.0;
    fn raw(self) -> f32 {
        f32::from(self)
    }
    fn gray(r: i16, g: i16, b: i16) -> i16 {
        let [r, g, b] = [r, g, b].map(i32::from);
        let [a, b, c] = [r * GRAY[0] as i32, g * GRAY[1] as i32, b * GRAY[2] as i32];
        ((a + b + c) >> 15) as i16
    }
}

impl Number for f32 {
    const UNIT: f32 = 1.0;
    fn raw(self) -> f32 {
        self
    }
    fn gray(r: f32, g: f32, b: f32) -> f32 {
        let part = |index: usize| GRAY[index] as f32 / 32768.0;
        r * part(0) + g * part(1) + b * part(2)
    }
}

/// The type of results.
trait Wanted: Element {
    /// From a value scaled to 0..1.
    fn from_part(part: f32) -> Self;
}

macro_rules! wanted_int {
    ($($type:ty)*) => {$(
        impl Wanted for $type {
            fn from_part(part: f32) -> $type {
                (part * <$type>::MAX as f32).round() as $type
            }
        }
    )*};
}
wanted_int!(u8 u16 u32 u64 i8 i16 i32 i64);

impl Wanted for f16 {
    fn from_part(part: f32) -> f16 {
        f16::from_f32(part)
    }
}

impl Wanted for bf16 {
    fn from_part(part: f32) -> bf16 {
        bf16::from_f32(part)
    }
}

impl Wanted for f32 {
    fn from_part(part: f32) -> f32 {
        part
    }
}

impl Wanted for f64 {
    fn from_part(part: f32) -> f64 {
        f64::from(part)
    }
}

/// Writes a window of the stored pixels, converted as requested. `dst` has exactly the size of the
/// result.
pub fn write(
    stored: &Stored<'_>,
    window: Window,
    orientation: u8,
    request: &Request,
    dst: &mut [u8],
) -> Result<(), Cause> {
    match stored.rows {
        Rows::U8(rows) => write_from(stored, rows, window, orientation, request, dst),
        Rows::U16(rows) => write_from(stored, rows, window, orientation, request, dst),
        Rows::I16(rows) => write_from(stored, rows, window, orientation, request, dst),
        Rows::F32(rows) => write_from(stored, rows, window, orientation, request, dst),
    }
}

fn write_from<S: Number>(
    stored: &Stored<'_>,
    rows: &[S],
    window: Window,
    orientation: u8,
    request: &Request,
    dst: &mut [u8],
) -> Result<(), Cause> {
    let channels = stored.color.channels();
    let turned = orientation >= 5;
    let (height, width) =
        if turned { (window.width, window.height) } else { (window.height, window.width) };
    let (flip_rows, flip_columns) = flips(orientation);
    let made = match request.output {
        Output::Gray => 1,
        Output::Any => channels,
        _ => 3,
    };
    let pitch = stored.width * channels;
    let start = window.y * pitch + window.x * channels;
    let mut line: Vec<S> = with_room(if orientation == 1 { 0 } else { width * channels })?;
    let mut colored: Vec<S> = with_room(width * made)?;
    let mut mixed = with_room(if request.output == Output::YCbCr { 3 * width } else { 0 })?;
    for (y, dst) in dst.chunks_exact_mut(width * made * request.dtype.size()).enumerate() {
        let line: &[S] = if orientation == 1 {
            &rows[start + y * pitch..][..width * channels]
        } else {
            line.clear();
            // The offset of a pixel of the result in the stored rows.
            let place = |y: usize, x: usize| {
                let row = if flip_rows { window.height - 1 - y } else { y };
                let column = if flip_columns { window.width - 1 - x } else { x };
                start + row * pitch + column * channels
            };
            for x in 0..width {
                let at = if turned { place(x, y) } else { place(y, x) };
                line.extend_from_slice(&rows[at..at + channels]);
            }
            &line
        };
        if request.output == Output::YCbCr {
            ycbcr(line, channels, request.dtype, &mut mixed, dst);
            continue;
        }
        let line = match recolor(line, channels, request.output, &mut colored) {
            true => &colored,
            false => line,
        };
        store(line, request.dtype, dst);
    }
    debug_assert!(height * width * made * request.dtype.size() == dst.len());
    Ok(())
}

/// The first three channels of a pixel; for gray, the same value three times.
fn light<S: Number>(pixel: &[S]) -> [S; 3] {
    match pixel {
        [r, g, b, ..] => [*r, *g, *b],
        [gray, ..] => [*gray; 3],
        [] => unreachable!("pixels have channels"),
    }
}

/// Converts the colors of a row; returns whether there was anything to convert.
fn recolor<S: Number>(line: &[S], channels: usize, output: Output, out: &mut Vec<S>) -> bool {
    out.clear();
    let pixels = line.chunks_exact(channels);
    match output {
        Output::Any => return false,
        Output::Rgb if channels == 3 => return false,
        Output::Gray if channels == 1 => return false,
        Output::Gray if channels == 2 => out.extend(pixels.map(|pixel| pixel[0])),
        Output::Gray => out.extend(pixels.map(light).map(|[r, g, b]| S::gray(r, g, b))),
        Output::Bgr => out.extend(pixels.map(light).flat_map(|[r, g, b]| [b, g, r])),
        Output::Rgb | Output::YCbCr => out.extend(pixels.flat_map(light)),
    }
    true
}

fn store<S: Number>(line: &[S], dtype: DType, dst: &mut [u8]) {
    fn all<S: Number, T: Wanted>(line: &[S], dst: &mut [u8]) {
        for (dst, &value) in elements::<T>(dst).iter_mut().zip(line) {
            *dst = T::from_part(value.part());
        }
    }
    if dtype == S::DTYPE {
        // SAFETY: numbers of any type can be read as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(line.as_ptr().cast::<u8>(), std::mem::size_of_val(line))
        };
        return dst.copy_from_slice(bytes);
    }
    match dtype {
        DType::U8 => all::<S, u8>(line, dst),
        DType::U16 => all::<S, u16>(line, dst),
        DType::U32 => all::<S, u32>(line, dst),
        DType::U64 => all::<S, u64>(line, dst),
        DType::I8 => all::<S, i8>(line, dst),
        DType::I16 => all::<S, i16>(line, dst),
        DType::I32 => all::<S, i32>(line, dst),
        DType::I64 => all::<S, i64>(line, dst),
        DType::F16 => all::<S, f16>(line, dst),
        DType::BF16 => all::<S, bf16>(line, dst),
        DType::F64 => all::<S, f64>(line, dst),
        _ => all::<S, f32>(line, dst),
    }
}

/// Luma and chroma of ITU-R BT.601, limited range.
fn ycbcr<S: Number>(
    line: &[S],
    channels: usize,
    dtype: DType,
    made: &mut Vec<f32>,
    dst: &mut [u8],
) {
    const WEIGHTS: [[f32; 3]; 3] = [
        [0.256_788_24, 0.504_129_4, 0.097_905_88],
        [-0.148_222_9, -0.290_992_8, 0.439_215_7],
        [0.439_215_7, -0.367_788_3, -0.071_427_37],
    ];
    // For results other than uint8, DALI's offsets are 16 / 256 and 128 / 256.
    let (scale, zero) = match dtype {
        DType::U8 => (255.0 * S::UNIT, [16.0, 128.0, 128.0]),
        _ => (S::UNIT, [0.0625, 0.5, 0.5]),
    };
    made.clear();
    for pixel in line.chunks_exact(channels) {
        let rgb = light(pixel).map(|value| value.raw() * scale);
        for (weights, zero) in WEIGHTS.iter().zip(zero) {
            made.push(weights[0] * rgb[0] + weights[1] * rgb[1] + weights[2] * rgb[2] + zero);
        }
    }
    if dtype == DType::U8 {
        for (dst, value) in dst.iter_mut().zip(made.iter()) {
            *dst = value.round() as u8;
        }
    } else {
        store(made, dtype, dst);
    }
}

fn elements<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: any bit pattern is a valid element; unaligned bytes are not included.
    let (before, elements, after) = unsafe { bytes.align_to_mut::<T>() };
    assert!(before.is_empty() && after.is_empty());
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(output: Output, dtype: DType) -> Request {
        Request { output, dtype, upright: true, fast_dct: false, min_size: None }
    }

    fn convert(
        rows: Rows<'_>,
        color: Color,
        output: Output,
        dtype: DType,
        bytes: usize,
    ) -> Vec<u8> {
        let width = rows.len() / color.channels();
        let stored = Stored { height: 1, width, color, rows };
        let mut dst = vec![0; bytes];
        let window = Window { y: 0, x: 0, height: 1, width };
        write(&stored, window, 1, &request(output, dtype), &mut dst).unwrap();
        dst
    }

    #[test]
    fn numbers_keep_their_part_of_the_brightest() {
        let as_u8 = |rows| convert(rows, Color::Gray, Output::Gray, DType::U8, 3);
        assert_eq!(as_u8(Rows::U16(&[0, 45746, 65535])), [0, 178, 255]);
        assert_eq!(as_u8(Rows::I16(&[-5, 16384, 32767])), [0, 128, 255]);
        assert_eq!(as_u8(Rows::F32(&[f32::NAN, 0.5, 7.0])), [0, 128, 255]);
    }

    #[test]
    fn colors_become_those_wanted() {
        let rgba = Rows::U8(&[10, 20, 30, 9]);
        let as_u8 = |output, bytes| convert(rgba, Color::Rgba, output, DType::U8, bytes);
        assert_eq!(as_u8(Output::Rgb, 3), [10, 20, 30]);
        assert_eq!(as_u8(Output::Bgr, 3), [30, 20, 10]);
        assert_eq!(as_u8(Output::Any, 4), [10, 20, 30, 9]);
        assert_eq!(as_u8(Output::Gray, 1), [18]);
        let gray = Rows::U8(&[7, 1]);
        assert_eq!(convert(gray, Color::GrayAlpha, Output::Gray, DType::U8, 1), [7]);
        assert_eq!(convert(gray, Color::GrayAlpha, Output::Rgb, DType::U8, 3), [7, 7, 7]);
    }

    #[test]
    fn turned_images_become_upright() {
        // The upright image `0 1 2 / 3 4 5`, as stored with each EXIF orientation.
        let stored: [&[u8]; 8] = [
            &[0, 1, 2, 3, 4, 5],
            &[2, 1, 0, 5, 4, 3],
            &[5, 4, 3, 2, 1, 0],
            &[3, 4, 5, 0, 1, 2],
            &[0, 3, 1, 4, 2, 5],
            &[2, 5, 1, 4, 0, 3],
            &[5, 2, 4, 1, 3, 0],
            &[3, 0, 4, 1, 5, 2],
        ];
        for (orientation, rows) in (1..).zip(stored) {
            let (height, width) = if orientation >= 5 { (3, 2) } else { (2, 3) };
            let stored = Stored { height, width, color: Color::Gray, rows: Rows::U8(rows) };
            let window = Window { y: 0, x: 0, height, width };
            let mut dst = [9; 6];
            write(&stored, window, orientation, &request(Output::Gray, DType::U8), &mut dst)
                .unwrap();
            assert_eq!(dst, [0, 1, 2, 3, 4, 5], "orientation {orientation}");
        }
    }
}
