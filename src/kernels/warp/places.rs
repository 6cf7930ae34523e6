//! Samples images at arbitrary coordinates. Pixel centers are at integers.

use half::{bf16, f16};

use crate::kernels::contract::output::Writer;
use crate::kernels::numeric::isa::{Isa, vectorized};
#[cfg(target_arch = "x86_64")]
use crate::value::DType;
use crate::value::Element;

/// Interpolation mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    Nearest,
    Linear,
    Cubic,
}

/// Border mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// The fill value of the picture.
    Constant,
    Replicate,
    /// Reflected, with the edge pixel repeated.
    Reflect,
    /// Reflected about the edge pixel, which is not repeated.
    Reflect101,
    Wrap,
}

impl Border {
    /// The index in `0..n` that `at` maps to, if any. `n` must be positive.
    #[inline]
    pub fn resolve(self, at: i64, n: usize) -> Option<usize> {
        let n = n as i64;
        if (0..n).contains(&at) {
            return Some(at as usize);
        }
        let found = match self {
            Border::Constant => return None,
            Border::Replicate => at.clamp(0, n - 1),
            Border::Wrap => at.rem_euclid(n),
            Border::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
            Border::Reflect101 if n == 1 => 0,
            Border::Reflect101 => {
                let at = at.rem_euclid(2 * (n - 1));
                at.min(2 * (n - 1) - at)
            }
        };
        Some(found as usize)
    }
}

/// An image with a border mode.
pub struct Picture<'a, T> {
    pub pixels: &'a [T],
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub border: Border,
    /// One value per channel.
    pub fill: &'a [T],
}

/// An element that can be interpolated.
pub trait Sampled: Element {
    /// Type to compute in: f32 where it holds all values exactly.
    type Wide: Wide;
    fn wide(self) -> Self::Wide;
    /// Rounds to nearest, ties to even, and saturates.
    fn narrow(wide: Self::Wide) -> Self;
}

pub trait Wide:
    Copy
    + Default
    + From<f32>
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::AddAssign
{
}
impl Wide for f32 {}
impl Wide for f64 {}

macro_rules! sampled {
    ($($type:ty as $wide:ty;)*) => {
        $(
            impl Sampled for $type {
                type Wide = $wide;
                #[inline(always)]
                fn wide(self) -> $wide {
                    self as $wide
                }
                #[inline(always)]
                fn narrow(wide: $wide) -> $type {
                    wide.round_ties_even() as $type
                }
            }
        )*
    };
}
sampled!(i8 as f32; u8 as f32; i16 as f32; u16 as f32;
         i32 as f64; u32 as f64; i64 as f64; u64 as f64;);

macro_rules! sampled_floats {
    ($($type:ty as $wide:ty: $from:expr, $to:expr;)*) => {
        $(
            impl Sampled for $type {
                type Wide = $wide;
                #[inline(always)]
                fn wide(self) -> $wide {
                    $from(self)
                }
                #[inline(always)]
                fn narrow(wide: $wide) -> $type {
                    $to(wide)
                }
            }
        )*
    };
}
sampled_floats!(f16 as f32: f32::from, f16::from_f32;
                bf16 as f32: f32::from, bf16::from_f32;
                f32 as f32: |x| x, |x| x;
                f64 as f64: |x| x, |x| x;);

/// Runs the expression with `$T` bound to the numeric type of `$dtype`, or `$other` for other
/// types.
macro_rules! with_number {
    ($dtype:expr, |$T:ident| $body:expr, $other:expr) => {{
        use $crate::value::DType as D;
        macro_rules! run {
            ($rust:ty) => {{
                type $T = $rust;
                $body
            }};
        }
        match $dtype {
            D::I8 => run!(i8),
            D::I16 => run!(i16),
            D::I32 => run!(i32),
            D::I64 => run!(i64),
            D::U8 => run!(u8),
            D::U16 => run!(u16),
            D::U32 => run!(u32),
            D::U64 => run!(u64),
            D::F16 => run!(half::f16),
            D::BF16 => run!(half::bf16),
            D::F32 => run!(f32),
            D::F64 => run!(f64),
            _ => $other,
        }
    }};
}
pub(crate) use with_number;

/// Pixels whose coordinates are computed at a time: enough for the calls not to count.
pub const BLOCK: usize = 256;

/// Source coordinates of the pixels of a result. Called once per block through `dyn`: the overhead
/// is small, and the sampling code is compiled only once.
pub trait Places {
    /// Writes the coordinates of pixels of row `y` from `first` on, as many as the slices hold.
    fn of(&self, y: usize, first: usize, xs: &mut [f32], ys: &mut [f32]);
}

/// Rows that are sampled at a time.
const ROWS: usize = 4;

/// Writes an image of `height` x `width` pixels.
pub fn sample<T: Sampled>(
    picture: &Picture<'_, T>,
    sampling: Sampling,
    [height, width]: [usize; 2],
    out: &mut Writer<'_, '_, T>,
    places: &dyn Places,
) {
    for top in (0..height).step_by(ROWS) {
        let rows = ROWS.min(height - top);
        let places = &Below { places, top };
        out.next(rows * width * picture.channels, |out| {
            sample_rows(picture, sampling, width, out, places);
        });
    }
}

/// Coordinates from a row on.
struct Below<'a> {
    places: &'a dyn Places,
    top: usize,
}

