//! Images with objects on them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
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
use crate::readers::{self, Coco, CocoOptions, Outlines, Source, StoreError};
use crate::value::{DType, Device, Layout};

/// What samples of a data set are made of, and which there are.
#[pyclass(name = "CocoOptions", module = "penstock._core", frozen)]
pub struct PyCocoOptions(CocoOptions);

#[pymethods]
impl PyCocoOptions {
    #[new]
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (*, corners, ratio, outlines, image_ids, skip_empty, skip_crowds, threshold,
                        renumber, images))]
    fn new(
        corners: bool,
        ratio: bool,
        outlines: &str,
        image_ids: bool,
        skip_empty: bool,
        skip_crowds: bool,
        threshold: f32,
        renumber: bool,
        images: Vec<OsString>,
    ) -> PyResult<PyCocoOptions> {
        let outlines = match outlines {
            "none" => Outlines::None,
            "polygons" => Outlines::Polygons,
            "coordinates" => Outlines::Coordinates,
            "pixels" => Outlines::Pixels,
            other => return Err(PyValueError::new_err(format!("no outlines: {other}"))),
        };
        let images = images.into_iter().map(OsString::into_vec).collect();
        Ok(PyCocoOptions(CocoOptions {
            corners,
            ratio,
            outlines,
            image_ids,
            skip_empty,
            skip_crowds,
            threshold,
            renumber,
            images,
        }))
    }
}

/// Images by number, with the objects on them.
#[pyclass(name = "Coco", module = "penstock._core", frozen)]
pub struct PyCoco(Arc<Coco>);

fn refuse(error: StoreError) -> PyErr {
    PyValueError::new_err((error.path.into_os_string(), error.problem, error.system))
}

#[pymethods]
impl PyCoco {
    /// The images of an annotation file. What is wrong with it raises ValueError of the line, the
    /// byte, what it is, and whether the machine is at fault. The line is 0 when the file can't be
    /// read.
    #[staticmethod]
    fn parsed(
        py: Python<'_>,
        file: PathBuf,
        root: PathBuf,
        options: &PyCocoOptions,
    ) -> PyResult<PyCoco> {
        let options = options.0.clone();
        let parsed = py.detach(|| readers::read_coco(&file, &root, options));
        let parsed = parsed
            .map_err(|bad| PyValueError::new_err((bad.line, bad.byte, bad.problem, bad.system)))?;
        Ok(PyCoco(Arc::new(parsed)))
    }

    /// The images that `save` stored in a folder. What can't be read raises ValueError of its name,
    /// what is wrong with it, and whether the machine is at fault.
    #[staticmethod]
    fn loaded(
        py: Python<'_>,
        folder: PathBuf,
        root: PathBuf,
        options: &PyCocoOptions,
    ) -> PyResult<PyCoco> {
        let options = options.0.clone();
        let loaded = py.detach(|| readers::load_coco(&folder, &root, options));
        Ok(PyCoco(Arc::new(loaded.map_err(refuse)?)))
    }

    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| readers::save_coco(&self.0, &folder)).map_err(refuse)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// A number that changes with the images and the objects.
    fn fingerprint(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.fingerprint())
    }

    fn name(&self, number: usize) -> PyResult<String> {
        if number >= self.0.len() {
            return Err(PyIndexError::new_err("there is no image of that number"));
        }
        Ok(self.0.name(number).to_string())
    }

    /// The outputs, as soon as they have been read: batches, or single samples.
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
        let meta = |dtype, ndim, layout: &str| Meta {
            dtype: Some(dtype),
            ndim: Some(ndim),
            layout: Layout::new(layout).unwrap_or_default(),
            device: Device::Cpu,
            uniform: false,
        };
        let mut outputs: SmallVec<[Meta; 1]> =
            smallvec![meta(DType::U8, 1, ""), meta(DType::F32, 2, ""), meta(DType::I32, 1, "")];
        match self.0.options().outlines {
            Outlines::None => {}
            Outlines::Pixels => outputs.push(meta(DType::I32, 3, "HWC")),
            Outlines::Polygons | Outlines::Coordinates => {
                outputs.extend([meta(DType::I32, 2, ""), meta(DType::F32, 2, "")]);
            }
        }
        if self.0.options().image_ids {
            outputs.push(Meta { uniform: true, ..meta(DType::I32, 1, "") });
        }
        let made = fetch(py, operator, self.0.clone(), numbers, outputs, site, pool)?;
        Ok(made.into_iter().map(|handle| PyValue::made_of_nothing(handle, batch)).collect())
    }
}
