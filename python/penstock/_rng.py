"""Random number generators: where in a sequence of random words the next call is.

A draw is a function of the seed, of the number of the call in the generator's sequence, of the
sample and of the element. A generator only counts, when a call is made; threads and timing have no
part in it.
"""

from __future__ import annotations

import operator
import os
import re
import threading
import weakref
from collections.abc import Mapping
from typing import Any, SupportsIndex

from penstock import _ahead, _core
from penstock._traceback import public

_MASK = 2**64 - 1
_TEXT = re.compile(r"Philox_([0-9A-Fa-f]{16})_([0-9A-Fa-f]{16}):([0-9A-Fa-f]{16})_([0-3])")


class State(str):
    """The state of an RNG: a text, to be given to another one. Holds no more than four numbers."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"State({str(self)!r})"


@public
class RNG:
    """A stream of random numbers, for the `rng` argument of random operators.

    Each call of an operator takes seven words off the stream, whatever it draws. RNGs of the same
    seed give the same values, on any machine and with any number of threads. An RNG may be shared
    between threads; then it is theirs to see that their calls come in the same order each time.

    A forked process goes on with a seeded RNG just as its parent does: give each a seed of its own,
    such as `seed + rank`. One that was not seeded is seeded anew.

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
        if _ahead.loops:
            _ahead.moving(self)
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
        if _ahead.loops:
            _ahead.moving(self)
        self._philox.advance(words & 2**128 - 1)

    def clone(self) -> RNG:
        """Another RNG at the same position, that goes on by itself."""
        made = RNG(state=self.state)
        if self in _unseeded:
            _unseeded.add(made)
        return made

    def __copy__(self) -> RNG:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> RNG:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return RNG, (None, str(self.state))

    def __repr__(self) -> str:
        return f"RNG(state={str(self.state)!r})"

    def _draw(self) -> _core.Draw:
        """The place of one call of an operator."""
        if _ahead.loops:
            _ahead.moving(self)
        return self._philox.draw()

    def _place(self, seed: int, sequence: int, offset: int, phase: int) -> None:
        if _ahead.loops:
            _ahead.placed(self)
        self._philox.set(seed, sequence, offset, phase)
        _unseeded.discard(self)

    def _position(self) -> tuple[int, int, int, int]:
        found = _ahead.seen(self) if _ahead.loops else None
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


class _Thread(threading.local):
    """What each thread has of its own."""

    def __init__(self) -> None:
        self.rng = RNG()


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
    for rng in list(_unseeded):
        rng._philox.set(_entropy(), 0, 0, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
