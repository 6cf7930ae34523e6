//! Values as Python sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::smallvec;

use super::dlpack;
use super::export::Memory;
use super::fault::PyFault;
use super::import::refuse;
use super::pool::{PyPool, wait_for};
use super::submit::parse_layout;
use crate::engine::profile::{self, Kind};
use crate::engine::{Call, Handle, Input, Meta, Node, Output, Pick, Value};
use crate::engine::{epoch, lend, wait_for_readers};
use crate::kernels::{Operator, find};
use crate::value::{Cause, Fault, Layout, Loan, Sample, is_anything_lent};

/// One sample or a batch of them, which may not be computed yet.
#[pyclass(name = "Value", module = "penstock._core", frozen, weakref)]
pub struct PyValue {
    pub handle: Handle,
    /// Whether it is a batch rather than a single sample.
    #[pyo3(get)]
    pub batch: bool,
    /// Whether its memory belongs to somebody else, who may modify it.
    foreign: bool,
    /// Whether the call that made it raises its errors immediately: it read memory of another
    /// owner, and was waited for. (Calls on lent memory are waited for too, but that depends on
    /// what other threads have exported, so their errors are raised on reading.)
    #[pyo3(get)]
    prompt: bool,
}

impl PyValue {
    /// A value that is already computed.
    pub fn new(handle: Handle, batch: bool) -> PyValue {
        let foreign = handle.lies_in(|buffer| buffer.owner_may_write());
        PyValue { handle, batch, foreign, prompt: false }
    }

    /// Whether others may modify its memory.
    pub fn is_external(&self) -> bool {
        self.foreign || (is_anything_lent() && self.handle.is_lent())
    }

    /// The result of a call without inputs.
    pub fn made_of_nothing(handle: Handle, batch: bool) -> PyValue {
        PyValue { handle, batch, foreign: false, prompt: false }
    }

    /// The result of a call, which is waited for if an input may be modified after the call.
    pub fn made_from<'a>(
        py: Python<'_>,
        handle: Handle,
        batch: bool,
        inputs: impl Iterator<Item = &'a PyValue> + Clone,
    ) -> PyResult<PyValue> {
        let value = PyValue::made_of_nothing(handle, batch);
        if !inputs.clone().any(PyValue::is_external) {
            return Ok(value);
        }
        value.settle(py)?;
        let prompt = { inputs }.any(|input| input.foreign);
        Ok(PyValue { prompt, ..PyValue::new(value.handle, batch) })
    }

    /// Starts deferred work, and waits for the value.
    pub fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.note_read();
        if let Some(node) = self.handle.demand() {
            node.start();
        }
        if self.handle.is_finished() {
            return Ok(());
        }
        let waits_for = profile::timer().map(|timer| (timer, self.handle.maker()));
        self.handle.hasten();
        wait_for(py, |at_most| self.handle.wait(at_most))?;
        if let Some((timer, maker)) = waits_for {
            let operator = maker.map_or("", |maker| maker.operator());
            timer.note(Kind::Wait, operator, 0, 0..self.handle.len(), 0);
        }
        Ok(())
    }

    /// The sample, once it is computed; raises if the value has failed.
    pub fn sample(&self, py: Python<'_>, index: usize) -> PyResult<Sample> {
        if let Some(fault) = self.wait(py)? {
            let errors = py.import("penstock._errors.faults")?;
            errors.call_method1("raise_fault", (fault,))?;
        }
        match self.handle.peek(index) {
            Some(Ok(sample)) => Ok(sample),
            _ => Err(PyIndexError::new_err("sample index out of range")),
        }
    }

    /// The sample, writable for others if that is allowed, after all calls on it have read it.
    fn lend(&self, py: Python<'_>, sample: Sample) -> PyResult<(Sample, Option<Loan>)> {
        if !sample.buffer().writable() {
            return Ok((sample, None));
        }
        let (sample, loan) = lend(&self.handle, sample).map_err(refuse)?;
        let buffer = sample.buffer();
        if buffer.is_read(epoch()) {
            wait_for(py, |at_most| wait_for_readers(buffer, at_most))?;
        }
        Ok((sample, Some(loan)))
    }

    fn describe<T>(
        &self,
        py: Python<'_>,
        known: Option<T>,
        read: impl FnOnce(&Sample) -> T,
    ) -> PyResult<T> {
        match known {
            Some(known) => Ok(known),
            None => Ok(read(&self.sample(py, 0)?)),
        }
    }
}

