"""Columns of Arrow data through its PyCapsule interface, which needs no package.

A column of binary values or of lists is a batch: each row is a sample, whose shape follows from the
lengths of its lists. Rows are views of the column's memory, which stays alive as long as they do.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

_NUMBERS = {
    "c": np.int8,
    "C": np.uint8,
    "s": np.int16,
    "S": np.uint16,
    "i": np.int32,
    "I": np.uint32,
    "l": np.int64,
    "L": np.uint64,
    "e": np.float16,
    "f": np.float32,
    "g": np.float64,
}
_OFFSETS = {"z": np.int32, "Z": np.int64, "+l": np.int32, "+L": np.int64}
_SUPPORTED = (
    "Supported are binary, lists, fixed-size lists and lists of lists, of bool, integers and "
    "floats."
)
_OTHERS = {
    "n": "nulls",
    "u": "strings",
    "U": "strings",
    "vu": "strings",
    "+m": "maps",
    "+vl": "list views",
    "+vL": "list views",
    "+r": "run-end encoded values",
}
_OTHER_FAMILIES = {"d": "decimals", "t": "times", "+u": "unions"}


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Owned:
    """A struct that a stream has filled in for us, released with the last view of its memory."""

    def __init__(self, struct: Any) -> None:
        self.struct = struct
        self._reference = ctypes.byref(struct)

    def __del__(self) -> None:
        if self.struct.release:
            self.struct.release(self._reference)


class _Chunk(NamedTuple):
    """A part of a column."""

    schema: Any
    array: Any
    owner: object
    first: int
    """The number of its first row."""


def samples(data: Any) -> Any:
    """The rows of a column: one array, whose first dimension counts them, or a list of arrays.

    A list has the rows of columns with different shapes, or with several chunks.
    """
    found = [_rows(chunk) for chunk in _chunks(data)]
    if len(found) == 1:
        return found[0]
    every = [row for rows in found for row in rows]
    return every if every else found[0]


def _chunks(data: Any) -> Iterator[_Chunk]:
    """The parts of a column; at least one, which may be empty."""
    if hasattr(data, "__arrow_c_array__"):
        schema, array = data.__arrow_c_array__()
        structs = (
            _Schema.from_address(_pointer_of(schema, b"arrow_schema")),
            _Array.from_address(_pointer_of(array, b"arrow_array")),
        )
        yield _Chunk(*structs, (schema, array), 0)
        return
    capsule = data.__arrow_c_stream__()
    address = _pointer_of(capsule, b"arrow_array_stream")
    stream = _Stream.from_address(address)
    described = _Owned(_Schema())
    _check(stream, address, stream.get_schema(address, described.struct))
    first = 0
    while True:
        chunk = _Owned(_Array())
        _check(stream, address, stream.get_next(address, chunk.struct))
        is_end = not chunk.struct.release
        if not is_end and (chunk.struct.length or not first):
            yield _Chunk(described.struct, chunk.struct, (described, chunk), first)
        if is_end:
            if not first:
                yield _Chunk(described.struct, None, described, 0)
            return
        first += chunk.struct.length


def _check(stream: Any, address: int, code: int) -> None:
    if code:
        text = stream.get_last_error(address) or b"no details"
        raise RuntimeError(f"Can't read the Arrow stream: {text.decode(errors='replace')}.")


def _rows(chunk: _Chunk) -> Any:
    schema, array, owner, first = chunk
    shape: list[int | Positions] = []
    count = 0 if array is None else array.length
    starts, ends = np.arange(count), np.arange(1, count + 1)
    while True:
        kind = _format(schema)
        if array is not None:
            _refuse_nulls(array, owner, first, starts, ends, is_row=not shape)
        if kind.startswith("+w:"):
            extent = int(kind[3:])
            shape.append(extent)
            base = 0 if array is None else array.offset
            starts, ends = (starts + base) * extent, (ends + base) * extent
        elif kind in ("+l", "+L"):
            extents, starts, ends = _list(array, kind, owner, first, starts, ends, bool(shape))
            shape.append(extents)
        else:
            break
        schema = schema.children[0].contents
        array = None if array is None else array.children[0].contents
    if kind in ("vz", "z", "Z") or kind.startswith("w:"):
        if shape:
            _refuse("lists of binary values")
        if kind == "vz":
            return _binary_views(array, owner)
        flat, starts, extents = _binary(array, kind, owner)
        shape.append(extents)
    else:
        flat = _numbers(array, kind, owner)
    return _cut(flat, starts, shape)


def _cut(flat: Any, starts: Positions, shape: list[int | Positions]) -> Any:
    """The rows as one array, or as a list if their shapes differ."""
    count = len(starts)
    same = [_agreed(extent) for extent in shape]
    if None not in same:
        size = math.prod(same)  # type: ignore[arg-type]
        begin = int(starts[0]) if count else 0
        return flat[begin : begin + count * size].reshape(count, *same)
    columns = [np.full(count, each) if isinstance(each, int) else each for each in shape]
    shapes = np.stack(columns, 1).tolist()
    return [
        flat[start : start + math.prod(extents)].reshape(extents)
        for start, extents in zip(starts.tolist(), shapes, strict=True)
    ]


def _agreed(extent: int | Positions) -> int | None:
    """The extent of all rows, or None if they differ."""
    if isinstance(extent, int):
        return extent
    if not len(extent):
        return 0
    return int(extent[0]) if (extent == extent[0]).all() else None


def _list(
    array: Any,
    kind: str,
    owner: object,
    first: int,
    starts: Positions,
    ends: Positions,
    is_inside: bool,
) -> tuple[Positions, Positions, Positions]:
    """The extent that lists give to each row, and where the rows are in the lists' values."""
    if array is None or not len(starts):
        none = np.zeros(0, np.int64)
        return none, none, none
    offsets = _buffer(array, 1, array.offset + array.length + 1, _OFFSETS[kind], owner)
    offsets = offsets[array.offset :].astype(np.int64)
    lengths = np.diff(offsets)
    if not is_inside:
        extents = lengths[starts]
    else:
        extents = np.zeros(len(starts), np.int64)
        filled = np.flatnonzero(ends > starts)
        if len(filled):
            # Rows follow one another without gaps, so each ends where the next one begins.
            used, at = lengths[: ends[filled[-1]]], starts[filled]
            extents[filled] = np.minimum.reduceat(used, at)
            differ = np.flatnonzero(np.maximum.reduceat(used, at) != extents[filled])
            if len(differ):
                row = first + int(filled[differ[0]])
                raise ValueError(
                    f"Can't make a batch from this Arrow column: the inner lists of row {row} "
                    "differ in length, so it is no array."
                )
    return extents, offsets[starts], offsets[ends]


