//! Huffman codes.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use super::bits::{Bits, extended};

/// Bits that are looked up at once.
const LOOK: u32 = 10;
/// The same for blocks that are passed over, of which less has to be known.
const SKIP_LOOK: u32 = 13;
/// Codes that a thread keeps. Most files have the four that libjpeg uses by default.
const KEPT: usize = 8;

/// Where coefficients belong, in the order of the file.
pub const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// What codes are for: the means of blocks, or their other coefficients.
#[derive(Clone, Copy, PartialEq)]
pub enum Class {
    Dc,
    Ac,
}

/// What some bits at the start of a code mean.
#[derive(Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    /// The length of the code; 0 for longer ones.
    code: u8,
    /// The coefficient, if all of its bits were looked at.
    value: Option<i16>,
}

impl Entry {
    /// For a symbol with a code of this length, followed by these bits.
    fn new(symbol: u8, code: u32, low: usize) -> Entry {
        let length = u32::from(symbol & 15);
        let all = code + length;
        let value = (all <= LOOK).then(|| {
            let bits = (low >> (LOOK - all)) & ((1 << length) - 1);
            extended(bits as i32, length) as i16
        });
        Entry { symbol, code: code as u8, value }
    }

    /// Bits of the code and the coefficient together.
    fn all(self) -> u32 {
        u32::from(self.code) + u32::from(self.symbol & 15)
    }

    /// Zeros before the coefficient.
    fn run(self) -> usize {
        usize::from(self.symbol >> 4)
    }

    /// Whether no more coefficients follow.
    fn ends(self) -> bool {
        self.symbol == 0
    }
}

/// What some bits mean if one or two coefficients are there as a whole: from the lowest bit on, 8
/// bits for the length, 7 for how far they lead in the block, one that marks its end, 8 each for
/// the places of the coefficients from here, and 16 each for themselves. A second one that is
/// missing is 0. If the first is missing, so is the length.
#[derive(Clone, Copy, Default)]
struct Pair(u64);

impl Pair {
    fn new(length: u32, steps: usize, ends: bool, places: [usize; 2], values: [i16; 2]) -> Pair {
        let [first, second] = values.map(|value| u64::from(value as u16));
        let places = ((places[0] << 16) | (places[1] << 24)) as u64;
        let start = u64::from(length) | ((steps as u64) << 8) | (u64::from(ends) << 15);
        Pair(start | places | (first << 32) | (second << 48))
    }

    #[inline(always)]
    fn length(self) -> u32 {
        self.0 as u32 & 255
    }

    #[inline(always)]
    fn steps(self) -> usize {
        (self.0 >> 8) as usize & 127
    }

    #[inline(always)]
    fn ends(self) -> bool {
        self.0 & (1 << 15) != 0
    }

    #[inline(always)]
    fn places(self) -> [usize; 2] {
        [(self.0 >> 16) as usize & 255, (self.0 >> 24) as usize & 255]
    }

    #[inline(always)]
    fn values(self) -> [i16; 2] {
        [(self.0 >> 32) as i16, (self.0 >> 48) as i16]
    }
}

/// What some bits mean of which only the end of the block is wanted: the bits and coefficients of
/// all codes that are here as a whole, and whether the block ends after them.
#[derive(Clone, Copy, Default)]
struct Skip(u16);

impl Skip {
    fn new(bits: u32, steps: usize, last: bool) -> Skip {
        Skip((u16::from(last) << 15) | ((steps as u16) << 4) | bits as u16)
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        u32::from(self.0 & 15)
    }

    #[inline(always)]
    fn steps(self) -> usize {
        usize::from((self.0 >> 4) & 127)
    }

    #[inline(always)]
    fn is_last(self) -> bool {
        self.0 >> 15 == 1
    }
}

/// A Huffman code.
pub struct Codes {
    class: Class,
    counts: [u8; 16],
    symbols: Vec<u8>,
    table: Box<[Entry; 1 << LOOK]>,
    pairs: Box<[Pair; 1 << LOOK]>,
    /// By length: the first number that is no code of it, and what to add for the symbol's place.
    limits: [u32; 17],
    offsets: [i32; 17],
    /// Made only where many blocks are passed over.
    skips: OnceCell<Box<[Skip; 1 << SKIP_LOOK]>>,
}

