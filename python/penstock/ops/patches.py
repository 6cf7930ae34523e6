"""Erase, paste and masks."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._errors import messages
from penstock._operators.arguments import Floats, Ints
from penstock._operators.constraints import Between
from penstock._operators.definition import REQUIRED, Data, Like, PerSample, operator

Place: TypeAlias = Annotated[PerSample[float], Between(0, 1)]


@operator()
def erase(
    input: Data,
    *,
    anchor: PerSample[Floats] | None = None,
    axes: Ints | None = None,
    axis_names: str | None = None,
    centered_anchor: bool = False,
    fill_value: PerSample[Floats] = (0.0,),  # type: ignore[assignment]
    normalized: bool | None = None,
    normalized_anchor: bool | None = None,
    normalized_shape: bool | None = None,
    shape: PerSample[Floats] | None = None,
) -> Like:
    """Erase regions of images.

    Args:
        input: The images, or other arrays.
        anchor: Where regions start: a number for each axis; for several regions, one after
            another. Regions are clipped to the image.
        axes: The axes of the regions, by number; along others, regions span the whole extent.
        axis_names: The same, by their letters in the layout; takes precedence over `axes`. "HW" if
            neither is given.
        centered_anchor: Whether anchors are the centers of regions.
        fill_value: The value to fill with: a number, or one for each channel.
        normalized: Whether anchors and shapes are relative to the image's extents.
        normalized_anchor: The same, for anchors only.
        normalized_shape: The same, for shapes only.
        shape: The extents of regions, as many numbers as in `anchor`.

    Example:
        >>> image = ndd.tensor([[1, 2, 3], [4, 5, 6]], layout="HW")
        >>> ndd.erase(image, anchor=[0, 1], shape=[2, 1]).torch().tolist()
        [[1, 0, 3], [4, 0, 6]]
    """
    if normalized is not None and not (normalized_anchor is normalized_shape is None):
        problem = "can't be given together with `normalized_anchor` or `normalized_shape`"
        raise messages.bad_argument("erase", "normalized", problem)
    letters = axis_names if axis_names is not None else None if axes is not None else "HW"
    return Like(
        input,
        numbers=axes if letters is None else None,
        letters=letters,
        relative_anchor=int(bool(normalized or normalized_anchor)),
        relative_shape=int(bool(normalized or normalized_shape)),
    )


@operator(layouts="HWC")
def paste(
    input: Data,
    *,
    fill_value: Ints = REQUIRED,
    min_canvas_size: PerSample[float] = 0.0,
    n_channels: int | None = None,
    paste_x: Place = 0.5,
    paste_y: Place = 0.5,
    ratio: Annotated[PerSample[float], Between(1, None)] = REQUIRED,
) -> Like:
    """Paste images onto larger canvases.

    Args:
        input: The images.
        fill_value: The value of the rest of the canvas: a number, or one for each channel.
        min_canvas_size: The smallest height and width of the canvas.
        n_channels: The number of channels that images must have; any by default.
        paste_x: Horizontal position of the image: 0 is the left edge, 1 the right one.
        paste_y: Vertical position of the image: 0 is the top, 1 the bottom.
        ratio: The ratio of the canvas's height and width to the image's.

    Example:
        >>> image = ndd.tensor([[[1], [2]]], layout="HWC")
        >>> ndd.paste(image, ratio=2, fill_value=7, paste_x=0).torch().squeeze(2).tolist()
        [[1, 2, 7, 7], [7, 7, 7, 7]]
    """
    return Like(input)


@operator()
def grid_mask(
    input: Data,
    *,
    angle: PerSample[float] = 0.0,
    ratio: PerSample[float] = 0.5,
    shift_x: PerSample[float] = 0.0,
    shift_y: PerSample[float] = 0.0,
    tile: Annotated[PerSample[int], Between(1, None)] = 100,
) -> Like:
    """Mask images with a grid of zeroed squares (GridMask).

    Args:
        input: The images. If the layout has no H and W, the first two axes are height and width.
        angle: Rotation of the grid, in radians.
        ratio: The side of a square, relative to `tile`.
        shift_x: Horizontal shift of the rotated grid, in pixels.
        shift_y: Vertical shift of the rotated grid, in pixels.
        tile: The distance between squares, in pixels.

    Example:
        >>> image = ndd.tensor([[1, 1, 1], [1, 1, 1]], layout="HW")
        >>> ndd.grid_mask(image, tile=2).torch().tolist()
        [[0, 1, 0], [1, 1, 1]]
    """
    return Like(input)
