//! LMDB databases, read without the LMDB library: the tree of keys is walked once, then records are
//! read from their positions in the file. Nothing is memory-mapped, so a file that is damaged or
//! shrinks causes an error and not a signal.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::Hash;
use super::options::Options;
use super::ranges::Unreadable;
use super::read::{Opened, ReadFault};
use super::remote::is_url;
use super::source;
use crate::value::{Cause, Problem, append, problems};

/// The records of several databases, in the order of their keys.
#[derive(Default)]
pub struct Lmdb {
    databases: Vec<Database>,
    /// Position and size of each record's value.
    places: Vec<u64>,
    sizes: Vec<u32>,
    keys: Vec<u8>,
    /// The end of each key.
    ends: Vec<usize>,
}

struct Database {
    name: String,
    file: Option<Opened>,
    /// Why records are missing. The last record stands for them.
    damage: Option<Problem>,
    /// The number of the first record after this database.
    end: usize,
}

/// The file of a database, which may be given as its folder.
pub fn file_of(path: &Path) -> PathBuf {
    let is_folder = match is_url(path) {
        true => path.extension().is_none_or(|extension| extension != "mdb"),
        false => path.is_dir(),
    };
    if is_folder { path.join("data.mdb") } else { path.to_path_buf() }
}

problems! {
    /// What is wrong with a database.
    pub enum LmdbFault {
        TooShort,
        Magic,
        Version { version: u32 },
        PageSize { bytes: usize },
        NoRoot,
        Duplicates,
        Nested { key: String },
        Count { claimed: u64, found: u64 },
        Repeated { page: u64 },
        Page { page: u64 },
        CutOff { page: u64, size: u64 },
    }
}

/// A database that can't be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The file can't be read.
    File(Problem),
    /// A problem of the system.
    System(Problem),
    /// The contents are damaged.
    Broken(Problem),
}

impl From<Cause> for OpenError {
    fn from(cause: Cause) -> OpenError {
        match cause {
            Cause::File { problem } => OpenError::File(problem),
            other => OpenError::System(ReadFault::of(other).0),
        }
    }
}

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
/// Size of a page header.
const HEADER: usize = 16;
const META_END: usize = HEADER + 136;
/// Size of an entry in a page, with its offset in the page's table.
const ENTRY: usize = 8 + 2;
const NONE: u64 = u64::MAX;
/// More than the depth of a tree of 2^48 pages with two entries each.
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

/// A meta page, one of the first two pages. That of the later transaction is valid.
struct Root {
    page: u64,
    entries: u64,
    flags: u16,
    transaction: u64,
}

impl Root {
    /// `None` if it isn't a meta page.
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
    /// Opens the databases in `files`.
    pub fn open(options: &mut Options) -> Result<Arc<Lmdb>, source::OpenError> {
        let paths: Vec<PathBuf> = options.take("files")?;
        let tolerant = options.take("tolerant")?;
        let mut records = Lmdb::default();
        for path in paths {
            records.add(&path, tolerant).map_err(|error| match error {
                OpenError::File(problem) => Unreadable::new(&file_of(&path), problem),
                OpenError::System(problem) => {
                    Unreadable { system: true, ..Unreadable::new(&file_of(&path), problem) }
                }
                OpenError::Broken(problem) => Unreadable::new(&path, problem),
            })?;
        }
        Ok(Arc::new(records))
    }

    /// Adds the records of a database, given as its folder or as the file `data.mdb`. With
    /// `tolerant`, a single record that can't be read stands for all that can't be found.
    pub fn add(&mut self, path: &Path, tolerant: bool) -> Result<(), OpenError> {
        let start = self.places.len();
        let name = path.to_string_lossy().into_owned();
        let mut database = Database { name, file: None, damage: None, end: 0 };
        if let Err(error) = self.walk(path, &mut database) {
            if !tolerant || matches!(error, OpenError::System(_)) {
                self.places.truncate(start);
                self.sizes.truncate(start);
                self.ends.truncate(start);
                self.keys.truncate(self.ends.last().copied().unwrap_or(0));
                return Err(error);
            }
            let file = file_of(path);
            database.damage = Some(match error {
                OpenError::File(problem) if file != path => ReadFault::named(&file, problem),
                OpenError::File(problem)
                | OpenError::System(problem)
                | OpenError::Broken(problem) => problem,
            });
            // The added record has an empty key, which no real one has.
            self.places.push(0);
            self.sizes.push(0);
            self.ends.push(self.keys.len());
        }
        database.end = self.places.len();
        self.databases.push(database);
        Ok(())
    }

    fn walk(&mut self, path: &Path, database: &mut Database) -> Result<(), OpenError> {
        let file = database.file.insert(Opened::open(&file_of(path))?);
        Walk { file, size: 0, page: Vec::new(), pages: HashSet::new() }.all(self)
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

    /// The database and the key of a record, for users.
    pub fn name(&self, number: usize) -> Arc<str> {
        let key = String::from_utf8_lossy(self.key(number));
        match self.database(number) {
            Some(database) if self.damage(number).is_some() => database.name.as_str().into(),
            Some(database) => format!("{} at key {key}", database.name).into(),
            None => key.into(),
        }
    }

    /// Why a record can't be read, if it stands for records that can't be found.
    pub fn damage(&self, number: usize) -> Option<&Problem> {
        let database = self.database(number).filter(|database| number + 1 == database.end);
        database.and_then(|database| database.damage.as_ref())
    }

    /// The size of a record in bytes.
    pub fn size(&self, number: usize) -> usize {
        self.sizes[number] as usize
    }

    /// Whether the file is long enough for the record; checked before allocating memory for it.
    pub fn is_there(&self, number: usize) -> bool {
        let end = self.places[number].checked_add(u64::from(self.sizes[number]));
        let file = self.database(number).and_then(|database| database.file.as_ref());
        end.zip(file).is_some_and(|(end, file)| end <= file.size)
    }

    /// Reads a record into a buffer of its size.
    pub fn read(&self, number: usize, room: &mut [u8]) -> Result<(), Cause> {
        match self.database(number).and_then(|database| database.file.as_ref()) {
            Some(file) => file.read(self.places[number], room),
            None => Err(Cause::Internal("a record of no database".into())),
        }
    }

    /// Depends on keys, sizes and their order, but not on positions in the file.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Hash(self.len() as u64);
        for (number, &size) in self.sizes.iter().enumerate() {
            hash.bytes(self.key(number));
            hash.word(u64::from(size));
        }
        hash.finish()
    }

