//! A cache of objects and blocks on disk, which several processes share.
//!
//! An entry is a file: the bytes, the URL that they are of, and a trailer with lengths and
//! checksums. It is written under another name and then renamed, so that a process that is killed
//! leaves no half of one. How many bytes the entries have, and those that are being written, are
//! numbers in a mapped file. Whoever exceeds the limit removes the entries that were not used for
//! the longest time; that also counts all anew, since a process may have been killed between
//! counting and writing. Whatever the order of events, the numbers are never too small.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use crate::readers::files::Hash;
use crate::value::zeroed;

const MAGIC: u32 = 0x7E57_0C01;

/// Lengths of the bytes and of the URL, the version, checksums of the bytes and of the rest, and
/// the magic number.
const TRAILER: usize = 8 + 8 + 8 + 4 + 4 + 4;

/// After an eviction this much of the limit is used, in eighths.
const KEPT: u64 = 7;

/// Files that are being written and are older than this belong to nobody.
const ABANDONED: Duration = Duration::from_secs(600);

/// How precisely is known when an entry was used.
const TOUCHED: Duration = Duration::from_secs(600);

pub struct Disk {
    folder: PathBuf,
    limit: u64,
    usage: Usage,
}

/// The number of the next file that this process writes.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The name of an entry.
pub struct Name<'a> {
    url: &'a [u8],
    version: u64,
    block: Option<u64>,
    hash: u128,
}

/// Distinguishes versions of an object.
pub fn version(identity: u64, etag: Option<&str>, size: Option<u64>) -> u64 {
    let mut hash = Hash::new(identity);
    hash.bytes(etag.unwrap_or_default().as_bytes());
    hash.word(size.map_or(0, |size| size ^ 0x5A5A));
    hash.finish()
}

impl<'a> Name<'a> {
    pub fn new(url: &'a [u8], version: u64, block: Option<u64>) -> Name<'a> {
        let half = |seed: u64| {
            let mut hash = Hash::new(seed ^ url.len() as u64);
            hash.bytes(url);
            hash.word(version);
            hash.word(block.map_or(0, |block| block + 1));
            u128::from(hash.finish())
        };
        let hash = half(0x243F_6A88_85A3_08D3) << 64 | half(0x1319_8A2E_0370_7344);
        Name { url, version, block, hash }
    }

    pub fn hash(&self) -> u128 {
        self.hash
    }

    fn path(&self, folder: &Path) -> PathBuf {
        let hex = format!("{:032x}", self.hash);
        folder.join(&hex[..2]).join(&hex[2..])
    }

    /// What follows the bytes of an entry. Hashes may collide, so it has all that is hashed.
    fn trailer(&self, bytes: &[u8]) -> Vec<u8> {
        let mut trailer = self.url.to_vec();
        trailer.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        trailer.extend_from_slice(&(self.url.len() as u64).to_le_bytes());
        trailer.extend_from_slice(&(self.version ^ self.block.map_or(0, |n| n + 1)).to_le_bytes());
        trailer.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
        let sum = crc32c::crc32c(&trailer);
        trailer.extend_from_slice(&sum.to_le_bytes());
        trailer.extend_from_slice(&MAGIC.to_le_bytes());
        trailer
    }
}

/// Caches in use, by folder.
static DISKS: Mutex<Vec<Weak<Disk>>> = Mutex::new(Vec::new());

impl Disk {
    /// The cache in a folder, which is created if there is none.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Arc<Disk>> {
        // In a folder of its own: everything else in there is not ours to remove.
        let folder = folder.join("penstock-cache-1");
        let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        disks.retain(|disk| disk.strong_count() > 0);
        let same = |disk: &Arc<Disk>| disk.folder == folder && disk.limit == limit;
        if let Some(found) = disks.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(found);
        }
        fs::create_dir_all(folder.join("new"))?;
        for number in 0..=u8::MAX {
            match fs::create_dir(folder.join(format!("{number:02x}"))) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let usage = Usage::open(&folder.join("usage"))?;
        let disk = Arc::new(Disk { folder, limit, usage });
        if disk.usage.total() > limit {
            disk.evict();
        }
        disks.push(Arc::downgrade(&disk));
        Ok(disk)
    }

