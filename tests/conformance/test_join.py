"""Joining arrays: `cat` and `stack`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same

SHORT = "T, B = ndd.tensor, ndd.batch\n"
X = np.arange(6, dtype=np.uint8).reshape(2, 3)
Y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]

AGREE = [
    "ndd.cat(T(x), T(x))",
    "ndd.cat(T(x), T(x), axis=1)",
    "ndd.cat(T(x), T(x), axis=-1)",
    "ndd.cat(T(x))",
    'ndd.cat(T(x, layout="HW"), T(x), axis_name="W")',
    'ndd.cat(T(x, layout="HW"), T(x, layout="AB"), axis_name="W")',
    'ndd.cat(T(x, layout="HW"), T(x, layout="AB"), axis=1)',
    "ndd.cat(B([x, x]), T(x))",
    "ndd.cat(T(x), B([x, x]))",
    "ndd.cat(B([x, x[:1]]), B([x, x]))",
    "ndd.cat(T(np.zeros((0, 3), np.uint8)), T(x))",
    "ndd.cat(T(np.zeros((0, 2), np.uint8)), T(x))",
    "ndd.cat(T(np.zeros((2, 0), np.uint8)), T(x), axis=1)",
    "ndd.cat([1, 2], [3])",
    "ndd.cat(T(np.float16(x)), T(np.float16(x)))",
    "ndd.cat(T(x>2), T(x>2))",
    "ndd.cat(T(x), T(x), axis=1.0)",
    "ndd.cat([T(x), T(x)])",
    "ndd.cat(*[T([i]) for i in range(100)])",
    "ndd.cat(T(np.zeros((0, 2))), T(np.zeros((0, 3))))",
    "ndd.cat(T(np.zeros((2, 0))), T(np.zeros((3, 1))))",
    "ndd.cat(T(np.zeros((2, 0))), T(np.zeros((3, 0))), axis=1)",
    "ndd.cat(T(np.zeros((0, 2))), T(np.zeros((0, 2))))",
    "ndd.cat(T(np.zeros((2, 3))), T(np.zeros((2, 0))), T(np.zeros((2, 2))), axis=1)",
    "ndd.cat(T(np.zeros((3, 0))), T(np.zeros((2, 2))), axis=1)",
    "ndd.stack(T(x), T(x))",
    "ndd.stack(T(x), T(x), axis=1)",
    "ndd.stack(T(x), T(x), axis=2)",
    "ndd.stack(T(x), T(x), axis=-1)",
    "ndd.stack(T(5), T(6))",
    'ndd.stack(T(5), T(6), axis_name="X")',
    'ndd.stack(T(x, layout="HW"), T(x))',
    'ndd.stack(T(x, layout="HW"), T(x), axis_name="C")',
    'ndd.stack(T(x, layout="HW"), T(x, layout="AB"), axis_name="C", axis=1)',
    'ndd.stack(T(x, layout="HW"), T(x), axis_name="H")',
    'ndd.stack(T(x, layout="HW"))',
    "ndd.stack(B([x, x[:1]]), B([x, x[:1]]), axis=-1)",
    "ndd.stack(T(np.zeros((2, 0))), T(np.zeros((2, 0))), axis=1)",
    "ndd.stack(B([], dtype=ndd.uint8), B([], dtype=ndd.uint8)).evaluate()",
    "ndd.stack(B(np.zeros((0, 2, 3))), B(np.zeros((0, 2, 3)))).evaluate()",
]


@pytest.mark.parametrize("source", AGREE)
def test_results_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


REFUSED = [
    "ndd.cat(T(x), T(x), axis=2)",
    "ndd.cat(T(x), T(x), axis=-3)",
    "ndd.cat(T(x), T(y))",
    "ndd.cat(T(x), T(np.float32(x)))",
    "ndd.cat()",
    'ndd.cat(T(x), T(x, layout="HW"), axis_name="W")',
    'ndd.cat(T(x, layout="HW"), T(x, layout="AB"), axis_name="B")',
    'ndd.cat(T(x, layout="HW"), T(x), axis_name="Z")',
    'ndd.cat(T(x), T(x), axis_name="W")',
    'ndd.cat(T(x, layout="HW"), T(x), axis_name="W", axis=1)',
    'ndd.cat(T(x, layout="HW"), T(x), axis_name="")',
    'ndd.cat(T(x, layout="HW"), T(x), axis_name="HW")',
    "ndd.cat(T(5), T(6))",
    "ndd.cat(B([x, x]), B([x]))",
    "ndd.cat(B([], dtype=ndd.uint8), B([], dtype=ndd.uint8)).evaluate()",
    "ndd.cat([1, 2], [3.5])",
    "ndd.cat(T(x), T(x), axis=T(1))",
    "ndd.cat(T(np.zeros((1, 3))), T(np.zeros((1, 3))), T(np.zeros((1, 2))))",
    "ndd.stack(T(x), T(x), axis=3)",
    "ndd.stack(T(x), T(x), axis=-4)",
    "ndd.stack(T(x), T(x[:1]))",
    "ndd.stack(T(x), T(y))",
    "ndd.stack(T(x), T(np.float32(x)))",
    "ndd.stack(T(5), axis=1)",
    'ndd.stack(T(x), T(x, layout="HW"), axis_name="C", axis=-1)',
    'ndd.stack(T(x), T(x), axis_name="C")',
    'ndd.stack(T(x, layout="HW"), T(x), axis_name="")',
    'ndd.stack(T(x, layout="HW"), T(x), axis_name="CD")',
    "ndd.stack(B([x, x[:1]]), B([x, x]), axis=-1)",
    "ndd.stack(T(np.zeros((2, 0))), T(np.zeros((3, 1))))",
]


@pytest.mark.parametrize("source", REFUSED)
def test_errors_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_joined_alike(dtype):
    source = "ndd.cat(x, x, axis=1), ndd.stack(x, x), ndd.stack(x, x, axis=-1)"
    assert_same(source, x=X.astype(dtype))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("channels", [(1, 3), (2, 6), (4, 8, 5), (12, 16), (33, 1, 3)], ids=str)
def test_rows_of_any_length(channels, axis):
    # More rows than are joined at a time.
    arrays = [np.arange(40 * 51 * c, dtype=np.uint8).reshape(40, 51, c) for c in channels]
    if axis != 2:
        arrays = [np.moveaxis(a, 2, axis).copy() for a in arrays]
    assert_same("ndd.cat(*a, axis=n), ndd.stack(a[0], a[0], axis=n)", a=arrays, n=axis)


BACK = "negative axes count from the end of the result, as everywhere"
DIFFERS = [
    Differs(
        "ndd.cat(ndd.tensor([[1]], layout='HW'), [[2]], axis_name='W', axis=0)",
        "ndd.tensor([[1, 2]], layout='HW')",
        "the default counts as not given",
    ),
    Differs(
        "ndd.cat(ndd.batch(np.zeros((0, 2))), ndd.batch(np.zeros((0, 2))))",
        "ndd.batch(np.zeros((0, 4)))",
        "nothing joined is nothing",
    ),
    Differs(
        "ndd.cat(np.zeros((2, 0)), np.zeros((3, 0)))",
        "ndd.tensor(np.zeros((5, 0)))",
        "extents add up even where there are no elements",
    ),
    Differs("ndd.cat([1], None)", "TypeError", "None is no data"),
    Differs("ndd.stack([1], [2], axis=-2)", "ndd.tensor([[1], [2]])", BACK),
    Differs("ndd.stack(5, 6, axis=-1)", "ndd.tensor([5, 6])", BACK),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
