"""Samples that can't be read: left out, or others in their place, and a list of them.

A data set of millions has some, and a night's training should not end with the first. But what is
left out must be known, so they are listed, and there is a limit; and which they are must not move
the others, so they count as given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock._errors import faults
from penstock.readers._base.io_pool import io_pool
from penstock.readers._base.rows import Numbers

if TYPE_CHECKING:
    from penstock._core import Fault, Value

NO_FAULT_OF_THE_SAMPLE = ("system", "memory", "forked", "stopped", "python", "internal")
"""What is wrong here (no descriptors left, a server that is away) and not with the data. To leave
out the sample would hide it."""


class SampleError(NamedTuple):
    """A sample that could not be read.

    Args:
        file: What the sample is known by, usually a file name.
        sample: Its number in the data set.
        reason: What was wrong.
    """

    file: str
    sample: int
    reason: str


class BadSamples:
    """What a reader does about bad samples, and those that its epoch has had so far.

    Args:
        what: The reader, for messages.
        on_error: One of `_sift.ON_ERROR`.
        limit: How many there may be.
    """

    def __init__(self, what: str, on_error: str, limit: int) -> None:
        self.on_error = on_error
        self._what = what
        self._limit = limit
        self._found: dict[tuple[int, str], SampleError] = {}
        self.last = ""
        """The file of the last one, and what was wrong with it."""

    def errors(self) -> list[SampleError]:
        """All that there were, in the order in which they turned up."""
        return list(self._found.values())

    def clear(self) -> None:
        """Know of none."""
        self._found = {}

    def put_back(self, errors: list[SampleError]) -> None:
        """Know of these only."""
        self._found = {(error.sample, error.reason): error for error in errors}

    def add(self, number: int, fault: Fault, name: Callable[[int], str]) -> None:
        """List a bad sample, once, however often it turns up: as a substitute, or when it is
        decoded again.
        """
        reason = faults.reason(fault)
        if (number, reason) not in self._found:
            self._found[number, reason] = SampleError(name(number), number, reason)
        self.last = f"{fault.source or name(number)}: {reason}"
        if len(self._found) > self._limit:
            raise self._too_many(faults.exception(fault, tolerated=True)) from None

    def add_found(self, error: SampleError) -> None:
        """List a sample that another process has found to be bad, once."""
        self._found.setdefault((error.sample, error.reason), error)
        self.last = f"{error.file}: {error.reason}"
        if len(self._found) > self._limit:
            raise self._too_many(self.last)

    def _too_many(self, last: object) -> RuntimeError:
        return RuntimeError(
            f"{self._what}: {len(self._found)} samples of this epoch could not be read, more than "
            f"`max_errors` allows ({self._limit}). The last one: {last}"
        )

    def replace(
        self,
        numbers: Numbers,
        values: tuple[Value, ...],
        name: Callable[[int], str],
        fetch: Callable[[Numbers], tuple[Value, ...]],
        after: Callable[[int], Iterator[int]],
    ) -> tuple[Numbers, tuple[Value, ...]]:
        """The numbers and values of a batch without, or with others in place of, bad samples.

        Waits for the values. No values are left when all samples are left out.

        Args:
            numbers: The samples.
            values: What they are.
            name: Tells the name of a sample.
            fetch: Gives the values of other samples.
            after: Gives the samples that come after the one with that index in the batch.
        """
        tried: set[int] = set()
        while bad := {index: fault for value in values for index, fault in value.faults()}:
            for index, fault in sorted(bad.items(), key=lambda item: item[0]):
                if fault.cause[0] in NO_FAULT_OF_THE_SAMPLE:
                    faults.raise_fault(fault)
                tried.add(int(numbers[index]))
                self.add(int(numbers[index]), fault, name)
            if self.on_error == "skip":
                good = [index for index in range(len(numbers)) if index not in bad]
                pool = io_pool()
                kept = tuple(value.pick(pool, good) for value in values) if good else ()
                return numbers[good], kept
            numbers = numbers.copy()
            for index, fault in bad.items():
                numbers[index] = self._substitute(after(index), tried, fault)
            values = fetch(numbers)
        return numbers, values

    def _substitute(self, candidates: Iterator[int], tried: set[int], fault: Fault) -> int:
        for candidate in candidates:
            if candidate not in tried:
                return candidate
        error = faults.exception(fault, tolerated=True)
        raise RuntimeError(
            f"{self._what}: none of the {len(tried)} samples of the shard can be read, so that "
            f"there is no substitute. The last error: {error}"
        ) from None
