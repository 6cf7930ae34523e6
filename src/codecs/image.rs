//! Decodes an image of any format to the requested pixels.

use std::sync::OnceLock;

use super::Problem::{self, Broken};
use super::convert::{Rows, Stored, write};
use super::jpeg::{self, Jpeg};
use super::{Color, Format, Header, ImageFault, Pixels, broken, sniff};
use super::{bmp, bounds, budget, gif, jpeg2000, png, pnm, tiff, webp};
use crate::value::{Cause, DType, Damage, zeroed};

/// A part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub y: usize,
    pub x: usize,
    pub height: usize,
    pub width: usize,
}

impl Window {
    pub fn is_inside(&self, height: usize, width: usize) -> bool {
        self.y.checked_add(self.height).is_some_and(|end| end <= height)
            && self.x.checked_add(self.width).is_some_and(|end| end <= width)
    }

    /// The position of this window of the upright image in the stored one, which has `height` x
    /// `width` pixels and this `orientation`.
    fn stored(&self, orientation: u8, height: usize, width: usize) -> Window {
        let [along, across] = [(self.y, self.height), (self.x, self.width)];
        // From 5 on, rows and columns are swapped.
        let (rows, columns) = if orientation >= 5 { (across, along) } else { (along, across) };
        let (flip_rows, flip_columns) = flips(orientation);
        let from_end = |(start, length): (usize, usize), all: usize| (all - start - length, length);
        let (y, window_height) = if flip_rows { from_end(rows, height) } else { rows };
        let (x, window_width) = if flip_columns { from_end(columns, width) } else { columns };
        Window { y, x, height: window_height, width: window_width }
    }
}

/// Whether the order of rows and of columns is reversed, by EXIF orientation.
pub fn flips(orientation: u8) -> (bool, bool) {
    match orientation {
        2 => (false, true),
        3 => (true, true),
        4 => (true, false),
        6 => (true, false),
        7 => (true, true),
        8 => (false, true),
        _ => (false, false),
    }
}

/// The color space of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Rgb,
    Bgr,
    Gray,
    YCbCr,
    /// As stored.
    Any,
}

/// The requested form of an image.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub output: Output,
    pub dtype: DType,
    /// Whether to apply the EXIF orientation.
    pub upright: bool,
    /// Whether JPEG may be decoded with a faster, less accurate DCT.
    pub fast_dct: bool,
    /// Height and width that a JPEG may be scaled down to while it is decoded, as it is wanted:
    /// upright or not. Neither extent becomes smaller.
    pub min_size: Option<[usize; 2]>,
}

/// The bytes of an image whose header has been read.
pub struct Image<'a> {
    bytes: &'a [u8],
    header: Header,
    way: Way<'a>,
}

enum Way<'a> {
    Jpeg(Jpeg<'a>),
    Other(Codec),
}

/// Limit on the pixels of an image, against headers with absurd sizes; PENSTOCK_MAX_PIXELS changes
/// it.
pub fn max_pixels() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let given = std::env::var("PENSTOCK_MAX_PIXELS").ok();
        given.and_then(|text| text.trim().parse().ok()).unwrap_or(1 << 28)
    })
}

fn fault(format: Format) -> impl FnOnce(Problem) -> Cause {
    move |problem| match problem {
        Broken(problem) => Cause::Undecodable {
            kind: Damage::Broken,
            problem: ImageFault::This { format: format.name(), problem }.into(),
        },
        Problem::Other(cause) => cause,
    }
}

