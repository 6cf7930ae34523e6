"""Valid files of every format, from which attacks and the fuzzers' corpus start.

python -m tools.torture.seeds FOLDER     # a folder for each target of the fuzzers
"""

from __future__ import annotations

import functools
import io
import json
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests import data_sets, images, protobuf, records, shards, sounds

from .corpus import attacks


class Seed(NamedTuple):
    """A valid file."""

    way: str
    """How it is read: a key of `consume.WAYS`."""
    target: str
    """The fuzz target for it."""
    data: bytes


SHARED = "PENSTOCK_TORTURE_SEEDS"
"""The variable that names a folder where the seeds of this run are. Some writers put random
numbers into their files, and the processes of a run have to begin with the same.
"""


@functools.cache
def seeds() -> dict[str, Seed]:
    """All of them, by name."""
    if folder := os.environ.get(SHARED):
        index = json.loads(Path(folder, "index.json").read_text())
        return {
            name: Seed(way, target, Path(folder, str(number)).read_bytes())
            for number, (name, (way, target)) in enumerate(index.items())
        }
    made = {name: Seed("image", _target(data), data) for name, data in _images().items()}
    made.update(_sounds())
    made.update(_records())
    made.update(_texts())
    return made


def share(folder: Path) -> None:
    """Write the seeds for processes started later."""
    for number, seed in enumerate(seeds().values()):
        (folder / str(number)).write_bytes(seed.data)
    index = {name: (seed.way, seed.target) for name, seed in seeds().items()}
    (folder / "index.json").write_text(json.dumps(index))
    os.environ[SHARED] = str(folder)


MAGIC = {
    b"\xff\xd8": "jpeg",
    b"\x89P": "png",
    b"GI": "gif",
    b"BM": "bmp",
    b"P5": "pnm",
    b"P6": "pnm",
    b"II": "tiff",
    b"MM": "tiff",
    b"RI": "webp",
    b"\xff\x4f": "jpeg2000",
    b"\0\0": "jpeg2000",
}


def _target(image: bytes) -> str:
    return MAGIC[image[:2]]


def _images() -> dict[str, bytes]:
    """Larger than a memory page when decoded: the memory of smaller results is never reused."""
    small = images.corpus()
    picture = images.photograph(40, 53)
    gray, alpha = picture[..., :1], np.dstack([picture, picture[..., :1]])
    encoded = images.encoded
    large = {
        "baseline": encoded(picture, quality=80),
        "progressive": encoded(picture, quality=80, progressive=True),
        "progressive gray": encoded(images.photograph(80, 90)[..., :1], progressive=True),
        "restarts": encoded(picture, quality=80, restart_marker_blocks=1),
        "4:2:2": encoded(picture, quality=80, subsampling=1),
        "cmyk": encoded(alpha, mode="CMYK", quality=80),
        "turned": images.turned(6, picture),
        "png": encoded(picture, "PNG"),
        "gif": encoded(gray, "GIF"),
        "tiff lzw": encoded(picture, "TIFF", compression="tiff_lzw"),
        "tiff packbits": encoded(picture, "TIFF", compression="packbits"),
        "tiff jpeg": encoded(picture, "TIFF", compression="jpeg"),
        "webp": encoded(picture, "WEBP", quality=80),
        "jpeg 2000": encoded(picture, "JPEG2000"),
    }
    made = {**small, **{name: file.tobytes() for name, file in large.items()}}
    made["png palette"] = _palette("PNG")
    made["gif palette"] = _palette("GIF")
    made["bmp palette"] = _palette("BMP")
    made["tiff palette"] = _palette("TIFF")
    made["tiff fax"] = _palette("TIFF", mode="1", compression="group4")
    made["gif frames"] = _frames()
    return made


def _palette(format: str, mode: str = "P", **options: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(images.photograph(40, 53)).convert(mode).save(file, format, **options)
    return file.getvalue()


def _frames() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    frames = [Image.fromarray(images.photograph(40, 53, seed=n)).convert("P") for n in range(3)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], transparency=3)
    return file.getvalue()


