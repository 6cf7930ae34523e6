"""Filters."""

from __future__ import annotations

from typing import Annotated

from penstock._errors import messages
from penstock._operators.arguments import Floats, Ints
from penstock._operators.constraints import NUMBERS, Between, OneOf
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._values.dtype import DType

_BORDERS = OneOf("reflect_101", "reflect_1001", "reflect", "wrap", "clamp", "constant")


@operator()
def gaussian_blur(
    input: Annotated[Data, NUMBERS],
    *,
    dtype: Annotated[DType, NUMBERS] | None = None,
    sigma: PerSample[Floats] = (0.0,),  # type: ignore[assignment]
    window_size: PerSample[Ints] = (0,),  # type: ignore[assignment]
) -> Like:
    """Blur with a Gaussian kernel along all spatial axes.

    Those are all axes except channels (C) and frames (F); without a layout, all of them. Borders
    are reflected without repeating the edge pixel (reflect 101).

    Args:
        input: Images, volumes or sequences of them.
        dtype: The element type of the result; that of the input by default.
        sigma: The standard deviation in pixels: one number, or one for each spatial axis. If 0, it
            is derived from `window_size`.
        window_size: The size of the kernel, which must be odd: one number, or one for each spatial
            axis. If 0, it covers three standard deviations on each side.

    Example:
        >>> spot = ndd.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
        >>> [round(x, 3) for x in ndd.gaussian_blur(spot, window_size=3).torch().tolist()]
        [0.0, 0.239, 0.522, 0.239, 0.0]
    """
    return Like(input, dtype=dtype or input.dtype)


@operator()
def laplacian(
    input: Annotated[Data, NUMBERS],
    *,
    dtype: Annotated[DType, NUMBERS] | None = None,
    normalized_kernel: bool = False,
    scale: PerSample[Floats] | None = None,
    smoothing_size: PerSample[Ints] | None = None,
    window_size: PerSample[Ints] = (3,),  # type: ignore[assignment]
) -> Like:
    """Detect edges: the sum of the second derivatives along all spatial axes.

    The derivative along each axis is smoothed along the other axes.

    Args:
        input: Images, volumes or sequences of them.
        dtype: The element type of the result; that of the input by default.
        normalized_kernel: Whether to normalize the smoothing weights of each derivative.
        scale: Factor: one number, or one for the derivative along each axis; 1 by default. Can't
            be combined with `normalized_kernel`.
        smoothing_size: The size of the smoothing window along an axis, odd, at most 31: one
            number, or one for each spatial axis. By default, the size of the derivative's window;
            1 disables smoothing.
        window_size: The size of the derivative's window, odd, from 3 to 31: one number, or one for
            each spatial axis.

    Example:
        >>> dot = ndd.tensor([[0.0, 0.0, 1.0, 0.0, 0.0]])
        >>> ndd.laplacian(dot, smoothing_size=1).torch().tolist()
        [[0.0, 1.0, -2.0, 1.0, 0.0]]
    """
    if scale is None:
        return Like(input, dtype=dtype or input.dtype, scale=(1.0,))
    if normalized_kernel:
        raise messages.bad_argument(
            "laplacian", "scale", "can't be given beside `normalized_kernel`, which sets it"
        )
    return Like(input, dtype=dtype or input.dtype)


@operator(makes_frames=True)
def filter(
    data: Annotated[Data, NUMBERS],
    filter: Data,
    fill_value: Data = None,
    *,
    anchor: PerSample[Ints] = (-1,),  # type: ignore[assignment]
    border: Annotated[str, _BORDERS] = "reflect_101",
    dtype: Annotated[DType, NUMBERS] | None = None,
    mode: Annotated[str, OneOf("same", "valid")] = "same",
) -> Like:
    """Correlate data with a filter.

    The filter is not flipped. It has as many dimensions as the data has spatial axes, which are
    all axes except channels (C) and frames (F); without a layout, all of them.

    Args:
        data: Images, volumes or sequences of them.
        filter: The weights.
        fill_value: The value outside the data if `border` is "constant"; 0 by default.
        anchor: The element of the filter that is aligned with the output element: one index, or
            one for each spatial axis. -1 is the center.
        border: The border mode: "reflect_101" reflects without repeating the edge,
            "reflect_1001" or "reflect" repeats it; "wrap", "clamp", "constant".
        dtype: The element type of the result; that of the data by default.
        mode: "same" for a result of the size of the data, "valid" for only those positions where
            the whole filter is inside the data.

    Example:
        >>> ndd.filter([[1.0, 2.0, 4.0]], [[1.0, 0.0, -1.0]], mode="valid").torch().tolist()
        [[-3.0]]
    """
    return Like(data, dtype=dtype or data.dtype, valid=int(mode == "valid"))


