"""`map`: a Python function as an operator. The only way in which workers run Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._operators.call_sites import here
from penstock._operators.submit import deliver, settle
from penstock._runtime.context import EvalContext
from penstock._runtime.mode import EvalMode
from penstock._values.array import Array, wrap
from penstock._values.conversion import relabel, rows, single
from penstock._values.dtype import BY_CODE, DType
from penstock._values.dtype import dtype as to_dtype

__all__ = ["TensorSpec", "map"]

if TYPE_CHECKING:
    from penstock._core import Promise, Value


class TensorSpec(NamedTuple):
    """What is known about a function's result before it has run.

    A type or a number of dimensions that is left out is known only once the function has run, so
    asking for it waits. Without a layout, the result has none.

    Args:
        dtype: The element type.
        ndim: The number of dimensions of a sample.
        layout: The layout of a sample.

    Example:
        >>> ndd.TensorSpec(ndd.uint8, ndim=3, layout="HWC").ndim
        3
    """

    dtype: DType | None = None
    ndim: int | None = None
    layout: str | None = None

    def _promise(self) -> Promise:
        """The same for the engine."""
        return None if self.dtype is None else self.dtype._code, self.ndim, self.layout


@public
def map(
    function: Callable[..., Any],
    *inputs: Any,
    outputs: int | TensorSpec | Sequence[TensorSpec] = 1,
    batched: bool = False,
    batch_size: int | None = None,
    name: str | None = None,
) -> Any:
    """Run a Python function on a worker thread, like an operator.

    The call returns at once; the function runs in the background when its inputs are ready, in the
    order and mode of any other call. It gets Tensors in host memory, one sample at a time, and
    returns anything that a Tensor can be made of: arrays, torch tensors, numbers, bytes. An
    exception fails the whole call, and is raised where a result is read. The function runs even
    if nobody reads the result.

    Python code holds the GIL, so functions don't run in parallel with each other or with the
    training loop unless they release it, as NumPy, OpenCV and torch do. Prefer operators where
    there are any.

    Args:
        function: What to run. It must not change its inputs.
        inputs: Tensors, Batches, or anything that `as_tensor` takes. A Tensor next to a Batch is
            passed with every sample.
        outputs: How many results the function returns, or what is known about each. A function
            with several results returns a tuple.
        batched: Call the function once with whole Batches. It then returns a Batch, a list of
            samples, or an array whose first dimension is the batch.
        batch_size: How many samples to make where no input is a Batch.
        name: The name to use in errors; the function's own by default.

    Returns:
        A Batch, or a Tensor where there is no Batch and no `batch_size`. A tuple of them for
        several outputs.

    Example:
        >>> import numpy as np
        >>> images = ndd.batch([[1, 3, 2], [5, 4]])
        >>> found = ndd.map(np.sort, images, outputs=ndd.TensorSpec(ndd.int32, ndim=1))
        >>> found.tensors[1].torch().tolist()
        [4, 5]
    """
    title = name or str(getattr(function, "__name__", type(function).__name__))
    several = not isinstance(outputs, TensorSpec) and outputs != 1
    specs = _specs(outputs)
    arrays = [data if isinstance(data, Array) else wrap(single(data)) for data in inputs]
    values = [array.cpu()._value for array in arrays]
    samples = _batch_size(values, batch_size, title)
    if samples == 0:
        made = [_nothing(spec, title) for spec in specs]
    else:
        given = [value.batch for value in values]
        work = _Work(function, title, given, samples, specs, several, batched)
        made = _submit(title, work, values, samples, specs)
    results = tuple(wrap(value) for value in made)
    return results if several else results[0]


class _Work:
    """The function between the engine's values and the user's objects."""

    __slots__ = ("batched", "function", "given", "name", "samples", "several", "specs")

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        given: list[bool],
        samples: int | None,
        specs: Sequence[TensorSpec],
        several: bool,
        batched: bool,
    ) -> None:
        self.function = function
        self.name = name
        self.given = given
        self.samples = samples
        self.specs = specs
        self.several = several
        self.batched = batched

    def __call__(self, *values: Value) -> tuple[Value, ...]:
        arguments = [self._argument(*each) for each in zip(values, self.given, strict=True)]
        if self.batched or self.samples is None:
            results = self._results(self.function(*arguments))
        else:
            results = self._by_sample(arguments, self.samples)
        return tuple(self._value(*each) for each in zip(results, self.specs, strict=True))

    def _by_sample(self, arguments: Sequence[Any], samples: int) -> list[list[Any]]:
        """The results of a call for each sample, as a list for each output."""
        results: list[list[Any]] = [[] for _ in self.specs]
        for index in range(samples):
            own = [
                array.tensors[index] if batch else array
                for array, batch in zip(arguments, self.given, strict=True)
            ]
            try:
                made = self._results(self.function(*own))
            except Exception as error:
                if hasattr(error, "add_note"):  # from Python 3.11 on
                    error.add_note(f"in a call of {self.name} by penstock.map, for sample {index}")
                raise
            for samples_of_output, result in zip(results, made, strict=True):
                samples_of_output.append(self._present(result))
        return results

    def _results(self, made: Any) -> Sequence[Any]:
        """What the function has returned, as one result for each output."""
        if not self.several:
            return (made,)
        if not isinstance(made, tuple | list) or len(made) != len(self.specs):
            count = f"{len(made)} of them" if isinstance(made, tuple | list) else repr(made)
            raise TypeError(
                f"{self.name}: the function must return a tuple of {len(self.specs)} results, "
                f"got {count}."
            )
        return made

    def _present(self, made: Any) -> Any:
        if made is None:
            raise TypeError(f"{self.name}: the function must return data, got None.")
        return made

    def _argument(self, value: Value, batch: bool) -> Any:
        # In a call on a batch, the engine hands single tensors over as batches of one.
        return wrap(value if value.batch == batch else value.pick(_pool(), (0,), False))

    def _value(self, made: Any, spec: TensorSpec) -> Value:
        made = self._present(made)
        value = _one(made) if self.samples is None else self._all(made)
        settle(value)
        if spec.dtype is not None and value.dtype != spec.dtype._code:
            raise TypeError(
                f"{self.name}: the function should return elements of {spec.dtype}, got "
                f"{BY_CODE[value.dtype]}."
            )
        if spec.ndim is not None and value.ndim != spec.ndim:
            raise ValueError(
                f"{self.name}: the function should return data of {spec.ndim} dimensions, got "
                f"{value.ndim}."
            )
        return relabel(value, spec.layout)

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
                f"{self.name}: the function should return {self.samples} samples, got {len(value)}."
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
    specs: Sequence[TensorSpec],
) -> list[Value]:
    mode = EvalMode.current()
    context = EvalContext.current()
    deferred = mode is EvalMode.deferred
    promises = [spec._promise() for spec in specs]
    pool = context._native_pool()
    made = _core.call(name, work, values, samples, promises, here(), pool, deferred)
    deliver(made, mode, context)
    return made


def _specs(outputs: int | TensorSpec | Sequence[TensorSpec]) -> Sequence[TensorSpec]:
    if isinstance(outputs, int):
        return (TensorSpec(),) * outputs
    specs = (outputs,) if isinstance(outputs, TensorSpec) else outputs
    return [
        spec if spec.dtype is None else spec._replace(dtype=to_dtype(spec.dtype)) for spec in specs
    ]


def _batch_size(values: Sequence[Value], batch_size: int | None, name: str) -> int | None:
    for value in values:
        if value.batch:
            if batch_size is not None and batch_size != len(value):
                raise messages.batch_sizes_differ(batch_size, len(value), name)
            batch_size = len(value)
    return batch_size


def _nothing(spec: TensorSpec, name: str) -> Value:
    """The result for an empty batch, for which the function is not called."""
    if spec.dtype is None or spec.ndim is None:
        raise ValueError(
            f"{name}: an empty batch does not show what the function makes; give `dtype` and "
            "`ndim` with `outputs=TensorSpec(...)`."
        )
    return _core.empty(spec.dtype._code, spec.ndim, spec.layout)


def _pool() -> _core.Pool:
    return EvalContext.current()._native_pool()
