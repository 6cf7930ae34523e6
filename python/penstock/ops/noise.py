"""Noise on data.

Each operator draws from `rng`, or from the calling thread's default RNG, for each sample anew.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.constraints import NUMBERS, Between
from penstock._operators.definition import Data, Like, PerSample, operator

Probability: TypeAlias = Annotated[PerSample[float], Between(0, 1)]


@operator(namespace="noise", random=True)
def gaussian(
    input: Annotated[Data, NUMBERS], *, mean: PerSample[float] = 0.0, stddev: PerSample[float] = 1.0
) -> Like:
    """Add numbers of a normal distribution. Integers are rounded and saturated.

    Args:
        input: The data.
        mean: The mean of what is added.
        stddev: Its standard deviation.

    Example:
        >>> ndd.noise.gaussian([1.0, 2.0], mean=0.5, stddev=0).torch().tolist()
        [1.5, 2.5]
    """
    return Like(input)


@operator(namespace="noise", random=True)
def salt_and_pepper(
    input: Annotated[Data, NUMBERS],
    *,
    pepper_val: PerSample[float] | None = None,
    per_channel: bool = False,
    prob: Probability = 0.05,
    salt_val: PerSample[float] | None = None,
    salt_vs_pepper: Probability = 0.5,
) -> Like:
    """Put grains of salt and of pepper on pixels.

    Args:
        input: The data. Without a layout, its last dimension is taken for channels.
        pepper_val: What pepper looks like; by default the least number of the type, and -1 for
            floats.
        per_channel: Whether the channels of a pixel get grains each for itself.
        prob: How likely a pixel gets a grain.
        salt_val: What salt looks like; by default the largest number of the type, and 1 for floats.
        salt_vs_pepper: How likely a grain is salt.

    Example:
        >>> image = ndd.tensor([[10, 20, 30]], dtype=ndd.uint8)
        >>> ndd.noise.salt_and_pepper(image, prob=1, salt_vs_pepper=1).torch().tolist()
        [[255, 255, 255]]
    """
    return Like(input)


@operator(namespace="noise", random=True)
def shot(input: Annotated[Data, NUMBERS], *, factor: PerSample[float] = 12.0) -> Like:
    """Make brightness grainy, as if light had come in few portions.

    Each number becomes `factor` times a number of the Poisson distribution, with itself as the
    mean of that.

    Args:
        input: The data. What is not above zero becomes zero.
        factor: The size of a portion; the larger, the more noise.

    Example:
        >>> made = ndd.noise.shot(ndd.tensor([60.0] * 1000), factor=20)
        >>> set(made.torch().tolist()) <= {20.0 * n for n in range(50)}
        True
    """
    return Like(input)
