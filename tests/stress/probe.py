"""Operators that misbehave on request, for tests of the engine.

They need a build with the feature `probes`, which `make dev` has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from penstock import EvalContext, ThreadPool, _core, int64
from penstock._operators.submit import invoke
from penstock._values.array import Array, wrap

OK, FAIL, PANIC, BREAK_PROMISE = range(4)

_PROBE = _core.register("probe", "probe")
_PAIR = _core.register("probe_pair", "probe_pair")


def probe(data: Any, action: Any = OK, sleep: Any = 0) -> Any:
    """A copy of `data`, after `sleep` microseconds. Both arguments may be a batch."""
    values = [data._value]
    args: list[Any] = []
    for argument in (action, sleep):
        if isinstance(argument, Array):
            args.append([len(values)])
            values.append(argument._value)
        else:
            args.append(argument)
    value = data._value
    samples = next((len(value) for value in values if value.batch), None)
    promise = (value.dtype, value.ndim, value.layout)
    [made] = invoke(_PROBE, values, 1, tuple(args), samples, (promise,), value.device)
    return wrap(made)


def probe_pair(data: Any) -> tuple[Any, Any]:
    """The shape of `data`, and a copy of it."""
    value = data._value
    samples = len(value) if value.batch else None
    promises = ((int64._code, 1, None), (value.dtype, value.ndim, value.layout))
    shape, copy = invoke(_PAIR, (value,), 1, (), samples, promises, value.device)
    return wrap(shape), wrap(copy)


@contextlib.contextmanager
def bounded(threads: int, **limits: int) -> Iterator[_core.Pool]:
    """Calls go to a separate pool with limited work in flight."""
    pool = ThreadPool(threads, device_id=None)
    pool._native = native = _core.Pool(threads, **limits)
    with EvalContext(thread_pool=pool):
        yield native
