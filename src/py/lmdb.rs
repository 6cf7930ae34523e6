//! Records of LMDB databases.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::pool::PyPool;
use super::readers::fetch;
use super::value::PyValue;
use crate::engine::Meta;
use crate::readers::{Caffe, Caffe2, Hash, Labels, Lmdb, OpenError, Source, file_of};
use crate::value::{DType, Device, Layout};

/// Records by number, of one database after the other.
#[pyclass(name = "Lmdb", module = "penstock._core", frozen)]
pub struct PyLmdb {
    records: Arc<Lmdb>,
    fingerprint: OnceLock<u64>,
}

#[pymethods]
impl PyLmdb {
    /// Opens databases. What can't be opened raises ValueError of its name, what is wrong, and
    /// whether the machine is at fault; if not, with `tolerant` it is a record that can't be read.
    #[staticmethod]
    fn opened(py: Python<'_>, paths: Vec<PathBuf>, tolerant: bool) -> PyResult<PyLmdb> {
        let mut records = Lmdb::default();
        for path in paths {
            py.detach(|| records.add(&path, tolerant)).map_err(|error| {
                let file = || file_of(&path).into_os_string();
                PyValueError::new_err(match error {
                    OpenError::File(problem) => (file(), problem, false),
                    OpenError::System(problem) => (file(), problem, true),
                    OpenError::Broken(problem) => (path.into_os_string(), problem, false),
                })
            })?;
        }
        Ok(PyLmdb { records: Arc::new(records), fingerprint: OnceLock::new() })
    }

    fn __len__(&self) -> usize {
        self.records.len()
    }

    /// A number that changes with the keys, the sizes of the records and their order.
    fn fingerprint(&self, py: Python<'_>) -> u64 {
        py.detach(|| {
            *self.fingerprint.get_or_init(|| {
                let mut hash = Hash(self.records.len() as u64);
                for (key, size) in self.records.parts() {
                    hash.bytes(key);
                    hash.word(u64::from(size));
                }
                hash.finish()
            })
        })
    }

    fn name(&self, number: usize) -> PyResult<String> {
        match number < self.records.len() {
            true => Ok(self.records.name(number).to_string()),
            false => Err(PyIndexError::new_err("there is no record of that number")),
        }
    }

    /// Images and labels of Caffe, as soon as they have been read.
    #[expect(clippy::too_many_arguments)]
    fn caffe(
        &self,
        py: Python<'_>,
        operator: &str,
        numbers: PyBuffer<i64>,
        batch: bool,
        image: bool,
        label: bool,
        site: u32,
        pool: &PyPool,
    ) -> PyResult<Vec<PyValue>> {
        let mut outputs = smallvec![];
        if image {
            outputs.push(image_meta());
        }
        if label {
            outputs.push(row_meta(Some(DType::I32), true));
        }
        let source = Caffe { records: self.records.clone(), image, label };
        read(py, operator, source, &numbers, batch, outputs, site, pool)
    }

    /// Images, labels, further tensors and boxes of Caffe2, as soon as they have been read.
    #[expect(clippy::too_many_arguments)]
    fn caffe2(
        &self,
        py: Python<'_>,
        operator: &str,
        numbers: PyBuffer<i64>,
        batch: bool,
        image: bool,
        label_type: usize,
        classes: usize,
        additional: usize,
        bbox: bool,
        site: u32,
        pool: &PyPool,
    ) -> PyResult<Vec<PyValue>> {
        let labels = Labels::ALL.get(label_type).copied();
        let labels = labels.ok_or_else(|| PyValueError::new_err("no such kind of labels"))?;
        let mut outputs = smallvec![];
        if image {
            outputs.push(image_meta());
        }
        match labels {
            Labels::None => {}
            // The records tell whether they are integers.
            Labels::Single => outputs.push(row_meta(None, true)),
            Labels::Dense => outputs.push(row_meta(None, false)),
            Labels::Sparse => outputs.push(row_meta(Some(DType::I32), true)),
            Labels::Weighted => outputs.push(row_meta(Some(DType::F32), true)),
        }
        outputs.extend((0..additional).map(|_| row_meta(None, false)));
        if bbox {
            outputs.push(row_meta(Some(DType::I32), true));
        }
        let records = self.records.clone();
        let source = Caffe2 { records, image, labels, classes, additional, bbox };
        read(py, operator, source, &numbers, batch, outputs, site, pool)
    }
}

/// Bytes of a file, or pixels.
fn image_meta() -> Meta {
    Meta {
        dtype: Some(DType::U8),
        ndim: None,
        layout: Layout::default(),
        device: Device::Cpu,
        uniform: false,
    }
}

fn row_meta(dtype: Option<DType>, uniform: bool) -> Meta {
    Meta { dtype, ndim: Some(1), layout: Layout::default(), device: Device::Cpu, uniform }
}

#[expect(clippy::too_many_arguments)]
fn read<S: Source>(
    py: Python<'_>,
    operator: &str,
    source: S,
    given: &PyBuffer<i64>,
    batch: bool,
    outputs: SmallVec<[Meta; 1]>,
    site: u32,
    pool: &PyPool,
) -> PyResult<Vec<PyValue>> {
    // A negative number becomes one that is too large, which `fetch` refuses.
    let numbers = given.to_vec(py)?.into_iter().map(|n| n as usize).collect();
    let made = fetch(py, operator, Arc::new(source), numbers, outputs, site, pool)?;
    Ok(made.into_iter().map(|handle| PyValue::made_of_nothing(handle, batch)).collect())
}
