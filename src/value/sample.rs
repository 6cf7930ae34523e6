//! One sample: part of a buffer, with a description.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::buffer::{Buffer, Loan};
use super::dtype::{DType, Element};
use super::fault::Cause;
use super::layout::Layout;
use super::problem::problems;
use super::stores::Stores;
use super::strided::copy_strided;

problems! {
    /// What is wrong with the description of memory.
    pub enum MemoryFault {
        Strides { bytes: usize },
    }
}

pub type Shape = SmallVec<[usize; 6]>;
/// Bytes from one element to the next along each axis; may be negative or zero.
pub type Strides = SmallVec<[isize; 6]>;

/// Number of elements; `None` when the array could not be addressed with 8-byte elements.
pub fn extent(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(d))?;
    (count <= isize::MAX as usize / 8).then_some(count)
}

pub fn contiguous_strides(shape: &[usize], itemsize: usize) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(0, shape.len());
    let mut step = itemsize as isize;
    for (stride, &d) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(d.max(1) as isize);
    }
    strides
}

/// Whether a contiguous array of this description fits at `offset` of `buffer`, and is aligned.
pub fn fits(desc: &Desc, buffer: &Buffer, offset: usize) -> bool {
    let end = extent(&desc.shape)
        .and_then(|n| n.checked_mul(desc.dtype.size()))
        .and_then(|bytes| bytes.checked_add(offset));
    let aligned = (buffer.as_ptr() as usize + offset).is_multiple_of(desc.dtype.size());
    end.is_some_and(|end| end <= buffer.len()) && aligned
}

/// Whether all elements of a strided array, the first at `offset`, are within `len` bytes.
fn is_inside(desc: &Desc, strides: &[isize], offset: usize, len: usize) -> bool {
    if desc.shape.contains(&0) {
        return true;
    }
    let (mut low, mut high) = (offset as i128, offset as i128 + desc.dtype.size() as i128);
    for (&d, &stride) in desc.shape.iter().zip(strides) {
        let reach = (d as i128 - 1) * stride as i128;
        *(if reach < 0 { &mut low } else { &mut high }) += reach;
    }
    strides.len() == desc.ndim() && low >= 0 && high <= len as i128
}

/// The description of a sample, without its data.
#[derive(Debug, PartialEq)]
pub struct Desc {
    pub dtype: DType,
    pub shape: Shape,
    pub layout: Layout,
}

impl Clone for Desc {
    fn clone(&self) -> Desc {
        // `SmallVec::clone` copies element by element, which is too slow for something that is done
        // for every sample.
        let shape = SmallVec::from_slice(&self.shape);
        Desc { dtype: self.dtype, shape, layout: self.layout }
    }
}

impl Desc {
    pub fn new(dtype: DType, shape: &[usize]) -> Desc {
        Desc { dtype, shape: SmallVec::from_slice(shape), layout: Layout::default() }
    }

    pub fn elements(&self) -> usize {
        extent(&self.shape).unwrap_or(usize::MAX / 16)
    }

    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }

    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// `count` of these along a new first axis. `None` when the layout or the size would be too
    /// large.
    pub fn stack(&self, count: usize) -> Option<Desc> {
        let mut shape: Shape = smallvec![count];
        shape.extend_from_slice(&self.shape);
        extent(&shape)?;
        let layout = match self.layout.is_empty() {
            true => self.layout,
            false => self.layout.with_first(b'N')?,
        };
        Some(Desc { dtype: self.dtype, shape, layout })
    }
}

/// Where a sample came from: a path, and the part of it, at its end, that users know it by.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    path: Arc<str>,
    /// Start of the name within the path.
    name: usize,
}

impl Origin {
    /// `name` should be the end of `path`; if it is not, the name is the whole path.
    pub fn new(path: Arc<str>, name: &str) -> Origin {
        let start = if path.ends_with(name) { path.len() - name.len() } else { 0 };
        Origin { path, name: start }
    }

    /// The name that users gave, which may be relative to some folder.
    pub fn name(&self) -> &str {
        &self.path[self.name..]
    }

    /// The path that was opened.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl From<Arc<str>> for Origin {
    fn from(path: Arc<str>) -> Origin {
        Origin { path, name: 0 }
    }
}

/// One sample's data. Immutable once created; clones share the memory.
#[derive(Clone)]
pub struct Sample {
    pub desc: Desc,
    buffer: Arc<Buffer>,
    /// Byte offset of the first element.
    offset: usize,
    /// `None` when contiguous. Boxed, since few samples have strides and all are moved around.
    strides: Option<Box<Strides>>,
    /// Where it came from, usually a file name.
    pub source: Option<Origin>,
}

