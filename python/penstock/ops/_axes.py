"""How definitions count axes and name them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from penstock import _errors
from penstock._invoke import settle

if TYPE_CHECKING:
    from penstock._array import Array


def entries(numbers: tuple[float, ...] | Array) -> int:
    """How many numbers an argument has for a sample. Waits for one that is still in the making."""
    if isinstance(numbers, tuple):
        return len(numbers)
    value = numbers._value
    settle(value)
    return math.prod(value.shape(0)) if len(value) else 1


def same_for_all(operator: str, name: str, numbers: tuple[int, ...] | Array) -> tuple[int, ...]:
    """The integers of an argument that may come as an array but can't differ between samples."""
    if isinstance(numbers, tuple):
        return numbers
    samples = list(numbers) if numbers._value.batch else [numbers]  # type: ignore[call-overload]
    found = {tuple(np.rint(np.asarray(sample)).astype(int).flat) for sample in samples}
    if len(found) != 1:
        raise _errors.bad_argument(operator, name, "must be the same for all samples")
    return tuple(map(int, found.pop()))


def axis_from_front(operator: str, name: str, axis: int, ndim: int) -> int:
    """An axis of `ndim` as a number from 0 on; negative ones count from the end."""
    if not -ndim <= axis < ndim:
        kind = f"an axis from {-ndim} to {ndim - 1}" if ndim else "data with dimensions"
        raise _errors.bad_argument(operator, name, f"needs {kind}, got {axis}")
    return axis % ndim


def axes_from_front(operator: str, name: str, axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Axes as numbers from 0 on, none of them twice."""
    found = tuple(axis_from_front(operator, name, axis, ndim) for axis in axes)
    if len(set(found)) != len(found):
        raise _errors.bad_argument(operator, name, f"names an axis twice: {list(axes)}")
    return found


def letter(operator: str, name: str, given: str) -> str:
    """The name of one axis."""
    if len(given) != 1:
        raise _errors.bad_argument(operator, name, f"must be a single letter, got {given!r}")
    return given


def axis_of_letter(operator: str, name: str, given: str, layout: str | None) -> int:
    """Where the axis of a name is."""
    axis = (layout or "").find(letter(operator, name, given))
    if axis < 0:
        has = f'the layout "{layout}"' if layout else "no layout"
        raise _errors.bad_argument(operator, name, f"asks for {given!r}, but the input has {has}")
    return axis


def with_letter(
    operator: str, name: str, given: str | None, layout: str | None, axis: int, ndim: int
) -> str | None:
    """The layout of `ndim` axes after a new one, if it has a name."""
    if given is None:
        return None
    letter(operator, name, given)
    if layout is None and ndim:
        raise _errors.bad_argument(operator, name, "needs an input whose other axes have names")
    layout = layout or ""
    return layout[:axis] + given + layout[axis:]


def fitting(operator: str, layout: str | None, ndim: int) -> str | None:
    """A layout that was asked for, if it has a letter for each axis; an empty one is none."""
    if layout and len(layout) != ndim:
        problem = f'"{layout}" names {len(layout)} dimensions, but the result has {ndim}'
        raise _errors.bad_argument(operator, "layout", problem)
    return layout or None
