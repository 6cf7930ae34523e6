//! Bits, most significant first.

use super::{Flaw, Outcome};
use crate::kernels::numeric::isa::vectorized;

#[derive(Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte to load.
    at: usize,
    /// Loaded bits, from the most significant one on. Those below the first `count` are either zero
    /// or those that follow in the data.
    loaded: u64,
    count: u32,
}

/// How many bits can be read at once.
pub const MOST_BITS: u32 = 56;

impl<'a> Bits<'a> {
    pub fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0, loaded: 0, count: 0 }
    }

    /// Loads bits: at least 56, or all that there are.
    #[inline(always)]
    fn load(&mut self) {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(next) => {
                self.loaded |= u64::from_be_bytes(*next) >> self.count;
                self.at += ((63 - self.count) / 8) as usize;
                self.count |= 56;
            }
            None => self.load_last(),
        }
    }

    #[cold]
    fn load_last(&mut self) {
        while self.count < 56
            && let Some(&byte) = self.bytes.get(self.at)
        {
            self.loaded |= u64::from(byte) << (56 - self.count);
            self.at += 1;
            self.count += 8;
        }
    }

    #[inline(always)]
    fn skip(&mut self, bits: u32) {
        self.loaded <<= bits;
        self.count -= bits;
    }

    /// A number of up to [`MOST_BITS`] bits.
    #[inline(always)]
    pub fn unsigned(&mut self, bits: u32) -> Outcome<u64> {
        debug_assert!(bits <= MOST_BITS);
        if self.count < bits {
            self.load();
            if self.count < bits {
                return Err(Flaw::Ends);
            }
        }
        // Twice, since a shift by 64 is none.
        let number = self.loaded >> 1 >> (63 - bits);
        self.skip(bits);
        Ok(number)
    }

    /// A number of 1 to [`MOST_BITS`] bits, in two's complement.
    #[inline(always)]
    pub fn signed(&mut self, bits: u32) -> Outcome<i64> {
        let unused = 64 - bits.max(1);
        Ok((self.unsigned(bits)? << unused).cast_signed() >> unused)
    }

    /// The number of zeros before the next one, which is skipped.
    #[inline(always)]
    pub fn zeros(&mut self) -> Outcome<u32> {
        let mut zeros = 0;
        loop {
            let more = self.loaded.leading_zeros();
            if more < self.count {
                self.skip(more + 1);
                return Ok(zeros + more);
            }
            zeros += self.count;
            (self.loaded, self.count) = (0, 0);
            self.load();
            if self.count == 0 || zeros > u32::MAX / 2 {
                return Err(Flaw::Ends);
            }
        }
    }

    /// As many numbers as there is room for, in Rice's code: a number's high part in unary, its
    /// `low` bits as they are.
    pub fn rice<T>(&mut self, low: u32, numbers: &mut [T], of: impl Fn(i32) -> T) -> Outcome<()> {
        // Numbers take two bits more on average, if the encoder has chosen well. Each of these is a
        // function of its own: together, they have too few registers.
        match low {
            0..=3 => vectorized!(self.rice_groups::<T, 8>(low, numbers, of)),
            4..=6 => vectorized!(self.rice_groups::<T, 5>(low, numbers, of)),
            7..=9 => vectorized!(self.rice_groups::<T, 4>(low, numbers, of)),
            10..=13 => vectorized!(self.rice_groups::<T, 3>(low, numbers, of)),
            14..=22 => vectorized!(self.rice_groups::<T, 2>(low, numbers, of)),
            // Where a high part that is too large would go unnoticed.
            _ => {
                for number in numbers {
                    *number = of(unfolded(self.rice_number(low)?));
                }
                Ok(())
            }
        }
    }

    /// Decodes groups of numbers as if they were short, and looks afterwards whether they were: the
    /// next number begins where this one ends, and that takes long enough without branches.
    #[inline(always)]
    fn rice_groups<T, const N: usize>(
        &mut self,
        low: u32,
        numbers: &mut [T],
        of: impl Fn(i32) -> T,
    ) -> Outcome<()> {
        let (groups, rest) = numbers.as_chunks_mut::<N>();
        for group in groups {
            self.load();
            let (mut loaded, mut used) = (self.loaded, 0);
            let mut folded = [0; N];
            for number in &mut folded {
                let zeros = loaded.leading_zeros();
                // The one at the end of the zeros is still there, and is subtracted with them.
                let number_and_one = (loaded.wrapping_shl(zeros) >> (63 - low)) as u32;
                *number = zeros.wrapping_sub(1).wrapping_shl(low).wrapping_add(number_and_one);
                loaded = loaded.wrapping_shl(zeros + 1 + low);
                used += zeros + 1 + low;
            }
            if used <= self.count {
                (self.loaded, self.count) = (loaded, self.count - used);
            } else {
                for number in &mut folded {
                    *number = self.rice_number(low)?;
                }
            }
            for (number, folded) in group.iter_mut().zip(folded) {
                *number = of(unfolded(folded));
            }
        }
        for number in rest {
            *number = of(unfolded(self.rice_number(low)?));
        }
        Ok(())
    }

    /// A number of any length, not yet [`unfolded`].
    fn rice_number(&mut self, low: u32) -> Outcome<u32> {
        let high = self.zeros()?;
        if high > u32::MAX >> low {
            return Err(Flaw::Invalid);
        }
        // At most 31 bits.
        Ok(high << low | self.unsigned(low)? as u32)
    }

    /// The number of whole bytes that hold what has been read.
    pub fn bytes(&self) -> usize {
        self.at - (self.count / 8) as usize
    }
}

