"""`Reader`, the class that all formats extend: its arguments, its source, reading ahead.

A format plugs in a `Source`: how many samples there are, what they are called, a fingerprint that
changes when the data set does, and a `fetch` that turns numbers of samples into values. The native
module has one class for the sources of all formats. All else is the same for all formats, and in
the modules beside this one: arguments (`options`), which samples come when (`order`), how far a
reader is (`position`), what it reads early (`lookahead`), what becomes of samples that can't be
read (`bad_samples`). A new format is a Rust file in `src/readers` with its `Source` and an `open`
function (and two lines in `src/readers/mod.rs`, its module and its row of `FORMATS`), a maker of
test data sets in `tests/data_sets.py`, and one Python file, which `readers/__init__.py` exports:

    class Pairs(Reader):
        \"\"\"Pairs of files. (What users read: what it yields, and its own arguments.)\"\"\"

        def __init__(self, max_batch_size=None, name=None, device="cpu", num_inputs=None, *,
                     left, right, **common: Unpack[Common]) -> None:
            self._left, self._right = left, right
            super().__init__(max_batch_size, name, device, num_inputs, **common)

        def _open(self) -> Source:
            return open_source(self._what, "pairs", {"left": "left", "right": "right"},
                               left=self._left, right=self._right)

`_open` is called once, at construction or, with `lazy_init`, at the first use. It is the place to
read an index and to raise what is wrong with the arguments. `_yields` turns the outputs into what
users get: a tuple, or for a format with named features a dict.

Threads may share a reader, and an iterator: each batch is given once. The reader's lock is held
while it moves on, which waits for nothing, unless the batch itself is waited for: to see which
samples are bad (`on_error`), or because the mode is synchronous.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np

from penstock._errors import bad_samples, messages
from penstock._errors.tracebacks import hide_frames, hides_frames, public
from penstock._operators import call_sites
from penstock._operators.submit import settle
from penstock._runtime.context import EvalContext
from penstock._runtime.device import DeviceLike
from penstock._runtime.device import device as to_device
from penstock._runtime.fork_safe_lock import ForkSafeLock
from penstock._runtime.mode import EvalMode, current_mode
from penstock._state import item_states, run_ahead
from penstock.readers._base import workers
from penstock.readers._base.bad_samples import NO_FAULT_OF_THE_SAMPLE, BadSamples, SampleError
from penstock.readers._base.epoch import Epoch, UnfinishedEpochWarning
from penstock.readers._base.lookahead import SINGLES, Fetched, Lookahead
from penstock.readers._base.options import (
    Common,
    Options,
    checked_batch_size,
    checked_epoch,
    with_arguments,
    with_parameters,
)
from penstock.readers._base.order import Order, Place, Plan
from penstock.readers._base.position import Position, Use, begun
from penstock.readers._base.remote import using
from penstock.readers._base.rows import Numbers
from penstock.readers._base.sampling import Sampling, mixed
from penstock.readers._base.selection import selected
from penstock.readers._base.source import Source, fetch
from penstock.readers._base.state import ReaderState, Snapshot

if TYPE_CHECKING:
    from threading import RLock

    from penstock._core import Fault, Iteration, Value
    from penstock._values.batch import Batch
    from penstock._values.tensor import Tensor

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
    Threads may share a reader and its iterators; each batch goes to one of them. Interrupted
    (Ctrl-C), a reader goes on with the batch that was waited for.

    Pickled or copied, a reader becomes another one with the same arguments that goes on at the same
    place. The processes of a `DataLoader` that are given a reader read all of it each: make one
    in each of them, with a shard of its own, or read in the main process.

    Args:
        max_batch_size: The largest size of a batch, and the one that `next_epoch` takes when none
            is given to it.
        name: A name for the reader, for messages and checkpoints.
        device: Where the data is read to: the cpu.
        num_inputs: Of no use to readers.
    """

    _namespace = "readers"
    """The module that has the class for users."""
    _gives_on_gpu = False
    """Whether the format may be asked to give its samples on a gpu."""
    _position: Position | None
    """None until the first use, which says how the reader is used."""
    __signature__: ClassVar[Any]
    """The arguments of the format and those of all readers, for `help` and editors."""
    _restored: Snapshot | None
    """A state that waits for the first use."""
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    """What it was made with."""
    _is_copy = False
    """Whether it was made by unpickling."""
    _has_told_of_workers = False
    _has_warned: bool
    """Whether of unfinished epochs has been warned."""
    _sampling: Sampling | None = None
    """What decides which samples an epoch has, if not all of them; set by `_open`."""
    __iter__ = None
    """By its `__getitem__` it would pass for a sequence; epochs are what is iterated over."""
    _groups: Numbers | None = None
    """The ends of the groups of samples that `shuffle="groups"` shuffles."""
    _is_put_back: bool
    """Whether it was a loop over `prefetch` that has left the epoch unfinished."""

    def __new__(cls: type[Self], *args: Any, **kwargs: Any) -> Self:
        """Note the arguments, of which a copy is made."""
        made = super().__new__(cls)
        made._arguments = args, kwargs
        return made

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        **common: Any,
    ) -> None:
        self._what = f"{self._namespace}.{type(self).__name__}"
        if "batch_size" in common:
            raise TypeError(
                f"{self._what}() got an unexpected keyword argument 'batch_size'; give it to "
                "`next_epoch(batch_size=...)`, or to the call of the reader."
            )
        if unknown := common.keys() - Common.__annotations__.keys():
            raise messages.unknown_argument(
                self._what, sorted(unknown), list(inspect.signature(type(self)).parameters)
            )
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{self._what}: `name` must be a text, got {messages.describe(name)}.")
        try:
            placed = to_device(device) if device is not None else None
        except (TypeError, ValueError) as error:
            raise messages.in_operator(self._what, error, "device") from None
        if placed is not None and placed._code >= 0 and not self._gives_on_gpu:
            raise ValueError(
                f"{self._what}: Invalid device: readers read to the cpu. Move what they give with "
                "`.gpu()`, or let an operator do so with `device='gpu'`."
            )
        self.name = name
        self._device = placed
        self._max_batch_size: int | None = None
        if max_batch_size is not None:
            self._max_batch_size = self._check_batch_size(max_batch_size, "max_batch_size")
        self._options = Options.checked(self._what, common)
        self._bad = BadSamples(self._what, self._options.on_error, self._options.max_errors)
        self._ahead = Lookahead(self._options.depth)
        self._iteration = self._calls = self._ahead.loop.iteration()
        self._lock = ForkSafeLock(in_child=self._ahead.in_child)
        self._source: Source | None = None
        self._refusal: str | None = None
        """Why there can be no source."""
        self._start_over()
        if not self._options.is_lazy:
            self._opened()

    def __init_subclass__(cls) -> None:
        cls.__doc__ = with_arguments(cls.__doc__, Reader.__doc__)
        cls.__signature__ = with_parameters(cls.__init__)
        if "__init__" in cls.__dict__:
            # What Python calls it where an argument is missing.
            cls.__init__.__qualname__ = f"{cls._namespace}.{cls.__name__}"
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
        self,
        batch_size: SupportsIndex,
        ctx: EvalContext | None = None,
        capture: bool = False,
        *,
        compile: bool = False,
        restart: bool = False,
        epoch: SupportsIndex | None = None,
    ) -> Epoch[tuple[Batch, ...]]: ...
    @overload
    def next_epoch(
        self,
        batch_size: None = None,
        ctx: EvalContext | None = None,
        capture: bool = False,
        *,
        compile: bool = False,
        restart: bool = False,
        epoch: SupportsIndex | None = None,
    ) -> Epoch[tuple[Tensor | Batch, ...]]: ...
    def next_epoch(
        self,
        batch_size: SupportsIndex | None = None,
        ctx: EvalContext | None = None,
        capture: bool = False,
        *,
        compile: bool = False,
        restart: bool = False,
        epoch: SupportsIndex | None = None,
    ) -> Epoch[Any]:
        """An iterator over the next epoch.

        The first use decides for the reader's life whether it gives batches or single samples, and
        the size of the batches; `reset` makes it forget that, and start over. Run an iterator to
        its end: by default another epoch goes on where it was left, as in DALI, and is as long as
        any other. With `restart` or `epoch` it is begun afresh and complete, whatever became of
        the one before.

        Args:
            batch_size: How many samples a batch has. Without it (and without `max_batch_size`),
                single samples are given.
            ctx: Without effect: reading has threads of its own.
            capture: Without effect: loops run ahead by themselves, see `set_run_ahead`.
            compile: Another name for `capture`.
            restart: Drop what is left of an unfinished epoch, and begin with the next number.
            epoch: Begin the epoch with this number, from 0 on. In readers that shuffle, the order
                depends on it.
        """
        if ctx is not None and not isinstance(ctx, EvalContext):
            raise messages.wrong_argument(self._what, "ctx", ctx, "an EvalContext")
        number = None if epoch is None else checked_epoch(self._what, epoch)
        with self._guard():
            self._moving()
            size = self._max_batch_size if batch_size is None else batch_size
            position = self._settle_on("epochs", size)
            if number is not None or restart:
                position = position.at_epoch(position.next_number() if number is None else number)
                self._place(position)
            elif position.is_unfinished and not self._has_warned and not self._is_put_back:
                self._has_warned = True
                call_sites.warn(self._unfinished(position), UnfinishedEpochWarning)
            return Epoch(self, position)

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Begin the epoch with this number next, from its first sample on.

        As with the `DistributedSampler` of PyTorch, to be called before each epoch: it is complete
        even if the loop over the one before was left early, and in readers that shuffle its order
        depends on the number. Of a reader whose state was set in the middle of that very epoch, it
        leaves the rest to come.

        Args:
            epoch: The number, from 0 on.
        """
        number = checked_epoch(self._what, epoch)
        with self._guard():
            if self._position is not None:
                self._place(self._position.at_epoch(number))
            elif self._restored is None or not self._restored.is_within(number):
                start = self._first_position(number).snapshot(self._fingerprint())
                if self._restored is not None:
                    start = start._replace(seed=self._restored.seed)
                if item_states.loops:
                    item_states.before_set_state(self)
                self._restored = start._replace(batch_size=None)

    def epoch_indices(
        self, batch_size: SupportsIndex | None = None, *, epoch: SupportsIndex | None = None
    ) -> Iterator[Numbers]:
        """The numbers of an epoch's samples, an array for each batch, without reading them.

        These are the batches that `next_epoch` gives with the same arguments: without an `epoch`
        the next one, or what is left of it. The reader stays where it is. `reader[numbers]` reads
        a batch, also in another process, such as with a copy of the reader.

        Args:
            batch_size: How many samples a batch has.
            epoch: The number of the epoch, from 0 on.
        """
        number = None if epoch is None else checked_epoch(self._what, epoch)
        size = self._max_batch_size if batch_size is None else batch_size
        use = Use("epochs", None if size is None else self._check_batch_size(size))
        with self._guard():
            self._opened()
            position = self._position
            if position is None:
                position = self._begun(use)
            else:
                position.use.check(self._what, use)
            if number is not None:
                position = position.at_epoch(number)
        return position.batches_to_come()

    @overload
    def __getitem__(self, index: SupportsIndex) -> tuple[Tensor, ...]: ...
    @overload
    def __getitem__(self, index: slice | Iterable[SupportsIndex]) -> tuple[Batch, ...]: ...
    def __getitem__(self, index: SupportsIndex | slice | Iterable[SupportsIndex]) -> Any:
        """One sample by its number in the data set, as `next_epoch()` gives single ones.

        A slice, or a list or array of numbers, gives a batch. The reader stays where it is.
        Negative numbers count from the end. An RNG by sample draws as in the current epoch.
        """
        source = self._opened()
        numbers, is_batch = selected(self._what, index, len(source))
        values = fetch(source, numbers, is_batch, self._current_epoch())
        if current_mode() > EvalMode.eager:
            for value in values:
                settle(value)
        made: tuple[Tensor, ...] = self._yields(bad_samples.mark(values, self, numbers))
        return made

    @overload
    def __call__(self, *, batch_size: SupportsIndex) -> tuple[Batch, ...]: ...
    @overload
    def __call__(self, *, batch_size: None = None) -> tuple[Tensor, ...]: ...
    @hides_frames
    def __call__(self, *, batch_size: SupportsIndex | None = None) -> Any:
        """The next batch, or without a batch size the next sample, with no end of an epoch.

        A reader that is called can't be iterated, nor the other way round, until `reset`.
        """
        moved: Position | None = None
        try:
            with self._guard():
                self._moving()
                before = self._settle_on("calls", batch_size)
                outputs, after = self._next_called(before)
                # No call from here to the end of the `with`; see `Epoch.__next__`.
                moved = self._position = after
        except BaseException as error:
            if moved is not None:
                with self._guard():
                    if self._position is moved:
                        self._position = before
            hide_frames(error)
            raise
        return outputs

    def reset(self) -> None:
        """Start over, as if the reader had just been made: with its first epoch, in any mode."""
        with self._guard():
            if item_states.loops:
                item_states.before_set_state(self)
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
        """How many samples an epoch has: the whole data set, or as many as a sampler chooses."""
        source = self._opened()
        return len(source) if self._sampling is None else self._sampling.size

    @property
    def errors(self) -> list[SampleError]:
        """The samples that could not be read in the current epoch, or the one just finished.

        Those that a decoder left out or replaced are among them.
        """
        with self._guard():
            return self._bad.errors()

    def get_metadata(self, batch_size: SupportsIndex | None = None) -> dict[str, int]:
        """Figures: the number of samples (`epoch_size`), what it is filled up to where all shards
        are padded to one size (`epoch_size_padded`), and the reader's shard arguments.

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
        self._check_resumable()
        seen = item_states.visible_state(self) if item_states.loops else None
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
        with self._guard():
            if self._position is not None:
                raise RuntimeError(
                    f"{self._what}: can't set the state after iteration has begun. Set it on a new "
                    "reader, before its first iteration, or call `reader.reset()` first. "
                    "(`load_state_dict` starts over by itself.)"
                )
            self._start_over_at(state)

    def state_dict(self) -> dict[str, str]:
        """The state as a dict, in the way of PyTorch."""
        return {"state": str(self.get_state())}

    def load_state_dict(self, state_dict: dict[str, str]) -> None:
        """Go on where another reader was; see `set_state`. One that is in use starts over."""
        if not isinstance(state_dict, Mapping) or "state" not in state_dict:
            raise messages.wrong_argument(
                self._what, "state_dict", state_dict, "what `state_dict()` gave"
            )
        self._start_over_at(state_dict["state"])

    def __reduce__(self) -> tuple[Any, ...]:
        """What makes a reader of the same arguments that goes on at the same place.

        That is what pickling and copying give.
        """
        with self._guard():
            if self._refusal is not None:
                raise RuntimeError(f"{self._what}: {self._refusal}")
            is_new = self._position is None and self._restored is None
            state = None if is_new else str(self.get_state())
            positional, given = self._arguments
            return _made_again, (type(self), positional, {**given, **self._renewed()}, state)

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
                with using(self._options.storage):
                    source = self._open()
                if self._options.shuffle == "groups":
                    self._groups = _ends_of_groups(self._what, source)
                shards = self._options.num_shards
                count = len(source) if self._sampling is None else self._sampling.size
                if count >= shards:
                    self._source = source
                    return source
                self._refusal = _too_few(count, shards)
            raise RuntimeError(f"{self._what}: {self._refusal}")

    def _fingerprint(self) -> str:
        data = f"{self._opened().fingerprint():016x}"
        return data if self._sampling is None else mixed(data, self._sampling)

    def _plan(self) -> Plan:
        plan = self._options.plan(self.epoch_size)
        if plan.shuffle == "groups":
            plan = replace(plan, groups=self._groups)
        return plan if self._sampling is None else replace(plan, draw=self._sampling.draw)

    def _check_resumable(self) -> None:
        self._opened()
        if self._sampling is not None and not self._sampling.is_repeatable:
            raise RuntimeError(
                f"{self._what}: with this `sampler` the reader has no state to resume from, since "
                "its epochs can't be repeated. Pass a sequence of indices, a sampler with "
                "`set_epoch`, or `weights`."
            )

    def _check_batch_size(self, size: SupportsIndex, key: str = "batch_size") -> int:
        return checked_batch_size(self._what, size, key)

    def _take_shard(self, shard_id: int, num_shards: int) -> None:
        """Read a shard, unless the reader was made with one."""
        with self._guard():
            given, options = self._arguments[1], self._options
            if given.get("num_shards") is not None or given.get("shard_id") is not None:
                return
            if (options.shard_id, options.num_shards) == (shard_id, num_shards):
                return
            if self._position is not None:
                raise RuntimeError(
                    f"{self._what}: the reader can't be divided between {num_shards} processes "
                    "after iteration has begun. Create it with `num_shards` and `shard_id`, such "
                    "as `**penstock.torch.distributed_options()`."
                )
            if self.epoch_size < num_shards:
                raise RuntimeError(f"{self._what}: {_too_few(self.epoch_size, num_shards)}")
            self._options = replace(options, shard_id=shard_id, num_shards=num_shards)

    def _even_out(self) -> None:
        """Give all shards equally many batches, unless the reader was made with a policy."""
        with self._guard():
            if self._position is None and self._options.last_batch == "wrap":
                self._options = replace(self._options, is_even=True)

    def _batches_of_shards(self, number: int, batch_size: int) -> list[int]:
        """The different numbers of batches that shards have in an epoch, in ascending order."""
        with self._guard():
            position = self._position
            if position is None:
                position = self._begun(Use("epochs", self._check_batch_size(batch_size)))
            order, shards = position.order, range(self._options.num_shards)
            return sorted({order.batches(number, shard, batch_size) for shard in shards})

    # Where the reader is

    def _guard(self) -> RLock:
        return self._lock.lock()

    def _start_over(self) -> None:
        self._position = self._restored = None
        self._has_warned = self._is_put_back = False
        if self._sampling is not None:
            self._sampling.forget()
        self._ahead.clear()
        self._bad.clear()

    def _snapshot(self) -> Snapshot:
        if self._restored is not None:
            return self._restored
        data = self._fingerprint()
        if self._position is not None:
            return self._position.snapshot(data)
        return self._first_position(0).snapshot(data)._replace(batch_size=None)

    def _current_epoch(self) -> int:
        """The number of the epoch that the reader is at."""
        if self._position is not None:
            return self._position.number
        return 0 if self._restored is None else self._restored.turn

    def _first_position(self, number: int) -> Position:
        """The beginning of an epoch, for a reader that nobody has used yet."""
        order = Order(self._plan())
        return Position(Use("epochs", None), self._options.shard_id, order).at_epoch(number)

    def _place(self, position: Position) -> None:
        """Put the reader somewhere, wherever it has been."""
        if item_states.loops:
            item_states.before_set_state(self)
        self._ahead.clear()
        self._is_put_back = False
        self._position, self._restored = position, None

    def _start_over_at(self, state: ReaderState | str | bytes) -> None:
        """Start over with a state; changes nothing where that can't be used."""
        if not isinstance(state, str | bytes):
            raise TypeError(
                f"{self._what}: the state must be a ReaderState, str or bytes, got "
                f"{messages.describe(state)}."
            )
        snapshot = Snapshot.loads(state, self._what)
        with self._guard():
            self._check_resumable()
            plan = self._plan()
            snapshot.check(self._what, self._fingerprint(), plan)
            if item_states.loops:
                item_states.before_set_state(self)
            self._start_over()
            self._restored = snapshot

    def _renewed(self) -> dict[str, Any]:
        """Arguments that a copy gets in place of those that were given."""
        options = self._options
        renewed: dict[str, Any] = {}
        if options.shuffle == "buffer":
            renewed["seed"] = options.seed  # it may have been drawn
        if options.num_shards > 1:
            renewed.update(num_shards=options.num_shards, shard_id=options.shard_id)
        return renewed

    def _unfinished(self, position: Position) -> str:
        unit = "batches" if position.use.is_batched else "samples"
        left, coming = position.left, position.coming()
        return (
            f"{self._what}: an epoch is begun while {left} {unit} of the one before are left. As "
            f"in DALI, it goes on there: its {coming} {unit} are those {left}, then "
            f"{coming - left} of the next epoch, so that epochs no longer match passes over the "
            "data. For a complete epoch, ask for `next_epoch(..., restart=True)`, or call "
            "`reader.set_epoch(n)` before it."
        )

    def _moving(self) -> None:
        """To be called before the reader moves on."""
        if (self._is_copy or self._lock.is_forked) and not self._has_told_of_workers:
            self._has_told_of_workers = True
            if self._options.num_shards == 1 and workers.should_tell(self._is_copy):
                call_sites.warn(f"{self._what}: {workers.ALL_IN_EACH}")
        if item_states.loops:
            item_states.before_change(self)

    def _current_state(self) -> _Live:
        return _Live(self._snapshot(), self._position, self._restored, self._bad.errors())

    def _rewind(self, state: _Live) -> None:
        with self._guard():
            self._position, self._restored = state.position, state.restored
            self._is_put_back = True
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
            position = self._begun(use)
            self._position, self._restored = position, None
        else:
            position.use.check(self._what, use)
        return position

    def _begun(self, use: Use) -> Position:
        options, count, size = self._options, self.epoch_size, use.size or 1
        shard = count // options.num_shards
        if options.last_batch == "drop" and shard < size:
            raise ValueError(
                f"{self._what}: with `last_batch='drop'` nothing would be left: a shard has "
                f"{shard} samples, and a batch {size}."
            )
        return begun(use, options.shard_id, self._plan(), self._restored)

    # Going on

    def _begin(self, position: Position) -> int:
        """Begin an epoch, and return its number of batches."""
        self._bad.clear()
        return position.begin()

    def _epoch_to_come(self, batch_size: int) -> tuple[int, int]:
        """The number of the epoch that comes next, and how many batches it has altogether.

        That is the rest of one that a state was taken in, but not of one that was left unfinished.
        """
        with self._guard():
            position = self._position
            if position is None:
                position = self._begun(Use("epochs", self._check_batch_size(batch_size)))
            if position.is_resumed:
                return position.number, position.step + position.left
            if position.is_unfinished:
                position = position.at_epoch(position.next_number())
            return position.number + position.is_done, position.coming()

    def _next_called(self, position: Position) -> tuple[Any, Position]:
        """What a call gives, and where the reader is then."""
        moved = position.copy()
        # Enough for every shard to come by, with batches that are not full.
        enough = 2 * (self.epoch_size + self._options.num_shards * moved.batch_size)
        while moved.given - position.given < enough:
            try:
                outputs = self._next(moved, self._calls)
            except Exception:
                self._position = moved
                raise
            if outputs is not None:
                return outputs, moved
        self._position = moved
        raise RuntimeError(
            f"{self._what}: with `on_error='skip'` there is nothing left to give: none of the "
            f"samples can be read. The last error: {self._bad.last}."
        )

    def _next(self, position: Position, iteration: Iteration) -> Any:
        """The next batch or sample; None when it has no sample that can be read.

        Moves the position, which must not be that of the reader yet: it becomes that when what is
        returned here is handed over, or when it is the batch that is at fault. Whatever else is
        raised, such as by Ctrl-C, leaves the batch to come.
        """
        source = self._opened()
        self._iteration = iteration
        head = self._ahead.take(source, position)
        try:
            self._read_ahead(head.after)
            outputs = self._made(source, position, head)
        except Exception:
            if _is_at_fault(head):
                # It counts as given: whoever goes on gets the next one.
                position.advance(head.after)
            raise
        finally:
            # What was run ahead goes with the iterator, which nobody else may keep.
            self._iteration = self._calls
        position.advance(head.after)
        self._is_put_back = False
        return outputs

    def _made(self, source: Source, position: Position, head: Fetched) -> Any:
        """What users get of a batch."""
        numbers, values = head.numbers, head.values
        if self._bad.on_error != "raise":
            numbers, values = self._sifted(source, position, head)
            if not values:
                return None
        if current_mode() > EvalMode.eager:
            for value in values:
                settle(value)
        depth = run_ahead.allowed()
        if depth and not position.use.is_batched:
            depth = max(depth, SINGLES)
        # Not beyond the end of the epoch, where the loop may end as well.
        coming = position.left - 1 if position.use.way == "epochs" else depth
        upcoming = self._ahead.upcoming(min(depth, coming))
        run_ahead.begin(self._iteration, values, upcoming, depth)
        return self._yields(bad_samples.mark(values, self, numbers))

    def _sifted(
        self, source: Source, position: Position, head: Fetched
    ) -> tuple[Numbers, tuple[Value, ...]]:
        """The batch without bad samples, or with others in their place. Waits for it."""
        epochs = position.order.epochs(
            head.place, position.shard, position.batch_size, len(head.numbers)
        )
        return self._bad.replace(
            head.numbers,
            head.values,
            name=source.name,
            fetch=lambda others: fetch(source, others, position.use.is_batched, epochs),
            after=lambda index: position.order.after(head.place, position.shard, index),
        )

    def _read_ahead(self, place: Place) -> None:
        assert self._position is not None
        self._ahead.fill(self._opened(), self._position, place)

    def _note_later(self, number: int, fault: Fault) -> None:
        """A sample that was given turns out to be bad, such as one that can't be decoded."""
        with self._guard():
            if self._source is not None:
                self._bad.add(number, fault, self._source.name)


def _made_again(
    kind: type[Reader], args: tuple[Any, ...], given: dict[str, Any], state: str | None
) -> Reader:
    made = kind(*args, **given)
    made._is_copy = True
    if state is not None:
        made.set_state(state)
    return made


def _ends_of_groups(what: str, source: Source) -> Numbers:
    ends = source.groups()
    if ends is None:
        raise messages.bad_argument(
            what,
            "shuffle",
            "can't be 'groups': the samples of this format have none. Use 'global' or 'buffer'",
        )
    return np.frombuffer(ends, np.int64)


def _too_few(samples: int, shards: int) -> str:
    return (
        f"there are {samples} samples, fewer than the {shards} shards that `num_shards` asks for."
    )


def _is_at_fault(head: Fetched) -> bool:
    """Whether a batch is known to have samples that can't be read. Does not wait for it.

    Where there was no memory, or what else was wrong here, it may be read another time.
    """
    done = [value for value in head.values if value.finished]
    causes = {fault.cause[0] for value in done for _, fault in value.faults()}
    return bool(causes) and causes.isdisjoint(NO_FAULT_OF_THE_SAMPLE)


Reader.__doc__ = with_arguments(Reader.__doc__, Common.__doc__)
