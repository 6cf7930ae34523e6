"""Rotate and warp."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import Floats, Interp
from penstock._operators.constraints import NUMBERS, OneOf
from penstock._operators.definition import REQUIRED, Data, Like, PerSample, operator
from penstock._operators.deprecated import Deprecated, chosen_dtype
from penstock._values.dtype import DType
from penstock.types import INTERP_CUBIC, INTERP_LINEAR, INTERP_NN

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
        fill_value: The value outside the image. By default, edge pixels are replicated.
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
        fill_value: The value outside the image. By default, edge pixels are replicated.
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


_AROUND = OneOf("constant", "replicate", "reflect", "reflect_101", "wrap")
_ORIGINS = OneOf("corner", "center")

Smooth: TypeAlias = Annotated[Interp, OneOf(INTERP_NN, INTERP_LINEAR, INTERP_CUBIC)]


@operator(namespace="experimental", layouts="HW HWC FHWC CHW FCHW")
def warp_perspective(
    input: Annotated[Data, NUMBERS],
    matrix_input: Data = None,
    *,
    border_mode: Annotated[str, _AROUND] = "constant",
    fill_value: Floats | None = None,
    interp_type: Smooth = _LINEAR,
    inverse_map: bool = True,
    matrix: PerSample[Floats] | None = None,
    pixel_origin: Annotated[str, _ORIGINS] = "corner",
    size: PerSample[Floats] | None = None,
) -> Like:
    """Apply perspective transforms to images.

    The matrix is applied to homogeneous coordinates (x, y, 1), and the result is divided by its
    third component.

    Args:
        input: The images or sequences of images.
        matrix_input: The 3x3 matrix.
        border_mode: How pixels outside the image are handled: "constant" uses `fill_value`,
            "replicate" repeats the edge pixels, "reflect" and "reflect_101" reflect the image with
            and without repeating the edge, "wrap" continues at the opposite side.
        fill_value: The value outside the image: one number, or one for each channel; 0 by default.
        interp_type: Interpolation: `INTERP_NN`, `INTERP_LINEAR` or `INTERP_CUBIC`.
        inverse_map: Whether the matrix maps coordinates of the result to those of the image. If
            not, it maps the image to the result.
        matrix: The matrix, if it isn't an input: its elements row by row.
        pixel_origin: The origin of coordinates: "corner" for the corner of the first pixel,
            "center" for its center, as in OpenCV.
        size: The height and width of results; those of the images by default.

    Example:
        >>> image = ndd.tensor([[[1], [2], [3]]], layout="HWC")
        >>> shift = [[1, 0, 1], [0, 1, 0], [0, 0, 1]]
        >>> ndd.experimental.warp_perspective(image, matrix=shift).torch().flatten().tolist()
        [2, 3, 0]
    """
    return Like(input)


@operator(namespace="experimental", layouts="HWC FHWC")
def remap(
    input: Annotated[Data, NUMBERS],
    mapx: Annotated[Data, NUMBERS],
    mapy: Annotated[Data, NUMBERS],
    *,
    interp: Smooth = _LINEAR,
    pixel_origin: Annotated[str, _ORIGINS] = "corner",
) -> Like:
    """Sample images at the coordinates given by two maps.

    Pixels outside the image are 0.

    Args:
        input: The images or sequences of images.
        mapx: For each pixel of the result, the x coordinate to sample, with the shape of the
            result: height and width.
        mapy: The same for y. For sequences, both maps may be sequences ("FHW").
        interp: Interpolation: `INTERP_NN`, `INTERP_LINEAR` or `INTERP_CUBIC`.
        pixel_origin: The origin of coordinates: "corner" for the corner of the first pixel, whose
            center is then at 0.5, or "center" for its center, as in OpenCV.

    Example:
        >>> image = ndd.tensor([[[10], [20], [30]]], layout="HWC")
        >>> x, y = [[2.0, 0.5, 7.0]], [[0.0, 0.0, 0.0]]
        >>> made = ndd.experimental.remap(image, x, y, pixel_origin="center")
        >>> made.torch().flatten().tolist()
        [30, 15, 0]
    """
    return Like(input)
