//! DLPack import and export, with the versioned protocol (1.x) and the unversioned one before it.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::array_fault::ArrayFault;
use super::fault::error;
use super::import::{ready, wrap};
use super::pool::ends_elsewhere;
use super::value::PyValue;
use crate::value::{DType, Desc, Loan, Sample, Shape, Strides, contiguous_strides, extent};

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ElementType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: ElementType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct ManagedVersioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

const HOST: i32 = 1;
/// Pinned host memory, which a CUDA device can access too.
const CUDA_HOST: i32 = 3;
const READ_ONLY: u64 = 1;
const OUR_VERSION: Version = Version { major: 1, minor: 1 };

const NAME: &CStr = c"dltensor";
const NAME_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// DLPack's type code and size of an element type.
fn element_type(dtype: DType) -> ElementType {
    let code = match dtype.storage() {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::Bool => 6,
        _ => 0,
    };
    ElementType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
}

fn dtype_of(given: ElementType) -> Option<DType> {
    if given.lanes != 1 {
        return None;
    }
    Some(match (given.code, given.bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 8) => DType::U8,
        (1, 16) => DType::U16,
        (1, 32) => DType::U32,
        (1, 64) => DType::U64,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (2, 64) => DType::F64,
        (4, 16) => DType::BF16,
        (6, 8) => DType::Bool,
        _ => return None,
    })
}

/// What keeps an exported tensor valid: its memory, and its shape and strides.
struct Exported {
    _sample: Sample,
    /// Present if consumers may write.
    loan: Option<Loan>,
    shape: SmallVec<[i64; 6]>,
    strides: SmallVec<[i64; 6]>,
}

impl Exported {
    fn new(sample: Sample, loan: Option<Loan>) -> Box<Exported> {
        let size = sample.desc.dtype.size() as i64;
        let shape = sample.desc.shape.iter().map(|&d| d as i64).collect();
        let strides = sample.strides().iter().map(|&stride| stride as i64 / size).collect();
        Box::new(Exported { _sample: sample, loan, shape, strides })
    }

    /// Releases the memory. Consumers may call this on any thread.
    fn release(self: Box<Exported>) {
        if !self._sample.buffer().is_foreign() {
            return;
        }
        // The owner is a Python object. A consumer may have released the GIL inside one of our
        // calls, so only the interpreter knows whether this thread holds it.
        // SAFETY: any thread may acquire the GIL while the interpreter is alive.
        unsafe {
            if ends_elsewhere() || ffi::Py_IsInitialized() == 0 {
                return std::mem::forget(self);
            }
            let state = ffi::PyGILState_Ensure();
            Python::attach(|_| drop(self));
            ffi::PyGILState_Release(state);
        }
    }

    fn tensor(&mut self) -> Tensor {
        let sample = &self._sample;
        Tensor {
            data: sample.as_ptr().cast_mut().cast(),
            device: Device { kind: HOST, id: 0 },
            ndim: sample.desc.ndim() as i32,
            dtype: element_type(sample.desc.dtype),
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

/// # Safety
/// Called once by the consumer, with a pointer that `to_dlpack` made.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both were leaked from boxes of these types.
    unsafe {
        let managed = Box::from_raw(managed);
        Exported::release(Box::from_raw(managed.context.cast()));
    }
}

/// # Safety
/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: both were leaked from boxes of these types.
    unsafe {
        let managed = Box::from_raw(managed);
        Exported::release(Box::from_raw(managed.context.cast()));
    }
}

/// # Safety
/// The destructor of a capsule that `to_dlpack` made.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that still has the name of an unconsumed one owns its tensor.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// Checks that a sample's memory can be shared, in this version of the protocol.
pub fn check(sample: &Sample, versioned: bool) -> PyResult<()> {
    if !sample.buffer().writable() && !versioned {
        return Err(error::<PyBufferError>(ArrayFault::ReadOnlyBeforeVersions));
    }
    // DLPack allows negative strides, but some consumers abort the process on them.
    let size = sample.desc.dtype.size() as isize;
    if sample.strides().iter().any(|stride| *stride < 0 || stride % size != 0) {
        return Err(error::<PyBufferError>(ArrayFault::ExportedStrides));
    }
    Ok(())
}

/// A capsule that shares the memory of a sample, which has passed `check`.
pub fn to_dlpack(
    py: Python<'_>,
    sample: Sample,
    loan: Option<Loan>,
    versioned: bool,
) -> PyResult<Bound<'_, PyAny>> {
    let mut exported = Exported::new(sample, loan);
    let writable = exported.loan.is_some();
    let tensor = exported.tensor();
    let context = Box::into_raw(exported).cast::<c_void>();
    let (pointer, name) = if versioned {
        let flags = if writable { 0 } else { READ_ONLY };
        let deleter = Some(delete_versioned as unsafe extern "C" fn(_));
        let managed = ManagedVersioned { version: OUR_VERSION, context, deleter, flags, tensor };
        (Box::into_raw(Box::new(managed)).cast::<c_void>(), VERSIONED)
    } else {
        let deleter = Some(delete as unsafe extern "C" fn(_));
        (Box::into_raw(Box::new(Managed { tensor, context, deleter })).cast(), NAME)
    };
    // SAFETY: the capsule owns the tensor until a consumer renames it.
    unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule)),
        )
    }
}

/// Owns a tensor received from a producer, and calls its deleter when dropped. It is a Python
/// object, so that this happens with the GIL held: the producer may run Python.
#[pyclass(module = "penstock._core", frozen)]
struct Imported {
    _tensor: Owned,
}