impl Places for Below<'_> {
    fn of(&self, y: usize, first: usize, xs: &mut [f32], ys: &mut [f32]) {
        self.places.of(self.top + y, first, xs, ys);
    }
}

/// Samples all rows of `out`, which are `width` pixels wide.
fn sample_rows<T: Sampled>(
    picture: &Picture<'_, T>,
    sampling: Sampling,
    width: usize,
    out: &mut [T],
    places: &dyn Places,
) {
    match (sampling, picture.channels) {
        (Sampling::Nearest, 1) => nearest::<T, 1>(picture, width, out, places),
        (Sampling::Nearest, 3) => nearest::<T, 3>(picture, width, out, places),
        (Sampling::Nearest, 4) => nearest::<T, 4>(picture, width, out, places),
        (Sampling::Nearest, _) => nearest::<T, 0>(picture, width, out, places),
        (Sampling::Linear, 1) => linear::<T, 1>(picture, width, out, places),
        (Sampling::Linear, 3) => linear::<T, 3>(picture, width, out, places),
        (Sampling::Linear, 4) => linear::<T, 4>(picture, width, out, places),
        (Sampling::Linear, _) => linear::<T, 0>(picture, width, out, places),
        (Sampling::Cubic, 1) => cubic::<T, 1>(picture, width, out, places),
        (Sampling::Cubic, 3) => cubic::<T, 3>(picture, width, out, places),
        (Sampling::Cubic, 4) => cubic::<T, 4>(picture, width, out, places),
        (Sampling::Cubic, _) => cubic::<T, 0>(picture, width, out, places),
    }
}

/// Coordinates of a block; after `split`, `x` and `y` are the fractional parts.
struct Block {
    x: [f32; BLOCK],
    y: [f32; BLOCK],
    column: [i32; BLOCK],
    row: [i32; BLOCK],
    /// After `nearest`, the indices of pixels, or -1 outside.
    index: [i32; BLOCK],
}

impl Block {
    const EMPTY: Block = Block {
        x: [0.0; BLOCK],
        y: [0.0; BLOCK],
        column: [0; BLOCK],
        row: [0; BLOCK],
        index: [0; BLOCK],
    };
}

/// Calls `make` for each block with its number of pixels, its coordinates, and its part of `out`.
#[inline(always)]
fn in_blocks<T>(
    width: usize,
    channels: usize,
    out: &mut [T],
    places: &dyn Places,
    mut make: impl FnMut(usize, &mut Block, &mut [T]),
) {
    if width * channels == 0 {
        return;
    }
    let mut block = Block::EMPTY;
    for (y, row) in out.chunks_exact_mut(width * channels).enumerate() {
        let mut first = 0;
        for part in row.chunks_mut(BLOCK * channels) {
            let count = part.len() / channels;
            places.of(y, first, &mut block.x[..count], &mut block.y[..count]);
            make(count, &mut block, part);
            first += count;
        }
    }
}

/// Farther away than any image.
const FAR: f32 = (1 << 30) as f32;

/// Clamps far-away coordinates and NaN so that the cast to i32 is defined; they stay outside.
#[inline(always)]
fn bounded(place: f32) -> f32 {
    let place = if place > -FAR { place } else { -FAR };
    if place < FAR { place } else { FAR }
}

#[inline(always)]
fn whole(place: f32) -> i32 {
    // SAFETY: the value was clamped to -2^30..=2^30 by `bounded`, and is not NaN.
    unsafe { place.to_int_unchecked() }
}

/// `C` is the number of channels, or 0 for any.
fn nearest<T: Sampled, const C: usize>(
    picture: &Picture<'_, T>,
    width: usize,
    out: &mut [T],
    places: &dyn Places,
) {
    let c = if C == 0 { picture.channels } else { C };
    // Whether pixel indices fit an i32.
    let is_small = picture.width.saturating_mul(picture.height) <= i32::MAX as usize;
    let sides = [picture.width as i32, picture.height as i32];
    in_blocks(width, c, out, places, |count, block, out| {
        block.nearest(count, sides);
        if C > 0 && is_small {
            vectorized!(copy::<T, C>(picture, block, &mut out[..count * C]));
            return;
        }
        for (i, out) in out.chunks_exact_mut(c).enumerate().take(count) {
            picture.outside(block.column[i], block.row[i], out);
        }
    });
}

/// Copies the nearest pixels, which have `C` channels and indices of 32 bits.
#[inline(always)]
fn copy<T: Sampled, const C: usize>(picture: &Picture<'_, T>, block: &Block, out: &mut [T]) {
    let pixels = picture.pixels.as_chunks::<C>().0;
    let fill = picture.fill.first_chunk::<C>().filter(|_| picture.border == Border::Constant);
    // Pixels with three channels are copied as four elements, which is one load and one store; the
    // next pixel overwrites the fourth.
    let (moved, limit) =
        if C == 3 { (4, pixels.len() as i32 - 1) } else { (C, pixels.len() as i32) };
    let groups = block.index.as_chunks::<GROUP>().0.iter().zip(out.chunks_mut(GROUP * C));
    for (group, (index, out)) in groups.enumerate() {
        // Negative if any index is, or if it is not below the limit.
        let sign = index.iter().fold(0, |sign, &index| sign | index | (limit - 1 - index));
        if sign >= 0 && out.len() == GROUP * C {
            let &[ref others @ .., last] = index;
            for (i, &index) in others.iter().enumerate() {
                // SAFETY: the index is below the limit, so that all elements are in the image, and
                // another pixel of `out` follows.
                unsafe {
                    let from = picture.pixels.as_ptr().add(index as usize * C);
                    std::ptr::copy_nonoverlapping(from, out.as_mut_ptr().add(i * C), moved);
                }
            }
            out[(GROUP - 1) * C..].copy_from_slice(&pixels[last as usize]);
            continue;
        }
        for (i, (out, &index)) in out.as_chunks_mut::<C>().0.iter_mut().zip(index).enumerate() {
            let i = group * GROUP + i;
            match (pixels.get(index as u32 as usize), fill) {
                (Some(pixel), _) => *out = *pixel,
                (None, Some(fill)) => *out = *fill,
                (None, None) => picture.outside(block.column[i], block.row[i], out),
            }
        }
    }
}