#[pymethods]
impl PyValue {
    fn __len__(&self) -> usize {
        self.handle.len()
    }

    #[getter]
    fn external(&self) -> bool {
        self.is_external()
    }

    /// Code of the element type.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<u8> {
        let known = self.handle.meta.dtype.map(|dtype| dtype.code());
        self.describe(py, known, |sample| sample.desc.dtype.code())
    }

    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        self.describe(py, self.handle.meta.ndim, |sample| sample.desc.ndim())
    }

    #[getter]
    fn layout(&self) -> Option<&str> {
        let layout = &self.handle.meta.layout;
        (!layout.is_empty()).then(|| layout.as_str())
    }

    /// Whether it is known which samples of a data set it was made from.
    #[getter]
    fn has_lineage(&self) -> bool {
        self.handle.lineage().is_some()
    }

    /// Code of the device.
    #[getter]
    fn device(&self) -> i32 {
        self.handle.meta.device.code()
    }

    /// Whether it has been computed or has failed.
    #[getter]
    fn finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Whether all samples are already known to have the same shape.
    #[getter]
    fn uniform(&self) -> bool {
        self.handle.as_stack().is_some()
    }

    /// Waits for the value, and returns its fault if it failed.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<PyFault>> {
        self.settle(py)?;
        if self.handle.is_lost() {
            let (cause, operator) = (Cause::Forked, "");
            let fault = Fault { cause, operator, sample: None, source: None, site: 0 };
            return Ok(Some(PyFault(Arc::new(fault))));
        }
        Ok(self.handle.fault().map(PyFault))
    }

    /// Starts deferred work, and waits for the value for at most this many seconds; returns whether
    /// it has been computed or has failed.
    fn wait_at_most(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        if let Some(node) = self.handle.demand() {
            node.start();
        }
        self.handle.hasten();
        let deadline = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
        wait_for(py, |at_most| {
            let left = deadline.saturating_duration_since(Instant::now());
            self.handle.wait(at_most.min(left)) || left.is_zero()
        })?;
        Ok(self.handle.is_finished())
    }

    /// Waits for the value, and returns the samples that failed, each with its fault.
    fn faults(&self, py: Python<'_>) -> PyResult<Vec<(usize, PyFault)>> {
        self.settle(py)?;
        let fault = |index| match self.handle.peek(index) {
            Some(Err(fault)) => Some((index, PyFault(fault))),
            _ => None,
        };
        Ok((0..self.handle.len()).filter_map(fault).collect())
    }

    /// Shapes of all samples, as tuples.
    fn shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let shapes = (0..self.handle.len())
            .map(|index| PyTuple::new(py, self.sample(py, index)?.desc.shape.iter()))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, shapes)
    }

    /// Shape of one sample.
    fn shape<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.sample(py, index)?.desc.shape.iter())
    }

    /// Where a sample came from.
    fn source(&self, py: Python<'_>, index: usize) -> PyResult<Option<String>> {
        Ok(self.sample(py, index)?.source.map(|source| source.name().to_string()))
    }

    /// The memory of a sample, read-only or, if allowed, writable.
    fn memory(&self, py: Python<'_>, index: usize, writable: bool) -> PyResult<Memory> {
        let sample = self.sample(py, index)?;
        let (sample, loan) = if writable { self.lend(py, sample)? } else { (sample, None) };
        Ok(Memory::new(sample, loan))
    }

    /// The bytes of all samples in row-major order, one after another; copied unless they are
    /// already stored like that.
    fn concatenated(&self, py: Python<'_>) -> PyResult<Memory> {
        let samples = (0..self.handle.len()).map(|index| self.sample(py, index));
        let samples = samples.collect::<PyResult<Vec<_>>>()?;
        let all = py.detach(|| Sample::concatenated(&samples)).map_err(refuse)?;
        Ok(Memory::new(all, None))
    }

    fn __dlpack__<'py>(&self, py: Python<'py>, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
        let sample = self.sample(py, 0)?;
        dlpack::check(&sample, versioned)?;
        let (sample, loan) = self.lend(py, sample)?;
        dlpack::to_dlpack(py, sample, loan, versioned)
    }

    /// The selected samples as a batch, or one of them as a single sample; nothing is copied.
    #[pyo3(signature = (pool, indices, batch=true))]
    fn pick(
        &self,
        py: Python<'_>,
        pool: &PyPool,
        indices: Vec<usize>,
        batch: bool,
    ) -> PyResult<PyValue> {
        if indices.iter().any(|&index| index >= self.handle.len()) {
            return Err(PyIndexError::new_err("sample index out of range"));
        }
        self.derive(py, pool, indices, batch, self.handle.meta.layout)
    }

    /// The same samples with another layout.
    fn with_layout(&self, py: Python<'_>, pool: &PyPool, layout: &str) -> PyResult<PyValue> {
        let layout = parse_layout(Some(layout))?;
        self.derive(py, pool, (0..self.handle.len()).collect(), self.batch, layout)
    }

    /// Splits a sample along its first axis into a batch; nothing is copied.
    fn split(&self, py: Python<'_>) -> PyResult<PyValue> {
        let whole = self.sample(py, 0)?;
        let meta = Meta {
            ndim: Some(whole.desc.ndim() - 1),
            dtype: Some(whole.desc.dtype),
            layout: Layout::default(),
            uniform: true,
            ..self.handle.meta.clone()
        };
        let parts = (0..whole.desc.shape[0]).map(|index| whole.row(index));
        let parts = parts.collect::<Result<Vec<_>, Cause>>();
        Ok(PyValue::new(Value::ready(meta, parts.map_err(refuse)?), true))
    }
}

