//! Resampling of images at arbitrary coordinates.
//!
//! Coordinates are continuous: the first pixel covers 0 to 1, and its center is at 0.5.

use half::{bf16, f16};

use crate::kernels::Result;
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::warp::Interpolation;
use crate::value::{Bool, Element, zeroed};

/// An image with interleaved channels.
#[derive(Clone, Copy)]
pub struct Image<'a, T> {
    pub pixels: &'a [T],
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

/// Maps output pixels to source coordinates. Called once per row through `dyn`, so that the
/// sampling code is compiled only once for all maps.
pub trait Places {
    /// Writes the source coordinates of row `y`.
    fn row(&self, y: usize, xs: &mut [f64], ys: &mut [f64]);
}

/// A 2 x 3 matrix: one row for x, one for y.
pub struct Affine(pub [[f64; 3]; 2]);

impl Affine {
    /// Rotation about the center, counter-clockwise as displayed (the y axis points down).
    pub fn rotation(sine: f64, cosine: f64, height: usize, width: usize) -> Affine {
        let (x, y) = (width as f64 / 2.0, height as f64 / 2.0);
        Affine([
            [cosine, -sine, x - cosine * x + sine * y],
            [sine, cosine, y - sine * x - cosine * y],
        ])
    }
}

impl Places for Affine {
    fn row(&self, y: usize, xs: &mut [f64], ys: &mut [f64]) {
        let y = y as f64 + 0.5;
        vectorized!({
            for ([a, b, c], places) in self.0.into_iter().zip([xs, ys]) {
                let start = b * y + c;
                for (i, place) in places.iter_mut().enumerate() {
                    *place = a * (i as u32 as f64 + 0.5) + start;
                }
            }
        });
    }
}

/// An element type that can be interpolated.
pub trait Pixel: Element + Default {
    /// Bilinear interpolation of four pixels, upper row first.
    fn between(four: [Self; 4], x: f64, y: f64) -> Self;

    /// Samples a row with bilinear interpolation; `C` is the number of channels, or 0 for any.
    #[inline(always)]
    fn linear_row<const C: usize>(
        image: &Image<'_, Self>,
        xs: &[f64],
        ys: &[f64],
        fill: &[Self],
        out: &mut [Self],
    ) {
        linear_values::<Self, C>(image, xs, ys, fill, out);
    }

    /// Rounds to the nearest value of the type.
    fn nearest_to(x: f64) -> Self;
}

macro_rules! pixels {
    ($($float:ty: $($type:ty $({ $($more:tt)* })?)*;)*) => {
        $($(
            impl Pixel for $type {
                #[inline(always)]
                fn between(four: [$type; 4], x: f64, y: f64) -> $type {
                    let [a, b, c, d] = four.map(
                        |x| Convert::<$float>::convert(x),
                    );
                    let (x, y) = (x as $float, y as $float);
                    let (upper, lower) = (a + (b - a) * x, c + (d - c) * x);
                    Convert::<$type>::convert(upper + (lower - upper) * y)
                }

                fn nearest_to(x: f64) -> $type {
                    x.convert()
                }

                $($($more)*)?
            }
        )*)*
    };
}
pixels! {
    f32: Bool i8 i16 u16 f16 bf16 f32
        u8 {
            #[inline(always)]
            fn linear_row<const C: usize>(
                image: &Image<'_, u8>,
                xs: &[f64],
                ys: &[f64],
                fill: &[u8],
                out: &mut [u8],
            ) {
                // Larger images do not fit the 32-bit coordinates of `linear_bytes`.
                match image.width.max(image.height) < 1 << 30 {
                    true => linear_bytes::<C>(image, xs, ys, fill, out),
                    false => linear_values::<u8, C>(image, xs, ys, fill, out),
                }
            }
        };
    f64: i32 i64 u32 u64 f64;
}

/// Resamples into an image of the same size; pixels from outside get the color `fill`.
pub fn sample<T: Pixel>(
    image: Image<'_, T>,
    places: &dyn Places,
    interpolation: Interpolation,
    fill: &[T],
    out: &mut [T],
) -> Result<()> {
    let mut rows = zeroed::<f64>(2 * image.width)?;
    let (xs, ys) = rows.split_at_mut(image.width);
    vectorized!(match (interpolation, image.channels) {
        (Interpolation::Nearest, 1) => nearest::<T, 1>(image, places, fill, out, xs, ys),
        (Interpolation::Nearest, 3) => nearest::<T, 3>(image, places, fill, out, xs, ys),
        (Interpolation::Nearest, _) => nearest::<T, 0>(image, places, fill, out, xs, ys),
        (Interpolation::Linear, 1) => linear::<T, 1>(image, places, fill, out, xs, ys),
        (Interpolation::Linear, 3) => linear::<T, 3>(image, places, fill, out, xs, ys),
        (Interpolation::Linear, _) => linear::<T, 0>(image, places, fill, out, xs, ys),
    });
    Ok(())
}

