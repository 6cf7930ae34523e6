"""Writing MosaicML's streaming format (MDS) by its documentation: shards and their index."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SIZES = {"int": 8, "uint8": 1, "int16": 2, "float32": 4, "float64": 8, "ndarray:float32:2,3": 24}
"""Bytes of the encodings that have a fixed number of them; others have None."""


def _zstd(data: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.compress(data, "zstd", asbytes=True))


def _snappy(data: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.compress(data, "snappy", asbytes=True))


PACK: dict[str, Callable[[bytes], bytes]] = {"zstd": _zstd, "gz": gzip.compress, "snappy": _snappy}


def shard(columns: Mapping[str, str], samples: Sequence[Mapping[str, bytes]]) -> bytes:
    """The bytes of a shard: how many samples, where they are, a description, the samples."""
    names = sorted(columns)
    rows = []
    for sample in samples:
        varying = [name for name in names if columns[name] not in SIZES]
        head = struct.pack(f"<{len(varying)}I", *(len(sample[name]) for name in varying))
        rows.append(head + b"".join(sample[name] for name in names))
    config = json.dumps({"column_names": names}).encode()
    offset = 4 + 4 * (len(rows) + 1) + len(config)
    offsets = [offset]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    numbers = struct.pack(f"<{len(rows) + 2}I", len(rows), *offsets)
    return numbers + config + b"".join(rows)


def write_mds(
    folder: Path,
    columns: Mapping[str, str],
    samples: Sequence[Mapping[str, bytes]],
    each: int,
    compression: str | None = None,
) -> dict[str, Any]:
    """Write shards of `each` samples, and the index, which is returned, too."""
    names = sorted(columns)
    shards = []
    for number, start in enumerate(range(0, len(samples), each)):
        part = samples[start : start + each]
        data = shard(columns, part)
        raw = {"basename": f"shard.{number:05d}.mds", "bytes": len(data), "hashes": {}}
        packed = None
        if compression is None:
            (folder / raw["basename"]).write_bytes(data)
        else:
            kind = compression.partition(":")[0]
            small = PACK[kind](data)
            packed = {"basename": f"{raw['basename']}.{kind}", "bytes": len(small), "hashes": {}}
            (folder / packed["basename"]).write_bytes(small)
        shards.append(
            {
                "column_encodings": [columns[name] for name in names],
                "column_names": names,
                "column_sizes": [SIZES.get(columns[name]) for name in names],
                "compression": compression,
                "format": "mds",
                "hashes": [],
                "raw_data": raw,
                "samples": len(part),
                "size_limit": 1 << 26,
                "version": 2,
                "zip_data": packed,
            }
        )
    index = {"shards": shards, "version": 2}
    (folder / "index.json").write_text(json.dumps(index))
    return index
