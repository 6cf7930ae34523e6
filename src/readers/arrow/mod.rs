//! Arrow's IPC files and streams, such as those of Hugging Face: rows of columns.
//!
//! A stream is a row of messages: a schema, then record batches, each with metadata and a body of
//! buffers. A file is a stream between two magic numbers, with a footer that isn't needed here. If
//! the buffers are not compressed, only the bytes of a sample are read.

mod flatbuffers;
mod schema;

use std::path::PathBuf;
use std::sync::Arc;

use smallvec::SmallVec;

use super::cache::Cache;
use super::columns::ColumnFault;
use super::groups::{Groups, InFile, Joining, Spot, Tables, differing};
use super::options::Options;
use super::ranges::{Opened, Unreadable, broken, look_through};
use super::source::{OpenError, Part, Result, Source, fetched};
use super::unpack::{Packing, unpack};
use crate::kernels::Allocate;
use crate::value::{Desc, Sample, append, problems, zeroed};
use flatbuffers::Table;
use schema::{Column, End, Place, Step, columns};

problems! {
    /// What is wrong with an Arrow file.
    pub enum ArrowFault {
        NotArrow,
        Message { at: u64 },
        CutOff { at: u64, size: u64 },
        NoSchema,
        BigEndian,
        Schema,
        Batch { at: u64 },
        Packing,
        Buffer { column: String },
        Offsets { column: String },
        TooManyRows,
    }
}

/// Largest metadata of a message.
const LARGEST_METADATA: u64 = 256 << 20;

/// Buffers up to this size are read as a whole and cached; of larger ones, parts are read.
const SMALL: u64 = 1 << 20;

/// Where a buffer is in its file.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    start: u64,
    length: u64,
}

/// The buffers that the wanted columns have in a record batch.
#[derive(Clone, Debug)]
struct RecordBatch {
    rows: usize,
    packing: Packing,
    /// Three for each step and end of each column: those that there are.
    extents: Vec<[Extent; 3]>,
}

#[derive(Default)]
struct Scanned {
    columns: Option<Vec<Column>>,
    batches: Vec<RecordBatch>,
}

/// The rows of files.
pub struct Arrow {
    tables: Tables<Vec<Column>, RecordBatch>,
    /// Buffers by number.
    cache: Cache<Vec<u8>>,
}

impl Arrow {
    /// Without names, all columns that can be read. With `tolerant`, a single sample stands for the
    /// unreadable part of a file.
    pub fn open(
        files: Vec<PathBuf>,
        names: Option<&[String]>,
        tolerant: bool,
    ) -> Result<Arrow, Unreadable> {
        let found = look_through(&files, tolerant, |_, path, found: &mut Scanned| {
            let scanned = Opened::open(path).and_then(|file| scan(&file, names, found));
            Ok(scanned.map_err(|cause| Unreadable::of(path, cause))?)
        })?;
        let found = found.into_iter().map(|(Scanned { columns, batches }, damage)| InFile {
            columns,
            parts: batches,
            damage,
        });
        let tables = Tables::join(
            files,
            found,
            tolerant,
            &Joining {
                differing: |wanted: &Vec<Column>, columns| {
                    differing(wanted, columns, Column::eq).map(|column| column.name.clone())
                },
                rows: |batch: &RecordBatch| batch.rows,
                too_many: || ArrowFault::TooManyRows.into(),
            },
        )?;
        Ok(Arrow { tables, cache: Cache::default() })
    }
}

impl Arrow {
    /// The columns of a row.
    fn row(
        &self,
        Spot { group, row }: Spot,
        file: &Opened,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let batch = self.tables.parts[group].as_ref();
        let batch = batch.ok_or_else(|| broken(ArrowFault::NoSchema))?;
        let mut first = 0;
        let mut samples = SmallVec::with_capacity(self.tables.columns.len());
        for (output, column) in self.tables.columns.iter().enumerate() {
            let key = ((group * batch.extents.len() + first) * 3) as u64;
            let row_of = Row { arrow: self, file, batch, column, first, key };
            samples.push(row_of.fetch(row, output, allocate)?);
            first += column.steps.len() + 1;
        }
        Ok(samples)
    }
}

