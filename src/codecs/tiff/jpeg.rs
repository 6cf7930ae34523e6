//! Strips and tiles that are JPEGs, with tables that they share.

use crate::codecs::image::Window;
use crate::codecs::jpeg::{Jpeg, Stored, Target};

const START: [u8; 2] = [0xff, 0xd8];
const END: [u8; 2] = [0xff, 0xd9];

/// Fills `out`, `height` rows of `width` pixels: gray with one channel, else red, green and blue.
/// `mixed` says that colors are stored as luma and chroma.
pub fn expand(
    tables: &[u8],
    bytes: &[u8],
    [height, width, channels]: [usize; 3],
    mixed: bool,
    out: &mut [u8],
) -> Result<(), ()> {
    let whole = join(tables, bytes, mixed);
    let mut jpeg = Jpeg::open(&whole).map_err(drop)?;
    let header = &jpeg.header;
    let target = match (header.stored, channels) {
        (Stored::Gray, 1) => Target::Gray,
        (Stored::Color, 3) => Target::Rgb,
        _ => return Err(()),
    };
    let fits = header.width == width && header.height >= height;
    if !fits || out.len() != height * width * channels {
        return Err(());
    }
    let window = Window { y: 0, x: 0, height, width };
    jpeg.decode(window, target, false, out).map_err(drop)
}

/// A JPEG of its own. Adobe's marker says what the colors are; TIFF says it in a tag.
fn join(tables: &[u8], bytes: &[u8], mixed: bool) -> Vec<u8> {
    let adobe = *b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0";
    let tables = tables.strip_prefix(&START).unwrap_or(tables);
    let tables = tables.strip_suffix(&END).unwrap_or(tables);
    let bytes = bytes.strip_prefix(&START).unwrap_or(bytes);
    [&START, &adobe[..15], &[u8::from(mixed)], tables, bytes].concat()
}
