"""Resize: filters, types and scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Operator, row
from benchmarks.harness import ORDER_OF_SUMS, Case, Family, Library
from benchmarks.large import images

ABOUT = """\
Batches in memory of the library, in eager mode: two calls, then a wait for both results, divided
by two. *uint8* and *float32*: 64 images of 375x500x3 to 224x224. *down*: 4 images of 3000x4000x3 to
224x224. *up*: 64 images of 224x224x3 to 500x500. uint8 results may differ from DALI's by 1.
"""

FILTERS = {"NN": 0, "LINEAR": 1, "CUBIC": 2, "LANCZOS3": 3, "TRIANGULAR": 4}


def cases() -> Iterator[Case]:
    for name, operator, data in (
        *(
            (f"{dtype}/{name}", resize(224, code), images(dtype))
            for dtype in ("uint8", "float32")
            for name, code in FILTERS.items()
        ),
        ("uint8/crop and mirror", crop, images("uint8")),
        ("down/LINEAR", resize(224, 1), noise(4, 3000, 4000)),
        ("up/LINEAR", resize(500, 1), noise(64, 224, 224)),
        ("up/CUBIC", resize(500, 2), noise(64, 224, 224)),
    ):
        prepare = row(operator, data, calls=2)
        yield Case(f"resize/{name}", prepare, 7, rounding=1, tolerance=ORDER_OF_SUMS)


def resize(size: int, code: int) -> Operator:
    return lambda ndd, x: ndd.resize(x, size=[size, size], interp_type=code)


def crop(ndd: Library, x: Any) -> Any:
    return ndd.resize_crop_mirror(x, resize_shorter=256, crop=[224, 224], mirror=1)


def noise(count: int, height: int, width: int) -> Callable[[Library], Any]:
    def make(library: Library) -> Any:
        values = np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8)
        return library.batch(list(values), layout="HWC")

    return make


FAMILY = Family("resize", "Resize", ABOUT, cases)