impl<T: Sampled> Picture<'_, T> {
    /// Index of the first element of the pixel at this position, after border handling; `None` for
    /// the fill value.
    #[inline]
    fn find(&self, x: i64, y: i64) -> Option<usize> {
        let x = self.border.resolve(x, self.width)?;
        let y = self.border.resolve(y, self.height)?;
        Some((y * self.width + x) * self.channels)
    }

    /// Whether this pixel and all others within `reach` are outside, with a constant border.
    #[inline(always)]
    fn is_nothing_near(&self, x: i32, y: i32, reach: i64) -> bool {
        let is_far = |at: i32, n: usize| !(-reach..n as i64 + reach).contains(&i64::from(at));
        self.border == Border::Constant && (is_far(x, self.width) || is_far(y, self.height))
    }

    /// The pixel at a position that may be outside.
    fn outside(&self, x: i32, y: i32, out: &mut [T]) {
        let at = self.find(i64::from(x), i64::from(y));
        out.copy_from_slice(at.map_or(self.fill, |at| &self.pixels[at..at + self.channels]));
    }

    #[inline]
    fn tap(&self, at: Option<usize>, channel: usize) -> T::Wide {
        match at {
            Some(at) => self.pixels[at + channel],
            None => self.fill[channel],
        }
        .wide()
    }
}

#[inline(always)]
fn between<A: Wide>(a: A, b: A, part: A) -> A {
    a + (b - a) * part
}

/// Pixels of a block that are processed together.
const GROUP: usize = 8;

/// `C` is the number of channels, or 0 for any.
fn linear<T: Sampled, const C: usize>(
    picture: &Picture<'_, T>,
    width: usize,
    out: &mut [T],
    places: &dyn Places,
) {
    let c = if C == 0 { picture.channels } else { C };
    let pitch = picture.width * c;
    let vectors = Vectors::of(picture);
    let last = [picture.width as i64 - 1, picture.height as i64 - 1].map(|last| last as i32);
    in_blocks(width, c, out, places, |count, block, out| {
        block.split(count);
        for first in (0..count).step_by(GROUP) {
            let group = first..(first + GROUP).min(count);
            if vectors.is_some() && group.len() == GROUP && block.is_inside(first, [0; 2], last) {
                let out = &mut out[first * c..(first + GROUP) * c];
                if vectors.linear::<C>(block, first, pitch, out) {
                    continue;
                }
            }
            for i in group {
                let (x, y) = (block.column[i], block.row[i]);
                if picture.is_nothing_near(x, y, 1) {
                    out[i * c..(i + 1) * c].copy_from_slice(picture.fill);
                    continue;
                }
                let (fx, fy) = (T::Wide::from(block.x[i]), T::Wide::from(block.y[i]));
                if x >= 0 && y >= 0 && x < last[0] && y < last[1] {
                    let at = y as usize * pitch + x as usize * c;
                    let (top, bottom) =
                        (&picture.pixels[at..at + 2 * c], &picture.pixels[at + pitch..]);
                    let bottom = &bottom[..2 * c];
                    for (k, out) in out[i * c..(i + 1) * c].iter_mut().enumerate() {
                        let above = between(top[k].wide(), top[c + k].wide(), fx);
                        let below = between(bottom[k].wide(), bottom[c + k].wide(), fx);
                        *out = T::narrow(between(above, below, fy));
                    }
                    continue;
                }
                let taps = around(picture, x, y);
                for (channel, out) in out[i * c..(i + 1) * c].iter_mut().enumerate() {
                    let [a, b, c, d] = taps.map(|at| picture.tap(at, channel));
                    *out = T::narrow(between(between(a, b, fx), between(c, d, fx), fy));
                }
            }
        }
    });
}

/// Rounds to the nearest pixels of an image with these sides: columns, rows, and indices, which are
/// -1 outside. A function of slices, which the compiler knows to be apart.
#[inline(always)]
fn round([x, y]: [&[f32]; 2], [column, row, index]: [&mut [i32]; 3], sides: [i32; 2]) {
    let found = column.iter_mut().zip(row).zip(index);
    for ((&x, &y), ((column, row), index)) in x.iter().zip(y).zip(found) {
        let x = whole(bounded(x).round_ties_even());
        let y = whole(bounded(y).round_ties_even());
        let is_inside = (x >= 0) & (x < sides[0]) & (y >= 0) & (y < sides[1]);
        let at = y.wrapping_mul(sides[0]).wrapping_add(x);
        (*column, *row) = (x, y);
        *index = if is_inside { at } else { -1 };
    }
}

