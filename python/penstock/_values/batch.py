"""Batch: samples of the same type and rank, possibly of different shapes."""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, overload

import numpy as np

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._operators.submit import settle
from penstock._runtime.context import EvalContext
from penstock._runtime.device import DeviceLike
from penstock._values.arithmetic import Arithmetic
from penstock._values.array import Array, use_for
from penstock._values.conversion import LARGEST_BATCH, relabel, rows, single, stack
from penstock._values.dtype import bfloat16
from penstock._values.dtype import dtype as to_dtype
from penstock._values.indexing import subscript
from penstock._values.repr import batch_text
from penstock._values.tensor import Tensor, array_of, put_in_jax

if TYPE_CHECKING:
    import torch
    from jax import Array as JaxArray
    from torch import Tensor as TorchTensor

__all__ = ["Batch", "as_batch", "batch"]


@public
class Batch(Arithmetic):
    """Samples with the same type, number of dimensions, layout and device.

    Returned by `batch` and `as_batch`, by operators and by readers. Its data may still be being
    computed; reading it waits.

    There is no `batch[i]`, which could mean two things: `tensors[i]` is sample i, and `slice[i]`
    indexes into each sample. `len(b)` is the number of samples. Python's operators (`b * 2`,
    `a < b`) work sample by sample; tensors and numbers are broadcast to all samples.

    Libraries that support Arrow (`pyarrow.array(b)`, `polars.Series(b)`) read a batch as a column
    of lists, or of numbers; this requires pyarrow.

    Args:
        tensors: Anything that `batch` accepts.
        dtype: The type of the elements.
        device: The device of the batch.
        layout: One letter per dimension of a sample, such as "HWC".
        copy: Whether to copy the data; by default memory is shared if possible.

    Example:
        >>> rows = ndd.batch([[1, 2, 3], [4, 5]])
        >>> rows.tensors[1].torch().tolist()
        [4, 5]
        >>> rows.slice[0].torch().tolist()
        [1, 4]
        >>> (rows * 2).torch(pad=True).tolist()
        [[2, 4, 6], [8, 10, 0]]
    """

    __slots__ = ()

    # Makes NumPy leave `array + batch` to the batch.
    __array_ufunc__ = None
    # A length and a `__getitem__` that only raises would pass for a sequence.
    __reversed__ = None

    def __init__(
        self,
        tensors: Any,
        dtype: Any = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        copy: bool = False,
    ) -> None:
        self._value = _make(tensors, dtype, device, layout, copy)._value

    @staticmethod
    def broadcast(
        sample: Any,
        batch_size: SupportsIndex,
        device: DeviceLike | None = None,
        dtype: Any = None,
    ) -> Batch:
        """Repeat one sample; the batch shares its memory.

        Args:
            sample: Anything that `tensor` accepts.
            batch_size: The number of samples.
            device: The device of the batch.
            dtype: The type of the elements.

        Example:
            >>> ndd.Batch.broadcast([1, 2], 3).torch().tolist()
            [[1, 2], [1, 2], [1, 2]]
        """
        if isinstance(sample, Batch):
            raise ValueError("Cannot broadcast a Batch; pass a single sample.")
        count = operator.index(batch_size)
        if not 0 <= count <= LARGEST_BATCH:
            raise ValueError(
                f"Batch.broadcast: `batch_size` must be from 0 to {LARGEST_BATCH}, got {count}."
            )
        one = Tensor._wrap(single(sample, None if dtype is None else to_dtype(dtype)))
        if device is not None:
            one = one.to_device(device)
        return Batch._wrap(one._value.pick(_pool(), [0] * count))

    @property
    def batch_size(self) -> int:
        """The number of samples."""
        return len(self._value)

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """The shape of each sample."""
        settle(self._value)
        return self._value.shapes()

    @property
    def source_info(self) -> list[str | None]:
        """The source of each sample, usually a file name; None if unknown."""
        settle(self._value)
        return [self._value.source(index) for index in range(len(self._value))]

    @property
    def tensors(self) -> Samples:
        """The samples: `tensors[i]` is a Tensor, `tensors[a:b]` or `tensors[[i, j]]` a Batch."""
        return Samples(self)

    @property
    def slice(self) -> Slicer:
        """Index into each sample: `slice[10:20, ::2]`.

        An index, or a bound of a range, is a number for all samples, or a batch with one number
        per sample.
        """
        return Slicer(self)

    @overload
    def select(self, sample_range: SupportsIndex) -> Tensor: ...
    @overload
    def select(self, sample_range: builtins.slice | list[int]) -> Batch: ...
    def select(self, sample_range: Any) -> Tensor | Batch:
        """A sample for an integer; a batch of samples for a slice or a list."""
        return self.tensors.select(sample_range)

    @overload
    def torch(
        self,
        copy: bool | None = None,
        pad: bool = False,
        fill_value: float = 0,
        return_lengths: Literal[False] = False,
    ) -> torch.Tensor: ...
    @overload
    def torch(
        self,
        copy: bool | None = None,
        pad: bool = False,
        fill_value: float = 0,
        *,
        return_lengths: Literal[True],
    ) -> tuple[torch.Tensor, torch.Tensor]: ...
    def torch(
        self,
        copy: bool | None = None,
        pad: bool = False,
        fill_value: float = 0,
        return_lengths: bool = False,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """All samples as one PyTorch tensor.

        Of a batch on a gpu that is not emulated, each call makes a new copy on that device. This
        returns before it is done; work on PyTorch's current stream waits for it.

        Args:
            copy: True always copies; False never does on the host, and raises if a copy is
                required there; by default memory is shared if the samples are contiguous.
            pad: Pad samples of different shapes.
            fill_value: The number to pad with, converted to the type of the samples.
            return_lengths: Also return the length of each sample before padding, as an int64
                tensor on the CPU. It is the extent of axis "t" if the layout has one, as that of
                spectrograms does ("ft"), else of the first axis.

        Example:
            >>> sounds = ndd.batch([[1.0, 2.0, 3.0], [4.0]])
            >>> padded, lengths = sounds.torch(pad=True, return_lengths=True)
            >>> padded.tolist(), lengths.tolist()
            ([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]], [3, 1])
        """
        stacked = Tensor._wrap(stack(self._value, pad, "Batch.torch", fill_value))
        if copy is False:
            settle(stacked._value)
            if stacked._value.memory(0, False).address != self._value.memory(0, False).address:
                raise ValueError(
                    "Batch.torch: the samples are not contiguous in memory, so they must be copied "
                    "into one tensor. Omit `copy` to allow that."
                )
        try:
            made = stacked.torch(copy=bool(copy))
        except RuntimeError as error:
            if "requires PyTorch" not in str(error):
                raise
            raise RuntimeError("Batch.torch() requires PyTorch to be installed.") from None
        return (made, _lengths(self)) if return_lengths else made

    def jax(self, sharding: Any = None, pad: bool = False) -> JaxArray:
        """All samples as one JAX array.

        Memory is shared if the samples are contiguous, the array is on the CPU, and JAX can. As
        everywhere in JAX, 64-bit types become 32-bit ones unless `jax_enable_x64` is set.

        Args:
            sharding: A `Sharding` or a device of JAX. By default the array of a batch on a gpu is
                on the gpu of JAX with that id, if there is one, else on JAX's default device. The
                first dimension is the batch.
            pad: Pad samples of different shapes with zeros.
        """
        stacked = stack(self._value, pad, "Batch.jax")
        settle(stacked)
        array = array_of(stacked.memory(0, False), self.dtype)
        return put_in_jax(array, sharding, "Batch.jax", stacked.device)

    def __jax_array__(self) -> JaxArray:
        return self.jax()

    def nested(self) -> TorchTensor:
        """All samples as a nested tensor of PyTorch, with the layout `torch.jagged`.

        The samples may differ in their first dimension, and in no other. They are copied.

        Example:
            >>> rows = ndd.batch([[1, 2, 3], [4]]).nested()
            >>> [row.tolist() for row in rows.unbind()]
            [[1, 2, 3], [4]]
        """
        try:
            import torch
        except ImportError:
            raise RuntimeError("Batch.nested() requires PyTorch to be installed.") from None
        shapes = self.shape
        if not shapes:
            raise RuntimeError("Batch.nested: an empty batch can't be converted to a tensor.")
        if self.ndim == 0:
            raise ValueError(
                "Batch.nested: the samples are numbers, which have no dimension to differ in. Use "
                "`torch()`."
            )
        for number, shape in enumerate(shapes):
            if shape[1:] != shapes[0][1:]:
                raise ValueError(
                    "Batch.nested: samples may differ in their first dimension only: sample "
                    f"{number} is {shape}, sample 0 is {shapes[0]}. Use `torch(pad=True)`, or "
                    "`resize`, `crop` or `pad` before."
                )
        lengths = [shape[0] for shape in shapes]
        offsets = np.cumsum([0, *lengths])
        memory: Any = self._value.concatenated()
        data = np.ndarray(memory.shape, np.uint8, memory, memory.offset)
        whole = (int(offsets[-1]), *shapes[0][1:])
        joined = _core.unpack(
            data, self._value.dtype, self.ndim, False, [whole], [None], None, self._value.device
        )
        values = Tensor._wrap(joined).torch()
        starts = torch.from_numpy(offsets).to(values.device)
        # Without these, PyTorch may pad it to more than its longest sample.
        limits = {"min_seqlen": min(lengths), "max_seqlen": max(lengths)}
        return torch.nested.nested_tensor_from_jagged(values, starts, **limits)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __bool__(self) -> bool:
        if self.batch_size == 1:
            return bool(self.tensors[0])
        raise ValueError(
            f"The truth value of a batch of {self.batch_size} samples is ambiguous. For its size, "
            "use `batch_size`; for its elements, use `as_tensor(batch)` with NumPy's any() and "
            "all(). To pass a value per sample to an operator, pass the batch itself."
        )

    def __getitem__(self, key: Any) -> NoReturn:
        raise messages.not_subscriptable()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "A Batch can't be converted to one array, since its samples may differ in shape. Use "
            "`as_tensor(batch)` (with `pad=True` if they do), or `[np.asarray(t) for t in batch]`."
        )

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise RuntimeError("Exporting a batch to Arrow requires pyarrow.") from None
        from penstock._values import arrow

        value = self._value
        if self.dtype is bfloat16:
            raise TypeError("Arrow has no type for bfloat16; use `cast` first.")
        settle(value)
        memory: Any = value.concatenated()
        flat = np.ndarray(memory.shape, np.uint8, memory, memory.offset).view(self.dtype.dtype)
        column = arrow.exported(flat, value.shapes(), value.ndim)
        return column.__arrow_c_array__(requested_schema)

    def __repr__(self) -> str:
        settle(self._value)
        value, dtype = self._value, self.dtype
        arrays = [array_of(value.memory(index, False), dtype) for index in range(len(value))]
        return batch_text(self, arrays, value.shapes())


