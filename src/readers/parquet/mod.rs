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
use super::groups::{Groups, Spot};
use super::options::Options;
use super::ranges::{Damage, Opened, Unreadable, broken, look_through};
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

/// The rows of files.
pub struct Parquet {
    groups: Groups,
    leaves: Arc<[Leaf]>,
    /// For each of the groups the columns of its file; nothing for those that can't be read.
    chunks: Vec<Option<(Arc<[Leaf]>, RowGroup)>>,
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
        let mut groups = Groups::new(files.clone());
        let mut chunks = Vec::new();
        let mut first: Option<(usize, Arc<[Leaf]>)> = None;
        let mut refused = None;
        for (file, (found, damage)) in found.into_iter().enumerate() {
            let path = &files[file];
            let opened = match (damage, found) {
                (Some(Damage { error, .. }), _) => Err(error),
                (None, found) => Ok(found.unwrap_or_default()),
            };
            let opened = opened.and_then(|Footer { leaves, groups }| {
                let leaves: Arc<[Leaf]> = leaves.into();
                let (number, wanted) = first.get_or_insert_with(|| (file, leaves.clone()));
                match differing(wanted, &leaves) {
                    None => Ok((leaves, groups)),
                    Some(column) => {
                        let file = files[*number].display().to_string();
                        Err(Unreadable::new(path, ColumnFault::Differs { column, file }))
                    }
                }
            });
            match opened {
                Ok((leaves, row_groups)) => {
                    for group in row_groups {
                        if !groups.push(file as u32, group.rows) {
                            return Err(Unreadable::new(path, ParquetFault::TooManyRows));
                        }
                        chunks.push(Some((leaves.clone(), group)));
                    }
                }
                Err(error) if tolerant => {
                    groups.push_damage(file as u32, error.clone());
                    chunks.push(None);
                    refused.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        let leaves = match (first, refused) {
            (Some((_, leaves)), _) => leaves,
            // Of which types samples would be, no file tells.
            (None, Some(error)) => return Err(error),
            (None, None) => Arc::default(),
        };
        Ok(Parquet { groups, leaves, chunks, cache: Cache::default() })
    }

    fn fetch_column(
        &self,
        spot: Spot,
        place: usize,
        file: &Opened,
        allocate: &Allocate<'_>,
    ) -> Result<Sample> {
        let known = self.chunks[spot.group].as_ref();
        let known =
            known.and_then(|(leaves, group)| leaves.get(place).zip(group.chunks.get(place)));
        let (leaf, chunk) = known.ok_or_else(|| broken(ParquetFault::Columns))?;
        let key = ((spot.group * self.leaves.len() + place) as u64) << PAGE_BITS;
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

/// The column that another file has differently. (Whether values can be null may differ.)
fn differing(leaves: &[Leaf], others: &[Leaf]) -> Option<String> {
    let unlike =
        |(leaf, other): &(&Leaf, &Leaf)| leaf.name != other.name || leaf.kind != other.kind;
    let found = leaves.iter().zip(others).find(unlike).map(|(leaf, _)| leaf);
    let (fewer, more) = match leaves.len() < others.len() {
        true => (leaves, others),
        false => (others, leaves),
    };
    found.or_else(|| more.get(fewer.len())).map(|leaf| leaf.name.clone())
}

/// Opens `files`, of which `columns` are read.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let files: Vec<PathBuf> = options.take("files")?;
    let columns: Option<Vec<String>> = options.take("columns")?;
    Ok(Arc::new(Parquet::open(files, columns.as_deref(), options.take("tolerant")?)?))
}

impl Source for Parquet {
    fn len(&self) -> usize {
        self.groups.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.groups.name(number)
    }

    fn fingerprint(&self) -> u64 {
        let mut hash = self.groups.hash();
        for chunk in self.chunks.iter().flatten().flat_map(|(_, group)| &group.chunks) {
            hash.word(chunk.start);
            hash.word(chunk.length);
        }
        hash.finish()
    }

    fn outputs(&self) -> Vec<Part> {
        fetched(self.leaves.iter().map(|leaf| leaf.kind.output()))
    }

    fn output_names(&self) -> Vec<String> {
        self.leaves.iter().map(|leaf| leaf.name.clone()).collect()
    }

    fn groups(&self) -> Option<&[usize]> {
        Some(self.groups.ends())
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let spot = self.groups.spot(number)?;
        let file = self.groups.open(spot.group)?;
        (0..self.leaves.len())
            .map(|place| self.fetch_column(spot, place, &file, allocate))
            .collect()
    }
}
