"""Shape.

Shapes, axes and their order, and joining arrays.
"""

from __future__ import annotations

from typing import Annotated, Any

from penstock._errors import messages
from penstock._operators.arguments import KEEP, REQUIRED, Floats, Ints, entries, same_for_all
from penstock._operators.constraints import INTEGERS
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._values.array import Array
from penstock._values.axes import (
    axes_from_front,
    axis_from_front,
    axis_of_letter,
    fitting,
    with_letter,
)
from penstock._values.dtype import DType


@operator()
def reshape(
    data: Data,
    shape_input: Annotated[Data, INTEGERS] = None,
    *,
    layout: str | None = None,
    rel_shape: PerSample[Floats] | None = None,
    shape: PerSample[Ints] | None = None,
    src_dims: PerSample[Ints] | None = None,
) -> Like:
    """Change the shape or layout, without copying.

    Args:
        data: The data.
        shape_input: The shape, as an input.
        layout: The layout of the result; an empty one removes it. By default it is kept if the
            rank doesn't change.
        rel_shape: The shape, as multiples of the extents of `data`. One may be negative: it is
            inferred.
        shape: The shape. One extent may be negative: it is inferred.
        src_dims: For each dimension of the result, the dimension of `data` whose extent it has, or
            that `rel_shape` refers to; -1 stands for an extent of 1.

    Example:
        >>> ndd.reshape([[1, 2, 3], [4, 5, 6]], shape=[3, -1]).torch().tolist()
        [[1, 2], [3, 4], [5, 6]]
    """
    if all(x is None for x in (shape_input, layout, rel_shape, shape, src_dims)):
        raise messages.bad_argument("reshape", "shape", "or another of its arguments must be given")
    return _reshaped("reshape", data, shape_input, layout, rel_shape, shape, src_dims, None)


@operator()
def reinterpret(
    data: Data,
    shape_input: Annotated[Data, INTEGERS] = None,
    *,
    dtype: DType | None = None,
    layout: str | None = None,
    rel_shape: PerSample[Floats] | None = None,
    shape: PerSample[Ints] | None = None,
    src_dims: PerSample[Ints] | None = None,
) -> Like:
    """Reinterpret the bytes as elements of another type or shape, without copying.

    Args:
        data: The data.
        shape_input: The shape, as an input.
        dtype: The element type. Unless a shape is given, the last dimension is adapted to the size
            of an element.
        layout: The layout of the result; an empty one removes it. By default it is kept if the
            rank doesn't change.
        rel_shape: The shape, as multiples of the extents of `data`. One may be negative: it is
            inferred.
        shape: The shape. One extent may be negative: it is inferred.
        src_dims: For each dimension of the result, the dimension of `data` whose extent it has, or
            that `rel_shape` refers to; -1 stands for an extent of 1.

    Example:
        >>> ndd.reinterpret(ndd.tensor([1.0]), dtype=ndd.uint8).torch().tolist()
        [0, 0, 128, 63]
    """
    if all(x is None for x in (shape_input, dtype, layout, rel_shape, shape, src_dims)):
        raise messages.bad_argument("reinterpret", "dtype", "or a shape or a layout must be given")
    return _reshaped("reinterpret", data, shape_input, layout, rel_shape, shape, src_dims, dtype)


def _reshaped(
    operator: str,
    data: Array,
    shape_input: Array | None,
    layout: str | None,
    rel_shape: PerSample[Floats] | None,
    shape: PerSample[Ints] | None,
    src_dims: PerSample[Ints] | None,
    dtype: DType | None,
) -> Like:
    if sum(x is not None for x in (shape_input, rel_shape, shape)) > 1:
        raise messages.bad_argument(
            operator, "shape", "is given twice: as an input, as `shape` or as `rel_shape`"
        )
    kernel: dict[str, Any] = {}
    if shape_input is not None:
        shape = shape_input
        kernel["shape"] = [1]  # the kernel reads the argument from the second input
    extents = next((x for x in (shape, rel_shape, src_dims) if x is not None), None)
    ndim = data.ndim if extents is None else entries(extents)
    if layout is not None:
        layout = fitting(operator, layout, ndim)
    elif ndim == data.ndim:
        layout = KEEP
    return Like(data, dtype=dtype, ndim=ndim, layout=layout, rank=ndim, **kernel)


@operator()
def squeeze(
    data: Data, *, axes: PerSample[Ints] | None = None, axis_names: str | None = None
) -> Like:
    """Remove dimensions of extent 1; nothing is copied.

    Args:
        data: The data.
        axes: Which dimensions; negative ones count from the end.
        axis_names: Which dimensions, by their letters in the layout.

    Example:
        >>> ndd.squeeze([[[1, 2, 3]]], axes=[0, 1]).torch().tolist()
        [1, 2, 3]
    """
    layout = data.layout
    if axes is not None and axis_names is None:
        found = same_for_all("squeeze", "axes", axes)
    elif axis_names is not None and axes is None:
        found = tuple(axis_of_letter("squeeze", "axis_names", name, layout) for name in axis_names)
    else:
        raise messages.bad_argument("squeeze", "axes", "or `axis_names` must be given, one of them")
    found = axes_from_front("squeeze", "axes", found, data.ndim)
    kept = "".join(name for axis, name in enumerate(layout or "") if axis not in found)
    return Like(data, ndim=data.ndim - len(found), layout=kept or None, axes=found)


