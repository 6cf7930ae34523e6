"""Small data sets for every reader, for tests that apply to all of them.

`MAKERS` has for each class in `penstock.readers` and `penstock.experimental.readers` a function
that writes a number of samples, all different, into a folder, and returns the arguments that the
reader needs. A new format gets a function here, under the name of its class.
"""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ndd

Arguments = dict[str, Any]
MAKERS: dict[str, Callable[[Path, int], Arguments]] = {}


def makes(name: str) -> Callable[[Callable[[Path, int], Arguments]], Any]:
    """Register the function that creates a reader's data sets."""

    def register(maker: Callable[[Path, int], Arguments]) -> Any:
        MAKERS[name] = maker
        return maker

    return register


def reader_classes() -> dict[str, type[ndd.readers.Reader]]:
    """All readers by name, with "experimental." in front where there are two of a name."""
    found = {name: getattr(ndd.readers, name) for name in ndd.readers.__all__}
    for name in ndd.experimental.readers.__all__:
        key = f"experimental.{name}" if name in found else name
        found[key] = getattr(ndd.experimental.readers, name)
    base = ndd.readers.Reader
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    }


def contents(outputs: Any) -> list[tuple[bytes, ...]]:
    """The output of a reader, sample by sample, as bytes."""
    parts = list(outputs.values()) if isinstance(outputs, dict) else list(outputs)
    columns = [
        [np.asarray(one).tobytes() for one in (part if isinstance(part, ndd.Batch) else [part])]
        for part in parts
    ]
    return list(zip(*columns, strict=True))


def epoch(reader: Any, batch_size: int = 4) -> list[tuple[bytes, ...]]:
    """The samples of an epoch, as bytes."""
    batches = reader.next_epoch(batch_size=batch_size)
    return [sample for batch in batches for sample in contents(batch)]


def moved(given: Any, folder: Path, url: str) -> Any:
    """Arguments with URLs in place of what is in a folder."""
    if isinstance(given, str | Path):
        text = str(given)
        return url + text[len(str(folder)) :] if text.startswith(str(folder)) else given
    if isinstance(given, list):
        return [moved(item, folder, url) for item in given]
    if isinstance(given, dict):
        return {key: moved(value, folder, url) for key, value in given.items()}
    return given


@makes("File")
def file(folder: Path, count: int) -> Arguments:
    for number in range(count):
        (folder / f"{number:04d}.jpg").write_bytes(number.to_bytes(3, "little"))
    return {"files": sorted(folder.glob("*.jpg"))}


@makes("Numpy")
def numpy(folder: Path, count: int) -> Arguments:
    for number in range(count):
        np.save(folder / f"{number:04d}.npy", np.full((2, number % 3 + 1), number, np.int32))
    return {"file_root": str(folder)}


