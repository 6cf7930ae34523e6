//! Dilation and erosion with a rectangular structuring element.

use super::planes::{Ordered, Planes, width_and_height};
use super::problem::Filters;
use crate::kernels::contract::problems::{Argument, Input, argument, unfit};
use crate::kernels::numeric::isa::vectorized;
use crate::kernels::warp::places::{Border, with_number};
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{Desc, Element, Sample, filled};

args! {
    pub struct MorphologyArgs {
        anchor: Vec<i64>,
        border_mode: Border,
        iterations: i64,
        mask_size: Vec<i64>,
    }
}

/// Extent of the mask before and after its anchor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reach {
    before: usize,
    after: usize,
}

impl Reach {
    fn size(&self) -> usize {
        self.before + self.after + 1
    }

    /// Limited to `2 * n`: in any border mode, a larger window over `n` pixels has no further
    /// values.
    fn within(&self, n: usize) -> Reach {
        Reach { before: self.before.min(2 * n), after: self.after.min(2 * n) }
    }
}

/// The rectangle of all iterations combined, and the border mode.
pub struct Mask {
    across: Reach,
    down: Reach,
    border: Border,
}

impl Mask {
    fn new(args: &MorphologyArgs) -> Result<Mask> {
        let mut size = width_and_height("mask_size", &args.mask_size)?;
        let anchor = width_and_height("anchor", &args.anchor)?;
        if args.iterations < 0 {
            let given = args.iterations as f64;
            return Err(argument("iterations", Argument::Negative { given }));
        }
        if size.contains(&-1) {
            // As in DALI's GPU operator.
            size = [3, 3];
        }
        if let Some(&given) = size.iter().find(|&&size| size < 1) {
            return Err(argument("mask_size", Argument::NotPositive { given: given as f64 }));
        }
        let reach = |axis: usize| {
            let (size, anchor) = (size[axis], anchor[axis]);
            let anchor = if anchor < 0 { size / 2 } else { anchor };
            if anchor >= size {
                let problem = Filters::Anchor { given: anchor, size: size as usize };
                return Err(argument("anchor", problem));
            }
            let far = |reach: i64| reach.saturating_mul(args.iterations) as usize;
            Ok(Reach { before: far(anchor), after: far(size - 1 - anchor) })
        };
        Ok(Mask { across: reach(0)?, down: reach(1)?, border: args.border_mode })
    }
}

/// Maximum or minimum.
trait Choice {
    /// The identity element.
    fn neutral<T: Ordered>() -> T;
    fn choose<T: Ordered>(a: T, b: T) -> T;
}

pub struct Larger;
pub struct Smaller;

impl Choice for Larger {
    fn neutral<T: Ordered>() -> T {
        T::LEAST
    }
    #[inline(always)]
    fn choose<T: Ordered>(a: T, b: T) -> T {
        a.high(b)
    }
}

impl Choice for Smaller {
    fn neutral<T: Ordered>() -> T {
        T::MOST
    }
    #[inline(always)]
    fn choose<T: Ordered>(a: T, b: T) -> T {
        a.low(b)
    }
}

pub struct Dilate;
pub struct Erode;

macro_rules! kernel {
    ($name:ident, $choice:ty) => {
        impl Kernel for $name {
            type Args = MorphologyArgs;
            type Plan = Mask;
            const TRAITS: Traits =
                Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

            fn plan(args: MorphologyArgs, inputs: &[&Desc]) -> Result<(Mask, Outputs)> {
                let input = inputs[0];
                with_number!(
                    input.dtype,
                    |_T| Ok((Mask::new(&args)?, one(input.clone()))),
                    Err(unfit(0, Input::NotNumbers { dtype: input.dtype.name() }))
                )
            }

            fn run(mask: &Mask, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
                run::<$choice>(mask, &inputs[0], &mut outputs[0])
            }
        }
    };
}
kernel!(Dilate, Larger);
kernel!(Erode, Smaller);

fn run<K: Choice>(mask: &Mask, image: &Sample, out: &mut Output<'_>) -> Result<()> {
    let planes = Planes::of(&image.desc);
    if planes.size() == 0 {
        return Ok(());
    }
    with_number!(
        image.desc.dtype,
        |T| {
            let images = image.elements::<T>().chunks_exact(planes.size());
            for (src, dst) in images.zip(out.elements::<T>().chunks_exact_mut(planes.size())) {
                filter::<T, K>(mask, &planes, src, dst)?;
            }
        },
        ()
    );
    Ok(())
}

/// Masks with more rows are processed in blocks.
const MANY_ROWS: usize = 8;

