"""`readers.Arrow`: columns of Arrow files, such as data sets of Hugging Face on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.errors import ArgumentError
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, paths
from penstock.readers._base.source import contents
from penstock.readers._base.table import FilesOfTable, column_names, files_in, names_below

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WHAT = "readers.Arrow"


class Arrow(FilesOfTable):
    """Reads rows of Arrow files, such as data sets that Hugging Face has saved to disk, as a dict.

    Files are in Arrow's IPC format, as streams or files. What columns become is as in
    `readers.Parquet`: numbers are scalars, lists of numbers arrays, texts and other bytes uint8,
    and images of Hugging Face their bytes. Dictionaries and views can't be read.

    Of files that are not compressed, as Hugging Face writes them, no more is read than the
    samples, so that any order is as fast as another. Others are decompressed a record batch at a
    time: for these, `shuffle="groups"` shuffles record batches, then the rows in a window of
    `initial_fill`.

    Args:
        path: The folder that `Dataset.save_to_disk` has written; or the name of a file, of
            several, or a folder, whose files that end with `.arrow` are read in the order of their
            names, with those of the folders in there. The URL of a folder that itself ends with
            `.arrow` needs a slash behind it.
        columns: The names of the columns to read. Fields of structures have a dot in between,
            such as "image.path". By default all columns that can be read.
        split: Which part of a `DatasetDict` to read, such as "train".

    Example:
        >>> import datasets
        >>> data = datasets.Dataset.from_dict({"text": ["one", "two"], "label": [3, 4]})
        >>> data.save_to_disk("train", num_proc=None)
        >>> reader = ndd.readers.Arrow(path="train", columns=["label"])
        >>> [batch["label"].torch().tolist() for batch in reader.next_epoch(batch_size=2)]
        [[3, 4]]
    """

    _format = "arrow"
    _ending = ".arrow"

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        path: Name | Iterable[Name],
        columns: str | Iterable[str] | None = None,
        split: str | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._columns = column_names(_WHAT, columns)
        if split is not None and not isinstance(split, str):
            raise messages.wrong_argument(_WHAT, "split", split, "the name of a split")
        self._split = split
        self._given = paths(_WHAT, "path", path)
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _renewed(self) -> dict[str, Any]:
        renewed = super()._renewed()
        return {**renewed, "split": None} if "path" in renewed else renewed

    def _data_files(self) -> list[str]:
        """The files of what was named: folders of Hugging Face in the order that they say."""
        found: list[str] = []
        for name in self._given:
            below = names_below(_WHAT, "path", name, self._ending)
            if below is not None and "dataset_dict.json" in below:
                part = self._part_of(name)
                name = os.path.join(name, part)
                below = [file[len(part) + 1 :] for file in below if file.startswith(f"{part}/")]
            elif self._split is not None:
                raise _wrong("split", f"has no effect: {name} is not a `DatasetDict`")
            if below is not None and "state.json" in below:
                found += _listed_files(name)
            else:
                found += files_in(_WHAT, "path", name, below, self._ending)
        return found

    def _part_of(self, folder: str) -> str:
        known = _json(os.path.join(folder, "dataset_dict.json")).get("splits")
        known = known if isinstance(known, list) else []
        if self._split not in known:
            listed = ", ".join(map(repr, known))
            problem = f"must be one of {listed}, the parts of {folder}, got {self._split!r}"
            raise _wrong("split", problem)
        return str(self._split)


def _listed_files(folder: str) -> list[str]:
    """The files that a folder of Hugging Face names."""
    files = _json(os.path.join(folder, "state.json")).get("_data_files")
    entries = files if isinstance(files, list) else [None]
    inside = [entry.get("filename") if isinstance(entry, dict) else None for entry in entries]
    if not all(isinstance(file, str) and os.path.basename(file) == file for file in inside):
        raise _wrong("path", f"can't be used: {folder}/state.json does not name the data files")
    return [os.path.join(folder, str(file)) for file in inside]


def _json(path: str) -> dict[str, Any]:
    """What a file says."""
    try:
        content = json.loads(contents(_WHAT, "path", path))
    except (OSError, ValueError, RecursionError) as error:
        raise _wrong("path", f"can't be used: {path}: {error}") from None
    if not isinstance(content, dict):
        raise _wrong("path", f"can't be used: {path} is not a JSON object")
    return content


def _wrong(key: str, problem: str) -> ArgumentError:
    return messages.bad_argument(_WHAT, key, problem)
