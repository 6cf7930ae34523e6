"""Finds FFmpeg's libraries, which decode videos, and loads them when they are first needed.

They come with the package `av` (`pip install "penstock[video]"`), whose libraries native code opens
by their paths. Python code of that package is not used.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from penstock import _core

_VARIABLE = "PENSTOCK_FFMPEG"

_version: int | None = None


def load(what: str) -> int:
    """Load FFmpeg, unless it is loaded, and return the major version of libavcodec.

    Looks into the folder that PENSTOCK_FFMPEG names, if it is set, otherwise into `av`, and then
    wherever the system has libraries. `what` needs it, for the error if there is none.
    """
    global _version
    if _version is None:
        _version = _found(what)
    return _version


def _found(what: str) -> int:
    reasons = []
    given = os.environ.get(_VARIABLE)
    for folder in [Path(given)] if given else _folders():
        version, reason = _core.load_ffmpeg(folder)
        if version is None and not given:
            # Libraries of older releases find each other only after Python has loaded them.
            _import_av()
            version, reason = _core.load_ffmpeg(folder)
        if version is not None:
            return version
        reasons.append(reason)
    if not given:
        version, reason = _core.load_ffmpeg()
        if version is not None:
            return version
        reasons.append(reason)
    found = "; ".join(filter(None, reasons))
    raise ImportError(
        f"{what}: needs FFmpeg, which can't be loaded ({found}).\n"
        f"  hint: `pip install 'penstock[video]'` installs it. {_VARIABLE} may name a folder with "
        f"libavcodec, libavformat and libavutil instead."
    )


def _folders() -> Iterator[Path]:
    """Where wheels of `av` have their libraries, on Linux and on macOS."""
    spec = importlib.util.find_spec("av")
    if spec is None or spec.origin is None:
        return
    package = Path(spec.origin).parent
    for folder in (package.parent / "av.libs", package / ".dylibs"):
        if folder.is_dir():
            yield folder


def _import_av() -> None:
    try:
        importlib.import_module("av")
    except ImportError:  # broken in itself
        pass
