//! Tar archives of samples: files that follow one another and have the same name, up to the first
//! dot, are the components of a sample; what follows the dot is the component's extension.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::fetch::Source;
use super::files::Hash;
use super::ranges::{
    Opened, Piece, Ranges, Result, Unreadable, broken, look_through, read_index, shown, whole,
};
use super::tar;
use crate::kernels::Allocate;
use crate::value::{DType, Desc, Sample};

/// What becomes of samples without one of the wanted components.
#[derive(Clone, Copy, PartialEq)]
pub enum Missing {
    /// It is empty.
    Empty,
    /// The sample is left out.
    Skip,
    /// It is an error.
    Refuse,
}

/// Which components are wanted.
pub struct Wanted {
    /// For each output, the extensions that it may have.
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

/// One of the outputs.
pub struct Component {
    members: Arc<Members>,
    /// For each sample, the member's number.
    picks: Vec<u32>,
    dtype: DType,
}

/// Of a component that the sample does not have.
const NONE: u32 = u32::MAX;

/// The files in all archives that are wanted.
struct Members {
    ranges: Ranges,
    names: Vec<u8>,
    /// Where each name ends.
    ends: Vec<usize>,
}

/// Opens archives: a component for each of the outputs. Without an index, the archives are looked
/// through.
pub fn open_archives(
    files: Vec<PathBuf>,
    index: Option<&[PathBuf]>,
    wanted: &Wanted,
    dtypes: &[DType],
) -> Result<Vec<Component>, Unreadable> {
    let found = look_through(&files, |number, path| {
        let opened = Opened::open(path).map_err(|cause| Unreadable::of(path, cause))?;
        let mut found = Found::new(wanted);
        match index.and_then(|index| index.get(number)) {
            Some(index) => found.add_index(index, &read_index(index)?, opened.size)?,
            None => found.add_archive(&opened).map_err(|cause| Unreadable::of(path, cause))?,
        }
        Ok((found.members, found.rows))
    })?;
    let outputs = wanted.extensions.len();
    let mut columns = vec![Vec::new(); outputs];
    let (mut pieces, mut names, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for (file, (members, rows)) in (0..).zip(found) {
        let too_many = || Unreadable::new(Path::new(""), "there are more than 2^32 components");
        let before = u32::try_from(pieces.len()).map_err(|_| too_many())?;
        let total = pieces.len() + members.len();
        u32::try_from(total).ok().filter(|&total| total < NONE).ok_or_else(too_many)?;
        for member in members {
            pieces.push(Piece { file, offset: member.offset, length: member.size });
            names.extend_from_slice(&member.name);
            ends.push(names.len());
        }
        for (place, pick) in rows.into_iter().enumerate() {
            let pick = if pick == NONE { NONE } else { pick + before };
            columns[place % outputs].push(pick);
        }
    }
    let members = Arc::new(Members { ranges: Ranges::new(files, pieces), names, ends });
    let components = columns.into_iter().zip(dtypes);
    let component = |(picks, &dtype)| Component { members: members.clone(), picks, dtype };
    Ok(components.map(component).collect())
}

/// Tells data sets apart: by the components and their names.
pub fn fingerprint(components: &[Component]) -> u64 {
    let mut hash = match components.first() {
        Some(first) => {
            let mut hash = first.members.ranges.hash();
            hash.bytes(&first.members.names);
            hash
        }
        None => Hash(0),
    };
    for component in components {
        component.picks.iter().for_each(|&pick| hash.word(u64::from(pick)));
    }
    hash.finish()
}

impl Component {
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

impl Source for Component {
    fn len(&self) -> usize {
        self.picks.len()
    }

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
            let name = self.dtype.name();
            return Err(broken(format!(
                "the component has {length} bytes, which is no whole number of {name} with \
                 {itemsize} bytes each"
            )));
        }
        let mut space = allocate(0, Desc::new(self.dtype, &[length / itemsize]))?;
        opened.read(offset, space.bytes())?;
        Ok(smallvec![space.into_sample()?])
    }

    fn name(&self, number: usize) -> Arc<str> {
        let pick = self.picks[number];
        if pick == NONE {
            return "".into();
        }
        let (pick, members) = (pick as usize, &*self.members);
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
}

/// What is found in one archive.
struct Found<'a> {
    wanted: &'a Wanted,
    members: Vec<Member>,
    /// A row of members for each sample, by output.
    rows: Vec<u32>,
    row: SmallVec<[u32; 8]>,
}

impl<'a> Found<'a> {
    fn new(wanted: &'a Wanted) -> Found<'a> {
        let row = smallvec![NONE; wanted.extensions.len()];
        Found { wanted, members: vec![], rows: vec![], row }
    }

    /// Adds a component to the sample that is being put together. Of several that fit an output,
    /// the first one counts.
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
            self.members.push(Member { offset, size, name: name.to_vec() });
        }
    }

