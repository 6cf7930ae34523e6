//! Arrays in NumPy files (`.npy`), whole or in part.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use smallvec::{SmallVec, smallvec};

use super::files::Files;
use super::glob::Globs;
use super::listing::list_with_root;
use super::options::{Bytes, Names, Options};
use super::ranges::{broken, read_text};
use super::read::Opened;
use super::source::{OpenError, Output, Part, Result, Source, fetched};
use crate::kernels::Allocate;
use crate::kernels::regions::{Border, Fill, Region, cut};
use crate::value::{
    Buffer, Cause, DType, Desc, Origin, Sample, Stores, Strides, contiguous_strides, extent,
    problems,
};

problems! {
    /// What is wrong with a file.
    #[derive(PartialEq)]
    pub enum NpyFault {
        Empty,
        Magic,
        Version { version: u8 },
        HeaderCutOff,
        HeaderLength { length: usize },
        CutOff { shape: Vec<usize>, bytes: u64, left: u64 },
        NotText,
        Records,
        Entry { key: String },
        Missing { key: &'static str },
        Type { descr: String },
        Dimensions { ndim: usize },
        TooLarge { shape: Vec<usize> },
        Unexpected { found: String, wanted: String },
        Unterminated,
        Different {
            ndim: usize,
            dtype: &'static str,
            first: String,
            first_ndim: usize,
            first_dtype: &'static str,
        },
    }
}

problems! {
    /// What is wrong with the requested part of an array.
    pub enum WindowFault {
        Count { count: usize, found: usize },
        Far { value: f64 },
        Axis { axis: i64, ndim: usize },
        Repeated { axis: i64 },
        Negative { length: f64 },
        Reversed { first: i64, last: i64 },
        Outside { first: i64, last: i64, axis: usize, shape: Vec<usize> },
    }
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    desc: Desc,
    /// Fortran order: the first axis is contiguous.
    fortran: bool,
    /// The byte order differs from the machine's.
    swapped: bool,
    /// Offset of the data.
    data: u64,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Limit on the size of a header; real ones have a line or two.
const LONGEST: usize = 1 << 20;

/// NumPy's limit on the number of axes.
const MOST_AXES: usize = 64;

/// The first read: enough for any ordinary header.
const FIRST: usize = 512;

impl Header {
    fn read(file: &Opened) -> Result<Header> {
        let mut head = vec![0; FIRST];
        let got = file.read_up_to(0, &mut head)?;
        head.truncate(got);
        let (start, length) = match &head[..] {
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => {
                (10, usize::from(u16::from_le_bytes([*a, *b])))
            }
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, ..] => {
                (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize)
            }
            [b'\x93', b'N', b'U', b'M', b'P', b'Y', version, ..] if head.len() >= 12 => {
                return Err(broken(NpyFault::Version { version: *version }));
            }
            [] => return Err(broken(NpyFault::Empty)),
            _ if head.starts_with(MAGIC) => return Err(broken(NpyFault::HeaderCutOff)),
            _ => return Err(broken(NpyFault::Magic)),
        };
        if length > LONGEST {
            return Err(broken(NpyFault::HeaderLength { length }));
        }
        let end = start + length;
        if end > head.len() {
            head.resize(end, 0);
            if got < FIRST || file.read_up_to(got as u64, &mut head[got..])? < end - got {
                return Err(broken(NpyFault::HeaderCutOff));
            }
        }
        let header = Header::parse(&head[start..end], end as u64).map_err(broken)?;
        let bytes = header.desc.bytes() as u64;
        let left = file.size.saturating_sub(header.data);
        if bytes > left {
            return Err(broken(NpyFault::CutOff {
                shape: header.desc.shape.to_vec(),
                bytes,
                left,
            }));
        }
        Ok(header)
    }

    /// Parses the header's text, a Python dictionary.
    fn parse(text: &[u8], data: u64) -> Result<Header, NpyFault> {
        let text = std::str::from_utf8(text).map_err(|_| NpyFault::NotText)?;
        let mut rest = Literal(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.take('{')?;
        while !rest.accept('}') {
            let key = rest.text()?;
            rest.take(':')?;
            match key {
                "descr" if rest.peek() == Some('[') => {
                    return Err(NpyFault::Records);
                }
                "descr" => descr = Some(rest.text()?),
                "fortran_order" => fortran = Some(rest.truth()?),
                "shape" => shape = Some(rest.shape()?),
                other => return Err(NpyFault::Entry { key: other.into() }),
            }
            if !rest.accept(',') && rest.peek() != Some('}') {
                return Err(rest.unexpected(",}"));
            }
        }
        let missing = |key| NpyFault::Missing { key };
        let descr = descr.ok_or_else(|| missing("descr"))?;
        let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
        let shape: SmallVec<[usize; 6]> = shape.ok_or_else(|| missing("shape"))?;
        let (order, code) = match descr.chars().next() {
            Some(order @ ('<' | '>' | '|' | '=')) => (order, &descr[1..]),
            _ => ('=', descr),
        };
        let dtype = match code {
            "b1" | "?" => DType::Bool,
            "i1" => DType::I8,
            "i2" => DType::I16,
            "i4" => DType::I32,
            "i8" => DType::I64,
            "u1" => DType::U8,
            "u2" => DType::U16,
            "u4" => DType::U32,
            "u8" => DType::U64,
            "f2" => DType::F16,
            "f4" => DType::F32,
            "f8" => DType::F64,
            _ => {
                return Err(NpyFault::Type { descr: descr.into() });
            }
        };
        if shape.len() > MOST_AXES {
            return Err(NpyFault::Dimensions { ndim: shape.len() });
        }
        // Empty axes count as 1: the others must be valid even if there are no elements.
        let axes: SmallVec<[usize; 6]> = shape.iter().map(|&n| n.max(1)).collect();
        let bytes = extent(&axes).and_then(|n| n.checked_mul(dtype.size()));
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(NpyFault::TooLarge { shape: shape.to_vec() });
        }
        let big = order == '>' || (order == '=' && cfg!(target_endian = "big"));
        let swapped = dtype.size() > 1 && big != cfg!(target_endian = "big");
        Ok(Header { desc: Desc::new(dtype, &shape), fortran, swapped, data })
    }

    fn strides(&self) -> Strides {
        let size = self.desc.dtype.size();
        if !self.fortran {
            return contiguous_strides(&self.desc.shape, size);
        }
        let mut step = size as isize;
        let next = |&n: &usize| {
            let here = step;
            step *= n as isize;
            here
        };
        self.desc.shape.iter().map(next).collect()
    }
}

/// The unparsed rest of a Python literal.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn peek(&mut self) -> Option<char> {
        self.0 = self.0.trim_start();
        self.0.chars().next()
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.0 = &self.0[wanted.len_utf8()..];
        }
        found
    }

    fn take(&mut self, wanted: char) -> Result<(), NpyFault> {
        if self.accept(wanted) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    fn unexpected(&mut self, wanted: impl Into<String>) -> NpyFault {
        let found: String = self.0.trim().chars().take(20).collect();
        NpyFault::Unexpected { found, wanted: wanted.into() }
    }

    fn text(&mut self) -> Result<&'a str, NpyFault> {
        let quote = self.peek().filter(|quote| matches!(quote, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.unexpected("text"))?;
        let inner = &self.0[1..];
        let end = inner.find(quote).ok_or(NpyFault::Unterminated)?;
        self.0 = &inner[end + 1..];
        Ok(&inner[..end])
    }

    fn truth(&mut self) -> Result<bool, NpyFault> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("truth"))
    }

    fn shape(&mut self) -> Result<SmallVec<[usize; 6]>, NpyFault> {
        let mut shape = SmallVec::new();
        self.take('(')?;
        while !self.accept(')') {
            self.peek();
            let digits =
                self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let extent = self.0[..digits].parse();
            shape.push(extent.map_err(|_| self.unexpected("extent"))?);
            self.0 = &self.0[digits..];
            // Python 2 wrote integers like that.
            self.accept('L');
            if !self.accept(',') && self.peek() != Some(')') {
                return Err(self.unexpected(",)"));
            }
        }
        Ok(shape)
    }
}