SOUND_TARGETS = {
    b"RIFF": "wav",
    b"RF64": "wav",
    b"riff": "w64",
    b"FORM": "aiff",
    b".snd": "au",
    b"NIST": "sphere",
    b"caff": "caf",
    b"fLaC": "flac",
    b"OggS": "ogg",
    b"\x1a\x45\xdf\xa3": "matroska",
}


def _sound_target(sound: bytes) -> str:
    if sound[4:8] == b"ftyp":
        return "mp4"
    if sound[:1] == b"\xff":
        return "adts" if sound[1] & 0xF6 == 0xF0 else "mpeg"
    return SOUND_TARGETS.get(sound[:4], "wav")


def _sounds() -> dict[str, Seed]:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.1, (3000, 2))
    files = {
        **sounds.corpus(),
        "flac noise": sounds.encoded(noise, 8000, "FLAC", "PCM_16"),
        "vorbis noise": sounds.encoded(noise, 8000, "OGG", "VORBIS"),
        "mp3 noise": sounds.encoded(noise, 8000, "MP3"),
    }
    ways = ("audio", "sound", "sound resampled")
    return {
        name: Seed(ways[number % 3], _sound_target(data), data)
        for number, (name, data) in enumerate(files.items())
    }


def _records() -> dict[str, Seed]:
    made = {}
    arrays = {
        "npy": np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        "npy fortran": np.asfortranarray(np.ones((5, 6), np.float64)),
        "npy swapped": np.arange(8, dtype=">i2"),
        "npy scalar": np.float32(2),
    }
    for name, array in arrays.items():
        file = io.BytesIO()
        np.save(file, array)
        made[name] = Seed("npy", "npy", file.getvalue())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data_sets.webdataset(folder, 3)
        made["tar"] = Seed("tar", "tar", (folder / "samples.tar").read_bytes())
        long = [("a/" * 80 + "0.jpg", b"image"), ("0.cls", b"7"), ("link.jpg", (b"2", "0.jpg"))]
        for number, name in enumerate(("tar ustar", "tar gnu", "tar pax")):
            records.write_tar(folder / "long.tar", long, format=number)
            made[name] = Seed("tar", "tar", (folder / "long.tar").read_bytes())
        row = records.example(
            image=("bytes", [b"image"]), label=("int64", [3]), box=("float", [1, 2, 3, 4])
        )
        data = records.framed(row) * 3
        made["tfrecord"] = Seed("tfrecord", "tfrecord", data)
        pieces = [records.image_record(n, b"image %d" % n) for n in range(3)]
        pieces.append(records.image_record([1.0, 2.0], b"ab" + records.MAGIC + b"more", 3))
        records.write_recordio(folder / "made", pieces)
        made["recordio"] = Seed("recordio", "recordio", (folder / "made.rec").read_bytes())
        datum = [protobuf.datum(b"image %d" % n, n, True) for n in range(3)]
        datum.append(protobuf.datum(bytes(24), 1, False, (2, 4, 3)))
        protobuf.database(folder / "caffe", datum)
        data = (folder / "caffe" / "data.mdb").read_bytes()
        made["caffe"] = Seed("caffe", "lmdb", data)
        tensors = [protobuf.tensors(protobuf.texts(b"image"), protobuf.ints(n)) for n in range(3)]
        protobuf.database(folder / "caffe2", tensors)
        data = (folder / "caffe2" / "data.mdb").read_bytes()
        made["caffe2"] = Seed("caffe2", "lmdb", data)
        made.update(_tables(folder))
    return made


