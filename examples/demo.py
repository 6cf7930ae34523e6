"""Augments made-up photographs for a few seconds, as a training loop would ask for them.

Prints images per second and what each operator costs, and writes a contact sheet of one
augmented batch to demo.png. Run it with `make demo`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ndd

CROP = 128
Step = Callable[[ndd.Batch], ndd.Batch]


def photograph(rng: np.random.Generator) -> np.ndarray:
    """An image of random size: a sky, hills and a sun, with some grain."""
    h, w = (int(n) for n in rng.integers(160, 320, size=2))
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    sky, sun, ground = rng.integers(60, 256, size=(3, 3)).astype(np.float32)
    image = sky * (0.4 + 0.6 * y / h)[..., None]
    cx, cy, radius = rng.uniform(0.2, 0.8) * w, rng.uniform(0.2, 0.5) * h, 0.12 * min(h, w)
    image = np.where(((x - cx) ** 2 + (y - cy) ** 2 < radius**2)[..., None], sun, image)
    for depth in range(3):
        phase, waves = rng.uniform(0, 6), rng.uniform(1, 3)
        ridge = h * (0.55 + 0.12 * depth + 0.05 * np.sin(waves * 6.28 * x[0] / w + phase))
        image = np.where((y > ridge)[..., None], ground * (0.8 - 0.2 * depth), image)
    grain = rng.normal(0, 4, size=(h, w, 1))
    return np.clip(image + grain, 0, 255).astype(np.uint8)


def augmentations(images: list[np.ndarray], rng: np.random.Generator) -> dict[str, Step]:
    """The steps of one batch, each with random arguments of its own for every sample."""
    n = len(images)
    mirror = ndd.batch(rng.integers(0, 2, n).astype(np.int32))
    top = ndd.batch([int(rng.integers(0, image.shape[0] - CROP)) for image in images])
    left = ndd.batch([int(rng.integers(0, image.shape[1] - CROP)) for image in images])
    light = ndd.batch(rng.uniform(-40, 40, n).astype(np.float32))
    return {
        "flip": lambda batch: ndd.flip(batch, horizontal=mirror),
        "slice": lambda batch: batch.slice[top : top + CROP, left : left + CROP],
        "cast": lambda batch: ndd.cast(batch, dtype=ndd.float32),
        "+": lambda batch: batch + light,
    }


def augmented(images: list[np.ndarray], rng: np.random.Generator) -> ndd.Batch:
    """Images of many sizes in, crops of one size out."""
    batch = ndd.as_batch(images, layout="HWC")
    for step in augmentations(images, rng).values():
        batch = step(batch)
    return batch


def handed_over(batch: ndd.Batch) -> Any:
    """What a model would get: a torch tensor where torch is installed, else a NumPy array."""
    return batch.torch() if find_spec("torch") else np.asarray(ndd.as_tensor(batch))


def run_loop(
    pick: Callable[[], list[np.ndarray]], seconds: float, rng: np.random.Generator
) -> float:
    """Images per second of a loop that asks for augmented batches."""
    handed_over(augmented(pick(), rng))  # threads and frameworks start outside the clock
    images, start, shown = 0, time.perf_counter(), 0.0
    while (elapsed := time.perf_counter() - start) < seconds:
        images += len(handed_over(augmented(pick(), rng)))
        if sys.stdout.isatty() and elapsed - shown > 0.1:
            shown = elapsed
            bar = "#" * int(30 * elapsed / seconds)
            print(f"\r  [{bar:<30}] {images:8d} images", end="", flush=True)
    if shown:
        print("\r" + " " * 60 + "\r", end="")
    return images / (time.perf_counter() - start)


def time_steps(images: list[np.ndarray], rng: np.random.Generator) -> dict[str, float]:
    """Milliseconds per batch of each operator alone: the call returns when its work is done."""
    times: dict[str, list[float]] = {}
    with ndd.EvalMode.sync_cpu:
        for _ in range(30):
            batch = ndd.as_batch(images, layout="HWC")
            for name, step in augmentations(images, rng).items():
                start = time.perf_counter()
                batch = step(batch)
                times.setdefault(name, []).append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def write_sheet(batch: ndd.Batch, path: Path, columns: int = 8) -> None:
    """All samples of a batch of equal crops, side by side, as one picture."""
    from PIL import Image

    crops = [np.asarray(sample) for sample in ndd.cast(batch, dtype=ndd.uint8)]
    blank = [np.full_like(crops[0], 255)] * (-len(crops) % columns)
    crops = [np.pad(crop, ((2, 2), (2, 2), (0, 0)), constant_values=255) for crop in crops + blank]
    rows = [np.hstack(crops[i : i + columns]) for i in range(0, len(crops), columns)]
    Image.fromarray(np.vstack(rows)).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the loop runs")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--out", type=Path, default=Path("demo.png"), help="the contact sheet")
    args = parser.parse_args()

    rng = np.random.default_rng(7)
    print("making 64 images of different sizes")
    library = [photograph(rng) for _ in range(64)]

    def pick() -> list[np.ndarray]:
        return [library[i] for i in rng.integers(0, len(library), args.batch_size)]

    framework = "torch" if find_spec("torch") else "NumPy"
    print(f"flip, crop, cast, brighten, hand over to {framework}; {ndd.get_num_threads()} threads")
    rate = run_loop(pick, args.seconds, rng)
    print(f"  {rate:,.0f} images/s, in batches of {args.batch_size}")

    print("each operator alone, per batch:")
    for name, milliseconds in time_steps(pick(), rng).items():
        print(f"  {name:<6} {milliseconds:7.3f} ms")

    write_sheet(augmented(pick(), rng), args.out)
    print(f"one augmented batch: {args.out}")


if __name__ == "__main__":
    main()
