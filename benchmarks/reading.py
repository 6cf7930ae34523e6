"""Readers alone, without decoding, on files in the page cache."""

from __future__ import annotations

import atexit
import functools
import shutil
import statistics
import tempfile
import time
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Case, Contender, Family, Library, Pair, Prepare, Ready

ABOUT = """\
`readers.File` without decoding, on files in the page cache; both libraries read one batch ahead,
their default. *epoch* is an epoch of 512 files of 100 KB in batches of 64, divided by the number of
files; one byte of every page is read, since a file may be mapped and not read otherwise. *open*
creates a reader of 1,000,000 files in 1,000 folders and reads its first sample; *open, COCO* does
so for a `readers.COCO` with polygons and an annotation file of 450 MB.
"""

FILES, BYTES, BATCH = 512, 100_000, 64
FOLDERS, FILES_PER_FOLDER = 1000, 1000
ANNOTATED, ANNOTATIONS_PER_IMAGE = 120_000, 7


def cases() -> Iterator[Case]:
    orders: dict[str, dict[str, Any]] = {
        "in order": {},
        "shuffled": {"random_shuffle": True, "seed": 1},
    }
    for name, order in orders.items():
        yield Case(f"reading/epoch, {name}", epoch(order))
    yield Case("reading/open", opening, rounds=5)
    yield Case("reading/open, COCO", opening_annotations, rounds=3)


def epoch(order: dict[str, Any]) -> Prepare:
    def prepare(side: Contender) -> Ready:
        reader = side.library.readers.File(file_root=str(sized_files()), **order)

        def measure() -> float:
            start = time.perf_counter()
            for data, _ in reader.next_epoch(batch_size=BATCH):
                for sample in data:
                    np.asarray(sample)[::4096].sum()
            return (time.perf_counter() - start) / FILES

        return Ready(measure, [checksum(side.library, order)])

    return prepare


def checksum(library: Library, order: dict[str, Any]) -> np.ndarray:
    """The sum of the bytes of each file of an epoch, by label: only the order may differ."""
    names = sorted(str(path) for path in sized_files().glob("*/*"))
    sums = np.zeros(len(names), np.int64)
    reader = library.readers.File(files=names, **order)
    for data, label in reader.next_epoch():
        sums[int(np.asarray(label)[0])] += np.asarray(data).sum(dtype=np.int64)
    return sums


def opening(side: Contender) -> Ready:
    root = str(many_files())

    def measure() -> float:
        start = time.perf_counter()
        reader = side.library.readers.File(file_root=root)
        data, _ = next(iter(reader.next_epoch()))
        data.evaluate()
        return time.perf_counter() - start

    reader = side.library.readers.File(file_root=root)
    return Ready(measure, [np.array(reader.get_metadata()["epoch_size"])])


def opening_annotations(side: Contender) -> Ready:
    root, file = annotated()

    def make() -> Any:
        return side.library.readers.COCO(
            file_root=str(root), annotations_file=str(file), polygon_masks=True
        )

    def measure() -> float:
        start = time.perf_counter()
        first(make())
        return time.perf_counter() - start

    return Ready(measure, [np.asarray(part) for part in first(make())])


def facts(pair: Pair) -> Iterator[str]:
    reader = pair.ours.library.readers.File(file_root=str(sized_files()), random_shuffle=True)
    next(iter(reader.next_epoch(batch_size=BATCH)))
    times = timeit.repeat(reader.get_state, number=1000, repeat=5)
    micros = statistics.median(times) * 1000
    yield f"`get_state` of a penstock reader in the middle of an epoch takes {micros:.1f} µs."


def first(reader: Any) -> Any:
    parts = next(iter(reader.next_epoch()))
    for part in parts:
        part.evaluate()
    return parts


@functools.cache
def annotated() -> tuple[Path, Path]:
    """A folder of images, and its annotation file."""
    root = temporary_folder()
    for number in range(ANNOTATED):
        (root / f"{number}.jpg").write_bytes(b"x")
    rng = np.random.default_rng(0)
    outlines = [", ".join(map(str, row)) for row in rng.uniform(0, 400, (99, 52)).round(2)]
    file = root / "annotations.json"
    with file.open("w") as out:
        out.write('{"categories": [{"id": 1, "name": "thing"}], "images": [')
        out.writelines(
            f'{"," if i else ""}{{"id": {i}, "file_name": "{i}.jpg", "width": 500, "height": 375}}'
            for i in range(ANNOTATED)
        )
        out.write('], "annotations": [')
        out.writelines(
            f'{"," if i else ""}{{"segmentation": [[{outlines[i % 99]}]], "area": 2765.14, '
            f'"iscrowd": 0, "image_id": {i // ANNOTATIONS_PER_IMAGE}, "bbox": [199.84, 200.46, '
            f'77.71, 70.88], "category_id": 1, "id": {i}}}'
            for i in range(ANNOTATED * ANNOTATIONS_PER_IMAGE)
        )
        out.write("]}")
    return root, file


@functools.cache
def sized_files() -> Path:
    """A folder of files of the size of photographs."""
    root = temporary_folder()
    (root / "class").mkdir()
    rng = np.random.default_rng(0)
    for number in range(FILES):
        (root / f"class/{number:04d}.jpg").write_bytes(rng.bytes(BYTES))
    return root


@functools.cache
def many_files() -> Path:
    """A folder of many small files."""
    root = temporary_folder()
    for folder in range(FOLDERS):
        (root / f"{folder:04d}").mkdir()
        for number in range(FILES_PER_FOLDER):
            (root / f"{folder:04d}/{number:06d}.jpg").write_bytes(b"x")
    return root


def temporary_folder() -> Path:
    root = Path(tempfile.mkdtemp(prefix="penstock-benchmark-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


FAMILY = Family("reading", "Readers", ABOUT, cases, facts)
