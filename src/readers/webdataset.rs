//! Tar archives of samples: consecutive files with the same name up to the first dot are the
//! components of a sample; the rest of the name is the component's extension.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::files::Hash;
use super::options::{Bytes, Options};
use super::ranges::{
    Damage, Opened, Piece, Ranges, Result, Unreadable, broken, look_through, read_index, shown,
    whole,
};
use super::source::{OpenError, Output, Part, Source, fetched};
use super::tar;
use crate::kernels::Allocate;
use crate::value::{Cause, DType, Desc, Origin, Problem, Sample, problems};

problems! {
    /// What is wrong with an archive's samples, or with its index.
    pub enum ArchiveFault {
        TooMany,
        Elements { length: usize, dtype: &'static str, itemsize: usize },
        Component { sample: String, missing: String },
        Line { line: usize, problem: Problem },
        Version,
        NoSamples,
        Ends { count: u64, found: u64 },
        Words,
        NamedWords,
        Digits,
        Offset { offset: u64 },
        BeyondEnd { size: u64, offset: u64, archive: u64 },
        Missing { missing: String },
    }
}

/// What happens to samples that lack a wanted component.
#[derive(Clone, Copy, PartialEq)]
pub enum Missing {
    /// The component is empty.
    Empty,
    /// The sample is skipped.
    Skip,
    /// It is an error.
    Refuse,
}

/// The components to read.
pub struct Wanted {
    /// For each output, the extensions it accepts.
    pub extensions: Vec<Vec<Vec<u8>>>,
    pub ignore_case: bool,
    pub missing: Missing,
}

impl Wanted {
    fn fits(&self, output: usize, extension: &[u8]) -> bool {
        self.extensions[output].iter().any(|wanted| match self.ignore_case {
            true => wanted.eq_ignore_ascii_case(extension),
            false => wanted == extension,
        })
    }
}

/// An output.
pub struct Component {
    members: Arc<Members>,
    /// The number of the member, for each sample.
    picks: Vec<u32>,
    dtype: DType,
}

/// Stands for a component that the sample doesn't have.
const NONE: u32 = u32::MAX;

/// The wanted files of all archives.
struct Members {
    ranges: Ranges,
    names: Vec<u8>,
    /// The end of each name.
    ends: Vec<usize>,
}

/// Opens archives, and returns a component per output. Without an index, the archives are scanned.
/// With `tolerant`, a sample that can't be read stands for the unreadable part of an archive, and a
/// sample without a required component is one that can't be read.
pub fn open_archives(
    files: Vec<PathBuf>,
    index: Option<&[PathBuf]>,
    tolerant: bool,
    wanted: &Wanted,
    dtypes: &[DType],
) -> Result<Archives, Unreadable> {
    let found = look_through(&files, tolerant, |number, path, all: &mut (Vec<_>, Vec<_>)| {
        let mut found = Found::new(path, tolerant, wanted);
        let looked = found.look(index.and_then(|index| index.get(number)));
        if let Err(Damage { offset, error }) = &looked
            && tolerant
        {
            found.add_damaged(*offset, error.clone().reason(path));
        }
        *all = (found.members, found.rows);
        looked
    })?;
    let outputs = wanted.extensions.len();
    let mut columns = vec![Vec::new(); outputs];
    let mut ranges = Ranges::new(files);
    let (mut names, mut ends) = (Vec::new(), Vec::new());
    for (file, ((members, rows), _)) in (0..).zip(found) {
        let too_many = || Unreadable::new(Path::new(""), ArchiveFault::TooMany);
        let before = u32::try_from(ranges.len()).map_err(|_| too_many())?;
        let total = ranges.len() + members.len();
        u32::try_from(total).ok().filter(|&total| total < NONE).ok_or_else(too_many)?;
        for Member { offset, size, name, damage } in members {
            match damage {
                Some(reason) => ranges.push_damaged(file, offset, reason),
                None => ranges.extend([Piece { file, offset, length: size }]),
            }
            names.extend_from_slice(&name);
            ends.push(names.len());
        }
        for (place, pick) in rows.into_iter().enumerate() {
            let pick = if pick == NONE { NONE } else { pick + before };
            columns[place % outputs].push(pick);
        }
    }
    let members = Arc::new(Members { ranges, names, ends });
    let components = columns.into_iter().zip(dtypes);
    let component = |(picks, &dtype)| Component { members: members.clone(), picks, dtype };
    Ok(Archives(components.map(component).collect()))
}

/// Opens `files`, each with an optional index. For each output, `extensions` has those it accepts,
/// and `dtypes` its element type.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let (files, index): (Vec<PathBuf>, Option<Vec<PathBuf>>) =
        (options.take("files")?, options.take("index")?);
    let extensions: Vec<Vec<Bytes>> = options.take("extensions")?;
    let plain = |any: Vec<Bytes>| any.into_iter().map(|Bytes(extension)| extension).collect();
    let extensions: Vec<Vec<Vec<u8>>> = extensions.into_iter().map(plain).collect();
    let dtypes: Vec<DType> = options.take("dtypes")?;
    if dtypes.len() != extensions.len() || dtypes.is_empty() {
        return Err(OpenError::Options("there must be a dtype for each output".into()));
    }
    let choices = [("empty", Missing::Empty), ("skip", Missing::Skip), ("error", Missing::Refuse)];
    let missing = options.choice("missing", &choices)?;
    let wanted = Wanted { extensions, ignore_case: options.take("ignore_case")?, missing };
    let tolerant = options.take("tolerant")?;
    Ok(Arc::new(open_archives(files, index.as_deref(), tolerant, &wanted, &dtypes)?))
}

