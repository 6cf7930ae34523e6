"""Python functions as nodes: the one way in which workers run Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock import _core
from penstock._errors import messages
from penstock._operators.call_sites import here
from penstock._operators.submit import deliver, settle
from penstock._runtime.context import EvalContext
from penstock._runtime.mode import EvalMode
from penstock._values.array import Array, wrap
from penstock._values.conversion import relabel, rows, single
from penstock._values.dtype import BY_CODE, DType

if TYPE_CHECKING:
    from penstock._core import Promise, Value


class Output(NamedTuple):
    """What is known of a function's result before it has run.

    Whatever is left out becomes known only by running the function, so that asking for it waits;
    a layout that is left out is not set.
    """

    dtype: DType | None = None
    ndim: int | None = None
    layout: str | None = None

    def promise(self) -> Promise:
        """The same for the engine."""
        return None if self.dtype is None else self.dtype._code, self.ndim, self.layout


def call(
    function: Callable[..., Any],
    *inputs: Any,
    outputs: int | Output | Sequence[Output] = 1,
    name: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Run a Python function on a worker, as an operator of the current mode and context.

    The function is called once, with all samples: with Batches where Batches are given here, and
    with Tensors otherwise, all on the host. It returns anything that a Batch of as many samples
    (or, without a batch, a Tensor) can be made of. What it raises is raised where a result is
    read. It runs even if nobody reads its results, and with the mode and the context that a new
    thread has.

    Args:
        function: What to run.
        inputs: Tensors, Batches, or anything that `as_tensor` takes.
        outputs: How many results the function returns, or what is known of each.
        name: What errors call it; by default the function's own name.
        batch_size: How many samples it makes when no input is a batch.

    Returns:
        A Batch or a Tensor; a tuple of them for several outputs, for which the function returns a
        tuple too.
    """
    title = name or str(getattr(function, "__name__", type(function).__name__))
    several = not isinstance(outputs, Output) and outputs != 1
    promised = _outputs(outputs)
    arrays = [data if isinstance(data, Array) else wrap(single(data)) for data in inputs]
    values = [array.cpu()._value for array in arrays]
    samples = _batch_size(values, batch_size, title)
    if samples == 0:
        made = [_nothing(output, title) for output in promised]
    else:
        given = [value.batch for value in values]
        work = _Work(function, title, given, samples, promised, several)
        made = _submit(title, work, values, samples, promised)
    results = tuple(wrap(value) for value in made)
    return results if several else results[0]


class _Work:
    """The function between the engine's values and the user's objects."""

    __slots__ = ("function", "given", "name", "outputs", "samples", "several")

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        given: list[bool],
        samples: int | None,
        outputs: Sequence[Output],
        several: bool,
    ) -> None:
        self.function = function
        self.name = name
        self.given = given
        self.samples = samples
        self.outputs = outputs
        self.several = several

    def __call__(self, *values: Value) -> tuple[Value, ...]:
        made = self.function(*map(self._argument, values, self.given))
        if not self.several:
            return (self._result(made, self.outputs[0]),)
        if not isinstance(made, tuple | list) or len(made) != len(self.outputs):
            count = f"{len(made)} of them" if isinstance(made, tuple | list) else repr(made)
            raise TypeError(
                f"{self.name}: the function must return a tuple of {len(self.outputs)} results, "
                f"got {count}."
            )
        return tuple(map(self._result, made, self.outputs))

    def _argument(self, value: Value, batch: bool) -> Any:
        # In a call on a batch, the engine hands single tensors over as batches of one.
        return wrap(value if value.batch == batch else value.pick(_pool(), (0,), False))

    def _result(self, made: Any, output: Output) -> Value:
        if made is None:
            raise TypeError(f"{self.name}: the function must return data, got None.")
        value = _one(made) if self.samples is None else self._all(made)
        settle(value)
        if output.dtype is not None and value.dtype != output.dtype._code:
            raise TypeError(
                f"{self.name}: the function was to return elements of {output.dtype}, got "
                f"{BY_CODE[value.dtype]}."
            )
        if output.ndim is not None and value.ndim != output.ndim:
            raise ValueError(
                f"{self.name}: the function was to return data of {output.ndim} dimensions, got "
                f"{value.ndim}."
            )
        return relabel(value, output.layout)

    def _all(self, made: Any) -> Value:
        if isinstance(made, list | tuple):
            made = [wrap(_one(sample)) for sample in made]
        elif isinstance(made, Array) and not made._value.batch:
            raise TypeError(
                f"{self.name}: the function was called on a batch of {self.samples} samples, but "
                "returned a Tensor. Return a Batch, a list of samples, or an array whose first "
                "dimension counts them."
            )
        value, _ = rows(made, copy=not _is_owned(made))
        if len(value) != self.samples:
            raise ValueError(
                f"{self.name}: the function was to return {self.samples} samples, got {len(value)}."
            )
        return value


def _one(made: Any) -> Value:
    if isinstance(made, Array) and made._value.batch:
        raise TypeError("A Batch can't be a sample; return a Tensor or an array.")
    return single(made, copy=not _is_owned(made))


def _is_owned(made: Any) -> bool:
    """Whether nobody can change the data once the function has returned it."""
    if isinstance(made, Array):
        return not made._value.external
    return isinstance(made, bytes | list | tuple)  # the two latter are copied in any case


def _submit(
    name: str,
    work: Callable[..., tuple[Value, ...]],
    values: Sequence[Value],
    samples: int | None,
    outputs: Sequence[Output],
) -> list[Value]:
    mode = EvalMode.current()
    context = EvalContext.current()
    deferred = mode is EvalMode.deferred
    promises = [output.promise() for output in outputs]
    pool = context._native_pool()
    made = _core.call(name, work, values, samples, promises, here(), pool, deferred)
    deliver(made, mode, context)
    return made


def _outputs(outputs: int | Output | Sequence[Output]) -> Sequence[Output]:
    if isinstance(outputs, int):
        return (Output(),) * outputs
    return (outputs,) if isinstance(outputs, Output) else outputs


def _batch_size(values: Sequence[Value], batch_size: int | None, name: str) -> int | None:
    for value in values:
        if value.batch:
            if batch_size is not None and batch_size != len(value):
                raise messages.batch_sizes_differ(batch_size, len(value), name)
            batch_size = len(value)
    return batch_size


def _nothing(output: Output, name: str) -> Value:
    """The result for a batch without samples, on which a function is not called."""
    if output.dtype is None or output.ndim is None:
        raise ValueError(
            f"{name}: an empty batch does not tell what the function would make of it; say its "
            "`dtype` and `ndim`."
        )
    return _core.empty(output.dtype._code, output.ndim, output.layout)


def _pool() -> _core.Pool:
    return EvalContext.current()._native_pool()
