//! Samples that come in groups, such as the row groups of Parquet files: what is read together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::columns::ColumnFault;
use super::files::Hash;
use super::ranges::{Damage, Opened, Ranges, Unreadable, broken};
use super::source::Result;
use crate::value::Problem;

/// Groups of samples in files. The numbers of samples follow the order of groups.
pub struct Groups {
    ranges: Ranges,
    groups: Vec<Group>,
    /// The end of each group, as a number of samples.
    ends: Vec<usize>,
}

struct Group {
    file: u32,
    /// The number of its first sample in its file.
    first: usize,
    /// If the group stands for the unreadable part of a file.
    damage: Option<Problem>,
}

/// What was found in a file of a table.
pub struct InFile<C, P> {
    /// The columns to read, if the file tells.
    pub columns: Option<C>,
    /// Its groups.
    pub parts: Vec<P>,
    /// What is wrong with the rest of it.
    pub damage: Option<Damage>,
}

/// The groups of files that have the same columns.
pub struct Tables<C, P> {
    pub groups: Groups,
    /// The columns of the first file that tells; none if there are no files.
    pub columns: C,
    /// For each of the groups what belongs to it; nothing for those that can't be read.
    pub parts: Vec<Option<P>>,
}

/// How files of tables are joined.
pub struct Joining<C, P> {
    /// The column that another file has differently.
    pub differing: fn(&C, &C) -> Option<String>,
    pub rows: fn(&P) -> usize,
    pub too_many: fn() -> Problem,
}

impl<C: Clone + Default, P> Tables<C, P> {
    /// With `tolerant`, a single sample stands for the unreadable part of a file.
    pub fn join(
        files: Vec<PathBuf>,
        found: impl IntoIterator<Item = InFile<C, P>>,
        tolerant: bool,
        joining: &Joining<C, P>,
    ) -> Result<Tables<C, P>, Unreadable> {
        let mut groups = Groups::new(files.clone());
        let mut parts = Vec::new();
        let mut first: Option<(usize, C)> = None;
        let mut refused = None;
        for (number, InFile { columns, parts: inside, damage }) in found.into_iter().enumerate() {
            let path = &files[number];
            let mut error = damage.map(|Damage { error, .. }| error);
            if let Some(columns) = columns {
                let (before, wanted) = first.get_or_insert_with(|| (number, columns.clone()));
                if let Some(column) = (joining.differing)(wanted, &columns) {
                    let file = files[*before].display().to_string();
                    error = Some(Unreadable::new(path, ColumnFault::Differs { column, file }));
                } else {
                    for part in inside {
                        if !groups.push(number as u32, (joining.rows)(&part)) {
                            return Err(Unreadable::new(path, (joining.too_many)()));
                        }
                        parts.push(Some(part));
                    }
                }
            }
            match error {
                None => {}
                Some(error) if tolerant => {
                    groups.push_damage(number as u32, error.clone());
                    parts.push(None);
                    refused.get_or_insert(error);
                }
                Some(error) => return Err(error),
            }
        }
        let columns = match (first, refused) {
            (Some((_, columns)), _) => columns,
            // Of which types samples would be, no file tells.
            (None, Some(error)) => return Err(error),
            (None, None) => C::default(),
        };
        Ok(Tables { groups, columns, parts })
    }
}

/// The first item that two lists don't have in common.
pub fn differing<'a, T>(
    items: &'a [T],
    others: &'a [T],
    same: impl Fn(&T, &T) -> bool,
) -> Option<&'a T> {
    let mut pairs = items.iter().zip(others);
    let unlike = pairs.find(|(one, other)| !same(one, other)).map(|(one, _)| one);
    unlike.or_else(|| items.get(others.len())).or_else(|| others.get(items.len()))
}

/// Where a sample is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    pub group: usize,
    pub row: usize,
}

impl Groups {
    pub fn new(files: Vec<PathBuf>) -> Groups {
        Groups { ranges: Ranges::new(files), groups: vec![], ends: vec![] }
    }

    /// Adds a group of samples; those of a file follow each other. `false` if there are too many.
    #[must_use]
    pub fn push(&mut self, file: u32, rows: usize) -> bool {
        self.add(file, rows, None)
    }

    /// Adds a single sample that can't be read, for the rest of a file.
    pub fn push_damage(&mut self, file: u32, error: Unreadable) {
        let reason = error.reason(self.ranges.file(file));
        let _ = self.add(file, 1, Some(reason));
    }

    fn add(&mut self, file: u32, rows: usize, damage: Option<Problem>) -> bool {
        // Numbers of samples must fit into Python's 64 bits.
        let Some(end) = self.len().checked_add(rows).filter(|&end| end < 1 << 62) else {
            return false;
        };
        let before = self.groups.last().filter(|group| group.file == file);
        let start = self.ends.len().checked_sub(2).map_or(0, |place| self.ends[place]);
        let first = before.map_or(0, |group| group.first + (self.len() - start));
        self.groups.push(Group { file, first, damage });
        self.ends.push(end);
        true
    }

    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Where a sample is; an error if it stands for what can't be read.
    pub fn spot(&self, number: usize) -> Result<Spot> {
        let spot = self.find(number);
        match &self.groups[spot.group].damage {
            None => Ok(spot),
            Some(reason) => Err(broken(reason.clone())),
        }
    }

    fn find(&self, number: usize) -> Spot {
        let group = self.ends.partition_point(|&end| end <= number);
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        Spot { group, row: number - start }
    }

    /// The file of a group.
    pub fn open(&self, group: usize) -> Result<Arc<Opened>> {
        self.ranges.open(self.groups[group].file)
    }

    pub fn path(&self, group: usize) -> &Path {
        self.ranges.file(self.groups[group].file)
    }

    /// The location of a sample, for users.
    pub fn name(&self, number: usize) -> Arc<str> {
        let spot = self.find(number);
        let row = self.groups[spot.group].first + spot.row;
        format!("{} at row {row}", self.path(spot.group).display()).into()
    }

    /// Identifies a data set, by the names of its files and the sizes of its groups.
    pub fn hash(&self) -> Hash {
        let mut hash = self.ranges.hash();
        for (group, &end) in self.groups.iter().zip(&self.ends) {
            hash.word(u64::from(group.file) << 1 | u64::from(group.damage.is_some()));
            hash.word(end as u64);
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::read::ReadFault;

    #[test]
    fn samples_are_found_in_their_groups() {
        let mut groups = Groups::new(vec!["a".into(), "b".into()]);
        assert!(groups.push(0, 3) && groups.push(0, 0) && groups.push(0, 2));
        groups.push_damage(0, Unreadable::new(Path::new("a"), ReadFault::Folder));
        assert!(groups.push(1, 1) && !groups.push(1, usize::MAX));
        let spots: Vec<_> = (0..7).map(|n| groups.find(n)).map(|s| (s.group, s.row)).collect();
        assert_eq!(spots, [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (3, 0), (4, 0)]);
        assert!(groups.spot(5).is_err() && groups.spot(6).is_ok());
        let names: Vec<_> = [0, 4, 5, 6].map(|n| groups.name(n).to_string()).into();
        assert_eq!(names, ["a at row 0", "a at row 4", "a at row 5", "b at row 0"]);
    }
}
