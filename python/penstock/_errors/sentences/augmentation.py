"""Sentences for the problems of augmentation (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Augmentation.Range": (
        "needs two numbers between {low} and {high}, the smaller one first, got {given}"
    ),
    "Augmentation.KernelSize": "must be odd, from 1 to {largest}, got {given}",
    "Augmentation.LargeImage": (
        "an image of {height} x {width} is too large: there may be {largest} pixels"
    ),
    "AutoAug.Operation": "has {given}, but operations are numbered 0 to {last}",
    "AutoAug.Magnitudes": (
        "needs one number, or one for each of {operations} operations, got {given}"
    ),
    "AutoAug.ManyPixels": "has {pixels} pixels, too many to count",
    "Mixing.Shapes": (
        "samples that are mixed must have one shape and type: {shape} and {partner}; resize or "
        "crop them before"
    ),
    "Mixing.NoClasses": "is missing: labels that are class numbers need the number of classes",
    "Mixing.OtherClasses": (
        "labels must be class numbers, or have a value for each of {classes} classes (`num_classes`"
        "), got {given} values"
    ),
    "Mixing.PartnerClasses": (
        "all labels must have the same number of values, got {given} and {partner}"
    ),
    "Mixing.Label": "{given} is not one of {classes} classes, which are numbered from 0",
    "Mixing.Alpha": "must be positive and finite, got {given}",
}
