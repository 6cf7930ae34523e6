"""`math`: mathematical functions."""

import numpy as np
import pytest

import penstock.math
from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same, oracle

EXCUSED: dict[str, str] = {}

TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
ALL = [*np.linspace(-20, 20, 81), 0.0, -0.0, 1.0, -1.0, 88.5, -104, 1e4, -1e9, 1e30, np.inf, np.nan]
UNIT = [*np.linspace(-1, 1, 41), 0.999999, -0.999999, 1e-8, 1.5, -2, np.inf, np.nan]
POSITIVE = [*np.linspace(0, 30, 61), 1e-30, 1e30, 1.0001, 0.9999, -1, np.inf, np.nan]

# Functions, the numbers they are asked about, and how far apart results may be, relative to their
# size: both use a library of their own.
FUNCTIONS = {
    "ndd.math.abs({})": (ALL, 0),
    "ndd.math.fabs({})": (ALL, 0),
    "ndd.math.ceil({})": (ALL, 0),
    "ndd.math.floor({})": (ALL, 0),
    "ndd.math.sqrt({})": (ALL, 0),
    "ndd.math.cbrt({})": (ALL, 1e-6),
    "ndd.math.exp({})": (ALL, 1e-6),
    "ndd.math.sin({})": (ALL, 1e-6),
    "ndd.math.cos({})": (ALL, 1e-6),
    "ndd.math.tan({})": (ALL, 1e-5),
    "ndd.math.sinh({})": (ALL, 1e-6),
    "ndd.math.cosh({})": (ALL, 1e-6),
    "ndd.math.tanh({})": (ALL, 1e-6),
    "ndd.math.asinh({})": (ALL, 1e-6),
    "ndd.math.atan({})": (ALL, 1e-6),
    "ndd.math.acos({})": (UNIT, 1e-6),
    "ndd.math.asin({})": (UNIT, 1e-6),
    "ndd.math.atanh({})": (UNIT, 1e-6),
    "ndd.math.log({})": (POSITIVE, 1e-6),
    "ndd.math.log2({})": (POSITIVE, 1e-6),
    "ndd.math.log10({})": (POSITIVE, 1e-6),
    "ndd.math.acosh({})": (POSITIVE, 1e-6),
    # DALI uses a float32 approximation that doesn't handle infinity.
    "ndd.math.rsqrt({})": ([x for x in POSITIVE if 1 <= x < np.inf], 1e-6),
}


def numbers(values, dtype):
    if np.dtype(dtype).kind == "f":
        return np.array(values, dtype)
    info = np.iinfo(dtype)
    return np.unique(np.clip([x for x in values if abs(x) < 1000], info.min, info.max)).astype(
        dtype
    )


