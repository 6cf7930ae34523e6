"""For programs written for DALI's capture mode.

DALI can capture a training loop and replay it as a pipeline. Here nothing is captured, because
`prefetch` does the same for any loop. The functions below let such programs run unchanged.
"""

from __future__ import annotations

from typing import TypeVar

from penstock._public import attach as _attach

__all__ = ["invariant"]

_T = TypeVar("_T")


def invariant(value: _T) -> _T:
    """Mark a value that stays the same in each iteration. Without effect here.

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
