//! Shards of MosaicML's streaming format (MDS). Python reads their index.
//!
//! A shard is the number of its samples, an offset for each and one for the end (32 bits each), a
//! description that the index has as well, and the samples. A sample begins with the sizes of those
//! of its columns that vary in size; then the columns follow.

use std::path::PathBuf;
use std::sync::Arc;

use smallvec::SmallVec;

use super::cache::Cache;
use super::groups::{Groups, Spot};
use super::options::Options;
use super::ranges::{Damage, Opened, Unreadable, broken, look_through};
use super::source::{OpenError, Output, Part, Result, Source, fetched};
use super::unpack::{Packing, unpack};
use crate::kernels::Allocate;
use crate::value::{Cause, DType, Desc, Layout, Sample, Shape, extent, problems, zeroed};

problems! {
    /// What is wrong with a shard.
    pub enum MdsFault {
        Size { size: u64, wanted: u64 },
        Count { found: u32, wanted: usize },
        Place { start: u32, end: u32, size: u64 },
        Columns { bytes: usize },
        Width { column: String, bytes: usize, wanted: usize },
        Array { column: String },
        Different { column: String, ndim: usize, dtype: &'static str, first_ndim: usize, first_dtype: &'static str },
        Image { column: String },
        Mode { column: String, mode: String },
        TooManySamples,
    }
}

/// How a column is encoded.
#[derive(Clone, Debug, PartialEq)]
enum Encoding {
    Bytes,
    Number(DType),
    Array {
        dtype: Option<DType>,
        shape: Option<Shape>,
    },
    /// Pixels, with their size and mode in front.
    Pixels,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    /// `None` if each sample has its own.
    size: Option<usize>,
    encoding: Encoding,
    /// What the first sample has, where the encoding leaves it open.
    first: Option<(DType, usize)>,
}

struct Shard {
    packing: Packing,
    /// Decompressed.
    size: u64,
    samples: usize,
}

/// The samples of shards.
pub struct Mds {
    groups: Groups,
    shards: Vec<Shard>,
    columns: Vec<Column>,
    /// For each column, whether and as which output it is read.
    outputs: Vec<Option<usize>>,
    /// Decompressed shards.
    cache: Cache<Vec<u8>>,
}

/// Opens shards: `files`, with for each its `packing`, its decompressed size and its number of
/// samples. Each column of `columns` has its name, its encoding, its size (0 if it varies); of
/// those, `wanted` are read.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let files: Vec<PathBuf> = options.take("files")?;
    let packings: Vec<String> = options.take("packings")?;
    let sizes: Vec<usize> = options.take("sizes")?;
    let samples: Vec<usize> = options.take("samples")?;
    let columns: Vec<(String, String, usize)> = options.take("columns")?;
    let wanted: Vec<String> = options.take("wanted")?;
    let tolerant: bool = options.take("tolerant")?;
    if packings.len() != files.len() || sizes.len() != files.len() || samples.len() != files.len() {
        return Err(OpenError::Options("there must be a size for each shard".into()));
    }
    let mut shards = Vec::with_capacity(files.len());
    for ((packing, size), samples) in packings.iter().zip(sizes).zip(samples) {
        let packing = match &**packing {
            "" => Packing::None,
            "zstd" => Packing::Zstd,
            "gz" => Packing::Gzip,
            "snappy" => Packing::Snappy,
            other => return Err(OpenError::Options(format!("there is no packing {other:?}"))),
        };
        shards.push(Shard { packing, size: size as u64, samples });
    }
    let parsed = columns.into_iter().map(|(name, encoding, size)| {
        let encoding = Encoding::parse(&encoding)
            .ok_or_else(|| OpenError::Options(format!("there is no encoding {encoding:?}")))?;
        let size = (size > 0).then_some(size);
        Ok(Column { name, size, encoding, first: None })
    });
    let columns = parsed.collect::<Result<Vec<_>, OpenError>>()?;
    Ok(Arc::new(Mds::open(files, shards, columns, &wanted, tolerant)?))
}

