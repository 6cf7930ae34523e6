"""Arguments of operators: their kinds, and how they are converted for kernels."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NewType

import numpy as np

from penstock import _core
from penstock._errors import messages
from penstock._operators.constraints import Constraint
from penstock._operators.submit import settle
from penstock._values import dali
from penstock._values.array import Array, wrap
from penstock._values.conversion import single
from penstock._values.dtype import DType
from penstock._values.dtype import dtype as to_dtype
from penstock.types import DALIInterpType

Ints = NewType("Ints", tuple[int, ...])
"""Integers: one, or a list of them."""

Floats = NewType("Floats", tuple[float, ...])
"""Numbers: one, or a list of them, nested in any way."""

Matrix = NewType("Matrix", tuple[float, ...])
"""A number, or an array whose shape matters: lists and arrays become tensors."""

Interp = NewType("Interp", int)
"""An interpolation: a constant such as `types.INTERP_CUBIC`, or its name, "cubic"."""

REQUIRED: Any = ...
"""The default of an argument that must be given."""

KEEP: Any = "<keep>"
"""Stands for the input's layout."""


class Argument(NamedTuple):
    """One keyword of an operator."""

    name: str
    kind: Any
    default: Any
    convert: Callable[[Any], Any]
    wanted: str
    per_sample: bool
    constraints: tuple[Constraint, ...] = ()

    def read(self, owner: str, item: Any) -> Any:
        """Convert the argument for definition and kernel; arrays are values per sample."""
        if not isinstance(item, _PLAIN):
            if isinstance(item, Array):
                if self.per_sample:
                    return item
                # Its number would be taken otherwise, after a wait for it.
                raise messages.wrong_argument(owner, self.name, item, self.wanted)
            item = dali.constant(item)
            is_plain = isinstance(item, _PLAIN) or self.kind in (Ints, Floats)
            if self.per_sample and not is_plain:
                return self._array(owner, item)
        try:
            return self.convert(item)
        except OverflowError:
            raise messages.argument_overflow(owner, self.name, item, self.wanted) from None
        except TypeError:
            if self.per_sample and not isinstance(item, str):
                return self._array(owner, item)
            raise messages.wrong_argument(owner, self.name, item, self.wanted) from None
        except ValueError as error:
            raise messages.in_operator(owner, error, self.name) from None

    def _array(self, owner: str, item: Any) -> Any:
        """An array of another library: one value for all samples."""
        try:
            return wrap(single(item))
        except TypeError:
            raise messages.wrong_argument(owner, self.name, item, self.wanted) from None
        except ValueError as error:
            raise messages.in_operator(owner, error, self.name) from None


_PLAIN = (bool, int, float, str)


def _integer(item: Any) -> int:
    if isinstance(item, float):
        # Truncated, as by DALI.
        number = int(item) if math.isfinite(item) else 2**63
    else:
        number = operator.index(item)
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


def _real(item: Any) -> float:
    if isinstance(item, str | bytes | bytearray):
        raise TypeError
    return float(item)


def _truth(item: Any) -> int:
    if not isinstance(item, bool | int | float | np.bool_):
        raise TypeError
    return int(bool(item))


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise TypeError
    return item


_INTERPOLATIONS = {
    name.removeprefix("INTERP_").lower(): int(item)
    for name, item in DALIInterpType.__members__.items()
}


def _interpolation(item: Any) -> int:
    if not isinstance(item, str):
        return _integer(item)
    number = _INTERPOLATIONS.get(item.lower().removeprefix("interp_"))
    if number is None:
        names = ", ".join(map(repr, _INTERPOLATIONS))
        raise ValueError(f"{item!r} is not an interpolation; there are {names}.")
    return number


def _dtype(item: Any) -> DType:
    if item is float or item is int:
        raise ValueError(f"Python's {item.__name__} does not say how many bits; use a DType.")
    if type(item) is int:
        return DType.from_type_id(item)
    return to_dtype(item)


def _flat(item: Any) -> Iterable[Any]:
    """The numbers of lists and arrays, nested in any way."""
    if hasattr(item, "tolist"):
        # Arrays of any library, and their scalars.
        item = item.tolist()
    if isinstance(item, list | tuple | range):
        for part in item:
            yield from _flat(part)
    else:
        yield item


def _integers(item: Any) -> tuple[int, ...]:
    # The usual case is fast in native code, also for long lists.
    return _core.integers(item) or tuple(_integer(part) for part in _flat(item))


def _reals(item: Any) -> tuple[float, ...]:
    return _core.reals(item) or tuple(_real(part) for part in _flat(item))


CONVERSIONS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (_integer, "an integer"),
    float: (_real, "a number"),
    bool: (_truth, "True or False"),
    str: (_text, "a string"),
    DType: (_dtype, "an element type such as `float32`"),
    Ints: (_integers, "an integer or a list of them"),
    Floats: (_reals, "a number or a list of them"),
    Matrix: (_real, "a number or a matrix"),
    Interp: (_interpolation, "an interpolation such as `types.INTERP_CUBIC` or 'cubic'"),
}
"""For each kind of argument, its conversion and what errors call it."""


def entries(numbers: tuple[float, ...] | Array) -> int:
    """The number of elements that an argument has for a sample. Waits for unfinished ones."""
    if isinstance(numbers, tuple):
        return len(numbers)
    value = numbers._value
    settle(value)
    return math.prod(value.shape(0)) if len(value) else 1


def same_for_all(operator: str, name: str, numbers: tuple[int, ...] | Array) -> tuple[int, ...]:
    """The integers of an argument that may come as an array but can't differ between samples."""
    if isinstance(numbers, tuple):
        return numbers
    samples = list(numbers) if numbers._value.batch else [numbers]  # type: ignore[call-overload]
    found = {tuple(np.rint(np.asarray(sample)).astype(int).flat) for sample in samples}
    if len(found) != 1:
        raise messages.bad_argument(operator, name, "must be the same for all samples")
    return tuple(map(int, found.pop()))
