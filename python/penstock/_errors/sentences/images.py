"""Sentences for problems of debayer, dump_image, remap and warp_perspective."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Debayer.Bytes": '"vng_ocv" supports only uint8, got {dtype}; use another algorithm',
    "Debayer.Position": (
        "needs a row and a column of the 2x2 tile, each 0 or 1, such as [0, 0], got {given}"
    ),
    "DumpImage.NotAName": "must be part of a file name, not a path, got {given!r}",
    "DumpImage.NotAnImage": "an image must have height, width and channels, got the shape {shape}",
    "Perspective.FillValues": (
        "needs one value, or one for each of {channels} channels, got {given}"
    ),
    "Perspective.Maps": "both maps must have the same shape, got {x} and {y}",
    "Perspective.MatrixTwice": "can't be given together with a matrix input",
    "Perspective.NoPixels": (
        'an empty image has no edge pixels to replicate; use `border_mode="constant"`'
    ),
    "Perspective.NotAMap": "a map must have a height and a width, got the shape {shape}",
}
