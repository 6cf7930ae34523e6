//! Byte ranges of files, by number: the basis of formats with many samples per file.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::files::Hash;
pub use super::read::Opened;
use super::read::ReadFault;
use super::remote::{current, is_url, within};
pub use super::source::Result;
use crate::value::{Cause, Problem, append, has_room_for_thread, problems};

/// The number of files kept open: a data set may have more than a process may open.
const OPEN_FILES: usize = 64;

/// Files are scanned in parallel, since most of the time is spent waiting for the file system.
const THREADS: usize = 8;
const REMOTE_THREADS: usize = 32;

/// Largest scratch buffer for records that a thread keeps.
const SCRATCH: usize = 16 << 20;

problems! {
    /// What is wrong with a file of records, or with its index.
    pub enum RecordFault {
        Index { path: String, problem: Problem },
        IndexLine { line: usize, text: String },
        BeyondEnd { length: u64, offset: u64, size: u64 },
        Compressed { name: &'static str },
        CutOff { number: usize, at: u64, size: u64 },
        InRecord { number: usize, at: u64, problem: Problem },
        Unended,
    }
}

/// A file that can't be used, or whose index can't.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// The option that names the file.
    pub option: &'static str,
    pub path: PathBuf,
    pub problem: Problem,
    /// Whether the system is the cause; then the file doesn't count as a bad sample.
    pub system: bool,
}

impl Unreadable {
    pub fn new(path: &Path, problem: impl Into<Problem>) -> Unreadable {
        let (path, problem) = (path.to_path_buf(), problem.into());
        Unreadable { option: "files", path, problem, system: false }
    }

    pub fn of(path: &Path, cause: Cause) -> Unreadable {
        let (problem, system) = ReadFault::of(cause);
        Unreadable { system, ..Unreadable::new(path, problem) }
    }

    /// The same, for a file given by an option of any format.
    pub fn in_option(self, option: &str) -> Unreadable {
        const KNOWN: [&str; 5] = ["files", "root", "list", "index", "annotations"];
        let found = KNOWN.into_iter().find(|known| *known == option);
        Unreadable { option: found.unwrap_or("files"), ..self }
    }

    /// The same, for a file given by another option.
    pub fn option(self, option: &'static str) -> Unreadable {
        Unreadable { option, ..self }
    }

    /// Why a file can't be read: because of itself, or of its index.
    pub fn reason(self, file: &Path) -> Problem {
        match self.path == file {
            true => self.problem,
            false => {
                let path = self.path.display().to_string();
                RecordFault::Index { path, problem: self.problem }.into()
            }
        }
    }
}

/// Why a file can't be read beyond an offset.
#[derive(Debug)]
pub struct Damage {
    pub offset: u64,
    pub error: Unreadable,
}

impl From<Unreadable> for Damage {
    fn from(error: Unreadable) -> Damage {
        Damage { offset: 0, error }
    }
}

/// The fault of damaged contents.
pub fn broken(problem: impl Into<Problem>) -> Cause {
    Cause::File { problem: problem.into() }
}

/// The fault of a file that is compressed as a whole, according to its first bytes.
pub fn compressed(head: &[u8]) -> Option<Cause> {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x1F\x8B", "gzip"),
        (b"\x28\xB5\x2F\xFD", "zstd"),
        (b"\xFD7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
    ];
    let (_, name) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic))?;
    Some(broken(RecordFault::Compressed { name }))
}

/// A byte range of one of the files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub file: u32,
    pub offset: u64,
    pub length: u64,
}

/// Byte ranges of files.
pub struct Ranges {
    files: Vec<PathBuf>,
    pieces: Vec<Piece>,
    /// Pieces that can't be read, in order, and the reason.
    damaged: Vec<(usize, Problem)>,
    /// Recently used files, the latest at the end.
    opened: Mutex<VecDeque<(u32, Arc<Opened>)>>,
}

impl Ranges {
    pub fn new(files: Vec<PathBuf>) -> Ranges {
        Ranges { files, pieces: vec![], damaged: vec![], opened: Mutex::default() }
    }

    pub fn extend(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        self.pieces.extend(pieces);
    }

    /// Adds a piece that can't be read, and the reason.
    pub fn push_damaged(&mut self, file: u32, offset: u64, reason: Problem) {
        self.damaged.push((self.pieces.len(), reason));
        self.pieces.push(Piece { file, offset, length: 0 });
    }

