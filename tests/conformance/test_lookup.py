"""`lookup_table` and `one_hot`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same

SHORT = "T, B = ndd.tensor, ndd.batch\n"
X = np.arange(6, dtype=np.uint8).reshape(2, 3)
Y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

AGREE = [
    "ndd.lookup_table([0, 1, 2, 5], keys=[1, 2], values=[10.0, 20.0])",
    "ndd.lookup_table([0, 1, 2, 5], keys=[1, 2], values=[10.7, 20.2], dtype=ndd.int32)",
    "ndd.lookup_table([0, 1, 2], keys=[1, 2], values=[9.7, -2], dtype=ndd.int8, default_value=7.5)",
    "ndd.lookup_table([0, 1, 2], keys=[1], values=[300], dtype=ndd.uint8, default_value=-2.5)",
    "ndd.lookup_table([0, 1, 2, 5])",
    "ndd.lookup_table(T([0, 1]), default_value=3)",
    "ndd.lookup_table([0, 1, 2, 5], keys=1, values=10)",
    "ndd.lookup_table([0, 1, 2, 5], keys=[1, 1], values=[10, 20])",
    "ndd.lookup_table(T([0, 1, 2, 65535]), keys=[65535], values=[10])",
    "ndd.lookup_table(T([-1, -2**31, 70000, 65536]), keys=[1], values=[10], default_value=4)",
    "ndd.lookup_table(T(np.int8([-1, 1])), keys=[1, 255], values=[10, 20], default_value=4)",
    "ndd.lookup_table(T(np.uint64([2**63, 1, 2**32+1])), keys=[1], values=[10], default_value=4)",
    "ndd.lookup_table(T(np.int64([-2**63, 1, 2**32+1])), keys=[1], values=[10], default_value=4)",
    "ndd.lookup_table(T([1]), keys=[1], values=[10], dtype=ndd.float16)",
    "ndd.lookup_table(T([1]), keys=[1], values=[10.1], dtype=ndd.float64)",
    "ndd.lookup_table(T([1]), keys=[1], values=[10], dtype=ndd.bool)",
    "ndd.lookup_table(T([1, 0]), keys=[1], values=[0.4], dtype=ndd.bool)",
    "ndd.lookup_table(T([1]), keys=[1], values=[2**40], dtype=ndd.int64)",
    "ndd.lookup_table(T([1]), keys=[1], values=[16777217], dtype=ndd.int64)",
    'ndd.lookup_table(T([1]), keys=[1], values=[float("nan")], dtype=ndd.int32)',
    'ndd.lookup_table(T(x, layout="HW"), keys=[1], values=[10])',
    'ndd.lookup_table(B([x, x[:1]], layout="HW"), keys=[1], values=[10])',
    "ndd.lookup_table(T(1), keys=[1], values=[10])",
    "ndd.lookup_table(B([], dtype=ndd.uint8), keys=[1], values=[10]).evaluate()",
    "ndd.lookup_table(T(np.zeros((0, 2), np.uint8)), keys=[1], values=[10])",
    "ndd.lookup_table(T(x), keys=[1.5], values=[10.0])",
    "ndd.lookup_table(T(np.int16([-1, 300])), keys=[300], values=[5])",
    "ndd.lookup_table(T(np.uint16([1, 300])), keys=[300], values=[5])",
    "ndd.one_hot(T([0, 1, 2]), num_classes=3)",
    "ndd.one_hot(T(1), num_classes=3)",
    "ndd.one_hot(T([1]), num_classes=3)",
    "ndd.one_hot(T([[1]]), num_classes=3)",
    "ndd.one_hot(T([[1, 2]]), num_classes=3)",
    "ndd.one_hot(T([0, 1, 2]), num_classes=3, axis=0)",
    "ndd.one_hot(T([0, 1, 2]), num_classes=3, axis=1)",
    "ndd.one_hot(T([0, 1, 2]), num_classes=3, axis=-1)",
    "ndd.one_hot(T(x), num_classes=3, axis=1)",
    "ndd.one_hot(T([0, 5, -1]), num_classes=3)",
    "ndd.one_hot(T([0.9, 1.9, -0.5]), num_classes=3)",
    'ndd.one_hot(T([float("nan"), float("inf"), 1e30]), num_classes=3)',
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=5, off_value=-1)",
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=5.6, off_value=-1.5, dtype=ndd.int32)",
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=500, off_value=-1.5, dtype=ndd.uint8)",
    "ndd.one_hot(T([0, 1]), num_classes=2, dtype=ndd.float64)",
    "ndd.one_hot(T([0, 1]), num_classes=2, dtype=ndd.int64)",
    "ndd.one_hot(T([0, 1]))",
    "ndd.one_hot(T([0, 1]), num_classes=0)",
    'ndd.one_hot(T(x, layout="HW"), num_classes=2)',
    'ndd.one_hot(T(x, layout="HW"), num_classes=2, axis_name="C")',
    'ndd.one_hot(T(x, layout="HW"), num_classes=2, axis_name="C", axis=0)',
    'ndd.one_hot(T(5), num_classes=2, axis_name="C")',
    'ndd.one_hot(T([5], layout="X"), num_classes=2, axis_name="C")',
    'ndd.one_hot(T([5]), num_classes=2, axis_name="C")',
    "ndd.one_hot(T([5]), num_classes=2, axis=1)",
    "ndd.one_hot(B([0, 1]), num_classes=2)",
    "ndd.one_hot(B([[0, 1], [1]]), num_classes=2)",
    "ndd.one_hot(B([[1], [1]]), num_classes=2)",
    "ndd.one_hot(B([[1], [1, 0]]), num_classes=2)",
    "ndd.one_hot(T(np.zeros((0, ), np.int32)), num_classes=2)",
    "ndd.one_hot(B([], dtype=ndd.int32), num_classes=2).evaluate()",
    "ndd.one_hot(B(np.zeros((0, 2), np.int32)), num_classes=2).evaluate()",
    "ndd.one_hot(T(np.float64([0, 1])), num_classes=2)",
    'ndd.one_hot(T([0, 1]), num_classes=2, on_value=float("nan"), dtype=ndd.int32)',
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=1e20, dtype=ndd.int32)",
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=3e9, dtype=ndd.uint32)",
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=-3.7, dtype=ndd.uint64)",
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=-3.7, dtype=ndd.int8)",
    "ndd.one_hot(T([0, 1]), num_classes=2, on_value=0.1, dtype=ndd.float64)",
]


@pytest.mark.parametrize("source", AGREE)
def test_results_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


REFUSED = [
    "ndd.lookup_table([0, 1, 2, 5], keys=[1, 2], values=[10.0])",
    "ndd.lookup_table([0, 1, 2, 5], keys=[1], values=[10.0, 2])",
    "ndd.lookup_table([0, 1, 2, 5], keys=[-1], values=[10])",
    "ndd.lookup_table(T([0, 1, 2, 65535]), keys=[65536], values=[10])",
    "ndd.lookup_table(T([1.0]), keys=[1], values=[10])",
    "ndd.lookup_table(T([1]), keys=[1], values=[10], output_dtype=ndd.uint8, dtype=ndd.int32)",
    "ndd.lookup_table(T(x), keys=T([1]), values=[10.0])",
    "ndd.one_hot(T([0, 1, 2]), num_classes=3, axis=2)",
    "ndd.one_hot(T([0, 1, 2]), num_classes=3, axis=-3)",
    "ndd.one_hot(T([0, 1]), num_classes=-1)",
    'ndd.one_hot(T(x, layout="HW"), num_classes=2, axis_name="CC", axis=0)',
    'ndd.one_hot(T(x, layout="HW"), num_classes=2, axis_name="", axis=0)',
    'ndd.one_hot(T(x), num_classes=2, axis_name="C", axis=0)',
    "ndd.one_hot(T([[5]]), num_classes=2, axis=5)",
    "ndd.one_hot(T(5), num_classes=2, axis=1)",
    "ndd.one_hot(T(5), num_classes=2, axis=-2)",
    "ndd.one_hot(T([0, 1]), num_classes=T(2))",
]


@pytest.mark.parametrize("source", REFUSED)
def test_errors_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_every_integer_is_looked_up_alike(dtype):
    x = np.arange(-300, 700).astype(dtype)
    keys, values = [*range(0, 256, 3), 300], [float(i % 90) for i in range(87)]
    for to in ("uint8", "int16", "float32"):
        source = f"ndd.lookup_table(x, keys=k, values=v, default_value=7, dtype=ndd.{to})"
        # DALI does not accept lists in a variable.
        assert_same(f"k, v = tuple(k), tuple(v)\n{source}", x=x, k=keys, v=values)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_every_type_of_class_is_marked_alike(dtype):
    x = np.arange(-2, 10).reshape(3, 4).astype(dtype)
    for axis in (-1, 0, 1, 2):
        assert_same("ndd.one_hot(x, num_classes=7, axis=a)", x=x, a=axis)


def test_the_former_name_of_dtype_works():
    assert_same(
        "import warnings\n"
        "with warnings.catch_warnings(record=True):\n"
        "    warnings.simplefilter('always')\n"
        "    made = ndd.lookup_table([1, 2], keys=[1], values=[10], output_dtype=ndd.uint8)\n"
        "made"
    )


ANY_TYPE = "every type that can name a class or a place in a table does"
WRAPS = "DALI cuts numbers down to 32 bits"
DIFFERS = [
    Differs(
        "ndd.one_hot(np.int64([2**32, 1]), num_classes=2)", "ndd.tensor([[0.0, 0], [0, 1]])", WRAPS
    ),
    Differs(
        "ndd.one_hot(np.uint64([2**63, 1]), num_classes=2)", "ndd.tensor([[0.0, 0], [0, 1]])", WRAPS
    ),
    Differs(
        "ndd.one_hot([0, 1], num_classes=2, axis=-2)",
        "ndd.tensor([[1.0, 0], [0, 1]])",
        "negative axes count from the end of the result, as everywhere",
    ),
    Differs(
        "ndd.one_hot([0, 1], num_classes=2, dtype=ndd.bool)",
        "ndd.tensor([[True, False], [False, True]])",
        ANY_TYPE,
    ),
    Differs(
        "ndd.one_hot([0, 1], num_classes=2, dtype=ndd.float16)",
        "ndd.tensor(np.float16([[1, 0], [0, 1]]))",
        ANY_TYPE,
    ),
    Differs(
        "ndd.one_hot(np.float16([0, 1]), num_classes=2)", "ndd.tensor([[1.0, 0], [0, 1]])", ANY_TYPE
    ),
    Differs(
        "ndd.one_hot([True, False], num_classes=2)", "ndd.tensor([[0.0, 1], [1, 0]])", ANY_TYPE
    ),
    Differs("ndd.lookup_table([True], keys=[1], values=[9])", "ndd.tensor([9.0])", ANY_TYPE),
    Differs(
        "ndd.lookup_table([1], keys=np.array([1]), values=np.array([9.0]))",
        "ndd.tensor([9.0])",
        "a list may come as an array",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
