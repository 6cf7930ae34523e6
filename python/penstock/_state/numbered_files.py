"""Numbered files, named by a pattern such as "ckpt_{seq:04d}.json".

A new file gets the number after the highest existing one. It is written atomically and synced to
disk, even if the process is killed; an existing file is never overwritten.
"""

from __future__ import annotations

import os
import re
import string
from typing import NamedTuple

_BASES = {"x": 16, "X": 16, "o": 8, "b": 2}


class Found(NamedTuple):
    """A file that matches the pattern."""

    number: int
    path: str


class Pattern:
    """A path with one field `{seq}` for the number, with an optional format."""

    def __init__(self, pattern: str | os.PathLike[str]) -> None:
        try:
            text = os.fspath(pattern)
        except TypeError:
            text = pattern  # type: ignore[assignment]  # rejected below
        if not isinstance(text, str):
            raise TypeError(
                f'A checkpoint\'s file name is a string such as "ckpt_{{seq:04d}}.json", got '
                f"{pattern!r}."
            )
        self.text = text
        before, field, after = _split(text)
        self._field = field
        # Only the path component with the number is searched for.
        self.folder, self._prefix = os.path.split(before)
        inside, slash, self._below = after.partition(os.sep)
        self._suffix = inside
        self._is_folder = bool(slash)
        spec = field[1:-1].partition(":")[2]
        self._base = _BASES.get(spec[-1:], 10)
        self._fill = spec[0] if len(spec) > 1 and spec[1] in "<>=^" else " "
        for number in (0, 7, 1234567):  # rejects formats such as {seq:e}
            try:
                written = field.format(seq=number)
            except ValueError as error:
                raise ValueError(
                    f"{text!r}: `{field}` is not a valid format for an integer: {error}. Use "
                    "`{seq}`, or a zero-padded one such as `{seq:04d}`."
                ) from None
            if self._number(written) != number:
                raise ValueError(
                    f"{text!r}: the number can't be parsed back from `{field}`. Use `{{seq}}`, or "
                    "a zero-padded one such as `{seq:04d}`."
                )

    def path(self, number: int) -> str:
        """The path of the file with this number."""
        name = self._prefix + self._field.format(seq=number) + self._suffix
        path = os.path.join(self.folder, name)
        return os.path.join(path, self._below) if self._is_folder else path

    def find(self) -> list[Found]:
        """All files that match the pattern, in ascending order of their numbers."""
        try:
            names = os.listdir(self.folder or os.curdir)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for name in names:
            end = len(name) - len(self._suffix)
            if (
                end <= len(self._prefix)
                or not name.startswith(self._prefix)
                or not name.endswith(self._suffix)
            ):
                continue
            number = self._number(name[len(self._prefix) : end])
            path = os.path.join(self.folder, name)
            if self._is_folder:
                path = os.path.join(path, self._below)
            if number is not None and os.path.lexists(path):
                found.append(Found(number, path))
        return sorted(found)

    def write_next(self, text: str) -> str:
        """Write a new file with the next number and return its path."""
        found = self.find()
        number = found[-1].number + 1 if found else 0
        while True:
            path = self.path(number)
            _make_folders(os.path.dirname(path))
            try:
                if _write(path, text.encode()):
                    return path
            except OSError as error:
                # Show the final path, not that of the temporary file.
                raise OSError(error.errno, error.strerror, path) from None
            number += 1  # another process took this number

    def _number(self, text: str) -> int | None:
        """The number in place of the field, or None."""
        digits = text if self._fill.isalnum() else text.strip(self._fill)
        # Stricter than int(), which accepts " 1_0 " and digits of other scripts.
        if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z_,]*", digits, re.ASCII):
            return None
        try:
            number = int(digits.replace(",", ""), self._base)
        except ValueError:
            return None
        # "7" matches {seq:04d}, but "7 " only if the format produces it.
        if text.endswith(digits) or self._field.format(seq=number) == text:
            return number
        return None


def _split(pattern: str) -> tuple[str, str, str]:
    """The text before the field, the field, and the text after it."""
    before, after, field = "", "", ""
    try:
        parts = list(string.Formatter().parse(pattern))
    except ValueError as error:
        raise ValueError(
            f"{pattern!r}: a checkpoint's file name has one field, `{{seq}}`, but its braces don't "
            f"match: {error}. (Literal braces are doubled.)"
        ) from None
    for literal, name, spec, conversion in parts:
        if field:
            after += literal
        else:
            before += literal
        if name is None:
            continue
        if name != "seq" or "{" in (spec or ""):
            raise ValueError(
                f"{pattern!r}: unknown field `{{{name}}}`; a checkpoint's file name has one field, "
                "`{seq}`, the number of the file. (Literal braces are doubled.)"
            )
        if field:
            raise ValueError(f"{pattern!r}: `{{seq}}` may appear only once.")
        field = (
            "{seq" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        )
    if not field:
        raise ValueError(
            f"{pattern!r}: a checkpoint's file name must contain `{{seq}}` for the number of the "
            'file, as in "ckpt_{seq:04d}.json".'
        )
    return before, field, after


def _write(path: str, data: bytes) -> bool:
    """Create a file atomically; False if it exists already."""
    folder, name = os.path.split(path)
    hidden = f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    temporary = os.path.join(folder, hidden)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    file = os.open(temporary, flags, 0o666)  # the umask applies
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if not _publish(temporary, path):
            return False
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    _sync_folder(folder)
    return True


def _publish(temporary: str, path: str) -> bool:
    """Give the temporary file its final name, unless the name is taken."""
    try:
        os.link(temporary, path)  # unlike a rename, never replaces another file
    except FileExistsError:
        return False
    except OSError:  # the file system has no links
        if os.path.lexists(path):
            return False
        os.rename(temporary, path)
    return True


def _make_folders(folder: str) -> None:
    if not folder or os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folders(parent)
    try:
        os.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    _sync_folder(parent)


def _sync_folder(folder: str) -> None:
    """Sync a folder's entries to disk, where supported."""
    try:
        file = os.open(folder or os.curdir, os.O_RDONLY)
    except OSError:  # Windows can't open folders
        return
    try:
        os.fsync(file)
    except OSError:
        pass  # not supported by the file system
    finally:
        os.close(file)
