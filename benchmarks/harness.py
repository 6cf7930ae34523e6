"""Cases, rounds and statistics.

The two contenders of a case alternate in one process, and the result is the ratio of neighbouring
measurements: a machine that slows down does so for both.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.neighbours import DISTURBING, Neighbours, wait_for_quiet

RETRIES = 2
ORDER_OF_SUMS = 1e-4
"""The relative tolerance for floats that are sums of many terms."""

Library = Any
"""penstock, or DALI's dynamic mode: the same API."""

Measure = Callable[[], float]
"""Measures once and returns the seconds per call."""


class Ready(NamedTuple):
    """A contender that is set up: its measurement, and its results as arrays."""

    measure: Measure
    results: Sequence[np.ndarray] = ()


@dataclass(frozen=True)
class Contender:
    """One of the two libraries that are compared, and its number of worker threads."""

    name: str
    library: Library
    version: str
    threads: int

    @property
    def is_dali(self) -> bool:
        return self.name == "DALI"


Prepare = Callable[[Contender], Ready]
"""Sets a contender up for a case."""


@dataclass(frozen=True)
class Pair:
    """The two contenders."""

    ours: Contender
    dali: Contender

    def __iter__(self) -> Iterator[Contender]:
        return iter((self.ours, self.dali))


@dataclass(frozen=True)
class Case:
    """One comparison.

    Args:
        name: `family/group/what`; filters match any part of it.
        prepare: Sets a contender up. Both results must be equal before anything is timed.
        rounds: Measurements per contender.
        rounding: The largest difference allowed between integers.
        tolerance: The largest difference allowed between floats, relative to the largest value.
    """

    name: str
    prepare: Prepare
    rounds: int = 21
    rounding: int = 0
    tolerance: float = 1e-5


def _nothing(_: Pair) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Family:
    """Related cases: a module here, a section of the page.

    Args:
        name: The first part of its cases' names.
        title: The section's title.
        about: What is measured, for readers of the page.
        cases: Its cases.
        facts: Further results, as sentences.
        rival: What its cases have in the place of DALI.
    """

    name: str
    title: str
    about: str
    cases: Callable[[], Iterable[Case]]
    facts: Callable[[Pair], Iterable[str]] = _nothing
    rival: str = "DALI"


@dataclass(frozen=True)
class Outcome:
    """The result of a case: seconds per call, by round."""

    name: str
    ours: Sequence[float]
    dali: Sequence[float]
    disturbance: float
    """The share of the machine's CPU time that other processes used meanwhile."""

    @property
    def ratios(self) -> list[float]:
        """How many times longer DALI took, by round."""
        return [b / a for a, b in zip(self.ours, self.dali, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The first and third quartile of the ratios."""
        if len(self.ratios) < 2:
            return self.ratio, self.ratio
        low, _, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    @property
    def is_disturbed(self) -> bool:
        return self.disturbance >= DISTURBING


def run(case: Case, pair: Pair, *, most: int, quick: bool) -> Outcome:
    """Compare the results, warm up, then measure in turns, in at most so many rounds.

    A case that was disturbed by other processes is run again, unless `quick`; the least disturbed
    run counts, whatever its result.
    """
    ours, dali = (case.prepare(side) for side in pair)
    _assert_equal(case, ours.results, dali.results)
    for ready in (ours, dali) * (1 if quick else 2):  # starts threads, fills caches and pools
        ready.measure()
    rounds = min(case.rounds, most, 3 if quick else most)
    outcome = _alternate(case, ours, dali, rounds)
    for _ in range(0 if quick else RETRIES):
        if not outcome.is_disturbed:
            break
        wait_for_quiet(at_most=20)
        again = _alternate(case, ours, dali, rounds)
        outcome = min(outcome, again, key=lambda outcome: outcome.disturbance)
    return outcome


def _alternate(case: Case, ours: Ready, dali: Ready, rounds: int) -> Outcome:
    neighbours = Neighbours()
    our_times: list[float] = []
    dali_times: list[float] = []
    order = [(ours.measure, our_times), (dali.measure, dali_times)]
    for _ in range(rounds):
        for measure, times in order:
            times.append(measure())
        order.reverse()  # so that neither always runs after the slower one
    return Outcome(case.name, our_times, dali_times, neighbours.share())


def throughput(call: Callable[[], Any], calls: int) -> Measure:
    """Seconds per call of a series of calls, until all results are computed and freed.

    That is the cost of a call including its share of the background work.
    """

    def measure() -> float:
        with _no_collection():
            start = time.perf_counter()
            results = [call() for _ in range(calls)]
            for result in results:
                result.evaluate()
            del results, result
            return (time.perf_counter() - start) / calls

    return measure


def latency(call: Callable[[], Any], calls: int) -> Measure:
    """Seconds per call when each result is awaited before the next call."""

    def measure() -> float:
        with _no_collection():
            start = time.perf_counter()
            for _ in range(calls):
                call().evaluate()
            return (time.perf_counter() - start) / calls

    return measure


def synchronous(call: Callable[[], Any], calls: int) -> Measure:
    """Seconds per call of a synchronous function."""

    def measure() -> float:
        with _no_collection():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - start) / calls

    return measure


def arrays(result: Any) -> list[np.ndarray]:
    """The samples of a Tensor or a Batch of either library, or a list of arrays as it is."""
    if isinstance(result, list):
        return result
    samples = result.tensors if hasattr(result, "tensors") else [result]
    return [np.array(sample) for sample in samples]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage before the measurement: a collection visits the objects of both libraries."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def described(results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Zeros of the same shapes and types: all that can be compared where values are random."""
    return [np.zeros_like(result) for result in results]


def _assert_equal(case: Case, ours: Sequence[np.ndarray], dali: Sequence[np.ndarray]) -> None:
    name = case.name
    if len(ours) != len(dali):
        raise AssertionError(f"{name}: {len(ours)} samples, DALI has {len(dali)}")
    for index, (a, b) in enumerate(zip(ours, dali, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            raise AssertionError(
                f"{name}: sample {index} is {a.dtype}{a.shape}, DALI's {b.dtype}{b.shape}"
            )
        allowed: float = case.rounding
        if a.dtype.kind == "f":
            allowed = case.tolerance * max(1.0, float(np.max(np.abs(b), initial=0)))
        if not np.allclose(a, b, rtol=0, atol=allowed):
            raise AssertionError(f"{name}: sample {index} differs from DALI's")