impl Sample {
    /// A contiguous sample at `offset` of `buffer`. `Err` when it does not fit, or when its
    /// elements would not be aligned.
    pub fn new(desc: Desc, buffer: Arc<Buffer>, offset: usize) -> Result<Sample, Cause> {
        if !fits(&desc, &buffer, offset) {
            return Err(Cause::Internal(format!("{desc:?} does not fit its buffer at {offset}")));
        }
        Ok(Sample { desc, buffer, offset, strides: None, source: None })
    }

    /// A strided view of foreign memory. `Err` when it would leave the buffer.
    pub fn strided(
        desc: Desc,
        buffer: Arc<Buffer>,
        offset: usize,
        strides: Strides,
    ) -> Result<Sample, Cause> {
        let size = desc.dtype.size();
        let aligned = |n: usize| n.is_multiple_of(size);
        if strides == contiguous_strides(&desc.shape, size)
            && aligned(buffer.as_ptr() as usize + offset)
        {
            return Sample::new(desc, buffer, offset);
        }
        if !is_inside(&desc, &strides, offset, buffer.len()) {
            let problem = MemoryFault::Strides { bytes: buffer.len() }.into();
            return Err(Cause::Input { index: 0, problem });
        }
        Ok(Sample { desc, buffer, offset, strides: Some(Box::new(strides)), source: None })
    }

    /// The view at `index` of the first axis, without that axis.
    pub fn row(&self, index: usize) -> Result<Sample, Cause> {
        let strides = self.strides();
        let desc = Desc::new(self.desc.dtype, &self.desc.shape[1..]);
        // Rows without elements may have strides that lead out of the buffer.
        let step = if desc.shape.contains(&0) { 0 } else { strides[0] };
        let offset = self.offset as isize + index as isize * step;
        let mut row = Sample::strided(
            desc,
            self.buffer.clone(),
            // The whole sample was checked to be inside the buffer, so its row is as well.
            usize::try_from(offset).unwrap_or(0),
            SmallVec::from_slice(&strides[1..]),
        )?;
        row.source = self.source.clone();
        Ok(row)
    }

    /// The same bits as another type of the same size.
    pub fn reinterpret(&self, dtype: DType) -> Sample {
        assert_eq!(dtype.size(), self.desc.dtype.size());
        let mut sample = self.clone();
        sample.desc.dtype = dtype;
        sample
    }

    /// The same bytes in row-major order with another type and shape of the same size. They are
    /// copied only if they are not contiguous, or would not be aligned.
    pub fn reshaped(&self, desc: Desc) -> Result<Sample, Cause> {
        if extent(&desc.shape).is_none() || desc.bytes() != self.desc.bytes() {
            return Err(Cause::Internal(format!("{:?} taken for {desc:?}", self.desc)));
        }
        let aligned = (self.as_ptr() as usize).is_multiple_of(desc.dtype.size());
        let sample = if aligned { self.compact()? } else { self.duplicate()? };
        let mut made = Sample::new(desc, sample.buffer, sample.offset)?;
        made.source = sample.source;
        Ok(made)
    }

    /// Bytes of a contiguous sample, from `start` on, with another description.
    pub fn part(&self, desc: Desc, start: usize) -> Result<Sample, Cause> {
        let end = extent(&desc.shape).and_then(|_| start.checked_add(desc.bytes()));
        if self.strides.is_some() || end.is_none_or(|end| end > self.desc.bytes()) {
            return Err(Cause::Internal(format!("{desc:?} is no part of {:?}", self.desc)));
        }
        Sample::new(desc, self.buffer.clone(), self.offset + start)
    }

    /// A strided part of a contiguous sample, from byte `start` on.
    pub fn strided_part(
        &self,
        desc: Desc,
        start: usize,
        strides: Strides,
    ) -> Result<Sample, Cause> {
        if self.strides.is_some() || !is_inside(&desc, &strides, start, self.desc.bytes()) {
            return Err(Cause::Internal(format!("{desc:?} is not part of {:?}", self.desc)));
        }
        Sample::strided(desc, self.buffer.clone(), self.offset + start, strides)
    }

    /// A sample that starts at the same byte with another description, and may end later.
    ///
    /// # Safety
    /// Nobody may write to the additional bytes while the result exists.
    pub unsafe fn extended(&self, desc: Desc) -> Result<Sample, Cause> {
        Sample::new(desc, self.buffer.clone(), self.offset)
    }

    /// Moves this to another offset of the same buffer, with the same description.
    ///
    /// # Safety
    /// Nobody may write to the bytes there while the sample exists.
    pub unsafe fn move_to(&mut self, offset: usize) {
        assert!(self.strides.is_none());
        assert!(fits(&self.desc, &self.buffer, offset));
        self.offset = offset;
    }

