"""Boxes.

Bounding boxes are rows of numbers. Their coordinates go from 0 to 1 over the image, unless an
operator says otherwise.
"""

from __future__ import annotations

import math
from typing import Annotated

from penstock._errors import messages
from penstock._operators.arguments import REQUIRED, Floats, Ints, Matrix
from penstock._operators.constraints import Between, Elements, OneOf, Rank, Shape
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._values.array import Array
from penstock._values.dtype import float32, int32, int64

_FLOAT32 = Elements("float32", float32)
_INT32 = Elements("int32", int32)
_BELOW_ONE = math.nextafter(1, 0)


@operator()
def bb_flip(
    input: Annotated[Data, _FLOAT32],
    *,
    horizontal: PerSample[int] = 1,
    ltrb: bool = False,
    vertical: PerSample[int] = 0,
) -> Like:
    """Mirror boxes, as `flip` does with their images.

    Args:
        input: Boxes: x, y, width and height of each, or its corners.
        horizontal: Non-zero mirrors left and right.
        ltrb: Whether boxes are given by their corners: left, top, right and bottom.
        vertical: Non-zero mirrors top and bottom.

    Example:
        >>> boxes = ndd.tensor([[0.125, 0.25, 0.25, 0.5]], dtype=ndd.float32)
        >>> ndd.bb_flip(boxes).torch().tolist()
        [[0.625, 0.25, 0.25, 0.5]]
    """
    return Like(input)


@operator(devices="cpu")
def bbox_paste(
    input: Annotated[Data, _FLOAT32],
    *,
    ltrb: bool = False,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: PerSample[float] = REQUIRED,
) -> Like:
    """Move boxes to where they are after `paste` has put their image on a larger canvas.

    Args:
        input: Boxes: x, y, width and height of each, or its corners.
        ltrb: Whether boxes are given by their corners: left, top, right and bottom.
        paste_x: Horizontal position of the image: 0 is the left edge, 1 the right one.
        paste_y: Vertical position: 0 is the top, 1 the bottom.
        ratio: How many times larger than the image the canvas is.

    Example:
        >>> boxes = ndd.tensor([[0.0, 0.0, 1.0, 0.5]], dtype=ndd.float32)
        >>> ndd.bbox_paste(boxes, ratio=2).torch().tolist()
        [[0.25, 0.25, 0.5, 0.25]]
    """
    return Like(input)


@operator(devices="cpu")
def bbox_rotate(
    bboxes: Annotated[Data, _FLOAT32, Shape(None, 4)],
    labels: Annotated[Data, _INT32, Rank(1, 2)] = None,
    *,
    angle: PerSample[float] = REQUIRED,
    bbox_layout: Annotated[str, OneOf("xyXY", "xyWH")] = "xyXY",
    bbox_normalized: bool = True,
    input_shape: PerSample[Ints] = REQUIRED,
    keep_size: bool = False,
    mode: Annotated[str, OneOf("expand", "fixed", "halfway")] = "expand",
    remove_threshold: Annotated[float, Between(0, _BELOW_ONE)] = 0.1,
    shape_layout: str = "HW",
    size: PerSample[Floats] = (),  # type: ignore[assignment]
) -> tuple[Result, ...]:
    """Rotate boxes, as `rotate` does with their images.

    Boxes are clipped to the rotated image. Those of which too little is left are removed, and
    their labels with them.

    Args:
        bboxes: The boxes.
        labels: A label for each box.
        angle: The angle, in degrees; counter-clockwise if positive.
        bbox_layout: Whether boxes end with their last corner, "xyXY", or with their size, "xyWH".
        bbox_normalized: Whether coordinates go from 0 to 1; if not, they count pixels.
        input_shape: The shape of the image before the rotation.
        keep_size: Whether the rotated image is as large as the original. If not, it is large
            enough for all of it, unless `size` is given.
        mode: The size of rotated boxes: "expand" encloses the original box, "fixed" keeps its
            size, "halfway" is between the two.
        remove_threshold: The share of a box's area that must be left for the box to be kept.
        shape_layout: The axes of `input_shape`. Axes other than H and W are ignored.
        size: Height and width of the rotated image, if that was rotated with a `size`.

    Returns:
        The boxes, and their labels if those are given.

    Example:
        >>> boxes = ndd.tensor([[0.0, 0.0, 0.5, 0.25]], dtype=ndd.float32)
        >>> turned = ndd.bbox_rotate(boxes, angle=90, input_shape=[100, 200])
        >>> [round(x, 4) for x in turned.torch().flatten().tolist()]
        [0.0, 0.5, 0.25, 1.0]
    """
    if keep_size and (isinstance(size, Array) or size):
        raise messages.bad_argument("bbox_rotate", "size", "excludes `keep_size`")
    boxes = Result(float32, 2)
    return (boxes,) if labels is None else (boxes, Result(int32, labels.ndim))


