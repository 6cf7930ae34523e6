//! Registering and calling operators.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::array_fault::ArrayFault;
use super::fault::error;
use super::numbers;
use super::pool::{PyPool, wait_for};
use super::rng::PyDraw;
use super::value::PyValue;
use crate::engine::ahead::{self, Taken};
use crate::engine::profile::{self, Kind};
use crate::engine::{Call, Input, Meta, Node, Output, Pick, Pool, put_off};
use crate::kernels::{self as registry, Arg, Operator};
use crate::value::{DType, Device, Layout};

/// Names of all kernels.
#[pyfunction]
pub fn kernels() -> Vec<&'static str> {
    registry::names()
}

/// Names of a kernel's arguments, in order.
#[pyfunction]
pub fn kernel_arguments(kernel: &str) -> PyResult<Vec<&'static str>> {
    Ok(find(kernel)?.args.to_vec())
}

/// The traits of each kernel, by name.
#[pyfunction]
pub fn kernel_traits(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for (name, traits) in registry::traits() {
        let row = PyDict::new(py);
        row.set_item("cheap", traits.cheap)?;
        row.set_item("shaped_by_args", traits.shaped_by_args)?;
        row.set_item("uniform_outputs", traits.uniform_outputs)?;
        row.set_item("stacks", traits.stacks)?;
        row.set_item("strided", traits.strided)?;
        row.set_item("view", traits.view)?;
        row.set_item("reads_files", traits.reads_files)?;
        row.set_item("frames", format!("{:?}", traits.frames).to_lowercase())?;
        all.set_item(name, row)?;
    }
    Ok(all)
}

/// How many runs on stacked samples were begun, and how many made a result.
#[cfg(feature = "probes")]
#[pyfunction]
pub fn stacked_runs() -> (usize, usize) {
    crate::kernels::contract::stacked_runs::counts()
}

fn find(kernel: &str) -> PyResult<&'static registry::Entry> {
    registry::find(kernel).ok_or_else(|| PyValueError::new_err(format!("no kernel `{kernel}`")))
}

/// Registers a kernel under an operator's name, and returns the number to call it by.
#[pyfunction]
pub fn register(operator: &str, kernel: &str) -> PyResult<usize> {
    Ok(registry::register(operator, (find(kernel)?.cpu)()))
}

fn argument(given: &Bound<'_, PyAny>, inputs: usize) -> PyResult<Arg> {
    if given.is_none() {
        Ok(Arg::Absent)
    } else if let Ok(int) = given.cast::<PyInt>() {
        Ok(Arg::Int(int.extract()?))
    } else if let Ok(float) = given.cast::<PyFloat>() {
        Ok(Arg::Float(float.value()))
    } else if let Ok(text) = given.cast::<PyString>() {
        Ok(Arg::Text(text.to_str()?.into()))
    } else if let Ok(list) = given.cast::<PyList>() {
        // A list of one number is the index of the input that holds the argument.
        let index: usize = list.get_item(0)?.extract()?;
        if index >= inputs {
            return Err(PyValueError::new_err("an argument refers to a missing input"));
        }
        Ok(Arg::Input(index))
    } else if let Ok(row) = given.cast::<PyTuple>() {
        numbers::argument(row)
    } else if let Ok(draw) = given.cast::<PyDraw>() {
        Ok(Arg::Draw(draw.get().0.clone()))
    } else {
        Err(PyTypeError::new_err(format!("unsupported argument type {}", given.get_type())))
    }
}

/// What a definition promises about an output: element type, number of axes, layout.
type Promise = (Option<u8>, Option<usize>, Option<String>);

/// Submits a call and returns its values. `inputs` are the operator's inputs, followed by those
/// with per-sample arguments; `samples` is `None` for a call on single samples. A call that may run
/// early may also have done so, see [`ahead`].
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn submit(
    py: Python<'_>,
    operator: usize,
    inputs: Vec<PyRef<'_, PyValue>>,
    data_inputs: usize,
    args: &Bound<'_, PyTuple>,
    samples: Option<usize>,
    outputs: Vec<Promise>,
    layout: Option<&str>,
    device: i32,
    site: u32,
    pool: &PyPool,
    deferred: bool,
    may_run_early: bool,
) -> PyResult<Vec<PyValue>> {
    let number = may_run_early.then_some(operator);
    let operator = registry::operator(operator)
        .ok_or_else(|| PyValueError::new_err("no such operator number"))?;
    let args = args.iter().map(|arg| argument(&arg, inputs.len())).collect::<PyResult<_>>()?;
    let layout = parse_layout(layout)?;
    let invocation = Invocation { operator, args, samples, layout, device, site, data_inputs };
    invocation.submit(py, &inputs, outputs, pool, deferred, number)
}

