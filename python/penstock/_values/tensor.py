"""Tensor: one sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._operators.submit import settle
from penstock._runtime.device import DeviceLike, accelerator
from penstock._values.arithmetic import Arithmetic
from penstock._values.array import use_for
from penstock._values.conversion import relabel, single
from penstock._values.dtype import BY_CODE, DType
from penstock._values.dtype import dtype as to_dtype
from penstock._values.indexing import subscript
from penstock._values.repr import tensor_text

if TYPE_CHECKING:
    import torch
    from jax import Array as JaxArray

    from penstock._accelerators.interface import Accelerator

__all__ = ["Tensor", "as_tensor", "tensor"]

_HOST = (1, 0)  # DLPack's name for host memory
_INTEGERS = (DType.Kind.signed, DType.Kind.unsigned)
_ON_DEVICE = "_on_device"  # the attribute with `__cuda_array_interface__`, and the copy it is of


@public
class Tensor(Arithmetic):
    """One sample: an array with a type, a device and possibly a layout.

    Returned by `tensor` and `as_tensor`, by operators and by batches. Its data may still be being
    computed; reading it waits.

    Indexing (`t[1:, ::2]`) and Python's operators (`t * 2 + 1`, `a < b`) return new tensors.
    `len(t)` is the size of the first dimension; a tensor with one element converts with `int`,
    `float` and `bool`, and can be an index if its type is an integer.

    NumPy and all libraries that support DLPack can read a tensor. Their arrays share its memory and
    are writable: earlier calls on the tensor have read it by then, and later calls, which see what
    was written, run synchronously.

    Args:
        data: Anything that `tensor` accepts.
        dtype: The type of the elements.
        device: The device of the tensor.
        layout: One letter per dimension, such as "HWC".
        copy: Whether to copy the data; by default memory is shared if possible.

    Example:
        >>> image = ndd.tensor([[1, 2, 3], [4, 5, 6]], layout="HW")
        >>> image.shape, image.layout, str(image.dtype)
        ((2, 3), 'HW', 'i32')
        >>> (image[:, 1:] * 10).torch().tolist()
        [[20, 30], [50, 60]]
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any,
        dtype: Any = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        copy: bool = False,
    ) -> None:
        made = _make(data, dtype, device, layout, False, 0, copy)
        self._value = made._value

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        settle(self._value)
        return self._value.shape(0)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return BY_CODE[self._value.dtype].bytes

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.size * self.itemsize

    @property
    def source_info(self) -> str | None:
        """The source of the sample, usually a file name; None if unknown."""
        settle(self._value)
        return self._value.source(0)

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.size != 1:
            raise ValueError(f"Tensor has {self.size} elements, expected 1.")
        return _view(self).reshape(()).item()

    def torch(self, copy: bool = False) -> torch.Tensor:
        """The data as a PyTorch tensor.

        It shares memory unless `copy` is true. Of a tensor on a gpu that is not emulated, each call
        makes a new copy on that device. This returns before it is done; work on PyTorch's current
        stream waits for it.
        """
        try:
            from torch.utils.dlpack import from_dlpack
        except ImportError:
            raise RuntimeError("Tensor.torch() requires PyTorch to be installed.") from None
        if self._value.device >= 0 and (target := accelerator()) is not None:
            from penstock._accelerators.delivery import deliver

            on_host = from_dlpack(self._capsule(versioned=False))
            return deliver(target, on_host, self._value.device)
        source = self.to_device(self.device, force_copy=True) if copy else self
        made: torch.Tensor = from_dlpack(source._capsule(versioned=False))
        return made

    def jax(self, sharding: Any = None) -> JaxArray:
        """The data as a JAX array.

        On the CPU it shares memory if JAX can, which never writes to it. As everywhere in JAX,
        64-bit types become 32-bit ones unless `jax_enable_x64` is set.

        Args:
            sharding: A `Sharding` or a device of JAX. By default the array of a tensor on a gpu is
                on the gpu of JAX with that id, if there is one, else on JAX's default device.
        """
        return put_in_jax(_view(self), sharding, "Tensor.jax", self._value.device)

    def __jax_array__(self) -> JaxArray:
        return self.jax()

    def __getitem__(self, key: Any) -> Tensor:
        return subscript(self, key)

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("A tensor without dimensions can't be iterated over.")
        return map(self.__getitem__, range(self.shape[0]))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"The truth value of a tensor of {self.size} elements is ambiguous. Use a "
                "reduction, or NumPy's any() and all()."
            )
        return bool(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("A tensor without dimensions has no length.")
        return self.shape[0]

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __index__(self) -> int:
        if self.dtype.kind not in _INTEGERS:
            raise TypeError(
                f"A tensor of {self.dtype} can't be an index; only tensors of integers can."
            )
        return int(self._number("index"))

    def _number(self, function: str) -> Any:
        if self.size != 1:
            raise TypeError(
                f"{function}: only a tensor with one element converts to a Python number, but "
                f"this one has {self.size}."
            )
        return self.item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self._value.device >= 0:
            raise messages.not_on_host("Conversion to a NumPy array")
        unchanged = dtype is None or np.dtype(dtype) == self.dtype._numpy
        # A read-only view need not wait for calls that read the tensor.
        array = _view(self, writable=unchanged and not copy)
        if copy:
            return array.astype(array.dtype if dtype is None else dtype, copy=True)
        if unchanged:
            return array
        if copy is False:
            raise ValueError(
                f"A tensor of {self.dtype} can't be converted to {np.dtype(dtype)} without a copy."
            )
        return array.astype(dtype)

    def __dlpack__(
        self,
        stream: Any = None,
        dl_device: tuple[Any, Any] | None = None,
        *,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        asked = None if dl_device is None else tuple(map(int, dl_device))
        target = self._accelerator() if asked != _HOST else None
        if target is not None:
            if asked not in (None, target.dlpack_device(self._value.device)):
                raise BufferError(f"The data is on {self.device}, not on {dl_device} (DLPack).")
            if copy is False:
                raise BufferError("The data is in host memory and has to be copied to the gpu.")
            return target.dlpack(self.torch(), stream, max_version)
        if asked not in (None, _HOST):
            raise BufferError(f"The data is in host memory, not on the DLPack device {dl_device}.")
        source = self.to_device(self.device, force_copy=True) if copy else self
        versioned = max_version is not None and max_version[0] >= 1
        return source._capsule(versioned=versioned, may_copy=copy is not False)

    def __dlpack_device__(self) -> tuple[int, int]:
        target = self._accelerator()
        return _HOST if target is None else target.dlpack_device(self._value.device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        target = self._accelerator()
        if target is None or target.type != "cuda":
            raise AttributeError("The data is not in the memory of a CUDA device.")
        # The memory must live as long as this tensor, which is what consumers keep. They wait for
        # the stream that was current when it was copied.
        if _ON_DEVICE not in self.__dict__:
            made = self.torch()
            self.__dict__[_ON_DEVICE] = made, target.cuda_array_interface(made)
        interface: dict[str, Any] = self.__dict__[_ON_DEVICE][1]
        return interface

    def _accelerator(self) -> Accelerator | None:
        """Where the data is handed over; None for the host, also as an emulated gpu."""
        return accelerator() if self._value.device >= 0 else None

    def _capsule(self, *, versioned: bool, may_copy: bool = True) -> Any:
        settle(self._value)
        try:
            return self._value.__dlpack__(versioned)
        except BufferError:
            # Read-only or strided memory, which this version of the protocol doesn't support.
            if not may_copy:
                raise
            copied = self.to_device(self.device, force_copy=True)
            settle(copied._value)
            return copied._value.__dlpack__(versioned)

    def __repr__(self) -> str:
        return tensor_text(self, _view(self), self.shape)


def _view(tensor: Tensor, writable: bool = False) -> Any:
    """The data as a NumPy array that shares its memory."""
    settle(tensor._value)
    return array_of(tensor._value.memory(0, writable), tensor.dtype)


def array_of(memory: Any, dtype: DType) -> Any:
    """A NumPy array that shares the memory of a sample."""
    kind = dtype._numpy
    if kind is None:
        raise TypeError(
            f"NumPy has no type for {dtype}. Install the package `ml_dtypes`, or use `cast` first."
        )
    return np.ndarray(memory.shape, kind, memory, memory.offset, memory.strides)


def put_in_jax(array: Any, sharding: Any, owner: str, ordinal: int = -1) -> JaxArray:
    """A NumPy array as a JAX array, on devices of JAX; by default on a gpu with this number."""
    try:
        import jax
    except ImportError:
        raise RuntimeError(f"{owner}() requires JAX to be installed.") from None
    if sharding is None and ordinal >= 0:
        sharding = _gpu_of_jax(jax, ordinal)
    made: JaxArray
    if not getattr(sharding, "is_fully_addressable", True):
        # Devices of several processes, of which each has a part of the data.
        made = jax.make_array_from_process_local_data(sharding, np.asarray(array))
    else:
        # Reads the array in place where it can; `jax.numpy.asarray` would copy it.
        made = jax.device_put(array, sharding)
    return made


def _gpu_of_jax(jax: Any, ordinal: int) -> Any | None:
    try:
        gpus = jax.local_devices(backend="gpu")
    except RuntimeError:  # JAX has no gpus
        return None
    return next((gpu for gpu in gpus if gpu.local_hardware_id == ordinal), None)


@public
def tensor(
    data: Any,
    dtype: Any = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
    fill_value: float = 0,
) -> Tensor:
    """Copy data into a new tensor.

    Args:
        data: Numbers, nested lists of numbers, an array of NumPy, PyTorch, JAX or any library that
            supports DLPack or the buffer protocol, a Tensor, or a Batch, whose samples are stacked.
        dtype: The type of the elements. By default arrays keep theirs, and Python's numbers
            become int32, float32 or bool.
        device: The device of the tensor; by default that of the data.
        layout: One letter per dimension, such as "HWC".
        pad: Pad samples of different shapes when they are stacked.
        fill_value: The number to pad with, converted to the type of the samples.

    Example:
        >>> ndd.tensor([[1, 2], [3, 4]], layout="HW").shape
        (2, 2)
    """
    return _make(data, dtype, device, layout, pad, fill_value, True)


@public
def as_tensor(
    data: Any,
    dtype: Any = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
    fill_value: float = 0,
) -> Tensor:
    """Make a tensor that shares memory with `data` if possible. Arguments as for `tensor`.

    Example:
        >>> import numpy as np
        >>> pixels = np.zeros((4, 6, 3), np.uint8)
        >>> np.shares_memory(ndd.as_tensor(pixels, layout="HWC"), pixels)
        True
    """
    return _make(data, dtype, device, layout, pad, fill_value, False)


def _make(
    data: Any,
    dtype: Any,
    device: DeviceLike | None,
    layout: str | None,
    pad: bool,
    fill_value: float,
    copy: bool,
) -> Tensor:
    value = single(data, None if dtype is None else to_dtype(dtype), copy, pad, fill_value)
    made = Tensor._wrap(relabel(value, layout))
    return made if device is None else made.to_device(device)


use_for(False, Tensor)
