//! A set of files with labels, stored as one block of text and a few arrays.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::glob::Globs;
use super::list::{ListError, ListFault, parse_list};
use super::listing::{list, list_with_root};
use super::options::{Bytes, Names, Options};
use super::ranges::{Unreadable, read_text};
use super::read::read_version;
use super::remote::{self, is_url, note};
use super::source::{OpenError, Output, Part, Result, Source, in_a_row};
use crate::kernels::Allocate;
use crate::value::{DType, Origin, Sample};

/// Files by number. Names are relative to a root, or absolute.
#[derive(Default)]
pub struct Files {
    root: PathBuf,
    names: Vec<u8>,
    /// The end of each name.
    ends: Vec<usize>,
    labels: Vec<i32>,
    /// What is known of the versions of files that are named by URLs; empty if nothing is.
    versions: Vec<u64>,
}

impl Files {
    pub fn new(root: PathBuf) -> Files {
        Files { root, ..Files::default() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn push(&mut self, name: &[u8], label: i32) {
        self.names.extend_from_slice(name);
        self.ends.push(self.names.len());
        self.labels.push(label);
    }

    /// Adds a file of which the version is known. All are added so, or none.
    pub fn push_version(&mut self, name: &[u8], label: i32, version: u64) {
        self.push(name, label);
        self.versions.push(version);
    }

    /// Distinguishes a file from others that had its name.
    pub fn version(&self, number: usize) -> u64 {
        self.versions.get(number).copied().unwrap_or(0)
    }

    /// Adds files with the same label. Their names are concatenated; `ends` has the end of each.
    pub fn append(&mut self, names: &[u8], ends: &[usize], label: i32) {
        let start = self.names.len();
        self.names.extend_from_slice(names);
        self.ends.extend(ends.iter().map(|end| start + end));
        self.labels.resize(self.ends.len(), label);
    }

    pub fn reserve(&mut self, files: usize, bytes: usize) {
        self.names.reserve(bytes);
        self.ends.reserve(files);
        self.labels.reserve(files);
    }

    pub fn name_bytes(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.names[start..self.ends[number]]
    }

    pub fn path(&self, number: usize) -> Cow<'_, Path> {
        let name = Path::new(OsStr::from_bytes(self.name_bytes(number)));
        match self.root.as_os_str().is_empty() || is_url(name) {
            true => Cow::Borrowed(name),
            false => Cow::Owned(self.root.join(name)),
        }
    }

    pub fn label(&self, number: usize) -> i32 {
        self.labels[number]
    }

    /// The files given by options: a `list` of names, or `files`, in a `root`.
    fn named(options: &mut Options, names: Names) -> Result<Files, OpenError> {
        let mut files = Files::new(options.take("root")?);
        let labels: Option<Vec<i32>> = options.take("labels")?;
        let count = names.ends.len();
        files.labels = match labels {
            Some(labels) => labels,
            None => (0..i32::try_from(count).unwrap_or(i32::MAX)).collect(),
        };
        if files.labels.len() != count {
            return Err(OpenError::Options("there must be a label for each file".into()));
        }
        (files.names, files.ends) = (names.text, names.ends);
        Ok(files)
    }

    /// The files in `files`, in the lines of the text file `list`, or in `root` and its folders
    /// those that match `pattern`; without labels.
    pub fn chosen(options: &mut Options) -> Result<Files, OpenError> {
        let mut files = Files::new(options.take("root")?);
        if let Some(names) = options.take::<Option<Names>>("files")? {
            names.iter().for_each(|name| files.push(name, 0));
            return Ok(files);
        }
        if let Some(list) = options.take::<Option<PathBuf>>("list")? {
            let text = read_text(&list).map_err(|error| error.option("list"))?;
            note(&text);
            for line in text.split(|&byte| byte == b'\n') {
                let name = line.strip_suffix(b"\r").unwrap_or(line);
                if !name.trim_ascii().is_empty() {
                    files.push(name, 0);
                }
            }
            return Ok(files);
        }
        let pattern: Bytes = options.take("pattern")?;
        let index: Option<PathBuf> = options.take("index")?;
        let globs = Globs::new(&[&pattern.0], false);
        Ok(match is_url(files.root()) {
            true => remote::list_with_root(files.root(), index.as_deref(), &globs)?,
            false => list_with_root(files.root(), &globs)?,
        })
    }
}

/// Opens all files below the URL `root`, however deep. There may be none.
pub fn open_below(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let root: PathBuf = options.take("root")?;
    Ok(Arc::new(remote::list_below(&root)?))
}

/// Opens the files in `files`, in the text file `list`, or in the folders of `root`.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    if let Some(names) = options.take("files")? {
        return Ok(Arc::new(Files::named(options, names)?));
    }
    let root: PathBuf = options.take("root")?;
    if let Some(list) = options.take::<Option<PathBuf>>("list")? {
        let text = read_text(&list).map_err(|error| error.option("list"))?;
        let mut files = Files::new(root);
        note(&text);
        parse_list(&text, &mut files).map_err(|bad| {
            let ListError { line, text, fault } = bad;
            let fault = ListFault::Line { line, text, problem: fault.into() };
            Unreadable::new(&list, fault).option("list")
        })?;
        return Ok(Arc::new(files));
    }
    let ignore_case = options.take("ignore_case")?;
    let globs = |patterns: Names| Globs::new(&patterns.iter().collect::<Vec<_>>(), ignore_case);
    let patterns = globs(options.take("patterns")?);
    let folders = options.take::<Option<Names>>("folders")?.map(globs);
    let index: Option<PathBuf> = options.take("index")?;
    Ok(Arc::new(match is_url(&root) {
        true => remote::list(&root, index.as_deref(), folders.as_ref(), &patterns)?,
        false => list(&root, folders.as_ref(), &patterns)?,
    }))
}

