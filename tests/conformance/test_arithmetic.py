"""Python's operators: types, wrapping, division, comparison, bits. (`+` has its own file.)"""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

DTYPES = {n: np.dtype(n) for n in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}

ARITHMETIC = ["-", "/"]
DIVISION = ["//", "%"]
BITS = ["&", "|", "^", "<<", ">>"]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]


def extremes(dtype: np.dtype) -> np.ndarray:
    """Numbers that wrap, lose precision or change sign."""
    if dtype.kind == "b":
        return np.array([False, True, False, True, True])
    if dtype.kind == "f":
        return np.array([0.1, -1.5, 1e7, np.inf, 3.0], dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, info.max // 3, 1, 5], dtype)


def divisors(dtype: np.dtype) -> np.ndarray:
    """Neither zero nor -1, by which DALI can't divide the smallest integer."""
    if dtype.kind == "b":
        return np.array([True] * 5)
    if dtype.kind == "f":
        return np.array([0.3, -1.5, 7, np.inf, -2], dtype)
    if dtype.kind == "u":
        return np.array([3, 2, 7, 1, np.iinfo(dtype).max], dtype)
    return np.array([-3, 2, 7, -2, np.iinfo(dtype).max], dtype)


def each(operators, left="a", right="b"):
    """A source that gives the results of all operators."""
    return "a, b = ndd.tensor(a), ndd.tensor(b)\n" + ", ".join(
        f"{left} {operator} {right}" for operator in operators
    )


PAIRS = [(left, right) for left in DTYPES for right in DTYPES]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_every_pair_of_types_gives_the_same(left, right):
    a, b = extremes(DTYPES[left]), extremes(DTYPES[right])[::-1].copy()
    operators = ["*", *COMPARISONS]
    if "f" not in DTYPES[left].kind + DTYPES[right].kind:
        operators += BITS
    if (left, right) != ("?", "?"):
        operators += ARITHMETIC
    assert_same(each(operators), a=a, b=b)


@pytest.mark.parametrize(("left", "right"), PAIRS[1:])
def test_quotients_and_remainders_are_the_same(left, right):
    a, b = extremes(DTYPES[left]), divisors(DTYPES[right])
    a = np.where(np.isfinite(a), a, 2).astype(a.dtype)
    assert_same(each(DIVISION), a=a, b=b)


@pytest.mark.parametrize(("left", "right"), PAIRS[1:])
def test_powers_are_the_same(left, right):
    a = np.array([0, 1, 3, 5, 2]).astype(DTYPES[left])
    b = np.array([0, 4, 2, 3, 1]).astype(DTYPES[right])
    floats = "f" in DTYPES[left].kind + DTYPES[right].kind
    if DTYPES[right].kind == "i" and not floats:
        b = np.array([0, -4, 41, -1, 7]).astype(DTYPES[right])
    if DTYPES[right].kind == "f":
        b /= 2
    # Of numbers up to 125; exact for integers.
    assert_same(each(["**"]), a=a, b=b, tol=2e-5 if floats else None)


@pytest.mark.parametrize("scalar", [True, 3, -7, 2**31 - 1, 1.5, -1e30])
@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "?"])
def test_python_numbers_count_alike(dtype, scalar):
    operators = ["-", "*", "/", *COMPARISONS]
    if DTYPES[dtype].kind != "f" and not isinstance(scalar, float):
        operators += BITS
    x = divisors(DTYPES[dtype])
    for order in (("a", "b"), ("b", "a")):
        source = each([*operators, *DIVISION], *order).replace("ndd.tensor(b)", "b")
        # Relative to numbers of up to 1e30.
        assert_same(source, a=x, b=scalar, tol=None if isinstance(scalar, int) else 1e24)


