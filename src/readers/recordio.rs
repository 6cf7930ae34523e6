//! MXNet's RecordIO files: images and labels.
//!
//! A record is a magic number, its length with three bits of flags, and the data, padded to four
//! bytes. Data that contains the magic number is split into parts there. The data begins with a
//! header: the number of labels that follow (0 if there is one label, in the header itself), and
//! ids.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::options::Options;
use super::ranges::{
    Damage, Opened, Piece, Ranges, RecordFault, Result, Unreadable, broken, look_through,
    parse_pairs, read_index,
};
use super::source::{OpenError, Output, Part, Source, fetched};
use crate::kernels::Allocate;
use crate::value::{DType, Desc, Sample, append, problems, with_room};

problems! {
    /// What is wrong with a record.
    pub enum RecordIoFault {
        Magic,
        Flags,
        Order,
        CutOff,
        Short { length: usize, left: usize },
        NoHeader { length: usize },
        Labels { count: usize, bytes: usize },
    }
}

const MAGIC: [u8; 4] = 0xCED7_230A_u32.to_le_bytes();

/// Encoded images and their labels.
pub struct RecordIo {
    ranges: Ranges,
}

impl RecordIo {
    /// Without an index, the files are scanned. A single index for several files refers to their
    /// concatenation. With `tolerant`, a single record that can't be read stands for the unreadable
    /// part of a file.
    pub fn open(
        files: Vec<PathBuf>,
        index: Option<&[PathBuf]>,
        tolerant: bool,
    ) -> Result<RecordIo, Unreadable> {
        if let Some([index]) = index
            && files.len() > 1
        {
            return RecordIo::open_as_one(files, index, tolerant);
        }
        let found = look_through(&files, tolerant, |number, path, (end, starts)| {
            let unreadable = |cause| Unreadable::of(path, cause);
            let opened = Opened::open(path).map_err(unreadable)?;
            match index.and_then(|index| index.get(number)) {
                Some(index) => (*end, *starts) = (opened.size, read_starts(index)?),
                None => scan(&opened, end, starts)
                    .map_err(|cause| Damage { offset: *end, error: unreadable(cause) })?,
            }
            Ok(())
        })?;
        let mut ranges = Ranges::new(files);
        for (file, ((end, starts), damage)) in (0..).zip(found) {
            ranges.extend(cut(file, end, &starts));
            if let Some(damage) = damage {
                ranges.push_damage(file, damage);
            }
        }
        Ok(RecordIo { ranges })
    }

    /// Opens files that share an index. If one is missing, records after it can't be found either.
    fn open_as_one(
        files: Vec<PathBuf>,
        index: &Path,
        tolerant: bool,
    ) -> Result<RecordIo, Unreadable> {
        let found = look_through(&files, tolerant, |_, path, size| {
            *size = Opened::open(path).map_err(|cause| Unreadable::of(path, cause))?.size;
            Ok(())
        })?;
        let mut ranges = Ranges::new(files);
        let mut starts = match read_starts(index) {
            Ok(starts) => starts,
            Err(error) if tolerant && !error.system => {
                ranges.push_damage(0, error.into());
                return Ok(RecordIo { ranges });
            }
            Err(error) => return Err(error),
        };
        let mut sizes = Vec::new();
        let mut missing = None;
        for (size, damage) in found {
            if damage.is_some() {
                let before: u64 = sizes.iter().sum();
                starts.retain(|&start| start < before);
                missing = damage;
                break;
            }
            sizes.push(size);
        }
        ranges.extend(spread(&sizes, &starts));
        if let Some(damage) = missing {
            ranges.push_damage(sizes.len() as u32, damage);
        }
        Ok(RecordIo { ranges })
    }
}

/// Opens `files`, each with an optional index.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let (files, index): (Vec<PathBuf>, Option<Vec<PathBuf>>) =
        (options.take("files")?, options.take("index")?);
    Ok(Arc::new(RecordIo::open(files, index.as_deref(), options.take("tolerant")?)?))
}

