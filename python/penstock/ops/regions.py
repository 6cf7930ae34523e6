"""Parts of arrays, and what lies around them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock import _core
from penstock._operators.arguments import Floats, Ints
from penstock._operators.constraints import OneOf
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._operators.deprecated import chosen_dtype
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
    image_type: int | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    out_of_bounds_policy: OutOfBoundsPolicy = "error",
    output_dtype: DType | None = None,
    rel_end: PerSample[Floats] | None = None,
    rel_shape: PerSample[Floats] | None = None,
    rel_start: PerSample[Floats] | None = None,
    shape: PerSample[Ints] | None = None,
    start: PerSample[Ints] | None = None,
) -> Like:
    """Cut a window out of arrays.

    The window is given by position, as its anchor (where it starts) and its shape, or by keywords:
    where it starts (`start` or `rel_start`; by default at the beginning) and one of what it ends
    at and how long it is. Each has a value for each axis of the window, in the order in which
    `axes` or `axis_names` name them; keywords may have one value for all. What is relative is
    multiplied by the extent of the axis. Starts and ends are rounded to whole elements.

    Args:
        data: The arrays to cut from.
        anchor: Where windows start: integers, or floats, which are relative by default.
        shape_input: How large windows are, as integers if the anchor has integers.
        axes: The axes that the window is for, by number; an empty list means all.
        axis_names: The same by the letters of the layout; "WH" when there are no `axes` either.
            Data of 2 to 5 dimensions without layout is taken for HW, HWC, DHWC and FDHWC.
        dtype: The element type of the result, by default that of the data. Fractions are cut
            off, and what does not fit becomes the nearest value that does.
        end: Where windows end.
        fill_values: What is outside of the data with the policy "pad": a number, or one for each
            channel.
        image_type: Deprecated, without effect.
        normalized_anchor: Whether floats as `anchor` are relative.
        normalized_shape: Whether floats as `shape_input` are relative.
        out_of_bounds_policy: What to do with windows that go beyond the data: "error",
            "trim_to_shape" cuts off what is outside; others take for what is outside the fill
            values ("pad" or "constant"), the nearest element ("edge" or "clamp"), the mirrored
            data with its edge ("reflect" or "reflect_1001") or without ("reflect_101"), or the
            data repeated ("wrap").
        output_dtype: Deprecated, the same as `dtype`.
        rel_end: Where windows end, relative.
        rel_shape: How large windows are, relative.
        rel_start: Where windows start, relative.
        shape: How large windows are.
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
    """Extend arrays at the end of their axes, by default to the largest extents of the batch.

    Args:
        input: The arrays.
        align: Extents become multiples of this; one for each axis, or one for all.
        axes: The axes to extend, by number; by default, or when empty, all.
        axis_names: The same by the letters of the layout.
        fill_value: What new elements are. It is cut off to an integer where elements are.
        shape: The extents to extend to, one for each axis or one for all. Data that is larger
            stays as it is; 0 or -1 stands for the largest extent of the batch.

    Example:
        >>> padded = ndd.pad(ndd.batch([[1, 2, 3], [4]]), fill_value=-1)
        >>> padded.torch().tolist()
        [[1, 2, 3], [4, -1, -1]]
    """
    fixed = isinstance(shape, tuple) and len(shape) > 0 and min(shape) > 0
    return Like(input, most=None if fixed else _largest(input))


def _largest(input: Array) -> Array | None:
    """The largest extents of a batch; none where they are each sample's own."""
    value = input._value
    if not value.batch or len(value) < 2 or value.alike:
        return None
    promise = (int64._code, 1, None)
    largest: Array = wrap(invoke(_LARGEST, (value,), 1, (), None, (promise,), value.device)[0])
    return largest
