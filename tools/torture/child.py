"""Separate processes with limits, whose output is followed line by line."""

from __future__ import annotations

import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Child:
    """A module of this package, run as a program, with arguments.

    `memory` bounds its address space in bytes. What it says is read by `lines`.
    """

    def __init__(
        self,
        module: str,
        *arguments: object,
        memory: int | None = None,
        environment: dict[str, str] | None = None,
        files: int | None = None,
        interpreter: tuple[str, ...] = ("-X", "faulthandler"),
    ) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        command = [sys.executable, *interpreter, "-m", f"tools.torture.{module}"]
        self.command = [*command, *map(str, arguments)]
        paths = [str(ROOT / "python"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=limit,
            start_new_session=True,
        )
        self.hung = False
        self._said: queue.Queue[str | None] = queue.Queue()
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._listen_to_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line.rstrip("\n"))
        self._said.put(None)

    def _listen_to_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line)
            del self._errors[:-200]

    def lines(self, silence: float, deadline: float | None = None) -> Iterator[str]:
        """Its output, until it exits or has been silent for too long.

        At the `deadline` (of `time.monotonic`) it is told to end, which is no harm.
        """
        while True:
            wait = silence
            if deadline is not None:
                wait = min(wait, max(0.0, deadline - time.monotonic()))
            try:
                line = self._said.get(timeout=wait)
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    self.end()
                    self.process.returncode = 0
                    return
                self.hung = True
                self.process.send_signal(signal.SIGABRT)  # faulthandler prints where it is
                time.sleep(0.5)
                self.end()
                return
            if line is None:
                self.process.wait()
                return
            yield line

    def end(self) -> None:
        """Kill it and all processes that it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()
        for thread in self._threads:
            thread.join(1)
        for pipe in (self.process.stdout, self.process.stderr):
            # A surviving grandchild could hold the other end; then the listener is abandoned.
            if pipe is not None and not any(thread.is_alive() for thread in self._threads):
                pipe.close()

    def errors(self) -> str:
        """The last part of its stderr."""
        self._threads[1].join(1)
        return "".join(self._errors)[-6000:]

    def harm(self, silence: float) -> str | None:
        """How it ended, unless successfully."""
        if self.hung:
            return f"said nothing for {silence:.0f} s"
        code = self.process.returncode
        if code == 0:
            return None
        return f"died by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def say(*words: Any, sep: str = " ") -> None:
    """Print a line to the parent, atomically with respect to threads and forked children."""
    os.write(1, (sep.join(map(str, words)).replace("\n", " ") + "\n").encode())
