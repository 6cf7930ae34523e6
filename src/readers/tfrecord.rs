//! TFRecord files: each record is an `Example`, a map from names to lists of values.
//!
//! A record is the length of its data (8 bytes), a checksum of the length, the data, and a
//! checksum of the data. The data is a protocol buffer.

use std::path::PathBuf;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::options::{Bytes, FromGiven, Given, Options};
use super::protobuf::{Field, Fields, Unparsed, add, extend_floats, extend_integers};
use super::ranges::{
    Damage, Opened, Piece, Ranges, RecordFault, Result, Unreadable, broken, compressed,
    look_through, parse_pairs, read_index,
};
use super::source::{OpenError, Output, Part, Source, fetched};
use crate::kernels::Allocate;
use crate::value::{DType, Desc, Element, Problem, Sample, Shape, append, extent, problems};

problems! {
    /// What is wrong with a record or one of its features.
    pub enum TfRecordFault {
        FirstChecksum,
        LengthChecksum,
        DataChecksum,
        TooShort { bytes: usize },
        Length { length: u64, room: usize },
        NotExample { problem: Problem },
        Missing { key: String },
        Empty { key: String },
        Kind { key: String, wanted: &'static str, found: Option<&'static str> },
        TooLarge { key: String, shape: Vec<usize> },
        Rows { key: String, count: usize, shape: Vec<usize> },
        Count { key: String, count: usize, shape: Vec<usize>, wanted: usize },
    }
}

/// Bytes before and after the data of a record.
const HEAD: u64 = 12;
const TAIL: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Bytes,
    Float,
    Int,
}

impl Kind {
    pub fn dtype(self) -> DType {
        match self {
            Kind::Bytes => DType::U8,
            Kind::Float => DType::F32,
            Kind::Int => DType::I64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bytes => "strings",
            Kind::Float => "float32",
            Kind::Int => "int64",
        }
    }
}

/// The default of a feature that a record doesn't have: one number for all elements, or one each.
pub enum Fallback {
    None,
    Bytes(Vec<u8>),
    Float(Vec<f32>),
    Int(Vec<i64>),
}

/// A feature to read from each record.
pub struct Feature {
    pub key: String,
    pub kind: Kind,
    /// The shape; if variable, without the first extent.
    pub shape: Shape,
    pub variable: bool,
    pub fallback: Fallback,
}

impl Feature {
    /// The number of dimensions of the output.
    pub fn ndim(&self) -> usize {
        match self.kind {
            Kind::Bytes => 1,
            _ => self.shape.len() + usize::from(self.variable),
        }
    }
}

/// The records of files.
pub struct TfRecords {
    ranges: Ranges,
    features: Vec<Feature>,
}

impl TfRecords {
    /// Without an index, the files are scanned. With `tolerant`, a single record that can't be read
    /// stands for the unreadable part of a file.
    pub fn open(
        files: Vec<PathBuf>,
        index: Option<&[PathBuf]>,
        tolerant: bool,
        features: Vec<Feature>,
    ) -> Result<TfRecords, Unreadable> {
        let found = look_through(&files, tolerant, |number, path, found: &mut Vec<_>| {
            let looked = match index.and_then(|index| index.get(number)) {
                Some(index) => read_index(index).and_then(|text| parse_pairs(index, &text, found)),
                None => Opened::open(path)
                    .and_then(|opened| scan(&opened, found))
                    .map_err(|cause| Unreadable::of(path, cause)),
            };
            let end = |&(offset, length): &(u64, u64)| offset.saturating_add(length);
            looked.map_err(|error| Damage { offset: found.last().map_or(0, end), error })
        })?;
        let mut ranges = Ranges::new(files);
        for (file, (found, damage)) in (0..).zip(found) {
            ranges.extend(found.into_iter().map(|(offset, length)| Piece { file, offset, length }));
            if let Some(damage) = damage {
                ranges.push_damage(file, damage);
            }
        }
        Ok(TfRecords { ranges, features })
    }
}