def _binary(array: Any, kind: str, owner: object) -> tuple[Any, Positions, Any]:
    if array is None:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    if kind.startswith("w:"):
        width = int(kind[2:])
        flat = _buffer(array, 1, (array.offset + array.length) * width, np.uint8, owner)
        return flat, np.arange(array.offset, array.offset + array.length) * width, width
    offsets = _buffer(array, 1, array.offset + array.length + 1, _OFFSETS[kind], owner)
    offsets = offsets[array.offset :].astype(np.int64)
    end = int(offsets[-1]) if len(offsets) else 0
    return _buffer(array, 2, end, np.uint8, owner), offsets[:-1], np.diff(offsets)


def _binary_views(array: Any, owner: object) -> Any:
    """Views: 16 bytes each, with a length, and either the bytes or where they are."""
    if array is None or not array.length:
        return np.zeros((0, 0), np.uint8)
    end = array.offset + array.length
    raw = _buffer(array, 1, end * 16, np.uint8, owner)
    views = raw.view(np.int32).reshape(-1, 4)[array.offset :].tolist()
    # The last buffer has the sizes of those between.
    count = array.n_buffers - 3
    sizes = _buffer(array, array.n_buffers - 1, count, np.int64, owner).tolist()
    data = [_buffer(array, 2 + each, size, np.uint8, owner) for each, size in enumerate(sizes)]
    rows = []
    for number, (length, _, buffer, offset) in enumerate(views, array.offset):
        if length <= 12:
            rows.append(raw[number * 16 + 4 : number * 16 + 4 + length])
        else:
            rows.append(data[buffer][offset : offset + length])
    return rows


