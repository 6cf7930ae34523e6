"""Noise. Distributions are compared; deterministic cases agree exactly."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same, oracle, ours

FLAT = np.full((120, 120, 3), 100, np.uint8)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4"])
@pytest.mark.parametrize(
    "source",
    [
        "ndd.noise.gaussian(x, stddev=0)",
        "ndd.noise.gaussian(x, mean=3, stddev=0), ndd.noise.gaussian(x, mean=-300.0, stddev=0)",
        "ndd.noise.salt_and_pepper(x, prob=0)",
        "ndd.noise.salt_and_pepper(x, prob=1, salt_vs_pepper=0)",
        "ndd.noise.salt_and_pepper(x, prob=1, salt_vs_pepper=1)",
        "ndd.noise.salt_and_pepper(x, prob=1, salt_vs_pepper=1, salt_val=7.6)",
        "ndd.noise.salt_and_pepper(x, prob=1, salt_vs_pepper=0, pepper_val=3, per_channel=True)",
        "ndd.noise.shot(x * x.dtype.type(0))",
    ],
)
def test_without_a_choice(source, dtype):
    if dtype == "u8" and "-300" in source:
        pytest.skip("DALI rounds below zero to the largest number")
    assert_same(source, tol=1e-4, x=FLAT[:3, :4].astype(dtype))


STATISTICS = """
a = np.asarray(y).astype(np.float64)
{
    "mean": a.mean(), "std": a.std(), "skew": (((a - a.mean()) / a.std()) ** 3).mean(),
    "alike": float((a[..., 0] == a[..., 1]).mean()), "noisy": float((a != 100).mean()),
}
"""


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4"])
@pytest.mark.parametrize(
    "call",
    [
        "noise.gaussian(x)",
        "noise.gaussian(x, mean=10, stddev=20)",
        "noise.gaussian(x, stddev=-5)",
        "noise.salt_and_pepper(x)",
        "noise.salt_and_pepper(x, prob=0.5, per_channel=True)",
        "noise.salt_and_pepper(x, prob=0.3, salt_vs_pepper=0.2, salt_val=120, pepper_val=90)",
        "noise.shot(x)",
        "noise.shot(x, factor=0.5)",
        "noise.shot(x, factor=40.0)",
    ],
)
def test_statistics(call, dtype):
    source = f"ndd.random.set_seed(7)\ny = ndd.{call}\n{STATISTICS}"
    x = FLAT.astype(dtype)
    theirs, mine = oracle.run(source, x=x), ours.run(source, x=x)
    spread = max(theirs["std"], 1e-3)
    # 14,400 pixels: five standard errors of a mean, and more for the higher moments, which
    # a few grains more of one kind change a lot.
    assert abs(theirs["mean"] - mine["mean"]) < spread * 7 / 120
    assert abs(theirs["std"] / mine["std"] - 1) < 0.12
    assert abs(theirs["skew"] - mine["skew"]) < 0.6 * (1 + abs(theirs["skew"]))
    assert abs(theirs["alike"] - mine["alike"]) < 0.03
    assert abs(theirs["noisy"] - mine["noisy"]) < 0.03


@pytest.mark.parametrize(
    "source",
    [
        "y = ndd.noise.gaussian(ndd.tensor(x, layout='HWC'))\ny.layout, y.shape, y.dtype",
        "y = ndd.noise.shot(ndd.batch([x, x[:2]], layout='HWC'))\ny.layout, y.shape, y.dtype",
        "y = ndd.noise.shot(x, batch_size=2)\ny.shape, y.dtype",
        "x = ndd.tensor(np.moveaxis(x, -1, 0).copy(), layout='CHW')\n"
        "y = np.asarray(ndd.noise.salt_and_pepper(x, prob=0.5))\n(y[0] == y[1]).all()",
        "x = ndd.batch([x, x])\n"
        "a, b = map(np.asarray, ndd.noise.gaussian(x, stddev=ndd.batch([0.0, 9.0])))\n"
        "(a == 100).all(), (b == 100).all()",
        "r = ndd.random.RNG(seed=3)\na = ndd.noise.gaussian(x, rng=r)\nr()",
        "a, b = [np.asarray(ndd.noise.shot(x, rng=ndd.random.RNG(3))) for _ in 'ab']\n"
        "(a == b).all()",
        "a = np.asarray(ndd.noise.gaussian(x))\nb = np.asarray(ndd.noise.gaussian(x))\n"
        "(a == b).all()",
        "ndd.noise.gaussian(np.float32(5), stddev=0)",
        # rejected
        "ndd.noise.salt_and_pepper(x, prob=-1.0)",
        "ndd.noise.salt_and_pepper(x, prob=2.0)",
        "ndd.noise.salt_and_pepper(x, prob=float('nan'))",
        "ndd.noise.salt_and_pepper(x, salt_vs_pepper=3.0)",
        "ndd.noise.salt_and_pepper(ndd.tensor(x, layout='XYZ'))",
        "ndd.noise.gaussian(x > 3)",
        "r = 3\nndd.noise.gaussian(x, rng=r)",
    ],
)
def test_calls_agree(source):
    assert_same(source, x=FLAT)


DIFFERS = [
    Differs(
        "ndd.noise.salt_and_pepper(np.uint8([9]), prob=1, salt_vs_pepper=1, salt_val=300)",
        "ndd.tensor(np.uint8([255]))",
        "saturated, where DALI wraps around",
    ),
    Differs(
        "ndd.noise.gaussian(np.float16([9]), mean=1, stddev=0)",
        "ndd.tensor(np.float16([10]))",
        "DALI has no code for this type",
    ),
    Differs(
        "ndd.noise.gaussian(np.zeros((0, 2), 'f4'))",
        "ndd.tensor(np.zeros((0, 2), 'f4'))",
        "no data has no noise",
        ask=False,
    ),
    Differs(
        "ndd.noise.salt_and_pepper(np.float32(5), prob=1, salt_vs_pepper=1)",
        "ndd.tensor(np.float32(1))",
        "a single number is a pixel",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
