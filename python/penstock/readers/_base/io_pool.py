"""The threads that read, apart from those that compute: a slow disk must not hold those up."""

from __future__ import annotations

import os
import threading

from penstock import _core

IO_THREADS = 2

REMOTE_THREADS = 64
"""A server answers after tens of milliseconds, whatever else it is asked meanwhile: so many
requests are under way at a time. `PENSTOCK_REMOTE_THREADS` is another number."""


def io_pool() -> _core.Pool:
    """The threads that read, of which a process has one set for all readers."""
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = _core.Pool(IO_THREADS)
    return _pool


def remote_pool() -> _core.Pool:
    """The threads that wait for servers. They start when there is something to wait for."""
    global _remote_pool
    if _remote_pool is None:
        with _lock:
            if _remote_pool is None:
                _remote_pool = _core.Pool(_remote_threads())
    return _remote_pool


def _remote_threads() -> int:
    given = os.environ.get("PENSTOCK_REMOTE_THREADS", "")
    if not given:
        return REMOTE_THREADS
    if not given.isdecimal() or not 1 <= int(given) <= 1024:
        raise ValueError(f"PENSTOCK_REMOTE_THREADS must be a number from 1 to 1024, got {given!r}.")
    return int(given)


def after_fork() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


_pool: _core.Pool | None = None
_remote_pool: _core.Pool | None = None
_lock = threading.Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
