"""Where an ExternalSource takes its items from: functions, iterables, and how far they are."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from penstock._errors import describe

_CYCLES = {"no": "no", "quiet": "quiet", "raise": "raise", None: "no", False: "no", True: "quiet"}


class Feed(Protocol):
    """Gives one item after the other."""

    @property
    def can_go_back(self) -> bool:
        """Whether `go_to` can reach what has been before."""

    def take(self) -> Any:
        """The next item; StopIteration at the end."""

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


class _Calls:
    """A function, which is called for each item."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._own = _has_state(function)
        self.can_go_back = self._own

    def take(self) -> Any:
        return self._function()

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


class _Items:
    """An iterable or a generator function. The state is the number of items taken."""

    def __init__(self, source: Any, begin: Callable[[], Iterator[Any]], cycle: str) -> None:
        self._source = source
        self._begin = begin
        self._cycle = cycle
        self._own = _has_state(source)
        self._iterator = begin()
        self._taken = 0
        self.can_go_back = self._own or self._iterator is not source

    def take(self) -> Any:
        try:
            item = next(self._iterator)
        except StopIteration:
            if self._cycle == "no":
                raise
            self._restart()
            if self._cycle == "raise":
                raise
            item = next(self._iterator)
        self._taken += 1
        return item

    def state(self) -> dict[str, Any]:
        return _own_state(self._source) if self._own else {"items": self._taken}

    def require_state(self) -> None:
        pass

    def go_to(self, state: dict[str, Any]) -> None:
        if self._own:
            _set_own_state(self._source, state)
            self._restart()
            return
        items = state.get("items")
        if not isinstance(items, int) or items < 0:
            raise ValueError(f"ExternalSource: not the state of an iterable: {state!r}.")
        if self.can_go_back:
            self._restart()
        elif items < self._taken:
            raise RuntimeError(
                f"ExternalSource: {describe(self._source)} can be iterated over once only, and "
                f"{self._taken} items have been taken, so that it can't go back to item {items}. "
                "Set the state of a new source, before its first item."
            )
        for _ in itertools.islice(self._iterator, items - self._taken):
            self._taken += 1
        if self._taken < items:
            raise ValueError(
                f"ExternalSource: the state is that after {items} items, but the source has only "
                f"{self._taken}. Is it the same data?"
            )

    def _restart(self) -> None:
        self._iterator = self._begin()
        self._taken = 0


class Background:
    """Takes the next item of another feed in a thread, while the one before is used."""

    def __init__(self, inner: Feed) -> None:
        self._inner = inner
        self._thread: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._next: Future[Any] | None = None
        self._state: dict[str, Any] = {}  # after the item that was given last

    @property
    def can_go_back(self) -> bool:
        return self._inner.can_go_back

    def take(self) -> Any:
        if self._next is None:
            self._start()
        assert self._next is not None
        try:
            item = self._next.result()
        except BaseException as error:
            # Ctrl-C ends the waiting, not what is waited for. Otherwise the feed is where the
            # error left it, and is asked again only when the user asks.
            if self._next.done() and self._next.exception() is error:
                self._next = None
            raise
        self._start()
        return item

    def state(self) -> dict[str, Any]:
        return self._inner.state() if self._next is None else self._state

    def require_state(self) -> None:
        self._inner.require_state()

    def go_to(self, state: dict[str, Any]) -> None:
        if self._next is not None:
            self._next.exception()  # waits
            self._next = None
        self._inner.go_to(state)

    def _start(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "ExternalSource: with `parallel`, a source can't be used after a fork; its thread "
                "stayed in the parent. Make it in the child."
            )
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-source")
        self._state = self._inner.state()
        self._next = self._thread.submit(self._inner.take)


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
