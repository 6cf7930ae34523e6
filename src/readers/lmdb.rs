//! LMDB databases, read without their library: only the tree of keys is walked, once, and records
//! are then read from their place in the file. Nothing is mapped, so that a file that is broken or
//! shrinks is an error of ours rather than a signal.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::read::fault;
use crate::value::Cause;

/// The records of databases, one after the other, in the order of their keys.
#[derive(Default)]
pub struct Lmdb {
    databases: Vec<Database>,
    /// Of each record: where its value is, and how long.
    places: Vec<u64>,
    sizes: Vec<u32>,
    keys: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

struct Database {
    name: String,
    file: Option<File>,
    bytes: u64,
    /// Why there is less in it than there should be. The last record stands for what is missing.
    damage: Option<String>,
    /// The number of the first record after it.
    end: usize,
}

/// The file of a database, which may be given as the folder that it is in.
pub fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("data.mdb") } else { path.to_path_buf() }
}

/// A database that can't be opened.
#[derive(Debug)]
pub enum OpenError {
    Io(Error),
    Broken(String),
}

impl OpenError {
    fn reason(self) -> String {
        match self {
            OpenError::Broken(problem) => problem,
            OpenError::Io(error) => match fault(&error) {
                Cause::File { problem } => problem,
                _ => error.to_string(),
            },
        }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> OpenError {
        OpenError::Io(error)
    }
}

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
/// Of every page.
const HEADER: usize = 16;
const META_END: usize = HEADER + 136;
const NONE: u64 = u64::MAX;
/// Deeper than a tree of 2^48 pages, each with two entries.
const DEEPEST: usize = 48;

const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const META: u16 = 0x08;

const BIG: u16 = 0x01;
const SUBTREE: u16 = 0x02;
const SEVERAL: u16 = 0x04;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// What one of the two first pages says of the database. The one of the later transaction holds.
struct Root {
    page: u64,
    entries: u64,
    flags: u16,
    transaction: u64,
}

impl Root {
    /// `None` when it is no such page.
    fn parse(page: &[u8]) -> Option<Root> {
        let is_meta = u16_at(page, 10)? & META != 0;
        let known = u32_at(page, HEADER)? == MAGIC && u32_at(page, HEADER + 4)? == VERSION;
        (is_meta && known).then_some(())?;
        Some(Root {
            flags: u16_at(page, HEADER + 76)?,
            entries: u64_at(page, HEADER + 104)?,
            page: u64_at(page, HEADER + 112)?,
            transaction: u64_at(page, HEADER + 128)?,
        })
    }
}

impl Lmdb {
    /// Adds the records of a database: a folder with `data.mdb`, or that file. With `tolerant`,
    /// what can't be found is one record, which can't be read either.
    pub fn add(&mut self, path: &Path, tolerant: bool) -> Result<(), OpenError> {
        let start = self.places.len();
        let name = path.to_string_lossy().into_owned();
        let mut database = Database { name, file: None, bytes: 0, damage: None, end: 0 };
        if let Err(error) = self.walk(path, &mut database) {
            if !tolerant {
                self.places.truncate(start);
                self.sizes.truncate(start);
                self.ends.truncate(start);
                self.keys.truncate(self.ends.last().copied().unwrap_or(0));
                return Err(error);
            }
            let file = file_of(path);
            database.damage = Some(match error {
                OpenError::Io(_) if file != path => {
                    format!("{}: {}", file.display(), error.reason())
                }
                _ => error.reason(),
            });
            // No record has an empty key.
            self.places.push(0);
            self.sizes.push(0);
            self.ends.push(self.keys.len());
        }
        database.end = self.places.len();
        self.databases.push(database);
        Ok(())
    }

