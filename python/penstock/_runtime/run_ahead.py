"""How far loops run ahead of the program."""

from __future__ import annotations

import operator
import os
from typing import SupportsIndex

from penstock._errors.tracebacks import public
from penstock._runtime.context import EvalContext

__all__ = ["get_run_ahead", "set_run_ahead"]

_ENVIRONMENT = "PENSTOCK_RUN_AHEAD"
_DEFAULT = 2


@public
def set_run_ahead(n: SupportsIndex | None) -> None:
    """Set for how many items loops over readers run ahead; 0 turns it off, None restores 2.

    It applies to all threads, except inside of an `EvalContext` with a `run_ahead` of its own.

    Example:
        >>> ndd.set_run_ahead(0)
        >>> ndd.get_run_ahead()
        0
        >>> ndd.set_run_ahead(None)
    """
    global _chosen
    _chosen = None if n is None else checked(n, "set_run_ahead: the number of items")


def get_run_ahead() -> int:
    """For how many items loops over readers run ahead.

    It is the number of the current `EvalContext`, if that has one; or the number passed to
    `set_run_ahead`, or the environment variable `PENSTOCK_RUN_AHEAD`, or 2.
    """
    return depth(EvalContext.current())


def depth(context: EvalContext) -> int:
    """For how many items loops run ahead whose items are taken in a context."""
    number = context._run_ahead
    if number is not None:
        return number
    if _chosen is not None:
        return _chosen
    return _from_environment()


def checked(n: SupportsIndex, what: str) -> int:
    """A number of items."""
    try:
        if isinstance(n, bool):
            raise TypeError
        number = operator.index(n)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {n!r}.") from None
    if number < 0:
        raise ValueError(f"{what} can't be negative, got {number}; 0 turns running ahead off.")
    return number


def _from_environment() -> int:
    # Read once.
    global _environment
    if _environment is None:
        text = os.environ.get(_ENVIRONMENT, "").strip()
        try:
            _environment = checked(int(text), _ENVIRONMENT) if text else _DEFAULT
        except ValueError:
            raise ValueError(
                f"The environment variable {_ENVIRONMENT} must be the number of items for which "
                f"loops run ahead, 0 or more, got {text!r}."
            ) from None
    return _environment


_chosen: int | None = None
_environment: int | None = None
