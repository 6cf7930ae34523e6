"""Parquet and Arrow, against PyArrow and the `datasets` of Hugging Face."""

from __future__ import annotations

import functools
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Case, Contender, Family, Prepare, Ready
from benchmarks.reading import temporary_folder

ABOUT = """\
Tables of 512 photographs of 500 x 375 pixels, as JPEGs in a column that Hugging Face's `Image`
feature describes, and labels; row groups of 100 rows, files in the page cache. CPU time per image
of all threads, since `datasets` decodes in the thread that iterates. *bytes* are encoded images in
batches of 64, of which one byte of every page is read, with PyArrow's `iter_batches` and, in a
shuffled order, with `datasets` (`with_format("arrow")`). *pixels* are decoded, with `datasets`
(which uses Pillow) and with `decoders.image`.
"""

IMAGES, BATCH = 512, 64


def cases() -> Iterator[Case]:
    yield Case("tables/Parquet/bytes", _prepare(_parquet_bytes, _pyarrow_bytes))
    yield Case("tables/Parquet/pixels", _prepare(_parquet_pixels, _datasets_parquet), rounds=5)
    yield Case("tables/Arrow/bytes, shuffled", _prepare(_arrow_bytes, _datasets_bytes))
    yield Case("tables/Arrow/pixels, shuffled", _prepare(_arrow_pixels, _datasets_pixels), rounds=5)


Epoch = Callable[[], np.ndarray]
"""Goes through an epoch, and returns a sum for each label, which must be the same for both."""


def _prepare(ours: Callable[[Any], Epoch], theirs: Callable[[], Epoch]) -> Prepare:
    def prepare(side: Contender) -> Ready:
        epoch = theirs() if side.is_dali else ours(side.library)

        def measure() -> float:
            start = time.process_time()
            epoch()
            return (time.process_time() - start) / IMAGES

        return Ready(measure, [epoch()])

    return prepare


def _parquet_bytes(ndd: Any) -> Epoch:
    return _sums_of(ndd.readers.Parquet(path=str(folder() / "train.parquet")))


def _arrow_bytes(ndd: Any) -> Epoch:
    return _sums_of(ndd.readers.Arrow(path=str(folder() / "train"), shuffle="global"))


def _sums_of(reader: Any) -> Epoch:
    def epoch() -> np.ndarray:
        sums = np.zeros(IMAGES, np.int64)
        for batch in reader.next_epoch(batch_size=BATCH):
            labels = np.asarray(batch["label"].torch())
            for label, image in zip(labels, batch["image"], strict=True):
                sums[label] = np.asarray(image)[::4096].sum(dtype=np.int64)
        return sums

    return epoch


def _pyarrow_bytes() -> Epoch:
    import pyarrow.parquet

    def epoch() -> np.ndarray:
        sums = np.zeros(IMAGES, np.int64)
        file = pyarrow.parquet.ParquetFile(folder() / "train.parquet")
        for batch in file.iter_batches(BATCH, columns=["image.bytes", "label"]):
            images = batch.column("image").field("bytes")
            for label, image in zip(batch.column("label").to_pylist(), images, strict=True):
                data = np.frombuffer(image.as_buffer(), np.uint8)
                sums[label] = data[::4096].sum(dtype=np.int64)
        return sums

    return epoch


def _datasets_bytes() -> Epoch:
    import datasets

    data = datasets.load_from_disk(folder() / "train").with_format("arrow")

    def epoch() -> np.ndarray:
        sums = np.zeros(IMAGES, np.int64)
        for rows in data.shuffle(seed=1).iter(BATCH):
            images = rows["image"].combine_chunks().field("bytes")
            for label, image in zip(rows["label"].to_pylist(), images, strict=True):
                pixels = np.frombuffer(image.as_buffer(), np.uint8)
                sums[label] = pixels[::4096].sum(dtype=np.int64)
        return sums

    return epoch


def _parquet_pixels(ndd: Any) -> Epoch:
    return _pixels_of(ndd, ndd.readers.Parquet(path=str(folder() / "train.parquet")))


def _arrow_pixels(ndd: Any) -> Epoch:
    return _pixels_of(ndd, ndd.readers.Arrow(path=str(folder() / "train"), shuffle="global"))


def _pixels_of(ndd: Any, reader: Any) -> Epoch:
    def epoch() -> np.ndarray:
        sums = np.zeros(IMAGES, np.int64)
        for batch in reader.next_epoch(batch_size=BATCH):
            images = ndd.decoders.image(batch["image"])
            labels = np.asarray(batch["label"].torch())
            for label, image in zip(labels, images, strict=True):
                sums[label] = np.asarray(image)[::8].sum(dtype=np.int64)
        return sums

    return epoch


def _datasets_parquet() -> Epoch:
    import datasets

    cache = str(folder() / "cache")
    files = str(folder() / "train.parquet")
    data = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
    return _rows_of(lambda: data)


def _datasets_pixels() -> Epoch:
    import datasets

    data = datasets.load_from_disk(folder() / "train")
    return _rows_of(lambda: data.shuffle(seed=1))


def _rows_of(data: Callable[[], Any]) -> Epoch:
    def epoch() -> np.ndarray:
        sums = np.zeros(IMAGES, np.int64)
        for row in data():
            sums[row["label"]] = np.asarray(row["image"])[::8].sum(dtype=np.int64)
        return sums

    return epoch


@functools.cache
def folder() -> Path:
    """A folder with the same rows as Parquet and as Hugging Face saves them."""
    import datasets
    from PIL import Image

    root = temporary_folder()
    rng = np.random.default_rng(0)
    images = []
    y, x = np.mgrid[:375, :500]
    for number in range(IMAGES):
        waves = [np.sin(x / a + y / b + number) for a, b in rng.uniform(5, 90, (3, 2))]
        pixels = 128 + 60 * np.stack(waves, -1) + rng.normal(0, 12, (375, 500, 3))
        file = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
        images.append({"bytes": file.getvalue(), "path": None})
    features = datasets.Features(image=datasets.Image(), label=datasets.Value("int64"))
    rows = {"image": images, "label": list(range(IMAGES))}
    data = datasets.Dataset.from_dict(rows, features=features)
    data.to_parquet(root / "train.parquet", batch_size=100)
    data.save_to_disk(root / "train")
    return root


FAMILY = Family("tables", "Tables", ABOUT, cases, rival="PyArrow and datasets")
