"""The sentence that names the bottleneck."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._runtime.profile import profile

_LITTLE = 0.1
"""A loop that waits for less than this part of the time is not slowed down by its data."""
_BUSY = 0.7
_STARVED = 0.5
"""Operators compute; if they have a CPU for less than this part of their time, it is taken."""


def sentence(recorded: profile) -> str:
    """What limits the speed, and what takes the workers' time."""
    operators = recorded.operators
    if not operators:
        return "No operator or reader ran while the profile was recorded."
    duration = max(recorded.duration, 1e-9)
    waited = recorded.wait_time / duration
    batches = recorded.batches
    per_batch = f", {_time(recorded.wait_time / batches)} per batch" if batches else ""
    waits = f"the loop waited for {_percent(waited)} of the time{per_batch}"
    computing = [row for row in operators if not row.is_reader]
    reading = sum(row.wall_time for row in operators if row.is_reader)
    work = sum(row.wall_time for row in computing)
    share = ""
    if computing and work > 0:
        share = (
            f"; {computing[0].name} takes {_percent(computing[0].wall_time / work)} of their time"
        )
    use = recorded.worker_use
    busy = f"worker threads were busy for {_percent(use)}"
    if waited < _LITTLE:
        return f"The loop's own code is the bottleneck: {waits}; {busy}{share}."
    if use >= _BUSY:
        return f"Computing is the bottleneck: {waits}, and the {busy}{share}."
    cpu = sum(row.cpu_time for row in computing) / max(work, 1e-9)
    if computing and cpu < _STARVED:
        return (
            f"The CPUs are overloaded: {waits}, and operators had a CPU for only {_percent(cpu)} "
            "of their time. Other processes use the CPUs, there are more threads than CPUs, or "
            "Python functions wait."
        )
    if reading >= _BUSY * duration and reading > work:
        reader = next(row for row in operators if row.is_reader)
        each = _time(reader.wall_time / max(reader.samples, 1))
        return (
            f"Reading is the bottleneck: {waits}, while the {busy}; {reader.name} needs {each} per "
            "sample."
        )
    return (
        f"Work and loop take turns instead of overlapping: {waits}, but the {busy}{share}. Ask for "
        "batches earlier, for instance with `prefetch`."
    )


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} µs"
