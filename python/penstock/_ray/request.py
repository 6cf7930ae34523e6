"""Requests for batches, and what becomes of one: the same code in a worker and in the trainer.

A request says everything that a batch depends on: the numbers of its samples and the seed of what
is drawn for it. Any process can make it, and make it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex

from penstock._errors import bad_samples, faults
from penstock._operators.submit import settle
from penstock._runtime.mode import EvalMode, current_mode
from penstock._state import item_states
from penstock._state.rng import RNG, default_rng
from penstock.readers._base.bad_samples import NO_FAULT_OF_THE_SAMPLE, SampleError
from penstock.readers._base.io_pool import io_pool
from penstock.readers._base.source import fetch

if TYPE_CHECKING:
    from penstock._core import Fault, Value
    from penstock.readers import Reader
    from penstock.readers._base.rows import Numbers

WHAT = "ray.Loader"

Function = Callable[[Any], Iterator[Any]]
"""The user's generator function."""


class Request(NamedTuple):
    """All that a batch depends on.

    Args:
        numbers: Its samples.
        epochs: The epoch of all samples, or that of each.
        seed: What its random numbers are derived from.
        batch_size: The number of samples in a full batch.
        on_error: What becomes of bad samples, as in readers.
    """

    numbers: Numbers
    epochs: int | Numbers
    seed: int
    batch_size: int
    on_error: str


class Outcome(NamedTuple):
    """What became of a request.

    Args:
        item: What the loop yielded.
        is_empty: Whether there is no item, because all samples were bad.
        error: What was raised in place of an item.
        errors: Bad samples that were left out or replaced.
        bad: Samples that others must stand in for before there is an item, by index.
    """

    item: Any = None
    is_empty: bool = False
    error: Exception | None = None
    errors: tuple[SampleError, ...] = ()
    bad: tuple[tuple[int, SampleError], ...] = ()


def carry_out(loop: Function, reader: Reader, request: Request) -> Outcome:
    """Read the samples of a request and run the loop on them, up to its `yield`."""
    notes = _Notes(reader)
    try:
        return _carried_out(loop, reader, request, notes)
    except Exception as error:
        return Outcome(error=error, errors=notes.found())


def _carried_out(loop: Function, reader: Reader, request: Request, notes: _Notes) -> Outcome:
    source, numbers = reader._opened(), request.numbers
    values = fetch(source, numbers, True, request.epochs)
    if request.on_error != "raise":
        bad = _bad(values)
        if bad and request.on_error == "substitute":
            found = ((index, notes.error(int(numbers[index]), fault)) for index, fault in bad)
            return Outcome(bad=tuple(found))
        for index, fault in bad:
            notes._note_later(int(numbers[index]), fault)
        if bad:
            good = sorted({*range(len(numbers))} - {index for index, _ in bad})
            if not good:
                return Outcome(is_empty=True, errors=notes.found())
            numbers, values = numbers[good], tuple(v.pick(io_pool(), good) for v in values)
    if current_mode() > EvalMode.eager:
        for value in values:
            settle(value)
    outputs = reader._yields(bad_samples.mark(values, notes, numbers))
    item = _one_item(loop, Feed(reader, outputs, request.batch_size), request.seed)
    return Outcome(item, errors=notes.found())


def _bad(values: tuple[Value, ...]) -> list[tuple[int, Fault]]:
    """Samples that can't be read, by index. Waits for them."""
    found = {index: fault for value in values for index, fault in value.faults()}
    for fault in found.values():
        if fault.cause[0] in NO_FAULT_OF_THE_SAMPLE:
            faults.raise_fault(fault)
    return sorted(found.items(), key=lambda item: item[0])


