//! The pages of a column: finding them, and decoding one at a time.

use std::sync::Arc;

use super::super::cache::Cache;
use super::super::ranges::Opened;
use super::super::unpack::{Packing, unpack};
use super::encodings::{Values, decode, hybrid};
use super::schema::{Chunk, Leaf, Physical};
use super::thrift::{Parsed, Thrift, Unparsed};
use super::{ParquetFault, Result, broken};
use crate::value::{append, with_room, zeroed};

/// What is read of a page for its header at first, and at most: statistics can make it long.
const FIRST: usize = 256;
const LARGEST_HEADER: usize = 16 << 20;

/// Values that a page may claim, if its bytes don't account for more. (Equal values take no room.)
const MOST_VALUES: u64 = 1 << 24;

/// Largest page. (Most writers stop at a megabyte, if values are not larger than that.)
const LARGEST_PAGE: u64 = 1 << 30;

/// A decoded part of a column, as it is cached.
pub enum Unit {
    Pages(Pages),
    Dictionary(Arc<Values>),
    Rows(Rows),
}

/// Where the pages of a column chunk are.
pub struct Pages {
    dictionary: Option<Page>,
    pages: Vec<Page>,
    /// The end of each page, as a number of rows that begin in it or before.
    ends: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    kind: i64,
    /// Of its data, after the header.
    start: u64,
    packed: u64,
    unpacked: u64,
    values: u64,
    encoding: i64,
    second: Option<Second>,
    /// Whether it begins with the rest of a row.
    continues: bool,
}

/// What pages of version 2 have beyond those of version 1.
#[derive(Clone, Copy, Debug)]
struct Second {
    rows: u64,
    definitions: u64,
    repetitions: u64,
    packed: bool,
}

/// The rows of a page.
pub struct Rows {
    values: Values,
    layout: Layout,
}

enum Layout {
    /// A value for each row.
    Flat,
    /// The place of each row's value, or `NULL`.
    Optional(Vec<u32>),
    /// For each list, from the outermost on, where its elements begin: rows, lists in there...
    Lists { starts: Vec<Vec<u32>>, nulls: Vec<u32>, null_elements: Vec<u32> },
}

const NULL: u32 = u32::MAX;

/// A column of one row group.
pub struct Column<'a> {
    pub leaf: &'a Leaf,
    pub chunk: &'a Chunk,
    pub file: &'a Opened,
    pub cache: &'a Cache<Unit>,
    /// The first of the numbers that its units have in the cache.
    pub key: u64,
}

/// Bits of a unit's number that are for the pages of a column.
pub const PAGE_BITS: u32 = 24;

