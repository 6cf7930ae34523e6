"""Operators on arrays of any meaning."""

from __future__ import annotations

from penstock._argument import REQUIRED
from penstock._define import Data, Like, operator
from penstock._dtype import DType


@operator()
def cast(input: Data, *, dtype: DType = REQUIRED) -> Like:
    """Convert to another element type.

    Floats become the nearest integer (halves away from zero); what does not fit becomes the
    nearest value that does.

    Args:
        input: The data.
        dtype: The type to convert to.

    Example:
        >>> cast(tensor([-1.0, 0.5, 300.0]), dtype=uint8).torch().tolist()
        [0, 1, 255]
    """
    return Like(input, dtype=dtype)


@operator()
def copy(input: Data) -> Like:
    """Copy data into memory of its own, possibly on another device.

    Args:
        input: The data.

    Example:
        >>> original = tensor([1, 2, 3])
        >>> copy(original).torch().tolist()
        [1, 2, 3]
    """
    return Like(input)
