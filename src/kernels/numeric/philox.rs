//! Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
//! numbers: as easy as 1, 2, 3", 2011).
//!
//! There is no mutable state. A call gets its position when it is made, and its words are a pure
//! function of that position, the sample and the element, so the number of threads does not matter.

use crate::kernels::numeric::portable::of_word;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Added to the key after each round: the fractional parts of the golden ratio and of the
/// square root of three.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Marks blocks that streams of samples are made from.
const BY_SAMPLE: u32 = 0x6279_5342;

/// Number of blocks computed side by side, so that the compiler vectorizes.
pub const LANES: usize = 8;
/// Words in a group of blocks.
pub const GROUP: usize = 4 * LANES;

/// `N` counters at once; `words[i][lane]` is word `i` of a block.
#[inline(always)]
fn rounds<const N: usize>(mut key: [u32; 2], mut words: [[u32; N]; 4]) -> [[u32; N]; 4] {
    for _ in 0..ROUNDS {
        let [a, b, c, d] = words;
        for lane in 0..N {
            let first = u64::from(a[lane]) * u64::from(MULTIPLIERS[0]);
            let second = u64::from(c[lane]) * u64::from(MULTIPLIERS[1]);
            words[0][lane] = (second >> 32) as u32 ^ b[lane] ^ key[0];
            words[1][lane] = second as u32;
            words[2][lane] = (first >> 32) as u32 ^ d[lane] ^ key[1];
            words[3][lane] = first as u32;
        }
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    words
}

fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    rounds(key, counter.map(|word| [word])).map(|[word]| word)
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// A position in the sequence of an RNG: word `phase` of block `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub seed: u64,
    pub sequence: u64,
    pub offset: u64,
    /// Less than 4.
    pub phase: u32,
}

impl Position {
    /// Words by which each call of an operator advances the RNG, as in DALI.
    pub const WORDS_PER_CALL: u128 = 7;

    pub fn word(&self) -> u32 {
        let ([a, b], [c, d]) = (halves(self.offset), halves(self.sequence));
        block(halves(self.seed), [a, b, c, d])[(self.phase & 3) as usize]
    }

    /// Advances by this many words. The end of a sequence continues with the next one.
    pub fn advance(&mut self, words: u128) {
        let words = words.wrapping_add(u128::from(self.phase & 3));
        let block = u128::from(self.sequence) << 64 | u128::from(self.offset);
        let block = block.wrapping_add(words >> 2);
        self.sequence = (block >> 64) as u64;
        self.offset = block as u64;
        self.phase = (words & 3) as u32;
    }

    /// The random stream of one sample, for a call made at this position.
    pub fn stream(&self, sample: usize) -> Stream {
        let mut at = *self;
        let mut next = || {
            let word = at.word();
            at.advance(1);
            word
        };
        // 96 random bits separate calls from each other and from the words of the RNG itself.
        Stream { key: [next(), next()], call: next(), sample: sample as u32, by_index: true }
    }
}

/// The randomness of one sample of one call.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: [u32; 2],
    call: u32,
    sample: u32,
    /// Whether it depends on the sample's index in its batch, rather than on the sample itself.
    by_index: bool,
}

impl Stream {
    /// The stream of a sample of a data set, whatever batch it is in.
    pub fn by_sample(seed: u64, epoch: u64, number: u64, place: u32) -> Stream {
        // No RNG gets to a sequence with these upper bits, so its words are others.
        let [low, high] = halves(epoch);
        let [a, b, c, d] = block(halves(seed), [low, high, place, BY_SAMPLE]);
        let [low, high] = halves(number);
        let [first, second, call, sample] = block([a, b], [low, high, c, d]);
        Stream { key: [first, second], call, sample, by_index: false }
    }

    /// The same stream for all samples of the call; `None` if each sample has its own.
    pub fn of_batch(&self) -> Option<Stream> {
        self.by_index.then_some(Stream { sample: u32::MAX, ..*self })
    }

    /// Another stream for the same sample, for kernels that draw several things.
    pub fn apart(&self, use_number: u32) -> Stream {
        let [first, second] = self.key;
        Stream { key: [first, second.wrapping_add(use_number.wrapping_mul(WEYL[0]))], ..*self }
    }

    fn counter(&self, index: u64) -> [u32; 4] {
        let [low, high] = halves(index);
        [low, high, self.sample, self.call]
    }

    pub fn block(&self, index: u64) -> [u32; 4] {
        block(self.key, self.counter(index))
    }