impl Encoding {
    fn parse(text: &str) -> Option<Encoding> {
        let number = |name: &str| {
            Some(match name {
                "int" | "int64" => DType::I64,
                "uint8" => DType::U8,
                "uint16" => DType::U16,
                "uint32" => DType::U32,
                "uint64" => DType::U64,
                "int8" => DType::I8,
                "int16" => DType::I16,
                "int32" => DType::I32,
                "float16" => DType::F16,
                "float32" => DType::F32,
                "float64" => DType::F64,
                _ => return None,
            })
        };
        if let Some(dtype) = number(text) {
            return Some(Encoding::Number(dtype));
        }
        let (name, rest) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        match (name, rest) {
            ("pil", None) => Some(Encoding::Pixels),
            ("ndarray", None) => Some(Encoding::Array { dtype: None, shape: None }),
            ("ndarray", Some(rest)) => {
                let (dtype, shape) = match rest.split_once(':') {
                    Some((dtype, shape)) => {
                        let shape = shape.split(',').map(|n| n.trim().parse().ok());
                        (dtype, Some(shape.collect::<Option<Shape>>()?))
                    }
                    None => (rest, None),
                };
                let sound = shape.as_ref().is_none_or(|shape| extent(shape).is_some());
                sound.then_some(Encoding::Array { dtype: Some(number(dtype)?), shape })
            }
            (_, None) => Some(Encoding::Bytes),
            _ => None,
        }
    }

    fn output(&self, first: Option<(DType, usize)>) -> Output {
        match self {
            Encoding::Bytes => Output::new(DType::U8, 1),
            Encoding::Number(dtype) => Output::uniform(*dtype, 0),
            Encoding::Array { dtype, shape } => {
                let dtype = dtype.or(first.map(|(dtype, _)| dtype));
                let ndim = shape.as_ref().map(|shape| shape.len()).or(first.map(|(_, ndim)| ndim));
                Output { dtype, ndim, uniform: shape.is_some(), ..Output::new(DType::U8, 1) }
            }
            Encoding::Pixels => Output {
                layout: Layout::new("HWC").unwrap_or_default(),
                ..Output::new(DType::U8, 3)
            },
        }
    }
}

impl Mds {
    fn open(
        files: Vec<PathBuf>,
        shards: Vec<Shard>,
        columns: Vec<Column>,
        wanted: &[String],
        tolerant: bool,
    ) -> Result<Mds, OpenError> {
        let found = look_through(&files, tolerant, |number, path, (): &mut ()| {
            let opened = Opened::open(path).and_then(|file| {
                let Shard { packing, size, .. } = shards[number];
                match packing == Packing::None && file.size != size {
                    true => Err(broken(MdsFault::Size { size: file.size, wanted: size })),
                    false => Ok(()),
                }
            });
            Ok(opened.map_err(|cause| Unreadable::of(path, cause))?)
        })?;
        let mut groups = Groups::new(files.clone());
        for (file, (shard, (_, damage))) in shards.iter().zip(found).enumerate() {
            if let Some(Damage { error, .. }) = damage {
                groups.push_damage(file as u32, error);
            } else if !groups.push(file as u32, shard.samples) {
                return Err(Unreadable::new(&files[file], MdsFault::TooManySamples).into());
            }
        }
        let place = |column: &Column| wanted.iter().position(|name| *name == column.name);
        let outputs = columns.iter().map(place).collect();
        let mut mds = Mds { groups, shards, columns, outputs, cache: Cache::default() };
        let open = |column: &Column| {
            matches!(&column.encoding, Encoding::Array { dtype, shape }
                if dtype.is_none() || shape.is_none())
        };
        if mds.groups.len() > 0 && mds.columns.iter().any(open) {
            // If the first sample is damaged, that is found when it is read.
            let kinds = mds.with_sample(0, |parts| {
                let kind = |(column, part): (&Column, &&[u8])| match &column.encoding {
                    Encoding::Array { dtype, shape } => {
                        array(part, *dtype, shape.as_ref()).map(|a| (a.dtype, a.shape.len()))
                    }
                    _ => None,
                };
                Ok(mds.columns.iter().zip(parts).map(kind).collect::<Vec<_>>())
            });
            for (column, kind) in mds.columns.iter_mut().zip(kinds.unwrap_or_default()) {
                column.first = kind;
            }
        }
        Ok(mds)
    }

