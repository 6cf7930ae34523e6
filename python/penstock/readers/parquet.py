"""`readers.Parquet`: columns of Parquet files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex

from penstock._runtime.device import DeviceLike
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, paths
from penstock.readers._base.table import FilesOfTable, column_names

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Parquet(FilesOfTable):
    """Reads rows of Parquet files, as a dict of columns.

    Numbers are scalars of the column's type, lists of numbers arrays (lists of lists must be
    rectangular), texts and other bytes uint8. An image or a sound of Hugging Face, a structure
    with the fields `bytes` and `path`, is its bytes, ready for a decoder. Dates and times are
    the integers that are stored. Rows with nulls in a column that is read are bad samples; see
    `on_error`. Where a sample came from is its `source_info`: the file and the row.

    Files are decoded a page at a time (about a megabyte), and pages are cached for the rows next to
    each other. For random access that is too much: `shuffle="groups"` shuffles row groups, then
    the rows in a window of `initial_fill`, so that pages are decoded once. Files may be compressed
    with Snappy, gzip, zstd or LZ4.

    Args:
        path: The name of a file, or of several, or a folder, whose files that end with `.parquet`
            are read in the order of their names, with those of the folders in there. The URL of a
            folder that itself ends with `.parquet` needs a slash behind it.
        columns: The names of the columns to read. Fields of structures have a dot in between,
            such as "image.path". By default all columns that can be read.

    Example:
        >>> import pyarrow, pyarrow.parquet
        >>> table = pyarrow.table({"image": [b"one", b"two"], "label": [3, 4]})
        >>> pyarrow.parquet.write_table(table, "train.parquet")
        >>> reader = ndd.readers.Parquet(path="train.parquet", columns=["image", "label"])
        >>> for batch in reader.next_epoch(batch_size=2):
        ...     print(batch["label"].torch().tolist(), bytes(batch["image"].tensors[1]))
        [3, 4] b'two'
    """

    _format = "parquet"
    _ending = ".parquet"

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        path: Name | Iterable[Name],
        columns: str | Iterable[str] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._columns = column_names("readers.Parquet", columns)
        self._given = paths("readers.Parquet", "path", path)
        super().__init__(max_batch_size, name, device, num_inputs, **common)
