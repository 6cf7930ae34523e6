"""What a format gives to its reader: samples by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.readers.order import Numbers

if TYPE_CHECKING:
    from penstock._core import Value


class Source(Protocol):
    """A data set whose samples are read by number.

    `fetch` must return at once and leave the reading to the engine, as `_core.Files.read` does on
    the threads of `pool.io_pool()`; what is known already (labels, boxes) it gives as finished
    values.
    """

    def __len__(self) -> int: ...

    def fingerprint(self) -> int:
        """A number of 64 bits that tells whether the data set is another one."""
        ...

    def name(self, number: int) -> str:
        """What users know a sample by, usually a file name."""
        ...

    def fetch(self, numbers: Numbers, batch: bool) -> tuple[Value, ...]:
        """Values of samples: batches, or single ones. Does not wait for them."""
        ...
