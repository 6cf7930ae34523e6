"""`Reader`, the class that all formats extend: what it is told, opens, reads ahead and gives.

A format plugs in a `Source`: how many samples there are, what they are called, a fingerprint that
changes when the data set does, and a `fetch` that turns numbers of samples into values. All else
is the same for all formats, and in the modules beside this one: what readers are told (`options`),
which samples come when (`order`), how far a reader is (`position`), what it reads early
(`lookahead`), what becomes of samples that can't be read (`bad_samples`). So a new format is one
small file:

    class Pairs(Reader):
        \"\"\"Pairs of files. (What users read: what it yields, and its own arguments.)\"\"\"

        def __init__(self, max_batch_size=None, name=None, device="cpu", num_inputs=None, *,
                     left, right, **common: Unpack[Common]) -> None:
            self._left, self._right = left, right
            super().__init__(max_batch_size, name, device, num_inputs, **common)

        def _open(self) -> Source:
            return PairSource(...)

`_open` is called once, at construction or, with `lazy_init`, at the first use. It is the place to
read an index and to raise what is wrong with the arguments. `_yields` turns the outputs into what
users get: a tuple, or for a format with named features a dict.

Threads may share a reader, and an iterator: each batch is given once. The reader's lock is held
while it moves on, which waits for nothing, unless the batch itself is waited for: to see which
samples are bad (`on_error`), or because the mode is synchronous.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar, overload

from penstock import _ahead, _errors, _sift, _sites
from penstock._context import EvalContext
from penstock._device import DeviceLike
from penstock._device import device as to_device
from penstock._invoke import settle
from penstock._mode import EvalMode, current_mode
from penstock._traceback import public
from penstock.readers.bad_samples import BadSamples, SampleError
from penstock.readers.epoch import Epoch, UnfinishedEpochWarning
from penstock.readers.guard import Guard
from penstock.readers.lookahead import Lookahead
from penstock.readers.options import (
    Common,
    Options,
    checked_batch_size,
    with_arguments,
    with_parameters,
)
from penstock.readers.order import Order, Place
from penstock.readers.position import Position, Use, begun
from penstock.readers.source import Source
from penstock.readers.state import ReaderState, Snapshot

if TYPE_CHECKING:
    from threading import RLock

    from penstock._batch import Batch
    from penstock._core import Fault
    from penstock._tensor import Tensor

Self = TypeVar("Self", bound="Reader")


class _Live(NamedTuple):
    """All that changes when a reader goes on."""

    snapshot: Snapshot
    position: Position | None
    restored: Snapshot | None
    errors: list[SampleError]


@public
class Reader:
    """What all readers have in common. They have state: create one, and use it for all epochs.
    Threads may share a reader and its iterators; each batch goes to one of them.

    Args:
        max_batch_size: The largest size of a batch, and the one that `next_epoch` takes when none
            is given to it.
        name: A name for the reader, for messages and checkpoints.
        device: Where the data is read to: the cpu.
        num_inputs: Of no use to readers.
    """

    _position: Position | None
    """None until the first use, which says how the reader is used."""
    _restored: Snapshot | None
    """A state that waits for the first use."""
    _has_warned: bool

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        **common: Any,
    ) -> None:
        self._what = f"readers.{type(self).__name__}"
        if unknown := common.keys() - Common.__annotations__.keys():
            raise _errors.unknown_argument(
                self._what, sorted(unknown), list(inspect.signature(type(self)).parameters)
            )
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{self._what}: `name` must be a text, got {_errors.describe(name)}.")
        try:
            placed = to_device(device) if device is not None else None
        except (TypeError, ValueError) as error:
            raise _errors.told_by(self._what, error, "device") from None
        if placed is not None and placed._code >= 0:
            raise ValueError(
                f"{self._what}: Invalid device: readers read to the cpu. Move what they give with "
                "`.gpu()`, or let an operator do so with `device='gpu'`."
            )
        self.name = name
        self._max_batch_size: int | None = None
        if max_batch_size is not None:
            self._max_batch_size = self._check_batch_size(max_batch_size, "max_batch_size")
        self._options = Options.checked(self._what, common)
        self._bad = BadSamples(self._what, self._options.on_error, self._options.max_errors)
        self._ahead = Lookahead(self._options.depth)
        # What was being read at a fork is the parent's.
        self._lock = Guard(in_child=self._ahead.clear)
        self._source: Source | None = None
        self._refusal: str | None = None
        """Why there can be no source."""
        self._start_over()
        if not self._options.is_lazy:
            self._opened()

    def __init_subclass__(cls) -> None:
        """What `help` and editors show: the format's arguments and those of all."""
        cls.__doc__ = with_arguments(cls.__doc__, Reader.__doc__)
        cls.__signature__ = with_parameters(cls.__init__)  # type: ignore[attr-defined]
        if "__init__" in cls.__dict__:
            # What Python calls it where an argument is missing.
            cls.__init__.__qualname__ = f"readers.{cls.__name__}"
        public(cls)

    # What a format says

    def _open(self) -> Source:
        """Open the data set."""
        raise NotImplementedError

    def _yields(self, outputs: tuple[Any, ...]) -> Any:
        """What users get for the outputs of a batch or sample."""
        return outputs

    # What users call

    @overload
    def next_epoch(
        self, batch_size: SupportsIndex, ctx: EvalContext | None = None, capture: bool = False
    ) -> Epoch[tuple[Batch, ...]]: ...
    @overload
    def next_epoch(
        self, batch_size: None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Epoch[tuple[Tensor | Batch, ...]]: ...
    def next_epoch(
        self,
        batch_size: SupportsIndex | None = None,
        ctx: EvalContext | None = None,
        capture: bool = False,
    ) -> Epoch[Any]:
        """An iterator over the next epoch.

        The first use decides for the reader's life whether it gives batches or single samples, and
        the size of the batches; `reset` makes it forget that, and start over. Run an iterator to
        its end: another epoch goes on where it was left.

        Args:
            batch_size: How many samples a batch has. Without it (and without `max_batch_size`),
                single samples are given.
            ctx: Without effect: reading has threads of its own.
            capture: Without effect.
        """
        if ctx is not None and not isinstance(ctx, EvalContext):
            raise _errors.wrong_argument(self._what, "ctx", ctx, "an EvalContext")
        with self._guard():
            self._moving()
            size = self._max_batch_size if batch_size is None else batch_size
            position = self._settle_on("epochs", size)
            if position.is_unfinished and not self._has_warned:
                self._has_warned = True
                _sites.warn(
                    f"{self._what}: an epoch is begun while the one before has {position.left} "
                    "batches or samples left; it goes on where that one stopped. Run iterators to "
                    "their end, or call `reader.reset()` to start over.",
                    UnfinishedEpochWarning,
                )
            return Epoch(self, position)

    def __call__(self, *, batch_size: SupportsIndex | None = None) -> Any:
        """The next batch, or without a batch size the next sample, with no end of an epoch.

        A reader that is called can't be iterated, nor the other way round, until `reset`.
        """
        with self._guard():
            self._moving()
            position = self._settle_on("calls", batch_size)
            start = position.given
            # Enough for every shard to come by, with batches that are not full.
            enough = 2 * (self.epoch_size + self._options.num_shards * position.batch_size)
            while position.given - start < enough:
                outputs = self._next(position)
                if outputs is not None:
                    return outputs
            raise RuntimeError(
                f"{self._what}: with `on_error='skip'` there is nothing left to give: none of the "
                f"samples can be read. The last error: {self._bad.last}."
            )

    def reset(self) -> None:
        """Start over, as if the reader had just been made: with its first epoch, in any mode."""
        with self._guard():
            if _ahead.loops:
                _ahead.placed(self)
            self._start_over()

    def close(self) -> None:
        """Let go of the data set. The reader can't be used any more."""
        with self._guard():
            self._ahead.clear()
            self._source = None
            self._refusal = "the reader is closed; make a new one."

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def max_batch_size(self) -> int | None:
        """The largest size of a batch."""
        return self._max_batch_size

    @property
    def epoch_size(self) -> int:
        """How many samples the whole data set has."""
        return len(self._opened())

    @property
    def errors(self) -> list[SampleError]:
        """The samples that could not be read in the current epoch, or the one just finished.

        Those that a decoder was told to leave out or to replace are among them.
        """
        with self._guard():
            return self._bad.errors()

    def get_metadata(self, batch_size: SupportsIndex | None = None) -> dict[str, int]:
        """Figures: the number of samples (`epoch_size`), what it is filled up to where all shards
        are made alike (`epoch_size_padded`), and what the reader was told about shards.

        Args:
            batch_size: Without effect: the figures are about samples.
        """
        size, options = self.epoch_size, self._options
        shards, pad = options.num_shards, options.last_batch == "pad"
        return {
            "epoch_size": size,
            "epoch_size_padded": -(-size // shards) * shards if pad else size,
            "number_of_shards": shards,
            "shard_id": options.shard_id,
            "pad_last_batch": int(pad),
            "stick_to_shard": int(options.stick),
        }

    def get_state(self, *, cuda_stream: Any = None) -> ReaderState:
        """What has been given so far, for a reader of the same data set to go on after it.

        In a loop over `prefetch`, that is up to the item in hand.

        Args:
            cuda_stream: Without effect: a reader's state is not on a GPU.
        """
        seen = _ahead.seen(self) if _ahead.loops else None
        with self._guard():
            snapshot = self._snapshot() if seen is None else seen.snapshot
            return ReaderState(snapshot.dumps())

    def set_state(self, state: ReaderState | str | bytes) -> None:
        """Go on where another reader was: the rest of its epoch comes first, then whole ones.

        Other shards and another batch size are no obstacle, as long as all readers were stopped at
        the same step (or all at the end of an epoch): what none of them has given is divided anew.
        The state may be that of any reader that was given a batch in the last step; one whose
        epoch was shorter knows less. With the same shards, those whose epoch was over begin the
        next one, while others give what they have left. (Readers that shuffle by a buffer must
        have had the same `seed` for that.)
        """
        if not isinstance(state, str | bytes):
            raise TypeError(
                f"{self._what}: the state must be a ReaderState, str or bytes, got "
                f"{_errors.describe(state)}."
            )
        snapshot = Snapshot.loads(state, self._what)
        with self._guard():
            if self._position is not None:
                raise RuntimeError(
                    f"{self._what}: can't set the state after iteration has begun. Set it on a new "
                    "reader, before its first iteration, or call `reader.reset()` first."
                )
            plan = self._options.plan(self.epoch_size)
            snapshot.check(self._what, self._fingerprint(), plan)
            if _ahead.loops:
                _ahead.placed(self)
            self._restored = snapshot

    def state_dict(self) -> dict[str, str]:
        """The state as a dict, in the way of PyTorch."""
        return {"state": str(self.get_state())}

    def load_state_dict(self, state_dict: dict[str, str]) -> None:
        """Go on where another reader was; see `set_state`."""
        if not isinstance(state_dict, Mapping) or "state" not in state_dict:
            raise _errors.wrong_argument(
                self._what, "state_dict", state_dict, "what `state_dict()` gave"
            )
        self.set_state(state_dict["state"])

    def __repr__(self) -> str:
        named = "" if self.name is None else f"name={self.name!r}, "
        options = self._options
        return f"{type(self).__name__}({named}shard {options.shard_id} of {options.num_shards})"

    # What there is to read

    def _opened(self) -> Source:
        source = self._source
        return self._open_once() if source is None else source

    def _open_once(self) -> Source:
        with self._guard():
            if self._source is not None:
                return self._source  # another thread was first
            if self._refusal is None:
                source = self._open()
                shards = self._options.num_shards
                if len(source) >= shards:
                    self._source = source
                    return source
                self._refusal = (
                    f"there are {len(source)} samples, fewer than the {shards} shards that "
                    "`num_shards` asks for."
                )
            raise RuntimeError(f"{self._what}: {self._refusal}")

    def _fingerprint(self) -> str:
        return f"{self._opened().fingerprint():016x}"

    def _check_batch_size(self, size: SupportsIndex, key: str = "batch_size") -> int:
        return checked_batch_size(self._what, size, key)

    # Where the reader is

    def _guard(self) -> RLock:
        return self._lock.lock()

    def _start_over(self) -> None:
        self._position = self._restored = None
        self._has_warned = False
        self._ahead.clear()
        self._bad.clear()

    def _snapshot(self) -> Snapshot:
        if self._restored is not None:
            return self._restored
        data = self._fingerprint()
        if self._position is not None:
            return self._position.snapshot(data)
        order = Order(self._options.plan(len(self._opened())))
        start = Position(Use("epochs", None), self._options.shard_id, order)
        return start.snapshot(data)._replace(batch_size=None)

    def _moving(self) -> None:
        """To be called before the reader moves on."""
        if _ahead.loops:
            _ahead.moving(self)

    def _live_state(self) -> _Live:
        position = self._position
        return _Live(
            self._snapshot(),
            None if position is None else position.copy(),
            self._restored,
            self._bad.errors(),
        )

    def _rewind(self, state: _Live) -> None:
        with self._guard():
            # Copied, for it may be wanted again: by a loop around this one.
            self._position = None if state.position is None else state.position.copy()
            self._restored = state.restored
            self._ahead.clear()
            self._bad.put_back(state.errors)

    def _settle_on(self, way: str, batch_size: SupportsIndex | None) -> Position:
        """Fix the use of the reader, or see that it is the same as before."""
        self._opened()
        use = Use(way, None if batch_size is None else self._check_batch_size(batch_size))
        largest = self._max_batch_size
        if use.size is not None and largest is not None and use.size > largest:
            raise ValueError(
                f"{self._what}: `batch_size` {use.size} is larger than the `max_batch_size` "
                f"{largest} that the reader was made with."
            )
        position = self._position
        if position is None:
            position = self._position = self._begun(use)
            self._restored = None
        else:
            position.use.check(self._what, use)
        return position

    def _begun(self, use: Use) -> Position:
        options, count, size = self._options, len(self._opened()), use.size or 1
        shard = count // options.num_shards
        if options.last_batch == "drop" and shard < size:
            raise ValueError(
                f"{self._what}: with `last_batch='drop'` nothing would be left: a shard has "
                f"{shard} samples, and a batch {size}."
            )
        return begun(use, options.shard_id, options.plan(count), self._restored)

    # Going on

    def _begin(self, position: Position) -> int:
        """Begin an epoch, and return its number of batches."""
        self._bad.clear()
        return position.begin()

    def _next(self, position: Position) -> Any:
        """The next batch or sample; None when it has no sample that can be read."""
        source = self._opened()
        head = self._ahead.take(source, position)
        self._read_ahead(head.after)
        # From here on it counts as given, whatever is wrong with it.
        position.advance(head.after)
        numbers, values = head.numbers, head.values
        if self._bad.on_error != "raise":
            numbers, values = self._bad.sift(
                numbers,
                values,
                name=source.name,
                fetch=lambda others: source.fetch(others, position.use.is_batched),
                after=lambda index: position.order.after(head.place, position.shard, index),
            )
            if not values:
                return None
        if current_mode() > EvalMode.eager:
            for value in values:
                settle(value)
        return self._yields(_sift.mark(values, self, numbers))

    def _read_ahead(self, place: Place) -> None:
        assert self._position is not None
        self._ahead.fill(self._opened(), self._position, place)

    def _note_later(self, number: int, fault: Fault) -> None:
        """A sample that was given turns out to be bad, such as one that can't be decoded."""
        with self._guard():
            if self._source is not None:
                self._bad.add(number, fault, self._source.name)


Reader.__doc__ = with_arguments(Reader.__doc__, Common.__doc__)
