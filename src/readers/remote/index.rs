//! Listings of what is below a URL, which may be saved: no worker has to list again.
//!
//! An index is a text: a line with its version and the URL, then a line for each entry with its
//! name, its size (`-` for a folder) and its ETag, separated by tabs.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::disk::version;
use super::{Entry, RemoteFault, current, is_url, list_folder, within};
use crate::readers::files::Files;
use crate::readers::glob::Globs;
use crate::readers::ranges::{Unreadable, read_text, whole};
use crate::value::{Cause, has_room_for_thread};

/// Folders are listed in parallel: a page of a thousand names takes a server some time.
const THREADS: usize = 64;

const HEAD: &str = "penstock-index 1\t";

/// The files below a URL and in its folders, and the folders, sorted by name.
#[derive(Default)]
struct Listed {
    entries: Vec<Entry>,
}

impl Listed {
    /// What is below `root`: as the index says if there is one, otherwise as the server says.
    fn open(root: &Path, index: Option<&Path>) -> Result<Listed, Unreadable> {
        let Some(index) = index else { return Listed::ask(root) };
        match is_url(index) || index.exists() {
            true => Listed::load(root, index),
            false => {
                let listed = Listed::ask(root)?;
                listed.save(root, index).map_err(|error| {
                    let system = error.kind() != ErrorKind::NotFound;
                    let fault = RemoteFault::Index { text: error.to_string() };
                    Unreadable { system, ..Unreadable::new(index, fault) }.option("index")
                })?;
                Ok(listed)
            }
        }
    }

    fn ask(root: &Path) -> Result<Listed, Unreadable> {
        let mut entries = list_folder(root).map_err(|cause| refused(root, cause))?;
        if entries.is_empty() {
            let text = "nothing is listed below it".into();
            return Err(refused(root, RemoteFault::NotFound { text }.into()));
        }
        let mut inner = list_folders(root, &folders(&entries))?;
        inner.retain(|entry| entry.size.is_some());
        entries.extend(inner);
        entries.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        Ok(Listed { entries })
    }

    fn load(root: &Path, index: &Path) -> Result<Listed, Unreadable> {
        let text = read_text(index).map_err(|error| error.option("index"))?;
        let fail = |fault: RemoteFault| Unreadable::new(index, fault).option("index");
        let text = std::str::from_utf8(&text).map_err(|_| fail(RemoteFault::NotText))?;
        let mut lines = text.lines().enumerate();
        let found = lines.next().and_then(|(_, line)| line.strip_prefix(HEAD));
        let found = found.ok_or_else(|| fail(RemoteFault::IndexLine { line: 1 }))?;
        let same = |a: &str, b: &str| a.trim_end_matches('/') == b.trim_end_matches('/');
        let wanted = root.to_string_lossy();
        if !same(found, &wanted) {
            let (root, found) = (wanted.into_owned(), found.to_owned());
            return Err(fail(RemoteFault::IndexRoot { root, found }));
        }
        let mut entries = Vec::new();
        for (line, text) in lines {
            let mut words = text.split('\t');
            let entry = (|| {
                let (name, size, etag) = (words.next()?, words.next()?, words.next()?);
                let size = match size {
                    "-" => None,
                    digits => Some(whole(digits.as_bytes())?),
                };
                (words.next().is_none() && !name.is_empty()).then(|| Entry {
                    name: name.into(),
                    size,
                    etag: etag.into(),
                })
            })();
            entries.push(entry.ok_or_else(|| fail(RemoteFault::IndexLine { line: line + 1 }))?);
        }
        Ok(Listed { entries })
    }

