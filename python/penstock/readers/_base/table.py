"""Formats whose samples are rows of named columns: what their readers have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from penstock._errors import messages
from penstock.readers._base.paths import is_url, texts
from penstock.readers._base.reader import Reader
from penstock.readers._base.records import open_records
from penstock.readers._base.source import Source, open_source

if TYPE_CHECKING:
    from penstock._runtime.context import EvalContext
    from penstock._values.batch import Batch
    from penstock._values.tensor import Tensor
    from penstock.readers._base.epoch import Epoch


class Table(Reader):
    """A reader that gives a dict, with the names that its source has for the outputs."""

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def next_epoch(
            self,
            batch_size: SupportsIndex,
            ctx: EvalContext | None = None,
            capture: bool = False,
            *,
            compile: bool = False,
            restart: bool = False,
            epoch: SupportsIndex | None = None,
        ) -> Epoch[dict[str, Batch]]: ...
        @overload
        def next_epoch(
            self,
            batch_size: None = None,
            ctx: EvalContext | None = None,
            capture: bool = False,
            *,
            compile: bool = False,
            restart: bool = False,
            epoch: SupportsIndex | None = None,
        ) -> Epoch[dict[str, Tensor | Batch]]: ...
        def next_epoch(
            self,
            batch_size: Any = None,
            ctx: EvalContext | None = None,
            capture: bool = False,
            *,
            compile: bool = False,
            restart: bool = False,
            epoch: SupportsIndex | None = None,
        ) -> Epoch[Any]: ...
        @overload  # type: ignore[override]
        def __call__(self, *, batch_size: SupportsIndex) -> dict[str, Batch]: ...
        @overload
        def __call__(self, *, batch_size: None = None) -> dict[str, Tensor]: ...
        def __call__(self, *, batch_size: Any = None) -> Any: ...
        @overload  # type: ignore[override]
        def __getitem__(self, index: SupportsIndex) -> dict[str, Tensor]: ...
        @overload
        def __getitem__(self, index: slice | Iterable[SupportsIndex]) -> dict[str, Batch]: ...
        def __getitem__(self, index: Any) -> Any: ...

    def _yields(self, outputs: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self._opened().output_names(), outputs, strict=True))


def column_names(what: str, given: str | Iterable[str] | None) -> list[str] | None:
    """The names of columns that a user has given: each once."""
    if given is None:
        return None
    found = texts(what, "columns", given, "the names of columns")  # type: ignore[arg-type]
    if not found:
        raise messages.bad_argument(what, "columns", "is empty")
    twice = [name for number, name in enumerate(found) if name in found[:number]]
    if twice:
        raise messages.bad_argument(what, "columns", f"names {twice[0]!r} more than once")
    return found


class FilesOfTable(Table):
    """Tables in files with an ending, which are named, or are in a folder."""

    _format: str
    _ending: str
    _columns: list[str] | None
    _given: list[str]

    def _data_files(self) -> list[str]:
        """The names of the files to read."""
        found: list[str] = []
        for name in self._given:
            below = names_below(self._what, "path", name, self._ending)
            found += files_in(self._what, "path", name, below, self._ending)
        return found

    def _open(self) -> Source:
        self._paths = self._data_files()
        if not self._paths:
            raise messages.bad_argument(self._what, "path", "is empty")
        return open_records(
            self._what,
            self._format,
            {"files": "path"},
            self._paths,
            self._options.on_error,
            columns=self._columns,
        )

    def _renewed(self) -> dict[str, Any]:
        # A copy, such as that of a worker, lists no URL again.
        listed = self._source is not None and any(map(is_url, self._given))
        return {**super()._renewed(), **({"path": self._paths} if listed else {})}


def files_in(what: str, key: str, name: str, below: list[str] | None, ending: str) -> list[str]:
    """The files with an ending among those in a folder; what is not a folder is a file."""
    if below is None:
        return [name]
    found = [os.path.join(name, file) for file in below if file.endswith(ending)]
    if not found:
        problem = f"has no files: {name} and the folders in there hold none with {ending!r}"
        raise messages.bad_argument(what, key, problem)
    return sorted(found)


def names_below(what: str, key: str, name: str, ending: str) -> list[str] | None:
    """The names of all files in a folder, relative to it; None if it is not a folder.

    A URL that has the ending, and no slash behind it, is a file without asking the server.
    """
    if is_url(name):
        has_no_listing = name.startswith(("http://", "https://"))
        if not name.endswith("/") and (name.endswith(ending) or has_no_listing):
            return None
        source = open_source(what, "below", {"root": key}, root=name)
        return [source.name(number) for number in range(len(source))] or None
    if not os.path.isdir(name):
        return None
    return [
        os.path.relpath(os.path.join(folder, file), name)
        for folder, _, files in os.walk(name)
        for file in files
    ]
