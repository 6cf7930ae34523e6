"""The base class of Tensor and Batch: a handle to a value of the engine."""

from __future__ import annotations

import pickle
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from penstock import _core
from penstock._errors.tracebacks import public
from penstock._operators.call_sites import calling_module
from penstock._operators.submit import invoke, settle
from penstock._runtime.device import Device, DeviceLike
from penstock._runtime.device import device as to_device_object
from penstock._runtime.loader_workers import worker
from penstock._runtime.mode import EvalMode
from penstock._values.dtype import BY_CODE, DType

if TYPE_CHECKING:
    from penstock._core import Value

Self = TypeVar("Self", bound="Array")

_BETWEEN_PROCESSES = ("multiprocessing.reduction", "torch.multiprocessing.queue")
"""What pickles for queues between processes, also those of DataLoaders and pools. What is raised
there nobody hears of: nothing is sent, and the other side waits for ever."""

_WORTH_SHARING = 64 << 10
"""Fewer bytes take less time through a pipe than memory takes to be shared."""

_ALIGNMENT = 16
"""Of memory that is used in place: the largest elements have 8 bytes."""

_COPY = _core.register("copy", "copy")
_MOVE = _core.register("to_device", "move")


@public
class Array:
    """A handle to data that may still be being computed."""

    __slots__ = ("__dict__", "__weakref__", "_value")

    _value: Value

    @classmethod
    def _wrap(cls: type[Self], value: Value) -> Self:
        made = cls.__new__(cls)
        made._value = value
        return made

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return BY_CODE[self._value.dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions of a sample."""
        return self._value.ndim

    @property
    def layout(self) -> str | None:
        """One letter per dimension of a sample, such as "HWC"; None if not set."""
        return self._value.layout

    @property
    def device(self) -> Device:
        """The device of the data."""
        return device_of(self._value.device)

    def evaluate(self: Self) -> Self:
        """Wait until the data is computed; raises if that has failed. Returns the object itself."""
        settle(self._value)
        return self

    def cpu(self: Self) -> Self:
        """Copy to the host; returns the object itself if it is there already."""
        return self._move(-1, False)

    def gpu(self: Self, index: int | None = None) -> Self:
        """Copy to a gpu (by default the current one); returns the object itself if it is there."""
        return self._move(Device("gpu", index)._code, False)

    def to_device(self: Self, device: DeviceLike, force_copy: bool = False) -> Self:
        """Copy to a device; returns the object itself if it is there, unless `force_copy`."""
        target = to_device_object(device)
        if target is None:
            raise TypeError("to_device: `device` must be a device such as 'cpu', got None.")
        return self._move(target._code, force_copy)

    def show(
        self,
        columns: int | None = None,
        labels: Any = None,
        boxes: Any = None,
        *,
        box_format: str = "ltrb",
    ) -> None:
        """Look at the data: images, sequences, waveforms and spectrograms as pictures.

        In a notebook they are displayed. Elsewhere a picture is opened with the desktop's viewer;
        without a desktop, it is saved, and the name of the file is printed. Data that is not
        visual is printed. Arguments are those of `save_grid`.
        """
        from penstock._look.show import show

        show(self, columns, labels, boxes, box_format)

    def save_grid(
        self,
        path: str | PathLike[str],
        columns: int | None = None,
        labels: Any = None,
        boxes: Any = None,
        *,
        box_format: str = "ltrb",
    ) -> None:
        """Save the samples side by side in a PNG file.

        Images (layouts such as "HWC", "CHW" and "HW"), sequences ("FHWC"), waveforms and
        spectrograms ("ft") can be saved. Numbers that are neither from 0 to 1 nor from 0 to 255
        are scaled to the visible range.

        Args:
            path: The name of the file, which ends with ".png".
            columns: The number of samples per row; by default the grid is about square.
            labels: A text, or numbers, for each sample.
            boxes: The boxes of each sample, with the shape (boxes, 4), in pixels; relative to the
                size of the image if none of them exceeds 1.
            box_format: "ltrb" (left, top, right, bottom) or "xywh" (left, top, width, height).
        """
        from penstock._look.show import save_grid

        save_grid(self, path, columns, labels, boxes, box_format)

    def _repr_html_(self) -> str:
        from penstock._look.html import page

        return page(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """As HTML and as text. Notebooks would take the text from `repr`, which waits."""
        from penstock._look.html import bundle

        return bundle(self)

    def __copy__(self: Self) -> Self:
        made = self._wrap(self._value)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self: Self, memo: object) -> Self:
        value = self._value
        samples = len(value) if value.batch else None
        promise = (value.dtype, value.ndim, value.layout)
        [copied] = invoke(_COPY, (value,), 1, (), samples, (promise,), value.device)
        made = self._wrap(copied)
        made.__dict__.update(self._attributes())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        value = self._value
        try:
            settle(value)
        except Exception as error:
            if not _is_between_processes():
                raise
            return _restore_failed, (len(value) if value.batch else None, _portable(error))
        memory: Any = value.concatenated()
        # A NumPy array, which picklers with out-of-band buffers don't copy.
        data: Any = np.ndarray(memory.shape, np.uint8, memory, memory.offset)
        if data.nbytes >= _WORTH_SHARING and worker()[1] and _is_between_processes():
            data = _in_shared_memory(data)
        sources = [value.source(index) for index in range(len(value))]
        described = (self.dtype, value.ndim, value.batch, value.shapes(), sources, value.layout)
        attributes = self._attributes() or None
        return _unpickle, (type(self), data, *described, self.device), attributes

    def _attributes(self) -> dict[str, Any]:
        """Attributes that users have set; private ones belong to this object."""
        return {key: item for key, item in self.__dict__.items() if not key.startswith("_")}

    # `==` compares elements.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def _move(self: Self, device: int, force: bool) -> Self:
        value = self._value
        if value.device == device and not force:
            return self
        samples = len(value) if value.batch else None
        promise = (value.dtype, value.ndim, value.layout)
        [moved] = invoke(_MOVE, (value,), 1, (int(force),), samples, (promise,), device)
        return self._wrap(moved)


def _is_constant(data: np.ndarray[Any, Any]) -> bool:
    """Whether the memory was handed over beside the pickle, read-only: such as that of Ray's object
    store, which nobody changes. What was in the pickle is copied, so that it can be written to.
    """
    holder: Any = data
    while isinstance(holder, np.ndarray):
        holder = holder.base
    is_aligned = data.ctypes.data % _ALIGNMENT == 0
    return not data.flags.writeable and is_aligned and not isinstance(holder, bytes)


def _unpickle(
    kind: type[Self],
    data: Any,
    dtype: DType,
    ndim: int,
    batch: bool,
    shapes: list[tuple[int, ...]],
    sources: list[str | None],
    layout: str | None,
    device: Device,
) -> Self:
    """The array that `__reduce__` has described."""
    code = dtype._code
    is_array = isinstance(data, np.ndarray)
    data = data if is_array else data.numpy()
    owned = not is_array or _is_constant(data)
    made = _core.unpack(data, code, ndim, batch, shapes, sources, layout, device._code, owned)
    return kind._wrap(made)


def _is_between_processes() -> bool:
    return calling_module() in _BETWEEN_PROCESSES


def _in_shared_memory(data: np.ndarray[Any, Any]) -> Any:
    """Bytes in a tensor of PyTorch that another process gets without a further copy."""
    import torch

    try:
        storage = torch.UntypedStorage._new_shared(data.nbytes)
    except RuntimeError:
        return data  # there is not enough of it
    made = torch.empty(0, dtype=torch.uint8).set_(storage)
    made.numpy()[:] = data
    return made


def _restore_failed(batch_size: int | None, error: Exception) -> Any:
    """A value that raises the error where it is read, as it would have where it was made."""
    from penstock._operators.map import map

    def fail() -> None:
        raise error

    with EvalMode.eager:
        return map(fail, batch_size=batch_size, batched=True)


def _portable(error: Exception) -> Exception:
    """The error, or its text where it can't be pickled."""
    try:
        pickle.dumps(error)
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def use_for(batch: bool, kind: type[Array]) -> None:
    """Wrap batches, or single values, in a class from now on.

    For the last line of its module: if the first import is interrupted, as by Ctrl-C, there must
    not be a class that lacks the rest of its module.
    """
    _classes[batch] = kind


def wrap(value: Value) -> Any:
    """A Batch or a Tensor, depending on the value."""
    kind = _classes.get(value.batch)
    if kind is None:
        # A program's first call may be an operator on plain arrays.
        from penstock._values import batch as _batch  # noqa: F401

        kind = _classes[value.batch]
    return kind._wrap(value)


def device_of(code: int) -> Device:
    """The device for the engine's device code."""
    return Device.CPU if code < 0 else Device("gpu", code)


_classes: dict[bool, type[Array]] = {}
