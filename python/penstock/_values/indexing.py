"""Indexing into samples: `tensor[...]` and `batch.slice[...]`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from penstock import _core
from penstock._errors import messages
from penstock._operators.submit import invoke
from penstock._values.array import Array, Self
from penstock._values.conversion import single

if TYPE_CHECKING:
    from penstock._core import Value

_SUBSCRIPT = _core.register("slice", "subscript")
_FULL = slice(None)


def subscript(array: Self, key: Any) -> Self:
    """Index into each sample; returns the array itself if the key selects everything."""
    value = array._value
    ndim = value.ndim
    keys = _expand(key if type(key) is tuple else (key,), ndim)
    axes = ""
    args: list[Any] = [None]
    values: list[Value] = [value]
    samples = len(value) if value.batch else None
    for item in keys:
        if item is None:
            axes += "n"
            continue
        if type(item) is slice:
            if item.start in _TRIVIAL_START and item.stop is None and item.step in _TRIVIAL_STEP:
                axes += ":"
                continue
            axes += "r"
            bounds: tuple[Any, ...] = (item.start, item.stop, item.step)
        else:
            axes += "i"
            bounds = (item,)
        for bound in bounds:
            args.append(_bound(bound, values, samples))
    axes = axes.rstrip(":")
    if not axes:
        return array
    args[0] = axes
    layout = value.layout
    if layout is not None:
        # A new dimension has no letter, so the result has no layout.
        kept = axes.ljust(ndim, ":") if "n" not in axes else "i" * ndim
        layout = "".join(letter for letter, kind in zip(layout, kept, strict=True) if kind != "i")
    promise = (value.dtype, ndim - axes.count("i") + axes.count("n"), layout or None)
    [made] = invoke(_SUBSCRIPT, values, 1, tuple(args), samples, (promise,), value.device)
    return array._wrap(made)


class _Trivial:
    """A bound that selects everything. Doesn't use `==`, since bounds may be arrays."""

    def __init__(self, default: int) -> None:
        self._default = default

    def __contains__(self, bound: object) -> bool:
        return bound is None or (type(bound) is int and bound == self._default)


_TRIVIAL_START = _Trivial(0)
_TRIVIAL_STEP = _Trivial(1)


def _expand(keys: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """One key per dimension, with ellipses expanded."""
    dots = [position for position, key in enumerate(keys) if key is Ellipsis]
    if dots and len(dots) == len(keys):
        return ()
    if len(dots) > 1:
        raise ValueError("Only one Ellipsis is allowed in an index.")
    if dots:
        before, after = keys[: dots[0]], keys[dots[0] + 1 :]
        missing = max(ndim - _used(before) - _used(after), 0)
        keys = before + (_FULL,) * missing + after
    if _used(keys) > ndim:
        if all(type(key) is slice and _is_full(key) for key in keys):
            return ()
        raise ValueError(f"Too many indices: {_used(keys)} for data with {ndim} dimensions.")
    return keys


def _is_full(key: slice) -> bool:
    # Not with `==`, which compares elements if bounds are tensors.
    return key.start is key.stop is key.step is None


def _used(keys: tuple[Any, ...]) -> int:
    """The number of dimensions that the keys index; None inserts a new one."""
    return sum(key is not None for key in keys)


def _bound(bound: Any, values: list[Value], samples: int | None) -> Any:
    """A number, or the index in `values` of a tensor or batch of numbers."""
    if bound is None:
        return None
    if not isinstance(bound, Array):
        try:
            # Floats are truncated, as in DALI.
            number = int(bound) if isinstance(bound, float) else operator.index(bound)
        except TypeError:
            pass
        else:
            if not -(2**63) <= number < 2**63:
                raise OverflowError(f"An index must fit into 64 bits, got {number}.")
            return number
        if isinstance(bound, str):
            raise TypeError(f"An index must be an integer, a range or a tensor, got {bound!r}.")
        value = single(bound)
    else:
        value = bound._value
    if value.ndim != 0:
        raise RuntimeError(
            f"Array indices must be scalar (0D), got {value.ndim} dimensions. To select samples "
            "of a batch, use `tensors[...]`."
        )
    if value.batch:
        if samples is None:
            raise TypeError(
                "A tensor can't be indexed with a batch. Use `batch.slice[...]` on a batch."
            )
        if len(value) != samples:
            raise messages.batch_sizes_differ(samples, len(value), "slice")
    values.append(value)
    return [len(values) - 1]
