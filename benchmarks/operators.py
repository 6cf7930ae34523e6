"""Operator by operator, on batches of typical images and of tiny ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Operator, batch_of, row
from benchmarks.harness import Case, Contender, Family, Library, Prepare, Ready, described
from benchmarks.large import images

ABOUT = """\
Batches of 64 images in memory of the library, of 375x500x3 (*uint8*, *float32*) and of 4x4x3 uint8
(*tiny*), in eager mode: a few calls, then a wait for all results, divided by the number of calls.
*random* generates a batch of 64 images of 375x500x3, or of 64 scalars.
"""

TABLE = np.linspace(0, 1, 256).tolist()

BOTH: dict[str, Operator] = {
    "copy": lambda ndd, x: ndd.copy(x),
    "flip": lambda ndd, x: ndd.flip(x),
    "*": lambda ndd, x: x * 3,
    "/": lambda ndd, x: x / 3,
    "<": lambda ndd, x: x < 100,
    "math.sqrt": lambda ndd, x: ndd.math.sqrt(x),
    "math.sin": lambda ndd, x: ndd.math.sin(x),
    "math.clamp": lambda ndd, x: ndd.math.clamp(x, 10, 100),
    "reshape": lambda ndd, x: ndd.reshape(x, rel_shape=[1, -1]),
    "expand_dims": lambda ndd, x: ndd.expand_dims(x, axes=[0]),
    "transpose": lambda ndd, x: ndd.transpose(x, perm=[2, 0, 1]),
    "slice": lambda ndd, x: ndd.slice(x, rel_start=[0.1, 0.1], rel_end=[0.9, 0.9]),
    "pad": lambda ndd, x: ndd.pad(x, axis_names="HW", align=[512, 512]),
    "cat": lambda ndd, x: ndd.cat(x, x, axis=1),
    "stack": lambda ndd, x: ndd.stack(x, x),
    "zeros_like": lambda ndd, x: ndd.zeros_like(x),
    "reductions.sum": lambda ndd, x: ndd.reductions.sum(x),
    "reductions.mean, H and W": lambda ndd, x: ndd.reductions.mean(x, axes=[0, 1]),
    "reductions.max, C": lambda ndd, x: ndd.reductions.max(x, axes=[2]),
    "normalize": lambda ndd, x: ndd.normalize(x),
    "normalize, per channel": lambda ndd, x: ndd.normalize(x, axes=[0, 1]),
    "coord_transform": lambda ndd, x: ndd.coord_transform(x, M=[1, 2, 3, 4, 5, 6, 7, 8, 9]),
}
TINY: dict[str, Operator] = {
    # Four times the pixels; the large images grow by less.
    "pad": lambda ndd, x: ndd.pad(x, axis_names="HW", align=[8, 8]),
}
UINT8: dict[str, Operator] = {
    "cast": lambda ndd, x: ndd.cast(x, dtype=ndd.float32),
    "&": lambda ndd, x: x & 15,
    "lookup_table": lambda ndd, x: ndd.lookup_table(x, keys=list(range(256)), values=TABLE),
}
FLOAT32: dict[str, Operator] = {
    "cast": lambda ndd, x: ndd.cast(x, dtype=ndd.uint8),
    "math.exp": lambda ndd, x: ndd.math.exp(x / 100),
}
RANDOM: dict[str, Callable[[Library], Any]] = {
    "random.uniform": lambda ndd: ndd.random.uniform(batch_size=64, shape=[375, 500, 3]),
    "random.normal": lambda ndd: ndd.random.normal(batch_size=64, shape=[375, 500, 3]),
    "random.beta": lambda ndd: ndd.random.beta(
        alpha=2.0, beta=5.0, batch_size=64, shape=[375, 500, 3]
    ),
    "random.beta, flat": lambda ndd: ndd.random.beta(batch_size=64, shape=[375, 500, 3]),
    "random.coin_flip": lambda ndd: ndd.random.coin_flip(batch_size=64, shape=[375, 500, 3]),
    "random.uniform, scalars": lambda ndd: ndd.random.uniform(batch_size=64),
    "batch_permutation": lambda ndd: ndd.batch_permutation(batch_size=64),
}


def cases() -> Iterator[Case]:
    for name, operator in (BOTH | UINT8).items():
        yield Case(f"operators/uint8/{name}", row(operator, images("uint8"), calls=2), 7)
    for name, operator in (BOTH | FLOAT32).items():
        yield Case(f"operators/float32/{name}", row(operator, images("float32"), calls=2), 7)
    for name, operator in (BOTH | UINT8 | TINY).items():
        yield Case(f"operators/tiny/{name}", row(operator, batch_of(64), calls=50), 7)
    for name, draw in RANDOM.items():
        yield Case(f"operators/random/{name}", drawn(draw), 7)


def drawn(draw: Callable[[Library], Any]) -> Prepare:
    """Random values: only their shapes and types can be compared."""

    def prepare(side: Contender) -> Ready:
        ready = row(lambda library, _: draw(library), lambda _: None, calls=2)(side)
        return Ready(ready.measure, described(ready.results))

    return prepare


FAMILY = Family("operators", "Operator by operator", ABOUT, cases)
