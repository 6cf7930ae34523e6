//! How large an image may be before its claims are not believed.
//!
//! Three bounds hold for any file. It has at most [`max_pixels`]. All that is allocated to decode
//! it, the result included, takes at most [`max_bytes`]. And the file is long enough to hold what
//! it claims, as far as its format tells (`Header::smallest`).

use super::image::max_pixels;
use super::{Format, ImageFault, Problem, broken};
use crate::value::{self, Cause, Damage, is_available};

/// Pixels that are believed of any file where the format has no bound: a few bytes may stand for a
/// blank image of any size.
pub const BLANK: usize = 1 << 24;
/// Pixels beyond those that one byte may stand for.
const PIXELS_PER_BYTE: usize = 1 << 14;
/// Of what is stored plainly, a file that is cut off has more than this part; what has less lies.
pub const CUT: usize = 64;
/// From here on it is worth asking whether memory can be had.
const PROBED: usize = 1 << 20;
/// What should be left for all that is small.
const SPARE: usize = 4 << 20;

/// Bytes that decoding one image may take: four channels of 32-bit floats at the most pixels.
pub fn max_bytes() -> usize {
    max_pixels().saturating_mul(16)
}

/// The number of pixels, if there are any and not too many.
pub fn area(height: usize, width: usize) -> Result<usize, Problem> {
    match height.checked_mul(width) {
        Some(0) => Err(broken(ImageFault::NoPixels { height, width })),
        Some(area) if area <= max_pixels() => Ok(area),
        _ => Err(broken(ImageFault::TooManyPixels { height, width, limit: max_pixels() })),
    }
}

/// The length that a file of a format without bounds has at least, for so many samples.
pub fn blank(samples: usize) -> usize {
    if samples <= BLANK { 0 } else { samples / PIXELS_PER_BYTE }
}

/// The fault of an image that takes too many bytes to decode.
pub fn large(format: Format, height: usize, width: usize, bytes: usize) -> Cause {
    let limit = max_bytes();
    too_large(format, ImageFault::TooManyBytes { height, width, bytes, limit }.into())
}

/// The fault of an image that a limit forbids.
pub fn too_large(format: Format, problem: value::Problem) -> Cause {
    let problem = ImageFault::This { format: format.name(), problem }.into();
    Cause::Undecodable { kind: Damage::Large, problem }
}

/// Asks for memory and gives it back, where it is much, or where `beside` was taken before. Codecs
/// of others, and all code that needs a few bytes, end the process when there is no memory.
pub fn probe(bytes: usize, beside: usize) -> Result<(), Cause> {
    if bytes.saturating_add(beside) < PROBED {
        return Ok(());
    }
    if is_available(bytes.saturating_add(SPARE)) { Ok(()) } else { Err(Cause::Memory { bytes }) }
}