/// A layout; `None` is an unset one.
pub fn parse_layout(letters: Option<&str>) -> PyResult<Layout> {
    let letters = letters.unwrap_or_default();
    Layout::new(letters).ok_or_else(|| {
        let given = letters.to_owned();
        error::<PyValueError>(ArrayFault::Layout { most: Layout::MAX, given })
    })
}

/// A call without its inputs.
pub struct Invocation {
    pub operator: Operator,
    pub args: SmallVec<[Arg; 4]>,
    pub samples: Option<usize>,
    pub layout: Layout,
    pub device: i32,
    pub site: u32,
    pub data_inputs: usize,
}

impl Invocation {
    pub fn submit(
        self,
        py: Python<'_>,
        inputs: &[PyRef<'_, PyValue>],
        outputs: Vec<Promise>,
        pool: &PyPool,
        deferred: bool,
        number: Option<usize>,
    ) -> PyResult<Vec<PyValue>> {
        let Invocation { operator, args, samples, layout, device, site, data_inputs } = self;
        let batch = samples.is_some();
        let samples = samples.unwrap_or(1);
        let whole_batch = operator.work.is_whole_batch();
        let mut row: SmallVec<[Input; 2]> = SmallVec::new();
        for input in inputs {
            let pick = if input.batch || whole_batch { Pick::Same } else { Pick::One(0) };
            if matches!(pick, Pick::Same) && !whole_batch && input.handle.len() != samples {
                return Err(PyValueError::new_err("batches of different sizes"));
            }
            row.push(Input { value: input.handle.value().clone(), pick });
        }
        if data_inputs > row.len() {
            return Err(PyValueError::new_err("`data_inputs` exceeds the number of inputs"));
        }
        let args_differ = (args.iter()).any(
            |arg| matches!(arg, Arg::Input(index) if inputs.get(*index).is_some_and(|i| i.batch)),
        );
        let traits = operator.work.traits();
        let shapes_agree = traits.uniform_outputs
            || row[..data_inputs].iter().all(|input| input.value.meta.uniform);
        let uniform = shapes_agree && !(args_differ && traits.shaped_by_args);
        let device = Device::from_code(device);
        let outputs = outputs
            .into_iter()
            .map(|(dtype, ndim, layout)| {
                let layout = parse_layout(layout.as_deref())?;
                let dtype = dtype.and_then(DType::from_code);
                Ok(Output { meta: Meta { dtype, ndim, layout, device, uniform }, samples })
            })
            .collect::<PyResult<SmallVec<[Output; 1]>>>()?;
        let call = Call { operator, inputs: row, data_inputs, args, samples, layout, device, site };
        let number = number.filter(|_| {
            ahead::is_active()
                && call.operator.work.can_run_early()
                && !inputs.iter().any(|input| input.is_external())
        });
        let taken = match number {
            Some(number) => ahead::take(number, &call, &outputs, batch, &pool.0),
            None => {
                inputs.iter().for_each(|input| input.handle.note_read());
                Taken::Run(None)
            }
        };
        let ticket = match taken {
            Taken::Run(ticket) => ticket,
            Taken::Early(handles) => {
                let value = |handle| PyValue::made_of_nothing(handle, batch);
                return Ok(handles.into_iter().map(value).collect());
            }
        };
        make_room(py, &pool.0)?;
        // Memory that its owner may modify must be read before the call returns.
        let handles = if deferred && !inputs.iter().any(|input| input.is_external()) {
            let (node, handles) = Node::new(call, outputs, pool.0.clone());
            put_off(&node, &handles);
            handles
        } else {
            Node::submit(call, outputs, pool.0.clone())
        };
        if let Some(ticket) = ticket {
            ticket.made(&handles);
        }
        let mut values = Vec::with_capacity(handles.len());
        for handle in handles {
            let inputs = inputs.iter().map(|input| &**input);
            values.push(PyValue::made_from(py, handle, batch, inputs)?);
        }
        Ok(values)
    }
}

/// Waits while too much work is in flight.
pub fn make_room(py: Python<'_>, pool: &Pool) -> PyResult<()> {
    if pool.is_full() {
        let timer = profile::timer();
        wait_for(py, |at_most| pool.wait_for_room(at_most))?;
        if let Some(timer) = timer {
            timer.note(Kind::Full, "", 0, 0..0, 0);
        }
    }
    Ok(())
}
