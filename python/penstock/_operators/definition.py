"""Operator definitions: from a Python function to what users call.

A definition is the one place that says what an operator takes: its signature, which arguments may
differ from sample to sample, the layouts it accepts, and, in its body, what is known of the result
at the call. `@operator` makes the public function of it: that binds its arguments as any Python
function, checks and converts them, and submits the kernel.

The kernel gets the arguments that it names. A definition may take others, from which its body
works out what the kernel needs: `return Like(input, axes=found)` passes `axes` on. That may be a
tensor or a batch as well, the result of another call, which the kernel then gets per sample. A
kernel that names `dtype`, `batch_size` or `rng` gets the type that the body said, the number of
samples, and what to draw from.
"""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

from penstock import _core
from penstock._errors import bad_samples, messages
from penstock._errors.tracebacks import hide_frames
from penstock._operators import shared_draw
from penstock._operators.arguments import CONVERSIONS, KEEP, REQUIRED, Argument
from penstock._operators.submit import invoke
from penstock._runtime.device import device as to_device
from penstock._state.rng import RNG, get_default_rng
from penstock._values.array import Array, wrap
from penstock._values.conversion import LARGEST_BATCH, single
from penstock._values.dtype import DType

if TYPE_CHECKING:
    from penstock._core import Promise, Value

T = TypeVar("T")

Data: TypeAlias = Any
"""An input: a Tensor, a Batch, or anything that `as_tensor` takes."""

PerSample: TypeAlias = T | Array
"""An argument that may be a batch with a value for each sample, or a tensor with one for all."""

OPERATORS: dict[str, Operator] = {}
"""All operators by the name that users call them by."""


class Result:
    """What is known of a result at the call, and what else the kernel is told.

    Args:
        dtype: The type of its elements; None when only the data tells.
        ndim: How many dimensions it has; None when only the data tells.
        layout: Its layout; None for none.
        kernel: Arguments of the kernel that the body has worked out.
    """

    __slots__ = ("dtype", "kernel", "layout", "ndim")

    def __init__(
        self, dtype: DType | None, ndim: int | None, layout: str | None = None, **kernel: Any
    ) -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.layout = layout
        self.kernel = kernel

    def promise(self, layout: str | None) -> Promise:
        """Element type, dimensions and layout, for the engine."""
        return None if self.dtype is None else self.dtype._code, self.ndim, self.layout


class Like(Result):
    """A result that is like an input but for what is said."""

    __slots__ = ("input",)

    def __init__(
        self,
        input: Array,
        dtype: DType | None = None,
        ndim: int | None = None,
        layout: str | None = KEEP,
        **kernel: Any,
    ) -> None:
        # Not by `super`, which would pack and unpack `kernel` once more in every call.
        self.dtype = dtype
        self.ndim = ndim
        self.layout = layout
        self.kernel = kernel
        self.input = input

    def promise(self, layout: str | None) -> Promise:
        """Element type, dimensions and layout; `layout` is what the input is taken to have."""
        value = self.input._value
        return (
            value.dtype if self.dtype is None else self.dtype._code,
            value.ndim if self.ndim is None else self.ndim,
            (value.layout or layout) if self.layout is KEEP else self.layout,
        )


class Definition(NamedTuple):
    """What `@operator` says beside the function."""

    layouts: tuple[str, ...]
    kernel: str
    devices: tuple[str, ...]
    random: bool = False
    crosses: bool = False
    makes_frames: bool = False
    sifts: bool = False
    takes: Callable[[Any], Any] | None = None


