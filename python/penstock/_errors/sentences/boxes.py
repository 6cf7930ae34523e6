"""Sentences for problems of the box operators (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable


def _box_layout(wanted: str, given: str) -> str:
    sizes = {"xyXY": "xyWH", "xyzXYZ": "xyzWHD"}
    return f'must have the letters of "{wanted}" or "{sizes[wanted]}", got "{given}"'


SENTENCES: dict[str, str | Callable[..., str]] = {
    "Boxes.NotFours": "boxes have four numbers each, got the shape {shape}",
    "Boxes.NotRows": "boxes must be rows of {wanted} numbers, got the shape {shape}",
    "Boxes.LabelShape": "{boxes} boxes need as many labels, got the shape {shape}",
    "Boxes.Outside": (
        "box {index} is not inside the image: coordinates must be between 0 and 1, got "
        "{coordinates}"
    ),
    "Boxes.Inverted": "box {index} ends before it starts: {coordinates}",
    "Boxes.Anchors": "needs four numbers for each anchor, and at least one anchor, got {given}",
    "Boxes.NotZero": "must not be zero",
    "Boxes.BoxLayout": _box_layout,
    "Boxes.ShapeLayout": 'must have the letters {wanted}, got "{given}"',
    "Boxes.ShapeNumbers": 'needs a number for each letter of "{layout}", got {given}',
    "Boxes.Extents": "needs one number for each of {wanted} axes, got {given}",
    "Boxes.NoWindow": (
        "no window met the conditions in {attempts} attempts; the best one had a metric of "
        "{best:.3g}. Lower `thresholds`, widen `scaling` or `aspect_ratio`, set "
        "`all_boxes_above_threshold=False` or `allow_no_crop=True`, or give `total_num_attempts` "
        "to get the best window instead"
    ),
    "Boxes.NoShape": (
        "is not the ratio of any of {attempts} windows within `scaling`; widen one of the two"
    ),
    "Boxes.RoiEnds": "is {given} on axis {axis}, before the start {start}",
    "Boxes.RoiOutside": (
        "and the end of the region, {start} and {end}, must be inside axis {axis}, which has "
        "{extent} elements"
    ),
    "Boxes.LargeCrop": "is {given} on axis {axis}, which has only {extent} elements",
    "Boxes.FewAxes": "must have the {wanted} axes of `crop_shape`, got {given}",
}