    fn database(&self, number: usize) -> Option<&Database> {
        let index = self.databases.partition_point(|database| database.end <= number);
        self.databases.get(index)
    }
}

/// A traversal of a tree's pages.
struct Walk<'a> {
    file: &'a Opened,
    size: usize,
    page: Vec<u8>,
    /// The pages read so far; none may occur twice.
    pages: HashSet<u64>,
}

fn broken<T>(what: impl Into<Problem>) -> Result<T, OpenError> {
    Err(OpenError::Broken(what.into()))
}

impl Walk<'_> {
    fn all(mut self, found: &mut Lmdb) -> Result<(), OpenError> {
        let root = self.root()?;
        if root.flags & SEVERAL != 0 {
            return broken(LmdbFault::Duplicates);
        }
        let start = found.places.len();
        if root.page != NONE {
            self.tree(root.page, found)?;
        }
        let count = (found.places.len() - start) as u64;
        match count == root.entries {
            true => Ok(()),
            false => broken(LmdbFault::Count { claimed: root.entries, found: count }),
        }
    }

    fn root(&mut self) -> Result<Root, OpenError> {
        let mut first = [0; META_END];
        if self.file.read_up_to(0, &mut first)? < first.len() {
            return broken(LmdbFault::TooShort);
        }
        if u32_at(&first, HEADER) != Some(MAGIC) {
            return broken(LmdbFault::Magic);
        }
        let version = u32_at(&first, HEADER + 4).unwrap_or(0);
        if version != VERSION {
            return broken(LmdbFault::Version { version });
        }
        self.size = u32_at(&first, HEADER + 24).unwrap_or(0) as usize;
        if !self.size.is_power_of_two() || !(256..=65536).contains(&self.size) {
            return broken(LmdbFault::PageSize { bytes: self.size });
        }
        let mut second = [0; META_END];
        let read = self.file.read_up_to(self.size as u64, &mut second)?;
        let roots = [Root::parse(&first), Root::parse(&second[..read])];
        match roots.into_iter().flatten().max_by_key(|root| root.transaction) {
            Some(root) => Ok(root),
            None => broken(LmdbFault::NoRoot),
        }
    }

    fn load(&mut self, page: u64) -> Result<(), OpenError> {
        if !self.pages.insert(page) {
            return broken(LmdbFault::Repeated { page });
        }
        let at = page.checked_mul(self.size as u64).filter(|&at| at < self.file.size);
        self.page.resize(self.size, 0);
        let read = at.map_or(Ok(0), |at| self.file.read_up_to(at, &mut self.page))?;
        match read == self.size {
            true => Ok(()),
            false => broken(LmdbFault::CutOff { page, size: self.file.size }),
        }
    }

    fn tree(&mut self, root: u64, found: &mut Lmdb) -> Result<(), OpenError> {
        // A stack of pages still to be read, with their depth.
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
                return broken(LmdbFault::Page { page: number });
            }
        }
        Ok(())
    }

    /// Offsets of the page's entries. `None` if the page is invalid.
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
        let mut taken = HEADER;
        for node in nodes {
            let Some((key, flags, value, size)) = node.and_then(|node| self.entry(node)) else {
                return Ok(None);
            };
            // Entries don't overlap, so a page has at most as many as fit.
            taken += ENTRY + key.len();
            if taken > self.size {
                return Ok(None);
            }
            if flags & (SUBTREE | SEVERAL) != 0 {
                return broken(LmdbFault::Nested {
                    key: String::from_utf8_lossy(key).into_owned(),
                });
            }
            let place = match flags & BIG != 0 {
                true => u64_at(&self.page, value).and_then(|page| {
                    page.checked_mul(self.size as u64)?.checked_add(HEADER as u64)
                }),
                false if value + size as usize <= self.size => {
                    // Can't overflow, since the page was read from there.
                    Some(number * self.size as u64 + value as u64)
                }
                false => None,
            };
            let Some(place) = place else { return Ok(None) };
            append(&mut found.keys, key)?;
            append(&mut found.ends, &[found.keys.len()])?;
            append(&mut found.places, &[place])?;
            append(&mut found.sizes, &[size])?;
        }
        Ok(Some(()))
    }

    /// Key, flags, the value's offset in the page, and its size.
    fn entry(&self, node: usize) -> Option<(&[u8], u16, usize, u32)> {
        let size =
            u32::from(u16_at(&self.page, node)?) | u32::from(u16_at(&self.page, node + 2)?) << 16;
        let flags = u16_at(&self.page, node + 4)?;
        let key = usize::from(u16_at(&self.page, node + 6)?);
        let value = node + 8 + key;
        Some((self.page.get(node + 8..value)?, flags, value, size))
    }
}
