//! Copying between memory orders.

use smallvec::SmallVec;

use super::sample::{Shape, Strides};

/// Copies a strided array into row-major order.
///
/// # Safety
/// Every element that `strides` reach from `src` must be readable, and `dst` must be writable for
/// `product(shape) * itemsize` bytes that don't overlap the source.
pub unsafe fn copy_strided(
    src: *const u8,
    strides: &[isize],
    shape: &[usize],
    itemsize: usize,
    dst: *mut u8,
) {
    if shape.contains(&0) {
        return;
    }
    let (shape, strides, item) = merge_axes(shape, strides, itemsize);
    // SAFETY: merging axes visits the same bytes in the same order.
    unsafe {
        match item {
            1 => walk::<1>(src, &strides, &shape, dst),
            2 => walk::<2>(src, &strides, &shape, dst),
            3 => walk::<3>(src, &strides, &shape, dst),
            4 => walk::<4>(src, &strides, &shape, dst),
            8 => walk::<8>(src, &strides, &shape, dst),
            12 => walk::<12>(src, &strides, &shape, dst),
            16 => walk::<16>(src, &strides, &shape, dst),
            _ => walk_long(src, &strides, &shape, item, dst),
        };
    }
}

/// Joins what lies together in memory: inner axes become one long item, neighbouring axes one.
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

/// # Safety
/// As [`copy_strided`], with items of `N` bytes. Returns where the next item would go.
unsafe fn walk<const N: usize>(
    src: *const u8,
    strides: &[isize],
    shape: &[usize],
    mut dst: *mut u8,
) -> *mut u8 {
    // SAFETY: the caller vouches for every element on both sides.
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
/// As [`walk`], for items of any length.
unsafe fn walk_long(
    src: *const u8,
    strides: &[isize],
    shape: &[usize],
    item: usize,
    mut dst: *mut u8,
) -> *mut u8 {
    // SAFETY: the caller vouches for every element on both sides.
    unsafe {
        match shape {
            [] => {
                std::ptr::copy_nonoverlapping(src, dst, item);
                dst.add(item)
            }
            &[n, ref inner @ ..] => {
                for i in 0..n {
                    let row = src.offset(i as isize * strides[0]);
                    dst = walk_long(row, &strides[1..], inner, item, dst);
                }
                dst
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(src: &[u8], start: usize, shape: &[usize], strides: &[isize], item: usize) -> Vec<u8> {
        let mut dst = vec![0; shape.iter().product::<usize>() * item];
        // SAFETY: the tests below stay inside of `src`.
        unsafe {
            copy_strided(src[start..].as_ptr(), strides, shape, item, dst.as_mut_ptr());
        }
        dst
    }

    #[test]
    fn transposed_reversed_and_repeated_axes_come_out_in_order() {
        let src: Vec<u8> = (0..24).collect();
        assert_eq!(copy(&src, 0, &[3, 2], &[1, 3], 1), [0, 3, 1, 4, 2, 5]);
        assert_eq!(copy(&src, 23, &[3], &[-1], 1), [23, 22, 21]);
        assert_eq!(copy(&src, 4, &[2, 2], &[0, 2], 2), [4, 5, 6, 7, 4, 5, 6, 7]);
        assert_eq!(copy(&src, 0, &[2, 3, 4], &[12, 4, 1], 1), src);
        assert_eq!(copy(&src, 0, &[2, 5], &[12, 1], 1), [0, 1, 2, 3, 4, 12, 13, 14, 15, 16]);
        assert_eq!(copy(&src, 0, &[0, 5], &[12, 1], 1), [0_u8; 0]);
    }

    #[test]
    fn neighbouring_axes_merge() {
        let (shape, strides, item) = merge_axes(&[4, 3, 2], &[6, 2, 1], 1);
        assert!(shape.is_empty() && strides.is_empty() && item == 24);
        let (shape, strides, item) = merge_axes(&[4, 3, 2], &[12, 4, 1], 1);
        assert_eq!((&shape[..], &strides[..], item), (&[12][..], &[4][..], 2));
    }
}
