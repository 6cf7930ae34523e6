"""How files are read with the public API, and which outcomes are allowed.

python -m tools.torture.consume WAY FILE     # reads a file, and says what became of it
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ndd
from penstock.errors import InternalError

REFUSALS = (RuntimeError, OSError, ValueError, MemoryError)
"""Allowed exceptions, unless they are an InternalError."""

Results = Iterator[Any]
WAYS: dict[str, Callable[[Path], Results]] = {}


def way(kind: str) -> Callable[[Callable[[Path], Results]], Callable[[Path], Results]]:
    """Register how files of a kind are read: yields values, or functions that return one."""

    def register(read: Callable[[Path], Results]) -> Callable[[Path], Results]:
        WAYS[kind] = read
        return read

    return register


class Outcome:
    """The outcome for a file: counts of errors and results, problems, a digest."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.harm: list[str] = []
        self.digest = hashlib.blake2b(digest_size=8)
        self.refused = False
        """Whether the first way to read it failed."""

    def add(self, make: Callable[[], Any]) -> None:
        """Record one result."""
        try:
            arrays = make()
        except InternalError as error:
            self.counts["InternalError"] += 1
            self.harm.append(f"InternalError: {first_line(error)}")
        except REFUSALS as error:
            self.counts[type(error).__name__] += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.counts[type(error).__name__] += 1
            self.harm.append(f"{type(error).__name__}: {first_line(error)}")
        else:
            if arrays:
                self.counts["result"] += 1
            for array in arrays:
                self.digest.update(f"{array.shape}{array.dtype}".encode())
                self.digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        self.refused = self.refused or not self.counts["result"]


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]


def read(kind: str, path: Path) -> Outcome:
    """Read a file in each of the ways for its kind."""
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = WAYS[kind](path)
        while True:
            made: list[Any] = []

            def step(made: list[Any] = made) -> list[np.ndarray]:
                made.append(next(results, None))
                return [] if made[0] is None else arrays_of(made[0])

            outcome.add(step)
            if not made or made[0] is None:
                # The end, or an error in the reader itself.
                return outcome


def arrays_of(value: Any) -> list[np.ndarray]:
    """All arrays in a tensor, a batch, or a tuple or dict of them."""
    if callable(value) and not isinstance(value, (ndd.Tensor, ndd.Batch)):
        value = value()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for one in value for array in arrays_of(one)]
    if isinstance(value, ndd.Batch):
        return [np.asarray(one) for one in value]
    return [np.asarray(value)]


# Images


POISON = int(os.environ.get("PENSTOCK_TORTURE_POISON", "0"))
"""The byte that memory is filled with before reuse; 0 for no filling."""


def poison(shape: Iterable[int], dtype: Any = np.uint8) -> None:
    """Free a filled block of memory for the next result of this size."""
    if POISON:
        full = np.full(tuple(shape), POISON, dtype)
        ndd.flip(ndd.tensor(full, layout="HWC")).evaluate()


def poison_like(encoded: Any, channels: int) -> None:
    """The same, for the result of decoding."""
    if not POISON:
        return
    try:
        height, width, _ = map(int, np.asarray(ndd.peek_image_shape(encoded)))
    except RuntimeError:
        return
    if 0 < height * width < 1 << 22:
        poison((height, width, channels))


@way("image")
def images(path: Path) -> Results:
    encoded = ndd.tensor(np.frombuffer(path.read_bytes(), np.uint8))
    poison_like(encoded, 3)
    # The first one must fail for files that must be rejected.
    yield lambda: ndd.decoders.image(encoded)
    poison_like(encoded, 1)
    yield lambda: ndd.decoders.image(encoded, output_type=ndd.types.GRAY)
    yield lambda: ndd.decoders.image(encoded, output_type=ndd.types.ANY_DATA, dtype=ndd.float32)
    poison_like(encoded, 3)
    yield lambda: ndd.decoders.image(encoded, min_size=23)
    poison_like(encoded, 3)
    yield lambda: ndd.decoders.image_crop(encoded, crop=(16, 17), crop_pos_x=0.3, crop_pos_y=0.8)
    poison_like(encoded, 3)
    yield lambda: ndd.decoders.image_slice(encoded, start=(3, 1), shape=(20, 33), axes=(0, 1))
    yield lambda: ndd.decoders.image_random_crop(encoded, rng=ndd.random.RNG(1))
    yield lambda: ndd.peek_image_shape(encoded)


@way("audio")
def audio(path: Path) -> Results:
    encoded = ndd.tensor(np.frombuffer(path.read_bytes(), np.uint8))
    # The first one must fail for files that must be rejected.
    yield lambda: ndd.decoders.audio(encoded)
    yield lambda: ndd.decoders.audio(encoded, dtype=ndd.int16, start=0.02, duration=0.05)
    yield lambda: ndd.decoders.audio(encoded, downmix=True, sample_rate=16000.0)


