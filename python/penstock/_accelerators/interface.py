"""What penstock needs of an accelerator."""

from __future__ import annotations

from typing import Any, Protocol


class Event(Protocol):
    """A point in a stream's work."""

    def query(self) -> bool:
        """Whether the work before it is done."""

    def synchronize(self) -> None:
        """Wait until it is."""


class Accelerator(Protocol):
    """The devices of one type, as a framework offers them.

    Its tensors and streams are the framework's own objects, both called `Any` here; `ordinal` is
    the id of a device. Host memory comes as a PyTorch tensor on the CPU.
    """

    type: str
    """The framework's name for such devices, such as "cuda"."""
    count: int
    """The number of devices."""

    def current(self) -> int:
        """The framework's current device in the calling thread."""

    def name(self, ordinal: int) -> str:
        """The name of the hardware."""

    def new_stream(self, ordinal: int) -> Any | None:
        """A new stream; None if such devices have no streams."""

    def wrap_stream(self, stream: Any, handle: int, ordinal: int) -> Any | None:
        """The framework's stream for a handle that was found in `stream`, an object of any library.

        None if such devices have no streams.
        """

    def current_stream(self, ordinal: int) -> Any:
        """The stream that the calling thread's work on a device is submitted to."""

    def record(self, stream: Any) -> Event:
        """An event after all work that was submitted to a stream."""

    def wait(self, stream: Any, event: Event) -> None:
        """Let work that is submitted to a stream later wait for an event. Returns at once."""

    def pinned_like(self, source: Any) -> Any | None:
        """Uninitialized page-locked host memory for the elements of a tensor on the host.

        None if copies from such memory can't be asynchronous; RuntimeError if there is none left.
        """

    def copy(self, source: Any, ordinal: int, stream: Any | None) -> Any:
        """A copy of a tensor on the host in new memory of a device.

        It is made on the stream. The caller keeps the source, which must be page-locked, until
        that is done. Without a stream, the source has been read when this returns, and the copy is
        made on the current stream.
        """

    def keep_for(self, tensor: Any, stream: Any) -> None:
        """Don't reuse the memory of a tensor for another one while a stream's work may use it."""

    def to_host(self, data: Any, ordinal: int) -> Any:
        """A copy on the host of data on a device: DLPack or `__cuda_array_interface__`."""

    def dlpack_device(self, ordinal: int) -> tuple[int, int]:
        """The device, as DLPack has it."""

    def dlpack(self, tensor: Any, stream: Any, max_version: tuple[int, int] | None) -> Any:
        """A DLPack capsule of a tensor, which work on the consumer's stream may use."""

    def cuda_array_interface(self, tensor: Any) -> dict[str, Any]:
        """`__cuda_array_interface__` of a tensor; only for type "cuda"."""
