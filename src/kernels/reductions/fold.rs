//! Reductions of elements along any axes, at memory speed.
//!
//! Elements are accumulated in parallel lanes, which the compiler vectorises. Lanes are as narrow
//! as possible; they are flushed into totals before they could overflow or lose precision.

use std::marker::PhantomData;

use half::{bf16, f16};

use super::super::Result;
use super::plan::Plan;
use super::store::Total;
use crate::kernels::generic::cast::Convert;
use crate::kernels::numeric::isa::vectorized;
use crate::value::{Bool, Element, filled};

pub trait Fold {
    type Item: Element;
    /// What is subtracted from an element; `()` for nothing.
    type Center: Copy + Default;
    type Lane: Copy;
    type Total: Copy;
    /// The initial value of a lane.
    const NONE: Self::Lane;
    /// How many elements a lane can take before it must be flushed.
    const DEPTH: usize;
    fn step(lane: Self::Lane, x: Self::Item, center: Self::Center) -> Self::Lane;
    fn start() -> Self::Total;
    fn empty(total: &mut Self::Total, lane: Self::Lane);
    fn join(total: &mut Self::Total, other: Self::Total);
}

/// Maximum number of lanes, to which the columns of a narrow block are repeated.
const WIDTH: usize = 256;
/// Columns processed at a time, so that their lanes stay in the L1 cache.
const TILE: usize = 1024;
/// Blocks with fewer elements are processed without lanes.
const SMALL: usize = 64;
/// A number of lanes that fills vectors of any size.
const VECTOR: usize = 16;
/// Minimal number of rows per lane, so that flushing is a small part of the work.
const ROWS: usize = 16;

/// Number of lanes for a block; zero if it is too small.
fn lanes(columns: usize, block: usize) -> usize {
    if block < SMALL {
        return 0;
    }
    if columns >= WIDTH {
        return TILE.min(columns);
    }
    // The least common multiple: `VECTOR` has only powers of two in common with a number.
    let full = columns * VECTOR / (1 << columns.trailing_zeros().min(VECTOR.trailing_zeros()));
    let mut width = if full <= WIDTH { full } else { WIDTH / columns * columns };
    while 2 * width <= WIDTH && 2 * width * ROWS <= block {
        width *= 2;
    }
    width
}

/// Reduces a contiguous array. `centers` has one element for all results, or one for each.
pub fn fold<F: Fold>(plan: &Plan, x: &[F::Item], centers: &[F::Center]) -> Result<Vec<F::Total>> {
    let mut totals = filled(F::start(), plan.kept())?;
    let (rows, columns) = (plan.rows, plan.columns);
    let repeated;
    let centers = if centers.len() == 1 && plan.kept() != 1 {
        repeated = filled(centers[0], plan.kept())?;
        &repeated[..]
    } else {
        centers
    };
    if plan.is_empty() {
        return Ok(totals);
    }
    if columns == 1 && plan.is_flat() {
        match rows {
            1 => return Ok(fold_short::<F, 1>(x, centers, totals)),
            2 => return Ok(fold_short::<F, 2>(x, centers, totals)),
            3 => return Ok(fold_short::<F, 3>(x, centers, totals)),
            4 => return Ok(fold_short::<F, 4>(x, centers, totals)),
            _ => {}
        }
    }
    let mut lanes = Lanes::<F>::new(columns, rows * columns);
    plan.for_each(|start, at| {
        let x = &x[start..start + rows * columns];
        let (centers, totals) = (&centers[at..at + columns], &mut totals[at..at + columns]);
        lanes.fold(x, centers, totals);
    });
    Ok(totals)
}

/// For results of a few adjacent elements each.
fn fold_short<F: Fold, const N: usize>(
    x: &[F::Item],
    centers: &[F::Center],
    mut totals: Vec<F::Total>,
) -> Vec<F::Total> {
    for ((total, x), &center) in totals.iter_mut().zip(x.as_chunks::<N>().0).zip(centers) {
        F::empty(total, x.iter().fold(F::NONE, |lane, &x| F::step(lane, x, center)));
    }
    totals
}

