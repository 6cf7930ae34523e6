"""Axes given by number, from either end, or by letter."""

from __future__ import annotations

from collections.abc import Sequence

from penstock._errors import messages


def chosen_axes(
    operator: str,
    ndim: int,
    layout: str | None,
    axes: Sequence[int] | None,
    axis_names: str | None,
) -> tuple[int, ...] | None:
    """The axes given by number or by letter, as numbers from 0; None if none are given.

    Args:
        operator: The operator, for errors.
        ndim: The number of dimensions.
        layout: The layout of the data.
        axes: Numbers; negative ones count from the end.
        axis_names: Letters, instead of `axes`.
    """
    if axis_names is not None:
        if axes is not None:
            raise messages.axes_given_twice(operator)
        axes = [_position(operator, letter, layout) for letter in axis_names]
    if axes is None:
        return None
    found = tuple(_from_first(operator, axis, ndim) for axis in axes)
    if len(set(found)) < len(found):
        raise messages.duplicate_axis(operator, found)
    return found


def _position(operator: str, letter: str, layout: str | None) -> int:
    position = (layout or "").find(letter)
    if position < 0:
        raise messages.no_such_axis(operator, letter, layout)
    return position


def _from_first(operator: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise messages.axis_out_of_range(operator, axis, ndim)
    return axis % ndim


def axis_from_front(operator: str, name: str, axis: int, ndim: int) -> int:
    """An axis as a number from 0; negative ones count from the end."""
    if not -ndim <= axis < ndim:
        kind = f"an axis from {-ndim} to {ndim - 1}" if ndim else "data with dimensions"
        raise messages.bad_argument(operator, name, f"requires {kind}, got {axis}")
    return axis % ndim


def axes_from_front(operator: str, name: str, axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Axes as numbers from 0; raises if an axis is given twice."""
    found = tuple(axis_from_front(operator, name, axis, ndim) for axis in axes)
    if len(set(found)) != len(found):
        raise messages.bad_argument(operator, name, f"names an axis twice: {list(axes)}")
    return found


def letter(operator: str, name: str, given: str) -> str:
    """The argument, checked to be a single letter."""
    if len(given) != 1:
        raise messages.bad_argument(operator, name, f"must be a single letter, got {given!r}")
    return given


def axis_of_letter(operator: str, name: str, given: str, layout: str | None) -> int:
    """The axis with this letter."""
    axis = (layout or "").find(letter(operator, name, given))
    if axis < 0:
        has = f'the layout "{layout}"' if layout else "no layout"
        raise messages.bad_argument(operator, name, f"is {given!r}, but the input has {has}")
    return axis


def with_letter(
    operator: str, name: str, given: str | None, layout: str | None, axis: int, ndim: int
) -> str | None:
    """The layout after inserting a named axis at `axis`; None if it has no name."""
    if given is None:
        return None
    letter(operator, name, given)
    if layout is None and ndim:
        raise messages.bad_argument(operator, name, "requires an input with a layout")
    layout = layout or ""
    return layout[:axis] + given + layout[axis:]


def fitting(operator: str, layout: str | None, ndim: int) -> str | None:
    """A layout argument, checked to have one letter per dimension; None if empty."""
    if layout and len(layout) != ndim:
        problem = f'"{layout}" names {len(layout)} dimensions, but the result has {ndim}'
        raise messages.bad_argument(operator, "layout", problem)
    return layout or None