UNARY = ["-a", "+a", "abs(a)", "~a"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_operand_gives_the_same(dtype):
    sources = {"b": ["+a", "~a"], "f": UNARY[:3]}.get(DTYPES[dtype].kind, UNARY)
    x = extremes(DTYPES[dtype])
    assert_same("a = ndd.tensor(x, layout='X')\n" + ", ".join(sources), x=x)
    assert_same("a = ndd.batch([x, x[:2], x[:0]], layout='X')\n" + ", ".join(sources), x=x)


SHIFTS = [0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 127]


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name[0] in "iu"])
def test_shifts_by_any_amount_are_the_processors(dtype):
    for number in (1, 77, np.iinfo(dtype).max, np.iinfo(dtype).min):
        a = np.full(len(SHIFTS), number, dtype)
        assert_same(each(["<<", ">>"]), a=a, b=np.array(SHIFTS, dtype))
    if dtype[0] == "i":
        assert_same(each(["<<", ">>"]), a=a, b=-np.array(SHIFTS, dtype))


SHAPES = [
    [(3,), ()], [(2, 1), (3,)], [(4, 1, 2), (3, 1)], [(2, 3), (1, 3)], [(0, 2), (1, 2)],
    [(5, 1, 4), (1, 3, 1)], [(2, 3, 4, 5), (4, 1)], [(2,), (3,)], [(40, 50, 3), (3,)],
    [(40, 50, 3), (40, 50, 1)], [(40, 50, 3), (40, 1, 3)], [(40, 50, 3), (50, 3)],
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
@pytest.mark.parametrize("operator", ["-", "<", "&", "//"])
def test_shapes_are_broadcast_alike(left, right, operator):
    a = np.arange(np.prod(left), dtype=np.uint8).reshape(left)
    b = 1 + np.arange(np.prod(right), dtype=np.int32).reshape(right)
    assert_same(f"(ndd.tensor(a) {operator} ndd.tensor(b)).evaluate()", a=a, b=b)
    assert_same(f"(ndd.batch([a, a]) {operator} ndd.batch([b, b + 5])).evaluate()", a=a, b=b)
    assert_same(f"(ndd.tensor(a) {operator} ndd.batch([b, b + 5])).evaluate()", a=a, b=b)


SAME = [
    "b = ndd.batch([[5, 2], [3]])\nb - 1, 1 - b, b * b, b / 2, 7 // b, b % 2, 2 ** b, b < 3",
    "b = ndd.batch([[5, 2], [3]])\nb == b, b != ndd.tensor(3), b > [1], [2] >= b, ~(b == 3)",
    "b = ndd.batch([[5, 2], [3]])\nb & 1, 1 | b, b ^ 3, 1 << b, b >> 1, 1 >> b, 6 ^ b, 7 & b",
    "b = ndd.batch([], dtype=ndd.uint8)\n(b == 1).evaluate(), (-b).evaluate(), (b / 2).evaluate()",
    "t = ndd.tensor([1, 2])\nt -= 1\nu = ndd.tensor([1, 2])\nu *= 2.5\nt, u",
    "t = ndd.tensor([5, 6])\nt //= 2\nu = ndd.tensor([1, 2])\nu <<= 2\nt, u",
    "np.int64(1) == ndd.tensor([1, 2]), np.array([1, 2]) < ndd.tensor([2, 1])",
    "np.array([4, 6]) // ndd.tensor([3, 2]), np.float64(1) / ndd.tensor([2])",
    "ndd.tensor([1]) / np.float64(3), ndd.tensor([1]) / np.int64(3), ndd.tensor([7]) % np.int8(4)",
    "ndd.tensor([1, 2]) == [1, 3], (1, 2) == ndd.tensor([1, 3]), ndd.tensor([1]) < range(2)",
    "nan = ndd.tensor(float('nan'))\nnan == nan, nan != nan, nan < 1, nan >= 1, -nan, abs(nan)",
    "zero = ndd.tensor(0.0)\n1 / zero, -1 / zero, zero / zero, 1 // zero, 1.5 % zero",
    "ndd.tensor([1, -1, 0]) / 0, ndd.tensor([1.0, -7.5]) // 2, ndd.tensor([7.5, -7.5]) % -2",
    "ndd.tensor([7, -7]) // 2, ndd.tensor([7, -7]) // -2, ndd.tensor([7, -7]) % 3",
    "ndd.tensor([2, 0, -2]) ** -1, ndd.tensor([0, 5]) ** 0, ndd.tensor([3]) ** 100",
    "ndd.tensor([[1, 2]], layout='HW') < ndd.tensor([2], layout='W')",
    "ndd.tensor([[1, 2]]) * ndd.tensor([2], layout='W')",
    "u = ndd.tensor(np.uint64([2**64 - 1]))\nu == np.float32(2**64), u > np.float64(2**64)",
    "hash(ndd.tensor(1))",
    "hash(ndd.batch([1]))",
    # rejected
    "(ndd.tensor([1]) // 0).evaluate()",
    "(ndd.tensor([1, 2]) % ndd.tensor([1, 0])).evaluate()",
    "(ndd.batch(np.uint8([1, 2])) // ndd.batch(np.uint8([1, 0]))).evaluate()",
    "(ndd.tensor([1]) // ndd.tensor([False])).evaluate()",
    "ndd.tensor([1]) == 2**31",
    "2**40 < ndd.tensor([1])",
    "ndd.batch([1, 2]) == ndd.batch([1])",
    "(ndd.tensor([1, 2]) < ndd.tensor([1, 2, 3])).evaluate()",
    "(ndd.tensor([[1]], layout='HW') == ndd.tensor([[1]], layout='WH')).evaluate()",
    "ndd.tensor([1]) == object()",
    "(ndd.tensor(types.RGB) == ndd.tensor(types.RGB)).evaluate()",
    "(ndd.tensor([1.5]) & 1).evaluate()",
    "(ndd.tensor([1]) << 1.0).evaluate()",
    "(~ndd.tensor([1.5])).evaluate()",
    "(-ndd.tensor(True)).evaluate()",
    "abs(ndd.tensor(True)).evaluate()",
    *(f"(ndd.tensor(True) {operator} True).evaluate()" for operator in ("-", "/", "//", "%", "**")),
    "divmod(ndd.tensor([7]), 2)",
    "ndd.tensor([7]) @ ndd.tensor([7])",
    "pow(ndd.tensor([2]), 3, 5)",
]


@pytest.mark.parametrize("source", SAME)
def test_sources_give_the_same(source):
    assert_same(source)


@pytest.mark.parametrize("mode", ["deferred", "eager", "sync_cpu", "sync_full"])
def test_division_by_zero_is_a_value_error_in_every_mode(mode):
    assert_same(
        f"with ndd.EvalMode.{mode}:\n    q = ndd.tensor([1]) // 0\nq.evaluate()", says="zero"
    )


REFUSED = [
    "ndd.tensor([1]) - None",
    "None * ndd.tensor([1])",
    "ndd.tensor([1]) == None",
    "ndd.tensor([1]) != 'a'",
    "ndd.batch([1]) < None",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


HALF = "16-bit floats can be computed with like the others"
DIFFERS = [
    Differs(
        "x = ndd.tensor(np.float16([1, 3]))\nx - 1, x * x, x / 2, 1 // x, x % 2, x ** 2, -x",
        "f = lambda *x: ndd.tensor(np.float16(x))\n"
        "f(0, 2), f(1, 9), f(0.5, 1.5), f(1, 1/3), f(1, 1), f(1, 9), f(-1, -3)",
        HALF,
    ),
    Differs(
        "x = ndd.tensor(np.float16([1, 3]))\nx < 2, x == x, x >= np.float64(3)",
        "f = lambda *x: ndd.tensor(np.array(x))\nf(True, False), f(True, True), f(False, True)",
        HALF,
    ),
    Differs(
        "ndd.tensor(np.int32([-(2**31)])) // -1, ndd.tensor(np.int64([-(2**63)])) // np.int64(-1)",
        "ndd.tensor(np.int32([-(2**31)])), ndd.tensor(np.int64([-(2**63)]))",
        "integers wrap; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.tensor(np.int32([-(2**31)])) % -1, ndd.tensor(np.int64([-(2**63)])) % np.int64(-1)",
        "ndd.tensor(np.int32([0])), ndd.tensor(np.int64([0]))",
        "it leaves nothing; DALI crashes",
        ask=False,
    ),
    Differs(
        "less = np.array([1, 2]) < ndd.batch([1, 2])\n"
        "less if isinstance(less, ndd.Batch) else type(less)",
        "ndd.batch([1, 2]) > np.array([1, 2])",
        "the batch compares, as it does on the other side",
    ),
    Differs(
        "3 in ndd.tensor([1, 2])",
        "False",
        "DALI takes every comparison for true",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
