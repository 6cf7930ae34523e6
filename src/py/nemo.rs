//! Manifests of speech.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smallvec::smallvec;

use super::pool::PyPool;
use super::readers::fetch;
use super::value::PyValue;
use crate::engine::{Meta, Value};
use crate::kernels::{OutputBuffer, Resampler};
use crate::readers::{BadLine, Durations, Hash, Manifest, Speech};
use crate::value::{Cause, DType, Desc, Device, Element, Layout, Sample};

/// Utterances by number.
#[pyclass(name = "Manifest", module = "penstock._core", frozen)]
pub struct PyManifest {
    manifest: Arc<Manifest>,
    fingerprint: OnceLock<u64>,
}

/// What a manifest holds; or its name, and why it can't be read.
#[derive(FromPyObject)]
enum Contents<'py> {
    Text(Bound<'py, PyBytes>),
    Unread(OsString, String),
}

/// Position of the manifest, line, its text, and what is wrong with it.
type Bad = (usize, usize, String, &'static str);

#[pymethods]
impl PyManifest {
    /// The utterances of manifests, given their contents, and the lines that are none. The name
    /// of one, and why it can't be read, make an utterance that can't be read.
    #[staticmethod]
    fn parsed(
        py: Python<'_>,
        contents: Vec<Contents<'_>>,
        least: f64,
        most: f64,
    ) -> (PyManifest, Vec<Bad>) {
        let contents = contents.iter().map(|contents| match contents {
            Contents::Text(bytes) => Ok(bytes.as_bytes()),
            Contents::Unread(name, reason) => Err((name.as_bytes().to_vec(), reason.clone())),
        });
        let contents: Vec<Result<&[u8], _>> = contents.collect();
        let (manifest, bad) = py.detach(|| {
            let (mut manifest, mut bad) = (Manifest::default(), Vec::new());
            for (index, contents) in contents.into_iter().enumerate() {
                match contents {
                    Ok(text) => {
                        let found = manifest.add(text, Durations { least, most });
                        let bad_line = |bad: BadLine| (index, bad.line, bad.text, bad.problem);
                        bad.extend(found.into_iter().map(bad_line));
                    }
                    Err((name, reason)) => manifest.add_unread(name, reason),
                }
            }
            (manifest, bad)
        });
        (PyManifest { manifest: Arc::new(manifest), fingerprint: OnceLock::new() }, bad)
    }

    fn __len__(&self) -> usize {
        self.manifest.len()
    }

    /// A number that changes with what the utterances are, and with their order.
    fn fingerprint(&self, py: Python<'_>) -> u64 {
        py.detach(|| {
            *self.fingerprint.get_or_init(|| {
                let mut hash = Hash(self.manifest.len() as u64);
                for (file, text, span) in self.manifest.parts() {
                    hash.bytes(file);
                    hash.bytes(text);
                    span.into_iter().for_each(|seconds| hash.word(seconds.to_bits()));
                }
                hash.finish()
            })
        })
    }

    fn name(&self, number: usize) -> PyResult<String> {
        match number < self.manifest.len() {
            true => Ok(String::from_utf8_lossy(self.manifest.file(number)).into()),
            false => Err(PyIndexError::new_err("there is no utterance of that number")),
        }
    }

    /// The texts of utterances, as bytes, which are there at once.
    fn texts(&self, py: Python<'_>, numbers: PyBuffer<i64>, batch: bool) -> PyResult<PyValue> {
        let numbers = self.numbers(py, &numbers)?;
        let rows: Vec<&[u8]> = numbers.iter().map(|&n| self.manifest.text(n)).collect();
        ready(&rows, batch, false)
    }

    /// The numbers of utterances themselves, which are there at once.
    fn indices(&self, py: Python<'_>, numbers: PyBuffer<i64>, batch: bool) -> PyResult<PyValue> {
        let numbers: Vec<i64> = numbers.to_vec(py)?;
        let rows: Vec<&[i64]> = numbers.iter().map(std::slice::from_ref).collect();
        ready(&rows, batch, true)
    }
}

impl PyManifest {
    fn numbers(&self, py: Python<'_>, given: &PyBuffer<i64>) -> PyResult<Vec<usize>> {
        // A negative number becomes one that is too large.
        let numbers: Vec<usize> = given.to_vec(py)?.into_iter().map(|n| n as usize).collect();
        match numbers.iter().all(|&number| number < self.manifest.len()) {
            true => Ok(numbers),
            false => Err(PyIndexError::new_err("there is no utterance of that number")),
        }
    }
}

/// Rows that are known already, side by side.
fn ready<T: Element>(rows: &[&[T]], batch: bool, uniform: bool) -> PyResult<PyValue> {
    let refuse = |cause: Cause| PyValueError::new_err(format!("{cause:?}"));
    let count = rows.iter().map(|row| row.len()).sum();
    let mut all = OutputBuffer::new(Desc::new(T::DTYPE, &[count])).map_err(refuse)?;
    let mut rest = all.elements::<T>();
    for row in rows {
        let (place, after) = rest.split_at_mut(row.len());
        place.copy_from_slice(row);
        rest = after;
    }
    let all = all.into_sample().map_err(refuse)?;
    let mut offset = 0;
    let samples = rows.iter().map(|row| {
        let start = offset;
        offset += size_of_val(*row);
        all.part(Desc::new(T::DTYPE, &[row.len()]), start)
    });
    let samples = samples.collect::<Result<Vec<Sample>, Cause>>().map_err(refuse)?;
    Ok(PyValue::new(Value::ready(meta(T::DTYPE, 1, uniform), samples), batch))
}

fn meta(dtype: DType, ndim: usize, uniform: bool) -> Meta {
    let (layout, device) = (Layout::default(), Device::Cpu);
    Meta { dtype: Some(dtype), ndim: Some(ndim), layout, device, uniform }
}

/// The sounds of utterances, and how they are wanted.
#[pyclass(name = "Speech", module = "penstock._core", frozen)]
pub struct PySpeech(Arc<Speech>);

#[pymethods]
impl PySpeech {
    /// Without a `sample_rate`, sounds keep their own. With `rates`, that comes as a second output.
    #[new]
    #[pyo3(signature = (manifest, dtype, downmix, sample_rate, quality, rates))]
    fn new(
        manifest: &PyManifest,
        dtype: u8,
        downmix: bool,
        sample_rate: Option<f64>,
        quality: f32,
        rates: bool,
    ) -> PyResult<PySpeech> {
        let dtype = DType::from_code(dtype)
            .filter(|dtype| matches!(dtype, DType::F32 | DType::I16 | DType::I32))
            .ok_or_else(|| PyValueError::new_err("sounds are of float32, int16 or int32"))?;
        let resample = sample_rate
            .filter(|&rate| rate > 0.0 && rate.is_finite())
            .map(|rate| (rate, Resampler::new(quality)));
        let manifest = manifest.manifest.clone();
        Ok(PySpeech(Arc::new(Speech { manifest, downmix, dtype, resample, rate: rates })))
    }

    /// The sounds, as soon as they have been decoded, and if wanted their rates.
    fn read(
        &self,
        py: Python<'_>,
        operator: &str,
        numbers: PyBuffer<i64>,
        batch: bool,
        site: u32,
        pool: &PyPool,
    ) -> PyResult<Vec<PyValue>> {
        let speech = &self.0;
        let mut outputs = smallvec![meta(speech.dtype, if speech.downmix { 1 } else { 2 }, false)];
        if speech.rate {
            outputs.push(meta(DType::F32, 0, true));
        }
        // A negative number becomes one that is too large, which `fetch` refuses.
        let numbers = numbers.to_vec(py)?.into_iter().map(|n| n as usize).collect();
        let made = fetch(py, operator, speech.clone(), numbers, outputs, site, pool)?;
        Ok(made.into_iter().map(|handle| PyValue::made_of_nothing(handle, batch)).collect())
    }
}
