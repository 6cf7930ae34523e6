//! Interpolation of elements of any type, computed in 32 or 64 bits.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use half::{bf16, f16};

use super::line::{Line, LongLine, edges, nearest, split, split_long};
use super::{Extents, Interpolation, Map, Sampling, needs_double};
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::Isa;
use crate::kernels::{Output, Result};
use crate::value::{Bool, DType, Element, Sample, with_element, zeroed};

/// A type to compute in.
trait Wide:
    Element
    + Default
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + From<f32>
    + Convert<Bool>
    + Convert<i8>
    + Convert<i16>
    + Convert<i32>
    + Convert<i64>
    + Convert<u8>
    + Convert<u16>
    + Convert<u32>
    + Convert<u64>
    + Convert<f16>
    + Convert<bf16>
    + Convert<f32>
    + Convert<f64>
{
}

impl Wide for f32 {}
impl Wide for f64 {}

#[inline(always)]
fn between<A: Wide>(a: A, b: A, part: A) -> A {
    a + (b - a) * part
}

pub fn warp(sampling: &Sampling, map: &Map, image: &Sample, out: &mut Output<'_>) -> Result<()> {
    let dtype = image.desc.dtype;
    let from = Extents::of(&image.desc);
    let long = needs_double(&from, &Extents::of(out.desc));
    let only_moves = sampling.interpolation == Interpolation::Nearest && dtype == out.desc.dtype;
    if only_moves && !from.volumetric && !long {
        with_element!(dtype, |T| {
            let picture = Picture::<T>::new(image, sampling, &from, long);
            pick_rows(&picture, map, out);
        });
        return Ok(());
    }
    // Types that `f32` holds exactly are computed in it.
    let small = dtype.size() <= 2 || dtype == DType::F32;
    with_element!(dtype, |T| {
        let picture = Picture::<T>::new(image, sampling, &from, long);
        if small { rows::<T, f32>(&picture, map, out) } else { rows::<T, f64>(&picture, map, out) }
    })
}

/// An image, or frames of images, and how to sample it.
struct Picture<'a, T> {
    src: &'a [T],
    sides: [usize; 3],
    volumetric: bool,
    channels: usize,
    linear: bool,
    /// Whether positions need double precision.
    long: bool,
    fill: Option<T>,
}

impl<'a, T: Element> Picture<'a, T>
where
    f64: Convert<T>,
{
    fn new(image: &'a Sample, sampling: &Sampling, from: &Extents, long: bool) -> Picture<'a, T> {
        Picture {
            src: image.elements(),
            sides: from.sides,
            volumetric: from.volumetric,
            channels: *image.desc.shape.last().unwrap_or(&1),
            linear: sampling.interpolation == Interpolation::Linear,
            long,
            // Converted to the image's type, as in DALI.
            fill: sampling.fill.map(|fill| fill.convert()),
        }
    }

    fn frame(&self, index: usize) -> &'a [T] {
        let size = self.sides.iter().product::<usize>() * self.channels;
        &self.src[index * size..][..size]
    }

    /// Index of the first channel of a pixel; `Err` is the fill value outside the image.
    #[inline]
    fn find(&self, place: [i64; 3]) -> std::result::Result<usize, T> {
        let is_inside = || (0..3).all(|i| (0..self.sides[i] as i64).contains(&place[i]));
        let near = |i: usize| nearest(place[i], self.sides[i]);
        match (self.fill, near(0), near(1), near(2)) {
            (Some(fill), ..) if !is_inside() => Err(fill),
            (_, Some(x), Some(y), Some(z)) => {
                Ok(((z * self.sides[1] + y) * self.sides[0] + x) * self.channels)
            }
            // The caller ensures that there is a pixel or a fill value.
            (fill, ..) => Err(fill.unwrap_or_else(|| 0.0.convert())),
        }
    }

    fn tap<A>(&self, frame: &[T], at: std::result::Result<usize, T>, channel: usize) -> A
    where
        T: Convert<A>,
    {
        match at {
            Ok(at) => frame[at + channel].convert(),
            Err(fill) => fill.convert(),
        }
    }
}