impl Codes {
    /// Codes with so many symbols of each length. Those that the thread has had lately are not
    /// computed again.
    pub fn of(class: Class, counts: &[u8; 16], symbols: &[u8]) -> Option<Rc<Codes>> {
        thread_local! {
            static LATELY: RefCell<Vec<Rc<Codes>>> = const { RefCell::new(Vec::new()) };
        }
        LATELY.with_borrow_mut(|lately| {
            let is_same = |codes: &Rc<Codes>| {
                codes.class == class && codes.counts == *counts && codes.symbols == symbols
            };
            let found = match lately.iter().position(is_same) {
                Some(index) => lately.remove(index),
                None => Rc::new(Codes::new(class, counts, symbols)?),
            };
            lately.truncate(KEPT - 1);
            lately.insert(0, Rc::clone(&found));
            Some(found)
        })
    }

    fn new(class: Class, counts: &[u8; 16], symbols: &[u8]) -> Option<Codes> {
        let (mut limits, mut offsets) = ([0; 17], [0; 17]);
        let mut table = Box::new([Entry::default(); 1 << LOOK]);
        let (mut code, mut place) = (0_u32, 0_usize);
        for length in 1..=16_u32 {
            let count = u32::from(counts[length as usize - 1]);
            offsets[length as usize] = place as i32 - code as i32;
            for _ in 0..count {
                let symbol = *symbols.get(place)?;
                // Reserved: no coefficient after some zeros.
                let reserved = match class {
                    Class::Dc => symbol > 15,
                    Class::Ac => symbol & 15 == 0 && !matches!(symbol, 0 | 0xf0),
                };
                if reserved {
                    return None;
                }
                if length <= LOOK {
                    let first = (code as usize) << (LOOK - length);
                    let entries = table.get_mut(first..first + (1 << (LOOK - length)))?;
                    for (low, entry) in entries.iter_mut().enumerate() {
                        *entry = Entry::new(symbol, length, low);
                    }
                }
                code += 1;
                place += 1;
            }
            limits[length as usize] = code;
            // No code is all ones.
            if code >= 1 << length {
                return None;
            }
            code <<= 1;
        }
        let (counts, symbols, skips) = (*counts, symbols.to_vec(), OnceCell::new());
        let pairs = pairs(&table);
        Some(Codes { class, counts, symbols, table, pairs, limits, offsets, skips })
    }

    fn join(&self) -> Box<[Skip; 1 << SKIP_LOOK]> {
        let mut joined = Box::new([Skip::default(); 1 << SKIP_LOOK]);
        for (start, found) in joined.iter_mut().enumerate() {
            let (mut taken, mut steps, mut last) = (0, 0, false);
            while !last && taken < SKIP_LOOK && steps <= 32 {
                let ahead = (start << taken) & ((1 << SKIP_LOOK) - 1);
                let entry = self.table[ahead >> (SKIP_LOOK - LOOK)];
                let all = entry.all();
                if entry.code == 0 || taken + all > SKIP_LOOK {
                    break;
                }
                taken += all;
                last = entry.ends();
                steps += if last { 0 } else { entry.run() + 1 };
            }
            *found = Skip::new(taken, steps, last);
        }
        joined
    }

    /// The next symbol of up to 16 bits, which must be there.
    #[inline(always)]
    fn symbol(&self, entry: Entry, bits: &mut Bits<'_>) -> Option<u8> {
        let (symbol, length) = match entry.code {
            0 => self.long_symbol(bits.peek(16) as u32)?,
            length => (entry.symbol, u32::from(length)),
        };
        bits.skip(length);
        Some(symbol)
    }

    /// The symbol at the start of 16 bits, and the length of its code.
    #[cold]
    fn long_symbol(&self, ahead: u32) -> Option<(u8, u32)> {
        let length = (LOOK + 1..=16)
            .find(|&length| ahead >> (16 - length) < self.limits[length as usize])?;
        let place = (ahead >> (16 - length)) as i32 + self.offsets[length as usize];
        Some((*self.symbols.get(usize::try_from(place).ok()?)?, length))
    }