/// The part of an array to read, given for all axes or some of them.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub start: Option<Bound>,
    pub end: Option<Bound>,
    pub shape: Option<Bound>,
}

/// The arguments that take bounds.
pub const WINDOW_ARGUMENTS: [&str; 6] =
    ["roi_start", "roi_end", "roi_shape", "rel_roi_start", "rel_roi_end", "rel_roi_shape"];

/// Bounds for the axes, in elements or relative to the extents.
#[derive(Clone, Debug)]
pub struct Bound {
    pub name: &'static str,
    pub values: SmallVec<[f64; 6]>,
    pub relative: bool,
}

/// What happens if the part goes beyond the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    #[default]
    Refused,
    Filled,
    Trimmed,
}

/// One window for all samples of a batch, or one per sample.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    pub axes: SmallVec<[i64; 6]>,
    pub fill: f32,
    pub outside: Outside,
    /// Empty for whole arrays, one window for all samples, or one per sample.
    pub each: Vec<Window>,
}

impl Bound {
    fn of(&self, index: usize, count: usize, extent: usize) -> Result<f64> {
        let value = match &self.values[..] {
            [one] => *one,
            all if all.len() == count => all[index],
            all => {
                let problem = WindowFault::Count { count, found: all.len() }.into();
                return Err(Cause::Argument { name: self.name, problem });
            }
        };
        // In single precision, like DALI.
        let part = || f64::from(value as f32 * extent as f32);
        let value = if self.relative { part() } else { value };
        // Far beyond any extent, but computing with it can't overflow.
        const FAR: f64 = (1_i64 << 53) as f64;
        if value.abs() <= FAR {
            return Ok(value);
        }
        Err(Cause::Argument { name: self.name, problem: WindowFault::Far { value }.into() })
    }
}

