"""Contrast-limited adaptive histogram equalization."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

RNG = np.random.default_rng(12)
SIZES = [(64, 64), (50, 70), (37, 41), (7, 9), (3, 3), (1, 1), (100, 33), (2, 300)]


def image(height, width, channels):
    """Smooth, with all brightnesses, and some noise."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / (5 + c) + c) + np.cos(y / (9 - c)) for c in range(channels)]
    noise = RNG.normal(0, 20, (height, width, channels))
    return np.clip(128 + 60 * np.stack(waves, -1) + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("tiles", [(1, 1), (2, 2), (8, 8), (4, 3), (5, 7)], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_tiles(size, tiles):
    for channels in (1, 3):
        source = "ndd.clahe(x, tiles_x=a, tiles_y=b, clip_limit=2.0)"
        assert_same(source, x=image(*size, channels), a=tiles[0], b=tiles[1])


@pytest.mark.parametrize("limit", [0.0, 0.01, 0.5, 1.0, 3.3, 40.0, 1e6, -1.0])
def test_limits(limit):
    source = """
        (ndd.clahe(x, tiles_x=4, tiles_y=4, clip_limit=limit),
         ndd.clahe(x, tiles_x=4, tiles_y=4, clip_limit=limit, luma_only=False))
    """
    assert_same(source, x=image(60, 80, 3), limit=limit)


def test_all_colors():
    """Each of a million colors, in tiles of their own."""
    colors = RNG.integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    assert_same("ndd.clahe(x, tiles_x=2, tiles_y=2, clip_limit=1.5)", x=colors)


@pytest.mark.parametrize(
    "call",
    [
        "ndd.clahe(x, tiles_x=3, tiles_y=2, clip_limit=2, bins=64)",
        "ndd.clahe(ndd.batch([x, x[:7], x[:, :5].copy()], layout='HWC'), "
        "tiles_x=3, tiles_y=2, clip_limit=2)",
        "ndd.clahe(np.full((9, 9, 1), 7, 'u1'), tiles_x=3, tiles_y=2, clip_limit=2)",
        # rejected
        "ndd.clahe(x, tiles_x=2, tiles_y=2)", "ndd.clahe(x, tiles_x=2, clip_limit=2)",
        "ndd.clahe(x[0], tiles_x=2, tiles_y=2, clip_limit=2)",
        "ndd.clahe(ndd.tensor(x, layout='CHW'), tiles_x=2, tiles_y=2, clip_limit=2)",
    ],
)  # fmt: skip
def test_calls(call):
    assert_same(call, x=image(20, 30, 3))


@pytest.mark.parametrize("channels", [0, 2, 4])
def test_channels(channels):
    assert_refused(
        f"ndd.clahe(np.ones((4, 4, {channels}), 'u1'), tiles_x=2, tiles_y=2, clip_limit=2)"
    )


@pytest.mark.parametrize("dtype", ["i1", "u2", "f4", "?"])
def test_types(dtype):
    assert_refused(f"ndd.clahe(np.ones((4, 4, 1), '{dtype}'), tiles_x=2, tiles_y=2, clip_limit=2)")


DIFFERS = [
    Differs(f"ndd.clahe(np.ones((4, 4, 1), 'u1'), {arguments})", "RuntimeError", why, ask=False)
    for arguments, why in [
        ("tiles_x=0, tiles_y=2, clip_limit=2", "DALI crashes"),
        ("tiles_x=-1, tiles_y=2, clip_limit=2", "a number of tiles is positive"),
        ("tiles_x=2, tiles_y=2**40, clip_limit=2", "so many tiles are a mistake"),
        ("tiles_x=2, tiles_y=2, clip_limit=float('nan')", "a limit is a number"),
    ]
] + [
    Differs(
        "ndd.clahe(np.ones((0, 4, 1), 'u1'), tiles_x=2, tiles_y=2, clip_limit=2)",
        "ndd.tensor(np.ones((0, 4, 1), 'u1'), layout='HWC')",
        "nothing to equalize is nothing equalized",
        ask=False,
    )
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
