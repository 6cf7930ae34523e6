"""What all readers have in common: epochs, batches, shards, state, bad samples.

A format plugs in a `Source`: how many samples there are, what they are called, a fingerprint that
changes when the data set does, and a `fetch` that turns numbers of samples into values. All else
is here and in `order`. So a new format is one small file:

    class Pairs(Reader):
        \"\"\"Pairs of files. (What users read: what it yields, and its own arguments.)\"\"\"

        def __init__(self, max_batch_size=None, name=None, device="cpu", num_inputs=None, *,
                     left, right, **common: Unpack[Common]) -> None:
            self._left, self._right = left, right
            super().__init__(max_batch_size, name, device, num_inputs, **common)

        def _open(self) -> Source:
            return PairSource(...)

`_open` is called once, at construction or, with `lazy_init`, at the first use. It is the place to
read an index and to raise what is wrong with the arguments. A source's `fetch` must return at
once and leave the reading to the engine, as `_core.Files.read` does on the threads of
`io_pool()`; what it knows already (labels, boxes) it gives as finished values. `Reader._yields`
turns the outputs into what users get: a tuple, or for a format with named features a dict.
"""

from __future__ import annotations

import inspect
import operator
import os
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex, TypedDict, TypeVar

from penstock import _ahead, _core, _errors, _sift
from penstock._convert import LARGEST_BATCH
from penstock._device import DeviceLike
from penstock._device import device as to_device
from penstock._invoke import settle
from penstock._mode import EvalMode, current_mode
from penstock._rng import get_default_rng
from penstock.readers.order import POLICIES, SHUFFLES, Cut, Numbers, Order, Place, Plan
from penstock.readers.state import ReaderState, Snapshot

if TYPE_CHECKING:
    from penstock._context import EvalContext
    from penstock._core import Value

Self = TypeVar("Self", bound="Reader")

GLOBAL_SEED = 0
"""Of `shuffle_after_epoch`, where none is given: all shards must have the same."""


class Common(TypedDict, total=False):
    """The arguments of all readers; `Reader` says what they mean."""

    dont_use_mmap: bool | None
    enable_checkpointing: bool
    initial_fill: int | None
    last_batch: str | None
    lazy_init: bool | None
    max_errors: int | None
    num_shards: int | None
    on_error: str | None
    pad_last_batch: bool | None
    prefetch_queue_depth: int | None
    random_shuffle: bool | None
    read_ahead: bool | None
    seed: int | None
    shard_id: int | None
    shuffle: str | None
    shuffle_after_epoch: bool | None
    shuffle_after_epoch_seed: int | None
    skip_cached_images: bool | None
    stick_to_shard: bool | None
    tensor_init_bytes: int | None


class Source(Protocol):
    """A data set whose samples are read by number."""

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


class SampleError(NamedTuple):
    """A sample that could not be read.

    Args:
        file: What the sample is known by, usually a file name.
        sample: Its number in the data set.
        reason: What was wrong.
    """

    file: str
    sample: int
    reason: str


class UnfinishedEpochWarning(UserWarning):
    """An epoch was begun while an earlier one was not at its end."""


class _Ahead(NamedTuple):
    place: Place
    numbers: Numbers
    values: tuple[Value, ...]
    after: Place


class _Live(NamedTuple):
    """All that changes when a reader goes on."""

    snapshot: Snapshot
    moving: dict[str, Any]
    errors: list[SampleError]


_MOVING = (
    *("_way", "_batched", "_batch_size", "_order", "_place", "_first_turn", "_given", "_epoch"),
    *("_begun", "_step", "_left", "_resumed", "_restored"),
)


