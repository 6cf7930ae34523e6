"""Lines of the user's program, by number: small enough to travel with every call."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import warnings
from types import FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Site(NamedTuple):
    """A line that calls us."""

    file: str
    line: int
    function: str

    def text(self) -> str:
        """The line itself, where its file can be read."""
        return linecache.getline(self.file, self.line).strip()


def is_inside(file: str) -> bool:
    """Whether a file of code is of this package."""
    return file.startswith(_PACKAGE)


def here() -> int:
    """The number of the line outside of this package that led to this call."""
    frame = _outside()
    code = frame.f_code
    key = (code.co_filename, frame.f_lineno, code.co_name)
    number = _numbers.get(key)
    return number if number is not None else _add(key)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line outside of this package that led to this call, however far away it is."""
    frame = _outside()
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _outside() -> FrameType:
    """The innermost frame that is not of this package."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(_PACKAGE):
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
    return frame


def find(number: int) -> Site:
    """The line of a number."""
    return _sites[number]


def after_fork() -> None:
    """In a forked child: another thread of the parent may have held the locks.

    Without a GIL, the dictionary has a lock of its own too, so that a new one is begun.
    """
    global _lock, _numbers
    _lock = threading.Lock()
    _numbers = {}


def _add(key: tuple[str, int, str]) -> int:
    with _lock:
        number = _numbers.get(key)
        if number is None:
            if len(_sites) >= _MOST:
                return 0
            number = len(_sites)
            _sites.append(Site(*key))
            _numbers[key] = number
        return number


_lock = threading.Lock()
# A program has as many as it has lines, so they are kept for good. One that makes its lines while
# it runs has any number of them; errors of calls on later ones don't say where those are.
_MOST = 50_000
# Number 0 is no line at all.
_sites: list[Site] = [Site("", 0, "")]
_numbers: dict[tuple[str, int, str], int] = {}
