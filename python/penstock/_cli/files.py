"""Files that a command was given: which there are, and of which format."""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from penstock._cli.terminal import Problem
from penstock._look.file_kinds import kind_of_bytes

IMAGES = frozenset({"JPEG", "PNG", "BMP", "TIFF", "WebP", "JPEG 2000", "PGM", "PPM"})
"""Formats that `decoders.image` reads."""
SOUNDS = frozenset({"WAV", "FLAC", "Ogg", "MP3", "M4A", "Matroska or WebM", "AIFF", "AU", "CAF"})
"""Formats that `decoders.audio` reads."""

_HEAD = 264


class Found(NamedTuple):
    """A file, and what its first bytes say it is."""

    path: str
    size: int
    kind: str
    """"empty", "unreadable" or "unknown" where there is no format."""
    problem: str = ""


def find(path: str) -> list[str]:
    """The files in a folder and its subfolders, in order; or the one file."""
    check(path)
    if not os.path.isdir(path):
        return [path]
    found: list[str] = []
    denied: list[str] = []

    def note(error: OSError) -> None:
        denied.append(os.fsdecode(error.filename))

    for folder, folders, names in os.walk(path, onerror=note):
        folders.sort()
        found += [os.path.join(folder, name) for name in sorted(names)]
    if denied and not found:
        raise Problem(f"the folder can't be read (permission denied): {denied[0]}")
    if not found:
        raise Problem(f"the folder has no files: {path}")
    for folder in denied:
        print(f"penstock: skipped, can't be read: {folder}", file=sys.stderr)
    return found


def is_url(path: str) -> bool:
    """Whether a path is the URL of something that is not a local file."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", local(path)) is not None


def local(path: str) -> str:
    """The local path that a URL such as `file:///data` means; other paths stay as they are."""
    parts = urlsplit(path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return path
    return url2pathname(parts.path)


def check(path: str) -> None:
    """Refuse paths that don't exist or can't be read."""
    if not os.path.lexists(path):
        raise Problem(f"no such file or folder: {path}")
    if not os.path.exists(path):
        raise Problem(f"the link leads nowhere: {path}")
    needed = os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK
    if not os.access(path, needed):
        what = "folder" if os.path.isdir(path) else "file"
        raise Problem(f"the {what} can't be read (permission denied): {path}")


def check_folder(path: str) -> None:
    """Refuse what is not a folder that can be read."""
    check(path)
    if not os.path.isdir(path):
        raise Problem(f"not a folder: {path}")


def look(path: str) -> Found:
    """The size and format of a file."""
    try:
        if not os.path.isfile(path):
            return Found(path, 0, "unreadable", "not a regular file")
        length = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        return Found(path, 0, "unreadable", error.strerror or str(error))
    if not head:
        return Found(path, 0, "empty")
    if path.endswith((".tfrecord", ".tfrecords")):
        return Found(path, length, "TFRecord")
    if head[:4] == b"\x0a\x23\xd7\xce":
        return Found(path, length, "RecordIO")
    return Found(path, length, kind_of_bytes(head) or _sound(head) or "unknown")


def _sound(head: bytes) -> str | None:
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "AIFF"
    return {b".snd": "AU", b"caff": "CAF", b"RF64": "WAV"}.get(head[:4])


def images(path: str) -> list[Found]:
    """The image files in a folder."""
    check_folder(path)
    found = [looked for looked in map(look, find(path)) if looked.kind in IMAGES]
    if not found:
        raise Problem(f"the folder has no images: {path}")
    return found


def class_of(path: str, root: str) -> str:
    """The first folder below the root that a file is in; "" if it is in the root itself."""
    parts = os.path.relpath(path, root).split(os.sep)
    return parts[0] if len(parts) > 1 else ""
