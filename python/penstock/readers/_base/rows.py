"""Rows of sample numbers that are computed when they are read, for data sets whose order would
take gigabytes as an array.

Slices of a row are rows; `order.as_array` computes the numbers of one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from penstock import _core

Numbers: TypeAlias = npt.NDArray[np.int64]
Row: TypeAlias = Sequence[int] | Numbers
"""A range, an array, or one of the rows below."""


class _Computed(Sequence[int]):
    """A row whose numbers are computed: `_part` gives a shorter one, `_array` the numbers."""

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("rows have no slices with steps")
            return self._part(start, max(start, stop))
        place = range(len(self))[index]
        return int(self._part(place, place + 1)._array()[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return self._array() if dtype is None else self._array().astype(dtype, copy=False)

    def _part(self, start: int, stop: int) -> _Computed:
        raise NotImplementedError

    def _array(self) -> Numbers:
        raise NotImplementedError


class Permuted(_Computed):
    """The numbers of a row in an order that depends on seed and turn, or a part of them."""

    def __init__(self, row: Row, seed: int, turn: int, places: range | None = None) -> None:
        self._row, self._key = row, (seed & (2**64 - 1), turn & (2**64 - 1))
        self._places = range(len(row)) if places is None else places

    def __len__(self) -> int:
        return len(self._places)

    def _part(self, start: int, stop: int) -> Permuted:
        return Permuted(self._row, *self._key, self._places[start:stop])

    def _array(self) -> Numbers:
        return self._at(as_array(self._places))

    def _at(self, places: Numbers) -> Numbers:
        """The numbers at these places of the whole, in the same array if possible."""
        _core.permute(places, len(self._row), *self._key)
        if isinstance(self._row, Permuted):
            places += self._row._places.start
            return self._row._at(places)
        if isinstance(self._row, range):
            places += self._row.start
            return places
        return as_array(self._row)[places]


class Grouped(_Computed):
    """Numbers whose groups are in an order that depends on seed and turn, or a part of them.

    Args:
        ends: The end of each group.
        seed: What the order is made of.
        turn: What else it is made of.
    """

    def __init__(self, ends: Numbers, seed: int, turn: int) -> None:
        order = np.arange(len(ends), dtype=np.int64)
        _core.shuffle(order, len(order), seed & (2**64 - 1), turn, _GROUPS)
        lengths = np.diff(ends, prepend=0)
        self._starts: Numbers = (ends - lengths)[order]
        self._ends: Numbers = np.cumsum(lengths[order])
        """Where each group ends, in the new order."""
        self._places = range(int(ends[-1]) if len(ends) else 0)

    def __len__(self) -> int:
        return len(self._places)

    def _part(self, start: int, stop: int) -> Grouped:
        part = Grouped.__new__(Grouped)
        part._starts, part._ends = self._starts, self._ends
        part._places = self._places[start:stop]
        return part

    def _array(self) -> Numbers:
        places = as_array(self._places)
        groups = np.searchsorted(self._ends, places, side="right")
        begins = np.concatenate([np.zeros(1, np.int64), self._ends])[groups]
        numbers: Numbers = self._starts[groups] + (places - begins)
        return numbers


class Windowed(_Computed):
    """A row cut into windows, each shuffled on its own, or a part of that.

    Args:
        row: The row.
        fill: How many numbers a window has.
        seed: What the order is made of.
        turn: What else it is made of.
        places: Which part.
    """

    def __init__(
        self, row: Row, fill: int, seed: int, turn: int, places: range | None = None
    ) -> None:
        self._row, self._fill = row, min(fill, max(1, len(row)))
        self._key = seed & (2**64 - 1), turn & (2**64 - 1)
        self._places = range(len(row)) if places is None else places

    def __len__(self) -> int:
        return len(self._places)

    def _part(self, start: int, stop: int) -> Windowed:
        return Windowed(self._row, self._fill, *self._key, self._places[start:stop])

    def _array(self) -> Numbers:
        first, last = self._places.start, self._places.stop
        parts = [np.zeros(0, np.int64)]
        for window in range(first // self._fill, -(-last // self._fill)):
            begin = window * self._fill
            numbers = as_array(self._row[begin : begin + self._fill]).copy()
            _core.shuffle(numbers, len(numbers), *self._key, window % _GROUPS)
            parts.append(numbers[max(first - begin, 0) : max(last - begin, 0)])
        return np.concatenate(parts)


_GROUPS = 2**32 - 1
"""The stream that the order of groups is drawn from; windows have those below."""


class Joined(_Computed):
    """Several rows, one after the other."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = [row for row in rows if len(row)]
        self._ends = list(accumulate(map(len, self._rows)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _part(self, start: int, stop: int) -> Joined:
        parts: list[Row] = []
        index = bisect_right(self._ends, start)
        while start < stop:
            row, end = self._rows[index], self._ends[index]
            begin = end - len(row)
            parts.append(row[start - begin : min(stop, end) - begin])
            start, index = end, index + 1
        return Joined(parts)

    def _array(self) -> Numbers:
        return np.concatenate([np.zeros(0, np.int64), *map(as_array, self._rows)])


def joined(rows: Sequence[Row]) -> Row:
    """Several rows as one, an array if all of them are."""
    if all(isinstance(row, np.ndarray) for row in rows):
        return np.concatenate(rows)
    return Joined(rows)


def as_array(numbers: Row) -> Numbers:
    """Numbers as an array."""
    if isinstance(numbers, range):
        return np.arange(numbers.start, numbers.stop, dtype=np.int64)
    return np.ascontiguousarray(numbers, dtype=np.int64)
