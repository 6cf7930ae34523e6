"""Random numbers.

Each operator draws from `rng`, or from the calling thread's default RNG. With `batch_size`, it
makes a batch of that many samples; without it, one tensor.
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
    """Draw uniformly from a range or from a list of values.

    Integers are drawn as real numbers and rounded, so that the ends of the range are half as likely
    as the other ones.

    Give `batch_size` to draw for each sample; without it, the result is one tensor, which all
    samples of a batch share.

    Args:
        shape_like: Data whose shape the result has. Its values are not used.
        dtype: The element type of the result.
        range: The lower limit, which is included, and the upper one, which isn't.
        shape: The shape of each sample; a scalar if neither this nor `shape_like` is given.
        values: The values to choose from, instead of a range.

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
    """Draw from a normal distribution. Integers are rounded.

    Give `batch_size` to draw for each sample; without it, the result is one tensor, which all
    samples of a batch share.

    Args:
        shape_like: Data whose shape the result has. Its values are not used.
        dtype: The element type of the result.
        mean: The mean.
        shape: The shape of each sample; a scalar if neither this nor `shape_like` is given.
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
    """Draw zeros and ones.

    Give `batch_size` to draw for each sample; without it, the result is one tensor, which all
    samples of a batch share.

    Args:
        shape_like: Data whose shape the result has. Its values are not used.
        dtype: The element type of the result.
        probability: The probability of a one.
        shape: The shape of each sample; a scalar if neither this nor `shape_like` is given.

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
    """Choose from the given elements, with replacement.

    Give `batch_size` to draw for each sample; without it, and without a batch as input, the result
    is one tensor, which all samples of a batch share.

    Args:
        a: An integer n, to choose from 0 to n - 1; or an array, to choose along its first axis.
        shape_like: Data whose shape the result has. Its values are not used.
        p: The probability of each choice; they must sum to 1. Uniform by default.
        shape: The shape of the choices; a single one if neither this nor `shape_like` is given.

    Example:
        >>> ndd.random.choice([3, 5, 7], p=[0, 1, 0], shape=4).torch().tolist()
        [5, 5, 5, 5]
    """
    rank = _rank("choice", shape_like, shape)
    rows = a._value.ndim - 1
    if rank is None or rows < 0:
        return Result(a.dtype, rank)
    # A list of choices has the layout of `a`; a single one loses the first axis.
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
    """Draw from a beta distribution.

    Give `batch_size` to draw for each sample; without it, the result is one tensor, which all
    samples of a batch share.

    Args:
        shape_like: Data whose shape the result has. Its values are not used.
        alpha: The first parameter of the distribution; positive.
        beta: The second parameter; positive.
        dtype: The element type of the result.
        shape: The shape of each sample; a scalar if neither this nor `shape_like` is given.

    Example:
        >>> lots = ndd.random.beta(alpha=0.2, beta=0.2, batch_size=8)
        >>> lots.dtype
        DType(kind=Kind.float, bits=32, exponent_bits=8, significand_bits=23)
    """
    return Result(dtype, _rank("beta", shape_like, shape))


@operator(random=True, devices="cpu")
def batch_permutation(*, allow_repetitions: bool = False, no_fixed_points: bool = False) -> Result:
    """Make a random permutation of sample indices, from 0 to `batch_size` - 1.

    `batch_size` must be given.

    Args:
        allow_repetitions: Whether to draw indices independently, so that some may repeat.
        no_fixed_points: Whether no sample may get its own index (except in a batch of one). Without
            repetitions, the permutation is then a single cycle.

    Example:
        >>> order = ndd.batch_permutation(batch_size=4)
        >>> sorted(order.torch().tolist())
        [0, 1, 2, 3]
    """
    return Result(int32, 0)


def _rank(name: str, like: Array | None, shape: Ints | Array | None) -> int | None:
    """The rank of the result; None if it isn't known yet."""
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
