"""Names of files and folders, as users give them to readers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from penstock import _errors

Name: TypeAlias = str | os.PathLike[str]


def path(what: str, key: str, given: Name | bytes) -> str:
    """The name of one file or folder."""
    try:
        return os.fsdecode(given)
    except TypeError:
        raise _errors.wrong_argument(what, key, given, "a name (str, bytes or path)") from None


def paths(what: str, key: str, given: Name | Iterable[Name]) -> list[str]:
    """The names of files; one alone is a list of one."""
    if isinstance(given, str | bytes | os.PathLike):
        return [os.fsdecode(given)]
    odd: object = given
    found = []
    try:
        for odd in given:
            found.append(os.fsdecode(odd))
    except TypeError:
        raise _errors.wrong_argument(what, key, odd, "a name or a list of names") from None
    return found


def texts(what: str, key: str, given: str | Sequence[str], wanted: str) -> list[str]:
    """Texts, such as patterns; one alone is a list of one."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise _errors.wrong_argument(what, key, given, wanted)
    found = list(given)
    odd = [text for text in found if not isinstance(text, str)]
    if odd:
        raise _errors.wrong_argument(what, key, odd[0], wanted)
    return found