/// Nearest neighbours, whose elements are copied unchanged.
fn pick_rows<T: Element>(picture: &Picture<'_, T>, map: &Map, out: &mut Output<'_>)
where
    f64: Convert<T>,
{
    let [out_width, out_height, _] = Extents::of(out.desc).sides;
    let c = picture.channels;
    let pick: Pick<T> = match c {
        1 => pick::<T, 1>,
        2 => pick::<T, 2>,
        3 => pick::<T, 3>,
        4 => pick::<T, 4>,
        _ => |_, _, _, _, _, _| false,
    };
    for (index, out) in out.elements::<T>().chunks_exact_mut(out_width * out_height * c).enumerate()
    {
        let frame = picture.frame(index);
        for (y, row) in out.chunks_exact_mut(out_width * c).enumerate() {
            let line = Line::new(map, y, 0.0);
            pick_row(picture, frame, &line, row, pick);
        }
    }
}

/// Copies pixels with vector instructions; see [`pick`].
type Pick<T> = fn(Isa, &[T], [usize; 2], &Line, usize, &mut [T]) -> bool;

fn pick_row<T: Element>(
    picture: &Picture<'_, T>,
    frame: &[T],
    line: &Line,
    out: &mut [T],
    pick: Pick<T>,
) where
    f64: Convert<T>,
{
    let c = picture.channels;
    let [width, height, _] = picture.sides;
    let n = out.len() / c;
    let picked = match picture.fill {
        Some(fill) => {
            let inside = line.inside(n, [width, height]);
            out[..inside.start * c].fill(fill);
            out[inside.end * c..].fill(fill);
            inside
        }
        None => 0..n,
    };
    let out = &mut out[picked.start * c..picked.end * c];
    if pick(Isa::best(), frame, [width, height], line, picked.start, out) {
        return;
    }
    for (x, out) in out.chunks_exact_mut(c).enumerate() {
        let [sx, sy] = line.at(picked.start + x);
        if let Ok(at) = picture.find([split(sx, width).0, split(sy, height).0, 0]) {
            out.copy_from_slice(&frame[at..at + c]);
        }
    }
}

/// Copies the pixels nearest to the positions from pixel `first` on. Returns false if vector code
/// can't be used.
fn pick<T: Element, const C: usize>(
    isa: Isa,
    frame: &[T],
    sides: [usize; 2],
    line: &Line,
    first: usize,
    out: &mut [T],
) -> bool {
    // Sides and pixel indices must be exact in 32 bits.
    let is_small = sides.iter().all(|&n| (1..1 << 24).contains(&n))
        && sides[0] * sides[1] <= i32::MAX as usize;
    let (frame, out) = (frame.as_chunks::<C>().0, out.as_chunks_mut::<C>().0);
    if !is_small || frame.len() < sides[0] * sides[1] {
        return false;
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected; the sides are positive,
            // and the image has all their pixels.
            unsafe { avx2::pick(frame, sides, line, first, out) };
            true
        }
        _ => false,
    }
}

/// Computes rows in the type `A`, and stores them as the output's type.
fn rows<T: Element + Convert<A>, A: Wide>(
    picture: &Picture<'_, T>,
    map: &Map,
    out: &mut Output<'_>,
) -> Result<()>
where
    f64: Convert<T>,
{
    let [width, height, depth] = Extents::of(out.desc).sides;
    let row_length = width * picture.channels;
    let dtype = out.desc.dtype;
    let make = |index: usize, row: &mut [A]| {
        let (y, z) = (index % height, index / height % depth);
        let frame = picture.frame(index / (height * depth));
        if picture.volumetric {
            volume_row(picture, frame, map, [y, z], row);
        } else {
            image_row(picture, frame, map, y, row);
        }
    };
    if A::DTYPE == dtype {
        let rows = out.elements::<A>().chunks_exact_mut(row_length);
        rows.enumerate().for_each(|(index, row)| make(index, row));
        return Ok(());
    }
    let mut wide = zeroed::<A>(row_length)?;
    with_element!(dtype, |U| {
        for (index, row) in out.elements::<U>().chunks_exact_mut(row_length).enumerate() {
            make(index, &mut wide);
            for (o, &x) in row.iter_mut().zip(&wide) {
                *o = x.convert();
            }
        }
    });
    Ok(())
}