    /// The words of a group of blocks: word `i` of block `lane` is at `LANES * i + lane`. If only
    /// `wanted` lanes are needed, the others may be zero.
    #[inline(always)]
    pub fn group(&self, index: u64, wanted: usize) -> [u32; GROUP] {
        let first = index.wrapping_mul(LANES as u64);
        let mut words = [0; GROUP];
        if wanted >= LANES {
            let mut counters = [[0; LANES]; 4];
            for lane in 0..LANES {
                let counter = self.counter(first.wrapping_add(lane as u64));
                for (row, word) in counters.iter_mut().zip(counter) {
                    row[lane] = word;
                }
            }
            let made = rounds(self.key, counters);
            for (dst, src) in words.chunks_exact_mut(LANES).zip(&made) {
                dst.copy_from_slice(src);
            }
        } else {
            for lane in 0..wanted {
                let made = self.block(first.wrapping_add(lane as u64));
                for (i, word) in made.into_iter().enumerate() {
                    words[LANES * i + lane] = word;
                }
            }
        }
        words
    }

    /// The blocks of an element that may need any number of them.
    pub fn source(&self, element: usize) -> Source<'_> {
        Source { stream: self, element: element as u64, used: 0 }
    }

    /// Block number `attempt` of several such elements, word by word.
    #[inline(always)]
    pub fn attempt(&self, attempt: u64, elements: &[u64; LANES]) -> [[u32; LANES]; 4] {
        let mut counters = [[0; LANES]; 4];
        for lane in 0..LANES {
            let counter = self.counter(numbered(attempt, elements[lane]));
            for (row, word) in counters.iter_mut().zip(counter) {
                row[lane] = word;
            }
        }
        rounds(self.key, counters)
    }
}

/// The blocks of one element, one after another.
pub struct Source<'a> {
    stream: &'a Stream,
    element: u64,
    used: u64,
}

impl Source<'_> {
    pub fn next(&mut self) -> [u32; 4] {
        self.used += 1;
        self.stream.block(numbered(self.used - 1, self.element))
    }
}

/// Index of an element's block with this number. No sample has 2^48 elements, so blocks of
/// different elements never collide.
fn numbered(number: u64, element: u64) -> u64 {
    number << 48 | element
}

/// A number in [0, 1) with the full precision of an `f64`.
#[inline(always)]
pub fn fraction(low: u32, high: u32) -> f64 {
    const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
    (of_word(high) * (1_u32 << 21) as f64 + of_word(low >> 11)) * UNIT
}

/// A number in [0, 1) with the bits of one word.
#[inline]
pub fn short_fraction(word: u32) -> f64 {
    f64::from(word) * (1.0 / 4_294_967_296.0)
}

/// An integer in `0..bound`. Probabilities differ by less than `bound / 2^64`.
#[inline]
pub fn below(low: u32, high: u32, bound: u64) -> u64 {
    let word = u64::from(high) << 32 | u64::from(low);
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_match_the_paper() {
        // Known answers from the authors' code.
        assert_eq!(block([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            block([u32::MAX; 2], [u32::MAX; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            block([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn words_of_a_group_do_not_depend_on_how_many_are_asked_for() {
        let start = Position { seed: 7, sequence: 0, offset: 3, phase: 2 };
        let stream = start.stream(5);
        let whole = stream.group(11, LANES);
        for lane in 0..LANES {
            let block = stream.block(11 * LANES as u64 + lane as u64);
            let part = stream.group(11, lane + 1);
            for (i, word) in block.into_iter().enumerate() {
                assert_eq!(whole[LANES * i + lane], word);
                assert_eq!(part[LANES * i + lane], word);
            }
        }
    }

    #[test]
    fn advancing_at_once_equals_advancing_word_by_word() {
        let mut walked = Position { seed: 1, sequence: 2, offset: u64::MAX - 1, phase: 1 };
        let mut jumped = walked;
        (0..11).for_each(|_| walked.advance(1));
        jumped.advance(11);
        assert_eq!(walked, jumped);
        assert_eq!(walked, Position { sequence: 3, offset: 1, phase: 0, ..walked });
    }

    #[test]
    fn fractions_stay_below_one() {
        assert!(fraction(u32::MAX, u32::MAX) < 1.0);
        assert!(short_fraction(u32::MAX) < 1.0);
        assert_eq!((fraction(0, 0), short_fraction(0)), (0.0, 0.0));
        assert_eq!(below(u32::MAX, u32::MAX, 10), 9);
        assert_eq!(below(u32::MAX, u32::MAX, u64::MAX), u64::MAX - 1);
        assert_eq!(below(0, 0, 10), 0);
    }
}
