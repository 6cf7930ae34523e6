//! Median filters of size 3, 5 and 7 with sorting networks. Processes whole rows with SIMD; each
//! column is sorted once for all windows that contain it.
//!
//! Loops use indices rather than closures: a closure that is not inlined would be compiled without
//! AVX2.
#![allow(clippy::needless_range_loop)]

use super::clamped;
use super::keys::Keyed;
use super::lanes::{Lanes, Sorted, Work};
use crate::kernels::Result;
use crate::kernels::contract::output::Writer;
use crate::kernels::filters::planes::Planes;
use crate::value::{Element, filled};

/// Filters the rows of an image with an `N` x `N` window.
pub fn in_rows<T: Element + Keyed, const N: usize>(
    planes: &Planes,
    src: &[T],
    rows: &mut Writer<'_, '_, T>,
) -> Result<()> {
    let (row, c, reach) = (planes.row(), planes.channels, N / 2);
    let padded = row + (N - 1) * c;
    // Ring buffer of padded rows, with edge pixels replicated; row `y` is at `y % N`.
    let mut ring = filled(T::Key::default(), N * padded)?;
    let mut sorted = filled(T::Key::default(), N * padded)?;
    let mut medians = filled(T::Key::default(), row)?;
    let mut ready = 0;
    for y in 0..planes.height {
        while ready <= (y + reach).min(planes.height - 1) {
            let to = &mut ring[ready % N * padded..][..padded];
            for (key, x) in to[reach * c..].iter_mut().zip(&src[ready * row..][..row]) {
                *key = x.key();
            }
            for k in 0..reach {
                to.copy_within(reach * c..(reach + 1) * c, k * c);
                let end = reach * c + row;
                to.copy_within(end - c..end, end + k * c);
            }
            ready += 1;
        }
        let columns = std::array::from_fn(|k| {
            let y = clamped(y + k, reach, planes.height);
            &ring[y % N * padded..][..padded]
        });
        Sorted::for_each(padded, &mut Columns::<_, N> { columns, padded, sorted: &mut sorted });
        let find = |medians: &mut [T::Key]| {
            Sorted::for_each(row, &mut Windows::<_, N> { sorted: &sorted, padded, c, medians });
        };
        rows.next(row, |out| {
            if let Some(out) = T::as_keys(out) {
                return find(out);
            }
            find(&mut medians);
            for (out, &key) in out.iter_mut().zip(&medians) {
                *out = T::of_key(key);
            }
        });
    }
    Ok(())
}

/// Sorts each column of `N` rows.
struct Columns<'a, K, const N: usize> {
    columns: [&'a [K]; N],
    padded: usize,
    /// `N` rows of `padded` elements; the first has the smallest elements.
    sorted: &'a mut [K],
}

impl<K: Sorted, const N: usize> Work<K> for Columns<'_, K, N> {
    #[inline(always)]
    unsafe fn run<L: Lanes<Number = K>>(&mut self, at: usize) {
        // SAFETY: rows have `padded` elements; the caller guarantees enough of them from `at` on.
        unsafe {
            let mut column = [L::load(self.columns[0].as_ptr().add(at)); N];
            for k in 1..N {
                column[k] = L::load(self.columns[k].as_ptr().add(at));
            }
            sort(&mut column);
            for k in 0..N {
                column[k].store(self.sorted.as_mut_ptr().add(k * self.padded + at));
            }
        }
    }
}

/// Computes the medians of windows from sorted columns.
struct Windows<'a, K, const N: usize> {
    sorted: &'a [K],
    padded: usize,
    c: usize,
    medians: &'a mut [K],
}

impl<K: Sorted, const N: usize> Work<K> for Windows<'_, K, N> {
    #[inline(always)]
    unsafe fn run<L: Lanes<Number = K>>(&mut self, at: usize) {
        // SAFETY: sorted rows have `N - 1` more pixels, of `c` elements each, than a row of
        // medians.
        unsafe {
            let start = self.sorted.as_ptr().add(at);
            let mut square = [[L::load(start); N]; N];
            for k in 0..N {
                for step in 0..N {
                    square[k][step] = L::load(start.add(k * self.padded + step * self.c));
                }
            }
            median(square).store(self.medians.as_mut_ptr().add(at));
        }
    }
}

#[inline(always)]
fn order<L: Lanes>(x: &mut [L], i: usize, j: usize) {
    (x[i], x[j]) = (x[i].low(x[j]), x[i].high(x[j]));
}

