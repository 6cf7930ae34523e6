"""The threads that read, apart from those that compute: a slow disk must not hold those up."""

from __future__ import annotations

import os
import threading

from penstock import _core

IO_THREADS = 2


def io_pool() -> _core.Pool:
    """The threads that read, of which a process has one set for all readers."""
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = _core.Pool(IO_THREADS)
    return _pool


def after_fork() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


_pool: _core.Pool | None = None
_lock = threading.Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
