//! The functions of the table.

use std::ffi::c_void;
use std::sync::Arc;

use bytes::Bytes;

use crate::abi::{
    Body, Failure, FailureKind, Listing, Meta, Owned, Pair, Slice, Store as Handle, Table, VERSION,
};
use crate::failure::Fault;
use crate::patience::GivenUp;
use crate::runtime::wait;
use crate::store::{Entry, Facts, Place, Sink, Store, Wanted};

pub static TABLE: Table =
    Table { version: VERSION, open, close, head, get, take, range, list, free };

impl From<Vec<u8>> for Owned {
    fn from(bytes: Vec<u8>) -> Owned {
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        Owned { data: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() }
    }
}

impl From<Facts> for Meta {
    fn from(facts: Facts) -> Meta {
        Meta { size: facts.size, etag: facts.etag.unwrap_or_default().into_bytes().into() }
    }
}

impl From<GivenUp> for Failure {
    fn from(GivenUp { fault, attempts, spent }: GivenUp) -> Failure {
        Failure {
            kind: fault.kind as u32,
            attempts,
            status: u32::from(fault.status),
            seconds: spent.as_secs_f64(),
            text: fault.text.into_bytes().into(),
        }
    }
}

fn internal(text: String) -> GivenUp {
    let fault = Fault::new(FailureKind::Other, text);
    GivenUp { fault, attempts: 0, spent: std::time::Duration::ZERO }
}

/// Stores a result, or the failure.
///
/// # Safety
/// Both pointers are valid for writing.
unsafe fn give<T>(result: Result<T, GivenUp>, place: *mut T, failure: *mut Failure) -> bool {
    match result {
        Ok(value) => {
            // SAFETY: as the caller promises.
            unsafe { place.write(value) };
            true
        }
        Err(given_up) => {
            // SAFETY: as the caller promises.
            unsafe { failure.write(given_up.into()) };
            false
        }
    }
}

/// # Safety
/// The bytes are valid during the call.
unsafe fn text(slice: Slice) -> Result<String, GivenUp> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { slice.bytes() };
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.map_err(|_| {
        let fault = Fault::new(FailureKind::Configuration, "a URL must be text in UTF-8");
        GivenUp { fault, attempts: 0, spent: std::time::Duration::ZERO }
    })
}

/// # Safety
/// The handle is one of `open`, and not closed.
unsafe fn store(handle: Handle) -> Arc<Store> {
    let store = handle.0.cast::<Store>().cast_const();
    // SAFETY: `open` has made it of an `Arc`, which this adds to.
    unsafe {
        Arc::increment_strong_count(store);
        Arc::from_raw(store)
    }
}

unsafe extern "C" fn open(
    url: Slice,
    options: *const Pair,
    count: usize,
    handle: *mut Handle,
    failure: *mut Failure,
) -> bool {
    let opened = || {
        // SAFETY: the core passes as many options as it says, and valid texts.
        let (url, options) = unsafe {
            let given = if count == 0 { &[] } else { std::slice::from_raw_parts(options, count) };
            let pairs = given.iter().map(|pair| Ok((text(pair.key)?, text(pair.value)?)));
            (text(url)?, pairs.collect::<Result<Vec<_>, GivenUp>>()?)
        };
        let scheme = url.split("://").next().unwrap_or_default().to_ascii_lowercase();
        let opened = Store::open(Place { scheme, url, options }).map_err(|fault| GivenUp {
            fault,
            attempts: 0,
            spent: std::time::Duration::ZERO,
        })?;
        Ok(Handle(Arc::into_raw(Arc::new(opened)).cast_mut().cast::<c_void>()))
    };
    // SAFETY: the core passes places for both.
    unsafe { give(opened(), handle, failure) }
}

unsafe extern "C" fn close(handle: Handle) {
    // SAFETY: the core gives back what `open` gave to it, once.
    drop(unsafe { Arc::from_raw(handle.0.cast::<Store>().cast_const()) });
}

unsafe extern "C" fn head(
    handle: Handle,
    key: Slice,
    meta: *mut Meta,
    failure: *mut Failure,
) -> bool {
    let asked = || {
        // SAFETY: the core passes an open store and a valid text.
        let (store, key) = unsafe { (store(handle), text(key)?) };
        let facts = wait(async move { store.head(&key).await }).map_err(internal)??;
        Ok(Meta::from(facts))
    };
    // SAFETY: the core passes places for both.
    unsafe { give(asked(), meta, failure) }
}

/// The pieces of a body, as they have arrived.
#[derive(Default)]
struct Pieces {
    all: Vec<Bytes>,
    len: u64,
    facts: Facts,
}

impl Sink for Pieces {
    fn begin(&mut self, facts: Facts) {
        self.facts = facts;
    }

