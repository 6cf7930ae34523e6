"""Decode many damaged images, and keep those that crash the process.

python tools/fuzz_images.py                    # 100 000 files of all formats
python tools/fuzz_images.py --count 2000 --only png --seed 7

Files are decoded in separate processes with limited time and memory. A file that crashes or hangs
the process or causes an internal error is written to `--keep`, with the outcome; its name contains
the kind, the seed and the number. So is a file whose pixels depend on uninitialized memory
(`tests/poison.py`), and one that crashes a process with very little memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.images import corpus  # noqa: E402
from tests.mutations import mutate  # noqa: E402
from tests.poison import HEIGHT, WIDTH, outcomes  # noqa: E402

MEMORY = 6 << 30
LITTLE = 24 << 20
"""What a process with little memory may allocate after its start."""
SECONDS = 60
"""The limit for a chunk of files, which usually takes a few seconds."""
POISON = (0x11, 0xEE)


def files_of(kind: str, seed: int, first: int, count: int) -> list[bytes]:
    """Damaged files; deterministic."""
    original = corpus(HEIGHT, WIDTH)[kind]
    return [
        mutate(original, np.random.default_rng([seed, number]))
        for number in range(first, first + count)
    ]


def decode(files: list[bytes]) -> None:
    """Decode files in several ways; failing to decode them is fine."""
    import penstock as ndd
    from penstock.errors import DecodeError

    rng = ndd.random.RNG(1)
    arrays = [np.frombuffer(file, np.uint8) for file in files]
    batch = ndd.batch(arrays)
    ways = (
        ndd.decoders.image(batch),
        ndd.decoders.image(batch, output_type=ndd.types.ANY_DATA, dtype=ndd.float32),
        ndd.decoders.image_random_crop(batch, rng=rng, output_type=ndd.types.GRAY),
        ndd.peek_image_shape(batch),
    )
    for images in ways:
        for image in images:
            try:
                image.evaluate()
            except (DecodeError, MemoryError):
                pass


def worker(way: str, kind: str, seed: int, first: int, count: int) -> None:
    """The main function of a separate process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    files = files_of(kind, seed, first, count)
    if way.isdigit():
        named = [(f"file {first + at}", file) for at, file in enumerate(files)]
        print("\n".join(outcomes(named, int(way))))
        return
    if way == "little":
        decode([corpus()["baseline"]])  # loads everything and starts threads
        with open("/proc/self/statm") as numbers:
            pages = int(numbers.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LITTLE, MEMORY))
    decode(files)


def run(way: str, kind: str, seed: int, first: int, count: int) -> tuple[str, str | None]:
    """The output of a process that decodes the files, and how it failed, or None."""
    command = [sys.executable, __file__, "--worker", way, kind, str(seed), str(first), str(count)]
    # Rejects headers that claim large images, so that a lack of memory means a bug.
    environment = {**os.environ, "PENSTOCK_MAX_PIXELS": str(1 << 22)}
    if way.isdigit():
        environment["MALLOC_PERTURB_"] = way
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return "", f"took more than {SECONDS} s"
    if done.returncode == 0:
        return done.stdout, None
    return done.stdout, f"{way}: ended with {done.returncode}:\n{done.stderr[-2000:]}"


def survives(kind: str, seed: int, first: int, count: int) -> str | None:
    """None if the files do no harm, otherwise a description."""
    for way in ("plenty", "little"):
        _, end = run(way, kind, seed, first, count)
        if end is not None:
            return end
    ends = [run(str(value), kind, seed, first, count) for value in POISON]
    for _, end in ends:
        if end is not None:
            return end
    one, other = (output.splitlines() for output, _ in ends)
    shown = [f"{left} / {right}" for left, right in zip(one, other, strict=True) if left != right]
    return (
        "the result depends on uninitialized memory:\n" + "\n".join(shown[:20]) if shown else None
    )


def narrow(kind: str, seed: int, first: int, count: int, keep: Path) -> int:
    """Find and keep the harmful files of a chunk; returns how many there are."""
    found = 0
    for number in range(first, first + count):
        end = survives(kind, seed, number, 1)
        if end is not None:
            keep.mkdir(parents=True, exist_ok=True)
            name = f"{kind.replace(' ', '-').replace(':', '')}-{seed}-{number}"
            (keep / name).write_bytes(files_of(kind, seed, number, 1)[0])
            (keep / f"{name}.txt").write_text(end)
            print(f"{keep / name}: {end.splitlines()[-1]}", flush=True)
            found += 1
    if not found:
        print(f"{kind}: the files from {first} on are only harmful together", flush=True)
    return max(found, 1)


def main() -> int:
    """Run all files; the exit code is 1 if any did harm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="total number of files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chunk", type=int, default=1000, help="files per process")
    parser.add_argument("--only", default="", help="only kinds of files whose names contain this")
    parser.add_argument("--keep", type=Path, default=ROOT / "target" / "fuzz")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        way, kind, *numbers = given.worker
        worker(way, kind, *map(int, numbers))
        return 0
    kinds = [kind for kind in corpus() if given.only in kind]
    each = -(-given.count // len(kinds))
    harm, began = 0, time.monotonic()
    for kind in kinds:
        for first in range(0, each, given.chunk):
            count = min(given.chunk, each - first)
            if survives(kind, given.seed, first, count) is not None:
                harm += narrow(kind, given.seed, first, count, given.keep)
        print(f"{kind}: {each} files, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{harm} harmful of {each * len(kinds)}")
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
