"""Affine transforms, as matrices.

A transform of n dimensions is a matrix of n rows and n + 1 columns, the last of which is the shift.
Given a transform as input, an operator gives that one followed by its own.
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
        input_1: The transform that follows.
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
    """Make the transform that takes one box to another.

    Each corner has a coordinate for each dimension, or one for all.

    Args:
        input: A transform that comes before.
        absolute: Whether corners are sorted first, so that nothing is mirrored.
        from_end: The upper corner of the box to start from.
        from_start: Its lower corner.
        reverse_order: Whether `input` comes after instead.
        to_end: The upper corner of the box to arrive at.
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
    """Make a rotation.

    Args:
        input: A transform that comes before.
        angle: The angle in degrees, from x towards y.
        axis: In three dimensions, the axis to rotate around; by default the rotation is one of
            two dimensions.
        center: A point that stays where it is; by default the origin.
        reverse_order: Whether `input` comes after instead.

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
    """Make a transform that scales.

    Args:
        input: A transform that comes before.
        center: A point that stays where it is; by default the origin.
        ndim: The number of dimensions, when `scale` is one number and there is no `input`.
        reverse_order: Whether `input` comes after instead.
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
    """Make a transform that shears.

    Args:
        input: A transform that comes before.
        angles: The same as `shear`, by angles in degrees: the factors are their tangents.
        center: A point that stays where it is; by default the origin.
        reverse_order: Whether `input` comes after instead.
        shear: How much of each other coordinate is added to a coordinate: two numbers in two
            dimensions (y to x, x to y), six in three.

    Example:
        >>> ndd.transforms.shear(shear=[1, 2]).torch().tolist()
        [[1.0, 1.0, 0.0], [2.0, 1.0, 0.0]]
    """
    return _transform()


@operator(namespace="transforms", devices="cpu", makes_frames=True)
def translation(
    input: Data = None, *, offset: PerSample[Floats] = REQUIRED, reverse_order: bool = False
) -> Result:
    """Make a transform that shifts.

    Args:
        input: A transform that comes before.
        offset: What is added to each coordinate.
        reverse_order: Whether `input` comes after instead.

    Example:
        >>> ndd.transforms.translation(offset=[5, 6]).torch().tolist()
        [[1.0, 0.0, 5.0], [0.0, 1.0, 6.0]]
    """
    return _transform()
