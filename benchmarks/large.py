"""The operators of `calls` on images of a typical size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import OPERATORS, Operator, chain, row
from benchmarks.harness import Case, Family, Library

ABOUT = """\
Batches of 64 images of 375x500x3 in memory of the library, in eager mode: two calls, then a wait
for both results, divided by two. *cast* is to float32, of float32 images to uint8. *slice* takes
two rows of each image, *crop* is `batch.slice[90:285, 120:380]`, *chain* is flip, cast to float32,
+ 1. *held* keeps eight results (1.1 GB) before it frees them, so that memory can't be reused.
"""

LARGE_OPERATORS: dict[str, Operator] = {
    **OPERATORS,
    "crop": lambda _, data: data.slice[90:285, 120:380],
    "chain": chain,
}


def cases() -> Iterator[Case]:
    for dtype in ("uint8", "float32"):
        for name, operator in LARGE_OPERATORS.items():
            if dtype == "float32" and name == "cast":
                operator = cast_to_uint8
            prepare = row(operator, images(dtype), calls=2)
            yield Case(f"large/{dtype}/{name}", prepare, rounds=15)
    yield Case("large/float32/flip, held", row(OPERATORS["flip"], images("float32"), calls=8), 7)


def cast_to_uint8(library: Library, data: Any) -> Any:
    return library.cast(data, dtype=library.uint8)


def images(dtype: str) -> Callable[[Library], Any]:
    def make(library: Library) -> Any:
        values = np.random.default_rng(0).integers(0, 256, (64, 375, 500, 3), dtype=np.uint8)
        return library.batch(list(values.astype(dtype)), layout="HWC")

    return make


FAMILY = Family("large", "Basic operators on images", ABOUT, cases)
