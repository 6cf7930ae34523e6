"""Noise.

Each operator draws from `rng`, or from the calling thread's default RNG, separately for each
sample.
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
    """Add Gaussian noise. Integers are rounded and saturated.

    Args:
        input: The data.
        mean: The mean of the noise.
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
    """Add salt-and-pepper noise.

    Args:
        input: The data. Without a layout, the last dimension holds the channels.
        pepper_val: The value of pepper; by default the smallest one of the type, and -1 for
            floats.
        per_channel: Whether to draw for each channel of a pixel separately.
        prob: The probability that a pixel is changed.
        salt_val: The value of salt; by default the largest one of the type, and 1 for floats.
        salt_vs_pepper: The probability that a changed pixel is salt.

    Example:
        >>> image = ndd.tensor([[10, 20, 30]], dtype=ndd.uint8)
        >>> ndd.noise.salt_and_pepper(image, prob=1, salt_vs_pepper=1).torch().tolist()
        [[255, 255, 255]]
    """
    return Like(input)


@operator(namespace="noise", random=True)
def shot(input: Annotated[Data, NUMBERS], *, factor: PerSample[float] = 12.0) -> Like:
    """Add shot noise, as of a sensor that counts few photons.

    Each value `x` becomes `factor * Poisson(x / factor)`.

    Args:
        input: The data. Values that are not positive become 0.
        factor: The strength of the noise.

    Example:
        >>> made = ndd.noise.shot(ndd.tensor([60.0] * 1000), factor=20)
        >>> set(made.torch().tolist()) <= {20.0 * n for n in range(50)}
        True
    """
    return Like(input)
