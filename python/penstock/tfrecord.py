"""Features of TFRecord files, for `readers.TFRecord`.

    tfrecord = ndd.tfrecord
    features = {
        "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        "image/object/bbox": tfrecord.VarLenFeature([4], tfrecord.float32, 0.0),
    }
    reader = ndd.readers.TFRecord(path="train.tfrecord", features=features)

The reader returns dicts with these keys.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, SupportsIndex

from penstock._errors import messages
from penstock._public import attach as _attach
from penstock.errors import ArgumentError


class FeatureType(IntEnum):
    """The types of features, with the numbers that DALI uses."""

    int64 = 0
    string = 1
    float32 = 2


int64 = FeatureType.int64
string = FeatureType.string
float32 = FeatureType.float32

_WORDS = {int64: "an integer", float32: "a float", string: "a str"}


class Feature:
    """The base class of `FixedLenFeature` and `VarLenFeature`.

    Args:
        shape: The shape; for a feature of variable length, without its first dimension.
        dtype: `int64`, `float32` or `string`.
        default_value: The value for records without the feature.
    """

    __slots__ = ("default_value", "dtype", "shape")

    varies = False

    def __init__(
        self, shape: Sequence[SupportsIndex], dtype: SupportsIndex, default_value: Any
    ) -> None:
        what = type(self).__name__
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            raise messages.wrong_argument(what, "shape", shape, "a sequence of integers")
        try:
            self.shape: tuple[int, ...] = tuple(operator.index(extent) for extent in shape)
        except TypeError:
            raise messages.wrong_argument(what, "shape", shape, "a sequence of integers") from None
        if any(extent < 0 for extent in self.shape):
            raise messages.bad_argument(what, "shape", f"must not be negative, got {self.shape}")
        try:
            self.dtype: FeatureType = FeatureType(operator.index(dtype))
        except (TypeError, ValueError):
            raise messages.wrong_argument(
                what, "dtype", dtype, "`tfrecord.int64`, `tfrecord.float32` or `tfrecord.string`"
            ) from None
        if self.dtype == string and (self.varies or math.prod(self.shape) != 1):
            raise messages.bad_argument(
                what,
                "dtype",
                "can be `string` only for a single value, a `FixedLenFeature` of shape (): there "
                "are no tensors of strings",
            )
        self.default_value: Any = default_value
        self._fallback()

    def _fallback(self) -> bytes | list[Any] | None:
        """The default value as the native reader expects it."""
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
            raise _wrong_default(what, default, f"{wanted}, or as many as its shape requires")
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
    """A feature with the same number of values in each record.

    Args:
        shape: The shape of the values; () for a scalar, or for a string.
        dtype: `int64`, `float32` or `string`.
        default_value: The value for records without the feature: one number for all elements, or
            a sequence. Without a default, such a record is an error.

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
    """A feature with any number of values; empty for records without it.

    `VarLenFeature(dtype, default_value)` gives a one-dimensional tensor,
    `VarLenFeature(partial_shape, dtype, default_value)` a stack of values of that shape. The
    default value is not used.

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
                "VarLenFeature() takes (dtype, default_value) or (partial_shape, dtype, "
                f"default_value), got {len(arguments)} arguments."
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

_attach(__name__)
