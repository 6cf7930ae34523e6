"""Random number generators: where in a sequence of random words the next call is.

A draw is a function of the seed, of the number of the call in the generator's sequence, of the
sample and of the element. A generator only counts, when a call is made; threads and timing have no
part in it.

In another process, some generators must not go on as they would have done here. Which numbers they
give is settled when they are first used there (`_Unsettled`): not before is it known whether the
process is a worker of a DataLoader of PyTorch's.
"""

from __future__ import annotations

import operator
import os
import re
import sys
import threading
import weakref
from collections.abc import Mapping
from typing import Any, SupportsIndex

from penstock import _core
from penstock._errors.tracebacks import public
from penstock._state import item_states
from penstock._state.state_text import StateText

_MASK = 2**64 - 1
_TEXT = re.compile(r"Philox_([0-9A-Fa-f]{16})_([0-9A-Fa-f]{16}):([0-9A-Fa-f]{16})_([0-3])")


class State(StateText):
    """The state of an RNG: a text, to be given to another one. Holds no more than four numbers."""

    __slots__ = ()


@public
class RNG:
    """A stream of random numbers, for the `rng` argument of random operators.

    Each call of an operator takes seven words off the stream, whatever it draws. RNGs of the same
    seed give the same values, on any machine and with any number of threads. An RNG may be shared
    between threads; then it is theirs to see that their calls come in the same order each time.

    Another process goes on with a seeded RNG, be it forked or pickled, just as this one does: give
    each process a seed of its own, such as `seed + rank`, or one of the RNGs that `split` makes.
    One that was not seeded is seeded anew in a process that is forked or spawned, in a worker of a
    `torch.utils.data.DataLoader` by the worker's seed.

    Args:
        seed: Any integer, of which 64 bits count. A random one when neither this nor `state` is
            given.
        state: Where to start, as `state` of another RNG gives it.

    Example:
        >>> rng = ndd.random.RNG(1234)
        >>> again = rng.clone()
        >>> drawn = ndd.random.uniform(shape=3, rng=rng).torch().tolist()
        >>> ndd.random.uniform(shape=3, rng=again).torch().tolist() == drawn
        True
    """

    __slots__ = ("__weakref__", "_philox")

    _philox: Philox

    def __init__(self, seed: SupportsIndex | None = None, state: State | str | None = None) -> None:
        if state is None:
            number = _entropy() if seed is None else _seed(seed)
            self._philox = _core.Philox(number, 0, 0, 0)
            if seed is None:
                _unseeded.add(self)
        elif seed is None:
            self._philox = _core.Philox(*_parse(state))
        else:
            raise ValueError(
                "RNG: both `seed` and `state` were given; the state has its seed already."
            )

    def __call__(self) -> int:
        """The next random word: an integer of 32 bits."""
        if item_states.loops:
            item_states.moving(self)
        return self._philox.word()

    @property
    def seed(self) -> Any:
        """Set it to start over with another seed. It can't be read; `state` can."""
        raise AttributeError("seed is write-only; `state` has it, with the position beside it.")

    @seed.setter
    def seed(self, value: SupportsIndex) -> None:
        self._place(_seed(value), 0, 0, 0)

    @property
    def state(self) -> State:
        """The position in the stream, to be set here or in another RNG.

        In a loop over `prefetch`, this is the position that belongs to the item in hand.
        """
        seed, sequence, offset, phase = self._position()
        return State(f"Philox_{seed:016X}_{sequence:016X}:{offset:016X}_{phase}")

    @state.setter
    def state(self, value: State | str) -> None:
        self._place(*_parse(value))

    def get_state(self, *, cuda_stream: Any = None) -> State:
        """The same as `state`. There is nothing on a device to wait for."""
        return self.state

    def set_state(self, value: State | str) -> None:
        """Go to a position: a state, or its text."""
        self.state = value

    def state_dict(self) -> dict[str, Any]:
        """The state in a dictionary that JSON can hold, as PyTorch's objects give theirs."""
        return {"state": str(self.state)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to a position that `state_dict` gave."""
        if not isinstance(state_dict, Mapping) or "state" not in state_dict:
            raise ValueError(
                f"RNG: load_state_dict takes what state_dict() of an RNG gave, got {state_dict!r}."
            )
        self.state = state_dict["state"]

    def advance(self, n: SupportsIndex) -> None:
        """Skip `n` words."""
        words = operator.index(n)
        if words < 0:
            raise ValueError(f"RNG: can't advance by a negative number, got {words}.")
        if item_states.loops:
            item_states.moving(self)
        self._philox.advance(words & 2**128 - 1)

    def clone(self) -> RNG:
        """Another RNG at the same position, that goes on by itself."""
        made = RNG(state=self.state)
        if self in _unseeded:
            _unseeded.add(made)
        return made

    def split(self, n: SupportsIndex) -> list[RNG]:
        """Make `n` RNGs that are independent of each other and of this one.

        They are a function of this RNG's position, which moves on by four words; the first k of
        them do not depend on `n`. So each rank or worker can take its own:

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
        made = [RNG(_mixed(*words, index)) for index in range(count)]
        if self in _unseeded:
            _unseeded.update(made)
        return made

    def __copy__(self) -> RNG:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> RNG:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        if self in _unseeded and _is_spawning():
            return _arrived, (str(self.state),)
        return RNG, (None, str(self.state))

    def __repr__(self) -> str:
        return f"RNG(state={str(self.state)!r})"

    def _draw(self) -> _core.Draw:
        """The place of one call of an operator."""
        if item_states.loops:
            item_states.moving(self)
        return self._philox.draw()

    def _place(self, seed: int, sequence: int, offset: int, phase: int) -> None:
        if item_states.loops:
            item_states.placed(self)
        self._philox.set(seed, sequence, offset, phase)
        _unseeded.discard(self)

    def _position(self) -> tuple[int, int, int, int]:
        found = item_states.seen(self) if item_states.loops else None
        return self._philox.get() if found is None else found

    def _live_state(self) -> tuple[int, int, int, int]:
        return self._philox.get()

    def _rewind(self, state: tuple[int, int, int, int]) -> None:
        self._philox.set(*state)


def get_default_rng() -> RNG:
    """The calling thread's RNG, from which operators draw that are given none."""
    return _thread.rng


@public
def set_seed(seed: SupportsIndex) -> None:
    """Start the calling thread's default RNG over, with a seed.

    Other threads are not affected: each has a default RNG of its own, which is seeded at random
    until `set_seed` is called there.

    A forked process goes on just as its parent does, so that several of them draw the same numbers:
    call `set_seed(seed + rank)` in each. A process that is started in another way (`spawn`)
    knows nothing of the seed. The workers of a `torch.utils.data.DataLoader` are told apart without
    a word: there the seed that PyTorch gives the worker, another one in each epoch, is added to
    the seed that was set here before the fork. Under `spawn` it is the only seed, unless
    `penstock.torch.worker_init_fn` brings the other one along.

    Args:
        seed: Any integer, of which 64 bits count.

    Example:
        >>> ndd.random.set_seed(7)
        >>> drawn = ndd.random.uniform(shape=3).torch().tolist()
        >>> ndd.random.set_seed(7)
        >>> ndd.random.uniform(shape=3).torch().tolist() == drawn
        True
    """
    get_default_rng().seed = seed


class _Unsettled:
    """In place of an RNG's position, where only its first use shows in what process it is.

    In a worker of a DataLoader, a default RNG is a function of the position that it was seeded to,
    if it was, and of the worker's seed. Other RNGs are a function of both as well, so that two of
    them still differ. Outside of a worker, those that were not seeded get a seed from the system.
    """

    __slots__ = ("_is_default", "_made", "_owner", "_position", "_seeded")

    def __init__(self, owner: RNG, position: Position | None, seeded: bool, default: bool) -> None:
        self._owner = weakref.ref(owner)
        self._position = position
        self._seeded = seeded
        self._is_default = default
        self._made: dict[str, _core.Philox] = {}

    def word(self) -> int:
        return self._settle().word()

    def draw(self) -> _core.Draw:
        return self._settle().draw()

    def advance(self, words: int) -> None:
        self._settle().advance(words)

    def get(self) -> Position:
        return self._settle().get()

    def set(self, seed: int, sequence: int, offset: int, phase: int) -> None:
        self._settle().set(seed, sequence, offset, phase)

    def _settle(self) -> _core.Philox:
        # Threads that come at once get the same, without a lock that a fork could leave locked.
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
                return _mixed(*(position if position and self._seeded else ()), worker), 0, 0, 0
        elif worker is not None and position is not None:
            return _mixed(*position, worker), 0, 0, 0
        return position if position and self._seeded else (_entropy(), 0, 0, 0)


Position = tuple[int, int, int, int]
"""Seed, sequence, block and word of the block."""
Philox = _core.Philox | _Unsettled


class _Thread(threading.local):
    """What each thread has of its own."""

    def __init__(self) -> None:
        self.rng = RNG()
        self.rng._philox = _Unsettled(self.rng, None, seeded=False, default=True)


def _worker_seed() -> int | None:
    """The seed of the DataLoader's worker that this process is, which differs in each epoch."""
    data = sys.modules.get("torch.utils.data")
    info = None if data is None else data.get_worker_info()
    return None if info is None else int(info.seed) & _MASK


def _is_spawning() -> bool:
    """Whether this thread is pickling what a new process is to begin with."""
    context = sys.modules.get("multiprocessing.context")
    return context is not None and context.get_spawning_popen() is not None


def _arrived(state: str) -> RNG:
    """An RNG that was not seeded, in the process that it was sent to."""
    made = RNG()
    made._philox = _Unsettled(made, _parse(state), seeded=False, default=False)
    return made


def default_position() -> Position | None:
    """Where the calling thread's default RNG is, if it was seeded."""
    rng = get_default_rng()
    return None if rng in _unseeded else rng._position()


def enter_worker(position: Position | None) -> None:
    """Settle the default RNG of a worker, which was at this position in the process it is from.

    Without a position, it is at the one that it has by itself.
    """
    rng = get_default_rng()
    if position is not None:
        rng._philox = _Unsettled(rng, position, seeded=True, default=True)
        _unseeded.discard(rng)
    rng._philox.get()


def _mixed(*numbers: int) -> int:
    """A seed made of numbers of up to 64 bits; other numbers give another one."""
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
            f"RNG: `state` must be the state of an RNG or its text, got {state!r}. (Of another "
            "RNG, give its `state`.)"
        )
    found = _TEXT.fullmatch(state)
    if found is None:
        raise ValueError(
            "RNG: a state reads Philox_<seed>_<sequence>:<offset>_<phase>, three numbers of 16 "
            f"hexadecimal digits and one up to 3; got {state!r}."
        )
    seed, sequence, offset, phase = found.groups()
    return int(seed, 16), int(sequence, 16), int(offset, 16), int(phase)


# RNGs that nobody has seeded. A forked child must not repeat what its parent draws from them.
_unseeded: weakref.WeakSet[RNG] = weakref.WeakSet()

_thread = _Thread()


def after_fork() -> None:
    """In a forked child."""
    default = _thread.rng
    for rng in {*_unseeded, default}:
        philox = rng._philox
        if isinstance(philox, _core.Philox):
            seeded = rng not in _unseeded
            rng._philox = _Unsettled(rng, philox.get(), seeded, rng is default)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