@operator()
def box_encoder(
    input_0: Annotated[Data, _FLOAT32, Shape(None, 4)],
    input_1: Annotated[Data, _INT32, Rank(1, 2)],
    *,
    anchors: PerSample[Matrix] = REQUIRED,
    criteria: Annotated[float, Between(0, 1)] = 0.5,
    means: Floats = (0.0, 0.0, 0.0, 0.0),  # type: ignore[assignment]
    offset: bool = False,
    scale: float = 1.0,
    stds: Floats = (1.0, 1.0, 1.0, 1.0),  # type: ignore[assignment]
) -> tuple[Result, Result]:
    """Match boxes with anchors, for the training of single-shot detectors.

    Each box gets the anchor that it overlaps most. An anchor that is still free gets the box that
    it overlaps most, if their intersection over union is above `criteria`. Anchors without a box
    have the label 0.

    Args:
        input_0: Boxes: left, top, right and bottom of each.
        input_1: A label for each box.
        anchors: Left, top, right and bottom of each anchor, in a list or a matrix.
        criteria: The intersection over union from which on an anchor gets a box.
        means: What is subtracted from offsets: for x, y, width and height.
        offset: Whether to return how boxes differ from their anchors: the distance of the centers
            in sizes of the anchor, and the logarithms of the ratios of sizes. Without, the result
            has the boxes themselves, or the anchors where there are none.
        scale: What boxes and anchors are multiplied by before offsets are computed.
        stds: What offsets are divided by.

    Returns:
        For each anchor, a box as x and y of its center, width and height; and a label.

    Example:
        >>> boxes = ndd.tensor([[0.0, 0.0, 0.5, 0.25]], dtype=ndd.float32)
        >>> anchors = [0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1]
        >>> made, classes = ndd.box_encoder(boxes, ndd.tensor([3]), anchors=anchors)
        >>> made.torch().tolist()
        [[0.25, 0.125, 0.5, 0.25], [0.75, 0.75, 0.5, 0.5]]
        >>> classes.torch().tolist()
        [3, 0]
    """
    return Result(float32, 2), Result(int32, 1)


