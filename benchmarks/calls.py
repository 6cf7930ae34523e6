"""Call overhead: operators on tiny samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import (
    Case,
    Contender,
    Family,
    Library,
    Measure,
    Prepare,
    Ready,
    arrays,
    latency,
    synchronous,
    throughput,
)

ABOUT = """\
Samples of 4x4x3 uint8 in memory of the library: there is next to nothing to compute, so this is
the overhead of a call. *batch* and *tensor*: 200 calls in eager mode, then a wait for all results,
divided by 200. *chain*: flip, cast, + 1; the time is for all three. *read at once*: each result is
awaited before the next call. *conversion*: `batch` of eight NumPy arrays, and back."""

CALLS = 200

Operator = Callable[[Library, Any], Any]

OPERATORS: dict[str, Operator] = {
    "flip": lambda library, data: library.flip(data),
    "cast": lambda library, data: library.cast(data, dtype=library.float32),
    "add": lambda library, data: data + 1,
    "slice": lambda library, data: data.slice[0:2],
}


def cases() -> Iterator[Case]:
    for name, operator in OPERATORS.items():
        yield Case(f"calls/batch of 8/{name}", row(operator, batch_of(8)))
    for name, operator in OPERATORS.items():
        yield Case(f"calls/batch of 64/{name}", row(operator, batch_of(64)))
    for name, operator in (OPERATORS | {"slice": lambda _, data: data[0:2]}).items():
        yield Case(f"calls/tensor/{name}", row(operator, one_tensor))
    yield Case("calls/chain/batch of 8", row(chain, batch_of(8)))
    yield Case("calls/chain/tensor", row(chain, one_tensor))
    for mode in ("eager", "sync_cpu"):
        for name, operator in OPERATORS.items():
            prepare = row(operator, batch_of(8), latency, mode)
            yield Case(f"calls/read at once, {mode}/{name}", prepare)
    yield Case("calls/conversion/from NumPy", row(make, lambda _: pictures(8), latency))
    yield Case("calls/conversion/to NumPy", row(export, batch_of(8), synchronous))


def row(
    operator: Operator,
    data: Callable[[Library], Any],
    measure: Callable[[Callable[[], Any], int], Measure] = throughput,
    mode: str = "eager",
    calls: int = CALLS,
) -> Prepare:
    """Repeated calls of one operator with the same arguments."""

    def prepare(side: Contender) -> Ready:
        library = side.library
        given = data(library)
        repeated = measure(lambda: operator(library, given), calls)

        def in_mode() -> float:
            with library.EvalMode[mode]:
                return repeated()

        return Ready(in_mode, arrays(operator(library, given)))

    return prepare


def pictures(count: int) -> list[np.ndarray]:
    """The same arrays for both libraries."""
    return list(np.random.default_rng(0).integers(0, 256, (count, 4, 4, 3), dtype=np.uint8))


def batch_of(count: int) -> Callable[[Library], Any]:
    return lambda library: make(library, pictures(count))


def one_tensor(library: Library) -> Any:
    return library.tensor(pictures(1)[0], layout="HWC")


def make(library: Library, data: Any) -> Any:
    return library.batch(data, layout="HWC")


def chain(library: Library, data: Any) -> Any:
    return library.cast(library.flip(data), dtype=library.float32) + 1


def export(_: Library, data: Any) -> list[np.ndarray]:
    return [np.asarray(sample) for sample in data.tensors]


FAMILY = Family("calls", "Call overhead", ABOUT, cases)