impl Block {
    /// Rounds to the nearest pixels of an image with these sides.
    fn nearest(&mut self, count: usize, sides: [i32; 2]) {
        let Block { x, y, column, row, index } = self;
        vectorized!(round(
            [&x[..count], &y[..count]],
            [&mut column[..count], &mut row[..count], &mut index[..count]],
            sides
        ));
    }

    /// Splits coordinates into integer and fractional parts; the latter replace the coordinates.
    fn split(&mut self, count: usize) {
        let Block { x, y, column, row, .. } = self;
        vectorized!({
            for (places, indices) in [(x, column), (y, row)] {
                for (place, index) in places[..count].iter_mut().zip(indices) {
                    let given = bounded(*place);
                    let floor = given.floor();
                    (*place, *index) = (given - floor, whole(floor));
                }
            }
        });
    }

    /// Whether all pixels of a group are in the range from `least` to `last`, exclusive.
    #[inline(always)]
    fn is_inside(&self, first: usize, least: [i32; 2], last: [i32; 2]) -> bool {
        let (columns, rows) = (&self.column[first..][..GROUP], &self.row[first..][..GROUP]);
        let mut inside = true;
        for i in 0..GROUP {
            inside &= (columns[i] >= least[0])
                & (columns[i] < last[0])
                & (rows[i] >= least[1])
                & (rows[i] < last[1]);
        }
        inside
    }
}

