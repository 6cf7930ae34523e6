"""A call of an operator: inputs and arguments are checked and converted, then it is submitted."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock import _core
from penstock._errors import bad_samples, messages
from penstock._operators import public_function, shared_draw
from penstock._operators.arguments import CONVERSIONS, REQUIRED, Argument
from penstock._operators.constraints import parse as constraints_of
from penstock._operators.results import Result, in_frames
from penstock._operators.submit import invoke
from penstock._runtime.device import device as to_device
from penstock._state.rng import RNG, get_default_rng
from penstock._values.array import Array, wrap
from penstock._values.conversion import LARGEST_BATCH, single
from penstock._values.dtype import DType

if TYPE_CHECKING:
    from penstock._core import Value


class Options(NamedTuple):
    """The arguments of `@operator`, which documents them."""

    layouts: tuple[str, ...]
    kernel: str
    devices: tuple[str, ...]
    also_in: str = ""
    in_dali: bool = True
    random: bool = False
    can_change_device: bool = False
    makes_frames: bool = False
    can_skip_bad_samples: bool = False
    convert_input: Callable[[Any], Any] | None = None


class Operator:
    """A definition, ready to be called."""

    common = True
    """Whether it takes the keywords that most operators share: `batch_size` and `device`."""

    def __init__(self, name: str, function: Callable[..., Any], options: Options) -> None:
        code = function.__code__
        named = code.co_argcount + code.co_kwonlyargcount
        hints = typing.get_type_hints(function, include_extras=True)
        self.name = name
        self.definition = function
        self.options = options
        self.inputs = code.co_varnames[: code.co_argcount]
        self.variadic = code.co_varnames[named] if code.co_flags & 0x04 else None
        self.optional = len(function.__defaults__ or ())
        defaults = function.__kwdefaults__ or {}
        self.arguments = tuple(
            _argument(key, hints[key], defaults.get(key, REQUIRED))
            for key in code.co_varnames[code.co_argcount : named]
        )
        self.input_constraints = {
            name: found.constraints
            for name in (*self.inputs, *([self.variadic] if self.variadic else []))
            if (found := constraints_of(hints[name])).constraints
        }
        self.kernel_arguments = tuple(_core.kernel_arguments(options.kernel))
        # Arguments of the kernel that come from the call, not from the definition.
        self._from_call = {"rng", "batch_size", "dtype"}.intersection(self.kernel_arguments)
        self.number = _core.register(name, options.kernel)
        self.function = self._make_function()
        self._by_rank = {len(layout): layout for layout in reversed(options.layouts)}
        self._defaults: tuple[dict[str, Any], dict[str, Any]] | None = None
        # Looked up in every call.
        self._makes_frames = options.makes_frames
        self._is_random = options.random
        self._required = [each.name for each in self.arguments if each.default is REQUIRED]

    @property
    def keywords(self) -> list[str]:
        """The names of all keywords, the shared ones first."""
        own = (argument.name for argument in self.arguments)
        return ["batch_size", "device", *own, *self.extra_keywords]

    @property
    def extra_keywords(self) -> list[str]:
        """Keywords that come with an option of `@operator`."""
        more = ["rng"] if self.options.random else []
        return more + (["on_error", "along"] if self.options.can_skip_bad_samples else [])

    def call(
        self,
        inputs: tuple[Any, ...],
        given: tuple[Any, ...] | None,
        batch_size: Any,
        device: Any,
        rng: Any = None,
        on_error: Any = None,
        along: Any = None,
    ) -> Any:
        """Check a call and submit it; `given` is None when no argument was given."""
        skips = (on_error is not None or along is not None) and bad_samples.check(
            self.name, on_error, along, inputs[0]
        )
        samples: int | None = None
        place = -1
        arrays: list[Array | None] = []
        values: list[Value] = []
        for position, data in enumerate(inputs):
            if not isinstance(data, Array):
                if data is None and self._is_optional(position):
                    arrays.append(None)
                    continue
                data = self._input(position, data)
            value = data._value
            if value.batch:
                samples = self._same_size(samples, len(value))
            if value.device > place:
                place = value.device
            arrays.append(data)
            values.append(value)
        data_inputs = len(values)
        layout = self._check_layout(values[0]) if self._by_rank and values else None
        arguments, args = self._defaults or self._convert_defaults()
        if given is not None:
            arguments, args = arguments.copy(), args.copy()
            samples = self._convert(given, arguments, args, values, samples)
        elif self._required:
            raise messages.missing_argument(self.name, self._required[0])
        if samples is None:
            if batch_size is not None:
                samples = self._check_batch_size(batch_size)
            elif isinstance(rng, RNG):
                samples = rng._size
        if device is not None or place >= 0:
            place = self._check_device(device, place)
        if self.input_constraints:
            self._check_inputs(arrays)
        results = self.definition(*arrays, **arguments)
        if isinstance(results, Result):
            results = (results,)
        derived = results[0].kernel
        for key, item in derived.items():
            if isinstance(item, Array):
                derived[key] = [len(values)]
                values.append(item._value)
        if self._from_call:
            args = {**args, **self._call_arguments(results[0], values, samples, batch_size, rng)}
        promises = [result.promise(layout) for result in results]
        if self._makes_frames and any(map(_is_sequence, values)):
            promises = list(map(in_frames, promises))
        made = invoke(
            self.number,
            values,
            data_inputs,
            tuple([derived[key] if key in derived else args[key] for key in self.kernel_arguments]),
            samples,
            promises,
            place,
            layout,
            not skips,
        )
        if skips:
            return bad_samples.drop_or_replace(made, inputs[0], on_error, along)
        if self._is_random and samples is None and not data_inputs:
            return shared_draw.mark(wrap(made[0]), self.name)
        return wrap(made[0]) if len(made) == 1 else tuple(map(wrap, made))

    def _call_arguments(
        self,
        result: Result,
        values: list[Value],
        samples: int | None,
        batch_size: Any,
        rng: Any,
    ) -> dict[str, Any]:
        """The kernel arguments that come from the call. Last of all checks, because it draws."""
        made: dict[str, Any] = {}
        if "dtype" in self._from_call and result.dtype is not None:
            made["dtype"] = result.dtype._code
        if "batch_size" in self._from_call:
            if samples is None and "rng" in self._from_call:
                raise messages.needs_batch_size(self.name)
            made["batch_size"] = samples
        if "rng" in self._from_call:
            if rng is not None and not isinstance(rng, RNG):
                raise messages.not_an_rng(self.name, rng)
            if batch_size is not None and batch_size != samples:
                raise messages.batch_sizes_differ(batch_size, samples or 0, self.name)
            source = get_default_rng() if rng is None else rng
            made["rng"] = source._draw_for(self.name, values, samples)
        return made

    def _is_optional(self, position: int) -> bool:
        return len(self.inputs) - self.optional <= position < len(self.inputs)

    def _input(self, position: int, data: Any) -> Array:
        name = self.inputs[position] if position < len(self.inputs) else self.variadic
        if data is None:
            raise messages.missing_input(self.name, name or "")
        try:
            data = data if self.options.convert_input is None else self.options.convert_input(data)
            made: Array = data if isinstance(data, Array) else wrap(single(data))
        except (TypeError, ValueError) as error:
            raise messages.in_operator(self.name, error, name) from None
        return made

    def _check_layout(self, value: Value) -> str | None:
        """The layout of the input, or the one assumed for it."""
        layout = value.layout
        if layout is None:
            layout = self._by_rank.get(value.ndim)
            if layout is None:
                raise messages.wrong_rank(self.name, value.ndim, self.options.layouts)
        elif layout not in self.options.layouts:
            raise messages.wrong_layout(self.name, layout, self.options.layouts)
        return layout

    def _check_inputs(self, arrays: list[Array | None]) -> None:
        for position, data in enumerate(arrays):
            name = self.inputs[position] if position < len(self.inputs) else self.variadic
            if data is not None and name is not None:
                for constraint in self.input_constraints.get(name, ()):
                    constraint.check(self.name, name, data)

    def _same_size(self, samples: int | None, size: int) -> int:
        if samples is not None and samples != size:
            raise messages.batch_sizes_differ(samples, size, self.name)
        return size

    def _check_batch_size(self, batch_size: Any) -> int:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int):
            raise messages.bad_batch_size(self.name, batch_size, LARGEST_BATCH)
        if not 0 < batch_size <= LARGEST_BATCH:
            raise messages.bad_batch_size(self.name, batch_size, LARGEST_BATCH)
        return batch_size

    def _check_device(self, device: Any, place: int) -> int:
        """Where to run: on the device asked for, else on a gpu if an input is there."""
        if device is not None:
            try:
                asked = to_device(device)
            except (TypeError, ValueError) as error:
                raise messages.in_operator(self.name, error, "device") from None
            assert asked is not None
            if asked._code < 0 <= place and not self.options.can_change_device:
                raise messages.gpu_input_on_cpu(self.name)
            place = asked._code
        if place >= 0 and "gpu" not in self.options.devices:
            raise messages.not_on_gpu(self.name)
        return place

    def _convert_defaults(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments of a call that gives none, for definition and kernel; converted once."""
        arguments: dict[str, Any] = {}
        args: dict[str, Any] = {}
        for argument in self.arguments:
            item = argument.default
            if item is not None and item is not REQUIRED:
                item = argument.read(self.name, item)
            arguments[argument.name] = item
            args[argument.name] = item._code if type(item) is DType else item
        self._defaults = arguments, args
        return self._defaults

    def _convert(
        self,
        given: tuple[Any, ...],
        arguments: dict[str, Any],
        args: dict[str, Any],
        values: list[Value],
        samples: int | None,
    ) -> int | None:
        """Convert what is given, into `arguments` for the definition and `args` for the kernel.

        Both hold the defaults already. Tensors and batches are appended to `values`. Returns the
        number of samples.
        """
        shared: tuple[str, Array] | None = None
        for argument, item in zip(self.arguments, given, strict=True):
            name = argument.name
            if item is None:
                if argument.default is REQUIRED:
                    raise messages.missing_argument(self.name, name)
                continue
            item = argument.read(self.name, item)
            for constraint in argument.constraints:
                constraint.check(self.name, name, item)
            arguments[name] = item
            if isinstance(item, Array):
                value = item._value
                if value.batch:
                    samples = self._same_size(samples, len(value))
                elif shared_draw.is_marked(item):
                    shared = name, item
                args[name] = [len(values)]
                values.append(value)
            else:
                args[name] = item._code if type(item) is DType else item
        if shared is not None and samples is not None:
            shared_draw.warn(self.name, shared[1], shared[0])
        return samples

    def _make_function(self) -> Callable[..., Any]:
        return public_function.compiled(self)


def _is_sequence(value: Value) -> bool:
    return (value.layout or "").startswith("F")


def _argument(name: str, hint: Any, default: Any) -> Argument:
    kinds, constraints = constraints_of(hint)
    kind = next(kind for kind in kinds if kind is not Array)
    convert, wanted = CONVERSIONS[kind]
    return Argument(name, kind, default, convert, wanted, Array in kinds, constraints)