    /// Calls `take` with the columns of a sample.
    fn with_sample<T>(&self, number: usize, take: impl FnOnce(&[&[u8]]) -> Result<T>) -> Result<T> {
        let Spot { group, row } = self.groups.spot(number)?;
        let shard = &self.shards[group];
        let file = self.groups.open(group)?;
        if shard.packing == Packing::None {
            let mut count = [0; 4];
            file.read(0, &mut count)?;
            let mut pair = [0; 8];
            shard.check(count)?;
            file.read(4 + 4 * row as u64, &mut pair)?;
            let (start, length) = bounds(pair, shard, file.size)?;
            let mut bytes = zeroed::<u8>(length)?;
            file.read(start, &mut bytes)?;
            return take(&self.split(&bytes)?);
        }
        let whole = self.cache.get(group as u64, || {
            let bytes = unpack(shard.packing, &whole(&file)?, shard.size)?;
            let size = bytes.len();
            Ok((bytes, size))
        })?;
        let damaged = || broken(MdsFault::Count { found: 0, wanted: shard.samples });
        let count = whole.first_chunk().ok_or_else(damaged)?;
        shard.check(*count)?;
        let pair = whole.get(4 + 4 * row..).and_then(|rest| rest.first_chunk());
        let (start, length) = bounds(*pair.ok_or_else(damaged)?, shard, whole.len() as u64)?;
        take(&self.split(&whole[start as usize..][..length])?)
    }

    /// The columns of a sample.
    fn split<'a>(&self, sample: &'a [u8]) -> Result<SmallVec<[&'a [u8]; 8]>> {
        let damaged = || broken(MdsFault::Columns { bytes: sample.len() });
        let varying = self.columns.iter().filter(|column| column.size.is_none()).count();
        let (sizes, mut rest) = sample.split_at_checked(4 * varying).ok_or_else(damaged)?;
        let (mut sizes, _) = sizes.as_chunks::<4>();
        let mut parts = SmallVec::with_capacity(self.columns.len());
        for column in &self.columns {
            let size = match (column.size, sizes.split_first()) {
                (Some(size), _) => size,
                (None, Some((size, after))) => {
                    sizes = after;
                    u32::from_le_bytes(*size) as usize
                }
                (None, None) => return Err(damaged()),
            };
            let (part, after) = rest.split_at_checked(size).ok_or_else(damaged)?;
            rest = after;
            parts.push(part);
        }
        match rest.is_empty() {
            true => Ok(parts),
            false => Err(damaged()),
        }
    }
}

impl Shard {
    fn check(&self, count: [u8; 4]) -> Result<()> {
        let (found, wanted) = (u32::from_le_bytes(count), self.samples);
        match found as usize == wanted {
            true => Ok(()),
            false => Err(broken(MdsFault::Count { found, wanted })),
        }
    }
}

/// Start and length of a sample, after checking them.
fn bounds(pair: [u8; 8], shard: &Shard, size: u64) -> Result<(u64, usize)> {
    let [a, b, c, d, e, f, g, h] = pair;
    let (start, end) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    let table = 8 + 4 * shard.samples as u64;
    if u64::from(start) < table || end < start || u64::from(end) > size {
        return Err(broken(MdsFault::Place { start, end, size }));
    }
    Ok((u64::from(start), (end - start) as usize))
}

/// The contents of a compressed shard.
fn whole(file: &Opened) -> Result<Vec<u8>> {
    let mut bytes = zeroed::<u8>(file.length()?)?;
    file.read(0, &mut bytes)?;
    Ok(bytes)
}

struct Array<'a> {
    dtype: DType,
    shape: Shape,
    bytes: &'a [u8],
}

/// Parses an array; what the encoding doesn't say is in front of the elements.
fn array<'a>(part: &'a [u8], dtype: Option<DType>, shape: Option<&Shape>) -> Option<Array<'a>> {
    let mut rest = part;
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => {
            let (&code, after) = rest.split_first()?;
            rest = after;
            match code {
                8 => DType::U8,
                9 => DType::I8,
                16 => DType::U16,
                17 => DType::I16,
                18 => DType::F16,
                32 => DType::U32,
                33 => DType::I32,
                34 => DType::F32,
                64 => DType::U64,
                65 => DType::I64,
                66 => DType::F64,
                _ => return None,
            }
        }
    };
    let shape = match shape {
        Some(shape) => shape.clone(),
        None => {
            let (&code, after) = rest.split_first()?;
            let (ndim, width) = (usize::from(code >> 2), 1 << (code & 3));
            let (extents, after) = after.split_at_checked(ndim * width)?;
            rest = after;
            let number = |bytes: &[u8]| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                usize::try_from(u64::from_le_bytes(word)).ok()
            };
            extents.chunks_exact(width).map(number).collect::<Option<Shape>>()?
        }
    };
    let bytes = extent(&shape)?.checked_mul(dtype.size())?;
    (rest.len() == bytes).then_some(Array { dtype, shape, bytes: rest })
}

