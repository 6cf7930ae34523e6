"""Writes the files of record formats: TFRecord, RecordIO and tar archives."""

from __future__ import annotations

import io
import struct
import tarfile
from pathlib import Path

import crc32c
from tfrecord import TFRecordWriter, example_pb2
from tfrecord.tools.tfrecord2idx import create_index

MAGIC = struct.pack("<I", 0xCED7230A)


def example(**features):
    """An `Example` of features, each a kind ("bytes", "int64" or "float") and a list."""
    made = example_pb2.Example()
    for key, (kind, values) in features.items():
        getattr(made.features.feature[key], f"{kind}_list").value.extend(values)
    return steady(made)


def steady(message):
    """A message in bytes that are the same in each run: maps are in the order of their keys."""
    return message.SerializeToString(deterministic=True)


def framed(data):
    """A record of a TFRecord file."""

    def masked(piece):
        crc = crc32c.crc32c(piece)
        return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def write_framed(path, pieces):
    """Write pieces one after another, with an index of offsets and lengths."""
    with open(path, "wb") as file, open(f"{path}.idx", "w") as index:
        for piece in pieces:
            index.write(f"{file.tell()} {len(piece)}\n")
            file.write(piece)


def write_tfrecord(path, rows):
    """Write dicts of values as the `tfrecord` package does, and its index."""
    with open(path, "wb") as file:
        for row in rows:
            data = TFRecordWriter.serialize_tf_example(row)
            file.write(framed(steady(example_pb2.Example.FromString(data))))
    create_index(str(path), f"{path}.idx")


def image_record(label, image, number=0):
    """The data of a RecordIO record: a label or a list of them, and bytes."""
    labels = label if isinstance(label, list) else []
    head = struct.pack("<IfQQ", len(labels), 0 if labels else label, number, 0)
    return head + struct.pack(f"<{len(labels)}f", *labels) + image


def write_recordio(path, records):
    """Write a .rec file and its .idx, as MXNet's indexed writer does."""
    with open(f"{path}.rec", "wb") as file, open(f"{path}.idx", "w") as index:
        for number, record in enumerate(records):
            index.write(f"{number}\t{file.tell()}\n")
            parts, start = [], 0
            for place in range(0, len(record) // 4 * 4, 4):
                if record[place : place + 4] == MAGIC:
                    parts.append(record[start:place])
                    start = place + 4
            parts.append(record[start:])
            flags = [1, *[2] * (len(parts) - 2), 3] if len(parts) > 1 else [0]
            for flag, part in zip(flags, parts, strict=True):
                file.write(MAGIC + struct.pack("<I", flag << 29 | len(part)))
                file.write(part + b"\0" * (-len(part) % 4))


def write_tar(path, members, format=tarfile.USTAR_FORMAT):
    """Write a tar archive of names and bytes; None is a folder, a pair a kind and a link."""
    with tarfile.open(Path(path), "w", format=format) as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            if isinstance(data, bytes):
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
                continue
            member.type, member.linkname = (tarfile.DIRTYPE, "") if data is None else data
            archive.addfile(member)
