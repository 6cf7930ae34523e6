"""Where an ExternalSource takes its items from: functions, iterables, and how far they are."""

from __future__ import annotations

import inspect
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from types import GeneratorType
from typing import Any, NamedTuple, Protocol

from penstock._errors.messages import describe
from penstock._runtime.fork_safe_lock import Guard

_CYCLES = {"no": "no", "quiet": "quiet", "raise": "raise", None: "no", False: "no", True: "quiet"}


class Feed(Protocol):
    """Gives one item after the other."""

    given: int
    """The number of the last item that has been given. Whoever gives it sets this last of all, and
    as an attribute: Python handles signals after calls, and an interrupt would lose the item."""

    @property
    def can_go_back(self) -> bool:
        """Whether `go_to` can reach what has been before."""

    def lock(self) -> AbstractContextManager[Any]:
        """To be held while an item is given, so that each goes to one thread."""

    def next(self) -> tuple[int, Any]:
        """The item after the last that has been given, and its number; StopIteration at the end."""

    def ahead(self) -> None:
        """Another item will be wanted."""

    def state(self) -> dict[str, Any]:
        """Where the feed is, for JSON."""

    def require_state(self) -> None:
        """Raise if a state doesn't tell enough to go there."""

    def go_to(self, state: dict[str, Any]) -> None:
        """Go to where a feed of the same data was."""


def feed(source: Any, cycle: str | bool | None) -> Feed:
    """The feed of a source that is any of those which an ExternalSource takes."""
    try:
        how = _CYCLES[cycle]
    except (KeyError, TypeError):
        raise ValueError(
            f'ExternalSource: unknown `cycle` {cycle!r}: it is "no" (or False), "quiet" (or True) '
            'or "raise".'
        ) from None
    if isinstance(source, Generator) and how != "no":
        raise TypeError(
            "ExternalSource: a generator can't be cycled through, as it runs only once. Give the "
            "generator function itself: `source=function` in place of `source=function()`."
        )
    if inspect.isgeneratorfunction(source):
        _refuse_parameters(source)
        return _Items(source, source, how)
    if source is not None and _is_iterable(source):
        return _Items(source, lambda: iter(source), how)
    if not callable(source):
        raise TypeError(
            "ExternalSource: `source` must be a function without parameters, an iterable or a "
            f"generator function, got {describe(source)}."
        )
    _refuse_parameters(source)
    if cycle is not None:
        raise ValueError(
            "ExternalSource: `cycle` is for a source that can be iterated over; a function is "
            "called again and again until it raises StopIteration."
        )
    return _Calls(source)


class _Pulled:
    """The items of an iterator with their numbers, one at a time.

    An item is either still in the iterator or held here: it comes over in one call of native code,
    in which Python handles no signals but those that reach the iterator itself.
    """

    def __init__(self, items: Iterator[Any]) -> None:
        self._numbered = enumerate(items, 1)
        self._held: deque[tuple[int, Any]] = deque(maxlen=1)

    def after(self, given: int) -> tuple[int, Any] | None:
        """The first one after so many; None at the end. Those before are forgotten."""
        held = self._held
        if held and held[0][0] > given:
            return held[0]
        held.clear()
        held.extend(itertools.islice(self._numbered, 1))
        return held[0] if held else None


