"""Crops, warps and erased regions on images of a typical size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.calls import Operator, row
from benchmarks.harness import ORDER_OF_SUMS, Case, Contender, Family, Prepare, Ready, described
from benchmarks.large import images

ABOUT = """\
Batches of 64 images of 375x500x3 in memory of the library, in eager mode: two calls, then a wait
for both results, divided by two. *crop_mirror_normalize* crops to 224x224 and gives float32 CHW,
unless the row says otherwise.
"""

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
MATRIX = np.float32([[0.9, 0.1, 3], [-0.1, 0.9, 4]])
SIZE = [224, 224]

OPERATORS: dict[str, Operator] = {
    "crop": lambda ndd, x: ndd.crop(x, crop=[300, 400]),
    "crop_mirror_normalize": lambda ndd, x: ndd.crop_mirror_normalize(
        x, crop=SIZE, mean=MEAN, std=STD
    ),
    "crop_mirror_normalize, mirrored": lambda ndd, x: ndd.crop_mirror_normalize(
        x, crop=SIZE, mean=MEAN, std=STD, mirror=1
    ),
    "crop_mirror_normalize, HWC": lambda ndd, x: ndd.crop_mirror_normalize(
        x, crop=SIZE, mean=MEAN, std=STD, output_layout="HWC"
    ),
    "crop_mirror_normalize, padded HWC": lambda ndd, x: ndd.crop_mirror_normalize(
        x, crop=SIZE, mean=MEAN, std=STD, output_layout="HWC", pad_output=True
    ),
    "crop_mirror_normalize, float16": lambda ndd, x: ndd.crop_mirror_normalize(
        x, crop=SIZE, mean=MEAN, std=STD, dtype=ndd.float16
    ),
    "erase": lambda ndd, x: ndd.erase(x, anchor=[50, 60], shape=[200, 200]),
    "grid_mask": lambda ndd, x: ndd.grid_mask(x, tile=50, angle=0.3),
    "rotate": lambda ndd, x: ndd.rotate(x, angle=20, keep_size=True, fill_value=0),
    "rotate, nearest": lambda ndd, x: ndd.rotate(x, angle=20, keep_size=True, interp_type=0),
    "warp_affine": lambda ndd, x: ndd.warp_affine(x, MATRIX),
}
BYTES: dict[str, Operator] = {"paste": lambda ndd, x: ndd.paste(x, ratio=1.5, fill_value=3)}


# DALI accumulates coordinates along a row, which drifts by thousandths of a pixel.
DRIFTING = {"rotate": 5e-3, "warp_affine": 5e-3}
# On noise, the last bit of a coordinate decides between two very different pixels.
BETWEEN_PIXELS = {"rotate, nearest"}


def cases() -> Iterator[Case]:
    for dtype, operators in (("uint8", OPERATORS | BYTES), ("float32", OPERATORS)):
        for name, operator in operators.items():
            prepare = row(operator, images(dtype), calls=2)
            if name in BETWEEN_PIXELS:
                prepare = without_values(prepare)
            tolerance = DRIFTING.get(name, ORDER_OF_SUMS)
            yield Case(f"warp/{dtype}/{name}", prepare, 7, rounding=1, tolerance=tolerance)


def without_values(prepare: Prepare) -> Prepare:
    """Compare only the shapes and types of the results."""

    def prepared(side: Contender) -> Ready:
        ready = prepare(side)
        return Ready(ready.measure, described(ready.results))

    return prepared


FAMILY = Family("warp", "Crop, rotate and warp", ABOUT, cases)
