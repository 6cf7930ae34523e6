"""For programs written for DALI's capture mode.

DALI can capture a training loop and replay it as a pipeline, if it can prove that each iteration
makes the same calls. Here any loop over a reader runs ahead by itself, so nothing has to be proven:
`next_epoch(capture=True)` is the same as without it, and `ExternalSource.captured` is a plain loop.
Arguments that change, conditions, `break`, checkpoints and other batch sizes are no errors.
"""

from __future__ import annotations

from typing import TypeVar

from penstock._public import attach as _attach

__all__ = ["invariant"]

_T = TypeVar("_T")


def invariant(value: _T) -> _T:
    """Mark a value that stays the same in each iteration. Without effect here.

    DALI returns a proxy, which behaves like the value in most ways, and uses the first iteration's
    value in all others. Here it is the value itself, so identity, type, pickling and buffers are
    the same as well, and a value that does change is used as it is.

    Args:
        value: The value.

    Returns:
        The value itself.

    Example:
        >>> ndd.capture.invariant(3)
        3
    """
    return value


_attach(__name__)
