//! Files that are named by URLs.
//!
//! A path that begins with `scheme://` is an object of a [`Backend`]: the module `penstock_remote`
//! through its table of functions ([`native`]), or a Python package. Formats don't know about it:
//! they open files by path, and what the reader was told about storage is the [`Context`] of the
//! thread that opens or reads.

#[allow(dead_code, reason = "the other side is in the module")]
pub mod abi;
mod blocks;
mod disk;
mod flight;
mod index;
mod native;

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self::blocks::Blocks;
pub use self::disk::Disk;
use self::flight::Flight;
pub use self::index::{list, list_below, list_with_root};
pub use self::native::{Body, Native};
use super::options::Options;
use super::ranges::Unreadable;
use super::source::{OpenError, Part, Result, Skipped, Source};
use crate::kernels::Allocate;
use crate::value::{Cause, Origin, Problem, Sample, problems, zeroed};

problems! {
    /// Why an object can't be read.
    pub enum RemoteFault {
        NotFound { text: String },
        NoBucket { bucket: String, text: String },
        Denied { status: u32, text: String },
        Expired { text: String },
        NoCredentials { scheme: String, text: String },
        Unreachable { attempts: u32, seconds: f64, text: String },
        Unavailable { attempts: u32, seconds: f64, status: Option<u32>, text: String },
        Changed { text: String },
        Unsupported { text: String },
        Configuration { text: String },
        Other { attempts: u32, status: Option<u32>, text: String },
        NotText,
        Scheme { scheme: String, known: String },
        Module { scheme: String },
        Package { scheme: String, package: String },
        Outdated,
        Index { text: String },
        IndexLine { line: usize },
        IndexRoot { root: String, found: String },
    }
}

/// Where the host or bucket of a URL begins, if it is one.
fn authority(path: &[u8]) -> Option<usize> {
    let colon =
        path.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"+.-".contains(byte)))?;
    (colon > 1 && path[colon..].starts_with(b"://") && path[0].is_ascii_alphabetic())
        .then_some(colon + 3)
}

/// Whether a path is a URL.
pub fn is_url(path: &Path) -> bool {
    authority(path.as_os_str().as_bytes()).is_some()
}

/// A URL: the bucket or host it is in, such as `s3://bucket`, and the key.
fn split(path: &Path) -> Result<(&str, &str)> {
    let bytes = path.as_os_str().as_bytes();
    let not_text = || Cause::File { problem: RemoteFault::NotText.into() };
    let url = std::str::from_utf8(bytes).map_err(|_| not_text())?;
    let begin = authority(bytes).ok_or_else(not_text)?;
    match url[begin..].find('/') {
        Some(slash) => Ok((&url[..begin + slash], &url[begin + slash + 1..])),
        None => Ok((url, "")),
    }
}

/// What is known of an object.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub size: u64,
    pub etag: Option<String>,
}

/// An entry of a listing. A folder has no size.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: String,
    pub size: Option<u64>,
    pub etag: String,
}

/// The contents of an object, which may still be in the memory of a module.
pub enum Contents {
    Bytes(Vec<u8>),
    Body(Body),
}

impl Contents {
    pub fn size(&self) -> usize {
        match self {
            Contents::Bytes(bytes) => bytes.len(),
            Contents::Body(body) => body.size(),
        }
    }

    /// Copies all of it.
    pub fn take(self, out: &mut [u8]) {
        match self {
            Contents::Bytes(bytes) => out.copy_from_slice(&bytes),
            Contents::Body(body) => body.take(out),
        }
    }
}

/// A bucket, or something like it. All functions block, and may be called from any thread.
pub trait Backend: Send + Sync {
    /// Distinguishes files with the same URL, such as those of another server.
    fn identity(&self) -> u64 {
        0
    }

    fn head(&self, key: &str) -> Result<Facts>;

    fn get(&self, key: &str) -> Result<Contents>;

    /// Fills the buffer with a part of an object, of the version with this ETag if there is one.
    fn range(&self, key: &str, etag: Option<&str>, offset: u64, out: &mut [u8]) -> Result<()>;

    /// The objects below a prefix, which is empty or ends with a slash, and the folders.
    fn list(&self, prefix: &str) -> Result<Vec<Entry>>;
}

/// Finds the backend for a URL without its key, such as `s3://bucket`.
pub type Resolve = dyn Fn(&str) -> Result<Arc<dyn Backend>> + Send + Sync;

