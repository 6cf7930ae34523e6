//! Lists a folder of folders: each is a class, and its files are the samples.

use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::files::Files;
use super::glob::Globs;
use super::list::ListFault;
use super::ranges::Unreadable;
use super::source::{OpenError, Source};
use crate::value::has_room_for_thread;

/// Folders are listed in parallel, since much of the time is spent waiting for the file system.
const THREADS: usize = 8;

/// The buffer for directory entries. A larger one would not fit into the CPU cache.
const ENTRY_BYTES: usize = 64 << 10;

impl From<ListingError> for OpenError {
    fn from(ListingError { path, error }: ListingError) -> OpenError {
        let fault = ListFault::Folder { code: error.raw_os_error(), text: error.to_string() };
        Unreadable::new(&path, fault).option("root").into()
    }
}

/// A folder that can't be listed.
pub struct ListingError {
    pub path: PathBuf,
    pub error: io::Error,
}

/// The files of the folders in `root`, sorted by bytes; the number of the folder is the label.
/// Files outside those folders, or nested deeper, are ignored.
pub fn list(root: &Path, folders: Option<&Globs>, files: &Globs) -> Result<Files, ListingError> {
    let mut classes = Names::default();
    classes.fill(root, &mut vec![0; ENTRY_BYTES], |name, path, kind| {
        folders.is_none_or(|globs| globs.matches(name)) && kind.is_folder(path)
    })?;
    let names: Vec<&[u8]> = classes.iter().collect();
    let next = AtomicUsize::new(0);
    let done: Vec<OnceLock<Result<Block, ListingError>>> =
        names.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        // Reused for all folders of this thread.
        let (mut found, mut buffer) = (Names::default(), vec![0; ENTRY_BYTES]);
        while let Some((name, place)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            names.get(index).zip(done.get(index))
        } {
            let folder = root.join(OsStr::from_bytes(name));
            let filled = found.fill(&folder, &mut buffer, |name, path, kind| {
                files.matches(name) && !kind.is_folder(path)
            });
            let _ = place.set(filled.map(|()| Block::new(name, &found)));
        }
    };
    thread::scope(|scope| {
        for _ in 1..THREADS.min(names.len()) {
            // If no thread can be started, this one does the work.
            if has_room_for_thread() {
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
        }
        work();
    });
    let blocks = done.into_iter().filter_map(OnceLock::into_inner);
    let blocks: Vec<Block> = blocks.collect::<Result<_, _>>()?;
    let count = |size: fn(&Block) -> usize| blocks.iter().map(size).sum();
    let mut all = Files::new(root.to_path_buf());
    all.reserve(count(|block| block.ends.len()), count(|block| block.text.len()));
    for (label, block) in blocks.into_iter().enumerate() {
        all.append(&block.text, &block.ends, i32::try_from(label).unwrap_or(i32::MAX));
    }
    Ok(all)
}

/// The files of a folder, prefixed with its name, and the end of each.
struct Block {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Block {
    fn new(folder: &[u8], files: &Names) -> Block {
        let mut text = Vec::with_capacity(files.text.len() + files.keys.len() * (folder.len() + 1));
        let ends = files.iter().map(|name| {
            text.extend_from_slice(folder);
            text.push(b'/');
            text.extend_from_slice(name);
            text.len()
        });
        let ends = ends.collect();
        Block { text, ends }
    }
}

/// The files in `root` itself, then those of its folders; deeper ones are ignored.
pub fn list_with_root(root: &Path, files: &Globs) -> Result<Files, ListingError> {
    let mut own = Names::default();
    own.fill(root, &mut vec![0; ENTRY_BYTES], |name, path, kind| {
        files.matches(name) && !kind.is_folder(path)
    })?;
    let inner = list(root, None, files)?;
    let mut all = Files::new(root.to_path_buf());
    own.iter().for_each(|name| all.push(name, 0));
    (0..inner.len()).for_each(|number| all.push(inner.name_bytes(number), 0));
    Ok(all)
}

/// Names in one block of text.
#[derive(Default)]
struct Names {
    text: Vec<u8>,
    keys: Vec<Key>,
}

/// A name to be sorted.
#[derive(Clone, Copy)]
struct Key {
    /// The first eight bytes after the common prefix, as a number.
    head: u64,
    start: usize,
    end: usize,
}

impl Names {
    /// Replaces the contents by the wanted names in a folder, sorted.
    fn fill(
        &mut self,
        folder: &Path,
        buffer: &mut [u8],
        wanted: impl Fn(&[u8], &dyn Fn() -> PathBuf, Kind) -> bool,
    ) -> Result<(), ListingError> {
        self.text.clear();
        self.keys.clear();
        let visit = |name: &[u8], kind| {
            if wanted(name, &|| folder.join(OsStr::from_bytes(name)), kind) {
                self.push(name);
            }
        };
        for_each_entry(folder, buffer, visit)
            .map_err(|error| ListingError { path: folder.to_path_buf(), error })?;
        self.sort();
        Ok(())
    }

