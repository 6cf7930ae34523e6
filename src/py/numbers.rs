//! Fast conversion of Python lists and tuples of numbers, which may be long.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};

use crate::kernels::Arg;

/// A list or tuple of integers that fit into 64 bits, as a tuple. `None` for anything else, which
/// is then converted or refused by slower code.
#[pyfunction]
pub fn integers<'py>(given: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    let row = row(given)?;
    let fits = |item: Borrowed<'_, '_, PyAny>| {
        item.is_exact_instance_of::<PyInt>() && item.extract::<i64>().is_ok()
    };
    row.iter_borrowed().all(fits).then_some(row)
}

/// Like `integers`, for Python's floats and integers, as floats.
#[pyfunction]
pub fn reals<'py>(given: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    let row = row(given)?;
    if row.iter_borrowed().all(|item| item.is_exact_instance_of::<PyFloat>()) {
        return Some(row);
    }
    let float = |item: Borrowed<'_, '_, PyAny>| {
        let number = item.is_exact_instance_of::<PyFloat>() || item.is_exact_instance_of::<PyInt>();
        number.then(|| item.extract::<f64>().ok())?
    };
    let floats: Vec<f64> = row.iter_borrowed().map(float).collect::<Option<_>>()?;
    PyTuple::new(given.py(), floats).ok()
}

fn row<'py>(given: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    match given.cast_exact::<PyList>() {
        Ok(list) => Some(list.to_tuple()),
        Err(_) => given.cast_exact::<PyTuple>().ok().cloned(),
    }
}

/// A tuple of numbers as an argument: integers if possible, otherwise floats.
pub fn argument(row: &Bound<'_, PyTuple>) -> PyResult<Arg> {
    let mut first = row.iter_borrowed().take(1);
    // Saves trying to convert floats to integers, and the exception.
    if !first.any(|item| item.is_instance_of::<PyFloat>()) {
        match row.iter_borrowed().map(|item| item.extract()).collect::<PyResult<Vec<i64>>>() {
            Ok(ints) => return Ok(Arg::Ints(ints.into())),
            Err(error) if error.is_instance_of::<PyOverflowError>(row.py()) => return Err(error),
            Err(_) => {}
        }
    }
    let floats: Vec<f64> =
        row.iter_borrowed().map(|item| item.extract()).collect::<PyResult<_>>()?;
    Ok(Arg::Floats(floats.into()))
}
