"""How much CPU time other processes use during a measurement."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)  # idle, iowait
_COUNTED = 8  # user to steal; the fields after these are included in them


DISTURBING = 0.05
"""A share of the CPUs that is more than the system's background work."""


class Neighbours:
    """Watches the CPUs from its creation on."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._others = _busy_seconds() - _own_seconds()

    def share(self) -> float:
        """The share of all CPU time used by other processes since then, from 0 to 1."""
        passed = (time.perf_counter() - self._start) * (os.cpu_count() or 1)
        others = _busy_seconds() - _own_seconds() - self._others
        return min(max(others / passed, 0.0), 1.0)


def wait_for_quiet(at_most: float) -> None:
    """Wait until other processes have been idle for a second, at most this many seconds."""
    deadline = time.perf_counter() + at_most
    while time.perf_counter() < deadline:
        neighbours = Neighbours()
        time.sleep(1)
        if neighbours.share() < DISTURBING:
            return


def _busy_seconds() -> float:
    """Seconds that the CPUs were busy, or taken away by a hypervisor."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1 : 1 + _COUNTED]
    return sum(int(n) for i, n in enumerate(fields) if i not in _IDLE) / _TICKS


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