impl Windows {
    fn of(&self, position: usize) -> Option<&Window> {
        if self.each.len() > 1 { self.each.get(position) } else { self.each.first() }
    }

    fn axes(&self, ndim: usize) -> Result<SmallVec<[usize; 6]>> {
        let refuse =
            |fault: WindowFault| Err(Cause::Argument { name: "roi_axes", problem: fault.into() });
        if self.axes.is_empty() {
            return Ok((0..ndim).collect());
        }
        let mut found = SmallVec::new();
        for &axis in &self.axes {
            let from_start = if axis < 0 { axis + ndim as i64 } else { axis };
            if !(0..ndim as i64).contains(&from_start) {
                return refuse(WindowFault::Axis { axis, ndim });
            }
            if found.contains(&(from_start as usize)) {
                return refuse(WindowFault::Repeated { axis: from_start });
            }
            found.push(from_start as usize);
        }
        Ok(found)
    }

    /// The region of an array that a window selects.
    fn region(&self, window: &Window, desc: &Desc) -> Result<Region> {
        let axes = self.axes(desc.ndim())?;
        let mut region = Region { start: smallvec![0; desc.ndim()], shape: desc.shape.clone() };
        for (index, &axis) in axes.iter().enumerate() {
            let n = desc.shape[axis];
            let place = |bound: &Bound| bound.of(index, axes.len(), n);
            let start = window.start.as_ref().map_or(Ok(0.0), place)?;
            let end = match (&window.end, &window.shape) {
                (Some(end), _) => place(end)?,
                (None, Some(shape)) => {
                    let length = place(shape)?;
                    if length < 0.0 {
                        let problem = WindowFault::Negative { length }.into();
                        return Err(Cause::Argument { name: shape.name, problem });
                    }
                    start + length
                }
                (None, None) => n as f64,
            };
            let (first, last) = (start.round() as i64, end.round() as i64);
            let named = [&window.end, &window.shape, &window.start].into_iter().flatten().next();
            let name = named.map_or("roi_start", |bound| bound.name);
            if last < first {
                let problem = WindowFault::Reversed { first, last }.into();
                return Err(Cause::Argument { name, problem });
            }
            let limit = n as i64;
            let (first, last) = match self.outside {
                Outside::Trimmed => (first.clamp(0, limit), last.clamp(0, limit)),
                Outside::Refused if first < 0 || last > limit => {
                    let shape = desc.shape.to_vec();
                    let problem = WindowFault::Outside { first, last, axis, shape }.into();
                    return Err(Cause::Input { index: 0, problem });
                }
                _ => (first, last),
            };
            region.start[axis] = first;
            region.shape[axis] = (last - first) as usize;
        }
        let bytes = extent(&region.shape).and_then(|n| n.checked_mul(desc.dtype.size()));
        match bytes {
            Some(_) => Ok(region),
            None => Err(Cause::Memory { bytes: usize::MAX }),
        }
    }
}