    /// Writes an index. Others see all of it, or nothing.
    fn save(&self, root: &Path, index: &Path) -> std::io::Result<()> {
        let mut text = format!("{HEAD}{}\n", root.display());
        for Entry { name, size, etag } in &self.entries {
            if name.contains(['\t', '\n', '\r']) {
                continue;
            }
            let size = size.map_or("-".into(), |size| size.to_string());
            text.push_str(&format!("{name}\t{size}\t{}\n", etag.replace(['\t', '\n', '\r'], " ")));
        }
        let mut new = index.as_os_str().to_owned();
        new.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(new);
        let written = fs::File::create(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, index));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

fn refused(url: &Path, cause: Cause) -> Unreadable {
    Unreadable::of(url, cause).option("root")
}

/// The names of the folders among the entries.
fn folders(entries: &[Entry]) -> Vec<String> {
    let folders = entries.iter().filter(|entry| entry.size.is_none());
    folders.map(|entry| entry.name.clone()).collect()
}

/// What is in folders of `root`, named by them, in no order.
fn list_folders(root: &Path, folders: &[String]) -> Result<Vec<Entry>, Unreadable> {
    let (next, context) = (AtomicUsize::new(0), current());
    let found = Mutex::new((Vec::new(), None));
    let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            match list_folder(&root.join(folder)) {
                Ok(mut inner) => {
                    for entry in &mut inner {
                        entry.name = format!("{folder}/{}", entry.name);
                    }
                    lock().0.extend(inner);
                }
                Err(cause) => {
                    lock().1.get_or_insert((root.join(folder), cause));
                    next.store(folders.len(), Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..THREADS.min(folders.len()) {
            // If no thread can be started, this one does the work.
            if has_room_for_thread() {
                let context = context.clone();
                let work = &work;
                let run = move || within(context, work);
                let _ = thread::Builder::new().spawn_scoped(scope, run);
            }
        }
        work();
    });
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        (inner, None) => Ok(inner),
        (_, Some((folder, cause))) => Err(refused(&folder, cause)),
    }
}

/// All files below `root`, sorted by name; there may be none.
pub fn list_below(root: &Path) -> Result<Files, Unreadable> {
    let mut level = list_folder(root).map_err(|cause| refused(root, cause))?;
    let mut entries = Vec::new();
    while !level.is_empty() {
        let deeper = folders(&level);
        entries.extend(level.into_iter().filter(|entry| entry.size.is_some()));
        level = list_folders(root, &deeper)?;
    }
    entries.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    let mut all = Files::new(root.to_path_buf());
    for entry in &entries {
        all.push_version(entry.name.as_bytes(), 0, entry_version(entry));
    }
    Ok(all)
}

fn entry_version(entry: &Entry) -> u64 {
    version(0, Some(&entry.etag), entry.size)
}

/// The files of the folders in `root`, as [`list`](crate::readers::listing::list) for folders of
/// the system.
pub fn list(
    root: &Path,
    index: Option<&Path>,
    folders: Option<&Globs>,
    files: &Globs,
) -> Result<Files, Unreadable> {
    let listed = Listed::open(root, index)?;
    let names = listed.entries.iter().filter(|entry| entry.size.is_none());
    let wanted = |name: &str| folders.is_none_or(|globs| globs.matches(name.as_bytes()));
    let classes: Vec<&str> = names.map(|entry| &*entry.name).filter(|name| wanted(name)).collect();
    let mut all = Files::new(root.to_path_buf());
    // Sorted by class: in the listing, `a-b` comes between `a` and `a/x`.
    let mut found: Vec<(usize, &str, &Entry)> = Vec::new();
    for entry in &listed.entries {
        let Some((folder, name)) = entry.name.split_once('/') else { continue };
        if let Ok(label) = classes.binary_search(&folder)
            && files.matches(name.as_bytes())
        {
            found.push((label, name, entry));
        }
    }
    found.sort_unstable_by(|(a, x, _), (b, y, _)| a.cmp(b).then(x.as_bytes().cmp(y.as_bytes())));
    for (label, _, entry) in found {
        let label = i32::try_from(label).unwrap_or(i32::MAX);
        all.push_version(entry.name.as_bytes(), label, entry_version(entry));
    }
    Ok(all)
}

/// The files in `root` itself, then those of its folders; deeper ones are ignored.
pub fn list_with_root(
    root: &Path,
    index: Option<&Path>,
    files: &Globs,
) -> Result<Files, Unreadable> {
    let listed = Listed::open(root, index)?;
    let mut all = Files::new(root.to_path_buf());
    let base = |name: &str| {
        files.matches(
            Path::new(OsStr::from_bytes(name.as_bytes()))
                .file_name()
                .unwrap_or_default()
                .as_bytes(),
        )
    };
    let own = listed.entries.iter().filter(|entry| entry.size.is_some() && base(&entry.name));
    let (mut inner, mut outer): (Vec<&Entry>, Vec<&Entry>) =
        own.partition(|entry| entry.name.contains('/'));
    outer.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    inner.sort_unstable_by_key(|entry| entry.name.split_once('/'));
    for entry in outer.into_iter().chain(inner) {
        all.push_version(entry.name.as_bytes(), 0, entry_version(entry));
    }
    Ok(all)
}
