"""Random numbers.

Each operator draws from `rng`, or from the calling thread's default RNG. With `batch_size`, it
makes a batch of so many samples, each drawn for itself; without, one tensor.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import Floats, Ints
from penstock._operators.constraints import FLOATS, Between, Elements, Rank
from penstock._operators.definition import Data, PerSample, Result, operator
from penstock._values.array import Array
from penstock._values.dtype import DType, float32, int32

_DRAWN = Elements(
    "numbers", DType.Kind.signed, DType.Kind.unsigned, DType.Kind.float, DType.Kind.bool
)
DrawnType: TypeAlias = Annotated[DType, _DRAWN]
List: TypeAlias = Annotated[PerSample[Floats], Rank(0, 1)]
Extents: TypeAlias = Annotated[PerSample[Ints], Rank(0, 1)]


@operator(namespace="random", random=True)
def uniform(
    shape_like: Data = None,
    *,
    dtype: DrawnType = float32,
    range: List = (-1.0, 1.0),  # type: ignore[assignment]
    shape: Extents | None = None,
    values: List | None = None,
) -> Result:
    """Draw numbers, all equally likely, from a range or out of a list.

    Whole numbers are drawn as real ones and rounded, so that the ends of the range come up half as
    often as what is between.

    Give `batch_size` for a sample each; without it the result is one tensor, the same for all
    samples of the batches it is used with.

    Args:
        shape_like: Data whose shape the result has. Its numbers don't matter.
        dtype: The type of the result.
        range: The lowest number, and the one that all are below.
        shape: The shape of each sample; one number when neither this nor `shape_like` is given.
        values: The numbers to choose from, in place of a range.

    Example:
        >>> angles = ndd.random.uniform(batch_size=8, range=[-10, 10])
        >>> angles.batch_size
        8
        >>> ndd.random.uniform(values=[5], shape=3).torch().tolist()
        [5.0, 5.0, 5.0]
    """
    return Result(dtype, _rank("uniform", shape_like, shape))


@operator(namespace="random", random=True)
def normal(
    shape_like: Data = None,
    *,
    dtype: DrawnType = float32,
    mean: PerSample[float] = 0.0,
    shape: Extents | None = None,
    stddev: PerSample[float] = 1.0,
) -> Result:
    """Draw numbers of the normal distribution. Whole numbers are rounded.

    Give `batch_size` for a sample each; without it the result is one tensor, the same for all
    samples of the batches it is used with.

    Args:
        shape_like: Data whose shape the result has. Its numbers don't matter.
        dtype: The type of the result.
        mean: The mean.
        shape: The shape of each sample; one number when neither this nor `shape_like` is given.
        stddev: The standard deviation.

    Example:
        >>> ndd.random.normal(shape=[2, 3]).shape
        (2, 3)
    """
    return Result(dtype, _rank("normal", shape_like, shape))


@operator(namespace="random", random=True)
def coin_flip(
    shape_like: Data = None,
    *,
    dtype: DrawnType = int32,
    probability: PerSample[float] = 0.5,
    shape: Extents | None = None,
) -> Result:
    """Draw ones and zeros.

    Give `batch_size` for a sample each; without it the result is one tensor, the same for all
    samples of the batches it is used with.

    Args:
        shape_like: Data whose shape the result has. Its numbers don't matter.
        dtype: The type of the result.
        probability: How likely a one is.
        shape: The shape of each sample; one number when neither this nor `shape_like` is given.

    Example:
        >>> ndd.random.coin_flip(probability=1, shape=4).torch().tolist()
        [1, 1, 1, 1]
    """
    return Result(dtype, _rank("coin_flip", shape_like, shape))


@operator(namespace="random", random=True)
def choice(
    a: Data,
    shape_like: Data = None,
    *,
    p: Annotated[List, Between(0, 1)] | None = None,
    shape: Extents | None = None,
) -> Result:
    """Choose out of what there is, with repetitions.

    Give `batch_size` for a sample each; without it, and without a batch as input, the result is one
    tensor, the same for all samples of the batches it is used with.

    Args:
        a: A number, to choose from the numbers below; or an array, to choose from what lies along
            its first axis.
        shape_like: Data whose shape the result has. Its numbers don't matter.
        p: How likely each choice is; the sum must be 1. All are equally likely when not given.
        shape: How many to choose; one when neither this nor `shape_like` is given.

    Example:
        >>> ndd.random.choice([3, 5, 7], p=[0, 1, 0], shape=4).torch().tolist()
        [5, 5, 5, 5]
    """
    rank = _rank("choice", shape_like, shape)
    rows = a._value.ndim - 1
    if rank is None or rows < 0:
        return Result(a.dtype, rank)
    # Choices in a row have the layout of `a`; a single one that of what lies along its first axis.
    layout = a._value.layout or ""
    return Result(a.dtype, rank + rows, (layout[1:], layout)[rank] or None if rank < 2 else None)


@operator(namespace="random", random=True, devices="cpu")
def beta(
    shape_like: Data = None,
    *,
    alpha: PerSample[float] = 1.0,
    beta: PerSample[float] = 1.0,
    dtype: Annotated[DType, FLOATS] = float32,
    shape: Extents | None = None,
) -> Result:
    """Draw numbers of the beta distribution, which are between 0 and 1.

    Give `batch_size` for a sample each; without it the result is one tensor, the same for all
    samples of the batches it is used with.

    Args:
        shape_like: Data whose shape the result has. Its numbers don't matter.
        alpha: The first parameter of the distribution, above 0.
        beta: The second, above 0.
        dtype: The type of the result, a float.
        shape: The shape of each sample; one number when neither this nor `shape_like` is given.

    Example:
        >>> lots = ndd.random.beta(alpha=0.2, beta=0.2, batch_size=8)
        >>> lots.dtype
        DType(kind=Kind.float, bits=32, exponent_bits=8, significand_bits=23)
    """
    return Result(dtype, _rank("beta", shape_like, shape))


@operator(random=True, devices="cpu")
def batch_permutation(*, allow_repetitions: bool = False, no_fixed_points: bool = False) -> Result:
    """Shuffle the numbers of a batch's samples: 0 up to `batch_size`, which must be given.

    Args:
        allow_repetitions: Draw each number for itself, so that some may come twice.
        no_fixed_points: Let no sample get its own number. (The only one of a batch does.) Without
            repetitions, the samples then follow one another in a single circle.

    Example:
        >>> order = ndd.batch_permutation(batch_size=4)
        >>> sorted(order.torch().tolist())
        [0, 1, 2, 3]
    """
    return Result(int32, 0)


def _rank(name: str, like: Array | None, shape: Ints | Array | None) -> int | None:
    """How many dimensions the draws have; None when that is not known yet."""
    if shape is None:
        return 0 if like is None else like._value.ndim
    if not isinstance(shape, Array):
        return len(shape)
    value = shape._value
    if value.ndim == 0:
        return 1
    if not value.finished or len(value) == 0:
        return None
    ranks = {extents[0] for extents in value.shapes()}
    if len(ranks) > 1:
        raise ValueError(
            f"random.{name}: `shape` must have as many extents for each sample, got {ranks}."
        )
    return ranks.pop()
