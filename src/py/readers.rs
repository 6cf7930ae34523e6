//! Data sets of all formats, and the order of an epoch.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use super::fault::worded;
use super::import::refuse;
use super::pool::PyPool;
use super::submit::make_room;
use super::value::PyValue;
use crate::engine::{self, Call, Handle, Meta, Node, Value, put_off};
use crate::kernels::{Operator, Work, intern};
use crate::readers::{
    self, Fetch, Given, Names, OpenError, Options, Output, Part, Rows, RowsFault, Source, Table,
};
use crate::value::{Cause, Device, Layout};

/// Shuffles numbers in place with a shuffle buffer of size `fill`; see `readers::shuffle`.
#[pyfunction]
pub fn shuffle(
    py: Python<'_>,
    mut items: PyBuffer<i64>,
    fill: usize,
    seed: u64,
    epoch: u64,
    stream: u32,
) -> PyResult<()> {
    let row = writable(&mut items)?;
    py.detach(|| readers::shuffle(row, fill, seed, epoch, stream));
    Ok(())
}

/// Replaces places of a permutation of `0..len` by the items that are there; see
/// `readers::Permutation`.
#[pyfunction]
pub fn permute(
    py: Python<'_>,
    mut places: PyBuffer<i64>,
    len: u64,
    seed: u64,
    epoch: u64,
) -> PyResult<()> {
    let row = writable(&mut places)?;
    if len > i64::MAX as u64 || row.iter().any(|&place| place < 0 || place as u64 >= len) {
        return Err(PyValueError::new_err("these places are not in the permutation"));
    }
    py.detach(|| {
        let permutation = readers::Permutation::new(len, seed, epoch);
        for place in row {
            *place = permutation.at(*place as u64) as i64;
        }
    });
    Ok(())
}

/// The numbers of a buffer that the caller has just created and doesn't share.
fn writable(items: &mut PyBuffer<i64>) -> PyResult<&mut [i64]> {
    if items.readonly() || !items.is_c_contiguous() {
        return Err(PyValueError::new_err("expected a writable, contiguous buffer"));
    }
    // SAFETY: the buffer is contiguous, writable and has this many numbers while `items` is alive;
    // the caller has just created it and doesn't share it.
    Ok(unsafe { std::slice::from_raw_parts_mut(items.buf_ptr().cast::<i64>(), items.item_count()) })
}

/// Opens a data set of a format; `operator` is the reader that faults name. If something can't be
/// read or written, raises a ValueError with the option that names it, its path, the problem, and
/// whether the system is the cause.
/// `storage` has options for URLs, the folder of the cache and its bytes.
#[pyfunction]
#[pyo3(signature = (operator, format, options, storage=None))]
pub fn open_source(
    py: Python<'_>,
    operator: &str,
    format: &str,
    options: &Bound<'_, PyDict>,
    storage: Option<&Bound<'_, PyTuple>>,
) -> PyResult<PySource> {
    let options = given_options(options)?;
    let context = super::remote::context(storage)?;
    let opened = py.detach(|| readers::open(format, options, context));
    Ok(PySource::new(operator, opened.map_err(|error| unopened(py, error))?))
}

/// Opens a table of which another library reads the rows: `take` gets their numbers, and returns an
/// IPC stream of Arrow, as bytes; `schema` is one without rows. `about` has the name of the table, its
/// fingerprint, and the ends of groups of rows that are stored together. If columns can't be read,
/// raises the error of `open_source`.
#[pyfunction]
pub fn open_rows(
    py: Python<'_>,
    operator: &str,
    take: Py<PyAny>,
    columns: Option<Vec<String>>,
    schema: Vec<u8>,
    about: (String, u64, Vec<usize>),
) -> PyResult<PySource> {
    let take = move |numbers: &[usize]| {
        let run = |py: Python<'_>| {
            let taken = take.bind(py).call1((numbers.to_vec(),)).and_then(|taken| taken.extract());
            taken.map_err(|error| {
                let text = error.value(py).to_string();
                Cause::File { problem: RowsFault::Failed { text }.into() }
            })
        };
        // If the interpreter is shutting down, nobody waits for the rows.
        Python::try_attach(run).unwrap_or(Err(Cause::Stopped))
    };
    let (name, fingerprint, ends) = about;
    let about = Table { name, fingerprint, ends };
    let rows = Rows::open(Box::new(take), columns, schema, about);
    let rows = rows.map_err(|error| unopened(py, error.option("path").into()))?;
    Ok(PySource::new(operator, Arc::new(rows)))
}

