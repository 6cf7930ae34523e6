"""What the kernels themselves cost: the operators of `calls` on images of a usual size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.calls import OPERATORS, Operator
from benchmarks.harness import Case, Contender, Library, Prepare, Ready, arrays, throughput

ABOUT = """\
Batches of 64 images of 375x500x3 that the library owns, in mode eager: four calls, then a wait for
all results, divided by four. *crop* is `batch.slice[90:285, 120:380]`; *slice* takes two rows.
float16 stands for what a cast of a uint8 batch makes small, float32 for what it makes large."""

CALLS = 4
ROUNDS = 11
SHAPE = (64, 375, 500, 3)

LARGE_OPERATORS: dict[str, Operator] = {
    **OPERATORS,
    "crop": lambda _, data: data.slice[90:285, 120:380],
    "chain": lambda library, data: library.cast(library.flip(data), dtype=library.float32) + 1,
}
