"""Windows, warps and patches of images of a usual size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.calls import Operator, row
from benchmarks.harness import Case, Contender, Family, Prepare, Ready
from benchmarks.large import images

ABOUT = """\
Batches of 64 images of 375x500x3 that the library owns, in mode eager: two calls, then a wait for
both results, divided by two. *crop_mirror_normalize* takes 224x224 to float32 CHW.
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
}
WARPS: dict[str, Operator] = {
    "rotate": lambda ndd, x: ndd.rotate(x, angle=20, keep_size=True, fill_value=0),
    "rotate, nearest": lambda ndd, x: ndd.rotate(x, angle=20, keep_size=True, interp_type=0),
    "warp_affine": lambda ndd, x: ndd.warp_affine(x, MATRIX),
}


def cases() -> Iterator[Case]:
    for dtype in ("uint8", "float32"):
        for name, operator in OPERATORS.items():
            yield Case(f"warp/{dtype}/{name}", row(operator, images(dtype), calls=2), 7)
        for name, operator in WARPS.items():
            yield Case(f"warp/{dtype}/{name}", unequal(row(operator, images(dtype), calls=2)), 7)
    paste: Operator = lambda ndd, x: ndd.paste(x, ratio=1.5, fill_value=3)  # noqa: E731
    yield Case("warp/uint8/paste", row(paste, images("uint8"), calls=2), 7)


def unequal(prepare: Prepare) -> Prepare:
    """Without the comparison of results: the last bit is the contenders' own. (Conformance tests
    say how far apart they may be.)
    """
    return lambda side: ready_only(prepare, side)


def ready_only(prepare: Prepare, side: Contender) -> Ready:
    return Ready(prepare(side).turn)


FAMILY = Family("warp", ABOUT, cases)
