//! Imports memory of other libraries: wrapped or copied.

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyMemoryView};

use super::array_fault::ArrayFault;
use super::fault::error;
use super::submit::parse_layout;
use super::value::PyValue;
use crate::engine::{Meta, Stack, Value};
use crate::value::{
    Buffer, Cause, DType, Desc, Device, Lineage, Origin, Sample, Shape, Strides, extent, fits,
};

/// Larger copies are made without the GIL.
const LARGE: usize = 1 << 20;

pub fn refuse(cause: Cause) -> PyErr {
    match cause {
        Cause::Input { problem, .. } => error::<PyValueError>(problem),
        Cause::Memory { bytes } => error::<PyMemoryError>(ArrayFault::Memory { bytes }),
        other => PyValueError::new_err(format!("{other:?}")),
    }
}

/// A sample as a finished value.
pub fn ready(py: Python<'_>, sample: Sample, copy: bool) -> PyResult<PyValue> {
    let sample = match copy {
        false => sample,
        true if sample.desc.bytes() > LARGE => py.detach(|| sample.duplicate()).map_err(refuse)?,
        true => sample.duplicate().map_err(refuse)?,
    };
    let meta = Meta {
        dtype: Some(sample.desc.dtype),
        ndim: Some(sample.desc.ndim()),
        layout: sample.desc.layout,
        device: Device::Cpu,
        uniform: true,
    };
    Ok(PyValue::new(Value::ready(meta, [sample]), false))
}

/// Wraps memory that `owner` keeps alive. Strides are in bytes and may be negative.
///
/// # Safety
/// All elements that shape and strides address from `start` must be readable while `owner` is
/// alive.
pub unsafe fn wrap(
    start: *mut u8,
    desc: Desc,
    strides: Strides,
    owner: Py<PyAny>,
    writable: bool,
    mutable: bool,
) -> PyResult<Sample> {
    let size = desc.dtype.size() as isize;
    let (mut low, mut high) = (0_isize, size);
    for (&d, &stride) in desc.shape.iter().zip(&strides) {
        let end = if stride < 0 { &mut low } else { &mut high };
        let reach = (d as isize - 1).max(0).checked_mul(stride);
        *end = reach
            .and_then(|reach| end.checked_add(reach))
            .filter(|end| end.unsigned_abs() < isize::MAX as usize / 4)
            .ok_or_else(|| error::<PyValueError>(ArrayFault::Strides))?;
    }
    if desc.shape.contains(&0) {
        (low, high) = (0, 0);
    }
    let first = NonNull::new(start.wrapping_offset(low)).unwrap_or(NonNull::dangling());
    // SAFETY: the caller guarantees that `low..high` around `start` is readable.
    let buffer = unsafe {
        Buffer::foreign(first, (high - low) as usize, Box::new(owner), writable, mutable)
    };
    if desc.shape.contains(&0) {
        // There are no elements, so alignment doesn't matter.
        let empty = Buffer::new(0).map_err(refuse)?;
        return Sample::new(desc, empty, 0).map_err(refuse);
    }
    Sample::strided(desc, buffer, (-low) as usize, strides).map_err(refuse)
}

fn dtype_of(format: &str, size: usize) -> Option<DType> {
    let native = format.strip_prefix(['@', '=', '<']).unwrap_or(format);
    let little = cfg!(target_endian = "little");
    if !little && format.starts_with('<') || format.starts_with(['>', '!']) && size > 1 {
        return None;
    }
    let native = native.trim_start_matches(['>', '!']);
    Some(match (native, size) {
        ("?", 1) => DType::Bool,
        ("b", 1) => DType::I8,
        ("B" | "c", 1) => DType::U8,
        ("e", 2) => DType::F16,
        ("f", 4) => DType::F32,
        ("d", 8) => DType::F64,
        ("h" | "i" | "l" | "q" | "n", 2) => DType::I16,
        ("h" | "i" | "l" | "q" | "n", 4) => DType::I32,
        ("h" | "i" | "l" | "q" | "n", 8) => DType::I64,
        ("H" | "I" | "L" | "Q" | "N", 2) => DType::U16,
        ("H" | "I" | "L" | "Q" | "N", 4) => DType::U32,
        ("H" | "I" | "L" | "Q" | "N", 8) => DType::U64,
        _ => return None,
    })
}

/// The contents of an object's buffer.
struct Exported {
    start: *mut u8,
    desc: Desc,
    strides: Strides,
    readonly: bool,
}

impl Exported {
    fn of(view: &Bound<'_, PyMemoryView>, dtype: Option<DType>) -> PyResult<Exported> {
        let mut buffer = ffi::Py_buffer::new();
        // SAFETY: `buffer` is only read if the call has filled it.
        if unsafe { ffi::PyObject_GetBuffer(view.as_ptr(), &mut buffer, ffi::PyBUF_FULL_RO) } != 0 {
            return Err(PyErr::fetch(view.py()));
        }
        let exported = Exported::read(&buffer, dtype);
        // SAFETY: it was filled above; the view has an export of its own.
        unsafe { ffi::PyBuffer_Release(&mut buffer) };
        exported
    }

