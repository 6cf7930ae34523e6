//! Images in FITS files, plain or compressed in tiles.
//!
//! A file is a row of units, each a header and data, both padded to blocks. Elements are stored
//! with the highest byte first, and may be scaled.

mod header;
mod tiles;

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::files::Files;
use super::options::Options;
use super::ranges::broken;
use super::read::Opened;
use super::source::{OpenError, Output, Part, Result, Source, fetched};
use crate::codecs::npy::swap;
use crate::kernels::{Allocate, OutputBuffer, convert};
use crate::value::{DType, Desc, Origin, Sample, Shape, extent, problems, zeroed};
use header::{BLOCK, Header};

problems! {
    /// What is wrong with a FITS file.
    pub enum FitsFault {
        NotFits,
        Header { at: u64 },
        Keyword { keyword: String },
        Dimensions { ndim: u64 },
        TooLarge,
        NoUnit { number: usize, found: usize },
        Empty { number: usize },
        Table { number: usize },
        Type { bits: i64 },
        CutOff { bytes: u64, size: u64 },
        Tiles,
        Method { name: String },
    }
}

/// How elements are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stored {
    U8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl Stored {
    fn of(bits: Option<i64>) -> Result<Stored> {
        Ok(match bits {
            Some(8) => Stored::U8,
            Some(16) => Stored::I16,
            Some(32) => Stored::I32,
            Some(64) => Stored::I64,
            Some(-32) => Stored::F32,
            Some(-64) => Stored::F64,
            Some(bits) => return Err(broken(FitsFault::Type { bits })),
            None => return Err(broken(FitsFault::Keyword { keyword: "BITPIX".into() })),
        })
    }

    fn bytes(self) -> usize {
        self.dtype().size()
    }

    fn is_float(self) -> bool {
        matches!(self, Stored::F32 | Stored::F64)
    }

    fn dtype(self) -> DType {
        match self {
            Stored::U8 => DType::U8,
            Stored::I16 => DType::I16,
            Stored::I32 => DType::I32,
            Stored::I64 => DType::I64,
            Stored::F32 => DType::F32,
            Stored::F64 => DType::F64,
        }
    }
}

/// What elements stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scaling {
    None,
    /// Integers of the other signedness: the highest bit is flipped.
    Flipped,
    /// `scale * x + offset`; an integer may stand for a missing value.
    Linear {
        scale: f64,
        offset: f64,
        blank: Option<i64>,
    },
}

impl Scaling {
    fn of(header: &Header, stored: Stored) -> Scaling {
        let scale = header.float("BSCALE").unwrap_or(1.0);
        let offset = header.float("BZERO").unwrap_or(0.0);
        let flip = match stored {
            Stored::U8 => -128.0,
            Stored::I16 => 32_768.0,
            Stored::I32 => 2_147_483_648.0,
            Stored::I64 => 9_223_372_036_854_775_808.0,
            _ => f64::NAN,
        };
        match (scale, offset) {
            (1.0, 0.0) => Scaling::None,
            (1.0, offset) if offset == flip => Scaling::Flipped,
            (scale, offset) => Scaling::Linear { scale, offset, blank: header.integer("BLANK") },
        }
    }

    /// The element type of the result; as in Astropy, which keeps float32 exact.
    fn dtype(self, stored: Stored) -> DType {
        match (self, stored) {
            (Scaling::None, stored) => stored.dtype(),
            (Scaling::Flipped, Stored::U8) => DType::I8,
            (Scaling::Flipped, Stored::I16) => DType::U16,
            (Scaling::Flipped, Stored::I32) => DType::U32,
            (Scaling::Flipped, _) => DType::U64,
            (Scaling::Linear { .. }, Stored::U8 | Stored::I16 | Stored::F32) => DType::F32,
            (Scaling::Linear { .. }, _) => DType::F64,
        }
    }
}

/// The elements of an image as they are stored, but in this machine's order of bytes.
struct Pixels {
    stored: Stored,
    shape: Shape,
    bytes: Vec<u8>,
    scaling: Scaling,
}

impl Pixels {
    fn dtype(&self) -> DType {
        self.scaling.dtype(self.stored)
    }

    fn write(&self, out: &mut [u8]) {
        match self.scaling {
            Scaling::None => out.copy_from_slice(&self.bytes),
            Scaling::Flipped => {
                out.copy_from_slice(&self.bytes);
                let size = self.stored.bytes();
                out.chunks_exact_mut(size).for_each(|element| element[size - 1] ^= 0x80);
            }
            Scaling::Linear { scale, offset, blank } => {
                let wide = self.dtype() == DType::F64;
                let (from, to) = (self.stored.bytes(), if wide { 8 } else { 4 });
                let elements = self.bytes.chunks_exact(from);
                for (element, out) in elements.zip(out.chunks_exact_mut(to)) {
                    let mut word = [0; 8];
                    word[..from].copy_from_slice(element);
                    let [a, b, c, d, ..] = word;
                    let whole = match self.stored {
                        Stored::U8 => Some(i64::from(a)),
                        Stored::I16 => Some(i64::from(i16::from_le_bytes([a, b]))),
                        Stored::I32 => Some(i64::from(i32::from_le_bytes([a, b, c, d]))),
                        Stored::I64 => Some(i64::from_le_bytes(word)),
                        _ => None,
                    };
                    let value = match (whole, self.stored) {
                        (Some(whole), _) if Some(whole) == blank => f64::NAN,
                        (Some(whole), _) => whole as f64,
                        (None, Stored::F32) => f64::from(f32::from_le_bytes([a, b, c, d])),
                        (None, _) => f64::from_le_bytes(word),
                    };
                    // Single precision throughout where the result has it.
                    match wide {
                        true => out.copy_from_slice(&(value * scale + offset).to_le_bytes()),
                        false => {
                            let value = value as f32 * scale as f32 + offset as f32;
                            out.copy_from_slice(&value.to_le_bytes());
                        }
                    }
                }
            }
        }
    }
}

