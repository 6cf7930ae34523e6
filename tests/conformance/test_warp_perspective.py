"""Perspective transforms."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import oracle, ours

RNG = np.random.default_rng(11)
BORDERS = ["constant", "replicate", "reflect", "reflect_101", "wrap"]
INTERPS = ["types.INTERP_NN", "types.INTERP_LINEAR", "types.INTERP_CUBIC"]
TILTED = np.float32([[0.9, 0.1, 3], [-0.1, 0.9, 4], [0.0005, -0.0003, 1]])
MATRICES = {
    "identity": np.eye(3, dtype="f4"),
    "shift": np.float32([[1, 0, 2.5], [0, 1, -1.25], [0, 0, 1]]),
    "double": np.float32([[2, 0, 0], [0, 2, 0], [0, 0, 1]]),
    "half": np.float32([[0.5, 0, 0], [0, 0.5, 0], [0, 0, 1]]),
    "tilted": TILTED,
    "behind": np.float32([[1, 0, 0], [0, 1, 0], [-0.05, 0.01, 1]]),
}


def image(shape=(23, 31, 3), dtype="u1"):
    return RNG.integers(0, 256, shape).astype(dtype)


def assert_close(source, x, **inputs):
    """Equal but for what places in single precision, in another order, come to.

    A place differs by some 1e-5 pixels, a value by as many times the difference of neighbours, 255
    here; integers that are near one half may be rounded to the other side, and of pixels between
    two very different ones the nearest may be the other. Of int16, and of images of two channels,
    DALI takes linear interpolation at 32nds of a pixel, ours does not: 255 / 64 along both axes.
    """
    expected, actual = oracle.run(source, x=x, **inputs), ours.run(source, x=x, **inputs)
    assert (expected.dtype, expected.layout, expected.shape) == (
        actual.dtype, actual.layout, actual.shape,
    )  # fmt: skip
    for a, b in zip(expected.samples, actual.samples, strict=True):
        apart = np.abs(a.astype("f8") - b)
        if "NN" in source:
            assert (apart > 0).mean() <= 0.005, source
        elif "LINEAR" in source and (a.dtype == np.int16 or a.shape[-1] == 2):
            assert apart.max(initial=0) <= 8, source
        elif a.dtype.kind == "f":
            assert apart.max(initial=0) <= 0.02, source
        else:
            assert apart.max(initial=0) <= 1, source
            assert (apart > 0).mean() <= 0.005, source


@pytest.mark.parametrize("interp", INTERPS)
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4"])
@pytest.mark.parametrize("matrix", MATRICES)
def test_matrices(matrix, dtype, interp):
    for origin in ("corner", "center"):
        for channels in (1, 2, 3, 4):
            if matrix == "behind" and (dtype == "i2" or channels == 2):
                continue  # DALI has other places for what is on the horizon
            source = f"""
                x = ndd.tensor(x, layout="HWC")
                ndd.experimental.warp_perspective(
                    x, matrix=m, interp_type={interp}, pixel_origin="{origin}")
            """
            assert_close(source, image((23, 31, channels), dtype), m=MATRICES[matrix])


@pytest.mark.parametrize("interp", INTERPS)
@pytest.mark.parametrize("border", BORDERS)
def test_borders(border, interp):
    matrix = np.float32([[1, 0, -9.75], [0, 1, -8.25], [0, 0, 1]])
    for dtype in ("u1", "f4"):
        source = f"""
            x = ndd.tensor(x, layout="HWC")
            ndd.experimental.warp_perspective(
                x, matrix=m, interp_type={interp}, border_mode="{border}", size=[40, 60])
        """
        assert_close(source, image((23, 31, 3), dtype), m=matrix)


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC", "FCHW", None])
def test_layouts(layout):
    shape = (2, 9, 8, 4)[-len(layout or "HWC") :]
    source = "ndd.experimental.warp_perspective(ndd.tensor(x, layout=l), matrix=m)"
    assert_close(source, image(shape, "f4"), m=TILTED, l=layout)


@pytest.mark.parametrize("fill", ["50.0", "[50.0]", "[1.0, 2.0, 3.0]", "300.0", "-5.0", "2.5"])
def test_fill_values(fill):
    for dtype in ("u1", "f4"):
        source = f"""
            x = ndd.tensor(x, layout="HWC")
            ndd.experimental.warp_perspective(x, matrix=m, fill_value={fill}, size=[30, 40])
        """
        assert_close(source, image((9, 14, 3), dtype), m=MATRICES["shift"])


@pytest.mark.parametrize(
    "call",
    [
        "x, m", "x, matrix=m, inverse_map=False", "x, m, inverse_map=False, size=[5, 6]",
        "x, matrix=m.tolist()", "x, matrix=[1, 0, 2, 0, 1, 1.5, 0, 0, 1]",
        "x, matrix=m.astype('f8')", "x, matrix=m, size=7",
        "x, matrix=m, size=[2.6, 3.4]", "x, matrix=m, size=[0, -3]", "x, matrix=m, size=[1.5, 2.5]",
        "x, matrix=ndd.tensor(m)", "x, matrix=m, size=ndd.tensor(np.float32([4, 3]))",
    ],
)  # fmt: skip
def test_calls(call):
    assert_close(f"ndd.experimental.warp_perspective({call})", image((9, 14, 3), "f4"), m=TILTED)


def test_matrices_differ_from_sample_to_sample():
    source = """
        x = ndd.batch([x, x[:5], x[:, :6].copy()], layout="HWC")
        m = ndd.batch([m, 2 * m[::-1], m @ m])
        ndd.experimental.warp_perspective(x, matrix=m)
    """
    assert_close(source, image((9, 14, 3), "f4"), m=TILTED)
    assert_close(source.replace("matrix=m", "m"), image((9, 14, 3), "f4"), m=TILTED)


def test_matrices_differ_from_frame_to_frame():
    source = """
        x = ndd.tensor(x, layout="FHWC")
        ndd.experimental.warp_perspective(x, matrix=ndd.per_frame(np.stack([m, m @ m])))
    """
    assert_close(source, image((2, 9, 14, 3), "f4"), m=TILTED)
    other = """
        m = ndd.tensor(np.stack([m, m @ m]), layout="F**")
        ndd.experimental.warp_perspective(ndd.tensor(x, layout="FHWC"), m)
    """
    assert_close(other, image((2, 9, 14, 3), "f4"), m=TILTED)


@pytest.mark.parametrize(
    "call",
    [
        "x", "x, m, matrix=m", "x, matrix=m[:2]", "x, matrix=m, border_mode='foo'",
        "x, matrix=m, pixel_origin='foo'", "x, matrix=m, interp_type=types.INTERP_GAUSSIAN",
        "x, matrix=m, interp_type=types.INTERP_LANCZOS3", "x, matrix=m, size=[1, 2, 3]",
        "x, matrix=m, fill_value=[1.0, 2.0]", "x, m[:2]", "np.zeros((2, 2, 3), '?'), m",
        "ndd.tensor(x[None, None], layout='FDHWC'), m", "x, matrix=m, foo=1",
    ],
)  # fmt: skip
def test_refuses(call):
    start = "x, m = np.ones((4, 5, 3), 'f4'), np.eye(3, dtype='f4')\n"
    assert_refused(f"{start}ndd.experimental.warp_perspective({call})")


START = "x, m = np.ones((2, 2, 1), 'f4'), np.eye(3, dtype='f4')\n"
DIFFERS = [
    Differs(
        "ndd.experimental.warp_perspective(x, matrix=0 * m, inverse_map=False)",
        "ValueError",
        "a matrix without an inverse is an error",
    ),
    Differs(
        "ndd.experimental.warp_perspective(np.ones((2, 2, 7), 'f4'), matrix=m)",
        "ndd.tensor(np.ones((2, 2, 7), 'f4'), layout='HWC')",
        "any number of channels",
    ),
    Differs(
        "ndd.experimental.warp_perspective(np.ones((2, 2, 1), 'i8'), matrix=m)",
        "ndd.tensor(np.ones((2, 2, 1), 'i8'), layout='HWC')",
        "any type of numbers",
    ),
    Differs(
        "ndd.experimental.warp_perspective(x[:0], matrix=m, size=[1, 2], fill_value=3)",
        "ndd.tensor(np.full((1, 2, 1), 3, 'f4'), layout='HWC')",
        "around an image without pixels is the fill value",
    ),
    Differs(
        "ndd.experimental.warp_perspective(x[:0], matrix=m, size=[1, 2], border_mode='wrap')",
        "RuntimeError",
        "an image without pixels has none to repeat",
        ask=False,
    ),
    Differs(
        "ndd.experimental.warp_perspective(x, matrix=1e30 * m, border_mode='wrap')",
        "ndd.tensor(x, layout='HWC')",
        "DALI crashes",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.after(START).check()
