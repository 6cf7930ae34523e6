//! JPEG-compressed strips and tiles, with shared tables.

use super::TiffFault;
use crate::codecs::image::Window;
use crate::codecs::jpeg::{Jpeg, Stored, Target};
use crate::value::{Cause, Damage, append, with_room};

const START: [u8; 2] = [0xff, 0xd8];
const END: [u8; 2] = [0xff, 0xd9];

/// Decodes `height` rows of `width` pixels to `out`: gray for one channel, otherwise RGB. The JPEG
/// has at most `tallest` rows. `mixed` means that colors are stored as luma and chroma.
pub fn expand(
    tables: &[u8],
    bytes: &[u8],
    [height, width, channels]: [usize; 3],
    tallest: usize,
    mixed: bool,
    out: &mut [u8],
) -> Result<(), Cause> {
    let unfit = || {
        let problem = TiffFault::Jpeg.into();
        Cause::Undecodable { kind: Damage::Broken, problem }
    };
    let whole = join(tables, bytes, mixed)?;
    let mut jpeg = Jpeg::open(&whole)?;
    let header = &jpeg.header;
    let target = match (header.stored, channels) {
        (Stored::Gray, 1) => Target::Gray,
        (Stored::Color, 3) => Target::Rgb,
        _ => return Err(unfit()),
    };
    let fits = header.width == width && (height..=tallest).contains(&header.height);
    if !fits || out.len() != height * width * channels {
        return Err(unfit());
    }
    let window = Window { y: 0, x: 0, height, width };
    jpeg.decode(window, target, false, out)
}

/// A standalone JPEG. An Adobe marker specifies the color space, which TIFF has in a tag.
fn join(tables: &[u8], bytes: &[u8], mixed: bool) -> Result<Vec<u8>, Cause> {
    let adobe = *b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0";
    let tables = tables.strip_prefix(&START).unwrap_or(tables);
    let tables = tables.strip_suffix(&END).unwrap_or(tables);
    let bytes = bytes.strip_prefix(&START).unwrap_or(bytes);
    let mut whole = with_room(32 + tables.len() + bytes.len())?;
    for part in [&START, &adobe[..15], &[u8::from(mixed)], tables, bytes] {
        append(&mut whole, part)?;
    }
    Ok(whole)
}