/// Element by element, for a block that is too small for lanes.
fn fold_small<F: Fold>(x: &[F::Item], centers: &[F::Center], totals: &mut [F::Total]) {
    /// With a constant number of totals, they stay in registers.
    fn fixed<F: Fold, const N: usize>(
        x: &[F::Item],
        centers: &[F::Center],
        totals: &mut [F::Total],
    ) {
        let mut sums = [F::start(); N];
        let mut own = [F::Center::default(); N];
        sums.copy_from_slice(totals);
        own.copy_from_slice(centers);
        for row in x.as_chunks::<N>().0 {
            for ((sum, &x), &center) in sums.iter_mut().zip(row).zip(&own) {
                F::empty(sum, F::step(F::NONE, x, center));
            }
        }
        totals.copy_from_slice(&sums);
    }
    match totals.len() {
        1 => fixed::<F, 1>(x, centers, totals),
        2 => fixed::<F, 2>(x, centers, totals),
        3 => fixed::<F, 3>(x, centers, totals),
        4 => fixed::<F, 4>(x, centers, totals),
        columns => {
            for row in x.chunks_exact(columns) {
                for ((total, &x), &center) in totals.iter_mut().zip(row).zip(centers) {
                    F::empty(total, F::step(F::NONE, x, center));
                }
            }
        }
    }
}

/// Several rows side by side in `N` lanes, a multiple of the columns, which the compiler keeps in
/// registers.
#[inline(always)]
fn fold_in_registers<F: Fold, const N: usize>(
    x: &[F::Item],
    centers: &[F::Center],
    totals: &mut [F::Total],
) {
    let columns = totals.len();
    let own: [F::Center; N] = std::array::from_fn(|lane| centers[lane % columns]);
    let mut sums = [F::start(); N];
    for x in x.chunks(F::DEPTH.saturating_mul(N)) {
        let mut lanes = [F::NONE; N];
        let (rows, rest) = x.as_chunks::<N>();
        rows.iter().for_each(|row| add::<F>(&mut lanes, row, &own));
        add::<F>(&mut lanes, rest, &own);
        empty::<F>(&mut sums, &lanes);
    }
    for part in sums.chunks_exact(columns) {
        totals.iter_mut().zip(part).for_each(|(total, &sum)| F::join(total, sum));
    }
}

struct Lanes<F: Fold> {
    lanes: Vec<F::Lane>,
    centers: Vec<F::Center>,
}

impl<F: Fold> Lanes<F> {
    fn new(columns: usize, block: usize) -> Lanes<F> {
        let width = lanes(columns, block);
        Lanes { lanes: vec![F::NONE; width], centers: vec![F::Center::default(); width] }
    }

    /// Reduces one block; `totals` has an entry for each column.
    fn fold(&mut self, x: &[F::Item], centers: &[F::Center], totals: &mut [F::Total]) {
        let columns = totals.len();
        if self.lanes.is_empty() {
            return fold_small::<F>(x, centers, totals);
        }
        let is_wide = size_of::<F::Lane>() > 4;
        vectorized!(match columns {
            1 | 2 | 4 if is_wide => fold_in_registers::<F, 32>(x, centers, totals),
            1 | 2 | 4 => fold_in_registers::<F, 64>(x, centers, totals),
            3 if is_wide => fold_in_registers::<F, 48>(x, centers, totals),
            3 => fold_in_registers::<F, 96>(x, centers, totals),
            _ if columns < WIDTH => self.fold_narrow(x, centers, totals),
            _ => self.fold_wide(x, centers, totals),
        });
    }

