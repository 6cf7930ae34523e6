"""Lines of the user's program, as numbers that travel with every call."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import warnings
from types import FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


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
    """The number of the user's line that led to this call."""
    frame = _outside()
    code = frame.f_code
    key = (code.co_filename, frame.f_lineno, code.co_name)
    number = _numbers.get(key)
    return number if number is not None else _add(key)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however many frames away it is."""
    frame = _outside()
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def calling_module() -> str:
    """The name of the module outside of this package that led to this call."""
    name = _outside().f_globals.get("__name__", "")
    return str(name)


def _outside() -> FrameType:
    """The innermost frame outside of this package."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(_PACKAGE):
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
    return frame


def find(number: int) -> Site:
    """The line with this number, if it is recent enough to be kept."""
    return _sites.get(number, NOWHERE)


def after_fork() -> None:
    """In a forked child: another thread of the parent may have held the locks.

    Without a GIL, a dictionary has a lock of its own too, so that a new one is begun.
    """
    global _lock, _numbers, _sites
    _lock = threading.Lock()
    _numbers, _sites = {}, dict(_sites)


def _add(key: tuple[str, int, str]) -> int:
    with _lock:
        number = _numbers.get(key)
        if number is None:
            number = _count()
            _sites[number] = Site(*key)
            _numbers[key] = number
            if len(_sites) > _MOST:
                # A line that is still in use gets another number when it next calls.
                oldest = next(iter(_sites))
                _numbers.pop(_sites.pop(oldest), None)
        return number


def _count() -> int:
    """A 32-bit number that no recent line has."""
    global _last
    _last = _last % 0xFFFF_FFFF + 1
    return _last


NOWHERE = Site("", 0, "")
_lock = threading.Lock()
# Programs that create code as they run, such as notebooks, have any number of lines: only the
# latest are kept.
_MOST = 10_000
# Number 0 is no line at all.
_last = 0
_sites: dict[int, Site] = {}
_numbers: dict[tuple[str, int, str], int] = {}
