"""Arithmetic between tensors, batches, numbers and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, overload

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import hide_frames
from penstock._operators import shared_draw
from penstock._operators.submit import invoke
from penstock._values.array import Array, Self, device_of, wrap
from penstock._values.conversion import single
from penstock._values.dtype import BY_CODE, DType
from penstock._values.promotion import (
    BITS,
    COMPARISONS,
    NUMBERS,
    NUMBERS_AND_BOOL,
    PROMOTED,
    REMAINDERS,
    Types,
)
from penstock._values.promotion import FLOATS as FLOATS

if TYPE_CHECKING:
    from penstock._core import Value
    from penstock._values.batch import Batch

Made = TypeVar("Made", covariant=True)


class Operation:
    """An element-wise operation with one, two or three operands."""

    __slots__ = ("kernel", "name", "number", "types")

    def __init__(self, name: str, kernel: str, types: Types) -> None:
        self.name = name
        self.kernel = kernel
        self.number = _core.register(name, kernel)
        self.types = types

    def unary(self, data: Any) -> Any:
        """The result for one operand."""
        value = _operand(data, self.name)
        found = self.types[value.dtype]
        if found is None:
            raise self._refuse((value,))
        dtype, args = found
        samples = len(value) if value.batch else None
        promise = (dtype, value.ndim, value.layout)
        [made] = invoke(self.number, (value,), 1, args, samples, (promise,), value.device)
        return wrap(made)

    def binary(self, left: Any, right: Any) -> Any:
        """The result for two operands, broadcast against each other."""
        a, b = values = (_operand(left, self.name), _operand(right, self.name))
        device = a.device
        if b.device != device:
            device = self._place((left, right), values)
        samples = None
        if a.batch:
            samples = len(a)
            if not b.batch:
                self._check_shared(right)
            elif len(b) != samples:
                raise messages.batch_sizes_differ(samples, len(b), self.name)
        elif b.batch:
            samples = len(b)
            self._check_shared(left)
        found = self.types[PROMOTED[a.dtype][b.dtype]]
        if found is None:
            raise self._refuse(values)
        dtype, args = found
        ndim, layout = self._join(a.ndim, a.layout, b)
        promise = (dtype, ndim, layout)
        [made] = invoke(self.number, values, 2, args, samples, (promise,), device)
        return wrap(made)

    def ternary(self, first: Any, second: Any, third: Any) -> Any:
        """The result for three operands, broadcast against each other."""
        given = (first, second, third)
        values = tuple([_operand(data, self.name) for data in given])
        samples = self._samples(values)
        a, b, c = values
        found = self.types[PROMOTED[PROMOTED[a.dtype][b.dtype]][c.dtype]]
        if found is None:
            raise self._refuse(values)
        dtype, args = found
        ndim, layout = self._join(a.ndim, a.layout, b)
        promise = (dtype, *self._join(ndim, layout, c))
        device = self._place(given, values)
        [made] = invoke(self.number, values, 3, args, samples, (promise,), device)
        return wrap(made)

    def _samples(self, values: tuple[Value, ...]) -> int | None:
        """The batch size of the operands that are batches; None if there are none."""
        samples = None
        for value in values:
            if value.batch:
                if samples is not None and len(value) != samples:
                    raise messages.batch_sizes_differ(samples, len(value), self.name)
                samples = len(value)
        return samples

    def _check_shared(self, single: Any) -> None:
        """Warn if a random tensor is shared by all samples of a batch."""
        if isinstance(single, Array) and shared_draw.is_marked(single):
            shared_draw.warn(self.name, single)

    def _place(self, given: Iterable[Any], values: Iterable[Value]) -> int:
        """The common device of all operands; plain numbers have none."""
        places = {
            value.device for data, value in zip(given, values, strict=True) if not _is_number(data)
        }
        if len(places) > 1:
            first, second, *_ = sorted(places)
            raise messages.mixed_devices(self.name, device_of(first), device_of(second))
        return places.pop() if places else -1

    def _join(self, ndim: int, layout: str | None, other: Value) -> tuple[int, str | None]:
        """The rank and layout of the result: those of the operand with more dimensions.

        The layout of the other must be a suffix of it.
        """
        other_ndim, other_layout = other.ndim, other.layout
        if other_layout is None:
            return (ndim, layout) if other_ndim <= ndim else (other_ndim, None)
        if layout is None:
            return (ndim, None) if other_ndim < ndim else (other_ndim, other_layout)
        longer, shorter = layout, other_layout
        if other_ndim > ndim:
            longer, shorter = other_layout, layout
        if not longer.endswith(shorter):
            raise RuntimeError(
                f'{self.name}: the layouts "{longer}" and "{shorter}" do not match: one must be '
                "a suffix of the other. Change the layout of an operand with "
                "`as_tensor(x, layout=...)` or `as_batch(x, layout=...)`."
            )
        return len(longer), longer

    def _refuse(self, values: tuple[Value, ...]) -> Exception:
        types = [BY_CODE[value.dtype] for value in values]
        kinds = {dtype.kind for dtype in types}
        names = " and ".join(map(str, types))
        if DType.Kind.enum in kinds:
            why = "Convert enum values with `cast` first."
        elif kinds == {DType.Kind.bool}:
            why = "Convert bool with `cast` first, or use a bitwise operator."
        else:
            why = "It requires integers or bool; convert with `cast` first."
        return RuntimeError(f"{self.name}: not supported for {names}. {why}")


class Selection(Operation):
    """`where`: its first operand is a mask, which has no part in the type of the result."""

    __slots__ = ()

    def ternary(self, mask: Any, a: Any, b: Any) -> Any:
        """The elements of one or the other operand."""
        chooser = _operand(mask, self.name)
        if BY_CODE[chooser.dtype].kind is DType.Kind.float:
            # Converting to bool would round.
            chooser = _NOT_EQUAL.binary(mask, 0)._value
        given = (mask, a, b)
        values = (chooser, first, second) = (
            chooser,
            _operand(a, self.name),
            _operand(b, self.name),
        )
        samples = self._samples(values)
        if samples is not None and not chooser.batch:
            self._check_shared(mask)
        types = {first.dtype, second.dtype}
        if len(types) > 1 and any(BY_CODE[code].kind is DType.Kind.enum for code in types):
            raise self._refuse((first, second))
        dtype, args = self.types[PROMOTED[first.dtype][second.dtype]]  # type: ignore[misc]
        joined = self._join(first.ndim, first.layout, second)
        promise = (dtype, *self._join(*joined, chooser))
        device = self._place(given, values)
        [made] = invoke(self.number, values, 3, args, samples, (promise,), device)
        return wrap(made)


def _is_number(data: Any) -> bool:
    # Not subclasses: NumPy scalars and enum constants have types of their own.
    return type(data) in (bool, int, float)


def _operand(data: Any, owner: str) -> Value:
    if isinstance(data, Array):
        return data._value
    if _is_number(data):
        if isinstance(data, int) and not -(2**31) <= data < 2**31:
            raise messages.integer_overflow(data, signed=True)
        return _core.scalar(data)
    try:
        return single(data)
    except (TypeError, ValueError) as error:
        raise messages.in_operator(owner, error) from None


_ADD = Operation("+", "add", NUMBERS)
_SUBTRACT = Operation("-", "subtract", NUMBERS)
_MULTIPLY = Operation("*", "multiply", NUMBERS_AND_BOOL)
_DIVIDE = Operation("/", "divide", FLOATS)
_QUOTIENT = Operation("//", "quotient", NUMBERS)
_REMAINDER = Operation("%", "remainder", REMAINDERS)
_POWER = Operation("**", "power", NUMBERS)
_AND = Operation("&", "bit_and", BITS)
_OR = Operation("|", "bit_or", BITS)
_XOR = Operation("^", "bit_xor", BITS)
_SHIFT_LEFT = Operation("<<", "shift_left", BITS)
_SHIFT_RIGHT = Operation(">>", "shift_right", BITS)
_EQUAL = Operation("==", "equal", COMPARISONS)
_NOT_EQUAL = Operation("!=", "not_equal", COMPARISONS)
_LESS = Operation("<", "less", COMPARISONS)
_LESS_EQUAL = Operation("<=", "less_equal", COMPARISONS)
_GREATER = Operation(">", "greater", COMPARISONS)
_GREATER_EQUAL = Operation(">=", "greater_equal", COMPARISONS)
_NEGATE = Operation("-", "negate", NUMBERS)
_ABS = Operation("abs", "abs", NUMBERS)
_INVERT = Operation("~", "bit_not", BITS)


class _Bound(Protocol[Made]):
    """A bound operator of Python: with a batch on either side, the result is a batch."""

    @overload
    def __call__(self, other: Batch, /) -> Batch: ...
    @overload
    def __call__(self, other: Any, /) -> Made: ...


class _Binary(Protocol):
    """An operator of Python as a class attribute. For type checkers only, like the others here."""

    def __get__(self, instance: Self, owner: Any = None, /) -> _Bound[Self]: ...


class _Unary(Protocol):
    def __get__(self, instance: Self, owner: Any = None, /) -> Callable[[], Self]: ...


def _unary(operation: Operation) -> _Unary:
    apply = operation.unary

    def method(self):  # type: ignore[no-untyped-def]
        try:
            return apply(self)
        except BaseException as error:
            hide_frames(error)
            raise

    return method


def _binary(operation: Operation) -> _Binary:
    apply = operation.binary

    def method(self, other, /):  # type: ignore[no-untyped-def]
        try:
            return apply(self, other)
        except BaseException as error:
            hide_frames(error)
            raise

    return method


def _reflected(operation: Operation) -> _Binary:
    apply = operation.binary

    def method(self, other, /):  # type: ignore[no-untyped-def]
        try:
            return apply(other, self)
        except BaseException as error:
            hide_frames(error)
            raise

    return method


class Arithmetic(Array):
    """An array with Python's operators, which work element by element."""

    __slots__ = ()

    # Annotated, because pyright would take the types of `__eq__` and `__ne__` from `object`.

    def __pos__(self: Self) -> Self:
        return self

    __neg__: _Unary = _unary(_NEGATE)
    __invert__: _Unary = _unary(_INVERT)
    if TYPE_CHECKING:  # `abs` asks for a method: pyright doesn't accept a descriptor

        def __abs__(self: Self) -> Self: ...

    else:
        __abs__ = _unary(_ABS)

    __add__: _Binary = _binary(_ADD)
    __radd__: _Binary = _reflected(_ADD)
    __sub__: _Binary = _binary(_SUBTRACT)
    __rsub__: _Binary = _reflected(_SUBTRACT)
    __mul__: _Binary = _binary(_MULTIPLY)
    __rmul__: _Binary = _reflected(_MULTIPLY)
    __truediv__: _Binary = _binary(_DIVIDE)
    __rtruediv__: _Binary = _reflected(_DIVIDE)
    __floordiv__: _Binary = _binary(_QUOTIENT)
    __rfloordiv__: _Binary = _reflected(_QUOTIENT)
    __mod__: _Binary = _binary(_REMAINDER)
    __rmod__: _Binary = _reflected(_REMAINDER)
    __pow__: _Binary = _binary(_POWER)
    __rpow__: _Binary = _reflected(_POWER)
    __and__: _Binary = _binary(_AND)
    __rand__: _Binary = _reflected(_AND)
    __or__: _Binary = _binary(_OR)
    __ror__: _Binary = _reflected(_OR)
    __xor__: _Binary = _binary(_XOR)
    __rxor__: _Binary = _reflected(_XOR)
    __lshift__: _Binary = _binary(_SHIFT_LEFT)
    __rlshift__: _Binary = _reflected(_SHIFT_LEFT)
    __rshift__: _Binary = _binary(_SHIFT_RIGHT)
    __rrshift__: _Binary = _reflected(_SHIFT_RIGHT)

    __eq__: _Binary = _binary(_EQUAL)  # type: ignore[assignment]
    __ne__: _Binary = _binary(_NOT_EQUAL)  # type: ignore[assignment]
    __lt__: _Binary = _binary(_LESS)
    __le__: _Binary = _binary(_LESS_EQUAL)
    __gt__: _Binary = _binary(_GREATER)
    __ge__: _Binary = _binary(_GREATER_EQUAL)

    # `==` compares elements.
    __hash__: ClassVar[None] = None


for _name, _method in vars(Arithmetic).items():
    if isinstance(_method, FunctionType):
        _method.__name__, _method.__qualname__ = _name, f"Arithmetic.{_name}"
