"""What the loaders of all frameworks have in common: the batches of a reader after a function, and
the state of both.

A loader has one iterator at a time, and each iteration is an epoch. The RNG that operators in the
function use by default gets another seed with each batch, derived from the loader's own seed, the
shard, the epoch and the step. So the state of a loader is that of its reader and one seed: what is
drawn depends neither on other parts of the program nor on what has been prefetched, and the state
of one rank, which is all that some checkpoints keep, can't give its random numbers to another.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

from penstock._errors import messages
from penstock._operators import call_sites
from penstock._state.prefetch import prefetch as prefetching
from penstock._state.rng import RNG, default_rng, derived_seed, get_default_rng

if TYPE_CHECKING:
    from penstock.readers import Reader
    from penstock.readers._base.position import Position

VERSION = 2
"""The version of a loader's state. In version 1, an RNG went on from batch to batch."""

_KEYS = {"reader", "base"}


class Batches:
    """The batches of a loader, with its state.

    Args:
        reader: The reader, which nothing else uses.
        fn: Gets the outputs of the reader for one batch.
        batch_size: The number of samples in a batch.
        prefetch: How many batches to prepare in advance.
        rng: The RNG that operators in `fn` use by default; a new one if None.
    """

    what: ClassVar[str] = "Loader"
    """The name of the loader, for messages."""

    def __init__(
        self,
        reader: Reader,
        fn: Callable[..., Any] | None,
        batch_size: SupportsIndex | None,
        prefetch: SupportsIndex,
        rng: RNG | None,
    ) -> None:
        from penstock.readers import Reader

        super().__init__()
        what = self.what
        if not isinstance(reader, Reader):
            raise messages.wrong_argument(what, "reader", reader, "a reader")
        if fn is not None and not callable(fn):
            raise messages.wrong_argument(what, "fn", fn, "a function")
        if rng is not None and not isinstance(rng, RNG):
            raise messages.wrong_argument(what, "rng", rng, "an RNG")
        size = reader.max_batch_size if batch_size is None else batch_size
        if size is None:
            raise TypeError(f"{what}: the argument `batch_size` is missing.")
        try:
            depth = operator.index(prefetch)
        except TypeError:
            raise messages.wrong_argument(what, "prefetch", prefetch, "an integer") from None
        if depth < 0:
            raise ValueError(f"{what}: `prefetch` can't be negative, got {depth}.")
        self.reader = reader
        self.fn = fn
        self.rng = RNG(_drawn_seed()) if rng is None else rng
        self._base = str(self.rng.state)
        self._batch_size = reader._check_batch_size(size)
        self._depth = depth
        self._running: Iteration | None = None
        self._has_warned = False
        self._lock = threading.RLock()

    def _own_shard(self) -> dict[str, int]:
        """The `shard_id` and `num_shards` of this process."""
        raise NotImplementedError

    def _converted(self, data: Any) -> Any:
        """The result of `fn` with arrays of the framework. Waits for them."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            self._stop()
            number, length = self._to_come()
            self._check_even(number)
            self._running = self._begun(length)
            return self._running

    def __len__(self) -> int:
        with self._lock:
            running = self._running
            if running is not None and not running.is_over:
                return running.length
            return self._to_come()[1]

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Begin the epoch with this number next; the order and the augmentations depend on it.

        If a state was loaded that is in the middle of this epoch, the rest of it comes next.
        """
        from penstock.readers._base.options import checked_epoch

        number = checked_epoch(self.what, epoch)
        with self._lock:
            self._stop()
            self._divide()
            self.reader.set_epoch(number)

    def state_dict(self) -> dict[str, Any]:
        """The state as of the current batch, as a dictionary that can be stored as JSON."""
        with self._lock:
            self._divide()
            return {
                "version": VERSION,
                "reader": str(self.reader.get_state()),
                "base": self._base,
            }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was called; the next iteration is the rest of that epoch.

        The state may be that of any rank, also of a run with more or fewer of them.
        """
        what = self.what
        if not isinstance(state_dict, Mapping) or not {*state_dict} >= _KEYS:
            raise messages.wrong_argument(
                what, "state_dict", state_dict, f"a result of `{what}.state_dict()`"
            )
        if state_dict.get("version") not in (1, VERSION):
            raise ValueError(
                f"{what}: the state has version {state_dict.get('version')!r}; this release "
                f"supports version {VERSION}."
            )
        base = RNG(state=state_dict["base"]).state
        with self._lock:
            self._stop()
            self._divide()
            self.reader.load_state_dict({"state": state_dict["reader"]})
            self._base = str(base)
            if self.rng._by_sample:
                self.rng.state = base

    def __getstate__(self) -> dict[str, Any]:
        # A copy begins an iteration of its own.
        return {**self.__dict__, "_running": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def _divide(self) -> None:
        """Take this process's shard. Not at construction, which may be before it has a rank."""
        if self.reader._position is None:
            self.reader._take_shard(**self._own_shard())
            self.reader._even_out()

    def _to_come(self) -> tuple[int, int]:
        """The number of the epoch that comes next, and how many batches it has altogether."""
        self._divide()
        return self.reader._epoch_to_come(self._batch_size)

    def _check_even(self, number: int) -> None:
        """Warn if the shards have different numbers of batches."""
        if self._has_warned:
            return
        counts = self.reader._batches_of_shards(number, self._batch_size)
        if len(counts) > 1:
            self._has_warned = True
            shown = " and ".join(map(str, counts))
            call_sites.warn(
                f"{self.what}: the shards have different numbers of batches, {shown}. Training in "
                "several processes hangs when some of them have no batch left: create the reader "
                "with `last_batch` 'wrap', 'pad' or 'drop'."
            )

    @property
    def _shard(self) -> int:
        return self.reader._options.shard_id

    def _seed_of(self, position: Position, step: int) -> int:
        """The seed of the RNG for a batch of the epoch that the reader is in."""
        base = RNG(state=self._base)._current_state()
        # Steps are counted anew where ranks of another number divide the rest of an epoch.
        cuts = len(position.order.plan.cuts)
        return derived_seed(*base, self._shard, position.number, step, *([cuts] if cuts else []))

    def _begun(self, length: int) -> Iteration:
        """An iteration over the epoch that comes next, which has so many batches."""
        position = self.reader._position
        is_left = position is not None and position.is_unfinished
        epoch = self.reader.next_epoch(self._batch_size, restart=is_left)
        return Prefetched(self, length, prefetching(self._prepared(epoch), self._depth))

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def _prepared(self, epoch: Iterator[Any]) -> Iterator[Any]:
        """The results of `fn`, which may still be being computed."""
        for outputs in epoch:
            position = self.reader._position
            assert position is not None
            if not self.rng._by_sample:
                self.rng.seed = self._seed_of(position, position.step - 1)
            with default_rng(self.rng):
                item = self._applied(outputs)
            yield item

    def _applied(self, outputs: Any) -> Any:
        if self.fn is None:
            return outputs
        return self.fn(*outputs) if isinstance(outputs, tuple) else self.fn(outputs)