    /// Adds the rest of a file as one piece that can't be read.
    pub fn push_damage(&mut self, file: u32, Damage { offset, error }: Damage) {
        let reason = error.reason(&self.files[file as usize]);
        self.push_damaged(file, offset, reason);
    }

    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    pub fn piece(&self, number: usize) -> Piece {
        self.pieces[number]
    }

    pub fn file(&self, file: u32) -> &Path {
        &self.files[file as usize]
    }

    pub fn path(&self, number: usize) -> &Path {
        &self.files[self.pieces[number].file as usize]
    }

    /// Why a piece can't be read, if that is known already.
    pub fn damage(&self, number: usize) -> Option<&Problem> {
        let found = self.damaged.binary_search_by_key(&number, |(number, _)| *number);
        found.ok().map(|place| &self.damaged[place].1)
    }

    /// The location of a record, for users.
    pub fn name(&self, number: usize) -> Arc<str> {
        let offset = self.pieces[number].offset;
        format!("{} at index {offset}", self.path(number).display()).into()
    }

    /// The file of a piece, after checking that it is long enough.
    pub fn opened(&self, number: usize) -> Result<Arc<Opened>> {
        if let Some(reason) = self.damage(number) {
            return Err(broken(reason.clone()));
        }
        let piece = self.pieces[number];
        let found = self.open(piece.file)?;
        match piece.offset.checked_add(piece.length) {
            Some(end) if end <= found.size => Ok(found),
            _ => Err(broken(RecordFault::BeyondEnd {
                length: piece.length,
                offset: piece.offset,
                size: found.size,
            })),
        }
    }

    /// One of the files, opened.
    pub fn open(&self, file: u32) -> Result<Arc<Opened>> {
        let lock = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut opened = lock();
            if let Some(place) = opened.iter().rposition(|(number, _)| *number == file) {
                let found = opened[place].1.clone();
                if place + OPEN_FILES / 2 < opened.len()
                    && let Some(entry) = opened.remove(place)
                {
                    opened.push_back(entry);
                }
                return Ok(found);
            }
        }
        // Two threads may open the same file, which is harmless.
        let found = Arc::new(Opened::open(&self.files[file as usize])?);
        let mut opened = lock();
        while opened.len() >= OPEN_FILES {
            opened.pop_front();
        }
        opened.push_back((file, found.clone()));
        Ok(found)
    }

    /// Calls `take` with the bytes of a piece.
    pub fn with_bytes<T>(&self, number: usize, take: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        thread_local! {
            static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let opened = self.opened(number)?;
        let piece = self.pieces[number];
        let length = piece.length as usize;
        let mut bytes = BYTES.with_borrow_mut(std::mem::take);
        if bytes.len() < length {
            bytes.clear();
            bytes.try_reserve(length).map_err(|_| Cause::Memory { bytes: length })?;
            bytes.resize(length, 0);
        }
        opened.read(piece.offset, &mut bytes[..length])?;
        let taken = take(&bytes[..length]);
        if bytes.len() <= SCRATCH {
            BYTES.set(bytes);
        }
        taken
    }

    /// Identifies a data set, by the names of its files and by its pieces.
    pub fn hash(&self) -> Hash {
        let mut hash = Hash(self.pieces.len() as u64);
        for file in &self.files {
            // Without the folder, since a data set may be moved.
            hash.bytes(file.file_name().unwrap_or_default().as_bytes());
        }
        for piece in &self.pieces {
            hash.word(u64::from(piece.file));
            hash.word(piece.offset);
            hash.word(piece.length);
        }
        for (number, _) in &self.damaged {
            hash.word(!*number as u64);
        }
        hash
    }
}