/// 0, 1, 2, 3, 4 stand for 0, -1, 1, -2, 2.
#[inline(always)]
fn unfolded(number: u32) -> i32 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of a text of zeros and ones.
    fn packed(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text.bytes().filter(|bit| *bit != b' ').collect();
        let byte = |bits: &[u8]| {
            (0..8).fold(0, |byte, at| byte << 1 | u8::from(bits.get(at) == Some(&b'1')))
        };
        bits.chunks(8).map(byte).collect()
    }

    /// A number in Rice's code.
    fn coded(number: i32, low: u32) -> String {
        let folded = (number << 1 ^ number >> 31).cast_unsigned();
        let ones: String =
            (0..low).rev().map(|bit| if folded >> bit & 1 == 1 { '1' } else { '0' }).collect();
        format!("{}1{ones}", "0".repeat((folded >> low) as usize))
    }

    #[test]
    fn numbers_are_read_in_turn() {
        let bytes = packed("1 0110 10000000000000000000000000000000000000000000000000000001 111");
        let mut bits = Bits::new(&bytes);
        assert_eq!(bits.unsigned(1).ok(), Some(1));
        assert_eq!(bits.signed(4).ok(), Some(6));
        assert_eq!(bits.signed(56).ok(), Some(1 - (1 << 55)));
        assert_eq!(bits.unsigned(0).ok(), Some(0));
        assert_eq!(bits.signed(3).ok(), Some(-1));
        assert_eq!(bits.bytes(), 8);
        assert!(matches!(bits.unsigned(1), Err(Flaw::Ends)));
    }

    #[test]
    fn zeros_are_counted_over_any_distance() {
        for zeros in [0, 1, 55, 56, 57, 63, 64, 65, 200] {
            let bytes = packed(&format!("01{}1", "0".repeat(zeros)));
            let mut bits = Bits::new(&bytes);
            assert_eq!(bits.zeros().ok(), Some(1));
            assert_eq!(bits.zeros().ok(), Some(zeros as u32), "{zeros}");
            assert!(matches!(bits.zeros(), Err(Flaw::Ends)));
        }
    }

    #[test]
    fn rice_codes_of_any_length_are_decoded() {
        for low in (0..=17).chain([22, 23, 24]) {
            let small = 1 << low;
            let numbers: Vec<i32> = (0..200)
                .map(|n| if n % 23 == 22 { 50 * small } else { (n - 100) * small / 64 })
                .collect();
            let text: String = numbers.iter().map(|number| coded(*number, low)).collect();
            let bytes = packed(&text);
            let mut read = vec![0; numbers.len()];
            let mut bits = Bits::new(&bytes);
            assert!(bits.rice(low, &mut read, |number| number).is_ok());
            assert_eq!(read, numbers, "{low}");
            assert_eq!(bits.bytes(), bytes.len());
            let mut short = Bits::new(&bytes[..bytes.len() - 9]);
            assert!(matches!(short.rice(low, &mut read, |number| number), Err(Flaw::Ends)));
        }
    }

    #[test]
    fn a_number_beyond_32_bits_is_invalid() {
        let bytes = packed(&format!("{}1{}", "0".repeat(8), "1".repeat(30)));
        let mut bits = Bits::new(&bytes);
        assert!(matches!(bits.rice(30, &mut [0], |number| number), Err(Flaw::Invalid)));
    }
}