/// Opens `files`, each with an optional index. Each of `features` has its key, "bytes", "float" or
/// "int", its shape, whether the first extent varies (and is omitted), and a default.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let (files, index): (Vec<PathBuf>, Option<Vec<PathBuf>>) =
        (options.take("files")?, options.take("index")?);
    let features: Vec<(String, String, Vec<usize>, bool, Given)> = options.take("features")?;
    let features = features.into_iter().map(|(key, kind, shape, variable, fallback)| {
        let kind = match &*kind {
            "bytes" => Kind::Bytes,
            "float" => Kind::Float,
            "int" => Kind::Int,
            _ => return None,
        };
        let fallback = match (fallback, kind) {
            (Given::None, _) => Fallback::None,
            (given, Kind::Bytes) => Fallback::Bytes(Bytes::from_given(given)?.0),
            (given, Kind::Float) => Fallback::Float(Vec::from_given(given)?),
            (given, Kind::Int) => Fallback::Int(Vec::from_given(given)?),
        };
        Some(Feature { key, kind, shape: shape.into(), variable, fallback })
    });
    let features = features.collect::<Option<Vec<_>>>();
    let features = features.ok_or_else(|| OpenError::Options("a feature is wrong".into()))?;
    let tolerant = options.take("tolerant")?;
    Ok(Arc::new(TfRecords::open(files, index.as_deref(), tolerant, features)?))
}

impl Source for TfRecords {
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
            let lists = find(payload(record)?, &self.features).map_err(|problem| {
                problem.cause(|problem| TfRecordFault::NotExample { problem })
            })?;
            let mut samples = SmallVec::with_capacity(lists.len());
            for (output, (feature, values)) in self.features.iter().zip(lists).enumerate() {
                samples.push(give(output, feature, values, allocate)?);
            }
            Ok(samples)
        })
    }

    fn outputs(&self) -> Vec<Part> {
        fetched(self.features.iter().map(|feature| Output {
            uniform: !feature.variable && feature.kind != Kind::Bytes,
            ..Output::new(feature.kind.dtype(), feature.ndim())
        }))
    }

    fn fingerprint(&self) -> u64 {
        self.ranges.hash().finish()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.ranges.name(number)
    }
}

/// Adds the positions of the records of a file, up to the first damaged one.
fn scan(file: &Opened, found: &mut Vec<(u64, u64)>) -> Result<()> {
    let mut at = 0;
    while at < file.size {
        let number = found.len();
        let cut = || broken(RecordFault::CutOff { number, at, size: file.size });
        if file.size - at < HEAD + TAIL {
            return Err(cut());
        }
        let mut head = [0; HEAD as usize];
        file.read(at, &mut head)?;
        let (length, sum) = split_head(&head);
        if masked(&head[..8]) != sum {
            if let Some(cause) = compressed(&head).filter(|_| at == 0) {
                return Err(cause);
            }
            let fault = match at {
                0 => TfRecordFault::FirstChecksum,
                _ => TfRecordFault::LengthChecksum,
            };
            return Err(broken(RecordFault::InRecord { number, at, problem: fault.into() }));
        }
        let whole = length.checked_add(HEAD + TAIL).filter(|&whole| whole <= file.size - at);
        let whole = whole.ok_or_else(cut)?;
        append(found, &[(at, whole)])?;
        at += whole;
    }
    Ok(())
}

fn split_head(head: &[u8; HEAD as usize]) -> (u64, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *head;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l]))
}

/// TFRecord's masked checksum: CRCs of data that contains CRCs are weak.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// The data of a record, after checking its checksums.
fn payload(record: &[u8]) -> Result<&[u8]> {
    let Some((head, rest)) = record.split_first_chunk() else {
        return Err(broken(TfRecordFault::TooShort { bytes: record.len() }));
    };
    let (length, sum) = split_head(head);
    if masked(&head[..8]) != sum {
        return Err(broken(TfRecordFault::LengthChecksum));
    }
    let data = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let Some((data, [a, b, c, d, ..])) = data else {
        return Err(broken(TfRecordFault::Length {
            length,
            room: rest.len().saturating_sub(TAIL as usize),
        }));
    };
    if masked(data) != u32::from_le_bytes([*a, *b, *c, *d]) {
        return Err(broken(TfRecordFault::DataChecksum));
    }
    Ok(data)
}

