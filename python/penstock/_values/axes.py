"""How calls say which axes they mean: by number, counted from either end, or by letter."""

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
    """An axis of `ndim` as a number from 0 on; negative ones count from the end."""
    if not -ndim <= axis < ndim:
        kind = f"an axis from {-ndim} to {ndim - 1}" if ndim else "data with dimensions"
        raise messages.bad_argument(operator, name, f"needs {kind}, got {axis}")
    return axis % ndim


def axes_from_front(operator: str, name: str, axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Axes as numbers from 0 on, none of them twice."""
    found = tuple(axis_from_front(operator, name, axis, ndim) for axis in axes)
    if len(set(found)) != len(found):
        raise messages.bad_argument(operator, name, f"names an axis twice: {list(axes)}")
    return found


def letter(operator: str, name: str, given: str) -> str:
    """The name of one axis."""
    if len(given) != 1:
        raise messages.bad_argument(operator, name, f"must be a single letter, got {given!r}")
    return given


def axis_of_letter(operator: str, name: str, given: str, layout: str | None) -> int:
    """Where the axis of a name is."""
    axis = (layout or "").find(letter(operator, name, given))
    if axis < 0:
        has = f'the layout "{layout}"' if layout else "no layout"
        raise messages.bad_argument(operator, name, f"asks for {given!r}, but the input has {has}")
    return axis


def with_letter(
    operator: str, name: str, given: str | None, layout: str | None, axis: int, ndim: int
) -> str | None:
    """The layout of `ndim` axes after a new one, if it has a name."""
    if given is None:
        return None
    letter(operator, name, given)
    if layout is None and ndim:
        raise messages.bad_argument(operator, name, "needs an input whose other axes have names")
    layout = layout or ""
    return layout[:axis] + given + layout[axis:]


def fitting(operator: str, layout: str | None, ndim: int) -> str | None:
    """A layout that was asked for, if it has a letter for each axis; an empty one is none."""
    if layout and len(layout) != ndim:
        problem = f'"{layout}" names {len(layout)} dimensions, but the result has {ndim}'
        raise messages.bad_argument(operator, "layout", problem)
    return layout or None
