"""`on_error` of operators: bad samples of a batch are dropped, or replaced by good ones.

Which samples are bad is known once the batch is computed, so this waits for it. What belongs to the
samples (labels, boxes) is passed as `along` and treated the same way, so that it stays aligned.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock._errors import faults, messages
from penstock._runtime.context import EvalContext
from penstock._values.array import Array, wrap

if TYPE_CHECKING:
    from penstock._core import Fault, Value
    from penstock._runtime.device import Device
    from penstock.readers._base.rows import Numbers

ON_ERROR = ("raise", "skip", "substitute")

TOLERATED = ("undecodable", "file")
"""Faults of a sample's own data. Anything else (invalid arguments, no memory, no file descriptors)
is always an error."""


class Listing(Protocol):
    """What lists bad samples, such as a reader."""

    def _note_later(self, number: int, fault: Fault) -> None:
        """A sample that was given turns out to be bad."""


class Origin(NamedTuple):
    """The reader that a batch came from, and the numbers of its samples."""

    reader: weakref.ref[Listing]
    numbers: Numbers


def check(operator: str, on_error: str | None, along: Any, data: Any) -> bool:
    """Whether bad samples are to be handled; raises for invalid arguments."""
    if on_error is None or on_error == "raise":
        if along is not None:
            problem = "requires `on_error='skip'` or `'substitute'`"
            raise messages.bad_argument(operator, "along", problem)
        return False
    if on_error not in ON_ERROR:
        names = ", ".join(map(repr, ON_ERROR))
        problem = f"must be one of {names}, got {on_error!r}"
        raise messages.bad_argument(operator, "on_error", problem)
    if not isinstance(data, Array) or not data._value.batch:
        problem = (
            "requires a batch: a single sample can't be skipped or replaced by another. "
            "Catch the error, or read batches"
        )
        raise messages.bad_argument(operator, "on_error", problem)
    for other in _as_list(along):
        if not isinstance(other, Array) or not other._value.batch:
            raise messages.wrong_argument(operator, "along", other, "a Batch, or a list of them")
        if len(other._value) != len(data._value):
            raise messages.batch_sizes_differ(len(data._value), len(other._value), operator)
    return True


def drop_or_replace(results: Sequence[Value], data: Array, on_error: str, along: Any) -> Any:
    """The results without bad samples, followed by what was given as `along`.

    Several of them are a tuple. The arguments have passed `check`.
    """
    bad = {index: fault for result in results for index, fault in result.faults()}
    for fault in bad.values():
        if fault.cause[0] not in TOLERATED:
            faults.raise_fault(fault)
    values = [*results, *(other._value for other in _as_list(along))]
    if bad:
        _report(data, bad)
        kept = _kept(len(results[0]), bad, on_error)
        pool = EvalContext.current()._native_pool()
        values = [value.pick(pool, kept) for value in values]
    arrays = tuple(map(wrap, values))
    return arrays[0] if len(arrays) == 1 and along is None else arrays


def _kept(count: int, bad: dict[int, Fault], on_error: str) -> list[int]:
    good = [index for index in range(count) if index not in bad]
    if on_error == "skip":
        return good
    if not good:
        error = faults.exception(next(iter(bad.values())))
        raise type(error)(
            f"All {count} samples of the batch are bad, so there is none to substitute. "
            f"The first error: {error}"
        ) from error
    # The next good sample takes its place, wrapping around at the end.
    chosen, following = [], good[0]
    for index in reversed(range(count)):
        if index not in bad:
            following = index
        chosen.append(following)
    return chosen[::-1]


def _report(data: Array, bad: dict[int, Fault]) -> None:
    origin: Origin | None = data.__dict__.get("_origin")
    reader = None if origin is None else origin.reader()
    if origin is not None and reader is not None:
        for index, fault in bad.items():
            reader._note_later(int(origin.numbers[index]), fault)


def mark(values: Sequence[Value], reader: Listing, numbers: Numbers) -> tuple[Array, ...]:
    """A reader's outputs, tagged with their origin."""
    origin = Origin(weakref.ref(reader), numbers)
    arrays = tuple(map(wrap, values))
    for array in arrays:
        array.__dict__["_origin"] = origin
    return arrays


def to_device(array: Array, device: Device) -> Array:
    """A reader's output copied to a device; keeps the origin."""
    copied = array.to_device(device)
    copied.__dict__["_origin"] = array.__dict__.get("_origin")
    return copied


def _as_list(along: Any) -> list[Any]:
    if along is None:
        return []
    return [along] if isinstance(along, Array) else list(along)
