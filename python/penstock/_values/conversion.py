"""Conversion of external data to values: wrapped if possible, copied on request."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _core
from penstock._errors import messages
from penstock._operators.call_sites import warn
from penstock._operators.submit import invoke, settle
from penstock._runtime.context import EvalContext
from penstock._runtime.device import accelerator, check_device_id, is_asked_for
from penstock._values import dali
from penstock._values.array import Array
from penstock._values.dtype import BY_CODE, DataType, DType, ImageType, InterpType, bfloat16
from penstock._values.promotion import PROMOTED
from penstock.types import DALIDataType, DALIImageType, DALIInterpType

if TYPE_CHECKING:
    from penstock._accelerators.interface import Accelerator
    from penstock._core import Value

_CAST = _core.register("cast", "cast")
_COPY = _core.register("copy", "copy")
_STACK = {
    owner: _core.register(owner, "stack") for owner in ("as_tensor", "Batch.torch", "Batch.jax")
}

_INTEGERS = (DType.Kind.signed, DType.Kind.unsigned)
_ENUMS = {DALIDataType: DataType, DALIImageType: ImageType, DALIInterpType: InterpType}
_PROTOCOLS = ("__dlpack__", "__array__", "__array_interface__", "__cuda_array_interface__")
_DLPACK_VERSION = (1, 1)
LARGEST_BATCH = 2**24
_DEEPEST = 64  # NumPy's limit on dimensions
# Acquired on first use and never released: an atomic flag.
_first_copy = threading.Lock()


def single(
    data: Any,
    dtype: DType | None = None,
    copy: bool = False,
    pad: bool = False,
    fill_value: float = 0,
) -> Value:
    """One sample from anything that `tensor` accepts."""
    if isinstance(data, Array):
        value = data._value
        if value.batch:
            value = stack(value, pad, fill_value=fill_value)
            return value if dtype is None else cast(value, dtype)
        return _converted(value, dtype, copy)
    if isinstance(data, np.ndarray | np.generic):
        return _converted(_from_numpy(data, copy), dtype, False)
    if isinstance(data, bool | int | float | list | tuple | range):
        return _from_python(data, dtype)
    if isinstance(data, str) or data is None:
        raise messages.not_data(data)
    own = dali.constant(data)
    if own is not data:
        return _from_python(own, dtype)
    if hasattr(data, "__dlpack__"):
        return _converted(_from_dlpack(data, copy), dtype, False)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return _converted(_from_numpy(_as_array(data), copy), dtype, False)
    if hasattr(data, "__cuda_array_interface__"):
        target = accelerator()
        if target is None or target.type != "cuda":
            raise TypeError(
                f"The data of this {type(data).__name__} is in the memory of a CUDA device, which "
                "can't be read here. Copy it to the host first."
            )
        return _converted(_from_accelerator(target, data, target.current()), dtype, False)
    try:
        return _converted(_core.from_buffer(data, None, copy), dtype, False)
    except (TypeError, BufferError):
        pass
    indexable = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    if indexable and not isinstance(data, dict | memoryview):
        return _from_python([data[index] for index in range(len(data))], dtype)
    raise messages.not_data(data)


def rows(data: Any, dtype: DType | None = None, copy: bool = False) -> tuple[Value, str | None]:
    """A batch from anything that `batch` accepts, and the layout of its samples."""
    if isinstance(data, Array):
        value = data._value
        if value.batch:
            return _converted(value, dtype, copy), value.layout
        return _split(_converted(value, dtype, copy)), value.layout
    if isinstance(data, str) or data is None:
        raise messages.not_data(data)
    column = _column(data)
    if column is not None:
        return rows(column, dtype, copy)
    if isinstance(data, np.ndarray) or any(hasattr(data, name) for name in _PROTOCOLS):
        return _split(single(data, dtype, copy)), None
    if not isinstance(data, Iterable) and not hasattr(data, "__getitem__"):
        raise TypeError(
            f"Can't make a batch from {data!r}: expected a list of samples, or an array whose "
            "first dimension is the batch."
        )
    return _gather(list(data), dtype, copy)


def _column(data: Any) -> Any:
    """The rows of a column of Arrow or pandas, or None for other data."""
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "dtype"):
        if data.dtype == object:
            return list(data)
        if isinstance(data.dtype, np.dtype):
            return None  # an array as any other
    if not hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__"):
        return None
    from penstock._values import arrow  # rarely needed, and `ctypes` takes time to load

    return arrow.samples(data)


def cast(value: Value, dtype: DType) -> Value:
    """The value converted to another type."""
    promise = (dtype._code, value.ndim, value.layout)
    return _apply(_CAST, value, (dtype._code,), promise)


def stack(value: Value, pad: bool, owner: str = "as_tensor", fill_value: float = 0) -> Value:
    """The samples of a batch stacked along a new first dimension; errors name the `owner`."""
    args: tuple[float, ...] = (int(pad),)
    if type(fill_value) is not int or fill_value:
        args = int(pad), _fill_number(owner, fill_value)
    if len(value) == 0:
        raise RuntimeError(f"{owner}: an empty batch can't be converted to a tensor.")
    ndim = value.ndim + 1
    layout = value.layout
    if layout is not None or ndim == 1:
        layout = "N" + (layout or "")
    promise = (value.dtype, ndim, layout)
    return invoke(_STACK[owner], (value,), 1, args, None, (promise,), value.device)[0]


def _fill_number(owner: str, fill_value: Any) -> float:
    try:
        if isinstance(fill_value, str | bytes):
            raise TypeError
        return float(fill_value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{owner}: `fill_value` must be a number, got {fill_value!r}.") from None


def relabel(value: Value, layout: str | None) -> Value:
    """The value with another layout, checked against its rank; an empty one changes nothing."""
    if layout is None:
        return value
    if not isinstance(layout, str):
        raise TypeError(f"Layout must be a string such as 'HWC', got {layout!r}.")
    if not layout or layout == value.layout:
        return value
    if len(layout) != value.ndim:
        raise messages.layout_length(layout, value.ndim)
    return value.with_layout(EvalContext.current()._native_pool(), layout)


def _converted(value: Value, dtype: DType | None, copy: bool) -> Value:
    """The value, converted or copied if requested."""
    if dtype is not None and dtype._code != value.dtype:
        return cast(value, dtype)
    if copy:
        return _apply(_COPY, value, (), (value.dtype, value.ndim, value.layout))
    return value


def _apply(operator: int, value: Value, args: tuple[Any, ...], promise: _core.Promise) -> Value:
    samples = len(value) if value.batch else None
    return invoke(operator, (value,), 1, args, samples, (promise,), value.device)[0]


def _split(value: Value) -> Value:
    if value.ndim == 0:
        raise ValueError("Cannot create a batch from a scalar: there is no dimension to split.")
    settle(value)
    if value.shape(0)[0] > LARGEST_BATCH:
        raise ValueError(
            f"A batch has at most {LARGEST_BATCH} samples, but the first dimension of the data is "
            f"{value.shape(0)[0]}."
        )
    return value.split()


def _gather(samples: list[Any], dtype: DType | None, copy: bool) -> tuple[Value, str | None]:
    """A batch from separate samples; the first one determines the default type and layout."""
    if not samples:
        if dtype is None:
            raise ValueError(
                "Element type must be specified if the list is empty: pass `dtype`, as in "
                "batch([], dtype=float32)."
            )
        return _core.empty(dtype._code, 0), None
    values: list[Value] = []
    is_typed = dtype is not None
    for position, sample in enumerate(samples):
        if sample is None or (isinstance(sample, Array) and sample._value.batch):
            raise TypeError(
                "The samples of a batch must be array-like types or numbers. Got "
                f"{'a Batch' if sample is not None else '`None`'} at index {position}."
            )
        if is_typed or not values:
            value = single(sample, dtype, copy)
        else:
            value = _as_first(sample, values[0], position, copy)
        settle(value)
        values.append(value)
    first = values[0]
    for position, value in enumerate(values):
        if value.ndim != first.ndim:
            raise TypeError(
                f"All samples of a batch must have the same number of dimensions: sample 0 has "
                f"{first.ndim}, sample {position} has {value.ndim}."
            )
        if value.device != first.device:
            raise ValueError(
                f"All samples of a batch must be on the same device, but sample {position} is on a "
                "different one than sample 0. Use `.cpu()` or `.gpu()`."
            )
    return _core.gather(values, first.layout, copy), first.layout


def _as_first(sample: Any, first: Value, position: int, copy: bool) -> Value:
    """A sample of a batch, converted to the type of the first one."""
    dtype = BY_CODE[first.dtype]
    is_number = type(sample) in (bool, int, float)
    if is_number or isinstance(sample, list | tuple | range):
        value = single(sample, dtype)  # Python's numbers have no type of their own
        if dtype.kind in _INTEGERS and _has_fractions(sample):
            warn(
                f"Sample {position} of the batch has fractions, which {dtype}, the type of sample "
                "0, can't hold: they are cut off. Give `dtype`, such as dtype='f32'."
            )
        return value
    value = single(sample, None, copy)
    own = BY_CODE[value.dtype]
    if own is dtype:
        return value
    if not _can_hold(dtype, own):
        raise TypeError(
            f"Sample {position} of the batch has elements of {own}, which can't be converted "
            f"safely to {dtype}, the type of sample 0. Pass `dtype`, such as dtype={own.name!r}."
        )
    return cast(value, dtype)


def _has_fractions(numbers: Any) -> bool:
    array = np.array(numbers)
    return array.dtype.kind == "f" and bool((array != np.trunc(array)).any())


def _can_hold(dtype: DType, other: DType) -> bool:
    """Whether a type has the range of another. Floats may lose precision."""
    kinds = {dtype.kind, other.kind}
    if DType.Kind.enum in kinds or (kinds == {DType.Kind.float} and dtype.bits >= 32):
        return True
    return PROMOTED[dtype._code][other._code] == dtype._code


def _from_numpy(array: Any, copy: bool) -> Value:
    array = np.asarray(array)
    kind = array.dtype
    if not kind.isnative:
        array, copy = array.astype(kind.newbyteorder("=")), False
    if kind.name == "bfloat16":
        # An extension type (ml_dtypes), whose buffers NumPy can't export.
        return _core.from_buffer(array.view(np.uint16), bfloat16._code, copy)
    if kind.kind not in "biuf" or kind.itemsize > 8:
        raise TypeError(
            f"Can't make a tensor from an array of {kind}: supported are bool, integers and floats "
            "of up to 64 bits."
        )
    return _core.from_buffer(array, None, copy)


def _from_dlpack(data: Any, copy: bool) -> Value:
    kind, index = data.__dlpack_device__() if hasattr(data, "__dlpack_device__") else (1, 0)
    if int(kind) not in (1, 3):
        target = accelerator()
        if target is not None and target.dlpack_device(0)[0] == int(kind):
            return _from_accelerator(target, data, index)
        raise TypeError(
            f"The data of this {type(data).__name__} is in the memory of a device (DLPack type "
            f"{int(kind)}, number {index}), which can't be read here. Copy it to the host first."
        )
    try:
        capsule = data.__dlpack__(max_version=_DLPACK_VERSION)
    except TypeError:  # before DLPack 1.0
        capsule = data.__dlpack__()
    try:
        return _core.from_dlpack(capsule, copy)
    except (TypeError, ValueError, BufferError) as error:
        raise type(error)(
            f"Can't make a tensor from the DLPack data of this {type(data).__name__}: {error}. "
            "Supported are bool, integers and floats of up to 64 bits in host memory."
        ) from None


def _from_accelerator(target: Accelerator, data: Any, ordinal: int) -> Value:
    """A value on a gpu, from data that is in its memory."""
    if not is_asked_for() and _first_copy.acquire(blocking=False):
        warn(
            f"Data on gpu:{ordinal} is copied to the host, since operators run on the CPU. Data "
            "that is on the host already spares the transfer; see docs/devices.md. Set "
            "PENSTOCK_GPU=deliver to silence this warning."
        )
    on_host = target.to_host(data, check_device_id(ordinal))
    value = _core.from_dlpack(on_host.__dlpack__(max_version=_DLPACK_VERSION), True)
    return Array._wrap(value)._move(ordinal, False)._value


def _as_array(data: Any) -> Any:
    array = np.asarray(data)
    if array.dtype == object:
        raise messages.not_data(data)
    return array


def _from_python(data: Any, dtype: DType | None) -> Value:
    """Numbers and nested lists; 32 bits by default."""
    if isinstance(data, list | tuple) and dtype is None:
        dtype = _ENUMS.get(type(dali.constant(_first(data))))
    elif dtype is None:
        dtype = _ENUMS.get(type(data))
    if dtype is not None:
        if dtype._numpy is None:  # bfloat16 without ml_dtypes
            return cast(_from_python(data, None), dtype)
        array = np.array(data, dtype=dtype._numpy)
        return _core.from_buffer(_bits(array), dtype._code, True)
    try:
        array = np.array(data)
    except TypeError:  # such as tensors among numbers
        raise messages.not_data(data) from None
    if array.dtype == object and array.size and all(isinstance(x, int) for x in array.flat):
        raise messages.integer_overflow(next(x for x in array.flat if not -(2**63) <= x < 2**64))
    if array.dtype.kind not in "biuf":
        raise messages.not_data(data)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    elif array.dtype in (np.int64, np.uint64):
        array = _shrink(array)
    return _core.from_buffer(array, None, True)


def _bits(array: Any) -> Any:
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _first(data: Any) -> Any:
    """The first element of nested lists."""
    for _ in range(_DEEPEST):
        if not isinstance(data, list | tuple) or not data:
            break
        data = data[0]
    return data


def _shrink(array: Any) -> Any:
    """Python integers as int32, or as uint32 if they fit only there."""
    if not array.size:
        return array.astype(np.int32)
    low, high = int(array.min()), int(array.max())
    for kind, least, most in ((np.int32, -(2**31), 2**31 - 1), (np.uint32, 0, 2**32 - 1)):
        if least <= low and high <= most:
            return array.astype(kind)
    raise messages.integer_overflow(low if low < -(2**31) else high, signed=low < 0)