/// The results of `look` for all files, in order. With `tolerant`, a file that can't be read to its
/// end is not an error: what was found before that is returned, along with the damage. Problems of
/// the system are always errors.
pub fn look_through<T: Default + Send>(
    files: &[PathBuf],
    tolerant: bool,
    look: impl Fn(usize, &Path, &mut T) -> Result<(), Damage> + Sync,
) -> Result<Vec<(T, Option<Damage>)>, Unreadable> {
    let (next, context) = (AtomicUsize::new(0), current());
    let threads = if files.iter().any(|file| is_url(file)) { REMOTE_THREADS } else { THREADS };
    let done = Mutex::new(Vec::with_capacity(files.len()));
    let work = || {
        while let Some((index, path)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            files.get(index).map(|path| (index, path))
        } {
            let mut found = T::default();
            let damage = look(index, path, &mut found).err();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, found, damage));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(files.len()) {
            // If no thread can be started, this one does the work.
            if has_room_for_thread() {
                let (context, work) = (context.clone(), &work);
                let run = move || within(context, work);
                let _ = thread::Builder::new().spawn_scoped(scope, run);
            }
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, ..)| *index);
    let result = |(_, found, damage)| match damage {
        Some(Damage { error, .. }) if !tolerant || error.system => Err(error),
        damage => Ok((found, damage)),
    };
    done.into_iter().map(result).collect()
}

/// The bytes of a list or a manifest.
pub fn read_text(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let read = Opened::open_whole(path).and_then(|opened| opened.bytes());
    read.map_err(|cause| Unreadable::of(path, cause))
}

/// The bytes of an index.
pub fn read_index(path: &Path) -> Result<Vec<u8>, Unreadable> {
    read_text(path).map_err(|error| error.option("index"))
}

/// Adds the lines of an index, two integers each, up to the first invalid one.
pub fn parse_pairs(
    path: &Path,
    text: &[u8],
    pairs: &mut Vec<(u64, u64)>,
) -> Result<(), Unreadable> {
    for (line, text) in text.split(|&byte| byte == b'\n').enumerate() {
        let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let pair = match (words.next(), words.next(), words.next()) {
            (None, ..) => continue,
            (Some(first), Some(second), None) => whole(first).zip(whole(second)),
            _ => None,
        };
        let fail = || {
            let (line, text) = (line + 1, shown(text));
            Unreadable::new(path, RecordFault::IndexLine { line, text }).option("index")
        };
        let pair = pair.ok_or_else(fail)?;
        append(pairs, &[pair]).map_err(|cause| Unreadable::of(path, cause).option("index"))?;
    }
    Ok(())
}

/// A non-negative decimal integer.
pub fn whole(digits: &[u8]) -> Option<u64> {
    let plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}

/// An excerpt of a file, for a message.
pub fn shown(text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).trim().to_owned();
    if text.len() > 80 { shown + "..." } else { shown }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_index_is_pairs_of_numbers() {
        let path = Path::new("a.idx");
        let parsed = |text: &str| {
            let mut pairs = vec![];
            let error = parse_pairs(path, text.as_bytes(), &mut pairs).err();
            (pairs, error)
        };
        assert_eq!(parsed("0 5\n\n 5\t7 \r\n").0, [(0, 5), (5, 7)]);
        assert_eq!(parsed("").0, []);
        for text in ["0", "0 1 2", "x 1", "-1 5", "0 99999999999999999999999", "0 1.5", "\u{ff}"] {
            let (before, error) = parsed(&format!("0 5\n{text}\n"));
            assert_eq!(before, [(0, 5)]);
            let problem = error.unwrap().problem;
            assert!(problem.figures.contains(&("line", 2.into())), "{text}: {problem}");
        }
    }

    #[test]
    fn pieces_outside_of_the_file_are_refused() {
        let path = std::env::temp_dir().join(format!("penstock-ranges-{}", std::process::id()));
        fs::write(&path, b"0123456789").unwrap();
        let at = |offset, length| Piece { file: 0, offset, length };
        let mut ranges = Ranges::new(vec![path.clone()]);
        ranges.extend([at(2, 3), at(8, 3), at(u64::MAX, 2), at(10, 0)]);
        let sound = ranges.hash().finish();
        ranges.push_damage(0, Unreadable::new(Path::new("index"), RecordFault::Unended).into());
        assert_ne!(sound, ranges.hash().finish());
        let read = |number| ranges.with_bytes(number, |bytes| Ok(bytes.to_vec()));
        assert_eq!(read(0).unwrap(), b"234");
        assert_eq!(read(3).unwrap(), b"");
        assert!(read(1).is_err() && read(2).is_err());
        let problem = RecordFault::Unended.into();
        let reason = RecordFault::Index { path: "index".into(), problem }.into();
        assert!(matches!(read(4), Err(Cause::File { problem }) if problem == reason));
        fs::write(&path, b"012").unwrap();
        assert!(read(0).is_err());
        fs::remove_file(&path).unwrap();
    }
}