    fn read(buffer: &ffi::Py_buffer, dtype: Option<DType>) -> PyResult<Exported> {
        let format = match buffer.format.is_null() {
            true => "B".into(),
            // SAFETY: the protocol guarantees a NUL-terminated string.
            false => unsafe { CStr::from_ptr(buffer.format) }.to_string_lossy(),
        };
        let size = usize::try_from(buffer.itemsize).unwrap_or(0);
        let dtype = dtype
            .or_else(|| dtype_of(&format, size))
            .filter(|dtype| dtype.size() == size)
            .ok_or_else(|| {
                let format = format.into_owned();
                error::<PyTypeError>(ArrayFault::BufferType { size, format })
            })?;
        let ndim = usize::try_from(buffer.ndim).unwrap_or(0);
        let axes = |array: *mut ffi::Py_ssize_t| {
            // SAFETY: the protocol guarantees `ndim` numbers; with no axes the array may be null.
            if ndim == 0 { &[] } else { unsafe { std::slice::from_raw_parts(array, ndim) } }
        };
        let shape: Option<Shape> = axes(buffer.shape).iter().map(|&d| d.try_into().ok()).collect();
        let shape = shape
            .filter(|shape| extent(shape).is_some())
            .ok_or_else(|| error::<PyValueError>(ArrayFault::Shape))?;
        let desc = Desc::new(dtype, &shape);
        if buffer.buf.is_null() && desc.elements() > 0 {
            return Err(error::<PyValueError>(ArrayFault::NoData));
        }
        Ok(Exported {
            start: buffer.buf.cast(),
            desc,
            strides: axes(buffer.strides).iter().copied().collect(),
            readonly: buffer.readonly != 0,
        })
    }
}

/// A sample from an object's buffer. `dtype` overrides the element type of the buffer; both must
/// have the same size.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, copy=false))]
pub fn from_buffer(data: &Bound<'_, PyAny>, dtype: Option<u8>, copy: bool) -> PyResult<PyValue> {
    let py = data.py();
    // The view keeps the export alive, and can be dropped on any thread.
    let view = PyMemoryView::from(data)?;
    let dtype = dtype.and_then(DType::from_code);
    let Exported { start, desc, strides, readonly } = Exported::of(&view, dtype)?;
    let mutable = !data.is_exact_instance_of::<PyBytes>();
    // SAFETY: the exporter guarantees a valid buffer while the view exists.
    let sample =
        unsafe { wrap(start, desc, strides, view.into_any().unbind(), !readonly, mutable)? };
    ready(py, sample, copy)
}

