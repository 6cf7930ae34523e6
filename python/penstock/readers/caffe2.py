"""`readers.Caffe2`: images and labels of LMDB databases that Caffe2's tools made."""

from __future__ import annotations

import operator
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

NO_LABEL = 4


class Caffe2(Reader):
    """Reads images, labels and more from LMDB databases of Caffe2.

    The outputs are, in the order of the tensors of a record: the image, as bytes of a file or as
    pixels (height, width, channels), uint8; the labels; further tensors, as rows; a box. Labels and
    further tensors are int32 or float32, as they are stored. Where a sample came from is its
    `source_info`: the database and the key. Nobody may write to a database while it is read.

    Args:
        path: A database: the folder with `data.mdb`, or that file. Several are read one after the
            other.
        additional_inputs: How many further tensors the records have.
        bbox: Whether the records have a box: four int32.
        image_available: Whether the records have an image.
        label_type: What the labels are. 0: one number. 1: the numbers of the classes that apply;
            given as a row of `num_labels` int32 that are 1 for those. 2: a row of numbers, given as
            it is. 3: as 1, with a second tensor of weights, which are given as float32. 4: none.
        num_labels: How many classes there are, for label types 1 and 3.
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        path: Name | Sequence[Name],
        additional_inputs: int | None = None,
        bbox: bool | None = None,
        image_available: bool | None = None,
        label_type: int | None = None,
        num_labels: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._path = path
        self._image = image_available is None or bool(image_available)
        self._label_type = label_type
        self._num_labels = num_labels
        self._additional = additional_inputs
        self._bbox = bool(bbox)
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        label_type = self._number("label_type", self._label_type, 0, range(NO_LABEL + 1))
        classes = self._number("num_labels", self._num_labels, 1, range(1 << 31))
        additional = self._number("additional_inputs", self._additional, 0, range(1000))
        if not (self._image or label_type != NO_LABEL or additional or self._bbox):
            raise messages.bad_argument(
                self._what,
                "image_available",
                "is False, and there are neither labels nor anything else to read",
            )
        return open_records(
            self._what,
            "caffe2",
            {"files": "path"},
            paths(self._what, "path", self._path),
            self._options.on_error,
            image=self._image,
            label_type=label_type,
            classes=classes,
            additional=additional,
            bbox=self._bbox,
        )

    def _number(self, key: str, given: int | None, default: int, allowed: range) -> int:
        if given is None:
            return default
        try:
            number = operator.index(given)
        except TypeError:
            raise messages.wrong_argument(self._what, key, given, "a whole number") from None
        if number not in allowed:
            raise messages.bad_argument(
                self._what, key, f"must be from 0 to {allowed[-1]}, got {number}"
            )
        return number
