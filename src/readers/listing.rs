//! Listing a folder of folders: each is a class, its files are the samples.

use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::fetch::Source;
use super::files::Files;
use super::glob::Globs;

/// Folders are listed side by side: most of the time goes to waiting for the file system.
const THREADS: usize = 8;

/// What could not be listed.
pub struct ListingError {
    pub path: PathBuf,
    pub error: io::Error,
}

/// The files of the folders in `root`, by the order of their bytes; the number of the folder is
/// the label. Files outside of those folders, or deeper inside, don't count.
pub fn list(root: &Path, folders: Option<&Globs>, files: &Globs) -> Result<Files, ListingError> {
    let classes = entries(root, |name, path, kind| {
        folders.is_none_or(|globs| globs.matches(name)) && kind.is_folder(path)
    })?;
    let names: Vec<&[u8]> = classes.iter().collect();
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Names, ListingError>>>> =
        names.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((name, place)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            names.get(index).zip(done.get(index))
        } {
            let folder = root.join(OsStr::from_bytes(name));
            let found =
                entries(&folder, |name, path, kind| files.matches(name) && !kind.is_folder(path));
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
    };
    thread::scope(|scope| {
        for _ in 1..THREADS.min(names.len()) {
            // Where the system has no thread to give, this one does the work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut all = Files::new(root.to_path_buf());
    for (label, (name, found)) in names.iter().zip(done).enumerate() {
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let found = found.unwrap_or_else(|| Ok(Names::default()))?;
        let label = i32::try_from(label).unwrap_or(i32::MAX);
        all.reserve(found.ends.len(), found.text.len() + found.ends.len() * (name.len() + 1));
        found.iter().for_each(|file| all.push_in(name, file, label));
    }
    Ok(all)
}

/// The files of `root` itself, then those of the folders in there; deeper ones don't count.
pub fn list_with_root(root: &Path, files: &Globs) -> Result<Files, ListingError> {
    let own = entries(root, |name, path, kind| files.matches(name) && !kind.is_folder(path))?;
    let inner = list(root, None, files)?;
    let mut all = Files::new(root.to_path_buf());
    own.iter().for_each(|name| all.push(name, 0));
    (0..inner.len()).for_each(|number| all.push(inner.name_bytes(number), 0));
    Ok(all)
}

/// Names one after another, and where each begins and ends.
#[derive(Default)]
struct Names {
    text: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Names {
    fn push(&mut self, name: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.ends.push((start, self.text.len()));
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().map(|&(start, end)| &self.text[start..end])
    }

    /// By the order of bytes. Most names are told apart by the eight bytes after what all have in
    /// common, as one number.
    fn sort(&mut self) {
        let Some(first) = self.iter().next() else { return };
        let alike = |name: &[u8]| first.iter().zip(name).take_while(|(a, b)| a == b).count();
        let common = self.iter().map(alike).min().unwrap_or(0);
        let key = |&(start, end): &(usize, usize)| {
            let name = &self.text[start + common..end];
            let mut head = [0; 8];
            let length = name.len().min(8);
            head[..length].copy_from_slice(&name[..length]);
            (u64::from_be_bytes(head), start, end)
        };
        let mut keys: Vec<_> = self.ends.iter().map(key).collect();
        let rest = |&(_, start, end): &(u64, usize, usize)| &self.text[start..end];
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| rest(a).cmp(rest(b))));
        self.ends = keys.into_iter().map(|(_, start, end)| (start, end)).collect();
    }
}

/// What the folder itself says of an entry.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Folder,
    File,
    /// A link, or a file system that does not tell.
    Unclear,
}

impl Kind {
    /// Whether it is a folder, or a link to one.
    fn is_folder(self, path: &dyn Fn() -> PathBuf) -> bool {
        self == Kind::Folder || (self == Kind::Unclear && path().is_dir())
    }
}

/// The names in a folder that are wanted, sorted.
fn entries(
    folder: &Path,
    wanted: impl Fn(&[u8], &dyn Fn() -> PathBuf, Kind) -> bool,
) -> Result<Names, ListingError> {
    let mut names = Names::default();
    let visit = |name: &[u8], kind| {
        if wanted(name, &|| folder.join(OsStr::from_bytes(name)), kind) {
            names.push(name);
        }
    };
    for_each_entry(folder, visit)
        .map_err(|error| ListingError { path: folder.to_path_buf(), error })?;
    names.sort();
    Ok(names)
}

/// Asks the system itself, for thousands of entries at once: a string for each of them would cost
/// more than all the rest.
#[cfg(target_os = "linux")]
fn for_each_entry(folder: &Path, mut visit: impl FnMut(&[u8], Kind)) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    /// Bytes of an entry before its name: two numbers of 64 bits, the entry's length, its kind.
    const HEAD: usize = 19;
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(folder)?;
    let mut buffer = vec![0_u8; 256 << 10];
    loop {
        // SAFETY: the kernel writes at most as many bytes as the buffer has.
        let bytes = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                opened.as_raw_fd(),
                buffer.as_mut_ptr(),
                buffer.len(),
            )
        };
        let mut rest = match usize::try_from(bytes) {
            Ok(0) => return Ok(()),
            Ok(bytes) => &buffer[..bytes],
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => continue,
                error => return Err(error),
            },
        };
        while rest.len() > HEAD {
            let length = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
            let Some(entry) = rest.get(..length).filter(|entry| entry.len() > HEAD) else {
                return Err(io::Error::other("the system gave an entry without a length"));
            };
            rest = &rest[length..];
            let name = entry[HEAD..].split(|&byte| byte == 0).next().unwrap_or_default();
            let kind = match entry[18] {
                libc::DT_DIR => Kind::Folder,
                libc::DT_LNK | libc::DT_UNKNOWN => Kind::Unclear,
                _ => Kind::File,
            };
            if name != b"." && name != b".." {
                visit(name, kind);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn for_each_entry(folder: &Path, mut visit: impl FnMut(&[u8], Kind)) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_dir() => Kind::Folder,
            Ok(kind) if !kind.is_symlink() => Kind::File,
            _ => Kind::Unclear,
        };
        visit(entry.file_name().as_bytes(), kind);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_their_bytes() {
        let rows: [&[&str]; 5] = [
            &[],
            &["one"],
            &["img_10.jpg", "img_9.jpg", "img_1.jpg", "img_100.jpg", "img_"],
            &["b", "", "a", "ab", "a\u{0}", "é", "B"],
            &["same12345678b", "same12345678a", "same12345678", "same1234567"],
        ];
        for row in rows {
            let mut names = Names::default();
            row.iter().for_each(|name| names.push(name.as_bytes()));
            names.sort();
            let mut expected: Vec<&[u8]> = row.iter().map(|name| name.as_bytes()).collect();
            expected.sort_unstable();
            assert!(names.iter().eq(expected), "{row:?}");
        }
    }
}
