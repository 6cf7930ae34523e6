"""Damaged files with the public API, on memory filled with known values.

python -m tools.torture.mutants SEED ROUND [NAMES [FIRST]]     # reads some in this process
"""

from __future__ import annotations

import resource
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
from tests.mutations import mutate

from .child import Child, say
from .report import Attempt
from .seeds import Seed, seeds

EACH = 20
"""Files of each kind per round."""
SILENCE = 20.0
MEMORY = 6 << 30
RESIDENT = 1200 << 20
PIXELS = 1 << 22
POISONS = ("90", "165")


def mutant(name: str, seed: int, round: int, number: int) -> bytes:
    """A damaged file; deterministic."""
    known = list(seeds()).index(name)
    return mutate(seeds()[name].data, np.random.default_rng([seed, round, known, number]))


def attack(attempt: Attempt, wanted: list[str]) -> None:
    """Read damaged files until the time is over, each on memory filled with two values."""
    round = 0
    while attempt.left() > 0:
        digests: list[dict[tuple[str, int], str]] = []
        for poison in POISONS:
            digests.append(one_round(attempt, round, wanted, poison))
        for key in digests[0].keys() & digests[1].keys():
            if digests[0][key] != digests[1][key]:
                note(attempt, round, key, "shows memory that was not written", *POISONS)
        round += 1


def one_round(
    attempt: Attempt, round: int, wanted: list[str], poison: str
) -> dict[tuple[str, int], str]:
    """Some files of all kinds; a process that dies is replaced by one that continues."""
    digests: dict[tuple[str, int], str] = {}
    left = [(name, number) for name in wanted for number in range(EACH)]
    while left and attempt.left() > 0:
        _, first = left[0]
        environment = {
            "PENSTOCK_TORTURE_POISON": poison,
            "MALLOC_PERTURB_": poison,
            "PENSTOCK_MAX_PIXELS": str(PIXELS),
        }
        names = ",".join(dict.fromkeys(name for name, _ in left))
        arguments = (attempt.seed, round, names, first)
        with Child("mutants", *arguments, memory=MEMORY, environment=environment) as child:
            current = left[0]
            for line in child.lines(SILENCE, attempt.deadline + SILENCE):
                word, key, number, *rest = line.split("\t")
                current = (key, int(number))
                if word == "begin":
                    left = left[left.index(current) :]
                elif word == "end":
                    left.pop(0)
                    digest, counts, harms = rest
                    digests[current] = digest
                    attempt.counts["files"] += 1
                    for count in counts.split():
                        kind, _, number = count.partition("=")
                        attempt.counts[kind] += int(number)
                    for harm in filter(None, harms.split("; ")):
                        note(attempt, round, current, harm, poison)
            how = child.harm(SILENCE)
            if how is not None:
                note(attempt, round, current, how, poison, details=child.errors())
                left = left[left.index(current) + 1 :] if current in left else left[1:]
            elif child.process.returncode == 0 and attempt.left() <= 0:
                break
    return digests


def note(
    attempt: Attempt, round: int, key: tuple[str, int], harm: str, *poisons: str, details: str = ""
) -> None:
    """Keep a harmful file."""
    name, number = key
    stem = f"{name}-{attempt.seed}-{round}-{number}"
    data = mutant(name, attempt.seed, round, number)
    attempt.harm(f"{name}: {harm}", replay(attempt, name, stem, *poisons), data, details, stem)


def replay(attempt: Attempt, name: str, stem: str, *poisons: str) -> str:
    """The command for one file; for both fill values, if there are two to compare."""
    kept = attempt.path(stem)
    one = shlex.join([sys.executable, "-m", "tools.torture.consume", seeds()[name].way, str(kept)])
    return " ; ".join(
        f"PENSTOCK_MAX_PIXELS={PIXELS} PENSTOCK_TORTURE_POISON={poison} MALLOC_PERTURB_={poison} "
        f"{one}"
        for poison in poisons
    )


def read_some(seed: int, round: int, names: str, first: str) -> int:
    """The main function of a separate process; the first of the names starts at `first`."""
    from .consume import read

    wanted = names.split(",") if names else list(seeds())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.mdb")
        for place, name in enumerate(wanted):
            known: Seed = seeds()[name]
            for number in range(int(first or 0) if place == 0 else 0, EACH):
                path.write_bytes(mutant(name, seed, round, number))
                say("begin", name, number, sep="\t")
                before = peak()
                outcome = read(known.way, path)
                harms = [*dict.fromkeys(outcome.harm)]
                if peak() > max(before, RESIDENT):
                    harms.append(f"took {peak() >> 20} MB")
                counts = " ".join(f"{kind}={count}" for kind, count in outcome.counts.items())
                text = "; ".join(harms).replace("\t", " ")
                say("end", name, number, outcome.digest.hexdigest(), counts, text, sep="\t")
    return 0


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    given = [*sys.argv[1:], *["", ""]][:4]
    sys.exit(read_some(int(given[0]), int(given[1]), given[2], given[3]))