    /// Several rows side by side.
    #[inline(always)]
    fn fold_narrow(&mut self, x: &[F::Item], centers: &[F::Center], totals: &mut [F::Total]) {
        let columns = totals.len();
        let width = self.lanes.len().min(x.len());
        let (lanes, repeated) = (&mut self.lanes[..width], &mut self.centers[..width]);
        repeated.chunks_exact_mut(columns).for_each(|part| part.copy_from_slice(centers));
        for x in x.chunks(width.saturating_mul(F::DEPTH)) {
            lanes.fill(F::NONE);
            x.chunks(width).for_each(|row| add::<F>(lanes, row, repeated));
            for part in lanes.chunks_exact(columns) {
                empty::<F>(totals, part);
            }
        }
    }

    /// Long rows, a tile at a time.
    #[inline(always)]
    fn fold_wide(&mut self, x: &[F::Item], centers: &[F::Center], totals: &mut [F::Total]) {
        let columns = totals.len();
        for (tile, totals) in totals.chunks_mut(TILE).enumerate() {
            let start = tile * TILE;
            let lanes = &mut self.lanes[..totals.len()];
            let centers = &centers[start..start + totals.len()];
            for x in x.chunks(columns.saturating_mul(F::DEPTH)) {
                lanes.fill(F::NONE);
                for row in x.chunks_exact(columns) {
                    add::<F>(lanes, &row[start..start + centers.len()], centers);
                }
                empty::<F>(totals, lanes);
            }
        }
    }
}

#[inline(always)]
fn add<F: Fold>(lanes: &mut [F::Lane], x: &[F::Item], centers: &[F::Center]) {
    for ((lane, &x), &center) in lanes.iter_mut().zip(x).zip(centers) {
        *lane = F::step(*lane, x, center);
    }
}

#[inline(always)]
fn empty<F: Fold>(totals: &mut [F::Total], lanes: &[F::Lane]) {
    for (total, &lane) in totals.iter_mut().zip(lanes) {
        F::empty(total, lane);
    }
}

/// 32-bit float sums are flushed into a 64-bit total after this many elements, so that the error
/// stays within a few units in the last place for any number of elements.
const FLOAT_DEPTH: usize = 32;

pub struct Sum<T>(PhantomData<T>);
pub struct Squares<T>(PhantomData<T>);
pub struct Spread<T>(PhantomData<T>);
pub struct Highest<T>(PhantomData<T>);
pub struct Lowest<T>(PhantomData<T>);

/// The type in which distances of elements of type `T` are computed.
pub type Center<T> = <Spread<T> as Fold>::Center;

/// A floating-point type to compute in.
pub trait Real: Element + Default {
    fn from_f64(x: f64) -> Self;
}

impl Real for f32 {
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
}

impl Real for f64 {
    fn from_f64(x: f64) -> f64 {
        x
    }
}

macro_rules! sums {
    ($($item:ty: $lane:ty => $total:ty, $depth:expr, |$sum:ident, $x:ident| $step:expr;)*) => {
        $(
            impl Fold for Sum<$item> {
                type Item = $item;
                type Center = ();
                type Lane = $lane;
                type Total = $total;
                const NONE: $lane = 0 as $lane;
                const DEPTH: usize = $depth;

                #[inline]
                fn step($sum: $lane, $x: $item, _: ()) -> $lane {
                    $step
                }

                fn start() -> $total {
                    0 as $total
                }

                #[inline]
                fn empty(total: &mut $total, lane: $lane) {
                    Self::join(total, lane as $total);
                }

                #[inline]
                fn join(total: &mut $total, other: $total) {
                    *total = add_totals(*total, other);
                }
            }
        )*
    };
}

/// 64-bit integer totals wrap around, as in DALI.
#[inline]
fn add_totals<T: WrappingAdd>(a: T, b: T) -> T {
    a.wrapping(b)
}

trait WrappingAdd: Total {
    fn wrapping(self, other: Self) -> Self;
}

