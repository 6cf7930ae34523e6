//! Images of each format: whole, and a window of them, as many kinds of results.

use _core::codecs::{Format, Image, Output, Request, Window, sniff};
use _core::value::DType;

use crate::poison;

pub fn bmp(data: &[u8]) -> bool {
    image(data, Format::Bmp)
}

pub fn gif(data: &[u8]) -> bool {
    image(data, Format::Gif)
}

pub fn jpeg(data: &[u8]) -> bool {
    image(data, Format::Jpeg)
}

pub fn jpeg2000(data: &[u8]) -> bool {
    image(data, Format::Jpeg2000)
}

pub fn png(data: &[u8]) -> bool {
    image(data, Format::Png)
}

pub fn pnm(data: &[u8]) -> bool {
    image(data, Format::Pnm)
}

pub fn tiff(data: &[u8]) -> bool {
    image(data, Format::Tiff)
}

pub fn webp(data: &[u8]) -> bool {
    image(data, Format::WebP)
}

pub fn exif(data: &[u8]) -> bool {
    let found = _core::codecs::exif::orientation(data);
    let _ = found;
    true
}

const OUTPUTS: [Output; 5] =
    [Output::Rgb, Output::Bgr, Output::Gray, Output::YCbCr, Output::Any];
const DTYPES: [DType; 5] = [DType::U8, DType::U16, DType::I16, DType::F16, DType::F32];

fn image(data: &[u8], format: Format) -> bool {
    if sniff(data) != Some(format) {
        return false;
    }
    let whole = Request { output: Output::Rgb, dtype: DType::U8, upright: true, fast_dct: false };
    decode(data, &whole, |height, width| Window { y: 0, x: 0, height, width });
    // How else follows from the bytes, so that a file is all there is to an input.
    let mut pick = Pick::new(data);
    let request = Request {
        output: OUTPUTS[pick.below(OUTPUTS.len())],
        dtype: DTYPES[pick.below(DTYPES.len())],
        upright: pick.below(2) == 0,
        fast_dct: pick.below(4) == 0,
    };
    decode(data, &request, |height, width| {
        let (y, x) = (pick.below(height), pick.below(width));
        let window_height = 1 + pick.below(height - y);
        let window_width = 1 + pick.below(width - x);
        Window { y, x, height: window_height, width: window_width }
    });
    true
}

fn decode(data: &[u8], request: &Request, window: impl FnOnce(usize, usize) -> Window) {
    let Ok(image) = Image::open(data) else { return };
    let (height, width) = image.size(request.upright);
    let window = window(height, width);
    let pixel = image.channels(request.output) * request.dtype.size();
    let Some(length) = (window.height * window.width).checked_mul(pixel) else { return };
    poison::compare(length, |room| {
        Image::open(data).is_ok_and(|mut image| image.decode(request, window, room).is_ok())
    });
}

/// Numbers that follow from bytes.
struct Pick(u64);

impl Pick {
    fn new(data: &[u8]) -> Pick {
        let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Pick(data.iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}
