"""Copies of host memory on an accelerator, made while the caller goes on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from penstock._operators.call_sites import warn
from penstock._runtime.context import EvalContext
from penstock._runtime.stream import thread_stream

if TYPE_CHECKING:
    from penstock._accelerators.interface import Accelerator, Event


class InFlight:
    """Host memory that must not be reused yet, since a device may still have to read it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # what is let go of may run any code
        self._held: list[tuple[Event, Any]] = []

    def hold(self, event: Event, memory: Any) -> None:
        """Keep memory until the event; let go of memory whose event has come."""
        with self._lock:
            self._held = [held for held in self._held if not held[0].query()]
            self._held.append((event, memory))


in_flight = InFlight()


def deliver(accelerator: Accelerator, source: Any, ordinal: int) -> Any:
    """A copy of a PyTorch tensor on a device, for work on the framework's current stream.

    It is made on penstock's current stream, beside the work that the framework has submitted
    before, and from page-locked memory, so that this returns before it has begun.
    """
    pinned = _pinned_like(accelerator, source)
    if pinned is None:
        return accelerator.copy(source, ordinal, None)
    pinned.copy_(source)
    stream = _stream(ordinal)
    made = accelerator.copy(pinned, ordinal, stream)
    copied = accelerator.record(stream)
    in_flight.hold(copied, pinned)
    consumer = accelerator.current_stream(ordinal)
    accelerator.wait(consumer, copied)
    accelerator.keep_for(made, consumer)
    return made


def _stream(ordinal: int) -> Any:
    context = EvalContext.current()
    chosen = context.cuda_stream if context.device_id == ordinal else None
    return (chosen or thread_stream(ordinal))._native


def _pinned_like(accelerator: Accelerator, source: Any) -> Any | None:
    try:
        return accelerator.pinned_like(source)
    except RuntimeError as error:
        if _first_failure.acquire(blocking=False):
            warn(
                f"Page-locked memory could not be allocated ({error}), so data is copied to the "
                "gpu synchronously, which takes longer."
            )
        return None


# Acquired on first use and never released: an atomic flag.
_first_failure = threading.Lock()
