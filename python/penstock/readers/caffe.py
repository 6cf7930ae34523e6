"""`readers.Caffe`: images and labels of LMDB databases that Caffe's tools made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, paths
from penstock.readers._base.reader import Reader
from penstock.readers._base.records import open_records
from penstock.readers._base.source import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        return open_records(
            self._what,
            "caffe",
            {"files": "path"},
            paths(self._what, "path", self._path),
            self._options.on_error,
            image=self._image,
            label=self._label,
        )
