//! Limits on what a header may claim.
//!
//! Three limits hold for any file. It has at most [`max_pixels`]. Decoding allocates at most
//! [`max_bytes`], including the result. And the file is long enough for what it claims, as far as
//! its format allows a bound (`Header::smallest`).

use super::image::max_pixels;
use super::{Format, ImageFault, Problem, broken};
use crate::value::{self, Cause, Damage, is_available};

/// Pixels that any file may claim if its format allows no bound: a blank image of any size can
/// compress to a few bytes.
pub const BLANK: usize = 1 << 24;
/// Beyond [`BLANK`], pixels per byte of the file.
const PIXELS_PER_BYTE: usize = 1 << 14;
/// A file of uncompressed pixels may be truncated, but if less than one part in this many is there,
/// the header is considered wrong.
pub const CUT: usize = 64;
/// Smaller allocations are not checked in advance.
const PROBED: usize = 1 << 20;
/// Memory to leave for small allocations.
const SPARE: usize = 4 << 20;

/// Limit on the memory for decoding one image: four channels of 32-bit floats at [`max_pixels`].
pub fn max_bytes() -> usize {
    max_pixels().saturating_mul(16)
}

/// The number of pixels, which must be between 1 and the limit.
pub fn area(height: usize, width: usize) -> Result<usize, Problem> {
    match height.checked_mul(width) {
        Some(0) => Err(broken(ImageFault::NoPixels { height, width })),
        Some(area) if area <= max_pixels() => Ok(area),
        _ => Err(broken(ImageFault::TooManyPixels { height, width, limit: max_pixels() })),
    }
}

/// The least size of a file with this many samples, for formats that allow no bound.
pub fn blank(samples: usize) -> usize {
    if samples <= BLANK { 0 } else { samples / PIXELS_PER_BYTE }
}

/// The fault of an image that needs too much memory to decode.
pub fn large(format: Format, height: usize, width: usize, bytes: usize) -> Cause {
    let limit = max_bytes();
    too_large(format, ImageFault::TooManyBytes { height, width, bytes, limit }.into())
}

/// The fault of an image that exceeds a limit.
pub fn too_large(format: Format, problem: value::Problem) -> Cause {
    let problem = ImageFault::This { format: format.name(), problem }.into();
    Cause::Undecodable { kind: Damage::Large, problem }
}

/// Checks that memory is available, by allocating and freeing it. `beside` was allocated already;
/// small amounts are not checked. Third-party codecs, and small allocations anywhere, abort the
/// process when memory runs out.
pub fn probe(bytes: usize, beside: usize) -> Result<(), Cause> {
    if bytes.saturating_add(beside) < PROBED {
        return Ok(());
    }
    if is_available(bytes.saturating_add(SPARE)) { Ok(()) } else { Err(Cause::Memory { bytes }) }
}
