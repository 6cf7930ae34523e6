"""Samples of a batch that could not be made: left out, or others in their place.

Which they are is known when the batch has been made, so sifting waits for it. What belongs to the
samples (labels, boxes) is sifted alike; otherwise labels would be those of other images.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock._errors import messages
from penstock._runtime.context import EvalContext
from penstock._values.array import Array, wrap

if TYPE_CHECKING:
    from penstock._core import Fault, Value
    from penstock._runtime.device import Device
    from penstock.readers._base.order import Numbers
    from penstock.readers._base.reader import Reader

ON_ERROR = ("raise", "skip", "substitute")

TOLERATED = ("undecodable", "file")
"""Faults of a sample's own data. Others (a wrong argument, no memory, no descriptors left) are
errors in any case."""


class Origin(NamedTuple):
    """The reader that has given a batch, and the numbers of its samples."""

    reader: weakref.ref[Reader]
    numbers: Numbers


def check(operator: str, on_error: str | None, along: Any, data: Any) -> bool:
    """Whether there is something to do; raises where it can't be done."""
    if on_error is None or on_error == "raise":
        if along is not None:
            problem = "goes with `on_error='skip'` or `'substitute'`"
            raise messages.bad_argument(operator, "along", problem)
        return False
    if on_error not in ON_ERROR:
        names = ", ".join(map(repr, ON_ERROR))
        problem = f"must be one of {names}, got {on_error!r}"
        raise messages.bad_argument(operator, "on_error", problem)
    if not isinstance(data, Array) or not data._value.batch:
        problem = (
            "is for batches: a single sample can't be left out, and has no other to stand in. "
            "Catch the error, or read batches"
        )
        raise messages.bad_argument(operator, "on_error", problem)
    for other in _listed(along):
        if not isinstance(other, Array) or not other._value.batch:
            raise messages.wrong_argument(operator, "along", other, "a Batch, or a list of them")
        if len(other._value) != len(data._value):
            raise messages.batch_sizes_differ(len(data._value), len(other._value), operator)
    return True


def sift(made: Array, data: Array, on_error: str, along: Any) -> Any:
    """The batch without what could not be made of `data`; with `along`, a tuple of all.

    `check` has been asked before.
    """
    bad = dict(made._value.faults())
    for fault in bad.values():
        if fault.cause[0] not in TOLERATED:
            messages.raise_fault(fault)
    values = [made._value, *(other._value for other in _listed(along))]
    if bad:
        _report(data, bad)
        kept = _kept(len(made._value), bad, on_error)
        pool = EvalContext.current()._native_pool()
        values = [value.pick(pool, kept) for value in values]
    sifted = tuple(map(wrap, values))
    return sifted[0] if along is None else sifted


def _kept(count: int, bad: dict[int, Fault], on_error: str) -> list[int]:
    good = [index for index in range(count) if index not in bad]
    if on_error == "skip":
        return good
    if not good:
        error = messages.exception(next(iter(bad.values())))
        raise type(error)(
            f"None of the {count} samples of the batch can be used, so that none can stand in for "
            f"another. The first one: {error}"
        ) from error
    # The next good one, and after the last of them the first.
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


def mark(values: Sequence[Value], reader: Reader, numbers: Numbers) -> tuple[Array, ...]:
    """What a reader gives, with a note of which samples it is."""
    origin = Origin(weakref.ref(reader), numbers)
    made = tuple(map(wrap, values))
    for array in made:
        array.__dict__["_origin"] = origin
    return made


def moved(array: Array, device: Device) -> Array:
    """What a reader gives, on another device, with the same note."""
    there = array.to_device(device)
    there.__dict__["_origin"] = array.__dict__.get("_origin")
    return there


def _listed(along: Any) -> list[Any]:
    if along is None:
        return []
    return [along] if isinstance(along, Array) else list(along)