fn filter<T: Element + Ordered, K: Choice>(
    mask: &Mask,
    planes: &Planes,
    src: &[T],
    dst: &mut [T],
) -> Result<()> {
    let row = planes.row();
    let (across, down) = (mask.across.within(planes.width), mask.down.within(planes.height));
    // Replicated edge pixels are inside the mask anyway, so they have no effect.
    let is_bare = matches!(mask.border, Border::Constant | Border::Replicate);
    let border = if is_bare { Border::Constant } else { mask.border };
    let mut along = Along::<T>::new::<K>(across, border, planes)?;
    if is_bare && down.size() <= MANY_ROWS {
        // Ring buffer of horizontally filtered rows; row `y` is at `y % kept`.
        let kept = down.size().min(planes.height);
        let mut ring = filled(K::neutral::<T>(), kept * row)?;
        let mut ready = 0;
        for (y, out) in dst.chunks_exact_mut(row).enumerate() {
            let (first, last) =
                (y.saturating_sub(down.before), (y + down.after).min(planes.height - 1));
            while ready <= last {
                let to = &mut ring[ready % kept * row..][..row];
                along.filter::<K>(&src[ready * row..][..row], to);
                ready += 1;
            }
            let at = |y: usize| &ring[y % kept * row..][..row];
            combine::<T, K>(out, first, last, at);
        }
        return Ok(());
    }
    // Van Herk/Gil-Werman: rows are split into blocks as tall as the mask. Each window is a suffix
    // of one block and a prefix of the next, so running maxima (or minima) in both directions
    // suffice.
    let count = down.size();
    let mut ends = filled(K::neutral::<T>(), count * row)?;
    let mut next = filled(K::neutral::<T>(), count * row)?;
    let mut beginning = filled(K::neutral::<T>(), row)?;
    let mut read = |index: usize, to: &mut [T]| match border
        .resolve(index as i64 - down.before as i64, planes.height)
    {
        Some(y) => along.filter::<K>(&src[y * row..][..row], to),
        None => to.fill(K::neutral()),
    };
    for (index, to) in next.chunks_exact_mut(row).enumerate() {
        read(index, to);
    }
    for (block, out) in dst.chunks_mut(count * row).enumerate() {
        std::mem::swap(&mut ends, &mut next);
        for index in (0..count - 1).rev() {
            let (to, from) = ends.split_at_mut((index + 1) * row);
            take::<T, K>(&mut to[index * row..], &from[..row]);
        }
        beginning.fill(K::neutral());
        for (index, out) in out.chunks_exact_mut(row).enumerate() {
            if index > 0 {
                let new = &mut next[(index - 1) * row..][..row];
                read((block + 1) * count + index - 1, new);
                take::<T, K>(&mut beginning, new);
            }
            choose2::<T, K>(out, &ends[index * row..][..row], &beginning);
        }
        // The last row of the next block, which no window of this block contains.
        read((block + 2) * count - 1, &mut next[(count - 1) * row..]);
    }
    Ok(())
}

/// Combines the rows from `first` to `last`.
fn combine<'a, T: Element + Ordered, K: Choice>(
    out: &mut [T],
    first: usize,
    last: usize,
    at: impl Fn(usize) -> &'a [T],
) {
    let mut next = first + 1;
    match last - first {
        0 => out.copy_from_slice(at(first)),
        1 => {
            choose2::<T, K>(out, at(first), at(last));
            next += 1;
        }
        _ => {
            choose3::<T, K>(out, at(first), at(first + 1), at(first + 2));
            next += 2;
        }
    }
    while next <= last {
        take2::<T, K>(out, at(next), at((next + 1).min(last)));
        next += 2;
    }
}

// Rows are passed as separate slice arguments, so that the compiler knows that they don't alias.

#[inline(never)]
fn choose2<T: Ordered, K: Choice>(out: &mut [T], a: &[T], b: &[T]) {
    vectorized!({
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = K::choose(a, b);
        }
    });
}

#[inline(never)]
fn choose3<T: Ordered, K: Choice>(out: &mut [T], a: &[T], b: &[T], c: &[T]) {
    vectorized!({
        for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
            *out = K::choose(K::choose(a, b), c);
        }
    });
}

#[inline(never)]
fn take<T: Ordered, K: Choice>(out: &mut [T], a: &[T]) {
    vectorized!({
        for (out, &a) in out.iter_mut().zip(a) {
            *out = K::choose(*out, a);
        }
    });
}

