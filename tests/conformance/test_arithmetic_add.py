"""`+`: types, broadcasting, layouts and supported operands."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

DTYPES = {n: np.dtype(n) for n in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}


def extremes(dtype: np.dtype) -> np.ndarray:
    """Numbers that wrap or lose precision when added."""
    if dtype.kind == "b":
        return np.array([False, True, False, True])
    if dtype.kind == "f":
        return np.array([0.1, -1.5, 1e7, np.inf], dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, info.max // 3, 1], dtype)


@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_every_pair_of_types_gives_the_same(left, right):
    a, b = extremes(DTYPES[left]), extremes(DTYPES[right])[::-1].copy()
    assert_same("(ndd.tensor(a) + ndd.tensor(b)).evaluate()", a=a, b=b)


@pytest.mark.parametrize("scalar", [True, 1, -7, 2**31 - 1, 1.5, 0.1, -1e30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers_are_added_alike(dtype, scalar):
    if dtype == "?" and scalar is True:
        assert_same("(ndd.tensor(x) + s).evaluate()", x=extremes(DTYPES[dtype]), s=scalar)
        return
    source = "ndd.tensor(x) + s, s + ndd.tensor(x), ndd.batch([x, x[:2]]) + s, s + ndd.batch([x])"
    assert_same(source, x=extremes(DTYPES[dtype]), s=scalar)


SHAPES = [
    [(3,), ()], [(), ()], [(2, 1), (3,)], [(4, 1, 2), (3, 1)], [(1,), (5,)], [(2, 3), (2, 3)],
    [(2, 3), (1, 3)], [(1, 1, 1), (2, 3)], [(0, 2), (1, 2)], [(0, 2), ()], [(5, 1, 4), (1, 3, 1)],
    [(2, 3, 4, 5), (4, 1)], [(2,), (3,)], [(0, 2), (3, 2)], [(2, 3), (2,)], [(3, 1), (2, 3)],
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_shapes_are_broadcast_alike(left, right):
    a = np.arange(np.prod(left), dtype=np.int32).reshape(left)
    b = 100 * np.arange(np.prod(right), dtype=np.int32).reshape(right)
    assert_same("(ndd.tensor(a) + ndd.tensor(b)).evaluate()", a=a, b=b)
    assert_same("(ndd.tensor(b) + ndd.tensor(a)).evaluate()", a=a, b=b)
    assert_same("(ndd.batch([a, a + 1]) + ndd.batch([b, b + 5])).evaluate()", a=a, b=b)
    assert_same("(ndd.batch([a, a + 1]) + ndd.tensor(b)).evaluate()", a=a, b=b)


MIXED = [
    "b = ndd.batch([[1, 2], [3]])\nb + ndd.tensor(1), ndd.tensor(1) + b, b + ndd.batch([10, 20])",
    "b = ndd.batch([[1, 2], [3]])\nb + b, b + np.int64([1]), b + np.float32(0.5)",
    "ndd.batch([1, 2]) + np.array([1, 2]), ndd.batch([1, 2]) + [1, 2], [1, 2] + ndd.batch([1, 2])",
    "ndd.tensor([1, 2]) + [1, 2], [1, 2] + ndd.tensor([1, 2]), ndd.tensor([1]) + (1, 2)",
    "ndd.tensor(np.uint8([200])) + np.uint8(100), ndd.tensor(np.uint8([1])) + np.int8(1)",
    "ndd.tensor(np.uint8([1])) + np.float64(1), ndd.tensor(np.uint8([1])) + np.int16([1, 2])",
    "np.uint8(100) + ndd.tensor(np.uint8([200])), np.array([1, 2]) + ndd.tensor([1, 2])",
    "ndd.tensor([1]) + range(2), ndd.tensor([1]) + bytearray(b'a')",
    "b = ndd.batch([], dtype=ndd.uint8)\n(b + 1).evaluate(), (b + 1.5).evaluate()",
    "(ndd.batch([], dtype=ndd.int32) + ndd.batch([], dtype=ndd.float32)).evaluate()",
    "(ndd.tensor(3) + 4).item(), (ndd.tensor(3) + ndd.tensor(4.5)).item()",
    # rejected
    "ndd.tensor([1]) + 2**31",
    "ndd.tensor(np.int64([1])) + 2**40",
    "ndd.batch([[1, 2], [3]]) + ndd.batch([1])",
    "ndd.batch([[1, 2], [3]]) + ndd.batch([1, 2, 3])",
    "ndd.batch([1, 2]) + ndd.batch([], dtype=ndd.int32)",
    "(ndd.batch([[1, 2], [3]]) + ndd.batch([[1, 2, 3], [3]])).evaluate()",
    "ndd.tensor([1]) + object()",
    "ndd.tensor([1]) + {}",
    "(ndd.tensor([1]) + types.RGB).evaluate()",
]


@pytest.mark.parametrize("source", MIXED)
def test_kinds_are_mixed_alike(source):
    assert_same(source)


LAYOUTS = [
    ("HW", "HW"), ("HW", None), (None, "HW"), ("HW", "W"), ("W", "HW"), ("HW", "FHW"),
    ("HW", ""), ("FHW", None), ("HW", "WH"), ("HW", "H"), ("HW", "X"), ("HWC", "HW"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), LAYOUTS)
def test_layouts_are_joined_alike(left, right):
    ones = {None: np.ones((3, 3)), "": np.float64(1)}
    a, b = (ones.get(layout, np.ones((3,) * len(layout or ""))) for layout in (left, right))
    assert_same("ndd.tensor(a, layout=l) + ndd.tensor(b, layout=r)", a=a, b=b, l=left, r=right)
    assert_same("ndd.batch([a], layout=l) + ndd.tensor(b, layout=r)", a=a, b=b, l=left, r=right)


@pytest.mark.parametrize("shape", [(5, 3, 3), (1, 3, 3), (3,)])
def test_a_layout_goes_with_the_larger_rank(shape):
    source = "a, b = ndd.tensor(x, layout='HW'), ndd.tensor(y)\na + b, b + a"
    assert_same(source, x=np.ones((3, 3)), y=np.ones(shape))


REFUSED = ["ndd.tensor([1]) + None", "None + ndd.tensor([1])", "ndd.tensor([1]) + 'a'"]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


HALF = "float16 can be added like the other floating types"
DIFFERS = [
    Differs(
        "ndd.tensor(np.float16([1, 2])) + ndd.tensor(np.float16([0.5]))",
        "ndd.tensor(np.float16([1.5, 2.5]))",
        HALF,
    ),
    Differs(
        "ndd.tensor(np.float16([1])) + ndd.tensor(np.float32([0.5]))",
        "ndd.tensor(np.float32([1.5]))",
        HALF,
    ),
    Differs(
        "ndd.tensor([1]) + 1j", "TypeError", "there are no complex values; half of one is none"
    ),
    Differs(
        "ndd.batch([[1, 2], [3]]) + ndd.batch([[1, 2], [3, 4]])",
        "ndd.batch([[2, 4], [6, 7]])",
        "each sample is broadcast on its own; DALI reads beyond the sample",
        ask=False,
    ),
    Differs(
        "ndd.batch(np.zeros((0, 2), np.int32)) + ndd.tensor([1, 2])",
        "ndd.batch(np.zeros((0, 2), np.int32))",
        "no samples give no samples; DALI crashes",
        ask=False,
    ),
    Differs(
        "total = np.array([1, 2]) + ndd.batch([1, 2])\n"
        "total if isinstance(total, ndd.Batch) else type(total)",
        "ndd.batch([1, 2]) + np.array([1, 2])",
        "the batch adds, as it does on the other side",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("(ndd.tensor([True]) + ndd.tensor([True])).evaluate()", "bool"),
        ("(ndd.tensor([1, 2]) + ndd.tensor([1, 2, 3])).evaluate()", "broadcast"),
        ("ndd.batch([1, 2]) + ndd.batch([1])", "batch size"),
        ("(ndd.tensor([[1]], layout='HW') + ndd.tensor([[1]], layout='WH')).evaluate()", "layout"),
        ("ndd.tensor([1]) + 2**31", "int32"),
    ],
)
def test_errors_name_the_same_thing(source, says):
    assert_same(source, says=says)
