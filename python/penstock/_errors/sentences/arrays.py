"""What is wrong with the memory of arrays that are imported, exported or unpickled."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "ArrayFault.DlpackVersion": (
        "DLPack version {version} is not supported; the newest supported one is {newest}"
    ),
    "ArrayFault.NotACapsule": "`__dlpack__` returned something other than an unused DLPack capsule",
    "ArrayFault.OnDevice": "the memory is on a device (DLPack type {kind})",
    "ArrayFault.DlpackType": (
        "the elements have DLPack's type code {code} with {bits} bits and {lanes} lanes"
    ),
    "ArrayFault.BufferType": "the elements have {size} bytes and the format {format!r}",
    "ArrayFault.Dimensions": "the array has {ndim} dimensions",
    "ArrayFault.NoShape": "the array has no shape",
    "ArrayFault.Shape": "the array's shape is invalid",
    "ArrayFault.Strides": "the array's strides reach beyond any memory",
    "ArrayFault.NoData": "the array has elements, but no memory",
    "ArrayFault.Offset": "the array's byte offset {offset} is beyond any memory",
    "ArrayFault.Memory": "out of memory: could not allocate {bytes} bytes",
    "ArrayFault.PackedType": "the packed samples have an unknown element type",
    "ArrayFault.PackedCount": (
        "the packed samples have {shapes} shapes and {sources} sources, which don't match"
    ),
    "ArrayFault.PackedShape": "the packed samples don't fit the shape {shape}",
    "ArrayFault.Layout": 'a layout has at most {most} ASCII letters, got "{given}"',
    "ArrayFault.ReadOnly": "the memory is read-only",
    "ArrayFault.ReadOnlyBeforeVersions": (
        "the memory is read-only, which DLPack can't express before version 1.0"
    ),
    "ArrayFault.ExportedStrides": (
        "DLPack can't express the strides: they are negative, or not a multiple of the element size"
    ),
}
