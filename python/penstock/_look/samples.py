"""What there is to see of a tensor or batch: arrays of its samples, labels, boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._values.dtype import BY_CODE
from penstock._values.tensor import array_of

if TYPE_CHECKING:
    from penstock._values.array import Array


def arrays(data: Array, most: int | None = None) -> list[Any]:
    """The samples as NumPy arrays; waits for them."""
    data = data.cpu().evaluate()
    value = data._value
    count = len(value) if most is None else min(len(value), most)
    dtype = BY_CODE[value.dtype]
    return [array_of(value.memory(index, False), dtype) for index in range(count)]


def is_ready(data: Array, seconds: float) -> bool:
    """Whether the data is there, or is within that time."""
    return data.cpu()._value.wait_at_most(seconds)


def captions(labels: Any, count: int) -> list[str]:
    """A text for each sample."""
    found = [_caption(label) for label in _rows(labels)]
    if len(found) != count:
        raise ValueError(f"save_grid: there are {count} samples, but {len(found)} `labels`.")
    return found


def _caption(label: Any) -> str:
    if isinstance(label, str):
        return label
    array = np.asarray(label)
    if array.dtype.kind == "f":
        return " ".join(f"{number:.4g}" for number in array.ravel())
    return " ".join(map(str, array.ravel().tolist()))


def corners(boxes: Any, count: int, box_format: str) -> list[Any]:
    """Boxes of each sample as rows of left, top, right, bottom."""
    if box_format not in ("ltrb", "xywh"):
        raise ValueError(f'save_grid: `box_format` must be "ltrb" or "xywh", got {box_format!r}.')
    found = [np.asarray(row, np.float64) for row in _rows(boxes)]
    if len(found) != count:
        raise ValueError(
            f"save_grid: there are {count} samples, but `boxes` has boxes for {len(found)}."
        )
    for number, row in enumerate(found):
        if row.size % 4 or (row.size and row.shape[-1] != 4):
            raise ValueError(
                f"save_grid: `boxes` of sample {number} must have the shape (boxes, 4), got "
                f"{row.shape}."
            )
    found = [row.reshape(-1, 4) for row in found]
    if box_format == "xywh":
        found = [np.concatenate([row[:, :2], row[:, :2] + row[:, 2:]], 1) for row in found]
    return found


def _rows(given: Any) -> Sequence[Any]:
    from penstock._values.array import Array

    if isinstance(given, Array):
        return arrays(given) if given._value.batch else list(arrays(given)[0])
    return list(given)
