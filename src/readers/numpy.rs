//! Arrays in NumPy files (`.npy`), whole or in part.

use std::sync::{Arc, OnceLock};

use smallvec::{SmallVec, smallvec};

use super::files::Files;
use super::options::Options;
use super::ranges::broken;
use super::read::Opened;
use super::source::{OpenError, Output, Part, Result, Source, fetched};
use crate::codecs::npy::{Header, NpyFault, swap};
use crate::kernels::Allocate;
use crate::kernels::regions::{Border, Fill, Region, cut};
use crate::value::{
    Buffer, Cause, DType, Desc, Origin, Sample, Stores, contiguous_strides, extent, problems,
};

problems! {
    /// What is wrong with the part of an array that is wanted.
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

/// What is read of a file at first: enough for any usual header.
const FIRST: usize = 512;

/// Reads the header of a file, which must have all elements.
fn read_header(file: &Opened) -> Result<Header> {
    let mut head = vec![0; FIRST];
    let got = file.read_up_to(0, &mut head)?;
    head.truncate(got);
    let dictionary = Header::dictionary(&head).map_err(broken)?;
    let end = dictionary.end;
    if end > head.len() {
        head.resize(end, 0);
        if got < FIRST || file.read_up_to(got as u64, &mut head[got..])? < end - got {
            return Err(broken(NpyFault::HeaderCutOff));
        }
    }
    let header = Header::parse(&head[dictionary], end as u64).map_err(broken)?;
    header.check_length(file.size.saturating_sub(header.data)).map_err(broken)?;
    Ok(header)
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
            None => read_header(file),
            Some(kept) => match kept.get() {
                Some(header) => Ok(header.clone()),
                None => {
                    let header = read_header(file)?;
                    Ok(kept.get_or_init(|| header).clone())
                }
            },
        }
    }
}

/// Opens the files in `files`, in the text file `list`, or in `root` and its folders.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let arrays = Arc::new(Arrays::new(Files::chosen(options)?, options.take("keep_headers")?));
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
        let file = Opened::open_whole(&self.arrays.files.path(number));
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
        let file = Opened::open_whole(&self.arrays.files.path(number))?;
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