impl Column<'_> {
    /// Calls `take` with the rows of the page that has a row, and its place in there.
    pub fn with_row<T>(
        &self,
        row: usize,
        take: impl FnOnce(&Rows, usize) -> Result<T>,
    ) -> Result<T> {
        let damaged = || broken(ParquetFault::Pages { column: self.leaf.name.clone() });
        let index = self.cache.get(self.key, || self.find_pages())?;
        let Unit::Pages(pages) = &*index else { return Err(damaged()) };
        let page = pages.ends.partition_point(|&end| end <= row as u64);
        let before = page.checked_sub(1).map_or(0, |before| pages.ends[before]);
        if page >= pages.pages.len() {
            return Err(damaged());
        }
        let dictionary = match &pages.dictionary {
            None => None,
            Some(page) => {
                let unit = self.cache.get(self.key + 1, || self.decode_dictionary(page))?;
                let Unit::Dictionary(values) = &*unit else { return Err(damaged()) };
                Some(values.clone())
            }
        };
        let make = || {
            let rows = match self.leaf.most_repetition {
                0 => self.decode_flat(&pages.pages[page], dictionary.as_ref())?,
                _ => self.decode_lists(&pages.pages[page..], dictionary.as_ref())?,
            };
            let bytes = rows.bytes();
            Ok((Unit::Rows(rows), bytes))
        };
        let unit = self.cache.get(self.key + 2 + page as u64, make)?;
        let Unit::Rows(rows) = &*unit else { return Err(damaged()) };
        take(rows, row - before as usize)
    }

    fn find_pages(&self) -> Result<(Unit, usize)> {
        let damaged = || broken(ParquetFault::Pages { column: self.leaf.name.clone() });
        let mut found = Pages { dictionary: None, pages: vec![], ends: vec![] };
        let end = self.chunk.start + self.chunk.length;
        let (mut at, mut values, mut rows) = (self.chunk.start, 0_u64, 0_u64);
        while values < self.chunk.values {
            let (mut page, next) = self.header(at, end)?;
            at = next;
            match page.kind {
                0 | 3 => {}
                2 if found.dictionary.is_none() && found.pages.is_empty() => {
                    found.dictionary = Some(page);
                    continue;
                }
                // Pages of other kinds are to be ignored.
                _ => continue,
            }
            values = values.checked_add(page.values).ok_or_else(damaged)?;
            let few = page.values <= MOST_VALUES.max(page.packed.saturating_mul(8));
            let few = few && page.unpacked <= LARGEST_PAGE;
            if !few || values > self.chunk.values || found.pages.len() + 3 >= 1 << PAGE_BITS {
                return Err(damaged());
            }
            rows += match (self.leaf.most_repetition, page.second) {
                (0, _) => page.values,
                (_, Some(second)) if second.rows <= page.values => second.rows,
                (_, Some(_)) => return Err(damaged()),
                // Only the repetition levels tell.
                (_, None) => {
                    let data = self.data(&page)?;
                    let levels = self.levels(&page, &data)?;
                    page.continues = levels.repetitions.first().is_some_and(|&level| level > 0);
                    levels.repetitions.iter().filter(|&&level| level == 0).count() as u64
                }
            };
            append(&mut found.pages, &[page])?;
            append(&mut found.ends, &[rows])?;
        }
        let bytes = found.pages.capacity() * (size_of::<Page>() + 8);
        Ok((Unit::Pages(found), bytes))
    }

    /// The header of the page at an offset, and where the next one is.
    fn header(&self, at: u64, end: u64) -> Result<(Page, u64)> {
        let damaged = || broken(ParquetFault::Pages { column: self.leaf.name.clone() });
        let mut length = FIRST;
        loop {
            let room = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
            let mut bytes = zeroed::<u8>(length.min(room))?;
            self.file.read(at, &mut bytes)?;
            let mut thrift = Thrift::new(&bytes);
            match parse_header(&mut thrift) {
                Ok(mut page) => {
                    page.start = at + thrift.at as u64;
                    let next = page.start.checked_add(page.packed).filter(|&next| next <= end);
                    return Ok((page, next.ok_or_else(damaged)?));
                }
                Err(Unparsed::Ends) if length < room && length < LARGEST_HEADER => length *= 16,
                Err(Unparsed::Cause(cause)) => return Err(cause),
                Err(_) => return Err(damaged()),
            }
        }
    }

    /// The data of a page, decompressed. Levels of version 2 are never compressed.
    fn data(&self, page: &Page) -> Result<Vec<u8>> {
        let mut bytes = zeroed::<u8>(page.packed as usize)?;
        self.file.read(page.start, &mut bytes)?;
        let (plain, packing) = match page.second {
            None => (0, self.chunk.packing),
            Some(second) => {
                let packing = if second.packed { self.chunk.packing } else { Packing::None };
                (second.definitions.saturating_add(second.repetitions), packing)
            }
        };
        if packing == Packing::None {
            return Ok(bytes);
        }
        let damaged = || broken(ParquetFault::Pages { column: self.leaf.name.clone() });
        let plain = usize::try_from(plain).ok().filter(|&plain| plain <= bytes.len());
        let (levels, packed) = bytes.split_at(plain.ok_or_else(damaged)?);
        let claimed = page.unpacked.checked_sub(levels.len() as u64).ok_or_else(damaged)?;
        if packed.is_empty() && claimed == 0 {
            return Ok(levels.to_vec());
        }
        let values = unpack(packing, packed, claimed)?;
        if levels.is_empty() {
            return Ok(values);
        }
        let mut all = with_room(levels.len() + values.len())?;
        all.extend_from_slice(levels);
        all.extend_from_slice(&values);
        Ok(all)
    }

    fn levels(&self, page: &Page, data: &[u8]) -> Result<Levels> {
        let damaged = || broken(ParquetFault::Pages { column: self.leaf.name.clone() });
        let count = usize::try_from(page.values).map_err(|_| damaged())?;
        let mut at = 0;
        let mut read = |most: u32, length: Option<u64>| -> Result<Vec<u32>> {
            if most == 0 && length.is_none() {
                return Ok(vec![]);
            }
            let length = match length {
                Some(length) => length,
                None => {
                    let head = data.get(at..).and_then(|rest| rest.first_chunk::<4>());
                    at += 4;
                    u64::from(u32::from_le_bytes(*head.ok_or_else(damaged)?))
                }
            };
            let length = usize::try_from(length).map_err(|_| damaged())?;
            let end = at.checked_add(length).ok_or_else(damaged)?;
            let packed = data.get(at..end).ok_or_else(damaged)?;
            at = end;
            if most == 0 {
                return Ok(vec![]);
            }
            let levels = hybrid(packed, u32::BITS - most.leading_zeros(), count)?;
            match levels.iter().all(|&level| level <= most) {
                true => Ok(levels),
                false => Err(damaged()),
            }
        };
        let leaf = self.leaf;
        let repetitions = read(leaf.most_repetition, page.second.map(|s| s.repetitions))?;
        let definitions = read(leaf.most_definition, page.second.map(|s| s.definitions))?;
        Ok(Levels { repetitions, definitions, values: at })
    }

    fn decode_dictionary(&self, page: &Page) -> Result<(Unit, usize)> {
        let damaged = || broken(ParquetFault::Pages { column: self.leaf.name.clone() });
        let count = usize::try_from(page.values).map_err(|_| damaged())?;
        let data = self.data(page)?;
        // It is plain, whatever it is called.
        let values = decode(0, self.leaf.physical, data, 0, count, None)?;
        let bytes = values.bytes();
        Ok((Unit::Dictionary(Arc::new(values)), bytes))
    }

    fn decode_flat(&self, page: &Page, dictionary: Option<&Arc<Values>>) -> Result<Rows> {
        let data = self.data(page)?;
        let Levels { definitions, values: start, .. } = self.levels(page, &data)?;
        let most = self.leaf.most_definition;
        let present = definitions.iter().filter(|&&level| level == most).count();
        let physical = self.leaf.physical;
        if definitions.is_empty() || present == definitions.len() {
            let count = page.values as usize;
            let values = decode(page.encoding, physical, data, start, count, dictionary)?;
            return Ok(Rows { values, layout: Layout::Flat });
        }
        let values = decode(page.encoding, physical, data, start, present, dictionary)?;
        let mut places = definitions;
        let mut next = 0;
        for place in &mut places {
            *place = if *place == most { next } else { NULL };
            next += u32::from(*place != NULL);
        }
        Ok(Rows { values, layout: Layout::Optional(places) })
    }

    /// The rows that begin in the first page, of which the last may go on in others.
    fn decode_lists(&self, pages: &[Page], dictionary: Option<&Arc<Values>>) -> Result<Rows> {
        let leaf = self.leaf;
        let depth = leaf.elements_from.len();
        let mut starts: Vec<Vec<u32>> = vec![vec![]; depth];
        let (mut nulls, mut null_elements) = (vec![], vec![]);
        let width = match leaf.physical {
            Physical::Fixed(width) => width,
            _ => 1,
        };
        let mut bytes = Vec::new();
        for (number, page) in pages.iter().enumerate() {
            if number > 0 && !page.continues {
                break;
            }
            let data = self.data(page)?;
            let levels = self.levels(page, &data)?;
            let is_value = |level: u32| level == leaf.most_definition;
            let present = levels.definitions.iter().filter(|&&level| is_value(level)).count();
            let first = levels.repetitions.iter().position(|&level| level == 0);
            let first = first.unwrap_or(levels.repetitions.len());
            // In the first page from its first row on, in others up to there.
            let slots = if number == 0 { first..levels.repetitions.len() } else { 0..first };
            let skipped = levels.definitions.get(..slots.start).unwrap_or_default();
            let skipped = skipped.iter().filter(|&&level| is_value(level)).count();
            let decoded =
                decode(page.encoding, leaf.physical, data, levels.values, present, dictionary)?;
            let before = bytes.len() / width;
            let mut count = before;
            let pairs = levels.repetitions[slots.clone()].iter().zip(&levels.definitions[slots]);
            for (&repetition, &definition) in pairs {
                for level in repetition as usize..depth {
                    if level > 0 && definition < leaf.elements_from[level - 1] {
                        break;
                    }
                    let inner = starts.get(level + 1).map_or(count, Vec::len);
                    append(&mut starts[level], &[inner as u32])?;
                }
                let row = starts[0].len().saturating_sub(1) as u32;
                if is_value(definition) {
                    count += 1;
                } else if definition >= leaf.elements_from[depth - 1] {
                    append(&mut null_elements, &[row])?;
                } else if definition + 1 < leaf.elements_from[0] {
                    append(&mut nulls, &[row])?;
                }
            }
            match &decoded {
                Values::Fixed { bytes: decoded, .. } => {
                    let wanted = skipped * width..(skipped + count - before) * width;
                    let wanted = decoded.get(wanted);
                    append(&mut bytes, wanted.ok_or_else(|| broken(ParquetFault::Values))?)?;
                }
                coded => {
                    for index in skipped..skipped + count - before {
                        let value = coded.get(index).filter(|value| value.len() == width);
                        append(&mut bytes, value.ok_or_else(|| broken(ParquetFault::Values))?)?;
                    }
                }
            }
            if first < levels.repetitions.len() && number > 0 {
                break;
            }
        }
        let values = Values::Fixed { bytes, width };
        Ok(Rows { values, layout: Layout::Lists { starts, nulls, null_elements } })
    }
}

