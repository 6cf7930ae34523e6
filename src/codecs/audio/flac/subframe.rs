//! A channel of a frame: numbers that are predicted from those before them, and what is left to add
//! to the prediction.

use super::bits::Bits;
use super::{Flaw, Outcome};

/// The highest order of a prediction.
const MOST: usize = 32;

/// The type of a decoded number. All arithmetic wraps: what overflows is damaged, and its checksum
/// is wrong.
pub trait Number: Copy + 'static {
    fn of(number: i64) -> Self;
    fn shifted(self, by: u32) -> Self;
    /// Adds predictions to all numbers but the first ones, of which there are as many as
    /// coefficients. The coefficient of the number before is the first.
    fn predict(numbers: &mut [Self], coefficients: &[i32], shift: u32);
}

impl Number for i32 {
    #[inline(always)]
    fn of(number: i64) -> i32 {
        number as i32
    }

    #[inline(always)]
    fn shifted(self, by: u32) -> i32 {
        self.wrapping_shl(by)
    }

    fn predict(numbers: &mut [i32], coefficients: &[i32], shift: u32) {
        macro_rules! by_order {
            ($($order:literal)+) => {
                match coefficients.len() {
                    $($order => predict_of::<$order>(numbers, coefficients, shift),)+
                    _ => predict_any(numbers, coefficients, shift),
                }
            };
        }
        by_order!(1 2 3 4 5 6 7 8 9 10 11 12);
    }
}

impl Number for i64 {
    fn of(number: i64) -> i64 {
        number
    }

    fn shifted(self, by: u32) -> i64 {
        self.wrapping_shl(by)
    }

    fn predict(numbers: &mut [i64], coefficients: &[i32], shift: u32) {
        for at in coefficients.len()..numbers.len() {
            let before = numbers[..at].iter().rev();
            let terms = coefficients.iter().zip(before);
            let sum = terms.fold(0_i64, |sum, (&factor, &number)| {
                sum.wrapping_add(i64::from(factor).wrapping_mul(number))
            });
            numbers[at] = numbers[at].wrapping_add(sum >> shift);
        }
    }
}

/// Of an order known to the compiler, which keeps the numbers before in registers: `N` numbers at a
/// time, after which each of them is in the same register again. Sums of 32 bits, where they are
/// enough, would take as long.
#[inline(never)]
fn predict_of<const N: usize>(numbers: &mut [i32], coefficients: &[i32], shift: u32) {
    let Some((factors, (before, rest))) =
        coefficients.first_chunk::<N>().zip(numbers.split_first_chunk_mut::<N>())
    else {
        return;
    };
    let factors = factors.map(i64::from);
    let mut before = before.map(i64::from);
    let mut step = |oldest: usize, number: &mut i32| {
        let mut sum = 0_i64;
        for term in 0..N {
            let factor = factors[N - 1 - term];
            sum = sum.wrapping_add(factor.wrapping_mul(before[(oldest + term) % N]));
        }
        *number = number.wrapping_add((sum >> shift) as i32);
        before[oldest] = i64::from(*number);
    };
    let (rounds, rest) = rest.as_chunks_mut::<N>();
    for round in rounds {
        for (oldest, number) in round.iter_mut().enumerate() {
            step(oldest, number);
        }
    }
    for (oldest, number) in rest.iter_mut().enumerate() {
        step(oldest, number);
    }
}

/// Of high orders, which only the slowest settings of encoders choose.
#[inline(never)]
fn predict_any(numbers: &mut [i32], coefficients: &[i32], shift: u32) {
    let order = coefficients.len();
    let mut factors = [0; MOST];
    for (to, factor) in factors.iter_mut().zip(coefficients.iter().rev()) {
        *to = i64::from(*factor);
    }
    for at in order..numbers.len() {
        let (before, rest) = numbers.split_at_mut(at);
        let terms = factors.iter().zip(&before[at - order..]);
        let sum = terms.fold(0_i64, |sum, (factor, &number)| {
            sum.wrapping_add(factor.wrapping_mul(i64::from(number)))
        });
        rest[0] = rest[0].wrapping_add((sum >> shift) as i32);
    }
}

/// Reads numbers of so many bits, at most 33.
pub fn read<T: Number>(bits: &mut Bits<'_>, size: u32, numbers: &mut [T]) -> Outcome<()> {
    if bits.unsigned(1)? != 0 {
        return Err(Flaw::Invalid);
    }
    let kind = bits.unsigned(6)? as usize;
    // Low bits that are zero in all numbers.
    let wasted = match bits.unsigned(1)? {
        0 => 0,
        _ => bits.zeros()? + 1,
    };
    if wasted >= size {
        return Err(Flaw::Invalid);
    }
    let size = size - wasted;
    match kind {
        0 => numbers.fill(T::of(bits.signed(size)?)),
        1 => {
            for number in &mut *numbers {
                *number = T::of(bits.signed(size)?);
            }
        }
        8..=12 => {
            const FIXED: [&[i32]; 5] = [&[], &[1], &[2, -1], &[3, -3, 1], &[4, -6, 4, -1]];
            let coefficients = FIXED[kind - 8];
            read_first(bits, size, numbers, coefficients.len())?;
            read_residuals(bits, numbers, coefficients.len())?;
            T::predict(numbers, coefficients, 0);
        }
        32.. => {
            let order = kind - 31;
            read_first(bits, size, numbers, order)?;
            let precision = bits.unsigned(4)? as u32 + 1;
            let shift = bits.signed(5)?;
            if precision > 15 || shift < 0 {
                return Err(Flaw::Invalid);
            }
            let mut coefficients = [0; MOST];
            for coefficient in &mut coefficients[..order] {
                *coefficient = bits.signed(precision)? as i32;
            }
            read_residuals(bits, numbers, order)?;
            T::predict(numbers, &coefficients[..order], shift as u32);
        }
        _ => return Err(Flaw::Invalid),
    }
    if wasted > 0 {
        for number in numbers {
            *number = number.shifted(wasted);
        }
    }
    Ok(())
}

/// Reads the numbers that have none before them to be predicted from.
fn read_first<T: Number>(
    bits: &mut Bits<'_>,
    size: u32,
    numbers: &mut [T],
    order: usize,
) -> Outcome<()> {
    for number in numbers.get_mut(..order).ok_or(Flaw::Invalid)? {
        *number = T::of(bits.signed(size)?);
    }
    Ok(())
}

/// Reads what is to be added to the predictions.
fn read_residuals<T: Number>(bits: &mut Bits<'_>, numbers: &mut [T], order: usize) -> Outcome<()> {
    let width = match bits.unsigned(2)? {
        0 => 4,
        1 => 5,
        _ => return Err(Flaw::Invalid),
    };
    let parts = 1 << bits.unsigned(4)?;
    let size = numbers.len() / parts;
    if size * parts != numbers.len() || size < order {
        return Err(Flaw::Invalid);
    }
    let (mut at, mut end) = (order, size);
    for _ in 0..parts {
        let part = &mut numbers[at..end];
        (at, end) = (end, end + size);
        let low = bits.unsigned(width)? as u32;
        if low < (1 << width) - 1 {
            bits.rice(low, part, |number| T::of(number.into()))?;
            continue;
        }
        // As they are.
        match bits.unsigned(5)? as u32 {
            0 => part.fill(T::of(0)),
            size => {
                for number in part {
                    *number = T::of(bits.signed(size)?);
                }
            }
        }
    }
    Ok(())
}