impl<'a> Image<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Image<'a>, Cause> {
        let Some(format) = sniff(bytes) else { return Err(unknown(bytes)) };
        // Codecs may copy metadata.
        bounds::probe(bytes.len(), 0)?;
        let (header, way) = if format == Format::Jpeg {
            let jpeg = Jpeg::open(bytes)?;
            let channels = match jpeg.header.stored {
                jpeg::Stored::Gray => 1,
                jpeg::Stored::Color => 3,
                jpeg::Stored::Cmyk { .. } => 4,
            };
            let jpeg::Header { height, width, orientation, .. } = jpeg.header;
            let header = Header {
                format,
                height,
                width,
                channels,
                dtype: DType::U8,
                orientation,
                // `Jpeg` has its own limits.
                scratch: 0,
                smallest: 0,
            };
            (header, Way::Jpeg(jpeg))
        } else {
            let missing = || broken(ImageFault::NotBuilt);
            let codec = codec(format).ok_or_else(missing).map_err(fault(format))?;
            let mut header = codec.0(bytes).map_err(fault(format))?;
            if !(1..=8).contains(&header.orientation) {
                header.orientation = 1;
            }
            (header, Way::Other(codec))
        };
        let Header { height, width, .. } = header;
        if height == 0 || width == 0 {
            return Err(fault(format)(broken(ImageFault::NoPixels { height, width })));
        }
        if height.checked_mul(width).is_none_or(|pixels| pixels > max_pixels()) {
            let limit = max_pixels();
            let problem = ImageFault::TooManyPixels { height, width, limit }.into();
            return Err(bounds::too_large(format, problem));
        }
        Ok(Image { bytes, header, way })
    }

    /// Height and width of the result.
    pub fn size(&self, upright: bool) -> (usize, usize) {
        let Header { height, width, orientation, .. } = self.header;
        if upright && orientation >= 5 { (width, height) } else { (height, width) }
    }

    /// Scales a JPEG down as far as a window of it keeps the size that is asked for, and returns
    /// the window at that scale. From then on, the image has the scaled size.
    pub fn reduce(&mut self, request: &Request, window: Window) -> Window {
        let (Some([height, width]), Way::Jpeg(jpeg)) = (request.min_size, &mut self.way) else {
            return window;
        };
        let enough = |&scale: &usize| {
            jpeg::scaled(window.height, scale) >= height
                && jpeg::scaled(window.width, scale) >= width
        };
        jpeg.set_scale((1..jpeg::EIGHTHS).find(enough).unwrap_or(jpeg::EIGHTHS));
        let scale = jpeg.scale();
        self.header.height = jpeg::scaled(self.header.height, scale);
        self.header.width = jpeg::scaled(self.header.width, scale);
        let (all_height, all_width) = self.size(request.upright);
        let along = |start: usize, length: usize, extent: usize| {
            let length = jpeg::scaled(length, scale);
            ((start * scale / jpeg::EIGHTHS).min(extent - length), length)
        };
        let (y, height) = along(window.y, window.height, all_height);
        let (x, width) = along(window.x, window.width, all_width);
        Window { y, x, height, width }
    }

    pub fn channels(&self, output: Output) -> usize {
        match output {
            Output::Gray => 1,
            Output::Any => self.header.channels,
            _ => 3,
        }
    }

    /// Before anything is allocated: refuses an image if the file is too short for it, or if it
    /// needs more memory than allowed or available.
    pub fn admit(&self, request: &Request, window: Window) -> Result<(), Cause> {
        let Header { format, height, width, smallest, .. } = self.header;
        let length = self.bytes.len();
        if length < smallest {
            return Err(fault(format)(broken(ImageFault::TooShort { length })));
        }
        let result = [window.width, self.channels(request.output), request.dtype.size()]
            .into_iter()
            .fold(window.height, usize::saturating_mul);
        let bytes = result.saturating_add(self.scratch(request, window));
        match bytes <= bounds::max_bytes() {
            true => bounds::probe(bytes, 0),
            false => Err(bounds::large(format, height, width, bytes)),
        }
    }

    /// Scratch memory for decoding this window, in bytes.
    fn scratch(&self, request: &Request, window: Window) -> usize {
        let Way::Jpeg(jpeg) = &self.way else { return self.header.scratch };
        let orientation = self.orientation(request);
        let (target, direct) = jpeg_target(jpeg, request, orientation);
        let stored = window.stored(orientation, self.header.height, self.header.width);
        let pixels = if direct { 0 } else { window.height * window.width };
        jpeg.scratch(stored, target) + pixels * target.channels()
    }

    fn orientation(&self, request: &Request) -> u8 {
        if request.upright { self.header.orientation } else { 1 }
    }

    /// Decodes a window to `dst`, which has exactly its size; `size` is that of the whole result.
    pub fn decode(
        &mut self,
        request: &Request,
        window: Window,
        dst: &mut [u8],
    ) -> Result<(), Cause> {
        let (height, width) = self.size(request.upright);
        assert!(window.is_inside(height, width));
        let pixels = window.height * window.width;
        assert_eq!(dst.len(), pixels * self.channels(request.output) * request.dtype.size());
        if dst.is_empty() {
            return Ok(());
        }
        let orientation = self.orientation(request);
        let scratch = self.scratch(request, window);
        let _share = budget::share(scratch);
        bounds::probe(scratch, dst.len())?;
        let window = window.stored(orientation, self.header.height, self.header.width);
        let (_, decode) = match &mut self.way {
            Way::Jpeg(jpeg) => return decode_jpeg(jpeg, request, orientation, window, dst),
            Way::Other(codec) => codec,
        };
        let format = self.header.format;
        let decoded = decode(self.bytes).map_err(fault(format))?;
        let rows = Rows::of(&decoded.data);
        let Pixels { height, width, color, .. } = decoded;
        let as_claimed = (height, width) == (self.header.height, self.header.width)
            && color.channels() == self.header.channels.max(1)
            && height * width * color.channels() == rows.len();
        if !as_claimed {
            return Err(fault(format)(broken(ImageFault::Mismatch)));
        }
        let stored = Stored { height, width, color, rows };
        write(&stored, window, orientation, request, dst)
    }
}