/// The pixels of an image, and their shape.
fn pixels(part: &[u8], column: &str) -> Result<([usize; 3], Vec<u8>)> {
    let damaged = || broken(MdsFault::Image { column: column.into() });
    let (head, rest) = part.split_first_chunk::<12>().ok_or_else(damaged)?;
    let [width, height, length] = [0, 4, 8]
        .map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let (mode, pixels) = rest.split_at_checked(length as usize).ok_or_else(damaged)?;
    let channels = match mode {
        b"L" | b"P" => 1,
        b"LA" | b"PA" => 2,
        b"RGB" | b"YCbCr" | b"HSV" | b"LAB" => 3,
        b"RGBA" | b"CMYK" | b"RGBX" => 4,
        _ => {
            let mode = String::from_utf8_lossy(&mode[..mode.len().min(20)]).into_owned();
            return Err(broken(MdsFault::Mode { column: column.into(), mode }));
        }
    };
    let shape = [height as usize, width as usize, channels];
    match extent(&shape) == Some(pixels.len()) {
        true => Ok((shape, pixels.to_vec())),
        false => Err(damaged()),
    }
}

impl Column {
    fn sample(&self, output: usize, part: &[u8], allocate: &Allocate<'_>) -> Result<Sample> {
        let put = |desc: Desc, bytes: &[u8]| {
            let mut buffer = allocate(output, desc)?;
            buffer.bytes().copy_from_slice(bytes);
            buffer.into_sample()
        };
        let name = || self.name.clone();
        match &self.encoding {
            Encoding::Bytes => put(Desc::new(DType::U8, &[part.len()]), part),
            Encoding::Number(dtype) => match part.len() == dtype.size() {
                true => put(Desc::new(*dtype, &[]), part),
                false => {
                    let (bytes, wanted) = (part.len(), dtype.size());
                    Err(broken(MdsFault::Width { column: name(), bytes, wanted }))
                }
            },
            Encoding::Array { dtype, shape } => {
                let found = array(part, *dtype, shape.as_ref());
                let found = found.ok_or_else(|| broken(MdsFault::Array { column: name() }))?;
                let (dtype, ndim) = (found.dtype, found.shape.len());
                match self.first.filter(|&first| first != (dtype, ndim)) {
                    None => put(Desc::new(dtype, &found.shape), found.bytes),
                    Some((first_dtype, first_ndim)) => {
                        let (dtype, first_dtype) = (dtype.name(), first_dtype.name());
                        let column = name();
                        let fault =
                            MdsFault::Different { column, ndim, dtype, first_ndim, first_dtype };
                        Err(broken(fault))
                    }
                }
            }
            Encoding::Pixels => {
                let (shape, pixels) = pixels(part, &self.name)?;
                let layout = Layout::new("HWC").unwrap_or_default();
                put(Desc { layout, ..Desc::new(DType::U8, &shape) }, &pixels)
            }
        }
    }
}

impl Source for Mds {
    fn len(&self) -> usize {
        self.groups.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.groups.name(number)
    }

    fn fingerprint(&self) -> u64 {
        let mut hash = self.groups.hash();
        self.shards.iter().for_each(|shard| hash.word(shard.size));
        hash.finish()
    }

    fn outputs(&self) -> Vec<Part> {
        let mut outputs: Vec<_> = self.columns.iter().zip(&self.outputs).collect();
        outputs.retain(|(_, output)| output.is_some());
        outputs.sort_by_key(|(_, output)| **output);
        fetched(outputs.into_iter().map(|(column, _)| column.encoding.output(column.first)))
    }

    fn groups(&self) -> Option<&[usize]> {
        Some(self.groups.ends())
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        self.with_sample(number, |parts| {
            let mut made: Vec<(usize, Sample)> = Vec::with_capacity(parts.len());
            for ((column, output), part) in self.columns.iter().zip(&self.outputs).zip(parts) {
                if let Some(output) = *output {
                    made.push((output, column.sample(output, part, allocate)?));
                }
            }
            made.sort_by_key(|(output, _)| *output);
            Ok::<_, Cause>(made.into_iter().map(|(_, sample)| sample).collect())
        })
    }
}
