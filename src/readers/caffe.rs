//! LMDB databases with records of Caffe (`Datum`) and Caffe2 (`TensorProtos`).

use std::ops::Range;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::lmdb::Lmdb;
use super::options::Options;
use super::protobuf::{Field, Fields, Unparsed, add, extend_floats, extend_integers};
use super::source::{OpenError, Output, Part, Result, Source, fetched};
use crate::kernels::{Allocate, OutputBuffer};
use crate::value::{Cause, DType, Desc, Element, Problem, Sample, extent, problems, zeroed};

problems! {
    /// What is wrong with a record.
    pub enum CaffeFault {
        CutOff { bytes: usize },
        NotDatum { problem: Problem },
        NotTensors { problem: Problem },
        Tensor { number: usize, problem: Problem },
        TooMany { limit: usize },
        Tensors { found: usize, wanted: usize },
        Pixels { height: i32, width: i32, channels: i32, bytes: usize },
        Shape { shape: Vec<u64>, bytes: usize },
        EmptyImage,
        ImageType { dtype: u64 },
        Labels { found: usize },
        Weights { labels: usize, weights: usize },
        Class { class: i32, classes: usize },
        Box { found: usize },
        NotNumbers { what: &'static str, dtype: u64 },
        NotInt32 { what: &'static str, dtype: u64 },
        NotFloat { what: &'static str, dtype: u64 },
    }
}

/// Records of Caffe: an image and its class.
pub struct Caffe {
    pub records: Arc<Lmdb>,
    pub image: bool,
    pub label: bool,
}

/// Records of Caffe2: an image, labels, additional tensors and a box.
pub struct Caffe2 {
    pub records: Arc<Lmdb>,
    pub image: bool,
    pub labels: Labels,
    /// The number of classes, for labels that list the classes that apply.
    pub classes: usize,
    pub additional: usize,
    pub bbox: bool,
}

/// The kind of labels in records of Caffe2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// One number.
    Single,
    /// The classes that apply.
    Sparse,
    /// A vector of numbers.
    Dense,
    /// The classes that apply, each with a weight.
    Weighted,
    None,
}

impl Labels {
    pub const ALL: [Labels; 5] =
        [Labels::Single, Labels::Sparse, Labels::Dense, Labels::Weighted, Labels::None];
}

/// Opens the databases in `files`.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let records = Lmdb::open(options)?;
    Ok(Arc::new(Caffe { records, image: options.take("image")?, label: options.take("label")? }))
}

/// Opens the databases in `files`.
pub fn open2(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let labels = Labels::ALL.get(options.take::<usize>("label_type")?).copied();
    let labels = labels.ok_or_else(|| OpenError::Options("no such type of labels".into()))?;
    Ok(Arc::new(Caffe2 {
        records: Lmdb::open(options)?,
        image: options.take("image")?,
        labels,
        classes: options.take("classes")?,
        additional: options.take("additional")?,
        bbox: options.take("bbox")?,
    }))
}

/// An encoded image, or pixels.
fn image_output() -> Output {
    Output { ndim: None, ..Output::new(DType::U8, 1) }
}

fn refuse<T>(problem: impl Into<Problem>) -> Result<T> {
    Err(Cause::File { problem: problem.into() })
}

/// The bytes of a record, in memory that results can share.
struct Record(Sample);

impl Record {
    fn read(records: &Lmdb, number: usize) -> Result<Record> {
        if let Some(reason) = records.damage(number) {
            return refuse(reason.clone());
        }
        let bytes = records.size(number);
        if !records.is_there(number) {
            return refuse(CaffeFault::CutOff { bytes });
        }
        let mut buffer = OutputBuffer::new(Desc::new(DType::U8, &[bytes]))?;
        records.read(number, buffer.bytes())?;
        Ok(Record(buffer.into_sample()?))
    }

    fn bytes(&self) -> &[u8] {
        self.0.elements_as_bytes()
    }

    /// A part of the record with this shape; the sizes must match.
    fn share(&self, piece: &[u8], shape: &[usize]) -> Result<Sample> {
        let start = piece.as_ptr() as usize - self.0.as_ptr() as usize;
        self.0.part(Desc::new(DType::U8, shape), start)
    }
}

fn row<T: Element>(values: &[T], output: usize, allocate: &Allocate<'_>) -> Result<Sample> {
    let mut buffer = allocate(output, Desc::new(T::DTYPE, &[values.len()]))?;
    buffer.elements::<T>().copy_from_slice(values);
    buffer.into_sample()
}

impl Source for Caffe {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let record = Record::read(&self.records, number)?;
        let datum = Datum::parse(record.bytes())?;
        let mut made = smallvec![];
        if self.image {
            made.push(match datum.data {
                Some(data) if datum.encoded => record.share(data, &[data.len()])?,
                Some(data) => record.share(data, &datum.shape(data.len())?)?,
                None => row::<u8>(&[], 0, allocate)?,
            });
        }
        if self.label {
            made.push(row(datum.label.as_slice(), made.len(), allocate)?);
        }
        Ok(made)
    }

    fn outputs(&self) -> Vec<Part> {
        let image = self.image.then(image_output);
        let label = self.label.then(|| Output::uniform(DType::I32, 1));
        fetched(image.into_iter().chain(label))
    }

    fn fingerprint(&self) -> u64 {
        self.records.fingerprint()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.records.name(number)
    }
}