    /// The underlying memory; bytes outside the sample may belong to others.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Lets code outside penstock write to the memory while the loan exists.
    pub fn lend(&self) -> Loan {
        Loan::new(&self.buffer)
    }

    /// How many samples, output buffers and loans hold the buffer.
    pub fn buffer_owners(&self) -> usize {
        Arc::strong_count(&self.buffer)
    }

    /// Whether both are in the same buffer.
    pub fn shares_buffer(&self, other: &Sample) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn as_ptr(&self) -> *const u8 {
        // SAFETY: `new` and `strided` checked that the offset is inside of the buffer.
        unsafe { self.buffer.as_ptr().add(self.offset) }
    }

    pub fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    pub fn strides(&self) -> Strides {
        match &self.strides {
            Some(strides) => (**strides).clone(),
            None => contiguous_strides(&self.desc.shape, self.desc.dtype.size()),
        }
    }

    /// The same data, contiguous: the sample itself if it already is.
    pub fn compact(&self) -> Result<Sample, Cause> {
        match &self.strides {
            None => Ok(self.clone()),
            Some(_) => self.duplicate(),
        }
    }

    /// A contiguous copy in a new buffer.
    pub fn duplicate(&self) -> Result<Sample, Cause> {
        let bytes = self.desc.bytes();
        let buffer = Buffer::new(bytes)?;
        let (shape, size) = (&self.desc.shape, self.desc.dtype.size());
        let strides = self.strides();
        assert!(is_inside(&self.desc, &strides, self.offset, self.buffer.len()));
        // SAFETY: the source is inside its buffer; the new buffer has `bytes` bytes and nobody else
        // has access to it yet.
        unsafe {
            let dst = std::slice::from_raw_parts_mut(buffer.as_ptr(), bytes);
            copy_strided(self.as_ptr(), &strides, shape, size, dst, &Stores::plain());
        }
        let mut copy = Sample::new(self.desc.clone(), buffer, 0)?;
        copy.source = self.source.clone();
        Ok(copy)
    }

    /// The bytes of all samples, one after the other, each in row-major order: a view if they are
    /// already arranged like that in memory, otherwise a copy.
    pub fn concatenated(samples: &[Sample]) -> Result<Sample, Cause> {
        let bytes: usize = samples.iter().map(|sample| sample.desc.bytes()).sum();
        let desc = Desc::new(DType::U8, &[bytes]);
        if let Some(first) = samples.first() {
            let mut end = first.offset;
            let follow = samples.iter().all(|sample| {
                let start = std::mem::replace(&mut end, sample.offset + sample.desc.bytes());
                sample.is_contiguous()
                    && Arc::ptr_eq(&sample.buffer, &first.buffer)
                    && sample.offset == start
            });
            if follow {
                return Sample::new(desc, first.buffer.clone(), first.offset);
            }
        }
        let buffer = Buffer::new(bytes)?;
        // SAFETY: the new buffer has `bytes` bytes and nobody else has access to it yet.
        let mut rest = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), bytes) };
        for sample in samples {
            let (dst, after) = rest.split_at_mut(sample.desc.bytes());
            let (shape, size) = (&sample.desc.shape, sample.desc.dtype.size());
            // SAFETY: the source was checked when it was created; `dst` has the size of its
            // elements.
            unsafe {
                copy_strided(
                    sample.as_ptr(),
                    &sample.strides(),
                    shape,
                    size,
                    dst,
                    &Stores::plain(),
                );
            }
            rest = after;
        }
        Sample::new(desc, buffer, 0)
    }

    /// Asserts that a contiguous sample is inside its buffer, since anybody can change `desc`.
    #[inline]
    fn assert_in_bounds(&self) {
        let end = self.offset.saturating_add(self.desc.bytes());
        assert!(self.strides.is_none() && end <= self.buffer.len());
        assert!((self.as_ptr() as usize).is_multiple_of(self.desc.dtype.size()));
    }

    /// The elements of a contiguous sample.
    pub fn elements<T: Element>(&self) -> &[T] {
        assert!(T::DTYPE == self.desc.dtype.storage());
        self.assert_in_bounds();
        // SAFETY: bounds and alignment were checked, the dtype matches, every bit pattern is valid
        // for an `Element`, and the bytes don't change once a sample exists (memory that others may
        // write is only read while its caller waits).
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), self.desc.elements()) }
    }

    /// The bytes of a contiguous sample.
    pub fn elements_as_bytes(&self) -> &[u8] {
        self.assert_in_bounds();
        // SAFETY: as for `elements`.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.desc.bytes()) }
    }
}
