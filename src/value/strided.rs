//! Copies strided arrays.

use smallvec::SmallVec;

use super::sample::{Shape, Strides, extent};
use super::stores::Stores;

/// Copies a strided array to `dst`, which has exactly its size, in row-major order.
///
/// # Safety
/// Every element that is reachable from `src` by `strides` must be readable.
pub unsafe fn copy_strided<'a>(
    src: *const u8,
    strides: &[isize],
    shape: &[usize],
    itemsize: usize,
    dst: &'a mut [u8],
    stores: &Stores<'a>,
) {
    assert_eq!(Some(dst.len() / itemsize), extent(shape));
    if shape.contains(&0) {
        return;
    }
    let (shape, strides, item) = merge_axes(shape, strides, itemsize);
    let to = dst.as_mut_ptr();
    // SAFETY: merging axes visits the same bytes in the same order, and `dst` has their size.
    unsafe {
        match item {
            1 => copy_items::<1>(src, &strides, &shape, to),
            2 => copy_items::<2>(src, &strides, &shape, to),
            3 => copy_items::<3>(src, &strides, &shape, to),
            4 => copy_items::<4>(src, &strides, &shape, to),
            6 => copy_items::<6>(src, &strides, &shape, to),
            8 => copy_items::<8>(src, &strides, &shape, to),
            12 => copy_items::<12>(src, &strides, &shape, to),
            16 => copy_items::<16>(src, &strides, &shape, to),
            _ => copy_rows(src, &strides, &shape, item, dst, stores),
        }
    }
}

/// Merges axes that are contiguous in memory: inner ones into one long item, neighbours into one
/// axis.
fn merge_axes(shape: &[usize], strides: &[isize], itemsize: usize) -> (Shape, Strides, usize) {
    let mut item = itemsize;
    let mut axes: SmallVec<[(usize, isize); 6]> = SmallVec::new();
    for (&d, &stride) in shape.iter().zip(strides).rev().filter(|&(&d, _)| d != 1) {
        match axes.last_mut() {
            None if stride == item as isize => item *= d,
            Some((inner, step)) if stride == *step * *inner as isize => *inner *= d,
            _ => axes.push((d, stride)),
        }
    }
    axes.reverse();
    let (shape, strides) = axes.into_iter().unzip();
    (shape, strides, item)
}

/// An axis: its extent, and the bytes from one item to the next in source and destination.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    src: isize,
    dst: isize,
}

/// # Safety
/// As [`copy_strided`], with items of `N` bytes; `dst` must have room for all of them.
unsafe fn copy_items<const N: usize>(
    src: *const u8,
    strides: &[isize],
    shape: &[usize],
    dst: *mut u8,
) {
    let mut step = N as isize;
    let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
    for (&len, &src) in shape.iter().zip(strides).rev() {
        axes.push(Axis { len, src, dst: step });
        step *= len as isize;
    }
    // Where neighbours in the source are not neighbours in the result, following either order
    // touches a cache line per item, so the copy goes tile by tile.
    let nearest = (1..axes.len()).min_by_key(|&axis| axes[axis].src.unsigned_abs());
    // SAFETY: both variants visit each item once, at the same position on either side.
    unsafe {
        match nearest {
            Some(nearest) if axes[nearest].src.unsigned_abs() < axes[0].src.unsigned_abs() => {
                let near = axes.remove(nearest);
                let last = axes.remove(0);
                axes.reverse();
                let is_far = |axis: &Axis| axis.src.unsigned_abs() > last.src.unsigned_abs();
                let (far, close): (SmallVec<[Axis; 6]>, SmallVec<[Axis; 6]>) =
                    axes.into_iter().partition(is_far);
                // Items between two of the last axis are read while their lines are in cache.
                for_each(src, dst, &far, &mut |src, dst| {
                    for first in (0..last.len).step_by(TILE) {
                        let (from, to) = (first as isize * last.src, first as isize * last.dst);
                        let last = Axis { len: TILE.min(last.len - first), ..last };
                        for_each(src.offset(from), dst.offset(to), &close, &mut |src, dst| {
                            copy_plane::<N>(src, dst, near, last);
                        });
                    }
                });
            }
            _ => _ = walk::<N>(src, strides, shape, dst),
        }
    }
}

/// # Safety
/// The axes must stay inside both source and destination.
unsafe fn for_each(
    src: *const u8,
    dst: *mut u8,
    axes: &[Axis],
    visit: &mut dyn FnMut(*const u8, *mut u8),
) {
    match axes {
        [] => visit(src, dst),
        [axis, inner @ ..] => {
            for i in 0..axis.len as isize {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    for_each(src.offset(i * axis.src), dst.offset(i * axis.dst), inner, visit);
                }
            }
        }
    }
}