fn image_row<T: Element + Convert<A>, A: Wide>(
    picture: &Picture<'_, T>,
    frame: &[T],
    map: &Map,
    y: usize,
    out: &mut [A],
) where
    f64: Convert<T>,
{
    let [width, height, _] = picture.sides;
    if picture.long {
        let line = LongLine::new(map, y, if picture.linear { -0.5 } else { 0.0 });
        for (x, out) in out.chunks_exact_mut(picture.channels).enumerate() {
            let [(ix, fx), (iy, fy)] = line.split(x, [width, height]);
            if picture.linear {
                blend(picture, frame, [(ix, fx), (iy, fy)], out);
            } else {
                take(picture, frame, [ix, iy, 0], out);
            }
        }
        return;
    }
    if !picture.linear {
        let line = Line::new(map, y, 0.0);
        for (x, out) in out.chunks_exact_mut(picture.channels).enumerate() {
            let [sx, sy] = line.at(x);
            take(picture, frame, [split(sx, width).0, split(sy, height).0, 0], out);
        }
        return;
    }
    let line = Line::new(map, y, -0.5);
    match picture.channels {
        1 => linear_row::<T, A, 1>(picture, frame, &line, out),
        3 => linear_row::<T, A, 3>(picture, frame, &line, out),
        4 => linear_row::<T, A, 4>(picture, frame, &line, out),
        _ => linear_row::<T, A, 0>(picture, frame, &line, out),
    }
}

/// The pixel at a position, or the fill value.
fn take<T: Element + Convert<A>, A: Wide>(
    picture: &Picture<'_, T>,
    frame: &[T],
    place: [i64; 3],
    out: &mut [A],
) where
    f64: Convert<T>,
{
    let at = picture.find(place);
    for (channel, out) in out.iter_mut().enumerate() {
        *out = picture.tap(frame, at, channel);
    }
}

/// `C` is the number of channels, or 0 for any.
fn linear_row<T: Element + Convert<A>, A: Wide, const C: usize>(
    picture: &Picture<'_, T>,
    frame: &[T],
    line: &Line,
    out: &mut [A],
) where
    f64: Convert<T>,
{
    let c = if C == 0 { picture.channels } else { C };
    let [width, height, _] = picture.sides;
    // The vector code reads one element beyond the pixels of three channels.
    let margin = if C == 3 { 2 } else { 1 };
    let limits = [width.saturating_sub(margin), height.saturating_sub(1)];
    let inside = line.inside(out.len() / c, limits);
    let (before, rest) = out.split_at_mut(inside.start * c);
    let (middle, after) = rest.split_at_mut(inside.len() * c);
    let fill = picture.fill.map(|fill| fill.convert());
    edges(line, [width, height], fill, before, 0, c, |at, out| {
        linear_edge(picture, frame, at, out);
    });
    edges(line, [width, height], fill, after, inside.end, c, |at, out| {
        linear_edge(picture, frame, at, out);
    });
    if matches!(C, 1 | 3 | 4) && A::DTYPE == DType::F32 {
        let start = inside.start;
        // SAFETY: `A` is `f32`, and `T` is checked below.
        let middle = unsafe {
            std::slice::from_raw_parts_mut(middle.as_mut_ptr().cast::<f32>(), middle.len())
        };
        let done = match T::DTYPE {
            DType::F32 => {
                // SAFETY: `T` is `f32`.
                let frame = unsafe {
                    std::slice::from_raw_parts(frame.as_ptr().cast::<f32>(), frame.len())
                };
                floats::<f32, C>(Isa::best(), frame, width, line, start, middle)
            }
            DType::U8 => {
                // SAFETY: `T` is `u8`.
                let frame =
                    unsafe { std::slice::from_raw_parts(frame.as_ptr().cast::<u8>(), frame.len()) };
                floats::<u8, C>(Isa::best(), frame, width, line, start, middle)
            }
            _ => false,
        };
        if done {
            return;
        }
    }
    for (x, out) in middle.chunks_exact_mut(c).enumerate() {
        let [sx, sy] = line.at(inside.start + x);
        let (ix, iy) = (sx as u32 as usize, sy as u32 as usize);
        let (fx, fy) = (A::from(sx - ix as u32 as f32), A::from(sy - iy as u32 as f32));
        let at = (iy * width + ix) * c;
        let top = &frame[at..at + 2 * c];
        let bottom = &frame[at + width * c..][..2 * c];
        for channel in 0..c {
            let above = between(top[channel].convert(), top[c + channel].convert(), fx);
            let below = between(bottom[channel].convert(), bottom[c + channel].convert(), fx);
            out[channel] = between(above, below, fy);
        }
    }
}

