"""Segmentation masks."""

from __future__ import annotations

from typing import Annotated

from penstock._errors import messages
from penstock._operators.arguments import Floats, Ints
from penstock._operators.constraints import Between, Elements, OneOf, Rank
from penstock._operators.definition import Data, PerSample, Result, operator
from penstock._values.dtype import (
    DType,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
)

_INT32 = Elements("int32", int32)
_LABELS = Elements(
    "integers of at most 32 bits", DType.Kind.bool, int8, int16, int32, uint8, uint16, uint32
)


@operator(namespace="segmentation", random=True, devices="cpu")
def random_mask_pixel(
    input: Annotated[Data, Rank(1, None)],
    *,
    foreground: PerSample[int] = 0,
    threshold: PerSample[float] | None = None,
    value: PerSample[int] | None = None,
) -> Result:
    """Choose a random pixel of a mask.

    Args:
        input: Masks of integers or float32, with any number of dimensions.
        foreground: Non-zero chooses a foreground pixel, if there is one.
        threshold: Pixels above this value are foreground; 0 by default.
        value: Pixels equal to this value are foreground, instead of those above the threshold.

    Returns:
        The coordinates of the pixel, one for each dimension.

    Example:
        >>> mask = ndd.tensor([[0, 0, 0], [0, 0, 7]])
        >>> ndd.segmentation.random_mask_pixel(mask, foreground=1).torch().tolist()
        [1, 2]
    """
    return Result(int64, 1)


@operator(namespace="segmentation", random=True, devices="cpu")
def random_object_bbox(
    input: Annotated[Data, _LABELS, Rank(1, None)],
    *,
    background: PerSample[int] | None = None,
    cache_objects: bool = False,
    class_weights: PerSample[Floats] | None = None,
    classes: PerSample[Ints] | None = None,
    foreground_prob: PerSample[float] = 1.0,
    format: Annotated[str, OneOf("anchor_shape", "start_end", "box")] = "anchor_shape",
    ignore_class: bool = False,
    k_largest: Annotated[int, Between(1, None)] | None = None,
    output_class: bool = False,
    threshold: PerSample[Ints] | None = None,
) -> tuple[Result, ...]:
    """Choose a random object of a labeled mask, and return its bounding box.

    First a label is chosen, then one of its objects. An object is a connected component: pixels
    of the same label that touch along an axis, not just diagonally. If there are no objects, the
    result is the whole mask.

    Args:
        input: Masks with any number of dimensions. A pixel's value is its label.
        background: The label of the background. By default 0, or the next lower number that is
            not in `classes`.
        cache_objects: Accepted for compatibility; has no effect.
        class_weights: The relative probability of each label of `classes`. Without `classes`, the
            weights are for labels 0, 1, 2 and so on, skipping the background.
        classes: The labels of objects; by default all but the background.
        foreground_prob: The probability of choosing an object instead of the whole mask.
        format: What to return: "anchor_shape" and "start_end" give two results, "box" a single
            one that holds start and end.
        ignore_class: Whether to choose among the objects of all labels at once.
        k_largest: Only choose among this many objects with the largest bounding boxes.
        output_class: Whether to return the label as well. It is the background label if no object
            was chosen.
        threshold: The minimum extents of an object's bounding box.

    Returns:
        The bounding box, as one or two results, and the label if requested.

    Example:
        >>> mask = ndd.tensor([[0, 0, 0], [0, 5, 5]])
        >>> anchor, shape, label = ndd.segmentation.random_object_bbox(mask, output_class=True)
        >>> anchor.torch().tolist(), shape.torch().tolist(), label.item()
        ([1, 1], [1, 2], 5)
    """
    if ignore_class:
        given = {"classes": classes, "class_weights": class_weights}
        names = [name for name, item in given.items() if item is not None]
        names += ["output_class"] if output_class else []
        if names:
            raise messages.bad_argument(
                "segmentation.random_object_bbox", "ignore_class", f"excludes `{names[0]}`"
            )
    places = [Result(int32, 1)] if format == "box" else [Result(int32, 1), Result(int32, 1)]
    return (*places, Result(int32, 0)) if output_class else tuple(places)


@operator(namespace="segmentation", devices="cpu")
def select_masks(
    mask_ids: Annotated[Data, _INT32, Rank(1, 1)],
    polygons: Annotated[Data, _INT32, Rank(2, 2)],
    vertices: Annotated[Data, Rank(2, 2)],
    *,
    reindex_masks: bool = False,
) -> tuple[Result, Result]:
    """Select the polygons of some masks, in the format that `readers.COCO` returns.

    The result has the masks in the order of `mask_ids`.

    Args:
        mask_ids: The identifiers of the masks to select, without duplicates.
        polygons: A row for each polygon: the mask identifier, the index of the first vertex, and
            the index after the last vertex.
        vertices: A row of coordinates for each vertex.
        reindex_masks: Whether to replace mask identifiers by their positions in `mask_ids`.

    Returns:
        The polygons and the vertices of the selected masks.

    Example:
        >>> polygons = ndd.tensor([[0, 0, 3], [1, 3, 6]])
        >>> corners = [[0, 0], [0, 1], [1, 1], [2, 2], [2, 3], [3, 3]]
        >>> made, points = ndd.segmentation.select_masks([1], polygons, corners)
        >>> made.torch().tolist(), points.torch().tolist()
        ([[1, 0, 3]], [[2, 2], [2, 3], [3, 3]])
    """
    return Result(int32, 2), Result(vertices.dtype, 2)