/// The pixels of an image, if there is SIMD code for their type.
enum Vectors<'a> {
    None,
    #[cfg(target_arch = "x86_64")]
    Bytes(&'a [u8]),
    #[cfg(target_arch = "x86_64")]
    Floats(&'a [f32]),
    #[cfg(not(target_arch = "x86_64"))]
    #[allow(dead_code)] // there is only SIMD code for x86-64
    Never(std::marker::PhantomData<&'a u8>),
}

impl<'a> Vectors<'a> {
    fn of<T: Element>(picture: &Picture<'a, T>) -> Vectors<'a> {
        #[cfg(target_arch = "x86_64")]
        if Isa::best() == Isa::Avx2 && picture.pixels.len() < 1 << 30 {
            let (start, len) = (picture.pixels.as_ptr(), picture.pixels.len());
            // SAFETY: `T` is checked to be the type that the slice is cast to.
            unsafe {
                match T::DTYPE {
                    DType::U8 => {
                        return Vectors::Bytes(std::slice::from_raw_parts(start.cast(), len));
                    }
                    DType::F32 => {
                        return Vectors::Floats(std::slice::from_raw_parts(start.cast(), len));
                    }
                    _ => {}
                }
            }
        }
        let _ = picture;
        Vectors::None
    }

    fn is_some(&self) -> bool {
        !matches!(self, Vectors::None)
    }

    /// SIMD version for a group of pixels whose neighbors are all inside the image. Returns false
    /// if it can't be used.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn linear<const C: usize>(
        &self,
        block: &Block,
        first: usize,
        pitch: usize,
        out: &mut [impl Element],
    ) -> bool {
        let out = out.as_mut_ptr();
        // SAFETY: `Vectors` other than `None` only exist where AVX2 was detected; `out` has the
        // picture's element type and holds a group of pixels, whose neighbors are all inside the
        // image.
        unsafe {
            match (self, C) {
                (Vectors::Bytes(pixels), 1) => {
                    avx2::linear_gray(pixels, pitch, block, first, out.cast())
                }
                (Vectors::Bytes(pixels), 3 | 4) => {
                    avx2::linear_bytes::<C>(pixels, pitch, block, first, out.cast())
                }
                (Vectors::Floats(pixels), 1 | 3 | 4) => {
                    avx2::linear_floats::<C>(pixels, pitch, block, first, out.cast())
                }
                _ => false,
            }
        }
    }

    /// Like `linear`, for cubic interpolation; all sixteen neighbors must be inside the image.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn cubic<const C: usize>(
        &self,
        block: &Block,
        weights: &CubicWeights,
        first: usize,
        pitch: usize,
        out: &mut [impl Element],
    ) -> bool {
        let out = out.as_mut_ptr();
        // SAFETY: as for `linear`.
        unsafe {
            match (self, C) {
                (Vectors::Bytes(pixels), 1 | 3 | 4) => {
                    avx2::cubic::<u8, C>(pixels, pitch, block, weights, first, out.cast())
                }
                (Vectors::Floats(pixels), 1 | 3 | 4) => {
                    avx2::cubic::<f32, C>(pixels, pitch, block, weights, first, out.cast())
                }
                _ => false,
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn linear<const C: usize>(
        &self,
        _: &Block,
        _: usize,
        _: usize,
        _: &mut [impl Element],
    ) -> bool {
        false
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn cubic<const C: usize>(
        &self,
        _: &Block,
        _: &CubicWeights,
        _: usize,
        _: usize,
        _: &mut [impl Element],
    ) -> bool {
        false
    }
}

/// AVX2 versions for groups of eight pixels. The functions return false, and write nothing, if a
/// vector load would exceed the image.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Block, CubicWeights, GROUP};

    /// Indices of the upper left elements of a group; `None` if reading `reach` elements from one
    /// of them would exceed the image.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn places(
        block: &Block,
        first: usize,
        pitch: usize,
        channels: usize,
        reach: usize,
        len: usize,
    ) -> Option<[i32; GROUP]> {
        let (columns, rows) = (&block.column[first..][..GROUP], &block.row[first..][..GROUP]);
        let mut at = [0; GROUP];
        let mut last = 0;
        for i in 0..GROUP {
            at[i] = rows[i] * pitch as i32 + columns[i] * channels as i32;
            last = if at[i] > last { at[i] } else { last };
        }
        (last as usize + reach <= len).then_some(at)
    }

    /// # Safety
    /// The pixels of the group and their neighbors must be in the image; `out` must hold eight
    /// pixels.
    #[target_feature(enable = "avx2")]
    pub unsafe fn linear_gray(
        pixels: &[u8],
        pitch: usize,
        block: &Block,
        first: usize,
        out: *mut u8,
    ) -> bool {
        let Some(at) = places(block, first, pitch, 1, pitch + 4, pixels.len()) else {
            return false;
        };
        // SAFETY: `places` checked that four bytes are readable at each index, and in the row
        // below.
        unsafe {
            let at = _mm256_loadu_si256(at.as_ptr().cast());
            let top = _mm256_i32gather_epi32::<1>(pixels.as_ptr().cast(), at);
            let bottom = _mm256_i32gather_epi32::<1>(pixels.as_ptr().add(pitch).cast(), at);
            let byte = _mm256_set1_epi32(255);
            let left = |x| _mm256_cvtepi32_ps(_mm256_and_si256(x, byte));
            let right = |x| _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(x, 8), byte));
            let fx = _mm256_loadu_ps(block.x[first..].as_ptr());
            let fy = _mm256_loadu_ps(block.y[first..].as_ptr());
            let mix = |a, b, part| _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), part));
            let above = mix(left(top), right(top), fx);
            let below = mix(left(bottom), right(bottom), fx);
            let made = _mm256_cvtps_epi32(mix(above, below, fy));
            let words = _mm256_packs_epi32(made, made);
            let bytes = _mm256_packus_epi16(words, words);
            let low = _mm256_castsi256_si128(bytes);
            let high = _mm256_extracti128_si256(bytes, 1);
            _mm_storel_epi64(out.cast(), _mm_unpacklo_epi32(low, high));
        }
        true
    }

    /// # Safety
    /// The pixels of the group and their neighbors must be in the image; `out` must hold eight
    /// pixels.
    #[target_feature(enable = "avx2")]
    pub unsafe fn linear_bytes<const C: usize>(
        pixels: &[u8],
        pitch: usize,
        block: &Block,
        first: usize,
        out: *mut u8,
    ) -> bool {
        let Some(at) = places(block, first, pitch, C, pitch + 8, pixels.len()) else {
            return false;
        };
        let next = if C == 3 {
            _mm256_setr_epi32(3, 4, 5, 6, 7, 7, 7, 7)
        } else {
            _mm256_setr_epi32(4, 5, 6, 7, 7, 7, 7, 7)
        };
        let mut made = [_mm_setzero_si128(); GROUP];
        for i in 0..GROUP {
            // SAFETY: `places` checked that eight bytes are readable at each index, and in the row
            // below.
            let (top, bottom) = unsafe {
                let from = pixels.as_ptr().add(at[i] as usize);
                (_mm_loadl_epi64(from.cast()), _mm_loadl_epi64(from.add(pitch).cast()))
            };
            let top = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(top));
            let bottom = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bottom));
            let fy = _mm256_set1_ps(block.y[first + i]);
            let column = _mm256_add_ps(top, _mm256_mul_ps(_mm256_sub_ps(bottom, top), fy));
            let left = _mm256_castps256_ps128(column);
            let right = match C {
                4 => _mm256_extractf128_ps(column, 1),
                _ => _mm256_castps256_ps128(_mm256_permutevar8x32_ps(column, next)),
            };
            let fx = _mm_set1_ps(block.x[first + i]);
            let mixed = _mm_add_ps(left, _mm_mul_ps(_mm_sub_ps(right, left), fx));
            made[i] = _mm_cvtps_epi32(mixed);
        }
        // SAFETY: `out` holds eight pixels.
        unsafe { store_bytes::<C>(&made, out) };
        true
    }

    /// Stores eight pixels from vectors of four, of which the first `C` elements are used.
    ///
    /// # Safety
    /// `out` must hold eight pixels.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_bytes<const C: usize>(made: &[__m128i; GROUP], out: *mut u8) {
        let pack = |a, b, c, d| _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
        let low = pack(made[0], made[1], made[2], made[3]);
        let high = pack(made[4], made[5], made[6], made[7]);
        // SAFETY: guaranteed by the caller; with three channels, 8 + 16 bytes are written.
        unsafe {
            if C == 4 {
                _mm_storeu_si128(out.cast(), low);
                _mm_storeu_si128(out.add(16).cast(), high);
                return;
            }
            let z = -1;
            let order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, z, z, z, z);
            let (low, high) = (_mm_shuffle_epi8(low, order), _mm_shuffle_epi8(high, order));
            // 24 bytes in total: eight, then sixteen.
            let rest = _mm_or_si128(_mm_srli_si128(low, 8), _mm_slli_si128(high, 4));
            _mm_storel_epi64(out.cast(), low);
            _mm_storeu_si128(out.add(8).cast(), rest);
        }
    }

    /// # Safety
    /// The pixels of the group and their neighbors must be in the image; `out` must hold eight
    /// pixels.
    #[target_feature(enable = "avx2")]
    pub unsafe fn linear_floats<const C: usize>(
        pixels: &[f32],
        pitch: usize,
        block: &Block,
        first: usize,
        out: *mut f32,
    ) -> bool {
        let Some(at) = places(block, first, pitch, C, pitch + C + 4, pixels.len()) else {
            return false;
        };
        if C == 1 {
            // SAFETY: two elements are readable at each index, and in the row below.
            unsafe {
                let at = _mm256_loadu_si256(at.as_ptr().cast());
                let start = pixels.as_ptr();
                let a = _mm256_i32gather_ps::<4>(start, at);
                let b = _mm256_i32gather_ps::<4>(start.add(1), at);
                let c = _mm256_i32gather_ps::<4>(start.add(pitch), at);
                let d = _mm256_i32gather_ps::<4>(start.add(pitch + 1), at);
                let fx = _mm256_loadu_ps(block.x[first..].as_ptr());
                let fy = _mm256_loadu_ps(block.y[first..].as_ptr());
                let mix = |a, b, part| _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), part));
                _mm256_storeu_ps(out, mix(mix(a, b, fx), mix(c, d, fx), fy));
            }
            return true;
        }
        for (i, &at) in at.iter().enumerate().take(GROUP) {
            // SAFETY: four elements are readable at each index, at the next pixel, and at both in
            // the row below. With three channels, the fourth element is written where the next
            // pixel will be, and not at all for the last one.
            unsafe {
                let from = pixels.as_ptr().add(at as usize);
                let (a, b) = (_mm_loadu_ps(from), _mm_loadu_ps(from.add(C)));
                let (c, d) = (_mm_loadu_ps(from.add(pitch)), _mm_loadu_ps(from.add(pitch + C)));
                let (fx, fy) = (_mm_set1_ps(block.x[first + i]), _mm_set1_ps(block.y[first + i]));
                let mix = |a, b, part| _mm_add_ps(a, _mm_mul_ps(_mm_sub_ps(b, a), part));
                store_floats::<C>(mix(mix(a, b, fx), mix(c, d, fx), fy), i, out);
            }
        }
        true
    }

    /// Stores pixel `i` of a group.
    ///
    /// # Safety
    /// `out` must hold the group, and the previous pixels must have been stored.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_floats<const C: usize>(made: __m128, i: usize, out: *mut f32) {
        // SAFETY: guaranteed by the caller. A surplus fourth element is overwritten by the next
        // pixel.
        unsafe {
            let to = out.add(C * i);
            if C == 4 || (C == 3 && i + 1 < GROUP) {
                _mm_storeu_ps(to, made);
                return;
            }
            let mut numbers = [0.0_f32; 4];
            _mm_storeu_ps(numbers.as_mut_ptr(), made);
            std::ptr::copy_nonoverlapping(numbers.as_ptr(), to, C);
        }
    }

    /// Element type of an image.
    pub trait Load: Copy {
        /// # Safety
        /// Eight elements must be readable.
        unsafe fn eight(from: *const Self) -> __m256;
        /// # Safety
        /// `out` must hold eight pixels.
        unsafe fn store<const C: usize>(made: &[__m128; GROUP], out: *mut Self);
    }

    impl Load for u8 {
        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn eight(from: *const u8) -> __m256 {
            // SAFETY: guaranteed by the caller.
            let bytes = unsafe { _mm_loadl_epi64(from.cast()) };
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn store<const C: usize>(made: &[__m128; GROUP], out: *mut u8) {
            let mut whole = [_mm_setzero_si128(); GROUP];
            for i in 0..GROUP {
                whole[i] = _mm_cvtps_epi32(made[i]);
            }
            // SAFETY: guaranteed by the caller.
            unsafe {
                if C > 1 {
                    store_bytes::<C>(&whole, out);
                    return;
                }
                let mut bytes = [0_u8; 4 * GROUP];
                store_bytes::<4>(&whole, bytes.as_mut_ptr());
                for i in 0..GROUP {
                    *out.add(i) = bytes[4 * i];
                }
            }
        }
    }

    impl Load for f32 {
        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn eight(from: *const f32) -> __m256 {
            // SAFETY: guaranteed by the caller.
            unsafe { _mm256_loadu_ps(from) }
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn store<const C: usize>(made: &[__m128; GROUP], out: *mut f32) {
            for (i, &made) in made.iter().enumerate() {
                // SAFETY: guaranteed by the caller.
                unsafe { store_floats::<C>(made, i, out) };
            }
        }
    }

    /// From sixteen elements, extracts four starting at each of the first four pixels. Uses
    /// shuffles because loading across two recent stores would defeat store forwarding.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn columns<const C: usize>(low: __m256, high: __m256) -> [__m128; 4] {
        let halves = |x| (_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        let ((a, b), (c, d)) = (halves(low), halves(high));
        #[inline]
        #[target_feature(enable = "avx2")]
        fn from<const BYTES: i32>(a: __m128, b: __m128) -> __m128 {
            let (a, b) = (_mm_castps_si128(a), _mm_castps_si128(b));
            _mm_castsi128_ps(_mm_alignr_epi8::<BYTES>(b, a))
        }
        match C {
            1 => [a, from::<4>(a, b), from::<8>(a, b), from::<12>(a, b)],
            3 => [a, from::<12>(a, b), from::<8>(b, c), from::<4>(c, d)],
            _ => [a, b, c, d],
        }
    }

    /// # Safety
    /// The pixels of the group and their sixteen neighbors must be in the image; `out` must hold
    /// eight pixels.
    #[target_feature(enable = "avx2")]
    pub unsafe fn cubic<T: Load, const C: usize>(
        pixels: &[T],
        pitch: usize,
        block: &Block,
        weights: &CubicWeights,
        first: usize,
        out: *mut T,
    ) -> bool {
        // Sixteen elements are read from the last of the four rows, starting one pixel to the left.
        let reach = 2 * pitch + 16;
        let Some(at) = places(block, first, pitch, C, reach, pixels.len()) else { return false };
        let mut made = [_mm_setzero_ps(); GROUP];
        for i in 0..GROUP {
            let mut low = _mm256_setzero_ps();
            let mut high = _mm256_setzero_ps();
            // SAFETY: `places` checked that sixteen elements are readable in each of the four rows.
            unsafe {
                let from = pixels.as_ptr().add(at[i] as usize - pitch - C);
                for (row, down) in weights.down.iter().enumerate() {
                    let weight = _mm256_set1_ps(down[first + i]);
                    let from = from.add(row * pitch);
                    low = _mm256_add_ps(low, _mm256_mul_ps(T::eight(from), weight));
                    if C > 2 {
                        high = _mm256_add_ps(high, _mm256_mul_ps(T::eight(from.add(8)), weight));
                    }
                }
            }
            let mut sum = _mm_setzero_ps();
            for (numbers, across) in columns::<C>(low, high).into_iter().zip(&weights.across) {
                sum = _mm_add_ps(sum, _mm_mul_ps(numbers, _mm_set1_ps(across[first + i])));
            }
            made[i] = sum;
        }
        // SAFETY: `out` holds eight pixels.
        unsafe { T::store::<C>(&made, out) };
        true
    }
}

/// Indices of a pixel, of the one to its right, and of the two below.
fn around<T: Sampled>(picture: &Picture<'_, T>, x: i32, y: i32) -> [Option<usize>; 4] {
    let (x, y) = (i64::from(x), i64::from(y));
    [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)].map(|(x, y)| picture.find(x, y))
}

