"""What a format gives to its reader: samples by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from penstock.readers._base.order import Numbers

if TYPE_CHECKING:
    from penstock._core import Value


class Index(Protocol):
    """The samples of a data set, without their data: what the native module finds on opening."""

    def __len__(self) -> int: ...

    def fingerprint(self) -> int:
        """A number of 64 bits that tells whether the data set is another one."""
        ...

    def name(self, number: int) -> str:
        """What users know a sample by, usually a file name."""
        ...


class Source(Index, Protocol):
    """A data set whose samples are read by number.

    `fetch` must return at once and leave the reading to the engine, as `_core.Files.read` does on
    the threads of `pool.io_pool()`; what is known already (labels, boxes) it gives as finished
    values.
    """

    def fetch(self, numbers: Numbers, batch: bool) -> tuple[Value, ...]:
        """Values of samples: batches, or single ones. Does not wait for them."""
        ...


AnyIndex = TypeVar("AnyIndex", bound=Index)


class IndexedSource(Generic[AnyIndex]):
    """All of a source but its `fetch`, which is what formats differ in.

    Args:
        what: The reader, for messages.
        index: The samples.
    """

    def __init__(self, what: str, index: AnyIndex) -> None:
        self._what = what
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def fingerprint(self) -> int:
        """A number that tells whether the data set is another one."""
        return self._index.fingerprint()

    def name(self, number: int) -> str:
        """What users know a sample by."""
        return self._index.name(number)