/// Arrays by number.
pub struct Arrays {
    pub files: Files,
    /// Headers read so far, if they are cached.
    headers: Option<Box<[OnceLock<Header>]>>,
}

impl Arrays {
    pub fn new(files: Files, keep_headers: bool) -> Arrays {
        let headers = keep_headers.then(|| (0..files.len()).map(|_| OnceLock::new()).collect());
        Arrays { files, headers }
    }

    fn header(&self, number: usize, file: &Opened) -> Result<Header> {
        match self.headers.as_ref().map(|headers| &headers[number]) {
            None => Header::read(file),
            Some(kept) => match kept.get() {
                Some(header) => Ok(header.clone()),
                None => {
                    let header = Header::read(file)?;
                    Ok(kept.get_or_init(|| header).clone())
                }
            },
        }
    }
}

/// Opens the files in `files`, in the text file `list`, or in `root` and its folders.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let root: PathBuf = options.take("root")?;
    let mut files = Files::new(root);
    if let Some(names) = options.take::<Option<Names>>("files")? {
        names.iter().for_each(|name| files.push(name, 0));
    } else if let Some(list) = options.take::<Option<PathBuf>>("list")? {
        let text = read_text(&list).map_err(|error| error.option("list"))?;
        for line in text.split(|&byte| byte == b'\n') {
            let name = line.strip_suffix(b"\r").unwrap_or(line);
            if !name.trim_ascii().is_empty() {
                files.push(name, 0);
            }
        }
    } else {
        let pattern: Bytes = options.take("pattern")?;
        files = list_with_root(files.root(), &Globs::new(&[&pattern.0], false))?;
    }
    let arrays = Arc::new(Arrays::new(files, options.take("keep_headers")?));
    Ok(Arc::new(Parts { arrays, windows: Windows::take(options)? }))
}

impl Windows {
    /// The windows given by options. A bound is its argument's name, its values, and whether they
    /// are relative; `windows` has start, end and shape of each.
    fn take(options: &mut Options) -> Result<Arc<Windows>, OpenError> {
        type Given = Option<(String, Vec<f64>, bool)>;
        let choices = [
            ("error", Outside::Refused),
            ("pad", Outside::Filled),
            ("trim_to_shape", Outside::Trimmed),
        ];
        let outside = options.choice("out_of_bounds", &choices)?;
        let bound = |given: Given| {
            given.map(|(name, values, relative)| Bound {
                name: WINDOW_ARGUMENTS.into_iter().find(|n| *n == name).unwrap_or("roi_start"),
                values: values.into(),
                relative,
            })
        };
        let each: Vec<(Given, Given, Given)> = options.take("windows")?;
        let each = each.into_iter().map(|(start, end, shape)| Window {
            start: bound(start),
            end: bound(end),
            shape: bound(shape),
        });
        let each = each.collect();
        let axes: Vec<i64> = options.take("axes")?;
        Ok(Arc::new(Windows { axes: axes.into(), fill: options.take("fill")?, outside, each }))
    }
}

/// Arrays, or the parts that the arguments of a call select.
pub struct Parts {
    arrays: Arc<Arrays>,
    windows: Arc<Windows>,
}

impl Parts {
    fn cuts(&self, numbers: &[usize]) -> Option<Cuts> {
        Cuts::new(self.arrays.clone(), numbers.into(), self.windows.clone())
    }
}

impl Source for Parts {
    fn len(&self) -> usize {
        self.arrays.files.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        self.arrays.files.name(number)
    }

    fn origin(&self, number: usize, part: usize) -> Origin {
        self.arrays.files.origin(number, part)
    }

    /// Depends on names and their order.
    fn fingerprint(&self) -> u64 {
        self.arrays.files.fingerprint()
    }

    fn outputs(&self) -> Vec<Part> {
        array_output()
    }

    fn fetch(
        &self,
        number: usize,
        part: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let cuts = self.cuts(&[number]);
        cuts.ok_or_else(|| Cause::Internal("a window for one array".into()))?
            .fetch(0, part, allocate)
    }

    fn with_arguments(self: Arc<Self>, mut options: Options) -> Result<Arc<dyn Source>, OpenError> {
        let windows = Windows::take(&mut options)?;
        options.finish()?;
        Ok(Arc::new(Parts { arrays: self.arrays.clone(), windows }))
    }

