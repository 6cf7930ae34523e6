"""`readers.Lance`: columns of Lance data sets, read by the package `pylance`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock import _core
from penstock._errors import messages
from penstock._errors.sentences import sentence
from penstock._runtime.device import DeviceLike
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name
from penstock.readers._base.paths import path as as_path
from penstock.readers._base.remote import current, for_object_store
from penstock.readers._base.source import Source
from penstock.readers._base.table import Table, column_names

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WHAT = "readers.Lance"


class Lance(Table):
    """Reads rows of a Lance data set, as a dict of columns. Requires the package `pylance`.

    The rows of a batch are read together, by their numbers. What columns become is as in
    `readers.Parquet`. The version of the data set that the reader has opened is read to the end,
    also by copies and workers, whatever is written meanwhile. `shuffle="groups"` shuffles
    fragments, then the rows in a window of `initial_fill`.

    Args:
        path: The folder of the data set. For a URL, `storage_options` are those of `pylance`;
            `cache_dir` and `cache_bytes` have no effect.
        columns: The names of the columns to read. Fields of structures have a dot in between,
            such as "image.path". By default all columns that can be read.
        version: The version to read; by default the latest.

    Example:
        >>> import lance, pyarrow
        >>> table = pyarrow.table({"image": [b"one", b"two"], "label": [3, 4]})
        >>> data = lance.write_dataset(table, "train.lance")
        >>> reader = ndd.readers.Lance(path="train.lance")
        >>> for batch in reader.next_epoch(batch_size=2):
        ...     print(batch["label"].torch().tolist(), bytes(batch["image"].tensors[1]))
        [3, 4] b'two'
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        path: Name,
        columns: str | Iterable[str] | None = None,
        version: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._columns = column_names(_WHAT, columns)
        self._path = as_path(_WHAT, "path", path)
        if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
            raise messages.wrong_argument(_WHAT, "version", version, "the number of a version")
        self._version = version
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        try:
            import lance
        except ImportError:
            raise RuntimeError(
                f"{_WHAT} requires the package `pylance`: `pip install 'penstock[lance]'`."
            ) from None
        storage = current.get()
        options = None if storage is None else for_object_store(storage.options)
        try:
            data = lance.dataset(self._path, version=self._version, storage_options=options)
        except BaseException as error:
            # Panics of the package, on damaged files, are no `Exception`.
            if not isinstance(error, OSError | ValueError) and not _is_panic(error):
                raise
            problem = f"can't be used: {self._path}: {_first_line(error)}"
            raise messages.bad_argument(_WHAT, "path", problem) from None
        rows = _Rows(data, self._columns)
        self._version = data.version
        about = (self._path, *_identity(data))
        try:
            return _core.open_rows(_WHAT, rows.take, self._columns, rows.take([]), about)
        except ValueError as error:
            *_, reason, _ = error.args
            problem = f"can't be used: {self._path}: {sentence(reason)}"
            raise messages.bad_argument(_WHAT, "path", problem) from None

    def _renewed(self) -> dict[str, Any]:
        renewed = super()._renewed()
        return renewed if self._source is None else {**renewed, "version": self._version}


class _Rows:
    """Reads rows as a stream of Arrow."""

    def __init__(self, data: Any, columns: list[str] | None) -> None:
        import pyarrow

        self._pyarrow = pyarrow
        self._data = data
        known = data.schema.names
        # What is unknown is left to the check of the columns, which says what there is.
        tops = known if columns is None else [name.partition(".")[0] for name in columns]
        self._columns = [name for name in known if name in tops] or known

    def take(self, numbers: list[int]) -> bytes:
        """The rows with these numbers, in their order; without any, the columns alone."""
        pyarrow = self._pyarrow
        if numbers:
            table = self._data.take(numbers, columns=self._columns)
        else:
            fields = [self._data.schema.field(name) for name in self._columns]
            table = pyarrow.schema(fields).empty_table()
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        made: bytes = sink.getvalue().to_pybytes()
        return made


def _identity(data: Any) -> tuple[int, list[int]]:
    """What distinguishes the data from others, and where each fragment ends."""
    digest = hashlib.blake2b(digest_size=8)
    ends, end = [], 0
    for fragment in data.get_fragments():
        rows = fragment.count_rows()
        names = sorted(file.path for file in fragment.data_files())
        digest.update(repr((names, rows, fragment.deletion_file())).encode())
        end += rows
        if rows:
            ends.append(end)
    if not end:
        raise messages.bad_argument(_WHAT, "path", f"names no samples: {data.uri} has no rows")
    return int.from_bytes(digest.digest(), "little"), ends


def _is_panic(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


def _first_line(error: BaseException) -> str:
    """What happened, without the places in the sources of the package."""
    return str(error).partition("\n")[0].partition(", /")[0]