@makes("Webdataset")
def webdataset(folder: Path, count: int) -> Arguments:
    with tarfile.open(folder / "samples.tar", "w") as tar:
        for number in range(count):
            for extension in ("jpg", "cls"):
                data = f"{extension} {number}".encode()
                entry = tarfile.TarInfo(f"{number:04d}.{extension}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    return {"paths": [str(folder / "samples.tar")], "ext": ["jpg", "cls"]}


@makes("TFRecord")
def tfrecord(folder: Path, count: int) -> Arguments:
    from tfrecord.tools.tfrecord2idx import create_index
    from tfrecord.writer import TFRecordWriter

    path = str(folder / "samples.tfrecord")
    writer = TFRecordWriter(path)
    for number in range(count):
        writer.write({"image": (b"image %d" % number, "byte"), "label": (number, "int")})
    writer.close()
    create_index(path, f"{path}.idx")
    kinds = ndd.tfrecord  # type: ignore[attr-defined]
    features = {
        "image": kinds.FixedLenFeature((), kinds.string, ""),
        "label": kinds.FixedLenFeature([1], kinds.int64, -1),
    }
    return {"path": path, "index_path": f"{path}.idx", "features": features}


@makes("MXNet")
def mxnet(folder: Path, count: int) -> Arguments:
    record, index = bytearray(), []
    for number in range(count):
        index.append(f"{number}\t{len(record)}\n")
        data = struct.pack("<IfQQ", 0, float(number), number, 0) + b"image %d" % number
        record += struct.pack("<II", 0xCED7230A, len(data)) + data
        record += bytes(-len(data) % 4)
    (folder / "samples.rec").write_bytes(record)
    (folder / "samples.idx").write_text("".join(index))
    return {"path": [str(folder / "samples.rec")], "index_path": [str(folder / "samples.idx")]}


@makes("COCO")
def coco(folder: Path, count: int) -> Arguments:
    images, annotations = [], []
    for number in range(count):
        (folder / f"{number:04d}.jpg").write_bytes(b"image %d" % number)
        name = f"{number:04d}.jpg"
        images.append({"id": number + 1, "file_name": name, "width": 100, "height": 80})
        for box in range(number % 3 + 1):
            found = {"id": len(annotations) + 1, "image_id": number + 1, "category_id": box + 1}
            annotations.append({**found, "bbox": [box, number, 5, 6], "iscrowd": 0, "area": 30})
    categories = [{"id": number, "name": str(number)} for number in (1, 2, 3)]
    path = folder / "annotations.json"
    parts = {"images": images, "annotations": annotations, "categories": categories}
    path.write_text(json.dumps(parts))
    return {"file_root": str(folder), "annotations_file": str(path)}


@makes("NemoAsr")
def nemo_asr(folder: Path, count: int) -> Arguments:
    import soundfile

    lines = []
    for number in range(count):
        path = folder / f"{number:04d}.wav"
        sound = np.full(40 + number, (number + 1) / 64, np.float32)
        soundfile.write(path, sound, 8000, subtype="PCM_16")
        entry = {"audio_filepath": str(path), "duration": len(sound) / 8000, "text": str(number)}
        lines.append(json.dumps(entry) + "\n")
    (folder / "manifest.json").write_text("".join(lines))
    return {"manifest_filepaths": [str(folder / "manifest.json")], "read_text": True}


@makes("Video")
def video(folder: Path, count: int) -> Arguments:
    from tests.videos import Made, numbered, write

    names = []
    for number in range(count):
        pictures = [numbered(2 * number + frame, 32, 80) for frame in range(2)]
        made = write("a.mp4", Made(frames=2, size=(32, 80)), pictures)
        names.append(str(folder / f"{number:04d}.mp4"))
        Path(names[-1]).write_bytes(made)
    return {"filenames": names, "labels": list(range(count)), "sequence_length": 2}


@makes("experimental.Video")
def experimental_video(folder: Path, count: int) -> Arguments:
    return {**video(folder, count), "enable_frame_num": "sequence", "enable_timestamps": True}


@makes("VideoResize")
def video_resize(folder: Path, count: int) -> Arguments:
    return {**video(folder, count), "size": [24, 60]}


@makes("Caffe")
def caffe(folder: Path, count: int) -> Arguments:
    def datum(number: int) -> bytes:
        # Fields of a Datum: data (4), label (5), whether the data is encoded (7).
        return _bytes(4, b"image %d" % number) + _number(5, number) + _number(7, 1)

    return {"path": [_lmdb(folder, map(datum, range(count)))]}


@makes("Caffe2")
def caffe2(folder: Path, count: int) -> Arguments:
    def tensors(number: int) -> bytes:
        # Of each TensorProto: type (2), numbers (4), texts (6). 4 is the type of texts, 2 of ints.
        image = _number(1, 1) + _number(2, 4) + _bytes(6, b"image %d" % number)
        label = _number(1, 1) + _number(2, 2) + _number(4, number)
        return _bytes(1, image) + _bytes(1, label)

    return {"path": _lmdb(folder, map(tensors, range(count)))}


@makes("Parquet")
def parquet(folder: Path, count: int) -> Arguments:
    import pyarrow.parquet

    path = str(folder / "samples.parquet")
    pyarrow.parquet.write_table(table(count), path, row_group_size=4)
    return {"path": path}


@makes("Arrow")
def arrow(folder: Path, count: int) -> Arguments:
    import pyarrow

    rows = table(count)
    path = str(folder / "samples.arrow")
    with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_stream(file, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=4)
    return {"path": path}


@makes("Lance")
def lance(folder: Path, count: int) -> Arguments:
    import lance

    path = str(folder / "samples.lance")
    lance.write_dataset(table(count), path, max_rows_per_file=4)
    return {"path": path}


def table(count: int) -> Any:
    """Rows with images as Hugging Face stores them, numbers, and lists of numbers."""
    import pyarrow

    images = [{"bytes": b"image %d" % number, "path": str(number)} for number in range(count)]
    boxes = [[number + 0.5] * (number % 3) for number in range(count)]
    return pyarrow.table({"image": images, "label": list(range(count)), "boxes": boxes})


@makes("Fits")
def fits(folder: Path, count: int) -> Arguments:
    from astropy.io import fits

    for number in range(count):
        image = fits.ImageHDU(np.full((2, number % 3 + 1), number, np.int32))
        fits.HDUList([fits.PrimaryHDU(), image]).writeto(folder / f"{number:04d}.fits")
    return {"file_root": str(folder)}


@makes("MDS")
def mds(folder: Path, count: int) -> Arguments:
    from tests.shards import write_mds

    columns = {"image": "jpeg", "label": "int", "tokens": "ndarray:uint16"}
    samples = [
        {
            "image": b"image %d" % number,
            "label": number.to_bytes(8, "little"),
            # One dimension, with an extent of 8 bits, and the elements.
            "tokens": bytes([1 << 2, 2]) + struct.pack("<HH", number, 1),
        }
        for number in range(count)
    ]
    write_mds(folder, columns, samples, each=4)
    return {"path": str(folder)}


def _lmdb(folder: Path, records: Any) -> str:
    import lmdb

    with (
        lmdb.open(str(folder / "samples"), map_size=1 << 24) as store,
        store.begin(write=True) as t,
    ):
        for number, record in enumerate(records):
            t.put(f"{number:08d}".encode(), record)
    return str(folder / "samples")


def _number(field: int, value: int) -> bytes:
    """An integer field of a protocol buffer."""
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)
