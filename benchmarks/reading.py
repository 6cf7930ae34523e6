"""What reading costs, without any decoding: files that are in the system's cache."""

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

from benchmarks.harness import Case, Contender, Family, Library, Pair, Prepare, Ready, Target

ABOUT = """\
`readers.File` alone, on files in the system's cache. *epoch* is an epoch of 512 files of 100 KB in
batches of 64, divided by the number of files; every page of every file is touched, as reading
means little where the bytes are mapped and never looked at. *open* is the making of a reader on
1,000,000 files in 1,000 folders, and its first sample; *open, COCO* that of a `readers.COCO` with
polygons on an annotation file of 450 MB.
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
        yield Case(f"reading/epoch, {name}", epoch(order), target=Target(ratio=1.5))
    yield Case("reading/open", opening, rounds=5, target=Target(ratio=3.0))
    yield Case("reading/open, COCO", opening_annotations, rounds=3)


def epoch(order: dict[str, Any]) -> Prepare:
    def prepare(side: Contender) -> Ready:
        reader = side.library.readers.File(file_root=str(photographs()), **order)

        def turn() -> float:
            start = time.perf_counter()
            for data, _ in reader.next_epoch(batch_size=BATCH):
                for sample in data:
                    np.asarray(sample)[::4096].sum()
            return (time.perf_counter() - start) / FILES

        return Ready(turn, [checksum(side.library, order)])

    return prepare


def checksum(library: Library, order: dict[str, Any]) -> np.ndarray:
    """The sum of each file of an epoch, by its label: orders differ, files don't."""
    names = sorted(str(path) for path in photographs().glob("*/*"))
    sums = np.zeros(len(names), np.int64)
    reader = library.readers.File(files=names, **order)
    for data, label in reader.next_epoch():
        sums[int(np.asarray(label)[0])] += np.asarray(data).sum(dtype=np.int64)
    return sums


def opening(side: Contender) -> Ready:
    root = str(many_files())

    def turn() -> float:
        start = time.perf_counter()
        reader = side.library.readers.File(file_root=root)
        data, _ = next(iter(reader.next_epoch()))
        data.evaluate()
        return time.perf_counter() - start

    reader = side.library.readers.File(file_root=root)
    return Ready(turn, [np.array(reader.get_metadata()["epoch_size"])])


def opening_annotations(side: Contender) -> Ready:
    root, file = annotated()

    def make() -> Any:
        return side.library.readers.COCO(
            file_root=str(root), annotations_file=str(file), polygon_masks=True
        )

    def turn() -> float:
        start = time.perf_counter()
        first(make())
        return time.perf_counter() - start

    return Ready(turn, [np.asarray(part) for part in first(make())])


def facts(pair: Pair) -> Iterator[str]:
    reader = pair.ours.library.readers.File(file_root=str(photographs()), random_shuffle=True)
    next(iter(reader.next_epoch(batch_size=BATCH)))
    times = timeit.repeat(reader.get_state, number=1000, repeat=5)
    micros = statistics.median(times) * 1000
    met = "met" if micros < 50 else "MISSED"
    yield f"`get_state` of a reader in the middle of an epoch: {micros:.1f} µs (target: 50, {met})."


def first(reader: Any) -> Any:
    parts = next(iter(reader.next_epoch()))
    for part in parts:
        part.evaluate()
    return parts


@functools.cache
def annotated() -> tuple[Path, Path]:
    """A folder with images, and their annotations."""
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
def photographs() -> Path:
    """A folder with files as large as photographs."""
    root = temporary_folder()
    (root / "class").mkdir()
    rng = np.random.default_rng(0)
    for number in range(FILES):
        (root / f"class/{number:04d}.jpg").write_bytes(rng.bytes(BYTES))
    return root


@functools.cache
def many_files() -> Path:
    """A folder with many small files."""
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


FAMILY = Family("reading", ABOUT, cases, facts)
