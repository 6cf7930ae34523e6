//! Median filter.

use super::planes::{Ordered, Planes, width_and_height};
use super::problem::Filters;
use crate::kernels::contract::problems::{Input, argument, unfit};
use crate::kernels::numeric::isa::Isa;
use crate::kernels::warp::places::with_number;
use crate::kernels::{Kernel, Output, Outputs, Result, Traits, args, one};
use crate::value::{DType, Desc, Element, Sample, filled, with_room};

pub struct MedianBlur;

args! {
    pub struct MedianBlurArgs { window_size: Vec<i64> }
}

/// What 16 bits can count the pixels of.
const LARGEST: i64 = 255;

/// The width and the height of the window, both odd.
pub struct Window {
    width: usize,
    height: usize,
}

impl Kernel for MedianBlur {
    type Args = MedianBlurArgs;
    type Plan = Window;
    const TRAITS: Traits = Traits { cheap: false, shaped_by_args: false, ..Traits::DEFAULT };

    fn plan(args: MedianBlurArgs, inputs: &[&Desc]) -> Result<(Window, Outputs)> {
        let input = inputs[0];
        let size = width_and_height("window_size", &args.window_size)?;
        if let Some(&given) =
            size.iter().find(|&&size| size % 2 == 0 || !(1..=LARGEST).contains(&size))
        {
            let problem = Filters::NotOdd { least: 1, largest: LARGEST, given };
            return Err(argument("window_size", problem));
        }
        let [width, height] = size.map(|size| size as usize);
        with_number!(
            input.dtype,
            |_T| Ok((Window { width, height }, one(input.clone()))),
            Err(unfit(0, Input::NotNumbers { dtype: input.dtype.name() }))
        )
    }