# Readers


def epoch(reader: Any) -> Results:
    """All batches of an epoch, with a reader that skips bad samples."""
    yield from reader.next_epoch(batch_size=3)


def strict_and_tolerant(make: Callable[..., Any]) -> Results:
    """All samples, once up to the first error and once skipping bad ones."""
    for on_error in ("raise", "skip"):
        try:
            yield from epoch(make(on_error=on_error))
        except InternalError:
            raise
        except REFUSALS as error:
            if on_error == "skip":
                raise
            refused = error

            def fail(refused: Exception = refused) -> Any:
                raise refused

            yield fail


def speech(path: Path, **options: Any) -> Results:
    manifest = path.with_name(path.name + ".manifest")
    manifest.write_text(json.dumps({"audio_filepath": str(path)}) + "\n")
    yield from strict_and_tolerant(
        lambda **o: ndd.readers.NemoAsr(manifest_filepaths=[manifest], **options, **o)
    )


@way("sound")
def sound(path: Path) -> Results:
    yield from speech(path, downmix=False, dtype=ndd.int16)


@way("sound resampled")
def sound_resampled(path: Path) -> Results:
    yield from speech(path, sample_rate=16000.0)


@way("npy")
def npy(path: Path) -> Results:
    yield from strict_and_tolerant(lambda **o: ndd.readers.Numpy(files=[str(path)], **o))
    part = {"roi_start": [-1], "roi_shape": [3], "roi_axes": [0], "out_of_bounds_policy": "pad"}
    yield from strict_and_tolerant(lambda **o: ndd.readers.Numpy(files=[str(path)], **part, **o))


@way("tar")
def tar(path: Path) -> Results:
    yield from strict_and_tolerant(
        lambda **o: ndd.readers.Webdataset(
            paths=[str(path)], ext=["jpg", "cls"], missing_component_behavior="empty", **o
        )
    )


@way("tfrecord")
def tfrecord(path: Path) -> Results:
    kinds = ndd.tfrecord
    features = {
        "image": kinds.FixedLenFeature((), kinds.string, ""),
        "label": kinds.FixedLenFeature([1], kinds.int64, -1),
    }
    yield from strict_and_tolerant(
        lambda **o: ndd.readers.TFRecord(path=str(path), features=features, **o)
    )


@way("recordio")
def recordio(path: Path) -> Results:
    yield from strict_and_tolerant(lambda **o: ndd.readers.MXNet(path=[str(path)], **o))


@way("caffe")
def caffe(path: Path) -> Results:
    yield from strict_and_tolerant(lambda **o: ndd.readers.Caffe(path=[str(path)], **o))


@way("caffe2")
def caffe2(path: Path) -> Results:
    yield from strict_and_tolerant(lambda **o: ndd.readers.Caffe2(path=str(path), **o))


@way("parquet")
def parquet(path: Path) -> Results:
    yield from strict_and_tolerant(lambda **o: ndd.readers.Parquet(path=str(path), **o))


@way("arrow")
def arrow(path: Path) -> Results:
    yield from strict_and_tolerant(lambda **o: ndd.readers.Arrow(path=str(path), **o))


@way("fits")
def fits(path: Path) -> Results:
    yield from strict_and_tolerant(
        lambda **o: ndd.experimental.readers.Fits(files=[str(path)], **o)
    )


@way("coco")
def coco(path: Path) -> Results:
    path.with_name("0.jpg").write_bytes(b"image")
    places = {"file_root": str(path.parent), "annotations_file": str(path)}
    for masks in ({"pixelwise_masks": True}, {"polygon_masks": True}):
        yield from strict_and_tolerant(
            lambda masks=masks, **o: ndd.readers.COCO(**places, **masks, **o)
        )


@way("manifest")
def manifest(path: Path) -> Results:
    yield from strict_and_tolerant(lambda **o: ndd.readers.NemoAsr(manifest_filepaths=[path], **o))


@way("file list")
def file_list(path: Path) -> Results:
    path.with_name("0.jpg").write_bytes(b"image")
    yield from strict_and_tolerant(
        lambda **o: ndd.readers.File(file_root=str(path.parent), file_list=str(path), **o)
    )


def main() -> int:
    """Read one file; the digest covers all results."""
    kind, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.mdb")
        path.write_bytes(Path(name).read_bytes())
        outcome = read(kind, path)
    print(dict(outcome.counts), outcome.digest.hexdigest(), *outcome.harm)
    return 1 if outcome.harm else 0


if __name__ == "__main__":
    sys.exit(main())