class Reader:
    """What all readers have in common. They have state: create one, and use it for all epochs.

    Args:
        max_batch_size: The largest size of a batch, and the one that `next_epoch` takes when none
            is given to it.
        name: A name for the reader, for messages and checkpoints.
        device: Where the data is read to: the cpu.
        num_inputs: Of no use to readers.
        dont_use_mmap: Without effect: files are always read, never mapped.
        enable_checkpointing: Without effect: the state can always be taken.
        initial_fill: How many samples the buffer of `random_shuffle` holds.
        last_batch: What becomes of the last batch of an epoch, where the samples don't fill it:
            "wrap" (default) fills it with samples of the next epoch, which begins after those;
            "pad" repeats the last sample, as `pad_last_batch=True`; "partial" makes it smaller;
            "drop" leaves it out.
        lazy_init: Open the data set at the first use.
        max_errors: How many samples of an epoch may be bad before that is an error.
        num_shards: Into how many shards the data set is divided, one for each reader.
        on_error: What becomes of samples that can't be read. "raise" (default): an error, when the
            batch is used. "skip": they are left out, so that the batch is smaller, and a batch
            without any good one is left out itself. "substitute": the next sample that can be
            read stands in. `errors` lists them. In any case they count as given: lengths of
            epochs and positions in checkpoints don't depend on which files are bad, so that
            shards stay in step, and another run goes on at the same sample.
        pad_last_batch: Fill the last batch by repeating the last sample, and shards that are
            smaller than others, too.
        prefetch_queue_depth: How many batches are read ahead.
        random_shuffle: Shuffle, by a buffer of `initial_fill` samples.
        read_ahead: Without effect: reading ahead is what `prefetch_queue_depth` says.
        seed: What the order is made of, in readers that shuffle. By default it comes from the
            thread's default RNG.
        shard_id: Which of the shards this reader has.
        shuffle: "buffer" as `random_shuffle`; "global" for the whole data set in a new order with
            each epoch, without a buffer, from which each shard takes its part. All shards must
            then be given the same `seed` (or none).
        shuffle_after_epoch: As `shuffle="global"`, with a seed that is not `seed`.
        shuffle_after_epoch_seed: The seed of `shuffle_after_epoch`, which all shards must share.
        skip_cached_images: Without effect.
        stick_to_shard: Stay with the shard; by default a reader goes on to the next shard with
            each epoch.
        tensor_init_bytes: Without effect: memory is taken as it is needed.
    """

    _way: str | None
    """How it is used, which the first use decides: by "epochs" or "calls"."""
    _batched: bool
    _batch_size: int | None
    _order: Order | None
    _place: Place
    _first_turn: int
    """Where the reader began, or went on after a cut; what follows is counted from there."""
    _given: int
    _epoch: int
    _begun: bool
    _step: int
    _left: int
    _resumed: bool
    _warned: bool
    _restored: Snapshot | None
    """A state that waits for the first use, which says the batch size."""
    _ahead: deque[_Ahead]
    _errors: list[SampleError]

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
        placed = to_device(device) if device is not None else None
        if placed is not None and placed._code >= 0:
            raise ValueError(
                f"{self._what}: Invalid device: readers read to the cpu. Move what they give with "
                "`.gpu()`, or let an operator do so with `device='gpu'`."
            )
        self.name = name
        self._max_batch_size: int | None = None
        if max_batch_size is not None:
            self._max_batch_size = self._check_batch_size(max_batch_size, "max_batch_size")
        self._set_options({key: value for key, value in common.items() if value is not None})
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._source: Source | None = None
        self._closed = False
        self._start_over()
        if not common.get("lazy_init"):
            self._opened()

    def __init_subclass__(cls) -> None:
        """What `help` and editors show: the format's arguments and those of all."""
        cls.__doc__ = _with_common_arguments(cls.__doc__ or "")
        own = inspect.signature(cls.__init__).parameters.values()
        shown = [item for item in own if item.name != "self" and item.kind != item.VAR_KEYWORD]
        known = {item.name for item in shown}
        shown += [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None)
            for key in Common.__annotations__
            if key not in known
        ]
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]

    # What a format says

    def _open(self) -> Source:
        """Open the data set."""
        raise NotImplementedError

    def _yields(self, outputs: tuple[Any, ...]) -> Any:
        """What users get for the outputs of a batch or sample."""
        return outputs

    # What users call

    def next_epoch(
        self,
        batch_size: SupportsIndex | None = None,
        ctx: EvalContext | None = None,
        capture: bool = False,
    ) -> Epoch:
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
        with self._guard():
            self._moving()
            size = self._max_batch_size if batch_size is None else batch_size
            self._settle_on("epochs", size)
            unfinished = self._begun and self._left and not self._resumed
            if unfinished and not self._warned:
                self._warned = True
                warnings.warn(
                    f"{self._what}: an epoch is begun while the one before has {self._left} "
                    "batches or samples left; it goes on where that one stopped. Run iterators to "
                    "their end, or call `reader.reset()` to start over.",
                    UnfinishedEpochWarning,
                    stacklevel=2,
                )
            return Epoch(self, self._coming())

    def __call__(self, *, batch_size: SupportsIndex | None = None) -> Any:
        """The next batch, or without a batch size the next sample, with no end of an epoch.

        A reader that is called can't be iterated, nor the other way round, until `reset`.
        """
        with self._guard():
            self._moving()
            self._settle_on("calls", batch_size)
            outputs = None
            while outputs is None:
                outputs = self._next()
            return outputs

    def reset(self) -> None:
        """Start over, as if the reader had just been made: with its first epoch, in any mode."""
        with self._guard():
            if _ahead.loops:
                _ahead.placed(self)
            self._start_over()

    def close(self) -> None:
        """Let go of the data set. The reader can't be used any more."""
        with self._lock:
            self._ahead.clear()
            self._order = None
            self._source = None
            self._closed = True

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
        return list(self._errors)

    def get_metadata(self, batch_size: SupportsIndex | None = None) -> dict[str, int]:
        """Figures: the number of samples (`epoch_size`), what it is filled up to where all shards
        are made alike (`epoch_size_padded`), and what the reader was told about shards.
        """
        size, shards = len(self._opened()), self._num_shards
        padded = -(-size // shards) * shards if self._last_batch == "pad" else size
        return {
            "epoch_size": size,
            "epoch_size_padded": padded,
            "number_of_shards": shards,
            "shard_id": self._shard_id,
            "pad_last_batch": int(self._last_batch == "pad"),
            "stick_to_shard": int(self._stick),
        }

    def get_state(self, *, cuda_stream: Any = None) -> ReaderState:
        """What has been given so far, for a reader of the same data set to go on after it.

        In a loop over `prefetch`, that is up to the item in hand.
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
            if self._way is not None:
                raise RuntimeError(
                    f"{self._what}: can't set the state after iteration has begun. Set it on a new "
                    "reader, before its first iteration, or call `reader.reset()` first."
                )
            self._check_state(snapshot)
            if _ahead.loops:
                _ahead.placed(self)
            self._restored = snapshot

    def state_dict(self) -> dict[str, str]:
        """The state as a dict, in the way of PyTorch."""
        return {"state": str(self.get_state())}

    def load_state_dict(self, state_dict: dict[str, str]) -> None:
        """Go on where another reader was; see `set_state`."""
        self.set_state(state_dict["state"])

    def __repr__(self) -> str:
        named = "" if self.name is None else f"name={self.name!r}, "
        return f"{type(self).__name__}({named}shard {self._shard_id} of {self._num_shards})"

    # Options

    def _set_options(self, given: dict[str, Any]) -> None:
        whole = self._whole_number
        self._num_shards = whole(given, "num_shards", 1)
        self._shard_id = whole(given, "shard_id", 0)
        if self._num_shards < 1:
            raise ValueError(
                f"{self._what}: `num_shards` must be a positive integer, got {self._num_shards}."
            )
        if not 0 <= self._shard_id < self._num_shards:
            raise ValueError(
                f"{self._what}: `shard_id` must be from 0 to {self._num_shards - 1}, got "
                f"{self._shard_id}."
            )
        self._fill = whole(given, "initial_fill", 1024)
        self._depth = whole(given, "prefetch_queue_depth", 1)
        for key, value in (("initial_fill", self._fill), ("prefetch_queue_depth", self._depth)):
            if value < 1:
                raise _errors.bad_argument(self._what, key, f"must be at least 1, got {value}")
        if whole(given, "tensor_init_bytes", 0) < 0:
            raise _errors.bad_argument(self._what, "tensor_init_bytes", "must not be negative")
        self._stick = bool(given.get("stick_to_shard"))
        self._last_batch = self._choose_last_batch(given)
        self._shuffle, self._seed = self._choose_shuffle(given)
        self._on_error = given.get("on_error", "raise")
        if self._on_error not in _sift.ON_ERROR:
            raise self._not_one_of("on_error", self._on_error, _sift.ON_ERROR)
        self._max_errors = whole(given, "max_errors", 2**62)
        if self._max_errors < 0:
            raise _errors.bad_argument(self._what, "max_errors", "must not be negative")

    def _choose_last_batch(self, given: dict[str, Any]) -> str:
        pad = given.get("pad_last_batch")
        policy = given.get("last_batch", "pad" if pad else "wrap")
        if policy not in POLICIES:
            raise self._not_one_of("last_batch", policy, POLICIES)
        if pad is not None and bool(pad) != (policy == "pad"):
            raise ValueError(
                f"{self._what}: `last_batch={policy!r}` and `pad_last_batch={pad}` contradict each "
                "other; give one of them."
            )
        return str(policy)

    def _choose_shuffle(self, given: dict[str, Any]) -> tuple[str | None, int]:
        by_buffer, after_epoch = given.get("random_shuffle"), given.get("shuffle_after_epoch")
        shuffle = given.get("shuffle")
        if shuffle not in SHUFFLES:
            raise self._not_one_of("shuffle", shuffle, SHUFFLES[1:])
        ways = [
            key for key in ("random_shuffle", "shuffle_after_epoch", "shuffle") if given.get(key)
        ]
        if len(ways) > 1:
            raise RuntimeError(
                f"{self._what}: `{ways[0]}` and `{ways[1]}` are two ways to shuffle; give one."
            )
        if after_epoch and self._stick:
            raise RuntimeError(
                f"{self._what}: `shuffle_after_epoch` and `stick_to_shard` can't be both true: a "
                "shard of a data set in a new order is another one with each epoch."
            )
        if "shuffle_after_epoch_seed" in given and not after_epoch:
            warnings.warn(
                f"{self._what}: `shuffle_after_epoch_seed` has no effect without "
                "`shuffle_after_epoch=True`.",
                stacklevel=4,
            )
        seed = self._whole_number(given, "seed", -1)
        if after_epoch:
            return "global", self._whole_number(given, "shuffle_after_epoch_seed", GLOBAL_SEED)
        if shuffle == "global":
            return "global", GLOBAL_SEED if seed < 0 else seed
        if by_buffer or shuffle == "buffer":
            if seed < 0:
                rng = get_default_rng()
                seed = rng() << 32 | rng()
            return "buffer", seed
        return None, 0

    def _whole_number(self, given: dict[str, Any], key: str, default: int) -> int:
        value = given.get(key, default)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        try:
            return operator.index(value)
        except TypeError:
            raise _errors.wrong_argument(self._what, key, value, "a whole number") from None

    def _not_one_of(self, key: str, value: object, known: Sequence[object]) -> ValueError:
        names = ", ".join(repr(item) for item in known)
        return ValueError(f"{self._what}: `{key}` must be one of {names}, got {value!r}.")

    def _check_batch_size(self, size: SupportsIndex, key: str = "batch_size") -> int:
        try:
            if isinstance(size, bool):
                raise TypeError
            number = operator.index(size)
        except TypeError:
            raise _errors.wrong_argument(self._what, key, size, "a positive integer") from None
        if not 0 < number <= LARGEST_BATCH:
            problem = f"must be a positive integer, at most {LARGEST_BATCH}, got {number}"
            raise _errors.bad_argument(self._what, key, problem)
        return number

    # State

    def _start_over(self) -> None:
        self._way, self._batched, self._batch_size = None, False, None
        self._order, self._place, self._first_turn = None, Place(0, 0), 0
        self._given = self._epoch = self._step = self._left = 0
        self._begun = self._resumed = self._warned = False
        self._restored = None
        self._ahead = deque()
        self._errors = []

    def _snapshot(self) -> Snapshot:
        if self._restored is not None:
            return self._restored
        source, plan = self._opened(), self._plan()
        return Snapshot(
            data=f"{source.fingerprint():016x}",
            size=plan.size,
            num_shards=plan.num_shards,
            shard_id=self._shard_id,
            stick=plan.stick,
            shuffle=plan.shuffle,
            fill=plan.fill,
            seed=plan.seed,
            last_batch=plan.last_batch,
            batch_size=self._batch_size,
            turn=self._place.turn,
            offset=self._place.offset,
            first_turn=self._first_turn,
            given=self._given,
            epoch=self._epoch,
            step=self._step,
            left=self._left,
            cuts=plan.cuts,
        )

    def _moving(self) -> None:
        if _ahead.loops:
            _ahead.moving(self)

    def _live_state(self) -> _Live:
        moving = {key: getattr(self, key) for key in _MOVING}
        return _Live(self._snapshot(), moving, list(self._errors))

    def _rewind(self, state: _Live) -> None:
        with self._guard():
            for key, value in state.moving.items():
                setattr(self, key, value)
            self._errors = state.errors

    def _plan(self) -> Plan:
        if self._order is not None:
            return self._order.plan
        return Plan(
            size=len(self._opened()),
            num_shards=self._num_shards,
            stick=self._stick,
            shuffle=self._shuffle,
            fill=self._fill,
            seed=self._seed,
            last_batch=self._last_batch,
        )

    def _check_state(self, state: Snapshot) -> None:
        """Refuse a state that belongs to other data, or to a reader with another order."""
        source = self._opened()
        if state.data != f"{source.fingerprint():016x}":
            counts = (
                f"it had {state.size} samples, and has {len(source)} now"
                if state.size != len(source)
                else f"it has {state.size} samples as before, but other names, labels or another "
                "order"
            )
            raise ValueError(
                f"{self._what}: the data set has changed since the state was taken: {counts}. "
                "Positions in the old one mean nothing in the new one; begin a new epoch, without "
                "the state."
            )
        for key, was, now in (
            ("stick_to_shard", state.stick, self._stick),
            ("shuffle", state.shuffle, self._shuffle),
            ("initial_fill", state.fill, self._fill if state.shuffle == "buffer" else state.fill),
            ("last_batch", state.last_batch, self._last_batch),
        ):
            if was != now:
                raise ValueError(
                    f"{self._what}: the state is of a reader with {key}={was!r}, this one has "
                    f"{key}={now!r}; the order of the samples is another one. Make the reader with "
                    "the same arguments."
                )

    def _resume(self, state: Snapshot, batch_size: int) -> None:
        """Go on where a reader was, with these batches."""
        plan = replace(self._plan(), seed=state.seed, cuts=state.cuts)
        if state.batch_size is None:
            # It had not given anything yet.
            self._order = Order(plan)
            self._first_turn = state.first_turn
            self._place = Place(state.turn, state.offset)
            return
        before = Order(replace(plan, num_shards=state.num_shards))
        old_size, first_turn = state.batch_size, state.first_turn

        def given(reader: int) -> int:
            return before.given(reader, first_turn, state.epoch, state.step, old_size) * old_size

        slip = state.given - given(state.shard_id)
        if (state.num_shards, old_size) == (self._num_shards, batch_size):
            self._order, self._first_turn, self._epoch = before, first_turn, state.epoch
            self._given, self._step, self._left = state.given, state.step, state.left
            self._place = Place(state.turn, state.offset)
            if self._shard_id != state.shard_id:
                self._given = given(self._shard_id) + slip
                batches = self._given // batch_size
                self._place = before.walk(self._shard_id, first_turn, batches, batch_size)
                if state.step:
                    count = before.batches(first_turn + state.epoch, self._shard_id, batch_size)
                    self._step = min(state.step, count)
                    self._left = count - self._step
            self._begun, self._resumed = self._step > 0, self._left > 0
            return
        cut = Cut(state.num_shards, old_size, first_turn, state.epoch, state.step, slip)
        order = Order(replace(plan, cuts=(*state.cuts, cut)))
        self._first_turn = order.first_turn
        # Where nothing was left over, there is nothing to remember.
        self._order = order if order.is_divided else Order(replace(plan, cuts=()))
        self._place = Place(self._first_turn, 0)

    # Going on

    def _guard(self) -> threading.RLock:
        if self._process != os.getpid():
            # A forked child: what was being read is the parent's, and so may be the lock.
            self._process = os.getpid()
            self._lock = threading.RLock()
            self._ahead.clear()
        return self._lock

    def _opened(self) -> Source:
        source = self._source
        if source is not None:
            return source
        if self._closed:
            raise RuntimeError(f"{self._what}: the reader is closed; make a new one.")
        source = self._open()
        if len(source) < self._num_shards:
            raise RuntimeError(
                f"{self._what}: there are {len(source)} samples, fewer than the {self._num_shards} "
                "shards that `num_shards` asks for."
            )
        self._source = source
        return source

    def _settle_on(self, way: str, batch_size: SupportsIndex | None) -> None:
        """Fix the mode and the batch size, or see that they are the same as before."""
        self._opened()
        size = None if batch_size is None else self._check_batch_size(batch_size)
        largest = self._max_batch_size
        if size is not None and largest is not None and size > largest:
            raise ValueError(
                f"{self._what}: `batch_size` {size} is larger than the `max_batch_size` {largest} "
                "that the reader was made with."
            )
        if self._way is None:
            self._begin_with(size or 1)
            self._way, self._batched = way, size is not None
            return
        if (self._way, self._batched) != (way, size is not None):
            before, now = _use(self._way, self._batched), _use(way, size is not None)
            raise RuntimeError(
                f"{self._what}: a reader keeps to one way of reading. It has given {before} so "
                f"far, and is now asked for {now}. Call `reader.reset()` to start over."
            )
        if size is not None and size != self._batch_size:
            raise ValueError(
                f"{self._what}: `batch_size` {size} is different from the {self._batch_size} used "
                "before, which a reader keeps to. Call `reader.reset()` to start over with another."
            )

    def _begin_with(self, size: int) -> None:
        restored = self._restored
        if restored is not None:
            self._resume(restored, size)
            self._restored = None
        else:
            self._order = Order(self._plan())
        assert self._order is not None
        if self._last_batch == "drop":
            shard = len(self._opened()) // self._num_shards
            if shard < size:
                self._start_over()
                self._restored = restored
                raise ValueError(
                    f"{self._what}: with `last_batch='drop'` nothing would be left: a shard has "
                    f"{shard} samples, and a batch {size}."
                )
        self._batch_size = size

    def _coming(self) -> int:
        """How many batches the next epoch has."""
        assert self._order is not None
        assert self._batch_size is not None
        if self._resumed:
            return self._left
        # One that follows an unfinished epoch is as long as that one, as in the original.
        turn = self._first_turn + self._epoch + self._is_done
        return self._order.batches(turn, self._shard_id, self._batch_size)

    def _begin(self) -> int:
        """Begin an epoch, and return its number of batches."""
        self._finish_if_done()
        count = self._coming()
        if not self._resumed:
            self._step, self._left, self._begun = 0, count, True
        self._resumed = False
        self._errors = []
        return count

    @property
    def _is_done(self) -> bool:
        """Whether all of the epoch has been given."""
        return self._begun and self._left == 0

    def _finish_if_done(self) -> None:
        """Count the epoch, if all of it has been given.

        Not with its last batch, but when more is asked for: as long as that batch is in hand,
        readers of other shards may have some left, which a state must not take for given.
        """
        if self._is_done:
            self._epoch, self._step, self._begun = self._epoch + 1, 0, False

    def _next(self) -> Any:
        """The next batch or sample; None when it has no sample that can be read."""
        self._opened()
        ahead = self._ahead
        if ahead and ahead[0].place == self._place:
            head = ahead.popleft()
        else:
            ahead.clear()
            head = self._fetch(self._place)
        batch_size = self._batch_size or 1
        self._place = head.after
        self._given += batch_size
        if self._way == "epochs":
            self._step += 1
            self._left -= 1
        self._read_ahead(head.after)
        values, numbers = head.values, head.numbers
        if self._on_error != "raise":
            values, numbers = self._without_bad(head.place, numbers, values)
            if not values:
                return None
        if current_mode() > EvalMode.eager:
            for value in values:
                settle(value, at_call=True)
        return self._yields(_sift.mark(values, self, numbers))

    def _read_ahead(self, place: Place) -> None:
        depth = self._depth
        if not self._batched:
            # Single samples are small change.
            depth = max(depth, 8)
        if self._ahead:
            place = self._ahead[-1].after
        while len(self._ahead) < depth:
            item = self._fetch(place)
            self._ahead.append(item)
            place = item.after

    def _fetch(self, place: Place) -> _Ahead:
        assert self._order is not None
        numbers, after = self._order.draw(place, self._shard_id, self._batch_size or 1)
        return _Ahead(place, numbers, self._values(numbers), after)

    def _values(self, numbers: Numbers) -> tuple[Value, ...]:
        return self._opened().fetch(numbers, self._batched)

    # Bad samples

    def _without_bad(
        self, place: Place, numbers: Numbers, values: tuple[Value, ...]
    ) -> tuple[tuple[Value, ...], Numbers]:
        """The values without, or with others in place of, samples that can't be read; and the
        numbers that are left.
        """
        tried: set[int] = set()
        while True:
            bad = {index: fault for value in values for index, fault in value.faults()}
            for index in sorted(bad):
                self._note(int(numbers[index]), bad[index], tried)
            if not bad:
                return values, numbers
            if self._on_error == "skip":
                good = [index for index in range(len(numbers)) if index not in bad]
                if not good:
                    return (), numbers[:0]
                pool = io_pool()
                return tuple(value.pick(pool, good) for value in values), numbers[good]
            numbers = self._substitutes(place, numbers, bad, tried)
            values = self._values(numbers)

    def _note(self, number: int, fault: _core.Fault, tried: set[int]) -> None:
        if number in tried:
            return
        tried.add(number)
        self._add_error(number, fault)

    def _note_later(self, number: int, fault: _core.Fault) -> None:
        """A sample that was given turns out to be bad, such as one that can't be decoded."""
        with self._guard():
            known = {(error.sample, error.reason) for error in self._errors}
            if not self._closed and (number, str(fault.cause[-1])) not in known:
                self._add_error(number, fault)

    def _add_error(self, number: int, fault: _core.Fault) -> None:
        name = self._opened().name(number)
        error = _errors.exception(fault)
        self._errors.append(SampleError(name, number, str(fault.cause[-1])))
        if len(self._errors) > self._max_errors:
            raise RuntimeError(
                f"{self._what}: {len(self._errors)} samples of this epoch could not be read, more "
                f"than `max_errors` allows ({self._max_errors}). The last one: {error}"
            ) from error

    def _substitutes(
        self, place: Place, numbers: Numbers, bad: dict[int, _core.Fault], tried: set[int]
    ) -> Numbers:
        """The numbers, with those of bad samples replaced by ones that come after them."""
        assert self._order is not None
        turn = self._order.numbers(place.turn, self._shard_id)
        chosen = numbers.copy()
        position = place.offset
        for index in sorted(bad):
            for step in range(len(turn)):
                candidate = int(turn[(position + index + 1 + step) % len(turn)])
                if candidate not in tried:
                    chosen[index] = candidate
                    break
            else:
                raise RuntimeError(
                    f"{self._what}: none of the {len(turn)} samples of the shard can be read, so "
                    f"that there is no substitute. The last error: {self._errors[-1]}"
                )
        return chosen


def _with_common_arguments(doc: str) -> str:
    """A docstring with the arguments that all readers have after its own."""
    # Newer Pythons take the indentation away, older ones don't.
    own, _, example = inspect.cleandoc(doc).partition("\nExample:\n")
    own = own.partition("    max_batch_size: ")[0].rstrip()
    if "\nArgs:\n" not in own:
        own += "\n\nArgs:"
    common = inspect.cleandoc(Reader.__doc__ or "").partition("Args:\n")[2].rstrip()
    return f"{own}\n{common}\n" + (f"\nExample:\n{example}" if example else "")


def _use(way: str, batched: bool) -> str:
    given = "batches" if batched else "single samples"
    return f"{given} by `next_epoch`" if way == "epochs" else f"{given} by calls"


class Epoch:
    """An iterator over an epoch. `len` is its number of batches, or samples."""

    def __init__(self, reader: Reader, count: int) -> None:
        self._reader = reader
        self._count = count
        self._left: int | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        reader = self._reader
        with reader._guard():
            reader._moving()
            if self._left is None:
                self._left = self._count = reader._begin()
            while self._left:
                self._left -= 1
                outputs = reader._next()
                if outputs is not None:
                    return outputs
            reader._finish_if_done()
            raise StopIteration


def io_pool() -> _core.Pool:
    """The threads that read, apart from those that compute: a slow disk must not hold those up."""
    global _pool
    if _pool is None:
        with _pool_lock:
            if _pool is None:
                _pool = _core.Pool(IO_THREADS)
    return _pool


IO_THREADS = 2
_pool: _core.Pool | None = None
_pool_lock = threading.Lock()

__all__ = ["Common", "Epoch", "Reader", "SampleError", "Source", "io_pool"]
