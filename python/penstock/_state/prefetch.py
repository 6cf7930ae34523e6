"""prefetch: compute the next items while a loop uses the current one."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import Generic, SupportsIndex, TypeAlias, TypeVar

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import hide_frames, hides_frames, public
from penstock._state import item_states, run_ahead

__all__ = ["prefetch"]

T = TypeVar("T")
Outcome: TypeAlias = tuple[T, None] | tuple[None, Exception]


@public
class prefetch(Generic[T]):
    """Iterate over batches while the next ones are computed in the background.

    Operator calls return immediately and run in the background, so it is enough to ask a
    generator that reads, decodes and augments for its next items early. The generator itself runs
    in the calling thread, between two iterations of the loop:

        def batches():
            for jpegs, labels in reader.next_epoch(batch_size=64):
                yield ndd.resize(ndd.decoders.image(jpegs), size=[224, 224]), labels

        for images, labels in ndd.prefetch(batches()):
            train_step(images.torch(), labels.torch())

    An exception in the source is raised after the items before it. In the loop's body, the states
    of readers and RNGs, and checkpoints, are those of the current item. When the loop is left early
    (`break`, `close()`, or the end of a `with`), the source is closed, and readers and RNGs that it
    used go back to the current item: the next loop continues after it. Ctrl-C while the source
    computes an item does the same. Use an RNG either in the source or in the loop's body: one that
    both use has no state to resume from, and asking for it raises.

    Args:
        iterable: What to iterate over, such as a generator.
        depth: How many items to prefetch; 0 turns prefetching off.
        length: How many items there are, for `len()` and progress bars such as tqdm's. It is
            needed for generators only; other iterables know it.

    Example:
        >>> [item.item() for item in ndd.prefetch(ndd.tensor(i) for i in range(3))]
        [0, 1, 2]
    """

    def __init__(
        self,
        iterable: Iterable[T],
        depth: SupportsIndex = 2,
        *,
        length: SupportsIndex | None = None,
    ) -> None:
        try:
            self._depth = operator.index(depth)
        except TypeError:
            raise messages.wrong_argument("prefetch", "depth", depth, "an integer") from None
        if self._depth < 0:
            raise ValueError(
                f"prefetch: `depth` is the number of items to prefetch; it can't be negative, got "
                f"{self._depth}."
            )
        try:
            self._length = None if length is None else operator.index(length)
        except TypeError:
            raise messages.wrong_argument("prefetch", "length", length, "an integer") from None
        if self._length is not None and self._length < 0:
            raise ValueError(f"prefetch: `length` can't be negative, got {self._length}.")
        try:
            self._source = iter(iterable)
        except TypeError:
            raise TypeError(
                f"prefetch: expected an iterable, such as a generator, got "
                f"{messages.describe(iterable)}. (Call a generator function: "
                "`prefetch(batches())`.)"
            ) from None
        self._iterable = iterable
        if self._length is None and not isinstance(iterable, Sized):
            # Iterators over lists, for instance, know how many items are left.
            hint = operator.length_hint(self._source, -1)
            self._length = None if hint < 0 else hint
        self._outcomes = _outcomes(self._source)
        self._loop: item_states.Loop | None = item_states.Loop()
        self._was_interrupted = False
        self._iteration = _core.Loop().iteration()

    def __iter__(self) -> Iterator[T]:
        return self

    @hides_frames
    def __next__(self) -> T:
        try:
            loop = self._loop
            if loop is None:
                raise self._end()
            item_states.handing_out(loop)
            waiting = loop.waiting
            # Stop after an error until the user has seen it.
            while len(waiting) <= self._depth and not (waiting and waiting[-1].error):
                self._pull(loop)
            self._run_ahead(waiting)
            pull = waiting[0]
            item: T = pull.item
            error = pull.error
            # No calls from here to the `return`: an interrupt after one would lose the item.
            del waiting[0]
            if error is None:
                return item
            item_states.close(loop)  # no items wait after an error; the next pull opens it again
            if isinstance(error, StopIteration):
                self._loop = None
            try:
                raise error
            finally:
                del error, pull  # the traceback refers to this frame
        except BaseException as raised:
            hide_frames(raised)
            raise

    def _run_ahead(self, waiting: list[item_states.Pull]) -> None:
        """What the loop's body does with the items is done ahead as well."""
        depth = run_ahead.allowed()
        items = [run_ahead.values(pull.item) for pull in waiting] if depth else []
        if items and items[0]:
            self._iteration.begin(items[0], items[1:], depth)
        else:
            self._iteration.end(False)

    def _end(self) -> Exception:
        if not self._was_interrupted:
            return StopIteration()
        return RuntimeError(
            "prefetch: the loop was interrupted while its source computed an item, and can't "
            "continue. Readers and RNGs are back at the item before; a new loop continues after it."
        )

    def __len__(self) -> int:
        if self._length is not None:
            return self._length
        if not isinstance(self._iterable, Sized):
            raise TypeError(
                f"prefetch: {messages.describe(self._iterable)} has no length; pass "
                "`prefetch(..., length=...)`."
            )
        return len(self._iterable)

    def __bool__(self) -> bool:
        return True  # `bool()` would call `__len__`, and the length may be unknown

    def close(self) -> None:
        """Drop the prefetched items, close the source and end the loop."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        self._iteration.end(False)
        try:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
        finally:
            item_states.close(loop)

    def __enter__(self) -> prefetch[T]:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_loop", None) is not None:
            self.close()

    def _pull(self, loop: item_states.Loop) -> None:
        pull = item_states.Pull()

        def take() -> None:
            pull.item, pull.error = next(self._outcomes)

        try:
            item_states.pull_item(loop, pull, take)
        except BaseException:  # Ctrl-C: the item and the prefetched ones are lost
            self._was_interrupted = True
            self.close()
            raise


def _outcomes(source: Iterator[T]) -> Iterator[Outcome[T]]:
    """The items of a source, or the exceptions in their place.

    A generator, since its frame has no caller while it is suspended: otherwise the traceback of a
    pending error would keep the loop alive after the user has left it.
    """
    while True:
        try:
            yield next(source), None
        except Exception as error:
            yield None, error