    fn run(window: &Window, inputs: &[Sample], outputs: &mut [Output<'_>]) -> Result<()> {
        let (image, out) = (&inputs[0], &mut outputs[0]);
        let planes = Planes::of(&image.desc);
        if planes.size() == 0 {
            return Ok(());
        }
        let is_bytes = image.desc.dtype == DType::U8;
        with_number!(
            image.desc.dtype,
            |T| {
                let images = image.elements::<T>().chunks_exact(planes.size());
                for (src, dst) in images.zip(out.elements::<T>().chunks_exact_mut(planes.size())) {
                    match (window.width, window.height) {
                        (1, 1) => dst.copy_from_slice(src),
                        (3, 3) => in_rows::<T, 3>(&planes, src, dst)?,
                        (5, 5) => in_rows::<T, 5>(&planes, src, dst)?,
                        _ if is_bytes => {}
                        _ => one_by_one(window, &planes, src, dst)?,
                    }
                }
            },
            ()
        );
        if is_bytes && !matches!((window.width, window.height), (1, 1) | (3, 3) | (5, 5)) {
            let images = image.elements::<u8>().chunks_exact(planes.size());
            for (src, dst) in images.zip(out.elements::<u8>().chunks_exact_mut(planes.size())) {
                histograms(window, &planes, src, dst)?;
            }
        }
        Ok(())
    }
}

/// The pixel that stands for one beyond the ends: the last one.
fn clamped(at: usize, before: usize, extent: usize) -> usize {
    at.saturating_sub(before).min(extent - 1)
}

/// Windows of `N` x `N`, 3 or 5, of whole rows at a time: columns are sorted once for all the
/// windows that they are in.
fn in_rows<T: Element + Ordered, const N: usize>(
    planes: &Planes,
    src: &[T],
    dst: &mut [T],
) -> Result<()> {
    let (row, c, reach) = (planes.row(), planes.channels, N / 2);
    let padded = row + (N - 1) * c;
    // Rows with their ends repeated; row `y` is at `y % N`.
    let mut ring = filled(T::LEAST, N * padded)?;
    let mut sorted = filled(T::LEAST, N * padded)?;
    let mut ready = 0;
    for (y, out) in dst.chunks_exact_mut(row).enumerate() {
        while ready <= (y + reach).min(planes.height - 1) {
            let from = &src[ready * row..][..row];
            let to = &mut ring[ready % N * padded..][..padded];
            to[reach * c..][..row].copy_from_slice(from);
            for k in 0..reach {
                to[k * c..][..c].copy_from_slice(&from[..c]);
                to[(reach + planes.width + k) * c..][..c].copy_from_slice(&from[row - c..]);
            }
            ready += 1;
        }
        let rows: [&[T]; N] = std::array::from_fn(|k| {
            let y = clamped(y + k, reach, planes.height);
            &ring[y % N * padded..][..padded]
        });
        if let [a, b, c] = rows[..] {
            sort_columns3(a, b, c, &mut sorted);
            median3(&sorted, padded, planes.channels, out);
        } else if let [a, b, c, d, e] = rows[..] {
            sort_columns5([a, b, c, d, e], &mut sorted);
            median5(&sorted, padded, planes.channels, out);
        }
    }
    Ok(())
}

#[inline(always)]
fn exchange<T: Ordered>(a: &mut T, b: &mut T) {
    (*a, *b) = (a.low(*b), a.high(*b));
}

#[inline(always)]
fn middle<T: Ordered>(a: T, b: T, c: T) -> T {
    let (low, high) = (a.low(b), a.high(b));
    low.high(high.low(c))
}

#[inline(always)]
fn sort5<T: Ordered>(x: &mut [T; 5]) {
    const PAIRS: [(usize, usize); 9] =
        [(0, 1), (3, 4), (2, 4), (2, 3), (1, 4), (0, 3), (0, 2), (1, 3), (1, 2)];
    for (i, j) in PAIRS {
        (x[i], x[j]) = (x[i].low(x[j]), x[i].high(x[j]));
    }
}

/// `sorted` has three rows, each as long as those given.
fn sort_columns3<T: Ordered>(a: &[T], b: &[T], c: &[T], sorted: &mut [T]) {
    #[inline(always)]
    fn run<T: Ordered>(a: &[T], b: &[T], c: &[T], sorted: &mut [T]) {
        let n = a.len();
        let (b, c) = (&b[..n], &c[..n]);
        let (low, rest) = sorted.split_at_mut(n);
        let (mid, high) = rest.split_at_mut(n);
        let high = &mut high[..n];
        for i in 0..n {
            let (mut x, mut y, mut z) = (a[i], b[i], c[i]);
            exchange(&mut x, &mut y);
            exchange(&mut y, &mut z);
            exchange(&mut x, &mut y);
            (low[i], mid[i], high[i]) = (x, y, z);
        }
    }
    Isa::run_on_best(|| run(a, b, c, sorted));
}

/// Of three sorted columns, the median is among the largest of the low ones, the middle of the
/// middle ones and the smallest of the high ones.
fn median3<T: Ordered>(sorted: &[T], padded: usize, c: usize, out: &mut [T]) {
    #[inline(always)]
    fn run<T: Ordered>(sorted: &[T], padded: usize, c: usize, out: &mut [T]) {
        let n = out.len();
        let at = |k: usize, step: usize| &sorted[k * padded + step * c..][..n];
        let (l0, l1, l2) = (at(0, 0), at(0, 1), at(0, 2));
        let (m0, m1, m2) = (at(1, 0), at(1, 1), at(1, 2));
        let (h0, h1, h2) = (at(2, 0), at(2, 1), at(2, 2));
        for i in 0..n {
            let low = l0[i].high(l1[i]).high(l2[i]);
            let mid = middle(m0[i], m1[i], m2[i]);
            let high = h0[i].low(h1[i]).low(h2[i]);
            out[i] = middle(low, mid, high);
        }
    }
    Isa::run_on_best(|| run(sorted, padded, c, out));
}

/// `sorted` has five rows, each as long as those of `rows`.
fn sort_columns5<T: Ordered>(rows: [&[T]; 5], sorted: &mut [T]) {
    #[inline(always)]
    fn run<T: Ordered>([a, b, c, d, e]: [&[T]; 5], sorted: &mut [T]) {
        let n = a.len();
        let (b, c, d, e) = (&b[..n], &c[..n], &d[..n], &e[..n]);
        let (p, rest) = sorted.split_at_mut(n);
        let (q, rest) = rest.split_at_mut(n);
        let (r, rest) = rest.split_at_mut(n);
        let (s, t) = rest.split_at_mut(n);
        let t = &mut t[..n];
        for i in 0..n {
            let mut column = [a[i], b[i], c[i], d[i], e[i]];
            sort5(&mut column);
            [p[i], q[i], r[i], s[i], t[i]] = column;
        }
    }
    Isa::run_on_best(|| run(rows, sorted));
}

/// Of five sorted columns. Sorting across leaves a square that is sorted both ways, of which six
/// numbers are certainly below the median and six above.
fn median5<T: Ordered>(sorted: &[T], padded: usize, c: usize, out: &mut [T]) {
    #[inline(always)]
    fn run<T: Ordered>(sorted: &[T], padded: usize, c: usize, out: &mut [T]) {
        let n = out.len();
        assert!(4 * (padded + c) + n <= sorted.len());
        for (i, out) in out.iter_mut().enumerate() {
            let mut x = [[T::LEAST; 5]; 5];
            for (k, row) in x.iter_mut().enumerate() {
                for (step, x) in row.iter_mut().enumerate() {
                    // SAFETY: the last of these was checked above, with k and step of 4.
                    *x = unsafe { *sorted.get_unchecked(k * padded + step * c + i) };
                }
                sort5(row);
            }
            *out = median13([
                x[0][3], x[4][1], x[1][2], x[3][2], x[1][4], x[3][0], x[2][1], x[2][3], x[0][4],
                x[4][0], x[1][3], x[3][1], x[2][2],
            ]);
        }
    }
    Isa::run_on_best(|| run(sorted, padded, c, out));
}

/// The least and the largest of eight can't be the median of thirteen; nor can those of what is
/// left and the next one, and so on.
#[inline(always)]
fn median13<T: Ordered>(x: [T; 13]) -> T {
    let mut left = [x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]];
    outermost::<T, 0>(&mut left);
    left[7] = x[8];
    outermost::<T, 1>(&mut left);
    left[7] = x[9];
    outermost::<T, 2>(&mut left);
    left[7] = x[10];
    outermost::<T, 3>(&mut left);
    left[7] = x[11];
    outermost::<T, 4>(&mut left);
    middle(left[5], left[6], x[12])
}

