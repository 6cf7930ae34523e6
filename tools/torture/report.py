"""Time budgets and findings of attacks."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from pathlib import Path

from .child import Child

SHOWN = 12
"""The number of findings printed per attack; all are saved."""


class Attempt:
    """One run of an attack: its budget, counts and findings."""

    def __init__(self, name: str, seconds: float, seed: int, keep: Path) -> None:
        self.name, self.seconds, self.seed, self.keep = name, seconds, seed, keep
        self.began = time.monotonic()
        self.deadline = self.began + seconds
        self.counts: Counter[str] = Counter()
        self.harms: list[str] = []
        self._took: float | None = None

    def left(self) -> float:
        """Remaining seconds."""
        return self.deadline - time.monotonic()

    def harm(
        self, what: str, replay: str, data: bytes | None = None, details: str = "", name: str = ""
    ) -> None:
        """Record a finding and save its input."""
        kept = self.path(name or f"{len(self.harms):03d}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{kept}.txt").write_text(f"{what}\n\nreplay: {replay}\n\n{details}\n")
        if data is not None:
            kept.write_bytes(data)
        self.counts["harm"] += 1
        self.harms.append(f"{what}\n    replay: {replay}")
        # A few of a kind are enough.
        if len(self.harms) <= SHOWN:
            print(f"  HARM {self.name}: {what}\n    replay: {replay}", flush=True)

    def path(self, stem: str) -> Path:
        """The path of a saved harmful input; a text file beside it describes the outcome."""
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem)
        return self.keep / self.name.replace(", ", "-").replace(" ", "-") / safe

    def watch(self, child: Child, silence: float, *, name: str = "", replay: str = "") -> bool:
        """Follow a child that reports counts and findings; returns whether it succeeded.

        Its lines are `count WORD [NUMBER]` and `harm TEXT`; any other is a sign of life.
        """
        replay = replay or command(child)
        well = True
        for line in child.lines(silence, self.deadline + silence):
            word, _, rest = line.partition(" ")
            if word == "count":
                what, _, number = rest.partition(" ")
                self.counts[what] += int(number or 1)
            elif word == "harm":
                well = False
                self.harm(rest, replay, name=name)
        how = child.harm(silence)
        if how is not None:
            self.harm(how, replay, details=child.errors(), name=name)
        return well and how is None

    @property
    def took(self) -> float:
        """The duration in seconds."""
        if self._took is None:
            self._took = time.monotonic() - self.began
        return self._took

    def summary(self) -> str:
        """A line of the report."""
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        return f"{self.name:<16} {self.took:5.0f} s  {counts or 'nothing done'}"


def command(child: Child, **environment: str) -> str:
    """The command that runs a child again, without its limits."""
    names = [f"{name}={value}" for name, value in environment.items()]
    return shlex.join([*names, *child.command])