/// Rows in memory, as a stream.
pub struct Stream {
    arrow: Arrow,
    file: Opened,
}

impl Stream {
    /// Without names, all columns that can be read.
    pub fn open(bytes: Vec<u8>, names: Option<&[String]>) -> Result<Stream> {
        let file = Opened::of_bytes(bytes);
        let mut found = Scanned::default();
        scan(&file, names, &mut found)?;
        let mut groups = Groups::new(vec![]);
        for batch in &found.batches {
            if !groups.push(0, batch.rows) {
                return Err(broken(ArrowFault::TooManyRows));
            }
        }
        let (columns, parts) = (found.columns.unwrap_or_default(), found.batches);
        let tables = Tables { groups, columns, parts: parts.into_iter().map(Some).collect() };
        Ok(Stream { arrow: Arrow { tables, cache: Cache::default() }, file })
    }

    pub fn len(&self) -> usize {
        self.arrow.tables.groups.len()
    }

    pub fn outputs(&self) -> Vec<Part> {
        self.arrow.outputs()
    }

    pub fn output_names(&self) -> Vec<String> {
        self.arrow.output_names()
    }

    pub fn fetch(&self, row: usize, allocate: &Allocate<'_>) -> Result<SmallVec<[Sample; 1]>> {
        self.arrow.row(self.arrow.tables.groups.spot(row)?, &self.file, allocate)
    }
}

/// Opens `files`, of which `columns` are read.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let files: Vec<PathBuf> = options.take("files")?;
    let columns: Option<Vec<String>> = options.take("columns")?;
    Ok(Arc::new(Arrow::open(files, columns.as_deref(), options.take("tolerant")?)?))
}

/// Finds the record batches of a file, up to the first that can't be read.
fn scan(file: &Opened, names: Option<&[String]>, found: &mut Scanned) -> Result<()> {
    let mut head = [0; 8];
    let got = file.read_up_to(0, &mut head)?;
    let is_file = head.starts_with(b"ARROW1");
    let mut at = if is_file { 8 } else { 0 };
    // The older form of a stream has no marker in front of the length.
    if !is_file && (got < 8 || !head.starts_with(&[0xFF; 4])) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        if got < 8 || length == 0 || u64::from(length) > file.size || length % 8 != 0 {
            return Err(broken(ArrowFault::NotArrow));
        }
    }
    while at < file.size {
        let cut = || broken(ArrowFault::CutOff { at, size: file.size });
        let damaged = || broken(ArrowFault::Message { at });
        let mut head = [0; 8];
        let got = file.read_up_to(at, &mut head)?;
        let marked = head.starts_with(&[0xFF; 4]);
        let wanted = if marked { 8 } else { 4 };
        if got < wanted {
            return Err(cut());
        }
        let [a, b, c, d] = if marked {
            [head[4], head[5], head[6], head[7]]
        } else {
            [head[0], head[1], head[2], head[3]]
        };
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        if length == 0 {
            break;
        }
        let start = at + wanted as u64;
        if length > file.size - start {
            return Err(cut());
        }
        if length > LARGEST_METADATA {
            return Err(damaged());
        }
        let mut metadata = zeroed::<u8>(length as usize)?;
        file.read(start, &mut metadata)?;
        let message = Table::root(&metadata).ok_or_else(damaged)?;
        let body = u64::try_from(message.long(3).unwrap_or(0)).map_err(|_| damaged())?;
        let body_start = start + length;
        if body > file.size - body_start {
            return Err(cut());
        }
        match (message.byte(1), message.table(2)) {
            (Some(1), Some(schema)) if found.columns.is_none() => {
                found.columns = Some(columns(schema, names)?);
            }
            (Some(3), Some(batch)) => {
                let columns = found.columns.as_ref();
                let columns = columns.ok_or_else(|| broken(ArrowFault::NoSchema))?;
                let body = Extent { start: body_start, length: body };
                let batch = record_batch(batch, body, columns, at)?;
                append(&mut found.batches, &[batch])?;
            }
            (Some(_), _) => {}
            (None, _) => return Err(damaged()),
        }
        at = body_start + body;
    }
    match found.columns {
        Some(_) => Ok(()),
        None => Err(broken(ArrowFault::NoSchema)),
    }
}