/// Moves the least to the front and the largest to the back, of what is there from `FIRST` on.
#[inline(always)]
fn outermost<T: Ordered, const FIRST: usize>(x: &mut [T; 8]) {
    let mut order = |i: usize, j: usize| (x[i], x[j]) = (x[i].low(x[j]), x[i].high(x[j]));
    let count = 8 - FIRST;
    for k in 0..4 {
        if k < count / 2 {
            order(FIRST + k, 7 - k);
        }
    }
    for k in 1..4 {
        if k < count.div_ceil(2) {
            order(FIRST, FIRST + k);
        }
    }
    for k in 1..7 {
        if k >= count / 2 && k < count - 1 {
            order(FIRST + k, 7);
        }
    }
}

/// Any window: gathers its numbers for each pixel.
fn one_by_one<T: Element + Ordered>(
    window: &Window,
    planes: &Planes,
    src: &[T],
    dst: &mut [T],
) -> Result<()> {
    let c = planes.channels;
    let mut all = with_room(window.width * window.height)?;
    for (at, out) in dst.iter_mut().enumerate() {
        let (channel, x, y) = (at % c, at / c % planes.width, at / planes.row());
        all.clear();
        for dy in 0..window.height {
            let y = clamped(y + dy, window.height / 2, planes.height);
            for dx in 0..window.width {
                let x = clamped(x + dx, window.width / 2, planes.width);
                all.push(src[(y * planes.width + x) * c + channel]);
            }
        }
        let half = all.len() / 2;
        let order = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
        *out = *all.select_nth_unstable_by(half, order).1;
    }
    Ok(())
}

/// Columns that are worked on at a time, for their histograms to stay in the caches.
const STRIPE: usize = 256;

/// How many numbers there are of each of sixteen kinds.
type Counts = [u16; 16];

/// Perreault and Hebert, "Median filtering in constant time", 2007: each column has a histogram,
/// which moves down with the rows, and the window's is a sum of theirs, which moves right. Numbers
/// are counted by their high four bits, and within each of those by their low ones.
fn histograms(window: &Window, planes: &Planes, src: &[u8], dst: &mut [u8]) -> Result<()> {
    let Planes { height, width, channels } = *planes;
    let reach = [window.width / 2, window.height / 2];
    let columns = STRIPE.min(width) + window.width - 1;
    let mut coarse: Vec<Counts> = filled([0; 16], columns)?;
    // By the high bits first, so that those of neighbouring columns lie side by side.
    let mut fine: Vec<Counts> = filled([0; 16], 16 * columns)?;
    let half = (window.width * window.height / 2) as u16;
    let mut places: Vec<usize> = filled(0, columns)?;
    for channel in 0..channels {
        for start in (0..width).step_by(STRIPE) {
            let count = STRIPE.min(width - start);
            let used = count + window.width - 1;
            for (column, place) in places.iter_mut().enumerate() {
                *place = clamped(start + column, reach[0], width) * channels + channel;
            }
            let places = &places[..used];
            let row =
                |k: usize| &src[clamped(k, reach[1], height) * planes.row()..][..planes.row()];
            coarse.fill([0; 16]);
            fine.fill([0; 16]);
            for k in 0..window.height {
                let row = row(k);
                for (column, &place) in places.iter().enumerate() {
                    let number = usize::from(row[place]);
                    coarse[column][number >> 4] += 1;
                    fine[(number >> 4) * columns + column][number & 15] += 1;
                }
            }
            for y in 0..height {
                let out = &mut dst[y * planes.row() + start * channels..][..count * channels];
                Isa::run_on_best(|| {
                    slide(window, &coarse, &fine, columns, half, |x, number| {
                        out[x * channels + channel] = number;
                        x + 1 < count
                    });
                });
                let (old, new) = (row(y), row(y + window.height));
                for (column, &place) in places.iter().enumerate() {
                    let (old, new) = (usize::from(old[place]), usize::from(new[place]));
                    coarse[column][old >> 4] -= 1;
                    fine[(old >> 4) * columns + column][old & 15] -= 1;
                    coarse[column][new >> 4] += 1;
                    fine[(new >> 4) * columns + column][new & 15] += 1;
                }
            }
        }
    }
    Ok(())
}