/// `C` is the number of channels, or 0 for any.
#[inline(always)]
fn nearest<T: Pixel, const C: usize>(
    image: Image<'_, T>,
    places: &dyn Places,
    fill: &[T],
    out: &mut [T],
    xs: &mut [f64],
    ys: &mut [f64],
) {
    let c = if C == 0 { image.channels } else { C };
    let (width, height) = (image.width as f64, image.height as f64);
    for (y, row) in out.chunks_exact_mut(image.width * c).enumerate() {
        places.row(y, xs, ys);
        // Pixel indices, or -1 outside. Doubles hold them exactly.
        for (x, y) in xs.iter_mut().zip(&*ys) {
            let inside = (*x >= 0.0) & (*x < width) & (*y >= 0.0) & (*y < height);
            let number = y.floor() * width + x.floor();
            *x = if inside { number } else { -1.0 };
        }
        for (out, &number) in row.chunks_exact_mut(c).zip(&*xs) {
            let from = match number >= 0.0 {
                true => &image.pixels[number as usize * c..][..c],
                false => &fill[..c],
            };
            out.copy_from_slice(from);
        }
    }
}

#[inline(always)]
fn linear<T: Pixel, const C: usize>(
    image: Image<'_, T>,
    places: &dyn Places,
    fill: &[T],
    out: &mut [T],
    xs: &mut [f64],
    ys: &mut [f64],
) {
    for (y, row) in out.chunks_exact_mut(image.width * image.channels).enumerate() {
        places.row(y, xs, ys);
        T::linear_row::<C>(&image, xs, ys, fill, row);
    }
}

#[inline(always)]
fn linear_values<T: Pixel, const C: usize>(
    image: &Image<'_, T>,
    xs: &[f64],
    ys: &[f64],
    fill: &[T],
    out: &mut [T],
) {
    let c = if C == 0 { image.channels } else { C };
    let (width, height) = (image.width as f64, image.height as f64);
    for ((out, &x), &y) in out.chunks_exact_mut(c).zip(xs).zip(ys) {
        // Relative to pixel centers.
        let (x, y) = (x - 0.5, y - 0.5);
        let (left, upper) = (x.floor(), y.floor());
        let (x, y) = (x - left, y - upper);
        let inside = (left >= 0.0) & (left + 1.0 < width) & (upper >= 0.0) & (upper + 1.0 < height);
        if !inside {
            between_pixels(image, [left, upper], [x, y], fill, out);
            continue;
        }
        let at = (upper as usize * image.width + left as usize) * c;
        let (above, below) = (&image.pixels[at..], &image.pixels[at + image.width * c..]);
        let (above, below) = (&above[..2 * c], &below[..2 * c]);
        for (k, out) in out.iter_mut().enumerate() {
            *out = T::between([above[k], above[k + c], below[k], below[k + c]], x, y);
        }
    }
}

/// Bilinear interpolation of four pixels, the first at `left` and `upper`. Any of them may be
/// outside.
fn between_pixels<T: Pixel>(
    image: &Image<'_, T>,
    [left, upper]: [f64; 2],
    [x, y]: [f64; 2],
    fill: &[T],
    out: &mut [T],
) {
    let (width, height, c) = (image.width as f64, image.height as f64, image.channels);
    if !(left >= -1.0 && left < width && upper >= -1.0 && upper < height) {
        out.copy_from_slice(&fill[..c]);
        return;
    }
    let pixel = |x: f64, y: f64| match (0.0..width).contains(&x) && (0.0..height).contains(&y) {
        true => &image.pixels[(y as usize * image.width + x as usize) * c..][..c],
        false => &fill[..c],
    };
    let upper_two = [pixel(left, upper), pixel(left + 1.0, upper)];
    let lower_two = [pixel(left, upper + 1.0), pixel(left + 1.0, upper + 1.0)];
    for (k, out) in out.iter_mut().enumerate() {
        let four = [upper_two[0][k], upper_two[1][k], lower_two[0][k], lower_two[1][k]];
        *out = T::between(four, x, y);
    }
}