/// A pixel of which some of the four source pixels are outside the image.
fn linear_edge<T: Element + Convert<A>, A: Wide>(
    picture: &Picture<'_, T>,
    frame: &[T],
    [sx, sy]: [f32; 2],
    out: &mut [A],
) where
    f64: Convert<T>,
{
    blend(picture, frame, [split(sx, picture.sides[0]), split(sy, picture.sides[1])], out);
}

/// Blends four pixels, any of which may be outside the image.
fn blend<T: Element + Convert<A>, A: Wide>(
    picture: &Picture<'_, T>,
    frame: &[T],
    [(x, fx), (y, fy)]: [(i64, f32); 2],
    out: &mut [A],
) where
    f64: Convert<T>,
{
    let (fx, fy) = (A::from(fx), A::from(fy));
    let taps =
        [[x, y, 0], [x + 1, y, 0], [x, y + 1, 0], [x + 1, y + 1, 0]].map(|p| picture.find(p));
    for (channel, out) in out.iter_mut().enumerate() {
        let [a, b, c, d] = taps.map(|at| picture.tap(frame, at, channel));
        *out = between(between(a, b, fx), between(c, d, fx), fy);
    }
}

fn volume_row<T: Element + Convert<A>, A: Wide>(
    picture: &Picture<'_, T>,
    frame: &[T],
    map: &Map,
    [y, z]: [usize; 2],
    out: &mut [A],
) where
    f64: Convert<T>,
{
    let offset = if picture.linear { -0.5 } else { 0.0 };
    let start = map.apply([0.5, y as f64 + 0.5, z as f64 + 0.5]);
    for (x, out) in out.chunks_exact_mut(picture.channels).enumerate() {
        let parts: [(i64, f32); 3] = std::array::from_fn(|i| {
            let place = start[i] + map.0[i][0] * x as f64 + offset;
            match picture.long {
                true => split_long(place, picture.sides[i]),
                false => split(place as f32, picture.sides[i]),
            }
        });
        let [(px, fx), (py, fy), (pz, fz)] = parts;
        if !picture.linear {
            take(picture, frame, [px, py, pz], out);
            continue;
        }
        let taps: [std::result::Result<usize, T>; 8] = std::array::from_fn(|i| {
            let i = i as i64;
            picture.find([px + (i & 1), py + (i >> 1 & 1), pz + (i >> 2)])
        });
        let [fx, fy, fz] = [fx, fy, fz].map(A::from);
        for (channel, out) in out.iter_mut().enumerate() {
            let [a, b, c, d, e, f, g, h] = taps.map(|at| picture.tap(frame, at, channel));
            let front = between(between(a, b, fx), between(c, d, fx), fy);
            let back = between(between(e, f, fx), between(g, h, fx), fy);
            *out = between(front, back, fz);
        }
    }
}

/// Interpolates pixels of a row for which all source pixels are in the image, and with three
/// channels one more element. Returns false if vector code can't be used.
fn floats<T: Load, const C: usize>(
    isa: Isa,
    src: &[T],
    width: usize,
    line: &Line,
    first: usize,
    out: &mut [f32],
) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            // SAFETY: an `Isa::Avx2` only exists where AVX2 was detected; the caller checked the
            // positions.
            unsafe {
                if C == 1 {
                    avx2::gray_floats(src, width, line, first, out);
                } else {
                    avx2::floats::<T, C>(src, width, line, first, out);
                }
            }
            true
        }
        _ => false,
    }
}

