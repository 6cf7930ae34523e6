"""Bayer images."""

import cv2
import numpy as np
import pytest

import penstock as ndd
from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

RNG = np.random.default_rng(13)
POSITIONS = {(0, 0): "BG", (0, 1): "GB", (1, 0): "GR", (1, 1): "RG"}
ALGORITHMS = {"bilinear_ocv": "RGB", "edgeaware_ocv": "RGB_EA", "vng_ocv": "RGB_VNG",
              "gray_ocv": "GRAY"}  # fmt: skip


def raw(shape, dtype="u1"):
    return RNG.integers(0, np.iinfo(dtype).max + 1, shape).astype(dtype)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("position", POSITIONS, ids=str)
def test_algorithms(position, algorithm):
    for shape in [(2, 2), (2, 8), (8, 2), (4, 4), (6, 40), (8, 8), (16, 18), (64, 70)]:
        source = "ndd.debayer(ndd.tensor(x, layout='HW'), blue_position=p, algorithm=a)"
        assert_same(source, x=raw(shape), p=list(position), a=algorithm)
        if algorithm != "vng_ocv":
            assert_same(source, x=raw(shape, "u2"), p=list(position), a=algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("position", POSITIONS, ids=str)
def test_odd_sizes_are_those_of_opencv(position, algorithm):
    code = getattr(cv2, f"COLOR_Bayer{POSITIONS[position]}2{ALGORITHMS[algorithm]}")
    for shape in [(1, 1), (1, 5), (3, 3), (5, 2), (15, 17), (33, 70), (64, 71)]:
        image = raw(shape)
        made = np.asarray(ndd.debayer(image, blue_position=position, algorithm=algorithm))
        assert np.array_equal(made, cv2.cvtColor(image, code).reshape(made.shape))


def test_gradients_saturate():
    source = "ndd.debayer(x, blue_position=[0, 1], algorithm='vng_ocv')"
    assert_same(source, x=255 * RNG.integers(0, 2, (40, 60)).astype(np.uint8))
    y, x = np.mgrid[:40, :60]
    assert_same(source, x=(4 * x + 2 * y).astype(np.uint8))


@pytest.mark.parametrize("layout", ["HW", "HWC", "FHW", "FHWC", None])
@pytest.mark.parametrize("algorithm", ["bilinear_ocv", "gray_ocv"])
def test_layouts(layout, algorithm):
    shape = {"HW": (8, 6), "HWC": (8, 6, 1), "FHW": (3, 8, 6), "FHWC": (3, 8, 6, 1)}
    source = "ndd.debayer(ndd.tensor(x, layout=l), blue_position=[1, 0], algorithm=a)"
    assert_same(source, x=raw(shape.get(layout, (8, 6))), l=layout, a=algorithm)


@pytest.mark.parametrize(
    "call",
    [
        "ndd.debayer(x, blue_position=[0, 1])", "ndd.debayer(x[..., None], blue_position=[0, 1])",
        "ndd.debayer(x[None, ..., None], blue_position=[0, 1])",
        "ndd.debayer(ndd.batch([x, x[:4], x[:, :2].copy()]), blue_position=[0, 1])",
        "ndd.debayer(ndd.batch([x, x]), blue_position=ndd.batch([[0, 0], [1, 1]]))",
        "v = ndd.tensor(np.stack([x, x]), layout='FHW')\n"
        "ndd.debayer(v, blue_position=ndd.per_frame(np.int32([[0, 0], [1, 1]])))",
        # rejected
        "ndd.debayer(x)", "ndd.debayer(x, blue_position=[2, 0])",
        "ndd.debayer(x, blue_position=[-1, 0])",
        "ndd.debayer(x, blue_position=[0, 0, 0])", "ndd.debayer(x[None], blue_position=[0, 0])",
        "ndd.debayer(x, blue_position=[0, 0], algorithm='foo')",
        "ndd.debayer(x.astype('u2'), blue_position=[0, 0], algorithm='vng_ocv')",
    ],
)  # fmt: skip
def test_calls(call):
    assert_same(call, x=raw((10, 12)))


@pytest.mark.parametrize("dtype", ["f4", "i1", "i4", "?"])
def test_types(dtype):
    assert_refused(f"ndd.debayer(np.zeros((4, 4), '{dtype}'), blue_position=[0, 0])")


DIFFERS = [
    Differs(
        "ndd.debayer(np.zeros((0, 4), 'u1'), blue_position=[0, 0])",
        "ndd.tensor(np.zeros((0, 4, 3), 'u1'), layout='HWC')",
        "nothing to convert is nothing converted",
    ),
    Differs(
        "ndd.debayer(np.arange(64, dtype='u1').reshape(8, 8), blue_position=[0, 0], "
        "algorithm='default_npp')",
        "ndd.debayer(np.arange(64, dtype='u1').reshape(8, 8), blue_position=[0, 0], "
        "algorithm='edgeaware_ocv')",
        "the algorithm of DALI's GPU operator has the nearest one's place",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