impl Source for RecordIo {
    fn len(&self) -> usize {
        self.ranges.len()
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        self.ranges.with_bytes(number, |record| {
            let joined;
            let data = match &parts(record)?[..] {
                [one] => one,
                many => {
                    joined = join(many, record.len())?;
                    &joined[..]
                }
            };
            let (labels, image) = labels(data)?;
            let mut buffer = allocate(0, Desc::new(DType::U8, &[image.len()]))?;
            buffer.bytes().copy_from_slice(image);
            let image = buffer.into_sample()?;
            let mut buffer = allocate(1, Desc::new(DType::F32, &[labels.len()]))?;
            for (place, &label) in buffer.elements().iter_mut().zip(labels) {
                *place = f32::from_le_bytes(label);
            }
            Ok(smallvec![image, buffer.into_sample()?])
        })
    }

    fn outputs(&self) -> Vec<Part> {
        fetched([Output::new(DType::U8, 1), Output::uniform(DType::F32, 1)])
    }

    fn fingerprint(&self) -> u64 {
        self.ranges.hash().finish()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.ranges.name(number)
    }
}

/// The offsets of records, from an index: lines of an id and an offset.
fn read_starts(index: &Path) -> Result<Vec<u64>, Unreadable> {
    let mut pairs = Vec::new();
    parse_pairs(index, &read_index(index)?, &mut pairs)?;
    let mut starts: Vec<u64> = pairs.into_iter().map(|(_, start)| start).collect();
    // Records are in the order of the file, not of the index.
    starts.sort_unstable();
    Ok(starts)
}

/// Each record ends where the next one begins, the last one at the end of the file.
fn cut(file: u32, size: u64, starts: &[u64]) -> impl Iterator<Item = Piece> {
    starts.iter().enumerate().map(move |(number, &offset)| {
        let end = starts.get(number + 1).map_or(size, |&next| next.min(size));
        // A record that begins beyond the end of the file fails when it is read.
        let length = if offset < size { end - offset } else { 1 };
        Piece { file, offset, length }
    })
}

/// Splits offsets into a concatenation of files by file.
fn spread(sizes: &[u64], starts: &[u64]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(starts.len());
    let mut rest = starts;
    let mut before = 0;
    for (file, &size) in (0..).zip(sizes) {
        let last = file as usize + 1 == sizes.len();
        let count = if last { rest.len() } else { rest.partition_point(|&at| at - before < size) };
        let inside: Vec<u64> = rest[..count].iter().map(|&at| at - before).collect();
        pieces.extend(cut(file, size, &inside));
        rest = &rest[count..];
        before += size;
    }
    pieces
}

/// Adds the offsets of the records of a file, up to the first damaged one. `end` is set to the end
/// of the last one.
fn scan(file: &Opened, end: &mut u64, starts: &mut Vec<u64>) -> Result<()> {
    let (mut at, mut inside) = (0, false);
    while at < file.size {
        let number = starts.len();
        let cut = || broken(RecordFault::CutOff { number, at, size: file.size });
        if file.size - at < 8 {
            return Err(cut());
        }
        let mut bytes = [0; 8];
        file.read(at, &mut bytes)?;
        let named = |fault: RecordIoFault| {
            broken(RecordFault::InRecord { number, at, problem: fault.into() })
        };
        let Head { flag, length } = head(&bytes).map_err(named)?;
        if (flag >= 2) != inside {
            return Err(named(RecordIoFault::Order));
        }
        inside = flag == 1 || flag == 2;
        let whole = 8 + (length as u64).next_multiple_of(4);
        if whole > file.size - at {
            return Err(cut());
        }
        at += whole;
        if !inside {
            append(starts, &[*end])?;
            *end = at;
        }
    }
    match inside {
        true => Err(broken(RecordFault::InRecord {
            number: starts.len(),
            at: *end,
            problem: RecordFault::Unended.into(),
        })),
        false => Ok(()),
    }
}

struct Head {
    /// 0: a whole record; 1, 2, 3: the first, a middle, and the last part of one.
    flag: u32,
    length: usize,
}

fn head(bytes: &[u8; 8]) -> Result<Head, RecordIoFault> {
    let [a, b, c, d, e, f, g, h] = *bytes;
    let word = u32::from_le_bytes([e, f, g, h]);
    match ([a, b, c, d] == MAGIC, word >> 29) {
        (true, flag @ 0..=3) => Ok(Head { flag, length: (word & 0x1FFF_FFFF) as usize }),
        (true, _) => Err(RecordIoFault::Flags),
        (false, _) => Err(RecordIoFault::Magic),
    }
}

