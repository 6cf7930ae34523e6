"""The items of an ExternalSource: from functions, iterables and generators, with a position."""

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
from penstock._runtime.fork_safe_lock import ForkSafeLock

_CYCLES = {"no": "no", "quiet": "quiet", "raise": "raise", None: "no", False: "no", True: "quiet"}


class ItemSource(Protocol):
    """Delivers one item after another."""

    delivered: int
    """The number of the last item delivered. Set in the very last step, and as an attribute: Python
    handles signals after calls, and an interrupt would lose the item."""

    @property
    def can_go_back(self) -> bool:
        """Whether `restore` can go back to an earlier position."""

    def lock(self) -> AbstractContextManager[Any]:
        """Held while an item is delivered, so that each goes to one thread only."""

    def next(self) -> tuple[int, Any]:
        """The number of the next item, and the item; raises StopIteration at the end."""

    def prefetch(self) -> None:
        """Start computing the next item, where that is possible."""

    def state(self) -> dict[str, Any]:
        """The position, for JSON."""

    def require_state(self) -> None:
        """Raise if there is no state to restore from."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a position of a source with the same data."""


def item_source(source: Any, cycle: str | bool | None) -> ItemSource:
    """The items of a function, an iterable or a generator function."""
    try:
        how = _CYCLES[cycle]
    except (KeyError, TypeError):
        raise ValueError(
            f'ExternalSource: unknown `cycle` {cycle!r}: expected "no" (or False), "quiet" (or '
            'True) or "raise".'
        ) from None
    if isinstance(source, Generator) and how != "no":
        raise TypeError(
            "ExternalSource: a generator can't be cycled, since it runs only once. Pass the "
            "generator function itself: `source=function` instead of `source=function()`."
        )
    if inspect.isgeneratorfunction(source):
        _refuse_parameters(source)
        return _IterableItems(source, source, how)
    if source is not None and _is_iterable(source):
        return _IterableItems(source, lambda: iter(source), how)
    if not callable(source):
        raise TypeError(
            "ExternalSource: `source` must be a function without parameters, an iterable or a "
            f"generator function, got {describe(source)}."
        )
    _refuse_parameters(source)
    if cycle is not None:
        raise ValueError(
            "ExternalSource: `cycle` requires an iterable source; a function is called repeatedly "
            "until it raises StopIteration."
        )
    return _FunctionItems(source)


class _NumberedItems:
    """The items of an iterator with their numbers, one at a time.

    An item is either still in the iterator or held here: it is moved in one native call, during
    which Python handles no signals except in the iterator itself.
    """

    def __init__(self, items: Iterator[Any]) -> None:
        self._remaining = enumerate(items, 1)
        self._held: deque[tuple[int, Any]] = deque(maxlen=1)

    def after(self, number: int) -> tuple[int, Any] | None:
        """The item after this number, or None at the end. Earlier ones are dropped."""
        held = self._held
        if held and held[0][0] > number:
            return held[0]
        held.clear()
        held.extend(itertools.islice(self._remaining, 1))
        return held[0] if held else None