/// Reads the image of the unit with this number, counted from 1.
fn read_image(file: &Opened, number: usize) -> Result<Pixels> {
    let mut first = [0; 9];
    if file.read_up_to(0, &mut first)? < 9 || &first != b"SIMPLE  =" {
        return Err(broken(FitsFault::NotFits));
    }
    let mut at = 0;
    for found in 1.. {
        if at >= file.size {
            return Err(broken(FitsFault::NoUnit { number, found: found - 1 }));
        }
        let header = Header::read(file, at)?;
        let length = header.data_bytes()?;
        if found == number {
            return unit(file, &header, number, length);
        }
        let padded = length.checked_next_multiple_of(BLOCK);
        let next = padded.and_then(|length| header.data.checked_add(length));
        at = next.ok_or_else(|| broken(FitsFault::TooLarge))?;
    }
    Err(broken(FitsFault::NotFits))
}

fn unit(file: &Opened, header: &Header, number: usize, length: u64) -> Result<Pixels> {
    match header.text("XTENSION") {
        None | Some("IMAGE" | "IUEIMAGE") => {}
        Some("BINTABLE") if header.truth("ZIMAGE") => return tiles::read(file, header),
        Some(_) => return Err(broken(FitsFault::Table { number })),
    }
    let stored = Stored::of(header.integer("BITPIX"))?;
    let extents = header.extents("NAXIS")?;
    if extents.is_empty() {
        return Err(broken(FitsFault::Empty { number }));
    }
    let shape = extents.iter().rev().map(|&n| usize::try_from(n).ok()).collect::<Option<Shape>>();
    let shape = shape.ok_or_else(|| broken(FitsFault::TooLarge))?;
    let bytes = extent(&shape).and_then(|count| count.checked_mul(stored.bytes()));
    let bytes = bytes.ok_or_else(|| broken(FitsFault::TooLarge))?;
    let end = header.data.checked_add(bytes as u64).filter(|&end| end <= file.size);
    if end.is_none() {
        return Err(broken(FitsFault::CutOff { bytes: length, size: file.size }));
    }
    let mut data = zeroed::<u8>(bytes)?;
    file.read(header.data, &mut data)?;
    if stored.bytes() > 1 {
        swap(&mut data, stored.bytes());
    }
    Ok(Pixels { stored, shape, bytes: data, scaling: Scaling::of(header, stored) })
}

/// Images by the numbers of files.
pub struct Fits {
    pub files: Files,
    /// The units to read of each file, counted from 1, and the element types to convert to.
    pub units: Vec<(usize, Option<DType>)>,
}

/// Opens the files in `files`, in the text file `list`, or in `root` and its folders.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let files = Files::chosen(options)?;
    let units: Vec<usize> = options.take("units")?;
    let dtypes: Vec<Option<DType>> = options.take("dtypes")?;
    if dtypes.len() != units.len() {
        return Err(OpenError::Options("there must be a type for each unit".into()));
    }
    Ok(Arc::new(Fits { files, units: units.into_iter().zip(dtypes).collect() }))
}

impl Source for Fits {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.files.name(number)
    }

    fn origin(&self, number: usize, part: usize) -> Origin {
        self.files.origin(number, part)
    }

    /// Depends on names and their order.
    fn fingerprint(&self) -> u64 {
        self.files.fingerprint()
    }

    /// Type and rank are only known from the header.
    fn outputs(&self) -> Vec<Part> {
        fetched(self.units.iter().map(|&(_, dtype)| Output {
            dtype,
            ndim: None,
            ..Output::uniform(DType::U8, 1)
        }))
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let file = Opened::open(&self.files.path(number))?;
        let mut samples = smallvec![];
        for (output, &(unit, wanted)) in self.units.iter().enumerate() {
            let pixels = read_image(&file, unit)?;
            let desc = Desc::new(pixels.dtype(), &pixels.shape);
            samples.push(match wanted.filter(|&wanted| wanted != desc.dtype) {
                None => {
                    let mut buffer = allocate(output, desc)?;
                    pixels.write(buffer.bytes());
                    buffer.into_sample()?
                }
                Some(wanted) => {
                    let mut buffer = OutputBuffer::new(desc)?;
                    pixels.write(buffer.bytes());
                    let mut converted = allocate(output, Desc::new(wanted, &pixels.shape))?;
                    convert(&buffer.into_sample()?, &mut converted.output())?;
                    converted.into_sample()?
                }
            });
        }
        Ok(samples)
    }
}
