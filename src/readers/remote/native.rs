//! The backend of the module `penstock_remote`.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::abi::{self, Failure, FailureKind, Meta, Owned, Pair, Slice, Table};
use super::{Backend, Contents, Entry, Facts, RemoteFault};
use crate::readers::files::Hash;
use crate::readers::source::Result;

/// A store of the module.
pub struct Native {
    table: &'static Table,
    store: abi::Store,
    /// Such as `s3://bucket`.
    base: String,
    identity: u64,
}

// SAFETY: the module's functions may be called with a store from any thread.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { (self.table.close)(self.store) };
    }
}

type Options = Vec<(String, String)>;

/// Stores in use. A store has connections, so whoever asks for the same one shares it.
static STORES: Mutex<Vec<(String, Options, Weak<Native>)>> = Mutex::new(Vec::new());

/// Stores that nobody uses are kept for a while: a program may read one file after the other.
static RECENT: Mutex<Vec<Arc<Native>>> = Mutex::new(Vec::new());
const RECENTLY: usize = 16;

impl Native {
    /// The store for a URL such as `s3://bucket`.
    pub fn open(table: &'static Table, base: &str, options: Options) -> Result<Arc<Native>> {
        if table.version != abi::VERSION {
            return Err(RemoteFault::Outdated.into());
        }
        let lock = || STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stores = lock();
        stores.retain(|(.., store)| store.strong_count() > 0);
        let found = stores.iter().find(|(url, given, _)| url == base && *given == options);
        if let Some(found) = found.and_then(|(.., store)| store.upgrade()) {
            return Ok(found);
        }
        let slice = |text: &String| Slice::new(text.as_bytes());
        let pairs: Vec<Pair> = options
            .iter()
            .map(|(key, value)| Pair { key: slice(key), value: slice(value) })
            .collect();
        let mut store = abi::Store(std::ptr::null_mut());
        let opened = call(table, base, |failure| {
            // SAFETY: everything is valid during the call.
            unsafe {
                (table.open)(
                    Slice::new(base.as_bytes()),
                    pairs.as_ptr(),
                    pairs.len(),
                    &mut store,
                    failure,
                )
            }
        });
        opened?;
        let identity = identity(&options);
        let made = Arc::new(Native { table, store, base: base.into(), identity });
        stores.push((base.into(), options, Arc::downgrade(&made)));
        drop(stores);
        let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= RECENTLY {
            recent.remove(0);
        }
        recent.push(made.clone());
        Ok(made)
    }

    fn text(&self, bytes: Owned) -> String {
        text(self.table, bytes)
    }
}

/// Takes a text over from the module.
fn text(table: &Table, bytes: Owned) -> String {
    // SAFETY: the module has filled it in; it is freed after this.
    let text =
        String::from_utf8_lossy(unsafe { Slice { data: bytes.data, len: bytes.len }.bytes() })
            .into_owned();
    // SAFETY: once.
    unsafe { (table.free)(bytes) };
    text
}

/// Makes a call that may fail.
fn call(table: &Table, base: &str, run: impl FnOnce(*mut Failure) -> bool) -> Result<()> {
    let mut failure = Failure { kind: 0, attempts: 0, status: 0, seconds: 0.0, text: Owned::EMPTY };
    if run(&mut failure) {
        return Ok(());
    }
    let Failure { kind, attempts, status, seconds, text: said } = failure;
    let text = text(table, said);
    let (scheme, bucket) = base.split_once("://").unwrap_or((base, ""));
    let (scheme, bucket) = (scheme.to_owned(), bucket.to_owned());
    let is = |known: FailureKind| kind == known as u32;
    let answered = Some(status).filter(|&status| status != 0);
    Err(if is(FailureKind::NotFound) {
        RemoteFault::NotFound { text }
    } else if is(FailureKind::NoBucket) {
        RemoteFault::NoBucket { bucket, text }
    } else if is(FailureKind::Denied) {
        RemoteFault::Denied { status, text }
    } else if is(FailureKind::Expired) {
        RemoteFault::Expired { text }
    } else if is(FailureKind::NoCredentials) {
        RemoteFault::NoCredentials { scheme, text }
    } else if is(FailureKind::Unreachable) {
        RemoteFault::Unreachable { attempts, seconds, text }
    } else if is(FailureKind::Unavailable) {
        RemoteFault::Unavailable { attempts, seconds, status: answered, text }
    } else if is(FailureKind::Changed) {
        RemoteFault::Changed { text }
    } else if is(FailureKind::Unsupported) {
        RemoteFault::Unsupported { text }
    } else if is(FailureKind::Configuration) {
        RemoteFault::Configuration { text }
    } else {
        RemoteFault::Other { attempts, status: answered, text }
    }
    .into())
}

