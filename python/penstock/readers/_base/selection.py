"""Samples that are selected by number: `reader[7]`, `reader[:64]`, `reader[[3, 1, 2]]`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from penstock._errors import messages
from penstock._values.array import Array
from penstock.readers._base.rows import Numbers, as_array


def selected(what: str, index: Any, count: int) -> tuple[Numbers, bool]:
    """The numbers of the samples, from 0 on, and whether they are a batch."""
    if isinstance(index, slice):
        try:
            numbers = np.arange(*index.indices(count), dtype=np.int64)
        except TypeError:
            raise _not_a_number(what, index) from None
        return _of_a_batch(what, numbers), True
    try:
        if isinstance(index, bool):
            raise TypeError
        number = operator.index(index)
    except TypeError:
        return _of_a_batch(what, _numbers(what, index, count)), True
    return _in_range(what, as_array([number]), count), False


def _numbers(what: str, index: Any, count: int) -> Numbers:
    if isinstance(index, str | bytes | bool | float | None) or not hasattr(index, "__len__"):
        raise _not_a_number(what, index)
    given = np.asarray(index if isinstance(index, Array) else list(index))
    if given.size == 0:
        return np.zeros(0, np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise _not_a_number(what, index)
    return _in_range(what, given.astype(np.int64), count)


def _in_range(what: str, numbers: Numbers, count: int) -> Numbers:
    wrong = numbers[(numbers < -count) | (numbers >= count)]
    if len(wrong):
        raise IndexError(
            f"{what}: sample {wrong[0]} is out of range for a data set of {count} samples."
        )
    return numbers % count


def _of_a_batch(what: str, numbers: Numbers) -> Numbers:
    if not len(numbers):
        raise IndexError(f"{what}: no samples are selected, and a batch needs at least one.")
    return numbers


def _not_a_number(what: str, index: Any) -> TypeError:
    return TypeError(
        f"{what}: samples are selected by a whole number, or several by a slice or a list of "
        f"them, got {messages.describe(index)}."
    )
