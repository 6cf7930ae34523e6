"""`cast` and `copy`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

NAMES = ["bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))]
NAMES += ["float16", "float32", "float64"]
FRACTIONS = [0.0, 0.4, 0.5, 0.6, 1.5, 2.5, 126.5, 127.5, 254.5, 255.5, 300, 32767.5, 65504, 65535.5]
LARGE = [2.0**24 + 1, 2.0**31, 2.0**32, 3e9, 2.0**53 + 1, 2.0**62, 1e20, 1e300]


def numbers(name: str) -> np.ndarray:
    """Halves, both limits of every type, and NaN and infinities."""
    if name == "bool":
        return np.array([False, True])
    if not name.startswith("float"):
        info = np.iinfo(name)
        bits = (0, 7, 8, 15, 16, 24, 31, 32, 53, 62, 63, 64)
        steps = [2**n + d for n in bits for d in (-1, 0, 1)]
        values = sorted({s * v for v in steps for s in (1, -1)})
        return np.array([v for v in values if info.min <= v <= info.max], name)
    values = FRACTIONS + LARGE + [np.inf]
    with np.errstate(over="ignore"):
        return np.array([s * v for v in values for s in (1, -1)] + [np.nan], name)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_every_pair_of_types_gives_the_same(source, target):
    assert_same(f"ndd.cast(ndd.tensor(x), dtype=ndd.{target})", x=numbers(source))


SAME = [
    # spellings of the type
    "ndd.cast(ndd.tensor([1]), dtype=types.FLOAT), ndd.cast(ndd.tensor([0, 2]), dtype=bool)",
    "ndd.cast(ndd.tensor([1]), dtype=float)",
    "ndd.cast(ndd.tensor([1]), dtype=int)",
    "ndd.cast(ndd.tensor([1]), dtype=None)",
    "ndd.cast(ndd.tensor([1]))",
    "ndd.cast(ndd.tensor([1]), ndd.float32)",
    "ndd.cast(dtype=ndd.float32)",
    "ndd.cast(ndd.tensor([1]), dtype=ndd.float32, foo=1)",
    "ndd.cast(ndd.tensor([1]), dtype=ndd.tensor(types.FLOAT))",
    # inputs
    "ndd.cast([1, 2], dtype=ndd.float32), ndd.cast(3, dtype=ndd.float32)",
    "ndd.cast(np.int64(3), dtype=ndd.float32), ndd.cast(np.arange(3), dtype=ndd.uint8)",
    "ndd.cast(ndd.batch([[1, 2], [3]], layout='X'), dtype=ndd.float64)",
    "ndd.cast(ndd.batch([], dtype=ndd.int32), dtype=ndd.float32).evaluate()",
    "ndd.cast(np.zeros((2, 0, 3)), dtype=ndd.float16)",
    "ndd.cast(ndd.tensor([types.GRAY, types.RGB]), dtype=ndd.int32)",
    "ndd.cast(ndd.batch([types.FLOAT, types.UINT8]), dtype=ndd.int64)",
    "ndd.cast(ndd.tensor([2, 1]), dtype=ndd.InterpType)",
    "ndd.cast(ndd.tensor([1], layout='X'), dtype=ndd.float16)",
    # the same type again
    "t = ndd.tensor([1], layout='X')\nu = ndd.cast(t, dtype=ndd.int32)\nu, u is t",
    # what operators share
    "ndd.cast(ndd.tensor([1]), dtype=ndd.float32, batch_size=2)",
    "ndd.cast(ndd.tensor([1]), dtype=ndd.float32, device='cpu')",
    # copy
    "t = ndd.tensor([1], layout='X')\nu = ndd.copy(t)\n"
    "u, u is t, np.shares_memory(np.asarray(t), np.asarray(u))",
    "b = ndd.batch([[1], [2, 3]], layout='X')\nc = ndd.copy(b)\nc, c is b",
    "ndd.copy([1, 2]), ndd.copy(np.float16([1])), ndd.copy(5), ndd.copy(ndd.tensor([True]))",
    "ndd.copy(ndd.batch([], dtype=ndd.int32)).evaluate(), ndd.copy(ndd.tensor(types.RGB))",
    "ndd.copy(ndd.tensor([1]), batch_size=2), ndd.copy(ndd.tensor([1]), device='cpu')",
    "ndd.copy()",
    "ndd.copy(None)",
    "ndd.copy(ndd.tensor([1]), 1)",
]


@pytest.mark.parametrize("source", SAME)
def test_calls_agree(source):
    assert_same(source)


REFUSED = [
    "ndd.cast(ndd.tensor([1]), dtype=str).evaluate()",
    "ndd.cast(ndd.tensor([1]), dtype=types.STRING).evaluate()",
    "ndd.cast(ndd.tensor([1]), dtype=types.NO_TYPE).evaluate()",
    "ndd.cast(ndd.batch([1, 2]), dtype=ndd.batch([types.FLOAT, types.FLOAT]))",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


FLOAT = "ndd.tensor([1.0])"
NAMED = "a dtype may be named in every way that `ndd.dtype` knows"
DIFFERS = [
    Differs("ndd.cast(ndd.tensor([1]), dtype=np.float32)", FLOAT, NAMED),
    Differs("ndd.cast(ndd.tensor([1]), dtype=np.dtype('f4'))", FLOAT, NAMED),
    Differs("ndd.cast(ndd.tensor([1]), dtype='f32')", FLOAT, NAMED),
    Differs("ndd.cast(ndd.tensor([1]), dtype='float32')", FLOAT, NAMED),
    Differs(
        "ndd.cast(ndd.cast(ndd.tensor([1.5]), dtype=ndd.bfloat16), dtype=ndd.float32)",
        "ndd.tensor([1.5])",
        "bfloat16 is a dtype like the others",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
