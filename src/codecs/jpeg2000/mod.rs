//! JPEG 2000, as a file (jp2) or a bare codestream (j2k), with `hayro-jpeg2000`.

mod cost;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_jpeg2000::{ColorSpace, DecodeError, DecodeSettings, DecoderContext, Image};

use super::{Color, Data, Format, Header, ImageFault, Pixels, Problem, bounds, broken};
use crate::value::{DType, problems, zeroed};

problems! {
    pub enum Jpeg2000Fault {
        Unexpected,
        Channels,
    }
}

pub fn header(bytes: &[u8]) -> Result<Header, Problem> {
    guarded(|| read_header(bytes))
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Problem> {
    guarded(|| read_pixels(bytes))
}

/// Runs the crate, which panics on some damaged files.
fn guarded<R>(read: impl FnOnce() -> Result<R, Problem>) -> Result<R, Problem> {
    let damaged = |_| Err(broken(Jpeg2000Fault::Unexpected));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(damaged)
}

fn read_header(bytes: &[u8]) -> Result<Header, Problem> {
    let image = open(bytes)?;
    let area = (image.height() as usize).saturating_mul(image.width() as usize);
    let samples = area.saturating_mul(color(&image).channels());
    let cost = cost::cost(bytes).unwrap_or_default();
    Ok(Header {
        format: Format::Jpeg2000,
        height: image.height() as usize,
        width: image.width() as usize,
        channels: color(&image).channels(),
        dtype: if image.original_bit_depth() > 8 { DType::U16 } else { DType::U8 },
        orientation: 1,
        scratch: scratch(&image, area, samples).saturating_add(cost.bytes),
        smallest: bounds::blank(samples).max(cost.smallest),
    })
}

fn read_pixels(bytes: &[u8]) -> Result<Pixels, Problem> {
    let image = open(bytes)?;
    let (height, width) = (image.height() as usize, image.width() as usize);
    let area = bounds::area(height, width)?;
    let color = color(&image);
    let wide = image.original_bit_depth() > 8;
    let samples = area * color.channels();
    let mut context = DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(undecoded)?;
    let planes = decoded.components();
    if planes.len() != color.channels() || planes.iter().any(|p| p.samples().len() != area) {
        return Err(broken(Jpeg2000Fault::Channels));
    }
    let depth = |plane: usize| planes[plane].bit_depth();
    let mut data = match wide {
        true => Data::U16(zeroed(samples)?),
        false => Data::U8(zeroed(samples)?),
    };
    match &mut data {
        Data::U16(out) => {
            for (n, plane) in planes.iter().enumerate() {
                let scale = full_scale(depth(n), 65535.0);
                let samples = plane.samples().iter();
                for (pixel, &sample) in out.chunks_exact_mut(planes.len()).zip(samples) {
                    pixel[n] = (sample * scale).round_ties_even() as u16;
                }
            }
        }
        Data::U8(out) => {
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

/// Memory for samples and coefficients, all floats, and for the result, in bytes.
fn scratch(image: &Image<'_>, area: usize, samples: usize) -> usize {
    let wide = image.original_bit_depth() > 8;
    // Reordering channels or resolving a palette needs a second copy.
    let planes = samples.saturating_mul(if wide { 8 + 2 } else { 8 + 1 });
    planes.saturating_add(area.saturating_mul(16))
}

/// The factor that scales samples of `bits` bits to the range of the type.
fn full_scale(bits: u8, most: f32) -> f32 {
    most / ((1u64 << bits.min(63)) - 1) as f32
}

fn open(bytes: &[u8]) -> Result<Image<'_>, Problem> {
    let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
    Image::new(bytes, &settings).map_err(undecoded)
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

fn undecoded(error: DecodeError) -> Problem {
    broken(ImageFault::Damaged { text: error.to_string() })
}
