"""Running ahead of a loop."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import Generic, SupportsIndex, TypeAlias, TypeVar

from penstock._errors import messages
from penstock._errors.tracebacks import hide_frames, hides_frames, public
from penstock._state import item_states

__all__ = ["prefetch"]

T = TypeVar("T")
Outcome: TypeAlias = tuple[T, None] | tuple[None, Exception]


@public
class prefetch(Generic[T]):
    """Iterate over batches some items ahead, so that they are being made while one is used.

    Calls of operators return at once, and their work goes on in the background. So a generator
    that reads, decodes and augments only has to be asked for its next items early; it runs in
    the calling thread, between two items of the loop:

        def batches():
            for jpegs, labels in reader.next_epoch(batch_size=64):
                yield ndd.resize(ndd.decoders.image(jpegs), size=[224, 224]), labels

        for images, labels in ndd.prefetch(batches()):
            train_step(images.torch(), labels.torch())

    What the source raises is raised when the loop gets there, after the items before it. In the
    loop, states of readers and RNGs, and checkpoints, are those of the item in hand. Left early
    (`break`, `close()`, or the end of a `with`), the source is closed, and the readers and RNGs
    it has used go back to the item that was in hand: the next loop continues after it. So does
    Ctrl-C while the source makes an item, which ends the loop. Draw from
    an RNG either in the source or in the loop's body; of one that both draw from, there is no
    state to resume from, and asking for it raises.

    Args:
        iterable: What to iterate over, such as a generator.
        depth: How many items to be ahead of the one in hand. With 0, nothing runs ahead.

    Example:
        >>> [item.item() for item in ndd.prefetch(ndd.tensor(i) for i in range(3))]
        [0, 1, 2]
    """

    def __init__(self, iterable: Iterable[T], depth: SupportsIndex = 2) -> None:
        try:
            self._depth = operator.index(depth)
        except TypeError:
            raise messages.wrong_argument("prefetch", "depth", depth, "an integer") from None
        if self._depth < 0:
            raise ValueError(
                f"prefetch: `depth` says how many items to be ahead; it can't be negative, got "
                f"{self._depth}."
            )
        try:
            self._source = iter(iterable)
        except TypeError:
            raise TypeError(
                f"prefetch: expected something to iterate over, such as a generator, got "
                f"{messages.describe(iterable)}. (Of a generator function, give what it returns: "
                "`prefetch(batches())`.)"
            ) from None
        self._iterable = iterable
        self._outcomes = _outcomes(self._source)
        self._loop: item_states.Loop | None = item_states.Loop()
        self._was_interrupted = False

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
            # Nothing is taken after an error before the user knows of it.
            while len(waiting) <= self._depth and not (waiting and waiting[-1].error):
                self._pull(loop)
            pull = waiting[0]
            item: T = pull.item
            error = pull.error
            # If there is an item, no call follows here, after which an interrupt could come.
            del waiting[0]
            if error is None:
                return item
            item_states.close(
                loop
            )  # nothing waits behind an error; another pull would open it again
            if isinstance(error, StopIteration):
                self._loop = None
            try:
                raise error
            finally:
                del error, pull  # its traceback leads here
        except BaseException as raised:
            hide_frames(raised)
            raise

    def _end(self) -> Exception:
        if not self._was_interrupted:
            return StopIteration()
        return RuntimeError(
            "prefetch: the loop was interrupted while its source made an item, and can't go on. "
            "Readers and RNGs are where they were with the item before: begin another loop, which "
            "continues after it."
        )

    def __len__(self) -> int:
        if not isinstance(self._iterable, Sized):
            raise TypeError(
                f"prefetch: {messages.describe(self._iterable)} doesn't know its length."
            )
        return len(self._iterable)

    def __bool__(self) -> bool:
        return True  # not a question about the length, which may be unknown

    def close(self) -> None:
        """Drop the items that wait and close the source. Nothing comes after this."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
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
            item_states.pulling(loop, pull, take)
        except BaseException:  # Ctrl-C: the item is lost, and what waits with it
            self._was_interrupted = True
            self.close()
            raise


def _outcomes(source: Iterator[T]) -> Iterator[Outcome[T]]:
    """What becomes of each `next` of a source.

    In a generator, whose frame has no caller while it waits. Otherwise the traceback of an error
    that waits would lead to the loop and keep it alive after the user has left it.
    """
    while True:
        try:
            yield next(source), None
        except Exception as error:
            yield None, error
