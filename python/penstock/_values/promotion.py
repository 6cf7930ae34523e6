"""Type promotion: the type to compute in, and the type of the result."""

from __future__ import annotations

from typing import TypeAlias

from penstock._values.dtype import BY_CODE, DType, bfloat16, float16, float32, float64, uint8
from penstock._values.dtype import bool as bool_

Types: TypeAlias = list[tuple[int, tuple[int, int]] | None]
"""For each promoted type, by its code: the code of the result's type, and the kernel's arguments:
the type to compute in and the type of the result. None if the operation isn't supported."""

_FLOAT = DType.Kind.float
_ENUM = DType.Kind.enum
_SIGNED = DType.Kind.signed


def _promote(a: DType, b: DType) -> DType:
    """The common type of two types. An enum type takes precedence."""
    if a is b or b.kind is _ENUM:
        return b
    if a.kind is _ENUM or b is bool_:
        return a
    if a is bool_:
        return b
    if a.kind is _FLOAT and b.kind is _FLOAT:
        if a.bits == b.bits:  # float16 and bfloat16, neither of which contains the other
            return float32
        return a if a.bits > b.bits else b
    if a.kind is _FLOAT or b.kind is _FLOAT:
        return a if a.kind is _FLOAT else b
    if a.kind is b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind is _SIGNED else (b, a)
    # The next larger signed type contains both; 64 bits is the largest.
    return DType(_SIGNED, max(signed.bits, min(2 * unsigned.bits, 64)))


def _in(compute: DType, result: DType) -> tuple[int, tuple[int, int]]:
    return result._code, (compute._code, result._code)


def _number(dtype: DType) -> tuple[int, tuple[int, int]]:
    """Computed in the type itself, except for 16-bit floats."""
    return _in(float32 if dtype in (float16, bfloat16) else dtype, dtype)


def _float(dtype: DType) -> tuple[int, tuple[int, int]]:
    return _number(dtype) if dtype.kind is _FLOAT else _in(float32, float32)


def _comparison(dtype: DType) -> tuple[int, tuple[int, int]]:
    if dtype is bool_:
        return _in(uint8, bool_)
    return _in(float64 if dtype is float64 else BY_CODE[_number(dtype)[1][0]], bool_)


PROMOTED: list[list[int]] = [[_promote(a, b)._code for b in BY_CODE] for a in BY_CODE]
"""The code of the common type of two operands, by their codes."""

_numbers = [dtype.kind not in (_ENUM, DType.Kind.bool) for dtype in BY_CODE]

NUMBERS: Types = [_number(t) if ok else None for t, ok in zip(BY_CODE, _numbers, strict=True)]
"""Numbers to numbers of the same type."""

REMAINDERS: Types = [
    found and _in(float64 if dtype.kind is _FLOAT else dtype, dtype)
    for dtype, found in zip(BY_CODE, NUMBERS, strict=True)
]
"""The same, with floats in double precision."""

NUMBERS_AND_BOOL: Types = [_number(t) if t.kind is not _ENUM else None for t in BY_CODE]
"""The same, with bool."""

BITS: Types = [_number(t) if t.kind not in (_ENUM, _FLOAT) else None for t in BY_CODE]
"""Integers and bool, to the same type."""

FLOATS: Types = [_float(t) if ok else None for t, ok in zip(BY_CODE, _numbers, strict=True)]
"""Numbers to floats: float32 unless they are floats already."""

SELECTIONS: list[tuple[int, tuple[int]]] = [(t._code, (t._code,)) for t in BY_CODE]
"""All types, to the same type. Nothing is computed, so the kernel gets the type alone."""

COMPARISONS: Types = [_comparison(t) if t.kind is not _ENUM else None for t in BY_CODE]
"""Numbers and bool to bool."""
