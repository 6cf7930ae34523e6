"""Distortions."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import Interp
from penstock._operators.constraints import NUMBERS, Between, OneOf
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock.types import INTERP_LINEAR, INTERP_NN

_NEAREST = Interp(INTERP_NN)
_FREQUENCY = 0.04908738521234052
"""2 * pi / 128: a wavelength of 128 pixels."""

Interpolation: TypeAlias = Annotated[Interp, OneOf(INTERP_NN, INTERP_LINEAR)]
Images: TypeAlias = Annotated[Data, NUMBERS]


@operator(layouts="HWC", random=True)
def jitter(
    input: Images,
    *,
    fill_value: float = 0.0,
    interp_type: Interpolation = _NEAREST,
    mask: PerSample[int] = 1,
    nDegree: Annotated[int, Between(0, None)] = 2,
) -> Like:
    """Displace each pixel by a random number of pixels, along x and y.

    Edge pixels are replicated.

    Args:
        input: The images.
        fill_value: Ignored: no pixel is taken from outside the image.
        interp_type: Ignored: displacements are whole pixels.
        mask: Which images to change: non-zero to change an image, 0 to leave it unchanged.
        nDegree: Twice the maximum displacement: pixels move by up to half of this value, in either
            direction.

    Example:
        >>> image = ndd.tensor([[[1], [2], [3]]], layout="HWC")
        >>> ndd.jitter(image, mask=0).torch().flatten().tolist()
        [1, 2, 3]
        >>> set(ndd.jitter(image, nDegree=2).torch().flatten().tolist()) <= {1, 2, 3}
        True
    """
    return Like(input, n_degree=nDegree)


@operator(layouts="HWC")
def sphere(
    input: Images,
    *,
    fill_value: float = 0.0,
    interp_type: Interpolation = _NEAREST,
    mask: PerSample[int] = 1,
) -> Like:
    """Distort images as if seen on a sphere: the center is magnified.

    Args:
        input: The images.
        fill_value: The value outside the image.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        mask: Which images to change: non-zero to change an image, 0 to leave it unchanged.

    Example:
        >>> image = ndd.tensor([[[1], [2], [3], [4], [5], [6]]], layout="HWC")
        >>> ndd.sphere(image).torch().flatten().tolist()
        [1, 3, 3, 4, 4, 6]
    """
    return Like(input)


@operator(layouts="HWC")
def water(
    input: Images,
    *,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    fill_value: float = 0.0,
    freq_x: float = _FREQUENCY,
    freq_y: float = _FREQUENCY,
    interp_type: Interpolation = _NEAREST,
    mask: PerSample[int] = 1,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
) -> Like:
    """Distort images as if seen through water waves.

    The pixel at (x, y) is taken from `x + ampl_x * sin(freq_x * y + phase_x)` and
    `y + ampl_y * cos(freq_y * x + phase_y)`.

    Args:
        input: The images.
        ampl_x: The amplitude of the waves along x, in pixels.
        ampl_y: The amplitude of the waves along y, in pixels.
        fill_value: The value outside the image.
        freq_x: The frequency of the waves along x, in radians per row.
        freq_y: The frequency of the waves along y, in radians per column.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        mask: Which images to change: non-zero to change an image, 0 to leave it unchanged.
        phase_x: The phase of the waves along x, in radians.
        phase_y: The phase of the waves along y, in radians.

    Example:
        >>> image = ndd.tensor([[[1], [2], [3], [4]]], layout="HWC")
        >>> ndd.water(image, ampl_x=2, ampl_y=0, phase_x=1.5).torch().flatten().tolist()
        [2, 3, 4, 0]
    """
    return Like(input)
