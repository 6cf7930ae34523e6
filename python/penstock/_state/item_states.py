"""Which state of a reader or an RNG belongs to the item that a user has in hand.

A loop over `prefetch` has already taken the next items from its source, so readers and RNGs are
further on than the loop's body can know. What the body asks for is their state as of its own item:

- While an item is being taken from a source (a *pull*), each stateful object reports to `moving`
  before it changes. The pull notes the state it had until then.
- A pull's notes are kept for as long as its item waits. The state that belongs to the item in hand
  is the one noted by the first waiting pull that moved the object; if none did, it is the
  object's own. `seen` finds it.
- Inside of a pull, the source sees the states that its own loops give it. So prefetching loops
  nest: handing out an item, too, is a change for the loop around, which `handing_out` reports.
- An object that is moved both by a source and by the body of its loop has no state from which
  the same values would come again. Then `seen` raises.

Notes belong to the loop, not to a thread: a checkpoint may be taken from any thread. So lists and
dicts that others may change meanwhile are looked at in copies, made in one step even where
there is no GIL.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object that calls `moving` before it changes, and asks `seen` for its state."""

    def _live_state(self) -> Any:
        """Where the object really is; cheap."""

    def _rewind(self, state: Any) -> None:
        """Go to where it was before, at any time."""


Notes = dict[int, tuple[Any, Any]]
"""Objects that a pull moved, by their id, with the state that each had before."""


class Pull:
    """One item that was taken from a source, or is being taken."""

    __slots__ = ("error", "item", "notes")

    def __init__(self) -> None:
        self.notes: Notes = {}
        self.item: Any = None
        self.error: Exception | None = None  # in place of the item; StopIteration at the end


class Loop:
    """What one prefetching loop has taken from its source and not handed out yet."""

    __slots__ = ("level", "mixed", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Pull] = []  # short, and copied in one step
        self.level = 0  # how many loops there are around it
        self.mixed: dict[int, object] = {}  # what others have moved too, by its id

    def note_of(self, thing: object) -> tuple[Any, Any] | None:
        """The object with the state that it has for the loop's body, if it has been moved."""
        for pull in self.waiting.copy():
            note = pull.notes.get(id(thing))
            if note is not None:
                return note
        return None

    def notes(self) -> Notes:
        """All objects that have been moved, with the states that they have for the body."""
        found: Notes = {}
        for pull in self.waiting.copy():
            for key, note in pull.notes.copy().items():
                found.setdefault(key, note)
        return found

    def forget(self, thing: object) -> None:
        """The object has been put somewhere else: what was noted doesn't matter any more."""
        self.mixed.pop(id(thing), None)
        for pull in self.waiting.copy():
            pull.notes.pop(id(thing), None)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.pulls: list[tuple[Loop, Pull]] = []  # the innermost last


_thread = _Thread()
# Taken again where collecting garbage, which may happen at any time, closes another loop.
_lock = threading.RLock()

loops: tuple[Loop, ...] = ()
"""Loops that have items waiting. Empty most of the time, so that asking costs next to nothing."""

_watched: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def pulling(loop: Loop, pull: Pull, take: Callable[[], None]) -> None:
    """Take one item from the loop's source, and note what that moves."""
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
                _note(thing, state)
    finally:
        # No call, which an interrupt could come after before it is done.
        del pulls[depth:]


def moving(thing: Stateful) -> None:
    """The object is about to move on. (Ask whether there are any `loops` before calling this.)"""
    inside = _inside()
    holders = [loop for loop in loops if loop not in inside and loop.note_of(thing) is not None]
    if holders:
        for loop in (*holders, *inside):
            loop.mixed[id(thing)] = thing
    if inside:
        _note(thing, thing._live_state())


def placed(thing: Stateful) -> None:
    """The object is about to be put somewhere, wherever it has been."""
    inside = _inside()
    for loop in loops:
        if loop not in inside:
            loop.forget(thing)
    if inside:
        _note(thing, thing._live_state())


def seen(thing: object) -> Any:
    """The state that the caller is to see, or None when it is the object's own."""
    inside = _inside()
    outermost: Loop | None = None
    state = None
    for loop in loops:
        note = None if loop in inside else loop.note_of(thing)
        if note is None:
            continue
        if id(thing) in loop.mixed:
            raise RuntimeError(
                f"This {type(thing).__name__} has no state to resume from: it is used both by what "
                "a loop over `prefetch` iterates over and outside of that, so that the order of "
                "its values depends on how far ahead the loop is. Use one for each (such as an RNG "
                "of its own for the loop's body), and close() a loop that was left early before "
                "starting the next."
            )
        if outermost is None or loop.level < outermost.level:
            outermost, state = loop, note[1]
    if isinstance(state, _Failed):
        state.again()
    return state


def handing_out(loop: Loop) -> None:
    """The loop's body is about to get the next item."""
    if _thread.pulls:
        for thing, state in loop.notes().values():
            _note(thing, state)


def close(loop: Loop) -> None:
    """Put objects back to where they are for the loop's body: what still waits is dropped."""
    try:
        _close(loop)
    except BaseException:
        _close(loop)  # an interrupt must not leave half of them where they are
        raise


def _close(loop: Loop) -> None:
    for key, (thing, state) in loop.notes().items():
        if isinstance(thing, Stateful) and key not in loop.mixed:
            thing._rewind(state)
    _remove(loop)
    loop.waiting.clear()


def watch(thing: object) -> None:
    """Ask an object of somebody else's class for its state before and after each pull."""
    if not isinstance(thing, Stateful) and hasattr(thing, "get_state"):
        try:
            with _lock:
                _watched[id(thing)] = thing
        except TypeError:
            pass  # it can't be referred to weakly; its own state is all there is


def _inside() -> list[Loop]:
    return [loop for loop, _ in _thread.pulls]


def _note(thing: object, state: Any) -> None:
    for _, pull in _thread.pulls:
        pull.notes.setdefault(id(thing), (thing, state))


def _state_of(thing: Any) -> Any:
    try:
        return thing.get_state()
    except Exception as error:
        return _Failed(error)


class _Failed:
    """In place of a state that could not be had, such as that of a reader before it has begun."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def again(self) -> NoReturn:
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
            # Unless it was changed meanwhile, by this very thread.
            if loops is before:
                loops = after
                return
