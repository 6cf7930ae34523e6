//! Interpolation of elements of any type, computed in 32 or 64 bits.

use half::{bf16, f16};

use super::line::{Line, nearest, split};
use super::{Extents, Interpolation, Map, Sampling};
use crate::kernels::cast::Convert;
use crate::kernels::isa::Isa;
use crate::kernels::{Result, Space};
use crate::value::{Bool, DType, Element, Sample, with_element};

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

pub fn warp(sampling: &Sampling, map: &Map, image: &Sample, out: &mut Space) -> Result<()> {
    let dtype = image.desc.dtype;
    let from = Extents::of(&image.desc);
    let keeps_type = dtype == out.desc.dtype;
    if sampling.interpolation == Interpolation::Nearest && keeps_type && !from.volumetric {
        with_element!(dtype, |T| {
            let picture = Picture::<T>::new(image, sampling, &from);
            pick_rows(&picture, map, out);
        });
        return Ok(());
    }
    // What 32 bits hold exactly is computed in them.
    let small = dtype.size() <= 2 || dtype == DType::F32;
    with_element!(dtype, |T| {
        let picture = Picture::<T>::new(image, sampling, &from);
        if small {
            rows::<T, f32>(&picture, map, out);
        } else {
            rows::<T, f64>(&picture, map, out);
        }
    });
    Ok(())
}

/// An image, or frames of them, and what is around it.
struct Picture<'a, T> {
    src: &'a [T],
    sides: [usize; 3],
    volumetric: bool,
    channels: usize,
    linear: bool,
    fill: Option<T>,
}