    fn batch(self: Arc<Self>, numbers: &[usize]) -> Result<Option<Arc<dyn Source>>, OpenError> {
        match self.cuts(numbers) {
            Some(cuts) => Ok(Some(Arc::new(cuts))),
            None => Err(OpenError::Options("there must be a window for each sample".into())),
        }
    }
}

/// Type and rank are only known from the header.
fn array_output() -> Vec<Part> {
    fetched([Output { dtype: None, ndim: None, ..Output::uniform(DType::U8, 1) }])
}

/// A batch of arrays or of parts, numbered by position.
pub struct Cuts {
    arrays: Arc<Arrays>,
    numbers: Box<[usize]>,
    windows: Arc<Windows>,
    /// Element type and number of axes of the first sample, which the others must match.
    common: OnceLock<Option<(DType, usize)>>,
}

impl Cuts {
    /// `None` if there is no array of one of the numbers, or the number of windows is wrong.
    pub fn new(arrays: Arc<Arrays>, numbers: Box<[usize]>, windows: Arc<Windows>) -> Option<Cuts> {
        let known = numbers.iter().all(|&number| number < arrays.files.len());
        let fits = windows.each.len() <= 1 || windows.each.len() == numbers.len();
        (known && fits).then(|| Cuts { arrays, numbers, windows, common: OnceLock::new() })
    }