    fn push(&mut self, name: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.keys.push(Key { head: 0, start, end: self.text.len() });
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &self.text[key.start..key.end])
    }

    /// Sorts by bytes. Most names differ in the eight bytes after the common prefix, which are
    /// compared as one number.
    fn sort(&mut self) {
        let Names { text, keys } = self;
        let Some(first) = keys.first().map(|key| &text[key.start..key.end]) else { return };
        let mut common = first.len();
        for key in &*keys {
            let name = &text[key.start..key.end];
            if !name.starts_with(&first[..common]) {
                common = first.iter().zip(name).take_while(|(a, b)| a == b).count();
            }
        }
        for key in &mut *keys {
            key.head = head(&text[key.start + common..key.end]);
        }
        let name = |key: &Key| &text[key.start..key.end];
        keys.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| name(a).cmp(name(b))));
    }
}

/// The first eight bytes as a number that sorts like them.
fn head(name: &[u8]) -> u64 {
    if let Some(eight) = name.first_chunk() {
        return u64::from_be_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight[..name.len()].copy_from_slice(name);
    u64::from_be_bytes(eight)
}

/// The kind of an entry, as its folder lists it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Folder,
    File,
    /// A link, or the file system doesn't say.
    Unclear,
}

impl Kind {
    /// Whether it is a folder, or a link to one.
    fn is_folder(self, path: &dyn Fn() -> PathBuf) -> bool {
        self == Kind::Folder || (self == Kind::Unclear && path().is_dir())
    }
}

/// Calls `getdents64` directly, for thousands of entries at a time: `std` would allocate a string
/// for each, which costs more than everything else.
#[cfg(target_os = "linux")]
fn for_each_entry(
    folder: &Path,
    buffer: &mut [u8],
    mut visit: impl FnMut(&[u8], Kind),
) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    /// Bytes before the name of an entry: two 64-bit numbers, the entry's length, its kind.
    const HEAD: usize = 19;
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(folder)?;
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
            // The name is NUL-terminated, and padding is shorter than eight bytes.
            let last = HEAD.max(length - 8);
            let rest = entry[last..].iter().position(|&byte| byte == 0);
            let name = &entry[HEAD..rest.map_or(length, |rest| last + rest)];
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
fn for_each_entry(
    folder: &Path,
    _: &mut [u8],
    mut visit: impl FnMut(&[u8], Kind),
) -> io::Result<()> {
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
    use super::super::source::Source;
    use super::*;

    #[test]
    fn a_folder_of_folders_is_listed_in_order() {
        let root = std::env::temp_dir().join(format!("penstock-listing-{}", std::process::id()));
        for folder in ["b", "a", "none"] {
            std::fs::create_dir_all(root.join(folder).join("deep.jpg")).unwrap();
        }
        // Names of every length, so that entries end at every offset.
        let names: Vec<String> = (1..200).map(|length| "x".repeat(length) + ".jpg").collect();
        for name in &names {
            std::fs::write(root.join("b").join(name), b"").unwrap();
        }
        std::fs::write(root.join("a/y.JPG"), b"").unwrap();
        std::fs::write(root.join("a/y.txt"), b"").unwrap();
        let listed = list(&root, None, &Globs::new(&["*.jpg"], true)).ok().unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        let mut expected: Vec<String> = names.iter().map(|name| format!("b/{name}")).collect();
        expected.push("a/y.JPG".into());
        expected.sort();
        let found: Vec<_> = (0..listed.len()).map(|i| listed.name(i).to_string()).collect();
        assert_eq!(found, expected);
        assert_eq!((listed.label(0), listed.label(1)), (0, 1));
        assert!(list(&root, None, &Globs::new(&["*"], true)).is_err());
    }

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
