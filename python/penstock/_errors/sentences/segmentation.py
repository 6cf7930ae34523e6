"""Sentences for problems of the segmentation operators (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Segmentation.NoPixels": "a mask must have at least one pixel, got the shape {shape}",
    "Segmentation.NoAxes": "a mask must have at least one axis, got a scalar",
    "Segmentation.LongAxis": "an axis is too long for 32-bit coordinates, got the shape {shape}",
    "Segmentation.IsBackground": (
        "is {label}, which is also one of `classes`; choose another background label or remove it "
        "from `classes`"
    ),
    "Segmentation.Weights": "has {given} weights for {classes} classes",
    "Segmentation.Weight": "must be finite and not negative, got {given}",
    "Segmentation.Threshold": "needs one number, or one for each of {axes} axes, got {given}",
    "Segmentation.NotAList": "mask identifiers must be one-dimensional, got the shape {shape}",
    "Segmentation.NotPolygons": (
        "polygons must be rows of mask identifier, first vertex and end vertex, got the shape "
        "{shape}"
    ),
    "Segmentation.NotVertices": "vertices must be rows of coordinates, got the shape {shape}",
    "Segmentation.RepeatedMask": "mask {id} must not be listed more than once",
    "Segmentation.UnknownMask": "mask {id} has no polygons",
    "Segmentation.VertexRange": (
        "a polygon of mask {id} has an invalid range of vertices, {start} to {end}: there are "
        "{vertices} vertices"
    ),
}
