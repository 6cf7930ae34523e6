//! Finding FFmpeg, and what a video consists of.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::fault::PyFault;
use super::value::PyValue;
use crate::codecs::video::ffmpeg::Library;
use crate::codecs::video::{Choice, Video};
use crate::kernels::protected;
use crate::value::{Cause, Fault, Origin};

/// Opens the libraries of FFmpeg in a folder, or those that the system has. Returns the major
/// version of libavcodec, or why they can't be used. Those that were opened first stay in use.
#[pyfunction]
#[pyo3(signature = (folder=None))]
pub fn load_ffmpeg(py: Python<'_>, folder: Option<PathBuf>) -> (Option<u32>, Option<String>) {
    match py.detach(|| Library::open(folder.as_deref())) {
        Ok(library) => (Some(library.major), None),
        Err(refusal) => (None, Some(refusal.0)),
    }
}

/// What is known of a video without decoding it: of the file at a path, or of the bytes of a tensor.
/// Without a number, of its main video stream.
#[pyfunction]
pub fn video_info<'py>(
    py: Python<'py>,
    path: Option<PathBuf>,
    bytes: Option<&PyValue>,
    stream: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let choice = stream.map_or(Choice::Video, Choice::Numbered);
    let origin = path.as_ref().map(|path| Origin::from(Arc::from(path.to_string_lossy())));
    let sample = bytes.map(|bytes| bytes.sample(py, 0)).transpose()?;
    let opened = py.detach(|| match (path, sample) {
        (Some(path), _) => Video::open(&path, choice),
        (None, Some(sample)) => protected(&sample).and_then(|bytes| Video::of_bytes(bytes, choice)),
        (None, None) => Err(Cause::Internal("nothing to open".into())),
    });
    let video = match opened {
        Ok(video) => video,
        Err(cause) => {
            let (operator, sample, site) = ("io.video_info", None, 0);
            let fault = Fault { cause, operator, sample, source: origin, site };
            return Ok(Bound::new(py, PyFault(Arc::new(fault)))?.into_any());
        }
    };
    let index = video.index();
    let seconds: Vec<u8> =
        (0..video.len()).flat_map(|frame| index.seconds(frame).to_ne_bytes()).collect();
    let keys: Vec<u8> = index.key_frames().flat_map(|frame| frame.to_ne_bytes()).collect();
    let info = PyDict::new(py);
    info.set_item("frames", video.len())?;
    info.set_item("height", index.stream.height)?;
    info.set_item("width", index.stream.width)?;
    info.set_item("fps", index.frame_rate())?;
    info.set_item("duration", index.duration())?;
    info.set_item("codec", &index.stream.codec)?;
    info.set_item("container", &index.stream.container)?;
    info.set_item("orientation", index.stream.orientation)?;
    info.set_item("start", index.start())?;
    info.set_item("times", PyBytes::new(py, &seconds))?;
    info.set_item("key_frames", PyBytes::new(py, &keys))?;
    Ok(info.into_any())
}
