//! Sets of files, and the order of an epoch.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smallvec::{SmallVec, smallvec};

use super::pool::PyPool;
use super::submit::make_room;
use super::value::PyValue;
use crate::engine::{Call, Meta, Node, Output, Value};
use crate::kernels::{Operator, Work, intern};
use crate::readers::{self, Fetch, Files, Globs, Opened, Source, Unreadable};
use crate::value::{Buffer, Cause, DType, Desc, Device, Layout, Sample};

/// Shuffles numbers in place, by a buffer of `fill` of them; see `readers::shuffle`.
#[pyfunction]
pub fn shuffle(
    py: Python<'_>,
    items: PyBuffer<i64>,
    fill: usize,
    seed: u64,
    epoch: u64,
    stream: u32,
) -> PyResult<()> {
    if items.readonly() || !items.is_c_contiguous() {
        return Err(PyValueError::new_err("shuffle needs a writable row of numbers"));
    }
    // SAFETY: the buffer is a contiguous, writable row of this many numbers for as long as `items`
    // lives; the caller has just made it and shares it with nobody.
    let row = unsafe {
        std::slice::from_raw_parts_mut(items.buf_ptr().cast::<i64>(), items.item_count())
    };
    py.detach(|| readers::shuffle(row, fill, seed, epoch, stream));
    Ok(())
}

/// What is in a regular file. One that can't be read raises ValueError of what is wrong, and whether
/// the machine is at fault.
#[pyfunction]
pub fn contents<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyBytes>> {
    let read = py.detach(|| {
        let read = Opened::open(&path).and_then(|opened| opened.bytes());
        read.map_err(|cause| Unreadable::of(&path, cause))
    });
    let read = read.map_err(|error| PyValueError::new_err((error.problem, error.system)))?;
    PyBytes::new_with(py, read.len(), |bytes| {
        bytes.copy_from_slice(&read);
        Ok(())
    })
}

/// Files by number, each with a label.
#[pyclass(name = "Files", module = "penstock._core", frozen)]
pub struct PyFiles(Arc<Files>);

#[pymethods]
impl PyFiles {
    /// The files of the folders in `root`; a folder's number is the label. What can't be listed
    /// raises OSError with its name.
    #[staticmethod]
    #[pyo3(signature = (root, files, folders, ignore_case))]
    fn listed(
        py: Python<'_>,
        root: PathBuf,
        files: Vec<OsString>,
        folders: Option<Vec<OsString>>,
        ignore_case: bool,
    ) -> PyResult<PyFiles> {
        let globs = |patterns: Vec<OsString>| {
            let patterns: Vec<&[u8]> = patterns.iter().map(|p| p.as_bytes()).collect();
            Globs::new(&patterns, ignore_case)
        };
        let (files, folders) = (globs(files), folders.map(globs));
        let listed = py.detach(|| readers::list(&root, folders.as_ref(), &files));
        let listed = listed.map_err(|failed| {
            let code = failed.error.raw_os_error().unwrap_or(0);
            PyOSError::new_err((code, failed.error.to_string(), failed.path.into_os_string()))
        })?;
        Ok(PyFiles(Arc::new(listed)))
    }

    /// The files of these names, relative to `root` unless absolute. Without labels, the number is
    /// the label.
    #[staticmethod]
    #[pyo3(signature = (root, names, labels=None))]
    fn named(
        root: PathBuf,
        names: &Bound<'_, PyAny>,
        labels: Option<Vec<i32>>,
    ) -> PyResult<PyFiles> {
        let mut files = Files::new(root);
        for (number, name) in names.try_iter()?.enumerate() {
            let label = match &labels {
                Some(labels) => labels.get(number).copied(),
                None => i32::try_from(number).ok(),
            };
            let label = label.ok_or_else(|| PyValueError::new_err("fewer labels than files"))?;
            files.push(name?.extract::<PathBuf>()?.as_os_str().as_bytes(), label);
        }
        Ok(PyFiles(Arc::new(files)))
    }

