"""Traces in the JSON format of Chrome, which Perfetto reads as well."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock._core import ThreadProfile, Total

_WAITS = {"wait": "wait", "full": "wait: too much work in flight"}


def save(
    path: str | os.PathLike[str],
    threads: list[ThreadProfile],
    begin: int,
    line: Callable[[int], str],
) -> None:
    """Write a trace; times are relative to `begin`, in nanoseconds."""
    file: IO[str]
    with (
        gzip.open(path, "wt", encoding="utf-8")
        if os.fspath(path).endswith(".gz")
        else open(path, "w", encoding="utf-8")
    ) as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[')
        separator = "\n"
        for event in _events(threads, begin, line):
            file.write(separator + json.dumps(event, separators=(",", ":")))
            separator = ",\n"
        file.write("\n]}\n")


def _events(
    threads: list[ThreadProfile], begin: int, line: Callable[[int], str]
) -> Iterator[dict[str, Any]]:
    process = os.getpid()
    lines: dict[int, str] = {}
    for number, (is_worker, totals, notes, dropped) in enumerate(threads):
        base = {"pid": process, "tid": number}
        name = _thread_name(is_worker, totals)
        if dropped:
            name += f" ({dropped:,} later events are missing)"
        yield {**base, "ph": "M", "name": "thread_name", "args": {"name": f"{name} {number}"}}
        for place in range(len(notes)):
            kind, operator, site, sample, samples, start, end, size = notes[place]
            event = {
                **base,
                "ph": "X",
                "ts": (start - begin) / 1e3,
                "dur": (end - start) / 1e3,
                "cat": kind,
            }
            if kind == "task":
                if site not in lines:
                    lines[site] = line(site)
                about = {"sample": sample, "samples": samples, "bytes": size, "line": lines[site]}
                yield {**event, "name": operator, "args": about}
            else:
                what = f"{_WAITS[kind]} for {operator}" if operator else _WAITS[kind]
                yield {**event, "name": what}


def _thread_name(is_worker: bool, totals: list[Total]) -> str:
    if not is_worker:
        return "program"
    reads = all(name.startswith("readers.") for _, name, *_ in totals)
    return "reading" if reads else "worker"