impl PyValue {
    fn derive(
        &self,
        py: Python<'_>,
        pool: &PyPool,
        indices: Vec<usize>,
        batch: bool,
        layout: Layout,
    ) -> PyResult<PyValue> {
        self.handle.note_read();
        let meta = Meta { layout, ..self.handle.meta.clone() };
        let there: Option<Vec<Sample>> =
            indices.iter().map(|&index| self.handle.peek(index)?.ok()).collect();
        if let Some(mut samples) = there {
            samples.iter_mut().for_each(|sample| sample.desc.layout = layout);
            let made = Value::ready(meta, samples);
            if let Some(lineage) = self.handle.lineage() {
                made.set_lineage(lineage.picked(&indices));
            }
            return Ok(PyValue::new(made, batch));
        }
        let Some(same) = find("same") else {
            return Err(PyRuntimeError::new_err("the kernel `same` is missing"));
        };
        let samples = indices.len();
        let pick = Pick::Listed(indices.into());
        let call = Call {
            operator: Operator { name: "tensors", work: (same.cpu)() },
            inputs: smallvec![Input { value: self.handle.value().clone(), pick }],
            data_inputs: 1,
            args: smallvec![],
            samples,
            layout: Layout::default(),
            device: self.handle.meta.device,
            site: 0,
        };
        let (node, mut made) = Node::new(call, [Output { meta, samples }], pool.0.clone());
        let handle = made.remove(0);
        // Nothing has to be computed, so this can wait until the value is read.
        handle.defer(node);
        PyValue::made_from(py, handle, batch, std::iter::once(self))
    }
}