class _Calls(threading.local):
    """A function, which is called for each item, and by several threads at once if they ask."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.given = 0
        self._function = function
        self._own = _has_state(function)
        self.can_go_back = self._own
        self._begin()

    def lock(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def next(self) -> tuple[int, Any]:
        found = self._pulled.after(self.given)
        if found is None:
            raise StopIteration
        return found

    def ahead(self) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return _own_state(self._function) if self._own else {}

    def require_state(self) -> None:
        if not self._own:
            raise RuntimeError(
                "ExternalSource: a function has no state that could be saved. Give an iterable or "
                "a generator function, or an object with get_state() and set_state() beside "
                "`__call__`."
            )

    def go_to(self, state: dict[str, Any]) -> None:
        _set_own_state(self._function, state)
        self._begin()

    def _begin(self) -> None:
        pulled = _Pulled(itertools.starmap(self._function, itertools.repeat(())))
        self._pulled, self.given = pulled, 0


class _Items:
    """An iterable or a generator function. The state is the number of items given."""

    def __init__(self, source: Any, begin: Callable[[], Iterator[Any]], cycle: str) -> None:
        self._source = source
        self._begin = begin
        self._cycle = cycle
        self._own = _has_state(source)
        self.given = 0
        self._is_broken = False
        """Whether an interrupt has ended the generator."""
        self._owes_end = False
        """Whether the end has been reached and nobody told, which `cycle="raise"` asks for."""
        self._guard = Guard()
        self._restart()
        self.can_go_back = self._own or self._iterator is not source

    def lock(self) -> AbstractContextManager[Any]:
        return self._guard.lock()

    def next(self) -> tuple[int, Any]:
        found = None if self._owes_end else self._pull()
        if found is None and self._cycle == "quiet":
            self._restart()
            found = self._pull()
        elif found is None and self._cycle == "raise":
            if not self._owes_end:
                self._owes_end = True
                self._restart()
            self._owes_end = False
        if found is None:
            raise StopIteration
        return found

    def ahead(self) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return _own_state(self._source) if self._own else {"items": self.given}

    def require_state(self) -> None:
        pass

    def go_to(self, state: dict[str, Any]) -> None:
        if self._own:
            _set_own_state(self._source, state)
            self._restart()
            return
        items = state.get("items")
        if type(items) is not int or items < 0 or len(state) > 1:
            raise ValueError(f"ExternalSource: not the state of an iterable: {state!r}.")
        if self.can_go_back:
            self._restart()
        elif items < self.given:
            raise RuntimeError(
                f"ExternalSource: {describe(self._source)} can be iterated over once only, and "
                f"{self.given} items have been taken, so that it can't go back to item {items}. "
                "Set the state of a new source, before its first item."
            )
        while self.given < items:
            found = self._pull()
            if found is None:
                raise ValueError(
                    f"ExternalSource: the state is that after {items} items, but the source has "
                    f"only {self.given}. Is it the same data?"
                )
            self.given = found[0]

    def _pull(self) -> tuple[int, Any] | None:
        if self._is_broken:
            self._mend()
        try:
            return self._pulled.after(self.given)
        except Exception:
            raise
        except BaseException:
            # An interrupt ends a generator, if it was there that it came.
            iterator = self._iterator
            self._is_broken = isinstance(iterator, GeneratorType) and not iterator.gi_frame
            raise

    def _mend(self) -> None:
        """Come back to where an interrupt has ended the generator."""
        if not self.can_go_back or self._own:
            raise RuntimeError(
                f"ExternalSource: {describe(self._source)} was interrupted, which ends a generator "
                f"for good, after {self.given} items. Give the generator function itself, which "
                "can be begun again: `source=function` in place of `source=function()`."
            )
        self.go_to({"items": self.given})

    def _restart(self) -> None:
        iterator = self._begin()
        pulled = _Pulled(iterator)
        self._iterator, self._pulled, self.given = iterator, pulled, 0
        self._is_broken = False


class _Outcome(NamedTuple):
    """An item that was taken in the background, or the error in its place.

    Args:
        number: Which it is, counted by what has been taken.
        item: The item.
        error: What was raised instead.
        after: The state of the feed then.
    """

    number: int
    item: Any
    error: BaseException | None
    after: dict[str, Any]


_making = threading.local()
"""`feeds`: those that wait for what this thread is making, each asked by the one before it."""


class Background:
    """Takes the next item of another feed in a thread, while the one before is used.

    Args:
        inner: The other feed.
        take_in: What to make of an item before the next one is asked for, which may well be in the
            same memory.
    """

    def __init__(self, inner: Feed, take_in: Callable[[Any], Any]) -> None:
        self._inner = inner
        self._take_in = take_in
        self._thread: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self.given = 0
        self._taken = 0
        self._outcomes: deque[_Outcome] = deque()
        self._state: dict[str, Any] | None = None  # after the item that was forgotten last
        self._guard = Guard()

    @property
    def can_go_back(self) -> bool:
        return self._inner.can_go_back

    def lock(self) -> AbstractContextManager[Any]:
        if self in getattr(_making, "feeds", ()):
            raise RuntimeError(
                "ExternalSource: the source asks itself for an item, which it can't while it is "
                "making one. (With `parallel`, it is asked in a thread of its own.)"
            )
        return self._guard.lock()

    def next(self) -> tuple[int, Any]:
        self._forget_given()
        if not self._outcomes:
            self._ask().result()  # an interrupt ends the waiting, not what is waited for
        found = self._outcomes[0]
        if found.error is not None:
            # The feed is where the error left it, and is asked again only when the user asks.
            self.given = found.number
            raise found.error
        return found.number, found.item

    def ahead(self) -> None:
        self._ask()

    def state(self) -> dict[str, Any]:
        state = self._state
        for outcome in [*self._outcomes]:
            if outcome.number <= self.given:
                state = outcome.after
        return self._inner.state() if state is None else state

    def require_state(self) -> None:
        self._inner.require_state()

    def go_to(self, state: dict[str, Any]) -> None:
        if self._thread is not None:
            self._submit(lambda: None).result()  # waits for what is under way
        self._inner.go_to(state)
        self._outcomes.clear()
        self._state, self.given = None, self._taken

    def _forget_given(self) -> None:
        outcomes = self._outcomes
        while outcomes and outcomes[0].number <= self.given:
            self._state = outcomes[0].after
            outcomes.popleft()

    def _ask(self) -> Future[None]:
        if self._state is None:
            self._state = self._inner.state()
        feeds = (*getattr(_making, "feeds", ()), self)
        return self._submit(lambda: self._take(feeds))

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        if os.getpid() != self._process:
            raise RuntimeError(
                "ExternalSource: with `parallel`, a source can't be used after a fork; its thread "
                "stayed in the parent. Make it in the child."
            )
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-source")
        return self._thread.submit(work)

    def _take(self, feeds: tuple[Background, ...]) -> None:
        """In the thread: see that there is an item after the one that is being given."""
        # After an interrupt it may be asked for once more. (A copy: others may take from it.)
        for last in [*self._outcomes][-1:]:
            if last.number > self.given + 1 or last.error is not None:
                return
        item, error, after = None, None, {}
        _making.feeds = feeds
        try:
            number, data = self._inner.next()
            self._inner.given = number
            item = self._take_in(data)
        except BaseException as problem:
            error = problem
        finally:
            del _making.feeds  # which would keep this one alive, and its thread with it
        try:
            after = self._inner.state()
        except Exception as problem:
            error = error or problem
        self._taken += 1
        self._outcomes.append(_Outcome(self._taken, item, error, after))


def _is_iterable(source: Any) -> bool:
    if isinstance(source, type):
        return False  # a class is called, even one of iterables
    return isinstance(source, Iterable) or hasattr(source, "__getitem__")


def _refuse_parameters(function: Callable[..., Any]) -> None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function that doesn't tell
        return
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise ValueError(
                "ExternalSource: `source` must be a function with no parameters, but it has "
                f"`{parameter.name}`. Wrap it: `lambda: function(...)`."
            )
        raise TypeError(
            f"ExternalSource: `source` must be a function with no parameters, but it has "
            f"`{parameter}`. Wrap it: `lambda: function(...)`."
        )


def _has_state(source: Any) -> bool:
    if isinstance(source, type):
        return False
    return callable(getattr(source, "get_state", None)) and callable(
        getattr(source, "set_state", None)
    )


def _own_state(source: Any) -> dict[str, Any]:
    return {"source": str(source.get_state())}


def _set_own_state(source: Any, state: dict[str, Any]) -> None:
    if "source" not in state:
        raise ValueError(f"ExternalSource: the state is not that of its source: {state!r}.")
    source.set_state(state["source"])
