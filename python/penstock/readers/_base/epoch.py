"""The iterator over an epoch, which is what most programs see of a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from penstock._errors.tracebacks import hide_frames, hides_frames, public

if TYPE_CHECKING:
    from penstock.readers._base.position import Position
    from penstock.readers._base.reader import Reader

Item_co = TypeVar("Item_co", covariant=True)


class UnfinishedEpochWarning(UserWarning):
    """An epoch was begun while an earlier one was not at its end."""


@public
class Epoch(Generic[Item_co]):
    """An iterator over an epoch. `len` is its number of batches, or samples.

    It counts for itself, as in DALI: one that was left goes on to its own length, even
    when another one has been begun since. Threads may share one; each batch goes to one of them.
    """

    def __init__(self, reader: Reader, position: Position) -> None:
        self._reader = reader
        self._life = position.life
        self._iteration = reader._ahead.loop.iteration()
        self._progress = _Progress(position.coming())

    def __len__(self) -> int:
        return self._progress.length

    def __iter__(self) -> Iterator[Item_co]:
        return self

    @hides_frames
    def __next__(self) -> Item_co:
        reader = self._reader
        moved: Position | None = None
        try:
            with reader._guard():
                reader._moving()
                before, so_far = reader._position, self._progress
                outputs, after, progress = self._step(before, so_far)
                # All at once: Python handles signals at calls and loops only, of which none is
                # from here to the end of the `with`.
                moved = reader._position = after
                self._progress = progress
            if outputs is None:
                raise StopIteration
        except BaseException as error:
            if moved is not None and outputs is not None:
                # Interrupted on the way out, so that nobody gets what was taken.
                with reader._guard():
                    if reader._position is moved:
                        reader._position, self._progress = before, so_far
            hide_frames(error)
            raise
        item: Item_co = outputs
        return item

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self._reader._what}: the iterator of an epoch can't be pickled or copied. Do so "
            "with the reader, which goes on at the same place, and ask that for `next_epoch()`."
        )

    def _step(
        self, position: Position | None, progress: _Progress
    ) -> tuple[Any, Position, _Progress]:
        """What comes next (None at the end), and where reader and iterator are then."""
        reader = self._reader
        length, left, given, is_over = progress
        if position is None or position.life is not self._life:
            if is_over:
                raise StopIteration
            raise RuntimeError(
                f"{reader._what}: the reader has started over since this iterator was made. "
                "Ask for another one with `reader.next_epoch()`."
            )
        moved = position.copy()
        if left is None:
            length = left = reader._begin(moved)
        elif moved.given < given:
            # A loop over `prefetch` that is left puts its reader back: batches come again.
            left += (given - moved.given) // moved.batch_size
            is_over = False
        # Others may have been given something in between.
        given = moved.given
        while left:
            try:
                outputs = reader._next(moved, self._iteration)
            except Exception:
                left -= moved.given > given
                progress = _Progress(length, left, moved.given, is_over)
                reader._position, self._progress = moved, progress
                raise
            left -= 1
            given = moved.given
            if outputs is not None:
                return outputs, moved, _Progress(length, left, given, is_over)
        if not is_over:
            moved.finish_if_done()
        self._iteration.end()
        return None, moved, _Progress(length, left, given, True)


class _Progress(NamedTuple):
    """How far an iterator is.

    Args:
        length: How many batches its epoch has.
        left: How many are left; None before the first.
        given: What the reader had given altogether when it last gave something to this iterator.
        is_over: Whether it has come to its end.
    """

    length: int
    left: int | None = None
    given: int = 0
    is_over: bool = False
