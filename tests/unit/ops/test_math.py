import inspect
import re

import ml_dtypes
import numpy as np
import pytest

import penstock as ndd
import penstock.math
import penstock.ops.math  # defines the operators
from penstock._operators.definition import OPERATORS

NAMES = penstock.math.__all__
UNARY = [name for name in NAMES if OPERATORS[f"math.{name}"].inputs == ("input",)]
MODES = list(ndd.EvalMode)


def numbers(value):
    if isinstance(value, ndd.Batch):
        return [numbers(sample) for sample in value]
    return np.asarray(value).tolist()


def test_there_are_29_functions():
    assert len(NAMES) == 29
    assert {f"math.{name}" for name in NAMES} <= OPERATORS.keys()
    assert ndd.math is penstock.math


@pytest.mark.parametrize("name", NAMES)
def test_every_function_documents_its_operands(name):
    function = getattr(ndd.math, name)
    operands = list(inspect.signature(function).parameters)
    assert re.findall(r"^ {8}(\w+): ", function.__doc__, re.MULTILINE) == operands


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_a_batch_gives_what_its_samples_give_in_every_mode(name, mode):
    samples = [np.float32([[0.25, 0.5]]), np.float32([[1.0], [0.75]]), np.zeros((0, 3), np.float32)]
    function = getattr(ndd.math, name)
    more = [0.5] * (len(inspect.signature(function).parameters) - 1)
    with mode:
        together = function(ndd.batch(samples, layout="HW"), *more)
        alone = [function(ndd.tensor(sample, layout="HW"), *more) for sample in samples]
    assert (type(together), together.layout) == (ndd.Batch, "HW")
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["f16", "bfloat16"])
def test_small_floats_are_computed_with_as_larger_ones(name, dtype):
    values = ndd.tensor([0.25, 0.5, 1.0], dtype=dtype)
    function = getattr(ndd.math, name)
    exact = function(ndd.tensor([0.25, 0.5, 1.0]))
    small = function(values)
    assert str(small.dtype) == dtype
    kind = np.float16 if dtype == "f16" else ml_dtypes.bfloat16
    want = np.asarray(exact).astype(kind).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(small).astype(np.float32), want)


@pytest.mark.parametrize("name", UNARY)
def test_long_rows_give_what_short_ones_do(name):
    row = np.linspace(-3, 3, 5003, dtype=np.float32)
    function = getattr(ndd.math, name)
    together = np.asarray(function(row))
    alone = np.concatenate([np.asarray(function(row[i : i + 1])) for i in range(0, 5003, 61)])
    np.testing.assert_array_equal(together[::61], alone)


def test_operands_may_be_given_by_name_and_nothing_else_may():
    assert ndd.math.atan2(x=0.0, y=1.0).item() == 0.0
    assert numbers(ndd.math.clamp(hi=3, lo=1, value=[0, 5])) == [1, 3]
    with pytest.raises(TypeError, match="device"):
        ndd.math.sqrt(1, device="cpu")


def test_strided_data_is_read_in_order():
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(ndd.math.sqrt(data.T)), np.sqrt(data.T))
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(data[::-1]) * data), data[::-1] * data)


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_operands_must_be_on_one_device():
    there, here = ndd.tensor([1, 5]).gpu(), ndd.tensor([1, 2])
    for call in (
        lambda: ndd.math.min(there, here),
        lambda: ndd.math.clamp(there, 0, here),
        lambda: here < there,
    ):
        with pytest.raises(ValueError, match="one operand is on"):
            call()
    made = ndd.math.clamp(there, 2, 3)
    assert str(made.device).startswith("gpu")
    assert numbers(made.cpu()) == [2, 3]
    assert str(ndd.math.sqrt(there).device).startswith("gpu")


def test_types_without_a_result_are_refused_with_a_way_out():
    with pytest.raises(RuntimeError, match=r"math\.sqrt.*bool.*cast"):
        ndd.math.sqrt(True)
    with pytest.raises(RuntimeError, match=r"&.*f32 and i32.*integers"):
        ndd.tensor(1.5) & 1
    with pytest.raises(RuntimeError, match=r"math\.clamp.*enum.*cast"):
        ndd.math.clamp(ndd.tensor(1, dtype=ndd.ImageType), 0, 1)


def test_division_by_zero_names_operator_and_sample():
    quotient = ndd.batch([[4], [1, 2]]) // ndd.batch([[2], [1, 0]])
    with pytest.raises(ValueError, match=r"//: sample 1: .*zero"):
        quotient.evaluate()
    assert (ndd.tensor(np.zeros(0, np.int32)) // 0).shape == (0,)


def test_values_compare_element_by_element_and_can_not_be_hashed():
    one = ndd.tensor([1, 2])
    assert numbers(one == [1, 3]) == [True, False]
    assert 2 in one
    assert 3 not in one
    for value in (one, ndd.batch([1])):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)


def test_bounds_of_ranges_are_not_compared():
    one = ndd.tensor([1, 2])
    with pytest.raises(ValueError, match="Too many indices"):
        one[ndd.tensor(0) :, :]
