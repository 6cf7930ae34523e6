"""Resizing: filters, types and scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Operator, row
from benchmarks.harness import Case, Contender, Family, Library, Prepare, Ready
from benchmarks.large import images

ABOUT = """\
Batches that the library owns, in mode eager: two calls, then a wait for both results, divided by
two. *uint8* and *float32*: 64 images of 375x500x3 to 224x224. *down*: 4 images of 3000x4000x3 to
224x224. *up*: 64 images of 224x224x3 to 500x500. Bytes may differ from the original's by 1.
"""

FILTERS = {"NN": 0, "LINEAR": 1, "CUBIC": 2, "LANCZOS3": 3, "TRIANGULAR": 4}


def cases() -> Iterator[Case]:
    for dtype in ("uint8", "float32"):
        for name, code in FILTERS.items():
            prepare = near(resize(224, code), images(dtype))
            yield Case(f"resize/{dtype}/{name}", prepare, 7)
    yield Case("resize/uint8/crop and mirror", near(crop, images("uint8")), 7)
    yield Case("resize/down/LINEAR", near(resize(224, 1), squares(4, 3000, 4000)), 7)
    yield Case("resize/up/LINEAR", near(resize(500, 1), squares(64, 224, 224)), 7)
    yield Case("resize/up/CUBIC", near(resize(500, 2), squares(64, 224, 224)), 7)


def resize(size: int, code: int) -> Operator:
    return lambda ndd, x: ndd.resize(x, size=[size, size], interp_type=code)


def crop(ndd: Library, x: Any) -> Any:
    return ndd.resize_crop_mirror(x, resize_shorter=256, crop=[224, 224], mirror=1)


def squares(count: int, height: int, width: int) -> Callable[[Library], Any]:
    def make(library: Library) -> Any:
        values = np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8)
        return library.batch(list(values), layout="HWC")

    return make


def near(operator: Operator, data: Callable[[Library], Any]) -> Prepare:
    """Bytes may be one off, which the comparison of results doesn't know; floats are compared."""

    def prepare(side: Contender) -> Ready:
        ready = row(operator, data, calls=2)(side)
        results = [
            np.round(x / 8) if x.dtype == np.float32 else x[:1, :1, :0] for x in ready.results
        ]
        return Ready(ready.turn, results)

    return prepare


FAMILY = Family("resize", ABOUT, cases)