/// Sorts 3, 5 or 7 elements with an optimal number of compare-exchanges.
#[inline(always)]
fn sort<L: Lanes, const N: usize>(x: &mut [L; N]) {
    const THREE: &[(usize, usize)] = &[(0, 1), (1, 2), (0, 1)];
    const FIVE: &[(usize, usize)] =
        &[(0, 1), (3, 4), (2, 4), (2, 3), (1, 4), (0, 3), (0, 2), (1, 3), (1, 2)];
    #[rustfmt::skip]
    const SEVEN: &[(usize, usize)] = &[
        (0, 6), (2, 3), (4, 5), (0, 2), (1, 4), (3, 6), (0, 1), (2, 5), (3, 4), (1, 2), (4, 6),
        (2, 3), (4, 5), (1, 2), (3, 4), (5, 6),
    ];
    let pairs = match N {
        3 => THREE,
        5 => FIVE,
        _ => SEVEN,
    };
    for &(i, j) in pairs {
        order(x, i, j);
    }
}

/// The median of a window with sorted columns; the first row of `square` has the minima.
///
/// Sorting the rows as well keeps the columns sorted. Equally many elements are then known to be
/// below and above the median, which is the median of the remaining ones.
#[inline(always)]
fn median<L: Lanes, const N: usize>(mut square: [[L; N]; N]) -> L {
    let x = &mut square;
    if N == 3 {
        // No sorting needed: only the largest minimum, the median of the medians and the smallest
        // maximum remain.
        let low = x[0][0].high(x[0][1]).high(x[0][2]);
        let high = x[2][0].low(x[2][1]).low(x[2][2]);
        return middle(low, middle(x[1][0], x[1][1], x[1][2]), high);
    }
    for row in &mut *x {
        sort(row);
    }
    match N {
        5 => median_of::<L, 13, 8>([
            x[0][3], x[4][1], x[1][2], x[3][2], x[1][4], x[3][0], x[2][1], x[2][3], x[0][4],
            x[4][0], x[1][3], x[3][1], x[2][2],
        ]),
        _ => median_of::<L, 29, 16>([
            x[0][4], x[0][5], x[0][6], x[1][3], x[1][4], x[1][5], x[1][6], x[2][2], x[2][3],
            x[2][4], x[2][5], x[2][6], x[3][1], x[3][2], x[3][3], x[3][4], x[3][5], x[4][0],
            x[4][1], x[4][2], x[4][3], x[4][4], x[5][0], x[5][1], x[5][2], x[5][3], x[6][0],
            x[6][1], x[6][2],
        ]),
    }
}

#[inline(always)]
fn middle<L: Lanes>(a: L, b: L, c: L) -> L {
    let (low, high) = (a.low(b), a.high(b));
    low.high(high.low(c))
}

/// The median of `COUNT` elements by forgetful selection: among more than half of them (`SOME`),
/// neither the minimum nor the maximum can be the median. Both are dropped, the next element is
/// added, and so on.
#[inline(always)]
fn median_of<L: Lanes, const COUNT: usize, const SOME: usize>(x: [L; COUNT]) -> L {
    let mut left = [x[0]; SOME];
    left.copy_from_slice(&x[..SOME]);
    let mut first = 0;
    while first < COUNT - SOME {
        outermost(&mut left, first);
        left[SOME - 1] = x[SOME + first];
        first += 1;
    }
    middle(left[SOME - 3], left[SOME - 2], left[SOME - 1])
}

/// Moves the minimum of the elements from `first` on to the front and the maximum to the back.
#[inline(always)]
fn outermost<L: Lanes, const SOME: usize>(x: &mut [L; SOME], first: usize) {
    let (last, count) = (SOME - 1, SOME - first);
    for k in 0..count / 2 {
        order(x, first + k, last - k);
    }
    for k in 1..count.div_ceil(2) {
        order(x, first, first + k);
    }
    for k in count / 2..count - 1 {
        order(x, first + k, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zero-one principle: a network that sorts all sequences of zeros and ones sorts everything.
    fn all_bits<const N: usize>() -> impl Iterator<Item = [u8; N]> {
        (0..1_u32 << N).map(|bits| std::array::from_fn(|i| (bits >> i & 1) as u8))
    }

    #[test]
    fn networks_sort_all_inputs() {
        fn check<const N: usize>() {
            for mut x in all_bits::<N>() {
                sort(&mut x);
                assert!(x.is_sorted(), "{x:?}");
            }
        }
        check::<3>();
        check::<5>();
        check::<7>();
    }

    #[test]
    fn median_matches_sorting() {
        for x in all_bits::<13>() {
            let ones = x.iter().filter(|&&x| x == 1).count();
            assert_eq!(median_of::<u8, 13, 8>(x), u8::from(ones > 6), "{x:?}");
        }
        let noise = |i: u64| (i.wrapping_mul(6_364_136_223_846_793_005) >> 40) as u8;
        for start in 0..2000 {
            let x: [u8; 29] = std::array::from_fn(|i| noise(start * 29 + i as u64));
            let mut sorted = x;
            sorted.sort_unstable();
            assert_eq!(median_of::<u8, 29, 16>(x), sorted[14], "{x:?}");
        }
    }
}
