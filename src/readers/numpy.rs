//! Arrays in files as NumPy writes them, whole or a part of them.

use std::sync::{Arc, OnceLock};

use smallvec::{SmallVec, smallvec};

use super::fetch::Source;
use super::files::Files;
use super::read::Opened;
use crate::kernels::regions::{Border, Fill, Region, cut};
use crate::kernels::{Allocate, Result};
use crate::value::{
    Buffer, Cause, DType, Desc, Origin, Sample, Stores, Strides, contiguous_strides, extent,
};

/// What a file says of its array.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    desc: Desc,
    /// Which axis comes first in memory: the last one, unless it is Fortran's order.
    fortran: bool,
    /// The bytes of an element are the other way round.
    swapped: bool,
    /// Where the elements begin.
    data: u64,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers are a line or two.
const LONGEST: usize = 1 << 20;

/// As many as arrays of NumPy have.
const MOST_AXES: usize = 64;

/// What is read at first: enough for any usual header.
const FIRST: usize = 512;

fn damaged(problem: impl Into<String>) -> Cause {
    Cause::File { problem: problem.into().into() }
}

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
                return Err(damaged(format!("its format has the unknown version {version}")));
            }
            [] => return Err(damaged("it is empty")),
            _ if head.starts_with(MAGIC) => return Err(damaged("it ends within its header")),
            _ => return Err(damaged("it is not in NumPy's format: its first bytes are others")),
        };
        if length > LONGEST {
            return Err(damaged(format!("its header is said to have {length} bytes")));
        }
        let end = start + length;
        if end > head.len() {
            head.resize(end, 0);
            if got < FIRST || file.read_up_to(got as u64, &mut head[got..])? < end - got {
                return Err(damaged("it ends within its header"));
            }
        }
        let header = Header::parse(&head[start..end], end as u64).map_err(damaged)?;
        let bytes = header.desc.bytes() as u64;
        let left = file.size.saturating_sub(header.data);
        if bytes > left {
            return Err(damaged(format!(
                "its array of shape {:?} takes {bytes} bytes, of which it has {left}",
                &header.desc.shape[..]
            )));
        }
        Ok(header)
    }

    /// Parses the dictionary that a header is, as Python writes it.
    fn parse(text: &[u8], data: u64) -> std::result::Result<Header, String> {
        let text = std::str::from_utf8(text).map_err(|_| "its header is no text")?;
        let mut rest = Literal(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.take('{')?;
        while !rest.accept('}') {
            let key = rest.text()?;
            rest.take(':')?;
            match key {
                "descr" if rest.peek() == Some('[') => {
                    return Err("its elements are records; arrays of numbers can be read".into());
                }
                "descr" => descr = Some(rest.text()?),
                "fortran_order" => fortran = Some(rest.truth()?),
                "shape" => shape = Some(rest.shape()?),
                other => return Err(format!("its header has the unknown entry {other:?}")),
            }
            if !rest.accept(',') && rest.peek() != Some('}') {
                return Err(rest.unexpected("',' or '}'"));
            }
        }
        let missing = |name: &str| format!("its header has no {name:?}");
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
                return Err(format!(
                    "its elements are of NumPy's type {descr:?}; bool, integers and floats of up \
                     to 64 bits can be read"
                ));
            }
        };
        if shape.len() > MOST_AXES {
            return Err(format!("its array has {} dimensions", shape.len()));
        }
        // Also where there are no elements: the other axes must be ones that memory could hold.
        let axes: SmallVec<[usize; 6]> = shape.iter().map(|&n| n.max(1)).collect();
        let bytes = extent(&axes).and_then(|n| n.checked_mul(dtype.size()));
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(format!("its shape {:?} is more than memory can hold", &shape[..]));
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

