"""Formats that keep many samples in one file: what their readers have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock._errors import messages
from penstock.readers._base.paths import Name, paths
from penstock.readers._base.source import Source, open_source


def names(what: str, key: str, given: Name | Iterable[Name]) -> list[str]:
    """Names of files, of which there is at least one."""
    found = paths(what, key, given)
    if not found:
        raise messages.bad_argument(what, key, "is empty")
    return found


def index_names(
    what: str, key: str, given: Name | Iterable[Name] | None, files: int
) -> list[str] | None:
    """Names of index files, as many as there are files."""
    if given is None:
        return None
    found = names(what, key, given)
    if len(found) != files:
        raise messages.bad_argument(
            what, key, f"has {len(found)} index files for {files} files; give one for each"
        )
    return found


def open_records(
    what: str,
    format: str,
    arguments: dict[str, str],
    files: list[str],
    on_error: str,
    **options: Any,
) -> Source:
    """The records of files, of which there is at least one.

    What can't be read of a file is an error, or, if bad samples are skipped, one of those.
    """
    tolerant = on_error != "raise"
    records = open_source(what, format, arguments, files=files, tolerant=tolerant, **options)
    if not len(records):
        listed = f": the files have none: {', '.join(files)}" if files else ": the list is empty"
        raise messages.bad_argument(what, arguments["files"], f"names no samples{listed}")
    return records