/// Fractional bits of the fixed-point weights.
const BITS: u32 = 11;
/// Pixels processed at a time.
const BLOCK: usize = 64;

/// Like `linear_values`, in fixed-point arithmetic.
#[inline(always)]
fn linear_bytes<const C: usize>(
    image: &Image<'_, u8>,
    xs: &[f64],
    ys: &[f64],
    fill: &[u8],
    out: &mut [u8],
) {
    let c = if C == 0 { image.channels } else { C };
    let row = image.width * c;
    let (last_x, last_y) = (image.width as u32 - 1, image.height as u32 - 1);
    let mut places = [[(0_i32, 0_i32); BLOCK]; 2];
    let blocks = xs.chunks(BLOCK).zip(ys.chunks(BLOCK));
    for (out, (xs, ys)) in out.chunks_mut(BLOCK * c).zip(blocks) {
        let sides = [image.width as f64, image.height as f64];
        for ((places, given), side) in places.iter_mut().zip([xs, ys]).zip(sides) {
            for (place, &x) in places.iter_mut().zip(given) {
                // Clamp far-away coordinates and NaN so that the casts below are defined.
                let x = x - 0.5;
                let x = if x > -2.0 { x } else { -2.0 };
                let x = if x < side { x } else { side };
                // SAFETY: x + 2 is between 0 and 2^30 + 2, which fits an i32.
                let whole = unsafe { (x + 2.0).to_int_unchecked::<i32>() } - 2;
                let part = (x - f64::from(whole)) * f64::from(1 << BITS) + 0.5;
                // SAFETY: the fractional part is between 0 and 1, so this is at most 2^BITS + 0.5.
                *place = (whole, unsafe { part.to_int_unchecked::<i32>() });
            }
        }
        let [across, down] = &places;
        for ((out, &(left, x)), &(upper, y)) in out.chunks_exact_mut(c).zip(across).zip(down) {
            // Negative coordinates wrap to large values and fail the test.
            if (left as u32) < last_x && (upper as u32) < last_y {
                let at = (upper as usize * image.width + left as usize) * c;
                let (above, below) =
                    (&image.pixels[at..][..2 * c], &image.pixels[at + row..][..2 * c]);
                for (k, out) in out.iter_mut().enumerate() {
                    let [a, b, c, d] =
                        [above[k], above[k + c], below[k], below[k + c]].map(i32::from);
                    let (upper, lower) = ((a << BITS) + (b - a) * x, (c << BITS) + (d - c) * x);
                    let value = (upper << BITS) + (lower - upper) * y;
                    *out = ((value + (1 << (2 * BITS - 1))) >> (2 * BITS)) as u8;
                }
            } else {
                let parts = [x, y].map(|part| f64::from(part) / f64::from(1 << BITS));
                between_pixels(image, [left, upper].map(f64::from), parts, fill, out);
            }
        }
    }
}

/// Shifts each row by a whole number of pixels, which may differ between rows.
pub fn shift_rows<T: Element>(
    image: Image<'_, T>,
    shift: impl Fn(usize) -> f64,
    fill: &[T],
    out: &mut [T],
) {
    let row = image.width * image.channels;
    for (y, (out, src)) in out.chunks_exact_mut(row).zip(image.pixels.chunks_exact(row)).enumerate()
    {
        shift_row(src, shift(y), fill, out);
    }
}

/// Shifts a row: output pixel `i` is pixel `i + by` of `src`.
fn shift_row<T: Element>(src: &[T], by: f64, fill: &[T], out: &mut [T]) {
    let c = fill.len();
    let width = (out.len() / c) as f64;
    // Beyond the width, everything comes from outside.
    let by = by.clamp(-width, width) as isize * c as isize;
    let (lost, kept) = (by.unsigned_abs(), out.len() - by.unsigned_abs());
    let outside = if by >= 0 {
        out[..kept].copy_from_slice(&src[lost..]);
        &mut out[kept..]
    } else {
        out[lost..].copy_from_slice(&src[..kept]);
        &mut out[..lost]
    };
    outside.chunks_exact_mut(c).for_each(|pixel| pixel.copy_from_slice(fill));
}

