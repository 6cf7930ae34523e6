"""`readers.Caffe`: images and labels of LMDB databases that Caffe's tools made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from penstock import _core
from penstock._errors import messages
from penstock._operators.call_sites import here
from penstock._runtime.device import DeviceLike
from penstock.readers._base.io_pool import io_pool
from penstock.readers._base.options import Common
from penstock.readers._base.order import Numbers
from penstock.readers._base.paths import Name, paths
from penstock.readers._base.reader import Reader
from penstock.readers._base.source import IndexedSource, Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._core import Value


class CaffeSource(IndexedSource[_core.Lmdb]):
    """Records of Caffe."""

    def __init__(self, what: str, records: _core.Lmdb, image: bool, label: bool) -> None:
        super().__init__(what, records)
        self._image = image
        self._label = label

    def fetch(self, numbers: Numbers, batch: bool) -> tuple[Value, ...]:
        """Images and labels, when they have been read."""
        return tuple(
            self._index.caffe(
                self._what, numbers, batch, self._image, self._label, here(), io_pool()
            )
        )


class Caffe(Reader):
    """Reads images and labels from LMDB databases of Caffe.

    The image is the bytes (uint8) of a file, or, where a record says that it is not encoded, its
    pixels (height, width, channels). The label is an int32 of shape (1,). Where a sample came from
    is its `source_info`: the database and the key. Nobody may write to a database while it is read.

    Args:
        path: A database: the folder with `data.mdb`, or that file. Several are read one after the
            other.
        image_available: Whether to give images.
        label_available: Whether to give labels.
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        path: Name | Sequence[Name],
        image_available: bool | None = None,
        label_available: bool | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._path = path
        self._image = image_available is None or bool(image_available)
        self._label = label_available is None or bool(label_available)
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        if not (self._image or self._label):
            raise messages.bad_argument(
                self._what,
                "image_available",
                "and `label_available` are both False, so that there is nothing to read",
            )
        records = open_databases(self._what, self._path, self._options.on_error)
        return CaffeSource(self._what, records, self._image, self._label)


def open_databases(what: str, path: Name | Sequence[Name], on_error: str) -> _core.Lmdb:
    """The records of databases, or an error that names the one that can't be read.

    Where bad samples are to be left out, what can't be read of a database is one of them.
    """
    files = paths(what, "path", path)
    try:
        records = _core.Lmdb.opened(files, on_error != "raise")
    except ValueError as error:
        file, problem, system = error.args
        raise messages.cant_read(
            what, "path", f"can't be read: {file}: {problem}", system=system
        ) from None
    if not len(records):
        found = f"holds no records: {', '.join(files)}" if files else "is empty"
        raise messages.bad_argument(what, "path", found)
    return records