class Iteration(Iterator[Any]):
    """One iteration over the batches of a loader, which ends when the next one begins."""

    def __init__(self, batches: Batches, length: int) -> None:
        self.length = length
        self.is_over = False
        self._is_closed = False
        self._batches = batches

    def __len__(self) -> int:
        return self.length

    def __next__(self) -> Any:
        if self._is_closed:
            raise RuntimeError(
                f"{self._batches.what}: this iterator has ended, since another one was started, or "
                "the epoch or the state was set. A loader has one iterator at a time."
            )
        try:
            item = self._next()
        except StopIteration:
            self.is_over = True
            raise
        return self._batches._converted(item)

    def close(self) -> None:
        """End the iteration."""
        self._is_closed = not self.is_over

    def _next(self) -> Any:
        """The next item, before it is converted for the framework."""
        raise NotImplementedError


class Prefetched(Iteration):
    """An iteration in which this process prepares the next batches."""

    def __init__(self, batches: Batches, length: int, items: prefetching[Any]) -> None:
        super().__init__(batches, length)
        self._items = items

    def _next(self) -> Any:
        return next(self._items)

    def close(self) -> None:
        """Go back to the current item, which prefetching has moved the reader away from."""
        super().close()
        self._items.close()


def _drawn_seed() -> int:
    rng = get_default_rng()
    return rng() << 32 | rng()