class Samples:
    """The samples of a batch, selected by index."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return self._batch.batch_size

    @overload
    def __getitem__(self, key: SupportsIndex) -> Tensor: ...
    @overload
    def __getitem__(self, key: slice | list[int]) -> Batch: ...
    @public
    def __getitem__(self, key: Any) -> Tensor | Batch:
        value = self._batch._value
        count = len(value)
        if key is Ellipsis:
            return self._batch
        if isinstance(key, slice):
            return Batch._wrap(value.pick(_pool(), range(count)[key]))
        if isinstance(key, list):
            picked = [_position(index, count) for index in key]
            return Batch._wrap(value.pick(_pool(), picked))
        if isinstance(key, np.ndarray) and key.ndim == 1 and key.dtype.kind in "iu":
            return self[list(map(int, key))]
        return Tensor._wrap(value.pick(_pool(), (_position(key, count),), False))

    def __iter__(self) -> Iterator[Tensor]:
        return map(self.__getitem__, range(len(self)))

    @public
    def select(self, key: Any) -> Tensor | Batch:
        """The same as indexing."""
        picked: Tensor | Batch = self[key]
        return picked

    def tolist(self) -> list[Tensor]:
        """All samples as a list."""
        return list(self)

    def as_batch(self) -> Batch:
        """The batch itself."""
        return self._batch


class Slicer:
    """Indexing into each sample of a batch."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @public
    def __getitem__(self, key: Any) -> Batch:
        return subscript(self._batch, key)


