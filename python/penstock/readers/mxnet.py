"""`readers.MXNet`: images and labels of RecordIO files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex

from penstock._runtime.device import DeviceLike
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name
from penstock.readers._base.reader import Reader
from penstock.readers._base.records import index_names, names, open_records
from penstock.readers._base.source import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack


class MXNet(Reader):
    """Reads RecordIO files of images: their bytes (uint8), and their labels (float32).

    Samples come in the order in which they are in the file. Where one came from is its
    `source_info`: the file and the place in it.

    Args:
        path: The name of the file (.rec), or of several.
        index_path: The name of its index (.idx), a text with an id and the place of each record,
            or one for each file. A single one for several files has places in all of them, as if
            they were one. Without it, the files are looked through when the reader opens them.
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        path: Name | Iterable[Name],
        index_path: Name | Iterable[Name] | None = None,
        **common: Unpack[Common],
    ) -> None:
        what = "readers.MXNet"
        self._paths = names(what, "path", path)
        index = None if index_path is None else names(what, "index_path", index_path)
        if index is not None and len(index) > 1:
            index = index_names(what, "index_path", index, len(self._paths))
        self._index = index
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        return open_records(
            self._what,
            "recordio",
            {"files": "path", "index": "index_path"},
            self._paths,
            self._options.on_error,
            index=self._index,
        )
