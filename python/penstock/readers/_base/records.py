"""Formats that keep many samples in one file: what their readers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock._errors import messages
from penstock._operators.call_sites import here
from penstock.readers._base.io_pool import io_pool
from penstock.readers._base.order import Numbers
from penstock.readers._base.paths import Name, paths
from penstock.readers._base.source import IndexedSource, Source

if TYPE_CHECKING:
    from penstock._core import Records, Value


class RecordSource(IndexedSource["Records"]):
    """Records, all outputs of which are read from files."""

    def fetch(self, numbers: Numbers, batch: bool) -> tuple[Value, ...]:
        """The outputs of records, when they have been read."""
        return tuple(self._index.read(self._what, numbers, batch, here(), io_pool()))


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


def opened(
    what: str,
    key: str,
    index_key: str,
    opens: Callable[..., Records],
    files: list[str],
    index: list[str] | None,
    on_error: str,
    *arguments: Any,
) -> Source:
    """The source of what `opens` gives, which has at least one record.

    What can't be read of a file is an error, or, where bad samples are to be left out, one of them.
    """
    try:
        records = opens(files, index, on_error != "raise", *arguments)
    except ValueError as error:
        path, problem, system = error.args
        blamed = index_key if index is not None and path in index else key
        raise messages.cant_read(
            what, blamed, f"can't be used: {path}: {problem}", system=system
        ) from None
    if not len(records):
        raise messages.bad_argument(what, key, "names no samples: the files have none")
    return RecordSource(what, records)
