"""`Loader`: a reader and a generator function, whose batches are made by workers of Ray."""

from __future__ import annotations

import math
import operator
from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, SupportsIndex

from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._ray.crew import Actors, Alone, Crew, Ticket
from penstock._ray.request import WHAT, Function, Outcome, Request
from penstock._state.loader import Batches, Iteration
from penstock._state.rng import RNG
from penstock._torch.distributed import distributed_options
from penstock.readers import Reader
from penstock.readers._base.bad_samples import SampleError
from penstock.readers._base.order import Place
from penstock.readers._base.position import Position

__all__ = ["Loader"]


@public
class Loader:
    """Iterates over the epochs of a reader; actors of Ray read and compute the batches.

    The reader stays in this process, where it only decides which samples make a batch. A worker
    gets their numbers and a seed, reads them, and runs `loop` up to its `yield`. Items come back in
    order, through Ray's object store; arrays in them share its memory.

    What an item is depends on the samples and on `seed`, rank, epoch and step, not on who made it:
    with `workers=0` this process makes the same items, bit for bit. So lost workers are replaced
    and their batches made again, and a batch that takes more than three times as long as usual is
    asked for a second time, of another worker. The loop over the loader gets each sample once.

    Each iteration is the next epoch, a whole one even if the previous loop was left early. As in
    `torch.Loader`, a reader without shards gets the one of its rank in a distributed run, and
    `state_dict` is about the batch that the loop is at; it is all that has to be saved.

    Args:
        loop: A generator function that gets the reader and yields an item for each batch of
            `reader.next_epoch()`. It is called anew for each batch: what it does before its `for`,
            it does each time. It must not draw from an RNG of its own, nor move other readers.
        reader: A reader, which only this loader uses. Workers open the data set under the same
            name, so all nodes must see it there.
        batch_size: The number of samples in a batch.
        workers: The number of actors; 0 for this process.
        num_cpus: The CPUs, and so the threads, of each actor.
        seed: What random numbers are derived from, with the rank, the epoch and the step.
        ahead: How many batches are asked for in advance, which bounds the memory that they take.
            By default two more than workers can work on, two each.
        options: Other options of an actor of Ray, such as `{"resources": {"loading": 1}}`.

    Example:
        >>> import pathlib, tempfile
        >>> def loop(reader):
        ...     for files, labels in reader.next_epoch():
        ...         yield files + 1, labels
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = [pathlib.Path(folder, f"{number}.bin") for number in range(4)]
        ...     sizes = [file.write_bytes(bytes([number] * 3)) for number, file in enumerate(files)]
        ...     loader = ndd.ray.Loader(loop, ndd.readers.File(files=files), batch_size=2)
        ...     for data, labels in loader:
        ...         print(data.torch().tolist())
        [[1, 1, 1], [2, 2, 2]]
        [[3, 3, 3], [4, 4, 4]]
    """

    def __init__(
        self,
        loop: Function,
        reader: Reader,
        *,
        batch_size: SupportsIndex | None = None,
        workers: SupportsIndex = 0,
        num_cpus: float = 1,
        seed: SupportsIndex = 0,
        ahead: SupportsIndex | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(loop):
            raise messages.wrong_argument(WHAT, "loop", loop, "a generator function")
        count = _whole("workers", workers, 0)
        depth = 2 * count + 2 if ahead is None else _whole("ahead", ahead, 0)
        number = _whole("seed", seed, None)
        is_number = isinstance(num_cpus, int | float) and not isinstance(num_cpus, bool)
        if not is_number or not math.isfinite(num_cpus) or num_cpus < 0:
            raise messages.wrong_argument(WHAT, "num_cpus", num_cpus, "a number of CPUs")
        if options is not None and not isinstance(options, Mapping):
            raise messages.wrong_argument(WHAT, "options", options, "a dict of options of an actor")
        self._batches = _Batches(reader, None, batch_size, depth, RNG(number))
        self.reader = reader
        self.loop = loop
        self.workers = count
        self._crew: Crew
        if count:
            self._crew = Actors(loop, reader, count, num_cpus, options or {})
        else:
            self._crew = Alone(loop, reader)
        self._batches.crew = self._crew

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Begin the epoch with this number next; the order and the augmentations depend on it.

        If a state was loaded that is in the middle of this epoch, the rest of it comes next.
        """
        self._batches.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state as of the current batch, as a dictionary that can be stored as JSON."""
        return self._batches.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was called; the next iteration is the rest of that epoch.

        The state may be that of any rank, also of a run with more or fewer of them, and of any
        number of workers.
        """
        self._batches.load_state_dict(state_dict)

    def close(self) -> None:
        """End the iteration and the workers. The loader can't be used any more."""
        self._batches.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if "_crew" in self.__dict__:
            self._crew.close()

    def __repr__(self) -> str:
        size = self._batches._batch_size
        return f"Loader({self.reader!r}, batch_size={size}, workers={self.workers})"


def _whole(name: str, value: SupportsIndex, least: int | None) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise messages.wrong_argument(WHAT, name, value, "a whole number") from None
    if least is not None and number < least:
        raise messages.bad_argument(WHAT, name, f"can't be negative, got {number}")
    return number


class _Batches(Batches):
    """The batches of a `Loader`, with its state."""

    what = WHAT
    crew: Crew | None = None

    def _own_shard(self) -> dict[str, int]:
        return {**distributed_options()}

    def _converted(self, data: Any) -> Any:
        return data

    def _begun(self, length: int) -> _Ordered:
        if self.crew is None:
            raise RuntimeError(f"{WHAT}: the loader is closed; create another one.")
        return _Ordered(self, length, self.crew, self._depth)

    def close(self) -> None:
        """End the iteration and the workers."""
        with self._lock:
            self._stop()
            crew, self.crew = self.crew, None
            if crew is not None:
                crew.close()


class _Ahead(NamedTuple):
    """A batch that was asked for.

    Args:
        ticket: The request.
        place: Where it begins.
        after: Where the next one does.
        errors: Samples for which others stand in.
    """

    ticket: Ticket
    place: Place
    after: Place
    errors: tuple[SampleError, ...] = ()


class _Ordered(Iteration):
    """An iteration in which a crew makes the batches; they are handed out in order."""

    def __init__(self, batches: _Batches, length: int, crew: Crew, depth: int) -> None:
        super().__init__(batches, length)
        self._crew = crew
        self._depth = depth
        self._waiting: deque[_Ahead] = deque()
        self._place: Place | None = None
        """Of the next batch to ask for; None before the first."""
        self._asked = 0
        self._left = 0

    def close(self) -> None:
        """Drop what was asked for in advance. The reader is where the loop is."""
        super().close()
        while self._waiting:
            self._crew.drop(self._waiting.popleft().ticket)

    def _next(self) -> Any:
        reader = self._batches.reader
        if self._place is None:
            self._begin()
        while True:
            self._ask(self._depth + 1)
            if not self._waiting:
                with reader._guard():
                    moved = self._position().copy()
                    moved.finish_if_done()
                    reader._position = moved
                raise StopIteration
            outcome = self._outcome()
            ahead = self._waiting[0]
            with reader._guard():
                reader._moving()
                moved = self._position().copy()
                moved.advance(ahead.after)
                # A batch that failed counts as given: whoever goes on gets the next one.
                self._waiting.popleft()
                reader._position = moved
                for error in (*ahead.errors, *outcome.errors):
                    reader._bad.add_found(error)
            self._ask(self._depth)
            if outcome.error is not None:
                raise outcome.error
            if not outcome.is_empty:
                return outcome.item

    def _begin(self) -> None:
        batches = self._batches
        reader = batches.reader
        with reader._guard():
            reader._moving()
            position = reader._settle_on("epochs", batches._batch_size)
            if position.is_unfinished:
                position = position.at_epoch(position.next_number())
                reader._place(position)
            moved = position.copy()
            self._left = reader._begin(moved)
            self._asked = moved.step
            self._place = moved.place
            reader._position = moved

    def _position(self) -> Position:
        position = self._batches.reader._position
        assert position is not None
        return position

    def _ask(self, count: int) -> None:
        """Ask for batches until so many have been asked for and not been handed out."""
        while self._left and len(self._waiting) < count:
            position, place = self._position(), self._place
            assert place is not None
            order, size = position.order, position.batch_size
            numbers, after = order.draw(place, position.shard, size)
            batches = self._batches
            request = Request(
                numbers,
                order.epochs(place, position.shard, size, len(numbers)),
                batches._seed_of(position, self._asked),
                size,
                batches.reader._options.on_error,
            )
            self._waiting.append(_Ahead(self._crew.submit(request), place, after))
            self._place = after
            self._asked += 1
            self._left -= 1

    def _outcome(self) -> Outcome:
        """What became of the first batch that was asked for; others stand in for bad samples."""
        tried: set[int] = set()
        while True:
            ahead = self._waiting[0]
            outcome = self._crew.wait(ahead.ticket)
            if not outcome.bad:
                return outcome
            request = ahead.ticket.request
            tried.update(error.sample for _, error in outcome.bad)
            numbers = request.numbers.copy()
            for index, error in outcome.bad:
                numbers[index] = self._substitute(ahead.place, index, tried, error)
            errors = (*ahead.errors, *(error for _, error in outcome.bad))
            ticket = self._crew.submit(request._replace(numbers=numbers))
            self._waiting[0] = ahead._replace(ticket=ticket, errors=errors)

    def _substitute(self, place: Place, index: int, tried: set[int], error: SampleError) -> int:
        position = self._position()
        for candidate in position.order.after(place, position.shard, index):
            if candidate not in tried:
                return candidate
        raise RuntimeError(
            f"{WHAT}: none of the {len(tried)} samples of the shard can be read, so that there is "
            f"no substitute. The last error: {error.file}: {error.reason}"
        )
