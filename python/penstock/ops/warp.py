"""Images that are turned, stretched or sheared."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import Floats, Interp
from penstock._operators.constraints import OneOf
from penstock._operators.definition import REQUIRED, Data, Like, PerSample, operator
from penstock._operators.deprecated import chosen_dtype
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
    output_dtype: DType | None = None,
    size: PerSample[Floats] | None = None,
) -> Like:
    """Turn images about their centre, or volumes about an axis through it.

    Args:
        input: The images, volumes or sequences of them.
        angle: By how many degrees, counter-clockwise for images.
        axis: The axis that volumes turn about, as x, y and z.
        dtype: The element type of the result, by default that of the images.
        fill_value: What is outside of images. By default, their border goes on.
        interp_type: How to find values between pixels: `INTERP_NN` or `INTERP_LINEAR`.
        keep_size: Whether results are as large as the images. By default they have room for all of
            the turned image.
        output_dtype: Deprecated, the same as `dtype`.
        size: The height and the width of results (depth first for volumes), whatever `keep_size`
            says.

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
    output_dtype: DType | None = None,
    size: PerSample[Floats] | None = None,
) -> Like:
    """Apply affine maps to the places of pixels.

    The first pixel of an image lies between 0 and 1 along x and y, so that its centre is at one
    half. The operators of `transforms` make matrices.

    Args:
        data: The images, volumes or sequences of them.
        mtx: The matrix, 2x3 for images and 3x4 for volumes, for places as x, y (and z).
        dtype: The element type of the result, by default that of the images.
        fill_value: What is outside of images. By default, their border goes on.
        interp_type: How to find values between pixels: `INTERP_NN` or `INTERP_LINEAR`.
        inverse_map: Whether the matrix leads from places of the result to those of the image. If
            not, it leads from the image to the result.
        matrix: The matrix, where it isn't an input: its numbers row by row.
        output_dtype: Deprecated, the same as `dtype`.
        size: The height and the width of results (depth first for volumes); by default those of
            the images.

    Example:
        >>> image = ndd.tensor([[[1], [2], [3]]], layout="HWC")
        >>> ndd.warp_affine(image, matrix=[1, 0, 1, 0, 1, 0]).torch().flatten().tolist()
        [2, 3, 3]
        >>> ndd.warp_affine(image, ndd.transforms.scale(scale=[2, 1]), size=[1, 2]).shape
        (1, 2, 1)
    """
    return Like(data, dtype=chosen_dtype("warp_affine", dtype, output_dtype))