/// A data set of any format, with samples by number.
#[pyclass(name = "Source", module = "penstock._core", frozen)]
pub struct PySource {
    operator: &'static str,
    source: Arc<dyn Source>,
    parts: Vec<Part>,
    fingerprint: OnceLock<u64>,
}

/// File (by position), line, text and problem.
type SkippedEntry<'a, 'py> = (usize, usize, &'a str, Bound<'py, PyTuple>);

#[pymethods]
impl PySource {
    fn __len__(&self) -> usize {
        self.source.len()
    }

    /// The name of a sample, for users.
    fn name(&self, number: usize) -> PyResult<String> {
        match number < self.source.len() {
            true => Ok(self.source.name(number).to_string()),
            false => Err(no_such_sample()),
        }
    }

    /// Changes whenever the data set does.
    fn fingerprint(&self, py: Python<'_>) -> u64 {
        py.detach(|| *self.fingerprint.get_or_init(|| self.source.fingerprint()))
    }

    /// The names of the outputs, if the format knows them.
    fn output_names(&self) -> Vec<String> {
        self.source.output_names()
    }

    /// The ends of groups of samples that belong together, as 64-bit integers; None if the format
    /// has none.
    fn groups<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let ends = self.source.groups()?;
        let bytes: Vec<u8> = ends.iter().flat_map(|&end| (end as i64).to_ne_bytes()).collect();
        Some(PyBytes::new(py, &bytes))
    }

    /// Whether it reads files that are named by URLs.
    #[getter]
    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }

    /// Entries that were skipped when the data set was opened.
    fn skipped<'py>(&self, py: Python<'py>) -> PyResult<Vec<SkippedEntry<'_, 'py>>> {
        let skipped = self.source.skipped().iter();
        skipped
            .map(|entry| Ok((entry.file, entry.line, &*entry.text, worded(py, &entry.problem)?)))
            .collect()
    }

    /// Whether fetching is left to the threads that compute.
    #[getter]
    fn computes(&self) -> bool {
        self.source.computes()
    }

    /// The same data set, with the arguments of one call.
    fn with_arguments(&self, py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<PySource> {
        let changed = self.source.clone().with_arguments(given_options(options)?);
        Ok(PySource::new(self.operator, changed.map_err(|error| unopened(py, error))?))
    }

    /// Starts reading samples on workers, and returns a value per output: a batch, or a single
    /// sample. Deferred ones are read when they are asked for.
    #[pyo3(signature = (numbers, batch, site, pool, deferred=false))]
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        numbers: PyBuffer<i64>,
        batch: bool,
        site: u32,
        pool: &PyPool,
        deferred: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let numbers = self.numbers(py, &numbers)?;
        let together = self.source.clone().batch(&numbers);
        let (source, places) = match together.map_err(|error| unopened(py, error))? {
            Some(source) => (source, (0..numbers.len()).collect()),
            None => (self.source.clone(), numbers.clone()),
        };
        let mut values: Vec<PyValue> = Vec::new();
        for (part, outputs) in self.parts.iter().enumerate() {
            match outputs {
                Part::Ready(output) => values.push(self.ready(&numbers, part, *output, batch)?),
                Part::Fetched(outputs) => {
                    let fetch = Fetch::new(source.clone(), part, places.clone());
                    let fetch = fetch.ok_or_else(no_such_sample)?;
                    let when = When { site, deferred };
                    let made = submit(py, self.operator, fetch, places.len(), outputs, when, pool)?;
                    let value = |handle| PyValue::made_of_nothing(handle, batch);
                    values.extend(made.into_iter().map(value));
                }
            }
        }
        PyTuple::new(py, values)
    }

    /// A batch of an output that is already in memory.
    fn output(&self, py: Python<'_>, part: usize, numbers: PyBuffer<i64>) -> PyResult<PyValue> {
        match self.parts.get(part) {
            Some(Part::Ready(output)) => {
                self.ready(&self.numbers(py, &numbers)?, part, *output, true)
            }
            _ => Err(PyIndexError::new_err("the part is not in memory")),
        }
    }
}

impl PySource {
    fn new(operator: &str, source: Arc<dyn Source>) -> PySource {
        let parts = source.outputs();
        PySource { operator: intern(operator), source, parts, fingerprint: OnceLock::new() }
    }

