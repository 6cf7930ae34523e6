"""What a definition demands of its arguments and inputs, as parts of their annotations.

    ratio: Annotated[PerSample[float], Between(1, None)]

Checks at the call, their messages, stubs and reference pages follow from these. Numbers that come
as a tensor or a batch are not known at the call: the kernel checks those.
"""

from __future__ import annotations

import math
import types
import typing
from types import EllipsisType
from typing import Annotated, Any, NamedTuple, Union

from penstock._errors import messages
from penstock._values.array import Array
from penstock._values.dtype import DType

_UNIONS = (Union, types.UnionType)


class Constraint:
    """A condition on an argument or an input."""

    def check(self, operator: str, name: str, item: Any) -> None:
        """Raise an error that names operator and argument if the condition isn't met."""
        raise NotImplementedError

    def described(self) -> str:
        """The condition, for the reference."""
        raise NotImplementedError


class Between(Constraint):
    """A number, or each of several, within limits, which are included. None is no limit."""

    def __init__(self, low: float | None, high: float | None) -> None:
        self.low = -math.inf if low is None else low
        self.high = math.inf if high is None else high

    def check(self, operator: str, name: str, item: Any) -> None:
        """Look at numbers that are known; tensors and batches are checked by the kernel."""
        if isinstance(item, Array):
            return
        numbers = item if isinstance(item, tuple) else (item,)
        if not all(self.low <= number <= self.high for number in numbers):
            beyond = next(number for number in numbers if not self.low <= number <= self.high)
            raise messages.out_of_range(operator, name, self._limits(), beyond)

    def described(self) -> str:
        """The limits."""
        return self._limits()

    def _limits(self) -> str:
        if self.high == math.inf:
            return f"at least {self.low}"
        if self.low == -math.inf:
            return f"at most {self.high}"
        return f"between {self.low} and {self.high}"


class OneOf(Constraint):
    """One of some strings or constants."""

    def __init__(self, *choices: Any, ignore_case: bool = False) -> None:
        self.choices = choices
        self.ignore_case = ignore_case
        self._known = frozenset(choices)

    def check(self, operator: str, name: str, item: Any) -> None:
        """Look at what is known at the call."""
        if isinstance(item, Array) or item in self._known:
            return
        if not (self.ignore_case and item.lower() in self._known):
            raise messages.not_one_of(operator, name, self._shown(), item)

    def described(self) -> str:
        """The choices."""
        return f"one of {', '.join(self._shown())}"

    def _shown(self) -> list[str]:
        return [
            f'"{each}"' if isinstance(each, str) else f"types.{each.name}" for each in self.choices
        ]


class Elements(Constraint):
    """The element type of data, or the type that an argument such as `dtype` names."""

    def __init__(self, wanted: str, *allowed: DType.Kind | DType) -> None:
        self.wanted = wanted
        self.allowed = allowed

    def check(self, operator: str, name: str, item: Any) -> None:
        """Look at the type, which is known of all data."""
        is_data = isinstance(item, Array)
        dtype = item.dtype if is_data else item
        if dtype not in self.allowed and dtype.kind not in self.allowed:
            problem = messages.wrong_elements if is_data else messages.wrong_type
            raise problem(operator, name, self.wanted, dtype)

    def described(self) -> str:
        """The types."""
        return f"of {self.wanted}"


class Rank(Constraint):
    """How many dimensions data has, at least and at most; None is no limit."""

    def __init__(self, least: int, most: int | None) -> None:
        self.least = least
        self.most = most

    def check(self, operator: str, name: str, item: Any) -> None:
        """Look at tensors and batches; lists of numbers have no other rank."""
        if isinstance(item, Array):
            ndim = item.ndim
            if ndim < self.least or (self.most is not None and ndim > self.most):
                raise messages.wrong_ndim(operator, name, self.least, self.most, ndim)

    def described(self) -> str:
        """The limits."""
        return messages.dimensions(self.least, self.most)


class Shape(Constraint):
    """The extents of data: numbers, None for any, and `...` for any number of dimensions.

    Samples that are still being made have no shape at the call; the kernel checks it for those.
    """

    def __init__(self, *extents: int | EllipsisType | None) -> None:
        self.extents = extents

    def check(self, operator: str, name: str, item: Any) -> None:
        """Look at data whose samples are known to have one shape."""
        value = item._value
        is_known = value.uniform if value.batch else value.finished and value.wait() is None
        if is_known and len(value) and not self._fits(value.shape(0)):
            raise messages.wrong_shape(operator, name, self._shown(), value.shape(0))

    def described(self) -> str:
        """The extents."""
        return f"of shape {self._shown()}"

    def _fits(self, shape: tuple[int, ...]) -> bool:
        wanted = list(self.extents)
        if ... in wanted:
            at = wanted.index(...)
            wanted[at : at + 1] = [None] * (len(shape) - len(wanted) + 1)
        return len(wanted) == len(shape) and all(
            extent is None or extent == found for extent, found in zip(wanted, shape, strict=True)
        )

    def _shown(self) -> str:
        names = (
            "..." if each is ... else "any" if each is None else str(each) for each in self.extents
        )
        return f"({', '.join(names)})"


class Frames(Constraint):
    """A sequence: at least two dimensions, of which the first counts frames."""

    def check(self, operator: str, name: str, item: Any) -> None:
        """Look at rank and layout."""
        if item.ndim < 2:
            raise messages.wrong_ndim(operator, name, 2, None, item.ndim)
        if item.layout is not None and not item.layout.startswith("F"):
            raise messages.no_frames(operator, name, item.layout)

    def described(self) -> str:
        """What is meant."""
        return "a sequence, frames first"


NUMBERS = Elements("numbers", DType.Kind.signed, DType.Kind.unsigned, DType.Kind.float)
INTEGERS = Elements("integers", DType.Kind.signed, DType.Kind.unsigned)
FLOATS = Elements("floats", DType.Kind.float)


class Annotation(NamedTuple):
    """An annotation taken apart."""

    kinds: tuple[Any, ...]
    constraints: tuple[Constraint, ...]


def parse(hint: Any) -> Annotation:
    """The types that an annotation allows, without None, and its constraints."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        inner = parse(args[0])
        own = tuple(each for each in args[1:] if isinstance(each, Constraint))
        return Annotation(inner.kinds, inner.constraints + own)
    if origin in _UNIONS:
        parts = [parse(arg) for arg in args]
        return Annotation(
            tuple(kind for part in parts for kind in part.kinds),
            tuple(each for part in parts for each in part.constraints),
        )
    return Annotation(() if hint is type(None) else (hint,), ())
