"""Tracebacks that end at the user's line, without the frames of this package.

Every public function ends in `except BaseException as error: hide_frames(error)` and a bare
`raise`, which adds no entry for the function itself. A `try` costs nothing unless something is
raised: operators and arithmetic have their own, `public` adds one to everything else.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, TracebackType
from typing import Any, TypeVar

from penstock._operators.own_files import is_inside

T = TypeVar("T")

_UNCHANGED = ("__init_subclass__", "__class_getitem__", "__del__")


def hide_frames(error: BaseException) -> None:
    """Remove this package's frames from the traceback of an error and of its causes.

    With PENSTOCK_DEBUG=1 in the environment, all frames are kept.
    """
    if os.environ.get("PENSTOCK_DEBUG", "0") not in ("", "0"):
        return
    for each in _chain(error):
        each.__traceback__ = _outside(each.__traceback__)


def public(target: T) -> T:
    """A function, or a class with all its public methods, whose errors show no internal frames."""
    if isinstance(target, FunctionType):
        guarded: T = _guarded(target)
        return guarded
    for name, item in list(vars(target).items()):
        if name in _UNCHANGED or (name.startswith("_") and not name.endswith("__")):
            continue
        if isinstance(item, FunctionType):
            if not hasattr(item, "_hides_frames"):
                setattr(target, name, _guarded(item))
        elif isinstance(item, staticmethod | classmethod):
            setattr(target, name, type(item)(_guarded(item.__func__)))
        elif isinstance(item, property) and item.fget is not None:
            setter = item.fset and _guarded(item.fset)
            setattr(target, name, property(_guarded(item.fget), setter, doc=item.__doc__))
    return target


def hides_frames(function: T) -> T:
    """Mark a method that hides frames by itself.

    A method that hands out an item must do so in its last step: an interrupt may arrive after any
    inner call returns, and the item would be lost.
    """
    vars(function)["_hides_frames"] = True
    return function


def _guarded(function: Callable[..., Any]) -> Any:
    # `*args` would slow down the most frequent calls: properties, methods, `x[key]`.
    parameters = _positional(function)
    is_method = function.__code__.co_varnames[:1] == ("self",)
    if parameters == 1 and is_method:
        guarded = _with_one(function)
    elif parameters == 2 and is_method and function.__name__.startswith("__"):
        guarded = _with_two(function)
    else:
        guarded = _with_any(function)
    return functools.update_wrapper(guarded, function)


def _with_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: Any, /) -> Any:
        try:
            return function(self)
        except BaseException as error:
            hide_frames(error)
            raise

    return guarded


def _with_two(function: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: Any, item: Any, /) -> Any:
        try:
            return function(self, item)
        except BaseException as error:
            hide_frames(error)
            raise

    return guarded


def _with_any(function: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    return guarded


_VARIADIC = 0x04 | 0x08  # CPython's flags for `*args` and `**kwargs`


def _positional(function: Callable[..., Any]) -> int | None:
    """The number of parameters, if all are required and positional."""
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & _VARIADIC or function.__defaults__:
        return None
    count: int = code.co_argcount
    return count


def _outside(entry: TracebackType | None) -> TracebackType | None:
    """The entries of a traceback outside of this package."""
    entries = list(_entries(entry))
    kept = [each for each in entries if not is_inside(each.tb_frame.f_code.co_filename)]
    following: TracebackType | None = None
    for each in reversed(kept):
        each.tb_next = following
        following = each
    if sys.version_info < (3, 11) and entries and entries[0] not in kept:
        # Before 3.11, `raise` restores the first entry whatever `__traceback__` is.
        entries[0].tb_next = following
    return following


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and the causes printed with it."""
    found: list[BaseException] = []
    while error is not None and not any(error is each for each in found):
        found.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found
