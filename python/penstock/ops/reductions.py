"""Reductions.

Sums, means and extremes along axes.
"""

from __future__ import annotations

from penstock._operators.arguments import Ints
from penstock._operators.definition import Data, Result, operator
from penstock._values import dtype as _dtype
from penstock._values.array import Array
from penstock._values.axes import chosen_axes
from penstock._values.dtype import DType


def _reduced(
    name: str,
    input: Array,
    dtype: DType,
    axes: Ints | None,
    axis_names: str | None,
    keep_dims: bool,
) -> Result:
    """The result of a reduction of the input to this type."""
    ndim, layout = input._value.ndim, input._value.layout
    found = chosen_axes(f"reductions.{name}", ndim, layout, axes, axis_names)
    reduced = range(ndim) if found is None else found
    if not keep_dims:
        ndim -= len(reduced)
        if layout is not None:
            kept = [letter for axis, letter in enumerate(layout) if axis not in reduced]
            layout = "".join(kept) or None
    return Result(dtype, ndim, layout, axes=tuple(reduced), result=dtype._code)


_SIGNED = frozenset({_dtype.int8, _dtype.int16, _dtype.int32, _dtype.int64})
_REAL = frozenset({_dtype.float16, _dtype.bfloat16, _dtype.float32})


def _sum_type(input: Array) -> DType:
    """The default type of a sum."""
    dtype = input.dtype
    if dtype in _REAL:
        return _dtype.float32
    if dtype is _dtype.float64:
        return dtype
    return _dtype.int64 if dtype in _SIGNED else _dtype.uint64


def _mean_type(input: Array) -> DType:
    return _dtype.float64 if input.dtype is _dtype.float64 else _dtype.float32


@operator(namespace="reductions")
def max(
    input: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
) -> Result:
    """The maximum along axes.

    NaN is ignored. The maximum of no elements is the smallest value of the type.

    Args:
        input: The data.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> ndd.reductions.max(ndd.tensor([[1, 5], [7, 2]]), axes=0).torch().tolist()
        [7, 5]
    """
    return _reduced("max", input, input.dtype, axes, axis_names, keep_dims)


@operator(namespace="reductions")
def min(
    input: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
) -> Result:
    """The minimum along axes.

    NaN is ignored. The minimum of no elements is the largest value of the type.

    Args:
        input: The data.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> ndd.reductions.min(ndd.tensor([[1, 5], [7, 2]]), axes=0).torch().tolist()
        [1, 2]
    """
    return _reduced("min", input, input.dtype, axes, axis_names, keep_dims)


@operator(namespace="reductions")
def sum(
    input: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
) -> Result:
    """The sum along axes.

    Args:
        input: The data.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        dtype: The element type of the result; by default 64 bits for integers, and that of the
            input, with at least 32 bits, for floats. Integers wrap around on overflow.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> ndd.reductions.sum(ndd.tensor([[1, 2], [3, 4]]), axes=1).torch().tolist()
        [3, 7]
    """
    return _reduced("sum", input, dtype or _sum_type(input), axes, axis_names, keep_dims)


@operator(namespace="reductions")
def mean(
    input: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
) -> Result:
    """The mean along axes.

    Args:
        input: The data.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        dtype: The element type of the result; float32 by default (float64 for float64 input).
            Integers are truncated.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> ndd.reductions.mean(ndd.tensor([[1, 2], [3, 6]]), axes=[0, 1]).torch().tolist()
        3.0
    """
    return _reduced("mean", input, dtype or _mean_type(input), axes, axis_names, keep_dims)


@operator(namespace="reductions")
def mean_square(
    input: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
) -> Result:
    """The mean of squares along axes.

    Args:
        input: The data.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        dtype: The element type of the result; float32 by default (float64 for float64 input).
            Integers are truncated.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> ndd.reductions.mean_square(ndd.tensor([1.0, 2.0, 2.0, 3.0])).torch().tolist()
        4.5
    """
    return _reduced("mean_square", input, dtype or _mean_type(input), axes, axis_names, keep_dims)


@operator(namespace="reductions")
def rms(
    input: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
) -> Result:
    """The root mean square along axes.

    Args:
        input: The data.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        dtype: The element type of the result; float32 by default (float64 for float64 input).
            Integers are truncated.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> ndd.reductions.rms(ndd.tensor([1.0, 1.0, 5.0, 3.0])).torch().tolist()
        3.0
    """
    return _reduced("rms", input, dtype or _mean_type(input), axes, axis_names, keep_dims)


@operator(namespace="reductions")
def variance(
    data: Data,
    mean: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: bool = False,
) -> Result:
    """The variance along axes, about a given mean.

    Args:
        data: The data.
        mean: One number, or the result of `mean` for the same axes.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        ddof: Delta degrees of freedom: what to subtract from the number of elements.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> data = ndd.tensor([1.0, 2.0, 6.0])
        >>> ndd.reductions.variance(data, ndd.reductions.mean(data), ddof=1).torch().tolist()
        7.0
    """
    return _reduced("variance", data, _mean_type(data), axes, axis_names, keep_dims)


@operator(namespace="reductions")
def std_dev(
    data: Data,
    mean: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: bool = False,
) -> Result:
    """The standard deviation along axes, about a given mean.

    Args:
        data: The data.
        mean: One number, or the result of `mean` for the same axes.
        axes: The axes to reduce; all by default, none if empty. Negative ones count from the
            end.
        axis_names: The same, by their letters in the input's layout.
        ddof: Delta degrees of freedom: what to subtract from the number of elements.
        keep_dims: Whether to keep the reduced axes, with an extent of 1.

    Example:
        >>> data = ndd.tensor([1.0, 3.0])
        >>> ndd.reductions.std_dev(data, ndd.reductions.mean(data)).torch().tolist()
        1.0
    """
    return _reduced("std_dev", data, _mean_type(data), axes, axis_names, keep_dims)
