"""Random number generators: positions in a counter-based stream (Philox).

A random value is a function of the seed, the number of the call, the sample and the element. A
generator only counts calls, so results don't depend on threads and timing. With `by="sample"`
(`SampleRNG`), it counts the calls for each sample of a data set, so they don't depend on batches
either.

In a child process, some generators must not repeat the parent's numbers. Their position there is
chosen on first use (`_Undecided`): only then is it known whether the process is a worker of a
PyTorch DataLoader.
"""

from __future__ import annotations

import operator
import os
import re
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._state import item_states
from penstock._state.state_text import StateText

if TYPE_CHECKING:
    from penstock._core import Value
    from penstock._values.array import Array

_MASK = 2**64 - 1
_BY_SAMPLE = re.compile(r"PhiloxBySample_([0-9A-Fa-f]{16})")
_TEXT = re.compile(r"Philox_([0-9A-Fa-f]{16})_([0-9A-Fa-f]{16}):([0-9A-Fa-f]{16})_([0-3])")


class State(StateText):
    """The state of an RNG, a string of four numbers; can be set on another RNG."""

    __slots__ = ()


@public
class RNG:
    """A stream of random numbers, for the `rng` argument of random operators.

    Each operator call consumes seven words of the stream, whatever it draws. RNGs with the same
    seed give the same values, on any machine and with any number of threads. An RNG may be shared
    between threads, but results are only reproducible if their calls are made in the same order.

    A seeded RNG that is forked or pickled gives the same numbers in both processes: use a different
    seed in each process, such as `seed + rank`, or one of the RNGs made by `split`. An RNG without
    a seed gets a new one in a forked or spawned process; in a worker of a
    `torch.utils.data.DataLoader`, it depends on the worker's seed.

    With `by="sample"`, what is drawn for a sample from a reader depends on the seed, the epoch, the
    sample's number in the data set and how often there was a draw for it before, and on nothing
    else: the same sample gets the same augmentation in any batch, shard and process. See `of` for
    operators without inputs.

    Args:
        seed: Any integer; its lowest 64 bits are used. Random if neither `seed` nor `state` is
            given.
        state: The `state` of another RNG to start from.
        by: What draws are numbered by: "call" (default), one after another; or "sample", for each
            sample of a data set separately.

    Example:
        >>> rng = ndd.random.RNG(1234)
        >>> again = rng.clone()
        >>> drawn = ndd.random.uniform(shape=3, rng=rng).torch().tolist()
        >>> ndd.random.uniform(shape=3, rng=again).torch().tolist() == drawn
        True
    """

    __slots__ = ("__weakref__", "_philox")

    _philox: Philox
    _by_sample = False
    _size: int | None = None
    """The number of samples that it draws for, if it is for certain ones."""

    def __new__(
        cls,
        seed: SupportsIndex | None = None,
        state: State | str | None = None,
        *,
        by: Literal["call", "sample"] | None = None,
    ) -> RNG:
        if by not in (None, "call", "sample"):
            raise ValueError(f"RNG: `by` must be 'call' or 'sample', got {by!r}.")
        is_of_sample = isinstance(state, str) and _BY_SAMPLE.fullmatch(state) is not None
        if by is not None and state is not None and is_of_sample != (by == "sample"):
            raise ValueError(
                f"RNG: by={by!r} doesn't match the state {str(state)!r}. Leave it out: the state "
                "includes it."
            )
        if by != "sample" and not is_of_sample:
            return object.__new__(cls)
        if not issubclass(SampleRNG, cls):
            raise TypeError(f"{cls.__name__}: only RNG itself can draw by sample, not subclasses.")
        return object.__new__(SampleRNG)

    def __init__(
        self,
        seed: SupportsIndex | None = None,
        state: State | str | None = None,
        *,
        by: Literal["call", "sample"] | None = None,
    ) -> None:
        if state is None:
            number = _entropy() if seed is None else _seed(seed)
            self._philox = _core.Philox(number, 0, 0, 0)
            if seed is None:
                _unseeded.add(self)
        elif seed is None:
            self._philox = _core.Philox(*_parse(state))
        else:
            raise ValueError(
                "RNG: `seed` and `state` can't be combined; the state includes the seed."
            )

    @property
    def by(self) -> Literal["call", "sample"]:
        """What draws are numbered by."""
        return "sample" if self._by_sample else "call"

    def __call__(self) -> int:
        """The next random word, a 32-bit integer."""
        if item_states.loops:
            item_states.before_change(self)
        return self._philox.word()

    @property
    def seed(self) -> Any:
        """Set it to start over with another seed. Write-only; read `state` instead."""
        raise AttributeError("seed is write-only; `state` includes it, with the position.")

    @seed.setter
    def seed(self, value: SupportsIndex) -> None:
        self._set_position(_seed(value), 0, 0, 0)

    @property
    def state(self) -> State:
        """The position in the stream; can be set on this or another RNG.

        In a loop over `prefetch`, this is the position as of the current item.
        """
        seed, sequence, offset, phase = self._position()
        return State(f"Philox_{seed:016X}_{sequence:016X}:{offset:016X}_{phase}")

    @state.setter
    def state(self, value: State | str) -> None:
        self._set_position(*_parse(value))

    def get_state(self, *, cuda_stream: Any = None) -> State:
        """The same as `state`. `cuda_stream` has no effect."""
        return self.state

    def set_state(self, value: State | str) -> None:
        """Set the position: a state or its string."""
        self.state = value

    def state_dict(self) -> dict[str, Any]:
        """The state as a dictionary that can be stored as JSON."""
        return {"state": str(self.state)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the position to the result of `state_dict`."""
        if not isinstance(state_dict, Mapping) or "state" not in state_dict:
            raise ValueError(
                f"RNG: load_state_dict takes a result of RNG.state_dict(), got {state_dict!r}."
            )
        self.state = state_dict["state"]

    def advance(self, n: SupportsIndex) -> None:
        """Skip `n` words."""
        words = operator.index(n)
        if words < 0:
            raise ValueError(f"RNG: can't advance by a negative number, got {words}.")
        if item_states.loops:
            item_states.before_change(self)
        self._philox.advance(words & 2**128 - 1)

    def clone(self) -> RNG:
        """An independent copy at the same position."""
        made = RNG(state=self.state)
        if self in _unseeded:
            _unseeded.add(made)
        return made

    def split(self, n: SupportsIndex) -> list[RNG]:
        """Make `n` RNGs that are independent of each other and of this one.

        They are a function of this RNG's position, which advances by four words; the first k of
        them do not depend on `n`. So each rank or worker can use its own:

        Example:
            >>> rank, world_size = 1, 4
            >>> rng = ndd.random.RNG(1234).split(world_size)[rank]
            >>> rng.state == ndd.random.RNG(1234).split(8)[1].state
            True
        """
        count = operator.index(n)
        if count < 0:
            raise ValueError(f"RNG: can't split into a negative number of RNGs, got {count}.")
        words = [self() for _ in range(4)]
        made = [RNG(derived_seed(*words, index)) for index in range(count)]
        if self in _unseeded:
            _unseeded.update(made)
        return made

    def of(self, samples: Array | Iterable[SupportsIndex] | SupportsIndex, epoch: int = 0) -> RNG:
        """This RNG, for certain samples; only with `by="sample"`.

        Operators without inputs, such as `random.uniform`, need it to know which samples they draw
        for. They also take the batch size from it. And it can be used for values that don't come
        from a reader.

        Args:
            samples: A batch or tensor that was made from a reader's samples; or the numbers of
                samples (or a single one) in a data set.
            epoch: The epoch that samples given as numbers belong to.

        Example:
            >>> rng = ndd.random.RNG(1234, by="sample")
            >>> angles = ndd.random.uniform(range=(-30, 30), rng=rng.of([7, 3, 12], epoch=5))
            >>> again = ndd.random.uniform(range=(-30, 30), rng=rng.of([3], epoch=5))
            >>> angles.tensors[1].item() == again.tensors[0].item()
            True
        """
        raise ValueError(
            "RNG: `of` is for RNGs that draw by sample; create it with RNG(seed, by='sample')."
        )

    def __copy__(self) -> RNG:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> RNG:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        if self in _unseeded and _is_spawning():
            return _unpickle_unseeded, (str(self.state),)
        return RNG, (None, str(self.state))

    def __repr__(self) -> str:
        return f"RNG(state={str(self.state)!r})"

    def _draw_for(self, what: str, values: Sequence[Value], samples: int | None) -> _core.Draw:
        """The draw for one call of an operator, on these values.

        Args:
            what: The operator, for messages.
            values: Inputs and arguments.
            samples: The number of samples; None for single ones.
        """
        if item_states.loops:
            item_states.before_change(self)
        return self._philox.draw()

    def _set_position(self, seed: int, sequence: int, offset: int, phase: int) -> None:
        if item_states.loops:
            item_states.before_set_state(self)
        self._philox.set(seed, sequence, offset, phase)
        _unseeded.discard(self)

    def _position(self) -> tuple[int, int, int, int]:
        found = item_states.visible_state(self) if item_states.loops else None
        return self._philox.get() if found is None else found

    def _current_state(self) -> tuple[int, int, int, int]:
        return self._philox.get()

    def _rewind(self, state: tuple[int, int, int, int]) -> None:
        self._philox.set(*state)


class SampleRNG(RNG):
    """An RNG with a stream for each sample of a data set: `RNG(seed, by="sample")`.

    Nothing of it is saved but the seed. How often there was a draw for a sample is only known as
    long as values of that sample exist, so each epoch begins anew, as does a resumed one.
    """

    __slots__ = ("_of", "_streams")

    _streams: _core.SampleStreams
    _of: Value | None
    """The value whose samples it is for; otherwise each call's inputs tell."""
    _by_sample = True

    def __init__(
        self,
        seed: SupportsIndex | None = None,
        state: State | str | None = None,
        *,
        by: Literal["call", "sample"] | None = None,
    ) -> None:
        if seed is not None and state is not None:
            raise ValueError(
                "RNG: `seed` and `state` can't be combined; the state includes the seed."
            )
        if state is None:
            self._streams = _core.SampleStreams(_entropy() if seed is None else _seed(seed))
        else:
            self._streams = _streams(state)
        self._of = None

    @property
    def _size(self) -> int | None:  # type: ignore[override]
        return len(self._of) if self._of is not None and self._of.batch else None

    def __call__(self) -> int:
        raise _no_sequence("draws")

    @property
    def seed(self) -> Any:
        raise AttributeError("seed is write-only; `state` includes it.")

    @seed.setter
    def seed(self, value: SupportsIndex) -> None:
        self._set_streams(_core.SampleStreams(_seed(value)))

    @property
    def state(self) -> State:
        found = item_states.visible_state(self) if item_states.loops else None
        return _SampleState.of(self._streams if found is None else found)

    @state.setter
    def state(self, value: State | str) -> None:
        self._set_streams(_streams(value))

    def advance(self, n: SupportsIndex) -> None:
        raise _no_sequence("advances")

    def clone(self) -> RNG:
        return self._with(self._streams.copy(), self._of)

    def split(self, n: SupportsIndex) -> list[RNG]:
        count = operator.index(n)
        if count < 0:
            raise ValueError(f"RNG: can't split into a negative number of RNGs, got {count}.")
        seed = self._streams.seed
        return [RNG(derived_seed(seed, index), by="sample") for index in range(count)]

    def of(self, samples: Array | Iterable[SupportsIndex] | SupportsIndex, epoch: int = 0) -> RNG:
        from penstock._values.array import Array

        if not isinstance(samples, Array):
            value = _numbered(samples, epoch)
        elif not samples._value.has_lineage:
            raise ValueError(
                "RNG.of: the samples of this value are not known, since it was not made from a "
                "reader's samples. Pass one that was, or the numbers of the samples."
            )
        else:
            value = samples._value
        return self._with(self._streams, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return RNG, (None, str(self.state))

    def _with(self, streams: _core.SampleStreams, of: Value | None) -> SampleRNG:
        made = object.__new__(SampleRNG)
        made._streams, made._of = streams, of
        return made

    def _draw_for(self, what: str, values: Sequence[Value], samples: int | None) -> _core.Draw:
        of = self._of
        if of is not None:
            if of.batch and samples is not None and len(of) != samples:
                raise messages.batch_sizes_differ(samples, len(of), what)
            values = (of,)
        drawn = self._streams.draw(values, samples is not None)
        if drawn is None:
            raise messages.unknown_samples(what, bool(values) and of is None)
        return drawn

    def _set_streams(self, streams: _core.SampleStreams) -> None:
        if item_states.loops:
            item_states.before_set_state(self)
        self._streams = streams

    def _current_state(self) -> Any:
        return self._streams

    def _rewind(self, state: Any) -> None:
        self._streams = state


class _SampleState(State):
    """The state of an RNG by sample. In the process that it is taken in, it has all that exists;
    as text, the seed.
    """

    streams: _core.SampleStreams

    @staticmethod
    def of(streams: _core.SampleStreams) -> _SampleState:
        made = _SampleState(f"PhiloxBySample_{streams.seed:016X}")
        made.streams = streams.copy()
        return made


def _streams(state: State | str) -> _core.SampleStreams:
    if isinstance(state, _SampleState):
        return state.streams.copy()
    found = _BY_SAMPLE.fullmatch(state) if isinstance(state, str) else None
    if found is None:
        raise ValueError(
            "RNG: this RNG draws by sample, and its states have the form PhiloxBySample_<seed>, "
            f"with 16 hexadecimal digits; got {state!r}."
        )
    return _core.SampleStreams(int(found[1], 16))


def _numbered(samples: Iterable[SupportsIndex] | SupportsIndex, epoch: int) -> Value:
    """A value of samples of a data set, for an RNG to draw for."""
    import numpy as np

    from penstock._values.conversion import single

    try:
        numbers = np.array(operator.index(samples), np.int64)  # type: ignore[arg-type]
    except TypeError:
        try:
            rows = [operator.index(number) for number in samples]  # type: ignore[union-attr]
            numbers = np.array(rows, np.int64)
        except TypeError:
            raise TypeError(
                "RNG.of: `samples` must be a batch or tensor from a reader, or the numbers of "
                f"samples, got {samples!r}."
            ) from None
    number = operator.index(epoch)
    if number < 0 or numbers.size == 0 or numbers.min() < 0:
        raise ValueError("RNG.of: there must be samples; they and epochs are numbered from 0.")
    value = single(numbers)
    if numbers.ndim:
        value = value.split()
    _core.given_together([value], np.atleast_1d(numbers), number)
    return value


def _no_sequence(does: str) -> TypeError:
    return TypeError(
        f"RNG: an RNG by sample never {does} by itself: it has a stream for each sample, not one "
        "sequence. Use an RNG without `by='sample'` for this."
    )


def get_default_rng() -> RNG:
    """The calling thread's RNG, used by operators without `rng`."""
    return _thread.rng


@contextmanager
def default_rng(rng: RNG) -> Iterator[None]:
    """Make an RNG the calling thread's default one for a while."""
    before, _thread.rng = _thread.rng, rng
    try:
        yield
    finally:
        _thread.rng = before


@public
def set_seed(seed: SupportsIndex) -> None:
    """Seed the calling thread's default RNG.

    Other threads are not affected: each has its own default RNG, which is seeded randomly until
    `set_seed` is called there.

    Forked processes continue from their parent's position, so several of them draw the same
    numbers: call `set_seed(seed + rank)` in each. A spawned process does not inherit the seed.
    Workers of a `torch.utils.data.DataLoader` differ from each other automatically: the worker's
    seed from PyTorch, a new one in each epoch, is combined with the seed set here before the fork.
    With `spawn` it is the only seed, unless `penstock.torch.worker_init_fn` passes the other one
    on.

    Args:
        seed: Any integer; its lowest 64 bits are used.

    Example:
        >>> ndd.random.set_seed(7)
        >>> drawn = ndd.random.uniform(shape=3).torch().tolist()
        >>> ndd.random.set_seed(7)
        >>> ndd.random.uniform(shape=3).torch().tolist() == drawn
        True
    """
    get_default_rng().seed = seed


class _Undecided:
    """The position of an RNG in a child process, chosen on first use.

    In a worker of a DataLoader, it is a function of the RNG's position, if it was seeded, and of
    the worker's seed. For RNGs other than a thread's default one the position always counts, so
    that two of them still differ. Outside of a worker, unseeded RNGs get a seed from the system.
    """

    __slots__ = ("_is_default", "_made", "_owner", "_position", "_seeded")

    def __init__(self, owner: RNG, position: Position | None, seeded: bool, default: bool) -> None:
        self._owner = weakref.ref(owner)
        self._position = position
        self._seeded = seeded
        self._is_default = default
        self._made: dict[str, _core.Philox] = {}

    def word(self) -> int:
        return self._decide().word()

    def draw(self) -> _core.Draw:
        return self._decide().draw()

    def advance(self, words: int) -> None:
        self._decide().advance(words)

    def get(self) -> Position:
        return self._decide().get()

    def set(self, seed: int, sequence: int, offset: int, phase: int) -> None:
        self._decide().set(seed, sequence, offset, phase)

    def _decide(self) -> _core.Philox:
        # Concurrent threads get the same one, without a lock that a fork could leave locked.
        made = self._made.setdefault("philox", _core.Philox(*self._choose()))
        owner = self._owner()
        if owner is not None and owner._philox is self:
            owner._philox = made
            if self._is_default and _worker_seed() is not None:
                _unseeded.discard(owner)
        return made

    def _choose(self) -> Position:
        worker = _worker_seed()
        position = self._position
        if worker is not None and self._is_default:
            if threading.current_thread() is threading.main_thread():
                return (
                    derived_seed(*(position if position and self._seeded else ()), worker),
                    0,
                    0,
                    0,
                )
        elif worker is not None and position is not None:
            return derived_seed(*position, worker), 0, 0, 0
        return position if position and self._seeded else (_entropy(), 0, 0, 0)


Position = tuple[int, int, int, int]
"""Seed, sequence, block, and word in the block."""
Philox = _core.Philox | _Undecided


class _Thread(threading.local):
    """Thread-local data."""

    def __init__(self) -> None:
        self.rng = RNG()
        self.rng._philox = _Undecided(self.rng, None, seeded=False, default=True)


def _worker_seed() -> int | None:
    """The seed of this DataLoader worker, which changes each epoch; None in other processes."""
    data = sys.modules.get("torch.utils.data")
    info = None if data is None else data.get_worker_info()
    return None if info is None else int(info.seed) & _MASK


def _is_spawning() -> bool:
    """Whether this thread is pickling the arguments of a new process."""
    context = sys.modules.get("multiprocessing.context")
    return context is not None and context.get_spawning_popen() is not None


def _unpickle_unseeded(state: str) -> RNG:
    """An unseeded RNG in the process that unpickles it."""
    made = RNG()
    made._philox = _Undecided(made, _parse(state), seeded=False, default=False)
    return made


def default_position() -> Position | None:
    """The position of the calling thread's default RNG, if it was seeded."""
    rng = get_default_rng()
    return None if rng in _unseeded else rng._position()


def enter_worker(position: Position | None) -> None:
    """Set up the default RNG of a DataLoader worker.

    Args:
        position: Its position in the parent process, if it was seeded there.
    """
    rng = get_default_rng()
    if position is not None:
        rng._philox = _Undecided(rng, position, seeded=True, default=True)
        _unseeded.discard(rng)
    rng._philox.get()


def derived_seed(*numbers: int) -> int:
    """A seed derived from 64-bit numbers."""
    from hashlib import blake2b

    digest = blake2b(digest_size=8)
    for number in numbers:
        digest.update(number.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")


def _entropy() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _seed(value: SupportsIndex) -> int:
    try:
        return operator.index(value) & _MASK
    except TypeError:
        raise TypeError(f"RNG: `seed` must be an integer, got {value!r}.") from None


def _parse(state: State | str) -> tuple[int, int, int, int]:
    if not isinstance(state, str):
        raise TypeError(
            f"RNG: `state` must be the state of an RNG or its string, got {state!r}. (For another "
            "RNG, pass its `state`.)"
        )
    found = _TEXT.fullmatch(state)
    if found is None:
        if _BY_SAMPLE.fullmatch(state):
            raise ValueError(
                f"RNG: {str(state)!r} is the state of an RNG by sample, and this one draws by "
                "call. Create it with RNG(seed, by='sample')."
            )
        raise ValueError(
            "RNG: a state has the form Philox_<seed>_<sequence>:<offset>_<phase>, with three "
            f"numbers of 16 hexadecimal digits and one from 0 to 3; got {state!r}."
        )
    seed, sequence, offset, phase = found.groups()
    return int(seed, 16), int(sequence, 16), int(offset, 16), int(phase)


# RNGs without a seed. A forked child must not repeat the numbers of its parent.
_unseeded: weakref.WeakSet[RNG] = weakref.WeakSet()

_thread = _Thread()


def after_fork() -> None:
    """Run in a forked child process."""
    default = _thread.rng
    for rng in {*_unseeded, default}:
        philox = getattr(rng, "_philox", None)
        if isinstance(philox, _core.Philox):
            seeded = rng not in _unseeded
            rng._philox = _Undecided(rng, philox.get(), seeded, rng is default)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
