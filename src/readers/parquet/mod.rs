//! Parquet files: rows of columns.
//!
//! A file has row groups, each with a chunk per column, and a footer that says where they are. A
//! chunk is a row of pages, which are compressed and encoded one by one, so a page is what is
//! decoded at a time, and cached for the samples that are next to each other.

mod encodings;
mod pages;
mod schema;
mod thrift;

use std::path::PathBuf;
use std::sync::Arc;

use smallvec::SmallVec;

use super::cache::Cache;
use super::columns::ColumnFault;
use super::groups::{InFile, Joining, Spot, Tables, differing};
use super::options::Options;
use super::ranges::{Opened, Unreadable, broken, look_through};
use super::source::{OpenError, Part, Result, Source, fetched};
use crate::kernels::Allocate;
use crate::value::{Desc, Sample, problems};
use pages::{Cell, Column, PAGE_BITS, Unit};
use schema::{Footer, Leaf, RowGroup, read_footer};

problems! {
    /// What is wrong with a Parquet file.
    pub enum ParquetFault {
        TooShort { bytes: u64 },
        Magic,
        Encrypted,
        Footer { length: u64, size: u64 },
        Thrift,
        Schema,
        Columns,
        Elsewhere,
        Codec { column: String, name: &'static str },
        Chunk { column: String },
        Pages { column: String },
        Values,
        NoDictionary,
        Encoding { encoding: i64 },
        TooLarge { bytes: u64 },
        TooManyRows,
    }
}

/// The columns of a file.
type Leaves = Arc<[Leaf]>;

/// The rows of files.
pub struct Parquet {
    /// Each group has the columns of its file.
    tables: Tables<Leaves, (Leaves, RowGroup)>,
    cache: Cache<Unit>,
}

impl Parquet {
    /// Without names, all columns that can be read. With `tolerant`, a single sample stands for a
    /// file that can't be read.
    pub fn open(
        files: Vec<PathBuf>,
        names: Option<&[String]>,
        tolerant: bool,
    ) -> Result<Parquet, Unreadable> {
        let found = look_through(&files, tolerant, |_, path, found: &mut Option<Footer>| {
            let read = Opened::open(path).and_then(|file| read_footer(&file, names));
            *found = Some(read.map_err(|cause| Unreadable::of(path, cause))?);
            Ok(())
        })?;
        let found = found.into_iter().map(|(footer, damage)| {
            let Some(Footer { leaves, groups }) = footer else {
                return InFile { columns: None, parts: vec![], damage };
            };
            let leaves: Leaves = leaves.into();
            let parts = groups.into_iter().map(|group| (leaves.clone(), group)).collect();
            InFile { columns: Some(leaves), parts, damage }
        });
        let tables = Tables::join(
            files,
            found,
            tolerant,
            &Joining {
                // Whether values can be null may differ.
                differing: |wanted: &Leaves, leaves| {
                    let same = |a: &Leaf, b: &Leaf| a.name == b.name && a.kind == b.kind;
                    differing(wanted, leaves, same).map(|leaf| leaf.name.clone())
                },
                rows: |(_, group): &(Leaves, RowGroup)| group.rows,
                too_many: || ParquetFault::TooManyRows.into(),
            },
        )?;
        Ok(Parquet { tables, cache: Cache::default() })
    }

    fn fetch_column(
        &self,
        spot: Spot,
        place: usize,
        file: &Opened,
        allocate: &Allocate<'_>,
    ) -> Result<Sample> {
        let known = self.tables.parts[spot.group].as_ref();
        let known =
            known.and_then(|(leaves, group)| leaves.get(place).zip(group.chunks.get(place)));
        let (leaf, chunk) = known.ok_or_else(|| broken(ParquetFault::Columns))?;
        let key = ((spot.group * self.tables.columns.len() + place) as u64) << PAGE_BITS;
        let column = Column { leaf, chunk, file, cache: &self.cache, key };
        column.with_row(spot.row, |rows, row| {
            let name = || leaf.name.clone();
            let dtype = leaf.kind.dtype();
            let size = dtype.size();
            match (rows.cell(row)?, leaf.kind.number) {
                (Cell::Null, _) => Err(broken(ColumnFault::Null { column: name() })),
                (Cell::NullElement, _) => Err(broken(ColumnFault::NullElement { column: name() })),
                (Cell::Ragged, _) => Err(broken(ColumnFault::Ragged { column: name() })),
                (Cell::Value(bytes), None) => {
                    let mut buffer = allocate(place, Desc::new(dtype, &[bytes.len()]))?;
                    buffer.bytes().copy_from_slice(bytes);
                    buffer.into_sample()
                }
                // Small integers are stored as larger ones, the lowest byte first.
                (Cell::Value(bytes), Some(_)) => {
                    let mut buffer = allocate(place, Desc::new(dtype, &[]))?;
                    let value = bytes.get(..size).ok_or_else(|| broken(ParquetFault::Values))?;
                    buffer.bytes().copy_from_slice(value);
                    buffer.into_sample()
                }
                (Cell::List { bytes, shape }, _) => {
                    let mut buffer = allocate(place, Desc::new(dtype, &shape))?;
                    let out = buffer.bytes();
                    let width = bytes.len().checked_div(out.len() / size).unwrap_or(size);
                    if width < size || bytes.len() != out.len() / size * width {
                        return Err(broken(ParquetFault::Values));
                    }
                    if width == size {
                        out.copy_from_slice(bytes);
                    } else {
                        let values = bytes.chunks_exact(width);
                        for (to, value) in out.chunks_exact_mut(size).zip(values) {
                            to.copy_from_slice(&value[..size]);
                        }
                    }
                    buffer.into_sample()
                }
            }
        })
    }
}

/// Opens `files`, of which `columns` are read.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let files: Vec<PathBuf> = options.take("files")?;
    let columns: Option<Vec<String>> = options.take("columns")?;
    Ok(Arc::new(Parquet::open(files, columns.as_deref(), options.take("tolerant")?)?))
}

impl Source for Parquet {
    fn len(&self) -> usize {
        self.tables.groups.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.tables.groups.name(number)
    }

    fn fingerprint(&self) -> u64 {
        let mut hash = self.tables.groups.hash();
        for chunk in self.tables.parts.iter().flatten().flat_map(|(_, group)| &group.chunks) {
            hash.word(chunk.start);
            hash.word(chunk.length);
        }
        hash.finish()
    }

    fn outputs(&self) -> Vec<Part> {
        fetched(self.tables.columns.iter().map(|leaf| leaf.kind.output()))
    }

    fn output_names(&self) -> Vec<String> {
        self.tables.columns.iter().map(|leaf| leaf.name.clone()).collect()
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
        (0..self.tables.columns.len())
            .map(|place| self.fetch_column(spot, place, &file, allocate))
            .collect()
    }
}