/// The rest of a literal of Python.
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

    fn take(&mut self, wanted: char) -> std::result::Result<(), String> {
        if self.accept(wanted) { Ok(()) } else { Err(self.unexpected(&format!("{wanted:?}"))) }
    }

    fn unexpected(&mut self, wanted: &str) -> String {
        let found: String = self.0.trim().chars().take(20).collect();
        format!("its header has {found:?} where {wanted} should be")
    }

    fn text(&mut self) -> std::result::Result<&'a str, String> {
        let quote = self.peek().filter(|quote| matches!(quote, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.unexpected("a text in quotes"))?;
        let inner = &self.0[1..];
        let end = inner.find(quote).ok_or("its header has a text without an end")?;
        self.0 = &inner[end + 1..];
        Ok(&inner[..end])
    }

    fn truth(&mut self) -> std::result::Result<bool, String> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn shape(&mut self) -> std::result::Result<SmallVec<[usize; 6]>, String> {
        let mut shape = SmallVec::new();
        self.take('(')?;
        while !self.accept(')') {
            self.peek();
            let digits =
                self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let extent = self.0[..digits].parse();
            shape.push(extent.map_err(|_| self.unexpected("an extent of the shape"))?);
            self.0 = &self.0[digits..];
            // Python 2 wrote long numbers so.
            self.accept('L');
            if !self.accept(',') && self.peek() != Some(')') {
                return Err(self.unexpected("',' or ')'"));
            }
        }
        Ok(shape)
    }
}

/// Which part of an array is wanted, for each of the axes, or for some of them.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub start: Option<Bound>,
    pub end: Option<Bound>,
    pub shape: Option<Bound>,
}

/// The arguments that give bounds.
pub const WINDOW_ARGUMENTS: [&str; 6] =
    ["roi_start", "roi_end", "roi_shape", "rel_roi_start", "rel_roi_end", "rel_roi_shape"];

/// Places on the axes, as numbers of elements or as parts of the extent.
#[derive(Clone, Debug)]
pub struct Bound {
    pub name: &'static str,
    pub values: SmallVec<[f64; 6]>,
    pub relative: bool,
}

/// Where parts may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    #[default]
    Refused,
    Filled,
    Trimmed,
}

/// Windows for all samples of a batch alike, or for each.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    pub axes: SmallVec<[i64; 6]>,
    pub fill: f32,
    pub outside: Outside,
    /// None: whole arrays; one for all; or one each.
    pub each: Vec<Window>,
}

impl Bound {
    fn of(&self, index: usize, count: usize, extent: usize) -> Result<f64> {
        let value = match &self.values[..] {
            [one] => *one,
            all if all.len() == count => all[index],
            all => {
                let problem = format!("needs a value for each of {count} axes, got {}", all.len());
                return Err(Cause::Argument { name: self.name, problem: problem.into() });
            }
        };
        // In single precision, as the reference has it.
        let part = || f64::from(value as f32 * extent as f32);
        let value = if self.relative { part() } else { value };
        // Far beyond any extent, yet safe to compute with.
        const FAR: f64 = (1_i64 << 53) as f64;
        if value.abs() <= FAR {
            return Ok(value);
        }
        Err(Cause::Argument { name: self.name, problem: format!("is {value}").into() })
    }
}

impl Windows {
    fn of(&self, position: usize) -> Option<&Window> {
        if self.each.len() > 1 { self.each.get(position) } else { self.each.first() }
    }

    fn axes(&self, ndim: usize) -> Result<SmallVec<[usize; 6]>> {
        let refuse = |problem| Err(Cause::Argument { name: "roi_axes", problem });
        if self.axes.is_empty() {
            return Ok((0..ndim).collect());
        }
        let mut found = SmallVec::new();
        for &axis in &self.axes {
            let from_start = if axis < 0 { axis + ndim as i64 } else { axis };
            if !(0..ndim as i64).contains(&from_start) {
                return refuse(format!("has {axis}, but the array has {ndim} dimensions").into());
            }
            if found.contains(&(from_start as usize)) {
                return refuse(format!("names axis {from_start} more than once").into());
            }
            found.push(from_start as usize);
        }
        Ok(found)
    }

