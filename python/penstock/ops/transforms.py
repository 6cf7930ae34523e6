"""Affine transforms.

A transform of n dimensions is a matrix of n rows and n + 1 columns, the last of which is the
translation. With a transform as input, the result applies that one first, then its own.
"""

from __future__ import annotations

from penstock._operators.arguments import REQUIRED, Floats, Matrix
from penstock._operators.definition import Data, PerSample, Result, operator
from penstock._values.dtype import float32

_ONE: Floats = (1.0,)  # type: ignore[assignment]
_ZERO: Floats = (0.0,)  # type: ignore[assignment]


def _transform() -> Result:
    return Result(float32, 2, "**")


@operator(namespace="transforms", devices="cpu", makes_frames=True)
def combine(input_0: Data, input_1: Data, *inputs: Data, reverse_order: bool = False) -> Result:
    """Combine transforms into one that applies them all.

    Args:
        input_0: The transform that is applied first.
        input_1: The next transform.
        *inputs: Further ones.
        reverse_order: Whether the last transform is applied first.

    Example:
        >>> twice = ndd.transforms.scale(scale=[2, 2])
        >>> shift = ndd.transforms.translation(offset=[1, 0])
        >>> ndd.transforms.combine(twice, shift).torch().tolist()
        [[2.0, 0.0, 1.0], [0.0, 2.0, 0.0]]
    """
    return _transform()


@operator(namespace="transforms", devices="cpu", makes_frames=True)
def crop(
    input: Data = None,
    *,
    absolute: bool = False,
    from_end: PerSample[Floats] = _ONE,
    from_start: PerSample[Floats] = _ZERO,
    reverse_order: bool = False,
    to_end: PerSample[Floats] = _ONE,
    to_start: PerSample[Floats] = _ZERO,
) -> Result:
    """Map one box to another.

    Each corner has a coordinate for each dimension, or one for all.

    Args:
        input: A transform that is applied first.
        absolute: Whether to sort the corners first, so that nothing is mirrored.
        from_end: The upper corner of the source box.
        from_start: Its lower corner.
        reverse_order: Whether `input` is applied last instead.
        to_end: The upper corner of the target box.
        to_start: Its lower corner.

    Example:
        >>> ndd.transforms.crop(from_end=[10, 20]).torch().tolist()[1]
        [0.0, 0.05000000074505806, 0.0]
    """
    return _transform()


@operator(namespace="transforms", devices="cpu", makes_frames=True)
def rotation(
    input: Data = None,
    *,
    angle: PerSample[float] = REQUIRED,
    axis: PerSample[Floats] | None = None,
    center: PerSample[Floats] | None = None,
    reverse_order: bool = False,
) -> Result:
    """Rotate.

    Args:
        input: A transform that is applied first.
        angle: The angle in degrees, from x towards y.
        axis: The axis of a rotation in three dimensions; by default it is two-dimensional.
        center: The fixed point; the origin by default.
        reverse_order: Whether `input` is applied last instead.

    Example:
        >>> quarter = ndd.transforms.rotation(angle=90)
        >>> quarter.torch().round().int().tolist()
        [[0, -1, 0], [1, 0, 0]]
    """
    return _transform()


@operator(namespace="transforms", devices="cpu", makes_frames=True)
def scale(
    input: Data = None,
    *,
    center: PerSample[Floats] | None = None,
    ndim: int | None = None,
    reverse_order: bool = False,
    scale: PerSample[Floats] = REQUIRED,
) -> Result:
    """Scale.

    Args:
        input: A transform that is applied first.
        center: The fixed point; the origin by default.
        ndim: The number of dimensions, if `scale` is one number and there is no `input`.
        reverse_order: Whether `input` is applied last instead.
        scale: The factor for each dimension, or one for all.

    Example:
        >>> ndd.transforms.scale(scale=[2, 3], center=[1, 1]).torch().tolist()
        [[2.0, 0.0, -1.0], [0.0, 3.0, -2.0]]
    """
    return _transform()


@operator(namespace="transforms", devices="cpu", makes_frames=True)
def shear(
    input: Data = None,
    *,
    angles: PerSample[Matrix] | None = None,
    center: PerSample[Floats] | None = None,
    reverse_order: bool = False,
    shear: PerSample[Matrix] | None = None,
) -> Result:
    """Shear.

    Args:
        input: A transform that is applied first.
        angles: Shear angles in degrees, instead of `shear`.
        center: The fixed point; the origin by default.
        reverse_order: Whether `input` is applied last instead.
        shear: Shear factors: two numbers in two dimensions (y to x, x to y), six in three.

    Example:
        >>> ndd.transforms.shear(shear=[1, 2]).torch().tolist()
        [[1.0, 1.0, 0.0], [2.0, 1.0, 0.0]]
    """
    return _transform()


@operator(namespace="transforms", devices="cpu", makes_frames=True)
def translation(
    input: Data = None, *, offset: PerSample[Floats] = REQUIRED, reverse_order: bool = False
) -> Result:
    """Translate.

    Args:
        input: A transform that is applied first.
        offset: What is added to each coordinate.
        reverse_order: Whether `input` is applied last instead.

    Example:
        >>> ndd.transforms.translation(offset=[5, 6]).torch().tolist()
        [[1.0, 0.0, 5.0], [0.0, 1.0, 6.0]]
    """
    return _transform()
