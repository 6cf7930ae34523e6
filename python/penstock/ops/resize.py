"""Resize."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from penstock._operators.arguments import REQUIRED, Floats, Interp, Ints
from penstock._operators.constraints import OneOf, Rank
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._operators.deprecated import Deprecated
from penstock._values.axes import chosen_axes
from penstock._values.dtype import DType, int32

_HALF: Floats = (0.5,)  # type: ignore[assignment]
_AREA: Floats = (0.08, 1.0)  # type: ignore[assignment]
_RATIO: Floats = (0.75, 4 / 3)  # type: ignore[assignment]

Mode: TypeAlias = Annotated[str, OneOf("default", "stretch", "not_larger", "not_smaller")]

_LAYOUTS = "HWC FHWC CHW FCHW CFHW DHWC FDHWC CDHW FCDHW CFDHW"


def _resized(input: Data, dtype: DType | None, **kernel: Any) -> Like:
    return Like(input, dtype=dtype, to=None if dtype is None else dtype._code, **kernel)


@operator(layouts=_LAYOUTS, also_in="experimental")
def resize(
    input: Data,
    *,
    antialias: bool = True,
    dtype: DType | None = None,
    image_type: Annotated[int, Deprecated()] | None = None,
    interp_type: PerSample[Interp] | None = None,
    mag_filter: PerSample[Interp] | None = None,
    max_size: Floats | None = None,
    min_filter: PerSample[Interp] | None = None,
    minibatch_size: int = 32,
    mode: Mode = "default",
    resize_longer: PerSample[float] | None = None,
    resize_shorter: PerSample[float] | None = None,
    resize_x: PerSample[float] | None = None,
    resize_y: PerSample[float] | None = None,
    resize_z: PerSample[float] | None = None,
    roi_end: PerSample[Floats] | None = None,
    roi_relative: bool = False,
    roi_start: PerSample[Floats] | None = None,
    save_attrs: bool = False,
    size: PerSample[Floats] | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> Like | tuple[Result, ...]:
    """Resize images, volumes or sequences of them.

    The size is given in one of these ways: `size`, any of `resize_x`, `resize_y` and `resize_z`,
    `resize_shorter`, or `resize_longer`. An extent of 0 is derived from the others, keeping the
    aspect ratio (but see `mode`). A negative one mirrors. Sizes are rounded to whole pixels.

    Pixel centers are mapped to each other, and edge pixels are replicated.

    Args:
        input: Images. Without a layout, the last dimension holds the channels.
        antialias: Whether to widen the filter when downscaling, so that all pixels contribute.
        dtype: The element type of the result; that of the input by default.
        image_type: Deprecated; ignored.
        interp_type: The interpolation, such as `types.INTERP_CUBIC` or "cubic";
            `types.INTERP_LINEAR` by default. Others are NN (nearest neighbor), LANCZOS3,
            TRIANGULAR and GAUSSIAN.
        mag_filter: The interpolation for upscaled axes; `interp_type` by default.
        max_size: The largest extent, or one for each axis. In modes that keep the aspect ratio, all
            axes are scaled down together; otherwise, each extent is limited.
        min_filter: The interpolation for downscaled axes; `interp_type` by default.
        minibatch_size: Ignored.
        mode: How extents are interpreted: "default" takes them as they are, and scales axes that
            are not given by the mean scale; "stretch" leaves those unchanged; "not_larger" and
            "not_smaller" keep the aspect ratio, so that no extent exceeds, or falls below, the
            given one.
        resize_longer: The extent of the longest edge; keeps the aspect ratio.
        resize_shorter: The extent of the shortest edge; keeps the aspect ratio.
        resize_x: The width.
        resize_y: The height.
        resize_z: The depth.
        roi_end: Where the region of interest ends, for each axis; if below `roi_start`, the result
            is mirrored.
        roi_relative: Whether the region is relative to the extents, instead of in pixels.
        roi_start: Where the region starts. It may exceed the image.
        save_attrs: Whether to return the extents of the input as a second result.
        size: The extents, one for each axis, in the order of the layout, or one for all.
        subpixel_scale: Whether to adjust the region about its center if sizes are rounded, so that
            the scale is exact.
        temp_buffer_hint: Ignored.

    Example:
        >>> image = ndd.tensor([[[0], [2], [4], [6]]], dtype=ndd.uint8, layout="HWC")
        >>> ndd.resize(image, size=[1, 2]).torch().flatten().tolist()
        [1, 5]
        >>> ndd.resize(image, resize_x=2, interp_type=ndd.types.INTERP_NN).shape
        (1, 2, 1)
    """
    resized = _resized(input, dtype)
    if not save_attrs:
        return resized
    # With per-frame arguments, there are extents for each frame.
    return resized, Result(int32, 1 if input._value.ndim == 3 else None)


@operator(layouts=_LAYOUTS)
def resize_crop_mirror(
    input: Data,
    *,
    antialias: bool = True,
    crop: PerSample[Floats] | None = None,
    crop_d: PerSample[float] | None = None,
    crop_h: PerSample[float] | None = None,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: PerSample[float] | None = None,
    dtype: DType | None = None,
    interp_type: PerSample[Interp] | None = None,
    mag_filter: PerSample[Interp] | None = None,
    max_size: Floats | None = None,
    min_filter: PerSample[Interp] | None = None,
    minibatch_size: int = 32,
    mirror: PerSample[int] = 0,
    mode: Mode = "default",
    resize_longer: PerSample[float] | None = None,
    resize_shorter: PerSample[float] | None = None,
    resize_x: PerSample[float] | None = None,
    resize_y: PerSample[float] | None = None,
    resize_z: PerSample[float] | None = None,
    roi_end: PerSample[Floats] | None = None,
    roi_relative: bool = False,
    roi_start: PerSample[Floats] | None = None,
    rounding: Annotated[str, OneOf("round", "truncate")] = "round",
    size: PerSample[Floats] | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> Like:
    """Resize, crop and mirror images, in one step.

    Only the window is computed. If it exceeds the image, edge pixels are replicated.

    Args:
        input: Images. Without a layout, the last dimension holds the channels.
        antialias: As in `resize`.
        crop: The extents of the window, for each axis; 0 stands for the whole axis.
        crop_d: The depth of the window, instead of `crop`.
        crop_h: The height of the window.
        crop_pos_x: Horizontal position of the window: 0 is the left edge, 1 the right one.
        crop_pos_y: Vertical position: 0 is the top, 1 the bottom.
        crop_pos_z: Position in depth: 0 is the front, 1 the back.
        crop_w: The width of the window.
        dtype: The element type of the result; that of the input by default.
        interp_type: As in `resize`.
        mag_filter: As in `resize`.
        max_size: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Ignored.
        mirror: The directions to mirror, as a sum: 1 left and right, 2 top and bottom, 4 front and
            back.
        mode: As in `resize`.
        resize_longer: As in `resize`.
        resize_shorter: As in `resize`.
        resize_x: As in `resize`.
        resize_y: As in `resize`.
        resize_z: As in `resize`.
        roi_end: As in `resize`.
        roi_relative: As in `resize`.
        roi_start: As in `resize`.
        rounding: How the start of the window is converted to whole pixels: "round" or
            "truncate".
        size: As in `resize`.
        subpixel_scale: As in `resize`.
        temp_buffer_hint: Ignored.

    Example:
        >>> image = ndd.tensor([[[0], [2], [4], [6]]], dtype=ndd.uint8, layout="HWC")
        >>> small = ndd.resize_crop_mirror(image, size=[1, 4], crop=[1, 2], mirror=1)
        >>> small.torch().flatten().tolist()
        [4, 2]
    """
    return _resized(input, dtype)


@operator(layouts="HWC CHW FHWC FCHW CFHW", random=True)
def random_resized_crop(
    input: Data,
    *,
    antialias: bool = True,
    dtype: DType | None = None,
    interp_type: PerSample[Interp] | None = None,
    mag_filter: PerSample[Interp] | None = None,
    min_filter: PerSample[Interp] | None = None,
    minibatch_size: int = 32,
    num_attempts: int = 10,
    random_area: Floats = _AREA,
    random_aspect_ratio: Floats = _RATIO,
    size: Ints = REQUIRED,
    temp_buffer_hint: int = 0,
) -> Like:
    """Crop a random window of each image, and resize it.

    Args:
        input: Images. Without a layout, the last dimension holds the channels.
        antialias: As in `resize`.
        dtype: The element type of the result; that of the input by default.
        interp_type: As in `resize`.
        mag_filter: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Ignored.
        num_attempts: How many windows to try until one fits into the image. After that, it is the
            largest one with a valid aspect ratio.
        random_area: The range of the window's area, as fractions of the image's.
        random_aspect_ratio: The range of the ratio of width to height.
        size: Height and width of the result, or one number for both.
        temp_buffer_hint: Ignored.

    Example:
        >>> image = ndd.tensor([[[7]] * 20] * 10, dtype=ndd.uint8, layout="HWC")
        >>> ndd.random_resized_crop(image, size=[1, 2]).torch().flatten().tolist()
        [7, 7]
    """
    return _resized(input, dtype)


@operator()
def tensor_resize(
    input: Annotated[Data, Rank(1, None)],
    *,
    alignment: PerSample[Floats] = _HALF,
    antialias: bool = True,
    axes: Ints | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    interp_type: PerSample[Interp] | None = None,
    mag_filter: PerSample[Interp] | None = None,
    max_size: Floats | None = None,
    min_filter: PerSample[Interp] | None = None,
    minibatch_size: int = 32,
    mode: Mode = "default",
    roi_end: PerSample[Floats] | None = None,
    roi_relative: bool = False,
    roi_start: PerSample[Floats] | None = None,
    scales: PerSample[Floats] | None = None,
    size_rounding: Annotated[str, OneOf("round", "truncate", "ceil")] = "round",
    sizes: PerSample[Floats] | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> Like:
    """Resize arrays along any axes.

    Args:
        input: Arrays of any rank above 0.
        alignment: The point of the region that is kept if `subpixel_scale` adjusts it, from 0 for
            its start to 1 for its end.
        antialias: As in `resize`.
        axes: The axes to resize, by number; all by default.
        axis_names: The same, by their letters in the layout.
        dtype: The element type of the result; that of the input by default.
        interp_type: As in `resize`.
        mag_filter: As in `resize`.
        max_size: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Ignored.
        mode: As in `resize`.
        roi_end: As in `resize`.
        roi_relative: As in `resize`.
        roi_start: As in `resize`.
        scales: Factors for the extents, one for each axis or one for all, instead of `sizes`.
        size_rounding: How sizes are converted to integers: "round", "truncate" or "ceil".
        sizes: The extents, one for each of the axes or one for all; 0 as in `resize`.
        subpixel_scale: As in `resize`.
        temp_buffer_hint: Ignored.

    Example:
        >>> ndd.tensor_resize(ndd.tensor([0.0, 2.0, 4.0, 6.0]), sizes=[2]).torch().tolist()
        [1.25, 4.75]
        >>> ndd.tensor_resize(ndd.tensor([[1, 2], [3, 4]]), scales=2, axes=1, antialias=False).shape
        (2, 4)
    """
    value = input._value
    along = chosen_axes("tensor_resize", value.ndim, value.layout, axes, axis_names)
    return _resized(input, dtype, along=tuple(range(value.ndim)) if along is None else along)