    /// The bytes of an entry.
    pub fn read(&self, name: &Name<'_>) -> Option<Vec<u8>> {
        let (file, length) = self.find(name)?;
        let mut bytes = zeroed(length).ok()?;
        file.read_exact_at(&mut bytes, 0).ok()?;
        self.is_sound(&file, name, &bytes).then_some(bytes)
    }

    /// An entry as a file that begins with its bytes, after looking through it.
    pub fn open_entry(&self, name: &Name<'_>) -> Option<File> {
        let (file, length) = self.find(name)?;
        let mut bytes = zeroed(length).ok()?;
        file.read_exact_at(&mut bytes, 0).ok()?;
        self.is_sound(&file, name, &bytes).then_some(file)
    }

    /// The file of an entry, and the length of its bytes.
    fn find(&self, name: &Name<'_>) -> Option<(File, usize)> {
        let file = File::open(name.path(&self.folder)).ok()?;
        let known = file.metadata().ok()?;
        let length = known.len().checked_sub((name.url.len() + TRAILER) as u64)?;
        if known.modified().ok()?.elapsed().is_ok_and(|age| age > TOUCHED) {
            let now = FileTimes::new().set_modified(SystemTime::now());
            let _ = file.set_times(now);
        }
        Some((file, usize::try_from(length).ok()?))
    }

    /// Whether an entry is what it should be. A damaged one is removed.
    fn is_sound(&self, file: &File, name: &Name<'_>, bytes: &[u8]) -> bool {
        let expected = name.trailer(bytes);
        let mut found = vec![0; expected.len()];
        let sound = file.read_exact_at(&mut found, bytes.len() as u64).is_ok() && found == expected;
        if !sound && fs::remove_file(name.path(&self.folder)).is_ok() {
            self.usage.written().subtract((bytes.len() + expected.len()) as u64);
        }
        sound
    }

    /// Adds an entry, and returns whether there was room for it. A cache that can't be written to
    /// is none.
    pub fn write(&self, name: &Name<'_>, bytes: &[u8]) -> bool {
        let trailer = name.trailer(bytes);
        let size = (bytes.len() + trailer.len()) as u64;
        if size > self.limit / 2 {
            return false;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let new = self.folder.join("new").join(format!("{}-{number}", std::process::id()));
        let Ok(mut file) = File::create(&new) else { return false };
        // So that others see how much it will be.
        let is_reserved = file.set_len(size).is_ok();
        self.usage.pending().add(size);
        if self.usage.total() > self.limit {
            self.evict();
        }
        let is_written = is_reserved
            && self.usage.total() <= self.limit
            && file.write_all(bytes).and_then(|()| file.write_all(&trailer)).is_ok();
        let path = name.path(&self.folder);
        // Unlike a rename, it fails if another process was first, so that nothing counts twice.
        let linked = is_written.then(|| fs::hard_link(&new, &path));
        let is_there = match linked {
            Some(Ok(())) => {
                self.usage.written().add(size);
                true
            }
            Some(Err(error)) => error.kind() == io::ErrorKind::AlreadyExists,
            None => false,
        };
        self.usage.pending().subtract(size);
        let _ = fs::remove_file(&new);
        is_there
    }

    /// Removes entries that were not used for long, unless another process is at it.
    fn evict(&self) {
        let Ok(lock) = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.folder.join("lock"))
        else {
            return;
        };
        // SAFETY: the descriptor is open. The lock ends with the file, or with the process.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return;
        }
        let before = self.usage.written().get();
        let (mut entries, mut total) = (Vec::new(), 0);
        for number in 0..=u8::MAX {
            let folder = self.folder.join(format!("{number:02x}"));
            for (path, known) in files(&folder) {
                total += known.len();
                entries.push((used(&known), known.len(), path));
            }
        }
        entries.sort_unstable_by_key(|(used, ..)| *used);
        for (_, size, path) in entries {
            if total <= self.limit / 8 * KEPT {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
        // What others have added meanwhile stays counted.
        self.usage.written().correct(before, total);
        let before = self.usage.pending().get();
        let mut pending = 0;
        for (path, known) in files(&self.folder.join("new")) {
            match is_abandoned(&path, &known) {
                true => drop(fs::remove_file(path)),
                false => pending += known.len(),
            }
        }
        self.usage.pending().correct(before, pending);
    }
}

fn files(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

fn used(known: &Metadata) -> SystemTime {
    known.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Whether the process that was writing a file is gone.
fn is_abandoned(path: &Path, known: &Metadata) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let process: Option<i32> = name.split('-').next().and_then(|digits| digits.parse().ok());
    // SAFETY: signal 0 only asks whether there is such a process.
    let is_gone = |id: i32| unsafe { libc::kill(id, 0) } != 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    process.is_none_or(is_gone) || used(known).elapsed().is_ok_and(|age| age > ABANDONED)
}

/// Numbers of bytes that processes share: written, and being written.
struct Usage(&'static [AtomicU64; 2]);

impl Usage {
    fn open(path: &Path) -> io::Result<Usage> {
        const BYTES: usize = size_of::<[AtomicU64; 2]>();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666)
            .open(path)?;
        file.set_len(BYTES as u64)?;
        // SAFETY: a mapping of its own, of a file that is long enough and that nobody shortens.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is mapped until the process ends, aligned to a page, and only used as this.
        Ok(Usage(unsafe { &*mapped.cast::<[AtomicU64; 2]>() }))
    }

    fn written(&self) -> Count<'_> {
        Count(&self.0[0])
    }

    fn pending(&self) -> Count<'_> {
        Count(&self.0[1])
    }

