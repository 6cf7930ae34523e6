"""Arithmetic between tensors, batches, numbers and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock import _core, _errors
from penstock._array import Array, Self, device_of, wrap
from penstock._convert import single
from penstock._dtype import BY_CODE, DType, bfloat16, float16
from penstock._dtype import bool as bool_
from penstock._invoke import invoke

if TYPE_CHECKING:
    from penstock._core import Value

_ADD = _core.register("+", "add")


class Arithmetic(Array):
    """A handle that Python's operators work on."""

    __slots__ = ()

    def __pos__(self: Self) -> Self:
        return self

    def __add__(self, other: Any) -> Any:
        return _add(self, other)

    def __radd__(self, other: Any) -> Any:
        return _add(other, self)


def _add(left: Any, right: Any) -> Any:
    a, b = values = (_operand(left), _operand(right))
    device = a.device
    if b.device != device:
        if not (_is_number(left) or _is_number(right)):
            raise _errors.mixed_devices("+", device_of(device), device_of(b.device))
        device = max(device, b.device)
    samples = None
    if a.batch:
        samples = len(a)
        if b.batch and len(b) != samples:
            raise _errors.batch_sizes_differ(samples, len(b), "+")
    elif b.batch:
        samples = len(b)
    dtype = _SUMS[a.dtype][b.dtype]
    if dtype is None:
        raise _refuse(a, b)
    promise = (dtype, max(a.ndim, b.ndim), _layout(a, b))
    [value] = invoke(_ADD, values, 2, (dtype,), samples, (promise,), device)
    return wrap(value)


def _is_number(data: Any) -> bool:
    # Not their subclasses: NumPy's and the API's constants have types of their own.
    return type(data) in (bool, int, float)


def _operand(data: Any) -> Value:
    if isinstance(data, Array):
        return data._value
    if _is_number(data):
        if isinstance(data, int) and not -(2**31) <= data < 2**31:
            raise _errors.integer_overflow(data, signed=True)
        return _core.scalar(data)
    return single(data)


def _layout(a: Value, b: Value) -> str | None:
    """The layout of the operand with more dimensions; the other's must be its end."""
    if a.ndim < b.ndim:
        a, b = b, a
    larger, smaller = a.layout, b.layout
    if larger is not None and smaller is not None and not larger.endswith(smaller):
        raise RuntimeError(
            f'+: the layouts "{larger}" and "{smaller}" do not match: one must be the end of the '
            "other. Give one operand another layout with `as_tensor(x, layout=...)` or "
            "`as_batch(x, layout=...)`."
        )
    return smaller if larger is None and a.ndim == b.ndim else larger


def _promote(a: DType, b: DType) -> DType | None:
    """The type in which two numbers are added; None where there is none."""
    kinds = DType.Kind
    if kinds.enum in (a.kind, b.kind):
        return None
    if a is b:
        return a
    if bool_ in (a, b):
        return b if a is bool_ else a
    floats = [t for t in (a, b) if t.kind is kinds.float]
    if len(floats) == 1:
        return floats[0]
    if floats:
        if {a, b} == {float16, bfloat16}:
            return DType(kinds.float, 32)
        return max(floats, key=lambda t: t.bits)
    if a.kind is b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind is kinds.signed else (b, a)
    # The next larger signed type holds both; there is none above 64 bits.
    bits = max(signed.bits, min(2 * unsigned.bits, 64))
    return DType(kinds.signed, bits)


def _refuse(a: Value, b: Value) -> Exception:
    left, right = BY_CODE[a.dtype], BY_CODE[b.dtype]
    if left is right is bool_:
        return RuntimeError(
            "+: two booleans can't be added. Convert one with `cast` first, or use a bitwise "
            "operator."
        )
    return RuntimeError(
        f"+: the types {left} and {right} can't be added. Convert enum values with `cast` first."
    )


def _code(dtype: DType | None) -> int | None:
    return None if dtype is None or dtype is bool_ else dtype._code


# The type of a sum by the codes of its operands, worked out once.
_SUMS = [[_code(_promote(a, b)) for b in BY_CODE] for a in BY_CODE]
