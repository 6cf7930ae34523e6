//! Headers of FITS files: cards of 80 characters, a keyword and its value each.

use super::{FitsFault, Result, broken};
use crate::readers::ranges::Opened;
use crate::value::append;

/// Headers and data come in blocks of this size.
pub const BLOCK: u64 = 2880;
const CARD: usize = 80;

/// Longest header that is read: 36,000 cards.
const MOST_BLOCKS: u64 = 1000;

/// The cards of a header data unit, and where its data is.
pub struct Header {
    cards: Vec<u8>,
    pub data: u64,
}

impl Header {
    /// Reads the header at an offset.
    pub fn read(file: &Opened, at: u64) -> Result<Header> {
        let mut cards = Vec::new();
        let mut next = at;
        loop {
            let mut block = [0; BLOCK as usize];
            if file.size.saturating_sub(next) < BLOCK || (next - at) / BLOCK >= MOST_BLOCKS {
                return Err(broken(FitsFault::Header { at }));
            }
            file.read(next, &mut block)?;
            append(&mut cards, &block)?;
            next += BLOCK;
            let is_end =
                |card: &[u8]| card.starts_with(b"END") && card[3..].trim_ascii().is_empty();
            if block.chunks_exact(CARD).any(is_end) {
                return Ok(Header { cards, data: next });
            }
        }
    }

    /// The value of a keyword, without its comment.
    fn value(&self, keyword: &str) -> Option<&[u8]> {
        let card = self.cards.chunks_exact(CARD).find(|card| {
            card[..8].trim_ascii_end() == keyword.as_bytes() && &card[8..10] == b"= "
        })?;
        let value = card[10..].trim_ascii();
        if value.starts_with(b"'") {
            let end = value[1..].iter().position(|&byte| byte == b'\'')?;
            return Some(value[1..1 + end].trim_ascii_end());
        }
        let end = value.iter().position(|&byte| byte == b'/').unwrap_or(value.len());
        Some(value[..end].trim_ascii())
    }

    pub fn text(&self, keyword: &str) -> Option<&str> {
        std::str::from_utf8(self.value(keyword)?).ok()
    }

    pub fn integer(&self, keyword: &str) -> Option<i64> {
        self.text(keyword)?.parse().ok()
    }

    pub fn float(&self, keyword: &str) -> Option<f64> {
        // Some writers use Fortran's D for exponents.
        self.text(keyword)?.replace(['D', 'd'], "E").parse().ok()
    }

    pub fn truth(&self, keyword: &str) -> bool {
        self.value(keyword) == Some(b"T")
    }

    /// An integer that must be there, and not be negative.
    pub fn count(&self, keyword: &str) -> Result<u64> {
        let found = self.integer(keyword).and_then(|value| u64::try_from(value).ok());
        found.ok_or_else(|| broken(FitsFault::Keyword { keyword: keyword.into() }))
    }

    /// Extents, from the one that varies fastest on; `prefix` is "NAXIS" or "ZNAXIS".
    pub fn extents(&self, prefix: &str) -> Result<Vec<u64>> {
        let ndim = self.count(prefix)?;
        if ndim > 32 {
            return Err(broken(FitsFault::Dimensions { ndim }));
        }
        (1..=ndim).map(|axis| self.count(&format!("{prefix}{axis}"))).collect()
    }

    /// Bytes of the data, without what it is padded with.
    pub fn data_bytes(&self) -> Result<u64> {
        let extents = self.extents("NAXIS")?;
        if extents.is_empty() {
            return Ok(0);
        }
        let bits = self.integer("BITPIX").unwrap_or(8).unsigned_abs();
        let more = self.integer("PCOUNT").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let groups = self.integer("GCOUNT").and_then(|n| u64::try_from(n).ok()).unwrap_or(1);
        let count = extents.iter().try_fold(1_u64, |all, &extent| all.checked_mul(extent));
        let bytes = count
            .and_then(|count| count.checked_add(more))
            .and_then(|count| count.checked_mul(groups))
            .and_then(|count| count.checked_mul(bits / 8));
        bytes.ok_or_else(|| broken(FitsFault::TooLarge))
    }
}
