"""profile: what took how long, and what to do about it."""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import public

if TYPE_CHECKING:
    from penstock._core import RunAheadCounts, ThreadProfile, Total
    from penstock._state.run_ahead import Stats

__all__ = ["OperatorProfile", "profile"]


@dataclass
class OperatorProfile:
    """What one operator or reader did. Times are in seconds, over all threads."""

    name: str
    calls: int = 0
    samples: int = 0
    bytes: int = 0
    """Bytes of results."""
    wall_time: float = 0.0
    cpu_time: float = 0.0
    """The CPU time of the same work: less than the wall time if it waited for files, or if there
    are more threads than CPUs."""
    wait_time: float = 0.0
    """How long the program waited for results of this operator."""
    lines: list[str] = field(default_factory=list)
    """The lines that called it."""
    ahead: int = 0
    """Calls that a loop had run ahead: the program got their results when it made them."""

    @property
    def is_reader(self) -> bool:
        """Whether it is a reader, which has threads of its own."""
        return self.name.startswith("readers.")


@public
class profile:
    """Measure what operators and readers do inside a `with` block.

        with ndd.profile() as p:
            for jpegs, labels in reader.next_epoch(batch_size=64):
                ...
        print(p)
        p.save_trace("trace.json")

    The whole process is measured, and only one profile can be recorded at a time. Printed, a
    profile is a table of operators, with a sentence about the bottleneck.

    Args:
        progress: A function that is called with the profile every now and then, on a thread of its
            own, while the block runs.
        interval: Seconds between these calls.

    Example:
        >>> with ndd.profile() as p:
        ...     _ = ndd.flip(ndd.batch([[[[1], [2]]]] * 4, layout="HWC")).evaluate()
        >>> [(operator.name, operator.samples) for operator in p.operators]
        [('flip', 4)]
    """

    def __init__(
        self, progress: Callable[[profile], object] | None = None, interval: float = 1.0
    ) -> None:
        if progress is not None and not callable(progress):
            raise messages.wrong_argument("profile", "progress", progress, "a function")
        if not interval > 0:
            raise ValueError(f"profile: `interval` must be greater than 0, got {interval}.")
        self._progress = progress
        self._interval = interval
        self._ticker: _Ticker | None = None
        self._begin = self._end = 0
        self._running = False
        self._threads: list[ThreadProfile] = []
        self._workers = 0
        self._ahead_begin: RunAheadCounts = ((0, 0, 0), [])
        self._ahead_end = self._ahead_begin

    def __enter__(self) -> profile:
        from penstock._runtime.threads import get_num_threads

        if not _core.profile_start():
            raise RuntimeError("profile: another profile is being recorded; end that one first.")
        self._workers = get_num_threads()
        self._threads = []
        self._running = True
        self._ahead_begin = _core.run_ahead_stats()
        self._begin = _core.profile_clock()
        if self._progress is not None:
            self._ticker = _Ticker(self, self._progress, self._interval)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end = _core.profile_clock()
        self._running = False
        self._threads = _core.profile_stop()
        self._ahead_end = _core.run_ahead_stats()
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.stop()
            if ticker.error is not None and exc_value is None:
                raise ticker.error

    @property
    def duration(self) -> float:
        """Seconds in the block, so far or until its end."""
        end = _core.profile_clock() if self._running else self._end
        return (end - self._begin) / 1e9

    @property
    def operators(self) -> list[OperatorProfile]:
        """Operators and readers, the one that took longest first."""
        found: dict[str, OperatorProfile] = {}
        for _, totals, _, _ in self._recorded():
            for kind, name, site, calls, samples, size, wall, cpu in totals:
                if kind == "full" or not name:
                    continue
                row = found.setdefault(name, OperatorProfile(name))
                if kind == "wait":
                    row.wait_time += wall / 1e9
                    continue
                if kind == "ahead":
                    row.ahead += calls
                    continue
                row.calls += calls
                row.samples += samples
                row.bytes += size
                row.wall_time += wall / 1e9
                row.cpu_time += cpu / 1e9
                line = _line(site)
                if line and line not in row.lines:
                    row.lines.append(line)
        return sorted(found.values(), key=lambda row: -row.wall_time)

    @property
    def wait_time(self) -> float:
        """Seconds that the program waited, for results or because too much work was in flight."""
        return _seconds(self._loop(), "wait", "full")

    @property
    def batches(self) -> int:
        """How often the loop ran, judging by how often each of its lines called an operator."""
        calls: dict[tuple[str, int], int] = {}
        for _, totals, _, _ in self._recorded():
            for kind, name, site, count, *_ in totals:
                if kind == "task":
                    calls[name, site] = calls.get((name, site), 0) + count
        return statistics.median_low(calls.values()) if calls else 0

    @property
    def worker_use(self) -> float:
        """The part of the time that worker threads computed, from 0 to 1."""
        work = sum(_seconds(totals, "task", readers=False) for totals in self._worker_totals())
        return min(1.0, work / max(self._workers * self.duration, 1e-9))

    @property
    def run_ahead(self) -> Stats:
        """What loops ran ahead: calls predicted, used and dropped, and why others were not."""
        from penstock._state.run_ahead import between

        end = _core.run_ahead_stats() if self._running else self._ahead_end
        return between(self._ahead_begin, end)

    @property
    def bottleneck(self) -> str:
        """What limits the speed, in a sentence."""
        from penstock._profile.bottleneck import sentence

        return sentence(self)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Save what ran when on which thread, for https://ui.perfetto.dev or chrome://tracing.

        Args:
            path: The name of the file; one that ends with ".gz" is compressed.
        """
        from penstock._profile.trace import save

        if self._running:
            raise RuntimeError("profile: save the trace after the `with` block.")
        save(path, self._threads, self._begin, _line)

    def __str__(self) -> str:
        from penstock._profile.table import table

        return table(self)

    def __repr__(self) -> str:
        state = "recording" if self._running else f"{self.duration:.2f} s"
        return f"<profile: {state}, {len(self.operators)} operators>"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def _recorded(self) -> list[ThreadProfile]:
        return _core.profile_peek() if self._running else self._threads

    def _loop(self) -> list[Total]:
        """The totals of the thread that runs the program's loop: the one that began the profile,
        unless another one has more to do with it.
        """
        totals = [totals for is_worker, totals, _, _ in self._recorded() if not is_worker]
        return max(totals, key=lambda found: _seconds(found, "wait", "full"), default=[])

    def _worker_totals(self) -> Iterable[list[Total]]:
        return [totals for is_worker, totals, _, _ in self._recorded() if is_worker]


class _Ticker:
    """Calls a function every now and then until it is stopped, or raises."""

    def __init__(
        self, owner: profile, function: Callable[[profile], object], interval: float
    ) -> None:
        self.error: BaseException | None = None
        self._done = threading.Event()
        arguments = (owner, function, interval)
        self._thread = threading.Thread(
            target=self._run, args=arguments, name="penstock-profile", daemon=True
        )
        self._thread.start()

    def _run(self, owner: profile, function: Callable[[profile], object], interval: float) -> None:
        while not self._done.wait(interval):
            try:
                function(owner)
            except Exception as error:
                self.error = error
                return

    def stop(self) -> None:
        self._done.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()


def _seconds(totals: Iterable[Total], *kinds: str, readers: bool = True) -> float:
    """The time of the notes of these kinds."""
    chosen = (
        wall
        for kind, name, _, _, _, _, wall, _ in totals
        if kind in kinds and (readers or not name.startswith("readers."))
    )
    return sum(chosen) / 1e9


def _line(site: int) -> str:
    """The user's line, such as `train.py:38`."""
    from penstock._operators import call_sites

    path: Any = call_sites.find(site)
    return f"{os.path.basename(path[-1].file)}:{path[-1].line}" if path else ""