def relative(expression):
    """A source that divides results by DALI's, so that the tolerance is relative."""
    return (
        f"y = {expression}\n"
        "r = np.array(y).astype(np.float64)\n"
        "scale = np.where(np.isfinite(want) & (want != 0), np.abs(want), 1)\n"
        "y.dtype, y.layout, y.shape, r / scale"
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("call", FUNCTIONS)
def test_a_function_gives_the_same(call, dtype):
    values, tol = FUNCTIONS[call]
    x = numbers(values, dtype)
    source = call.format("ndd.tensor(x, layout='X')")
    if tol == 0:
        assert_same(source, x=x)
        return
    want = oracle.run(source, x=x).samples[0].astype(np.float64)
    assert_same(relative(source), x=x, want=want, tol=tol)


@pytest.mark.parametrize("call", FUNCTIONS)
def test_a_function_takes_all_kinds_of_operands(call):
    source = (
        f"f = {call.removesuffix('({})')}\n"
        "f(1), f(1.0), f(input=[1, 1]), f(np.float64(1)), f(np.array([1])), f(np.zeros((0, 3))),"
        "f(ndd.batch([[1, 1], [1]], layout='X')), f(ndd.batch([], dtype=ndd.int32)).evaluate(),"
        "f(ndd.tensor([[1.0]], layout='HW'))"
    )
    assert_same(source, tol=1e-6)


BINARY = {
    "ndd.math.min(": 0, "ndd.math.max(": 0, "ndd.math.pow(": 1e-5, "ndd.math.fpow(": 1e-5,
    "ndd.math.atan2(": 1e-6,
}  # fmt: skip


@pytest.mark.parametrize("right", ["?", *TYPES])
@pytest.mark.parametrize("left", ["?", *TYPES])
def test_two_operands_of_every_type_give_the_same(left, right):
    if left == right == "?":
        return
    a, b = np.array([0, 1, 2, 3, 2]).astype(left), np.array([1, 0, 3, 3, 1]).astype(right)
    if left[0] in "if":
        a[2] = -2
    source = "a, b = ndd.tensor(a), ndd.tensor(b)\n"
    assert_same(source + ", ".join(f"{name}a, b)" for name in BINARY), a=a, b=b, tol=1e-5)
    if left[0] in "iu" and right[0] in "iu":
        ends = [np.array([np.iinfo(t).min, np.iinfo(t).max, 1], t) for t in (left, right)]
        exact = source + "ndd.math.min(a, b), ndd.math.max(a, b), ndd.math.clamp(a, b, 5)"
        assert_same(exact, a=ends[0], b=ends[1][::-1].copy())


CLAMPED = ["?", "i1", "i4", "u1", "u8", "f4", "f8"]


@pytest.mark.parametrize("low", CLAMPED)
@pytest.mark.parametrize("high", CLAMPED)
def test_three_operands_of_every_type_give_the_same(low, high):
    rows = [([1, 0, 2, 3, 5], low), ([4, 4, 4, 50, 1], high)]
    lo, hi = (np.array(row).astype(dtype) for row, dtype in rows)
    values = [np.array([0, 1, 7, 100, 3]).astype(dtype) for dtype in CLAMPED]
    if low == high == "?":
        values = values[1:]
    source = "[ndd.math.clamp(ndd.tensor(v), ndd.tensor(lo), ndd.tensor(hi)) for v in values]"
    assert_same(source, values=values, lo=lo, hi=hi)


NAN = "ndd.tensor(np.float32('nan'))"
SAME = [
    f"m, n = ndd.math, {NAN}\nm.min(n, 1.0), m.min(1.0, n), m.max(n, 1.0), m.max(1.0, n)",
    f"m, n = ndd.math, {NAN}\nm.clamp(n, 0.0, 1.0), m.clamp(0.5, n, 1.0), m.clamp(0.5, 0.0, n)",
    "m = ndd.math\nm.clamp(5, 3, 0), m.clamp(-5, 3, 0), m.clamp(2, 3, 0), m.clamp(5, 0.5, 3.5)",
    "ndd.math.clamp(value=1, lo=2, hi=3), ndd.math.clamp(1, lo=2, hi=3)",
    "ndd.math.clamp(ndd.tensor([1, 2, 3]), ndd.tensor([[1], [2]]), 3)",
    "ndd.math.clamp(ndd.batch([[1, 9], [2]]), 2, ndd.batch([5, 1]))",
    "ndd.math.clamp(6, 3, ndd.tensor([80, 5, 4, 2]))",
    "w, hw = ndd.tensor([1.0], layout='W'), ndd.tensor([[1.0]], layout='HW')\n"
    "ndd.math.clamp(w, ndd.tensor([[1.0]]), hw)",
    "ndd.math.clamp(ndd.tensor([1.0], layout='W'), ndd.tensor([1.0]), ndd.tensor([[1.0]]))",
    "ndd.math.min(left=1, right=2), ndd.math.max([1, 5], (4, 2))",
    "ndd.math.min(1, np.int64([3, 0]))",
    "ndd.math.min(ndd.batch([[1, 2], [3]]), ndd.tensor(2)), ndd.math.max(ndd.batch([1, 9]), 4.5)",
    "ndd.math.atan2(1, 0), ndd.math.atan2(x=-1.0, y=-1.0), ndd.math.atan2(0, -1)",
    "ndd.math.pow(base=2, exponent=3), ndd.math.pow(2, -1), ndd.math.pow(2, 0.5)",
    "ndd.math.fpow(2, 3), ndd.math.fpow(base=2, exponent=-1), ndd.math.fpow(-8.0, 1 / 3)",
    "ndd.math.pow(ndd.tensor([-2.0, 0.0, 3.0]), 2), ndd.math.pow(ndd.tensor([-2.0, 0.0]), 3.0)",
    "ndd.math.abs(np.int64([-(2**63)])), ndd.math.fabs(np.int8([-128]))",
    # rejected
    "ndd.math.sqrt()",
    "ndd.math.sqrt(1, 2)",
    "ndd.math.sqrt(1, device='cpu')",
    "ndd.math.min(1)",
    "ndd.math.min(1, 2, batch_size=2)",
    "ndd.math.clamp(1, 2)",
    "ndd.math.sqrt(2**40)",
    "ndd.math.min(1, 2**31)",
    "ndd.math.sqrt(True).evaluate()",
    "ndd.math.abs(True).evaluate()",
    *(f"ndd.math.{name}(True, True).evaluate()" for name in ("min", "max", "pow", "fpow", "atan2")),
    "ndd.math.clamp(True, False, True).evaluate()",
    "ndd.math.sqrt(ndd.tensor(types.RGB)).evaluate()",
    "ndd.math.min(ndd.tensor(types.RGB), 1).evaluate()",
    "ndd.math.clamp(ndd.batch([1, 2]), 0, ndd.batch([1, 1, 1]))",
    "ndd.math.clamp(ndd.tensor([1, 2]), ndd.tensor([1]), ndd.tensor([1, 2, 3])).evaluate()",
    "ndd.math.min(ndd.tensor([[1]], layout='HW'), ndd.tensor([[1]], layout='WH')).evaluate()",
    "t = ndd.tensor([[1.0]], layout='HW')\n"
    "ndd.math.clamp(t, t, ndd.tensor([[1.0]], layout='HX')).evaluate()",
]


@pytest.mark.parametrize("source", SAME)
def test_sources_give_the_same(source):
    assert_same(source, tol=1e-6)


REFUSED = ["ndd.math.sqrt(None)", "ndd.math.sqrt('a')", "ndd.math.min(None, 1)"]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


HALF = "16-bit floats can be computed with like the others"
DIFFERS = [
    Differs(
        "ndd.math.rsqrt(ndd.tensor([0.0, 4.0, np.inf]))",
        "ndd.tensor([np.inf, 0.5, 0.0])",
        "DALI approximates, and gives NaN for both ends",
    ),
    Differs("ndd.math.sqrt(np.float16([4, 9]))", "ndd.tensor(np.float16([2, 3]))", HALF),
    Differs("ndd.math.min(np.float16([4, 9]), 5)", "ndd.tensor(np.float16([4, 5]))", HALF),
    Differs("ndd.math.clamp(np.float16([4, 9]), 5, 6.5)", "ndd.tensor(np.float32([5, 6.5]))", HALF),
    Differs("ndd.math.sqrt(1j)", "TypeError", "there are no complex values; half of one is none"),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


def test_every_function_has_a_case():
    tested = {call.split(".")[2].split("(")[0] for call in [*FUNCTIONS, *BINARY]} | {"clamp"}
    assert set(penstock.math.__all__) == tested | EXCUSED.keys()
