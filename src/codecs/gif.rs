//! The first frame of a GIF, on an empty canvas, with the `gif` crate.

use gif::{ColorOutput, DecodeOptions, Decoder, DecodingError, Frame, MemoryLimit};

use super::image::max_pixels;
use super::{Color, Data, Format, Header, ImageFault, Pixels, Problem, bounds, broken};
use crate::value::{Cause, DType, problems, zeroed};

problems! {
    pub enum GifFault {
        EmptyFrame,
        NoPalette,
        NoImage,
    }
}

/// Upper bound: the longest string in a table of 4096, for a 12-bit code.
const MOST_PIXELS_PER_BYTE: usize = 1 << 12;

pub fn header(bytes: &[u8]) -> Result<Header, Problem> {
    let mut decoder = open(bytes)?;
    let (height, width) = (usize::from(decoder.height()), usize::from(decoder.width()));
    let frame = first(decoder.next_frame_info())?;
    let indices = usize::from(frame.height) * usize::from(frame.width);
    let channels = if alpha(frame, height, width) { 4 } else { 3 };
    Ok(Header {
        format: Format::Gif,
        height,
        width,
        channels,
        dtype: DType::U8,
        orientation: 1,
        scratch: indices + height * width * channels,
        smallest: (indices / MOST_PIXELS_PER_BYTE).max(bounds::blank(height * width)),
    })
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Problem> {
    let mut decoder = open(bytes)?;
    let (height, width) = (usize::from(decoder.height()), usize::from(decoder.width()));
    let area = bounds::area(height, width)?;
    let global = decoder.global_palette().map(<[u8]>::to_vec);
    let frame = first(decoder.next_frame_info())?.clone();
    if frame.height == 0 || frame.width == 0 {
        return Err(broken(GifFault::EmptyFrame));
    }
    let mut indices = zeroed(usize::from(frame.height) * usize::from(frame.width))?;
    decoder.read_into_buffer(&mut indices).map_err(undecoded)?;
    let palette = frame.palette.as_ref().or(global.as_ref());
    let palette = palette.ok_or_else(|| broken(GifFault::NoPalette))?;
    let mut colors = [[0, 0, 0, 255]; 256];
    for (color, rgb) in colors.iter_mut().zip(palette.as_chunks::<3>().0) {
        color[..3].copy_from_slice(rgb);
    }
    if let Some(index) = frame.transparent {
        colors[usize::from(index)][3] = 0;
    }

    let alpha = alpha(&frame, height, width);
    let channels = if alpha { 4 } else { 3 };
    let mut data = zeroed(area * channels)?;
    let (left, top) = (usize::from(frame.left).min(width), usize::from(frame.top));
    let rows = data.chunks_exact_mut(width * channels).skip(top);
    for (row, indices) in rows.zip(indices.chunks_exact(usize::from(frame.width))) {
        let pixels = row[left * channels..].chunks_exact_mut(channels);
        for (pixel, &index) in pixels.zip(indices) {
            pixel.copy_from_slice(&colors[usize::from(index)][..channels]);
        }
    }
    let color = if alpha { Color::Rgba } else { Color::Rgb };
    Ok(Pixels { height, width, color, data: Data::U8(data) })
}

fn open(bytes: &[u8]) -> Result<Decoder<&[u8]>, Problem> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(
        (max_pixels() as u64).try_into().unwrap_or(std::num::NonZeroU64::MAX),
    ));
    options.read_info(bytes).map_err(undecoded)
}

fn first<'a>(
    frame: Result<Option<&'a Frame<'static>>, DecodingError>,
) -> Result<&'a Frame<'static>, Problem> {
    frame.map_err(undecoded)?.ok_or_else(|| broken(GifFault::NoImage))
}

/// Whether pixels may be transparent: by color, or because the frame doesn't cover the canvas.
fn alpha(frame: &Frame<'_>, height: usize, width: usize) -> bool {
    let right = usize::from(frame.left) + usize::from(frame.width);
    let bottom = usize::from(frame.top) + usize::from(frame.height);
    let covers = frame.left == 0 && frame.top == 0 && right >= width && bottom >= height;
    frame.transparent.is_some() || !covers
}

fn undecoded(error: DecodingError) -> Problem {
    match error {
        DecodingError::Io(_) => broken(ImageFault::EndsEarly),
        DecodingError::OutOfMemory => Cause::Memory { bytes: 1 << 16 }.into(),
        error => broken(ImageFault::Damaged { text: error.to_string() }),
    }
}