fn record_batch(
    table: Table<'_>,
    body: Extent,
    columns: &[Column],
    at: u64,
) -> Result<RecordBatch> {
    let damaged = || broken(ArrowFault::Batch { at });
    let rows = usize::try_from(table.long(0).unwrap_or(0)).map_err(|_| damaged())?;
    let packing = match table.table(3) {
        None => Packing::None,
        Some(compression) => match (compression.byte(0).unwrap_or(0), compression.byte(1)) {
            (0, None | Some(0)) => Packing::Lz4Frame,
            (1, None | Some(0)) => Packing::Zstd,
            _ => return Err(broken(ArrowFault::Packing)),
        },
    };
    let buffers = table.vector(2, 16);
    let variadic = table.vector(4, 8);
    let extent = |place: Place, number: usize| {
        let mut index = place.buffer + number;
        for field in 0..place.variadic {
            let more = variadic.and_then(|counts| counts.long(field)).ok_or_else(damaged)?;
            let more = usize::try_from(more).map_err(|_| damaged())?;
            index = index.checked_add(more).ok_or_else(damaged)?;
        }
        let (offset, length) = buffers.and_then(|all| all.pair(index)).ok_or_else(damaged)?;
        let offset = u64::try_from(offset).map_err(|_| damaged())?;
        let length = u64::try_from(length).map_err(|_| damaged())?;
        match offset.checked_add(length).is_some_and(|end| end <= body.length) {
            true => Ok(Extent { start: body.start + offset, length }),
            false => Err(damaged()),
        }
    };
    let nodes = table.vector(1, 16);
    let mut extents = Vec::new();
    for column in columns {
        for (step, place) in &column.steps {
            let mut all = [Extent::default(); 3];
            let count = if matches!(step, Step::List { .. }) { 2 } else { 1 };
            for (number, found) in all.iter_mut().enumerate().take(count) {
                *found = extent(*place, number)?;
            }
            without_nulls(&mut all, nodes.and_then(|nodes| nodes.pair(place.node)));
            extents.push(all);
        }
        let (end, place) = column.end;
        let mut all = [Extent::default(); 3];
        let count = if matches!(end, End::Bytes { .. }) { 3 } else { 2 };
        for (number, found) in all.iter_mut().enumerate().take(count) {
            *found = extent(place, number)?;
        }
        without_nulls(&mut all, nodes.and_then(|nodes| nodes.pair(place.node)));
        extents.push(all);
    }
    Ok(RecordBatch { rows, packing, extents })
}

/// If there are no nulls, it doesn't matter what the first buffer says.
fn without_nulls(extents: &mut [Extent; 3], node: Option<(i64, i64)>) {
    if matches!(node, Some((_, 0))) {
        extents[0] = Extent::default();
    }
}

/// A column of a record batch, for reading a row.
struct Row<'a> {
    arrow: &'a Arrow,
    file: &'a Opened,
    batch: &'a RecordBatch,
    column: &'a Column,
    /// The first of the column's extents, and the number of its first buffer in the cache.
    first: usize,
    key: u64,
}

