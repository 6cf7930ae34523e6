"""Sentences for problems of augmentation, automatic augmentation and mixing (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Augmentation.Range": (
        "needs two numbers between {low} and {high}, the smaller one first, got {given}"
    ),
    "Augmentation.KernelSize": "must be odd, from 1 to {largest}, got {given}",
    "Augmentation.LargeImage": (
        "an image of {height} x {width} is too large: the limit is {largest} pixels"
    ),
    "AutoAug.Operation": "has {given}, but operations are numbered 0 to {last}",
    "AutoAug.Magnitudes": (
        "needs one number, or one for each of {operations} operations, got {given}"
    ),
    "AutoAug.ManyPixels": "has {pixels} pixels, too many for 32-bit histograms",
    "Mixing.Shapes": (
        "mixed samples must have the same shape and type, got the shapes {shape} and {partner}; "
        "resize or crop them first"
    ),
    "Mixing.NoClasses": "is required if labels are class indices",
    "Mixing.OtherClasses": (
        "labels must be class indices, or have a value for each of {classes} classes (`num_classes`"
        "), got {given} values"
    ),
    "Mixing.PartnerClasses": (
        "all labels must have the same number of values, got {given} and {partner}"
    ),
    "Mixing.Label": "class index {given} is out of range for {classes} classes",
    "Mixing.Alpha": "must be positive and finite, got {given}",
}
