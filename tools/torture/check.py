"""Reads the files of the corpus, each with limits on memory and time.

python -m tools.torture.check NAMES...     # one after another, in this process, without limits
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .child import Child, say
from .corpus import MAKERS

MEMORY = 2 << 30
"""Bytes of address space; enough for files of a few kilobytes."""
RESIDENT = 1 << 30
POISONS = (0x5A, 0xA5)
SECONDS = 20.0
"""Seconds for one file, which usually takes a few milliseconds."""


def check(names: Iterable[str], seconds: float = SECONDS) -> dict[str, str]:
    """The problems by file name; empty if there are none.

    One process reads them all; when it dies, another one goes on with the next.
    """
    left, wrong = list(names), {}
    while left:
        with Child("check", *left, memory=MEMORY) as child:
            current = None
            for line in child.lines(seconds):
                word, _, rest = line.partition(" ")
                if word == "begin":
                    current = rest
                elif word == "end":
                    name, _, problem = rest.partition(" ")
                    left.remove(name)
                    current = None
                    if problem:
                        wrong[name] = problem
            how = child.harm(seconds)
            if how is None:
                if left:
                    wrong[left.pop(0)] = "was not read"
                continue
            name = current or left[0]
            left.remove(name)
            reason = [line for line in child.errors().splitlines() if line.strip()]
            wrong[name] = f"{how}: {reason[0] if reason else ''}"
    return wrong


def read_all(names: list[str]) -> int:
    """The main function of a separate process."""
    from . import consume

    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(names):
            attack = MAKERS[name]()
            path = Path(folder, str(number), "data.mdb")
            path.parent.mkdir()
            path.write_bytes(attack.data)
            if attack.size:
                with path.open("r+b") as file:
                    file.truncate(attack.size)
            before = peak()
            say("begin", name)
            outcome, again = (read_poisoned(consume, attack.kind, path, p) for p in POISONS)
            path.unlink()
            problems = [*dict.fromkeys(outcome.harm)]
            if outcome.digest.digest() != again.digest.digest():
                problems.append("shows memory that was not written")
            if attack.error and not outcome.refused:
                problems.append("was not refused: " + json.dumps(outcome.counts))
            if peak() > max(before, RESIDENT):
                problems.append(f"took {peak() >> 20} MB")
            say("end", name, "; ".join(problems))
    return 0


def read_poisoned(consume: Any, kind: str, path: Path, poison: int) -> Any:
    """Read a file after filling memory with a value."""
    consume.POISON = poison
    return consume.read(kind, path)


def peak() -> int:
    """The peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def report_one(name: str) -> int:
    """Read one file and print problems."""
    problem = check([name]).get(name)
    print(f"{name}: {problem or 'well'}")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(read_all(sys.argv[1:]))
