"""`penstock bench`: how fast a folder of images is loaded, and what limits it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from penstock._cli.files import check, images, is_url, local
from penstock._cli.terminal import Problem, Progress, count, first_line, table

HELP = "Load the images of a folder with 1, 2, ... threads, beside PyTorch's DataLoader."

_MEAN = (0.485 * 255, 0.456 * 255, 0.406 * 255)
_STD = (0.229 * 255, 0.224 * 255, 0.225 * 255)
_MOST = 1 << 16
"""Larger batches and images are typing errors."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "path",
        metavar="DIR|LIST|URL",
        help="a folder of images, or a `file_list` or `file_root` as `readers.File` takes them",
    )
    parser.add_argument("--batch-size", type=_positive, default=64, metavar="N")
    parser.add_argument("--size", type=_positive, default=224, metavar="PIXELS")
    parser.add_argument(
        "--seconds", type=_duration, default=3.0, help="how long to measure each (default: 3)"
    )
    parser.add_argument("--threads", metavar="1,2,4", help="numbers of threads to try")
    parser.add_argument("--no-torch", action="store_true", help="leave out PyTorch's DataLoader")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _positive(text: str) -> int:
    number = int(text)
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"must be from 1 to {_MOST}, got {text}")
    return number


def _duration(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be greater than 0, got {text}")
    return seconds


def run(given: argparse.Namespace) -> int:
    """Measure, and print a table."""
    import penstock as ndd

    arguments = _reader_arguments(given.path)
    numbers = _threads(given.threads)
    files: list[str] | None = arguments.get("files")
    peer = None if given.no_torch or files is None else _peer()
    rounds = len(numbers) + (peer is not None)
    rates: dict[int, float] = {}
    with Progress("measuring", rounds) as progress, _open(given.path, arguments) as reader:
        total = reader.get_metadata()["epoch_size"]
        try:
            for number in numbers:
                ndd.set_num_threads(number)
                with ndd.profile() as profile:
                    rates[number] = _own_rate(reader, given)
                progress.advance()
        finally:
            ndd.set_num_threads(None)
        theirs = None
        if peer is not None and files is not None:
            try:
                theirs = _rate(peer(files, given, numbers[-1]), given.seconds)
            except (RuntimeError, OSError) as error:
                reason = first_line(error)
                raise Problem(f"torch's DataLoader: {reason} (--no-torch leaves it out)") from None
            progress.advance()
    best = max(rates.values())
    facts: dict[str, Any] = {
        "path": given.path,
        "images": total,
        "batch_size": given.batch_size,
        "size": given.size,
        "images_per_second": rates,
        "torch_dataloader": theirs,
        "bottleneck": profile.bottleneck,
    }
    if given.json:
        print(json.dumps(facts, indent=2))
        return 0
    rows = [["", "images/s", ""]]
    rows += [
        [f"penstock, {count(number, 'thread')}", f"{rate:,.0f}", f"{rate / rates[numbers[0]]:.2f}x"]
        for number, rate in rates.items()
    ]
    if theirs is not None:
        name = f"torch DataLoader, {count(numbers[-1], 'worker')}"
        rows.append([name, f"{theirs:,.0f}", f"penstock is {best / theirs:.2f}x as fast"])
    elif not given.no_torch and files is not None:
        rows.append(["torch DataLoader", "-", "torch and torchvision are not installed"])
    print(f"{count(total, 'image')}, decoded, resized to {given.size} pixels, normalized\n")
    print(table(rows, right=[1]))
    print(f"\n{count(numbers[-1], 'thread')}: {profile.bottleneck}")
    return 0


def _reader_arguments(path: str) -> dict[str, Any]:
    """The images, as `readers.File` is told of them."""
    path = local(path)
    if is_url(path):
        return {"file_root": path}
    check(path)
    if not os.path.isdir(path):
        with open(path, "rb") as file:
            if not os.path.isfile(path) or b"\0" in file.read(4096):
                raise Problem(f"neither a folder of images nor a list of files: {path}")
        return {"file_list": path}
    return {"files": [file.path for file in images(path)]}


def _open(path: str, arguments: dict[str, Any]) -> Any:
    import penstock as ndd

    try:
        reader = ndd.readers.File(**arguments, random_shuffle=True, on_error="substitute")
        reader.get_metadata()  # looks for the files
    except Exception as error:
        raise Problem(f"{path}: {first_line(error).removeprefix('readers.File: ')}") from None
    return reader


def _threads(text: str | None) -> list[int]:
    """Numbers of threads: powers of two up to the number of CPUs, unless given."""
    from penstock._runtime.cpus import usable_cpus

    if text is None:
        cpus = usable_cpus()
        powers = [1 << power for power in range(cpus.bit_length()) if 1 << power < cpus]
        return [*powers, cpus]
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = [0]
    if not 1 <= min(numbers) <= max(numbers) <= 100 * usable_cpus():
        raise Problem(f"--threads must be numbers such as 1,2,4, got {text}")
    return sorted(set(numbers))


def _rate(batches: Iterator[int], seconds: float) -> float:
    """Images per second, after a batch to warm up."""
    done, end, start = 0, 0.0, 0.0
    for loaded in batches:
        now = time.perf_counter()
        if not start:
            start = now
            continue
        done, end = done + loaded, now
        if now - start > seconds:
            break
    if not done:
        raise Problem("there are too few images to measure: less than two batches could be decoded")
    return done / (end - start)


def _own_rate(reader: Any, given: argparse.Namespace) -> float:
    try:
        return _rate(_batches(reader, given), given.seconds)
    except (ValueError, RuntimeError, OSError, MemoryError) as error:
        raise Problem(first_line(error)) from None


def _batches(reader: Any, given: argparse.Namespace) -> Iterator[int]:
    """The sizes of batches, as they are done; goes on for ever."""
    import penstock as ndd

    def prepared() -> Iterator[Any]:
        for jpegs, _ in reader.next_epoch(batch_size=given.batch_size):
            decoded = ndd.decoders.image(jpegs, device="cpu", on_error="substitute")
            resized = ndd.resize(decoded, size=[given.size, given.size])
            yield ndd.crop_mirror_normalize(resized, mean=_MEAN, std=_STD)

    reader.reset()
    while True:
        for batch in ndd.prefetch(prepared()):
            batch.evaluate()
            yield len(batch)


def _peer() -> Callable[[list[str], argparse.Namespace, int], Iterator[int]] | None:
    """PyTorch's DataLoader with torchvision's transforms, if they are installed."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "torchvision", "PIL")):
        return None

    def batches(files: list[str], given: argparse.Namespace, workers: int) -> Iterator[int]:
        from torch.utils.data import DataLoader

        from penstock._cli.torch_peer import Images

        options = {"num_workers": workers, "persistent_workers": True, "shuffle": True}
        loader: Any = DataLoader(Images(files, given.size), given.batch_size, **options)
        while True:
            for batch in loader:
                yield len(batch)

    return batches
