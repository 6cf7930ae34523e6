"""Augmentation.

Shear, translate, random erasing, blurs and warps, as in torchvision and albumentations. Random
operators draw from `rng`, or from the calling thread's default RNG, separately for each sample.
All frames of a sequence are augmented in the same way.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import REQUIRED, Floats, Interp
from penstock._operators.constraints import NUMBERS, Between
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock.ops.warp import Interpolation
from penstock.types import INTERP_LINEAR, INTERP_NN

_LAYOUTS = "HWC CHW HW FHWC FCHW FHW"
_NEAREST, _LINEAR = Interp(INTERP_NN), Interp(INTERP_LINEAR)
_ZERO = Floats((0.0,))

Numbers: TypeAlias = Annotated[Data, NUMBERS]
Probability: TypeAlias = Annotated[PerSample[float], Between(0, 1)]


@operator(layouts=_LAYOUTS, in_dali=False)
def shear_x(
    input: Data,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    shear: PerSample[float] = REQUIRED,
) -> Like:
    """Shear images along the x axis.

    The top edge stays in place. The pixel at (x, y) is taken from x + shear * y.

    Args:
        input: The images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        shear: The factor.

    Example:
        >>> image = ndd.tensor([[1, 2, 3], [1, 2, 3], [1, 2, 3]], dtype=ndd.uint8)
        >>> ndd.shear_x(image, shear=1).torch().tolist()
        [[2, 3, 0], [3, 0, 0], [0, 0, 0]]
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False)
def shear_y(
    input: Data,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    shear: PerSample[float] = REQUIRED,
) -> Like:
    """Shear images along the y axis.

    The left edge stays in place. The pixel at (x, y) is taken from y + shear * x.

    Args:
        input: The images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        shear: The factor.

    Example:
        >>> image = ndd.tensor([[1, 2, 3], [4, 5, 6]], dtype=ndd.uint8)
        >>> ndd.shear_y(image, shear=0.4).torch().tolist()
        [[1, 5, 6], [4, 0, 0]]
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False)
def translate_x(
    input: Data,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    offset: PerSample[float] = REQUIRED,
) -> Like:
    """Translate images along the x axis.

    Args:
        input: The images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        offset: The distance in pixels; positive moves the image to the right.

    Example:
        >>> ndd.translate_x(ndd.tensor([[1, 2, 3]], dtype=ndd.uint8), offset=1).torch().tolist()
        [[0, 1, 2]]
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False)
def translate_y(
    input: Data,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    offset: PerSample[float] = REQUIRED,
) -> Like:
    """Translate images along the y axis.

    Args:
        input: The images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        offset: The distance in pixels; positive moves the image down.

    Example:
        >>> image = ndd.tensor([[1, 2], [3, 4]], dtype=ndd.uint8)
        >>> ndd.translate_y(image, offset=-1, fill_value=9).torch().tolist()
        [[3, 4], [9, 9]]
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False, random=True)
def random_erasing(
    input: Numbers,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    noise: bool = False,
    p: Probability = 0.5,
    ratio: PerSample[Floats] = (0.3, 3.3),  # type: ignore[assignment]
    scale: PerSample[Floats] = (0.02, 0.33),  # type: ignore[assignment]
) -> Like:
    """Erase a random rectangle of each image.

    If none of ten random rectangles fits into the image, the image is left unchanged.

    Args:
        input: The images.
        fill_value: The value of erased pixels: one number, or one for each channel.
        noise: Whether to fill with standard normal noise instead, for normalized images.
        p: The probability that an image is changed.
        ratio: The range of the rectangle's aspect ratio, height divided by width.
        scale: The range of the rectangle's area, as a fraction of the image area.

    Example:
        >>> image = ndd.ones(shape=[10, 10, 3], dtype=ndd.uint8)
        >>> made = ndd.random_erasing(image, p=1, scale=[0.25, 0.25], ratio=[1, 1])
        >>> int(made.torch().sum())
        225
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False)
def motion_blur(
    input: Numbers,
    *,
    angle: PerSample[float] = 0.0,
    direction: Annotated[PerSample[float], Between(-1, 1)] = 0.0,
    kernel_size: PerSample[int] = 7,
) -> Like:
    """Blur images along a line, as if the camera had moved.

    Edges are reflected. For random blurs, pass random arguments per sample, such as
    `angle=ndd.random.uniform(range=[0, 360], batch_size=n)`.

    Args:
        input: The images.
        angle: The angle of the line in degrees, counter-clockwise; 0 is horizontal.
        direction: How the weight is distributed along the line: evenly if 0; rising from zero at
            one end to twice the average at the other if -1 or 1.
        kernel_size: The length of the line in pixels; must be odd and at most 255.

    Example:
        >>> dot = ndd.tensor([[0.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
        >>> [round(x, 3) for x in ndd.motion_blur(dot, kernel_size=3).torch()[:, 1].tolist()]
        [0.0, 3.0, 0.0]
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False, random=True)
def elastic_transform(
    input: Data,
    *,
    alpha: PerSample[Floats] = (50.0,),  # type: ignore[assignment]
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _LINEAR,
    sigma: PerSample[Floats] = (5.0,),  # type: ignore[assignment]
) -> Like:
    """Apply a random elastic deformation.

    Each pixel is displaced by uniform noise between -alpha / 2 and alpha / 2 pixels, smoothed with
    a Gaussian kernel.

    Args:
        input: The images.
        alpha: The strength: one number, or one for x and one for y.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        sigma: The standard deviation of the Gaussian in pixels, up to 200: one number, or one for
            x and one for y. 0 disables smoothing.

    Example:
        >>> image = ndd.ones(shape=[8, 8, 3], dtype=ndd.uint8)
        >>> ndd.elastic_transform(image, alpha=0).torch().sum().item()
        192
    """
    return Like(input)


@operator(layouts=_LAYOUTS, in_dali=False, random=True)
def random_perspective(
    input: Data,
    *,
    distortion_scale: Probability = 0.5,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _LINEAR,
    p: Probability = 0.5,
) -> Like:
    """Apply a random perspective transform: each corner moves inwards.

    Args:
        input: The images.
        distortion_scale: The maximum displacement of corners, as a fraction of half the height
            and width.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        p: The probability that an image is changed.

    Example:
        >>> image = ndd.ones(shape=[8, 8, 3], dtype=ndd.uint8)
        >>> ndd.random_perspective(image, p=1, distortion_scale=0).torch().sum().item()
        192
    """
    return Like(input)
