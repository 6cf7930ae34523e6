"""When operators run: the evaluation mode of the calling thread."""

from __future__ import annotations

import threading
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from penstock import _core

__all__ = ["EvalMode"]


class EvalMode(Enum):
    """When an operator call does its work; a greater mode is a more synchronous one.

    Use a mode as a context manager to make it the calling thread's:

        with ndd.EvalMode.sync_cpu:
            images = ndd.decoders.image(jpegs)  # done, or has raised, when the call returns

    Example:
        >>> with ndd.EvalMode.deferred:
        ...     later = ndd.tensor([1, 2]) + 1  # nothing has run yet
        >>> later.torch().tolist()  # now it does
        [2, 3]
    """

    deferred = 1
    """Nothing runs until somebody reads a result."""
    eager = 2
    """The work is submitted at once and runs in the background."""
    sync_cpu = 3
    """The call returns when the work is done; errors raise at the call."""
    sync_full = 4
    """As `sync_cpu`, and waits for the device as well."""

    default = eager
    """The mode of threads that have chosen none."""

    @staticmethod
    def current() -> EvalMode:
        """The calling thread's mode: that of its innermost `with` block, else `default`."""
        return _local.chosen.mode

    def __enter__(self) -> EvalMode:
        # One assignment, before or after which Ctrl-C may come, but not within.
        _local.chosen = _Chosen(self, _local.chosen)
        return self

    if TYPE_CHECKING:  # it is native code, see below

        def __exit__(self, *exc_info: object) -> None:
            """Go back to the mode of the block around this one."""

    def __lt__(self, other: object) -> bool:
        return self._value_ < other._value_ if isinstance(other, EvalMode) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._value_ <= other._value_ if isinstance(other, EvalMode) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._value_ > other._value_ if isinstance(other, EvalMode) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._value_ >= other._value_ if isinstance(other, EvalMode) else NotImplemented


class _Chosen(NamedTuple):
    """The mode of a `with` block, and that of the block around it."""

    mode: EvalMode
    outer: _Chosen | None


_NOTHING_CHOSEN = _Chosen(EvalMode.eager, None)


class _Local(threading.local):
    chosen = _NOTHING_CHOSEN


_local = _Local()
EvalMode.__exit__ = _core.BlockExit(_local, "mode")  # type: ignore[method-assign, assignment]

# For the path of every call: before Python 3.12, looking anything up in an Enum class is slow.
current_mode = EvalMode.current
