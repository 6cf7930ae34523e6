"""Boxes.

Bounding boxes are rows of numbers. Coordinates are relative to the image, from 0 to 1, unless an
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
    """Flip bounding boxes, to match images that were flipped with `flip`.

    Args:
        input: Boxes, as x, y, width and height, or as corners (see `ltrb`).
        horizontal: Non-zero mirrors left and right.
        ltrb: Whether boxes are given as left, top, right and bottom.
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
    """Transform bounding boxes, to match images that were pasted with `paste`.

    Args:
        input: Boxes, as x, y, width and height, or as corners (see `ltrb`).
        ltrb: Whether boxes are given as left, top, right and bottom.
        paste_x: Horizontal position of the image: 0 is the left edge, 1 the right one.
        paste_y: Vertical position: 0 is the top, 1 the bottom.
        ratio: The ratio of the canvas size to the image size.

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
    """Rotate bounding boxes, to match images that were rotated with `rotate`.

    Boxes are clipped to the rotated image. Boxes that are mostly outside are removed together
    with their labels (see `remove_threshold`).

    Args:
        bboxes: The boxes.
        labels: A label for each box.
        angle: The angle, in degrees; counter-clockwise if positive.
        bbox_layout: "xyXY" for two corners, "xyWH" for a corner and a size.
        bbox_normalized: Whether coordinates are relative, from 0 to 1, or in pixels.
        input_shape: The shape of the image before the rotation.
        keep_size: Whether the rotated image keeps the size of the original. If not, it is large
            enough to hold the whole rotated image, unless `size` is given.
        mode: The size of rotated boxes: "expand" encloses the whole rotated box, "fixed" keeps
            the original size, "halfway" is the average of the two.
        remove_threshold: The fraction of a box's area that must remain inside the image for the
            box to be kept.
        shape_layout: The layout of `input_shape`. Axes other than H and W are ignored.
        size: Height and width of the rotated image, if `rotate` was called with a `size`.

    Returns:
        The boxes, and the labels if given.

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
    """Match boxes with anchors, for training single-shot detectors (SSD).

    Each box is assigned the anchor with the highest intersection over union (IoU). Each remaining
    anchor is assigned the box with the highest IoU, if that is above `criteria`. Anchors without
    a box get the label 0.

    Args:
        input_0: Boxes, as left, top, right and bottom.
        input_1: A label for each box.
        anchors: Left, top, right and bottom of each anchor, as a flat list or a matrix.
        criteria: The IoU above which an anchor is matched with a box.
        means: Means of x, y, width and height, subtracted from the offsets.
        offset: Whether to return offsets from the anchors instead of boxes: the distance between
            the centers divided by the anchor size, and the logarithm of the ratio of sizes. If
            not, the result is the matched box, or the anchor itself if it has none.
        scale: A factor for boxes and anchors, applied before offsets are computed.
        stds: Standard deviations that the offsets are divided by.

    Returns:
        For each anchor, a box as center x, center y, width and height; and a label.

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
    """Choose a random crop window that keeps enough of an image's boxes, and crop the boxes.

    Windows are drawn at random until one meets a randomly chosen threshold and keeps at least one
    box. Pass the window to `slice` to crop the image.

    Args:
        boxes: Boxes in two or three dimensions, with coordinates from 0 to 1.
        labels: A label for each box.
        all_boxes_above_threshold: Whether all boxes must be above the threshold, or at least one.
        allow_no_crop: Whether the whole image is also a possible result, with the same probability
            as each of the thresholds. Ignored with `crop_shape`.
        aspect_ratio: The minimum and maximum ratio of width to height; 1 by default. In three
            dimensions, optionally six numbers: limits for x/y, x/z and y/z. With `input_shape`,
            the ratio is in pixels, otherwise in relative coordinates.
        bbox_layout: The order of the numbers of a box: x, y (and z) for the first corner, and X,
            Y, Z for the last corner or W, H, D for the size. "xyXY" or "xyzXYZ" by default.
        bbox_prune_threshold: The fraction of a box that must be inside the window for the box to
            be kept. By default, a box is kept if its center is inside.
        crop_shape: A fixed window size in pixels, instead of a random one; needs `input_shape`.
        input_shape: The size of the image.
        ltrb: Deprecated: True stands for the layout "xyXY", False for "xyWH".
        num_attempts: How many windows to try before another threshold is chosen.
        output_bbox_indices: Whether to return the indices of the boxes that were kept.
        quiet: Accepted for compatibility; nothing is ever printed.
        scaling: The minimum and maximum size of the window relative to the image; 1 by default.
        shape_layout: The layout of `crop_shape` and `input_shape`; "WH" or "WHD" by default.
        threshold_type: What the threshold applies to: "iou" is the intersection over union of
            window and box, "overlap" the fraction of the box that is inside the window.
        thresholds: Minimum values of the metric. One is chosen at random.
        total_num_attempts: How many windows to try in total, at most 100000. If none meets the
            conditions, the best one is returned. By default, an error is raised after 100000
            attempts.

    Returns:
        The start and the size of the window as x, y (and z), relative to the image, or in pixels
        with `crop_shape`. Then the boxes that were kept, in window coordinates, their labels if
        given, and their indices if requested.

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
    """Choose a random crop window that covers as much as possible of a region of interest.

    A window smaller than the region lies inside it; a larger one contains all of it. All such
    positions are equally likely.

    Args:
        input: The data to be cropped. Only its shape is used: the window stays inside.
        crop_shape: The shape of the window.
        in_shape: The shape of the data, if it isn't passed as `input`. Without either, the window
            may exceed the data.
        roi_end: The end of the region. Give either this or `roi_shape`.
        roi_shape: The shape of the region.
        roi_start: The start of the region.

    Returns:
        The start of the window, one coordinate for each entry of `crop_shape`.

    Example:
        >>> ndd.roi_random_crop(
        ...     crop_shape=[4, 4], roi_start=[2, 0], roi_shape=[4, 2], in_shape=[8, 4]
        ... ).torch().tolist()
        [2, 0]
    """
    return Result(int64, 1)
