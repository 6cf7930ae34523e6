"""A lock that is replaced in a forked child.

A thread of the parent may hold it at the time of the fork; that thread doesn't exist in the child,
so nothing would release it there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class ForkSafeLock:
    """A reentrant lock per process.

    Args:
        in_child: Called once in a forked child.
    """

    def __init__(self, in_child: Callable[[], None] = lambda: None) -> None:
        self._in_child = in_child
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.is_forked = False
        """Whether it was created in a parent process."""

    def lock(self) -> threading.RLock:
        """The lock of this process."""
        if self._process != os.getpid():
            with _renewing:
                if self._process != os.getpid():
                    self._lock = threading.RLock()
                    self._in_child()
                    self.is_forked = True
                    self._process = os.getpid()
        return self._lock


def after_fork() -> None:
    """In a forked child: this lock may have been held, too."""
    global _renewing
    _renewing = threading.Lock()


_renewing = threading.Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