impl Row<'_> {
    fn damaged(&self) -> crate::value::Cause {
        broken(ArrowFault::Buffer { column: self.column.name.clone() })
    }

    fn extent(&self, step: usize, buffer: usize) -> Result<Extent> {
        let all = self.batch.extents.get(self.first + step).ok_or_else(|| self.damaged())?;
        Ok(all[buffer])
    }

    /// Calls `take` with bytes of a buffer.
    fn with_bytes<T>(
        &self,
        step: usize,
        buffer: usize,
        (start, length): (u64, u64),
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let extent = self.extent(step, buffer)?;
        let end = start.checked_add(length).ok_or_else(|| self.damaged())?;
        if self.batch.packing == Packing::None && extent.length > SMALL {
            if end > extent.length {
                return Err(self.damaged());
            }
            let mut bytes = zeroed::<u8>(length as usize)?;
            self.file.read(extent.start + start, &mut bytes)?;
            return Ok(take(&bytes));
        }
        let key = self.key + (step * 3 + buffer) as u64;
        let whole = self.arrow.cache.get(key, || {
            let bytes = self.whole(extent)?;
            let size = bytes.len();
            Ok((bytes, size))
        })?;
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let bytes = range.and_then(|(start, end)| whole.get(start..end));
        Ok(take(bytes.ok_or_else(|| self.damaged())?))
    }

    /// Copies bytes of a buffer, of which others are not read unless it is compressed.
    fn copy(&self, step: usize, buffer: usize, start: u64, out: &mut [u8]) -> Result<()> {
        let extent = self.extent(step, buffer)?;
        let length = out.len() as u64;
        if self.batch.packing == Packing::None && extent.length > SMALL {
            let end = start.checked_add(length).filter(|&end| end <= extent.length);
            end.ok_or_else(|| self.damaged())?;
            return self.file.read(extent.start + start, out);
        }
        self.with_bytes(step, buffer, (start, length), |bytes| out.copy_from_slice(bytes))
    }

    fn whole(&self, extent: Extent) -> Result<Vec<u8>> {
        let length = usize::try_from(extent.length).map_err(|_| self.damaged())?;
        let mut bytes = zeroed::<u8>(length)?;
        self.file.read(extent.start, &mut bytes)?;
        if self.batch.packing == Packing::None || bytes.is_empty() {
            return Ok(bytes);
        }
        // The decompressed size is in front; -1 if the data is not compressed after all.
        let (size, packed) = bytes.split_first_chunk().ok_or_else(|| self.damaged())?;
        match i64::from_le_bytes(*size) {
            -1 => Ok(packed.to_vec()),
            size => {
                let size = u64::try_from(size).map_err(|_| self.damaged())?;
                unpack(self.batch.packing, packed, size)
            }
        }
    }

    /// Whether all of some elements are there.
    fn is_there(&self, step: usize, range: (u64, u64)) -> Result<bool> {
        if self.extent(step, 0)?.length == 0 || range.0 == range.1 {
            return Ok(true);
        }
        let (first, last) = (range.0 / 8, range.1.div_ceil(8));
        self.with_bytes(step, 0, (first, last - first), |bytes| {
            (range.0..range.1).all(|place| {
                let byte = bytes[(place / 8 - first) as usize];
                byte >> (place % 8) & 1 == 1
            })
        })
    }

    /// The offsets of some lists or texts, and the one behind them.
    fn offsets(&self, step: usize, large: bool, range: (u64, u64)) -> Result<Vec<u64>> {
        let size: u64 = if large { 8 } else { 4 };
        let count = range.1 - range.0 + 1;
        let bounds = range.0.checked_mul(size).zip(count.checked_mul(size));
        let bounds = bounds.ok_or_else(|| self.damaged())?;
        let offsets = self.with_bytes(step, 1, bounds, |bytes| {
            let mut found = Vec::with_capacity(count as usize);
            for value in bytes.chunks_exact(size as usize) {
                let mut word = [0; 8];
                word[..value.len()].copy_from_slice(value);
                found.push(u64::from_le_bytes(word));
            }
            found
        })?;
        let sorted = offsets.is_sorted() && offsets.last().is_none_or(|&last| last < 1 << 62);
        match sorted {
            true => Ok(offsets),
            false => Err(broken(ArrowFault::Offsets { column: self.column.name.clone() })),
        }
    }

    fn fetch(&self, row: usize, output: usize, allocate: &Allocate<'_>) -> Result<Sample> {
        let name = || self.column.name.clone();
        let null = |depth: usize| match depth {
            0 => broken(ColumnFault::Null { column: name() }),
            _ => broken(ColumnFault::NullElement { column: name() }),
        };
        let mut range = (row as u64, row as u64 + 1);
        let mut shape: SmallVec<[usize; 6]> = SmallVec::new();
        for (number, (step, _)) in self.column.steps.iter().enumerate() {
            if !self.is_there(number, range)? {
                return Err(null(shape.len()));
            }
            let units = range.1 - range.0;
            match *step {
                Step::Structure => {}
                Step::List { large } => {
                    let offsets = self.offsets(number, large, range)?;
                    let length = if units == 0 { 0 } else { offsets[1] - offsets[0] };
                    if offsets.windows(2).any(|pair| pair[1] - pair[0] != length) {
                        return Err(broken(ColumnFault::Ragged { column: name() }));
                    }
                    shape.push(length as usize);
                    range = (offsets[0], offsets[offsets.len() - 1]);
                }
                Step::Array { length } => {
                    shape.push(length);
                    let length = length as u64;
                    let ends = range.0.checked_mul(length).zip(range.1.checked_mul(length));
                    range = ends.ok_or_else(|| self.damaged())?;
                }
            }
        }
        let last = self.column.steps.len();
        let kind = self.column.kind;
        if let End::Fixed(_) | End::Bits = self.column.end.0
            && !self.holds(last, range)?
        {
            return Err(self.damaged());
        }
        if !self.is_there(last, range)? {
            return Err(null(shape.len()));
        }
        match self.column.end.0 {
            End::Bytes { large } => {
                let offsets = self.offsets(last, large, range)?;
                let (start, end) = (offsets[0], offsets[offsets.len() - 1]);
                if end > self.size_of(last, 2)? {
                    return Err(self.damaged());
                }
                let mut buffer =
                    allocate(output, Desc::new(kind.dtype(), &[(end - start) as usize]))?;
                self.copy(last, 2, start, buffer.bytes())?;
                buffer.into_sample()
            }
            End::Fixed(width) => {
                if kind.number.is_none() {
                    shape.push(width);
                }
                let start = range.0.checked_mul(width as u64).ok_or_else(|| self.damaged())?;
                let mut buffer = allocate(output, Desc::new(kind.dtype(), &shape))?;
                self.copy(last, 1, start, buffer.bytes())?;
                buffer.into_sample()
            }
            End::Bits => {
                let mut buffer = allocate(output, Desc::new(kind.dtype(), &shape))?;
                let (first, end) = (range.0 / 8, range.1.div_ceil(8));
                let out = buffer.bytes();
                self.with_bytes(last, 1, (first, end.saturating_sub(first)), |bytes| {
                    for (place, out) in (range.0..range.1).zip(out) {
                        *out = bytes[(place / 8 - first) as usize] >> (place % 8) & 1;
                    }
                })?;
                buffer.into_sample()
            }
        }
    }

    /// The decompressed size of a buffer.
    fn size_of(&self, step: usize, buffer: usize) -> Result<u64> {
        let extent = self.extent(step, buffer)?;
        if self.batch.packing == Packing::None || extent.length == 0 {
            return Ok(extent.length);
        }
        let key = self.key + (step * 3 + buffer) as u64;
        let whole = self.arrow.cache.get(key, || {
            let bytes = self.whole(extent)?;
            let size = bytes.len();
            Ok((bytes, size))
        })?;
        Ok(whole.len() as u64)
    }

    /// Whether the values are long enough for a range, before memory is allocated for it.
    fn holds(&self, step: usize, range: (u64, u64)) -> Result<bool> {
        let size = self.size_of(step, 1)?;
        Ok(match self.column.end.0 {
            End::Fixed(width) => range.1.checked_mul(width as u64).is_some_and(|end| end <= size),
            _ => range.1.div_ceil(8) <= size,
        })
    }
}

impl Source for Arrow {
    fn len(&self) -> usize {
        self.tables.groups.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.tables.groups.name(number)
    }

    fn fingerprint(&self) -> u64 {
        let mut hash = self.tables.groups.hash();
        for extent in
            self.tables.parts.iter().flatten().flat_map(|batch| batch.extents.iter().flatten())
        {
            hash.word(extent.start);
            hash.word(extent.length);
        }
        hash.finish()
    }

    fn outputs(&self) -> Vec<Part> {
        fetched(self.tables.columns.iter().map(|column| column.kind.output()))
    }

    fn output_names(&self) -> Vec<String> {
        self.tables.columns.iter().map(|column| column.name.clone()).collect()
    }

    fn groups(&self) -> Option<&[usize]> {
        Some(self.tables.groups.ends())
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let spot = self.tables.groups.spot(number)?;
        let file = self.tables.groups.open(spot.group)?;
        self.row(spot, &file, allocate)
    }
}