/// What a reader was told about storage, and what it has seen of it.
pub struct Context {
    resolve: Box<Resolve>,
    backends: Mutex<HashMap<String, Arc<dyn Backend>>>,
    /// What is known of large objects, by URL: they are asked for once, and must not change.
    facts: Mutex<HashMap<String, Arc<Flight<Facts>>>>,
    blocks: Arc<Blocks>,
    disk: Option<Arc<Disk>>,
    used: AtomicBool,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
}

/// For whoever is not told anything.
static DEFAULT: OnceLock<Arc<Context>> = OnceLock::new();

pub fn set_default(context: Arc<Context>) {
    let _ = DEFAULT.set(context);
}

/// The context of this thread, for one that is started from it.
pub fn current() -> Option<Arc<Context>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Calls a function in a context.
pub fn within<T>(context: Option<Arc<Context>>, run: impl FnOnce() -> T) -> T {
    /// Puts back the one before, whatever happens.
    struct Before(Option<Arc<Context>>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(context));
    run()
}

fn here() -> Result<Arc<Context>> {
    let found = current().or_else(|| DEFAULT.get().cloned());
    found.ok_or_else(|| Cause::Internal("there is nothing that reads URLs".into()))
}

/// Takes note of a text that names files: if there are URLs among them, the reader reads from them.
pub fn note(text: &[u8]) {
    if text.windows(3).any(|bytes| bytes == b"://")
        && let Some(context) = current()
    {
        context.used.store(true, Ordering::Relaxed);
    }
}

impl Context {
    /// `memory` bounds the bytes of blocks that are kept.
    pub fn new(resolve: Box<Resolve>, memory: usize, disk: Option<Arc<Disk>>) -> Arc<Context> {
        let (backends, facts) = (Mutex::default(), Mutex::default());
        let blocks = Arc::new(Blocks::new(memory));
        let used = AtomicBool::new(false);
        Arc::new(Context { resolve, backends, facts, blocks, disk, used })
    }

    /// Whether anything was named by a URL.
    pub fn used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// What can't work with URLs among the options is an error before anything is read.
    pub fn check(&self, options: &Options) -> Result<(), OpenError> {
        let Some((option, url)) = options.first_url() else { return Ok(()) };
        let path = Path::new(url);
        let found = split(path).and_then(|(base, _)| self.backend(base));
        let fail = |cause| Unreadable::of(path, cause).in_option(option);
        Ok(found.map(drop).map_err(fail)?)
    }

    fn backend(&self, base: &str) -> Result<Arc<dyn Backend>> {
        self.used.store(true, Ordering::Relaxed);
        let known = || self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = known().get(base) {
            return Ok(backend.clone());
        }
        // Two threads may do this; the lock must not be held while Python is asked.
        let found = (self.resolve)(base)?;
        Ok(known().entry(base.into()).or_insert(found).clone())
    }
}

/// A large object, of which parts are read.
pub struct Object {
    backend: Arc<dyn Backend>,
    blocks: Arc<Blocks>,
    disk: Option<Arc<Disk>>,
    url: String,
    key: usize,
    facts: Facts,
}

impl Object {
    pub fn open(path: &Path) -> Result<Object> {
        let context = here()?;
        let (base, key) = split(path)?;
        let backend = context.backend(base)?;
        let url = path.to_string_lossy().into_owned();
        let flight = {
            let mut known = context.facts.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(url.clone()).or_default().clone()
        };
        let facts = flight.get(|| backend.head(key))?;
        let key = url.len() - key.len();
        let (blocks, disk) = (context.blocks.clone(), context.disk.clone());
        Ok(Object { backend, blocks, disk, url, key, facts })
    }

    pub fn size(&self) -> u64 {
        self.facts.size
    }

    /// Reads into `out` up to the end of the object, and returns the number of bytes.
    pub fn read_up_to(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let left = self.facts.size.saturating_sub(offset);
        let length = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.blocks.read(self, offset, &mut out[..length])?;
        Ok(length)
    }

    fn key(&self) -> &str {
        &self.url[self.key..]
    }

    /// What distinguishes it from other objects, and from other versions of itself.
    fn version(&self) -> u64 {
        disk::version(self.backend.identity(), self.facts.etag.as_deref(), Some(self.facts.size))
    }

    fn fetch(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.backend.range(self.key(), self.facts.etag.as_deref(), offset, out)
    }
}

