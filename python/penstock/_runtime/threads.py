"""Thread pools, and the number of threads of the default one."""

from __future__ import annotations

import functools
import operator
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock._errors.tracebacks import public
from penstock._runtime.cpus import usable_cpus
from penstock._runtime.device import Device, check_device_id
from penstock._runtime.loader_workers import worker

if TYPE_CHECKING:
    from penstock import _core

__all__ = ["ThreadPool", "get_num_threads", "set_num_threads"]

_ENVIRONMENT = ("PENSTOCK_NUM_THREADS", "DALI_NUM_THREADS")
_OMP = "OMP_NUM_THREADS"
_LOCAL_WORLD = "LOCAL_WORLD_SIZE"
_MAX_PER_CPU = 100


class ThreadPool:
    """A pool of worker threads. The threads start with the first work.

    Args:
        num_threads: The number of threads; by default `get_num_threads()`.
        device_id: The device that the pool belongs to; None for the host, -1 for the calling
            thread's current device.

    Example:
        >>> pool = ndd.ThreadPool(2)
        >>> with ndd.EvalContext(thread_pool=pool):
        ...     print((ndd.batch([1, 2]) + 1).torch().tolist())
        [2, 3]
    """

    __slots__ = ("__weakref__", "_device_id", "_native", "_num_threads")

    @public
    def __init__(
        self, num_threads: SupportsIndex | None = None, *, device_id: SupportsIndex | None = -1
    ) -> None:
        if num_threads is None:
            self._num_threads = get_num_threads()
        else:
            self._num_threads = _check_count(num_threads, "ThreadPool: `num_threads`")
        if device_id == -1:
            self._device_id = Device.current().device_id
        else:
            self._device_id = None if device_id is None else check_device_id(device_id)
        self._native: _core.Pool | None = None

    @property
    def num_threads(self) -> int:
        """The number of worker threads."""
        return self._num_threads

    @property
    def device_id(self) -> int | None:
        """The device that the pool belongs to; None for the host."""
        return self._device_id

    def __reduce__(self) -> tuple[Any, ...]:
        # Threads don't travel.
        return functools.partial(ThreadPool, self._num_threads, device_id=self._device_id), ()

    def __repr__(self) -> str:
        return f"ThreadPool(num_threads={self._num_threads}, device_id={self._device_id})"

    def native(self) -> _core.Pool:
        """The native pool behind this one."""
        native = self._native
        return native if native is not None else self._start()

    def _start(self) -> _core.Pool:
        from penstock import _core

        with _lock:
            if self._native is None:
                self._native = _core.Pool(self._num_threads)
                _started.add(self)
            return self._native


@public
def set_num_threads(n: SupportsIndex | None) -> None:
    """Set the number of threads of the default pool; None restores the automatic choice.

    Call it once, early: it replaces a default pool of another size by a new one, while the old one
    finishes its work.

    Example:
        >>> ndd.set_num_threads(2)
        >>> ndd.get_num_threads()
        2
        >>> ndd.set_num_threads(None)
    """
    global _explicit_count, _default_pool, _automatic_count
    count = None if n is None else _check_count(n, "set_num_threads: the number of threads")
    with _lock:
        _explicit_count = count
        if count is None:
            _automatic_count = None
        if _default_pool is not None and _default_pool.num_threads != count:
            _default_pool = None


def get_num_threads() -> int:
    """The number of threads of the default pool.

    It is the number passed to `set_num_threads`, or the environment variable
    `PENSTOCK_NUM_THREADS` or `DALI_NUM_THREADS`, or the number of CPUs that this process may use:
    its affinity, limited by the container's CPU quota and by `OMP_NUM_THREADS`, which Ray sets to
    the CPUs of an actor. Processes that `torchrun` has started on a machine divide its CPUs between
    them (`LOCAL_WORLD_SIZE`), and so do the workers of a `torch.utils.data.DataLoader`.
    """
    global _automatic_count
    if (count := _explicit_count) is not None:
        return count
    if (count := _automatic_count) is None:
        # Determined once, so that later changes of the environment don't make it differ from the
        # size of the pool.
        _automatic_count = count = _count_from_environment() or _share_of_cpus()
    return count


def default_pool() -> ThreadPool:
    """The process-wide pool, for contexts without their own."""
    global _default_pool
    if (pool := _default_pool) is not None:
        return pool
    with _lock:  # also excludes `set_num_threads`, which compares the size
        if _default_pool is None:
            inherited = _inherited_pool
            if inherited is not None and inherited.num_threads == get_num_threads():
                _default_pool = inherited
            else:
                _default_pool = ThreadPool(device_id=None)
        return _default_pool


def drain_all() -> None:
    """Wait until no pool of this process has queued or running work."""
    with _lock:
        natives = [pool._native for pool in _started]
    for native in natives:
        if native is not None:
            native.drain()


def after_fork() -> None:
    """In a forked child: another thread of the parent may have held the lock.

    The number of threads is chosen again on first use: only then is it known whether the process is
    a worker of a DataLoader.
    """
    global _lock, _automatic_count, _default_pool, _inherited_pool
    _lock = threading.Lock()
    _automatic_count = None
    if _default_pool is not None:
        _default_pool, _inherited_pool = None, _default_pool


def _check_count(value: SupportsIndex, what: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {value!r}.") from None
    if count <= 0:
        raise ValueError(f"{what} must be positive, got {count}.")
    cpus = os.cpu_count() or 1
    if count > _MAX_PER_CPU * cpus:
        raise ValueError(
            f"{what} must not exceed {_MAX_PER_CPU} per CPU core, "
            f"that is {_MAX_PER_CPU * cpus} here; got {count}."
        )
    return count


def _share_of_cpus() -> int:
    _, workers = worker()
    cpus, given = usable_cpus(), _number(_OMP)
    # torchrun sets it to 1 by itself, for libraries that would take all CPUs in each process.
    is_torchruns = given == 1 and "TORCHELASTIC_RUN_ID" in os.environ
    if given is not None and not is_torchruns:
        cpus = min(cpus, given)
    else:
        cpus //= _number(_LOCAL_WORLD) or 1
    return max(1, cpus // max(1, workers))


def _number(name: str) -> int | None:
    """A variable that is not ours, if it is a positive number."""
    # OMP_NUM_THREADS may have a number for each level of nesting.
    text = os.environ.get(name, "").partition(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _count_from_environment() -> int | None:
    for name in _ENVIRONMENT:
        if text := os.environ.get(name, "").strip():
            try:
                number = int(text)
            except ValueError:
                raise ValueError(
                    f"The environment variable {name} must be a whole number of threads, "
                    f"got {text!r}."
                ) from None
            return _check_count(number, f"The environment variable {name}")
    return None


_lock = threading.Lock()
_explicit_count: int | None = None
_automatic_count: int | None = None
_default_pool: ThreadPool | None = None
_inherited_pool: ThreadPool | None = None
"""The default pool of the parent process, which a forked child uses if it is of the right size."""
_started: weakref.WeakSet[ThreadPool] = weakref.WeakSet()
