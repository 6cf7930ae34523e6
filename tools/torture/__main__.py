"""python -m tools.torture [--short] [--seconds N] [--seed N] [--only TEXT]...

Runs the attacks one after another, each with its share of the time, and prints what they found.
The exit code is 1 where there was harm.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from . import check, fuzzers, mutants, seeds
from .child import ROOT, Child
from .corpus import MAKERS
from .report import Attempt, command

SHORT, LONG = 600, 3600
LEAST = 4.0
"""Seconds that each attack has, even where those before it took longer than they should."""


class Plan(NamedTuple):
    """An attack, and its share of the time: in the short run, and in the long one."""

    run: Callable[[Attempt], None]
    short: float
    long: float


def corpus(attempt: Attempt) -> None:
    """The files that are written by `corpus.py`."""
    names = list(MAKERS)
    for start in range(0, len(names), 10):
        some = names[start : start + 10]
        for name, problem in check.check(some).items():
            replay = f"{sys.executable} -m tools.torture.corpus {name}"
            attempt.harm(f"{name}: {problem}", replay, MAKERS[name]().data, name=name)
        attempt.counts["files"] += len(some)


def mutated(*ways: str) -> Callable[[Attempt], None]:
    """Damaged files of some kinds."""

    def run(attempt: Attempt) -> None:
        names = [name for name, seed in seeds.seeds().items() if seed.way in ways]
        mutants.attack(attempt, names)

    return run


def watched(
    module: str,
    program: str,
    *,
    silence: float = 60,
    memory: int | None = None,
    files: int | None = None,
    preempted: bool = False,
) -> Callable[[Attempt], None]:
    """A program of a module, which tells of harm itself. After its death it is begun again.

    Where it is to be `preempted`, its threads are stopped at random moments (`preempt.c`).
    """

    def run(attempt: Attempt) -> None:
        environment = {"LD_PRELOAD": str(preempt(attempt.keep))} if preempted else {}
        for turn in range(5):
            if attempt.left() < 1:
                break
            arguments = (program, attempt.seed + turn, round(attempt.left(), 1))
            limits = {"memory": memory, "files": files}
            with Child(module, *arguments, environment=environment, **limits) as child:
                replay = command(child, **environment)
                if attempt.watch(child, silence, name=f"{program}-{turn}", replay=replay):
                    break

    return run


def preempt(folder: Path) -> Path:
    """The library that stops threads at random moments."""
    folder.mkdir(parents=True, exist_ok=True)
    source, library = Path(__file__).with_name("preempt.c"), folder / "preempt.so"
    options = ["-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-lrt"]
    subprocess.run([os.environ.get("CC", "cc"), *options], check=True)
    return library


def fuzzed(attempt: Attempt) -> None:
    """The fuzzers; their build is part of it, and leaves the rest of the time to the targets."""
    binary = fuzzers.build("address", "release", attempt.left())
    fuzzers.attack(attempt, fuzzers.targets(), binary)


def fuzzed_if_built(attempt: Attempt) -> None:
    """The fuzzers, if somebody has built them: that alone would take the time of a short run."""
    fuzzers.attack(attempt, fuzzers.targets(), fuzzers.built("address", "release"))


RECORDS = ("npy", "tar", "tfrecord", "recordio", "caffe", "caffe2", "coco", "manifest", "file list")
GB = 1 << 30


def plans(short: bool) -> dict[str, Plan]:
    """All attacks, by name."""
    return {
        # First: what they don't need, the others get.
        "fuzzers": Plan(fuzzed_if_built if short else fuzzed, 150, 1200),
        "corpus": Plan(corpus, 40, 60),
        "images": Plan(mutated("image"), 60, 420),
        "sounds": Plan(mutated("sound", "sound resampled"), 15, 120),
        "records": Plan(mutated(*RECORDS), 25, 180),
        "changing bytes": Plan(watched("buffers", "changing_bytes"), 25, 120),
        "lying buffers": Plan(watched("buffers", "lying_buffers", memory=4 * GB), 10, 60),
        "states": Plan(watched("buffers", "states", silence=20), 15, 90),
        "little memory": Plan(watched("memory", "little_memory"), 30, 180),
        "leaks": Plan(watched("memory", "leaks"), 60, 420),
        "kill -9": Plan(watched("process", "killed"), 15, 120),
        "forks": Plan(watched("process", "forks", silence=120), 15, 120),
        "interrupts": Plan(watched("process", "interrupts"), 20, 120),
        "descriptors": Plan(watched("process", "descriptors", files=200), 10, 60),
        "no threads": Plan(watched("process", "no_threads", silence=90), 10, 60),
        "odd files": Plan(watched("process", "odd_files"), 40, 90),
        "storms": Plan(watched("process", "storms", silence=120), 15, 90),
        "storms, stopped": Plan(watched("process", "storms", silence=180, preempted=True), 20, 180),
        "forks, stopped": Plan(watched("process", "forks", silence=180, preempted=True), 15, 90),
    }


def main() -> int:
    """Run the attacks that are wanted."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.torture", description="Attacks penstock."
    )
    parser.add_argument("--short", action="store_true", help=f"{SHORT} s instead of {LONG}")
    given_by_environment = os.environ.get("PENSTOCK_TORTURE_SECONDS")
    parser.add_argument("--seconds", type=float, help="of all attacks together")
    parser.add_argument(
        "--seed",
        type=int,
        default=None,
        help="by default, the same in each short run, and another one in each long one",
    )
    parser.add_argument("--only", action="append", default=[], help="attacks whose name has this")
    parser.add_argument("--skip", action="append", default=[], help="attacks to leave out")
    parser.add_argument("--keep", type=Path, default=ROOT / "target" / "torture")
    parser.add_argument("--list", action="store_true", help="print the names of the attacks")
    given = parser.parse_args()
    all_plans = plans(given.short)
    wanted = {
        name: plan
        for name, plan in all_plans.items()
        if (not given.only or any(text in name for text in given.only)) and name not in given.skip
    }
    if given.list:
        print("\n".join(all_plans))
        return 0
    seconds = given.seconds or float(given_by_environment or (SHORT if given.short else LONG))
    # What CI runs should say the same of the same code; new finds are the long run's business.
    drawn = 1 if given.short else random.randrange(10**6)
    seed = drawn if given.seed is None else given.seed
    weights = {name: plan.short if given.short else plan.long for name, plan in wanted.items()}
    end = time.monotonic() + seconds
    print(f"{len(wanted)} attacks, {seconds:.0f} s, --seed {seed}; harm is kept in {given.keep}")
    attempts = []
    with tempfile.TemporaryDirectory() as folder:
        seeds.share(Path(folder))
        for name, plan in wanted.items():
            # What an attack did not use, those after it share.
            share = (end - time.monotonic()) * weights[name] / sum(weights.values())
            share = max(share, LEAST)
            del weights[name]
            attempt = Attempt(name, share, seed, given.keep)
            attempts.append(attempt)
            try:
                plan.run(attempt)
            except Exception as error:
                attempt.harm(
                    f"the attack itself failed: {error!r}", f"--only {name!r} --seed {seed}"
                )
            print(attempt.summary(), flush=True)
    return report(attempts)


def report(attempts: list[Attempt]) -> int:
    """Print everything once more, at the end."""
    harms = sum(len(attempt.harms) for attempt in attempts)
    print("\nattack              time  counts")
    for attempt in attempts:
        print(attempt.summary())
    print(f"\n{harms} harms" if harms else "\nno harm")
    return 1 if harms else 0


if __name__ == "__main__":
    sys.exit(main())
