"""EvalContext: the device, worker threads and stream of operator calls, and deferred work."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

from penstock._errors.tracebacks import public
from penstock._runtime.device import Device, check_device_id, current_ordinal, thread
from penstock._runtime.stream import Stream, chosen_stream, stream, thread_stream
from penstock._runtime.threads import ThreadPool, default_pool

if TYPE_CHECKING:
    from types import TracebackType

    from penstock import _core
    from penstock._state.checkpoint import Checkpoint

__all__ = ["EvalContext"]

_FIRST_PURGE = 64


class Deferred(Protocol):
    """A value that is computed when it is awaited."""

    def wait(self) -> object: ...


class EvalContext:
    """The context of operator calls: a device, a pool of worker threads and a stream.

    As a context manager, it becomes the calling thread's current context. It can be entered
    again in the same thread, but can't be active in two threads at once.

    Args:
        num_threads: Gives the context its own pool with this many threads.
        device_id: The device; by default the calling thread's current one.
        cuda_stream: The stream; by default the calling thread's stream on that device.
        thread_pool: A pool to use instead of `num_threads`. With neither, the context uses the
            process-wide default pool.
        run_ahead: For how many items loops over readers run ahead in this context, as for
            `set_run_ahead`; 0 turns that off.

    Example:
        >>> with ndd.EvalContext(num_threads=2) as context:
        ...     doubled = ndd.batch([1, 2, 3]) * 2
        >>> context.num_threads, doubled.torch().tolist()
        (2, [2, 4, 6])
    """

    __slots__ = (
        "__weakref__",
        "_checkpoint",
        "_cuda_stream",
        "_depth",
        "_device",
        "_is_default",
        "_lock",
        "_pending",
        "_purge_at",
        "_run_ahead",
        "_thread_pool",
    )

    @public
    def __init__(
        self,
        *,
        num_threads: SupportsIndex | None = None,
        device_id: SupportsIndex | None = None,
        cuda_stream: Any = None,
        thread_pool: ThreadPool | None = None,
        run_ahead: SupportsIndex | None = None,
    ) -> None:
        if num_threads is not None and thread_pool is not None:
            raise ValueError(
                "EvalContext: `thread_pool` and `num_threads` can't be combined; the pool already "
                "has a number of threads."
            )
        if thread_pool is not None and not isinstance(thread_pool, ThreadPool):
            raise TypeError(
                f"EvalContext: `thread_pool` must be a ThreadPool, got {thread_pool!r}."
            )
        self._run_ahead = None if run_ahead is None else _checked_run_ahead(run_ahead)
        wrapped = None if cuda_stream is None else stream(cuda_stream, device_id=device_id)
        self._device = _choose_device(device_id, wrapped, thread_pool)
        if num_threads is not None:
            thread_pool = ThreadPool(num_threads, device_id=self.device_id)
        self._thread_pool = thread_pool
        self._checkpoint: Checkpoint | None = None
        if wrapped is None and self._device is not None:
            wrapped = thread_stream(self._device._code)
        self._cuda_stream = wrapped
        self._is_default = False
        # Held by the thread that has entered the context; reentrant.
        self._lock = threading.RLock()
        self._depth = 0
        self._pending: list[weakref.ref[Deferred]] = []
        self._purge_at = _FIRST_PURGE

    @staticmethod
    def current() -> EvalContext:
        """The context of the calling thread's innermost `with` block, or its default one."""
        context = thread.context
        if context is None:
            context = thread.context = thread.chosen.context or EvalContext.default()
        return context

    @staticmethod
    def default() -> EvalContext:
        """The calling thread's default context for its current device."""
        code = Device.current()._code
        found = _local.defaults.get(code)
        if found is None:
            found = _local.defaults[code] = EvalContext()
            # Its stream is looked up each time, since it can be set later.
            found._cuda_stream, found._is_default = None, True
        return found

    @property
    def num_threads(self) -> int:
        """The number of worker threads of the context's pool."""
        return self.thread_pool.num_threads

    @property
    def device_id(self) -> int | None:
        """The id of the context's device; None for the host."""
        return None if self._device is None else self._device.device_id

    @property
    def cuda_stream(self) -> Stream | None:
        """The context's stream; None for the host.

        For a default context, it is the stream that was set with `set_current_stream`.
        """
        if self._cuda_stream is not None:
            return self._cuda_stream
        if self._device is not None:
            return thread_stream(self._device._code)
        return chosen_stream(current_ordinal()) if self._is_default else None

    @property
    def thread_pool(self) -> ThreadPool:
        """The context's own pool, or the process-wide default one."""
        pool = self._thread_pool
        return pool if pool is not None else default_pool()

    @property
    def checkpoint(self) -> Checkpoint:
        """The context's checkpoint; empty until objects are registered."""
        checkpoint = self._checkpoint
        if checkpoint is None:
            from penstock._state.checkpoint import Checkpoint

            with _checkpoint_lock:
                checkpoint = self._checkpoint = (
                    Checkpoint() if self._checkpoint is None else self._checkpoint
                )
        return checkpoint

    def evaluate_all(self) -> None:
        """Compute all values of deferred mode that are still in use.

        Errors are raised when the values are read.
        """
        pending, self._pending = self._pending, []
        self._purge_at = _FIRST_PURGE
        for reference in pending:
            value = reference()
            if value is not None:
                try:
                    value.wait()
                except Exception:
                    continue

    def cache_results(self, invocation: object, results: object) -> None:
        """For compatibility with DALI: does nothing."""

    def cached_results(self, invocation: object) -> None:
        """For compatibility with DALI: always None."""

    def __enter__(self) -> EvalContext:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                "An EvalContext can't be active in two threads at once. Create one for each thread."
            )
        before, depth = thread.chosen, self._depth
        try:
            self._depth += 1
            thread.chosen = thread.choice(self, self._device, self)
        except BaseException:  # Ctrl-C: `__exit__` is not called if `__enter__` fails
            thread.context, thread.chosen, self._depth = None, before, depth
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            # After an error, Ctrl-C above all, don't wait for work that may not be needed.
            if self._depth == 1 and exc_type is None:
                self.evaluate_all()
        finally:
            thread.chosen = thread.choice_around(self)
            self._depth -= 1
            self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        # What it has in the making, and who is inside, are this process's own.
        made = functools.partial(
            EvalContext,
            device_id=self.device_id,
            thread_pool=self._thread_pool,
            run_ahead=self._run_ahead,
        )
        return made, ()

    def __repr__(self) -> str:
        return f"EvalContext(num_threads={self.num_threads}, device_id={self.device_id})"

    def _defer(self, value: Deferred) -> None:
        """Remember a value of deferred mode while it is in use."""
        pending = self._pending
        pending.append(weakref.ref(value))
        # A context that is never exited, like the default one, must not accumulate dead entries.
        if len(pending) >= self._purge_at:
            self._pending = [reference for reference in pending if reference() is not None]
            self._purge_at = max(_FIRST_PURGE, 2 * len(self._pending))

    def _native_pool(self) -> _core.Pool:
        pool = self._thread_pool
        return (pool if pool is not None else default_pool()).native()


def _checked_run_ahead(number: SupportsIndex) -> int:
    from penstock._runtime.run_ahead import checked

    return checked(number, "EvalContext: `run_ahead`")


def _choose_device(
    device_id: SupportsIndex | None, stream: Stream | None, pool: ThreadPool | None
) -> Device | None:
    """The device of the id, of the stream or of the pool; otherwise the current one."""
    if device_id is not None:
        device = Device("gpu", check_device_id(device_id))
    elif stream is not None:
        device = Device("gpu", stream.device_id)
    elif pool is not None and pool.device_id is not None:
        device = Device("gpu", pool.device_id)
    else:
        device = Device.current()
    if pool is not None and pool.device_id not in (None, device.device_id):
        raise ValueError(
            f"EvalContext: the thread pool is for gpu:{pool.device_id}, but the context is for "
            f"{device}."
        )
    return None if device is Device.CPU else device


class _Local(threading.local):
    def __init__(self) -> None:
        self.defaults: dict[int, EvalContext] = {}


_local = _Local()
_checkpoint_lock = threading.Lock()  # any thread may ask for a context's checkpoint