/// The samples of archives. Each component is a part of its own, so a damaged one doesn't affect
/// the others.
pub struct Archives(Vec<Component>);

impl Source for Archives {
    fn len(&self) -> usize {
        self.0.first().map_or(0, |component| component.picks.len())
    }

    fn name(&self, number: usize) -> Arc<str> {
        let mut names = self.0.iter().map(|component| component.name(number));
        names.find(|name| !name.is_empty()).unwrap_or_default()
    }

    fn origin(&self, number: usize, part: usize) -> Origin {
        self.0[part].name(number).into()
    }

    /// Depends on the components and their names.
    fn fingerprint(&self) -> u64 {
        let mut hash = match self.0.first() {
            Some(first) => {
                let mut hash = first.members.ranges.hash();
                hash.bytes(&first.members.names);
                hash
            }
            None => Hash(0),
        };
        for component in &self.0 {
            component.picks.iter().for_each(|&pick| hash.word(u64::from(pick)));
        }
        hash.finish()
    }

    fn outputs(&self) -> Vec<Part> {
        self.0.iter().flat_map(|component| fetched([Output::new(component.dtype, 1)])).collect()
    }

    fn fetch(
        &self,
        number: usize,
        part: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        self.0[part].read(number, allocate)
    }
}

impl Component {
    fn read(&self, number: usize, allocate: &Allocate<'_>) -> Result<SmallVec<[Sample; 1]>> {
        let pick = self.picks[number];
        if pick == NONE {
            return Ok(smallvec![allocate(0, Desc::new(self.dtype, &[0]))?.into_sample()?]);
        }
        let ranges = &self.members.ranges;
        let opened = ranges.opened(pick as usize)?;
        let Piece { offset, length, .. } = ranges.piece(pick as usize);
        let itemsize = self.dtype.size();
        let length = length as usize;
        if !length.is_multiple_of(itemsize) {
            let dtype = self.dtype.name();
            return Err(broken(ArchiveFault::Elements { length, dtype, itemsize }));
        }
        let mut buffer = allocate(0, Desc::new(self.dtype, &[length / itemsize]))?;
        opened.read(offset, buffer.bytes())?;
        Ok(smallvec![buffer.into_sample()?])
    }

    fn name(&self, number: usize) -> Arc<str> {
        let pick = self.picks[number];
        if pick == NONE {
            return "".into();
        }
        let (pick, members) = (pick as usize, &*self.members);
        if members.ranges.damage(pick).is_some() {
            return members.ranges.name(pick);
        }
        let start = if pick == 0 { 0 } else { members.ends[pick - 1] };
        let name = String::from_utf8_lossy(&members.names[start..members.ends[pick]]);
        let (path, offset) =
            (members.ranges.path(pick).display(), members.ranges.piece(pick).offset);
        format!("{path}:{offset}:{name}").into()
    }
}

