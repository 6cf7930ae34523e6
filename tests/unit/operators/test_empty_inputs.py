"""Sequences without frames, images without pixels, batches without samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.calls import CALLS

import penstock as ndd
from penstock.errors import InternalError

IDENTITY = np.eye(2, 3, dtype=np.float32)
NO_MATRICES = np.zeros((0, 2, 3), np.float32)

INPUTS = {
    "no frames": lambda: ndd.tensor(np.zeros((0, 4, 5, 3), np.uint8), layout="FHWC"),
    "no rows": lambda: ndd.tensor(np.zeros((0, 5, 3), np.uint8), layout="HWC"),
    "no columns": lambda: ndd.tensor(np.zeros((4, 0, 3), np.float32), layout="HWC"),
    "no channels": lambda: ndd.tensor(np.zeros((4, 5, 0), np.uint8), layout="HWC"),
    "no planes": lambda: ndd.tensor(np.zeros((0, 4, 5), np.int16), layout="CHW"),
    "no elements": lambda: ndd.tensor(np.zeros((0,), np.float64)),
    "no samples": lambda: ndd.batch(np.zeros((0, 4, 5, 3), np.uint8), layout="HWC"),
    "frames without rows": lambda: ndd.tensor(np.zeros((2, 0, 5, 3), np.uint8), layout="FHWC"),
}


@pytest.fixture(autouse=True)
def _folder_for_files(monkeypatch, tmp_path):
    """Among all operators, `dump_image` writes into the current folder."""
    monkeypatch.chdir(tmp_path)


def _read(made: Any) -> None:
    for value in made if isinstance(made, tuple) else (made,):
        if isinstance(value, (ndd.Tensor, ndd.Batch)):
            value.evaluate()


@pytest.mark.parametrize("kind", INPUTS)
def test_operators_take_or_refuse_what_is_empty(kind: str) -> None:
    taken = 0
    for call in CALLS.values():
        try:
            _read(call(*[INPUTS[kind]()] * len(call.inputs)))
            taken += 1
        except (ValueError, TypeError, RuntimeError) as error:
            if isinstance(error, InternalError):
                raise
    assert taken > 10


@pytest.mark.parametrize(
    "call",
    [
        lambda image, frames: ndd.warp_affine(image, ndd.per_frame(NO_MATRICES)),
        lambda image, frames: ndd.warp_affine(image, matrix=ndd.per_frame(NO_MATRICES)),
        lambda image, frames: ndd.warp_affine(frames, ndd.per_frame(NO_MATRICES)),
        lambda image, frames: ndd.rotate(frames, angle=ndd.per_frame(np.zeros(0, np.float32))),
    ],
)
def test_arguments_for_no_frames_are_refused(call: Callable[[Any, Any], Any]) -> None:
    image = ndd.tensor(np.zeros((4, 5, 3), np.uint8), layout="HWC")
    frames = ndd.tensor(np.zeros((0, 4, 5, 3), np.uint8), layout="FHWC")
    with pytest.raises(ValueError, match="no frame"):
        call(image, frames).evaluate()


def test_sequences_without_frames_stay_so() -> None:
    frames = ndd.tensor(np.zeros((0, 4, 5, 3), np.uint8), layout="FHWC")
    assert ndd.warp_affine(frames, matrix=IDENTITY).shape == (0, 4, 5, 3)
    assert ndd.warp_affine(frames, IDENTITY, size=[2, 3]).shape == (0, 2, 3, 3)


def test_extents_of_each_frame_are_kept_where_frames_differ_in_arguments() -> None:
    frames = ndd.tensor(np.zeros((3, 4, 5, 3), np.uint8), layout="FHWC")
    sizes = ndd.per_frame(np.full(3, 2, np.float32))
    _, extents = ndd.resize(frames, resize_x=sizes, resize_y=2, save_attrs=True)
    assert np.asarray(extents).tolist() == [[4, 5]] * 3
    _, extents = ndd.resize(frames, size=[2, 2], save_attrs=True)
    assert np.asarray(extents).tolist() == [4, 5]
