"""The lock of a reader or a source, which a forked child has anew.

A thread of the parent may have held it in the moment of the fork, and the child has no such thread
that would let go of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Guard:
    """A lock for each process that comes by.

    Args:
        in_child: What else is to be done in a forked child.
    """

    def __init__(self, in_child: Callable[[], None] = lambda: None) -> None:
        self._in_child = in_child
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.is_forked = False
        """Whether it was made in another process than this one."""

    def lock(self) -> threading.RLock:
        """The lock of this process; its thread may take it more than once."""
        if self._process != os.getpid():
            with _renewing:
                if self._process != os.getpid():
                    self._lock = threading.RLock()
                    self._in_child()
                    self.is_forked = True
                    self._process = os.getpid()
        return self._lock


def after_fork() -> None:
    """In a forked child: this lock, too, may have been held."""
    global _renewing
    _renewing = threading.Lock()


_renewing = threading.Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
