"""Windows of images."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._errors import messages
from penstock._operators.arguments import Floats
from penstock._operators.constraints import OneOf
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._operators.deprecated import chosen_dtype
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
    image_type: int | None = None,
    out_of_bounds_policy: OutOfBoundsPolicy = "error",
    output_dtype: DType | None = None,
    rounding: Rounding = "round",
) -> Like:
    """Cut windows out of images, volumes or sequences of them.

    Args:
        input: The images.
        crop: The height and the width of the window, or before them
            a depth (for sequences, a number of frames). Fractions are cut
            off; what is below one stands for the whole extent.
        crop_d: The depth, or the number of frames, in place of `crop`; needs `crop_h` and `crop_w`.
        crop_h: The height, in place of `crop`.
        crop_pos_x: Where the window is from left to right: 0 at the left border, 1 at the right.
        crop_pos_y: Where it is from top to bottom.
        crop_pos_z: Where it is from front to back.
        crop_w: The width, in place of `crop`.
        dtype: The element type of the result, by default that of the images. Fractions are cut
            off, and what does not fit becomes the nearest value that does.
        fill_values: What is outside of images with the policy "pad": a number, or one for each
            channel.
        image_type: Deprecated, without effect.
        out_of_bounds_policy: What to do with windows that are larger than the image: "error",
            "pad" (or "constant") fills, "trim_to_shape" makes them smaller; further ones are as
            for `slice`.
        output_dtype: Deprecated, the same as `dtype`.
        rounding: How the start of a window becomes a whole number: "round", or "truncate" to cut
            fractions off.

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
    image_type: int | None = None,
    mean: PerSample[Floats] = (0.0,),  # type: ignore[assignment]
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: Annotated[str, _FILLS] = "error",
    output_dtype: DType | None = None,
    output_layout: str = "CHW",
    pad_output: bool = False,
    rounding: Rounding = "round",
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[Floats] = (1.0,),  # type: ignore[assignment]
) -> Result:
    """Make images into what models take, in one step.

    Cuts a window out, mirrors it, normalises each element to
    `(element - mean) / std * scale + shift`, and changes element type and layout.

    Args:
        input: The images, volumes or sequences of them.
        crop: The height and the width of the window, or before them
            a depth (for sequences, a number of frames). Fractions are cut
            off; what is below one stands for the whole extent. By default the image is the window.
        crop_d: The depth, or the number of frames, in place of `crop`; needs `crop_h` and `crop_w`.
        crop_h: The height, in place of `crop`.
        crop_pos_x: Where the window is from left to right: 0 at the left border, 1 at the right.
        crop_pos_y: Where it is from top to bottom.
        crop_pos_z: Where it is from front to back.
        crop_w: The width, in place of `crop`.
        dtype: The element type of the result, by default float32. Integers are rounded and
            saturated.
        fill_values: What is outside of images with the policy "pad", and in channels that
            `pad_output` adds: a number, or one for each channel. It is not normalised.
        image_type: Deprecated, without effect.
        mean: What to subtract: a number, or one for each channel.
        mirror: Non-zero mirrors left and right.
        out_of_bounds_policy: What to do with windows that are larger than the image: "error",
            "pad" (or "constant") fills, "trim_to_shape" makes them smaller.
        output_dtype: Deprecated, the same as `dtype`.
        output_layout: The layout of the result: the letters of the input's, in any order. When
            empty, it stays as it is.
        pad_output: Add channels, up to the next power of two. They are zero, unless windows may be
            filled.
        rounding: How the start of a window becomes a whole number: "round", or "truncate" to cut
            fractions off.
        scale: What to multiply with at last.
        shift: What to add at last.
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
    """Draw windows to cut out of images of given shapes.

    Args:
        input: Shapes of images: height and width, and maybe the number of channels.
        num_attempts: How often to draw. When none of the windows fits into the image, the result
            is one that comes near; with no attempts it is the whole image.
        random_area: The smallest and the largest area of windows, as a share of the image's.
        random_aspect_ratio: The lowest and the highest ratio of width to height.

    Returns:
        Where windows start, and their shapes, each as height and width.

    Example:
        >>> anchor, shape = ndd.random_crop_generator([480, 640, 3], random_area=[0.5, 0.5])
        >>> 0.49 < shape.torch().prod().item() / (480 * 640) < 0.51
        True
    """
    return Result(int32, 1), Result(int32, 1)
