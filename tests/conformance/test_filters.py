"""Filters: Gaussian blur, Laplacian, user-defined filters."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

RNG = np.random.default_rng(5)
NOISE = RNG.integers(0, 256, (37, 53, 3), dtype=np.uint8)

LAYOUTS = [
    "HWC", "CHW", "HW", "W", "FHWC", "DHWC", "FCHW", "CDHW", "FDHWC", "FCDHW", "XYZ", "CW", "FHW",
    "DHW", "CFHW", "CFW", None,
]  # fmt: skip


def cube(layout: str | None, dtype: str = "f4") -> np.ndarray:
    rank = len(layout or "HWC")
    shape = (3, 4, 5, 6, 7)[:rank]
    return (np.arange(np.prod(shape)) ** 2 % 113).reshape(shape).astype(dtype)


# DALI rounds weights to f32 and sums in another order.
NEARLY = 2e-4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_blur_follows_the_layout(layout):
    source = """
        x = ndd.tensor(x, layout=l)
        ndd.gaussian_blur(x, window_size=3), ndd.gaussian_blur(x, sigma=1.3)
    """
    assert_same(source, tol=NEARLY, x=cube(layout), l=layout)


@pytest.mark.parametrize(
    "arguments",
    [
        "sigma=0.4", "sigma=1.0", "sigma=3.7", "window_size=1", "window_size=3", "window_size=21",
        "window_size=101", "sigma=[1.0, 0.5]", "window_size=[3, 7]", "window_size=[1, 5]",
        "window_size=3, sigma=2.0", "window_size=[3, 9], sigma=[0.7, 3.0]", "window_size=3.7",
        "sigma=np.array([1.0, 0.5])", "sigma=ndd.tensor([0.5, 2.0])", "sigma=ndd.tensor(1.5)",
        "sigma=1e-8", "sigma=[1.0]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_blur_of_images(dtype, arguments):
    # Halves may be rounded either way.
    tol = 1.0 if dtype == "u1" else NEARLY
    source = f"ndd.gaussian_blur(ndd.tensor(x, layout='HWC'), {arguments})"
    assert_same(source, tol=tol, x=NOISE.astype(dtype))


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (2, 2), (3, 50), (40, 1)])
def test_blur_of_odd_sizes(size, layout):
    x = NOISE[: size[0], : size[1]].astype("f4")
    x = np.ascontiguousarray(x.transpose(2, 0, 1) if layout == "CHW" else x)
    assert_same("ndd.gaussian_blur(ndd.tensor(x, layout=l), sigma=2.0)", tol=NEARLY, x=x, l=layout)


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
)
def test_blur_of_types(dtype):
    source = """
        x = ndd.tensor(x, layout="HWC")
        ndd.gaussian_blur(x, sigma=1.0), ndd.gaussian_blur(x, sigma=1.0, dtype=ndd.float32)
    """
    tol = 1.0 if dtype[0] in "iu" else 0.1 if dtype == "f2" else NEARLY
    assert_same(source, tol=tol, x=cube("HWC", dtype))


def test_blur_differs_from_sample_to_sample():
    samples = [NOISE[:n, : 2 * n].astype("f4") for n in (3, 5, 9)]
    source = """
        x = ndd.batch([a, b, c], layout="HWC")
        (ndd.gaussian_blur(x, sigma=ndd.batch([0.5, 1.0, 2.0])),
         ndd.gaussian_blur(x, sigma=ndd.batch([[0.5, 1.0], [1.0, 2.0], [2.0, 0.3]])),
         ndd.gaussian_blur(x, window_size=ndd.batch([3, 1, 7])),
         ndd.gaussian_blur(x, window_size=ndd.batch([[3, 1], [1, 5], [7, 9]]), sigma=1.0))
    """
    assert_same(source, tol=NEARLY, **dict(zip("abc", samples, strict=True)))


@pytest.mark.parametrize(
    "arguments",
    [
        "", "sigma=0", "window_size=0", "window_size=4", "window_size=-3", "sigma=-1.0",
        "sigma=float('nan')", "sigma=[0.0, 1.0]", "window_size=[3, 0]", "sigma=[1.0, 0.5, 1.0]",
        "sigma=1.0, dtype=ndd.bool", "sigma=1.0, foo=1",
    ],
)  # fmt: skip
def test_blur_refuses(arguments):
    assert_same(f"ndd.gaussian_blur(ndd.tensor(x, layout='HWC'), {arguments})", x=cube("HWC"))


@pytest.mark.parametrize("layout", ["C", "F", "FC"])
def test_blur_needs_an_axis(layout):
    assert_same("ndd.gaussian_blur(ndd.tensor(x, layout=l), sigma=1.0)", x=cube(layout), l=layout)


def test_booleans_are_not_blurred():
    assert_same("ndd.gaussian_blur(np.zeros((2, 2), '?'), sigma=1.0)")
    assert_same("ndd.laplacian(np.zeros((2, 2), '?'))")
    assert_same("ndd.filter(np.zeros((2, 2), '?'), np.ones((1, 1), 'f4'))")


SPOT = np.pad(np.float32([[1]]), 5)


@pytest.mark.parametrize(
    "arguments",
    [
        "", "window_size=5", "window_size=[3, 5]", "window_size=[7, 3]", "smoothing_size=1",
        "smoothing_size=3, window_size=5", "smoothing_size=[1, 3]", "smoothing_size=[5, 3]",
        "scale=2.0", "scale=[1.0, 0.5]", "normalized_kernel=True",
        "window_size=7, normalized_kernel=True",
        "window_size=3, smoothing_size=5, normalized_kernel=True",
        "window_size=[3, 5], normalized_kernel=True",
        "window_size=[5, 3], smoothing_size=[1, 7], normalized_kernel=True",
        "scale=ndd.tensor([1.0, 0.5])", "scale=float('nan')",
        # rejected
        "normalized_kernel=True, scale=3.0", "window_size=1", "window_size=4", "window_size=33",
        "window_size=-3", "smoothing_size=2", "smoothing_size=0", "smoothing_size=33",
        "scale=[1.0, 2.0, 3.0]", "window_size=[3, 3, 3]",
    ],
)  # fmt: skip
def test_laplacian(arguments):
    assert_same(f"ndd.laplacian(x, {arguments})", tol=1e-3, x=SPOT)


@pytest.mark.parametrize("layout", [x for x in LAYOUTS if x not in ("W", "CW", "CFW")])
def test_laplacian_follows_the_layout(layout):
    source = "ndd.laplacian(ndd.tensor(x, layout=l), normalized_kernel=True)"
    assert_same(source, tol=1e-3, x=cube(layout), l=layout)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4"])
def test_laplacian_of_types(dtype):
    source = "ndd.laplacian(x, scale=0.25), ndd.laplacian(x, dtype=ndd.float32)"
    assert_same(source, tol=1.0 if dtype[0] in "iu" else 1e-3, x=cube("HW", dtype))


def test_laplacian_differs_from_sample_to_sample():
    source = """
        x = ndd.batch([x, x], layout="HW")
        (ndd.laplacian(x, window_size=ndd.batch([3, 5])),
         ndd.laplacian(x, scale=ndd.batch([1, 2.0])),
         ndd.laplacian(x, window_size=5, smoothing_size=ndd.batch([[1, 3], [5, 7]])))
    """
    assert_same(source, tol=1e-3, x=SPOT)


KERNEL = np.float32([[1, 2, 3], [0, -0.5, 1]])
BORDERS = ["reflect_101", "reflect_1001", "wrap", "clamp", "constant", "reflect"]


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC", "FCHW", "FHW"])
@pytest.mark.parametrize("border", BORDERS)
def test_filter_borders(border, layout):
    source = """
        x = ndd.tensor(x, layout=l)
        ndd.filter(x, k, border=b), ndd.filter(x, k, border=b, anchor=[1, 0])
    """
    assert_same(source, tol=1e-3, x=cube(layout), k=KERNEL, l=layout, b=border)


@pytest.mark.parametrize(
    "arguments",
    [
        "mode='valid'", "anchor=0", "anchor=[0, 1]", "anchor=[1, 2]", "anchor=[-1, 0]",
        "anchor=ndd.tensor([0, 2])", "mode='valid', anchor=[1, 1]",
        # rejected
        "anchor=[2, 0]", "anchor=-2", "border='foo'", "mode='foo'", "anchor=[0, 0, 0]",
    ],
)  # fmt: skip
def test_filter(arguments):
    assert_same(f"ndd.filter(x, k, {arguments})", tol=1e-3, x=cube("HW"), k=KERNEL)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4"])
def test_filter_of_types(dtype):
    # DALI rounds halves to even.
    x = cube("HW", dtype)
    assert_same("ndd.filter(x, k)", tol=1.0 if dtype != "f4" else 1e-3, x=x, k=KERNEL)
    assert_same("ndd.filter(x, k, dtype=ndd.float32)", tol=1e-3, x=x, k=KERNEL)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.filter(x, k, np.float32(5), border='constant')",
        "ndd.filter(x, np.ones((9, 9), 'f4')), ndd.filter(x, np.ones((1, 1), 'f4'))",
        "ndd.filter(x, np.ones((4, 6), 'f4'), border='wrap')",
        "ndd.filter(x[:1, :1], np.ones((3, 3), 'f4'))",
        "x = ndd.batch([x, x[:2]])\nk = ndd.batch([k, k[:1]])\nndd.filter(x, k)",
        "ndd.filter(ndd.batch([x, x]), k, anchor=ndd.batch([[0, 0], [1, 2]]))",
        # rejected
        "ndd.filter(x, np.zeros((9, 9), 'f4'), mode='valid')",
        "ndd.filter(x, np.zeros((0, 3), 'f4'))",
        "ndd.filter(x, np.zeros((3,), 'f4'))",
        "ndd.filter(x, np.zeros((1, 2, 3), 'f4'))",
        "ndd.filter(x)",
    ],
)
def test_filter_calls(source):
    assert_same(source, tol=1e-3, x=cube("HW"), k=KERNEL)


def test_infinitely_wide_blur_is_refused():
    assert_refused("ndd.gaussian_blur(np.zeros((2, 2), 'f4'), sigma=float('inf'))")


MORE = "DALI has no code for this"
DIFFERS = [
    Differs(
        "ndd.gaussian_blur(np.zeros((0, 3), 'f4'), sigma=1.0)",
        "ndd.tensor(np.zeros((0, 3), 'f4'))",
        "nothing to blur is nothing blurred",
        ask=False,
    ),
    Differs(
        "ndd.gaussian_blur(ndd.tensor(np.zeros((2, 3, 0), 'f4'), layout='HWC'), sigma=1.0)",
        "ndd.tensor(np.zeros((2, 3, 0), 'f4'), layout='HWC')",
        "nothing to blur is nothing blurred",
        ask=False,
    ),
    Differs(
        "ndd.gaussian_blur(ndd.tensor(np.float32([[1, 1], [4, 4]]), layout='WC'), window_size=1)",
        "ndd.tensor(np.float32([[1, 1], [4, 4]]), layout='WC')",
        "any axis but those of channels and frames is spatial",
    ),
    Differs(
        "ndd.gaussian_blur(ndd.tensor(np.ones((2, 2, 2), 'f4'), layout='HCW'), window_size=1)",
        "ndd.tensor(np.ones((2, 2, 2), 'f4'), layout='HCW')",
        "channels may be anywhere",
    ),
    Differs(
        "ndd.gaussian_blur(np.float32([[1.6]]), window_size=3, dtype=ndd.uint8)",
        "ndd.tensor(np.uint8([[2]]))",
        "any type may be blurred to any other",
    ),
    Differs(
        "ndd.gaussian_blur(ndd.tensor([1.0, 2.0]), sigma=1e6)",
        "RuntimeError",
        "a window of millions of pixels is a mistake",
        ask=False,
    ),
    Differs("ndd.gaussian_blur(np.float32(1), sigma=1.0)", "RuntimeError", MORE, ask=False),
    Differs(
        "ndd.laplacian(np.float64([[0, 1, 0]]), smoothing_size=1)",
        "ndd.tensor(np.float64([[2, -2, 2]]))",
        MORE,
    ),
    Differs(
        "ndd.laplacian(np.float32([0, 0, 1, 0, 0]))",
        "ndd.tensor(np.float32([0, 1, -2, 1, 0]))",
        MORE,
    ),
    Differs(
        "ndd.filter(np.arange(4, dtype='i4'), np.float32([1, 1, 1]), mode='valid')",
        "ndd.tensor(np.int32([3, 6]))",
        MORE,
    ),
    Differs(
        "ndd.filter(np.ones((2, 3, 3), 'f4'), np.ones((2, 2, 2), 'i4'), mode='valid')",
        "ndd.tensor(np.full((1, 2, 2), 8, 'f4'))",
        MORE,
    ),
    Differs(
        "ndd.filter(np.ones((1, 2), 'f4'), np.ones((1, 3), 'f4'), 5, border='constant')",
        "ndd.tensor(np.float32([[7, 7]]))",
        "a fill value of any type",
    ),
    Differs(
        "ndd.filter(np.zeros((0, 2), 'f4'), np.ones((1, 3), 'f4'))",
        "ndd.tensor(np.zeros((0, 2), 'f4'))",
        "nothing to filter is nothing filtered",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
