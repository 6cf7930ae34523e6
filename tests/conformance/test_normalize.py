"""`normalize`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

EXCUSED: dict[str, str] = {}

# DALI divides by an approximate square root, accurate to about six digits.
TOLERANCE = 1e-5


def cube(dtype: str = "f4", shape: tuple[int, ...] = (4, 5, 3)) -> np.ndarray:
    numbers = np.random.default_rng(5).integers(0, 100, shape)
    return (numbers - (0 if dtype[0] == "u" else 40)).astype(dtype)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("axes", [None, 0, 1, [2], [0, 1], [1, 2], [0, 2], (0, 1, 2)], ids=str)
def test_every_set_of_axes_gives_the_same(axes, batch):
    source = """
        t = ndd.tensor(x, layout='HWC')
        b = ndd.batch([x, x * 2, x + 3], layout='HWC')
        ndd.normalize(t, axes=a, batch=n), ndd.normalize(b, axes=a, batch=n)
    """
    assert_same(source, tol=TOLERANCE, x=cube(), a=axes, n=batch)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "u1", "u2", "u4", "f4"])
def test_every_number_type_gives_the_same(dtype):
    source = "ndd.normalize(x), ndd.normalize(x, axes=[0, 1]), ndd.normalize(x, axes=1, ddof=1)"
    assert_same(source, tol=TOLERANCE, x=cube(dtype))


@pytest.mark.parametrize("to", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "float32"])
def test_every_result_type_gives_the_same(to):
    # Scaled to avoid halves, which DALI's approximation may round the other way.
    source = (
        f"ndd.normalize(x, scale=70, shift=90, dtype=ndd.{to}), ndd.normalize(x, dtype=ndd.{to})"
    )
    assert_same(source, tol=1e-3, x=cube())


SHAPES = [
    (70000,),
    (300, 2),
    (2, 300),
    (65, 7),
    (7, 65),
    (3, 1500),
    (1500, 3),
    (40, 129),
    (9, 1),
    (2, 3, 4, 5),
]


@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_wide_and_narrow_give_the_same(shape, dtype):
    for axes in ([0], [len(shape) - 1]):
        for batch in (False, True):
            source = "ndd.normalize(ndd.batch([x, x + 1]), axes=a, batch=n)"
            assert_same(source, tol=3 * TOLERANCE, x=cube(dtype, shape), a=axes, n=batch)


NAMES = """
s = ndd.tensor(np.float32([[1, 2], [3, 6]]), layout='HW')
sb = ndd.batch([np.float32([[1, 2], [3, 6]]), np.float32([[5, 7]])], layout='HW')
z = ndd.tensor(np.float32([[1, 1], [1, 2]]))
f = np.float32
two = ndd.batch([f([[1, 2]]), f([[3, 4]])])
"""
SAME = [
    "ndd.normalize(s, axis_names='H'), ndd.normalize(s, axis_names='WH')",
    "ndd.normalize(s, axes=None, axis_names=None, mean=None, stddev=None, dtype=None)",
    "[ndd.normalize(s, epsilon=e) for e in (1.0, -1.0, -100.0)]",
    "[ndd.normalize(s, ddof=d) for d in (-1, 0, 1, 3, 4, 5)]",
    "[ndd.normalize(s, ddof=d, epsilon=2.0) for d in (1, 4, 5)]",
    "[ndd.normalize(s, axes=0, ddof=d) for d in (1, 2, 3, 1.5)]",
    "ndd.normalize(z), ndd.normalize(z, axes=1), ndd.normalize(z, axes=1, shift=5.0)",
    "ndd.normalize(z, axes=1, epsilon=0.1), ndd.normalize(z, axes=[1], ddof=1)",
    "ndd.normalize(s, scale=2.0, shift=3.0), ndd.normalize(s, scale=0, shift=-1)",
    # known numbers, written in the call
    "ndd.normalize(s, mean=2.0), ndd.normalize(s, mean=2), ndd.normalize(s, stddev=2.0)",
    "ndd.normalize(s, mean=2.0, stddev=2.0), ndd.normalize(s, mean=2.0, stddev=-1.0)",
    "ndd.normalize(s, stddev=0.0), ndd.normalize(s, mean=2.0, stddev=0.0)",
    "ndd.normalize(s, stddev=0.0, epsilon=4.0), ndd.normalize(s, stddev=2.0, epsilon=5.0)",
    "ndd.normalize(s, mean=2.0, stddev=2.0, epsilon=5.0), ndd.normalize(s, mean=2.0, epsilon=5.0)",
    "ndd.normalize(s, mean=2.0, ddof=1), ndd.normalize(s, mean=2.0, ddof=4)",
    "ndd.normalize(s, mean=2.0, axes=0), ndd.normalize(s, stddev=2.0, axes=0)",
    "ndd.normalize(s, scale=2.0, mean=2.0, stddev=2.0, shift=1.0)",
    "ndd.normalize(s, mean=2.0, stddev=2.0, axes=0)",
    "ndd.normalize(sb, mean=2.0), ndd.normalize(sb, stddev=2.0, axes=[1])",
    # known arrays
    "ndd.normalize(s, mean=f([[1, 2]]), axes=0)",
    "ndd.normalize(s, mean=f([[1, 2]])), ndd.normalize(s, mean=f([[1], [2]]))",
    "m = f([[1, 2]])\nndd.normalize(s, mean=m, stddev=m), ndd.normalize(s, stddev=m)",
    "ndd.normalize(s, mean=f([[1, 2]]), stddev=2.0)",
    "ndd.normalize(s, mean=2.0, stddev=f([[1, 2]]))",
    "ndd.normalize(s, mean=f([[1]]), stddev=f([[1]]))",
    "ndd.normalize(s, mean=np.zeros((2, 2), 'f4'), stddev=f([[1, 1], [2, 2]]))",
    "ndd.normalize(s, stddev=f([[0]])), ndd.normalize(s, stddev=f([[0]]), epsilon=4.0)",
    "ndd.normalize(s, stddev=f([[2]]), epsilon=5.0)",
    "ndd.normalize(s, mean=f([[1, 2]]), stddev=f([[0, 1]]), shift=3.0, scale=2.0)",
    "ndd.normalize(s, mean=ndd.tensor(np.int32([[2, 2]])), axes=0)",
    "m = [[1.0, 2.0]]\nndd.normalize(s, mean=m, axes=0)",
    "ndd.normalize(sb, mean=f([[1, 2]]), axes=0)",
    "ndd.normalize(sb, mean=two, axes=0)",
    "ndd.normalize(sb, stddev=two)",
    "m = ndd.batch([f([[1]]), f([[3]])])\nndd.normalize(s, mean=m, stddev=m)",
    "ndd.normalize(s, mean=f([1, 2]), axes=0)",
    "ndd.normalize(s, mean=f([1, 2]))",
    "ndd.normalize(s, mean=f([[1, 2, 3]]))",
    "ndd.normalize(s, mean=f([[1]]), axes=0)",
    "ndd.normalize(s, mean=f([[1, 2]]), stddev=f([[1], [2]]))",
    "ndd.normalize(sb, mean=ndd.batch([f([[1]])]))",
    # the whole batch
    "ndd.normalize(sb), ndd.normalize(sb, batch=True), ndd.normalize(sb, batch=True, axes=0)",
    "ndd.normalize(sb, batch=True, ddof=1), ndd.normalize(sb, batch=True, epsilon=1.0)",
    "[ndd.normalize(sb, batch=True, ddof=d) for d in (5, 6, 7)]",
    "ndd.normalize(sb, batch=True, mean=2.0), ndd.normalize(sb, batch=True, stddev=2.0)",
    "ndd.normalize(sb, batch=True, mean=2.0, stddev=2.0)",
    "ndd.normalize(sb, batch=True, mean=2.0, axes=0)",
    "ndd.normalize(sb, batch=True, mean=2.0, ddof=1)",
    "ndd.normalize(s, batch=True), ndd.normalize(s, batch=1)",
    "ndd.normalize(s, batch=True, batch_size=3)",
    "ndd.normalize(ndd.batch([np.zeros((2, 3), 'f4'), np.ones((4, 3), 'f4')]), batch=True, axes=0)",
    "ndd.normalize(ndd.batch([np.zeros((2, 3), 'f4'), np.zeros((0, 3), 'f4')]), batch=True)",
    "ndd.normalize(sb, batch=True, axes=1)",
    "ndd.normalize(sb, batch=True, axes=2)",
    "ndd.normalize(sb, batch=True, mean=f([[1, 2]]), axes=0)",
    "ndd.normalize(sb, batch=True, mean=two)",
    # inputs
    "ndd.normalize([1.0, 2.0]), ndd.normalize(s, batch_size=2), ndd.normalize(s, device='cpu')",
    "[ndd.normalize(np.zeros((0, 3), 'f4'), axes=a) for a in (None, 0, 1)]",
    "ndd.normalize(ndd.batch([], dtype=ndd.float32)).evaluate()",
    "ndd.normalize(ndd.batch(np.zeros((0, 3), 'f4'))).evaluate()",
    "ndd.normalize(f([1, np.inf])), ndd.normalize(f([1, np.nan]))",
    "ndd.normalize(f([1, 2, np.nan]), dtype=ndd.uint8)",
    # rejected
    "ndd.normalize()",
    "ndd.normalize(None)",
    "ndd.normalize(s, s)",
    "ndd.normalize(s, foo=1)",
    "ndd.normalize(s, axes=[])",
    "ndd.normalize(s, axes=2)",
    "ndd.normalize(s, axes=0, axis_names='H')",
    "ndd.normalize(s, axis_names='X')",
    "ndd.normalize(z, axis_names='H')",
    "ndd.normalize(s, scale=ndd.tensor(1.0))",
    "ndd.normalize(ndd.tensor(types.RGB))",
]


@pytest.mark.parametrize("source", SAME)
def test_calls_agree(source):
    assert_same(NAMES + source, tol=TOLERANCE)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.normalize(s, mean=f([[[1]]])).evaluate()",
        "ndd.normalize(s, mean='a')",
        "ndd.normalize(s, epsilon='a')",
    ],
)
def test_both_refuse(source):
    assert_refused(NAMES + source)


ANY_TYPE = "every type of number can be normalized, into any other"
ALIKE = "a number is taken alike, however it is given"
DIFFERS = [
    Differs("ndd.normalize(np.float64([5, 7]))", "ndd.tensor([-1.0, 1.0])", ANY_TYPE),
    Differs("ndd.normalize(np.int64([5, 7]))", "ndd.tensor([-1.0, 1.0])", ANY_TYPE),
    Differs("ndd.normalize(np.float16([5, 7]))", "ndd.tensor([-1.0, 1.0])", ANY_TYPE),
    Differs("ndd.normalize([False, True])", "ndd.tensor([-1.0, 1.0])", ANY_TYPE),
    Differs(
        "ndd.normalize([5, 7], dtype=ndd.float64)", "ndd.tensor(np.float64([-1, 1]))", ANY_TYPE
    ),
    Differs(
        "ndd.normalize([5, 7], dtype=ndd.float16)", "ndd.tensor(np.float16([-1, 1]))", ANY_TYPE
    ),
    Differs("ndd.normalize([5, 7], dtype=ndd.int64)", "ndd.tensor(np.int64([-1, 1]))", ANY_TYPE),
    Differs("m = 6.0\nndd.normalize([5.0, 7.0], mean=m)", "ndd.tensor([-1.0, 1.0])", ALIKE),
    Differs(
        "m = 6.0\nndd.normalize([5.0, 7.0], mean=m, stddev=2.0)", "ndd.tensor([-0.5, 0.5])", ALIKE
    ),
    Differs("ndd.normalize([5.0, 7.0], mean=np.float32(6))", "ndd.tensor([-1.0, 1.0])", ALIKE),
    Differs("ndd.normalize([5.0, 7.0], stddev=ndd.tensor(2.0))", "ndd.tensor([-0.5, 0.5])", ALIKE),
    Differs(
        "b = ndd.batch([[5.0, 7.0], [1.0, 3.0]])\n"
        "ndd.normalize(b, mean=ndd.batch([6.0, 1.0]), stddev=2.0)",
        "ndd.batch([[-0.5, 0.5], [0.0, 1.0]])",
        ALIKE,
    ),
    Differs(
        "m = 2.0\nndd.normalize(ndd.batch([[1.0], [3.0]]), batch=True, mean=m)",
        "ndd.batch([[-1.0], [1.0]])",
        ALIKE,
    ),
    Differs(
        "ndd.normalize(ndd.batch([[1.0], [3.0]]), batch=True, mean=ndd.tensor(2.0))",
        "ndd.batch([[-1.0], [1.0]])",
        ALIKE,
    ),
    Differs(
        "ndd.normalize([[5.0, 7.0]], axes=-1)", "ndd.tensor([[-1.0, 1.0]])", "as in reductions"
    ),
    Differs(
        "ndd.normalize([[5.0, 7.0]], axes=[1, 1])", "ValueError", "statistics of nothing known"
    ),
    Differs(
        "ndd.normalize(ndd.tensor([[5.0]], layout='HW'), axis_names='')",
        "RuntimeError",
        "as for `axes=[]`",
    ),
    Differs(
        "ndd.normalize(np.ones((2, 2), 'f4'), mean=np.ones((2, 2), 'f4'))",
        "RuntimeError",
        "no axis is left to compute the standard deviation along",
        ask=False,
    ),
    Differs(
        "ndd.normalize(ndd.batch(np.zeros((0, 3), 'f4')), batch=True)",
        "ndd.batch(np.zeros((0, 3), 'f4'))",
        "nothing to normalize is nothing normalized",
    ),
    Differs(
        "ndd.normalize(np.full((50, 50), 123.456, 'f4'))",
        "ndd.tensor(np.zeros((50, 50), 'f4'))",
        "equal numbers don't vary, however they are rounded",
    ),
    Differs(
        "ndd.normalize(ndd.tensor(3.0))", "ndd.tensor(0.0)", "a scalar does not vary", ask=False
    ),
    Differs(
        "ndd.normalize(ndd.tensor(3.0), mean=1.0, stddev=2.0)",
        "ndd.tensor(1.0)",
        "DALI computes with memory that it has not written",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