impl<'a, T: Element> Picture<'a, T>
where
    f64: Convert<T>,
{
    fn new(image: &'a Sample, sampling: &Sampling, from: &Extents) -> Picture<'a, T> {
        Picture {
            src: image.elements(),
            sides: from.sides,
            volumetric: from.volumetric,
            channels: *image.desc.shape.last().unwrap_or(&1),
            linear: sampling.interpolation == Interpolation::Linear,
            // As an element of the image, as in the reference.
            fill: sampling.fill.map(|fill| fill.convert()),
        }
    }

    fn frame(&self, index: usize) -> &'a [T] {
        let size = self.sides.iter().product::<usize>() * self.channels;
        &self.src[index * size..][..size]
    }

    /// The element of the first channel of a pixel; `Err` is what is there instead.
    #[inline]
    fn find(&self, place: [i64; 3]) -> std::result::Result<usize, T> {
        let is_inside = || (0..3).all(|i| (0..self.sides[i] as i64).contains(&place[i]));
        let near = |i: usize| nearest(place[i], self.sides[i]);
        match (self.fill, near(0), near(1), near(2)) {
            (Some(fill), ..) if !is_inside() => Err(fill),
            (_, Some(x), Some(y), Some(z)) => {
                Ok(((z * self.sides[1] + y) * self.sides[0] + x) * self.channels)
            }
            // The caller has seen to it that there is a pixel or a fill.
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

/// Nearest neighbours, which only move.
fn pick_rows<T: Element>(picture: &Picture<'_, T>, map: &Map, out: &mut Space)
where
    f64: Convert<T>,
{
    let [out_width, out_height, _] = Extents::of(&out.desc).sides;
    let c = picture.channels;
    for (index, out) in out.elements::<T>().chunks_exact_mut(out_width * out_height * c).enumerate()
    {
        let frame = picture.frame(index);
        for (y, row) in out.chunks_exact_mut(out_width * c).enumerate() {
            let line = Line::new(map, y, 0.0);
            match c {
                1 => pick_row::<T, 1>(picture, frame, &line, row),
                3 => pick_row::<T, 3>(picture, frame, &line, row),
                4 => pick_row::<T, 4>(picture, frame, &line, row),
                _ => pick_row::<T, 0>(picture, frame, &line, row),
            }
        }
    }
}

/// `C` is the number of channels, or 0 for any.
fn pick_row<T: Element, const C: usize>(
    picture: &Picture<'_, T>,
    frame: &[T],
    line: &Line,
    out: &mut [T],
) where
    f64: Convert<T>,
{
    let c = if C == 0 { picture.channels } else { C };
    let [width, height, _] = picture.sides;
    let inside = line.inside(out.len() / c, [width, height]);
    for (x, out) in out.chunks_exact_mut(c).enumerate() {
        let [sx, sy] = line.at(x);
        if inside.contains(&x) {
            let at = (sy as u32 as usize * width + sx as u32 as usize) * c;
            out.copy_from_slice(&frame[at..at + c]);
            continue;
        }
        match picture.find([split(sx, width).0, split(sy, height).0, 0]) {
            Ok(at) => out.copy_from_slice(&frame[at..at + c]),
            Err(fill) => out.fill(fill),
        }
    }
}

/// Rows in the type that is computed in, stored as what is asked for.
fn rows<T: Element + Convert<A>, A: Wide>(picture: &Picture<'_, T>, map: &Map, out: &mut Space)
where
    f64: Convert<T>,
{
    let [width, height, depth] = Extents::of(&out.desc).sides;
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
        return rows.enumerate().for_each(|(index, row)| make(index, row));
    }
    let mut wide = vec![A::default(); row_length];
    with_element!(dtype, |U| {
        for (index, row) in out.elements::<U>().chunks_exact_mut(row_length).enumerate() {
            make(index, &mut wide);
            for (o, &x) in row.iter_mut().zip(&wide) {
                *o = x.convert();
            }
        }
    });
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
    if !picture.linear {
        let line = Line::new(map, y, 0.0);
        for (x, out) in out.chunks_exact_mut(picture.channels).enumerate() {
            let [sx, sy] = line.at(x);
            let at =
                picture.find([split(sx, picture.sides[0]).0, split(sy, picture.sides[1]).0, 0]);
            for (channel, out) in out.iter_mut().enumerate() {
                *out = picture.tap(frame, at, channel);
            }
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
    // Vectors of three channels are read with one element more.
    let margin = if C == 3 { 2 } else { 1 };
    let limits = [width.saturating_sub(margin), height.saturating_sub(1)];
    let inside = line.inside(out.len() / c, limits);
    let (before, rest) = out.split_at_mut(inside.start * c);
    let (middle, after) = rest.split_at_mut(inside.len() * c);
    for (x, out) in before.chunks_exact_mut(c).enumerate() {
        linear_edge(picture, frame, line.at(x), out);
    }
    for (x, out) in after.chunks_exact_mut(c).enumerate() {
        linear_edge(picture, frame, line.at(inside.end + x), out);
    }
    if matches!(C, 3 | 4) && T::DTYPE == DType::F32 && A::DTYPE == DType::F32 {
        // SAFETY: both are `f32`.
        let (frame, middle) = unsafe {
            (
                std::slice::from_raw_parts(frame.as_ptr().cast::<f32>(), frame.len()),
                std::slice::from_raw_parts_mut(middle.as_mut_ptr().cast::<f32>(), middle.len()),
            )
        };
        if floats::<C>(Isa::best(), frame, width, line, inside.start, middle) {
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

/// A pixel for which not all of the four around its place are there.
fn linear_edge<T: Element + Convert<A>, A: Wide>(
    picture: &Picture<'_, T>,
    frame: &[T],
    [sx, sy]: [f32; 2],
    out: &mut [A],
) where
    f64: Convert<T>,
{
    let ((x, fx), (y, fy)) = (split(sx, picture.sides[0]), split(sy, picture.sides[1]));
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
        let place: [f32; 3] =
            std::array::from_fn(|i| (start[i] + map.0[i][0] * x as f64 + offset) as f32);
        let parts: [(i64, f32); 3] = std::array::from_fn(|i| split(place[i], picture.sides[i]));
        let [(px, fx), (py, fy), (pz, fz)] = parts;
        if !picture.linear {
            let at = picture.find([px, py, pz]);
            for (channel, out) in out.iter_mut().enumerate() {
                *out = picture.tap(frame, at, channel);
            }
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

/// The pixels of a row whose places have all the pixels around them in the image, and one element
/// more with three channels. False when vectors are of no use.
fn floats<const C: usize>(
    isa: Isa,
    src: &[f32],
    width: usize,
    line: &Line,
    first: usize,
    out: &mut [f32],
) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            // SAFETY: an `Isa::Avx2` is only made where AVX2 was detected; the caller has seen to
            // the places.
            unsafe { avx2::floats::<C>(src, width, line, first, out) };
            true
        }
        _ => false,
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::Line;

    /// # Safety
    /// All places have the pixels around them in `src`, and one element more.
    #[target_feature(enable = "avx2")]
    pub unsafe fn floats<const C: usize>(
        src: &[f32],
        width: usize,
        line: &Line,
        first: usize,
        out: &mut [f32],
    ) {
        let n = out.len() / C;
        let pitch = width * C;
        for x in 0..n {
            let [sx, sy] = line.at(first + x);
            // SAFETY: places are neither negative nor beyond the image; four elements can be read
            // at each of the four pixels, as the caller says. The last pixel of three channels is
            // written without a fourth.
            unsafe {
                let (ix, iy) = (sx.to_int_unchecked::<i32>(), sy.to_int_unchecked::<i32>());
                let fx = _mm_set1_ps(sx - ix as f32);
                let fy = _mm_set1_ps(sy - iy as f32);
                let top = src.as_ptr().add(iy as usize * pitch + ix as usize * C);
                let bottom = top.add(pitch);
                let between = |a, b, part| _mm_add_ps(a, _mm_mul_ps(_mm_sub_ps(b, a), part));
                let above = between(_mm_loadu_ps(top), _mm_loadu_ps(top.add(C)), fx);
                let below = between(_mm_loadu_ps(bottom), _mm_loadu_ps(bottom.add(C)), fx);
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
    fn every_isa_agrees_with_scalar() {
        let src: Vec<f32> = (0..20 * 12 * 4).map(|i| (i * 7919 % 251) as f32 / 3.0).collect();
        fn check<const C: usize>(isa: Isa, src: &[f32], line: &Line) {
            let picture = Picture {
                src: &src[..20 * 12 * C],
                sides: [20, 12, 1],
                volumetric: false,
                channels: C,
                linear: true,
                fill: None,
            };
            let inside = line.inside(31, [18, 11]);
            let mut made = vec![0.0; inside.len() * C];
            if !floats::<C>(isa, picture.src, 20, line, inside.start, &mut made) {
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
                    check::<3>(isa, &src, &Line { start, step });
                    check::<4>(isa, &src, &Line { start, step });
                }
            }
        }
    }
}