class _FunctionItems(threading.local):
    """A function that is called for each item; threads may call it concurrently."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.delivered = 0
        self._function = function
        self._has_own_state = _has_state(function)
        self.can_go_back = self._has_own_state
        self._begin()

    def lock(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def next(self) -> tuple[int, Any]:
        found = self._numbered.after(self.delivered)
        if found is None:
            raise StopIteration
        return found

    def prefetch(self) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return _source_state(self._function) if self._has_own_state else {}

    def require_state(self) -> None:
        if not self._has_own_state:
            raise RuntimeError(
                "ExternalSource: a function has no state to save. Use an iterable or a generator "
                "function, or an object with get_state() and set_state() as well as `__call__`."
            )

    def restore(self, state: dict[str, Any]) -> None:
        _set_source_state(self._function, state)
        self._begin()

    def _begin(self) -> None:
        numbered = _NumberedItems(itertools.starmap(self._function, itertools.repeat(())))
        self._numbered, self.delivered = numbered, 0


class _IterableItems:
    """An iterable or a generator function. The state is the number of items delivered."""

    def __init__(self, source: Any, begin: Callable[[], Iterator[Any]], cycle: str) -> None:
        self._source = source
        self._begin = begin
        self._cycle = cycle
        self._has_own_state = _has_state(source)
        self.delivered = 0
        self._is_broken = False
        """Whether an interrupt has ended the generator."""
        self._owes_end = False
        """Whether StopIteration is still to be raised for the end, with `cycle="raise"`."""
        self._lock = ForkSafeLock()
        self._restart()
        self.can_go_back = self._has_own_state or self._iterator is not source

    def lock(self) -> AbstractContextManager[Any]:
        return self._lock.lock()

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

    def prefetch(self) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return _source_state(self._source) if self._has_own_state else {"items": self.delivered}

    def require_state(self) -> None:
        pass

    def restore(self, state: dict[str, Any]) -> None:
        if self._has_own_state:
            _set_source_state(self._source, state)
            self._restart()
            return
        items = state.get("items")
        if type(items) is not int or items < 0 or len(state) > 1:
            raise ValueError(f"ExternalSource: not the state of an iterable: {state!r}.")
        if self.can_go_back:
            self._restart()
        elif items < self.delivered:
            raise RuntimeError(
                f"ExternalSource: {describe(self._source)} can be iterated over only once, and "
                f"{self.delivered} items have been delivered, so it can't go back to item {items}. "
                "Set the state on a new source, before its first item."
            )
        while self.delivered < items:
            found = self._pull()
            if found is None:
                raise ValueError(
                    f"ExternalSource: the state is at item {items}, but the source has only "
                    f"{self.delivered} items. Is it the same data?"
                )
            self.delivered = found[0]

    def _pull(self) -> tuple[int, Any] | None:
        if self._is_broken:
            self._recover()
        try:
            return self._numbered.after(self.delivered)
        except Exception:
            raise
        except BaseException:
            # An interrupt inside of a generator ends it.
            iterator = self._iterator
            self._is_broken = isinstance(iterator, GeneratorType) and not iterator.gi_frame
            raise

    def _recover(self) -> None:
        """Restart a generator that an interrupt has ended, and skip to its position."""
        if not self.can_go_back or self._has_own_state:
            raise RuntimeError(
                f"ExternalSource: {describe(self._source)} was interrupted after {self.delivered} "
                "items, which ends a generator for good. Pass the generator function itself, which "
                "can be restarted: `source=function` instead of `source=function()`."
            )
        self.restore({"items": self.delivered})

    def _restart(self) -> None:
        iterator = self._begin()
        numbered = _NumberedItems(iterator)
        self._iterator, self._numbered, self.delivered = iterator, numbered, 0
        self._is_broken = False


class _Outcome(NamedTuple):
    """An item that was taken in the background, or the error in its place.

    Args:
        number: Its number, counting everything that was taken.
        item: The item.
        error: The error raised instead.
        after: The state of the source after it.
    """

    number: int
    item: Any
    error: BaseException | None
    after: dict[str, Any]


_computing = threading.local()
"""`sources`: those waiting for what this thread computes, each requested by the previous one."""


class BackgroundItems:
    """Takes the next item in a thread while the previous one is used.

    Args:
        inner: The items.
        convert: Applied to an item before the next one is taken, which may reuse its memory.
        offer: Called with each item that was converted.
    """

    def __init__(
        self, inner: ItemSource, convert: Callable[[Any], Any], offer: Callable[[Any], None]
    ) -> None:
        self._inner = inner
        self._convert = convert
        self._offer = offer
        self._thread: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self.delivered = 0
        self._taken = 0
        self._outcomes: deque[_Outcome] = deque()
        self._state: dict[str, Any] | None = None  # after the last item that was dropped
        self._lock = ForkSafeLock()

    @property
    def can_go_back(self) -> bool:
        return self._inner.can_go_back

    def lock(self) -> AbstractContextManager[Any]:
        if self in getattr(_computing, "sources", ()):
            raise RuntimeError(
                "ExternalSource: the source requests an item from itself while it is computing "
                "one. (With `parallel`, it runs in its own thread.)"
            )
        return self._lock.lock()

    def next(self) -> tuple[int, Any]:
        self._forget_delivered()
        if not self._outcomes:
            self._request().result()  # an interrupt ends the wait, not the work
        found = self._outcomes[0]
        if found.error is not None:
            # The source stays where the error left it until the user asks for another item.
            self.delivered = found.number
            raise found.error
        return found.number, found.item

    def prefetch(self) -> None:
        self._request()

    def state(self) -> dict[str, Any]:
        state = self._state
        for outcome in [*self._outcomes]:
            if outcome.number <= self.delivered:
                state = outcome.after
        return self._inner.state() if state is None else state

    def require_state(self) -> None:
        self._inner.require_state()

    def restore(self, state: dict[str, Any]) -> None:
        if self._thread is not None:
            self._submit(lambda: None).result()  # waits for running work
        self._inner.restore(state)
        self._outcomes.clear()
        self._state, self.delivered = None, self._taken

    def _forget_delivered(self) -> None:
        outcomes = self._outcomes
        while outcomes and outcomes[0].number <= self.delivered:
            self._state = outcomes[0].after
            outcomes.popleft()

    def _request(self) -> Future[None]:
        if self._state is None:
            self._state = self._inner.state()
        sources = (*getattr(_computing, "sources", ()), self)
        return self._submit(lambda: self._take(sources))

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        if os.getpid() != self._process:
            raise RuntimeError(
                "ExternalSource: with `parallel`, a source can't be used after a fork, since its "
                "thread stayed in the parent. Create it in the child."
            )
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-source")
        return self._thread.submit(work)

    def _take(self, sources: tuple[BackgroundItems, ...]) -> None:
        """In the thread: take the next item, unless it has been taken already."""
        # After an interrupt it may be requested twice. (A copy: other threads may change it.)
        for last in [*self._outcomes][-1:]:
            if last.number > self.delivered + 1 or last.error is not None:
                return
        item, error, after = None, None, {}
        _computing.sources = sources
        try:
            number, data = self._inner.next()
            self._inner.delivered = number
            item = self._convert(data)
        except BaseException as problem:
            error = problem
        finally:
            del _computing.sources  # which would keep this one alive, and its thread with it
        try:
            after = self._inner.state()
        except Exception as problem:
            error = error or problem
        self._taken += 1
        self._outcomes.append(_Outcome(self._taken, item, error, after))
        if error is None:
            self._offer(item)


def _is_iterable(source: Any) -> bool:
    if isinstance(source, type):
        return False  # a class is called, even if its instances are iterable
    return isinstance(source, Iterable) or hasattr(source, "__getitem__")


def _refuse_parameters(function: Callable[..., Any]) -> None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function without a signature
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


def _source_state(source: Any) -> dict[str, Any]:
    return {"source": str(source.get_state())}


def _set_source_state(source: Any, state: dict[str, Any]) -> None:
    if "source" not in state:
        raise ValueError(f"ExternalSource: not a state of this kind of source: {state!r}.")
    source.set_state(state["source"])
