"""Distortions: sphere and water."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same

RNG = np.random.default_rng(3)
SIZES = [(1, 2), (2, 2), (7, 9), (8, 8), (5, 12), (37, 53), (64, 71)]
WAVES = [
    "", "ampl_x=2.5, ampl_y=1.5, freq_x=0.3, freq_y=0.2, phase_x=0.4, phase_y=0.1",
    "ampl_x=0, ampl_y=0", "ampl_x=-3.25", "freq_x=100, phase_y=-5", "ampl_x=1e6", "freq_y=1e5",
]  # fmt: skip
# Sums of single precision, in another order, of numbers up to 255.
NEARLY = 2e-3


def image(height, width, channels=3, dtype="u1"):
    return RNG.integers(0, 256, (height, width, channels)).astype(dtype)


@pytest.mark.parametrize("interp", ["types.INTERP_NN", "types.INTERP_LINEAR"])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sphere(size, dtype, interp):
    # In uint8, a sum near one half may be rounded to either side.
    tol = None if interp.endswith("NN") else 1 if dtype == "u1" else NEARLY
    for channels in (1, 2, 3, 4):
        x = image(*size, channels, dtype)
        source = f"ndd.sphere(ndd.tensor(x, layout='HWC'), interp_type={interp}, fill_value=7)"
        assert_same(source, tol=tol, x=x)


@pytest.mark.parametrize("interp", ["types.INTERP_NN", "types.INTERP_LINEAR"])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("waves", WAVES)
def test_water(waves, dtype, interp):
    tol = None if interp.endswith("NN") else 1 if dtype == "u1" else NEARLY
    for size in SIZES:
        source = f"ndd.water(ndd.tensor(x, layout='HWC'), interp_type={interp}, {waves})"
        assert_same(source, tol=tol, x=image(*size, 3, dtype))


@pytest.mark.parametrize("operator", ["sphere", "water"])
@pytest.mark.parametrize(
    "call",
    [
        "ndd.{}(x)", "ndd.{}(x, mask=2)", "ndd.{}(x, mask=-1)",
        "ndd.{}(x, fill_value=2.5)", "ndd.{}(x, fill_value=3.5)",
        "ndd.{}(ndd.batch([x, x[:3], x[:, :4].copy()], layout='HWC'))",
        "ndd.{}(ndd.batch([x, x[:3], x], layout='HWC'), mask=ndd.batch([1, 2, 1]))",
        "ndd.{}(x[:0]), ndd.{}(x[:, :0]), ndd.{}(x[..., :0])",
        "ndd.{}(np.ones((4, 5, 7), 'f4'), fill_value=300)",
        # rejected
        "ndd.{}(x[0])", "ndd.{}(ndd.tensor(x, layout='CHW'))", "ndd.{}(x[None])",
        "ndd.{}(x, interp_type=types.INTERP_CUBIC)", "ndd.{}(x, foo=1)",
        "ndd.{}(np.zeros((2, 2, 3), '?'))",
    ],
)  # fmt: skip
def test_calls(operator, call):
    assert_same(call.replace("{}", operator), x=np.ascontiguousarray(image(9, 14)))


LIMITS = "a fill value outside of the type is the nearest inside"
DIFFERS = (
    [
        Differs(
            f"ndd.{operator}(np.ones((4, 4, 1), 'u1'), fill_value={value})",
            f"ndd.{operator}(np.ones((4, 4, 1), 'u1'), fill_value={inside})",
            LIMITS,
        )
        for operator, value, inside in [("water", 300, 255), ("water", -5, 0)]
    ]
    + [
        Differs(
            f"ndd.{operator}(np.arange(12, dtype='u1').reshape(2, 2, 3), mask=0)",
            "ndd.tensor(np.arange(12, dtype='u1').reshape(2, 2, 3), layout='HWC')",
            "DALI does not write the result",
            ask=False,
        )
        for operator in ("sphere", "water")
    ]
    + [
        Differs(
            "ndd.sphere(np.ones((1, 1, 1), 'f4'), interp_type=types.INTERP_LINEAR, fill_value=9)",
            "ndd.tensor(np.full((1, 1, 1), 9, 'f4'), layout='HWC')",
            "a place that is not a number is outside of the image",
        ),
        Differs(
            "ndd.water(np.ones((2, 2, 1), 'f4'), ampl_x=float('nan'))",
            "RuntimeError",
            "waves of no size are an error",
        ),
        Differs(
            "ndd.water(np.ones((2, 2, 1), 'f4'), freq_y=float('inf'))",
            "RuntimeError",
            "waves of no length are an error",
        ),
        Differs(
            "ndd.sphere(np.ones((2, 2, 1), 'i4'))",
            "ndd.tensor(np.ones((2, 2, 1), 'i4'), layout='HWC')",
            "DALI has no code for this type",
        ),
    ]
)


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