struct Levels {
    repetitions: Vec<u32>,
    definitions: Vec<u32>,
    /// Where the values begin.
    values: usize,
}

/// What a row has.
pub enum Cell<'a> {
    Null,
    /// One value: a number or bytes.
    Value(&'a [u8]),
    /// Numbers of equal width, and the lengths of the lists around them.
    List {
        bytes: &'a [u8],
        shape: Vec<usize>,
    },
    NullElement,
    Ragged,
}

impl Rows {
    fn bytes(&self) -> usize {
        let layout = match &self.layout {
            Layout::Flat => 0,
            Layout::Optional(places) => places.capacity() * 4,
            Layout::Lists { starts, .. } => starts.iter().map(|level| level.capacity() * 4).sum(),
        };
        self.values.bytes() + layout
    }

    pub fn cell(&self, row: usize) -> Result<Cell<'_>> {
        let damaged = || broken(ParquetFault::Values);
        match &self.layout {
            Layout::Flat => Ok(Cell::Value(self.values.get(row).ok_or_else(damaged)?)),
            Layout::Optional(places) => match *places.get(row).ok_or_else(damaged)? {
                NULL => Ok(Cell::Null),
                place => Ok(Cell::Value(self.values.get(place as usize).ok_or_else(damaged)?)),
            },
            Layout::Lists { starts, nulls, null_elements } => {
                if nulls.binary_search(&(row as u32)).is_ok() {
                    return Ok(Cell::Null);
                }
                if null_elements.binary_search(&(row as u32)).is_ok() {
                    return Ok(Cell::NullElement);
                }
                self.list(starts, row)
            }
        }
    }

    fn list(&self, starts: &[Vec<u32>], row: usize) -> Result<Cell<'_>> {
        let damaged = || broken(ParquetFault::Values);
        let Values::Fixed { bytes, width } = &self.values else { return Err(damaged()) };
        let mut range = row..row + 1;
        let mut shape = Vec::with_capacity(starts.len());
        for (level, begins) in starts.iter().enumerate() {
            let inner = starts.get(level + 1).map_or(self.values.len(), Vec::len);
            let at = |unit: usize| begins.get(unit).map_or(inner, |&start| start as usize);
            if range.end > begins.len() {
                return Err(damaged());
            }
            let length = at(range.start + 1).wrapping_sub(at(range.start));
            let (first, last) = (at(range.start), at(range.end));
            let length = if range.is_empty() { 0 } else { length };
            if range.clone().any(|unit| at(unit + 1).wrapping_sub(at(unit)) != length) {
                return Ok(Cell::Ragged);
            }
            shape.push(length);
            range = if range.is_empty() { 0..0 } else { first..last };
        }
        let values = bytes.get(range.start * width..range.end * width).ok_or_else(damaged)?;
        Ok(Cell::List { bytes: values, shape })
    }
}

fn parse_header(thrift: &mut Thrift<'_>) -> Parsed<Page> {
    let mut page = Page { kind: -1, ..Page::default() };
    thrift.fields(|thrift, number, _| {
        match number {
            1 => page.kind = thrift.integer()?,
            2 => page.unpacked = thrift.size()?,
            3 => page.packed = thrift.size()?,
            5 | 7 => thrift.fields(|thrift, number, _| {
                match number {
                    1 => page.values = thrift.size()?,
                    2 => page.encoding = thrift.integer()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            8 => {
                let mut second = Second { rows: 0, definitions: 0, repetitions: 0, packed: true };
                thrift.fields(|thrift, number, kind| {
                    match number {
                        1 => page.values = thrift.size()?,
                        3 => second.rows = thrift.size()?,
                        4 => page.encoding = thrift.integer()?,
                        5 => second.definitions = thrift.size()?,
                        6 => second.repetitions = thrift.size()?,
                        7 => second.packed = Thrift::truth(kind),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                page.second = Some(second);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(page)
}