    /// The part of an array that is wanted.
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
                        let problem = format!("must not be negative, got {length}");
                        return Err(Cause::Argument { name: shape.name, problem: problem.into() });
                    }
                    start + length
                }
                (None, None) => n as f64,
            };
            let (first, last) = (start.round() as i64, end.round() as i64);
            let named = [&window.end, &window.shape, &window.start].into_iter().flatten().next();
            let name = named.map_or("roi_start", |bound| bound.name);
            if last < first {
                let problem = format!("gives a part that ends at {last}, before its start {first}");
                return Err(Cause::Argument { name, problem: problem.into() });
            }
            let limit = n as i64;
            let (first, last) = match self.outside {
                Outside::Trimmed => (first.clamp(0, limit), last.clamp(0, limit)),
                Outside::Refused if first < 0 || last > limit => {
                    let problem = format!(
                        "the part from {first} to {last} goes beyond axis {axis} of the shape \
                         {:?}; `out_of_bounds_policy` says what to do then",
                        &desc.shape[..]
                    );
                    return Err(Cause::Input { index: 0, problem: problem.into() });
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
    /// What files said, where that is to be remembered.
    headers: Option<Box<[OnceLock<Header>]>>,
}

impl Arrays {
    pub fn new(files: Files, remember: bool) -> Arrays {
        let headers = remember.then(|| (0..files.len()).map(|_| OnceLock::new()).collect());
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

/// A batch of arrays, or of parts of them.
pub struct Cuts {
    arrays: Arc<Arrays>,
    numbers: Box<[usize]>,
    windows: Windows,
    /// What all must be alike in: element type and number of axes. That of the first sample.
    alike: OnceLock<Option<(DType, usize)>>,
}

impl Cuts {
    /// `None` when a number is not one of the arrays', or there are not as many windows.
    pub fn new(arrays: Arc<Arrays>, numbers: Box<[usize]>, windows: Windows) -> Option<Cuts> {
        let known = numbers.iter().all(|&number| number < arrays.files.len());
        let fits = windows.each.len() <= 1 || windows.each.len() == numbers.len();
        (known && fits).then(|| Cuts { arrays, numbers, windows, alike: OnceLock::new() })
    }

    /// What the first sample is. `None` when it can't be read.
    fn first(&self) -> Result<Option<(DType, usize)>> {
        let number = self.numbers[0];
        let file = Opened::open(&self.arrays.files.path(number));
        match file.and_then(|file| self.arrays.header(number, &file)) {
            Ok(header) => Ok(Some((header.desc.dtype, header.desc.ndim()))),
            Err(Cause::File { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn check_alike(&self, position: usize, desc: &Desc) -> Result<()> {
        let own = (desc.dtype, desc.ndim());
        let first = match self.alike.get() {
            Some(first) => *first,
            None if position == 0 => *self.alike.get_or_init(|| Some(own)),
            None => {
                let first = self.first()?;
                *self.alike.get_or_init(|| first)
            }
        };
        match first {
            Some((dtype, ndim)) if (dtype, ndim) != own => Err(Cause::Input {
                index: 0,
                problem: format!(
                    "it has {} dimensions of {}, and the first of the batch, {}, has {ndim} of {}; \
                     all of a batch must be alike in that",
                    own.1,
                    own.0.name(),
                    self.arrays.files.name(self.numbers[0]),
                    dtype.name()
                )
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

    fn read(&self, position: usize, allocate: &Allocate<'_>) -> Result<SmallVec<[Sample; 1]>> {
        let number = self.numbers[position];
        let file = Opened::open(&self.arrays.files.path(number))?;
        let header = self.arrays.header(number, &file)?;
        let desc = &header.desc;
        if self.numbers.len() > 1 {
            self.check_alike(position, desc)?;
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

    fn origin(&self, position: usize) -> Origin {
        self.arrays.files.origin(self.numbers[position])
    }
}

/// Reads a part of an array, and of the file no more than from its first byte to its last.
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
    // What of the part lies in the array.
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
        // Nothing of it: all is filled.
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
    // SAFETY: the buffer is new, initialised, this many bytes long, and nobody else's yet.
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

/// Whether elements at these strides lie side by side in row-major order.
fn strides_are_those_of(shape: &[usize], strides: &[isize], size: usize) -> bool {
    let dense = contiguous_strides(shape, size);
    (shape.iter().zip(strides).zip(&dense)).all(|((&n, a), b)| n == 1 || a == b)
}

/// The bytes that lie side by side both in the part and in the file, where they are so many that
/// it is better to read each run than all from the first to the last.
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

/// Where the runs begin, in row-major order.
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

    fn parse(text: &str) -> std::result::Result<Header, String> {
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