/// Shifts each column by a whole number of pixels.
pub fn shift_columns<T: Element>(
    image: Image<'_, T>,
    shift: impl Fn(usize) -> f64,
    fill: &[T],
    out: &mut [T],
) -> Result<()> {
    let (c, row) = (image.channels, image.width * image.channels);
    // Runs of adjacent columns with the same shift: end and shift.
    let mut runs: Vec<(usize, f64)> = crate::value::with_room(image.width)?;
    for x in 0..image.width {
        let by = shift(x);
        match runs.last_mut() {
            Some((end, last)) if *last == by => *end = x + 1,
            _ => runs.push((x + 1, by)),
        }
    }
    for (y, out) in out.chunks_exact_mut(row).enumerate() {
        let mut start = 0;
        for &(end, by) in &runs {
            let from = y as f64 + by;
            let out = &mut out[start * c..end * c];
            if (0.0..image.height as f64).contains(&from) {
                let src = &image.pixels[from as usize * row..][..row];
                out.copy_from_slice(&src[start * c..end * c]);
            } else {
                out.chunks_exact_mut(c).for_each(|pixel| pixel.copy_from_slice(fill));
            }
            start = end;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_match_nearest_sampling() {
        let (height, width, channels) = (9, 13, 3);
        let pixels: Vec<u8> = (0..height * width * channels).map(|i| (i * 7 % 253) as u8).collect();
        let image = Image { pixels: &pixels, height, width, channels };
        let fill = [1, 2, 3];
        let (mut found, mut expected) = (vec![0; pixels.len()], vec![0; pixels.len()]);
        for factor in [0.0, 0.3, -0.3, 1.7, -40.0, 1e30] {
            let rows = Affine([[1.0, factor, 0.0], [0.0, 1.0, 0.0]]);
            sample(image, &rows, Interpolation::Nearest, &fill, &mut expected).unwrap();
            shift_rows(image, |y| (0.5 + factor * (y as f64 + 0.5)).floor(), &fill, &mut found);
            assert!(found == expected, "rows, {factor}");
            let columns = Affine([[1.0, 0.0, 0.0], [factor, 1.0, 0.0]]);
            sample(image, &columns, Interpolation::Nearest, &fill, &mut expected).unwrap();
            let shift = |x: usize| (0.5 + factor * (x as f64 + 0.5)).floor();
            shift_columns(image, shift, &fill, &mut found).unwrap();
            assert!(found == expected, "columns, {factor}");
        }
    }

    #[test]
    fn fixed_point_matches_floating_point() {
        let (height, width, channels) = (19, 70, 3);
        let pixels: Vec<u8> = (0..height * width * channels).map(|i| (i * i % 253) as u8).collect();
        let shorts: Vec<u16> = pixels.iter().map(|&x| u16::from(x)).collect();
        let (mut found, mut expected) = (vec![0; pixels.len()], vec![0; pixels.len()]);
        for turn in [0.0, 0.1, 0.7, 2.9] {
            let places = Affine::rotation(f64::sin(turn), f64::cos(turn), height, width);
            let image = Image { pixels: &pixels, height, width, channels };
            sample(image, &places, Interpolation::Linear, &[9, 8, 7], &mut found).unwrap();
            let image = Image { pixels: &shorts, height, width, channels };
            sample(image, &places, Interpolation::Linear, &[9, 8, 7], &mut expected).unwrap();
            let close = found.iter().zip(&expected).all(|(&a, &b)| b.abs_diff(u16::from(a)) <= 1);
            assert!(close, "{turn}");
        }
    }

    #[test]
    fn non_finite_coordinates_are_outside() {
        let image = Image { pixels: &[5_u8; 12], height: 3, width: 4, channels: 1 };
        for factor in [f64::NAN, f64::INFINITY, 1e300] {
            for interpolation in [Interpolation::Nearest, Interpolation::Linear] {
                let mut out = vec![0; 12];
                let places = Affine([[factor, factor, 9.0], [factor, 1.0, 0.0]]);
                sample(image, &places, interpolation, &[7], &mut out).unwrap();
                assert_eq!(out, [7; 12]);
            }
        }
    }

    #[test]
    fn identity_map_copies_the_image() {
        let pixels: Vec<f32> = (0..35).map(|i| i as f32 * 0.3).collect();
        let image = Image { pixels: &pixels, height: 5, width: 7, channels: 1 };
        for interpolation in [Interpolation::Nearest, Interpolation::Linear] {
            let mut out = vec![0.0; 35];
            let places = Affine::rotation(0.0, 1.0, 5, 7);
            sample(image, &places, interpolation, &[9.0], &mut out).unwrap();
            assert_eq!(out, pixels);
        }
    }
}