    /// The files of a list: its lines have a name and a label. A line that has not raises
    /// ValueError of its number, its text and what is wrong with it.
    #[staticmethod]
    fn parsed(py: Python<'_>, root: PathBuf, text: &Bound<'_, PyBytes>) -> PyResult<PyFiles> {
        let mut files = Files::new(root);
        let text = text.as_bytes();
        let parsed = py.detach(|| readers::parse_list(text, &mut files));
        parsed.map_err(|bad| PyValueError::new_err((bad.line, bad.text, bad.problem)))?;
        Ok(PyFiles(Arc::new(files)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// A number that changes with the names, the labels and their order.
    fn fingerprint(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.fingerprint())
    }

    fn name(&self, number: usize) -> PyResult<String> {
        self.check(&[number])?;
        Ok(self.0.name(number).to_string())
    }

    /// The bytes of files, as soon as they have been read: a batch, or a single sample.
    fn read(
        &self,
        py: Python<'_>,
        operator: &str,
        numbers: PyBuffer<i64>,
        batch: bool,
        site: u32,
        pool: &PyPool,
    ) -> PyResult<PyValue> {
        let numbers = self.numbers(py, &numbers)?;
        let meta = Meta {
            dtype: Some(DType::U8),
            ndim: Some(1),
            layout: Layout::default(),
            device: Device::Cpu,
            uniform: false,
        };
        let made = fetch(py, operator, self.0.clone(), numbers, smallvec![meta], site, pool)?;
        let handle = made.into_iter().next().ok_or_else(|| PyValueError::new_err("no result"))?;
        Ok(PyValue::made_of_nothing(handle, batch))
    }

    /// The labels of files, which are there at once, side by side.
    fn labels(&self, py: Python<'_>, numbers: PyBuffer<i64>, batch: bool) -> PyResult<PyValue> {
        let numbers = self.numbers(py, &numbers)?;
        let labels: Vec<i32> = numbers.iter().map(|&number| self.0.label(number)).collect();
        let refuse = |cause: Cause| PyValueError::new_err(format!("{cause:?}"));
        let bytes = size_of_val(&labels[..]);
        let buffer = Buffer::new(bytes).map_err(refuse)?;
        // SAFETY: the buffer is new and has this many bytes.
        unsafe { buffer.as_ptr().copy_from_nonoverlapping(labels.as_ptr().cast(), bytes) };
        let desc = Desc::new(DType::I32, &[1]);
        let sample = |index| Sample::new(desc.clone(), buffer.clone(), index * size_of::<i32>());
        let samples = (0..labels.len()).map(sample).collect::<Result<Vec<_>, Cause>>();
        let meta = Meta {
            dtype: Some(DType::I32),
            ndim: Some(1),
            layout: Layout::default(),
            device: Device::Cpu,
            uniform: true,
        };
        Ok(PyValue::new(Value::ready(meta, samples.map_err(refuse)?), batch))
    }
}

impl PyFiles {
    fn check(&self, numbers: &[usize]) -> PyResult<()> {
        match numbers.iter().all(|&number| number < self.0.len()) {
            true => Ok(()),
            false => Err(PyIndexError::new_err("there is no file of that number")),
        }
    }

    fn numbers(&self, py: Python<'_>, given: &PyBuffer<i64>) -> PyResult<Box<[usize]>> {
        // A negative number becomes one that is too large.
        let numbers: Box<[usize]> = given.to_vec(py)?.into_iter().map(|n| n as usize).collect();
        self.check(&numbers)?;
        Ok(numbers)
    }
}

/// Submits the reading of samples of a source: a value for each of `outputs`.
pub fn fetch<S: Source + ?Sized>(
    py: Python<'_>,
    operator: &str,
    source: Arc<S>,
    numbers: Box<[usize]>,
    outputs: SmallVec<[Meta; 1]>,
    site: u32,
    pool: &PyPool,
) -> PyResult<SmallVec<[crate::engine::Handle; 1]>> {
    let samples = numbers.len();
    let fetch = Fetch::new(source, numbers)
        .ok_or_else(|| PyIndexError::new_err("there is no sample of that number"))?;
    let call = Call {
        operator: Operator { name: intern(operator), work: Work::Source(Arc::new(fetch)) },
        inputs: smallvec![],
        data_inputs: 0,
        args: smallvec![],
        samples,
        layout: Layout::default(),
        device: Device::Cpu,
        site,
    };
    make_room(py, &pool.0)?;
    let outputs = outputs.into_iter().map(|meta| Output { meta, samples });
    Ok(Node::submit(call, outputs, pool.0.clone()))
}
