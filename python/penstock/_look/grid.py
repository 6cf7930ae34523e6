"""Pictures of many samples in one, with captions and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock._look import font
from penstock._look.pictures import Picture

_PAPER = 255
_GAP = 4
_BOX_COLORS = ((230, 40, 40), (30, 140, 230), (40, 180, 70), (245, 170, 20), (160, 60, 200))
_WIDE = 3
"""Pictures that are this many times wider than high go below each other."""


def compose(
    pictures: Sequence[Picture],
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    boxes: Sequence[Any] | None = None,
) -> Any:
    """One picture, (height, width, 3), of all of them."""
    cells = [picture.pixels for picture in pictures]
    if boxes is not None:
        cells = [_with_boxes(*pair) for pair in zip(pictures, boxes, strict=True)]
    width = max(cell.shape[1] for cell in cells)
    height = max(cell.shape[0] for cell in cells)
    if columns is None:
        columns = 1 if width >= _WIDE * height else max(1, round(len(cells) ** 0.5 + 0.3))
    columns = min(columns, len(cells))
    caption_height = font.HEIGHT + 2 if captions is not None else 0
    rows = -(-len(cells) // columns)
    step_y, step_x = height + caption_height + _GAP, width + _GAP
    sheet = np.full((rows * step_y + _GAP, columns * step_x + _GAP, 3), _PAPER, np.uint8)
    for place, cell in enumerate(cells):
        top = place // columns * step_y + _GAP
        left = place % columns * step_x + _GAP
        h, w = cell.shape[:2]
        sheet[top : top + h, left : left + w] = cell
        if captions is not None:
            mask = font.text(captions[place], width // font.WIDTH)
            target = sheet[top + h + 1 :, left:][: mask.shape[0], : mask.shape[1]]
            target[mask] = 0
    return sheet


def _with_boxes(picture: Picture, boxes: Any) -> Any:
    pixels = picture.pixels.copy()
    height, width = pixels.shape[:2]
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    relative = boxes.size > 0 and boxes.max() <= 1 and boxes.min() >= 0
    factors = (width, height, width, height) if relative else picture.scale
    for number, box in enumerate(np.nan_to_num(boxes * factors)):
        left, right = np.clip(np.rint(box[[0, 2]]), 0, width - 1).astype(int)
        top, bottom = np.clip(np.rint(box[[1, 3]]), 0, height - 1).astype(int)
        color = _BOX_COLORS[number % len(_BOX_COLORS)]
        thick = 2 if min(height, width) >= 64 else 1
        for inset in range(thick):
            l, r = min(left + inset, right), max(right - inset, left)  # noqa: E741
            t, b = min(top + inset, bottom), max(bottom - inset, top)
            pixels[t, l : r + 1] = pixels[b, l : r + 1] = color
            pixels[t : b + 1, l] = pixels[t : b + 1, r] = color
    return pixels