/// The data of a record, with the magic numbers put back between its parts. It has fewer than
/// `most` bytes.
fn join(parts: &[&[u8]], most: usize) -> Result<Vec<u8>> {
    let mut joined = with_room(most)?;
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            joined.extend_from_slice(&MAGIC);
        }
        joined.extend_from_slice(part);
    }
    Ok(joined)
}

/// The parts of the record at the start of the bytes.
fn parts(record: &[u8]) -> Result<SmallVec<[&[u8]; 1]>> {
    let mut parts: SmallVec<[&[u8]; 1]> = smallvec![];
    let mut rest = record;
    loop {
        let Some((first, after)) = rest.split_first_chunk() else {
            return Err(broken(RecordIoFault::CutOff));
        };
        let Head { flag, length } = head(first).map_err(broken)?;
        if (flag >= 2) == parts.is_empty() {
            return Err(broken(RecordIoFault::Order));
        }
        let Some(data) = after.get(..length) else {
            let left = after.len();
            return Err(broken(RecordIoFault::Short { length, left }));
        };
        parts.push(data);
        if flag == 0 || flag == 3 {
            return Ok(parts);
        }
        rest = after.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

/// The labels of a record, and the data after them.
fn labels(data: &[u8]) -> Result<(&[[u8; 4]], &[u8])> {
    let Some((header, rest)) = data.split_first_chunk::<24>() else {
        let length = data.len();
        return Err(broken(RecordIoFault::NoHeader { length }));
    };
    let (words, _) = header.as_chunks::<4>();
    let count = u32::from_le_bytes(words[0]) as usize;
    if count == 0 {
        return Ok((&words[1..2], rest));
    }
    match count.checked_mul(4).and_then(|bytes| rest.split_at_checked(bytes)) {
        Some((labels, image)) => Ok((labels.as_chunks().0, image)),
        None => Err(broken(RecordIoFault::Labels { count, bytes: rest.len() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(flag: u32, data: &[u8]) -> Vec<u8> {
        let word = (flag << 29 | data.len() as u32).to_le_bytes();
        let fill = vec![0; data.len().next_multiple_of(4) - data.len()];
        [&MAGIC, &word[..], data, &fill].concat()
    }

    #[test]
    fn parts_are_found_and_damage_is_refused() {
        let record = [chunk(1, b"abcd"), chunk(2, b""), chunk(3, b"efg")].concat();
        assert_eq!(parts(&record).unwrap().to_vec(), [&b"abcd"[..], b"", b"efg"]);
        assert_eq!(parts(&chunk(0, b"one")).unwrap().to_vec(), [b"one"]);
        for wrong in [chunk(2, b""), chunk(3, b""), chunk(1, b"x"), chunk(4, b""), vec![]] {
            assert!(parts(&wrong).is_err());
        }
        for place in 0..record.len() {
            let _ = parts(&record[..place]);
            for bit in 0..8 {
                let mut flipped = record.clone();
                flipped[place] ^= 1 << bit;
                let _ = parts(&flipped).and_then(|parts| labels(&parts.concat()).map(|_| ()));
            }
        }
    }

    #[test]
    fn labels_are_in_the_header_or_after_it() {
        let header =
            |count: u32| [&count.to_le_bytes()[..], &2.5_f32.to_le_bytes(), &[0; 16]].concat();
        let one = [&header(0)[..], b"image"].concat();
        assert_eq!(labels(&one).unwrap(), (&[2.5_f32.to_le_bytes()][..], &b"image"[..]));
        let two = [&header(2)[..], &[1; 8], b"image"].concat();
        assert_eq!(labels(&two).unwrap(), (&[[1; 4], [1; 4]][..], &b"image"[..]));
        assert!(labels(&header(1)).is_err());
        assert!(labels(&header(u32::MAX)).is_err());
        assert!(labels(&one[..23]).is_err());
    }

    #[test]
    fn one_index_is_of_all_files() {
        let pieces = spread(&[100, 50], &[0, 40, 100, 120, 500]);
        let found: Vec<_> = pieces.iter().map(|p| (p.file, p.offset, p.length)).collect();
        assert_eq!(found, [(0, 0, 40), (0, 40, 60), (1, 0, 20), (1, 20, 30), (1, 400, 1)]);
    }
}