    fn numbers(&self, py: Python<'_>, given: &PyBuffer<i64>) -> PyResult<Box<[usize]>> {
        // A negative number wraps around to one that is too large.
        let numbers: Box<[usize]> = given.to_vec(py)?.into_iter().map(|n| n as usize).collect();
        match numbers.iter().all(|&number| number < self.source.len()) {
            true => Ok(numbers),
            false => Err(no_such_sample()),
        }
    }

    fn ready(
        &self,
        numbers: &[usize],
        part: usize,
        output: Output,
        batch: bool,
    ) -> PyResult<PyValue> {
        let samples = self.source.ready(numbers, part);
        Ok(PyValue::new(Value::ready(meta(output), samples.map_err(refuse)?), batch))
    }
}

fn no_such_sample() -> PyErr {
    PyIndexError::new_err("sample number out of range")
}

fn meta(Output { dtype, ndim, layout, uniform }: Output) -> Meta {
    Meta { dtype, ndim, layout, device: Device::Cpu, uniform }
}

/// Where the program asks for samples, and whether it waits to be asked again.
struct When {
    site: u32,
    deferred: bool,
}

/// Submits a node that reads a part of samples: a value for each of its outputs.
fn submit(
    py: Python<'_>,
    operator: &'static str,
    fetch: Fetch,
    samples: usize,
    outputs: &[Output],
    when: When,
    pool: &PyPool,
) -> PyResult<SmallVec<[Handle; 1]>> {
    let call = Call {
        operator: Operator { name: operator, work: Work::Source(Arc::new(fetch)) },
        inputs: smallvec![],
        data_inputs: 0,
        args: smallvec![],
        samples,
        layout: Layout::default(),
        device: Device::Cpu,
        site: when.site,
    };
    make_room(py, &pool.0)?;
    let outputs = outputs.iter().map(|&output| engine::Output { meta: meta(output), samples });
    if when.deferred {
        let (node, handles) = Node::new(call, outputs, pool.0.clone());
        put_off(&node, &handles);
        return Ok(handles);
    }
    Ok(Node::submit(call, outputs, pool.0.clone()))
}

fn unopened(py: Python<'_>, error: OpenError) -> PyErr {
    match error {
        OpenError::Options(problem) => PyTypeError::new_err(problem),
        OpenError::Unreadable(file) => match worded(py, &file.problem) {
            Ok(problem) => {
                let path = file.path.into_os_string();
                PyValueError::new_err((file.option, path, problem.unbind(), file.system))
            }
            Err(error) => error,
        },
    }
}

fn given_options(options: &Bound<'_, PyDict>) -> PyResult<Options> {
    let given = options.iter().map(|(name, value)| Ok((name.extract()?, given(&value)?)));
    Ok(Options(given.collect::<PyResult<_>>()?))
}

fn given(value: &Bound<'_, PyAny>) -> PyResult<Given> {
    if value.is_none() {
        return Ok(Given::None);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Given::Flag(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Given::Int(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Given::Float(value.extract()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return given_list(value);
    }
    Ok(Given::Bytes(name(value)?))
}

/// Lists of names and integers may have millions of entries, so they are stored compactly.
fn given_list(list: &Bound<'_, PyAny>) -> PyResult<Given> {
    let Some(first) = list.try_iter()?.next().transpose()? else {
        return Ok(Given::List(vec![]));
    };
    if first.is_instance_of::<PyInt>() && !first.is_instance_of::<PyBool>() {
        if let Ok(numbers) = list.extract() {
            return Ok(Given::Ints(numbers));
        }
    } else if let Some(names) = names(list)? {
        return Ok(Given::Names(names));
    }
    let list = list.try_iter()?.map(|item| given(&item?));
    Ok(Given::List(list.collect::<PyResult<_>>()?))
}

/// `None` if something else is among them.
fn names(list: &Bound<'_, PyAny>) -> PyResult<Option<Names>> {
    let mut names = Names::default();
    for item in list.try_iter()? {
        match name(&item?) {
            Ok(name) => names.push(&name),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(names))
}

/// A string, bytes or a path, as the system's bytes.
fn name(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if value.is_instance_of::<PyString>() {
        return Ok(value.extract::<OsString>()?.into_vec());
    }
    Ok(value.extract::<PathBuf>()?.into_os_string().into_vec())
}
