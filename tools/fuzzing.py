"""Decodes many damaged files, and keeps those that crash the process.

Files are decoded in separate processes with limited time and memory. A file that crashes or hangs
the process or causes an internal error is written to `--keep`, with the outcome; its name contains
the kind, the seed and the number. So is a file whose result depends on uninitialized memory
(`tests/poison.py`), and one that crashes a process with very little memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.mutations import mutate

ROOT = Path(__file__).parent.parent
MEMORY = 6 << 30
LITTLE = 24 << 20
"""What a process with little memory may allocate after its start."""
SECONDS = 60
"""The limit for a chunk of files, which usually takes a few seconds."""
POISON = (0x11, 0xEE)


@dataclass(frozen=True)
class Fuzzer:
    """What is decoded, and how."""

    script: str
    """Its file, which is run again as a separate process."""
    summary: str
    corpus: dict[str, bytes]
    """Intact files, by kind."""
    decode: Callable[[list[bytes]], None]
    """Decodes files in several ways; failing to decode them is fine."""
    outcomes: Callable[[list[tuple[str, bytes]], int], list[str]]
    """Outcomes on memory that was filled with a value before, as in `tests/poison.py`."""
    limits: dict[str, str]
    """Environment variables that reject what claims to be large, so that a lack of memory means a
    bug."""

    def main(self) -> int:
        """Run all files; the exit code is 1 if any did harm."""
        parser = argparse.ArgumentParser(description=self.summary)
        parser.add_argument("--count", type=int, default=100_000, help="total number of files")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--chunk", type=int, default=1000, help="files per process")
        parser.add_argument("--only", default="", help="only kinds whose names contain this")
        parser.add_argument("--keep", type=Path, default=ROOT / "target" / "fuzz")
        parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
        given = parser.parse_args()
        if given.worker:
            way, kind, *numbers = given.worker
            self._work(way, kind, *map(int, numbers))
            return 0
        kinds = [kind for kind in self.corpus if given.only in kind]
        each = -(-given.count // len(kinds))
        harm, began = 0, time.monotonic()
        for kind in kinds:
            for first in range(0, each, given.chunk):
                count = min(given.chunk, each - first)
                if self._harm(kind, given.seed, first, count) is not None:
                    harm += self._narrow(kind, given.seed, first, count, given.keep)
            print(f"{kind}: {each} files, {time.monotonic() - began:.0f} s", flush=True)
        print(f"{harm} harmful of {each * len(kinds)}")
        return 1 if harm else 0

    def _files(self, kind: str, seed: int, first: int, count: int) -> list[bytes]:
        """Damaged files; deterministic."""
        return [
            mutate(self.corpus[kind], np.random.default_rng([seed, number]))
            for number in range(first, first + count)
        ]

    def _work(self, way: str, kind: str, seed: int, first: int, count: int) -> None:
        """The main function of a separate process."""
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        files = self._files(kind, seed, first, count)
        if way.isdigit():
            named = [(f"file {first + at}", file) for at, file in enumerate(files)]
            print("\n".join(self.outcomes(named, int(way))))
            return
        if way == "little":
            # Loads everything and starts threads.
            self.decode([self.corpus[kind]])
            with open("/proc/self/statm") as numbers:
                pages = int(numbers.read().split()[0])
            most = pages * resource.getpagesize() + LITTLE
            resource.setrlimit(resource.RLIMIT_AS, (most, MEMORY))
        self.decode(files)

    def _run(
        self, way: str, kind: str, seed: int, first: int, count: int
    ) -> tuple[str, str | None]:
        """The output of a process that decodes the files, and how it failed, or None."""
        worker = ["--worker", way, kind, str(seed), str(first), str(count)]
        environment = {**os.environ, **self.limits}
        if way.isdigit():
            environment["MALLOC_PERTURB_"] = way
        try:
            done = subprocess.run(
                [sys.executable, self.script, *worker],
                capture_output=True,
                text=True,
                timeout=SECONDS,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return "", f"took more than {SECONDS} s"
        if done.returncode == 0:
            return done.stdout, None
        return done.stdout, f"{way}: ended with {done.returncode}:\n{done.stderr[-2000:]}"

    def _harm(self, kind: str, seed: int, first: int, count: int) -> str | None:
        """None if the files do no harm, otherwise a description."""
        for way in ("plenty", "little"):
            _, end = self._run(way, kind, seed, first, count)
            if end is not None:
                return end
        ends = [self._run(str(value), kind, seed, first, count) for value in POISON]
        for _, end in ends:
            if end is not None:
                return end
        one, other = (output.splitlines() for output, _ in ends)
        shown = [
            f"{left} / {right}" for left, right in zip(one, other, strict=True) if left != right
        ]
        if not shown:
            return None
        return "the result depends on uninitialized memory:\n" + "\n".join(shown[:20])

    def _narrow(self, kind: str, seed: int, first: int, count: int, keep: Path) -> int:
        """Find and keep the harmful files of a chunk; returns how many there are."""
        found = 0
        for number in range(first, first + count):
            end = self._harm(kind, seed, number, 1)
            if end is not None:
                keep.mkdir(parents=True, exist_ok=True)
                name = f"{kind.replace(' ', '-').replace(':', '')}-{seed}-{number}"
                (keep / name).write_bytes(self._files(kind, seed, number, 1)[0])
                (keep / f"{name}.txt").write_text(end)
                print(f"{keep / name}: {end.splitlines()[-1]}", flush=True)
                found += 1
        if not found:
            print(f"{kind}: the files from {first} on are only harmful together", flush=True)
        return max(found, 1)
