"""Results for people: a line per case while they run, a page at the end."""

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

Both libraries run in one process and alternate. Their results are compared first, then they are
timed, after a warm-up. A time is the median over all rounds, with the best round in parentheses.
The ratio is DALI's time divided by penstock's: the median over pairs of neighbouring rounds,
followed by the middle half of them. Above 1 penstock is faster, below 1 DALI is. DALI runs on the
CPU, as penstock does; none of this says anything about DALI on a GPU.
"""

HEAD = """\
| | penstock | {rival} | ratio | middle half |
|---|--:|--:|--:|--:|
"""


class Section(NamedTuple):
    """The results of a family."""

    family: Family
    outcomes: Sequence[Outcome]
    facts: Sequence[str]


def line(outcome: Outcome) -> str:
    """An outcome for the terminal."""
    low, high = outcome.spread
    return (
        f"{outcome.name:<36} {_times(outcome.ours):>20} {_times(outcome.dali):>20} "
        f"{outcome.ratio:>8.2f}x ({low:.2f} to {high:.2f}){_noise(outcome)}"
    )


def page(sections: Iterable[Section], setup: Sequence[str], command: str) -> str:
    """The page of documentation that `command` writes."""
    parts = [INTRODUCTION.format(command=command), "".join(f"- {text}\n" for text in setup)]
    return "\n".join([*parts, *(_section(section) for section in sections)])


def updated(page: str, sections: Iterable[Section], setup: Sequence[str], titles: list[str]) -> str:
    """The page with new results of some families; `titles` are those of all, in order.

    Raises:
        ValueError: If the page's other results are from another machine or other versions.
    """
    introduction, *others = page.split("\n## ")
    missing = [text for text in setup if f"- {text}\n" not in f"{introduction}\n"]
    if missing:
        raise ValueError(f"the page's results are from another setup, not {', '.join(missing)}")
    texts = {text.split("\n", 1)[0]: f"## {text}" for text in others}
    texts |= {section.family.title: _section(section).rstrip("\n") for section in sections}
    kept = [texts[title].rstrip("\n") for title in titles if title in texts]
    return "\n\n".join([introduction.rstrip("\n"), *kept]) + "\n"


def _section(section: Section) -> str:
    family, outcomes, facts = section
    rows = "".join(_row(outcome) for outcome in outcomes)
    parts = [
        f"## {family.title}\n\n{family.about.strip()}\n",
        HEAD.format(rival=family.rival) + rows,
        *(f"{fact}\n" for fact in (*facts, _quiet(outcomes))),
    ]
    return "\n".join(parts)


def setup(pair: Pair) -> list[str]:
    """The machine, the versions and the number of threads."""
    return [
        f"machine: {_processor()}, {len(os.sched_getaffinity(0))} CPUs, "
        f"{platform.system()} {platform.release().partition('-')[0]}",
        f"versions: Python {platform.python_version()}, NumPy {np.__version__}, "
        + ", ".join(f"{side.name} {side.version}" for side in pair),
        f"worker threads: {pair.ours.threads} for each library",
    ]


def _row(outcome: Outcome) -> str:
    low, high = outcome.spread
    _, *parts = outcome.name.split("/", 2)  # an operator may be called "/"
    name = ": ".join(parts) + " \\*" * outcome.is_disturbed
    return (
        f"| {name} | {_times(outcome.ours)} | {_times(outcome.dali)} "
        f"| **{outcome.ratio:.2f}** | {low:.2f} to {high:.2f} |\n"
    )


def _noise(outcome: Outcome) -> str:
    if not outcome.is_disturbed:
        return ""
    return f"  other processes used {outcome.disturbance:.0%} of the CPUs"


def _quiet(outcomes: Sequence[Outcome]) -> str:
    most = max(outcome.disturbance for outcome in outcomes)
    text = f"Other processes used at most {most:.0%} of the CPUs meanwhile."
    disturbed = any(outcome.is_disturbed for outcome in outcomes)
    return text + " \\* marks cases that were disturbed by them." * disturbed


def _times(seconds: Sequence[float]) -> str:
    return f"{_duration(statistics.median(seconds))} ({_duration(min(seconds))})"


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _processor() -> str:
    """The processor's name, where the system provides it."""
    try:
        for text in Path("/proc/cpuinfo").read_text().splitlines():
            if text.startswith("model name"):
                return text.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