def _one_item(loop: Function, feed: Feed, seed: int) -> Any:
    rng, pull, watching = RNG(seed), item_states.Pull(), item_states.Loop()
    items: Any = None

    def take() -> None:
        nonlocal items
        with default_rng(rng):
            items = loop(feed)
            if not hasattr(items, "__next__"):
                raise TypeError(
                    f"{WHAT}: `loop` must be a generator function, which yields an item for each "
                    f"batch of `reader.next_epoch()`; it returned {type(items).__name__}."
                )
            pull.item = next(items, _NOTHING)

    try:
        item_states.pull_item(watching, pull, take)
        moved = [thing for thing, _ in pull.records.values() if thing is not rng]
    finally:
        item_states.close(watching)
    if moved:
        raise _moves(moved[0])
    if pull.item is _NOTHING or not feed.batch.is_taken:
        did = "ended without an item" if pull.item is _NOTHING else "yielded an item before it read"
        raise RuntimeError(
            f"{WHAT}: `loop` {did}. It must read one batch of `reader.next_epoch()` for each item "
            "that it yields."
        )
    if hasattr(items, "close"):
        items.close()
    return pull.item


def _moves(thing: object) -> RuntimeError:
    if isinstance(thing, RNG):
        return RuntimeError(
            f"{WHAT}: `loop` draws from an RNG of its own. What it draws would depend on which "
            "worker makes which batch, so that no run could be repeated. Leave out `rng=`: the "
            "default RNG is seeded for each batch, by `seed`, rank, epoch and step."
        )
    return RuntimeError(
        f"{WHAT}: `loop` moves a {type(thing).__name__} other than the reader that it is given. "
        "How far that is would depend on which worker makes which batch. Read everything that a "
        "batch needs from the one reader."
    )


class Feed:
    """What the loop gets in place of the reader: it has one batch, and answers as the reader."""

    def __init__(self, reader: Reader, outputs: Any, batch_size: int) -> None:
        self._reader = reader
        self._batch_size = batch_size
        self.batch = OneBatch(outputs)

    def next_epoch(
        self, batch_size: SupportsIndex | None = None, *args: Any, **kwargs: Any
    ) -> Iterator[Any]:
        """The one batch, as an iterator."""
        if batch_size is not None and batch_size != self._batch_size:
            raise ValueError(
                f"{WHAT}: `loop` asks for batches of {batch_size}, but the loader was created with "
                f"`batch_size={self._batch_size}`. Leave it out in the loop."
            )
        if kwargs.get("epoch") is not None or kwargs.get("restart"):
            raise RuntimeError(
                f"{WHAT}: `loop` can't choose the epoch; use `loader.set_epoch(n)` before a loop "
                "over the loader."
            )
        return self.batch

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"{WHAT}: `loop` can't call the reader; iterate over `reader.next_epoch()`."
        )

    def __getattr__(self, name: str) -> Any:
        if name in _MOVING:
            raise RuntimeError(
                f"{WHAT}: `loop` can't use `reader.{name}`: the position of the reader is that of "
                f"the loader. Use the loader's own methods."
            )
        return getattr(self._reader, name)


class OneBatch(Iterator[Any]):
    """An iterator that has one batch, and no end: the loop ends with its item."""

    def __init__(self, outputs: Any) -> None:
        self._outputs = outputs
        self.is_taken = False

    def __next__(self) -> Any:
        if self.is_taken:
            raise RuntimeError(
                f"{WHAT}: `loop` reads a second batch before it yields an item. Each item must be "
                "made of one batch, which is what a worker is asked for. For larger items, use a "
                "larger `batch_size`."
            )
        self.is_taken = True
        return self._outputs


class _Notes:
    """Bad samples of one request, those that a decoder left out among them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._found: dict[tuple[int, str], SampleError] = {}
        self._lock = threading.Lock()

    def _note_later(self, number: int, fault: Fault) -> None:
        error = self.error(number, fault)
        with self._lock:
            self._found.setdefault((number, error.reason), error)

    def error(self, number: int, fault: Fault) -> SampleError:
        """The entry in the list of bad samples."""
        return SampleError(self._reader._opened().name(number), number, faults.reason(fault))

    def found(self) -> tuple[SampleError, ...]:
        """All of them, in the order in which they turned up."""
        with self._lock:
            return tuple(self._found.values())


_NOTHING = object()

_MOVING = frozenset(
    ("close", "get_state", "load_state_dict", "reset", "set_epoch", "set_state", "state_dict")
)
"""Methods of readers that are about their position."""
