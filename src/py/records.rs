//! Data sets of records: many samples in one file.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::pool::PyPool;
use super::readers::fetch;
use super::value::PyValue;
use crate::engine::Meta;
use crate::readers::{
    self, Fallback, Feature, Kind, Missing, RecordIo, Source, TfRecords, Unreadable, Wanted,
};
use crate::value::{DType, Device, Layout};

/// Records by number. What can't be opened raises ValueError of the file's name, the problem, and
/// whether the machine is at fault; if not, with `tolerant` it is a record that can't be read.
#[pyclass(name = "Records", module = "penstock._core", frozen)]
pub struct PyRecords {
    /// What is read together, and the outputs of that.
    parts: Vec<Part>,
    fingerprint: u64,
}

type Part = (Arc<dyn Source>, SmallVec<[Meta; 1]>);
type PyFeature = (String, String, Vec<usize>, bool, Option<Py<PyAny>>);

#[pymethods]
impl PyRecords {
    /// Examples in TFRecord files. A feature is its key, "bytes", "float" or "int", its shape,
    /// whether the first extent varies (and is left out), and what stands in where it is missing.
    #[staticmethod]
    fn tfrecord(
        py: Python<'_>,
        files: Vec<PathBuf>,
        index: Option<Vec<PathBuf>>,
        tolerant: bool,
        features: Vec<PyFeature>,
    ) -> PyResult<PyRecords> {
        let features = features.into_iter().map(|feature| wanted(py, feature));
        let features = features.collect::<PyResult<Vec<_>>>()?;
        let metas = features.iter().map(|feature| {
            meta(
                feature.kind.dtype(),
                feature.ndim(),
                !feature.variable && feature.kind != Kind::Bytes,
            )
        });
        let metas = metas.collect();
        let opened = py.detach(|| {
            let opened = TfRecords::open(files, index.as_deref(), tolerant, features)?;
            Ok((opened.fingerprint(), opened))
        });
        let (fingerprint, opened) = opened.map_err(refused)?;
        Ok(PyRecords { parts: vec![(Arc::new(opened), metas)], fingerprint })
    }

    /// Images and labels in RecordIO files.
    #[staticmethod]
    fn recordio(
        py: Python<'_>,
        files: Vec<PathBuf>,
        index: Option<Vec<PathBuf>>,
        tolerant: bool,
    ) -> PyResult<PyRecords> {
        let opened = py.detach(|| {
            let opened = RecordIo::open(files, index.as_deref(), tolerant)?;
            Ok((opened.fingerprint(), opened))
        });
        let (fingerprint, opened) = opened.map_err(refused)?;
        let metas = smallvec![meta(DType::U8, 1, false), meta(DType::F32, 1, true)];
        Ok(PyRecords { parts: vec![(Arc::new(opened), metas)], fingerprint })
    }

    /// Components of samples in tar archives: for each output the extensions that it may have, and
    /// the code of its dtype. Where one is missing, "empty", "skip" or "error".
    #[staticmethod]
    #[expect(clippy::too_many_arguments)]
    fn webdataset(
        py: Python<'_>,
        files: Vec<PathBuf>,
        index: Option<Vec<PathBuf>>,
        tolerant: bool,
        extensions: Vec<Vec<String>>,
        dtypes: Vec<u8>,
        ignore_case: bool,
        missing: &str,
    ) -> PyResult<PyRecords> {
        let missing = match missing {
            "skip" => Missing::Skip,
            "error" => Missing::Refuse,
            _ => Missing::Empty,
        };
        let extensions = extensions.into_iter().map(|any| any.into_iter().map(String::into_bytes));
        let extensions: Vec<_> = extensions.map(|any| any.collect()).collect();
        let dtypes = dtypes.into_iter().map(DType::from_code).collect::<Option<Vec<_>>>();
        let dtypes = dtypes.filter(|dtypes| dtypes.len() == extensions.len() && !dtypes.is_empty());
        let dtypes = dtypes.ok_or_else(|| PyValueError::new_err("no dtype for each output"))?;
        let wanted = Wanted { extensions, ignore_case, missing };
        let opened = py.detach(|| {
            let opened =
                readers::open_archives(files, index.as_deref(), tolerant, &wanted, &dtypes)?;
            Ok((readers::fingerprint(&opened), opened))
        });
        let (fingerprint, components) = opened.map_err(refused)?;
        let part = |component: readers::Component| -> (Arc<dyn Source>, _) {
            let metas = smallvec![meta(component.dtype(), 1, false)];
            (Arc::new(component), metas)
        };
        Ok(PyRecords { parts: components.into_iter().map(part).collect(), fingerprint })
    }

    fn __len__(&self) -> usize {
        self.parts.first().map_or(0, |(source, _)| source.len())
    }

    /// A number that changes with the files and with what is where in them.
    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn name(&self, number: usize) -> PyResult<String> {
        if number >= self.__len__() {
            return Err(PyIndexError::new_err("there is no record of that number"));
        }
        let mut names = self.parts.iter().map(|(source, _)| source.name(number));
        Ok(names.find(|name| !name.is_empty()).map_or_else(String::new, |name| name.to_string()))
    }

    /// The outputs of records, as soon as they have been read: batches, or single samples.
    fn read(
        &self,
        py: Python<'_>,
        operator: &str,
        numbers: PyBuffer<i64>,
        batch: bool,
        site: u32,
        pool: &PyPool,
    ) -> PyResult<Vec<PyValue>> {
        // A negative number becomes one that is too large.
        let numbers: Box<[usize]> = numbers.to_vec(py)?.into_iter().map(|n| n as usize).collect();
        let mut values = Vec::new();
        for (source, metas) in &self.parts {
            let (source, numbers, metas) = (source.clone(), numbers.clone(), metas.clone());
            for handle in fetch(py, operator, source, numbers, metas, site, pool)? {
                values.push(PyValue::made_of_nothing(handle, batch));
            }
        }
        Ok(values)
    }
}

fn meta(dtype: DType, ndim: usize, uniform: bool) -> Meta {
    let (dtype, ndim) = (Some(dtype), Some(ndim));
    Meta { dtype, ndim, layout: Layout::default(), device: Device::Cpu, uniform }
}

fn wanted(py: Python<'_>, feature: PyFeature) -> PyResult<Feature> {
    let (key, kind, shape, variable, fallback) = feature;
    let kind = match &*kind {
        "bytes" => Kind::Bytes,
        "float" => Kind::Float,
        "int" => Kind::Int,
        _ => return Err(PyValueError::new_err("no kind of feature")),
    };
    let fallback = match (fallback, kind) {
        (None, _) => Fallback::None,
        (Some(bytes), Kind::Bytes) => Fallback::Bytes(bytes.extract(py)?),
        (Some(numbers), Kind::Float) => Fallback::Float(numbers.extract(py)?),
        (Some(numbers), Kind::Int) => Fallback::Int(numbers.extract(py)?),
    };
    Ok(Feature { key, kind, shape: SmallVec::from_vec(shape), variable, fallback })
}

fn refused(file: Unreadable) -> PyErr {
    PyValueError::new_err((file.path.into_os_string(), file.problem, file.system))
}
