"""Tracebacks as users want them: their own lines, without those of this package.

Whatever users call ends in `except BaseException as error: hide_frames(error)` and a bare `raise`,
which adds no entry for the function that it stands in. So the traceback ends at the user's line.
A `try` costs nothing while nothing is raised: operators and arithmetic have their own, and `public`
gives one to everything else.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, TracebackType
from typing import Any, TypeVar

from penstock._operators.call_sites import is_inside

T = TypeVar("T")

_UNCHANGED = ("__init_subclass__", "__class_getitem__", "__del__")


def hide_frames(error: BaseException) -> None:
    """Leave this package out of an error's traceback, and of those of the errors behind it.

    With PENSTOCK_DEBUG=1 in the environment, everything stays.
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

    What hands something over must do so with its last step: after the call of a function within
    another, an interrupt may come, and nobody would get what was handed over.
    """
    vars(function)["_hides_frames"] = True
    return function


def _guarded(function: Callable[..., Any]) -> Any:
    # Packing arguments would slow down what is called most: properties, methods, `x[key]`.
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


_VARIADIC = 0x04 | 0x08  # CPython's flags of code with `*args` and `**kwargs`


def _positional(function: Callable[..., Any]) -> int | None:
    """How many arguments a function takes, if all are required and may be given by position."""
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & _VARIADIC or function.__defaults__:
        return None
    count: int = code.co_argcount
    return count


def _outside(entry: TracebackType | None) -> TracebackType | None:
    """The entries of a traceback that are not of this package."""
    entries = list(_entries(entry))
    kept = [each for each in entries if not is_inside(each.tb_frame.f_code.co_filename)]
    following: TracebackType | None = None
    for each in reversed(kept):
        each.tb_next = following
        following = each
    if sys.version_info < (3, 11) and entries and entries[0] not in kept:
        # There, `raise` goes back to the first entry whatever the error says.
        entries[0].tb_next = following
    return following


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and those that would be printed before it."""
    found: list[BaseException] = []
    while error is not None and not any(error is each for each in found):
        found.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found
