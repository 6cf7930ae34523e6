"""Decoding: JPEGs at a reduced scale, arrays of NumPy, compressed bytes, and optical flow."""

from __future__ import annotations

import functools
import importlib
import io
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.calls import row
from benchmarks.end_to_end import epochs, evaluation, files, large_files
from benchmarks.harness import Case, Contender, Family, Library, Pair, Prepare, Ready, described
from benchmarks.reading import temporary_folder

ABOUT = """\
*min_size* is *eval* of [End to end](#end-to-end) on 512 JPEGs of 500x375 or 64 of 4000x3000, with
`decoders.image(min_size=[224, 224])` in penstock, which decodes a JPEG at the smallest scale that
is large enough; DALI decodes in full. Times are per image. *decoders.numpy* is run on a batch of 64
arrays of 256x256 float32.
"""

LARGE_BATCH, BATCH = 16, 64


def cases() -> Iterator[Case]:
    yield Case("decoding/min_size, 12 megapixels", reduced(large=True), 7)
    yield Case("decoding/min_size, 500x375", reduced(large=False), 7)
    yield Case("decoding/decoders.numpy", row(decode_numpy, arrays(), calls=2), 7)


def reduced_evaluation(ndd: Library, jpegs: Any) -> Any:
    images = ndd.resize(ndd.decoders.image(jpegs, min_size=[224, 224]), size=[224, 224])
    return ndd.crop_mirror_normalize(
        images,
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )


def reduced(*, large: bool) -> Prepare:
    def prepare(side: Contender) -> Ready:
        augment = evaluation if side.is_dali else reduced_evaluation
        measure, first = epoch_of(side, augment, large=large)
        return Ready(measure, described(first))

    return prepare


def epoch_of(
    side: Contender, augment: Callable[[Library, Any], Any], *, large: bool
) -> tuple[Callable[[], float], list[Any]]:
    """A function that measures an epoch, per image, and the first results."""
    folder, size = (large_files(), LARGE_BATCH) if large else (photographs(), BATCH)
    count = sum(1 for _ in folder.glob("*/*"))
    epoch = epochs(side, folder, size, augment, prefetch=False)

    def measure() -> float:
        start = time.perf_counter()
        for images in epoch():
            images.torch()
        return (time.perf_counter() - start) / count

    first, *_ = epoch()
    return measure, [np.array(sample) for sample in first.tensors]


@functools.cache
def photographs() -> Path:
    """Photographs of exactly 500x375, which is decoded at 5/8."""
    root = temporary_folder()
    (root / "class").mkdir()
    rng = np.random.default_rng(0)
    for number, file in enumerate(sorted(files().glob("*/*"))[:512]):
        image = Image.open(file).resize((500, 375), Image.Resampling.BICUBIC)
        image.save(root / f"class/{number:04d}.jpg", quality=int(rng.integers(80, 96)))
    return root


@functools.cache
def npy_files() -> tuple[np.ndarray, ...]:
    made = []
    for number in range(BATCH):
        file = io.BytesIO()
        np.save(file, np.random.default_rng(number).normal(size=(256, 256)).astype(np.float32))
        made.append(np.frombuffer(file.getvalue(), np.uint8))
    return tuple(made)


def arrays() -> Callable[[Library], Any]:
    return lambda ndd: ndd.batch(list(npy_files()))


def decode_numpy(ndd: Library, data: Any) -> Any:
    return ndd.decoders.numpy(data)


# Further results


def facts(pair: Pair) -> Iterator[str]:
    yield from reduced_against_full(pair)
    yield from inflated(pair)
    yield from flow(pair)


def ratio(first: Callable[[], float], second: Callable[[], float], rounds: int = 7) -> float:
    """The time of the first divided by that of the second, in turn: the median."""
    first(), second()
    return statistics.median(first() / second() for _ in range(rounds))


def reduced_against_full(pair: Pair) -> Iterator[str]:
    """What `min_size` gains over decoding in full."""
    gains = {}
    for large in (False, True):
        full, _ = epoch_of(pair.ours, evaluation, large=large)
        less, _ = epoch_of(pair.ours, reduced_evaluation, large=large)
        gains[large] = ratio(full, less)
    yield (
        f"In penstock, *eval* with `min_size` takes 1/{gains[False]:.2f} of the time of decoding "
        f"in full for images of 500x375, and 1/{gains[True]:.2f} for 12 megapixels."
    )


def timed(work: Callable[[], Any]) -> Callable[[], float]:
    def measure() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return measure


def inflated(pair: Pair) -> Iterator[str]:
    """`decoders.inflate` against Python's own module."""
    ndd = pair.ours.library
    rng = np.random.default_rng(0)
    frames = [np.repeat(rng.integers(0, 256, (512, 128), np.uint8), 4, axis=1) for _ in range(64)]
    packed = [np.frombuffer(zlib.compress(frame.tobytes()), np.uint8) for frame in frames]
    batch = ndd.batch(packed)

    def ours() -> None:
        ndd.decoders.inflate(batch, algorithm="zlib", shape=[512, 512]).evaluate()

    def python() -> None:
        for file in packed:
            zlib.decompress(file)

    gain = ratio(timed(python), timed(ours))
    yield f"`decoders.inflate` of 64 zlib streams of 256 KB: {gain:.1f} times Python's `zlib`."


def flow(pair: Pair) -> Iterator[str]:
    """`optical_flow` against OpenCV's dense inverse search on as many threads."""
    cv2 = importlib.import_module("cv2")
    ndd = pair.ours.library
    photographs = importlib.import_module("sklearn.datasets").load_sample_images().images
    videos = [
        np.stack([image, np.roll(image, (shift, 3), (0, 1))])
        for image in photographs
        for shift in (1, 2, 4, 6)
    ]
    batch = ndd.batch(videos, layout="FHWC")
    cv2.setNumThreads(pair.ours.threads)
    dense = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)

    def opencv() -> None:
        for video in videos:
            first, second = (cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in video)
            dense.calc(first, second, None)

    def ours() -> None:
        ndd.optical_flow(batch, output_grid=1, preset=0.5).evaluate()

    gain = ratio(timed(opencv), timed(ours))
    yield (
        f"`optical_flow(preset=0.5)` on 8 pairs of photographs of 640x427: {gain:.2f} times the "
        f"speed of OpenCV's dense inverse search (medium preset), {pair.ours.threads} threads each."
    )


FAMILY = Family("decoding", "Decoding", ABOUT, cases, facts)