#[inline(never)]
fn take2<T: Ordered, K: Choice>(out: &mut [T], a: &[T], b: &[T]) {
    vectorized!({
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = K::choose(*out, K::choose(a, b));
        }
    });
}

/// Horizontal pass.
struct Along<T> {
    size: usize,
    channels: usize,
    /// Source index of each padding element, if any: those before the row, and those after it.
    around: [Vec<Option<usize>>; 2],
    padded: Vec<T>,
    half: Vec<T>,
}

impl<T: Element + Ordered> Along<T> {
    fn new<K: Choice>(reach: Reach, border: Border, planes: &Planes) -> Result<Along<T>> {
        let Planes { width, channels, .. } = *planes;
        let around = |from: i64, count: usize| -> Result<Vec<Option<usize>>> {
            let mut made = filled(None, count * channels)?;
            for (i, at) in made.iter_mut().enumerate() {
                let pixel = border.resolve(from + (i / channels) as i64, width);
                *at = pixel.map(|pixel| pixel * channels + i % channels);
            }
            Ok(made)
        };
        let around =
            [around(-(reach.before as i64), reach.before)?, around(width as i64, reach.after)?];
        let all = if reach.size() == 1 { 0 } else { (width + reach.size() - 1) * channels };
        let (padded, half) = (filled(K::neutral(), all)?, filled(K::neutral(), all)?);
        Ok(Along { size: reach.size(), channels, around, padded, half })
    }

    fn filter<K: Choice>(&mut self, row: &[T], out: &mut [T]) {
        if self.size == 1 {
            out.copy_from_slice(row);
            return;
        }
        let (before, rest) = self.padded.split_at_mut(self.around[0].len());
        let (middle, after) = rest.split_at_mut(row.len());
        middle.copy_from_slice(row);
        for (part, around) in [before, after].into_iter().zip(&self.around) {
            for (to, from) in part.iter_mut().zip(around) {
                *to = from.map_or(K::neutral(), |from| row[from]);
            }
        }
        let (c, size) = (self.channels, self.size);
        // Triples the window size in each pass: a window of 3n is the union of three windows of n.
        let (mut have, mut left) = (1, self.padded.len());
        while 3 * have < size {
            left -= 2 * have * c;
            let part = |k: usize| &self.padded[k * have * c..];
            choose3::<T, K>(&mut self.half[..left], part(0), part(1), part(2));
            std::mem::swap(&mut self.half, &mut self.padded);
            have *= 3;
        }
        let from = |pixel: usize| &self.padded[pixel * c..];
        if size <= 2 * have {
            choose2::<T, K>(out, from(0), from(size - have));
        } else {
            choose3::<T, K>(out, from(0), from(have), from(size - have));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference: pixel by pixel.
    fn reference(mask: &Mask, planes: &Planes, src: &[u8]) -> Vec<u8> {
        let Planes { height, width, channels } = *planes;
        let mut out = Vec::new();
        for y in 0..height as i64 {
            for x in 0..width as i64 {
                for c in 0..channels {
                    let mut least = u8::MAX;
                    for dy in -(mask.down.before as i64)..=mask.down.after as i64 {
                        for dx in -(mask.across.before as i64)..=mask.across.after as i64 {
                            let y = mask.border.resolve(y + dy, height);
                            let x = mask.border.resolve(x + dx, width);
                            if let (Some(y), Some(x)) = (y, x) {
                                least = least.min(src[(y * width + x) * channels + c]);
                            }
                        }
                    }
                    out.push(least);
                }
            }
        }
        out
    }

    #[test]
    fn every_mask_matches_the_reference() {
        let reaches = [(0, 0), (1, 1), (0, 3), (2, 1), (4, 4), (20, 17), (40, 0)];
        for (height, width, channels) in [(1, 1, 1), (5, 7, 3), (9, 40, 1), (23, 3, 2)] {
            let planes = Planes { height, width, channels };
            let src: Vec<u8> = (0..planes.size()).map(|i| (i * i * 31 % 251) as u8).collect();
            for (before, after) in reaches {
                for (above, below) in reaches {
                    for border in
                        [Border::Constant, Border::Replicate, Border::Reflect, Border::Wrap]
                    {
                        let (across, down) =
                            (Reach { before, after }, Reach { before: above, after: below });
                        let mask = Mask { across, down, border };
                        let mut out = vec![0; src.len()];
                        filter::<u8, Smaller>(&mask, &planes, &src, &mut out).unwrap();
                        let expected = reference(&mask, &planes, &src);
                        assert_eq!(out, expected, "{across:?} {down:?} {border:?}");
                    }
                }
            }
        }
    }
}
