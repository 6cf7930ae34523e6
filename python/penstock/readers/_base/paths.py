"""Names of files and folders, as users give them to readers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from penstock._errors import messages

Name: TypeAlias = str | os.PathLike[str]


def path(what: str, key: str, given: Name | bytes) -> str:
    """The name of one file or folder."""
    try:
        name = os.fsdecode(given)
    except TypeError:
        raise messages.wrong_argument(what, key, given, "a name (str, bytes or path)") from None
    return _checked(what, key, name)


def paths(what: str, key: str, given: Name | Iterable[Name]) -> list[str]:
    """The names of files; one alone is a list of one."""
    if isinstance(given, str | bytes | os.PathLike):
        return [_checked(what, key, os.fsdecode(given))]
    odd: object = given
    found = []
    try:
        for odd in given:
            found.append(_checked(what, key, os.fsdecode(odd)))
    except TypeError:
        raise messages.wrong_argument(what, key, odd, "a name or a list of names") from None
    return found


def _checked(what: str, key: str, name: str) -> str:
    if "\0" in name:
        raise messages.bad_argument(
            what, key, f"has a NUL character, which no name of a file can have: {name!r}"
        )
    return name


def texts(what: str, key: str, given: str | Sequence[str], wanted: str) -> list[str]:
    """Texts, such as patterns; one alone is a list of one."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise messages.wrong_argument(what, key, given, wanted)
    found = list(given)
    odd = [text for text in found if not isinstance(text, str)]
    if odd:
        raise messages.wrong_argument(what, key, odd[0], wanted)
    return found


def is_url(name: str) -> bool:
    """Whether a name is that of something on a server."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name) is not None


def check_index(what: str, root_key: str, root: str | None, is_listed: bool) -> None:
    """An index is about what would be listed otherwise: what is below a URL."""
    if not is_listed:
        raise messages.bad_argument(
            what, "index", f"is a listing of `{root_key}`, but the files are named otherwise"
        )
    if root is None or not is_url(root):
        raise messages.bad_argument(
            what, "index", f"is for a `{root_key}` that is a URL; local folders are listed quickly"
        )
