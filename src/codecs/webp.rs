//! WebP, with libwebp, the reference implementation.

use std::mem::MaybeUninit;

use libwebp_sys::{
    VP8StatusCode, WEBP_CSP_MODE, WEBP_DECODER_ABI_VERSION, WebPBitstreamFeatures, WebPDecode,
    WebPDecoderConfig, WebPGetFeaturesInternal,
};

use super::{Color, Data, Format, Header, ImageFault, Pixels, Problem, bounds, broken, exif};
use crate::value::{Cause, DType, problems, zeroed};

problems! {
    pub enum WebPFault {
        LargeFrame,
        EndsBeforeFrame,
        EndsInFrame,
        EndsAfter { bytes: usize, size: usize },
        Feature,
        Damaged,
    }
}

const ANIMATION: u8 = 2;
const ALPHA: u8 = 16;

/// The relevant chunks of a file.
struct File<'a> {
    height: usize,
    width: usize,
    alpha: bool,
    orientation: u8,
    frame: Frame<'a>,
}

impl File<'_> {
    /// libwebp needs at most five bytes per pixel: four for colors, and one for alpha.
    fn scratch(&self) -> usize {
        let canvas = self.height.saturating_mul(self.width).saturating_mul(4);
        canvas.saturating_add(self.frame.height.saturating_mul(self.frame.width).saturating_mul(5))
    }
}

/// A compressed image and its position on the canvas.
struct Frame<'a> {
    left: usize,
    top: usize,
    height: usize,
    width: usize,
    bytes: &'a [u8],
}

pub fn header(bytes: &[u8]) -> Result<Header, Problem> {
    let file = open(bytes)?;
    Ok(Header {
        format: Format::WebP,
        height: file.height,
        width: file.width,
        channels: if file.alpha { 4 } else { 3 },
        dtype: DType::U8,
        orientation: file.orientation,
        scratch: file.scratch(),
        smallest: bounds::blank(file.height.saturating_mul(file.width)),
    })
}

pub fn decode(bytes: &[u8]) -> Result<Pixels, Problem> {
    let file = open(bytes)?;
    let area = bounds::area(file.height, file.width)?;
    let channels = if file.alpha { 4 } else { 3 };
    let Frame { left, top, height, width, bytes: frame } = file.frame;
    let fits = left + width <= file.width && top + height <= file.height;
    if !fits {
        return Err(broken(WebPFault::LargeFrame));
    }
    let mut data = zeroed(area * channels)?;
    let stride = file.width * channels;
    let start = top * stride + left * channels;
    read(frame, &mut data[start..], [height, width], stride, file.alpha).map_err(|status| {
        match status {
            VP8StatusCode::VP8_STATUS_OUT_OF_MEMORY => {
                Cause::Memory { bytes: file.scratch() }.into()
            }
            status => undecoded(status, bytes),
        }
    })?;
    let color = if file.alpha { Color::Rgba } else { Color::Rgb };
    Ok(Pixels { height: file.height, width: file.width, color, data: Data::U8(data) })
}

/// Decodes into rows that begin `stride` bytes apart.
fn read(
    bytes: &[u8],
    out: &mut [u8],
    [height, width]: [usize; 2],
    stride: usize,
    alpha: bool,
) -> Result<(), VP8StatusCode> {
    let row = width * if alpha { 4 } else { 3 };
    let found = features(bytes)?;
    let same = found.height as usize == height && found.width as usize == width;
    if !same || height == 0 || out.len() < (height - 1) * stride + row {
        return Err(VP8StatusCode::VP8_STATUS_BITSTREAM_ERROR);
    }
    let mut config =
        WebPDecoderConfig::new().map_err(|()| VP8StatusCode::VP8_STATUS_INVALID_PARAM)?;
    let mode = if alpha { WEBP_CSP_MODE::MODE_RGBA } else { WEBP_CSP_MODE::MODE_RGB };
    config.output.colorspace = mode;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out.as_mut_ptr();
    config.output.u.RGBA.stride = stride as i32;
    config.output.u.RGBA.size = out.len();
    // SAFETY: `bytes` is readable for its length, and `out` is writable for the given size; libwebp
    // checks, as was done above, that the rows fit.
    let status = unsafe { WebPDecode(bytes.as_ptr(), bytes.len(), &mut config) };
    if status == VP8StatusCode::VP8_STATUS_OK { Ok(()) } else { Err(status) }
}

