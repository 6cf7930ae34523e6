"""`rotate` and `warp_affine`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same, oracle, ours

AFFINE = [
    "", "fill_value=100", "fill_value=-3.5", "interp_type=types.INTERP_NN",
    "interp_type=types.INTERP_NN, fill_value=7", "size=[5, 7]", "size=[2.4, 2.6]", "size=[0, 2]",
    "size=ndd.tensor([3, 2])", "inverse_map=False", "inverse_map=False, fill_value=3",
    "size=[30, 40], fill_value=1", "dtype=ndd.float32", "dtype=ndd.float32, fill_value=3.5",
    # rejected
    "size=5", "size=[-1, 2]", "size=[1, 2, 3]", "interp_type=types.INTERP_CUBIC",
    "interp_type=6", "foo=1",
]  # fmt: skip
MATRICES = [
    [1, 0, 0, 0, 1, 0], [1, 0, 0.5, 0, 1, 0.25], [0.5, 0, 0, 0, 0.5, 0], [1, 0, -3.2, 0, 1, 1.75],
    [0.8, 0.3, -1, -0.35, 0.9, 2.5], [-1, 0, 9, 0, 1.3, -2], [0.1, 0, 2, 0, 0.1, 2],
    [0, 1, 0, 1, 0, 0], [3, 0, -4, 0, 3, -4], [1, 0, 100, 0, 1, 0],
]  # fmt: skip
ANGLES = [0, 1, 30, 45, 90, 135, -60, 180, 200, 225, 270, 315, 360, 1e-4, 1000.5]


def picture(h, w, c=3, dtype=np.uint8):
    """Smooth, as photographs are, and rough in places."""
    y, x, k = np.mgrid[:h, :w, :c].astype(np.float64)
    waves = np.sin(x / 5 + k) * 60 + np.cos(y / 4 - x / 9) * 50 + 120
    noise = np.random.default_rng(h * w + c).uniform(-15, 15, waves.shape)
    return (waves + noise * (x > w / 2)).astype(dtype)


def tolerance(x):
    """Within one for 8 bits; 1e-4 of the largest numbers for floats."""
    return 0.02 if x.dtype.kind == "f" else 1


@pytest.mark.parametrize("arguments", AFFINE)
def test_affine_calls_agree(arguments):
    for x in (picture(6, 9), picture(3, 4, 1, np.float32), picture(5, 5, 4, np.int16)):
        source = (
            f"given = dict({arguments})\n"
            "m = np.float32([[0.8, 0.3, -1], [-0.35, 0.9, 2.5]])\n"
            "ndd.warp_affine(ndd.tensor(x, layout='HWC'), matrix=m, **given).evaluate()"
        )
        assert_same(source, x=x, tol=tolerance(x))


@pytest.mark.parametrize("matrix", MATRICES, ids=str)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_matrices_agree(matrix, channels):
    m = np.float32(matrix).reshape(2, 3)
    for x in (picture(11, 37, channels), picture(9, 30, channels, np.float32)):
        for rest in ("", ", fill_value=50", ", inverse_map=False, size=[20, 20]"):
            assert_same(f"ndd.warp_affine(x, m{rest})", x=x, m=m, tol=tolerance(x))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (3, 40), (70, 61)], ids=str)
def test_sizes_from_one_pixel_on(shape):
    for x in (picture(*shape), picture(*shape, 1), picture(*shape, 3, np.float32)):
        for rest in ("", ", fill_value=9"):
            m = np.float32([[0.9, 0.2, -0.3], [-0.2, 0.9, 0.1]])
            assert_same(f"ndd.warp_affine(x, m{rest})", x=x, m=m, tol=tolerance(x))
            assert_same(f"ndd.rotate(x, angle=25{rest})", x=x, tol=tolerance(x))
            assert_same(f"ndd.rotate(x, angle=-100, keep_size=True{rest})", x=x, tol=tolerance(x))


@pytest.mark.parametrize("angle", ANGLES)
def test_angles_agree(angle):
    for x in (picture(10, 20), picture(11, 21, 1, np.float32), picture(11, 20, 4)):
        for rest in ("", ", fill_value=30", ", keep_size=True", ", size=[7, 8]"):
            assert_same(f"ndd.rotate(x, angle=a{rest})", x=x, a=angle, tol=tolerance(x))


@pytest.mark.parametrize("angle", [10, 33, 45, 62, 90, 135, 170, 225, 280, 315, 350])
def test_canvases_agree(angle):
    shapes = [(h, w) for h in (1, 2, 5, 10, 13) for w in (1, 4, 7, 20)]
    source = "ndd.rotate(ndd.batch(x, layout='HWC'), angle=a).shape"
    assert_same(source, x=[np.zeros((*s, 1), np.uint8) for s in shapes], a=angle)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4"])
def test_every_type_agrees(dtype):
    x = picture(8, 9, 3, dtype)
    for rest in ("", ", interp_type=types.INTERP_NN", ", fill_value=-7.5", ", dtype=ndd.float32"):
        assert_same(f"ndd.rotate(x, angle=20{rest})", x=x, tol=tolerance(x))


AXES = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, 3], [1, 1, 0], [-1, 0.5, 0.2], [0, 3, 0]]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_volumes_agree(axis):
    x = np.stack([picture(6, 7, 2, np.float32), picture(6, 7, 2, np.float32)[::-1] / 2] * 2)
    for angle in (10, 45, 90, -60, 200):
        source = "ndd.rotate(ndd.tensor(x, layout='DHWC'), angle=a, axis=v)"
        assert_same(source, x=x, a=angle, v=axis, tol=0.02)
        assert_same(source.replace("v)", "v, fill_value=3)"), x=x, a=angle, v=axis, tol=0.02)
    assert_same(f"{source[:-1]}, keep_size=True)", x=x.astype(np.uint8), a=30, v=axis, tol=1)
    assert_same(f"{source[:-1]}, size=[3, 4, 5])", x=x[None][0], a=30, v=axis, tol=0.02)
    m = np.float32([[1, 0.1, 0, 0.5], [0, 0.9, 0.2, 0], [0.1, 0, 1, -0.5]])
    for rest in ("", ", fill_value=3", ", interp_type=types.INTERP_NN", ", inverse_map=False"):
        warp = f"ndd.warp_affine(ndd.tensor(x, layout='DHWC'), m{rest})"
        assert_same(warp, x=x, m=m, tol=0.02)
    assert_same("ndd.warp_affine(x[None, ...], m)", x=x, m=m, tol=0.02)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.rotate(ndd.batch([x, y], layout='HWC'), angle=ndd.batch([10.0, 50.0]))",
        "ndd.rotate(ndd.batch([x, y], layout='HWC'), angle=5, size=ndd.batch([[3, 4], [5, 6]]))",
        "ndd.rotate(ndd.tensor(x, layout='HWC'), angle=ndd.batch([10.0, 50.0]))",
        "ndd.warp_affine(ndd.batch([x, y], layout='HWC'), "
        "ndd.transforms.rotation(angle=ndd.batch([10.0, 50.0])))",
        "ndd.warp_affine(ndd.batch([x, y], layout='HWC'), "
        "matrix=ndd.transforms.rotation(angle=ndd.batch([10.0, 50.0])), fill_value=3)",
        "ndd.rotate(np.stack([x, x[::-1]]), angle=10)",
        "ndd.warp_affine(np.stack([x, x[::-1]]), np.float32([[1, 0, 1], [0, 1, 0]]), size=[2, 3])",
        "ndd.warp_affine(x, matrix=[1, 0, 1.5, 0, 1, 0])",
        "ndd.rotate(ndd.batch([x, y], layout='HWC'), angle=ndd.batch([10.0, 50.0]), "
        "output_dtype=ndd.float32)",
    ],
)
def test_each_sample_has_its_own_map(source):
    assert_same(source, x=picture(9, 14), y=picture(12, 5), tol=1)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_most_bytes_are_the_same(channels):
    """Pixels that differ by one have exact values halfway between two integers."""
    x = picture(120, 160, channels)
    source = "ndd.rotate(x, angle=17, keep_size=True)"
    theirs, own = oracle.run(source, x=x).samples[0], ours.run(source, x=x).samples[0]
    assert np.mean(theirs != own) < 0.02


REFUSED = [
    "ndd.rotate(np.zeros((2, 2, 1), 'u1'))",
    "ndd.rotate(np.zeros((2, 2, 1), 'u1'), angle=float('nan'))",
    "ndd.rotate(np.zeros((2, 2, 1), 'u1'), angle=float('inf'))",
    "ndd.rotate(np.zeros((2, 2), 'u1'), angle=3)",
    "ndd.rotate(ndd.tensor(np.zeros((2, 2, 1), 'u1'), layout='CHW'), angle=3).evaluate()",
    "ndd.rotate(ndd.tensor(np.zeros((2, 2, 1, 1), 'u1'), layout='DHWC'), angle=3).evaluate()",
    "ndd.rotate(ndd.tensor(np.zeros((2, 2, 1, 1), 'u1'), layout='DHWC'), angle=3, "
    "axis=[1, 2]).evaluate()",
    "np.asarray(ndd.rotate(ndd.tensor(np.zeros((2, 2, 1, 1), 'u1'), layout='DHWC'), angle=3, "
    "axis=[0, 0, 0]))",
    "ndd.warp_affine(np.zeros((2, 2, 1), 'u1'))",
    "ndd.warp_affine(np.zeros((2, 2, 1), 'u1'), matrix=[1, 0, 1])",
    "ndd.warp_affine(np.zeros((2, 2, 1), 'u1'), np.eye(3, dtype='f4'))",
    "ndd.warp_affine(np.zeros((2, 2, 1), 'u1'), np.float32([1, 0, 1, 0, 1, 0]))",
    "ndd.warp_affine(np.zeros((2, 2, 1), 'u1'), np.float32([[1, 0, 0], [1, 0, 0]]), "
    "inverse_map=False)",
    "ndd.warp_affine(ndd.tensor(np.zeros((2, 2, 1, 1), 'u1'), layout='DHWC'), "
    "np.float32([[1, 0, 0], [0, 1, 0]])).evaluate()",
    "ndd.warp_affine(np.zeros((2, 2, 1), 'u1'), matrix=[1, 0, 0, 0, 1, 0], dtype=ndd.uint8, "
    "output_dtype=ndd.uint8)",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


ANY_TYPE = "elements of every type can be interpolated"
DIFFERS = [
    *(
        Differs(
            f"ndd.warp_affine(np.array([[[2], [4]]], '{dtype}'), matrix=[1, 0, 0.5, 0, 1, 0])",
            f"ndd.tensor(np.array([[[3], [4]]], '{dtype}'), layout='HWC')",
            ANY_TYPE,
        )
        for dtype in ("i1", "u2", "u4", "u8", "i8", "f2", "f8")
    ),
    Differs(
        "ndd.warp_affine(np.array([[[2], [4]]], 'u1'), matrix=[1, 0, 0.5, 0, 1, 0], "
        "dtype=ndd.int16)",
        "ndd.tensor(np.array([[[3], [4]]], 'i2'), layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.warp_affine(np.array([[[2], [4]]], 'u1'), np.array([[1, 0, 1], [0, 1, 0]]))",
        "ndd.tensor(np.array([[[4], [4]]], 'u1'), layout='HWC')",
        "a matrix of integers is a matrix",
    ),
    Differs(
        "ndd.warp_affine(np.array([[[2.0], [4]]], 'f4'), "
        "np.float32([[1, 0, float('nan')], [0, 1, 0]]))",
        "RuntimeError",
        "there are no such places",
    ),
    Differs(
        "ndd.warp_affine(np.array([[[2], [4]]], 'u1'), np.float32([[1, 0, 1e20], [0, 1, 0]]), "
        "fill_value=3)",
        "ndd.tensor(np.array([[[3], [3]]], 'u1'), layout='HWC')",
        "far outside is outside",
    ),
    Differs(
        "ndd.rotate(np.zeros((0, 4, 1), 'u1'), angle=30)",
        "RuntimeError",
        "there is no border to go on; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.warp_affine(np.zeros((2, 2, 1), 'u1'), matrix=[1, 0, 0, 0, 1, 0], "
        "size=[1e12, 1e12]).evaluate()",
        "RuntimeError",
        "no array is that large",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
