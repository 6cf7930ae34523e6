"""Batch: samples of the same type and rank, possibly of different shapes."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, overload

import numpy as np

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._operators.submit import settle
from penstock._runtime.context import EvalContext
from penstock._runtime.device import DeviceLike
from penstock._values.arithmetic import Arithmetic
from penstock._values.array import Array
from penstock._values.conversion import LARGEST_BATCH, relabel, rows, single, stack
from penstock._values.dtype import dtype as to_dtype
from penstock._values.indexing import subscript
from penstock._values.repr import batch_text
from penstock._values.tensor import Tensor, array_of

if TYPE_CHECKING:
    import torch

__all__ = ["Batch", "as_batch", "batch"]


@public
class Batch(Arithmetic, batch=True):
    """Samples with the same type, number of dimensions, layout and device.

    Returned by `batch` and `as_batch`, by operators and by readers. Its data may still be being
    computed; reading it waits.

    There is no `batch[i]`, which could mean two things: `tensors[i]` is sample i, and `slice[i]`
    indexes into each sample. Python's operators (`b * 2`, `a < b`) work sample by sample; tensors
    and numbers are broadcast to all samples.

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

    def torch(self, copy: bool | None = None, pad: bool = False) -> torch.Tensor:
        """All samples as one PyTorch tensor.

        Args:
            copy: True always copies; False never does, and raises if a copy is required; by
                default memory is shared if the samples are contiguous.
            pad: Pad samples of different shapes with zeros.
        """
        stacked = Tensor._wrap(stack(self._value, pad, "Batch.torch"))
        if copy is False:
            settle(stacked._value)
            if stacked._value.memory(0, False).address != self._value.memory(0, False).address:
                raise ValueError(
                    "Batch.torch: the samples are not contiguous in memory, so they must be copied "
                    "into one tensor. Omit `copy` to allow that."
                )
        try:
            return stacked.torch(copy=bool(copy))
        except RuntimeError as error:
            if "requires PyTorch" not in str(error):
                raise
            raise RuntimeError("Batch.torch() requires PyTorch to be installed.") from None

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
            hint = " Read a tensor's value with `.item()`."
        raise TypeError(
            f"Samples are selected by an integer, a slice or a list of integers, not "
            f"{type(index).__name__}.{hint}"
        ) from None
    if not -count <= position < count:
        raise IndexError(f"Sample {position} is out of range for a batch of {count} samples.")
    return position % count


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
            the batch, or a Batch.
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
