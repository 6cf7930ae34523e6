//! Listing a folder of folders: each is a class, its files are the samples.

use std::ffi::OsStr;
use std::fs::{FileType, read_dir};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

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
        folders.is_none_or(|globs| globs.matches(name)) && is_folder(path, kind)
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
                entries(&folder, |name, path, kind| files.matches(name) && !is_folder(path, kind));
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

/// Names one after another, and where each begins and ends.
#[derive(Default)]
struct Names {
    text: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Names {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().map(|&(start, end)| &self.text[start..end])
    }
}

/// The names in a folder that are wanted, sorted.
fn entries(
    folder: &Path,
    wanted: impl Fn(&[u8], &dyn Fn() -> PathBuf, Option<FileType>) -> bool,
) -> Result<Names, ListingError> {
    let fail = |error| ListingError { path: folder.to_path_buf(), error };
    let mut names = Names::default();
    for entry in read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().into_vec();
        if wanted(&name, &|| entry.path(), entry.file_type().ok()) {
            let start = names.text.len();
            names.text.extend_from_slice(&name);
            names.ends.push((start, names.text.len()));
        }
    }
    let Names { text, ends } = &mut names;
    ends.sort_unstable_by(|a, b| text[a.0..a.1].cmp(&text[b.0..b.1]));
    Ok(names)
}

/// Whether it is a folder, or a link to one.
fn is_folder(path: &dyn Fn() -> PathBuf, kind: Option<FileType>) -> bool {
    match kind {
        Some(kind) if !kind.is_symlink() => kind.is_dir(),
        _ => path().is_dir(),
    }
}