def _position(index: Any, count: int) -> int:
    try:
        position = operator.index(index)
    except TypeError:
        hint = " To index into each sample, use `slice[...]`."
        if isinstance(index, Array):
            hint = " A tensor must have one element, an integer."
        raise TypeError(
            f"Samples are selected by an integer, a slice or a list of integers, not "
            f"{type(index).__name__}.{hint}"
        ) from None
    if not -count <= position < count:
        raise IndexError(f"Sample {position} is out of range for a batch of {count} samples.")
    return position % count


def _lengths(batch: Batch) -> torch.Tensor:
    """The length of each sample along axis "t", or else along the first one."""
    import torch

    if batch.ndim == 0:
        raise ValueError(
            "Batch.torch: `return_lengths` needs samples with at least one dimension, but these "
            "are scalars."
        )
    axis = max((batch.layout or "").find("t"), 0)
    return torch.tensor([shape[axis] for shape in batch.shape], dtype=torch.int64)


def _pool() -> _core.Pool:
    return EvalContext.current()._native_pool()


@public
def batch(
    tensors: Any,
    dtype: Any = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """Copy data into a new batch.

    Args:
        tensors: A list (or any iterable) of samples, an array or Tensor whose first dimension is
            the batch, a column of binary values or lists (Arrow, such as of pyarrow or polars, or
            pandas), or a Batch.
        dtype: The type of the elements; by default that of the first sample, to which the types of
            the others must be safely convertible.
        device: The device of the batch; by default that of the data.
        layout: One letter per dimension of a sample, such as "HWC".

    Example:
        >>> ndd.batch([[1, 2, 3], [4]]).shape
        [(3,), (1,)]
    """
    return _make(tensors, dtype, device, layout, True)


@public
def as_batch(
    tensors: Any,
    dtype: Any = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """Make a batch that shares memory with its samples if possible. Arguments as for `batch`.

    Example:
        >>> import numpy as np
        >>> ndd.as_batch(np.zeros((8, 4, 6, 3), np.uint8), layout="HWC").batch_size
        8
    """
    if isinstance(tensors, Batch) and dtype is None and device is None and not layout:
        return tensors
    return _make(tensors, dtype, device, layout, False)


def _make(
    data: Any, dtype: Any, device: DeviceLike | None, layout: str | None, copy: bool
) -> Batch:
    value, own = rows(data, None if dtype is None else to_dtype(dtype), copy)
    if isinstance(data, Tensor) and own is not None and layout is None:
        raise ValueError(
            f'The tensor has the layout "{own}", but its samples have one dimension less. Pass '
            "`layout`, the layout of a sample."
        )
    made = Batch._wrap(relabel(value, layout))
    return made if device is None else made.to_device(device)


if sys.modules.get("torch.utils.data") is not None:
    # Otherwise `penstock.torch` does this; PyTorch is not to be loaded for it.
    from penstock._torch.collate import register

    register()

use_for(True, Batch)
