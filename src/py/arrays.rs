//! Arrays in files.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyOSError, PyValueError};
use pyo3::prelude::*;
use smallvec::smallvec;

use super::pool::PyPool;
use super::readers::fetch;
use super::value::PyValue;
use crate::engine::Meta;
use crate::readers::{self, Arrays, Bound as Place, Cuts, Files, Globs, Outside, Source};
use crate::readers::{Window, Windows};
use crate::value::{Device, Layout};

/// A bound of a window: its argument's name, the values, and whether they are parts of the extent.
type Given = (String, Vec<f64>, bool);

/// Windows for arrays: start, end and shape of each.
type GivenWindow = (Option<Given>, Option<Given>, Option<Given>);

/// Files with arrays, by number.
#[pyclass(name = "Arrays", module = "penstock._core", frozen)]
pub struct PyArrays(Arc<Arrays>);

#[pymethods]
impl PyArrays {
    /// The files of a folder, and of the folders in there. What can't be listed raises OSError.
    #[staticmethod]
    fn listed(
        py: Python<'_>,
        root: PathBuf,
        pattern: OsString,
        remember: bool,
    ) -> PyResult<PyArrays> {
        let globs = Globs::new(&[pattern.as_bytes()], false);
        let listed = py.detach(|| readers::list_with_root(&root, &globs));
        let listed = listed.map_err(|failed| {
            let code = failed.error.raw_os_error().unwrap_or(0);
            PyOSError::new_err((code, failed.error.to_string(), failed.path.into_os_string()))
        })?;
        Ok(PyArrays(Arc::new(Arrays::new(listed, remember))))
    }

    /// The files of these names, relative to `root` unless absolute.
    #[staticmethod]
    fn named(root: PathBuf, names: &Bound<'_, PyAny>, remember: bool) -> PyResult<PyArrays> {
        let mut files = Files::new(root);
        for name in names.try_iter()? {
            files.push(name?.extract::<PathBuf>()?.as_os_str().as_bytes(), 0);
        }
        Ok(PyArrays(Arc::new(Arrays::new(files, remember))))
    }

    fn __len__(&self) -> usize {
        self.0.files.len()
    }

    /// A number that changes with the names and their order.
    fn fingerprint(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.files.fingerprint())
    }

    fn name(&self, number: usize) -> PyResult<String> {
        if number >= self.0.files.len() {
            return Err(PyIndexError::new_err("there is no file of that number"));
        }
        Ok(self.0.files.name(number).to_string())
    }

    /// Arrays or parts of them, as soon as they have been read: a batch, or a single sample.
    #[allow(clippy::too_many_arguments)]
    fn read(
        &self,
        py: Python<'_>,
        operator: &str,
        numbers: PyBuffer<i64>,
        batch: bool,
        windows: &PyWindows,
        site: u32,
        pool: &PyPool,
    ) -> PyResult<PyValue> {
        // A negative number becomes one that is too large.
        let numbers: Box<[usize]> = numbers.to_vec(py)?.into_iter().map(|n| n as usize).collect();
        let positions = (0..numbers.len()).collect();
        let cuts = Cuts::new(self.0.clone(), numbers, windows.0.clone())
            .ok_or_else(|| PyIndexError::new_err("numbers or windows don't fit"))?;
        let meta = Meta {
            dtype: None,
            ndim: None,
            layout: Layout::default(),
            device: Device::Cpu,
            uniform: true,
        };
        let made = fetch(py, operator, Arc::new(cuts), positions, smallvec![meta], site, pool)?;
        let handle = made.into_iter().next().ok_or_else(|| PyValueError::new_err("no result"))?;
        Ok(PyValue::made_of_nothing(handle, batch))
    }
}

/// Which parts of arrays are wanted.
#[pyclass(name = "Windows", module = "penstock._core", frozen)]
pub struct PyWindows(Windows);

#[pymethods]
impl PyWindows {
    #[new]
    fn new(
        axes: Vec<i64>,
        fill: f32,
        outside: &str,
        each: Vec<GivenWindow>,
    ) -> PyResult<PyWindows> {
        let outside = match outside {
            "error" => Outside::Refused,
            "pad" => Outside::Filled,
            "trim_to_shape" => Outside::Trimmed,
            other => return Err(PyValueError::new_err(format!("no policy: {other}"))),
        };
        let bound = |given: Option<Given>| {
            given.map(|(name, values, relative)| Place {
                name: readers::WINDOW_ARGUMENTS
                    .into_iter()
                    .find(|known| *known == name)
                    .unwrap_or("roi_start"),
                values: values.into(),
                relative,
            })
        };
        let window = |(start, end, shape)| Window {
            start: bound(start),
            end: bound(end),
            shape: bound(shape),
        };
        let each = each.into_iter().map(window).collect();
        Ok(PyWindows(Windows { axes: axes.into(), fill, outside, each }))
    }
}