#[inline(always)]
fn add(to: &mut Counts, from: &Counts) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(*from);
    }
}

#[inline(always)]
fn subtract(to: &mut Counts, from: &Counts) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_sub(*from);
    }
}

/// Where the count passes `half`, and what was counted before.
#[inline(always)]
fn passing(counts: &Counts, half: u16) -> (usize, u16) {
    let mut before = 0;
    for (kind, &count) in counts.iter().enumerate() {
        if before + count > half {
            return (kind, before);
        }
        before += count;
    }
    (15, before)
}

/// Moves the window along a row; `write` gets the medians, and says whether to go on.
#[inline(always)]
fn slide(
    window: &Window,
    coarse: &[Counts],
    fine: &[Counts],
    columns: usize,
    half: u16,
    mut write: impl FnMut(usize, u8) -> bool,
) {
    let mut sum: Counts = [0; 16];
    coarse[..window.width].iter().for_each(|column| add(&mut sum, column));
    let mut parts = [[0; 16]; 16];
    // For which place of the window each of the parts is right; none at first.
    let mut right: [usize; 16] = [usize::MAX; 16];
    let mut x = 0;
    loop {
        let (high, before) = passing(&sum, half);
        let part = &mut parts[high];
        let fine = &fine[high * columns..][..columns];
        if right[high] > x || x - right[high] > window.width / 2 {
            *part = [0; 16];
            fine[x..x + window.width].iter().for_each(|column| add(part, column));
        } else {
            for gone in right[high]..x {
                subtract(part, &fine[gone]);
                add(part, &fine[gone + window.width]);
            }
        }
        right[high] = x;
        let (low, _) = passing(part, half - before);
        if !write(x, (high * 16 + low) as u8) {
            return;
        }
        subtract(&mut sum, &coarse[x]);
        add(&mut sum, &coarse[x + window.width]);
        x += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<u8> {
        (0..count as u64).map(|i| (i.wrapping_mul(6_364_136_223_846_793_005) >> 40) as u8).collect()
    }

    #[test]
    fn all_ways_find_the_same_median() {
        for (height, width, channels) in [(1, 1, 1), (4, 3, 3), (9, 40, 1), (30, 300, 2)] {
            let planes = Planes { height, width, channels };
            let src = noise(planes.size());
            for size in [(3, 3), (5, 5), (7, 7), (1, 9), (15, 3)] {
                let window = Window { width: size.0, height: size.1 };
                let mut expected = vec![0; src.len()];
                one_by_one(&window, &planes, &src, &mut expected).unwrap();
                let mut made = vec![0; src.len()];
                histograms(&window, &planes, &src, &mut made).unwrap();
                assert_eq!(made, expected, "{height}x{width}x{channels}, {size:?}");
                match size {
                    (3, 3) => in_rows::<u8, 3>(&planes, &src, &mut made).unwrap(),
                    (5, 5) => in_rows::<u8, 5>(&planes, &src, &mut made).unwrap(),
                    _ => {}
                }
                assert_eq!(made, expected, "{height}x{width}x{channels}, {size:?}");
            }
        }
    }

    #[test]
    fn thirteen_numbers_have_the_seventh_as_median() {
        let numbers = noise(13_000);
        for some in numbers.as_chunks::<13>().0 {
            let mut sorted = *some;
            sorted.sort_unstable();
            assert_eq!(median13(*some), sorted[6], "{some:?}");
        }
    }
}
