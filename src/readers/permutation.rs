//! A permutation of `0..n` that takes no memory: each place is computed on its own, so an epoch of
//! 10^8 samples starts at once, and a worker can compute any part of it.
//!
//! This is a Feistel network over the bits of an index. Each step changes one half by a function of
//! the other half, which can be undone, so the whole is a permutation of `0..2^bits`, whatever the
//! function is. Results of `n` or more are permuted again until one is below `n` (cycle walking);
//! with less than `2 * n` indices, that takes less than two passes on average.

use crate::kernels::Position;

/// Steps of the network. Four would do for a secure function; ours is only a good hash.
const STEPS: usize = 12;

pub struct Permutation {
    len: u64,
    /// Bits of the lower half.
    low: u32,
    /// The bits that remain of each half, upper half first.
    masks: [u64; 2],
    keys: [u64; STEPS],
}

impl Permutation {
    /// The permutation of `0..len` for a seed and an epoch.
    pub fn new(len: u64, seed: u64, epoch: u64) -> Permutation {
        let bits = (u64::BITS - len.saturating_sub(1).leading_zeros()).max(2);
        let (low, high) = (bits / 2, bits - bits / 2);
        // Far away from the streams that the shuffles of `order` draw from.
        let words = Position { seed, sequence: epoch, offset: 1 << 63, phase: 0 }.stream(0);
        let keys = std::array::from_fn(|step| {
            let [first, second, ..] = words.block(step as u64);
            u64::from(second) << 32 | u64::from(first)
        });
        Permutation { len, low, masks: [(1 << high) - 1, (1 << low) - 1], keys }
    }

    /// The item at a place, which must be less than the length.
    pub fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.len);
        let mut item = self.pass(place);
        while item >= self.len {
            item = self.pass(item);
        }
        item
    }

    fn pass(&self, index: u64) -> u64 {
        let mut halves = [index >> self.low, index & self.masks[1]];
        for (step, key) in self.keys.iter().enumerate() {
            let (changed, other) = (step % 2, halves[1 - step % 2]);
            halves[changed] ^= mix(other, *key) & self.masks[changed];
        }
        halves[0] << self.low | halves[1]
    }
}

/// A hash of a number and a key, by multiplications and shifts.
fn mix(number: u64, key: u64) -> u64 {
    let mut hash = (number ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(len: u64, seed: u64, epoch: u64) -> Vec<u64> {
        let permutation = Permutation::new(len, seed, epoch);
        (0..len).map(|place| permutation.at(place)).collect()
    }

    #[test]
    fn every_item_comes_once() {
        for len in (0..300).chain([1 << 10, (1 << 10) + 1, 65_535, 100_003]) {
            let mut items = all(len, 7, len);
            items.sort_unstable();
            assert!(items.into_iter().eq(0..len), "of {len}");
        }
    }

    #[test]
    fn large_lengths_stay_in_range() {
        for len in [(1 << 40) + 1, 1 << 62, i64::MAX as u64] {
            let permutation = Permutation::new(len, 1, 2);
            let items: Vec<_> = [0, 1, 2, len / 2, len - 1].map(|i| permutation.at(i)).into();
            assert!(items.iter().all(|&item| item < len));
            assert!(items.iter().any(|&item| item > len / 4), "{items:?}");
        }
    }

    #[test]
    fn it_depends_on_seed_and_epoch() {
        let first = all(1000, 1, 2);
        for other in [(2, 2), (1, 3)] {
            let second = all(1000, other.0, other.1);
            let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
            assert!(same < 10, "{same} of 1000 are in the same place");
        }
    }

    #[test]
    fn orders_of_few_items_are_about_as_likely() {
        let mut counts = std::collections::HashMap::new();
        for epoch in 0..24_000 {
            *counts.entry(all(4, 11, epoch)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 24);
        // A network with keyed steps on so few bits is not exactly uniform.
        assert!(counts.values().all(|count| (700..1300).contains(count)), "{counts:?}");
    }

    #[test]
    fn neighbors_are_scattered() {
        // The differences of neighbors, in 16 classes: each about as often.
        let len = 100_000;
        let items = all(len, 5, 0);
        let mut counts = [0_u32; 16];
        for pair in items.windows(2) {
            let difference = (pair[1] + len - pair[0]) % len;
            counts[(difference * 16 / len) as usize] += 1;
        }
        let expected = (len - 1) as f64 / 16.0;
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        assert!(chi < 50.0, "chi-squared with 15 degrees of freedom: {chi}"); // 50: p < 1e-4
    }
}
