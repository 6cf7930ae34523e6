"""The iterator over an epoch, which is what most programs see of a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock._traceback import public

if TYPE_CHECKING:
    from penstock.readers.base import Reader
    from penstock.readers.position import Position

Item_co = TypeVar("Item_co", covariant=True)


class UnfinishedEpochWarning(UserWarning):
    """An epoch was begun while an earlier one was not at its end."""


@public
class Epoch(Generic[Item_co]):
    """An iterator over an epoch. `len` is its number of batches, or samples.

    It counts for itself, as in the original: one that was left goes on to its own length, even
    when another one has been begun since. Threads may share one; each batch goes to one of them.
    """

    def __init__(self, reader: Reader, position: Position) -> None:
        self._reader = reader
        self._life = position.life
        self._count = position.coming()
        self._left: int | None = None
        self._is_over = False
        self._given = 0
        """What the reader had given altogether when it last gave something to this iterator."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item_co]:
        return self

    def __next__(self) -> Item_co:
        reader = self._reader
        with reader._guard():
            reader._moving()
            position = reader._position
            if position is None or position.life is not self._life:
                if self._is_over:
                    raise StopIteration
                raise RuntimeError(
                    f"{reader._what}: the reader has started over since this iterator was made. "
                    "Ask for another one with `reader.next_epoch()`."
                )
            if self._left is None:
                self._left = self._count = reader._begin(position)
                self._given = position.given
            else:
                self._left += self._put_back(position)
            while self._left:
                try:
                    outputs: Any = reader._next(position)
                finally:
                    # An error may come before the reader has moved, or after.
                    self._left -= position.given > self._given
                    self._given = position.given
                if outputs is not None:
                    item: Item_co = outputs
                    return item
            if not self._is_over:
                self._is_over = True
                position.finish_if_done()
            raise StopIteration

    def _put_back(self, position: Position) -> int:
        """How many batches come again: a loop over `prefetch` that is left puts its reader back."""
        if position.given >= self._given:
            # Not less: others may have been given something in between.
            self._given = position.given
            return 0
        batches = (self._given - position.given) // position.batch_size
        self._given, self._is_over = position.given, False
        return batches
