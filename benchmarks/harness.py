"""Cases, turns and statistics.

The contenders of a case take turns in one process, and a case's answer is the ratio between
neighbours: a machine that slows down does so for both.
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
"""The tolerance for floats that are sums of many."""

Library = Any
"""A module with the API that both contenders have."""

Measure = Callable[[], float]
"""One turn of one contender; returns the seconds that one call took."""


class Ready(NamedTuple):
    """A contender that is set up: its turn, and its results as arrays."""

    turn: Measure
    results: Sequence[np.ndarray] = ()


@dataclass(frozen=True)
class Contender:
    """One of the two that are compared."""

    name: str
    library: Library
    version: str


Prepare = Callable[[Contender], Ready]
"""Sets a contender up for a case."""


@dataclass(frozen=True)
class Pair:
    """The contenders: ours and the one it is measured against."""

    ours: Contender
    original: Contender

    def __iter__(self) -> Iterator[Contender]:
        return iter((self.ours, self.original))


@dataclass(frozen=True)
class Target:
    """What we want to reach. A missed one is printed, it fails nothing."""

    seconds: float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Case:
    """One comparison.

    Args:
        name: `family/group/what`; filters match any part of it.
        prepare: Sets a contender up. The results of both must be equal before anything is timed.
        rounds: Turns per contender.
        target: What we want to reach.
        rounding: How far apart integers may be, where they are rounded from sums.
        tolerance: How far floats may be apart, relative to the largest of them. Where more than
            the last bits may differ, the case says so.
    """

    name: str
    prepare: Prepare
    rounds: int = 21
    target: Target = Target()
    rounding: int = 0
    tolerance: float = 1e-5


def _nothing(_: Pair) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Family:
    """Cases with a subject in common: a module, and a section of the page.

    Args:
        name: The first part of its cases' names.
        about: What is measured, for readers of the page.
        cases: Its cases.
        facts: Sentences on what needs no rounds.
    """

    name: str
    about: str
    cases: Callable[[], Iterable[Case]]
    facts: Callable[[Pair], Iterable[str]] = _nothing


@dataclass(frozen=True)
class Outcome:
    """What a case gave: seconds per call, by round."""

    name: str
    ours: Sequence[float]
    original: Sequence[float]
    target: Target
    disturbance: float
    """The share of the machine's CPUs that other processes had meanwhile."""

    @property
    def ratios(self) -> list[float]:
        """How many times longer the original took, by round."""
        return [b / a for a, b in zip(self.ours, self.original, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The middle half of the rounds' ratios."""
        if len(self.ratios) < 2:
            return self.ratio, self.ratio
        low, _, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    @property
    def is_disturbed(self) -> bool:
        return self.disturbance >= DISTURBING

    @property
    def is_met(self) -> bool:
        wanted = self.target
        fast = wanted.seconds is None or statistics.median(self.ours) <= wanted.seconds
        return fast and (wanted.ratio is None or self.ratio >= wanted.ratio)


def run(case: Case, pair: Pair, *, quick: bool) -> Outcome:
    """Compare the results, then let the contenders take turns.

    A case that other processes disturb is run again, unless it is to be quick. The least disturbed
    run counts, whatever it gave.
    """
    ours, original = (case.prepare(side) for side in pair)
    _assert_equal(case, ours.results, original.results)
    for ready in (ours, original) * 2:  # threads start, memory is touched, caches fill
        ready.turn()
    outcome = _take_turns(case, ours, original, min(case.rounds, 5) if quick else case.rounds)
    for _ in range(0 if quick else RETRIES):
        if not outcome.is_disturbed:
            break
        wait_for_quiet(at_most=20)
        again = _take_turns(case, ours, original, case.rounds)
        outcome = min(outcome, again, key=lambda outcome: outcome.disturbance)
    return outcome


def _take_turns(case: Case, ours: Ready, original: Ready, rounds: int) -> Outcome:
    neighbours = Neighbours()
    our_times: list[float] = []
    original_times: list[float] = []
    turns = [(ours.turn, our_times), (original.turn, original_times)]
    for _ in range(rounds):
        for turn, times in turns:
            times.append(turn())
        turns.reverse()  # nobody always follows the slower one
    return Outcome(case.name, our_times, original_times, case.target, neighbours.share())


def throughput(call: Callable[[], Any], calls: int) -> Measure:
    """Seconds per call in a row of calls, until the last result is there and all are freed.

    That is a call's cost with its share of the work in the background.
    """

    def turn() -> float:
        with _no_collection():
            start = time.perf_counter()
            results = [call() for _ in range(calls)]
            for result in results:
                result.evaluate()
            del results, result
            return (time.perf_counter() - start) / calls

    return turn


def latency(call: Callable[[], Any], calls: int) -> Measure:
    """Seconds per call when each result is waited for before the next call."""

    def turn() -> float:
        with _no_collection():
            start = time.perf_counter()
            for _ in range(calls):
                call().evaluate()
            return (time.perf_counter() - start) / calls

    return turn


def alone(call: Callable[[], Any], calls: int) -> Measure:
    """Seconds per call of something that leaves nothing to wait for."""

    def turn() -> float:
        with _no_collection():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - start) / calls

    return turn


def arrays(result: Any) -> list[np.ndarray]:
    """The samples of a Tensor or a Batch of either contender, or of a list of arrays."""
    if isinstance(result, list):
        return result
    samples = result.tensors if hasattr(result, "tensors") else [result]
    return [np.array(sample) for sample in samples]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage before, not during: a collection walks the objects of both contenders."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _assert_equal(case: Case, ours: Sequence[np.ndarray], original: Sequence[np.ndarray]) -> None:
    name = case.name
    if len(ours) != len(original):
        raise AssertionError(f"{name}: {len(ours)} samples, the original has {len(original)}")
    for index, (a, b) in enumerate(zip(ours, original, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            raise AssertionError(
                f"{name}: sample {index} is {a.dtype}{a.shape}, the original's {b.dtype}{b.shape}"
            )
        allowed: float = case.rounding
        if a.dtype.kind == "f":
            allowed = case.tolerance * max(1.0, float(np.max(np.abs(b), initial=0)))
        if not np.allclose(a, b, rtol=0, atol=allowed):
            raise AssertionError(f"{name}: sample {index} differs from the original's")
