"""Formats whose samples are rows of named columns: what their readers have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from penstock._errors import messages
from penstock.readers._base.paths import Name, paths, texts
from penstock.readers._base.reader import Reader

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


def files_in(what: str, key: str, given: Name | Iterable[Name], ending: str) -> list[str]:
    """Names of files; a folder stands for the files in there that have the ending."""
    found = []
    for name in paths(what, key, given):
        if not os.path.isdir(name):
            found.append(name)
            continue
        inside = [
            os.path.join(folder, file)
            for folder, _, files in os.walk(name)
            for file in files
            if file.endswith(ending)
        ]
        if not inside:
            problem = f"has no files: {name} and the folders in there hold none with {ending!r}"
            raise messages.bad_argument(what, key, problem)
        found += sorted(inside)
    if not found:
        raise messages.bad_argument(what, key, "is empty")
    return found