    /// Type and rank of the first sample. `None` if it can't be read.
    fn first(&self) -> Result<Option<(DType, usize)>> {
        let number = self.numbers[0];
        let file = Opened::open(&self.arrays.files.path(number));
        match file.and_then(|file| self.arrays.header(number, &file)) {
            Ok(header) => Ok(Some((header.desc.dtype, header.desc.ndim()))),
            Err(Cause::File { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn check_common(&self, position: usize, desc: &Desc) -> Result<()> {
        let own = (desc.dtype, desc.ndim());
        let first = match self.common.get() {
            Some(first) => *first,
            None if position == 0 => *self.common.get_or_init(|| Some(own)),
            None => {
                let first = self.first()?;
                *self.common.get_or_init(|| first)
            }
        };
        match first {
            Some((dtype, ndim)) if (dtype, ndim) != own => Err(Cause::Input {
                index: 0,
                problem: NpyFault::Different {
                    ndim: own.1,
                    dtype: own.0.name(),
                    first: self.arrays.files.name(self.numbers[0]).to_string(),
                    first_ndim: ndim,
                    first_dtype: dtype.name(),
                }
                .into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Source for Cuts {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn fetch(
        &self,
        position: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let number = self.numbers[position];
        let file = Opened::open(&self.arrays.files.path(number))?;
        let header = self.arrays.header(number, &file)?;
        let desc = &header.desc;
        if self.numbers.len() > 1 {
            self.check_common(position, desc)?;
        }
        let region = match self.windows.of(position) {
            Some(window) => self.windows.region(window, desc)?,
            None => Region { start: smallvec![0; desc.ndim()], shape: desc.shape.clone() },
        };
        let mut space = allocate(0, Desc { shape: region.shape.clone(), ..desc.clone() })?;
        read_part(&file, &header, &region, self.windows.fill, space.bytes())?;
        Ok(smallvec![space.into_sample()?])
    }

    fn name(&self, position: usize) -> Arc<str> {
        self.arrays.files.name(self.numbers[position])
    }

    fn origin(&self, position: usize, part: usize) -> Origin {
        self.arrays.files.origin(self.numbers[position], part)
    }

    fn fingerprint(&self) -> u64 {
        self.arrays.files.fingerprint()
    }

    fn outputs(&self) -> Vec<Part> {
        array_output()
    }
}

/// Reads a part of an array, and at most the bytes from its first element to its last.
fn read_part(
    file: &Opened,
    header: &Header,
    region: &Region,
    fill: f32,
    out: &mut [u8],
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let desc = &header.desc;
    let size = desc.dtype.size();
    let strides = header.strides();
    // The intersection of the part and the array.
    let mut start: SmallVec<[usize; 6]> = SmallVec::new();
    let mut shape: SmallVec<[usize; 6]> = SmallVec::new();
    for ((&from, &length), &n) in region.start.iter().zip(&region.shape).zip(&desc.shape) {
        let clip = |place: i64| place.clamp(0, n as i64) as usize;
        let (first, last) = (clip(from), clip(from + length as i64));
        start.push(first);
        shape.push(last - first);
    }
    let first: usize = start.iter().zip(&strides).map(|(&i, &step)| i * step as usize).sum();
    if shape.contains(&0) {
        // The intersection is empty: the result is all fill value.
        let none = Sample::new(Desc::new(desc.dtype, &shape), Buffer::new(0)?, 0)?;
        let start = region.start.iter().zip(&start).map(|(&a, &b)| a - b as i64).collect();
        let region = Region { start, shape: region.shape.clone() };
        let fill = Fill::nearest(fill, desc.dtype);
        return cut(&none, &region, Border::Constant, &fill, out, &Stores::plain());
    }
    let reach: usize =
        shape.iter().zip(&strides).map(|(&n, &step)| (n - 1) * step as usize).sum::<usize>() + size;
    let at = header.data + first as u64;
    if reach == out.len() && strides_are_those_of(&shape, &strides, size) && shape == region.shape {
        file.read(at, out)?;
        if header.swapped {
            swap(out, size);
        }
        return Ok(());
    }
    if let Some(run) = long_run(&shape, &strides, size).filter(|_| shape == region.shape) {
        for (out, offset) in out.chunks_exact_mut(run).zip(offsets(&shape, &strides, size, run)) {
            file.read(at + offset as u64, out)?;
        }
        if header.swapped {
            swap(out, size);
        }
        return Ok(());
    }
    let buffer = Buffer::new(reach)?;
    // SAFETY: the buffer is new, initialized, this long, and has no other references.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), reach) };
    file.read(at, bytes)?;
    if header.swapped {
        swap(bytes, size);
    }
    let inside = Sample::strided(Desc::new(desc.dtype, &shape), buffer, 0, strides)?;
    let start = region.start.iter().zip(&start).map(|(&a, &b)| a - b as i64).collect();
    let region = Region { start, shape: region.shape.clone() };
    let fill = Fill::nearest(fill, desc.dtype);
    cut(&inside, &region, Border::Constant, &fill, out, &Stores::plain())
}

/// Whether these are the strides of a contiguous row-major array.
fn strides_are_those_of(shape: &[usize], strides: &[isize], size: usize) -> bool {
    let dense = contiguous_strides(shape, size);
    (shape.iter().zip(strides).zip(&dense)).all(|((&n, a), b)| n == 1 || a == b)
}

/// The number of bytes that are contiguous in both the part and the file, if there are enough of
/// them that reading run by run is faster than reading the whole range.
fn long_run(shape: &[usize], strides: &[isize], size: usize) -> Option<usize> {
    const LONG: usize = 16 << 10;
    let mut run = size;
    for (&n, &step) in shape.iter().zip(strides).rev() {
        if n != 1 && step != run as isize {
            break;
        }
        run *= n;
    }
    (run >= LONG).then_some(run)
}

/// The offsets of the runs, in row-major order.
fn offsets<'a>(
    shape: &'a [usize],
    strides: &'a [isize],
    size: usize,
    run: usize,
) -> impl Iterator<Item = usize> + 'a {
    let all: usize = shape.iter().product::<usize>() * size;
    (0..all / run).map(move |index| {
        let mut element = index * (run / size);
        let mut offset = 0;
        for (&n, &step) in shape.iter().zip(strides).rev() {
            offset += element % n * step as usize;
            element /= n;
        }
        offset
    })
}

fn swap(bytes: &mut [u8], size: usize) {
    bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, NpyFault> {
        Header::parse(text.as_bytes(), 0)
    }

    #[test]
    fn headers_are_read_as_python_writes_them() {
        let header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n");
        let expected = Desc::new(DType::F32, &[3, 4]);
        assert_eq!(header, Ok(Header { desc: expected, fortran: false, swapped: false, data: 0 }));
        let header = parse("{\"shape\": (5L,), 'fortran_order':True,'descr':'>i2'}").unwrap();
        assert_eq!(
            (header.fortran, header.swapped, &header.desc.shape[..]),
            (true, true, &[5][..])
        );
        assert_eq!(
            parse("{'descr': '|b1', 'fortran_order': False, 'shape': ()}").unwrap().desc.ndim(),
            0
        );
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for text in [
            "",
            "{",
            "{'descr'",
            "{'descr': '<f4'",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808, 0)}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 9223372036854775807)}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 4294967296, 4294967296)}",
            "{'more': 1, 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
