"""Sentences for the problems of operators on masks (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Segmentation.NoPixels": "a mask without pixels has none to choose, got the shape {shape}",
    "Segmentation.NoAxes": "a mask must have at least one axis, got a single number",
    "Segmentation.LongAxis": "an axis is too long for coordinates of 32 bits: {shape}",
    "Segmentation.IsBackground": (
        "is {label}, which is also one of `classes`; choose another one, or take it out of them"
    ),
    "Segmentation.Weights": "has {given} weights for {classes} classes",
    "Segmentation.Weight": "must be finite and not negative, got {given}",
    "Segmentation.Threshold": "needs one number, or one for each of {axes} axes, got {given}",
    "Segmentation.NotAList": "identifiers of masks must be a list, got the shape {shape}",
    "Segmentation.NotPolygons": (
        "polygons must be rows of a mask's identifier, a first vertex and an end, got the shape "
        "{shape}"
    ),
    "Segmentation.NotVertices": "vertices must be rows of coordinates, got the shape {shape}",
    "Segmentation.RepeatedMask": "mask {id} must not be listed more than once",
    "Segmentation.UnknownMask": "mask {id} has no polygons",
    "Segmentation.VertexRange": (
        "a polygon of mask {id} has the vertices from {start} to {end}, but there are {vertices}"
    ),
}
