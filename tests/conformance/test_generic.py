"""Generic operators: `cast_like`, `get_property`, and constant arrays."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same

SHORT = "T, B = ndd.tensor, ndd.batch\n"
X = np.arange(6, dtype=np.uint8).reshape(2, 3)
Y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]

AGREE = [
    "ndd.cast_like(T([1.6, 300.0]), T(np.uint8([1])))",
    "ndd.cast_like(B([[1.6], [300.0]]), T(np.uint8(1)))",
    "ndd.cast_like(T([1.6]), B(np.uint8([1, 2])))",
    'ndd.cast_like(T(x, layout="HW"), T(y, layout="ABC"))',
    "ndd.cast_like([1.6], 1)",
    "ndd.cast_like(B([], dtype=ndd.int32), T(np.uint8(1))).evaluate()",
    "ndd.cast_like(T(np.float16([1.5])), T(np.array([True])))",
    'ndd.get_property(T(y, layout="FHW"), key="layout")',
    'ndd.get_property(T(y), key="layout")',
    'ndd.get_property(T(y), key="source_info")',
    'ndd.get_property(B([y, y], layout="FHW"), key="layout")',
    'ndd.get_property(B([], dtype=ndd.uint8), key="layout").evaluate()',
    'ndd.get_property(T(5), key="layout")',
    "ndd.zeros()",
    "ndd.zeros(shape=[2, 3])",
    "ndd.zeros(shape=3)",
    "ndd.zeros(shape=[])",
    "ndd.zeros(shape=[0, 2])",
    "ndd.zeros(shape=[2.0, 3])",
    "ndd.zeros(shape=[1.6])",
    "ndd.zeros(shape=np.array([2, 3]))",
    "ndd.zeros(shape=T([2, 3]))",
    "ndd.zeros(shape=T(3))",
    "ndd.zeros(shape=T([1.6]))",
    "ndd.zeros(shape=B([[2, 3], [1, 2]]))",
    "ndd.zeros(shape=B([2, 3]))",
    "ndd.zeros(shape=[2, 3], batch_size=2)",
    "ndd.zeros(batch_size=2)",
    'ndd.zeros(shape=[2, 3], layout="HW")',
    'ndd.zeros(shape=[2, 3], layout="")',
    "ndd.zeros(shape=[2], dtype=ndd.float32)",
    "ndd.zeros(shape=[2], dtype=ndd.bool)",
    "ndd.ones()",
    "ndd.ones(shape=[2], dtype=ndd.bool)",
    "ndd.ones(shape=[2], dtype=ndd.float16)",
    "ndd.ones(shape=[2], dtype=ndd.float64)",
    "ndd.ones(shape=[2], dtype=ndd.uint8)",
    "ndd.ones(shape=[2], dtype=ndd.uint64)",
    "ndd.ones(shape=[2], dtype=types.INT64)",
    "ndd.full(5, shape=[2])",
    "ndd.full(5.5, shape=[2])",
    "ndd.full(np.uint8(5), shape=[2])",
    "ndd.full(T([1, 2]), shape=[2])",
    "ndd.full(T([1, 2]), shape=[3, 2])",
    "ndd.full(T([[1], [2]]), shape=[2, 3])",
    "ndd.full(T([1]), shape=[2, 3])",
    "ndd.full(T([[1]]), shape=[2])",
    "ndd.full(T([[1, 2]]), shape=[2])",
    "ndd.full(T(5))",
    'ndd.full(T([1, 2], layout="X"), shape=[3, 2], layout="AB")',
    "ndd.full(B([1, 2]), shape=[2])",
    "ndd.full(B([1, 2]), shape=B([[2], [3]]))",
    "ndd.full(5, shape=B([[2], [3]]))",
    "ndd.full(5, shape=[2], batch_size=2)",
    "ndd.full(True, shape=[2])",
    "ndd.full(np.float16(1.5), shape=[2])",
    "ndd.full(np.float64(1.5), shape=[2])",
    "ndd.full(T([]), shape=[0])",
    "ndd.full(5, shape=[0])",
    "ndd.full(T(x), shape=[2, 3])",
    'ndd.full(5, layout="")',
    'ndd.zeros_like(T(x, layout="HW"))',
    'ndd.ones_like(T(x, layout="HW"))',
    'ndd.ones_like(T(x, layout="HW"), dtype=ndd.float32)',
    "ndd.ones_like(T(np.float16(x)))",
    "ndd.ones_like(T(np.float64(x)))",
    "ndd.ones_like(T(x>2))",
    "ndd.ones_like(5)",
    "ndd.ones_like([1.5, 2])",
    "ndd.ones_like(B([x, x[:1]]))",
    "ndd.ones_like(B([], dtype=ndd.uint8)).evaluate()",
    "ndd.ones_like(B(np.zeros((0, 2, 3)))).evaluate()",
    "ndd.ones_like(T(np.zeros((0, 2))))",
    'ndd.full_like(T(x, layout="HW"), 7)',
    'ndd.full_like(T(x, layout="HW"), 7.6)',
    'ndd.full_like(T(x, layout="HW"), 300)',
    'ndd.full_like(T(x, layout="HW"), -3)',
    "ndd.full_like(T(np.float32(x)), T([1, 2, 3]))",
    "ndd.full_like(T(np.float32(x)), T([[1], [2]]))",
    "ndd.full_like(B([x, x[:1]]), 7)",
    "ndd.full_like(B([x, x[:1]]), B([7, 8]))",
    "ndd.full_like(T(x), B([7, 8]))",
    "ndd.full_like(T(x), True)",
    "ndd.full_like(T(x>2), 5)",
    "ndd.full_like(T(np.float64(x)), 0.1)",
    "ndd.full_like(T(np.zeros((0, 2))), 5)",
    "ndd.full_like(5, 6.7)",
    "ndd.full_like(T(x), T([[[1]]]))",
]


@pytest.mark.parametrize("source", AGREE)
def test_results_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


REFUSED = [
    "ndd.cast_like(T([1.6]))",
    "ndd.cast_like(T([1.6]), None)",
    "ndd.cast_like(B([1, 2]), B([1]))",
    'ndd.get_property(T(y), key="foo")',
    'ndd.get_property(T(y), key="")',
    "ndd.get_property(T(y))",
    'ndd.get_property(T(y, layout="HWC"), key="Layout")',
    "ndd.zeros(shape=[-1, 2])",
    "ndd.zeros(shape=B([[2, 3], [1]]))",
    'ndd.zeros(shape=[2, 3], layout="H")',
    'ndd.zeros(layout="H")',
    "ndd.zeros([2, 3])",
    "ndd.ones(shape=[2**20, 2**20, 2**20])",
    "ndd.full(T([1, 2]), shape=[2, 3])",
    "ndd.full(5, shape=[2], dtype=ndd.uint8)",
    "ndd.full()",
    "ndd.full(T([]), shape=[2])",
    "ndd.full(5, shape=[-1])",
    "ndd.full(None, shape=[2])",
    'ndd.full(5, shape=[2], layout="AB")',
    "ndd.ones_like(T(x), shape=[2])",
    "ndd.full_like(T(np.float32(x)), T([1, 2]))",
    "ndd.full_like(B([x, x[:1]]), B([7]))",
    "ndd.full_like(T(x))",
]


@pytest.mark.parametrize("source", REFUSED)
def test_errors_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_filled_alike(dtype):
    assert_same(
        "t = ndd.dtype(x.dtype)\n"
        "ndd.zeros(shape=[2], dtype=t), ndd.ones(shape=[2], dtype=t), ndd.full(x[0], shape=[3])",
        x=np.array([1, 0]).astype(dtype),
    )
    assert_same(
        "ndd.zeros_like(x), ndd.ones_like(x), ndd.full_like(x, -1.6), ndd.full_like(x, [3, 300])",
        x=np.array([1, 0]).astype(dtype),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_cast_alike(dtype):
    source = "ndd.cast_like(x, y), ndd.cast_like(y, x)"
    assert_same(source, x=np.array([1, 0, 100]).astype(dtype), y=np.float32([-1.5, 0.4, 300]))


FIRST = "a value that does not fit is a mistake; DALI takes its first elements"
DIFFERS = [
    Differs("ndd.full([1, 2, 3])", "RuntimeError", FIRST),
    Differs("ndd.full(np.arange(8).reshape(2, 2, 2), shape=[2, 2])", "RuntimeError", FIRST),
    Differs("ndd.full_like(np.zeros((2, 3)), np.ones((2, 2, 3)))", "RuntimeError", FIRST),
    Differs(
        "ndd.zeros(shape=[[2, 3]])", "ndd.zeros(shape=[2, 3])", "nested lists are taken everywhere"
    ),
    Differs("ndd.zeros(shape='a')", "TypeError", "text is of the wrong type"),
    Differs(
        "ndd.full(ndd.tensor([1, 2], layout='X'), shape=[2])",
        "ndd.tensor([1, 2])",
        "DALI can't make up its mind about the layout",
    ),
    Differs("ndd.get_property(1, key=5)", "TypeError", "a number is of the wrong type"),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
