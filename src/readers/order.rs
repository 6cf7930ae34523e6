//! The order of an epoch, as a pure function of seed, epoch and stream.

use crate::kernels::{Position, Stream, below};

/// Shuffles with a buffer of `fill` items: the next item is drawn from the buffer, and replaced by
/// the next one of the sequence. If the buffer holds all items, the shuffle is uniform.
///
/// This is done in place: swapping item `i` with one of the `fill` items from `i` on draws from
/// what the buffer would hold.
pub fn shuffle(items: &mut [i64], fill: usize, seed: u64, epoch: u64, stream: u32) {
    let start = Position { seed, sequence: epoch, offset: 0, phase: 0 };
    let words: Stream = start.stream(stream as usize);
    let mut block = [0; 4];
    for i in 0..items.len() {
        if i % 2 == 0 {
            block = words.block(i as u64 / 2);
        }
        let [low, high] = if i % 2 == 0 { [block[0], block[1]] } else { [block[2], block[3]] };
        let reach = (items.len() - i).min(fill.max(1));
        items.swap(i, i + below(low, high, reach as u64) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: i64, fill: usize, seed: u64, epoch: u64, stream: u32) -> Vec<i64> {
        let mut items: Vec<i64> = (0..n).collect();
        shuffle(&mut items, fill, seed, epoch, stream);
        items
    }

    #[test]
    fn a_shuffle_is_a_permutation_that_depends_on_every_key() {
        let first = order(1000, 1000, 1, 2, 3);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
        assert_eq!(first, order(1000, 5000, 1, 2, 3));
        for other in [(2, 2, 3), (1, 3, 3), (1, 2, 4)] {
            assert_ne!(first, order(1000, 1000, other.0, other.1, other.2));
        }
    }

    #[test]
    fn nothing_comes_earlier_than_the_buffer_allows() {
        for fill in [1, 2, 7, 64] {
            let items = order(500, fill, 5, 0, 0);
            for (place, item) in items.into_iter().enumerate() {
                assert!(item < (place + fill) as i64);
            }
        }
        assert!(order(50, 1, 9, 0, 0).into_iter().eq(0..50));
    }

    #[test]
    fn every_order_is_as_likely() {
        let mut counts = std::collections::HashMap::new();
        for epoch in 0..24_000 {
            *counts.entry(order(4, 4, 11, epoch, 0)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 24);
        // Six standard deviations around the expected 1000.
        assert!(counts.values().all(|count| (810..1190).contains(count)), "{counts:?}");
    }
}