impl WrappingAdd for i64 {
    #[inline]
    fn wrapping(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
}

impl WrappingAdd for u64 {
    #[inline]
    fn wrapping(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }
}

impl WrappingAdd for f64 {
    #[inline]
    fn wrapping(self, other: f64) -> f64 {
        self + other
    }
}

sums! {
    Bool: u16 => u64, 256, |sum, x| sum + u16::from(x.get());
    u8: u16 => u64, 256, |sum, x| sum + u16::from(x);
    i8: i16 => i64, 256, |sum, x| sum + i16::from(x);
    u16: u32 => u64, 1 << 16, |sum, x| sum + u32::from(x);
    i16: i32 => i64, 1 << 16, |sum, x| sum + i32::from(x);
    u32: u64 => u64, 1 << 30, |sum, x| sum + u64::from(x);
    i32: i64 => i64, 1 << 30, |sum, x| sum + i64::from(x);
    u64: u64 => u64, usize::MAX, |sum, x| sum.wrapping_add(x);
    i64: i64 => i64, usize::MAX, |sum, x| sum.wrapping_add(x);
    f16: f32 => f64, FLOAT_DEPTH, |sum, x| sum + x.to_f32();
    bf16: f32 => f64, FLOAT_DEPTH, |sum, x| sum + x.to_f32();
    // In double precision, so that the mean of equal numbers is exact and their variance is zero.
    f32: f64 => f64, usize::MAX, |sum, x| sum + f64::from(x);
    f64: f64 => f64, usize::MAX, |sum, x| sum + x;
}

macro_rules! squares {
    ($($item:ty: $lane:ty, $depth:expr, |$x:ident| $square:expr;)*) => {
        $(
            impl Fold for Squares<$item> {
                type Item = $item;
                type Center = ();
                type Lane = $lane;
                type Total = f64;
                const NONE: $lane = 0 as $lane;
                const DEPTH: usize = $depth;

                #[inline]
                fn step(sum: $lane, $x: $item, _: ()) -> $lane {
                    sum + $square
                }

                fn start() -> f64 {
                    0.0
                }

                #[inline]
                fn empty(total: &mut f64, lane: $lane) {
                    *total += lane as f64;
                }

                #[inline]
                fn join(total: &mut f64, other: f64) {
                    *total += other;
                }
            }
        )*
    };
}

squares! {
    // Products of 8-bit numbers fit into 16 bits, of which vectors hold twice as many.
    Bool: u32, 1 << 16, |x| u32::from(x.get());
    u8: u32, 1 << 16, |x| u32::from(u16::from(x) * u16::from(x));
    i8: i32, 1 << 16, |x| i32::from(i16::from(x) * i16::from(x));
    u16: f64, usize::MAX, |x| f64::from(x) * f64::from(x);
    i16: f64, usize::MAX, |x| f64::from(x) * f64::from(x);
    u32: f64, usize::MAX, |x| f64::from(x) * f64::from(x);
    i32: f64, usize::MAX, |x| f64::from(x) * f64::from(x);
    u64: f64, usize::MAX, |x| x as f64 * x as f64;
    i64: f64, usize::MAX, |x| x as f64 * x as f64;
    f16: f32, FLOAT_DEPTH, |x| x.to_f32() * x.to_f32();
    bf16: f32, FLOAT_DEPTH, |x| x.to_f32() * x.to_f32();
    f32: f32, FLOAT_DEPTH, |x| x * x;
    f64: f64, usize::MAX, |x| x * x;
}

macro_rules! spreads {
    ($($item:ty: $real:ty, $depth:expr;)*) => {
        $(
            impl Fold for Spread<$item> {
                type Item = $item;
                type Center = $real;
                type Lane = $real;
                type Total = f64;
                const NONE: $real = 0.0;
                const DEPTH: usize = $depth;

                #[inline]
                fn step(sum: $real, x: $item, center: $real) -> $real {
                    let x: $real = x.convert();
                    sum + (x - center) * (x - center)
                }

                fn start() -> f64 {
                    0.0
                }

                #[inline]
                fn empty(total: &mut f64, lane: $real) {
                    *total += f64::from(lane);
                }

                #[inline]
                fn join(total: &mut f64, other: f64) {
                    *total += other;
                }
            }
        )*
    };
}

spreads! {
    Bool: f32, FLOAT_DEPTH;
    u8: f32, FLOAT_DEPTH;
    i8: f32, FLOAT_DEPTH;
    u16: f32, FLOAT_DEPTH;
    i16: f32, FLOAT_DEPTH;
    f16: f32, FLOAT_DEPTH;
    bf16: f32, FLOAT_DEPTH;
    f32: f32, FLOAT_DEPTH;
    u32: f64, usize::MAX;
    i32: f64, usize::MAX;
    u64: f64, usize::MAX;
    i64: f64, usize::MAX;
    f64: f64, usize::MAX;
}

/// An element that can be compared, by its `Key`.
pub trait Extreme: Element {
    type Key: PartialOrd + Copy;
    const LOWEST: Self::Key;
    const HIGHEST: Self::Key;
    fn key(self) -> Self::Key;
}

macro_rules! extremes {
    ($($item:ty: $key:ty, $low:expr, $high:expr, |$x:ident| $body:expr;)*) => {
        $(
            impl Extreme for $item {
                type Key = $key;
                const LOWEST: $key = $low;
                const HIGHEST: $key = $high;

                #[inline]
                fn key(self) -> $key {
                    let $x = self;
                    $body
                }
            }
        )*
    };
}

extremes! {
    Bool: u8, 0, 1, |x| u8::from(x.get());
    u8: u8, u8::MIN, u8::MAX, |x| x;
    u16: u16, u16::MIN, u16::MAX, |x| x;
    u32: u32, u32::MIN, u32::MAX, |x| x;
    u64: u64, u64::MIN, u64::MAX, |x| x;
    i8: i8, i8::MIN, i8::MAX, |x| x;
    i16: i16, i16::MIN, i16::MAX, |x| x;
    i32: i32, i32::MIN, i32::MAX, |x| x;
    i64: i64, i64::MIN, i64::MAX, |x| x;
    // Limits are those of finite numbers, as in DALI.
    f16: f32, -65_504.0, 65_504.0, |x| x.to_f32();
    bf16: f32, f32::from_bits(0xff7f_0000), f32::from_bits(0x7f7f_0000), |x| x.to_f32();
    f32: f32, f32::MIN, f32::MAX, |x| x;
    f64: f64, f64::MIN, f64::MAX, |x| x;
}

macro_rules! extreme_folds {
    ($($fold:ident: $start:ident, $beats:tt;)*) => {
        $(
            impl<T: Extreme> Fold for $fold<T> {
                type Item = T;
                type Center = ();
                type Lane = T::Key;
                type Total = T::Key;
                const NONE: T::Key = T::$start;
                const DEPTH: usize = usize::MAX;

                // NaN is ignored.
                #[inline]
                fn step(best: T::Key, x: T, _: ()) -> T::Key {
                    if x.key() $beats best { x.key() } else { best }
                }

                fn start() -> T::Key {
                    T::$start
                }

                #[inline]
                fn empty(total: &mut T::Key, lane: T::Key) {
                    if lane $beats *total {
                        *total = lane;
                    }
                }

                #[inline]
                fn join(total: &mut T::Key, other: T::Key) {
                    Self::empty(total, other);
                }
            }
        )*
    };
}

extreme_folds! {
    Highest: LOWEST, >;
    Lowest: HIGHEST, <;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[usize], axes: &[usize]) -> Plan {
        let reduced: Vec<bool> = (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
        Plan::new(shape, &reduced)
    }

    /// Sums by the definition, element by element.
    fn slow(shape: [usize; 3], axes: &[usize], x: &[u8]) -> Vec<u64> {
        let kept: Vec<usize> =
            (0..3).map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] }).collect();
        let mut sums = vec![0; kept.iter().product()];
        for (index, &x) in x.iter().enumerate() {
            let place =
                [index / (shape[1] * shape[2]), index / shape[2] % shape[1], index % shape[2]];
            let at = (0..3).fold(0, |at, axis| at * kept[axis] + place[axis] % kept[axis]);
            sums[at] += u64::from(x);
        }
        sums
    }

    #[test]
    fn sums_match_the_definition_for_all_axes() {
        let shapes = [[1, 1, 1], [7, 5, 3], [40, 30, 3], [3, 700, 2], [2, 3, 1500], [900, 3, 4]];
        for shape in shapes {
            let x: Vec<u8> =
                (0..shape.iter().product::<usize>()).map(|i| (i * 37 % 251) as u8).collect();
            for set in 0..8_usize {
                let axes: Vec<usize> = (0..3).filter(|axis| set >> axis & 1 == 1).collect();
                let sums = fold::<Sum<u8>>(&plan(&shape, &axes), &x, &[()]).unwrap();
                assert_eq!(sums, slow(shape, &axes, &x), "{shape:?} along {axes:?}");
            }
        }
    }

    #[test]
    fn a_stack_is_reduced_like_its_parts() {
        let x: Vec<f32> = (0..3 * 4 * 35 * 6).map(|i| (i as f32 * 0.37).sin()).collect();
        for shape in [[1, 1, 1], [4, 5, 3], [4, 35, 6], [35, 4, 1], [1, 4, 70], [2, 1, 260]] {
            for set in 0..8_usize {
                let axes: Vec<usize> = (0..3).filter(|axis| set >> axis & 1 == 1).collect();
                let moved: Vec<usize> = axes.iter().map(|axis| axis + 1).collect();
                let (of_part, size) = (plan(&shape, &axes), shape.iter().product());
                let of_stack = plan(&[3, shape[0], shape[1], shape[2]], &moved);
                let parts = x.chunks(size).take(3);
                let parts: Vec<f64> =
                    parts.flat_map(|x| fold::<Spread<f32>>(&of_part, x, &[0.1]).unwrap()).collect();
                let stack = fold::<Spread<f32>>(&of_stack, &x[..3 * size], &[0.1]).unwrap();
                assert_eq!(stack, parts, "{shape:?} along {axes:?}");
            }
        }
    }

    #[test]
    fn lanes_are_flushed_before_they_overflow() {
        let count = 300_000;
        let all = plan(&[count], &[0]);
        assert_eq!(fold::<Sum<u8>>(&all, &vec![255; count], &[()]).unwrap(), [255 * count as u64]);
        assert_eq!(
            fold::<Sum<i8>>(&all, &vec![-128; count], &[()]).unwrap(),
            [-128 * count as i64]
        );
        assert_eq!(
            fold::<Sum<u16>>(&all, &vec![65_535; count], &[()]).unwrap(),
            [65_535 * count as u64]
        );
        let squares =
            fold::<Squares<u8>>(&plan(&[1 << 25], &[0]), &vec![255; 1 << 25], &[()]).unwrap();
        assert_eq!(squares, [65_025.0 * f64::from(1 << 25)]);
    }

    #[test]
    fn floats_are_summed_accurately() {
        let x = vec![0.1_f32; 10_000_000];
        let sum = fold::<Sum<f32>>(&plan(&[x.len()], &[0]), &x, &[()]).unwrap()[0];
        assert!((sum / 1e6 - 1.0).abs() < 1e-6, "{sum}");
        let spread = fold::<Spread<f32>>(&plan(&[x.len()], &[0]), &x, &[0.0]).unwrap()[0];
        assert!((spread / 1e5 - 1.0).abs() < 1e-6, "{spread}");
    }

    #[test]
    fn nan_is_ignored_by_extremes() {
        let x = [f32::NAN, 1.0, -3.0, f32::NAN];
        assert_eq!(fold::<Highest<f32>>(&plan(&[4], &[0]), &x, &[()]).unwrap(), [1.0]);
        assert_eq!(fold::<Lowest<f32>>(&plan(&[4], &[0]), &x, &[()]).unwrap(), [-3.0]);
    }
}
