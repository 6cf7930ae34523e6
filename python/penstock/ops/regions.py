"""Slice and pad."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock import _core
from penstock._operators.arguments import Floats, Ints
from penstock._operators.constraints import OneOf
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._operators.deprecated import Deprecated, chosen_dtype
from penstock._operators.submit import invoke
from penstock._values.array import Array, wrap
from penstock._values.dtype import DType, int64

_POLICIES = OneOf(
    *("error", "trim_to_shape", "pad", "constant", "edge", "clamp"),
    *("reflect", "reflect_1001", "reflect_101", "wrap"),
    ignore_case=True,
)
OutOfBoundsPolicy: TypeAlias = Annotated[str, _POLICIES]

_LARGEST = _core.register("pad", "largest")


@operator()
def slice(
    data: Data,
    anchor: Data = None,
    shape_input: Data = None,
    *,
    axes: PerSample[Ints] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    end: PerSample[Ints] | None = None,
    fill_values: Floats = (0.0,),  # type: ignore[assignment]
    image_type: Annotated[int, Deprecated()] | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    out_of_bounds_policy: OutOfBoundsPolicy = "error",
    output_dtype: Annotated[DType, Deprecated("dtype")] | None = None,
    rel_end: PerSample[Floats] | None = None,
    rel_shape: PerSample[Floats] | None = None,
    rel_start: PerSample[Floats] | None = None,
    shape: PerSample[Ints] | None = None,
    start: PerSample[Ints] | None = None,
) -> Like:
    """Slice a window out of arrays.

    The window is given by position, as its anchor (where it starts) and its shape, or by keywords:
    its start (`start` or `rel_start`; 0 by default), and either its end or its shape. Each has a
    value for each axis of the window, in the order of `axes` or `axis_names`; keywords may have one
    value for all. Relative values are multiplied by the extent of the axis. Starts and ends are
    rounded to whole elements.

    Args:
        data: The arrays.
        anchor: Where windows start: integers, or floats, which are relative by default.
        shape_input: The extents of windows; integers if the anchor is of integers.
        axes: The axes of the window, by number; an empty list means all.
        axis_names: The same, by their letters in the layout; "WH" if `axes` is not given either.
            Data of 2 to 5 dimensions without a layout is assumed to be HW, HWC, DHWC or FDHWC.
        dtype: The element type of the result; that of the data by default. Fractions are
            truncated, and values are saturated.
        end: Where windows end.
        fill_values: The value outside of the data for the policy "pad": a number, or one for each
            channel.
        image_type: Deprecated; ignored.
        normalized_anchor: Whether floats in `anchor` are relative.
        normalized_shape: Whether floats in `shape_input` are relative.
        out_of_bounds_policy: What to do if the window exceeds the data: "error" raises,
            "trim_to_shape" clips the window; others extend the data with the fill values
            ("pad" or "constant"), the edge element ("edge" or "clamp"), the reflected data with
            its edge ("reflect" or "reflect_1001") or without ("reflect_101"), or the repeated
            data ("wrap").
        output_dtype: Deprecated alias of `dtype`.
        rel_end: Where windows end, relative.
        rel_shape: The extents of windows, relative.
        rel_start: Where windows start, relative.
        shape: The extents of windows.
        start: Where windows start.

    Example:
        >>> image = ndd.tensor([[1, 2, 3], [4, 5, 6]], layout="HW")
        >>> ndd.slice(image, start=[1, 0], shape=[2, 1]).torch().tolist()
        [[2, 3]]
        >>> ndd.slice(image, start=[-1], end=[2], axis_names="W", out_of_bounds_policy="edge")[0]
        Tensor(
            [1 1 2],
            dtype=i32,
            layout="W",
            device="cpu",
            shape=(3,))
    """
    kind = chosen_dtype("slice", dtype, output_dtype)
    return Like(data, dtype=kind, to=None if kind is None else kind._code)


@operator()
def pad(
    input: Data,
    *,
    align: PerSample[Ints] | None = None,
    axes: PerSample[Ints] | None = None,
    axis_names: str | None = None,
    fill_value: PerSample[float] = 0.0,
    shape: PerSample[Ints] | None = None,
) -> Like:
    """Pad arrays at the end of their axes, by default to the largest extents in the batch.

    Args:
        input: The arrays.
        align: Pad extents to multiples of this; one for each axis, or one for all.
        axes: The axes to pad, by number; all by default, or if empty.
        axis_names: The same, by their letters in the layout.
        fill_value: The value of new elements. It is truncated for integers.
        shape: The extents to pad to, one for each axis or one for all. Larger data is left
            unchanged; 0 or -1 stands for the largest extent in the batch.

    Example:
        >>> padded = ndd.pad(ndd.batch([[1, 2, 3], [4]]), fill_value=-1)
        >>> padded.torch().tolist()
        [[1, 2, 3], [4, -1, -1]]
    """
    fixed = isinstance(shape, tuple) and len(shape) > 0 and min(shape) > 0
    return Like(input, most=None if fixed else _largest(input))


def _largest(input: Array) -> Array | None:
    """The largest extents in a batch; None if those of each sample will do."""
    value = input._value
    if not value.batch or len(value) < 2 or value.uniform:
        return None
    promise = (int64._code, 1, None)
    largest: Array = wrap(invoke(_LARGEST, (value,), 1, (), None, (promise,), value.device)[0])
    return largest