    fn walk(&mut self, path: &Path, database: &mut Database) -> Result<(), OpenError> {
        let file = database.file.insert(File::open(file_of(path))?);
        database.bytes = file.metadata()?.len();
        let (bytes, page, pages) = (database.bytes, Vec::new(), HashSet::new());
        Walk { file, bytes, size: 0, page, pages }.all(self)
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn key(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.keys[start..self.ends[number]]
    }

    /// Which database and record it is, for people.
    pub fn name(&self, number: usize) -> Arc<str> {
        let key = String::from_utf8_lossy(self.key(number));
        match self.database(number) {
            Some(database) if self.damage(number).is_some() => database.name.as_str().into(),
            Some(database) => format!("{} at key {key}", database.name).into(),
            None => key.into(),
        }
    }

    /// Why a record stands for those that can't be found, if it does.
    pub fn damage(&self, number: usize) -> Option<&str> {
        let database = self.database(number).filter(|database| number + 1 == database.end);
        database.and_then(|database| database.damage.as_deref())
    }

    /// How many bytes a record has.
    pub fn size(&self, number: usize) -> usize {
        self.sizes[number] as usize
    }

    /// Whether the file is long enough for the record; else there is no use in making room for it.
    pub fn is_there(&self, number: usize) -> bool {
        let end = self.places[number].checked_add(u64::from(self.sizes[number]));
        let bytes = self.database(number).map_or(0, |database| database.bytes);
        end.is_some_and(|end| end <= bytes)
    }

    /// Reads a record, into room of its size.
    pub fn read(&self, number: usize, room: &mut [u8]) -> IoResult<()> {
        let Some(file) = self.database(number).and_then(|database| database.file.as_ref()) else {
            return Err(ErrorKind::NotFound.into());
        };
        file.read_exact_at(room, self.places[number])
    }

    /// Tells sets of records apart: by keys, sizes and their order, not by where they lie.
    pub fn parts(&self) -> impl Iterator<Item = (&[u8], u32)> {
        (0..self.len()).map(|number| (self.key(number), self.sizes[number]))
    }

    fn database(&self, number: usize) -> Option<&Database> {
        let index = self.databases.partition_point(|database| database.end <= number);
        self.databases.get(index)
    }
}

/// A walk through the pages of a tree.
struct Walk<'a> {
    file: &'a File,
    bytes: u64,
    size: usize,
    page: Vec<u8>,
    /// The pages that were read, none of them twice.
    pages: HashSet<u64>,
}

fn broken<T>(what: impl Into<String>) -> Result<T, OpenError> {
    Err(OpenError::Broken(what.into()))
}

impl Walk<'_> {
    fn all(mut self, found: &mut Lmdb) -> Result<(), OpenError> {
        let root = self.root()?;
        if root.flags & SEVERAL != 0 {
            return broken("it holds several values for a key, which no such data set does");
        }
        let start = found.places.len();
        if root.page != NONE {
            self.tree(root.page, found)?;
        }
        let count = (found.places.len() - start) as u64;
        match count == root.entries {
            true => Ok(()),
            false => broken(format!("it claims {} records, but has {count}", root.entries)),
        }
    }

    fn root(&mut self) -> Result<Root, OpenError> {
        let mut first = [0; META_END];
        if self.file.read_exact_at(&mut first, 0).is_err() {
            return broken("it is no LMDB database: it is too short");
        }
        if u32_at(&first, HEADER) != Some(MAGIC) {
            return broken("it is no LMDB database, by how it begins");
        }
        let version = u32_at(&first, HEADER + 4).unwrap_or(0);
        if version != VERSION {
            return broken(format!("it is of version {version} of LMDB's format; 1 is known"));
        }
        self.size = u32_at(&first, HEADER + 24).unwrap_or(0) as usize;
        if !self.size.is_power_of_two() || !(256..=65536).contains(&self.size) {
            return broken(format!("it claims pages of {} bytes", self.size));
        }
        let mut second = [0; META_END];
        let read = self.file.read_exact_at(&mut second, self.size as u64);
        let second = read.ok().and_then(|()| Root::parse(&second));
        let roots = [Root::parse(&first), second];
        match roots.into_iter().flatten().max_by_key(|root| root.transaction) {
            Some(root) => Ok(root),
            None => broken("neither of its two first pages is whole"),
        }
    }

