"""What `readers.TFRecord` is to find in each record.

    tfrecord = ndd.tfrecord
    features = {
        "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        "image/object/bbox": tfrecord.VarLenFeature([4], tfrecord.float32, 0.0),
    }
    reader = ndd.readers.TFRecord(path="train.tfrecord", features=features)

The reader gives a dict with these names.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, SupportsIndex

from penstock._errors import messages
from penstock.errors import ArgumentError


class FeatureType(IntEnum):
    """What the values of a feature are, as numbered by the API."""

    int64 = 0
    string = 1
    float32 = 2


int64 = FeatureType.int64
string = FeatureType.string
float32 = FeatureType.float32

_WORDS = {int64: "a whole number", float32: "a float", string: "a str"}


class Feature:
    """A feature; see `FixedLenFeature` and `VarLenFeature`, which make them.

    Args:
        shape: The shape; of a feature that varies, all but its first extent.
        dtype: `int64`, `float32` or `string`.
        default_value: What stands in where a record has no values.
    """

    __slots__ = ("default_value", "dtype", "shape")

    varies = False

    def __init__(
        self, shape: Sequence[SupportsIndex], dtype: SupportsIndex, default_value: Any
    ) -> None:
        what = type(self).__name__
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            raise messages.wrong_argument(what, "shape", shape, "a sequence of whole numbers")
        try:
            self.shape = tuple(operator.index(extent) for extent in shape)
        except TypeError:
            raise messages.wrong_argument(
                what, "shape", shape, "a sequence of whole numbers"
            ) from None
        if any(extent < 0 for extent in self.shape):
            raise messages.bad_argument(what, "shape", f"has a negative extent: {self.shape}")
        try:
            self.dtype = FeatureType(operator.index(dtype))
        except (TypeError, ValueError):
            raise messages.wrong_argument(
                what, "dtype", dtype, "`tfrecord.int64`, `tfrecord.float32` or `tfrecord.string`"
            ) from None
        if self.dtype == string and (self.varies or math.prod(self.shape) != 1):
            raise messages.bad_argument(
                what,
                "dtype",
                "can be `string` for a single one only, a `FixedLenFeature` of shape (): there are "
                "no tensors of strings",
            )
        self.default_value = default_value
        self._fallback()

    def _fallback(self) -> bytes | list[Any] | None:
        """The default as the native core takes it."""
        default = self.default_value
        if default is None:
            return None
        what, wanted = type(self).__name__, _WORDS[self.dtype]
        if self.dtype == string:
            if isinstance(default, bytes):
                return default
            if not isinstance(default, str):
                raise _wrong_default(what, default, wanted)
            return default.encode()
        values = _flat(default)
        count = math.prod(self.shape)
        if isinstance(default, list | tuple) and (self.varies or len(values) != count):
            raise _wrong_default(what, default, f"{wanted}, or as many as its shape has")
        kinds = (int,) if self.dtype == int64 else (int, float)
        for value in values:
            if not isinstance(value, kinds):
                raise _wrong_default(what, value, wanted)
            if self.dtype == int64 and not -(2**63) <= value < 2**63:
                raise _wrong_default(what, value, f"{wanted} of 64 bits")
        return values

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.shape}, {self.dtype.name}, {self.default_value!r})"


class FixedLenFeature(Feature):
    """A feature with as many values in each record.

    Args:
        shape: The shape of the values; () for a scalar, or for a string.
        dtype: `int64`, `float32` or `string`.
        default_value: What stands in where a record has no values: one for all of them, or a
            sequence. Without it, such a record is an error.

    Example:
        >>> ndd.tfrecord.FixedLenFeature([1], ndd.tfrecord.int64, -1)
        FixedLenFeature((1,), int64, -1)
    """

    __slots__ = ()

    def __init__(
        self,
        shape: Sequence[SupportsIndex],
        dtype: SupportsIndex,
        default_value: Any = None,
        /,
    ) -> None:
        super().__init__(shape, dtype, default_value)


class VarLenFeature(Feature):
    """A feature with any number of values, none where a record has it not.

    `VarLenFeature(dtype, default_value)` gives a row of them,
    `VarLenFeature(partial_shape, dtype, default_value)` rows of that shape. The default is not
    used, as there is a result without it.

    Example:
        >>> ndd.tfrecord.VarLenFeature([4], ndd.tfrecord.float32, 0.0)
        VarLenFeature((4,), float32, 0.0)
    """

    __slots__ = ()

    varies = True

    def __init__(self, *arguments: Any) -> None:
        if arguments and isinstance(arguments[0], Sequence):
            shape, *rest = arguments
        else:
            shape, rest = (), list(arguments)
        if not 1 <= len(rest) <= 2:
            raise TypeError(
                "VarLenFeature() takes a dtype and a default, and before them the partial shape, "
                f"if any; got {len(arguments)} arguments."
            )
        dtype, default = rest if len(rest) == 2 else (rest[0], None)
        super().__init__(shape, dtype, default)


def _flat(default: Any) -> list[Any]:
    if isinstance(default, list | tuple):
        return [value for part in default for value in _flat(part)]
    return [default]


def _wrong_default(what: str, value: object, wanted: str) -> ArgumentError:
    return messages.bad_argument(
        what, "default_value", f"must be {wanted}, got {messages.describe(value)}"
    )


__all__ = ["Feature", "FeatureType", "FixedLenFeature", "VarLenFeature"]
__all__ += ["float32", "int64", "string"]
