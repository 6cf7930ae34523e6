"""Normalize."""

from __future__ import annotations

from penstock import _core
from penstock._errors import messages
from penstock._operators.arguments import Ints
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._operators.submit import invoke
from penstock._values import dtype as _dtype
from penstock._values.array import Array, wrap
from penstock._values.axes import chosen_axes
from penstock._values.dtype import DType


@operator()
def normalize(
    input: Data,
    *,
    axes: Ints | None = None,
    axis_names: str | None = None,
    batch: bool = False,
    ddof: int = 0,
    dtype: DType = _dtype.float32,
    epsilon: float = 0.0,
    mean: PerSample[float] | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: PerSample[float] | None = None,
) -> Like:
    """Normalize data by its mean and standard deviation, or by given ones.

    Each value `x` becomes `(x - mean) / stddev * scale + shift`. Constant data becomes `shift`.

    Args:
        input: The data.
        axes: The axes that are reduced to statistics; all by default, or those along which a given
            `mean` or `stddev` has an extent of 1. Negative ones count from the end.
        axis_names: The same, by their letters in the input's layout.
        batch: Whether to use the statistics of the whole batch. The shapes of samples may only
            differ along `axes`.
        ddof: Delta degrees of freedom of the standard deviation: what to subtract from the number
            of elements.
        dtype: The element type of the result. Integers are rounded and saturated.
        epsilon: Added to the variance, to avoid dividing by small numbers.
        mean: The mean, if known: one number, or an array with the extents of the input, and 1
            along `axes`.
        scale: The standard deviation of the result.
        shift: The mean of the result.
        stddev: The standard deviation, if known; as for `mean`.

    Example:
        >>> row = ndd.tensor([1.0, 2.0, 3.0])
        >>> ndd.normalize(row, scale=1.5**0.5, shift=4.0).torch().round().tolist()
        [2.0, 4.0, 6.0]
    """
    value = input._value
    found = chosen_axes("normalize", value.ndim, value.layout, axes, axis_names)
    if found is not None:
        if not found:
            raise messages.no_axes("normalize")
        if _is_number(mean) and _is_number(stddev):
            raise messages.axes_of_numbers("normalize")
    shared = None
    if batch:
        for name, given in (("mean", mean), ("stddev", stddev)):
            if given is not None and (not _is_number(given) or _is_batch(given)):
                raise messages.not_shared("normalize", name)
        if (mean is None or stddev is None) and len(value) > 0:
            shared = _shared_moments(input, found, mean, ddof)
    return Like(input, dtype=dtype, axes=found, shared=shared)


def _is_number(given: float | Array | None) -> bool:
    return given is not None and (not isinstance(given, Array) or given._value.ndim == 0)


def _is_batch(given: float | Array | None) -> bool:
    return isinstance(given, Array) and given._value.batch


# Registered under the operator's name, which errors show.
_MOMENTS = _core.register("normalize", "moments")
_SHARED_MOMENTS = _core.register("normalize", "shared_moments")


def _shared_moments(
    input: Array, axes: tuple[int, ...] | None, mean: float | Array | None, ddof: int
) -> Array:
    """Mean and variance of a whole batch, from those of its samples."""
    value = input._value
    double = _dtype.float64._code
    values = [value]
    argument: float | list[int] | None
    if isinstance(mean, Array):
        values.append(mean._value)
        argument = [1]
    else:
        argument = mean
    promise = (double, value.ndim + 1, None)
    samples = len(value) if value.batch else None
    args = (axes, argument)
    (moments,) = invoke(_MOMENTS, values, 1, args, samples, [promise], value.device)
    (shared,) = invoke(_SHARED_MOMENTS, [moments], 1, (ddof,), None, [promise], value.device)
    made: Array = wrap(shared)
    return made
