//! JPEG 2000, as a file (jp2) or a bare codestream (j2k), through `hayro-jpeg2000`.

use hayro_jpeg2000::{ColorSpace, DecodeError, DecodeSettings, DecoderContext, Image};

use super::bounds;
use super::{Broken, Color, Data, Format, Header, Pixels};
use crate::value::DType;

/// Pixels that are believed of any file, and those that a byte may stand for beyond. The format has
/// no bound: a blank image of 16 megapixels takes 300 bytes, and seconds to decode.
const BLANK: usize = 1 << 24;
const MOST_PIXELS_PER_BYTE: usize = 1 << 14;

pub fn header(bytes: &[u8]) -> Result<Header, Broken> {
    let image = open(bytes)?;
    Ok(Header {
        format: Format::Jpeg2000,
        height: image.height() as usize,
        width: image.width() as usize,
        channels: color(&image).channels(),
        dtype: if image.original_bit_depth() > 8 { DType::U16 } else { DType::U8 },
        orientation: 1,
    })
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Broken> {
    let image = open(bytes)?;
    let (height, width) = (image.height() as usize, image.width() as usize);
    let area = bounds::area(height, width)?;
    if area > BLANK {
        bounds::believable(area, bytes.len(), MOST_PIXELS_PER_BYTE)?;
    }
    let color = color(&image);
    let wide = image.original_bit_depth() > 8;
    let mut context = DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(broken)?;
    let planes = decoded.components();
    if planes.len() != color.channels() || planes.iter().any(|p| p.samples().len() != area) {
        return Err(Broken("has channels of different sizes, which is not supported".into()));
    }
    let depth = |plane: usize| planes[plane].bit_depth();
    let mut data = if wide { Data::U16(Vec::new()) } else { Data::U8(Vec::new()) };
    match &mut data {
        Data::U16(out) => {
            out.resize(area * planes.len(), 0);
            for (n, plane) in planes.iter().enumerate() {
                let scale = full_scale(depth(n), 65535.0);
                let samples = plane.samples().iter();
                for (pixel, &sample) in out.chunks_exact_mut(planes.len()).zip(samples) {
                    pixel[n] = (sample * scale).round_ties_even() as u16;
                }
            }
        }
        Data::U8(out) => {
            out.resize(area * planes.len(), 0);
            for (n, plane) in planes.iter().enumerate() {
                let scale = full_scale(depth(n), 255.0);
                let samples = plane.samples().iter();
                for (pixel, &sample) in out.chunks_exact_mut(planes.len()).zip(samples) {
                    pixel[n] = (sample * scale).round_ties_even() as u8;
                }
            }
        }
        _ => {}
    }
    Ok(Pixels { height, width, color, data })
}

/// What brings samples of so many bits to the range of the type.
fn full_scale(bits: u8, most: f32) -> f32 {
    most / ((1u64 << bits.min(63)) - 1) as f32
}

fn open(bytes: &[u8]) -> Result<Image<'_>, Broken> {
    let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
    Image::new(bytes, &settings).map_err(broken)
}

fn color(image: &Image<'_>) -> Color {
    let colors = match image.color_space() {
        ColorSpace::Gray => 1,
        ColorSpace::RGB => 3,
        other => usize::from(other.num_channels()),
    };
    match (colors, image.has_alpha()) {
        (1, false) => Color::Gray,
        (1, true) => Color::GrayAlpha,
        (3, false) => Color::Rgb,
        (3, true) => Color::Rgba,
        (colors, alpha) => Color::Other(colors + usize::from(alpha)),
    }
}

fn broken(error: DecodeError) -> Broken {
    Broken(format!("is damaged: {error}"))
}
