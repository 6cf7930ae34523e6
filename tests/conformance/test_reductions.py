"""`reductions`: sums, means and extremes along axes."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

EXCUSED: dict[str, str] = {}

NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4"]
SUMS = ["sum", "mean", "mean_square", "rms"]
AXES = [None, [], 0, 1, 2, -1, [0, 1], [1, 2], [0, 2], [2, 0], (0, 1, 2), [-3, 1]]

# penstock sums in 64 bits, DALI in 32: they agree to about six digits.
RELATIVE = 2e-6


def close(source: str, tol: float, **inputs) -> None:
    assert_same(source, tol=tol * RELATIVE, **inputs)


def cube(dtype: str = "f4", shape: tuple[int, ...] = (4, 5, 3)) -> np.ndarray:
    numbers = np.random.default_rng(3).integers(0, 100, shape)
    return (numbers - (0 if dtype[0] == "u" else 40)).astype(dtype)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_every_set_of_axes_gives_the_same(axes, keep):
    t = "t = ndd.tensor(x, layout='HWC')\nb = ndd.batch([x, x[:2]], layout='HWC')\n"
    for op in ("max", "min"):
        call = f"ndd.reductions.{op}(t, axes=a, keep_dims=k), ndd.reductions.{op}(b, axes=a)"
        assert_same(t + call, x=cube(), a=axes, k=keep)
    for op in SUMS:
        call = f"ndd.reductions.{op}(t, axes=a, keep_dims=k), ndd.reductions.{op}(b, axes=a)"
        close(t + call, 10000, x=cube(), a=axes, k=keep)
    for op in ("variance", "std_dev"):
        call = (
            f"m = ndd.reductions.mean(t, axes=a, keep_dims=k)\n"
            f"ndd.reductions.{op}(t, m, axes=a, keep_dims=k), "
            f"ndd.reductions.{op}(b, ndd.reductions.mean(b, axes=a), axes=a, ddof=1)"
        )
        close(t + call, 1000, x=cube(), a=axes, k=keep)


SOURCES = [
    # by name, so that a search for each operator finds where it is tested
    "ndd.reductions.max(x), ndd.reductions.min(x), ndd.reductions.sum(x)",
    "ndd.reductions.mean(x), ndd.reductions.mean_square(x), ndd.reductions.rms(x)",
    "m = ndd.tensor(7.5)\nndd.reductions.variance(x, m), ndd.reductions.std_dev(x, m)",
]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_number_type_gives_the_same(source, dtype):
    close(source, 10000, x=cube(dtype))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "f4"])
@pytest.mark.parametrize("shape", [(1,), (7,), (64,), (65,), (1000,), (70000,)], ids=str)
def test_long_rows_give_the_same(shape, dtype):
    for op in ("max", "min", "sum", "mean"):
        close(f"ndd.reductions.{op}(x)", 1e7 if dtype == "f4" else 100, x=cube(dtype, shape))


SHAPES = [
    (300, 2),
    (2, 300),
    (65, 7),
    (7, 65),
    (3, 1500),
    (1500, 3),
    (40, 129),
    (2, 3, 4, 5),
    (9, 1),
]


@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_wide_and_narrow_give_the_same(shape, dtype):
    for axes in ([0], [1], [0, len(shape) - 1]):
        for op in ("max", "sum", "rms"):
            source = f"ndd.reductions.{op}(x, axes=a)"
            close(source, 1e5, x=cube(dtype, shape), a=axes)
        source = "ndd.reductions.variance(x, ndd.reductions.mean(x, axes=a), axes=a)"
        close(source, 1000, x=cube(dtype, shape), a=axes)


T = "t = ndd.tensor(x, layout='HWC')\nb = ndd.batch([x, x[:1]], layout='HWC')\n"
SAME = [
    # the type of the result
    "ndd.reductions.sum(np.uint8([1, 20, 200]), dtype=ndd.uint8)",
    "ndd.reductions.sum(np.int8([-100, -100]), dtype=ndd.int8)",
    "ndd.reductions.sum(np.uint8([1, 20, 200]), dtype=ndd.float32)",
    "ndd.reductions.sum(np.int64([2**62, 2**62])), ndd.reductions.sum(np.uint64([2**63, 2**63]))",
    "ndd.reductions.mean(np.uint8([1, 2, 9]), dtype=ndd.uint8)",
    "ndd.reductions.mean(np.int32([-7, 0, -3]), dtype=ndd.int32)",
    "ndd.reductions.mean_square(np.int32([-7, 0, -3]), dtype=ndd.int64)",
    "ndd.reductions.rms(np.uint16([7, 0, 3]), dtype=ndd.uint16)",
    "ndd.reductions.sum(t, dtype=None), ndd.reductions.sum(t, dtype=types.FLOAT)",
    "ndd.reductions.sum(t, dtype=float)",
    # axes
    "ndd.reductions.sum(t, axis_names='H'), ndd.reductions.sum(b, axis_names='CH')",
    "ndd.reductions.sum(t, axis_names='WH', keep_dims=True), ndd.reductions.max(t, axis_names='')",
    "ndd.reductions.sum(t, axes=None, axis_names=None), ndd.reductions.sum(t, axes=True)",
    "ndd.reductions.sum(t, axes=1.5), ndd.reductions.sum(t, keep_dims=1)",
    "ndd.reductions.sum(ndd.tensor(x, layout='XXZ'), axis_names='X')",
    "ndd.reductions.sum(t, axes=3)",
    "ndd.reductions.sum(t, axes=-4)",
    "ndd.reductions.max(b, axes=[0, 3])",
    "ndd.reductions.sum(t, axes=[0, 0])",
    "ndd.reductions.sum(t, axes=[0, -3])",
    "ndd.reductions.sum(t, axis_names='X')",
    "ndd.reductions.sum(x, axis_names='H')",
    "ndd.reductions.sum(t, axes=0, axis_names='H')",
    "ndd.reductions.sum(t, axes=[], axis_names='H')",
    "ndd.reductions.sum(ndd.tensor(3.5), axes=0)",
    # inputs
    "ndd.reductions.sum(3), ndd.reductions.max(ndd.tensor(3)), ndd.reductions.mean(2.5)",
    "ndd.reductions.sum(ndd.tensor(3.5), axes=[]), ndd.reductions.sum(3.5, keep_dims=True)",
    "ndd.reductions.sum(t, batch_size=2), ndd.reductions.sum(t, device='cpu')",
    "ndd.reductions.sum(ndd.batch([], dtype=ndd.float32)).evaluate()",
    "ndd.reductions.max(ndd.batch(np.zeros((0, 3), 'f4')), axes=0).evaluate()",
    "ndd.reductions.sum([[1, 2], [3, 4]], axes=0), ndd.reductions.mean(x.tolist())",
    # nothing
    "[ndd.reductions.sum(np.zeros(0, d)) for d in ('f4', 'i4', 'u1')]",
    "[ndd.reductions.max(np.zeros(0, d)) for d in ('f4', 'i4', 'u1', 'i8')]",
    "[ndd.reductions.min(np.zeros((0, 2), d), axes=0) for d in ('f4', 'i4', 'u1', 'u8')]",
    "[ndd.reductions.mean(np.zeros((0, 2), d), axes=0) for d in ('f4', 'i4')]",
    "ndd.reductions.mean(np.zeros(0, 'i4'), dtype=ndd.int32)",
    "ndd.reductions.mean(np.zeros(0, 'u8'), dtype=ndd.uint64)",
    "ndd.reductions.rms(np.zeros(0, 'u1'), dtype=ndd.uint8)",
    "ndd.reductions.sum(np.zeros((0, 3), 'f4'), axes=1, keep_dims=True)",
    "m = ndd.tensor(2.0)\n[ndd.reductions.variance(np.zeros(0, 'f4'), m, ddof=d) for d in (0, 1)]",
    # not numbers
    "[ndd.reductions.max(np.float32(v)) for v in ([1, np.nan, 3], [np.nan, 1], [np.nan, np.nan])]",
    "[ndd.reductions.min(np.float32(v)) for v in ([1, np.nan, 3], [np.nan, 1], [np.nan, np.nan])]",
    "ndd.reductions.max(np.float32([[1, np.nan], [np.nan, 3], [2, 2]]), axes=0)",
    "ndd.reductions.max(np.float32([-np.inf])), ndd.reductions.min(np.float32([np.inf, np.inf]))",
    "ndd.reductions.sum(np.float32([np.inf, -np.inf])), ndd.reductions.mean(np.float32([np.nan]))",
    "ndd.reductions.sum(np.float32([1, np.inf])), ndd.reductions.rms(np.float32([-np.inf]))",
    # variance, about a mean of one's choice
    "ndd.reductions.variance(t, 3.0), ndd.reductions.std_dev(t, [2.0])",
    "m = ndd.tensor(30.0)\n[ndd.reductions.std_dev(t, m, ddof=d) for d in (0, 1, -3, 60, 61, 100)]",
    "ndd.reductions.variance(t, np.zeros((5, 3), 'f4'), axes=0)",
    "ndd.reductions.variance(t, np.zeros((1, 5, 3), 'f4'), axes=0)",
    "ndd.reductions.variance(t, ndd.batch([np.float32(2.0), np.float32(3.0)]))",
    "ndd.reductions.variance(b, np.float32(2.0)), ndd.reductions.variance(b, ndd.tensor(2.0))",
    "ndd.reductions.variance(t, ndd.tensor(2.0), axes=[]), ndd.reductions.std_dev(3.0, 2.0)",
    "ndd.reductions.variance(np.float32([[1, 2, 3]]), np.float32([2, 2, 2]), axes=0, ddof=1)",
    "ndd.reductions.variance(t, ndd.tensor(np.nan))",
    "ndd.reductions.std_dev(t, ndd.tensor(2.0), ddof=1.5)",
    "ndd.reductions.variance(t, ndd.tensor(2.0), axes=5)",
    "ndd.reductions.variance(b, ndd.batch([np.float32(2), np.float32(3), np.float32(3)]))",
    "ndd.reductions.variance(t)",
    "ndd.reductions.variance(t, None)",
    "ndd.reductions.variance(t, mean=3.0)",
    # rejected
    "ndd.reductions.sum()",
    "ndd.reductions.sum(None)",
    "ndd.reductions.sum(t, t)",
    "ndd.reductions.sum(t, foo=1)",
    "ndd.reductions.sum(t, ddof=1)",
    "ndd.reductions.max(t, dtype=ndd.float32)",
    "ndd.reductions.variance(t, 2.0, dtype=ndd.float32)",
    "ndd.reductions.max(ndd.tensor(types.RGB))",
    "ndd.reductions.sum(t, keep_dims=ndd.tensor(1))",
    "ndd.reductions.sum(t, axes=ndd.batch([0, 1]))",
]


@pytest.mark.parametrize("source", SAME)
def test_calls_agree(source):
    close(T + source, 10000, x=cube())


@pytest.mark.parametrize(
    "source",
    [
        "ndd.reductions.sum(np.ones(3), axes='H')",
        "ndd.reductions.sum(ndd.tensor([[1.0]], layout='HW'), axis_names='HH').evaluate()",
        "ndd.reductions.sum(np.ones(3, 'f4'), axis_names=5)",
        "ndd.reductions.std_dev(np.ones(3, 'f4'), 2.0, ddof='a')",
        "ndd.reductions.sum('a')",
    ],
)
def test_both_refuse(source):
    assert_refused(source)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("ndd.reductions.sum(np.ones(3, 'f4'), axes=1)", "out of range"),
        ("ndd.reductions.sum(np.ones(3, 'f4'), axes=[0, 0])", "duplicate axis"),
        ("ndd.reductions.sum(np.ones(3, 'f4'), axis_names='X')", "'X' is not present"),
    ],
)
def test_errors_name_the_same_thing(source, says):
    assert_same(source, says=says)


ANY_TYPE = "every type of number can be reduced"
ANY_RESULT = "the result can have any type"
A_MEAN = "a mean lies between the numbers it is of"
NO_MEAN = "DALI reads past the end of the mean, or takes a part of it"
DIFFERS = [
    Differs("ndd.reductions.sum(np.float64([1, 2]))", "ndd.tensor(np.float64(3))", ANY_TYPE),
    Differs("ndd.reductions.sum(np.float16([1, 2]))", "ndd.tensor(3.0)", ANY_TYPE),
    Differs("ndd.reductions.sum([True, True])", "ndd.tensor(np.uint64(2))", ANY_TYPE),
    Differs("ndd.reductions.mean(np.float64([1, 2]))", "ndd.tensor(np.float64(1.5))", ANY_TYPE),
    Differs("ndd.reductions.max(np.float16([1, 2]))", "ndd.tensor(np.float16(2))", ANY_TYPE),
    Differs("ndd.reductions.min([True, False])", "ndd.tensor(False)", ANY_TYPE),
    Differs("ndd.reductions.variance([1, 3], 2)", "ndd.tensor(1.0)", ANY_TYPE),
    Differs("ndd.reductions.std_dev([1.0, 3.0], np.float64(2))", "ndd.tensor(1.0)", ANY_TYPE),
    Differs("ndd.reductions.sum([-1, 2], dtype=ndd.uint8)", "ndd.tensor(np.uint8(1))", ANY_RESULT),
    Differs(
        "ndd.reductions.sum([1.6, 300.0], dtype=ndd.int16)", "ndd.tensor(np.int16(301))", ANY_RESULT
    ),
    Differs(
        "ndd.reductions.mean([1, 2], dtype=ndd.float64)", "ndd.tensor(np.float64(1.5))", ANY_RESULT
    ),
    Differs(
        "ndd.reductions.rms([3.0], dtype=ndd.float16)", "ndd.tensor(np.float16(3))", ANY_RESULT
    ),
    Differs("ndd.reductions.sum([1.0], dtype='f32')", "ndd.tensor(1.0)", "dtypes by name"),
    Differs(
        "ndd.reductions.mean(np.full(100, 200, 'u1'), dtype=ndd.uint8)",
        "ndd.tensor(np.uint8(200))",
        A_MEAN,
    ),
    Differs(
        "ndd.reductions.mean(np.ones(41, 'u1'), dtype=ndd.uint8)", "ndd.tensor(np.uint8(1))", A_MEAN
    ),
    Differs(
        "ndd.reductions.rms(np.uint8([20, 20]), dtype=ndd.uint8)",
        "ndd.tensor(np.uint8(20))",
        A_MEAN,
    ),
    Differs(
        "ndd.reductions.rms(np.int64([2**62, 2**62]))", "ndd.tensor(np.float32(2**62))", A_MEAN
    ),
    Differs(
        "ndd.reductions.sum(ndd.tensor([[1.0]]), axes=np.array([0]))",
        "ndd.tensor([1.0])",
        "axes may be an array",
    ),
    Differs(
        "ndd.reductions.variance(np.ones((2, 3), 'f4'), np.ones(2, 'f4'))", "RuntimeError", NO_MEAN
    ),
    Differs(
        "ndd.reductions.variance(np.ones((2, 3), 'f4'), np.ones(2, 'f4'), axes=0)",
        "RuntimeError",
        NO_MEAN,
        ask=False,
    ),
    Differs(
        "ndd.reductions.variance(np.float32([[1, 2], [3, 4]]), np.float32([0]), axes=0)",
        "ndd.tensor([5.0, 10.0])",
        NO_MEAN,
        ask=False,
    ),
    Differs(
        "ndd.reductions.variance(np.ones(3, 'f4'), np.zeros(0, 'f4'))",
        "RuntimeError",
        NO_MEAN,
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