    /// By how much the mean of a block differs from that of the last one.
    #[inline(always)]
    pub fn difference(&self, bits: &mut Bits<'_>) -> Option<i32> {
        bits.refill();
        let entry = self.table[bits.peek(LOOK)];
        if let Some(value) = entry.value {
            bits.skip(entry.all());
            return Some(i32::from(value));
        }
        let length = self.symbol(entry, bits)?;
        Some(bits.value(u32::from(length)))
    }

    /// Reads the coefficients of a block but the first, and passes them to `store` with their
    /// numbers in the order of the file. Zeros may be among them. Returns where they end.
    #[inline(always)]
    pub fn read_block(
        &self,
        given: &mut Bits<'_>,
        mut store: impl FnMut(usize, i16),
    ) -> Option<usize> {
        let mut bits = *given;
        let mut at = 1_usize;
        while at < 64 {
            if bits.count < 32 {
                bits.refill();
            }
            let pair = self.pairs[bits.peek(LOOK)];
            // A block that is full ends without a code for it, so that what seems to be a second
            // coefficient may belong to the next one.
            if pair.length() > 0 && at + pair.steps() < 64 {
                bits.skip(pair.length());
                let ([first, second], values) = (pair.places(), pair.values());
                store((at + first) & 63, values[0]);
                store((at + second) & 63, values[1]);
                at += pair.steps();
                if pair.ends() {
                    break;
                }
                continue;
            }
            let entry = self.table[bits.peek(LOOK)];
            let symbol = self.symbol(entry, &mut bits)?;
            if symbol == 0 {
                break;
            }
            at += usize::from(symbol >> 4);
            let value = bits.value(u32::from(symbol & 15)) as i16;
            if at > 63 {
                return None;
            }
            store(at & 63, value);
            at += 1;
        }
        *given = bits;
        Some(at)
    }

    /// Passes over the coefficients of a block but the first, several at once.
    #[inline(always)]
    pub fn skip_block(&self, given: &mut Bits<'_>) -> Option<()> {
        let skips = self.skips.get_or_init(|| self.join());
        let mut bits = *given;
        let mut at = 1_usize;
        while at < 64 {
            bits.refill();
            // As often as the bits last.
            for _ in 0..4 {
                let skip = skips[bits.peek(SKIP_LOOK)];
                let next = at + skip.steps();
                // A block that is full ends without a code for it.
                if skip.bits() == 0 || next > 63 {
                    break;
                }
                bits.skip(skip.bits());
                at = next;
                if skip.is_last() {
                    *given = bits;
                    return Some(());
                }
            }
            bits.refill();
            let entry = self.table[bits.peek(LOOK)];
            let symbol = self.symbol(entry, &mut bits)?;
            bits.skip(u32::from(symbol & 15));
            if symbol == 0 {
                *given = bits;
                return Some(());
            }
            at += 1 + usize::from(symbol >> 4);
        }
        *given = bits;
        (at == 64).then_some(())
    }
}

/// Joins coefficients that are looked up at once.
fn pairs(table: &[Entry; 1 << LOOK]) -> Box<[Pair; 1 << LOOK]> {
    let mut joined = Box::new([Pair::default(); 1 << LOOK]);
    for (start, pair) in joined.iter_mut().enumerate() {
        let first = table[start];
        let Some(value) = first.value else { continue };
        if first.ends() {
            *pair = Pair::new(first.all(), 0, true, [0; 2], [0; 2]);
            continue;
        }
        let next = first.run() + 1;
        let second = table[(start << first.all()) & ((1 << LOOK) - 1)];
        let both = first.all() + second.all();
        *pair = match second.value {
            Some(_) if both <= LOOK && second.ends() => {
                Pair::new(both, next, true, [first.run(), next], [value, 0])
            }
            Some(other) if both <= LOOK => {
                let place = next + second.run();
                Pair::new(both, place + 1, false, [first.run(), place], [value, other])
            }
            _ => Pair::new(first.all(), next, false, [first.run(), next], [value, 0]),
        };
    }
    joined
}