def _tables(folder: Path) -> dict[str, Seed]:
    """Parquet and Arrow files, plain and compressed, and FITS images."""
    import pyarrow
    import pyarrow.parquet
    from astropy.io import fits

    made = {}
    table = data_sets.table(7).append_column("text", [[None, *"abcabc"]])
    for name, options in {
        "plain": {"compression": "none", "use_dictionary": False},
        "zstd": {"compression": "zstd", "row_group_size": 3},
        "v2": {"compression": "snappy", "data_page_version": "2.0", "data_page_size": 40},
    }.items():
        pyarrow.parquet.write_table(table, folder / "a.parquet", **options)
        data = (folder / "a.parquet").read_bytes()
        made[f"parquet {name}"] = Seed("parquet", "parquet", data)
    for codec in (None, "lz4", "zstd"):
        file = io.BytesIO()
        options = pyarrow.ipc.IpcWriteOptions(compression=codec)
        with pyarrow.ipc.new_stream(file, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=4)
        made[f"arrow {codec}"] = Seed("arrow", "arrow", file.getvalue())
    data = np.arange(60, dtype=np.float32).reshape(6, 10)
    for name, unit in {
        "plain": fits.ImageHDU(data.astype(np.uint16)),
        "rice": fits.CompImageHDU(data.astype(np.int16), compression_type="RICE_1"),
        "gzip": fits.CompImageHDU(data, compression_type="GZIP_2"),
        "dithered": fits.CompImageHDU(data, compression_type="RICE_1", quantize_method=1),
    }.items():
        fits.HDUList([fits.PrimaryHDU(), unit]).writeto(folder / "a.fits", overwrite=True)
        made[f"fits {name}"] = Seed("fits", "fits", (folder / "a.fits").read_bytes())
    return made


def _packed() -> dict[str, bytes]:
    """Compressed bytes, after those that say what they are (see the target `inflate`)."""
    data = b"penstock " * 20 + bytes(range(100))
    deflate, zlib_, gzip_ = (zlib.compress(data, wbits=bits) for bits in (-15, 15, 31))
    # Literals, a match of 8 bytes, and literals again.
    block = b"\x84penstock\x08\x00\xc0penstocks..."
    kinds = {
        "lz4": (0, len(b"penstock") * 3 + 4, block),
        "lz4 frame": (
            1,
            len(b"penstock") * 3 + 4,
            b"\x04\x22\x4d\x18\x60\x40\x82" + len(block).to_bytes(4, "little") + block + bytes(4),
        ),
        "deflate": (2, len(data), deflate),
        "deflate stored": (2, len(data), zlib.compress(data, 0, wbits=-15)),
        "zlib": (3, len(data), zlib_),
        "gzip": (4, len(data), gzip_),
        "zstd": (5, 5, b"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00bytes"),
        "zstd repeated": (5, 5, b"\x28\xb5\x2f\xfd\x20\x05\x2b\x00\x00b"),
    }
    made = {
        name: bytes([algorithm, *size.to_bytes(2, "little"), 0]) + packed
        for name, (algorithm, size, packed) in kinds.items()
    }
    half = len(zlib_)
    made["zlib chunks"] = bytes([3, *len(data).to_bytes(2, "little"), half]) + 2 * zlib_
    return made


def _texts() -> dict[str, Seed]:
    image = {"file_name": "0.jpg", "width": 30, "height": 20}
    objects = [
        {"segmentation": [[1, 1, 9, 2, 8.5, 9], [3, 3, 4, 9, 9, 3]], "iscrowd": 0},
        {"segmentation": {"size": [20, 30], "counts": [100, 50, 450]}, "iscrowd": 1},
        {"segmentation": {"size": [20, 30], "counts": "T3:1o0Q7"}, "iscrowd": 1},
    ]
    annotations = [
        {"id": n, "image_id": 1, "category_id": 1 + n % 2, "bbox": [1, 2, 3, 4.5], "area": 12, **o}
        for n, o in enumerate(objects)
    ]
    parts = {
        "info": {"year": 2026, "notes": [None, True, "\u00e9\\n"]},
        "images": [{"id": 1, **image}, {"id": 2, **image}],
        "annotations": annotations[:2],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    }
    lines = [
        {"audio_filepath": "a.wav", "duration": 1.5, "offset": 0.25, "text": "\u00e9 \\u00e9"},
        {"text": "first", "other": {"nested": [1, 2.5e3, None]}, "audio_filepath": "b.wav"},
    ]
    manifest = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return {
        "coco": Seed("coco", "coco", json.dumps(parts).encode()),
        "manifest": Seed("manifest", "nemo", manifest),
        "file list": Seed("file list", "list", b"0.jpg 0\n0.jpg 1\n"),
    }