/// The contents of a whole object; in the cache they are found by what is known of its version.
pub fn read_whole(path: &Path, version: u64) -> Result<Contents> {
    let context = here()?;
    let (base, key) = split(path)?;
    let backend = context.backend(base)?;
    let Some(disk) = &context.disk else { return backend.get(key) };
    let version = backend.identity() ^ version;
    let entry = disk::Name::new(path.as_os_str().as_bytes(), version, None);
    if let Some(bytes) = disk.read(&entry) {
        return Ok(Contents::Bytes(bytes));
    }
    let contents = backend.get(key)?;
    let mut bytes = zeroed(contents.size())?;
    contents.take(&mut bytes);
    disk.write(&entry, &bytes);
    Ok(Contents::Bytes(bytes))
}

/// The bytes of a whole object.
pub fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    let contents = read_whole(path, 0)?;
    if let Contents::Bytes(bytes) = contents {
        return Ok(bytes);
    }
    let mut bytes = zeroed(contents.size())?;
    contents.take(&mut bytes);
    Ok(bytes)
}

/// The objects below a URL, and the folders.
fn list_folder(path: &Path) -> Result<Vec<Entry>> {
    let context = here()?;
    let (base, key) = split(path)?;
    let prefix = key.trim_matches('/');
    let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    let mut found = context.backend(base)?.list(&prefix)?;
    found.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    Ok(found)
}

/// Opens a source in a context.
pub fn open(
    context: Arc<Context>,
    open: impl FnOnce() -> Result<Arc<dyn Source>, OpenError>,
) -> Result<Arc<dyn Source>, OpenError> {
    let source = within(Some(context.clone()), open)?;
    Ok(match context.used() {
        true => Arc::new(InContext { source, context }),
        false => source,
    })
}

/// A source whose files are, at least in part, named by URLs.
struct InContext {
    source: Arc<dyn Source>,
    context: Arc<Context>,
}

impl InContext {
    fn of(&self, source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(InContext { source, context: self.context.clone() })
    }
}

impl Source for InContext {
    fn len(&self) -> usize {
        self.source.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.source.name(number)
    }

    fn origin(&self, number: usize, part: usize) -> Origin {
        self.source.origin(number, part)
    }

    fn fingerprint(&self) -> u64 {
        self.source.fingerprint()
    }

    fn outputs(&self) -> Vec<Part> {
        self.source.outputs()
    }

    fn output_names(&self) -> Vec<String> {
        self.source.output_names()
    }

    fn groups(&self) -> Option<&[usize]> {
        self.source.groups()
    }

    fn computes(&self) -> bool {
        self.source.computes()
    }

    fn fetch(
        &self,
        number: usize,
        part: usize,
        allocate: &Allocate<'_>,
    ) -> Result<smallvec::SmallVec<[Sample; 1]>> {
        within(Some(self.context.clone()), || self.source.fetch(number, part, allocate))
    }

    fn ready(&self, numbers: &[usize], part: usize) -> Result<Vec<Sample>> {
        self.source.ready(numbers, part)
    }

    fn skipped(&self) -> &[Skipped] {
        self.source.skipped()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn with_arguments(self: Arc<Self>, arguments: Options) -> Result<Arc<dyn Source>, OpenError> {
        Ok(self.of(self.source.clone().with_arguments(arguments)?))
    }

    fn batch(self: Arc<Self>, numbers: &[usize]) -> Result<Option<Arc<dyn Source>>, OpenError> {
        Ok(self.source.clone().batch(numbers)?.map(|batch| self.of(batch)))
    }
}

/// The fault of a failed request: of the file, or of everything around it.
fn fault(problem: RemoteFault) -> Cause {
    let is_of_file = matches!(
        problem,
        RemoteFault::NotFound { .. } | RemoteFault::Changed { .. } | RemoteFault::NotText
    );
    let problem = Problem::from(problem);
    if is_of_file { Cause::File { problem } } else { Cause::System { problem } }
}

impl From<RemoteFault> for Cause {
    fn from(problem: RemoteFault) -> Cause {
        fault(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_scheme_and_a_key() {
        for (url, base, key) in [
            ("s3://bucket/a/b.jpg", "s3://bucket", "a/b.jpg"),
            ("gs://bucket", "gs://bucket", ""),
            ("https://host:8080/a?x=1#y", "https://host:8080", "a?x=1#y"),
            ("az://box@account/a//b", "az://box@account", "a//b"),
        ] {
            assert_eq!(split(Path::new(url)).ok(), Some((base, key)));
        }
        for path in ["a/b.jpg", "/s3://x", "c:/x", "a b://c", "://x", "1s://x", "s3:/x", ""] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }
}
