"""Sizes of images."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from penstock._operators.arguments import REQUIRED, Floats, Interp, Ints
from penstock._operators.constraints import OneOf, Rank
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._values.axes import chosen_axes
from penstock._values.dtype import DType, int32

_HALF: Floats = (0.5,)  # type: ignore[assignment]
_AREA: Floats = (0.08, 1.0)  # type: ignore[assignment]
_RATIO: Floats = (0.75, 4 / 3)  # type: ignore[assignment]

Mode: TypeAlias = Annotated[str, OneOf("default", "stretch", "not_larger", "not_smaller")]

_LAYOUTS = "HWC FHWC CHW FCHW CFHW DHWC FDHWC CDHW FCDHW CFDHW"


def _resized(input: Data, dtype: DType | None, **kernel: Any) -> Like:
    return Like(input, dtype=dtype, to=None if dtype is None else dtype._code, **kernel)


@operator(layouts=_LAYOUTS)
def resize(
    input: Data,
    *,
    antialias: bool = True,
    dtype: DType | None = None,
    image_type: int | None = None,
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

    The size is said in one of these ways: `size`, any of `resize_x`, `resize_y` and `resize_z`,
    `resize_shorter`, or `resize_longer`. An extent of 0 follows from the others, so that the
    proportions stay (but see `mode`). A negative one mirrors. Sizes are rounded to whole pixels.

    The centres of the pixels are what is mapped, and beyond its edges an image goes on as it ends.

    Args:
        input: Images. Without a layout, the last dimension is taken for the channels.
        antialias: Whether filters become as wide as it takes for all pixels to have a part in a
            smaller image.
        dtype: The element type of the result, by default that of the input.
        image_type: Deprecated, without effect.
        interp_type: The filter, such as `types.INTERP_CUBIC` or "cubic": by default
            `types.INTERP_LINEAR`; others are NN (the nearest pixel), LANCZOS3, TRIANGULAR and
            GAUSSIAN.
        mag_filter: The filter for axes that become longer, where it isn't `interp_type`.
        max_size: The largest extent, or one for each axis. The scale of all axes is lowered for it
            where the mode has one scale for all; otherwise each extent is.
        min_filter: The filter for axes that become shorter, where it isn't `interp_type`.
        minibatch_size: Without effect.
        mode: How extents are meant: "default" as they are, with the mean scale for those that are
            not given; "stretch" keeps those instead; "not_larger" and "not_smaller" scale all axes
            alike, so that none exceeds, or none falls short of, its extent.
        resize_longer: The extent of the longest edge; the proportions stay.
        resize_shorter: The extent of the shortest edge; the proportions stay.
        resize_x: The width.
        resize_y: The height.
        resize_z: The depth.
        roi_end: Where the region that the result shows ends, for each axis; less than `roi_start`
            mirrors.
        roi_relative: Whether the region is given in parts of the extents, not in pixels.
        roi_start: Where the region starts. It may reach outside of the image.
        save_attrs: Whether to give the extents of the input as a second result.
        size: The extents, one for each axis, in the order of the layout, or one for all.
        subpixel_scale: Whether a size that is rounded changes the region, about its centre, so
            that the scale is the one that was asked for.
        temp_buffer_hint: Without effect.

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
    # A sequence whose arguments differ from frame to frame has extents for each frame.
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
    """Resize images, cut a window out of the result, and mirror it, in one step.

    Only what the window shows is computed. A window larger than the image shows its edges
    repeated.

    Args:
        input: Images. Without a layout, the last dimension is taken for the channels.
        antialias: As in `resize`.
        crop: The extents of the window, for each axis; 0 stands for all of it.
        crop_d: The depth of the window, in place of `crop`.
        crop_h: The height of the window.
        crop_pos_x: Where the window lies, from 0 for the left to 1 for the right.
        crop_pos_y: The same from the top to the bottom.
        crop_pos_z: The same from the front to the back.
        crop_w: The width of the window.
        dtype: The element type of the result, by default that of the input.
        interp_type: As in `resize`, and so are the other arguments about filters and sizes.
        mag_filter: As in `resize`.
        max_size: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Without effect.
        mirror: What to mirror, as a sum: 1 left and right, 2 top and bottom, 4 front and back.
        mode: As in `resize`.
        resize_longer: As in `resize`.
        resize_shorter: As in `resize`.
        resize_x: As in `resize`.
        resize_y: As in `resize`.
        resize_z: As in `resize`.
        roi_end: As in `resize`.
        roi_relative: As in `resize`.
        roi_start: As in `resize`.
        rounding: Whether the window starts at the nearest pixel ("round") or at the one before
            ("truncate").
        size: As in `resize`.
        subpixel_scale: As in `resize`.
        temp_buffer_hint: Without effect.

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
    """Cut a random window out of each image, and resize it to a given size.

    Args:
        input: Images. Without a layout, the last dimension is taken for the channels.
        antialias: As in `resize`.
        dtype: The element type of the result, by default that of the input.
        interp_type: As in `resize`.
        mag_filter: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Without effect.
        num_attempts: How often to try for a window that fits in. After that, it is one of the
            largest with a fitting ratio.
        random_area: The range of the window's area, as a part of the image's.
        random_aspect_ratio: The range of its width by its height.
        size: Height and width of the result, or one number for both.
        temp_buffer_hint: Without effect.

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
        input: Arrays of any dimensions.
        alignment: Which point of the region stays where it is when `subpixel_scale` changes it,
            from 0 for its start to 1 for its end.
        antialias: As in `resize`.
        axes: The axes to resize, by number; all by default.
        axis_names: The same by the letters of the layout.
        dtype: The element type of the result, by default that of the input.
        interp_type: As in `resize`.
        mag_filter: As in `resize`.
        max_size: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Without effect.
        mode: As in `resize`.
        roi_end: As in `resize`.
        roi_relative: As in `resize`.
        roi_start: As in `resize`.
        scales: Factors for the extents, one for each axis or one for all, in place of `sizes`.
        size_rounding: How sizes become whole: "round", "truncate" or "ceil".
        sizes: The extents, one for each of the axes or one for all; 0 as in `resize`.
        subpixel_scale: As in `resize`.
        temp_buffer_hint: Without effect.

    Example:
        >>> ndd.tensor_resize(ndd.tensor([0.0, 2.0, 4.0, 6.0]), sizes=[2]).torch().tolist()
        [1.25, 4.75]
        >>> ndd.tensor_resize(ndd.tensor([[1, 2], [3, 4]]), scales=2, axes=1, antialias=False).shape
        (2, 4)
    """
    value = input._value
    along = chosen_axes("tensor_resize", value.ndim, value.layout, axes, axis_names)
    return _resized(input, dtype, along=tuple(range(value.ndim)) if along is None else along)