/// A hash of the options that say which server is meant.
fn identity(options: &Options) -> u64 {
    let says_where = |key: &str| {
        let key = key.to_ascii_lowercase();
        ["endpoint", "account", "base_url"].iter().any(|word| key.contains(word))
    };
    let mut hash = Hash::new(0);
    for (key, value) in options.iter().filter(|(key, _)| says_where(key)) {
        hash.bytes(key.as_bytes());
        hash.bytes(value.as_bytes());
    }
    hash.finish()
}

impl Backend for Native {
    fn identity(&self) -> u64 {
        self.identity
    }

    fn head(&self, key: &str) -> Result<Facts> {
        let mut meta = Meta { size: 0, etag: Owned::EMPTY };
        call(self.table, &self.base, |failure| {
            // SAFETY: the store is open, and everything is valid during the call.
            unsafe { (self.table.head)(self.store, Slice::new(key.as_bytes()), &mut meta, failure) }
        })?;
        let etag = self.text(meta.etag);
        Ok(Facts { size: meta.size, etag: (!etag.is_empty()).then_some(etag) })
    }

    fn get(&self, key: &str) -> Result<Contents> {
        let mut meta = Meta { size: 0, etag: Owned::EMPTY };
        let mut body = abi::Body(std::ptr::null_mut());
        call(self.table, &self.base, |failure| {
            let (key, etag) = (Slice::new(key.as_bytes()), Slice::new(b""));
            // SAFETY: the store is open, and everything is valid during the call.
            unsafe { (self.table.get)(self.store, key, etag, &mut body, &mut meta, failure) }
        })?;
        self.text(meta.etag);
        let len = usize::try_from(meta.size).unwrap_or(usize::MAX);
        Ok(Contents::Body(Body { table: self.table, body, len }))
    }

    fn range(&self, key: &str, etag: Option<&str>, offset: u64, out: &mut [u8]) -> Result<()> {
        let (key, etag) =
            (Slice::new(key.as_bytes()), Slice::new(etag.unwrap_or_default().as_bytes()));
        let (buffer, len) = (out.as_mut_ptr(), out.len());
        call(self.table, &self.base, |failure| {
            // SAFETY: the store is open, and everything is valid during the call.
            unsafe { (self.table.range)(self.store, key, etag, offset, buffer, len, failure) }
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut listing = Owned::EMPTY;
        call(self.table, &self.base, |failure| {
            let prefix = Slice::new(prefix.as_bytes());
            // SAFETY: the store is open, and everything is valid during the call.
            unsafe { (self.table.list)(self.store, prefix, false, &mut listing, failure) }
        })?;
        // SAFETY: the module has filled it in; it is freed after this.
        let entries = entries(unsafe { Slice { data: listing.data, len: listing.len }.bytes() });
        // SAFETY: once.
        unsafe { (self.table.free)(listing) };
        Ok(entries)
    }
}

fn entries(mut bytes: &[u8]) -> Vec<Entry> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let size = u64::from(word(0)) | u64::from(word(4)) << 32;
        let Some((name, rest)) = rest.split_at_checked(word(8) as usize) else { break };
        let Some((etag, rest)) = rest.split_at_checked(word(12) as usize) else { break };
        found.push(Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            size: (size != u64::MAX).then_some(size),
            etag: String::from_utf8_lossy(etag).into_owned(),
        });
        bytes = rest;
    }
    found
}

/// The contents of an object in the memory of the module.
pub struct Body {
    table: &'static Table,
    body: abi::Body,
    len: usize,
}

impl Body {
    pub fn size(&self) -> usize {
        self.len
    }

    pub fn take(self, out: &mut [u8]) {
        assert_eq!(out.len(), self.len);
        // SAFETY: the buffer is as long as the contents, which are not used any more.
        unsafe { (self.table.take)(self.body, out.as_mut_ptr()) };
        std::mem::forget(self);
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // SAFETY: it was not taken.
        unsafe { (self.table.take)(self.body, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_as_it_is_written() {
        let mut bytes = Vec::new();
        for (size, name, etag) in [(7_u64, "a.jpg", "\"x\""), (u64::MAX, "folder", "")] {
            bytes.extend_from_slice(&size.to_le_bytes());
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&(etag.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(etag.as_bytes());
        }
        let whole = entries(&bytes);
        assert_eq!(whole[0], Entry { name: "a.jpg".into(), size: Some(7), etag: "\"x\"".into() });
        assert_eq!(whole[1], Entry { name: "folder".into(), size: None, etag: String::new() });
        assert_eq!(entries(&bytes[..bytes.len() - 1]).len(), 1);
    }
}
