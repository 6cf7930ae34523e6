"""Output: problems, tables, sizes and progress bars."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from types import TracebackType


class Problem(Exception):
    """Something that keeps a command from doing its work, in one line for the user."""


class Progress:
    """A progress bar on the terminal; nothing where the output is not a terminal."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._done = 0
        self._shown = 0.0
        self._is_terminal = sys.stderr.isatty()

    def advance(self, steps: int = 1) -> None:
        """Some more is done."""
        self._done += steps
        now = time.monotonic()
        if now - self._shown > 0.1:
            self._shown = now
            self._show()

    def _show(self) -> None:
        if self._is_terminal:
            part = min(self._done / max(self._total, 1), 1.0)
            width = max(10, min(40, shutil.get_terminal_size().columns - len(self._title) - 20))
            bar = "#" * int(part * width)
            text = f"\r{self._title} [{bar:<{width}}] {100 * part:3.0f} %"
            print(text, end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        self._show()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns of text; those numbered in `right` are aligned to the right."""
    columns = range(max(map(len, rows), default=0))
    widths = [max(len(row[column]) for row in rows) for column in columns]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def size(count: float) -> str:
    """A number of bytes, for people."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
