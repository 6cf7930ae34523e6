"""Axes of more elements than single precision can count: 2^24 and some more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.stress.fresh import check_fresh

import penstock as ndd

pytestmark = pytest.mark.heavy

LENGTH = (1 << 24) + 1000

IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
SHIFT = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]


def row(dtype: Any = np.uint8, height: int = 2) -> np.ndarray:
    """A wide image whose neighbours differ."""
    numbers = np.arange(height * LENGTH, dtype=np.uint32).reshape(height, LENGTH, 1)
    return (numbers * np.uint32(2654435761) >> np.uint32(25)).astype(dtype)


def image(array: np.ndarray) -> Any:
    return ndd.as_tensor(array, layout="HWC")


def warp(array: np.ndarray, **args: Any) -> np.ndarray:
    return np.asarray(ndd.warp_affine(image(array), **args))


def warps_keep_all_pixels() -> None:
    for dtype, to in [("u1", ndd.uint8), ("u1", ndd.float32), ("f4", ndd.float32)]:
        for interpolation in (ndd.types.INTERP_NN, ndd.types.INTERP_LINEAR):
            args = {"dtype": to, "interp_type": interpolation}
            wide = row(dtype)
            assert (warp(wide, matrix=IDENTITY, **args) == wide).all(), (dtype, to, interpolation)
            moved = warp(wide, matrix=SHIFT, inverse_map=True, fill_value=7, **args)
            assert (moved[:, :-1] == wide[:, 1:]).all(), (dtype, to, interpolation)
            assert (moved[:, -1] == 7).all(), (dtype, to, interpolation)


def warps_of_tall_images() -> None:
    tall = row().transpose(1, 0, 2).copy()
    for to in (ndd.uint8, ndd.float32):
        assert (warp(tall, matrix=IDENTITY, dtype=to) == tall).all()


def small_images_become_wide() -> None:
    small = np.arange(12, dtype=np.uint8).reshape(2, 6, 1)
    to_small = [[6 / LENGTH, 0.0, 0.0], [0.0, 1.0, 0.0]]
    made = warp(small, matrix=to_small, size=[2, LENGTH], inverse_map=True)
    assert made[0, -1, 0] == 5
    assert made[1, 0, 0] == 6
    assert (np.diff(made[0, :, 0].astype(int)) >= 0).all()


def rotations_keep_all_pixels() -> None:
    wide = row()
    for to in (ndd.uint8, ndd.float32):
        turned = np.asarray(ndd.rotate(image(wide), angle=180.0, keep_size=True, dtype=to))
        assert (turned == wide[::-1, ::-1]).all(), to


def odd_matrices_stay_inside() -> None:
    wide = row(height=1)
    for number in (1e-300, 1e300, 1e20, -1e20, 3e38, 1e9):
        for at in range(6):
            matrix = np.array(IDENTITY).ravel()
            matrix[at] = number
            for to in (ndd.uint8, ndd.float32):
                small = wide[:, : 1 << 10]
                warp(small, matrix=matrix.reshape(2, 3).tolist(), inverse_map=True, dtype=to)
            if at == 2:
                warp(wide, matrix=matrix.reshape(2, 3).tolist(), inverse_map=True)
    for number in (float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="matrix"):
            warp(wide[:, :9], matrix=[[number, 0.0, 0.0], [0.0, 1.0, 0.0]])


def crops_reach_the_end() -> None:
    wide = row(height=1)
    for length in (10, LENGTH - 3):
        crop = ndd.crop(image(wide), crop_h=1, crop_w=length, crop_pos_x=1.0, crop_pos_y=0.0)
        assert (np.asarray(crop) == wide[:, -length:]).all()
    all_of_it = ndd.slice(image(wide), rel_start=[0.0], rel_end=[1.0], axes=[1])
    assert (np.asarray(all_of_it) == wide).all()


def erasing_is_exact() -> None:
    wide = row(height=1)
    erased = ndd.erase(image(wide), anchor=[LENGTH - 5.0], shape=[3.0], axis_names="W")
    expected = wide.copy()
    expected[:, -5:-2] = 0
    assert (np.asarray(erased) == expected).all()


def pasting_is_exact() -> None:
    wide = row(height=1)
    pasted = np.asarray(ndd.paste(image(wide), ratio=1.0, fill_value=0))
    assert (pasted == wide).all()


def resizing_by_neighbours_is_exact() -> None:
    wide = row(height=1)
    half = ndd.resize(image(wide), size=[1, LENGTH // 2], interp_type=ndd.types.INTERP_NN)
    assert (np.asarray(half)[0, :, 0] == wide[0, 1::2, 0]).all()
    end = [1.0, float(LENGTH)]
    start = [0.0, LENGTH - 10.0]
    region = {"roi_start": start, "roi_end": end, "interp_type": ndd.types.INTERP_NN}
    assert (np.asarray(ndd.resize(image(wide), size=[1, 10], **region)) == wide[:, -10:]).all()


CASES: list[Callable[[], None]] = [
    warps_keep_all_pixels,
    warps_of_tall_images,
    small_images_become_wide,
    rotations_keep_all_pixels,
    odd_matrices_stay_inside,
    crops_reach_the_end,
    erasing_is_exact,
    pasting_is_exact,
    resizing_by_neighbours_is_exact,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_long_axes(case: Callable[[], None]) -> None:
    # In a process of its own: what reads outside of an image may end it.
    check_fresh(case, timeout=100)