    fn total(&self) -> u64 {
        self.written().get().saturating_add(self.pending().get())
    }
}

struct Count<'a>(&'a AtomicU64);

impl Count<'_> {
    fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::SeqCst);
    }

    fn subtract(&self, bytes: u64) {
        let less = |total: u64| Some(total.saturating_sub(bytes));
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }

    fn correct(&self, before: u64, found: u64) {
        let moved = |total: u64| Some(total.saturating_sub(before).saturating_add(found));
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("penstock-disk-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn total(folder: &Path) -> u64 {
        let files = fs::read_dir(folder.join("penstock-cache-1")).unwrap().flatten();
        let inner = files.filter_map(|entry| fs::read_dir(entry.path()).ok()).flatten().flatten();
        inner.map(|entry| entry.metadata().unwrap().len()).sum()
    }

    #[test]
    fn entries_are_found_until_they_are_damaged() {
        let folder = folder("entries");
        let disk = Disk::open(&folder, 1 << 20).unwrap();
        let name = Name::new(b"s3://b/a", 1, None);
        assert!(disk.read(&name).is_none());
        assert!(disk.write(&name, b"contents") && disk.write(&name, b"contents"));
        assert_eq!(disk.read(&name).unwrap(), b"contents");
        assert_eq!(disk.usage.total(), total(&folder));
        for other in
            [(&b"s3://b/b"[..], 1, None), (b"s3://b/a", 2, None), (b"s3://b/a", 1, Some(0))]
        {
            assert!(disk.read(&Name::new(other.0, other.1, other.2)).is_none());
        }
        let path = name.path(&disk.folder);
        for damage in 0..fs::read(&path).unwrap().len() {
            let mut bytes = fs::read(&path).unwrap();
            bytes[damage] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(disk.read(&name).is_none(), "{damage}");
            assert!(!path.exists());
            assert!(disk.write(&name, b"contents"));
        }
        fs::write(&path, b"").unwrap();
        assert!(disk.read(&name).is_none());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_limit_holds_and_the_last_entries_stay() {
        let folder = folder("limit");
        let disk = Disk::open(&folder, 100_000).unwrap();
        let bytes = vec![7; 5000];
        let url = |number: u64| format!("s3://bucket/{number}");
        for number in 0..60 {
            let url = url(number);
            let name = Name::new(url.as_bytes(), 0, None);
            assert!(disk.write(&name, &bytes));
            let age = SystemTime::now() - Duration::from_secs(100_000 - number);
            let file = File::options().write(true).open(name.path(&disk.folder)).unwrap();
            file.set_times(FileTimes::new().set_modified(age)).unwrap();
            assert!(total(&folder) <= 100_000);
        }
        let is_there = |number| disk.read(&Name::new(url(number).as_bytes(), 0, None)).is_some();
        assert!(is_there(59) && is_there(58) && !is_there(0));
        // A process that was killed has counted what it has not written.
        disk.usage.written().add(1 << 40);
        disk.usage.pending().add(1 << 40);
        assert!(disk.write(&Name::new(b"s3://bucket/more", 0, None), &bytes));
        assert_eq!(disk.usage.total(), total(&folder));
        assert!(!disk.write(&Name::new(b"s3://bucket/large", 0, None), &vec![0; 60_000]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
