//! How large an image may be before its claims are not believed.

use super::Broken;
use super::image::max_pixels;

/// The number of pixels, if there are any and not too many.
pub fn area(height: usize, width: usize) -> Result<usize, Broken> {
    match height.checked_mul(width) {
        Some(0) => Err(Broken(format!("has no pixels: it is {width}x{height}"))),
        Some(area) if area <= max_pixels() => Ok(area),
        _ => Err(Broken(format!(
            "claims {width}x{height} pixels, more than the limit of {}",
            max_pixels()
        ))),
    }
}

/// Refuses a size that so few bytes can't hold, before memory is taken for it.
///
/// `most` is how many pixels (or bytes of pixels) one byte of the file can stand for.
pub fn believable(size: usize, file: usize, most: usize) -> Result<(), Broken> {
    if size / most > file {
        return Err(Broken(format!("is too short for its size: it has {file} bytes")));
    }
    Ok(())
}
