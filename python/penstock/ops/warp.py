"""Rotate and warp."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import Floats, Interp
from penstock._operators.constraints import OneOf
from penstock._operators.definition import REQUIRED, Data, Like, PerSample, operator
from penstock._operators.deprecated import Deprecated, chosen_dtype
from penstock._values.dtype import DType
from penstock.types import INTERP_LINEAR, INTERP_NN

_LAYOUTS = "HWC FHWC DHWC FDHWC"

_LINEAR = Interp(INTERP_LINEAR)

Interpolation: TypeAlias = Annotated[Interp, OneOf(INTERP_NN, INTERP_LINEAR)]


@operator(layouts=_LAYOUTS)
def rotate(
    input: Data,
    *,
    angle: PerSample[float] = REQUIRED,
    axis: PerSample[Floats] | None = None,
    dtype: DType | None = None,
    fill_value: float | None = None,
    interp_type: Interpolation = _LINEAR,
    keep_size: bool = False,
    output_dtype: Annotated[DType, Deprecated("dtype")] | None = None,
    size: PerSample[Floats] | None = None,
) -> Like:
    """Rotate images about their center, or volumes about an axis through it.

    Args:
        input: The images, volumes or sequences of them.
        angle: The angle in degrees, counter-clockwise for images.
        axis: The rotation axis for volumes, as x, y and z.
        dtype: The element type of the result; that of the images by default.
        fill_value: The value outside of the image. By default, edge pixels are replicated.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        keep_size: Whether to keep the size of the images. By default, results are large enough for
            the whole rotated image.
        output_dtype: Deprecated alias of `dtype`.
        size: The height and the width of results (depth first for volumes); overrides
            `keep_size`.

    Example:
        >>> image = ndd.tensor([[[1], [2]], [[3], [4]]], layout="HWC")
        >>> ndd.rotate(image, angle=90).torch().flatten().tolist()
        [2, 4, 1, 3]
    """
    return Like(input, dtype=chosen_dtype("rotate", dtype, output_dtype))


@operator(layouts=_LAYOUTS, makes_frames=True)
def warp_affine(
    data: Data,
    mtx: Data = None,
    *,
    dtype: DType | None = None,
    fill_value: float | None = None,
    interp_type: Interpolation = _LINEAR,
    inverse_map: bool = True,
    matrix: PerSample[Floats] | None = None,
    output_dtype: Annotated[DType, Deprecated("dtype")] | None = None,
    size: PerSample[Floats] | None = None,
) -> Like:
    """Apply affine transforms to images.

    The first pixel of an image spans 0 to 1 along x and y, so that its center is at 0.5. The
    operators in `transforms` make matrices.

    Args:
        data: The images, volumes or sequences of them.
        mtx: The matrix, 2x3 for images and 3x4 for volumes, for coordinates x, y (and z).
        dtype: The element type of the result; that of the images by default.
        fill_value: The value outside of the image. By default, edge pixels are replicated.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        inverse_map: Whether the matrix maps coordinates of the result to those of the image. If
            not, it maps the image to the result.
        matrix: The matrix, if it isn't an input: its elements row by row.
        output_dtype: Deprecated alias of `dtype`.
        size: The height and the width of results (depth first for volumes); those of the images by
            default.

    Example:
        >>> image = ndd.tensor([[[1], [2], [3]]], layout="HWC")
        >>> ndd.warp_affine(image, matrix=[1, 0, 1, 0, 1, 0]).torch().flatten().tolist()
        [2, 3, 3]
        >>> ndd.warp_affine(image, ndd.transforms.scale(scale=[2, 1]), size=[1, 2]).shape
        (1, 2, 1)
    """
    return Like(data, dtype=chosen_dtype("warp_affine", dtype, output_dtype))