@operator(random=True, devices="cpu")
def random_bbox_crop(
    boxes: Annotated[Data, _FLOAT32, Rank(2, 2)],
    labels: Annotated[Data, _INT32, Rank(1, 2)] = None,
    *,
    all_boxes_above_threshold: bool = True,
    allow_no_crop: bool = True,
    aspect_ratio: Floats | None = None,
    bbox_layout: str | None = None,
    bbox_prune_threshold: Annotated[float, Between(0, 1)] | None = None,
    crop_shape: PerSample[Ints] | None = None,
    input_shape: PerSample[Ints] | None = None,
    ltrb: bool | None = None,
    num_attempts: Annotated[int, Between(1, None)] = 1,
    output_bbox_indices: bool = False,
    quiet: bool = False,
    scaling: Floats | None = None,
    shape_layout: str | None = None,
    threshold_type: Annotated[str, OneOf("iou", "overlap")] = "iou",
    thresholds: Annotated[Floats, Between(0, 1)] = (0.0,),  # type: ignore[assignment]
    total_num_attempts: int = -1,
) -> tuple[Result, ...]:
    """Draw a random window of an image that holds enough of its boxes, and crop the boxes.

    Windows are drawn until one holds the boxes as one of `thresholds` demands and keeps at least
    one of them. `slice` can then crop the image.

    Args:
        boxes: Boxes in two or three dimensions, with coordinates from 0 to 1.
        labels: A label for each box.
        all_boxes_above_threshold: Whether the threshold is meant for each of the boxes, or for any.
        allow_no_crop: Whether the whole image is a possible result too, as likely as the choice
            of each of the thresholds. Ignored with `crop_shape`.
        aspect_ratio: The smallest and the largest ratio of width to height; 1 by default. In three
            dimensions, optionally six numbers: limits for x/y, x/z and y/z. With `input_shape`,
            ratios are those of pixels.
        bbox_layout: What the numbers of a box are: x, y (and z) of its first corner, and X, Y, Z
            of its last one or W, H, D for its size, in any order. "xyXY" or "xyzXYZ" by default.
        bbox_prune_threshold: The share of a box that must be inside of the window for the box to
            be kept. By default, boxes are kept whose center is inside.
        crop_shape: The extents of windows in pixels, instead of random ones; needs `input_shape`.
        input_shape: The extents of the image.
        ltrb: Deprecated: True stands for the layout "xyXY", False for "xyWH".
        num_attempts: How many windows to try with a threshold before another one is chosen.
        output_bbox_indices: Whether to return the indices of the boxes that were kept.
        quiet: Accepted for compatibility: nothing is printed in any case.
        scaling: The smallest and the largest extent of windows, relative to the image's; 1 by
            default.
        shape_layout: The order of the extents in `crop_shape` and `input_shape`; "WH" or "WHD" by
            default.
        threshold_type: How well a window holds a box: "iou" is their intersection over their
            union, "overlap" the share of the box that is inside.
        thresholds: How well windows must hold boxes. One of these is chosen at random.
        total_num_attempts: How many windows to try in total, at most 100000; the one that holds
            the boxes best is the result if none suffices. By default, it is an error if none of
            100000 does.

    Returns:
        The first corner and the extents of the window: x, y (and z), relative, or in pixels with
        `crop_shape`. Then the boxes that were kept, in coordinates of the window, their labels if
        given, and their indices if asked for.

    Example:
        >>> boxes = ndd.tensor([[0.25, 0.25, 0.5, 0.75]], dtype=ndd.float32)
        >>> anchor, shape, cropped = ndd.random_bbox_crop(
        ...     boxes, scaling=[0.5, 1], aspect_ratio=[0.5, 2], thresholds=[0.1, 0.3]
        ... )
        >>> cropped.shape
        (1, 4)
    """
    name = "random_bbox_crop"
    if ltrb is not None and bbox_layout is not None:
        raise messages.bad_argument(name, "ltrb", "is deprecated and excludes `bbox_layout`")
    if not thresholds:
        raise messages.bad_argument(name, "thresholds", "must not be empty")
    if total_num_attempts != -1 and total_num_attempts < 1:
        raise messages.out_of_range(name, "total_num_attempts", "at least 1", total_num_attempts)
    if crop_shape is not None:
        for key, given in (("scaling", scaling), ("aspect_ratio", aspect_ratio)):
            if given is not None:
                raise messages.bad_argument(name, key, "can't be given together with `crop_shape`")
    anchor = Result(
        float32,
        1,
        aspect_ratio=_ranges(name, "aspect_ratio", aspect_ratio, (2, 6)),
        scaling=_ranges(name, "scaling", scaling, (2,)),
        sized=ltrb is not None and not ltrb,
    )
    results = [anchor, Result(float32, 1), Result(float32, 2)]
    if labels is not None:
        results.append(Result(int32, labels.ndim))
    if output_bbox_indices:
        results.append(Result(int32, 1))
    return tuple(results)


def _ranges(
    operator: str, name: str, given: tuple[float, ...] | None, counts: tuple[int, ...]
) -> tuple[float, ...]:
    """Pairs of a lower and an upper limit."""
    if given is None:
        return 1.0, 1.0
    if len(given) not in counts:
        wanted = " or ".join(map(str, counts))
        raise messages.bad_argument(operator, name, f"must have {wanted} numbers, got {len(given)}")
    for low, high in zip(given[::2], given[1::2], strict=True):
        if not 0 <= low <= high < math.inf:
            problem = f"must go from a number that is not negative up to another, got {given}"
            raise messages.bad_argument(operator, name, problem)
    return given


@operator(random=True, devices="cpu")
def roi_random_crop(
    input: Data = None,
    *,
    crop_shape: PerSample[Ints] = REQUIRED,
    in_shape: PerSample[Ints] | None = None,
    roi_end: PerSample[Ints] | None = None,
    roi_shape: PerSample[Ints] | None = None,
    roi_start: PerSample[Ints] = REQUIRED,
) -> Result:
    """Draw the start of a window that holds as much as it can of a region of interest.

    A window that is smaller than the region is inside of it; a larger one holds all of it. Each
    such place is as likely.

    Args:
        input: The data to be cropped, whose bounds the window must not exceed. Its values are not
            used.
        crop_shape: The extents of the window.
        in_shape: The extents of the data, if that isn't an input. Without either, windows may
            exceed the data.
        roi_end: Where the region ends; or give `roi_shape`.
        roi_shape: The extents of the region.
        roi_start: Where the region starts.

    Returns:
        The coordinates of the window's start, one for each entry of `crop_shape`.

    Example:
        >>> ndd.roi_random_crop(
        ...     crop_shape=[4, 4], roi_start=[2, 0], roi_shape=[4, 2], in_shape=[8, 4]
        ... ).torch().tolist()
        [2, 0]
    """
    return Result(int64, 1)
