"""Sentences for problems of `multi_paste` (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "MultiPaste.NotPairs": (
        "needs a row of two numbers for each of {regions} regions, got the shape {shape}"
    ),
    "MultiPaste.OutputSize": "needs a height and a width, got {given}",
    "MultiPaste.NoSize": (
        "is required if images differ in size, got {first} and {other} (height, width)"
    ),
    "MultiPaste.Channels": (
        "all images on a canvas must have the same number of channels, got {first} and {other}"
    ),
    "MultiPaste.Different": "all images must have the same element type, got {first} and {other}",
    "MultiPaste.NotAnImage": (
        "must be images of height, width and channels, or sequences with the same number of "
        "frames, got the shape {shape}"
    ),
    "MultiPaste.OutsideInput": (
        "must keep region {region} inside its image: it starts at {start} with the shape {shape}, "
        "but the image has the size {input}"
    ),
    "MultiPaste.OutsideOutput": (
        "must keep region {region} inside the canvas: it starts at {start} with the shape {shape}, "
        "but the canvas has the size {output}"
    ),
    "MultiPaste.NoSample": "refers to sample {id}, but the batch has {samples} samples",
}
