"""Optical flow."""

from __future__ import annotations

from typing import Annotated

from penstock import types
from penstock._errors import messages
from penstock._operators.constraints import Between, Elements, OneOf
from penstock._operators.definition import Data, Result, operator
from penstock._operators.deprecated import Deprecated
from penstock._values.dtype import float32, uint8


@operator(layouts="FHWC")
def optical_flow(
    input_0: Annotated[Data, Elements("uint8", uint8)],
    input_1: Annotated[Data, Elements("float32", float32)] = None,
    *,
    enable_external_hints: bool = False,
    enable_temporal_hints: bool = False,
    hint_grid: int = 4,
    image_type: Annotated[int, OneOf(types.RGB, types.BGR, types.GRAY)] = types.RGB,
    output_format: Annotated[int, Deprecated("output_grid")] | None = None,
    output_grid: int = 4,
    preset: Annotated[float, Between(0, 1)] = 0.0,
) -> Result:
    """Compute the optical flow between consecutive frames.

    For a sequence of F frames, the result has F - 1 frames with a vector (x, y) for each cell of
    `output_grid` x `output_grid` pixels: the motion from a frame to the next one. Vectors are in
    pixels of the input, whatever the grid.

    DALI uses the optical flow hardware of some GPUs. Penstock uses dense inverse search with
    variational refinement, on the CPU.

    Args:
        input_0: Sequences of frames.
        input_1: External hints, if `enable_external_hints` is True.
        enable_external_hints: Whether the search starts from the vectors of the second input: a
            sequence like the result, with a vector for each cell of `hint_grid` x `hint_grid`
            pixels.
        enable_temporal_hints: Whether the search starts from the vectors of the previous frame.
        hint_grid: The cell size of the hints: 1, 2, 4 or 8.
        image_type: The color space of the frames: `types.RGB`, `types.BGR` or `types.GRAY`.
        output_format: Deprecated alias of `output_grid`.
        output_grid: The cell size of the result: 1, 2, 4 or 8.
        preset: From 0, the most accurate, to 1, the fastest. DALI accepts 0, 0.5 and 1.

    Example:
        >>> import numpy as np
        >>> y, x = np.mgrid[:64, :64]
        >>> frame = (128 + 60 * np.sin(x / 5) * np.cos(y / 7)).astype("uint8")[..., None]
        >>> video = np.stack([frame, np.roll(frame, 2, axis=1)])
        >>> flow = ndd.optical_flow(video, image_type=ndd.types.GRAY)
        >>> flow.shape
        (1, 16, 16, 2)
        >>> np.asarray(flow)[0, 8, 8].round().astype(int).tolist()
        [2, 0]
    """
    if enable_external_hints and input_1 is None:
        raise messages.missing_input("optical_flow", "input_1")
    given = (
        {"output_grid": output_grid} if output_format is None else {"output_grid": output_format}
    )
    for name, grid in {**given, "hint_grid": hint_grid}.items():
        if grid not in (1, 2, 4, 8):
            raise messages.bad_argument("optical_flow", name, f"must be 1, 2, 4 or 8, got {grid}")
    return Result(float32, 4, "FHWC", **given)