/// Copies two axes: the source is dense along `near`; the result is dense along `last`, which is at
/// most a tile long.
///
/// # Safety
/// The axes must stay inside both source and destination.
unsafe fn copy_plane<const N: usize>(src: *const u8, dst: *mut u8, near: Axis, last: Axis) {
    for first in (0..near.len).step_by(TILE) {
        let near_len = TILE.min(near.len - first);
        // SAFETY: the caller guarantees it for every item of the two axes.
        unsafe {
            let src = src.offset(first as isize * near.src);
            let dst = dst.offset(first as isize * near.dst);
            let near = Axis { len: near_len, ..near };
            // The longer axis is the inner loop.
            let (rows, row) = if last.len < near.len { (last, near) } else { (near, last) };
            for r in 0..rows.len as isize {
                let (src, dst) = (src.offset(r * rows.src), dst.offset(r * rows.dst));
                for i in 0..row.len as isize {
                    let item = src.offset(i * row.src).cast::<[u8; N]>().read();
                    dst.offset(i * row.dst).cast::<[u8; N]>().write(item);
                }
            }
        }
    }
}

/// Items per side of a tile, chosen so that the lines it touches stay in the L1 cache.
const TILE: usize = 64;

/// # Safety
/// As [`copy_strided`], with items of `N` bytes. Returns the end of the copy.
unsafe fn walk<const N: usize>(
    src: *const u8,
    strides: &[isize],
    shape: &[usize],
    mut dst: *mut u8,
) -> *mut u8 {
    // SAFETY: the caller guarantees it for every element on both sides.
    unsafe {
        match shape {
            [] => {
                dst.cast::<[u8; N]>().write(src.cast::<[u8; N]>().read());
                dst.add(N)
            }
            &[n] => {
                for i in 0..n {
                    let item = src.offset(i as isize * strides[0]).cast::<[u8; N]>().read();
                    dst.cast::<[u8; N]>().write(item);
                    dst = dst.add(N);
                }
                dst
            }
            &[n, ref inner @ ..] => {
                for i in 0..n {
                    dst = walk::<N>(src.offset(i as isize * strides[0]), &strides[1..], inner, dst);
                }
                dst
            }
        }
    }
}

/// # Safety
/// As [`copy_strided`], for items of any length.
unsafe fn copy_rows<'a>(
    src: *const u8,
    strides: &[isize],
    shape: &[usize],
    item: usize,
    dst: &'a mut [u8],
    stores: &Stores<'a>,
) {
    let &[n, ref inner @ ..] = shape else {
        // SAFETY: the caller guarantees it for every element of the source.
        return stores.copy(dst, unsafe { std::slice::from_raw_parts(src, item) });
    };
    let row = dst.len() / n;
    for (i, dst) in dst.chunks_exact_mut(row).enumerate() {
        // SAFETY: as above.
        unsafe {
            let src = src.offset(i as isize * strides[0]);
            copy_rows(src, &strides[1..], inner, item, dst, stores);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(src: &[u8], start: usize, shape: &[usize], strides: &[isize], item: usize) -> Vec<u8> {
        let mut dst = vec![0; shape.iter().product::<usize>() * item];
        // SAFETY: the tests below stay inside `src`.
        unsafe {
            let src = src[start..].as_ptr();
            copy_strided(src, strides, shape, item, &mut dst, &Stores::plain());
        }
        dst
    }

    #[test]
    fn transposed_reversed_and_broadcast_axes_are_copied_in_order() {
        let src: Vec<u8> = (0..24).collect();
        assert_eq!(copy(&src, 0, &[3, 2], &[1, 3], 1), [0, 3, 1, 4, 2, 5]);
        assert_eq!(copy(&src, 23, &[3], &[-1], 1), [23, 22, 21]);
        assert_eq!(copy(&src, 4, &[2, 2], &[0, 2], 2), [4, 5, 6, 7, 4, 5, 6, 7]);
        assert_eq!(copy(&src, 0, &[2, 3, 4], &[12, 4, 1], 1), src);
        assert_eq!(copy(&src, 0, &[2, 5], &[12, 1], 1), [0, 1, 2, 3, 4, 12, 13, 14, 15, 16]);
        assert_eq!(copy(&src, 0, &[0, 5], &[12, 1], 1), [0_u8; 0]);
    }

    #[test]
    fn tiles_cover_every_item_for_any_order_of_axes() {
        let extents = [3, 70, 1, 5, 67];
        let strides = [70 * 5 * 67, 5 * 67, 335, 67, 1];
        let src: Vec<u8> = (0..3 * 70 * 5 * 67_u32).map(|i| (i % 251) as u8).collect();
        for perm in [[4, 3, 2, 1, 0], [1, 0, 2, 4, 3], [0, 4, 2, 1, 3], [3, 2, 1, 4, 0]] {
            let shape = perm.map(|axis| extents[axis]);
            let steps = perm.map(|axis| strides[axis]);
            let mut expected = Vec::new();
            for flat in 0..src.len() {
                let (mut rest, mut at) = (flat, 0);
                for (&d, &step) in shape.iter().zip(&steps).rev() {
                    at += (rest % d) * step as usize;
                    rest /= d;
                }
                expected.push(src[at]);
            }
            assert!(copy(&src, 0, &shape, &steps, 1) == expected, "{perm:?}");
        }
    }

    #[test]
    fn neighbouring_axes_merge() {
        let (shape, strides, item) = merge_axes(&[4, 3, 2], &[6, 2, 1], 1);
        assert!(shape.is_empty() && strides.is_empty() && item == 24);
        let (shape, strides, item) = merge_axes(&[4, 3, 2], &[12, 4, 1], 1);
        assert_eq!((&shape[..], &strides[..], item), (&[12][..], &[4][..], 2));
    }
}
