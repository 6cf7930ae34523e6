"""What the cases gave, for people: a line while they run, a page when they are done."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Family, Outcome, Pair

INTRODUCTION = """\
# Benchmarks

Written by `{command}`; don't edit.

Both contenders run in one process and take turns. First their results are compared, then they are
timed. A time is the median over the rounds, with the best one in brackets. A ratio says how many
times longer the original takes, as the median of the ratios of neighbouring turns, followed by the
middle half of them; below 1 penstock is the slower one.
"""

HEAD = """\
| | penstock | the original | ratio | middle half | target |
|---|--:|--:|--:|--:|---|
"""


class Section(NamedTuple):
    """What a family gave."""

    family: Family
    outcomes: Sequence[Outcome]
    facts: Sequence[str]


def line(outcome: Outcome) -> str:
    """An outcome for the terminal."""
    low, high = outcome.spread
    return (
        f"{outcome.name:<36} {_times(outcome.ours):>20} {_times(outcome.original):>20} "
        f"{outcome.ratio:>8.2f}x ({low:.2f} to {high:.2f})  {_target(outcome)}{_noise(outcome)}"
    ).rstrip()


def page(sections: Iterable[Section], surroundings: Sequence[str], command: str) -> str:
    """The page of documentation that `command` writes."""
    parts = [INTRODUCTION.format(command=command), "".join(f"- {text}\n" for text in surroundings)]
    for family, outcomes, facts in sections:
        rows = "".join(_row(outcome) for outcome in outcomes)
        parts += [f"## {family.name}\n\n{family.about.strip()}\n", HEAD + rows]
        parts += [f"{fact}\n" for fact in (*facts, _quiet(outcomes))]
    return "\n".join(parts)


def surroundings(pair: Pair, threads: int) -> list[str]:
    """The machine, the versions and the number of threads."""
    return [
        f"machine: {_processor()}, {len(os.sched_getaffinity(0))} CPUs, "
        f"{platform.system()} {platform.release()}",
        f"versions: Python {platform.python_version()}, NumPy {np.__version__}, "
        + ", ".join(f"{side.name} {side.version}" for side in pair),
        f"threads: {threads} on both sides",
    ]


def _row(outcome: Outcome) -> str:
    low, high = outcome.spread
    name = outcome.name.split("/", 1)[1].replace("/", ": ") + " \\*" * outcome.is_disturbed
    return (
        f"| {name} | {_times(outcome.ours)} | {_times(outcome.original)} "
        f"| **{outcome.ratio:.2f}** | {low:.2f} to {high:.2f} | {_target(outcome)} |\n"
    )


def _noise(outcome: Outcome) -> str:
    if not outcome.is_disturbed:
        return ""
    return f"  others had {outcome.disturbance:.0%} of the CPUs"


def _quiet(outcomes: Sequence[Outcome]) -> str:
    most = max(outcome.disturbance for outcome in outcomes)
    text = f"Other processes had at most {most:.0%} of the CPUs meanwhile."
    disturbed = any(outcome.is_disturbed for outcome in outcomes)
    return text + " \\* marks the cases that they disturbed." * disturbed


def _target(outcome: Outcome) -> str:
    wanted = []
    if outcome.target.seconds is not None:
        wanted.append(f"at most {_duration(outcome.target.seconds)}")
    if outcome.target.ratio is not None:
        wanted.append(f"ratio {outcome.target.ratio:g}")
    if not wanted:
        return ""
    return f"{', '.join(wanted)}: {'met' if outcome.is_met else 'MISSED'}"


def _times(seconds: Sequence[float]) -> str:
    return f"{_duration(statistics.median(seconds))} ({_duration(min(seconds))})"


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        for text in Path("/proc/cpuinfo").read_text().splitlines():
            if text.startswith("model name"):
                return text.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