@operator()
def expand_dims(data: Data, *, axes: Ints = REQUIRED, new_axis_names: str = "") -> Like:
    """Insert dimensions of extent 1, without copying.

    Args:
        data: The data.
        axes: The positions of the new dimensions in the result; negative ones count from the end.
        new_axis_names: A letter for each of them. Without, the result has no layout.

    Example:
        >>> ndd.expand_dims([1, 2, 3], axes=[0]).torch().tolist()
        [[1, 2, 3]]
    """
    layout = data.layout
    ndim = data.ndim + len(axes)
    found = axes_from_front("expand_dims", "axes", axes, ndim)
    if new_axis_names:
        if len(new_axis_names) != len(axes):
            raise messages.bad_argument(
                "expand_dims",
                "new_axis_names",
                f'must have a letter for each of {len(axes)} axes, got "{new_axis_names}"',
            )
        if layout is None and data.ndim:
            raise messages.bad_argument(
                "expand_dims", "new_axis_names", "needs an input whose other axes have names"
            )
        layout = layout or ""
        for axis, name in sorted(zip(found, new_axis_names, strict=True)):
            layout = layout[:axis] + name + layout[axis:]
    elif axes:
        layout = None
    return Like(data, ndim=ndim, layout=layout, axes=tuple(sorted(found)))


@operator()
def transpose(
    input: Data,
    *,
    output_layout: str | None = None,
    perm: Ints | None = None,
    transpose_layout: bool = True,
) -> Like:
    """Permute the dimensions.

    Args:
        input: The data.
        output_layout: The layout of the result, instead of the one that follows from `perm`.
        perm: For each dimension of the result, the dimension of the input. By default the order is
            reversed.
        transpose_layout: Whether to permute the letters of the layout, too.

    Example:
        >>> ndd.transpose([[1, 2, 3], [4, 5, 6]]).torch().tolist()
        [[1, 4], [2, 5], [3, 6]]
    """
    ndim, layout = input.ndim, input.layout
    if perm is None:
        perm = Ints(tuple(reversed(range(ndim))))
    elif sorted(perm) != list(range(ndim)):
        raise messages.bad_argument(
            "transpose", "perm", f"must name each of {ndim} dimensions once, got {list(perm)}"
        )
    if output_layout is not None:
        if len(output_layout) != ndim or not output_layout:
            raise messages.bad_argument(
                "transpose",
                "output_layout",
                f'must have a letter for each of {ndim} dimensions, got "{output_layout}"',
            )
        layout = output_layout
    elif transpose_layout and layout is not None:
        layout = "".join(layout[axis] for axis in perm)
    return Like(input, layout=layout, perm=perm)


@operator(kernel="join")
def cat(input_0: Data, *inputs: Data, axis: int = 0, axis_name: str | None = None) -> Like:
    """Concatenate arrays along an existing dimension.

    Args:
        input_0: The first array.
        inputs: More arrays, of the same type. Their shapes may differ in the joined dimension
            only; arrays without elements are skipped.
        axis: The dimension; a negative one counts from the end.
        axis_name: The dimension by its letter in the layout.

    Example:
        >>> ndd.cat([[1, 2]], [[3, 4], [5, 6]]).torch().tolist()
        [[1, 2], [3, 4], [5, 6]]
    """
    layout = _common_layout("cat", input_0, inputs)
    if axis_name is None:
        axis = axis_from_front("cat", "axis", axis, input_0.ndim)
    elif axis:
        raise messages.bad_argument("cat", "axis", "and `axis_name` can't be given together")
    else:
        axis = axis_of_letter("cat", "axis_name", axis_name, input_0.layout)
    return Like(input_0, layout=layout, axis=axis, new_axis=0)


@operator(kernel="join")
def stack(input_0: Data, *inputs: Data, axis: int = 0, axis_name: str | None = None) -> Like:
    """Stack arrays of one shape along a new dimension.

    Args:
        input_0: The first array.
        inputs: More arrays, of the same type and shape.
        axis: The position of the new dimension in the result; a negative one counts from the end.
        axis_name: The letter of the new dimension. Without one, the result has no layout.

    Example:
        >>> ndd.stack([1, 2], [3, 4], axis=1).torch().tolist()
        [[1, 3], [2, 4]]
    """
    _common_layout("stack", input_0, inputs)
    ndim = input_0.ndim
    axis = axis_from_front("stack", "axis", axis, ndim + 1)
    layout = with_letter("stack", "axis_name", axis_name, input_0.layout, axis, ndim)
    return Like(input_0, ndim=ndim + 1, layout=layout, axis=axis, new_axis=1)


def _common_layout(operator: str, first: Array, others: tuple[Array, ...]) -> str | None:
    """Check that inputs can be joined, and return the first layout among them."""
    layout = first.layout
    for position, other in enumerate(others, 1):
        if other.dtype != first.dtype or other.ndim != first.ndim:
            raise messages.bad_input(
                operator,
                "all inputs must have the same type and number of dimensions: input 0 is "
                f"{first.dtype}, {first.ndim}-D, input {position} is {other.dtype}, "
                f"{other.ndim}-D",
            )
        layout = layout or other.layout
    return layout