    fn put(&mut self, piece: Bytes) -> Result<(), Fault> {
        self.len += piece.len() as u64;
        self.all.push(piece);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn clear(&mut self) {
        *self = Pieces::default();
    }
}

unsafe extern "C" fn get(
    handle: Handle,
    key: Slice,
    etag: Slice,
    body: *mut Body,
    meta: *mut Meta,
    failure: *mut Failure,
) -> bool {
    let asked = || {
        // SAFETY: the core passes an open store and valid texts.
        let (store, key, etag) = unsafe { (store(handle), text(key)?, text(etag)?) };
        let etag = (!etag.is_empty()).then_some(etag);
        wait(async move {
            let mut pieces = Pieces::default();
            store.get(Wanted { key, etag, range: None }, &mut pieces).await?;
            Ok::<_, GivenUp>(pieces)
        })
        .map_err(internal)?
    };
    match asked() {
        Ok(pieces) => {
            let facts = Facts { size: pieces.len, etag: pieces.facts.etag.clone() };
            let pieces = Box::into_raw(Box::new(pieces));
            // SAFETY: the core passes places for both.
            unsafe {
                body.write(Body(pieces.cast::<c_void>()));
                meta.write(facts.into());
            }
            true
        }
        Err(given_up) => {
            // SAFETY: the core passes a place.
            unsafe { failure.write(given_up.into()) };
            false
        }
    }
}

unsafe extern "C" fn take(body: Body, buffer: *mut u8) {
    // SAFETY: the core gives back what `get` gave to it, once.
    let pieces = unsafe { Box::from_raw(body.0.cast::<Pieces>()) };
    if buffer.is_null() {
        return;
    }
    let mut at = 0;
    for piece in pieces.all {
        // SAFETY: the buffer is as long as all pieces together, and doesn't overlap with any.
        unsafe { buffer.add(at).copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
        at += piece.len();
    }
}

/// A buffer of the core, which waits until it is filled.
struct Buffer {
    buffer: *mut u8,
    room: usize,
    len: usize,
}

// SAFETY: the thread that owns the buffer waits, and touches it only after this is gone.
unsafe impl Send for Buffer {}

impl Sink for Buffer {
    fn begin(&mut self, _: Facts) {}

    fn put(&mut self, piece: Bytes) -> Result<(), Fault> {
        if piece.len() > self.room - self.len {
            return Err(Fault::transient("the answer is longer than what was asked for"));
        }
        // SAFETY: there is room, and nobody else has the buffer.
        unsafe {
            self.buffer.add(self.len).copy_from_nonoverlapping(piece.as_ptr(), piece.len());
        }
        self.len += piece.len();
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len as u64
    }

    fn clear(&mut self) {
        self.len = 0;
    }
}

unsafe extern "C" fn range(
    handle: Handle,
    key: Slice,
    etag: Slice,
    offset: u64,
    buffer: *mut u8,
    len: usize,
    failure: *mut Failure,
) -> bool {
    if len == 0 {
        return true;
    }
    let asked = || {
        // SAFETY: the core passes an open store and valid texts.
        let (store, key, etag) = unsafe { (store(handle), text(key)?, text(etag)?) };
        let etag = (!etag.is_empty()).then_some(etag);
        let mut place = Buffer { buffer, room: len, len: 0 };
        let end = offset.saturating_add(len as u64);
        wait(async move {
            let place = &mut place;
            store.get(Wanted { key, etag, range: Some((offset, end)) }, place).await
        })
        .map_err(internal)?
    };
    // SAFETY: the core passes a place; the unit needs none.
    unsafe { give(asked(), std::ptr::NonNull::dangling().as_ptr(), failure) }
}

unsafe extern "C" fn list(
    handle: Handle,
    prefix: Slice,
    recursive: bool,
    listing: *mut Listing,
    failure: *mut Failure,
) -> bool {
    let asked = || {
        // SAFETY: the core passes an open store and a valid text.
        let (store, prefix) = unsafe { (store(handle), text(prefix)?) };
        let listed = wait(async move { store.list(&prefix, recursive).await });
        let found: Vec<Entry> = listed.map_err(internal)??;
        let mut bytes = Vec::new();
        for Entry { name, size, etag } in found {
            let etag = etag.unwrap_or_default();
            bytes.extend_from_slice(&size.unwrap_or(u64::MAX).to_le_bytes());
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&(etag.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(etag.as_bytes());
        }
        Ok(Owned::from(bytes))
    };
    // SAFETY: the core passes places for both.
    unsafe { give(asked(), listing, failure) }
}

unsafe extern "C" fn free(bytes: Owned) {
    if !bytes.data.is_null() {
        // SAFETY: the core gives back what it got, once.
        drop(unsafe { Vec::from_raw_parts(bytes.data, bytes.len, bytes.capacity) });
    }
}