impl Source for Files {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        Ok(smallvec![read_version(&self.path(number), self.version(number), allocate)?])
    }

    fn outputs(&self) -> Vec<Part> {
        let data = Output::new(DType::U8, 1);
        vec![Part::Fetched(smallvec![data]), Part::Ready(Output::uniform(DType::I32, 1))]
    }

    fn ready(&self, numbers: &[usize], _: usize) -> Result<Vec<Sample>> {
        let label = |&number: &usize| std::slice::from_ref(&self.labels[number]);
        in_a_row(&numbers.iter().map(label).collect::<Vec<_>>())
    }

    /// Depends on names, labels and their order, but not on the root.
    fn fingerprint(&self) -> u64 {
        let mut hash = Hash::new(self.ends.len() as u64);
        hash.bytes(&self.names);
        self.ends.iter().for_each(|&end| hash.word(end as u64));
        self.labels.iter().for_each(|&label| hash.word(label as u64));
        hash.finish()
    }

    fn name(&self, number: usize) -> Arc<str> {
        String::from_utf8_lossy(self.name_bytes(number)).into()
    }

    fn origin(&self, number: usize, _: usize) -> Origin {
        Origin::new(self.path(number).to_string_lossy().into(), &self.name(number))
    }
}

/// A fast hash: a few instructions per eight bytes. Not collision-resistant.
pub struct Hash(pub u64);

impl Hash {
    pub fn new(seed: u64) -> Hash {
        Hash(seed)
    }

    pub fn word(&mut self, word: u64) {
        let mixed = u128::from(self.0 ^ word) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
        self.0 = (mixed as u64) ^ ((mixed >> 64) as u64) ^ 0x2545_F491_4F6C_DD1D;
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| self.word(u64::from_le_bytes(word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }

    pub fn finish(mut self) -> u64 {
        self.word(0);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[(&str, i32)]) -> Files {
        let mut files = Files::new("root".into());
        names.iter().for_each(|(name, label)| files.push(name.as_bytes(), *label));
        files
    }

    #[test]
    fn names_and_paths_are_those_that_were_given() {
        let mut files = files(&[("a/1.jpg", 0), ("/abs/2.jpg", -7)]);
        files.append(b"b/3.jpgb/10.jpg", &[7, 15], 5);
        assert_eq!(files.len(), 4);
        assert_eq!(files.path(0), Path::new("root/a/1.jpg"));
        assert_eq!(files.path(1), Path::new("/abs/2.jpg"));
        assert_eq!(&*files.name(2), "b/3.jpg");
        assert_eq!(&*files.name(3), "b/10.jpg");
        let origin = files.origin(3, 0);
        assert_eq!((origin.name(), origin.path()), ("b/10.jpg", "root/b/10.jpg"));
        assert_eq!(files.origin(1, 0).path(), "/abs/2.jpg");
        files.push(b"b/\xFFx", 0);
        assert_eq!(files.origin(4, 0).name(), "b/\u{FFFD}x");
        assert_eq!((files.label(1), files.label(3)), (-7, 5));
    }

    #[test]
    fn a_fingerprint_changes_with_names_labels_and_order() {
        let all = [
            files(&[("a", 0), ("b", 1)]),
            files(&[("b", 1), ("a", 0)]),
            files(&[("a", 0), ("b", 2)]),
            files(&[("ab", 0), ("", 1)]),
            files(&[("a", 0)]),
            files(&[]),
        ];
        let mut prints: Vec<u64> = all.iter().map(Source::fingerprint).collect();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), all.len());
        assert_eq!(all[0].fingerprint(), files(&[("a", 0), ("b", 1)]).fingerprint());
    }
}
