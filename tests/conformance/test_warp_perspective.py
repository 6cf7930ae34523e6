"""`experimental.warp_perspective`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same
from tests.conformance.test_warp import picture

SETUP = "warp = ndd.experimental.warp_perspective\n"
MATRICES = {
    "nothing": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "shift": [1, 0, 0.5, 0, 1, -1.25, 0, 0, 1],
    "scale": [0.4, 0, 0, 0, 0.6, 0, 0, 0, 1],
    "shear": [0.9, 0.2, -1, -0.3, 1.1, 2, 0, 0, 1],
    "tilt": [1, 0.1, 0, 0.05, 1, 0, 0.01, -0.004, 1],
    "far away": [1, 0, 100, 0, 1, -70, 0, 0, 1],
    "scaled as a whole": [3, 0, 0.5, 0, 3, 1, 0.03, 0, 3],
}
BORDERS = ["constant", "replicate", "reflect", "reflect_101", "wrap"]


def matrix(name):
    return np.float32(MATRICES[name]).reshape(3, 3)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("interpolation", ["LINEAR", "CUBIC"])
def test_matrices_agree(name, interpolation):
    source = (
        SETUP
        + f"""
how = dict(matrix=m, interp_type=types.INTERP_{interpolation})
[[warp(x, border_mode=b, **how) for x in (color, gray, words, floats)] for b in borders]
"""
    )
    pictures = {
        "color": picture(17, 23),
        "gray": picture(9, 14, 1),
        "words": picture(9, 14, 4, np.int16),
        # Their values are below 1, as is the tolerance of words and bytes.
        "floats": (picture(9, 14, 3) / 255).astype(np.float32),
    }
    assert_same(source, tol=1, m=matrix(name), borders=BORDERS, **pictures)


@pytest.mark.parametrize("name", ["shift", "shear", "tilt"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_floats_agree(name, channels):
    x = (picture(17, 23, channels) / 255).astype(np.float32)
    source = (
        SETUP
        + """
a = warp(x, matrix=m, border_mode="replicate"), warp(x, m, fill_value=0.5)
*a, warp(x, m, interp_type=types.INTERP_CUBIC), warp(x, m, inverse_map=False, size=[20, 9])
"""
    )
    assert_same(source, tol=2e-3, x=x, m=matrix(name))


@pytest.mark.parametrize("name", ["nothing", "far away", "scale"])
def test_nearest_pixels_agree(name):
    source = SETUP + "[warp(x, m, interp_type=types.INTERP_NN, border_mode=b) for b in borders]"
    assert_same(source, x=picture(17, 23), m=matrix(name), borders=BORDERS)


@pytest.mark.parametrize(
    "source",
    [
        "warp(x, m, fill_value=[10, 20, 30]), warp(x, m, fill_value=300)",
        "warp(x, m, size=[4, 5]), warp(x, m, size=[2.5, 3.4]), warp(x, m, size=[-4, 0])",
        "warp(x, m, size=ndd.tensor([4, 5]))",
        "warp(x, m, pixel_origin='center'), warp(x, m, pixel_origin='center', inverse_map=False)",
        "warp(x, m, inverse_map=False), warp(x, matrix=m)",
        "warp(x, np.zeros((3, 3), np.float32))",
        "warp(ndd.tensor(x[..., 0], layout='HW'), m), warp(x[..., 0].copy(), m)",
        "warp(ndd.tensor(x.transpose(2, 0, 1), layout='CHW'), m, fill_value=9)",
        "warp(ndd.tensor([x, x[::-1]], layout='FHWC'), m)",
        "warp(ndd.tensor([x.transpose(2, 0, 1)], layout='FCHW'), m)",
        "warp(ndd.batch([x, x[:4].copy()], layout='HWC'), ndd.batch([m, np.eye(3, dtype='f4')]))",
        "warp(x.astype('u2'), m), warp(x.astype('i2') - 100, m)",
        # refused
        "warp(x).evaluate()", "warp(x, m[:2]).evaluate()", "warp(x, matrix=m[:2]).evaluate()",
        "warp(x, m, matrix=m).evaluate()", "warp(x, m, size=[1]).evaluate()",
        "warp(x, m, border_mode='clamp').evaluate()", "warp(x, m, pixel_origin='top').evaluate()",
        "warp(x, m, interp_type=types.INTERP_LANCZOS3).evaluate()",
        "warp(x, m, fill_value=[1, 2]).evaluate()",
        "warp(ndd.tensor(x.transpose(2, 0, 1), layout='CHW'), m, fill_value=[1, 2, 3]).evaluate()",
        "warp(ndd.tensor(x, layout='DHW'), m).evaluate()",
        "warp(np.zeros((0, 4, 3), 'u1'), m).evaluate()",
        "warp(np.zeros((0, 4, 3), 'u1'), m, size=[2, 2]).evaluate()",
    ],
)  # fmt: skip
def test_calls_agree(source):
    assert_same(SETUP + source, tol=1, x=picture(9, 14), m=matrix("tilt"))


MORE = "any type and any number of channels can be warped"
SHIFT = "m = np.float32([[1, 0, 1], [0, 1, 0], [0, 0, 1]])\n"
DIFFERS = [
    Differs(
        SETUP + SHIFT + "warp(np.float64([[[1], [2]]]), m)",
        "ndd.tensor(np.float64([[[2], [0]]]), layout='HWC')",
        MORE,
    ),
    Differs(
        SETUP + SHIFT + "warp(np.int32([[[1] * 5, [2**31 - 1] * 5]]), m)",
        "ndd.tensor(np.int32([[[2**31 - 1] * 5, [0] * 5]]), layout='HWC')",
        MORE,
    ),
    Differs(
        SETUP + "warp(np.uint8([[[1], [2]]]), matrix=[1, 0, 1, 0, 1, 0, 0, 0, 1])",
        "ndd.tensor(np.uint8([[[2], [0]]]), layout='HWC')",
        "a matrix may be given row by row, as to `warp_affine`",
    ),
    Differs(
        SETUP + "warp(np.uint8([[[1], [2]]]), np.zeros((3, 3), 'f4'), inverse_map=False)",
        "RuntimeError",
        "a matrix without inverse is a mistake, as with `warp_affine`",
    ),
    Differs(
        SETUP + "warp(np.uint8([[[1], [2]]]), np.full((3, 3), np.nan, 'f4'))",
        "RuntimeError",
        "places that are no numbers are a mistake, as with `warp_affine`",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


def test_huge_sizes_are_refused():
    assert_refused(SETUP + "warp(np.zeros((1, 1, 1), 'u1'), np.eye(3), size=[1e18, 1e18])")
