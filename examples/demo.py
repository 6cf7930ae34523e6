"""End to end: read a folder of JPEGs, decode, augment, and train a small model.

Creates the folder, trains a model on it for a few epochs, prints images per second and the time of
each step, and writes a contact sheet of one augmented batch to demo.png. Run it with `make demo`.

The model is one of JAX, which is a tenth of the download that PyTorch is on Linux; the other
examples use PyTorch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from photographs import make_folder
from PIL import Image

import penstock as ndd

SIZE = 224
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


def batches(reader: ndd.readers.File, batch_size: int) -> Iterator[tuple[ndd.Batch, ndd.Batch]]:
    """One epoch of normalized images and their labels. Every call in here returns immediately."""
    for jpegs, labels in reader.next_epoch(batch_size=batch_size):
        images = ndd.decoders.image(jpegs)
        images = ndd.random_resized_crop(images, size=SIZE, random_area=[0.4, 1.0])
        images = ndd.color_twist(
            images,
            brightness=ndd.random.uniform(batch_size=batch_size, range=[0.8, 1.2]),
            saturation=ndd.random.uniform(batch_size=batch_size, range=[0.7, 1.3]),
        )
        mirror = ndd.random.coin_flip(batch_size=batch_size)
        yield ndd.crop_mirror_normalize(images, mirror=mirror, mean=MEAN, std=STD), labels


def small_model(classes: int) -> list[jax.Array]:
    """The weights of two convolutions and a linear layer."""
    shapes = [(16, 3, 7, 7), (32, 16, 3, 3), (32 * 4 * 4, classes)]
    keys = jax.random.split(jax.random.key(1), len(shapes))
    # A linear layer has inputs first.
    inputs = [3 * 7 * 7, 16 * 3 * 3, 32 * 4 * 4]
    return [
        jax.random.normal(key, shape) * (2 / count) ** 0.5
        for key, shape, count in zip(keys, shapes, inputs, strict=True)
    ]


def scores_of(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    *kernels, last = weights
    for kernel, stride in zip(kernels, (4, 2), strict=True):
        x = jax.nn.relu(jax.lax.conv(x, kernel, (stride, stride), "VALID"))
    parts = x[:, :, : x.shape[2] // 4 * 4, : x.shape[3] // 4 * 4]
    pooled = parts.reshape(*parts.shape[:2], 4, parts.shape[2] // 4, 4, -1).mean((3, 5))
    return pooled.reshape(len(x), -1) @ last


@jax.jit
def train_step(state: Any, x: jax.Array, y: jax.Array) -> tuple[Any, jax.Array]:
    """One step of Adam; returns the number of correct answers too."""

    def loss(weights: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
        scores = scores_of(weights, x)
        likely = jax.nn.log_softmax(scores)[jnp.arange(len(y)), y]
        return -likely.mean(), (scores.argmax(1) == y).sum()

    weights, means, squares, step = state
    slopes, correct = jax.grad(loss, has_aux=True)(weights)
    means = [0.9 * m + 0.1 * g for m, g in zip(means, slopes, strict=True)]
    squares = [0.999 * v + 0.001 * g * g for v, g in zip(squares, slopes, strict=True)]
    step += 1
    rate = 2e-3 * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
    weights = [
        w - rate * m / (jnp.sqrt(v) + 1e-8) for w, m, v in zip(weights, means, squares, strict=True)
    ]
    return (weights, means, squares, step), correct


def train(reader: ndd.readers.File, classes: int, epochs: int, batch_size: int) -> None:
    """Train a classifier of the folders."""
    weights = small_model(classes)
    zeros = [jnp.zeros_like(w) for w in weights]
    state = (weights, zeros, zeros, jnp.zeros(()))
    total = reader.epoch_size
    waited = stepped = 0.0
    for epoch in range(epochs):
        correct = total_seen = 0
        begin = ready = time.perf_counter()
        # The next two batches are computed while the model trains on one.
        for images, labels in ndd.prefetch(batches(reader, batch_size), depth=2):
            x, y = images.jax(), labels.jax()[:, 0]
            waited += time.perf_counter() - ready
            begin_step = time.perf_counter()
            state, right = train_step(state, x, y)
            correct += int(right)
            total_seen += len(y)
            ready = time.perf_counter()
            stepped += ready - begin_step
            progress(f"epoch {epoch + 1}/{epochs}", total_seen, total)
        rate = total_seen / (time.perf_counter() - begin)
        accuracy = correct / total_seen
        print(f"\r  epoch {epoch + 1}: accuracy {accuracy:4.0%}, {rate:6,.0f} images/s" + " " * 30)
    share = waited / (waited + stepped)
    print(f"  time in training steps: {1 - share:.0%}, waiting for images: {share:.0%}")


def progress(what: str, done: int, total: int) -> None:
    if sys.stdout.isatty():
        bar = "#" * min(30, 30 * done // total)
        print(f"\r  {what} [{bar:<30}] {done:5d} images", end="", flush=True)


def measure(reader: ndd.readers.File, batch_size: int, seconds: float = 3.0) -> float:
    """Images per second without training."""
    reader.reset()
    images, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for batch, _ in ndd.prefetch(batches(reader, batch_size)):
            images += len(batch.jax())
    return images / (time.perf_counter() - start)


def breakdown(reader: ndd.readers.File, batch_size: int) -> dict[str, float]:
    """Milliseconds per image of each step, in a mode where calls return when the work is done."""
    reader.reset()
    spent: dict[str, float] = {}
    images = 0
    with ndd.EvalMode.sync_cpu:
        loop = reader.next_epoch(batch_size=batch_size)
        while True:
            clock = time.perf_counter()

            def lap(step: str) -> None:
                nonlocal clock
                now = time.perf_counter()
                spent[step] = spent.get(step, 0.0) + 1e3 * (now - clock)
                clock = now

            try:
                batch = next(loop)[0].evaluate()
            except StopIteration:
                break
            lap("read")
            batch = ndd.decoders.image(batch)
            lap("decode")
            batch = ndd.random_resized_crop(batch, size=SIZE, random_area=[0.4, 1.0])
            lap("crop and resize")
            batch = ndd.color_twist(batch, brightness=1.1, saturation=0.9)
            lap("colors")
            batch = ndd.crop_mirror_normalize(batch, mirror=1, mean=MEAN, std=STD)
            lap("normalize")
            batch.jax()
            lap("to JAX")
            images += batch_size
    return {step: milliseconds / images for step, milliseconds in spent.items()}


def write_sheet(images: ndd.Batch, path: Path, columns: int = 8) -> None:
    """All samples of a batch, side by side in one picture."""
    pixels = np.asarray(ndd.as_tensor(images)).transpose(0, 2, 3, 1) * STD + MEAN
    tiles = [np.pad(tile, ((2, 2), (2, 2), (0, 0)), constant_values=255) for tile in pixels]
    tiles = tiles[: len(tiles) // columns * columns]
    rows = [np.hstack(tiles[i : i + columns]) for i in range(0, len(tiles), columns)]
    Image.fromarray(np.clip(np.vstack(rows), 0, 255).astype(np.uint8)).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--per-class", type=int, default=160, help="number of images per class")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--out", type=Path, default=Path("demo.png"), help="the contact sheet")
    args = parser.parse_args()
    ndd.random.set_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        print(f"creating {args.per_class} JPEGs per class")
        classes = make_folder(Path(folder), args.per_class)
        reader = ndd.readers.File(file_root=folder, random_shuffle=True, initial_fill=2048)
        print(f"classes: {', '.join(classes)}; {ndd.get_num_threads()} threads")
        train(reader, len(classes), args.epochs, args.batch_size)
        rate = measure(reader, args.batch_size)
        print(f"without training: {rate:,.0f} images/s; time per image of each step on its own:")
        for step, milliseconds in breakdown(reader, args.batch_size).items():
            print(f"  {step:<16} {milliseconds:7.3f} ms")
        reader.reset()
        write_sheet(next(batches(reader, args.batch_size))[0], args.out)
    print(f"one augmented batch: {args.out}")


if __name__ == "__main__":
    main()