/// A Python number as a scalar: bool, 32-bit integer or 32-bit float.
#[pyfunction]
pub fn scalar(value: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let (dtype, bytes) = if value.is_instance_of::<PyBool>() {
        (DType::Bool, vec![u8::from(value.is_truthy()?)])
    } else if let Ok(int) = value.extract::<i32>() {
        (DType::I32, int.to_ne_bytes().to_vec())
    } else {
        (DType::F32, (value.extract::<f64>()? as f32).to_ne_bytes().to_vec())
    };
    let buffer = Buffer::new(bytes.len()).map_err(refuse)?;
    // SAFETY: the buffer is new and has this many bytes.
    unsafe { buffer.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    let sample = Sample::new(Desc::new(dtype, &[]), buffer, 0).map_err(refuse)?;
    ready(value.py(), sample, false)
}

/// Up to this many bytes, samples are copied into one block, since later calls on a block save more
/// than the copy costs.
const PACKED_BYTES: usize = 32 << 10;

/// Copies small samples of equal shape and type into one block. `None` if they differ, are too
/// large, or share memory that can change.
fn packed(samples: &[Sample]) -> Option<Stack> {
    let first = samples.first()?;
    let bytes = first.desc.bytes();
    let own = |sample: &Sample| {
        sample.desc == first.desc
            && sample.is_contiguous()
            && sample.source.is_none()
            && !sample.buffer().mutable_outside()
    };
    let total = bytes.checked_mul(samples.len()).filter(|&total| total <= PACKED_BYTES)?;
    if samples.len() < 2 || !samples.iter().all(own) {
        return None;
    }
    let buffer = Buffer::new(total).ok()?;
    for (index, sample) in samples.iter().enumerate() {
        let bytes = sample.elements_as_bytes();
        // SAFETY: the buffer is new, and has room for all samples.
        unsafe {
            let place = buffer.as_ptr().add(index * bytes.len());
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
    let first = Sample::new(first.desc.clone(), buffer, 0).ok()?;
    // SAFETY: all samples were written above.
    Some(unsafe { Stack::new(first, samples.len()) })
}

/// Single samples as a batch. All must have the same element type. Nothing is copied, unless `pack`
/// allows it for small samples.
#[pyfunction]
#[pyo3(signature = (values, layout=None, pack=false))]
pub fn gather(
    py: Python<'_>,
    values: Vec<PyRef<'_, PyValue>>,
    layout: Option<&str>,
    pack: bool,
) -> PyResult<PyValue> {
    let layout = parse_layout(layout)?;
    let mut samples = Vec::with_capacity(values.len());
    for value in &values {
        let mut sample = value.sample(py, 0)?;
        sample.desc.layout = layout;
        samples.push(sample);
    }
    let first = samples.first().ok_or_else(|| PyValueError::new_err("no samples"))?;
    let meta = Meta {
        dtype: Some(first.desc.dtype),
        ndim: Some(first.desc.ndim()),
        layout,
        device: values[0].handle.meta.device,
        uniform: samples.iter().all(|sample| sample.desc.shape == first.desc.shape),
    };
    let made = match pack.then(|| packed(&samples)).flatten() {
        Some(packed) => Value::stacked(meta, packed),
        None => Value::ready(meta, samples),
    };
    if let Some(lineage) = Lineage::joined(values.iter().map(|value| value.handle.lineage())) {
        made.set_lineage(lineage);
    }
    Ok(PyValue::new(made, true))
}

/// The inverse of [`PyValue::concatenated`]: samples of the given shapes, from their bytes, which are
/// copied unless they are `owned`: memory that nobody else writes to. `sources` says where each came
/// from.
#[pyfunction]
#[pyo3(signature = (data, dtype, ndim, batch, shapes, sources, layout, device, owned=false))]
#[allow(clippy::too_many_arguments)]
pub fn unpack(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: u8,
    ndim: usize,
    batch: bool,
    shapes: Vec<Vec<usize>>,
    sources: Vec<Option<String>>,
    layout: Option<&str>,
    device: i32,
    owned: bool,
) -> PyResult<PyValue> {
    let wrong = error::<PyValueError>;
    let dtype = DType::from_code(dtype).ok_or_else(|| wrong(ArrayFault::PackedType))?;
    if shapes.len() != sources.len() || (!batch && shapes.len() != 1) {
        let (shapes, sources) = (shapes.len(), sources.len());
        return Err(wrong(ArrayFault::PackedCount { shapes, sources }));
    }
    let layout = parse_layout(layout)?;
    let bytes = PyBuffer::<u8>::get(data)?;
    let start = NonNull::new(bytes.buf_ptr().cast::<u8>());
    let buffer = match start.filter(|_| owned && bytes.is_c_contiguous()) {
        Some(start) => {
            // The view keeps the export alive, and can be dropped on any thread.
            let view = PyMemoryView::from(data)?.into_any().unbind();
            let writable = !bytes.readonly();
            // SAFETY: the exporter guarantees these bytes while the view exists.
            unsafe { Buffer::foreign(start, bytes.len_bytes(), Box::new(view), writable, false) }
        }
        None => {
            let buffer = Buffer::new(bytes.len_bytes()).map_err(refuse)?;
            // SAFETY: the buffer is new, has this many bytes, and has no other references.
            let copy = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), buffer.len()) };
            bytes.copy_to_slice(py, copy)?;
            buffer
        }
    };
    let uniform = shapes.windows(2).all(|pair| pair[0] == pair[1]);
    let mut samples = Vec::with_capacity(shapes.len());
    let mut offset = 0;
    for (shape, source) in shapes.into_iter().zip(sources) {
        let mut desc = Desc::new(dtype, &shape);
        desc.layout = layout;
        if shape.len() != ndim || extent(&shape).is_none() || !fits(&desc, &buffer, offset) {
            return Err(wrong(ArrayFault::PackedShape { shape }));
        }
        let bytes = desc.bytes();
        let mut sample = Sample::new(desc, buffer.clone(), offset).map_err(refuse)?;
        sample.source = source.map(|source| Origin::from(Arc::<str>::from(source)));
        samples.push(sample);
        offset += bytes;
    }
    let device = Device::from_code(device);
    let meta = Meta { dtype: Some(dtype), ndim: Some(ndim), layout, device, uniform };
    Ok(PyValue::new(Value::ready(meta, samples), batch))
}

/// An empty batch.
#[pyfunction]
#[pyo3(signature = (dtype, ndim, layout=None))]
pub fn empty(dtype: u8, ndim: usize, layout: Option<&str>) -> PyResult<PyValue> {
    let meta = Meta {
        dtype: DType::from_code(dtype),
        ndim: Some(ndim),
        layout: parse_layout(layout)?,
        device: Device::Cpu,
        uniform: true,
    };
    Ok(PyValue::new(Value::ready(meta, []), true))
}