    /// Ends a sample. The error is what it is missing.
    fn finish(&mut self) -> Result<(), String> {
        let missing = self.row.iter().position(|&pick| pick == NONE);
        match (self.wanted.missing, missing) {
            (Missing::Refuse, Some(output)) => {
                let wanted = self.wanted.extensions[output].iter();
                let wanted: Vec<_> = wanted.map(|wanted| shown(wanted)).collect();
                return Err(wanted.join(";"));
            }
            (Missing::Skip, Some(_)) => {}
            _ => self.rows.extend_from_slice(&self.row),
        }
        self.row.fill(NONE);
        Ok(())
    }

    fn add_archive(&mut self, file: &Opened) -> Result<()> {
        fn underfull(base: &[u8], missing: &str) -> crate::value::Cause {
            broken(format!("sample {:?} has no component {missing:?}", shown(base)))
        }
        let mut base: Option<Vec<u8>> = None;
        tar::for_each_file(file, |name, offset, size| {
            let Some((start, extension)) = split(name) else { return Ok(()) };
            if let Some(base) = base.take_if(|base| base != start) {
                self.finish().map_err(|missing| underfull(&base, &missing))?;
            }
            base.get_or_insert_with(|| start.to_vec());
            self.add(extension, name, offset, size);
            Ok(())
        })?;
        match base {
            Some(base) => self.finish().map_err(|missing| underfull(&base, &missing)),
            None => Ok(()),
        }
    }

    /// The index has a version and the number of samples on its first line. Then, on a line for
    /// each sample, for each component its extension, place, size and, from version 1.2 on, name.
    fn add_index(&mut self, index: &Path, text: &[u8], archive: u64) -> Result<(), Unreadable> {
        let mut lines = text.split(|&byte| byte == b'\n').enumerate();
        let words = |line: &'_ [u8]| -> Vec<Vec<u8>> {
            let words = line.split(u8::is_ascii_whitespace);
            words.filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
        };
        let first = lines.next().map(|(_, line)| words(line)).unwrap_or_default();
        let wrong = |line: usize, problem: &str| {
            Unreadable::new(index, format!("line {} {problem}", line + 1))
        };
        let (named, count) = match &first[..] {
            [version, count] if version == b"v1.2" => (true, whole(count)),
            [version, count] if version == b"v1.1" => (false, whole(count)),
            _ => return Err(wrong(0, "should be v1.1 or v1.2, and the number of samples")),
        };
        let count = count.filter(|&count| count > 0);
        let count = count.ok_or_else(|| wrong(0, "should have a positive number of samples"))?;
        for number in 0..count {
            let Some((line, text)) = lines.next() else {
                let problem = format!("should have {count} samples, but it ends after {number}");
                return Err(Unreadable::new(index, problem));
            };
            let words = words(text);
            let each = if named { 4 } else { 3 };
            if words.is_empty() || !words.len().is_multiple_of(each) {
                let form =
                    if named { "extension, place, size, name" } else { "extension, place, size" };
                return Err(wrong(line, &format!("should have for each component: {form}")));
            }
            for component in words.chunks_exact(each) {
                let (Some(offset), Some(size)) = (whole(&component[1]), whole(&component[2]))
                else {
                    return Err(wrong(line, "should have the place and the size in digits"));
                };
                if !offset.is_multiple_of(tar::BLOCK) {
                    let problem = format!("has the place {offset}, which is no multiple of 512");
                    return Err(wrong(line, &problem));
                }
                if offset.checked_add(size).is_none_or(|end| end > archive) {
                    let problem = format!(
                        "has {size} bytes from byte {offset} on, but the archive has {archive} only"
                    );
                    return Err(wrong(line, &problem));
                }
                let name = component.get(3).map_or(&b""[..], |name| name);
                self.add(&component[0], name, offset, size);
            }
            let underfull = |missing| wrong(line, &format!("has no component {missing:?}"));
            self.finish().map_err(underfull)?;
        }
        Ok(())
    }
}

/// The name that a sample's files share, and the extension. Hidden files are no components.
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
