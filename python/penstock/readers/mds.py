"""`readers.MDS`: shards of MosaicML's streaming format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.errors import ArgumentError
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, is_url
from penstock.readers._base.paths import path as as_path
from penstock.readers._base.records import open_records
from penstock.readers._base.source import Source, contents
from penstock.readers._base.table import Table, column_names

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WHAT = "readers.MDS"
_PACKINGS = ("zstd", "gz", "snappy")
_NUMBERS = frozenset(
    [
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("float16", "float32", "float64"),
    ]
)


class MDS(Table):
    """Reads samples of MosaicML's streaming format (MDS), as a dict.

    Columns with numbers (`int`, `float32`...) are scalars, `ndarray` arrays and `pil` pixels (HWC).
    All others are their bytes (uint8), such as `jpeg` and `png`, ready for a decoder, `str`, and
    `pkl`, which is never unpickled. All arrays of a column must have the same element type and
    number of dimensions.

    Shards may be compressed with zstd, gzip or Snappy. They are decompressed as a whole and cached,
    so shuffle these with `shuffle="groups"`: shards, then the samples in a window of
    `initial_fill`. Of other shards, only the samples are read.

    Args:
        path: The folder with `index.json`.
        columns: The names of the columns to read; by default all.

    Example:
        >>> reader = ndd.readers.MDS(path="shards", shuffle="groups")  # doctest: +SKIP
        >>> for batch in reader.next_epoch(batch_size=64):  # doctest: +SKIP
        ...     images = ndd.decoders.image(batch["image"])
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        path: Name,
        columns: str | Iterable[str] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._wanted = column_names(_WHAT, columns)
        self._folder = as_path(_WHAT, "path", path)
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        index = _read_index(self._folder)
        known = [name for name, *_ in index.columns]
        wanted = known if self._wanted is None else self._wanted
        missing = [name for name in wanted if name not in known]
        if missing:
            listed = ", ".join(map(repr, known))
            raise _wrong("columns", f"has {missing[0]!r}, and there are {listed} in {self._folder}")
        self._names = wanted
        return open_records(
            self._what,
            "mds",
            {"files": "path"},
            index.files,
            self._options.on_error,
            packings=index.packings,
            sizes=index.sizes,
            samples=index.samples,
            columns=index.columns,
            wanted=wanted,
        )

    def _yields(self, outputs: tuple[Any, ...]) -> dict[str, Any]:
        self._opened()
        return dict(zip(self._names, outputs, strict=True))


class _Index(NamedTuple):
    files: list[str]
    packings: list[str]
    sizes: list[int]
    samples: list[int]
    columns: list[tuple[str, str, int]]


def _read_index(folder: str) -> _Index:
    path = os.path.join(folder, "index.json")
    try:
        content = json.loads(contents(_WHAT, "path", path))
    except (OSError, ValueError, RecursionError) as error:
        raise _wrong("path", f"can't be used: {path}: {error}") from None
    index: _Index | None = None
    try:
        if content["version"] != 2:
            raise _wrong("path", f"can't be used: {path} has version {content['version']!r}, not 2")
        for number, shard in enumerate(content["shards"]):
            index = _add_shard(folder, path, number, shard, index)
    except (TypeError, KeyError, LookupError, AttributeError):
        raise _wrong("path", f"can't be used: {path} is not an index of MDS shards") from None
    if index is None:
        raise _wrong("path", f"names no samples: {path} has no shards")
    return index


def _add_shard(folder: str, path: str, number: int, shard: Any, before: _Index | None) -> _Index:
    def refuse(problem: str) -> ArgumentError:
        return _wrong("path", f"can't be used: {path}: shard {number} {problem}")

    if shard["format"] != "mds" or shard["version"] != 2:
        raise refuse(f"has the format {shard['format']!r} of version {shard['version']!r}")
    names, encodings = shard["column_names"], shard["column_encodings"]
    sizes = [0 if size is None else size for size in shard["column_sizes"]]
    if not len(names) == len(encodings) == len(sizes):
        raise refuse("does not have an encoding and a size for each column")
    for name, encoding, size in zip(names, encodings, sizes, strict=True):
        if not isinstance(name, str) or not _is_encoding(encoding):
            raise refuse(f"has the unknown encoding {encoding!r}")
        if not _is_count(size):
            raise refuse(f"has a column of {size!r} bytes")
    columns = list(zip(names, encodings, sizes, strict=True))
    if before is None:
        before = _Index([], [], [], [], columns)
    elif columns != before.columns:
        raise refuse("has other columns than the first one")
    raw, packed = shard["raw_data"], shard.get("zip_data")
    packing = (shard.get("compression") or "").partition(":")[0]
    if packed and not is_url(folder) and os.path.exists(os.path.join(folder, raw["basename"])):
        packed = None  # someone has decompressed it
    if packed and packing not in _PACKINGS:
        known = ", ".join(_PACKINGS)
        raise refuse(f"is compressed with {packing!r}; {known} can be read")
    name = (packed or raw)["basename"]
    if not isinstance(name, str) or os.path.basename(name) != name or not name:
        raise refuse(f"can't be named {name!r}")
    if not _is_count(raw["bytes"]) or not _is_count(shard["samples"]):
        raise refuse("has no valid number of bytes and samples")
    before.files.append(os.path.join(folder, name))
    before.packings.append(packing if packed else "")
    before.sizes.append(raw["bytes"])
    before.samples.append(shard["samples"])
    return before


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**48


def _is_encoding(encoding: Any) -> bool:
    if not isinstance(encoding, str):
        return False
    name, _, rest = encoding.partition(":")
    if not rest:
        return encoding == name
    dtype, _, shape = rest.partition(":")
    extents = shape.split(",") if shape else []
    return (
        name == "ndarray"
        and dtype in _NUMBERS
        and len(extents) < 64
        and all(extent.strip().isdecimal() and int(extent) < 2**40 for extent in extents)
    )


def _wrong(key: str, problem: str) -> ArgumentError:
    return messages.bad_argument(_WHAT, key, problem)