enum Owned {
    Plain(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: DLPack allows calling the deleter from any thread.
unsafe impl Send for Owned {}
// SAFETY: there is no access through shared references.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the capsule was consumed, so the tensor is ours, and this runs once.
        unsafe {
            match self {
                Owned::Plain(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
                Owned::Versioned(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// Consumes a DLPack capsule.
#[pyfunction]
#[pyo3(signature = (capsule, copy=false))]
pub fn from_dlpack(capsule: &Bound<'_, PyAny>, copy: bool) -> PyResult<PyValue> {
    let py = capsule.py();
    let object = capsule.as_ptr();
    // SAFETY: the capsule's name tells its pointer's type, and renaming it transfers ownership to
    // us.
    let (owned, tensor, readonly) = unsafe {
        if ffi::PyCapsule_IsValid(object, VERSIONED.as_ptr()) == 1 {
            let pointer = ffi::PyCapsule_GetPointer(object, VERSIONED.as_ptr());
            let managed = pointer.cast::<ManagedVersioned>();
            if (*managed).version.major > OUR_VERSION.major {
                let (version, newest) = ((*managed).version.major, OUR_VERSION.major);
                return Err(error::<PyBufferError>(ArrayFault::DlpackVersion { version, newest }));
            }
            let managed = take(py, object, pointer, VERSIONED_USED)?.cast::<ManagedVersioned>();
            let tensor = &raw const (*managed.as_ptr()).tensor;
            (Owned::Versioned(managed), tensor, (*managed.as_ptr()).flags & READ_ONLY != 0)
        } else if ffi::PyCapsule_IsValid(object, NAME.as_ptr()) == 1 {
            let pointer = ffi::PyCapsule_GetPointer(object, NAME.as_ptr());
            let managed = take(py, object, pointer, NAME_USED)?.cast::<Managed>();
            (Owned::Plain(managed), &raw const (*managed.as_ptr()).tensor, false)
        } else {
            return Err(error::<PyTypeError>(ArrayFault::NotACapsule));
        }
    };
    let owner = Py::new(py, Imported { _tensor: owned })?.into_any();
    // SAFETY: the producer guarantees that the tensor is valid while `owner` holds it.
    let sample = unsafe { read_tensor(&*tensor, owner, readonly)? };
    ready(py, sample, copy)
}

/// # Safety
/// `capsule` must be a capsule.
unsafe fn take(
    py: Python<'_>,
    capsule: *mut ffi::PyObject,
    pointer: *mut c_void,
    used: &'static CStr,
) -> PyResult<NonNull<c_void>> {
    let pointer = NonNull::new(pointer).ok_or_else(|| PyErr::fetch(py))?;
    // SAFETY: guaranteed by the caller.
    match unsafe { ffi::PyCapsule_SetName(capsule, used.as_ptr()) } {
        0 => Ok(pointer),
        _ => Err(PyErr::fetch(py)),
    }
}

/// # Safety
/// The tensor's shape and strides must have `ndim` entries, and its memory must be readable while
/// `owner` is alive.
unsafe fn read_tensor(tensor: &Tensor, owner: Py<PyAny>, readonly: bool) -> PyResult<Sample> {
    if ![HOST, CUDA_HOST].contains(&tensor.device.kind) {
        return Err(error::<PyBufferError>(ArrayFault::OnDevice { kind: tensor.device.kind }));
    }
    let dtype = dtype_of(tensor.dtype).ok_or_else(|| {
        let ElementType { code, bits, lanes } = tensor.dtype;
        error::<PyTypeError>(ArrayFault::DlpackType { code, bits, lanes })
    })?;
    let ndim = usize::try_from(tensor.ndim).ok().filter(|&n| n <= 64);
    let wrong = error::<PyValueError>;
    let ndim = ndim.ok_or_else(|| wrong(ArrayFault::Dimensions { ndim: tensor.ndim }))?;
    if ndim > 0 && tensor.shape.is_null() {
        return Err(wrong(ArrayFault::NoShape));
    }
    let axes = |array: *mut i64| {
        // SAFETY: guaranteed by the caller; with no axes, the array is not read.
        let axes = if ndim == 0 { &[] } else { unsafe { std::slice::from_raw_parts(array, ndim) } };
        axes.iter().copied()
    };
    let shape: Option<Shape> = axes(tensor.shape).map(|d| usize::try_from(d).ok()).collect();
    let shape =
        shape.filter(|shape| extent(shape).is_some()).ok_or_else(|| wrong(ArrayFault::Shape))?;
    let size = dtype.size() as i64;
    let strides: Option<Strides> = if tensor.strides.is_null() {
        Some(contiguous_strides(&shape, dtype.size()))
    } else {
        axes(tensor.strides).map(|s| s.checked_mul(size)?.try_into().ok()).collect()
    };
    let strides = strides.ok_or_else(|| wrong(ArrayFault::Strides))?;
    let desc = Desc::new(dtype, &shape);
    if tensor.data.is_null() && desc.elements() > 0 {
        return Err(wrong(ArrayFault::NoData));
    }
    let start = isize::try_from(tensor.byte_offset)
        .map(|offset| tensor.data.cast::<u8>().wrapping_offset(offset))
        .map_err(|_| wrong(ArrayFault::Offset { offset: tensor.byte_offset }))?;
    // SAFETY: guaranteed by the caller.
    unsafe { wrap(start, desc, strides, owner, !readonly, true) }
}