    fn load(&mut self, page: u64) -> Result<(), OpenError> {
        if !self.pages.insert(page) {
            return broken(format!("page {page} of its tree is in there twice"));
        }
        let at = page.checked_mul(self.size as u64).filter(|&at| at < self.bytes);
        self.page.resize(self.size, 0);
        let read = at.map(|at| self.file.read_exact_at(&mut self.page, at));
        match read {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) if error.kind() != ErrorKind::UnexpectedEof => Err(error.into()),
            _ => broken(format!(
                "it is cut off: page {page} of its tree is missing, it has {} bytes",
                self.bytes
            )),
        }
    }

    fn tree(&mut self, root: u64, found: &mut Lmdb) -> Result<(), OpenError> {
        // Pages that are still to be read, the next one last, with their depth.
        let mut open = vec![(root, 0)];
        while let Some((number, depth)) = open.pop() {
            self.load(number)?;
            let flags = u16_at(&self.page, 10).unwrap_or(0);
            let read = match flags & (BRANCH | LEAF) {
                BRANCH if depth < DEEPEST => {
                    let start = open.len();
                    let read = self.branch(depth, &mut open);
                    open[start..].reverse();
                    read
                }
                LEAF => self.leaf(number, found)?,
                _ => None,
            };
            if read.is_none() {
                return broken(format!("page {number} of its tree is damaged"));
            }
        }
        Ok(())
    }

    /// Where the entries of the page begin. `None` when the page can't be.
    fn nodes(&self) -> Option<impl Iterator<Item = Option<usize>>> {
        let count = usize::from(u16_at(&self.page, 12)?).checked_sub(HEADER)? / 2;
        let page = &self.page;
        Some((0..count).map(move |i| u16_at(page, HEADER + 2 * i).map(usize::from)))
    }

    fn branch(&self, depth: usize, open: &mut Vec<(u64, usize)>) -> Option<()> {
        for node in self.nodes()? {
            let node = node?;
            let [low, middle, high] = [
                u16_at(&self.page, node)?,
                u16_at(&self.page, node + 2)?,
                u16_at(&self.page, node + 4)?,
            ];
            let child = u64::from(low) | u64::from(middle) << 16 | u64::from(high) << 32;
            open.push((child, depth + 1));
        }
        Some(())
    }

    fn leaf(&self, number: u64, found: &mut Lmdb) -> Result<Option<()>, OpenError> {
        let Some(nodes) = self.nodes() else { return Ok(None) };
        for node in nodes {
            let Some((key, flags, value, size)) = node.and_then(|node| self.entry(node)) else {
                return Ok(None);
            };
            if flags & (SUBTREE | SEVERAL) != 0 {
                return broken(format!(
                    "its record {:?} is a database of its own, which no such data set has",
                    String::from_utf8_lossy(key)
                ));
            }
            let place = match flags & BIG != 0 {
                true => u64_at(&self.page, value).and_then(|page| {
                    page.checked_mul(self.size as u64)?.checked_add(HEADER as u64)
                }),
                false if value + size as usize <= self.size => {
                    // No overflow: the page was read from there.
                    Some(number * self.size as u64 + value as u64)
                }
                false => None,
            };
            let Some(place) = place else { return Ok(None) };
            found.keys.extend_from_slice(key);
            found.ends.push(found.keys.len());
            found.places.push(place);
            found.sizes.push(size);
        }
        Ok(Some(()))
    }

    /// Key, flags, where the value is in the page, and its size.
    fn entry(&self, node: usize) -> Option<(&[u8], u16, usize, u32)> {
        let size =
            u32::from(u16_at(&self.page, node)?) | u32::from(u16_at(&self.page, node + 2)?) << 16;
        let flags = u16_at(&self.page, node + 4)?;
        let key = usize::from(u16_at(&self.page, node + 6)?);
        let value = node + 8 + key;
        Some((self.page.get(node + 8..value)?, flags, value, size))
    }
}