struct Member {
    offset: u64,
    size: u64,
    name: Vec<u8>,
    /// Why it can't be read.
    damage: Option<Problem>,
}

/// The contents of an archive.
struct Found<'a> {
    archive: &'a Path,
    tolerant: bool,
    wanted: &'a Wanted,
    members: Vec<Member>,
    /// For each sample, a member per output.
    rows: Vec<u32>,
    row: SmallVec<[u32; 8]>,
}

impl<'a> Found<'a> {
    fn new(archive: &'a Path, tolerant: bool, wanted: &'a Wanted) -> Found<'a> {
        let row = smallvec![NONE; wanted.extensions.len()];
        Found { archive, tolerant, wanted, members: vec![], rows: vec![], row }
    }

    fn look(&mut self, index: Option<&PathBuf>) -> Result<(), Damage> {
        let opened = Opened::open(self.archive).map_err(|cause| self.unreadable(cause))?;
        match index {
            Some(index) => {
                let text = read_index(index)?;
                self.add_index(index, &text, opened.size).map_err(|error| {
                    let end = |member: &Member| member.offset.saturating_add(member.size);
                    Damage { offset: self.members.last().map_or(0, end), error }
                })
            }
            None => self.add_archive(&opened),
        }
    }

    fn unreadable(&self, cause: Cause) -> Unreadable {
        Unreadable::of(self.archive, cause)
    }

    /// Adds a component to the current sample. If several match an output, the first one counts.
    fn add(&mut self, extension: &[u8], name: &[u8], offset: u64, size: u64) {
        let number = self.members.len() as u32;
        let mut taken = false;
        for output in 0..self.row.len() {
            if self.row[output] == NONE && self.wanted.fits(output, extension) {
                self.row[output] = number;
                taken = true;
            }
        }
        if taken {
            self.members.push(Member { offset, size, name: name.to_vec(), damage: None });
        }
    }

    /// Adds a sample that can't be read.
    fn add_damaged(&mut self, offset: u64, reason: Problem) {
        let number = self.members.len() as u32;
        self.members.push(Member { offset, size: 0, name: vec![], damage: Some(reason) });
        self.rows.extend(self.row.iter().map(|_| number));
    }

    /// Finishes the sample that begins at `offset`. `underfull` says what it lacks.
    fn finish(
        &mut self,
        offset: u64,
        underfull: impl FnOnce(String) -> Unreadable,
    ) -> Result<(), Unreadable> {
        let missing = self.row.iter().position(|&pick| pick == NONE);
        match (self.wanted.missing, missing) {
            (Missing::Refuse, Some(output)) => {
                let wanted = self.wanted.extensions[output].iter();
                let wanted: Vec<_> = wanted.map(|wanted| shown(wanted)).collect();
                let error = underfull(wanted.join(";"));
                if !self.tolerant {
                    return Err(error);
                }
                self.add_damaged(offset, error.reason(self.archive));
            }
            (Missing::Skip, Some(_)) => {}
            _ => self.rows.extend_from_slice(&self.row),
        }
        self.row.fill(NONE);
        Ok(())
    }

    fn add_archive(&mut self, file: &Opened) -> Result<(), Damage> {
        let archive = self.archive;
        let underfull = |base: &[u8], missing| {
            Unreadable::new(archive, ArchiveFault::Component { sample: shown(base), missing })
        };
        /// A sample that may get more components.
        struct Begun {
            base: Vec<u8>,
            start: u64,
        }
        let mut begun: Option<Begun> = None;
        let mut end = 0;
        let walked = tar::for_each_file(file, |name, offset, size| {
            let Some((base, extension)) = split(name) else { return Ok(()) };
            if let Some(Begun { base, start }) = begun.take_if(|begun| begun.base != base) {
                let finished = self.finish(start, |missing| underfull(&base, missing));
                finished.map_err(|error| broken(error.problem))?;
            }
            begun.get_or_insert_with(|| Begun { base: base.to_vec(), start: offset });
            self.add(extension, name, offset, size);
            end = offset + size;
            Ok(())
        });
        match (walked, begun) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(Begun { base, start })) => {
                Ok(self.finish(start, |missing| underfull(&base, missing))?)
            }
            (Err(cause), begun) => {
                let error = self.unreadable(cause);
                let Some(Begun { start, .. }) = begun else {
                    return Err(Damage { offset: end, error });
                };
                // A component that the sample lacks may be in the unreadable part.
                if self.row.contains(&NONE) {
                    self.row.fill(NONE);
                    return Err(Damage { offset: start, error });
                }
                self.rows.extend_from_slice(&self.row);
                Err(Damage { offset: end, error })
            }
        }
    }

    /// The first line of an index has its version and the number of samples. Each further line is a
    /// sample: for each component its extension, offset, size and, from version 1.2 on, name.
    fn add_index(&mut self, index: &Path, text: &[u8], archive: u64) -> Result<(), Unreadable> {
        let mut lines = text.split(|&byte| byte == b'\n').enumerate();
        let words = |line: &'_ [u8]| -> Vec<Vec<u8>> {
            let words = line.split(u8::is_ascii_whitespace);
            words.filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
        };
        let first = lines.next().map(|(_, line)| words(line)).unwrap_or_default();
        let wrong = |line: usize, fault: ArchiveFault| {
            let (line, problem) = (line + 1, fault.into());
            Unreadable::new(index, ArchiveFault::Line { line, problem }).option("index")
        };
        let (named, count) = match &first[..] {
            [version, count] if version == b"v1.2" => (true, whole(count)),
            [version, count] if version == b"v1.1" => (false, whole(count)),
            _ => return Err(wrong(0, ArchiveFault::Version)),
        };
        let count = count.filter(|&count| count > 0);
        let count = count.ok_or_else(|| wrong(0, ArchiveFault::NoSamples))?;
        for number in 0..count {
            let Some((line, text)) = lines.next() else {
                let fault = ArchiveFault::Ends { count, found: number };
                return Err(Unreadable::new(index, fault).option("index"));
            };
            let words = words(text);
            let each = if named { 4 } else { 3 };
            if words.is_empty() || !words.len().is_multiple_of(each) {
                return Err(wrong(
                    line,
                    match named {
                        true => ArchiveFault::NamedWords,
                        false => ArchiveFault::Words,
                    },
                ));
            }
            let mut start = None;
            for component in words.chunks_exact(each) {
                let (Some(offset), Some(size)) = (whole(&component[1]), whole(&component[2]))
                else {
                    return Err(wrong(line, ArchiveFault::Digits));
                };
                if !offset.is_multiple_of(tar::BLOCK) {
                    return Err(wrong(line, ArchiveFault::Offset { offset }));
                }
                if offset.checked_add(size).is_none_or(|end| end > archive) {
                    return Err(wrong(line, ArchiveFault::BeyondEnd { size, offset, archive }));
                }
                start.get_or_insert(offset);
                let name = component.get(3).map_or(&b""[..], |name| name);
                self.add(&component[0], name, offset, size);
            }
            self.finish(start.unwrap_or(0), |missing| {
                wrong(line, ArchiveFault::Missing { missing })
            })?;
        }
        Ok(())
    }
}

/// The name that the files of a sample share, and the extension. Hidden files are ignored.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    match name[start..].iter().position(|&byte| byte == b'.') {
        Some(0) => None,
        Some(dot) => Some((&name[..start + dot], &name[start + dot + 1..])),
        None => Some((name, b"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_the_first_dot_of_the_file() {
        for (name, expected) in [
            ("a.jpg", Some(("a", "jpg"))),
            ("d.x/a.seg.png", Some(("d.x/a", "seg.png"))),
            ("d/.hidden.jpg", None),
            (".jpg", None),
            ("d.x/none", Some(("d.x/none", ""))),
            ("a.", Some(("a", ""))),
        ] {
            let expected = expected.map(|(base, ext)| (base.as_bytes(), ext.as_bytes()));
            assert_eq!(split(name.as_bytes()), expected, "{name}");
        }
    }
}
