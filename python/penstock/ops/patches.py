"""Images with patches, and patches of images."""

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
    """Fill regions of images.

    Args:
        input: The images, or other arrays.
        anchor: Where regions start: a number for each axis, those of several regions one after
            another. What lies outside of an image is left out.
        axes: The axes that regions are for, by number; along others, they go all the way.
        axis_names: The same by the letters of the layout, before `axes` where both are given;
            "HW" when none is.
        centered_anchor: Whether anchors are the centres of regions.
        fill_value: What to fill with: a number, or one for each channel.
        normalized: Whether anchors and shapes are shares of the image's extents.
        normalized_anchor: The same for anchors alone.
        normalized_shape: The same for shapes alone.
        shape: The extents of regions, as many numbers as `anchor` has.

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
    """Put images on canvases that are larger.

    Args:
        input: The images.
        fill_value: What the rest of the canvas is: a number, or one for each channel.
        min_canvas_size: What both sides of the canvas are at least.
        n_channels: How many channels images have. Others are refused; by default none is.
        paste_x: Where the image is from left to right: 0 at the left border, 1 at the right.
        paste_y: Where it is from top to bottom.
        ratio: How many times larger the canvas is than the image, along both sides.

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
    """Set squares on a regular grid to zero.

    Args:
        input: The images. Without letters for height and width, the first two axes are those.
        angle: By how much the grid is turned, in radians.
        ratio: The side of squares, as a share of `tile`.
        shift_x: By how many pixels the grid is shifted to the right, once turned.
        shift_y: The same, down.
        tile: How many pixels squares are apart.

    Example:
        >>> image = ndd.tensor([[1, 1, 1], [1, 1, 1]], layout="HW")
        >>> ndd.grid_mask(image, tile=2).torch().tolist()
        [[0, 1, 0], [1, 1, 1]]
    """
    return Like(input)