/// The output for a feature.
fn give(
    output: usize,
    feature: &Feature,
    values: Values<'_>,
    allocate: &Allocate<'_>,
) -> Result<Sample> {
    let key = || feature.key.clone();
    match (feature.kind, values, &feature.fallback) {
        (Kind::Bytes, Values::Bytes(Some(bytes)), _) => {
            put(output, &[bytes.len()], bytes, allocate)
        }
        (Kind::Bytes, Values::None | Values::Bytes(None), Fallback::Bytes(bytes)) => {
            put(output, &[bytes.len()], bytes, allocate)
        }
        (Kind::Float, Values::Float(values), fallback) => {
            let fallback = if let Fallback::Float(values) = fallback { &values[..] } else { &[] };
            numbers(output, feature, &values, fallback, allocate)
        }
        (Kind::Float, Values::None, Fallback::Float(fallback)) => {
            numbers(output, feature, &[], fallback, allocate)
        }
        (Kind::Int, Values::Int(values), fallback) => {
            let fallback = if let Fallback::Int(values) = fallback { &values[..] } else { &[] };
            numbers(output, feature, &values, fallback, allocate)
        }
        (Kind::Int, Values::None, Fallback::Int(fallback)) => {
            numbers(output, feature, &[], fallback, allocate)
        }
        (Kind::Float, Values::None, _) if feature.variable => {
            numbers::<f32>(output, feature, &[], &[], allocate)
        }
        (Kind::Int, Values::None, _) if feature.variable => {
            numbers::<i64>(output, feature, &[], &[], allocate)
        }
        (_, Values::None | Values::Bytes(None), _) => {
            Err(broken(TfRecordFault::Missing { key: key() }))
        }
        (kind, values, _) => {
            let found = values.kind().map(Kind::name);
            Err(broken(TfRecordFault::Kind { key: key(), wanted: kind.name(), found }))
        }
    }
}

fn numbers<T: Element>(
    output: usize,
    feature: &Feature,
    values: &[T],
    fallback: &[T],
    allocate: &Allocate<'_>,
) -> Result<Sample> {
    let (key, shape) = (|| feature.key.clone(), || feature.shape.to_vec());
    let large = || broken(TfRecordFault::TooLarge { key: key(), shape: shape() });
    let count = extent(&feature.shape).ok_or_else(large)?;
    if feature.variable {
        let rows = values.len().checked_div(count).unwrap_or(0);
        if rows * count != values.len() {
            let count = values.len();
            return Err(broken(TfRecordFault::Rows { key: key(), count, shape: shape() }));
        }
        let mut rows: Shape = smallvec![rows];
        rows.extend_from_slice(&feature.shape);
        return put(output, &rows, values, allocate);
    }
    if values.is_empty() && count > 0 {
        return match fallback {
            [one] => {
                let mut buffer = allocate(output, Desc::new(T::DTYPE, &feature.shape))?;
                buffer.elements().fill(*one);
                buffer.into_sample()
            }
            all if all.len() == count => put(output, &feature.shape, all, allocate),
            _ => Err(broken(TfRecordFault::Empty { key: key() })),
        };
    }
    if values.len() != count {
        return Err(broken(TfRecordFault::Count {
            key: key(),
            count: values.len(),
            shape: shape(),
            wanted: count,
        }));
    }
    put(output, &feature.shape, values, allocate)
}

fn put<T: Element>(
    output: usize,
    shape: &[usize],
    values: &[T],
    allocate: &Allocate<'_>,
) -> Result<Sample> {
    let mut buffer = allocate(output, Desc::new(T::DTYPE, shape))?;
    buffer.elements().copy_from_slice(values);
    buffer.into_sample()
}

/// The values of a feature in a record.
#[derive(Debug, PartialEq)]
enum Values<'a> {
    None,
    /// Only the first value.
    Bytes(Option<&'a [u8]>),
    Float(Vec<f32>),
    Int(Vec<i64>),
}

impl Values<'_> {
    fn kind(&self) -> Option<Kind> {
        match self {
            Values::None => None,
            Values::Bytes(_) => Some(Kind::Bytes),
            Values::Float(_) => Some(Kind::Float),
            Values::Int(_) => Some(Kind::Int),
        }
    }
}

