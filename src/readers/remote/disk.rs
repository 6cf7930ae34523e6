//! A cache of objects and blocks on disk, which several processes share.
//!
//! An entry is a file: the bytes, the URL that they are of, and a trailer with lengths and
//! checksums. It is written under another name and then renamed, so that a process that is killed
//! leaves no half of one. How many bytes all entries have together is a number in a mapped file.
//! Whoever exceeds the limit removes the entries that were not used for the longest time; that
//! also counts them anew, since a process may have been killed between counting and writing.

use std::fs::{self, File, FileTimes, OpenOptions};
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
    next: AtomicU64,
}

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
        let next = AtomicU64::new(0);
        let disk = Arc::new(Disk { folder, limit, usage, next });
        if disk.usage.get() > limit {
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
            self.usage.subtract((bytes.len() + expected.len()) as u64);
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
        let fits = |total: u64| total <= self.limit;
        if !fits(self.usage.add(size)) {
            self.evict();
            if !fits(self.usage.get()) {
                self.usage.subtract(size);
                return false;
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let new = self.folder.join("new").join(format!("{}-{number}", std::process::id()));
        let (path, is_new) = (name.path(&self.folder), !name.path(&self.folder).exists());
        let written = File::create(&new)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.write_all(&trailer)
            })
            .and_then(|()| fs::rename(&new, path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        if written.is_err() || !is_new {
            self.usage.subtract(size);
        }
        written.is_ok()
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
        let before = self.usage.get();
        let (mut entries, mut total) = (Vec::new(), 0);
        let folders = (0..=u8::MAX).map(|number| format!("{number:02x}"));
        for folder in folders.chain(["new".into()]) {
            let is_new = folder == "new";
            let Ok(listed) = fs::read_dir(self.folder.join(folder)) else { continue };
            for entry in listed.flatten() {
                let Ok(known) = entry.metadata() else { continue };
                let used = known.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if is_new {
                    if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                        let _ = fs::remove_file(entry.path());
                    } else {
                        total += known.len();
                    }
                    continue;
                }
                total += known.len();
                entries.push((used, known.len(), entry.path()));
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
        self.usage.correct(before, total);
    }
}

/// A number of bytes that processes share.
struct Usage(&'static AtomicU64);

impl Usage {
    fn open(path: &Path) -> io::Result<Usage> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666)
            .open(path)?;
        file.set_len(8)?;
        // SAFETY: a mapping of its own, of a file that is long enough and that nobody shortens.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8,
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
        Ok(Usage(unsafe { &*mapped.cast::<AtomicU64>() }))
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) -> u64 {
        self.0.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    fn subtract(&self, bytes: u64) {
        let less = |total: u64| Some(total.saturating_sub(bytes));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn correct(&self, before: u64, found: u64) {
        let moved = |total: u64| Some(total.saturating_sub(before).saturating_add(found));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
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
        assert_eq!(disk.usage.get(), total(&folder));
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
        disk.usage.add(1 << 40);
        assert!(disk.write(&Name::new(b"s3://bucket/more", 0, None), &bytes));
        assert_eq!(disk.usage.get(), total(&folder));
        assert!(!disk.write(&Name::new(b"s3://bucket/large", 0, None), &vec![0; 60_000]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