/// Weights of the four taps along each axis, for a block.
struct CubicWeights {
    across: [[f32; BLOCK]; 4],
    down: [[f32; BLOCK]; 4],
}

impl CubicWeights {
    fn set(&mut self, count: usize, block: &Block) {
        vectorized!({
            for (all, parts) in [(&mut self.across, &block.x), (&mut self.down, &block.y)] {
                let [first, second, third, fourth] = all;
                for i in 0..count.min(BLOCK) {
                    [first[i], second[i], third[i], fourth[i]] = cubic_weights(parts[i]);
                }
            }
        });
    }
}

/// Weights of four taps, for a position between the inner two: Keys' cubic with a = -0.75, as in
/// OpenCV and therefore DALI.
#[inline(always)]
fn cubic_weights(part: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let outer = |t: f32| ((A * t - 5.0 * A) * t + 8.0 * A) * t - 4.0 * A;
    let inner = |t: f32| ((A + 2.0) * t - (A + 3.0)) * t * t + 1.0;
    let (first, second, third) = (outer(part + 1.0), inner(part), inner(1.0 - part));
    [first, second, third, 1.0 - first - second - third]
}

fn cubic<T: Sampled, const C: usize>(
    picture: &Picture<'_, T>,
    width: usize,
    out: &mut [T],
    places: &dyn Places,
) {
    let c = if C == 0 { picture.channels } else { C };
    let pitch = picture.width * c;
    let vectors = Vectors::of(picture);
    let last = [picture.width as i64 - 2, picture.height as i64 - 2].map(|last| last as i32);
    let mut weights = CubicWeights { across: [[0.0; BLOCK]; 4], down: [[0.0; BLOCK]; 4] };
    in_blocks(width, c, out, places, |count, block, out| {
        block.split(count);
        weights.set(count, block);
        for first in (0..count).step_by(GROUP) {
            let group = first..(first + GROUP).min(count);
            if vectors.is_some() && group.len() == GROUP && block.is_inside(first, [1; 2], last) {
                let out = &mut out[first * c..(first + GROUP) * c];
                if vectors.cubic::<C>(block, &weights, first, pitch, out) {
                    continue;
                }
            }
            for i in group {
                if picture.is_nothing_near(block.column[i], block.row[i], 2) {
                    out[i * c..(i + 1) * c].copy_from_slice(picture.fill);
                    continue;
                }
                let (x, y) = (i64::from(block.column[i]), i64::from(block.row[i]));
                let taps: [[Option<usize>; 4]; 4] = std::array::from_fn(|j| {
                    std::array::from_fn(|k| picture.find(x - 1 + k as i64, y - 1 + j as i64))
                });
                for (channel, out) in out[i * c..(i + 1) * c].iter_mut().enumerate() {
                    let mut sum = T::Wide::default();
                    for (row, down) in taps.iter().zip(&weights.down) {
                        for (&at, across) in row.iter().zip(&weights.across) {
                            let weight = T::Wide::from(down[i] * across[i]);
                            sum += picture.tap(at, channel) * weight;
                        }
                    }
                    *out = T::narrow(sum);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn border_modes_map_indices() {
        let around = |border: Border| -> Vec<i64> {
            (-4..8).map(|at| border.resolve(at, 3).map_or(-1, |at| at as i64)).collect()
        };
        assert_eq!(around(Border::Constant), [-1, -1, -1, -1, 0, 1, 2, -1, -1, -1, -1, -1]);
        assert_eq!(around(Border::Replicate), [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2]);
        assert_eq!(around(Border::Reflect), [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]);
        assert_eq!(around(Border::Reflect101), [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        assert_eq!(around(Border::Wrap), [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]);
        for border in [Border::Reflect, Border::Reflect101, Border::Wrap, Border::Replicate] {
            assert_eq!(border.resolve(i64::from(i32::MIN), 1), Some(0), "{border:?}");
        }
    }

    struct Given(Vec<[f32; 2]>);

    impl Places for Given {
        fn of(&self, _: usize, first: usize, xs: &mut [f32], ys: &mut [f32]) {
            for (i, (x, y)) in xs.iter_mut().zip(ys).enumerate() {
                [*x, *y] = self.0[first + i];
            }
        }
    }

    #[test]
    fn extreme_coordinates_are_sampled() {
        let odd = [f32::NAN, f32::INFINITY, -1e30, 3e9, -0.5, 0.0, 0.25, 4.999, 5.0, 1e9];
        let all: Vec<[f32; 2]> = odd.iter().flat_map(|&x| odd.map(|y| [x, y])).collect();
        for channels in 1..6 {
            let pixels: Vec<u8> = (0..30 * channels).map(|i| (i * 7 % 251) as u8).collect();
            let fill = vec![9; channels];
            for border in [Border::Constant, Border::Reflect101, Border::Wrap, Border::Replicate] {
                let picture =
                    Picture { pixels: &pixels, width: 6, height: 5, channels, border, fill: &fill };
                for sampling in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
                    let mut out = vec![1; all.len() * channels];
                    sample_rows(&picture, sampling, all.len(), &mut out, &Given(all.clone()));
                    // Coordinates 0, 0 are the first pixel.
                    let at = 55 * channels;
                    assert_eq!(out[at..at + channels], pixels[..channels], "{sampling:?}");
                    if border == Border::Constant {
                        assert_eq!(out[..channels], fill[..], "{sampling:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn nearest_pixels_are_found_one_by_one() {
        let (width, height) = (40, 30);
        // Half of them in order, which is inside for most groups, and all of the last row.
        let places: Vec<[f32; 2]> = (0..1003_u32)
            .map(|i| match i {
                0..500 => [(i * 7919 % 4400) as f32 / 100.0 - 2.0, (i % 34) as f32 - 1.75],
                500..960 => [i as f32 / 25.0, i as f32 / 40.0],
                _ => [(i - 960) as f32, 29.0],
            })
            .collect();
        for channels in 1..6 {
            let pixels: Vec<u16> = (0..width * height * channels).map(|i| i as u16).collect();
            let fill = &[9; 5][..channels];
            for border in [Border::Constant, Border::Reflect, Border::Wrap] {
                let picture = Picture { pixels: &pixels, width, height, channels, border, fill };
                let (mut made, mut expected) = (vec![0; 1003 * channels], Vec::new());
                sample_rows(&picture, Sampling::Nearest, 1003, &mut made, &Given(places.clone()));
                for [x, y] in &places {
                    let mut pixel = vec![0; channels];
                    let [x, y] = [x, y].map(|place| place.round_ties_even() as i32);
                    picture.outside(x, y, &mut pixel);
                    expected.extend(pixel);
                }
                assert_eq!(made, expected, "{border:?}, {channels} channels");
            }
        }
    }

    #[test]
    fn simd_matches_scalar() {
        let (width, height) = (40, 30);
        let places: Vec<[f32; 2]> = (0..500_u32)
            .map(|i| [(i * 7919 % 4400) as f32 / 100.0 - 2.0, (i * 104_729 % 3400) as f32 / 100.0])
            .collect();
        for channels in 1..5 {
            let bytes: Vec<u8> =
                (0..width * height * channels).map(|i| (i * 31 % 251) as u8).collect();
            let words: Vec<u16> = bytes.iter().map(|&x| x.into()).collect();
            let border = Border::Constant;
            let small = Picture {
                pixels: &bytes[..],
                width,
                height,
                channels,
                border,
                fill: &[9; 4][..channels],
            };
            let wide = Picture {
                pixels: &words[..],
                width,
                height,
                channels,
                border,
                fill: &[9; 4][..channels],
            };
            for sampling in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
                let (mut made, mut expected) = (vec![0; 500 * channels], vec![0; 500 * channels]);
                sample_rows(&small, sampling, 500, &mut made, &Given(places.clone()));
                sample_rows(&wide, sampling, 500, &mut expected, &Given(places.clone()));
                for (&a, &b) in made.iter().zip(&expected) {
                    // Cubic sums may exceed the range of bytes, and a different order of summation
                    // rounds differently.
                    assert!(u16::from(a).abs_diff(b.min(255)) <= 1, "{sampling:?} {a} {b}");
                }
            }
        }
    }
}