/// An element type that vectors of floats are loaded from.
trait Load: Convert<f32> + Copy {
    /// Four neighbours.
    ///
    /// # Safety
    /// They must be readable.
    #[cfg(target_arch = "x86_64")]
    unsafe fn four(from: *const Self) -> __m128;
    /// Two neighbours; the other lanes are unspecified.
    ///
    /// # Safety
    /// They must be readable.
    #[cfg(target_arch = "x86_64")]
    unsafe fn two(from: *const Self) -> __m128;
}

impl Load for f32 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn four(from: *const f32) -> __m128 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm_loadu_ps(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn two(from: *const f32) -> __m128 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm_castsi128_ps(_mm_loadl_epi64(from.cast())) }
    }
}

impl Load for u8 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn four(from: *const u8) -> __m128 {
        // SAFETY: guaranteed by the caller.
        unsafe { widened(from.cast::<i32>().read_unaligned()) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn two(from: *const u8) -> __m128 {
        // SAFETY: guaranteed by the caller.
        unsafe { widened(i32::from(from.cast::<u16>().read_unaligned())) }
    }
}

/// The bytes of a word as floats.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn widened(word: i32) -> __m128 {
    // SAFETY: every x86-64 processor has these instructions.
    unsafe {
        let zero = _mm_setzero_si128();
        let words = _mm_unpacklo_epi8(_mm_cvtsi32_si128(word), zero);
        _mm_cvtepi32_ps(_mm_unpacklo_epi16(words, zero))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Line, Load, between};

    /// Eight positions of a row along one axis.
    #[target_feature(enable = "avx2")]
    fn places(line: &Line, x: usize, axis: usize) -> __m256 {
        let lanes = _mm256_setr_ps(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0);
        let xs = _mm256_add_ps(_mm256_set1_ps(x as u32 as f32), lanes);
        _mm256_add_ps(
            _mm256_mul_ps(xs, _mm256_set1_ps(line.step[axis])),
            _mm256_set1_ps(line.start[axis]),
        )
    }

    /// Copies the nearest pixels.
    ///
    /// # Safety
    /// Sides must be positive and below 2^24, and `src` must have all their pixels, fewer than
    /// 2^31.
    #[target_feature(enable = "avx2")]
    pub unsafe fn pick<P: Copy>(
        src: &[P],
        sides: [usize; 2],
        line: &Line,
        first: usize,
        out: &mut [P],
    ) {
        let whole = |place: __m256, side: usize| {
            // NaN becomes zero.
            let place = _mm256_max_ps(place, _mm256_setzero_ps());
            _mm256_cvttps_epi32(_mm256_min_ps(place, _mm256_set1_ps((side - 1) as f32)))
        };
        let width = _mm256_set1_epi32(sides[0] as i32);
        let n = out.len();
        for x in (0..n).step_by(8) {
            let (ix, iy) = (
                whole(places(line, first + x, 0), sides[0]),
                whole(places(line, first + x, 1), sides[1]),
            );
            let mut at = [0_u32; 8];
            // SAFETY: `at` holds eight 32-bit numbers. They are indices of pixels in the image,
            // since positions were clamped to it.
            unsafe {
                let pixels = _mm256_add_epi32(_mm256_mullo_epi32(iy, width), ix);
                _mm256_storeu_si256(at.as_mut_ptr().cast(), pixels);
                if x + 8 < n && size_of::<P>() == 3 {
                    for (i, &at) in at.iter().enumerate() {
                        // Three bytes and one of a neighbour, which the next pixel overwrites; for
                        // the last pixel of the image, it is the neighbour before it.
                        let from = src.as_ptr().add(at as usize).cast::<u8>();
                        let word = if at as usize + 1 < src.len() {
                            from.cast::<u32>().read_unaligned()
                        } else if src.len() > 1 {
                            from.sub(1).cast::<u32>().read_unaligned() >> 8
                        } else {
                            u32::from_le_bytes([*from, *from.add(1), *from.add(2), 0])
                        };
                        out.as_mut_ptr().add(x + i).cast::<u32>().write_unaligned(word);
                    }
                } else {
                    for (out, &at) in out[x..].iter_mut().zip(&at) {
                        *out = *src.get_unchecked(at as usize);
                    }
                }
            }
        }
    }

