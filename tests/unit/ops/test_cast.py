import ml_dtypes
import numpy as np
import pytest
from tests.ids import steady_repr

import penstock as ndd
from penstock import types
from penstock._values.dtype import BY_CODE

NUMBERS = [known for known in BY_CODE if known.kind is not ndd.DType.Kind.enum]
FLOATS = [known for known in NUMBERS if known.kind is ndd.DType.Kind.float]


def cast(values, to, dtype="f32"):
    return np.asarray(ndd.cast(ndd.tensor(values, dtype=dtype), dtype=to)).tolist()


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("source", NUMBERS, ids=str)
def test_every_type_becomes_every_other(source, dtype):
    made = ndd.cast(ndd.tensor([[0, 1]], dtype=source, layout="HW"), dtype=dtype)
    assert (made.dtype, made.layout, made.shape) == (dtype, "HW", (1, 2))
    assert np.asarray(made).tolist() == [[0, 1]]


def test_halves_round_away_from_zero():
    given = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.4, -0.4, 0.49999997]
    assert cast(given, "i32") == [1, 2, 3, -1, -2, -3, 0, 0, 0]
    assert cast(given, "i32", "f64") == [1, 2, 3, -1, -2, -3, 0, 0, 0]
    assert cast([0.5, 2.5, -1.5], "i16", "f16") == [1, 3, -2]
    assert cast([0.5, 2.5, -1.5], "i16", "bfloat16") == [1, 3, -2]


def test_what_does_not_fit_becomes_the_nearest_that_does():
    assert cast([300, -5, 255.4, 255.6], "u8") == [255, 0, 255, 255]
    assert cast([-129, 200], "i8", "i32") == [-128, 127]
    assert cast([-1], "u64", "i64") == [0]
    assert cast([2**63], "i64", "u64") == [2**63 - 1]
    assert cast([3e9, -3e9, 1e30], "i32") == [2**31 - 1, -(2**31), 2**31 - 1]
    assert cast([float("inf"), float("-inf")], "u16") == [65535, 0]
    assert cast([70000], "f16", "i32") == [float("inf")]
    assert cast([1e39], "f32", "f64") == [float("inf")]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("u8", 0), ("i8", 0), ("u16", 0), ("i16", 0), ("u32", 0), ("i32", -(2**31)),
     ("i64", -(2**63)), ("u64", 2**63), ("bool", True)],
)  # fmt: skip
def test_not_a_number_becomes_what_dali_makes_of_it(dtype, value):
    for source in FLOATS:
        assert cast([float("nan")], dtype, source) == [value]


def test_truth_is_rounded_first():
    assert cast([0, 0.4, 0.5, -0.6, 2], "bool") == [False, False, True, True, True]
    assert cast([0, 1, -1, 256], "bool", "i32") == [False, True, True, True]
    assert cast([True, False], "f32", "bool") == [1.0, 0.0]


def test_large_integers_are_exact():
    assert cast([2**53 + 1], "u64", "i64") == [2**53 + 1]
    assert cast([2.0**53 + 2], "i64", "f64") == [2**53 + 2]


def test_small_floats_round_to_nearest_even():
    given = np.float32([1 + 2**-9, 1 + 3 * 2**-9, 0.1, 65504, 1e-8])
    for dtype, numpy_type in (("f16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        made = ndd.cast(given, dtype=dtype)
        np.testing.assert_array_equal(np.asarray(made), given.astype(numpy_type))


@pytest.mark.parametrize(
    "dtype",
    [ndd.float32, "f32", "float32", np.float32, np.dtype("f4"), types.FLOAT, types.FLOAT.value],
    ids=steady_repr,
)
def test_a_type_can_be_said_in_many_ways(dtype):
    assert ndd.cast(ndd.tensor([1]), dtype=dtype).dtype is ndd.float32


def test_torch_and_jax_types_are_types():
    import jax.numpy as jnp
    import torch

    assert ndd.cast([1], dtype=torch.bfloat16).dtype is ndd.bfloat16
    assert ndd.cast([1], dtype=jnp.float16).dtype is ndd.float16


def test_pythons_bool_is_a_type_but_int_and_float_say_too_little():
    assert ndd.cast([1], dtype=bool).dtype is ndd.bool
    for kind in (int, float):
        with pytest.raises(ValueError, match="bits"):
            ndd.cast([1], dtype=kind)


@pytest.mark.parametrize(
    "dtype", [object(), [1], {}, 1.5, ndd.tensor(1), ndd.batch([1])], ids=steady_repr
)
def test_what_is_no_type_is_a_type_error(dtype):
    with pytest.raises(TypeError, match="cast: `dtype` must be an element type"):
        ndd.cast([1], dtype=dtype)


def test_unknown_names_are_value_errors():
    with pytest.raises(ValueError, match="'nope'"):
        ndd.cast([1], dtype="nope")
    with pytest.raises((ValueError, TypeError)):
        ndd.cast([1], dtype=types.STRING)


def test_the_type_is_needed():
    with pytest.raises(TypeError, match="'dtype'"):
        ndd.cast([1])
    with pytest.raises(TypeError, match="'dtype'"):
        ndd.cast([1], dtype=None)
    with pytest.raises(TypeError, match="positional"):
        ndd.cast([1], ndd.float32)


def test_the_same_type_is_a_copy():
    first = ndd.tensor([1, 2])
    made = ndd.cast(first, dtype=ndd.int32)
    assert np.asarray(made).tolist() == [1, 2]
    assert not np.shares_memory(np.asarray(made), np.asarray(first))


def test_enums_become_numbers_and_numbers_enums():
    made = ndd.cast(ndd.tensor([types.RGB, types.GRAY]), dtype=ndd.int32)
    assert np.asarray(made).tolist() == [types.RGB.value, types.GRAY.value]
    assert ndd.cast([1], dtype=ndd.ImageType).dtype is ndd.ImageType


def test_batches_are_cast_sample_by_sample():
    made = ndd.cast(ndd.batch([[1.5], [2.5, 300], []]), dtype=ndd.uint8)
    assert [np.asarray(sample).tolist() for sample in made] == [[2], [3, 255], []]


def test_bytes_that_are_no_truth_values_are_true():
    given = np.array([0, 1, 7, 255], np.uint8).view(bool)
    made = ndd.cast(ndd.as_tensor(given), dtype=ndd.int32)
    assert np.asarray(made).tolist() == [0, 1, 1, 1]


def test_strided_memory_of_others_is_cast_right():
    given = np.arange(24.0).reshape(4, 6)[::-2, 1::3].T
    made = ndd.cast(ndd.as_tensor(given), dtype=ndd.int16)
    np.testing.assert_array_equal(np.asarray(made), given.astype(np.int16), strict=True)
