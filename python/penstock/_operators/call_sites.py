"""Paths through the user's program, as numbers that travel with every call."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import warnings
from types import FrameType
from typing import NamedTuple, TypeAlias

from penstock import _core
from penstock._operators.own_files import PACKAGE as _PACKAGE
from penstock._operators.own_files import is_inside


class Site(NamedTuple):
    """A line that calls something."""

    file: str
    line: int
    function: str

    def text(self) -> str:
        """The line itself, where its file can be read."""
        return linecache.getline(self.file, self.line).strip()


Path: TypeAlias = tuple[Site, ...]


def here() -> int:
    """The number of the path through the user's program that led to this call."""
    # Native code knows the paths that were taken before; it must be asked from this function.
    number = _core.known_path()
    if number not in _paths:
        number = _number(_path(sys._getframe(1)))
        _core.remember_path(number)
    return number


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


def find(number: int) -> Path:
    """The lines of a path, the outermost first; empty if it is not recent enough to be kept."""
    return _paths.get(number, ())


def _path(frame: FrameType | None) -> Path:
    """The lines of the user's program that led to a frame.

    What libraries do in between is left out, but not the line that calls this package.
    """
    found: list[Site] = []
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if not is_inside(file) and not (found and _is_of_library(file)):
            found.append(Site(file, frame.f_lineno, code.co_name))
        frame = frame.f_back
    found.reverse()
    if len(found) > 2 * _SHOWN:
        # A deep recursion.
        found[_SHOWN:-_SHOWN] = [FOLDED]
    return tuple(found)


def _is_of_library(file: str) -> bool:
    return file.startswith((_LIBRARY, "<frozen ")) or _PACKAGES in file


def after_fork() -> None:
    """In a forked child: another thread of the parent may have held the locks.

    Without a GIL, a dictionary has a lock of its own too, so that a new one is begun.
    """
    global _lock, _numbers, _paths
    _lock = threading.Lock()
    _numbers, _paths = {}, dict(_paths)
    _core.forget_paths()


def _number(path: Path) -> int:
    with _lock:
        number = _numbers.get(path)
        if number is None:
            number = _count()
            _paths[number] = path
            _numbers[path] = number
            if len(_paths) > _MOST:
                # A path that is still in use gets another number when it is next taken.
                oldest = next(iter(_paths))
                _numbers.pop(_paths.pop(oldest), None)
        return number


def _count() -> int:
    """A 32-bit number that no recent path has."""
    global _last
    _last = _last % 0xFFFF_FFFF + 1
    return _last


FOLDED = Site("", 0, "")
"""Stands for the middle of a long path."""

_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGES = os.sep + "site-packages" + os.sep
# Lines of a path that are kept at its start and at its end.
_SHOWN = 20
_lock = threading.Lock()
# Programs that create code as they run, such as notebooks, have any number of paths: only the
# latest are kept.
_MOST = 10_000
# Number 0 is no path at all.
_last = 0
_paths: dict[int, Path] = {}
_numbers: dict[Path, int] = {}