    /// # Safety
    /// For all positions, the surrounding pixels must be in `src`.
    #[target_feature(enable = "avx2")]
    pub unsafe fn gray_floats<T: Load>(
        src: &[T],
        width: usize,
        line: &Line,
        first: usize,
        out: &mut [f32],
    ) {
        let (blocks, rest) = out.as_chunks_mut::<8>();
        let done = first + 8 * blocks.len();
        for (block, out) in blocks.iter_mut().enumerate() {
            let x = first + 8 * block;
            let (sx, sy) = (places(line, x, 0), places(line, x, 1));
            let (ix, iy) = (_mm256_cvttps_epi32(sx), _mm256_cvttps_epi32(sy));
            let fx = _mm256_sub_ps(sx, _mm256_cvtepi32_ps(ix));
            let fy = _mm256_sub_ps(sy, _mm256_cvtepi32_ps(iy));
            let (mut columns, mut rows) = ([0_u32; 8], [0_u32; 8]);
            // SAFETY: the arrays hold eight 32-bit numbers each; two elements are readable at each
            // position and below it, as the caller guarantees.
            unsafe {
                _mm256_storeu_si256(columns.as_mut_ptr().cast(), ix);
                _mm256_storeu_si256(rows.as_mut_ptr().cast(), iy);
                // Two neighbours are loaded at once, and then separated into left and right ones.
                let along = |from: *const T| {
                    let pair = |i: usize| {
                        let at = rows[i] as usize * width + columns[i] as usize;
                        T::two(from.add(at))
                    };
                    let two = |i: usize| {
                        let (a, b) = (_mm_castps_pd(pair(i)), _mm_castps_pd(pair(i + 1)));
                        _mm_castpd_ps(_mm_unpacklo_pd(a, b))
                    };
                    let (a, b) = (_mm256_set_m128(two(4), two(0)), _mm256_set_m128(two(6), two(2)));
                    let left = _mm256_shuffle_ps(a, b, 0b10_00_10_00);
                    let right = _mm256_shuffle_ps(a, b, 0b11_01_11_01);
                    _mm256_add_ps(left, _mm256_mul_ps(_mm256_sub_ps(right, left), fx))
                };
                let (above, below) = (along(src.as_ptr()), along(src.as_ptr().add(width)));
                let made = _mm256_add_ps(above, _mm256_mul_ps(_mm256_sub_ps(below, above), fy));
                _mm256_storeu_ps(out.as_mut_ptr(), made);
            }
        }
        for (x, out) in rest.iter_mut().enumerate() {
            let [sx, sy] = line.at(done + x);
            let (ix, iy) = (sx as u32, sy as u32);
            let (fx, fy) = (sx - ix as f32, sy - iy as f32);
            let at = iy as usize * width + ix as usize;
            let row = |at: usize| between(src[at].convert(), src[at + 1].convert(), fx);
            *out = between(row(at), row(at + width), fy);
        }
    }

