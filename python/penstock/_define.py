"""Operator definitions: from a Python function to what users call.

A definition is the one place that says what an operator takes: its signature, which arguments may
differ from sample to sample, the layouts it accepts, and, in its body, what is known of the result
at the call. `@operator` makes the public function of it: that binds its arguments as any Python
function, checks and converts them, and submits the kernel of the same name.
"""

from __future__ import annotations

import math
import os
import typing
from collections.abc import Callable
from operator import index as operator_index
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from penstock import _core, _errors
from penstock._array import Array, wrap
from penstock._convert import single
from penstock._device import device as to_device
from penstock._dtype import DType
from penstock._dtype import dtype as to_dtype
from penstock._invoke import invoke

if TYPE_CHECKING:
    from penstock._core import Promise, Value

T = TypeVar("T")

Data: TypeAlias = Any
"""An input: a Tensor, a Batch, or anything that `as_tensor` takes."""

PerSample: TypeAlias = T | Array
"""An argument that may be a batch with a value for each sample, or a tensor with one for all."""

REQUIRED: Any = ...
"""The default of an argument that must be given."""

OPERATORS: dict[str, Operator] = {}
"""All operators by the name that users call them by."""


class Like(NamedTuple):
    """A result that is like an input but for what is said."""

    input: Array
    dtype: DType | None = None

    def promise(self, layout: str | None) -> Promise:
        """Element type, dimensions and layout of the result."""
        value = self.input._value
        dtype = value.dtype if self.dtype is None else self.dtype._code
        return dtype, value.ndim, value.layout or layout


class Argument(NamedTuple):
    """One keyword of an operator."""

    name: str
    default: Any
    convert: Callable[[Any], Any]
    wanted: str
    per_sample: bool


def operator(*, layouts: str = "") -> Callable[[Callable[..., Like]], Callable[..., Any]]:
    """Make a definition into an operator.

    Args:
        layouts: The layouts that the first input may have, in order of preference: an input
            without layout gets the first that has as many dimensions. None means any.
    """

    def define(definition: Callable[..., Like]) -> Callable[..., Any]:
        made = Operator(definition, tuple(layouts.split()))
        OPERATORS[made.name] = made
        return made.function

    return define


