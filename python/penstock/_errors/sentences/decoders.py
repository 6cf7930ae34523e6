"""Sentences for problems of encoded arrays, audio and compressed bytes (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Arrays.NotBytes": "an encoded array must consist of bytes, got {dtype}",
    "Arrays.Unreadable": "this array can't be read: {problem}",
    "Arrays.Different": (
        "the array has {ndim} dimensions and the type {dtype}, but the first one of the batch has "
        "{first_ndim} and {first_dtype}; all must have the same number of dimensions, and the same "
        "type unless `dtype` is given"
    ),
    "Inflate.NotBytes": (
        "compressed data must be one-dimensional bytes, got the shape {shape} of {dtype}"
    ),
    "Inflate.Rank": "has {given} extents for this sample, but {wanted} for the first one",
    "Inflate.Counts": "has {sizes} numbers, but `chunk_offsets` has {offsets}",
    "Inflate.Backwards": (
        "must not decrease unless `chunk_sizes` is given, got {end} after {start}"
    ),
    "Inflate.Outside": (
        "puts chunk {index} at bytes {start} to {end} of an input of {length} bytes"
    ),
    "Inflate.Longer": (
        "chunk {chunk} has more than the {wanted} bytes that `shape` and `dtype` require"
    ),
    "Inflate.Shorter": (
        "chunk {chunk} has {found} bytes, but `shape` and `dtype` require {wanted}"
    ),
    "Inflate.Ends": "chunk {chunk} is truncated",
    "Inflate.Damaged": "chunk {chunk} can't be decompressed: {text}",
    "Sounds.NotBytes": "encoded audio must be one-dimensional uint8, got {dtype} of shape {shape}",
}