    /// # Safety
    /// For all positions, the surrounding pixels must be in `src`, and one more element.
    #[target_feature(enable = "avx2")]
    pub unsafe fn floats<T: Load, const C: usize>(
        src: &[T],
        width: usize,
        line: &Line,
        first: usize,
        out: &mut [f32],
    ) {
        let n = out.len() / C;
        let pitch = width * C;
        for x in 0..n {
            let [sx, sy] = line.at(first + x);
            // SAFETY: positions are neither negative nor beyond the image; four elements are
            // readable at each of the four pixels, as the caller guarantees. The last pixel of
            // three channels is stored without a fourth element.
            unsafe {
                let (ix, iy) = (sx.to_int_unchecked::<i32>(), sy.to_int_unchecked::<i32>());
                let fx = _mm_set1_ps(sx - ix as f32);
                let fy = _mm_set1_ps(sy - iy as f32);
                let top = src.as_ptr().add(iy as usize * pitch + ix as usize * C);
                let bottom = top.add(pitch);
                let between = |a, b, part| _mm_add_ps(a, _mm_mul_ps(_mm_sub_ps(b, a), part));
                let above = between(T::four(top), T::four(top.add(C)), fx);
                let below = between(T::four(bottom), T::four(bottom.add(C)), fx);
                let made = between(above, below, fy);
                let to = out.as_mut_ptr().add(x * C);
                if C == 4 || x + 1 < n {
                    _mm_storeu_ps(to, made);
                } else {
                    let mut pixel = [0.0; 4];
                    _mm_storeu_ps(pixel.as_mut_ptr(), made);
                    std::ptr::copy_nonoverlapping(pixel.as_ptr(), to, C);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_picks_the_same_pixels() {
        let src: Vec<u8> = (0..20 * 12 * 4).map(|i| (i * 7919 % 251) as u8).collect();
        fn check<const C: usize>(isa: Isa, src: &[u8], sides: [usize; 2], line: &Line) {
            let [width, height] = sides;
            let src = &src[..width * height * C];
            let picture = Picture {
                src,
                sides: [width, height, 1],
                volumetric: false,
                channels: C,
                linear: false,
                long: false,
                fill: None,
            };
            for n in [1, 8, 31] {
                let (mut made, mut expected) = (vec![7; n * C], vec![7; n * C]);
                if !pick::<u8, C>(isa, src, sides, line, 2, &mut made) {
                    continue;
                }
                for (x, out) in expected.chunks_exact_mut(C).enumerate() {
                    let [sx, sy] = line.at(2 + x);
                    let at = picture.find([split(sx, width).0, split(sy, height).0, 0]).unwrap();
                    out.copy_from_slice(&src[at..at + C]);
                }
                assert_eq!(made, expected, "{isa:?} {line:?} {sides:?}");
            }
        }
        for step in [[1.0, 0.0], [0.61, 0.4], [-0.7, 0.33], [0.0, 1e20], [f32::NAN, 0.5]] {
            for start in [[-3.7, 2.0], [17.9, 1.5], [0.0, 0.0]] {
                for sides in [[20, 12], [1, 1], [2, 1], [1, 3]] {
                    for isa in Isa::available() {
                        check::<1>(isa, &src, sides, &Line { start, step });
                        check::<3>(isa, &src, sides, &Line { start, step });
                        check::<4>(isa, &src, sides, &Line { start, step });
                    }
                }
            }
        }
    }

    #[test]
    fn every_isa_agrees_with_scalar() {
        let src: Vec<f32> = (0..20 * 12 * 4).map(|i| (i * 7919 % 251) as f32 / 3.0).collect();
        fn check<const C: usize>(isa: Isa, src: &[f32], line: &Line) {
            let picture = Picture {
                src: &src[..20 * 12 * C],
                sides: [20, 12, 1],
                volumetric: false,
                channels: C,
                linear: true,
                long: false,
                fill: None,
            };
            let inside = line.inside(31, [18, 11]);
            let mut made = vec![0.0; inside.len() * C];
            if !floats::<f32, C>(isa, picture.src, 20, line, inside.start, &mut made) {
                return;
            }
            let mut expected = vec![0.0; inside.len() * C];
            for (x, out) in inside.zip(expected.chunks_exact_mut(C)) {
                linear_edge(&picture, picture.src, line.at(x), out);
            }
            assert_eq!(made, expected, "{isa:?} {line:?}");
        }
        for step in [[1.0, 0.0], [0.61, 0.4], [-0.7, 0.33], [0.0, 0.5]] {
            for start in [[-3.7, 2.0], [17.9, 1.5], [0.0, 0.0]] {
                for isa in Isa::available() {
                    check::<1>(isa, &src, &Line { start, step });
                    check::<3>(isa, &src, &Line { start, step });
                    check::<4>(isa, &src, &Line { start, step });
                }
            }
        }
    }
}