/// What libjpeg decodes to, and whether that is the final result.
fn jpeg_target(jpeg: &Jpeg<'_>, request: &Request, orientation: u8) -> (jpeg::Target, bool) {
    use jpeg::{Stored as Kept, Target};
    let target = match (jpeg.header.stored, request.output) {
        (Kept::Cmyk { .. }, _) => Target::Cmyk,
        (Kept::Gray, Output::Gray | Output::Any) => Target::Gray,
        // Lossless JPEGs aren't stored as luma and chroma.
        (_, Output::Gray) if !jpeg.header.lossless => Target::Gray,
        (_, Output::Bgr) => Target::Bgr,
        _ => Target::Rgb,
    };
    let same = match request.output {
        Output::Gray => target == Target::Gray,
        Output::YCbCr => false,
        _ => target != Target::Cmyk,
    };
    let direct = same && orientation == 1 && request.dtype == DType::U8;
    // Further conversions start from RGB, not BGR.
    (if target == Target::Bgr && !direct { Target::Rgb } else { target }, direct)
}

/// Decodes a window of the stored image, entirely in libjpeg if possible.
fn decode_jpeg(
    jpeg: &mut Jpeg<'_>,
    request: &Request,
    orientation: u8,
    window: Window,
    dst: &mut [u8],
) -> Result<(), Cause> {
    use jpeg::{Stored as Kept, Target};
    let stored = jpeg.header.stored;
    let (target, direct) = jpeg_target(jpeg, request, orientation);
    if direct {
        return jpeg.decode(window, target, request.fast_dct, dst);
    }
    let mut scratch = zeroed(window.height * window.width * target.channels())?;
    jpeg.decode(window, target, request.fast_dct, &mut scratch)?;
    let color = match (target, stored) {
        (Target::Gray, _) => Color::Gray,
        (Target::Cmyk, Kept::Cmyk { inverted }) if request.output == Output::Any => {
            // Amounts of ink are returned, even if they are stored inverted.
            if inverted {
                scratch.iter_mut().for_each(|ink| *ink = 255 - *ink);
            }
            Color::Other(4)
        }
        (Target::Cmyk, kept) => {
            jpeg::cmyk_to_rgb(&mut scratch, kept == Kept::Cmyk { inverted: true });
            scratch.truncate(window.height * window.width * 3);
            Color::Rgb
        }
        _ => Color::Rgb,
    };
    let rows = Rows::U8(&scratch);
    let stored = Stored { height: window.height, width: window.width, color, rows };
    let all = Window { y: 0, x: 0, ..window };
    write(&stored, all, orientation, request, dst)
}

fn unknown(bytes: &[u8]) -> Cause {
    let fault = if bytes.is_empty() {
        ImageFault::Empty
    } else {
        let formats: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let start: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        ImageFault::UnknownFormat { formats: formats.join(", "), start: start.join(" ") }
    };
    Cause::Undecodable { kind: Damage::Unknown, problem: fault.into() }
}

/// The functions that read a format's header and its pixels.
type Codec = (fn(&[u8]) -> Result<Header, Problem>, fn(&[u8]) -> Result<Pixels, Problem>);

/// Codecs of all formats but JPEG, which is handled separately.
fn codec(format: Format) -> Option<Codec> {
    match format {
        Format::Bmp => Some((bmp::header, bmp::decode)),
        Format::Gif => Some((gif::header, gif::decode)),
        Format::Jpeg => None,
        Format::Jpeg2000 => Some((jpeg2000::header, jpeg2000::decode)),
        Format::Png => Some((png::header, png::decode)),
        Format::Pnm => Some((pnm::header, pnm::decode)),
        Format::Tiff => Some((tiff::header, tiff::decode)),
        Format::WebP => Some((webp::header, webp::decode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_turned_images_are_found_in_what_is_stored() {
        // A 2 x 3 image, stored with each orientation; the window is the upright top left pixel.
        let corner = Window { y: 0, x: 0, height: 1, width: 1 };
        let places = [(0, 0), (0, 2), (1, 2), (1, 0), (0, 0), (1, 0), (1, 2), (0, 2)];
        for (orientation, place) in (1..=8).zip(places) {
            let stored = corner.stored(orientation, 2, 3);
            assert_eq!((stored.y, stored.x), place, "orientation {orientation}");
        }
    }
}
