//! The bits of the image data.

/// Image data without what keeps it apart from markers, up to the next one.
pub struct Segments<'a> {
    pub rest: &'a [u8],
}

impl Segments<'_> {
    /// Fills `buffer` up to the restart marker with this number, or to the end of the image.
    pub fn next(&mut self, buffer: &mut Vec<u8>, restart: Option<usize>) -> Option<()> {
        buffer.clear();
        buffer.try_reserve(self.rest.len().min(1 << 16)).ok()?;
        loop {
            let plain = find_marker(self.rest)?;
            buffer.try_reserve(plain + 1).ok()?;
            buffer.extend_from_slice(&self.rest[..plain]);
            let (&[_, next], after) = self.rest[plain..].split_first_chunk()?;
            match (next, restart) {
                (0, _) => {
                    buffer.push(0xff);
                    self.rest = after;
                }
                (0xd0..=0xd7, Some(number)) if usize::from(next - 0xd0) == number => {
                    self.rest = after;
                    return Some(());
                }
                (0xd9, None) => return Some(()),
                _ => return None,
            }
        }
    }
}

/// The next byte of 0xff.
fn find_marker(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, _) = bytes.as_chunks::<8>();
    let has = |word: &[u8; 8]| {
        // A byte of 0xff is a zero of the complement.
        let flipped = !u64::from_le_bytes(*word);
        flipped.wrapping_sub(ONES) & !flipped & (ONES << 7) != 0
    };
    let skipped = 8 * words.iter().position(has).unwrap_or(words.len());
    Some(skipped + bytes[skipped..].iter().position(|&byte| byte == 0xff)?)
}

/// Bits from the highest to the lowest. After the end there are zeros.
///
/// Loops copy it and put it back: what is never borrowed stays in registers.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    rest: &'a [u8],
    word: u64,
    pub count: u32,
    /// Bytes that were made up.
    beyond: usize,
}

impl<'a> Bits<'a> {
    pub fn new(rest: &'a [u8]) -> Bits<'a> {
        Bits { rest, word: 0, count: 0, beyond: 0 }
    }

    /// Makes at least 56 bits available.
    #[inline(always)]
    pub fn refill(&mut self) {
        if let Some(next) = self.rest.first_chunk::<8>() {
            self.word |= u64::from_be_bytes(*next) >> self.count;
            let bytes = (63 - self.count) / 8;
            self.rest = &self.rest[bytes as usize..];
            self.count += 8 * bytes;
        } else {
            *self = self.refilled_at_end();
        }
    }

    #[cold]
    fn refilled_at_end(mut self) -> Self {
        while self.count <= 56 {
            let byte = match self.rest.split_first() {
                Some((&byte, rest)) => {
                    self.rest = rest;
                    byte
                }
                None => {
                    self.beyond += 1;
                    0
                }
            };
            self.word |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        self
    }

    #[inline(always)]
    pub fn peek(&self, count: u32) -> usize {
        (self.word >> (64 - count)) as usize
    }

    #[inline(always)]
    pub fn skip(&mut self, count: u32) {
        self.word <<= count;
        self.count -= count;
    }

    /// A number of so many bits, of which the first says whether it is positive.
    #[inline(always)]
    pub fn value(&mut self, length: u32) -> i32 {
        // In two steps: of no bits, all 64 are shifted out.
        let bits = (self.word >> 1 >> (63 - length)) as i32;
        self.skip(length);
        extended(bits, length)
    }

    /// Whether bits were taken that are not there.
    pub fn overrun(&self) -> bool {
        8 * self.beyond > self.count as usize
    }
}

/// The number that is stored as these bits, of so many.
#[inline(always)]
pub fn extended(bits: i32, length: u32) -> i32 {
    if length == 0 {
        return 0;
    }
    if bits < 1 << (length - 1) { bits - (1 << length) + 1 } else { bits }
}
