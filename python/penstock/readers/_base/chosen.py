"""Files that are named one by one, in a list, or by the folder that they are in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from penstock._errors import messages
from penstock.errors import ArgumentError
from penstock.readers._base.paths import Name, check_index, path, paths
from penstock.readers._base.source import Source, open_source


class Chosen:
    """The arguments of a reader that say which files it reads.

    Args:
        what: The reader, for messages.
        default: The pattern of names, unless there is another one.
        file_filter: The pattern of names to take in `file_root`.
        file_list: A text file with a name on each line.
        file_root: The folder that names are relative to.
        files: The names of files.
        index: A file with the listing of a `file_root` that is a URL.
    """

    def __init__(
        self,
        what: str,
        default: str,
        *,
        file_filter: str | None,
        file_list: Name | None,
        file_root: Name | None,
        files: Name | Iterable[Name] | None,
        index: Name | None,
    ) -> None:
        self._what = what
        self._root = None if file_root is None else path(what, "file_root", file_root)
        self._list = None if file_list is None else path(what, "file_list", file_list)
        self._files = files
        self._index = None if index is None else path(what, "index", index)
        self._filter = default if file_filter is None else file_filter
        if not isinstance(self._filter, str):
            raise messages.wrong_argument(what, "file_filter", file_filter, "a pattern")

    def open(self, format: str, **options: Any) -> Source:
        """The samples of the files, of which there is at least one.

        Args:
            format: The format, as `src/readers/mod.rs` lists it.
            **options: What the format needs besides.
        """
        if self._files is not None and self._list is not None:
            raise self._wrong("files", "and `file_list` both name the files; give one of them")
        root = self._root
        which: dict[str, Any] = {"pattern": self._filter}
        if self._files is not None:
            which = {"files": paths(self._what, "files", self._files)}
            if not which["files"]:
                raise self._wrong("files", "is empty")
        elif self._list is not None:
            root = os.path.dirname(self._list) if root is None else root
            which = {"list": self._list}
        elif root is None:
            raise self._wrong("file_root", "is needed, unless there is `files` or `file_list`")
        elif not root:
            raise self._wrong("file_root", "is empty; it must name a folder")
        if self._index is not None:
            check_index(self._what, "file_root", root, "pattern" in which)
            which["index"] = self._index
        arguments = {"list": "file_list", "root": "file_root", "index": "index"}
        source = open_source(self._what, format, arguments, root=root or "", **which, **options)
        if not len(source):
            raise (
                self._wrong("file_list", f"names no files: {self._list} is empty")
                if self._list is not None
                else self._wrong(
                    "file_root",
                    f"has no files: {root} and the folders in there hold none that match "
                    f"{self._filter!r}",
                )
            )
        self._files = None
        return source

    def _wrong(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self._what, key, problem)