class Operator:
    """A definition, ready to be called."""

    def __init__(self, definition: Callable[..., Like], layouts: tuple[str, ...]) -> None:
        code = definition.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        defaults = definition.__kwdefaults__ or {}
        hints = typing.get_type_hints(definition)
        self.name = definition.__name__
        self.definition = definition
        self.inputs = names[: code.co_argcount]
        self.arguments = tuple(
            _argument(name, hints[name], defaults.get(name, REQUIRED))
            for name in names[code.co_argcount :]
        )
        self.layouts = layouts
        self.number = _core.register(self.name, self.name)
        self.function = self._make_function()
        self._by_rank = {len(layout): layout for layout in reversed(layouts)}
        self._ready: tuple[dict[str, Any], list[Any]] | None = None

    def call(
        self, inputs: tuple[Any, ...], given: tuple[Any, ...] | None, batch_size: Any, device: Any
    ) -> Any:
        """Check a call and submit it; `given` is None when no argument was given."""
        samples: int | None = None
        place = -1
        arrays = []
        values: list[Value] = []
        for position, data in enumerate(inputs):
            if not isinstance(data, Array):
                data = self._input(position, data)
            value = data._value
            if value.batch:
                samples = self._same_size(samples, len(value))
            if value.device > place:
                place = value.device
            arrays.append(data)
            values.append(value)
        layout = self._check_layout(values[0]) if self.layouts else None
        if given is None:
            known, args = self._defaults()
        else:
            known, args = {}, []
            samples = self._arguments(given, known, args, values, samples)
        if batch_size is not None and samples is None:
            samples = self._check_batch_size(batch_size)
        if device is not None:
            place = self._check_device(device, place)
        promise = self.definition(*arrays, **known).promise(layout)
        [made] = invoke(
            self.number, values, len(inputs), tuple(args), samples, (promise,), place, layout
        )
        return wrap(made)

    def _defaults(self) -> tuple[dict[str, Any], list[Any]]:
        """The arguments of a call that gives none, worked out once."""
        if self._ready is None:
            known: dict[str, Any] = {}
            args: list[Any] = []
            self._arguments((None,) * len(self.arguments), known, args, [], None)
            self._ready = known, args
        return self._ready

    def _arguments(
        self,
        given: tuple[Any, ...],
        known: dict[str, Any],
        args: list[Any],
        values: list[Value],
        samples: int | None,
    ) -> int | None:
        """Convert the arguments, for the definition and for the kernel.

        Those that come as tensors or batches join `values`; the number of samples is returned.
        """
        for argument, item in zip(self.arguments, given, strict=True):
            if item is None:
                item = argument.default
                if item is REQUIRED:
                    raise _errors.missing_argument(self.name, argument.name)
            if argument.per_sample:
                item = self._per_sample(argument, item)
                if isinstance(item, Array):
                    value = item._value
                    if value.batch:
                        samples = self._same_size(samples, len(value))
                    args.append([len(values)])
                    values.append(value)
                    known[argument.name] = item
                    continue
            else:
                item = self._convert(argument, item)
            known[argument.name] = item
            args.append(item._code if type(item) is DType else item)
        return samples

    def _input(self, position: int, data: Any) -> Array:
        if data is None:
            raise _errors.missing_input(self.name, self.inputs[position])
        made: Array = wrap(single(data))
        return made

    def _check_layout(self, value: Value) -> str | None:
        """The layout that the input has or is taken to have."""
        layout = value.layout
        if layout is None:
            layout = self._by_rank.get(value.ndim)
            if layout is None:
                raise _errors.wrong_rank(self.name, value.ndim, self.layouts)
        elif layout not in self.layouts:
            raise _errors.wrong_layout(self.name, layout, self.layouts)
        return layout

    def _same_size(self, samples: int | None, size: int) -> int:
        if samples is not None and samples != size:
            raise _errors.batch_sizes_differ(samples, size, self.name)
        return size

    def _check_batch_size(self, batch_size: Any) -> int:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise _errors.bad_batch_size(self.name, batch_size)
        return batch_size

    def _check_device(self, device: Any, place: int) -> int:
        asked = to_device(device)
        assert asked is not None
        if asked._code < 0 <= place:
            raise _errors.gpu_input_on_cpu(self.name)
        return asked._code

    def _per_sample(self, argument: Argument, item: Any) -> Any:
        """A number for all samples, or an array that has one for each."""
        if isinstance(item, Array):
            return item
        if isinstance(item, bool | int | float):
            return self._convert(argument, item)
        if isinstance(item, str):
            raise _errors.wrong_argument(self.name, argument.name, item, argument.wanted)
        try:
            return wrap(single(item))
        except TypeError:
            raise _errors.wrong_argument(self.name, argument.name, item, argument.wanted) from None

    def _convert(self, argument: Argument, item: Any) -> Any:
        try:
            return argument.convert(item)
        except OverflowError:
            raise _errors.argument_overflow(
                self.name, argument.name, item, argument.wanted
            ) from None
        except TypeError:
            raise _errors.wrong_argument(self.name, argument.name, item, argument.wanted) from None

    def _make_function(self) -> Callable[..., Any]:
        """The public function. It is written out, so that Python itself binds the call."""
        inputs = ", ".join(self.inputs)
        names = ["batch_size", "device", *(argument.name for argument in self.arguments)]
        keywords = ", ".join(f"{name}=None" for name in names)
        given = "".join(f"{argument.name}, " for argument in self.arguments)
        absent = " and ".join(f"{argument.name} is None" for argument in self.arguments) or "True"
        source = f"""
def {self.name}({inputs}, /, *, {keywords}, **unknown):
    if unknown:
        raise unknown_argument("{self.name}", unknown, names)
    return call(({inputs},), None if {absent} else ({given}), batch_size, device)
"""
        scope: dict[str, Any] = {
            "__name__": self.definition.__module__,
            "unknown_argument": _errors.unknown_argument,
            "names": names,
            "call": self.call,
        }
        # A file name inside of the package, for the search of the user's line to pass over.
        file = os.path.join(os.path.dirname(__file__), f"<{self.name}>")
        exec(compile(source, file, "exec"), scope)
        function: Callable[..., Any] = scope[self.name]
        function.__doc__ = self.definition.__doc__
        function.__module__ = self.definition.__module__
        return function


def _argument(name: str, hint: Any, default: Any) -> Argument:
    kinds = typing.get_args(hint) if Array in typing.get_args(hint) else (hint,)
    convert, wanted = _CONVERSIONS[kinds[0]]
    return Argument(name, default, convert, wanted, Array in kinds)


def _integer(item: Any) -> int:
    if isinstance(item, float):
        # Cut off, as in the reference.
        number = int(item) if math.isfinite(item) else 2**63
    else:
        number = operator_index(item)
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


def _dtype(item: Any) -> DType:
    if item is float or item is int:
        raise ValueError(f"Python's {item.__name__} does not say how many bits; use a DType.")
    if type(item) is int:
        return DType.from_type_id(item)
    return to_dtype(item)


_CONVERSIONS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (_integer, "an integer"),
    DType: (_dtype, "an element type such as `float32`"),
}