STORED = [
    "filenames",
    "offsets",
    "counts",
    "boxes",
    "labels",
    "original_ids",
    "heights",
    "widths",
    "polygon_data",
    "vertices",
    "polygon_offset",
    "polygons_count",
    "vertices_offset",
    "vertices_count",
    "masks_offset",
    "mask_count",
    "masks_rles",
    "masks_rles_idx",
]
"""The files of stored annotations, in the order of the target `coco_store`."""


def stored_coco() -> bytes:
    """The files of stored annotations, concatenated."""
    import penstock as ndd

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "0.jpg").write_bytes(b"image")
        (folder / "all.json").write_bytes(seeds()["coco"].data)
        ndd.readers.COCO(
            file_root=str(folder),
            annotations_file=str(folder / "all.json"),
            pixelwise_masks=True,
            image_ids=True,
            save_preprocessed_annotations=True,
            save_preprocessed_annotations_dir=str(folder),
        )
        made = b""
        for number, name in enumerate(STORED):
            data = (folder / f"{name}.dat").read_bytes()
            made += bytes([number]) + len(data).to_bytes(2, "little") + data
        return made


TARGETS = {"coco": "coco", "manifest": "nemo", "npy": "npy", "tar": "tar", "tfrecord": "tfrecord"}
TARGETS |= {
    "recordio": "recordio",
    "parquet": "parquet",
    "arrow": "arrow",
    "fits": "fits",
    "caffe": "lmdb",
    "audio": "",
    "sound": "",
    "sound resampled": "",
    "image": "",
}


def _shard() -> bytes:
    """A shard of MDS with the columns of the target `mds`."""
    columns = {"any": "ndarray", "image": "jpeg", "label": "int", "mask": "pil"}
    sample = {
        "any": bytes([8, 4, 3, 1, 2, 3]),
        "image": b"image",
        "label": bytes(8),
        "mask": bytes([2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]) + b"Lab",
    }
    return shards.shard(columns, [sample] * 3)


def write(folder: Path) -> None:
    """Write the initial corpus of the fuzzers: valid files and small attacks."""
    for name, seed in seeds().items():
        _put(folder / seed.target, name, seed.data)
        if seed.target == "jpeg":
            _put(folder / "jpeg_reduced", name, seed.data)
    for name, data in _packed().items():
        _put(folder / "inflate", name, data)
    for name, made in attacks():
        target = TARGETS.get(made.kind, "")
        if made.kind == "image" and made.data[:2] in MAGIC:
            target = _target(made.data)
        elif made.kind == "audio" or made.kind.startswith("sound"):
            target = _sound_target(made.data)
        if target and len(made.data) < 20_000:
            _put(folder / target, name, made.data)
    row = records.example(image=("bytes", [b"image"]), ids=("int64", [3, -1]), box=("float", [1.5]))
    _put(folder / "example", "row", row)
    _put(folder / "index", "tfrecord", b"0 16\n16 18\n")
    _put(folder / "index", "recordio", b"0\t0\n1\t32\n")
    _put(folder / "mds", "shard", _shard())
    _put(folder / "index", "tar", b"v1.2 1\njpg 512 3 0.jpg\n")
    _put(folder / "glob", "patterns", b"*.jp[e-g]\n?a*[!b]\\*c\nimage.jpg")
    _put(folder / "glob", "stars", b"*a*a*a*a*b\n" + b"a" * 60)
    _put(
        folder / "exif",
        "turned",
        b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
    )
    _put(folder / "coco_store", "stored", stored_coco())


def _put(folder: Path, name: str, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name.replace(" ", "-").replace(":", "")).write_bytes(data)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
