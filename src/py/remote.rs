//! Files that are named by URLs: Python finds out what reads them.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::readers::remote::abi::{self, Table};
use crate::readers::remote::{
    Backend, Contents, Context, Disk, Entry, Facts, Native, RemoteFault, set_default as set,
};
use crate::value::Cause;

type Result<T, E = Cause> = std::result::Result<T, E>;

/// Names and values of options.
type Pairs = Vec<(String, String)>;

/// Bytes of blocks that a reader keeps in memory, unless it is told otherwise.
const MEMORY: usize = 256 << 20;

/// The context for what a reader was told: options by name, the folder of the cache and its bytes.
pub fn context(storage: Option<&Bound<'_, PyTuple>>) -> PyResult<Arc<Context>> {
    let Some(storage) = storage else { return Ok(plain(None, MEMORY, None)) };
    type Given<'py> = (Option<Bound<'py, PyDict>>, Option<PathBuf>, Option<u64>);
    let (options, folder, bytes): Given<'_> = storage.extract()?;
    let options = options.map(Bound::unbind);
    let Some(folder) = folder else {
        let memory = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(MEMORY);
        return Ok(plain(options, memory, None));
    };
    let disk = Disk::open(&folder, bytes.unwrap_or(u64::MAX / 2));
    Ok(plain(options, MEMORY, Some(disk.map_err(PyOSError::new_err)?)))
}

fn plain(options: Option<Py<PyDict>>, memory: usize, disk: Option<Arc<Disk>>) -> Arc<Context> {
    let resolve = move |base: &str| {
        // If the interpreter is shutting down, nobody waits for the file.
        Python::try_attach(|py| resolve(py, base, options.as_ref())).unwrap_or(Err(Cause::Stopped))
    };
    Context::new(Box::new(resolve), memory, disk)
}

/// Sets the context of operators that read files.
pub fn set_default() {
    set(plain(None, MEMORY, None));
}

/// Asks Python what reads a URL such as `s3://bucket`.
fn resolve(py: Python<'_>, base: &str, options: Option<&Py<PyDict>>) -> Result<Arc<dyn Backend>> {
    let found = || -> PyResult<Bound<'_, PyTuple>> {
        let module = py.import("penstock.readers._base.remote")?;
        Ok(module.call_method1("resolve", (base, options))?.cast_into()?)
    };
    let found = found().map_err(|error| internal(py, &error))?;
    let kind: String = found.get_item(0).and_then(|kind| kind.extract()).unwrap_or_default();
    let part = |number: usize| {
        let part = found.get_item(number).and_then(|part| part.extract::<String>());
        part.unwrap_or_default()
    };
    match &*kind {
        "native" => {
            let given = || -> PyResult<(Bound<'_, PyCapsule>, Pairs)> {
                Ok((found.get_item(1)?.cast_into()?, found.get_item(2)?.extract()?))
            };
            let (capsule, options) = given().map_err(|error| internal(py, &error))?;
            let table = capsule.pointer_checked(Some(abi::CAPSULE));
            let table = table.map_err(|error| internal(py, &error))?.cast::<Table>();
            // SAFETY: the capsule has this name, and the module keeps the table forever. Its first
            // field is the version, which is looked at before anything else.
            let table: &'static Table = unsafe { table.as_ref() };
            Ok(Native::open(table, base, options)?)
        }
        "python" => match found.get_item(1) {
            Ok(files) => Ok(Arc::new(PythonFiles(files.unbind()))),
            Err(error) => Err(internal(py, &error)),
        },
        "scheme" => Err(RemoteFault::Scheme { scheme: part(1), known: part(2) }.into()),
        "module" => Err(RemoteFault::Module { scheme: part(1) }.into()),
        "package" => Err(RemoteFault::Package { scheme: part(1), package: part(2) }.into()),
        _ => Err(RemoteFault::Configuration { text: part(1) }.into()),
    }
}

fn internal(py: Python<'_>, error: &PyErr) -> Cause {
    Cause::Internal(format!("{}", error.value(py)))
}

/// Files that a Python package reads; see `penstock.readers._base.fsspec_files`.
struct PythonFiles(Py<PyAny>);

impl PythonFiles {
    fn call<T>(&self, run: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>) -> Result<T> {
        Python::try_attach(|py| {
            run(self.0.bind(py)).map_err(|error| {
                let name = error.get_type(py).name().map(|name| name.to_string());
                let said = error.value(py).to_string();
                let text = format!("{}: {said}", name.unwrap_or_default());
                Cause::from(if error.is_instance_of::<PyFileNotFoundError>(py) {
                    RemoteFault::NotFound { text: String::new() }
                } else if error.is_instance_of::<PyPermissionError>(py) {
                    RemoteFault::Denied { status: 0, text: said }
                } else {
                    RemoteFault::Other { attempts: 1, status: None, text }
                })
            })
        })
        .unwrap_or(Err(Cause::Stopped))
    }
}

impl Backend for PythonFiles {
    fn head(&self, key: &str) -> Result<Facts> {
        self.call(|files| {
            let (size, etag): (u64, Option<String>) =
                files.call_method1("head", (key,))?.extract()?;
            Ok(Facts { size, etag })
        })
    }

    fn get(&self, key: &str) -> Result<Contents> {
        self.call(|files| Ok(Contents::Bytes(files.call_method1("get", (key,))?.extract()?)))
    }

    fn range(&self, key: &str, _: Option<&str>, offset: u64, out: &mut [u8]) -> Result<()> {
        let found: Vec<u8> =
            self.call(|files| files.call_method1("range", (key, offset, out.len()))?.extract())?;
        if found.len() != out.len() {
            let text = format!("{} bytes came instead of {}", found.len(), out.len());
            return Err(RemoteFault::Changed { text }.into());
        }
        out.copy_from_slice(&found);
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.call(|files| {
            let found: Vec<(String, Option<u64>, String)> =
                files.call_method1("list", (prefix,))?.extract()?;
            let entry = |(name, size, etag)| Entry { name, size, etag };
            Ok(found.into_iter().map(entry).collect())
        })
    }
}
