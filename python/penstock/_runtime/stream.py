"""Streams.

Operators run in the host's thread pools, in an order that gives the same results on any stream.
Streams of an accelerator copy results to it. Those of an emulated gpu are tags that can be
synchronized.
"""

from __future__ import annotations

import itertools
import operator
import threading
from typing import Any, ClassVar, SupportsIndex

from penstock._errors.tracebacks import public
from penstock._runtime.device import (
    Device,
    accelerator,
    check_device_id,
    current_ordinal,
    is_refused,
)
from penstock._runtime.threads import drain_all

__all__ = [
    *("Stream", "stream", "get_current_stream", "set_current_stream"),
    *("get_default_stream", "set_default_stream"),
]

# The handles 0, 1 and 2 have a special meaning in CUDA.
_handles = itertools.count(0x1000)


class _CreateNew:
    def __repr__(self) -> str:
        return "create_new"


@public
class Stream:
    """A stream of a device; `stream()` creates or wraps one.

    Values on a gpu are copied to an accelerator on the calling thread's current stream, and work
    that is submitted to the framework's stream afterwards waits for that. By default each thread
    has a stream of its own, so that copies run beside the computing.

    Args:
        stream: A stream to wrap: a Stream, a `torch.cuda.Stream`, an object with
            `__cuda_stream__` or a raw handle. By default a new stream is created.
        device_id: The stream's device; by default the current one.

    Example:
        >>> stream = ndd.Stream(device_id=1)
        >>> stream.device_id
        1
        >>> stream.synchronize()
    """

    __slots__ = ("_device_id", "_handle", "_native", "_owner")

    create_new: ClassVar[_CreateNew] = _CreateNew()

    def __init__(self, *, stream: Any = create_new, device_id: SupportsIndex | None = None) -> None:
        if stream is None:
            raise ValueError("Stream: `stream` is None. Omit it to create a new stream.")
        is_new = isinstance(stream, _CreateNew)
        handle, found_on = (next(_handles), None) if is_new else _inspect(stream)
        if device_id is None:
            device_id = found_on
        elif found_on is not None and check_device_id(device_id) != found_on:
            raise ValueError(
                f"Stream: the stream is on gpu:{found_on}, but device_id={device_id} was given."
            )
        # Checks the device, which may warn or raise.
        self._device_id = Device("gpu", device_id)._code
        self._handle = handle
        self._owner = stream  # keeps a wrapped stream alive
        # The framework's stream, where there are any.
        self._native: Any = None
        found = accelerator()
        if found is not None and not is_new:
            self._native = found.wrap_stream(stream, handle, self._device_id)
        elif found is not None:
            self._native = found.new_stream(self._device_id)
            if self._native is not None:
                self._handle, _ = _inspect(self._native)

    @property
    def handle(self) -> int:
        """The raw handle; of a stream created here for an emulated gpu, it is just a number."""
        return self._handle

    @property
    def device_id(self) -> int:
        """The id of the stream's device."""
        return self._device_id

    def synchronize(self) -> None:
        """Wait for all work submitted so far."""
        drain_all()
        if self._native is not None:
            self._native.synchronize()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Stream):
            return self._handle == other._handle and self._device_id == other._device_id
        try:
            handle, device_id = _inspect(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._handle == handle and device_id in (None, self._device_id)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Stream(handle={self._handle:#x}, device_id={self._device_id})"


@public
def stream(
    stream: Any = Stream.create_new, *, device_id: SupportsIndex | None = None
) -> Stream | None:
    """Create a stream, or wrap one of another library.

    Args:
        stream: A Stream, a `torch.cuda.Stream`, an object with `__cuda_stream__` or a raw
            handle. By default a new stream is created. None gives None.
        device_id: The stream's device; by default the current one.

    Example:
        >>> ndd.stream(0x5000, device_id=0)
        Stream(handle=0x5000, device_id=0)
    """
    if stream is None:
        return None
    if isinstance(stream, Stream) and device_id in (None, stream.device_id):
        return stream
    return Stream(stream=stream, device_id=device_id)


def get_current_stream() -> Stream | None:
    """The calling thread's stream on the current gpu.

    None with `PENSTOCK_GPU=error`, unless a stream was set.

    Example:
        >>> ndd.get_current_stream().synchronize()
    """
    device_id = current_ordinal()
    chosen = chosen_stream(device_id)
    return chosen if chosen is not None or is_refused() else thread_stream(device_id)


@public
def set_current_stream(cuda_stream: Any, /) -> None:
    """Set the calling thread's stream on the current gpu; None resets it.

    This does not wait for work submitted before.

    Example:
        >>> stream = ndd.stream(device_id=0)
        >>> ndd.set_current_stream(stream)
        >>> ndd.get_current_stream() == stream
        True
        >>> ndd.set_current_stream(None)
    """
    ordinal = current_ordinal()
    if cuda_stream is None:
        _local.chosen.pop(ordinal, None)
        return
    wrapped = _wrap(cuda_stream, None)
    if wrapped.device_id != ordinal:
        raise ValueError(
            f"set_current_stream: the stream is on gpu:{wrapped.device_id}, but the current gpu "
            f'is gpu:{ordinal}. Enter `with Device("gpu", {wrapped.device_id}):` first.'
        )
    _local.chosen[ordinal] = wrapped


@public
def get_default_stream(device_id: SupportsIndex | None = None) -> Stream | None:
    """The stream set with `set_default_stream` for a device (by default the current one)."""
    return _defaults.get(current_ordinal() if device_id is None else check_device_id(device_id))


@public
def set_default_stream(cuda_stream: Any, /, device_id: SupportsIndex | None = None) -> None:
    """Set a device's stream for all threads that have not set their own; None resets it."""
    if cuda_stream is None:
        ordinal = current_ordinal() if device_id is None else check_device_id(device_id)
        _defaults.pop(ordinal, None)
    else:
        wrapped = _wrap(cuda_stream, device_id)
        _defaults[wrapped.device_id] = wrapped


def thread_stream(device_id: int) -> Stream:
    """The calling thread's stream on a device: as set, the device's default, or its own."""
    found = chosen_stream(device_id) or _local.own.get(device_id)
    if found is None:
        found = _local.own[device_id] = Stream(device_id=device_id)
    return found


def chosen_stream(ordinal: int) -> Stream | None:
    """The stream that was set for a device, by the calling thread or for all."""
    return _local.chosen.get(ordinal) or _defaults.get(ordinal)


def _wrap(obj: Any, device_id: SupportsIndex | None) -> Stream:
    wrapped = stream(obj, device_id=device_id)
    assert wrapped is not None
    return wrapped


def _inspect(obj: Any) -> tuple[int, int | None]:
    """(handle, device id if known) of a stream of any library."""
    if isinstance(obj, Stream):
        return obj.handle, obj.device_id
    if isinstance(obj, SupportsIndex) and not isinstance(obj, bool):
        handle = operator.index(obj)
    elif hasattr(obj, "__cuda_stream__"):
        handle = int(obj.__cuda_stream__()[1])
    elif isinstance(getattr(obj, "cuda_stream", None), int):  # older versions of torch
        handle = obj.cuda_stream
    elif isinstance(getattr(obj, "sycl_queue", None), int):  # torch.xpu
        handle = obj.sycl_queue
    else:
        raise TypeError(
            "Expected a stream: a Stream, a torch.cuda.Stream, an object with "
            f"`__cuda_stream__` or a raw handle; got {obj!r}."
        )
    if handle < 0:
        raise ValueError(f"A stream's handle can't be negative, got {handle}.")
    # device_index in torch, device_id in CuPy (negative: unknown).
    index = getattr(obj, "device_index", getattr(obj, "device_id", None))
    return handle, index if isinstance(index, int) and index >= 0 else None


class _Local(threading.local):
    def __init__(self) -> None:
        self.chosen: dict[int, Stream] = {}
        self.own: dict[int, Stream] = {}


_local = _Local()
_defaults: dict[int, Stream] = {}
