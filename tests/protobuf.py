"""Records of Caffe and Caffe2, written by hand, in LMDB databases made by the `lmdb` package."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import lmdb

FLOAT, INT32, BYTE, STRING = 1, 2, 3, 4


def number(value: int) -> bytes:
    """Seven bits to a byte."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(key: int, value: int | bytes) -> bytes:
    """A field of a message."""
    if isinstance(value, bytes):
        return number(key << 3 | 2) + number(len(value)) + value
    return number(key << 3) + number(value)


def datum(
    data: bytes | None = None,
    label: int | None = None,
    encoded: bool | None = None,
    shape: Sequence[int] = (),
) -> bytes:
    """A record of Caffe; the shape is height, width, channels."""
    height, width, channels = shape or (None, None, None)
    given = ((1, channels), (2, height), (3, width), (4, data), (5, label), (7, encoded))
    values = ((key, value) for key, value in given if value is not None)
    return b"".join(field(key, v if isinstance(v, bytes) else int(v)) for key, v in values)


def ints(*values: int, packed: bool = True) -> bytes:
    """A tensor of Caffe2."""
    row = b"".join(map(number, values))
    data = field(4, row) if packed else b"".join(field(4, value) for value in values)
    return field(1, len(values)) + field(2, INT32) + data


def floats(*values: float) -> bytes:
    """A tensor of Caffe2."""
    row = field(3, struct.pack(f"<{len(values)}f", *values))
    return field(1, len(values)) + field(2, FLOAT) + row


def texts(*values: bytes) -> bytes:
    """A tensor of Caffe2."""
    rows = b"".join(field(6, value) for value in values)
    return field(1, len(values)) + field(2, STRING) + rows


def pixels(data: bytes, *shape: int) -> bytes:
    """A tensor of Caffe2."""
    return b"".join(field(1, extent) for extent in shape) + field(2, BYTE) + field(5, data)


def tensors(*values: bytes) -> bytes:
    """A record of Caffe2."""
    return b"".join(field(1, value) for value in values)


def database(path: Path, records: Iterable[bytes]) -> str:
    """A database of these records, with keys in their order."""
    with lmdb.open(str(path), map_size=1 << 28) as env, env.begin(write=True) as change:
        for index, record in enumerate(records):
            change.put(b"%08d" % index, record)
    return str(path)