def _numbers(array: Any, kind: str, owner: object) -> Any:
    if kind == "b":
        if array is None:
            return np.zeros(0, np.bool_)
        end = array.offset + array.length
        return _bits(_buffer(array, 1, -(-end // 8), np.uint8, owner), array.offset, end)
    dtype = _NUMBERS[kind]
    if array is None:
        return np.zeros(0, dtype)
    return _buffer(array, 1, array.offset + array.length, dtype, owner)[array.offset :]


def _bits(packed: Any, start: int, end: int) -> Any:
    return np.unpackbits(packed, count=end, bitorder="little")[start:].view(np.bool_)


def _buffer(array: Any, index: int, count: int, dtype: Any, owner: object) -> Any:
    """A read-only view of a buffer, which keeps its owner alive."""
    address = array.buffers[index]
    if not address or count <= 0:
        return np.zeros(max(count, 0), dtype)
    memory = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(address)
    memory._owner = owner
    view = np.frombuffer(memory, dtype)
    view.flags.writeable = False
    return view


def _refuse_nulls(
    array: Any, owner: object, first: int, starts: Positions, ends: Positions, is_row: bool
) -> None:
    if array.null_count == 0 or not array.n_buffers or not array.buffers[0] or not len(starts):
        return
    end = array.offset + array.length
    valid = _bits(_buffer(array, 0, -(-end // 8), np.uint8, owner), array.offset, end)
    nulls = np.flatnonzero(~valid[: int(ends[-1])])
    nulls = nulls[nulls >= starts[0]]
    if len(nulls):
        row = first + int(np.searchsorted(ends, nulls[0], side="right"))
        what = "is null" if is_row else "has a null inside"
        raise ValueError(
            f"Can't make a batch from this Arrow column: row {row} {what}. Drop or fill nulls "
            "first."
        )


def _format(schema: Any) -> str:
    """The type of a level, if it is supported."""
    kind: str = schema.format.decode()
    if schema.dictionary:
        _refuse("dictionary-encoded values")
    if kind == "+s":
        _refuse("structs", " Of a table, pass one column.")
    supported = kind in _NUMBERS or kind in _OFFSETS or kind in ("b", "vz")
    if not supported and not kind.startswith(("+w:", "w:")):
        name = _OTHERS.get(kind)
        families = (_OTHER_FAMILIES[key] for key in _OTHER_FAMILIES if kind.startswith(key))
        _refuse(name or next(families, f"type {kind!r}"))
    return kind


def _refuse(what: str, hint: str = "") -> NoReturn:
    raise TypeError(f"Can't make a batch from an Arrow column of {what}. {_SUPPORTED}{hint}")


def exported(flat: Any, shapes: list[tuple[int, ...]], ndim: int) -> Any:
    """A column of pyarrow with a row for each sample, from the elements of all of them.

    Dimensions that have the same extent in all samples are fixed-size lists, others lists.
    """
    import pyarrow

    column = pyarrow.array(flat)
    # How many lists of each level a sample has: the product of the extents before it.
    extents = np.array(shapes, np.int64).reshape(len(shapes), ndim)
    for axis in reversed(range(ndim)):
        sizes = extents[:, axis]
        counts = np.prod(extents[:, :axis], axis=1, dtype=np.int64)
        agreed = _agreed(sizes)
        if agreed:
            column = pyarrow.FixedSizeListArray.from_arrays(column, agreed)
        else:
            ends = np.cumsum(np.repeat(sizes, counts))
            offsets = pyarrow.array(np.concatenate([[0], ends]).astype(np.int64))
            column = pyarrow.LargeListArray.from_arrays(offsets, column)
    return column
