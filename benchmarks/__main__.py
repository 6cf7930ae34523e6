"""Benchmark penstock against DALI: `make bench ARGS="--help"`."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import shlex
import sys
from pathlib import Path

import penstock
from benchmarks import (
    audio,
    audio_effects,
    augmentation,
    calls,
    color,
    decoding,
    detection,
    end_to_end,
    images,
    large,
    operators,
    reading,
    report,
    resize,
    start_up,
    tables,
    video,
    warp,
)
from benchmarks.harness import Contender, Pair, run

FAMILIES = (
    end_to_end.FAMILY,
    reading.FAMILY,
    tables.FAMILY,
    decoding.FAMILY,
    resize.FAMILY,
    warp.FAMILY,
    images.FAMILY,
    color.FAMILY,
    detection.FAMILY,
    augmentation.FAMILY,
    audio.FAMILY,
    audio.TORCH,
    audio.DECODING,
    audio.SOUNDFILE,
    audio_effects.FAMILY,
    video.FAMILY,
    *video.RIVAL_FAMILIES,
    operators.FAMILY,
    large.FAMILY,
    calls.FAMILY,
    start_up.FAMILY,
)
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def main() -> None:
    options = _parse()
    # The page has whole families.
    matches = _is_of_family if options.write else _matches
    chosen = [
        (family, [case for case in family.cases() if matches(case.name, options.names)])
        for family in FAMILIES
    ]
    if options.list:
        print(*(case.name for _, cases in chosen for case in cases), sep="\n")
        return
    pair = _contenders(options.threads)
    for side in pair:
        side.library.set_num_threads(options.threads)
    command = _command(sys.argv[1:])
    setup = report.setup(pair)
    print(*setup, f"command: `{command}`", sep="\n", end="\n\n")
    sections = []
    for family, cases in chosen:
        if not cases:
            continue
        outcomes = []
        for case in cases:
            outcomes.append(run(case, pair, most=options.rounds, quick=options.quick))
            print(report.line(outcomes[-1]), flush=True)
        facts = list(family.facts(pair))
        print(*facts, sep="\n")
        sections.append(report.Section(family, outcomes, facts))
    if options.write and options.names:
        titles = [family.title for family in FAMILIES]
        page = report.updated(PAGE.read_text(encoding="utf-8"), sections, setup, titles)
        PAGE.write_text(page, encoding="utf-8")
    elif options.write:
        setup.append(f"command: `{command}`")
        PAGE.write_text(report.page(sections, setup, command), encoding="utf-8")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="run only cases whose names contain one of these")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and exit")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds, to check that everything runs"
    )
    parser.add_argument("--rounds", type=int, default=21, help="at most so many rounds (21)")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write docs/benchmarks.md, or only the sections of the families that are named",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="worker threads of each library; all usable CPUs by default",
    )
    options = parser.parse_args()
    if options.write and options.quick:
        parser.error("--write needs all rounds: omit --quick")
    unknown = set(options.names) - {family.name for family in FAMILIES}
    if options.write and unknown:
        known = ", ".join(family.name for family in FAMILIES)
        parser.error(f"--write takes names of families: {known}; not {', '.join(sorted(unknown))}")
    return options


def _contenders(threads: int) -> Pair:
    dali = importlib.import_module("nvidia.dali.experimental.dynamic")
    version = next(
        distribution.version
        for distribution in importlib.metadata.distributions()
        if distribution.name.startswith("nvidia-dali-")
    )
    return Pair(
        ours=Contender("penstock", penstock, penstock.__version__, threads),
        dali=Contender("DALI", dali, version, threads),
    )


def _matches(name: str, wanted: list[str]) -> bool:
    return not wanted or any(part in name for part in wanted)


def _is_of_family(name: str, wanted: list[str]) -> bool:
    return not wanted or name.split("/", 1)[0] in wanted


def _command(arguments: list[str]) -> str:
    return f'make bench ARGS="{shlex.join(arguments)}"' if arguments else "make bench"


if __name__ == "__main__":
    main()
