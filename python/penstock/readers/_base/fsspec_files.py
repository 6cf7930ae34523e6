"""Files that `fsspec` reads, behind the functions that native code calls."""

from __future__ import annotations

from typing import Any


class FsspecFiles:
    """The files of a bucket, or of something like it.

    Args:
        files: A file system of `fsspec`.
        base: The URL that keys are appended to, such as `hf://datasets`.
    """

    def __init__(self, files: Any, base: str) -> None:
        self._files = files
        self._base = base

    def _path(self, key: str) -> str:
        return f"{self._base}/{key}"

    def head(self, key: str) -> tuple[int, str | None]:
        """The size of a file, and what distinguishes its version, if that is known."""
        info = self._files.info(self._path(key))
        if info.get("type") == "directory":
            raise FileNotFoundError(self._path(key))
        return int(info["size"]), _version(info) or None

    def get(self, key: str) -> bytes:
        """The contents of a file."""
        return bytes(self._files.cat_file(self._path(key)))

    def range(self, key: str, offset: int, length: int) -> bytes:
        """A part of a file."""
        return bytes(self._files.cat_file(self._path(key), start=offset, end=offset + length))

    def list(self, prefix: str) -> list[tuple[str, int | None, str]]:
        """Name, size and version of what is in a folder; folders have no size."""
        path = self._path(prefix).rstrip("/")
        try:
            found = self._files.ls(path, detail=True)
        except FileNotFoundError:
            return []
        entries = []
        own = self._files._strip_protocol(path)
        for info in found:
            if self._files._strip_protocol(info["name"]) == own and info.get("type") == "file":
                continue  # what is listed for a file is the file
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            is_folder = info.get("type") == "directory"
            entries.append((name, None if is_folder else int(info["size"]), _version(info)))
        return entries


def _version(info: dict[str, Any]) -> str:
    for key in ("ETag", "etag", "blob_id", "md5", "mtime", "created"):
        if info.get(key):
            return str(info[key])
    return ""