_IMAGES = "HW HWC FHWC CHW FCHW"
_AROUND = OneOf("constant", "replicate", "reflect", "reflect_101", "wrap")


@operator(namespace="experimental", layouts=_IMAGES)
def dilate(
    input: Annotated[Data, NUMBERS],
    *,
    anchor: PerSample[Ints] = (-1, -1),  # type: ignore[assignment]
    border_mode: Annotated[str, _AROUND] = "constant",
    iterations: Annotated[int, Between(0, None)] = 1,
    mask_size: PerSample[Ints] = (3, 3),  # type: ignore[assignment]
) -> Like:
    """Dilate images: each pixel becomes the maximum over a rectangle around it.

    Args:
        input: Images or sequences of images. Channels are processed separately.
        anchor: The column and row of the rectangle that are aligned with the pixel; -1 is the
            center.
        border_mode: How pixels outside the image are handled: "constant" ignores them,
            "replicate" repeats the edge pixels, "reflect" and "reflect_101" reflect the image with
            and without repeating the edge, "wrap" continues at the opposite side.
        iterations: How many times to dilate.
        mask_size: The width and height of the rectangle, or one number for both.

    Example:
        >>> image = ndd.tensor([[0, 0, 7, 0, 0]], layout="HW")
        >>> ndd.experimental.dilate(image).torch().tolist()
        [[0, 7, 7, 7, 0]]
        >>> ndd.experimental.dilate(image, mask_size=2, anchor=0).torch().tolist()
        [[0, 7, 7, 0, 0]]
    """
    return Like(input)


@operator(namespace="experimental", layouts=_IMAGES)
def erode(
    input: Annotated[Data, NUMBERS],
    *,
    anchor: PerSample[Ints] = (-1, -1),  # type: ignore[assignment]
    border_mode: Annotated[str, _AROUND] = "constant",
    iterations: Annotated[int, Between(0, None)] = 1,
    mask_size: PerSample[Ints] = (3, 3),  # type: ignore[assignment]
) -> Like:
    """Erode images: each pixel becomes the minimum over a rectangle around it.

    Args:
        input: Images or sequences of images. Channels are processed separately.
        anchor: As in `dilate`.
        border_mode: As in `dilate`.
        iterations: How many times to erode.
        mask_size: The width and height of the rectangle, or one number for both.

    Example:
        >>> image = ndd.tensor([[7, 7, 0, 7, 7]], layout="HW")
        >>> ndd.experimental.erode(image).torch().tolist()
        [[7, 0, 0, 0, 7]]
    """
    return Like(input)


@operator(namespace="experimental", layouts=_IMAGES)
def median_blur(
    input: Annotated[Data, NUMBERS],
    *,
    window_size: PerSample[Ints] = (3, 3),  # type: ignore[assignment]
) -> Like:
    """Apply a median filter: each pixel becomes the median of a window around it.

    Edge pixels are replicated.

    Args:
        input: Images or sequences of images. Channels are processed separately.
        window_size: The width and height of the window, both odd and at most 255, or one number
            for both.

    Example:
        >>> image = ndd.tensor([[1, 2, 99, 4, 5]], layout="HW")
        >>> ndd.experimental.median_blur(image).torch().tolist()
        [[1, 2, 4, 5, 5]]
    """
    return Like(input)
