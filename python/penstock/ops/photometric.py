"""Invert, posterize and sharpen.

Pixel values range from 0 to the maximum of an integer type, and from 0 to 1 for floats. Results
match torchvision.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import REQUIRED
from penstock._operators.constraints import NUMBERS, Between
from penstock._operators.definition import Data, Like, PerSample, operator

_LAYOUTS = "HWC CHW HW FHWC FCHW FHW"

Numbers: TypeAlias = Annotated[Data, NUMBERS]


@operator(in_dali=False)
def invert(input: Numbers) -> Like:
    """Invert images.

    Integers become the maximum of their type minus `x`, floats `1 - x`. Negative integers stay
    negative.

    Args:
        input: Images of any layout.

    Example:
        >>> ndd.invert(ndd.tensor([0, 100, 255], dtype=ndd.uint8)).torch().tolist()
        [255, 155, 0]
    """
    return Like(input)


@operator(in_dali=False)
def posterize(input: Numbers, *, bits: Annotated[PerSample[int], Between(0, 8)] = REQUIRED) -> Like:
    """Reduce the number of bits of each channel.

    Args:
        input: Images of any layout.
        bits: The number of most significant bits to keep. Floats are quantized to `2 ** bits`
            levels in [0, 1).

    Example:
        >>> ndd.posterize(ndd.tensor([10, 100, 255], dtype=ndd.uint8), bits=2).torch().tolist()
        [0, 64, 192]
    """
    return Like(input)


@operator(in_dali=False)
def solarize(input: Numbers, *, threshold: PerSample[float] | None = None) -> Like:
    """Invert all pixel values at or above a threshold.

    Args:
        input: Images of any layout.
        threshold: The smallest value that is inverted. By default the middle of the range: 128 for
            uint8, 0.5 for floats.

    Example:
        >>> ndd.solarize(ndd.tensor([10, 127, 128, 255], dtype=ndd.uint8)).torch().tolist()
        [10, 127, 127, 0]
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False)
def autocontrast(input: Numbers) -> Like:
    """Stretch the values of each channel to the full range.

    The minimum of a channel becomes 0, its maximum the largest value of the type. A channel with
    a single value is left unchanged. Frames of a sequence are stretched separately.

    Args:
        input: Images of any number of channels.

    Example:
        >>> ndd.autocontrast(ndd.tensor([[10, 60, 110]], dtype=ndd.uint8)).torch().tolist()
        [[0, 127, 255]]
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False)
def sharpness(
    input: Numbers, *, sharpness_factor: Annotated[PerSample[float], Between(0, None)] = REQUIRED
) -> Like:
    """Sharpen or blur images.

    Edge pixels are left unchanged.

    Args:
        input: Images of any number of channels.
        sharpness_factor: 0 blurs with a small kernel, 1 changes nothing, 2 doubles the difference
            from the blurred image.

    Example:
        >>> dot = ndd.tensor([[0, 0, 0], [0, 130, 0], [0, 0, 0]], dtype=ndd.uint8)
        >>> ndd.sharpness(dot, sharpness_factor=0).torch()[1].tolist()
        [0, 50, 0]
        >>> ndd.sharpness(dot, sharpness_factor=1.5).torch()[1].tolist()
        [0, 170, 0]
    """
    return Like(input)
