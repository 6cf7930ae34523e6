"""Axes of an operator's input, given by number or by letters of its layout."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import _errors


def chosen_axes(
    operator: str,
    ndim: int,
    layout: str | None,
    axes: Sequence[int] | None,
    axis_names: str | None,
) -> tuple[int, ...] | None:
    """The axes that a call names, counted from the first; None when it names none.

    Args:
        operator: Who asks, for errors.
        ndim: How many axes there are.
        layout: Their letters.
        axes: Their numbers; negative ones count from the end.
        axis_names: Their letters instead.
    """
    if axis_names is not None:
        if axes is not None:
            raise _errors.axes_given_twice(operator)
        axes = [_position(operator, letter, layout) for letter in axis_names]
    if axes is None:
        return None
    found = tuple(_from_first(operator, axis, ndim) for axis in axes)
    if len(set(found)) < len(found):
        raise _errors.duplicate_axis(operator, found)
    return found


def _position(operator: str, letter: str, layout: str | None) -> int:
    position = (layout or "").find(letter)
    if position < 0:
        raise _errors.no_such_axis(operator, letter, layout)
    return position


def _from_first(operator: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise _errors.axis_out_of_range(operator, axis, ndim)
    return axis % ndim
