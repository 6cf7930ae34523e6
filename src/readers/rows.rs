//! Rows that another library reads by their numbers, and hands over as a stream of Arrow.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::arrow::Stream;
use super::ranges::Unreadable;
use super::source::{OpenError, Part, Result, Source};
use crate::kernels::Allocate;
use crate::value::{Cause, Sample, problems};

problems! {
    /// Why the library has no rows for us.
    pub enum RowsFault {
        Failed { text: String },
        Count { wanted: usize, found: usize },
    }
}

/// Reads rows.
pub type Take = dyn Fn(&[usize]) -> Result<Vec<u8>> + Send + Sync;

/// A table.
pub struct Rows {
    take: Box<Take>,
    /// Which columns are read; all that can be read, if there are no names.
    columns: Option<Vec<String>>,
    /// A stream without rows.
    schema: Stream,
    about: Table,
}

/// What is known of a table.
pub struct Table {
    pub name: String,
    pub fingerprint: u64,
    /// The ends of groups of rows that are stored together; the last one is the number of rows.
    pub ends: Vec<usize>,
}

impl Rows {
    pub fn open(
        take: Box<Take>,
        columns: Option<Vec<String>>,
        schema: Vec<u8>,
        about: Table,
    ) -> Result<Rows, Unreadable> {
        let schema = Stream::open(schema, columns.as_deref());
        let schema = schema.map_err(|cause| Unreadable::of(Path::new(&about.name), cause))?;
        Ok(Rows { take, columns, schema, about })
    }

    fn taken(&self, numbers: &[usize]) -> Result<Stream> {
        let stream = Stream::open((self.take)(numbers)?, self.columns.as_deref())?;
        let (wanted, found) = (numbers.len(), stream.len());
        match wanted == found {
            true => Ok(stream),
            false => Err(Cause::File { problem: RowsFault::Count { wanted, found }.into() }),
        }
    }
}

impl Source for Rows {
    fn len(&self) -> usize {
        self.about.ends.last().copied().unwrap_or(0)
    }

    fn name(&self, number: usize) -> Arc<str> {
        format!("{} at row {number}", self.about.name).into()
    }

    fn fingerprint(&self) -> u64 {
        self.about.fingerprint
    }

    fn outputs(&self) -> Vec<Part> {
        self.schema.outputs()
    }

    fn output_names(&self) -> Vec<String> {
        self.schema.output_names()
    }

    fn groups(&self) -> Option<&[usize]> {
        Some(&self.about.ends)
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        self.taken(&[number])?.fetch(0, allocate)
    }

    fn batch(self: Arc<Self>, numbers: &[usize]) -> Result<Option<Arc<dyn Source>>, OpenError> {
        let (numbers, taken) = (numbers.into(), OnceLock::new());
        Ok(Some(Arc::new(Together { rows: self, numbers, taken })))
    }
}

/// The rows of a batch, which are read together.
struct Together {
    rows: Arc<Rows>,
    numbers: Box<[usize]>,
    /// Nothing if they can't be read together: then each is tried on its own.
    taken: OnceLock<Option<Stream>>,
}

impl Source for Together {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn name(&self, position: usize) -> Arc<str> {
        self.rows.name(self.numbers[position])
    }

    fn fingerprint(&self) -> u64 {
        self.rows.fingerprint()
    }

    fn outputs(&self) -> Vec<Part> {
        self.rows.outputs()
    }

    fn fetch(
        &self,
        position: usize,
        part: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        match self.taken.get_or_init(|| self.rows.taken(&self.numbers).ok()) {
            Some(stream) => stream.fetch(position, allocate),
            None => self.rows.fetch(self.numbers[position], part, allocate),
        }
    }
}
