//! Operands in chunks: broadcast, and converted to the type of the computation.

use std::borrow::Cow;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use smallvec::SmallVec;

use crate::kernels::Result;
use crate::kernels::contract::output::PIECE;
use crate::kernels::generic::cast::Number;
use crate::value::{Element, LINE, Sample, with_room, zeroed};

/// One operand, read in the order of the result's elements.
pub struct Lane<'a, C: Clone> {
    source: Source<'a, C>,
    /// Holds the current chunk if it is not available in memory as needed.
    scratch: Vec<C>,
}

enum Source<'a, C: Clone> {
    /// One element for the whole result.
    Single([C; 1]),
    /// Chunks are read from memory as they are.
    Direct(&'a [C]),
    /// Only the type differs.
    Converted(&'a Sample),
    /// The same `period` elements repeated; the tile extends beyond them by a chunk.
    Repeating { tile: Vec<C>, period: usize },
    /// Any other broadcast.
    Spread { elements: Cow<'a, [C]>, axes: Axes },
}

/// From the outermost axis: the extent in the result, and the step in elements of the operand, zero
/// where it is broadcast.
type Axes = SmallVec<[(usize, usize); 6]>;

impl<'a, C: Number> Lane<'a, C> {
    /// An operand without elements.
    pub fn empty() -> Lane<'a, C> {
        Lane { source: Source::Direct(&[]), scratch: Vec::new() }
    }

    /// The operand broadcast to `shape`, which must be possible.
    pub fn new(sample: &'a Sample, shape: &[usize]) -> Result<Lane<'a, C>> {
        let count = shape.iter().product::<usize>();
        let own = sample.desc.elements();
        let same_type = sample.desc.dtype.storage() == C::DTYPE;
        let whole = || -> Result<Cow<'a, [C]>> {
            if same_type {
                return Ok(Cow::Borrowed(sample.elements::<C>()));
            }
            let mut all = zeroed::<C>(own)?;
            C::convert_row(sample, 0, &mut all);
            Ok(Cow::Owned(all))
        };
        let mut scratch = 0;
        let source = if count == 0 {
            Source::Direct(&[])
        } else if own == 1 {
            Source::Single([whole()?[0]])
        } else if own == count && same_type {
            Source::Direct(sample.elements())
        } else if own == count {
            scratch = PIECE.min(count);
            Source::Converted(sample)
        } else {
            match axes(&sample.desc.shape, shape)[..] {
                [(_, 0), (period, 1)] => {
                    let all = whole()?;
                    let length = period + PIECE.min(count - period);
                    let mut tile = with_room(length)?;
                    tile.extend(all.iter().copied().cycle().take(length));
                    Source::Repeating { tile, period }
                }
                ref axes => {
                    scratch = PIECE.min(count);
                    Source::Spread { elements: whole()?, axes: SmallVec::from_slice(axes) }
                }
            }
        };
        Ok(Lane { source, scratch: vec![C::default(); scratch] })
    }

    /// `len` elements of the broadcast operand from `start` on, or the one element for all.
    pub fn chunk(&mut self, start: usize, len: usize) -> &[C] {
        match &self.source {
            Source::Single(one) => one,
            Source::Direct(all) => {
                fetch_ahead(all, start + len);
                &all[start..start + len]
            }
            Source::Converted(sample) => {
                C::convert_row(sample, start, &mut self.scratch[..len]);
                &self.scratch[..len]
            }
            Source::Repeating { tile, period } => &tile[start % period..][..len],
            Source::Spread { elements, axes } => {
                spread(elements, axes, start, &mut self.scratch[..len]);
                &self.scratch[..len]
            }
        }
    }
}

/// Prefetches the elements around `end` while those before it are processed; otherwise nothing
/// would be loaded while a piece of the result is stored.
fn fetch_ahead<C>(all: &[C], end: usize) {
    #[cfg(target_arch = "x86_64")]
    if end < all.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = all.as_ptr().wrapping_add(end).cast::<i8>().wrapping_sub(FETCHED / 2);
        for line in (0..FETCHED).step_by(LINE) {
            // SAFETY: a prefetch has no visible effect, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(line)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (all, end);
}

/// The usual size of an operand's piece in bytes.
#[cfg(target_arch = "x86_64")]
const FETCHED: usize = 4 * PIECE;

/// The steps of an operand along the axes of the result, with as many axes merged as possible.
fn axes(own: &[usize], shape: &[usize]) -> Axes {
    let mut axes = Axes::new();
    let mut step = 1;
    let own = own.iter().rev().copied().chain(std::iter::repeat(1));
    for (&extent, own) in shape.iter().rev().zip(own).filter(|&(&extent, _)| extent != 1) {
        let stride = if own == 1 { 0 } else { step };
        step *= own;
        match axes.last_mut() {
            Some((inner, inner_step)) if stride == *inner_step * *inner => *inner *= extent,
            _ => axes.push((extent, stride)),
        }
    }
    axes.reverse();
    axes
}

/// Writes the elements of a broadcast operand from `start` on.
fn spread<C: Copy>(elements: &[C], axes: &Axes, start: usize, mut out: &mut [C]) {
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, axes.len());
    let (mut rest, mut offset) = (start, 0);
    for (index, &(extent, step)) in index.iter_mut().zip(axes).rev() {
        *index = rest % extent;
        rest /= extent;
        offset += *index * step;
    }
    let inner = axes.len() - 1;
    let (extent, step) = axes[inner];
    let outer_step = if inner > 0 { axes[inner - 1].1 } else { 0 };
    while !out.is_empty() {
        // A row of elements, each repeated, such as one mask for all channels.
        if step == 0 && outer_step == 1 && index[inner] == 0 && out.len() >= extent {
            let count = (axes[inner - 1].0 - index[inner - 1]).min(out.len() / extent);
            // All but the last, after which outer axes may advance.
            let whole = count - 1;
            let (rows, after) = out.split_at_mut(whole * extent);
            repeat_each(&elements[offset..offset + whole], extent, rows);
            out = after;
            index[inner - 1] += whole;
            offset += whole;
        }
        let run = (extent - index[inner]).min(out.len());
        let (row, after) = out.split_at_mut(run);
        if step == 0 {
            row.fill(elements[offset]);
        } else {
            row.copy_from_slice(&elements[offset..offset + run]);
        }
        out = after;
        index[inner] += run;
        offset += run * step;
        let mut axis = inner;
        while index[axis] == axes[axis].0 && axis > 0 {
            offset -= axes[axis].0 * axes[axis].1;
            index[axis] = 0;
            axis -= 1;
            index[axis] += 1;
            offset += axes[axis].1;
        }
    }
}

/// Writes each element `count` times.
fn repeat_each<C: Copy>(elements: &[C], count: usize, out: &mut [C]) {
    fn repeat<const N: usize, C: Copy>(elements: &[C], out: &mut [C]) {
        for (row, &element) in out.chunks_exact_mut(N).zip(elements) {
            row.copy_from_slice(&[element; N]);
        }
    }
    match count {
        2 => repeat::<2, C>(elements, out),
        3 => repeat::<3, C>(elements, out),
        4 => repeat::<4, C>(elements, out),
        _ => {
            for (row, &element) in out.chunks_exact_mut(count).zip(elements) {
                row.fill(element);
            }
        }
    }
}

/// An element type that stores results of type `R`.
pub trait Holds<R>: Element {
    /// Calls `write` to compute a row, and stores it. Returns what `write` returns.
    fn fill(out: &mut [Self], write: impl FnOnce(&mut [R]) -> bool) -> bool;
}

impl<T: Element> Holds<T> for T {
    fn fill(out: &mut [T], write: impl FnOnce(&mut [T]) -> bool) -> bool {
        write(out)
    }
}

macro_rules! holds {
    ($($small:ty: $wide:ty, |$out:ident, $row:ident| $convert:expr;)*) => {
        $(
            impl Holds<$wide> for $small {
                fn fill($out: &mut [$small], write: impl FnOnce(&mut [$wide]) -> bool) -> bool {
                    let $row = &mut [0.0; PIECE][..$out.len()];
                    let defined = write($row);
                    $convert;
                    defined
                }
            }
        )*
    };
}
holds! {
    f16: f32, |out, row| out.convert_from_f32_slice(row);
    bf16: f32, |out, row| out.convert_from_f32_slice(row);
    f16: f64, |out, row| out.convert_from_f64_slice(row);
    bf16: f64, |out, row| out.convert_from_f64_slice(row);
    f32: f64, |out, row| out.iter_mut().zip(row).for_each(|(o, r)| *o = *r as f32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{DType, Desc};

    fn counting(shape: &[usize]) -> Sample {
        let desc = Desc::new(DType::I32, shape);
        let mut buffer = crate::kernels::OutputBuffer::new(desc).unwrap();
        buffer.elements::<i32>().iter_mut().enumerate().for_each(|(i, e)| *e = i as i32);
        buffer.into_sample().unwrap()
    }

    /// The element of `own` that corresponds to element `flat` of `shape`.
    fn expected(own: &[usize], shape: &[usize], mut flat: usize) -> i32 {
        let (mut offset, mut step) = (0, 1);
        let own = own.iter().rev().copied().chain(std::iter::repeat(1));
        for (&extent, own) in shape.iter().rev().zip(own) {
            offset += if own == 1 { 0 } else { flat % extent * step };
            step *= own;
            flat /= extent;
        }
        offset as i32
    }

    #[test]
    fn every_broadcast_reads_the_right_element() {
        let shapes: &[(&[usize], &[usize])] = &[
            (&[], &[5]),
            (&[3], &[700, 3]),
            (&[1, 3], &[700, 3]),
            (&[700, 1], &[700, 3]),
            (&[2, 1, 3], &[2, 900, 3]),
            (&[4, 1, 2, 1], &[4, 60, 2, 7]),
            (&[5, 1, 50, 1], &[5, 3, 50, 4]),
            (&[40, 30, 1], &[2, 40, 30, 2]),
            (&[1500], &[3, 1500]),
            (&[3, 1], &[2, 3, 1500]),
            (&[2, 3, 1500], &[2, 3, 1500]),
            (&[1, 1, 1], &[7, 400, 1]),
        ];
        for &(own, shape) in shapes {
            let sample = counting(own);
            let count: usize = shape.iter().product();
            let mut ints = Lane::<i32>::new(&sample, shape).unwrap();
            let mut floats = Lane::<f64>::new(&sample, shape).unwrap();
            for start in (0..count).step_by(PIECE) {
                let len = PIECE.min(count - start);
                let (ints, floats) = (ints.chunk(start, len), floats.chunk(start, len));
                for i in 0..len {
                    let want = expected(own, shape, start + i);
                    assert_eq!(*ints.get(i).unwrap_or(&ints[0]), want, "{own:?} {shape:?}");
                    assert_eq!(*floats.get(i).unwrap_or(&floats[0]), f64::from(want));
                }
            }
        }
    }
}