/// The values of the features in an `Example`.
fn find<'a>(example: &'a [u8], features: &[Feature]) -> Result<Vec<Values<'a>>, Unparsed> {
    let mut found: Vec<_> = features.iter().map(|_| Values::None).collect();
    for field in Fields::new(example) {
        let (1, Field::Bytes(map)) = field? else { continue };
        for field in Fields::new(map) {
            let (1, Field::Bytes(entry)) = field? else { continue };
            let mut key: &[u8] = b"";
            let mut lists: SmallVec<[&[u8]; 1]> = smallvec![];
            for field in Fields::new(entry) {
                match field? {
                    (1, Field::Bytes(text)) => key = text,
                    (2, Field::Bytes(list)) => add(&mut lists, list)?,
                    _ => {}
                }
            }
            // If a key occurs several times, the last entry counts.
            for (feature, found) in features.iter().zip(&mut found) {
                if feature.key.as_bytes() == key {
                    *found = Values::None;
                    for list in &lists {
                        read_feature(list, found)?;
                    }
                }
            }
        }
    }
    Ok(found)
}

fn read_feature<'a>(feature: &'a [u8], values: &mut Values<'a>) -> Result<(), Unparsed> {
    for field in Fields::new(feature) {
        let (kind @ 1..=3, Field::Bytes(list)) = field? else { continue };
        match kind {
            1 => {
                let mut first = match values {
                    Values::Bytes(first) => *first,
                    _ => None,
                };
                for field in Fields::new(list) {
                    if let (1, Field::Bytes(bytes)) = field? {
                        first.get_or_insert(bytes);
                    }
                }
                *values = Values::Bytes(first);
            }
            2 => {
                let mut floats = match std::mem::replace(values, Values::None) {
                    Values::Float(floats) => floats,
                    _ => Vec::new(),
                };
                for field in Fields::new(list) {
                    if let (1, values) = field? {
                        extend_floats(&mut floats, values)?;
                    }
                }
                *values = Values::Float(floats);
            }
            _ => {
                let mut ints = match std::mem::replace(values, Values::None) {
                    Values::Int(ints) => ints,
                    _ => Vec::new(),
                };
                for field in Fields::new(list) {
                    if let (1, values) = field? {
                        extend_integers(&mut ints, values, |n| n as i64)?;
                    }
                }
                *values = Values::Int(ints);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(key: &str, kind: Kind) -> Feature {
        let (key, fallback) = (key.into(), Fallback::None);
        Feature { key, kind, shape: smallvec![], variable: true, fallback }
    }

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn entry(key: &str, feature: &[u8]) -> Vec<u8> {
        field(1, &[field(1, key.as_bytes()), field(2, feature)].concat())
    }

    #[test]
    fn lists_may_be_packed_or_not_and_the_last_entry_counts() {
        let ints = field(3, &[field(1, &[1, 0x80, 1]), vec![8, 7]].concat());
        let floats = field(2, &[&[13][..], &1.5_f32.to_le_bytes(), &field(1, &[0; 4])].concat());
        let strings = field(1, &[field(1, b"first"), field(1, b"second")].concat());
        let map = [
            entry("i", &strings),
            entry("i", &ints),
            entry("f", &[floats.clone(), floats].concat()),
            entry("s", &strings),
            entry("other", b""),
            vec![0x7D, 1, 2, 3, 4],
        ];
        let example = field(1, &map.concat());
        let wanted = [("i", Kind::Int), ("f", Kind::Float), ("s", Kind::Bytes), ("x", Kind::Int)];
        let features = wanted.map(|(key, kind)| feature(key, kind));
        let found = find(&example, &features).unwrap();
        assert_eq!(found[0], Values::Int(vec![1, 128, 7]));
        assert_eq!(found[1], Values::Float(vec![1.5, 0.0, 1.5, 0.0]));
        assert_eq!(found[2], Values::Bytes(Some(b"first")));
        assert_eq!(found[3], Values::None);
        // Whatever the bytes, they are read or refused.
        for end in 0..example.len() {
            let _ = find(&example[..end], &features);
        }
        for place in 0..example.len() {
            for bit in 0..8 {
                let mut flipped = example.clone();
                flipped[place] ^= 1 << bit;
                let _ = find(&flipped, &features);
            }
        }
    }

    #[test]
    fn a_record_is_checked_before_it_is_used() {
        let data = b"some data";
        let head = (data.len() as u64).to_le_bytes();
        let record =
            [&head[..], &masked(&head).to_le_bytes(), data, &masked(data).to_le_bytes()].concat();
        assert_eq!(payload(&record).unwrap(), data);
        for place in 0..record.len() {
            let mut flipped = record.clone();
            flipped[place] ^= 1;
            assert!(payload(&flipped).is_err());
            assert!(payload(&record[..place]).is_err());
        }
    }
}
