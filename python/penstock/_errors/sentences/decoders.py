"""What is wrong with encoded arrays and compressed bytes."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Arrays.NotBytes": "an encoded array is made of bytes, got {dtype}",
    "Arrays.Unreadable": "this array can't be read: {problem}",
    "Arrays.Different": (
        "the array has {ndim} dimensions of {dtype}, and the first of the batch has {first_ndim} "
        "of {first_dtype}; all must have the same number of dimensions, and the same type unless "
        "`dtype` is given"
    ),
    "Inflate.NotBytes": "compressed data is a row of bytes, got the shape {shape} of {dtype}",
    "Inflate.Rank": "has {given} extents for this sample and {wanted} for the first one",
    "Inflate.Counts": "has {sizes} numbers, and `chunk_offsets` has {offsets}",
    "Inflate.Backwards": (
        "must not decrease unless `chunk_sizes` is given, got {end} after {start}"
    ),
    "Inflate.Outside": (
        "puts chunk {index} at bytes {start} to {end} of an input of {length} bytes"
    ),
    "Inflate.Longer": (
        "chunk {chunk} holds more than the {wanted} bytes that `shape` and `dtype` ask for"
    ),
    "Inflate.Shorter": ("chunk {chunk} holds {found} bytes; `shape` and `dtype` ask for {wanted}"),
    "Inflate.Ends": "chunk {chunk} ends before its data is complete",
    "Inflate.Damaged": "chunk {chunk} can't be decompressed: {text}",
}