def operator(
    *,
    layouts: str = "",
    namespace: str = "",
    kernel: str = "",
    devices: str = "cpu gpu",
    random: bool = False,
    crosses: bool = False,
    makes_frames: bool = False,
    sifts: bool = False,
    takes: Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a definition into an operator.

    Args:
        layouts: The layouts that the first input may have, in order of preference: an input
            without layout gets the first that has as many dimensions. None means any.
        namespace: Where users find it, such as "reductions"; by default at the top.
        kernel: The kernel's name, where it isn't the operator's.
        devices: Where it can run.
        random: Whether it draws random numbers. Then it takes an `rng`, and its kernel gets what
            to draw from under that name.
        crosses: Whether `device` may say another place than where the input is.
        makes_frames: Whether an argument for each frame (see `per_frame`) makes a sequence of what
            is none. Its kernel says the same.
        sifts: Whether it takes `on_error` and `along`, for samples that are damaged; see `_sift`.
        takes: Makes data of what users may give beside it, such as names of files.
    """

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        name = f"{namespace}.{function.__name__}" if namespace else function.__name__
        said = Definition(
            tuple(layouts.split()),
            kernel or name,
            tuple(devices.split()),
            random,
            crosses,
            makes_frames,
            sifts,
            takes,
        )
        made = OPERATORS[name] = Operator(name, function, said)
        return made.function

    return define


class Operator:
    """A definition, ready to be called."""

    common = True
    """Whether it has the keywords that operators have in common: `batch_size` and `device`."""

    def __init__(self, name: str, function: Callable[..., Any], said: Definition) -> None:
        code = function.__code__
        named = code.co_argcount + code.co_kwonlyargcount
        hints = typing.get_type_hints(function)
        self.name = name
        self.definition = function
        self.said = said
        self.inputs = code.co_varnames[: code.co_argcount]
        self.variadic = code.co_varnames[named] if code.co_flags & 0x04 else None
        self.optional = len(function.__defaults__ or ())
        defaults = function.__kwdefaults__ or {}
        self.arguments = tuple(
            _argument(key, hints[key], defaults.get(key, REQUIRED))
            for key in code.co_varnames[code.co_argcount : named]
        )
        self.kernel_arguments = tuple(_core.kernel_arguments(said.kernel))
        # Those of no definition: what the call itself knows.
        self._told = {"rng", "batch_size", "dtype"}.intersection(self.kernel_arguments)
        self.number = _core.register(name, said.kernel)
        self.function = self._make_function()
        self._by_rank = {len(layout): layout for layout in reversed(said.layouts)}
        self._ready: tuple[dict[str, Any], dict[str, Any]] | None = None
        self._required = [each.name for each in self.arguments if each.default is REQUIRED]

    @property
    def keywords(self) -> list[str]:
        """Names of all keywords, those that every operator has first."""
        own = (argument.name for argument in self.arguments)
        return ["batch_size", "device", *own, *self._more]

    @property
    def _more(self) -> list[str]:
        """Keywords that only some operators have."""
        more = ["rng"] if self.said.random else []
        return more + (["on_error", "along"] if self.said.sifts else [])

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
        sifts = (on_error is not None or along is not None) and bad_samples.check(
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
        known, args = self._ready or self._defaults()
        if given is not None:
            known, args = known.copy(), args.copy()
            samples = self._arguments(given, known, args, values, samples)
        elif self._required:
            raise messages.missing_argument(self.name, self._required[0])
        if batch_size is not None and samples is None:
            samples = self._check_batch_size(batch_size)
        if device is not None or place >= 0:
            place = self._check_device(device, place)
        results = self.definition(*arrays, **known)
        if isinstance(results, Result):
            results = (results,)
        derived = results[0].kernel
        for key, item in derived.items():
            if isinstance(item, Array):
                derived[key] = [len(values)]
                values.append(item._value)
        if self._told:
            args = {**args, **self._tell(results[0], samples, batch_size, rng)}
        promises = [result.promise(layout) for result in results]
        if self.said.makes_frames and any(map(_is_sequence, values)):
            promises = list(map(_in_frames, promises))
        made = invoke(
            self.number,
            values,
            data_inputs,
            tuple([derived[key] if key in derived else args[key] for key in self.kernel_arguments]),
            samples,
            promises,
            place,
            layout,
            not sifts,
        )
        if sifts:
            return bad_samples.drop_or_replace(wrap(made[0]), inputs[0], on_error, along)
        if self.said.random and samples is None and not data_inputs:
            return shared_draw.mark(wrap(made[0]), self.name)
        return wrap(made[0]) if len(made) == 1 else tuple(map(wrap, made))

    def _tell(
        self, result: Result, samples: int | None, batch_size: Any, rng: Any
    ) -> dict[str, Any]:
        """What a kernel may ask for beside its arguments. The last of the checks: it draws."""
        told: dict[str, Any] = {}
        if "dtype" in self._told and result.dtype is not None:
            told["dtype"] = result.dtype._code
        if "batch_size" in self._told:
            if samples is None and "rng" in self._told:
                raise messages.needs_batch_size(self.name)
            told["batch_size"] = samples
        if "rng" in self._told:
            if rng is not None and not isinstance(rng, RNG):
                raise messages.not_an_rng(self.name, rng)
            if batch_size is not None and batch_size != samples:
                raise messages.batch_sizes_differ(batch_size, samples or 0, self.name)
            told["rng"] = (get_default_rng() if rng is None else rng)._draw()
        return told

    def _is_optional(self, position: int) -> bool:
        return len(self.inputs) - self.optional <= position < len(self.inputs)

    def _input(self, position: int, data: Any) -> Array:
        name = self.inputs[position] if position < len(self.inputs) else self.variadic
        if data is None:
            raise messages.missing_input(self.name, name or "")
        try:
            data = data if self.said.takes is None else self.said.takes(data)
            made: Array = data if isinstance(data, Array) else wrap(single(data))
        except (TypeError, ValueError) as error:
            raise messages.in_operator(self.name, error, name) from None
        return made

    def _check_layout(self, value: Value) -> str | None:
        """The layout that the input has or is taken to have."""
        layout = value.layout
        if layout is None:
            layout = self._by_rank.get(value.ndim)
            if layout is None:
                raise messages.wrong_rank(self.name, value.ndim, self.said.layouts)
        elif layout not in self.said.layouts:
            raise messages.wrong_layout(self.name, layout, self.said.layouts)
        return layout

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
        """Where to run: where it was asked for, else on a gpu if an input is there."""
        if device is not None:
            try:
                asked = to_device(device)
            except (TypeError, ValueError) as error:
                raise messages.in_operator(self.name, error, "device") from None
            assert asked is not None
            if asked._code < 0 <= place and not self.said.crosses:
                raise messages.gpu_input_on_cpu(self.name)
            place = asked._code
        if place >= 0 and "gpu" not in self.said.devices:
            raise messages.not_on_gpu(self.name)
        return place

    def _defaults(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments of a call that gives none, for definition and kernel, worked out once."""
        known: dict[str, Any] = {}
        args: dict[str, Any] = {}
        for argument in self.arguments:
            item = argument.default
            if item is not None and item is not REQUIRED:
                item = argument.read(self.name, item)
            known[argument.name] = item
            args[argument.name] = item._code if type(item) is DType else item
        self._ready = known, args
        return self._ready

    def _arguments(
        self,
        given: tuple[Any, ...],
        known: dict[str, Any],
        args: dict[str, Any],
        values: list[Value],
        samples: int | None,
    ) -> int | None:
        """Convert what is given, into `known` for the definition and `args` for the kernel.

        Both have the defaults already. Those that come as tensors or batches join `values`; the
        number of samples is returned.
        """
        shared: tuple[str, Array] | None = None
        for argument, item in zip(self.arguments, given, strict=True):
            name = argument.name
            if item is None:
                if argument.default is REQUIRED:
                    raise messages.missing_argument(self.name, name)
                continue
            item = argument.read(self.name, item)
            known[name] = item
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
        """The public function. It is written out, so that Python itself binds the call."""
        required = len(self.inputs) - self.optional
        inputs = [
            name if position < required else f"{name}=None"
            for position, name in enumerate(self.inputs)
        ]
        inputs += ["/"] if inputs else []
        shown = [*inputs, f"*{self.variadic}" if self.variadic else "*"]
        inputs.append(f"*{self.variadic or 'surplus'}")
        given = "".join(f"{name}, " for name in self.inputs)
        given += f"*{self.variadic}" if self.variadic else ""
        names = [argument.name for argument in self.arguments]
        absent = " and ".join(f"{name} is None" for name in names) or "True"
        keywords = [f"{key}=None" for key in self.keywords]
        surplus = "False" if self.variadic else "surplus"
        more = "".join(f", {key}={key}" for key in self._more)
        source = f"""
def signature({", ".join([*shown, *keywords])}): ...
def {self.definition.__name__}({", ".join([*inputs, *keywords])}, **unknown):
    try:
        if unknown:
            raise unknown_argument("{self.name}", unknown, keywords)
        if {surplus}:
            raise surplus_input("{self.name}", {len(self.inputs)}, surplus, keywords)
        given = None if {absent} else ({"".join(f"{name}, " for name in names)})
        return call(({given}), given, batch_size, device{more})
    except BaseException as error:
        hide_frames(error)
        raise
"""
        scope: dict[str, Any] = {
            "__name__": self.definition.__module__,
            "unknown_argument": messages.unknown_argument,
            "surplus_input": messages.surplus_input,
            "keywords": self.keywords,
            "call": self.call,
            "hide_frames": hide_frames,
        }
        # A file name inside of the package, for the search of the user's line to pass over.
        file = os.path.join(os.path.dirname(__file__), f"<{self.name}>")
        exec(compile(source, file, "exec"), scope)
        function = cast(types.FunctionType, scope[self.definition.__name__])
        function.__doc__ = self.definition.__doc__
        function.__module__ = self.definition.__module__
        # What `help` and editors show, which find it by this attribute.
        function.__wrapped__ = scope["signature"]  # type: ignore[attr-defined]
        return function


def _is_sequence(value: Value) -> bool:
    return (value.layout or "").startswith("F")


def _in_frames(promise: Promise) -> Promise:
    """What is promised of a frame, for a sequence of them."""
    dtype, ndim, layout = promise
    if layout is not None and layout.startswith("F"):
        return promise
    return dtype, None if ndim is None else ndim + 1, None if layout is None else f"F{layout}"


def _argument(name: str, hint: Any, default: Any) -> Argument:
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    kind = next(kind for kind in kinds if kind is not Array)
    convert, wanted = CONVERSIONS[kind]
    return Argument(name, kind, default, convert, wanted, Array in kinds)
