"""The states of readers and RNGs as of the current item of a loop over `prefetch`.

The loop has already pulled the next items from its source, so readers and RNGs are further ahead
than the loop's body. The body must see their states as of its own item:

- While an item is being pulled from a source (a *pull*), each stateful object calls `before_change`
  before it changes. The pull records the state that the object had.
- Records are kept while the pull's item waits. The state for the current item is the one recorded
  by the first waiting pull that changed the object; if there is none, it is the object's own.
  `visible_state` finds it.
- Inside of a pull, the source sees the states of the loops inside of it. So prefetching loops
  nest: handing out an item is also a change for the enclosing loop, reported by `handing_out`.
- An object that is changed both by a source and by the body of its loop has no state from which
  the same values would follow. Then `visible_state` raises.

Records belong to the loop, not to a thread: a checkpoint may be taken from any thread. So shared
lists and dicts are read from copies, which are atomic even without a GIL.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object that calls `before_change`, and `visible_state` when asked for its state."""

    def _current_state(self) -> Any:
        """The object's actual state; cheap."""

    def _rewind(self, state: Any) -> None:
        """Go back to an earlier state, at any time."""


Records = dict[int, tuple[Any, Any]]
"""Objects that a pull changed, by id, each with its state before."""


class Pull:
    """An item that was or is being pulled from a source."""

    __slots__ = ("error", "item", "records")

    def __init__(self) -> None:
        self.records: Records = {}
        self.item: Any = None
        self.error: Exception | None = None  # instead of an item; StopIteration at the end


class Loop:
    """A prefetching loop: the items that it has pulled and not handed out yet."""

    __slots__ = ("level", "mixed", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Pull] = []  # short; copied atomically
        self.level = 0  # the number of enclosing loops
        self.mixed: dict[int, object] = {}  # objects also changed outside of the source, by id

    def record_of(self, thing: object) -> tuple[Any, Any] | None:
        """The object and its state as of the current item, if a pull has changed it."""
        for pull in self.waiting.copy():
            record = pull.records.get(id(thing))
            if record is not None:
                return record
        return None

    def records(self) -> Records:
        """All objects that pulls have changed, with their states as of the current item."""
        found: Records = {}
        for pull in self.waiting.copy():
            for key, record in pull.records.copy().items():
                found.setdefault(key, record)
        return found

    def forget(self, thing: object) -> None:
        """Drop the records of an object whose state has been set."""
        self.mixed.pop(id(thing), None)
        for pull in self.waiting.copy():
            pull.records.pop(id(thing), None)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.pulls: list[tuple[Loop, Pull]] = []  # innermost last


_thread = _Thread()
# Reentrant: garbage collection, at any time, may close another loop in the same thread.
_lock = threading.RLock()

loops: tuple[Loop, ...] = ()
"""Loops with waiting items. Usually empty, so the check is almost free."""

_watched: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def pull_item(loop: Loop, pull: Pull, take: Callable[[], None]) -> None:
    """Pull one item from the loop's source, and record the states that this changes."""
    pulls = _thread.pulls
    depth = loop.level = len(pulls)
    try:
        loop.waiting.append(pull)
        _add(loop)
        with _lock:
            watched = list(_watched.values())
        before = [(thing, _state_of(thing)) for thing in watched]
        pulls.append((loop, pull))
        take()
        for thing, state in before:
            if str(_state_of(thing)) != str(state):
                _record(thing, state)
    finally:
        # No function call here, after which an interrupt could arrive.
        del pulls[depth:]


def is_pulling() -> bool:
    """Whether the calling thread is inside of the source of a loop."""
    return bool(_thread.pulls)


def before_change(thing: Stateful) -> None:
    """The object is about to advance. (Call this only if there are any `loops`.)"""
    inside = _inside()
    holders = [loop for loop in loops if loop not in inside and loop.record_of(thing) is not None]
    if holders:
        for loop in (*holders, *inside):
            loop.mixed[id(thing)] = thing
    if inside:
        _record(thing, thing._current_state())


def before_set_state(thing: Stateful) -> None:
    """The object's state is about to be set."""
    inside = _inside()
    for loop in loops:
        if loop not in inside:
            loop.forget(thing)
    if inside:
        _record(thing, thing._current_state())


def visible_state(thing: object) -> Any:
    """The state that the caller must see, or None if it is the object's own."""
    inside = _inside()
    outermost: Loop | None = None
    state = None
    for loop in loops:
        record = None if loop in inside else loop.record_of(thing)
        if record is None:
            continue
        if id(thing) in loop.mixed:
            raise RuntimeError(
                f"This {type(thing).__name__} has no state to resume from: it is used both inside "
                "and outside of the source of a loop over `prefetch`, so the order of its values "
                "depends on how far ahead the loop is. Use separate ones (such as another RNG in "
                "the loop's body), and close() a loop that was left early before starting the "
                "next."
            )
        if outermost is None or loop.level < outermost.level:
            outermost, state = loop, record[1]
    if isinstance(state, _Failed):
        state.reraise()
    return state


def handing_out(loop: Loop) -> None:
    """The loop's body is about to get the next item."""
    if _thread.pulls:
        for thing, state in loop.records().values():
            _record(thing, state)


def close(loop: Loop) -> None:
    """Drop the waiting items, and set objects back to their states as of the current item."""
    try:
        _close(loop)
    except BaseException:
        _close(loop)  # an interrupt must not leave half of them set back
        raise


def _close(loop: Loop) -> None:
    for key, (thing, state) in loop.records().items():
        if isinstance(thing, Stateful) and key not in loop.mixed:
            thing._rewind(state)
    _remove(loop)
    loop.waiting.clear()


def watch(thing: object) -> None:
    """Compare the state of an object of a user's class before and after each pull."""
    if not isinstance(thing, Stateful) and hasattr(thing, "get_state"):
        try:
            with _lock:
                _watched[id(thing)] = thing
        except TypeError:
            pass  # no weak references; only its own state is available


def _inside() -> list[Loop]:
    return [loop for loop, _ in _thread.pulls]


def _record(thing: object, state: Any) -> None:
    for _, pull in _thread.pulls:
        pull.records.setdefault(id(thing), (thing, state))


def _state_of(thing: Any) -> Any:
    try:
        return thing.get_state()
    except Exception as error:
        return _Failed(error)


class _Failed:
    """In place of a state that is not available, such as a reader's before its first epoch."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def reraise(self) -> NoReturn:
        raise self.error

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


def _add(loop: Loop) -> None:
    _change(lambda others: others if loop in others else (*others, loop))


def _remove(loop: Loop) -> None:
    _change(lambda others: tuple(other for other in others if other is not loop))


def _change(new: Callable[[tuple[Loop, ...]], tuple[Loop, ...]]) -> None:
    global loops
    with _lock:
        while True:
            before = loops
            after = new(before)
            # Unless this very thread has changed it meanwhile.
            if loops is before:
                loops = after
                return