/// A record of Caffe.
struct Datum<'a> {
    channels: i32,
    height: i32,
    width: i32,
    data: Option<&'a [u8]>,
    label: Option<i32>,
    /// Whether `data` is an encoded image, which is the default.
    encoded: bool,
}

impl<'a> Datum<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Datum<'a>> {
        let mut datum =
            Datum { channels: 0, height: 0, width: 0, data: None, label: None, encoded: true };
        for field in Fields::new(bytes) {
            match field
                .map_err(|problem| problem.cause(|problem| CaffeFault::NotDatum { problem }))?
            {
                (1, Field::Number(value)) => datum.channels = value as i32,
                (2, Field::Number(value)) => datum.height = value as i32,
                (3, Field::Number(value)) => datum.width = value as i32,
                (4, Field::Bytes(data)) => datum.data = Some(data),
                (5, Field::Number(value)) => datum.label = Some(value as i32),
                (7, Field::Number(value)) => datum.encoded = value != 0,
                _ => {}
            }
        }
        Ok(datum)
    }

    fn shape(&self, bytes: usize) -> Result<[usize; 3]> {
        let [height, width, channels] = [self.height, self.width, self.channels];
        let shape = [height, width, channels].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        match extent(&shape) == Some(bytes) {
            true => Ok(shape),
            false => refuse(CaffeFault::Pixels { height, width, channels, bytes }),
        }
    }
}

impl Source for Caffe2 {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let record = Record::read(&self.records, number)?;
        let tensors = parse_tensors(record.bytes())?;
        let wanted = self.wanted();
        if tensors.len() != wanted {
            return refuse(CaffeFault::Tensors { found: tensors.len(), wanted });
        }
        let mut made: SmallVec<[Sample; 1]> = smallvec![];
        let mut rest = &tensors[..];
        let mut take = |count: usize| {
            let (taken, after) = rest.split_at(count);
            rest = after;
            taken
        };
        if self.image {
            made.push(take(1)[0].image(&record)?);
        }
        let output = made.len();
        match self.labels {
            Labels::None => {}
            Labels::Single => {
                let label = &take(1)[0];
                if label.count() != 1 {
                    return refuse(CaffeFault::Labels { found: label.count() });
                }
                made.push(label.row("label", output, allocate)?);
            }
            Labels::Dense => made.push(take(1)[0].row("label", output, allocate)?),
            Labels::Sparse => {
                let mut chosen = zeroed::<i32>(self.classes)?;
                for &class in take(1)[0].integers("label")? {
                    chosen[self.class(class)?] = 1;
                }
                made.push(row(&chosen, output, allocate)?);
            }
            Labels::Weighted => {
                let [classes, weights] = take(2) else {
                    return refuse(CaffeFault::Weights { labels: 0, weights: 0 });
                };
                let (classes, weights) = (classes.integers("label")?, weights.floats("weight")?);
                if classes.len() != weights.len() {
                    let (labels, weights) = (classes.len(), weights.len());
                    return refuse(CaffeFault::Weights { labels, weights });
                }
                let mut chosen = zeroed::<f32>(self.classes)?;
                for (&class, &weight) in classes.iter().zip(weights) {
                    chosen[self.class(class)?] = weight;
                }
                made.push(row(&chosen, output, allocate)?);
            }
        }
        for tensor in take(self.additional) {
            made.push(tensor.row("additional input", made.len(), allocate)?);
        }
        if self.bbox {
            let bbox = take(1)[0].integers("box")?;
            if bbox.len() != 4 {
                return refuse(CaffeFault::Box { found: bbox.len() });
            }
            made.push(row(bbox, made.len(), allocate)?);
        }
        Ok(made)
    }

    fn outputs(&self) -> Vec<Part> {
        let image = self.image.then(image_output);
        // Whether labels are integers is only known from the records.
        let row = |dtype, uniform| Output { dtype, uniform, ..Output::new(DType::I32, 1) };
        let labels = match self.labels {
            Labels::None => None,
            Labels::Single => Some(row(None, true)),
            Labels::Dense => Some(row(None, false)),
            Labels::Sparse => Some(row(Some(DType::I32), true)),
            Labels::Weighted => Some(row(Some(DType::F32), true)),
        };
        let additional = (0..self.additional).map(|_| row(None, false));
        let bbox = self.bbox.then(|| Output::uniform(DType::I32, 1));
        fetched(image.into_iter().chain(labels).chain(additional).chain(bbox))
    }

    fn fingerprint(&self) -> u64 {
        self.records.fingerprint()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.records.name(number)
    }
}

