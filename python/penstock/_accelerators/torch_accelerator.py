"""Accelerators of PyTorch: CUDA, ROCm, XPU, MPS and whatever else has a device module."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from penstock._accelerators.interface import Event


class TorchAccelerator:
    """The devices of a type, such as "cuda". See `Accelerator` for its methods.

    Types without streams (MPS), and versions of PyTorch that can't wrap streams of others, get
    synchronous copies.
    """

    def __init__(self, type: str, count: int) -> None:
        self.type = type
        self.count = count
        self._module: Any = torch.get_device_module(type)
        self._has_streams = hasattr(self._module, "get_stream_from_external")

    def current(self) -> int:
        # All types have this in common.
        return torch.empty(0, device=self.type).device.index or 0

    def name(self, ordinal: int) -> str:
        if hasattr(self._module, "get_device_name"):
            return str(self._module.get_device_name(ordinal))
        return self.type

    def new_stream(self, ordinal: int) -> Any | None:
        return self._module.Stream(self._device(ordinal)) if self._has_streams else None

    def wrap_stream(self, stream: Any, handle: int, ordinal: int) -> Any | None:
        if not self._has_streams:
            return None
        if isinstance(stream, self._module.Stream):
            return stream
        if handle in (0, 1):  # CUDA's default stream has two handles
            return self._module.default_stream(ordinal)
        return self._module.get_stream_from_external(handle, self._device(ordinal))

    def current_stream(self, ordinal: int) -> Any:
        return self._module.current_stream(self._device(ordinal))

    def record(self, stream: Any) -> Event:
        event: Event = self._module.Event()
        event.record(stream)  # type: ignore[attr-defined]
        return event

    def wait(self, stream: Any, event: Event) -> None:
        stream.wait_event(event)

    def pinned_like(self, source: Any) -> Any | None:
        if not self._has_streams:
            return None
        return torch.empty(source.shape, dtype=source.dtype, pin_memory=True)

    def copy(self, source: Any, ordinal: int, stream: Any | None) -> Any:
        device = self._device(ordinal)
        if stream is None:
            # On the CPU, which tests use, it would otherwise be the source itself.
            return source.to(device, copy=True)
        with self._module.stream(stream):
            return source.to(device, non_blocking=True, copy=True)

    def keep_for(self, tensor: Any, stream: Any) -> None:
        tensor.record_stream(stream)

    def to_host(self, data: Any, ordinal: int) -> Any:
        with self._selected(ordinal):
            if hasattr(data, "__dlpack__"):
                return torch.from_dlpack(data).cpu()
            # PyTorch doesn't wait for the stream that the interface names.
            self._module.synchronize(ordinal)
            return torch.as_tensor(data, device=self._device(ordinal)).cpu()

    def dlpack_device(self, ordinal: int) -> tuple[int, int]:
        kind, index = torch.empty(0, device=self._device(ordinal)).__dlpack_device__()
        return int(kind), index

    def dlpack(self, tensor: Any, stream: Any, max_version: tuple[int, int] | None) -> Any:
        with self._selected(tensor.device.index):
            return tensor.__dlpack__(stream=stream, max_version=max_version)

    def cuda_array_interface(self, tensor: Any) -> dict[str, Any]:
        # Version 3 names the stream that the consumer has to wait for.
        stream = self.current_stream(tensor.device.index).cuda_stream or 1
        return {**tensor.__cuda_array_interface__, "version": 3, "stream": stream}

    def _device(self, ordinal: int) -> torch.device:
        return torch.device(self.type, ordinal)

    def _selected(self, ordinal: int) -> AbstractContextManager[Any]:
        """Makes a device the current one, which PyTorch requires for DLPack on CUDA."""
        if hasattr(self._module, "device"):
            selected: AbstractContextManager[Any] = self._module.device(ordinal)
            return selected
        return nullcontext()
