"""Crop."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._errors import messages
from penstock._operators.arguments import Floats
from penstock._operators.constraints import OneOf
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._operators.deprecated import Deprecated, chosen_dtype
from penstock._values.dtype import DType, float32, int32
from penstock.ops.regions import OutOfBoundsPolicy

_LAYOUTS = "HWC CHW DHWC CDHW FHWC FCHW CFHW FDHWC FCDHW CFDHW"

Rounding: TypeAlias = Annotated[str, OneOf("round", "truncate")]
_FILLS = OneOf("error", "pad", "constant", "trim_to_shape", ignore_case=True)


@operator(layouts=_LAYOUTS)
def crop(
    input: Data,
    *,
    crop: PerSample[Floats] | None = None,
    crop_d: PerSample[float] | None = None,
    crop_h: PerSample[float] | None = None,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: PerSample[float] | None = None,
    dtype: DType | None = None,
    fill_values: Floats = (0.0,),  # type: ignore[assignment]
    image_type: Annotated[int, Deprecated()] | None = None,
    out_of_bounds_policy: OutOfBoundsPolicy = "error",
    output_dtype: Annotated[DType, Deprecated("dtype")] | None = None,
    rounding: Rounding = "round",
) -> Like:
    """Crop images, volumes or sequences of them.

    Args:
        input: The images.
        crop: The height and the width of the window, optionally preceded by a depth (for
            sequences, a number of frames). Fractions are truncated; values below 1 stand for the
            whole extent.
        crop_d: The depth, or the number of frames, in place of `crop`; needs `crop_h` and `crop_w`.
        crop_h: The height, in place of `crop`.
        crop_pos_x: Horizontal position of the window: 0 is the left edge, 1 the right one.
        crop_pos_y: Vertical position: 0 is the top, 1 the bottom.
        crop_pos_z: Position in depth: 0 is the front, 1 the back.
        crop_w: The width, in place of `crop`.
        dtype: The element type of the result; that of the images by default. Fractions are
            truncated, and values are saturated.
        fill_values: Value of pixels outside of the image for the policy "pad": a number, or one for
            each channel.
        image_type: Deprecated; ignored.
        out_of_bounds_policy: What to do if the window is larger than the image: "error" raises,
            "pad" (or "constant") fills, "trim_to_shape" shrinks the window; others are those of
            `slice`.
        output_dtype: Deprecated alias of `dtype`.
        rounding: How the start of the window is converted to an integer: "round" or "truncate".

    Example:
        >>> image = ndd.tensor([[[1], [2], [3]], [[4], [5], [6]]], layout="HWC")
        >>> ndd.crop(image, crop=[1, 2], crop_pos_x=1, crop_pos_y=0).torch().flatten().tolist()
        [2, 3]
    """
    return Like(input, dtype=chosen_dtype("crop", dtype, output_dtype))


@operator(layouts=_LAYOUTS)
def crop_mirror_normalize(
    input: Data,
    *,
    crop: PerSample[Floats] | None = None,
    crop_d: PerSample[float] | None = None,
    crop_h: PerSample[float] | None = None,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: PerSample[float] | None = None,
    dtype: DType | None = None,
    fill_values: Floats = (0.0,),  # type: ignore[assignment]
    image_type: Annotated[int, Deprecated()] | None = None,
    mean: PerSample[Floats] = (0.0,),  # type: ignore[assignment]
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: Annotated[str, _FILLS] = "error",
    output_dtype: Annotated[DType, Deprecated("dtype")] | None = None,
    output_layout: str = "CHW",
    pad_output: bool = False,
    rounding: Rounding = "round",
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[Floats] = (1.0,),  # type: ignore[assignment]
) -> Result:
    """Crop, mirror and normalize images, and change their element type and layout, in one step.

    Each value `x` becomes `(x - mean) / std * scale + shift`.

    Args:
        input: The images, volumes or sequences of them.
        crop: The height and the width of the window, optionally preceded by a depth (for
            sequences, a number of frames). Fractions are truncated; values below 1 stand for the
            whole extent. The whole
            image by default.
        crop_d: The depth, or the number of frames, in place of `crop`; needs `crop_h` and `crop_w`.
        crop_h: The height, in place of `crop`.
        crop_pos_x: Horizontal position of the window: 0 is the left edge, 1 the right one.
        crop_pos_y: Vertical position: 0 is the top, 1 the bottom.
        crop_pos_z: Position in depth: 0 is the front, 1 the back.
        crop_w: The width, in place of `crop`.
        dtype: The element type of the result; float32 by default. Integers are rounded and
            saturated.
        fill_values: Value of pixels outside of the image for the policy "pad", and of channels
            that `pad_output` adds: a number, or one for each channel. It is not normalized.
        image_type: Deprecated; ignored.
        mean: What to subtract: a number, or one for each channel.
        mirror: Non-zero mirrors left and right.
        out_of_bounds_policy: What to do if the window is larger than the image: "error" raises,
            "pad" (or "constant") fills, "trim_to_shape" shrinks the window.
        output_dtype: Deprecated alias of `dtype`.
        output_layout: The layout of the result: the letters of the input's layout, in any order.
            If empty, it doesn't change.
        pad_output: Whether to pad the channels to the next power of two. They are zero, unless the
            policy fills windows.
        rounding: How the start of the window is converted to an integer: "round" or "truncate".
        scale: Factor that is applied after normalization.
        shift: What to add after scaling.
        std: What to divide by: a number, or one for each channel.

    Example:
        >>> image = ndd.tensor([[[0, 10], [2, 20]]], layout="HWC", dtype=ndd.uint8)
        >>> made = ndd.crop_mirror_normalize(image, mirror=1, mean=[1, 10], std=[1, 5])
        >>> made.layout, made.torch().tolist()
        ('CHW', [[[1.0, -1.0]], [[2.0, 0.0]]])
    """
    value = input._value
    taken = value.layout or next(x for x in _LAYOUTS.split() if len(x) == value.ndim)
    layout = output_layout or taken
    if sorted(layout) != sorted(taken):
        problem = f'must have the letters of "{taken}" in some order, got "{layout}"'
        raise messages.bad_argument("crop_mirror_normalize", "output_layout", problem)
    kind = chosen_dtype("crop_mirror_normalize", dtype, output_dtype) or float32
    return Result(kind, value.ndim, layout, to=layout)


@operator(random=True, devices="cpu")
def random_crop_generator(
    input: Data,
    *,
    num_attempts: int = 10,
    random_area: Floats = (0.08, 1.0),  # type: ignore[assignment]
    random_aspect_ratio: Floats = (0.75, 1.333333),  # type: ignore[assignment]
) -> tuple[Result, Result]:
    """Draw random crop windows for images of given shapes.

    Args:
        input: Shapes of images: height and width, optionally followed by the number of channels.
        num_attempts: How many windows to try. If none fits into the image, the result is one that
            comes close; with 0 attempts it is the whole image.
        random_area: The smallest and the largest area, as fractions of the image's.
        random_aspect_ratio: The smallest and the largest ratio of width to height.

    Returns:
        The start of each window, and its shape, as height and width.

    Example:
        >>> anchor, shape = ndd.random_crop_generator([480, 640, 3], random_area=[0.5, 0.5])
        >>> 0.49 < shape.torch().prod().item() / (480 * 640) < 0.51
        True
    """
    return Result(int32, 1), Result(int32, 1)