fn features(bytes: &[u8]) -> Result<WebPBitstreamFeatures, VP8StatusCode> {
    let mut found = MaybeUninit::<WebPBitstreamFeatures>::zeroed();
    // SAFETY: `bytes` is readable for its length, and `found` is writable.
    let status = unsafe {
        WebPGetFeaturesInternal(
            bytes.as_ptr(),
            bytes.len(),
            found.as_mut_ptr(),
            WEBP_DECODER_ABI_VERSION as i32,
        )
    };
    // SAFETY: plain numbers, for which zeros are valid where nothing was written.
    let found = unsafe { found.assume_init() };
    if status == VP8StatusCode::VP8_STATUS_OK { Ok(found) } else { Err(status) }
}

/// Parses the chunks; a still image is one frame that covers the canvas.
fn open(bytes: &[u8]) -> Result<File<'_>, Problem> {
    let found = features(bytes).map_err(|status| undecoded(status, bytes))?;
    let mut file = File {
        height: found.height as usize,
        width: found.width as usize,
        alpha: found.has_alpha != 0,
        orientation: 1,
        frame: Frame {
            left: 0,
            top: 0,
            height: found.height as usize,
            width: found.width as usize,
            bytes,
        },
    };
    let Some(extended) = chunks(bytes).next().filter(|(name, _)| *name == b"VP8X") else {
        return Ok(file);
    };
    let flags = extended.1.first().copied().unwrap_or(0);
    if flags & ANIMATION != 0 {
        file.alpha = flags & ALPHA != 0;
        let (_, data) = chunks(bytes)
            .find(|(name, _)| *name == b"ANMF")
            .ok_or_else(|| broken(WebPFault::EndsBeforeFrame))?;
        let number = |at: usize| -> Option<usize> {
            let three = data.get(at..at + 3)?;
            Some(usize::from(three[0]) | usize::from(three[1]) << 8 | usize::from(three[2]) << 16)
        };
        file.frame = (|| {
            Some(Frame {
                left: 2 * number(0)?,
                top: 2 * number(3)?,
                width: number(6)? + 1,
                height: number(9)? + 1,
                bytes: data.get(16..)?,
            })
        })()
        .ok_or_else(|| broken(WebPFault::EndsInFrame))?;
    }
    if let Some((_, data)) = chunks(bytes).find(|(name, _)| *name == b"EXIF") {
        file.orientation = exif::orientation(data.strip_prefix(b"Exif\0\0").unwrap_or(data));
    }
    Ok(file)
}

/// Names and contents of the chunks, up to the end of the bytes.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = bytes.get(12..).filter(|_| bytes.starts_with(b"RIFF")).unwrap_or(&[]);
    std::iter::from_fn(move || {
        let (name, after) = rest.split_at_checked(4)?;
        let (size, after) = after.split_first_chunk()?;
        let size = (u32::from_le_bytes(*size) as usize).min(after.len());
        let (data, after) = after.split_at(size);
        rest = after.get(size % 2..).unwrap_or(&[]);
        Some((name, data))
    })
}

fn undecoded(status: VP8StatusCode, bytes: &[u8]) -> Problem {
    use VP8StatusCode::*;
    let size = bytes.get(4..8).map(|size| u32::from_le_bytes([size[0], size[1], size[2], size[3]]));
    let size = size.map_or(0, |size| size as usize + 8);
    match status {
        _ if bytes.starts_with(b"RIFF") && size > bytes.len() => {
            broken(WebPFault::EndsAfter { bytes: bytes.len(), size })
        }
        VP8_STATUS_NOT_ENOUGH_DATA | VP8_STATUS_SUSPENDED => broken(ImageFault::EndsEarly),
        VP8_STATUS_OUT_OF_MEMORY => Cause::Memory { bytes: bytes.len() }.into(),
        VP8_STATUS_UNSUPPORTED_FEATURE => broken(WebPFault::Feature),
        _ => broken(WebPFault::Damaged),
    }
}