impl Caffe2 {
    /// The number of tensors that a record must have.
    fn wanted(&self) -> usize {
        let labels = match self.labels {
            Labels::None => 0,
            Labels::Weighted => 2,
            _ => 1,
        };
        usize::from(self.image) + labels + self.additional + usize::from(self.bbox)
    }

    fn class(&self, class: i32) -> Result<usize> {
        match usize::try_from(class).ok().filter(|&class| class < self.classes) {
            Some(class) => Ok(class),
            None => refuse(CaffeFault::Class { class, classes: self.classes }),
        }
    }
}

/// A tensor of Caffe2, of one of the types that occur in data sets.
#[derive(Default)]
struct Tensor<'a> {
    dims: SmallVec<[u64; 4]>,
    dtype: u64,
    floats: Vec<f32>,
    integers: Vec<i32>,
    bytes: Range<usize>,
    texts: SmallVec<[&'a [u8]; 1]>,
    message: &'a [u8],
}

const FLOAT: u64 = 1;
const INT32: u64 = 2;
const BYTE: u64 = 3;
const STRING: u64 = 4;

/// Real records have a handful of tensors. A parsed tensor takes more memory than its two bytes in
/// the record, so the number is limited.
const MOST_TENSORS: usize = 10_000;

fn parse_tensors(bytes: &[u8]) -> Result<SmallVec<[Tensor<'_>; 4]>> {
    let mut tensors = smallvec![];
    for field in Fields::new(bytes) {
        let wrong = |problem: Unparsed| problem.cause(|problem| CaffeFault::NotTensors { problem });
        if let (1, Field::Bytes(message)) = field.map_err(wrong)? {
            let number = tensors.len();
            if number == MOST_TENSORS {
                return refuse(CaffeFault::TooMany { limit: MOST_TENSORS });
            }
            let tensor = Tensor::parse(message);
            let wrong =
                |problem: Unparsed| problem.cause(|problem| CaffeFault::Tensor { number, problem });
            tensors.push(tensor.map_err(wrong)?);
        }
    }
    Ok(tensors)
}

impl<'a> Tensor<'a> {
    fn parse(message: &'a [u8]) -> std::result::Result<Tensor<'a>, Unparsed> {
        let mut tensor = Tensor { dtype: FLOAT, message, ..Tensor::default() };
        for field in Fields::new(message) {
            match field? {
                (1, Field::Number(extent)) => add(&mut tensor.dims, extent)?,
                (1, packed @ Field::Bytes(_)) => {
                    let mut dims = Vec::new();
                    extend_integers(&mut dims, packed, |extent| extent)?;
                    dims.into_iter().try_for_each(|extent| add(&mut tensor.dims, extent))?;
                }
                (2, Field::Number(dtype)) => tensor.dtype = dtype,
                (3, values) => extend_floats(&mut tensor.floats, values)?,
                (4, values) => extend_integers(&mut tensor.integers, values, |n| n as i32)?,
                (5, Field::Bytes(bytes)) => {
                    let start = bytes.as_ptr() as usize - message.as_ptr() as usize;
                    tensor.bytes = start..start + bytes.len();
                }
                (6, Field::Bytes(text)) => add(&mut tensor.texts, text)?,
                _ => {}
            }
        }
        Ok(tensor)
    }

    fn image(&self, record: &Record) -> Result<Sample> {
        match self.dtype {
            STRING => match self.texts.first() {
                Some(text) => record.share(text, &[text.len()]),
                None => refuse(CaffeFault::EmptyImage),
            },
            BYTE => {
                let bytes = self.message.get(self.bytes.clone()).unwrap_or_default();
                let shape: SmallVec<[usize; 4]> =
                    self.dims.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
                if shape.len() != 3 || extent(&shape) != Some(bytes.len()) {
                    return refuse(CaffeFault::Shape {
                        shape: self.dims.to_vec(),
                        bytes: bytes.len(),
                    });
                }
                record.share(bytes, &shape)
            }
            _ => refuse(CaffeFault::ImageType { dtype: self.dtype }),
        }
    }

    fn count(&self) -> usize {
        if self.dtype == FLOAT { self.floats.len() } else { self.integers.len() }
    }

    fn row(&self, what: &'static str, output: usize, allocate: &Allocate<'_>) -> Result<Sample> {
        match self.dtype {
            FLOAT => row(&self.floats, output, allocate),
            INT32 => row(&self.integers, output, allocate),
            dtype => refuse(CaffeFault::NotNumbers { what, dtype }),
        }
    }

    fn integers(&self, what: &'static str) -> Result<&[i32]> {
        match self.dtype {
            INT32 => Ok(&self.integers),
            dtype => refuse(CaffeFault::NotInt32 { what, dtype }),
        }
    }

    fn floats(&self, what: &'static str) -> Result<&[f32]> {
        match self.dtype {
            FLOAT => Ok(&self.floats),
            dtype => refuse(CaffeFault::NotFloat { what, dtype }),
        }
    }
}
