//! What the core and the module `penstock_remote` call each other by: a table of C functions, which
//! the module hands over as a capsule. Both compile this file.
//!
//! All functions block, may be called from any thread, and don't need the GIL. None of them keeps
//! a pointer that it was given.

use std::ffi::c_void;

/// Changes with anything in this file.
pub const VERSION: u32 = 1;

/// The name of the capsule, and of the function that returns it.
pub const CAPSULE: &std::ffi::CStr = c"penstock_remote.table";

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    pub data: *const u8,
    pub len: usize,
}

impl Slice {
    pub fn new(bytes: &[u8]) -> Slice {
        Slice { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// # Safety
    /// The bytes must be alive for `'a`, and not be written to.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Bytes that the module has allocated; `Table::free` takes them back.
#[repr(C)]
pub struct Owned {
    pub data: *mut u8,
    pub len: usize,
    pub capacity: usize,
}

impl Owned {
    pub const EMPTY: Owned = Owned { data: std::ptr::null_mut(), len: 0, capacity: 0 };
}

/// Why a request failed, in the end.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Something that has no kind of its own.
    Other = 0,
    /// There is no such object.
    NotFound = 1,
    /// There is no such bucket or container.
    NoBucket = 2,
    /// The server refuses access.
    Denied = 3,
    /// The credential has expired.
    Expired = 4,
    /// There is no credential.
    NoCredentials = 5,
    /// The server can't be reached: no such host, or nothing listens there.
    Unreachable = 6,
    /// The server answered with errors until the time for retries was over.
    Unavailable = 7,
    /// The object is not the one that was asked for: its ETag has changed.
    Changed = 8,
    /// The server can't list, or doesn't serve ranges.
    Unsupported = 9,
    /// The URL or an option is wrong.
    Configuration = 10,
}

#[repr(C)]
pub struct Failure {
    /// A `FailureKind`.
    pub kind: u32,
    /// How often it was tried.
    pub attempts: u32,
    /// The status of the server's last answer, or 0.
    pub status: u32,
    /// The time that was spent.
    pub seconds: f64,
    /// What the server or the system said.
    pub text: Owned,
}

#[repr(C)]
pub struct Meta {
    pub size: u64,
    /// Empty if the server has none.
    pub etag: Owned,
}

/// What is listed: for each entry a size (8 bytes, little endian; `u64::MAX` for a folder), the
/// lengths of its name and its ETag (4 bytes each), the name, and the ETag. Names are relative to
/// what was listed.
pub type Listing = Owned;

/// A pair of an option.
#[repr(C)]
pub struct Pair {
    pub key: Slice,
    pub value: Slice,
}

/// A connection to a bucket, a container or a web server.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Store(pub *mut c_void);

/// The contents of an object, in memory of the module.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Body(pub *mut c_void);

/// Functions return whether they succeeded; if not, they have filled in the failure.
#[repr(C)]
pub struct Table {
    pub version: u32,
    /// Opens a store for a URL such as `s3://bucket`. Does not connect.
    pub open: unsafe extern "C" fn(
        url: Slice,
        options: *const Pair,
        count: usize,
        store: *mut Store,
        failure: *mut Failure,
    ) -> bool,
    pub close: unsafe extern "C" fn(store: Store),
    /// The size and the ETag of an object.
    pub head: unsafe extern "C" fn(
        store: Store,
        key: Slice,
        meta: *mut Meta,
        failure: *mut Failure,
    ) -> bool,
    /// The contents of an object, and their size and ETag. If an ETag is given, it must match.
    pub get: unsafe extern "C" fn(
        store: Store,
        key: Slice,
        etag: Slice,
        body: *mut Body,
        meta: *mut Meta,
        failure: *mut Failure,
    ) -> bool,
    /// Copies the contents, which are as long as `get` said, and frees them. Without a buffer, only
    /// frees them.
    pub take: unsafe extern "C" fn(body: Body, buffer: *mut u8),
    /// Fills a buffer with a part of an object. If an ETag is given, it must match.
    pub range: unsafe extern "C" fn(
        store: Store,
        key: Slice,
        etag: Slice,
        offset: u64,
        buffer: *mut u8,
        len: usize,
        failure: *mut Failure,
    ) -> bool,
    /// Lists what is below a prefix: all objects, or only those that are not in folders, and the
    /// folders.
    pub list: unsafe extern "C" fn(
        store: Store,
        prefix: Slice,
        recursive: bool,
        listing: *mut Listing,
        failure: *mut Failure,
    ) -> bool,
    pub free: unsafe extern "C" fn(bytes: Owned),
}

// SAFETY: functions and a number, which nobody changes.
unsafe impl Sync for Table {}
