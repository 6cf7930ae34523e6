"""Sentences for the problems of `multi_paste` (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "MultiPaste.NotPairs": (
        "needs a row of two numbers for each of {regions} regions, got the shape {shape}"
    ),
    "MultiPaste.OutputSize": "needs a height and a width, got {given}",
    "MultiPaste.NoSize": (
        "must be given where images differ in size: {first} and {other} (height, width)"
    ),
    "MultiPaste.Channels": (
        "all images on a canvas must have as many channels, got {first} and {other}"
    ),
    "MultiPaste.Different": "all images must have one element type, got {first} and {other}",
    "MultiPaste.NotAnImage": (
        "must be images of height, width and channels, or sequences of as many frames, got the "
        "shape {shape}"
    ),
    "MultiPaste.OutsideInput": (
        "must keep region {region} inside of its image: it starts at {start} with the shape "
        "{shape}, the image has {input}"
    ),
    "MultiPaste.OutsideOutput": (
        "must keep region {region} inside of the canvas: it starts at {start} with the shape "
        "{shape}, the canvas has {output}"
    ),
    "MultiPaste.NoSample": "names sample {id} of a batch of {samples}",
}
