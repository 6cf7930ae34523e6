"""Constant arrays."""

from __future__ import annotations

from penstock._operators.arguments import Ints, entries
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._values.axes import fitting
from penstock._values.dtype import DType, int32


@operator(kernel="constant", devices="cpu")
def zeros(
    *, dtype: DType = int32, layout: str | None = None, shape: PerSample[Ints] | None = None
) -> Result:
    """Make an array of zeros.

    Args:
        dtype: The element type.
        layout: A letter for each dimension.
        shape: The shape; a scalar by default.

    Example:
        >>> ndd.zeros(shape=[2, 3]).torch().tolist()
        [[0, 0, 0], [0, 0, 0]]
    """
    ndim = _ndim(shape)
    return Result(dtype, ndim, fitting("zeros", layout, ndim), fill=0, rank=ndim)


@operator(kernel="constant", devices="cpu")
def ones(
    *, dtype: DType = int32, layout: str | None = None, shape: PerSample[Ints] | None = None
) -> Result:
    """Make an array of ones.

    Args:
        dtype: The element type.
        layout: A letter for each dimension.
        shape: The shape; a scalar by default.

    Example:
        >>> ndd.ones(shape=[3], dtype=ndd.float32).torch().tolist()
        [1.0, 1.0, 1.0]
    """
    ndim = _ndim(shape)
    return Result(dtype, ndim, fitting("ones", layout, ndim), fill=1, rank=ndim)


@operator(devices="cpu")
def full(
    fill_value: Data, *, layout: str | None = None, shape: PerSample[Ints] | None = None
) -> Result:
    """Make an array filled with a value, or with a repeated array.

    Args:
        fill_value: The value. Arrays are broadcast to the shape.
        layout: A letter for each dimension.
        shape: The shape; a scalar by default.

    Example:
        >>> ndd.full([1, 2], shape=[3, 2]).torch().tolist()
        [[1, 2], [1, 2], [1, 2]]
    """
    ndim = _ndim(shape)
    return Result(fill_value.dtype, ndim, fitting("full", layout, ndim), rank=ndim)


@operator(kernel="constant_like", devices="cpu")
def zeros_like(data_like: Data, *, dtype: DType | None = None) -> Like:
    """Make an array of zeros in the shape of another.

    Args:
        data_like: The array whose shape, layout and element type the result has.
        dtype: Another element type.

    Example:
        >>> ndd.zeros_like([7, 8]).torch().tolist()
        [0, 0]
    """
    return Like(data_like, dtype=dtype, fill=0)


@operator(kernel="constant_like", devices="cpu")
def ones_like(data_like: Data, *, dtype: DType | None = None) -> Like:
    """Make an array of ones in the shape of another.

    Args:
        data_like: The array whose shape, layout and element type the result has.
        dtype: Another element type.

    Example:
        >>> ndd.ones_like([7, 8], dtype=ndd.float32).torch().tolist()
        [1.0, 1.0]
    """
    return Like(data_like, dtype=dtype, fill=1)


@operator(devices="cpu")
def full_like(data_like: Data, fill_value: Data) -> Like:
    """Make an array filled with a value, in the shape and element type of another array.

    Args:
        data_like: The array whose shape, layout and element type the result has.
        fill_value: The value, converted as by `cast`. Arrays are broadcast to the shape.

    Example:
        >>> ndd.full_like(ndd.zeros(shape=[2, 2]), [5, 6]).torch().tolist()
        [[5, 6], [5, 6]]
    """
    return Like(data_like)


def _ndim(shape: PerSample[Ints] | None) -> int:
    return 0 if shape is None else entries(shape)
